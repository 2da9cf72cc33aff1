//! Which processes have a session open: what agents say of themselves, and what is guessed of those that say nothing.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::attach::Kept;
use super::pending::codex;
use super::screens::terminal;
use crate::env::{CommandOutput, TestEnv};
use crate::needs;
use crate::rollout::THREAD;

/// It opens the file that it is given, if any, and waits until its input ends.
const AGENT: &str = "#!/bin/sh\n[ -z \"$1\" ] || exec 3<>\"$1\"\necho ready\nread line\n";

/// A program with the name of an agent's, in the folder of the project; it ends with this value.
pub(super) struct Agent {
    child: Child,
    /// The other end of its terminal.
    _host: Option<File>,
}

impl Agent {
    fn on_a_terminal(env: &TestEnv, setsid: &str, name: &str) -> Self {
        let (host, terminal) = terminal();
        let mut command = Command::new(setsid);
        command.arg("--ctty").stdin(terminal);
        Self { child: start(env, command, name, &[]), _host: Some(host) }
    }

    pub(super) fn without_one(env: &TestEnv, setsid: &str, name: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(setsid);
        command.stdin(Stdio::piped());
        Self { child: start(env, command, name, arguments), _host: None }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns when it started, as the system counts it.
    pub(super) fn started(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(19).unwrap().parse().unwrap()
    }
}

fn start(env: &TestEnv, mut command: Command, name: &str, arguments: &[&str]) -> Child {
    let program = env.home().join("bin").join(name);
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, AGENT).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    command.arg(program).args(arguments).current_dir(env.project()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const BOAT: &str = "6b0a1c52-0d1e-4f6a-9f57-3c1a1b2c3d4e";
const RAFT: &str = "5c0a1c52-0d1e-4f6a-9f57-3c1a1b2c3d4e";

/// Has the session work in the folder of the project, and takes it in.
pub(super) fn in_the_project(kept: &Kept) {
    let project = kept.env.project().canonicalize().unwrap();
    let mut text = kept.read();
    for folder in ["\"/work\"", "\"/w\""] {
        text = text.replace(folder, &format!("\"{}\"", project.display()));
    }
    fs::write(&kept.file, text).unwrap();
    kept.env.run(&["import"]).success();
}

/// Returns a home with two sessions of Claude Code in one folder, and the file of the second.
fn boat_and_raft() -> (Kept, PathBuf) {
    let kept = Kept::claude();
    in_the_project(&kept);
    let raft = kept.file.with_file_name(format!("{RAFT}.jsonl"));
    let mut text = kept.read().replace(BOAT, RAFT).replace("a boat.", "a raft.");
    for n in 1..=4 {
        text = text.replace(&format!("\"u{n}\""), &format!("\"v{n}\""));
    }
    fs::write(&raft, text).unwrap();
    kept.env.run(&["import"]).success();
    (kept, raft)
}

pub(super) fn name_session(env: &TestEnv, pid: u32, session: &str, started: u64) {
    let sessions = env.home().join(".claude/sessions");
    fs::create_dir_all(&sessions).unwrap();
    let text = format!(
        "{{\"pid\":{pid},\"sessionId\":\"{session}\",\"procStart\":\"{started}\",\"status\":\"idle\"}}"
    );
    fs::write(sessions.join(format!("{pid}.json")), text).unwrap();
}

/// Goes back, and forth again if that was not refused.
fn change(env: &TestEnv, session: &str, more: &[&str]) -> CommandOutput {
    let output = env.run(&[&["revert", "1", "-s", session], more].concat());
    if output.code() == Some(0) && !more.contains(&"--dry-run") {
        env.run(&["undo", "-s", session, "--force"]).success();
    }
    output
}

/// Checks that a change is refused with all of these words, that the file stays, and that a dry run is not refused.
#[track_caller]
fn refused(env: &TestEnv, file: &Path, session: &str, more: &[&str], words: &[&str]) {
    let before = fs::read(file).unwrap();
    let output = change(env, session, more);
    assert_eq!(output.code(), Some(3), "{output}");
    for word in words {
        assert!(output.stderr.contains(word), "{word}: {output}");
    }
    change(env, session, &["--dry-run"]).success();
    assert!(fs::read(file).unwrap() == before);
}

#[test]
fn claude_code_keeps_only_the_session_that_it_names_from_being_changed() {
    let Some(setsid) = needs::setsid() else { return };
    let (kept, raft) = boat_and_raft();
    let env = &kept.env;
    let agent = Agent::on_a_terminal(env, setsid, "claude");
    name_session(env, agent.pid(), RAFT, agent.started());
    change(env, BOAT, &[]).success();
    let named = |id: &str, what: &str| {
        format!("Claude Code has {id} \"{what}\" open (pid {}, pts/", agent.pid())
    };
    let words =
        [named("5c0a1c52", "Build a raft."), "close the session there and run this again".into()];
    let words = words.each_ref().map(String::as_str);
    refused(env, &raft, RAFT, &[], &words);
    refused(env, &raft, RAFT, &["--force"], &words);
    // It goes to another session.
    name_session(env, agent.pid(), BOAT, agent.started());
    change(env, RAFT, &[]).success();
    refused(env, &kept.file, BOAT, &["--force"], &[&named("6b0a1c52", "Build a boat.")]);
    // The file is of an older process, so that this one says nothing.
    name_session(env, agent.pid(), BOAT, agent.started() + 1);
    for (session, file) in [(BOAT, &kept.file), (RAFT, &raft)] {
        let words = ["Claude Code may have ", ", in the session's folder)", "add --force"];
        refused(env, file, session, &[], &words);
        change(env, session, &["--force"]).success();
    }
    // A file that a killed process left says nothing.
    name_session(env, agent.pid(), BOAT, agent.started());
    drop(agent);
    change(env, BOAT, &[]).success();
}

#[test]
fn a_session_that_claude_code_has_open_without_a_terminal_is_refused_too() {
    let Some(setsid) = needs::setsid() else { return };
    let (kept, _) = boat_and_raft();
    let agent = Agent::without_one(&kept.env, setsid, "claude", &[]);
    change(&kept.env, BOAT, &[]).success();
    name_session(&kept.env, agent.pid(), BOAT, agent.started());
    let end = format!("end Claude Code, which has no terminal: kill {}", agent.pid());
    refused(&kept.env, &kept.file, BOAT, &["--force"], &[" has 6b0a1c52 ", ", run as ", &end]);
}

#[test]
fn a_folder_counts_only_for_a_process_with_a_terminal() {
    let Some(setsid) = needs::setsid() else { return };
    let kept = Kept::pi();
    in_the_project(&kept);
    let agent = Agent::without_one(&kept.env, setsid, "pi", &[]);
    change(&kept.env, "boat", &[]).success();
    drop(agent);
    let _agent = Agent::on_a_terminal(&kept.env, setsid, "pi");
    let words = ["pi may have ", ", in the session's folder)", "add --force"];
    refused(&kept.env, &kept.file, "boat", &[], &words);
    change(&kept.env, "boat", &["--force"]).success();
}

#[test]
fn a_lock_next_to_a_session_counts_while_the_process_that_wrote_it_lives() {
    let Some(setsid) = needs::setsid() else { return };
    let kept = Kept::pi();
    in_the_project(&kept);
    let env = &kept.env;
    let gateway = Agent::without_one(env, setsid, "gateway", &[]);
    let lock = |started: Option<u64>| {
        let started = started.map(|at| format!(",\"starttime\":{at}")).unwrap_or_default();
        let text = format!("{{\"pid\":{}{started}}}", gateway.pid());
        fs::write(kept.file.with_extension("jsonl.lock"), text).unwrap();
    };
    lock(Some(gateway.started()));
    refused(env, &kept.file, "boat", &["--force"], &[" has boat "]);
    lock(Some(gateway.started() + 1));
    change(env, "boat", &[]).success();
    // Nothing shows that it is the process that wrote this.
    lock(None);
    refused(
        env,
        &kept.file,
        "boat",
        &[],
        &[" may have boat ", "agent's lock file)", "add --force"],
    );
    change(env, "boat", &["--force"]).success();
    drop(gateway);
    change(env, "boat", &[]).success();
}

#[test]
fn codex_has_a_thread_open_while_it_holds_its_lock_or_its_file() {
    let Some(setsid) = needs::setsid() else { return };
    let kept = codex();
    in_the_project(&kept);
    let env = &kept.env;
    let screen = Agent::on_a_terminal(env, setsid, "codex");
    let words = ["Codex may have ", ", in the session's folder)", "add --force"];
    refused(env, &kept.file, THREAD, &[], &words);
    // One that locks what it opens has not opened this.
    let locks = env.home().join(".codex/thread-writer-locks");
    fs::create_dir(&locks).unwrap();
    change(env, THREAD, &[]).success();
    drop(screen);
    let lock = locks.join(format!("{THREAD}.lock"));
    let held = File::create(&lock).unwrap();
    held.lock().unwrap();
    for more in [&[][..], &["--force"]] {
        let holder = format!(" open (pid {}, ", std::process::id());
        refused(env, &kept.file, THREAD, more, &[&holder]);
    }
    drop(held);
    change(env, THREAD, &[]).success();
    // What a screen leaves in the background has closed the thread, and then not yet.
    let service = Agent::without_one(env, setsid, "codex", &["", "app-server", "--listen"]);
    change(env, THREAD, &[]).success();
    drop(service);
    let file = kept.file.to_str().unwrap();
    let _service = Agent::without_one(env, setsid, "codex", &[file, "app-server", "--listen"]);
    let words = ["Codex has ", "codex app-server daemon stop"];
    refused(env, &kept.file, THREAD, &["--force"], &words);
}
