//! The picker on a terminal: what is picked is what the command works on, and whatever else happens changes nothing.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use super::screens::terminal;
use super::{conversation, newest_operation};
use crate::env::TestEnv;

/// What opens and closes the alternate screen of a terminal.
const OPEN: &str = "\x1b[?1049h";
const CLOSE: &str = "\x1b[?1049l";

/// Returns a machine with three sessions that work elsewhere, two of one title.
fn machine() -> TestEnv {
    let env = TestEnv::new();
    let folder = env.home().join(".claude/projects/-garden");
    fs::create_dir_all(&folder).unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let garden = fs::read_to_string(examples.join("claude-garden.jsonl")).unwrap();
    let id = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40";
    for other in [id, "7c2a51de-1111-4e6f-8a53-0d1f6b7e2c40"] {
        fs::write(folder.join(format!("{other}.jsonl")), garden.replace(id, other)).unwrap();
    }
    let folder = env.home().join(".codex/sessions/2026/08/01");
    fs::create_dir_all(&folder).unwrap();
    let name = "rollout-2026-08-01T10-00-00-019fc000-4d1e-7a30-8b52-6f0e9d8c7b6a.jsonl";
    fs::copy(examples.join("codex-weather.jsonl"), folder.join(name)).unwrap();
    env.run(&["import", "-q"]).success();
    env
}

/// A command on a terminal, whose stdout is a pipe.
struct Screen {
    host: File,
    terminal: OwnedFd,
    child: Child,
    shown: String,
    /// The modes of the terminal before.
    before: Termios,
}

impl Screen {
    fn open(env: &TestEnv, args: &[&str]) -> Self {
        let (host, terminal) = terminal();
        let size = Winsize { ws_col: 80, ws_row: 24, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&host, size).unwrap();
        let before = tcgetattr(&terminal).unwrap();
        let child = env
            .command()
            .args(args)
            .env("TERM", "xterm")
            .stdin(terminal.try_clone().unwrap())
            .stderr(terminal.try_clone().unwrap())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self { host, terminal, child, shown: String::new(), before }
    }

    /// Waits until the terminal was sent a text.
    #[track_caller]
    fn wait(&mut self, text: &str) {
        let mut buffer = [0; 4096];
        while !self.shown.contains(text) {
            let n = self.host.read(&mut buffer).unwrap();
            self.shown.push_str(&String::from_utf8_lossy(&buffer[..n]));
        }
    }

    /// Types keys once the picker is there; returns what was said on stdout, and how the command ended.
    #[track_caller]
    fn types(mut self, keys: &[&str]) -> (String, ExitStatus) {
        self.wait("esc cancel");
        for key in keys {
            self.host.write_all(key.as_bytes()).unwrap();
        }
        self.ends()
    }

    #[track_caller]
    fn ends(mut self) -> (String, ExitStatus) {
        self.wait(CLOSE);
        let mut said = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        let status = self.child.wait().unwrap();
        let after = tcgetattr(&self.terminal).unwrap();
        let [before, after] = [&self.before, &after].map(|modes| format!("{modes:?}"));
        assert_eq!(before, after, "the terminal is as it was");
        (said, status)
    }
}

#[test]
fn a_folder_without_sessions_lets_a_person_pick_one() {
    let env = machine();
    let (said, status) = Screen::open(&env, &["graph"]).types(&["codex", "\r"]);
    assert!(status.success(), "{said}");
    assert_eq!(said, env.run(&["graph", "019fc000"]).success().stdout);
}

#[test]
fn a_word_of_several_sessions_lets_a_person_pick_one_of_them() {
    let env = machine();
    let screen = Screen::open(&env, &["status", "7c2a"]);
    let (said, status) = screen.types(&["\x1b[B", "\r"]);
    assert!(status.success(), "{said}");
    let ids = ["7c2a51de-1111", "7c2a51de-90b4"];
    assert_eq!(ids.iter().filter(|id| said.contains(*id)).count(), 1, "{said}");
    let (other, _) = Screen::open(&env, &["status", "7c2a"]).types(&["\r"]);
    assert_ne!(said, other, "the cursor was on another row");
}

#[test]
fn a_word_of_no_session_is_the_query() {
    let env = machine();
    let mut screen = Screen::open(&env, &["status", "wethr"]);
    screen.wait("wethr");
    let (said, status) = screen.types(&["\x15", "garden", "\r"]);
    assert!(status.success() && said.contains("7c2a51de"), "{said}");
}

