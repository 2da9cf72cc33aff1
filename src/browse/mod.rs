//! Interactive screens: the picker, which chooses a session or a turn, and the screen of `browse`.
//!
//! Everything is drawn into a buffer. Only [`screen`] touches the terminal.
//!
//! Invariant: no screen opens without a terminal, and no screen changes anything itself: it returns what was picked, or what a
//! person asked for.

mod canvas;
mod compare;
mod cursor;
mod data;
mod dialog;
mod filter;
mod input;
mod keys;
mod layout;
mod list;
mod matching;
mod picker;
#[cfg(test)]
mod picture;
mod popup;
mod reader;
mod screen;
mod seek;
mod state;
mod turns;
mod view;

pub(crate) use data::{
    Answer, BLOCK, BranchEnd, Comparison, Conversation, Effect, Found, Graph, Report, SessionRow,
    Sessions, TurnRow,
};
pub(crate) use keys::Keys;
pub(crate) use picker::{Picker, Piece, Preview, Row};
pub(crate) use screen::{Host, Wake, has_room, live, pick};
pub(crate) use seek::Sought;
pub(crate) use state::{Browse, Look};

#[cfg(test)]
mod tests {
    //! The screen driven without a terminal: a host of a few lines answers what it asks for.

    use insta::assert_snapshot;
    use proptest::prelude::*;
    use ratatui::buffer::Buffer;
    use ratatui::crossterm::event::{
        KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
    };
    use ratatui::layout::Rect;
    use undertext::model::{
        Block, Card, CheckpointNumber, EntryId, EntryNumber, Kind, Message, Role, SessionName,
        Timestamp,
    };
    use undertext::report::{Acts, GraphNode, Line, ListedSession};
    use undertext::settings::Glyphs;
    use unicode_width::UnicodeWidthStr as _;

    use super::dialog::{Dialog, Naming};
    use super::keys::{Pane, TABLE};
    use super::*;
    use crate::render::graph::Counts;
    use crate::render::style::{Label, Styles};
    use crate::render::time::Zone;

    /// Sequences that control a terminal, reorder a line, or are wide or invisible.
    const HOSTILE: &str = "\x1b]0;owned\x07\x1b[31mred\u{202e}\u{200b} 日本語👩‍👩‍👧 \u{9b}2J";
    const TITLES: [&str; 4] =
        ["Investigate retry logic in the webhook worker", "Speed up 日本語の検索", HOSTILE, "Go"];
    const NOW: Timestamp = Timestamp(1_795_000_000_000);

