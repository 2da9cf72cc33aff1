//! `browse` in a real terminal: what a person sees, what changes, and how the terminal is left.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use unicode_width::UnicodeWidthStr as _;

use super::screens::terminal;
use super::{conversation, json, newest_operation};
use crate::env::TestEnv;
use crate::needs;

/// How long a text may take to appear.
const LIMIT: Duration = Duration::from_secs(60);
/// What closes the alternate screen of a terminal.
const CLOSE: &str = "\x1b[?1049l";

/// Returns a machine with three sessions, one of them in the current folder.
fn machine() -> TestEnv {
    let env = TestEnv::new();
    let folder = env.home().join(".claude/projects/-garden");
    fs::create_dir_all(&folder).unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let garden = fs::read_to_string(examples.join("claude-garden.jsonl")).unwrap();
    let id = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40";
    let here = garden.replace("/home/ann/garden", env.project().to_str().unwrap());
    fs::write(folder.join(format!("{id}.jsonl")), here).unwrap();
    let other = "85dd0c41-1111-4e6f-8a53-0d1f6b7e2c40";
    fs::write(folder.join(format!("{other}.jsonl")), garden.replace(id, other)).unwrap();
    let folder = env.home().join(".codex/sessions/2026/08/01");
    fs::create_dir_all(&folder).unwrap();
    let name = "rollout-2026-08-01T10-00-00-019fc000-4d1e-7a30-8b52-6f0e9d8c7b6a.jsonl";
    fs::copy(examples.join("codex-weather.jsonl"), folder.join(name)).unwrap();
    env.run(&["import", "-q"]).success();
    env
}

/// The cells that a terminal shows, by the sequences that a screen sends.
struct Cells {
    rows: Vec<Vec<String>>,
    at: (usize, usize),
}

impl Cells {
    fn new(columns: usize, rows: usize) -> Self {
        Self { rows: vec![vec![" ".to_owned(); columns]; rows], at: (0, 0) }
    }

    /// Shows what a program sent.
    fn feed(&mut self, sent: &str) {
        let mut rest = sent;
        while let Some(c) = rest.chars().next() {
            if let Some(sequence) = rest.strip_prefix("\x1b[") {
                // A sequence may not have arrived whole.
                let end = sequence.find(|c: char| ('@'..='~').contains(&c));
                let Some(end) = end else { return };
                let (parameters, ending) = sequence.split_at(end);
                self.control(parameters, ending.chars().next().unwrap());
                rest = &ending[1..];
            } else if let Some(sequence) = rest.strip_prefix("\x1b]") {
                let Some((_, after)) = sequence.split_once('\x07') else { return };
                rest = after;
            } else if rest == "\x1b" {
                return;
            } else if matches!(c, '\r' | '\n') {
                // Sent by the terminal itself before the screen opens.
                rest = &rest[1..];
            } else {
                assert!(!c.is_control(), "{c:?} in {rest:?}");
                let wide = c.to_string().width();
                match self.rows.get_mut(self.at.1).and_then(|row| row.get_mut(self.at.0)) {
                    Some(cell) if wide > 0 => *cell = c.to_string(),
                    _ => {}
                }
                let row = self.rows.get_mut(self.at.1).into_iter().flatten();
                row.skip(self.at.0 + 1).take(wide.max(1) - 1).for_each(String::clear);
                self.at.0 += wide;
                rest = &rest[c.len_utf8()..];
            }
        }
    }

    fn control(&mut self, parameters: &str, ending: char) {
        match ending {
            'H' => {
                let (row, column) = parameters.split_once(';').unwrap_or(("1", "1"));
                self.at = (column.parse::<usize>().unwrap() - 1, row.parse::<usize>().unwrap() - 1);
            }
            'J' => self.rows.iter_mut().flatten().for_each(|cell| " ".clone_into(cell)),
            'K' => {
                self.rows
                    .get_mut(self.at.1)
                    .into_iter()
                    .flatten()
                    .for_each(|it| " ".clone_into(it));
            }
            'm' | 'h' | 'l' => {}
            _ => panic!("unknown sequence {parameters}{ending}"),
        }
    }