#[test]
fn revert_without_a_place_lets_a_person_pick_a_turn() {
    let [picked, typed] = [TestEnv::new(), TestEnv::new()].map(|env| {
        let session = conversation(&env);
        (env, session)
    });
    let (said, status) = Screen::open(&picked.0, &["revert"]).types(&["\x1b[B", "\r"]);
    assert!(status.success(), "{said}");
    assert_eq!(picked.1, typed.1, "both are made in one way");
    assert_eq!(said, typed.0.run(&["revert", "@0"]).success().stdout);
    let (said, status) = Screen::open(&picked.0, &["revert", &picked.1]).types(&["@1\r"]);
    assert!(status.success() && said.contains("just before @1"), "{said}");
}

#[test]
fn escape_and_control_c_change_nothing() {
    let env = machine();
    let session = conversation(&env);
    let before = newest_operation(&env, &session);
    for args in [["revert", "-s", &session].as_slice(), &["undo", "7c2a"], &["log", "no such one"]]
    {
        for key in ["\x1b", "\x03"] {
            let (said, status) = Screen::open(&env, args).types(&["a", key]);
            assert_eq!((said.as_str(), status.code()), ("", Some(1)), "{args:?}");
        }
    }
    assert_eq!(newest_operation(&env, &session), before);
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let env = machine();
    let mut screen = Screen::open(&env, &["graph"]);
    screen.wait("esc cancel");
    kill_process(Pid::from_child(&screen.child), Signal::TERM).unwrap();
    let (said, status) = screen.ends();
    assert_eq!((said.as_str(), status.signal()), ("", Some(Signal::TERM.as_raw())));
}

#[test]
fn a_terminal_that_is_closed_ends_the_command() {
    let env = machine();
    let mut screen = Screen::open(&env, &["graph"]);
    screen.wait("esc cancel");
    drop(screen.host);
    assert_eq!(screen.child.wait().unwrap().code(), Some(3));
}

#[test]
fn nothing_opens_for_a_program() {
    let env = machine();
    let opens = |args: &[&str], streams: [bool; 2], term: &str, rows: u16| {
        let (mut host, terminal) = terminal();
        let size = Winsize { ws_col: 80, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&host, size).unwrap();
        let stream = |is_terminal: bool| {
            let stream = is_terminal.then(|| Stdio::from(terminal.try_clone().unwrap()));
            stream.unwrap_or_else(Stdio::null)
        };
        let [stdin, stderr] = streams.map(stream);
        let mut command = env.command();
        command.args(args).env("TERM", term).stdin(stdin).stderr(stderr).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        drop((command, terminal));
        let (mut shown, mut buffer) = (String::new(), [0; 4096]);
        while let Ok(n @ 1..) = host.read(&mut buffer) {
            shown.push_str(&String::from_utf8_lossy(&buffer[..n]));
            if shown.contains("esc cancel") {
                host.write_all(b"\x1b").unwrap();
            }
        }
        let code = child.wait().unwrap().code();
        assert!(code == Some(1) || code == Some(2) && !shown.contains(OPEN), "{args:?}: {shown}");
        shown.contains(OPEN)
    };
    assert!(opens(&["graph"], [true, true], "xterm", 24));
    assert!(!opens(&["graph"], [false, true], "xterm", 24));
    assert!(!opens(&["graph"], [true, false], "xterm", 24));
    assert!(!opens(&["graph"], [true, true], "dumb", 24));
    assert!(!opens(&["graph"], [true, true], "", 24));
    assert!(!opens(&["graph"], [true, true], "xterm", 7));
    assert!(!opens(&["graph", "--json"], [true, true], "xterm", 24));
    assert!(!opens(&["graph", "-q"], [true, true], "xterm", 24));
    assert!(!opens(&["graph", "no/such/file"], [true, true], "xterm", 24));
    assert!(!opens(&["graph", "@3"], [true, true], "xterm", 24));
    assert!(!opens(&["graph", ""], [true, true], "xterm", 24));
}

#[test]
fn without_a_terminal_a_short_list_has_what_may_be_meant() {
    let env = machine();
    assert_snapshot!(env.run(&["graph"]), @"
    ------- stderr -------
    error: there is no session in $HOME/project
    hint: name a session, such as:
      7c2a51de-9  2026-08-20  /home/ann/garden   Watering the beds
      7c2a51de-1  2026-08-20  /home/ann/garden   Watering the beds
      019fc000    2026-08-02  /home/ann/weather  When was the wind strongest?
    [exit status: 1]
    ");
    assert_snapshot!(env.run(&["graph", "7c2a"]), @r#"
    ------- stderr -------
    error: "7c2a" matches 2 sessions
    hint: type more characters of one of these:
      7c2a51de-9  2026-08-20  /home/ann/garden  Watering the beds
      7c2a51de-1  2026-08-20  /home/ann/garden  Watering the beds
    [exit status: 2]
    "#);
    assert_snapshot!(env.run(&["revert"]), @r"
    ------- stderr -------
    error: which turn? name its number, such as @3
    hint: list the turns: undertext graph
    hint: see the help: undertext revert --help
    [exit status: 2]
    ");
}