    thread_local! {
        /// How many entries were laid out.
        pub(super) static LAID_OUT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    fn entry_id(n: usize) -> EntryId {
        EntryId::new([u8::try_from(n).unwrap(); 32])
    }

    fn name(n: usize) -> SessionName {
        SessionName { format: ["pi", "codex"][n % 2].to_owned(), id: format!("{n}2b7c1d0") }
    }

    fn session(n: usize) -> SessionRow {
        let days = i64::try_from(n).unwrap() * 4;
        let title = TITLES[n % TITLES.len()];
        let active = Some(Timestamp(NOW.0 - 86_400_000 * days));
        let card = Card { title: Some(title.to_owned()), active, turns: 4, ..Card::default() };
        SessionRow {
            listed: ListedSession {
                name: name(n),
                card,
                reverted: u64::from(n == 0),
                compactions: u64::from(n < 2),
                open: n == 0,
                gone: n == 3,
                ..ListedSession::default()
            },
            word: format!("{n}2"),
            title: title.to_owned(),
            age: format!("{} d", n * 4),
            folder: if n == 2 { HOSTILE.to_owned() } else { "~/code/api".to_owned() },
            is_here: n != 1,
            context: "context ▁▃◆▁ 21k of 200k (10%)".to_owned(),
        }
    }

    fn sessions(count: usize) -> Answer {
        Answer::Sessions(Sessions {
            rows: (0..count).map(session).collect(),
            here: "~/code/api".to_owned(),
            is_whole: true,
            looked_in: "~/.agents".to_owned(),
        })
    }

    /// The turns of a session, newest first: their number, words, lanes, and whether they were reverted.
    const TURNS: [(Option<u64>, &str, &str, bool); 5] = [
        (Some(3), "Does the test check that a page fails?", "◉", false),
        (None, "compacted 70k → 9k tokens, 8 things lost", "◆", false),
        (Some(2), HOSTILE, "│ ○", true),
        (Some(1), "Order the queries by id", "│ ○", true),
        (Some(0), "Remove retry logic", "○", false),
    ];

    fn node(n: usize, turn: &(Option<u64>, &str, &str, bool)) -> GraphNode {
        let (number, words, _, is_reverted) = *turn;
        let acts = Acts { edits: u64::from(n == 3), commands: 1, failed: u64::from(n == 4) };
        let id = entry_id(n + 1);
        GraphNode {
            node: n,
            id,
            uuid: None,
            last: entry_id(n + 101),
            kind: if number.is_some() { Kind::User } else { Kind::Boundary },
            time: Some(NOW),
            words: words.to_owned(),
            damage: None,
            entries: 2,
            cut: 0,
            found: 0,
            cleared: 0,
            tokens_before: None,
            tokens_after: None,
            lost: None,
            parents: match n {
                0 => vec![1],
                1 | 3 => vec![4],
                2 => vec![3],
                _ => Vec::new(),
            },
            checkpoint: number.map(CheckpointNumber::new),
            own: None,
            marks: Vec::new(),
            branches: if n == 0 { vec!["main".to_owned()] } else { Vec::new() },
            is_head: n == 0,
            is_unnamed: false,
            is_reverted,
            is_undone: false,
            acts: Some(acts),
            spent: None,
            is_sub_agent: false,
            is_aside: false,
            left: None,
            to: None,
            is_from_later: n == 4,
        }
    }

    fn turns() -> Vec<TurnRow> {
        let turn = |(n, turn): (usize, &(Option<u64>, &str, &str, bool))| {
            let number = turn.0.map(|n| format!("  @{n}  16:0{n}")).unwrap_or_default();
            let words = crate::render::safe::line(turn.1).into_owned();
            let line = vec![
                (Label::Plain, turn.2.to_owned()),
                (Label::Checkpoint, number),
                (Label::Plain, format!("  {words}")),
            ];
            let mut lines = vec![line];
            lines.extend((n == 3).then(|| vec![(Label::Plain, "├─╯".to_owned())]));
            TurnRow { node: node(n, turn), has_number: turn.0.is_some(), lines }
        };
        TURNS.iter().enumerate().map(turn).collect()
    }

    fn graph(session: SessionName, columns: usize, rows: &[TurnRow]) -> Graph {
        let is_reverted = |row: &&TurnRow| row.has_number && row.node.is_reverted;
        let reverted = rows.iter().filter(is_reverted).count() as u64;
        let turns = rows.iter().filter(|row| row.has_number).count() as u64 - reverted;
        let compactions = rows.iter().filter(|row| row.node.kind == Kind::Boundary).count() as u64;
        let counts = Counts { turns, reverted, compactions };
        Graph {
            word: session.id.chars().take(2).collect(),
            session,
            title: TITLES[0].to_owned(),
            facts: "opus-5 · 26 Nov 13:55–16:13 · 6 files".to_owned(),
            columns,
            is_folded: false,
            branches: vec!["main".to_owned(), "main.1".to_owned()],
            newest: Some(CheckpointNumber::new(19)),
            rows: rows.len(),
            counts,
            head: rows.iter().position(|row| row.node.is_head),
            is_whole: true,
            unread: Vec::new(),
            undo: Some("operation 9 (revert)".to_owned()),
            open: None,
            deleted: None,
            waiting: None,
        }
    }

    fn line(n: u64, kind: Kind, block: Block) -> undertext::verbs::Line {
        let role = if kind == Kind::User { Role::User } else { Role::Assistant };
        undertext::verbs::Line {
            n: EntryNumber::new(n),
            id: Some(entry_id(usize::try_from(n).unwrap())),
            uuid: None,
            kind,
            time: Some(NOW),
            checkpoint: None,
            own: None,
            marks: Vec::new(),
            messages: vec![Message::new(role, vec![block])],
            cuts: Vec::new(),
            earlier: Vec::new(),
            damage: None,
        }
    }

    fn conversation(session: SessionName, place: String) -> Answer {
        let answer = (0..30).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        let answer = format!("It **does**:\n```\nlet code = 1;\n```\n{answer}");
        Answer::Conversation(Conversation {
            session,
            place,
            lines: vec![
                line(1, Kind::User, Block::Text("Does the test check it?".to_owned())),
                line(2, Kind::Assistant, Block::Text(HOSTILE.to_owned())),
                line(3, Kind::Assistant, Block::Text(answer)),
            ],
            beneath: std::collections::BTreeMap::new(),
            folder: None,
        })
    }

    /// Compares two turns with one that replaced them.
    fn comparison(session: SessionName, last: &str) -> Answer {
        let turn = |n: u64, prompt: &str, answer: &str| {
            let asked = undertext::verbs::Line {
                checkpoint: Some(CheckpointNumber::new(n)),
                ..line(10 * n, Kind::User, Block::Text(prompt.to_owned()))
            };
            let text = Block::Text(answer.to_owned());
            let input = r#"{"file_path":"/a/src/queue.ts","old_string":"a","new_string":"b"}"#;
            let call = Block::Call {
                id: n.to_string(),
                name: "Edit".to_owned(),
                input: input.to_owned(),
                signature: None,
            };
            let kind = Kind::Assistant;
            [asked, line(10 * n + 1, kind, text), line(10 * n + 2, kind, call)]
        };
        assert_eq!(last, "67676767");
        let reverted = [
            turn(1, "Order the queries by id", "They are ordered now."),
            turn(2, HOSTILE, HOSTILE),
        ];
        let now = turn(3, "We must not hold the lock", "The handler takes no lock **any more**.");
        Answer::Compared(Comparison {
            session,
            sides: [reverted.concat(), now.to_vec()],
            folder: Some("/a".to_owned()),
        })
    }

    fn report(is_done: bool, text: &str) -> Report {
        let line = |line: &str| vec![(Label::Plain, line.to_owned())];
        Report { is_done, lines: text.lines().map(line).collect(), ..Report::default() }
    }

    /// A screen and the host that answers it, with what was asked for.
    struct Driven {
        browse: Browse,
        /// What was asked for, besides reading.
        asked: Vec<Effect>,
        open: Option<String>,
        /// True if no change would change anything.
        is_idle: bool,
        /// True if the agent would follow no change.
        is_out_of_reach: bool,
        /// The rows of every session.
        rows: Vec<TurnRow>,
    }

    impl Driven {
        fn new(size: (u16, u16), styles: Styles) -> Self {
            let look = Look { styles, zone: Zone::Utc, now: NOW, glyphs: Glyphs::Unicode };
            let spell = |line: &Line| {
                let words = line.arguments.iter().map(|word| format!(" {}", word_of(word)));
                format!("ut {}{}", line.verb, words.collect::<String>())
            };
            let candidates = |before: &str, places: Vec<String>| {
                let words: &[&str] =
                    if before.is_empty() { &["trust", "truncate", "undo"] } else { &["--store"] };
                words.iter().map(|word| (*word).to_owned()).chain(places).collect()
            };
            let mut browse =
                Browse::new(look, Keys::default(), Box::new(spell), Box::new(candidates));
            browse.resize(size.0, size.1);
            browse.on_answer(sessions(4));
            let mut driven = Self {
                browse,
                asked: Vec::new(),
                open: None,
                is_idle: false,
                is_out_of_reach: false,
                rows: turns(),
            };
            driven.answer();
            driven
        }

        /// Adds turns on top of the graph.
        fn grow(&mut self, turns: usize) {
            for _ in 0..turns {
                let mut newest = self.rows[0].clone();
                let n = self.rows.len();
                newest.node.id = EntryId::new([u8::try_from(n + 50).unwrap(); 32]);
                newest.node.checkpoint = Some(CheckpointNumber::new(n as u64 - 1));
                newest.node.parents = vec![1];
                self.rows[0].node.is_head = false;
                self.rows.insert(0, newest);
                for (n, row) in self.rows.iter_mut().enumerate() {
                    row.node.parents.iter_mut().for_each(|parent| *parent += usize::from(n > 0));
                    row.node.node = n;
                }
            }
            let columns = self.browse.layout.turns_width();
            self.browse.on_answer(Answer::Graph(graph(name(0), columns, &self.rows)));
        }

        /// Answers everything that is asked for.
        fn answer(&mut self) {
            for _ in 0..5 {
                for effect in self.browse.take_effects() {
                    let answer = match &effect {
                        Effect::Graph(name, columns, is_folded) => {
                            let graph = graph(name.clone(), *columns, &self.rows);
                            Some(Answer::Graph(Graph { is_folded: *is_folded, ..graph }))
                        }
                        Effect::Rows { session, columns, first } => Some(Answer::Rows {
                            session: session.clone(),
                            columns: *columns,
                            first: *first,
                            turns: self.rows.iter().skip(*first).take(BLOCK).cloned().collect(),
                        }),
                        Effect::Seek { session, from, sought } => Some(Answer::Sought {
                            session: session.clone(),
                            sought: sought.clone(),
                            row: sought
                                .order(self.rows.len(), *from)
                                .find(|at| sought.is_at(&self.rows[*at])),
                            end: self
                                .rows
                                .get(*from)
                                .filter(|row| row.node.is_reverted && *sought == Sought::BranchEnd)
                                .map(|_| BranchEnd {
                                    last: format!("{:.8}", entry_id(103)),
                                    name: None,
                                }),
                        }),
                        Effect::Read(name, place) => {
                            Some(conversation(name.clone(), place.clone()))
                        }
                        Effect::LayOut(drafts) => {
                            for draft in drafts {
                                let answer = Answer::LaidOut(draft.clone(), draft.lay_out());
                                self.browse.on_answer(answer);
                            }
                            None
                        }
                        Effect::Plan(args) => Some(Answer::Plan {
                            args: args.clone(),
                            report: Report {
                                is_idle: self.is_idle,
                                is_out_of_reach: self.is_out_of_reach,
                                ..report(
                                    !self.is_out_of_reach,
                                    "82 would be just before @3 \"Does\"\nContext 21k → 62k",
                                )
                            },
                            open: self.open.clone(),
                        }),
                        Effect::Run(args) => Some(Answer::Done {
                            args: args.clone(),
                            report: report(true, "02 is now just before @3 \"Does\""),
                        }),
                        Effect::Show(args) => Some(Answer::Shown {
                            args: args.clone(),
                            report: report(true, "-one\n+two"),
                        }),
                        Effect::Compare(session, last) => Some(comparison(session.clone(), last)),
                        Effect::Search(words) => Some(Answer::Found {
                            words: words.clone(),
                            found: vec![found()],
                            total: "1 message in 1 session".to_owned(),
                        }),
                        _ => None,
                    };
                    let is_read = matches!(
                        effect,
                        Effect::Graph(..)
                            | Effect::Read(..)
                            | Effect::LayOut(_)
                            | Effect::Rows { .. }
                            | Effect::Seek { .. }
                    );
                    if !is_read {
                        self.asked.push(effect);
                    }
                    if let Some(answer) = answer {
                        self.browse.on_answer(answer);
                    }
                }
            }
        }

        /// Types keys by their names, or single letters.
        fn keys(&mut self, keys: &str) -> &mut Self {
            for key in keys.split(' ') {
                self.browse.on_key(pressed(key));
                self.answer();
                self.draw();
            }
            self
        }

        fn draw(&mut self) -> Buffer {
            let (width, height) = self.browse.layout.size;
            let area = Rect { x: 0, y: 0, width, height };
            let mut buffer = Buffer::empty(area);
            let cursor = self.browse.draw(area, &mut buffer);
            assert!(cursor.is_none_or(|at| area.contains(at)), "{cursor:?} in {area:?}");
            self.answer();
            buffer
        }

        fn seen(&mut self) -> String {
            text_of(&self.draw())
        }

        /// Describes everything that a key may change.
        fn state(&self) -> String {
            let it = &self.browse;
            let dialog = match &it.dialog {
                None => "",
                Some(Dialog::Change(change)) => &change.title,
                Some(Dialog::Text(text)) => &text.title,
                Some(Dialog::Compare(compare)) => &compare.title(),
                Some(Dialog::Name(_)) => "name",
                Some(Dialog::Command(_)) => "command",
                Some(Dialog::Search(_)) => "search",
                Some(Dialog::Help(_)) => "help",
            };
            let message =
                it.out.message.as_ref().map(|(_, text)| text.as_str()).unwrap_or_default();
            format!(
                "{:?} {:?} s{} t{} r{} top{} {:?} {:?} {:?} {:?} {} {} typing {} {dialog} {message} {:?} {:?}",
                it.layout.focus,
                it.layout.zoom,
                it.list.cursor.at,
                it.turns.cursor.at,
                it.reader.cursor.at,
                it.reader.cursor.top,
                it.list.scope,
                it.list.agent,
                it.reader.fold.detail,
                it.reader.fold.thoughts,
                it.reader.fold.side_by_side,
                it.turns.is_folded,
                it.is_typing,
                self.asked,
                it.turns.range(),
            )
        }
    }

    fn word_of(word: &undertext::report::Argument) -> String {
        use undertext::report::Argument::{Entry, Flag, Option, Word};
        match word {
            Word(word) => word.to_string_lossy().into_owned(),
            Entry(entry) => format!("{entry:.8}"),
            Flag(name) => format!("--{name}"),
            Option { value, .. } => format!("-s {}", value.to_string_lossy()),
        }
    }

    fn found() -> Found {
        Found {
            session: name(1),
            entry: None,
            turn: Some("@1".to_owned()),
            head: vec![(Label::Plain, format!("12@1 reverted {HOSTILE}"))],
            text: vec![HOSTILE.to_owned()],
        }
    }

    fn pressed(key: &str) -> KeyEvent {
        let (key, held) = match key.strip_prefix("ctrl-") {
            Some(key) => (key, KeyModifiers::CONTROL),
            None => (key, KeyModifiers::NONE),
        };
        let code = match key {
            "enter" => KeyCode::Enter,
            "esc" => KeyCode::Esc,
            "tab" => KeyCode::Tab,
            "space" => KeyCode::Char(' '),
            "up" => KeyCode::Up,
            "down" => KeyCode::Down,
            "left" => KeyCode::Left,
            "right" => KeyCode::Right,
            "home" => KeyCode::Home,
            "end" => KeyCode::End,
            "pgup" => KeyCode::PageUp,
            "pgdn" => KeyCode::PageDown,
            "backspace" => KeyCode::Backspace,
            key => KeyCode::Char(key.chars().next().unwrap_or(' ')),
        };
        KeyEvent::new(code, held)
    }

    fn text_of(buffer: &Buffer) -> String {
        let width = usize::from(buffer.area.width);
        let mut text = String::new();
        for row in buffer.content().chunks(width.max(1)) {
            let (mut line, mut skipped) = (String::new(), 0_usize);
            for cell in row {
                if skipped > 0 {
                    skipped -= 1;
                    continue;
                }
                line.push_str(cell.symbol());
                skipped = cell.symbol().width().saturating_sub(1);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn driven(columns: u16, rows: u16) -> Driven {
        Driven::new((columns, rows), Styles::PLAIN)
    }

    #[test]
    fn three_panes_show_sessions_turns_and_a_conversation() {
        assert_snapshot!("wide", driven(120, 32).keys("2").seen());
    }

    #[test]
    fn two_panes_leave_the_sessions_on_a_screen_of_their_own() {
        let mut driven = driven(80, 24);
        assert_snapshot!("narrow_sessions", driven.seen());
        assert_snapshot!("narrow_turns", driven.keys("enter").seen());
        let mut driven = self::driven(100, 30);
        assert_snapshot!("middle_revert", driven.keys("2 r x").seen());
    }

    #[test]
    fn signs_are_those_of_ascii_where_others_take_two_columns() {
        let mut driven = driven(80, 24);
        driven.browse.look.glyphs = Glyphs::Ascii;
        assert_snapshot!("ascii", driven.keys("enter").seen());
    }

    #[test]
    fn a_screen_that_is_too_small_says_what_it_needs() {
        assert_eq!(driven(59, 16).seen().trim(), "needs 60x16, and this is 59x16");
        assert_eq!(driven(60, 15).seen().trim(), "needs 60x16, and this is 60x15");
        assert!(driven(60, 16).seen().contains("Sessions"));
    }

    #[test]
    fn every_key_of_the_table_does_something() {
        for row in TABLE {
            for (pane, key) in
                row.panes.iter().flat_map(|pane| row.keys.iter().map(move |key| (pane, key)))
            {
                let mut driven = driven(120, 32);
                // From here, every key has somewhere to go.
                driven.keys(if *pane == Pane::Sessions { "f" } else { "2 down down" });
                match pane {
                    Pane::Sessions => driven.keys("down J J"),
                    Pane::Turns => &mut driven,
                    Pane::Reading => driven.keys("3 down down down down down ctrl-d"),
                };
                driven.browse.sought.insert("line");
                match row.name {
                    "smaller" => drop(driven.keys("+")),
                    "page-up" => drop(driven.keys("space")),
                    "repeat" | "return" => drop(driven.keys("g r")),
                    "copy-code" => drop(driven.keys("/ l e t enter")),
                    _ => {}
                }
                if row.name == "left" && *pane == Pane::Sessions
                    || row.name == "right" && *pane == Pane::Reading
                    || row.name == "back" && *pane == Pane::Sessions
                    || TABLE.iter().any(|it| it.name == row.name)
                        && ["sessions", "turns", "reading"].get(*pane as usize) == Some(&row.name)
                {
                    // At the edge there is nowhere to go.
                    continue;
                }
                driven.seen();
                let before = driven.state();
                let rows = driven.browse.reader.rows().len();
                driven.keys(key);
                driven.seen();
                let is_changed =
                    driven.state() != before || driven.browse.reader.rows().len() != rows;
                assert!(is_changed, "{} ({key}) in {pane:?}: {before}", row.name);
            }
        }
    }

    #[test]
    fn a_change_is_asked_for_with_the_command_line_that_makes_it() {
        let check = |keys: &str, expected: &[&str]| {
            let mut driven = driven(120, 32);
            driven.keys(keys);
            let args = driven.asked.iter().filter_map(|effect| match effect {
                Effect::Run(args) => Some(args.join(" ")),
                _ => None,
            });
            assert_eq!(args.collect::<Vec<_>>(), expected, "{keys}");
        };
        check("2 r", &[]);
        check("2 r esc", &[]);
        check("2 r enter", &["revert @3 -s pi:02b7c1d0"]);
        check("2 r n o enter", &["revert @3 -s pi:02b7c1d0 --message=no"]);
        check("2 R enter", &["revert @3 --keep -s pi:02b7c1d0"]);
        check("2 r tab enter", &["revert @3 --keep -s pi:02b7c1d0"]);
        check("2 R tab enter", &["revert @3 -s pi:02b7c1d0"]);
        check("2 r tab n o tab enter", &["revert @3 -s pi:02b7c1d0 --message=no"]);
        check("2 g r b tab enter", &["revert 67676767 -s pi:02b7c1d0"]);
        check("2 g r b enter", &["revert 67676767 -s pi:02b7c1d0"]);
        check("2 g c r enter", &["revert 02020202 -s pi:02b7c1d0"]);
        check("u enter", &["undo -s pi:02b7c1d0"]);
        check("U enter", &["redo -s pi:02b7c1d0"]);
        check("2 m a b enter", &["branch -s pi:02b7c1d0 -- ab @3"]);
        check("2 g c m - x enter", &["branch -s pi:02b7c1d0 -- -x 02020202"]);
        check("2 m enter", &[]);
    }

    #[test]
    fn a_change_that_the_agent_would_not_follow_offers_the_difference() {
        let mut driven = driven(80, 24);
        driven.is_out_of_reach = true;
        driven.keys("2 r");
        assert_snapshot!("out_of_reach", driven.seen());
        driven.keys("enter");
        let shown = ["diff", "@3", "-s", "pi:02b7c1d0"].map(str::to_owned).to_vec();
        assert_eq!(driven.asked.last(), Some(&Effect::Show(shown)));
    }

    #[test]
    fn the_prompt_is_copied_once_the_revert_is_made() {
        let mut driven = driven(120, 32);
        driven.keys("2 r enter");
        assert_eq!(driven.asked.last(), Some(&Effect::Copy("Does the test check it?".to_owned())));
        let message = driven.browse.out.message.as_ref().map(|(_, text)| text.as_str());
        let said = "02 is now just before @3 · prompt copied · o resume · u undo";
        assert_eq!(message, Some(said));
    }

    #[test]
    fn the_note_of_a_revert_is_edited_outside() {
        let mut driven = driven(120, 32);
        driven.keys("2 r n o ctrl-g");
        assert_eq!(driven.asked.last(), Some(&Effect::Edit("no".to_owned())));
        driven.browse.on_edited("Look at \x1b[2J the lexer\nfirst\n");
        let seen = driven.keys("x").seen();
        assert!(seen.contains(r"▏ Look at \x1b[2J the lexer firstx"), "{seen}");
        driven.keys("enter");
        let run = driven.asked.iter().find(|effect| matches!(effect, Effect::Run(_)));
        let Some(Effect::Run(args)) = run else { panic!("{:?}", driven.asked) };
        assert_eq!(args.last().unwrap(), "--message=Look at \\x1b[2J the lexer\nfirstx");
    }

    #[test]
    fn a_revert_that_changes_nothing_is_no_dialog() {
        let mut driven = driven(120, 32);
        driven.is_idle = true;
        driven.keys("2 R");
        assert!(driven.browse.dialog.is_none());
        assert!(driven.seen().contains("82 would be just before @3"));
    }

    #[test]
    fn records_that_cannot_be_read_are_counted_and_listed() {
        let mut driven = driven(120, 32);
        let mut damaged = graph(name(0), driven.browse.layout.turns_width(), &turns());
        damaged.unread = vec![format!("entry 7c is damaged: {HOSTILE}")];
        driven.browse.on_answer(Answer::Graph(damaged));
        driven.answer();
        assert!(driven.seen().contains("1 record could not be read"), "{}", driven.seen());
        assert!(driven.keys("!").seen().contains("entry 7c is damaged"));
    }

    #[test]
    fn a_late_answer_replaces_no_dialog() {
        for keys in ["2 g r b", "2 g r c", "2 L"] {
            let mut driven = driven(120, 32);
            let (before, last) = keys.rsplit_once(' ').unwrap();
            driven.keys(before);
            driven.browse.on_key(pressed(last));
            driven.browse.on_key(pressed("u"));
            driven.answer();
            assert!(driven.seen().contains("Undo the last change"), "{keys}: {}", driven.seen());
        }
    }

    #[test]
    fn an_open_session_gets_the_change_at_its_next_resume() {
        let mut driven = driven(80, 24);
        driven.open = Some("Some Agent (pid 4242, pts/3)".to_owned());
        driven.keys("2 r");
        assert_snapshot!("open", driven.seen());
        driven.keys("enter");
        let later = ["revert", "@3", "-s", "pi:02b7c1d0", "--later"].map(str::to_owned).to_vec();
        assert_eq!(driven.asked.last(), Some(&Effect::Run(later)));
    }

    #[test]
    fn turns_that_arrive_while_a_dialog_is_open_are_confirmed_again() {
        let mut driven = driven(120, 32);
        driven.keys("2 r");
        driven.grow(1);
        // What it does is tried again, whatever is pressed before.
        driven.browse.on_key(pressed("enter"));
        driven.grow(1);
        driven.answer();
        let seen = driven.seen();
        assert!(seen.contains("1 turn arrived: @5 would move too. ⏎ again to confirm"), "{seen}");
        let runs = |driven: &Driven| {
            driven.asked.iter().filter(|effect| matches!(effect, Effect::Run(_))).count()
        };
        driven.keys("enter");
        assert_eq!(runs(&driven), 0);
        driven.keys("enter");
        assert_eq!(runs(&driven), 1);
    }

    #[test]
    fn a_session_that_grows_is_followed_from_its_end_only() {
        let mut driven = driven(120, 32);
        driven.grow(1);
        driven.answer();
        assert_eq!((driven.browse.turns.cursor.at, driven.browse.turns.arrived), (0, 0));
        driven.keys("2 down down");
        driven.grow(2);
        driven.answer();
        assert_eq!(driven.browse.turns.cursor.at, 4, "the cursor stays on its turn");
        assert!(driven.seen().contains("2 new turns ↑ gg"));
        driven.keys("g g");
        assert!(!driven.seen().contains("new turn"));
    }

    #[test]
    fn a_long_session_holds_the_rows_near_the_cursor_only() {
        let mut driven = driven(120, 32);
        let mut newest = driven.rows[0].clone();
        newest.node.is_head = false;
        driven.rows = (0..5_000_u32)
            .map(|n| {
                let mut row = newest.clone();
                let mut id = [0; 32];
                id[..4].copy_from_slice(&n.to_le_bytes());
                (row.node.id, row.node.node) = (EntryId::new(id), n as usize);
                row.node.checkpoint = Some(CheckpointNumber::new(4_999 - u64::from(n)));
                row.lines = vec![vec![(Label::Plain, format!("○  @{}", 4_999 - n))]];
                row.node.is_reverted = n == 3_000;
                row
            })
            .collect();
        driven.browse.refresh();
        driven.keys("2 G");
        let seen = driven.seen();
        assert!(seen.contains("▌○  @0") && !seen.contains("│ …"), "{seen}");
        for _ in 0..120 {
            driven.keys("ctrl-u ctrl-u ctrl-u");
            assert!(!driven.seen().contains("▌…"));
            assert!(driven.browse.turns.held() <= 8 * BLOCK);
        }
        driven.keys("g r");
        assert_eq!(driven.browse.turns.cursor.at, 3_000);
        assert!(driven.seen().contains("▌○  @1999"));
        driven.keys(",");
        assert_ne!(driven.browse.turns.cursor.at, 3_000);
        driven.keys("g g / @ 7 7 7 enter");
        assert_eq!(driven.browse.turns.cursor.at, 4_999 - 777, "the first row below that matches");
        // The rows that are read are not there at once.
        driven.browse.on_key(pressed("G"));
        let area = Rect::new(0, 0, 120, 32);
        let mut buffer = Buffer::empty(area);
        driven.browse.draw(area, &mut buffer);
        assert!(text_of(&buffer).contains("▌…"));
    }

    #[test]
    fn the_filter_takes_words_and_conditions() {
        let check = |typed: &str, expected: usize, seen: &str| {
            let mut driven = driven(100, 30);
            driven.keys("f /");
            driven.browse.on_paste(typed);
            driven.answer();
            let text = driven.seen();
            assert_eq!(driven.browse.list.shown.len(), expected, "{typed}: {text}");
            assert!(text.contains(seen), "{typed}: {text}");
        };
        check("retry", 1, "Investigate");
        check("is:compacted", 2, "Speed");
        check("is:deleted go", 1, "del");
        check("is:open", 1, "●");
        check("since:5d", 2, "Speed");
        check("zürch", 0, "0 of 4 match \"zürch\". ⏎ searches all text · esc clears");
        check("is:new", 4, "");
        let mut driven = driven(100, 30);
        driven.keys("f / z z z esc");
        assert_eq!(driven.browse.list.shown.len(), 4, "esc clears");
        driven.keys("/ r e t r y x y z enter");
        assert!(driven.seen().contains("> retryxyz"), "⏎ searches all text");
    }

    #[test]
    fn a_list_without_sessions_says_where_it_looked() {
        let mut driven = driven(80, 24);
        driven.browse.on_answer(sessions(0));
        let seen = driven.seen();
        let said = "No sessions yet. Looked in ~/.agents. Start an agent, or: ut import PATH";
        assert!(seen.contains(said), "{seen}");
    }

    #[test]
    fn a_reverted_branch_is_compared_with_what_replaced_it() {
        let mut driven = driven(120, 32);
        driven.keys("2 g r c");
        assert_snapshot!("compare_wide", driven.seen());
        assert!(driven.keys("J").seen().contains("2 of 2"));
        driven.browse.resize(80, 24);
        assert_snapshot!("compare", driven.keys("K f").seen());
        driven.browse.resize(70, 20);
        let seen = driven.keys("f").seen();
        let at = |text: &str| seen.lines().position(|line| line.contains(text));
        assert!(at("reverted").unwrap() < at("now").unwrap(), "{seen}");
        driven.keys("y");
        assert!(
            matches!(driven.asked.last(), Some(Effect::Copy(text)) if text.contains("queue.ts"))
        );
        assert!(driven.keys("b").seen().contains("Go to the reverted end 67676767 of 02"));
        driven.keys("esc c q");
        assert!(driven.browse.dialog.is_none());
    }

    #[test]
    fn a_range_of_turns_is_copied() {
        let mut driven = driven(120, 32);
        driven.keys("2 v j j j j");
        assert!(driven.seen().contains("▎◆"), "{}", driven.seen());
        assert!(driven.seen().contains("$ ut log @0..@3 02"));
        driven.keys("y l");
        assert_eq!(driven.asked.last(), Some(&Effect::Copy("@0..@3".to_owned())));
        driven.keys("v");
        assert!(driven.seen().contains("$ ut show 02@0"));
    }

    #[test]
    fn a_hit_of_the_search_is_shown_in_its_session() {
        let mut driven = driven(120, 32);
        driven.keys("s r e t r y");
        assert_snapshot!("search", driven.seen());
        driven.keys("enter");
        assert_eq!(driven.browse.turns.session, Some(name(1)));
        assert_eq!((driven.browse.layout.focus, driven.browse.turns.cursor.at), (Pane::Reading, 3));
    }

    #[test]
    fn every_dialog_fits_a_small_terminal() {
        for (name, keys) in [
            ("change", "2 r n o"),
            ("search_narrow", "s r e t r y"),
            ("name", "2 m b e f o r e"),
            ("command", ": t r u n"),
            ("offered", ": x space @ 1 tab"),
            ("text", "L"),
        ] {
            let mut driven = driven(80, 24);
            driven.keys(keys);
            assert_snapshot!(name, driven.seen());
        }
    }

    #[test]
    fn months_separate_older_sessions_and_the_cursor_skips_them() {
        let mut driven = driven(100, 16);
        driven.browse.on_answer(sessions(30));
        let seen = driven.keys("f G").seen();
        let seen = driven.keys("g g").seen() + &seen;
        let months: Vec<&str> = seen.lines().filter(|line| line.starts_with("───")).collect();
        let is_month = |n: usize, month: &str| months[n].starts_with(&format!("─── {month} ─"));
        assert!(is_month(0, "earlier this month") && is_month(1, "October"), "{seen}");
        for n in 1..30 {
            let seen = driven.keys("j").seen();
            assert_eq!(driven.browse.list.cursor.at, n);
            assert!(seen.lines().any(|line| line.starts_with('▌')), "{seen}");
        }
        let seen = driven.keys("/ g o").seen();
        assert!(!seen.contains("October"), "matches have no months: {seen}");
    }

    #[test]
    fn the_help_finds_a_key_and_runs_it() {
        let mut driven = driven(80, 24);
        driven.keys("2 ? r e d o");
        assert_snapshot!("help", driven.seen());
        driven.keys("enter");
        assert!(driven.seen().contains("Redo the last undo of 02"));
    }

    #[test]
    fn a_command_line_is_completed_and_runs_outside() {
        let mut driven = driven(80, 24);
        driven.keys(": t r u n tab - - tab x enter");
        let expected = Effect::Command("truncate --store x".to_owned(), Some(name(0)));
        assert_eq!(driven.asked.last(), Some(&expected));
    }

    #[test]
    fn lines_unfold_in_place_and_matches_are_found() {
        let mut driven = driven(100, 30);
        driven.keys("3 + +");
        assert!(driven.seen().contains("… 14 more lines: ⏎ unfolds"));
        driven.keys("/ m o r e enter enter");
        let seen = driven.seen();
        assert!(seen.contains("line 16") && !seen.contains("unfolds"), "{seen}");
    }

    #[test]
    fn no_key_lays_out_a_long_turn() {
        let text = |n: usize| Block::Text(format!("word {n}\n\n").repeat(5_000_000 / 8));
        let short = |n: u64| Block::Text(format!("entry {n}"));
        let entries = (1..=20_000).map(|n| line(1, Kind::Assistant, short(n)));
        let entries = entries
            .zip(1..)
            .map(|(line, n)| undertext::verbs::Line { n: EntryNumber::new(n), ..line });
        for lines in [vec![line(1, Kind::Assistant, text(1))], entries.collect()] {
            let mut driven = driven(120, 32);
            driven.keys("2 3");
            let Answer::Conversation(shown) = conversation(name(0), "@3".to_owned()) else {
                panic!("a conversation")
            };
            driven.browse.on_answer(Answer::Conversation(Conversation { lines, ..shown }));
            let area = Rect::new(0, 0, 120, 32);
            let mut last = None;
            for key in "Z t t T j G + / x esc n f f space J K Z Z".split(' ') {
                let before = LAID_OUT.get();
                driven.browse.on_key(pressed(key));
                driven.browse.draw(area, &mut Buffer::empty(area));
                let asked = driven.browse.take_effects();
                let is_draft = |effect: &&Effect| matches!(effect, Effect::LayOut(_));
                assert!(asked.iter().filter(is_draft).count() <= 1, "{key}");
                assert_eq!(LAID_OUT.get(), before, "{key}");
                last = asked.into_iter().find(|it| is_draft(&it)).or(last);
                if key == "T" {
                    // What was asked for last is answered, and all keys work on it.
                    let Some(Effect::LayOut(drafts)) = &last else { panic!("asked for") };
                    let draft = drafts[0].clone();
                    let rows = draft.lay_out();
                    driven.browse.on_answer(Answer::LaidOut(draft, rows));
                    driven.browse.on_key(pressed("G"));
                    assert!(driven.browse.reader.rows().len() > 20_000);
                    assert!(driven.browse.reader.cursor.at >= 20_000);
                    assert!(driven.browse.reader.text().is_some_and(|it| it.len() > 200_000));
                    assert!(driven.browse.reader.find("1", cursor::Way::Backward));
                }
            }
        }
    }

    #[test]
    fn a_click_moves_the_cursor_and_the_wheel_scrolls() {
        let mut driven = driven(120, 32);
        driven.seen();
        let at =
            |kind, column, row| MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
        driven.browse.on_mouse(at(MouseEventKind::Down(MouseButton::Left), 60, 7));
        assert_eq!((driven.browse.layout.focus, driven.browse.turns.cursor.at), (Pane::Turns, 2));
        driven.answer();
        driven.seen();
        driven.browse.on_mouse(at(MouseEventKind::ScrollDown, 60, 25));
        assert_eq!(
            (driven.browse.layout.focus, driven.browse.reader.cursor.top),
            (Pane::Reading, 3)
        );
        driven.browse.on_mouse(at(MouseEventKind::Down(MouseButton::Left), 3, 3));
        assert_eq!((driven.browse.layout.focus, driven.browse.list.cursor.at), (Pane::Sessions, 1));
    }

    #[test]
    fn nothing_hostile_reaches_the_screen() {
        for keys in ["f", "2", "2 g r", "3 +", "s x", "/ x", "2 r", ":", "?", "!", "L", "2 g r c J"]
        {
            for size in [(60, 16), (80, 24), (120, 32)] {
                let mut driven = Driven::new(size, Styles::COLOURED);
                driven.browse.on_answer(Answer::Failed(HOSTILE.to_owned()));
                let drawn = driven.keys(keys).draw();
                let is_clean = |cell: &ratatui::buffer::Cell| {
                    !cell.symbol().chars().any(crate::render::safe::is_hidden)
                };
                assert!(drawn.content().iter().all(is_clean), "{keys} {size:?}");
            }
        }
    }

    #[test]
    fn without_colour_no_cell_has_a_style() {
        let mut driven = driven(120, 32);
        let plain = Buffer::empty(Rect::new(0, 0, 1, 1))[(0, 0)].style();
        driven.browse.sought.insert("test");
        let drawn = driven.keys("2").draw();
        let styled = drawn.content().iter().filter(|cell| cell.style() != plain);
        // Matches are underlined.
        assert!(styled.clone().count() > 0);
        let is_underlined = |cell: &ratatui::buffer::Cell| {
            cell.modifier == ratatui::style::Modifier::UNDERLINED && cell.fg == plain.fg.unwrap()
        };
        assert!(styled.clone().all(is_underlined));
    }

    #[test]
    fn ten_thousand_sessions_are_listed_and_narrowed() {
        let mut driven = driven(120, 32);
        driven.browse.on_answer(sessions(10_000));
        driven.keys("f G");
        assert!(driven.seen().contains("10,000 sessions"));
        assert_eq!(driven.browse.list.cursor.at, 9_999);
        driven.keys("/ 9 9 8 7 2 b");
        assert!(driven.seen().contains("1 session of 10,000"));
    }

    /// Presses random keys at random sizes, and compares the changes with those that were confirmed.
    fn press_random_keys(seed: u64, presses: usize) {
        let mut keys: Vec<String> =
            ["x", "enter", "enter", "esc", "esc", "backspace", "left"].map(str::to_owned).to_vec();
        keys.extend(
            TABLE.iter().flat_map(|row| row.keys).flat_map(|key| key.split(' ')).map(str::to_owned),
        );
        keys.retain(|key| !["ctrl-c", "ctrl-z", "q", "Q"].contains(&key.as_str()));
        let mut random = seed;
        let mut next = |below: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(random >> 33).unwrap() % below
        };
        let mut driven = driven(120, 32);
        let mut confirmed = Vec::new();
        for _ in 0..presses {
            if next(20) == 0 {
                let size = [(40, 10), (60, 16), (80, 24), (100, 30), (120, 32), (200, 60)][next(6)];
                driven.browse.resize(size.0, size.1);
            }
            driven.open = (next(9) == 0).then(|| "Some Agent (pid 1)".to_owned());
            let key = pressed(&keys[next(keys.len())]);
            let is_enter = key.code == KeyCode::Enter;
            let is_visible = !driven.browse.layout.is_too_small();
            match driven.browse.dialog.as_ref().filter(|_| is_visible) {
                Some(Dialog::Change(change))
                    if (is_enter || key == pressed("ctrl-o")) && change.arrived == 0 =>
                {
                    confirmed.push(change.command());
                }
                Some(Dialog::Name(Naming { place, field }))
                    if is_enter && !field.text.trim().is_empty() =>
                {
                    let session = driven.browse.turns.session.clone().unwrap();
                    let session = format!("{}:{}", session.format, session.id);
                    let args = ["branch", "-s", &session, "--", field.text.trim(), place];
                    confirmed.push(args.map(str::to_owned).to_vec());
                }
                _ => {}
            }
            driven.browse.on_key(key);
            driven.answer();
            driven.draw();
        }
        let made = driven.asked.into_iter().filter_map(|effect| match effect {
            Effect::Run(args) => Some(args),
            _ => None,
        });
        assert_eq!(made.collect::<Vec<_>>(), confirmed, "seed {seed}");
        assert!(presses < 2_000 || confirmed.len() > 5, "some changes were confirmed");
    }

    #[test]
    fn two_thousand_random_keys_change_only_what_was_confirmed() {
        press_random_keys(7, 2_000);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn random_keys_from_any_seed_change_only_what_was_confirmed(seed: u64) {
            press_random_keys(seed, 60);
        }
    }
}