    fn text(&self) -> String {
        let row = |row: &Vec<String>| row.concat().trim_end().to_owned();
        self.rows.iter().map(row).collect::<Vec<_>>().join("\n")
    }
}

/// The program on a terminal.
struct Screen {
    host: File,
    terminal: OwnedFd,
    child: Child,
    sent: String,
    /// The beginning of a character.
    pending: Vec<u8>,
    size: (u16, u16),
    before: Termios,
}

impl Screen {
    fn open(env: &TestEnv, args: &[&str], size: (u16, u16)) -> Self {
        let (host, terminal) = terminal();
        resize(&host, size);
        let before = tcgetattr(&terminal).unwrap();
        let child = env
            .command()
            .arg("browse")
            .args(args)
            .env("TERM", "xterm")
            .env("NO_COLOR", "1")
            .stdin(terminal.try_clone().unwrap())
            .stderr(terminal.try_clone().unwrap())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self { host, terminal, child, sent: String::new(), pending: Vec::new(), size, before }
    }

    fn text(&self) -> String {
        let mut cells = Cells::new(self.size.0.into(), self.size.1.into());
        cells.feed(&self.sent);
        cells.text()
    }

    /// Waits until the terminal shows all texts.
    #[track_caller]
    fn wait(&mut self, texts: &[&str]) -> String {
        self.wait_for(&|shown| texts.iter().all(|text| shown.contains(text)), texts)
    }

    /// Waits until the terminal no longer shows a text.
    #[track_caller]
    fn wait_without(&mut self, text: &str) {
        self.wait_for(&|shown| !shown.contains(text), &[text]);
    }

    #[track_caller]
    fn wait_for(&mut self, is_it: &dyn Fn(&str) -> bool, texts: &[&str]) -> String {
        let begun = Instant::now();
        loop {
            let shown = self.text();
            if is_it(&shown) {
                return shown;
            }
            assert!(begun.elapsed() < LIMIT, "{texts:?} in:\n{shown}");
            self.read(Duration::from_secs(1)).unwrap_or_else(|_| panic!("{texts:?} in:\n{shown}"));
        }
    }

    /// Reads what the program sends within a time. Returns false if that is nothing.
    fn read(&mut self, wait: Duration) -> io::Result<bool> {
        let mut polled = [PollFd::new(&self.host, PollFlags::IN)];
        let wait = Timespec::try_from(wait).unwrap();
        if poll(&mut polled, Some(&wait)).unwrap() == 0 {
            return Ok(false);
        }
        let mut buffer = [0; 1 << 13];
        let n = self.host.read(&mut buffer)?;
        self.pending.extend_from_slice(&buffer[..n]);
        // A character may not have arrived whole.
        let whole = match std::str::from_utf8(&self.pending) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        self.sent.push_str(std::str::from_utf8(&self.pending[..whole]).unwrap());
        self.pending.drain(..whole);
        Ok(true)
    }

    /// Resizes the terminal, and waits until all keys before were handled and everything was drawn.
    fn redraw(&mut self, size: (u16, u16)) -> String {
        while self.read(Duration::ZERO).unwrap() {}
        self.sent.clear();
        resize(&self.host, size);
        self.size = size;
        let blank = format!("\x1b[1;1H{}", " ".repeat(size.0.into()));
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < LIMIT, "nothing is drawn at {size:?}: {:?}", self.sent);
            // What was cleared is drawn, and then the cursor is shown or hidden.
            let cleared = ["\x1b[2J", "\x1b[J", "\x1b[2K", &blank].map(|it| self.sent.find(it));
            if let Some(at) = cleared.into_iter().flatten().min()
                && self.sent[at..].contains("\x1b[?25")
            {
                self.sent.drain(..at);
                return self.text();
            }
            self.read(Duration::from_secs(1)).unwrap();
        }
    }

    fn keys(&mut self, keys: &str) {
        self.host.write_all(keys.as_bytes()).unwrap();
    }

    #[track_caller]
    fn ends(mut self) -> ExitStatus {
        let mut buffer = [0; 4096];
        let mut sent = self.sent.clone();
        while !sent.contains(CLOSE) {
            let n = self.host.read(&mut buffer).unwrap();
            sent.push_str(&String::from_utf8_lossy(&buffer[..n]));
        }
        let status = self.child.wait().unwrap();
        let after = tcgetattr(&self.terminal).unwrap();
        let [before, after] = [&self.before, &after].map(|modes| format!("{modes:?}"));
        assert_eq!(before, after, "the terminal is as it was");
        status
    }
}

