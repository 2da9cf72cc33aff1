//! The picture of the screen in the README, drawn from example data.
//!
//! `UNDERTEXT_WRITE_DOCS=1 cargo test --bins picture` writes it. `UNDERTEXT_PICTURES=FOLDER` also writes other sizes, to look at.

mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Write as _;
    use std::path::Path;

    use ratatui::buffer::{Buffer, Cell};
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use ratatui::layout::Rect;
    use ratatui::style::{Color, Modifier};
    use undertext::model::{
        Block, Card, CheckpointNumber, EntryId, EntryNumber, Kind, Message, Role, SessionName,
        Timestamp,
    };
    use undertext::report::{Acts, Argument, GraphNode, ListedSession};
    use undertext::settings::Glyphs;
    use undertext::verbs::Line;
    use unicode_width::UnicodeWidthStr as _;

    use crate::browse::*;
    use crate::render::graph::Counts;
    use crate::render::safe;
    use crate::render::style::{Label, Styles};
    use crate::render::time::Zone;

    /// Noon of 28 November 2026.
    const NOW: Timestamp = Timestamp(1_795_867_200_000);
    /// The size of a cell, in pixels.
    const CELL: (usize, usize) = (9, 19);

    type Listed = (&'static str, &'static str, &'static str, u64, u64, u64);

    /// Sessions: age, agent, title, turns, reverted branches, compactions.
    const SESSIONS: [Listed; 14] = [
        ("12 min", "claude", "Investigate retry logic in the webhook worker", 19, 2, 1),
        ("3 h", "claude", "Speed up 日本語の検索", 4, 0, 0),
        ("18 h", "claude", "Add dark mode toggle", 4, 1, 0),
        ("1 d", "claude", "Document the OAuth callback", 9, 0, 0),
        ("2 d", "claude", "Remove retry logic in the webhook worker", 16, 2, 1),
        ("2 d", "claude", "Write tests for the OAuth callback", 1, 0, 0),
        ("2 d", "codex", "Port the parser to nom", 31, 0, 2),
        ("3 d", "claude", "Fix pagination of /v2/orders", 3, 0, 0),
        ("12 Nov", "claude", "The release script", 8, 0, 0),
        ("9 Nov", "claude", "Zürich timezone bug", 14, 3, 0),
        ("8 Nov", "claude", "Dark mode toggle", 11, 0, 0),
        ("7 Nov", "claude", "Migration for invoices", 6, 0, 0),
        ("5 Nov", "claude", "Flaky CI on arm64", 22, 0, 1),
        ("4 Nov", "codex", "Bump the parser to 0.31", 2, 0, 0),
    ];

    type Turn = (&'static str, Option<u64>, &'static str, &'static str, &'static str, &'static str);

    /// Rows of the graph: edges, number, time, words, acts, names.
    const TURNS: [Turn; 12] = [
        (
            "◉ ",
            Some(19),
            "16:07",
            "Because the offset is committed before the lock is taken",
            "2✎ 3$",
            "main",
        ),
        ("○ ", Some(18), "15:58", "Make the retry idempotent", "1$", ""),
        ("○ ", Some(17), "15:49", "We must not hold the lock in the handler", "1✎ 4$", ""),
        ("│ ○ ", Some(16), "15:44", "Raise the timeout to 30 s", "2$", "reverted"),
        ("│ ○ ", Some(15), "15:41", "Order the queries by id", "1✎", "reverted"),
        ("◆ ", None, "15:40", "compacted 70k → 9k tokens, 8 things lost", "", ""),
        ("○ ", Some(14), "15:31", "Does the test check that a page fails?", "1✎ 5$ 1✗", ""),
        ("○ ", Some(13), "15:22", "The handler caches the offset, is that right?", "2$", ""),
        ("○ ", Some(12), "15:20", "The token page fails too", "3✎ 4$", ""),
        ("○ ", Some(11), "15:12", "Which pages send the webhook twice?", "6$", ""),
        ("○ ", Some(10), "15:05", "Use the same client for all pages", "4✎ 2$", ""),
        ("○ ", Some(9), "14:58", "Read the worker first", "3$", ""),
    ];

    fn session(n: usize, listed: &Listed) -> SessionRow {
        let (age, agent, title, turns, reverted, compactions) = *listed;
        let days = if age.ends_with("Nov") { 10 } else { 0 };
        let active = Some(Timestamp(NOW.0 - days * 86_400_000));
        let card = Card { title: Some(title.to_owned()), active, turns, ..Card::default() };
        let name = SessionName { format: agent.to_owned(), id: format!("{n}2b7c1d0") };
        let listed = ListedSession {
            name,
            card,
            reverted,
            compactions,
            open: n < 2,
            gone: n == 11,
            ..ListedSession::default()
        };
        SessionRow {
            listed,
            word: if n == 4 { "82".to_owned() } else { format!("{n}2") },
            title: title.to_owned(),
            age: age.to_owned(),
            folder: "~/code/api".to_owned(),
            is_here: true,
            context: "context ▁▁▁▂▂▂▂▃▃▃▃◆▁▁▁▁ 21k of 200k (10%)".to_owned(),
        }
    }

    fn turn(n: usize, turn: &Turn, columns: usize) -> TurnRow {
        let (edges, number, time, words, acts, names) = *turn;
        let (before, glyph) =
            edges.trim_end().split_at(edges.trim_end().rfind(' ').map_or(0, |at| at + 1));
        let is_reverted = names == "reverted";
        let place = number.map(|n| format!("@{n}")).unwrap_or_default();
        let left = format!("{before}{glyph}  {place:<3}  {time}  ");
        let room = columns.saturating_sub(left.width() + 8 + 2 + 8 + 2);
        let said = safe::clip(words, if number.is_none() { room + 12 } else { room }).into_owned();
        let gap = " ".repeat(room.saturating_sub(said.width()));
        let dot = match glyph {
            "◉" => Label::Head,
            "◆" => Label::Boundary,
            _ => Label::Plain,
        };
        let label = if number.is_none() { Label::Boundary } else { Label::Plain };
        let end = if is_reverted { Label::Warning } else { Label::Head };
        let line = vec![
            (Label::Plain, before.to_owned()),
            (dot, glyph.to_owned()),
            (Label::Checkpoint, format!("  {place:<3}")),
            (Label::Time, format!("  {time}  ")),
            (label, said),
            (Label::Dim, format!("{gap}  {acts:>8}")),
            (end, format!("  {names}")),
        ];
        let mut lines = vec![line];
        lines.extend((number == Some(15)).then(|| vec![(Label::Plain, "├─╯".to_owned())]));
        let id = EntryId::new([u8::try_from(n + 1).unwrap(); 32]);
        let node = GraphNode {
            node: n,
            id,
            uuid: None,
            last: id,
            kind: if number.is_some() { Kind::User } else { Kind::Boundary },
            time: None,
            words: words.to_owned(),
            damage: None,
            entries: 2,
            cut: 0,
            found: 0,
            cleared: 0,
            tokens_before: None,
            tokens_after: None,
            lost: None,
            parents: vec![n + 1],
            checkpoint: number.map(CheckpointNumber::new),
            own: None,
            marks: Vec::new(),
            branches: Vec::new(),
            is_head: n == 0,
            is_unnamed: false,
            is_reverted,
            is_undone: false,
            acts: Some(Acts::default()),
            spent: None,
            is_sub_agent: false,
            is_aside: false,
            left: None,
            to: None,
            is_from_later: false,
        };
        TurnRow { node, has_number: number.is_some(), lines }
    }

    fn conversation(session: SessionName, place: String) -> Conversation {
        let call = |id: &str, name: &str, input: &str| Block::Call {
            id: id.to_owned(),
            name: name.to_owned(),
            input: input.to_owned(),
            signature: None,
        };
        let text = |text: &str| Block::Text(text.to_owned());
        let result = |id: &str, said: &str, error: bool| Block::Result {
            id: id.to_owned(),
            name: None,
            blocks: vec![text(said)],
            error,
        };
        let failed = "Exit code 101\ntest queue::retries ... FAILED";
        let edit = r#"{"file_path":"/home/ann/code/api/src/schema.ts","old_string":"retry: number;","new_string":"retry: { max: number; idempotent: boolean };"}"#;
        let blocks = [
            (
                Kind::User,
                text(
                    "Does the test check that a page fails? The worker sends each page once and needs a timeout.",
                ),
            ),
            (
                Kind::Assistant,
                text(
                    "The handler is **not idempotent**: `src/offset.ts` writes the offset *before* it takes the lock.",
                ),
            ),
            (Kind::Assistant, call("1", "Bash", r#"{"command":"cargo test cache"}"#)),
            (Kind::Result, result("1", failed, true)),
            (Kind::Assistant, call("2", "Edit", edit)),
            (Kind::Result, result("2", "The file has been updated.", false)),
            (
                Kind::Assistant,
                text(
                    "The retry is **not idempotent**: `src/offset.ts` writes the offset *before* it takes the lock.\n\n1. Take the lock first\n2. Write the offset once the page was sent",
                ),
            ),
        ];
        let line = |(n, (kind, block)): (usize, (Kind, Block))| {
            let n = n as u64 + 1;
            Line {
                n: EntryNumber::new(n),
                id: Some(EntryId::new([u8::try_from((n * 37 + 100) & 255).unwrap(); 32])),
                uuid: None,
                kind,
                time: Some(Timestamp(NOW.0 - 160_200_000 + 60_000 * i64::try_from(n).unwrap())),
                checkpoint: (n == 1).then(|| CheckpointNumber::new(14)),
                own: None,
                marks: Vec::new(),
                messages: vec![Message::new(Role::Assistant, vec![block])],
                cuts: Vec::new(),
                earlier: Vec::new(),
                damage: None,
            }
        };
        let lines = blocks.into_iter().enumerate().map(line).collect();
        let folder = Some("/home/ann/code/api".to_owned());
        Conversation { session, place, lines, beneath: BTreeMap::new(), folder }
    }

    /// Draws the screen of the example after some keys.
    fn drawn(size: (u16, u16), keys: &str) -> Buffer {
        let styles = Styles::COLOURED;
        let look = Look { styles, zone: Zone::Utc, now: NOW, glyphs: Glyphs::Unicode };
        let spell = |line: &undertext::report::Line| {
            let word = |word: &Argument| match word {
                Argument::Word(word) => format!(" {}", word.to_string_lossy()),
                _ => String::new(),
            };
            format!(
                "undertext {}{}",
                line.verb,
                line.arguments.iter().map(word).collect::<String>()
            )
        };
        let mut browse =
            Browse::new(look, Keys::default(), Box::new(spell), Box::new(|_: &str, _| Vec::new()));
        browse.resize(size.0, size.1);
        browse.on_answer(Answer::Sessions(Sessions {
            rows: SESSIONS.iter().enumerate().map(|(n, listed)| session(n, listed)).collect(),
            here: "~/code/api".to_owned(),
            is_whole: true,
            looked_in: String::new(),
        }));
        let area = Rect { x: 0, y: 0, width: size.0, height: size.1 };
        let mut buffer = Buffer::empty(area);
        for key in keys.chars().map(Some).chain([None, None]) {
            if let Some(key) = key {
                let code = if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) };
                browse.on_key(KeyEvent::new(code, KeyModifiers::NONE));
            }
            for _ in 0..4 {
                for effect in browse.take_effects() {
                    if let Effect::LayOut(drafts) = &effect {
                        for draft in drafts {
                            browse.on_answer(Answer::LaidOut(draft.clone(), draft.lay_out()));
                        }
                    }
                    answer(&mut browse, effect);
                }
            }
            buffer = Buffer::empty(area);
            browse.draw(area, &mut buffer);
        }
        buffer
    }

    fn answer(browse: &mut Browse, effect: Effect) {
        browse.on_answer(match effect {
        Effect::Graph(session, columns, _) => Answer::Graph(Graph {
            session,
            word: "82".to_owned(),
            title: SESSIONS[4].2.to_owned(),
            facts: "opus-5 · feature/x · 26 Nov 13:55–16:13 · 6 files".to_owned(),
            columns,
            rows: TURNS.len(),
            counts: Counts { turns: 17, reverted: 3, compactions: 1 },
            is_folded: false,
            branches: vec!["main".to_owned(), "main.1".to_owned()],
            newest: Some(CheckpointNumber::new(19)),
            head: Some(0),
            is_whole: true,
            unread: Vec::new(),
            undo: Some("operation 41 (revert)".to_owned()),
            open: None,
            deleted: None,
            waiting: None,
        }),
        Effect::Rows { session, columns, first } => {
            let turns = TURNS.iter().enumerate().map(|(n, it)| turn(n, it, columns)).collect();
            Answer::Rows { session, columns, first, turns }
        }
        Effect::Read(session, place) => Answer::Conversation(conversation(session, place)),
        Effect::Plan(args) => {
            let lines = [
                "82 would be just before @14 \"Does the test check that a page fails?\"",
                "@14, @17, @18, @19 (4 turns) would be kept on branch main.1. Nothing is deleted.",
                "Context 21k → 62k tokens (31%): the compaction at 15:40 is undone too.",
                "Files are not restored. 4 were edited since: src/schema.ts, src/offset.ts, 2 more",
            ];
            let lines = lines.map(|line| vec![(Label::Plain, line.to_owned())]).to_vec();
            let report = Report { is_done: true, lines, ..Report::default() };
            Answer::Plan { args, report, open: None }
        }
        _ => return,
    });
    }

    /// Draws a buffer as a picture, for light and dark pages.
    fn svg(buffer: &Buffer, title: &str) -> String {
        let (columns, rows) = (usize::from(buffer.area.width), usize::from(buffer.area.height));
        let (wide, high) = (columns * CELL.0 + 20, rows * CELL.1 + 20);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" width=\"{wide}\" height=\"{high}\" role=\"img\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"15\">\n\
         <title>{title}</title>\n<style>text{{fill:#22272e;white-space:pre}}.page{{fill:#fdfdfb;stroke:#c9c9c4}}\
         .Red{{fill:#b3261e}}.Green{{fill:#1a7f37}}.Yellow{{fill:#8a6100}}.Blue{{fill:#1f5fbf}}.Magenta{{fill:#8b3fa8}}\
         .Cyan{{fill:#0b7285}}.bold{{font-weight:bold}}.dim{{opacity:.65}}.italic{{font-style:italic}}\
         .mark{{fill:#22272e}}text.mark{{fill:#fdfdfb}}\
         @media(prefers-color-scheme:dark){{text{{fill:#dcdfe4}}.page{{fill:#1f2229;stroke:#4a4e58}}.Red{{fill:#f28b82}}\
         .Green{{fill:#8ccf8c}}.Yellow{{fill:#e5b567}}.Blue{{fill:#8ab4f8}}.Magenta{{fill:#d3a0e8}}.Cyan{{fill:#6cc4d8}}\
         .mark{{fill:#dcdfe4}}text.mark{{fill:#1f2229}}}}</style>\n\
         <rect class=\"page\" x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
            wide - 1,
            high - 1,
        );
        for (y, cells) in buffer.content().chunks(columns).enumerate() {
            let mut at = 0;
            for run in cells.chunk_by(|one, next| one.style() == next.style()) {
                put_run(&mut svg, run, (10 + at * CELL.0, 10 + y * CELL.1));
                at += run.len();
            }
        }
        svg + "</svg>\n"
    }

    /// Draws cells of one style. Runs of words are separate texts, so that each begins in its column.
    fn put_run(svg: &mut String, run: &[Cell], at: (usize, usize)) {
        let Some(first) = run.first() else { return };
        let is_marked = first.modifier.contains(Modifier::REVERSED);
        let mut classes = Vec::new();
        if is_marked {
            let wide = run.len() * CELL.0;
            writeln!(
                svg,
                "<rect class=\"mark\" x=\"{}\" y=\"{}\" width=\"{wide}\" height=\"{}\"/>",
                at.0, at.1, CELL.1
            )
            .unwrap();
            classes.push("mark".to_owned());
        } else if first.fg != Color::Reset {
            classes.push(first.fg.to_string());
        }
        for (modifier, class) in
            [(Modifier::BOLD, "bold"), (Modifier::DIM, "dim"), (Modifier::ITALIC, "italic")]
        {
            classes.extend(first.modifier.contains(modifier).then(|| class.to_owned()));
        }
        let class = if classes.is_empty() {
            String::new()
        } else {
            format!(" class=\"{}\"", classes.join(" "))
        };
        // A wide character comes from another font, so it is a text of its own.
        let (mut text, mut begin, mut n) = (String::new(), 0, 0);
        while n <= run.len() {
            let symbol = run.get(n).map_or(" ", Cell::symbol);
            let next = run.get(n + 1).map_or(" ", Cell::symbol);
            let (wide, is_blank) = (symbol.width().max(1), symbol.trim().is_empty());
            let ends = is_blank && next.trim().is_empty()
                || wide > 1
                || text.width() > text.chars().count();
            if (ends || n >= run.len()) && !text.is_empty() {
                let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
                let length = text.width() * CELL.0;
                writeln!(
                    svg,
                    "<text x=\"{}\" y=\"{}\"{class} textLength=\"{length}\" lengthAdjust=\"spacingAndGlyphs\">{escaped}</text>",
                    at.0 + begin * CELL.0,
                    at.1 + 14,
                )
                .unwrap();
                text.clear();
            }
            if !is_blank || !text.is_empty() {
                begin = if text.is_empty() { n } else { begin };
                text.push_str(symbol);
            }
            n += wide;
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test writes a page of the repository")]
    fn the_picture_in_the_readme_is_the_screen() {
        let title = "undertext browse: sessions, the turns of one, and the conversation of a turn";
        let picture = svg(&drawn((120, 32), "jjjj2JJJJJJ"), title);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/browse.svg");
        if std::env::var_os("UNDERTEXT_WRITE_DOCS").is_some() {
            std::fs::write(&path, &picture).unwrap();
        }
        if let Some(folder) = std::env::var_os("UNDERTEXT_PICTURES") {
            for (name, size, keys) in [
                ("80x24", (80, 24), "jjjj\nJJJJJJ"),
                ("100x30", (100, 30), "jjjj2JJJJJJr"),
                ("sessions", (80, 24), ""),
                ("help", (80, 24), "?"),
                ("120x32", (120, 32), "jjjj2JJJJJJ"),
                ("reading", (120, 32), "jjjj2JJJJJJ3++"),
                ("light", (120, 40), "jjjj2JJJJJJr"),
            ] {
                let file = Path::new(&folder).join(format!("{name}.svg"));
                std::fs::write(file, svg(&drawn(size, keys), name)).unwrap();
            }
        }
        let stored = std::fs::read_to_string(path).unwrap_or_default();
        assert!(stored == picture, "UNDERTEXT_WRITE_DOCS=1 cargo test --bins picture");
    }
}