/// Returns a text without the ids of entries, which depend on the folder, and without the name of that.
fn masked(text: &str) -> String {
    let (first, rest) = text.split_once("/.tmp").unwrap_or((text, ""));
    let rest = rest.get(6..).map(|rest| format!("/.tmp------{rest}"));
    let text = first.to_owned() + &rest.unwrap_or_default();
    let is_id = |word: &str| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mask = |line: &str| {
        let words = line.split(' ');
        let mask = |word| if is_id(word) && word != "7c2a51de" { "--------" } else { word };
        words.map(mask).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(mask).collect::<Vec<_>>().join("\n")
}

fn resize(host: &File, size: (u16, u16)) {
    let size = Winsize { ws_col: size.0, ws_row: size.1, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(host, size).unwrap();
}

#[test]
fn every_size_shows_the_sessions_of_this_folder_and_quits() {
    let env = machine();
    for (columns, rows) in [(80, 24), (100, 30), (120, 32)] {
        let mut screen = Screen::open(&env, &[], (columns, rows));
        screen.wait(&["1 session of 3", "Watering the beds"]);
        screen.keys("2");
        let focus = if columns == 120 { "▸2 Turns" } else { "▸Turns" };
        let shown = screen.wait(&["Only for the beans", "show 7c2a51de@3", "1 reverted", focus]);
        assert_snapshot!(format!("browse_{columns}x{rows}"), masked(&shown));
        assert!(shown.lines().all(|line| line.width() <= columns.into()), "{shown}");
        screen.keys("Q");
        assert!(screen.ends().success());
    }
}

#[test]
fn a_revert_is_made_once_it_is_confirmed_and_undone_in_the_same_way() {
    let env = machine();
    let before = newest_operation(&env, "7c2a51de");
    let mut screen = Screen::open(&env, &["7c2a51de"], (120, 32));
    screen.wait(&["Only for the beans"]);
    screen.keys("r");
    let shown = screen.wait(&["esc cancel", "Nothing is deleted", "Note for the model"]);
    assert_snapshot!("browse_revert", masked(&shown));
    screen.keys("\x1b");
    screen.wait_without("esc cancel");
    assert_eq!(newest_operation(&env, "7c2a51de"), before, "esc changes nothing");
    screen.keys("r");
    screen.wait(&["Nothing is deleted", "Note for the model"]);
    screen.keys("Dry until Friday\r");
    screen.wait(&["is now just before @3 · prompt copied", "from later:", "u undo"]);
    let reverted = newest_operation(&env, "7c2a51de");
    assert!(reverted > before);
    let log = env.run(&["log", "7c2a51de"]).success().stdout;
    assert!(log.contains("Dry until Friday") && !log.contains("Only for the beans"), "{log}");
    screen.keys("u");
    screen.wait(&["Undo the last change", "Would undo operation", "esc cancel"]);
    screen.keys("\r");
    screen.wait(&["at the end of @3", "Only for the beans"]);
    let log = env.run(&["log", "7c2a51de"]).success().stdout;
    assert!(log.contains("Only for the beans"), "{log}");
    screen.keys("Q");
    assert!(screen.ends().success());
}

/// A dialog or a state: its name, the session to begin with, and keys, each with what is shown then.
type State = (&'static str, Option<&'static str>, &'static [(&'static str, &'static str)]);

const GARDEN: Option<&str> = Some("7c2a51de");

#[rustfmt::skip]
const REVERTED: &[(&str, &str)] = &[
    ("JJ", "show 7c2a51de@2"), ("r", "Nothing is deleted"), ("\r", "prompt copied"), ("", "rain.csv."),
];

#[rustfmt::skip]
const STATES: [State; 10] = [
    ("search", None, &[("sleeks ten litres", "3 messages in 1 session")]),
    ("help", GARDEN, &[("?", "Keys of this pane")]),
    ("name", GARDEN, &[("mbefore", "▏ before")]),
    ("command", GARDEN, &[(":revert \t", "@0  @1")]),
    ("lost", GARDEN, &[("L", "beds.md")]),
    ("compare", GARDEN, &[("gr", "show 7c2a51de@1"), ("c", "b switch to the left one"), ("", "Write plan.md")]),
    ("no_match", None, &[("1/z\u{fc}rch", "0 of 3 match")]),
    ("out_of_scope", None, &[("1aa", "No session is in")]),
    ("reverted", GARDEN, REVERTED),
    ("folded", GARDEN, &[REVERTED[0], REVERTED[1], REVERTED[2], REVERTED[3], ("z", "2 turns: The beans")]),
];

const ALL_SIZES: [(u16, u16); 3] = [(80, 24), (100, 30), (120, 32)];

#[test]
fn every_dialog_and_state_fits_every_size() {
    for (name, session, steps) in STATES {
        let shown = ALL_SIZES.map(|size| {
            let env = machine();
            let mut screen = Screen::open(&env, session.as_slice(), size);
            screen.wait(&[if session.is_some() { "show 7c2a51de@3" } else { "1 session of 3" }]);
            if session.is_some() || size.0 == 120 {
                screen.wait(&["Only for the beans"]);
            }
            for (keys, text) in steps {
                screen.keys(keys);
                screen.wait(&[text]);
            }
            snapshot_of(screen, &[])
        });
        assert_snapshot!(format!("browse_{name}"), shown.join("\n"));
    }
}

/// Waits for texts, quits, and returns what was shown.
#[track_caller]
fn snapshot_of(mut screen: Screen, texts: &[&str]) -> String {
    let (columns, rows) = screen.size;
    screen.wait(texts);
    // A frame may not have arrived whole.
    while screen.read(Duration::from_millis(300)).unwrap() {}
    let shown = screen.text();
    assert!(shown.lines().all(|line| line.width() <= columns.into()), "{shown}");
    screen.keys("\x03");
    assert!(screen.ends().success());
    format!("=== {columns}x{rows}\n{}\n", masked(&shown))
}

#[test]
fn a_session_that_was_deleted_damaged_or_grows_says_so_at_every_size() {
    let file = |env: &TestEnv| {
        env.home().join(".claude/projects/-garden/7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl")
    };
    let shown = ALL_SIZES.map(|size| {
        let env = machine();
        fs::remove_file(file(&env)).unwrap();
        snapshot_of(Screen::open(&env, &["7c2a51de"], size), &["Only for the beans", "deleted"])
    });
    assert_snapshot!("browse_deleted", shown.join("\n"));
    let shown = ALL_SIZES.map(|size| {
        let env = TestEnv::new();
        snapshot_of(Screen::open(&env, &[], size), &["No sessions yet", "PATH"])
    });
    assert_snapshot!("browse_no_agents", shown.join("\n"));
    for size in ALL_SIZES {
        let env = TestEnv::new();
        let session = conversation(&env);
        let mut screen = Screen::open(&env, &[&session], size);
        screen.wait(&["2 turns", "Done."]);
        screen.keys("r");
        screen.wait(&["Note for the model", "would be"]);
        env.run(&["append", "-q", "-s", &session, "--role", "user", "And one more."]).success();
        snapshot_of(screen, &["⏎ again to confirm", "@2 would move too"]);
    }
}

#[test]
fn a_session_grows_and_a_new_one_appears_while_a_person_looks() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let mut screen = Screen::open(&env, &[&session], (100, 30));
    screen.wait(&["2 turns", "Done."]);
    env.run(&["append", "-q", "-s", &session, "--role", "user", "And one more."]).success();
    screen.wait(&["3 turns", "And one more."]);
    screen.keys("1");
    screen.wait(&["1 session", "all folders"]);
    env.run(&["new", "-q"]).success();
    screen.wait(&["2 sessions"]);
    screen.keys("Q");
    assert!(screen.ends().success());
}

#[test]
fn all_sessions_are_searched() {
    let env = machine();
    let mut screen = Screen::open(&env, &[], (120, 32));
    screen.wait(&["1 session of 3"]);
    screen.keys("sleeks ten litres");
    let shown = screen.wait(&["ten litres each", "⏎ go there", "message"]);
    assert!(shown.contains("> leeks ten litres"), "{shown}");
    screen.keys("\r");
    screen.wait(&["undertext show", "@2"]);
    screen.keys("Q");
    assert!(screen.ends().success());
}

#[test]
fn any_command_runs_outside_and_the_screen_comes_back() {
    let env = machine();
    let mut screen = Screen::open(&env, &["7c2a51de"], (100, 30));
    screen.wait(&["Only for the beans"]);
    screen.keys(":status\r");
    while !screen.sent.contains("returns to the screen") {
        let mut buffer = [0; 4096];
        let n = screen.host.read(&mut buffer).unwrap();
        screen.sent.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
    assert!(screen.sent.contains(CLOSE));
    screen.sent.clear();
    screen.keys("\n");
    screen.wait(&["Only for the beans", "yy copy"]);
    screen.keys("Q");
    assert!(screen.ends().success());
}

#[test]
fn resizes_are_drawn_and_signals_leave_the_terminal_as_it_was() {
    let env = machine();
    for (signal, name) in [(Signal::TERM, "TERM"), (Signal::HUP, "HUP")] {
        let mut screen = Screen::open(&env, &[], (120, 32));
        screen.wait(&["Watering the beds", "1 Sessions"]);
        resize(&screen.host, (50, 12));
        screen.size = (50, 12);
        screen.wait(&["needs 60x16, and this is 50x12"]);
        kill_process(Pid::from_child(&screen.child), signal).unwrap();
        assert_eq!(screen.ends().signal(), Some(signal.as_raw()), "{name}");
    }
}

/// Keys that neither leave the screen nor end it. `enter` is typed apart from them.
const KEYS: &str = "j k G g c r f e n . , h l 1 2 3 + _ t T Z z / N s a u U b m v L y p ? ! J K R D x 日 \
    \x1b \x1b \x1b \x1b[A \x1b[B \x1b[C \x1b[D \x1b[H \x1b[F \x1b[5~ \x1b[6~ \t \x7f \x04 \x15 \x12 \x17 \
    \x1b[<0;20;6M \x1b[<0;70;6M \x1b[<0;70;20M \x1b[<65;70;20M \x1b[<64;20;6M \x1b[200~ab\x1b[201~";
const SIZES: [(u16, u16); 6] = [(40, 10), (60, 16), (80, 24), (100, 30), (120, 32), (200, 50)];

/// Returns the verbs of all changes that a person made, oldest first, with their sessions.
fn changes(env: &TestEnv) -> Vec<(String, String)> {
    let listed = env.run(&["operations", "--all", "-n", "0", "--json"]).success().stdout;
    let made = listed.lines().map(json).map(|it| {
        let text = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
        (text("command"), text("session"))
    });
    let mut made: Vec<_> = made.filter(|(verb, _)| verb != "import").collect();
    made.reverse();
    made
}

/// Returns the verb that `enter` runs on this screen, and the title of its dialog.
fn asked(shown: &str) -> Option<(String, String)> {
    let title = shown.lines().find_map(|line| line.split_once("╭─ "))?.1.to_owned();
    if let Some((_, field)) = shown.split_once("▏ ").filter(|_| title.starts_with("Name ")) {
        let is_named = !field.split('│').next()?.trim().is_empty();
        return is_named.then(|| ("branch".to_owned(), title));
    }
    let keys = shown.lines().find(|line| line.contains("^o and resume"))?;
    let (verb, _) = keys.split_once('⏎')?.1.trim().split_once(' ')?;
    let is_again = shown.contains("again to confirm");
    (!is_again).then(|| (verb.to_owned(), title))
}

/// How many keys are pressed on a machine. A session with hundreds of changes takes seconds for the next one.
const PRESSES: usize = 2_000;

#[test]
fn random_keys_on_a_terminal_change_only_what_was_confirmed() {
    let (rounds, seed) = (needs::rounds(1, 20_u64), u64::from(std::process::id()));
    let confirmed: usize = (0..rounds).map(|n| press_keys(seed + n)).sum();
    assert!(rounds == 1 || confirmed > 20, "seed {seed}: {confirmed}");
}

/// Presses random keys on a machine of its own. Returns how many changes were confirmed.
fn press_keys(seed: u64) -> usize {
    let env = machine();
    let before = changes(&env);
    let mut screen = Screen::open(&env, &[], (120, 32));
    screen.wait(&["1 session of 3"]);
    let mut random = seed;
    let mut next = |below: usize| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % below
    };
    let keys: Vec<&str> = KEYS.split(' ').filter(|key| !key.is_empty()).chain([" "]).collect();
    let (mut pressed, mut confirmed) = (0, Vec::new());
    while pressed < PRESSES {
        let many = 1 + next(60);
        let typed: String = (0..many).map(|_| keys[next(keys.len())]).collect();
        screen.keys(&typed);
        pressed += many + 1;
        // A first resize may be seen just before the keys are.
        screen.redraw((61, 17));
        let size = SIZES[next(SIZES.len())];
        let mut shown = screen.redraw(size);
        if shown.contains("Reading what this would change") {
            screen.wait_without("Reading what this would change");
            // Perhaps only half of the answer is drawn.
            screen.redraw((61, 17));
            shown = screen.redraw(size);
        }
        // The help runs what is under its cursor, which may leave the screen.
        let is_help = shown.contains("Keys of this pane");
        let asked = asked(&shown);
        screen.keys(if is_help { "\x1b" } else { "\r" });
        let Some(asked) = asked else { continue };
        let (begun, many) = (Instant::now(), confirmed.len());
        // The screen may still say this of the change before.
        let said_before = shown.contains("nothing was changed");
        let is_made = loop {
            let made = changes(&env).len() - before.len();
            let is_refused = screen.text().contains("nothing was changed")
                && (!said_before || begun.elapsed() > LIMIT / 3);
            if made > many || is_refused {
                break made > many;
            }
            assert!(begun.elapsed() < LIMIT, "seed {seed}: {asked:?} in:\n{}", screen.text());
            screen.read(Duration::from_millis(50)).unwrap();
        };
        confirmed.extend(is_made.then_some(asked));
    }
    // One that was asked for last may have a field.
    screen.keys("\x1b");
    screen.redraw((121, 32));
    screen.keys("\x1b");
    screen.redraw((120, 32));
    screen.keys("\x03");
    assert!(screen.ends().success(), "seed {seed}");
    let mut made = changes(&env);
    for old in &before {
        made.swap_remove(made.iter().position(|it| it == old).unwrap());
    }
    // The title names the session.
    let session = |title: &str| {
        let mut sessions = made.iter().map(|(_, session)| session);
        let is_it = |id: &str| title.split(' ').any(|it| it.len() > 1 && id.starts_with(it));
        sessions.find(|id| is_it(id)).cloned().unwrap_or_default()
    };
    let mut asked: Vec<_> =
        confirmed.iter().map(|(verb, title)| (verb.clone(), session(title))).collect();
    made.sort();
    asked.sort();
    assert_eq!(made, asked, "seed {seed}");
    env.run(&["verify"]).success();
    confirmed.len()
}

#[test]
fn without_a_terminal_other_commands_are_named() {
    let env = machine();
    assert_snapshot!(env.run(&["browse"]), @r"
    ------- stderr -------
    error: this needs a terminal that can move its cursor
    hint: list the sessions: undertext sessions
    hint: see the turns of one: undertext graph
    hint: read it: undertext log
    [exit status: 2]
    ");
    let (_host, terminal) = terminal();
    let mut command = env.command();
    command.arg("browse").env("TERM", "dumb");
    let stream = || Stdio::from(terminal.try_clone().unwrap());
    command.stdin(stream()).stderr(stream()).stdout(Stdio::null());
    assert_eq!(command.status().unwrap().code(), Some(2));
}
