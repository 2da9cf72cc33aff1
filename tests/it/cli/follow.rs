//! `log -f`: each new entry is shown as it is written, whatever becomes of the file, until nobody reads it any more.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{conversation, json, live_path, with_examples};
use crate::env::{TestEnv, ending};
use crate::rollout::{Rollout, SECOND, THREAD, write};

/// How long a line is waited for.
const PATIENCE: Duration = Duration::from_secs(300);

/// A command that goes on, and the lines of its streams as they come.
struct Running {
    child: Child,
    data: Receiver<String>,
    talk: Receiver<String>,
}

impl Running {
    fn new(env: &TestEnv, args: &[&str]) -> Self {
        let mut command = env.command();
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let data = lines(child.stdout.take().unwrap());
        let talk = lines(child.stderr.take().unwrap());
        Self { child, data, talk }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        BufReader::new(stream).lines().map_while(Result::ok).try_for_each(|line| send.send(line))
    });
    receive
}

/// Waits for a line that holds words, and returns it with those before it.
#[track_caller]
fn until(stream: &Receiver<String>, words: &str) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let line = stream.recv_timeout(PATIENCE);
        let line = line.unwrap_or_else(|error| panic!("{words}: {error} behind {all:#?}"));
        all.push(line);
        if all.last().unwrap().contains(words) {
            return all;
        }
    }
}

fn add(path: &Path, text: &str) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn what_is_said_later_is_shown_as_it_is_said() {
    let env = TestEnv::new();
    conversation(&env);
    let running = Running::new(&env, &["log", "-f", "-n", "1"]);
    assert!(until(&running.data, "Done.")[0].starts_with("assistant"));
    env.run(&["append", "-q", "And now test it."]).success();
    let said = until(&running.data, "And now test it.");
    assert!(said.len() == 3 && said[0].is_empty() && said[1].starts_with("@2  user"), "{said:#?}");
    env.run(&["append", "-q", "--role", "assistant", "It holds."]).success();
    until(&running.data, "It holds.");
    // Another command takes the conversation back, and it goes on from there.
    env.run(&["revert", "-q", "1", "-m", "Look at the linker."]).success();
    let back = until(&running.data, "Look at the linker.");
    assert!(back[1].starts_with("note"), "{back:#?}");
    until(&running.talk, "the conversation went back and continues after");
    env.run(&["append", "-q", "--role", "assistant", "I see."]).success();
    until(&running.data, "I see.");
}

#[test]
fn a_conversation_that_goes_on_behind_its_agents_own_record_did_not_go_back() {
    let env = TestEnv::new();
    let place = ".claude/projects/-garden/7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl";
    let kept = env.home().join(place);
    fs::create_dir_all(kept.parent().unwrap()).unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    fs::copy(examples.join("claude-garden.jsonl"), &kept).unwrap();
    env.run(&["import"]).success();
    let running = Running::new(&env, &["log", "-f", "-n", "1", "7c2a"]);
    until(&running.data, "Only for the beans");
    env.run(&["append", "-q", "-s", "7c2a", "And the leeks?"]).success();
    until(&running.data, "And the leeks?");
    assert!(!running.talk.try_iter().any(|line| line.contains("went back")));
    // Nothing has to be said behind where one went back to.
    env.run(&["revert", "-q", "-s", "7c2a", "1"]).success();
    until(&running.talk, "the conversation went back and continues after");
}

#[test]
fn programs_get_an_object_a_line() {
    let env = with_examples();
    let path = env.project().join("native-rewind.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let (begin, end) = whole.split_at(whole.match_indices('\n').nth(3).unwrap().0 + 1);
    fs::write(&path, begin).unwrap();
    let running = Running::new(&env, &["log", "--follow", "--json", "native-rewind.jsonl"]);
    until(&running.data, "\"type\":\"entry\"");
    add(&path, end);
    let said = until(&running.data, "Roman numerals");
    assert!(said.iter().all(|line| json(line)["type"] == "entry"), "{said:#?}");
    let shown: Vec<String> = env
        .run(&["log", "--json", "native-rewind.jsonl"])
        .success()
        .stdout
        .lines()
        .map(str::to_owned)
        .collect();
    assert!(shown.ends_with(&said[said.len() - 1..]));
}

/// As when a disk is away for a moment.
#[test]
fn a_file_that_cannot_be_looked_at_is_not_told_to_be_deleted() {
    let env = with_examples();
    let folder = env.project().join("sessions");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("native-rewind.jsonl");
    fs::rename(env.project().join("native-rewind.jsonl"), &path).unwrap();
    let running = Running::new(&env, &["log", "-f", "-n", "2", path.to_str().unwrap()]);
    until(&running.data, "Roman numerals");
    let (away, endless) = (env.project().join("away"), env.project().join("endless"));
    symlink("sessions", &endless).unwrap();
    fs::rename(&folder, &away).unwrap();
    fs::rename(&endless, &folder).unwrap();
    // It is looked at a few times.
    thread::sleep(Duration::from_secs(1));
    fs::remove_file(&folder).unwrap();
    fs::rename(&away, &folder).unwrap();
    fs::remove_file(&path).unwrap();
    let told = until(&running.talk, "was deleted");
    assert_eq!(told.len(), 1, "{told:#?}");
}

#[test]
fn a_file_that_goes_and_comes_back_is_followed_on() {
    let env = with_examples();
    let path = env.project().join("native-rewind.jsonl");
    let whole = fs::read(&path).unwrap();
    let running = Running::new(&env, &["log", "-f", "-n", "2", "native-rewind.jsonl"]);
    until(&running.data, "Roman numerals");
    fs::remove_file(&path).unwrap();
    until(&running.talk, "native-rewind.jsonl was deleted");
    let last = String::from_utf8(whole.clone()).unwrap();
    let last = json(last.lines().last().unwrap());
    let next = |n: u32, text: &str| {
        let mut record = last.clone();
        record["parentUuid"] = record["uuid"].clone();
        record["uuid"] = format!("10000000-0000-4000-8000-00000000000{n}").into();
        record["message"]["content"] = text.into();
        format!("{record}\n")
    };
    fs::write(&path, [whole.as_slice(), next(1, "Painted white.").as_bytes()].concat()).unwrap();
    until(&running.talk, "is back");
    until(&running.data, "Painted white.");
    // Another file in its place, and the same one written over.
    let other = path.with_extension("new");
    fs::write(&other, [whole.as_slice(), next(2, "Painted green.").as_bytes()].concat()).unwrap();
    fs::rename(&other, &path).unwrap();
    until(&running.talk, "was replaced");
    until(&running.data, "Painted green.");
    fs::write(&path, "no session\n").unwrap();
    until(&running.talk, "was overwritten");
    until(&running.talk, "not a session in a known format");
    fs::write(&path, [whole.as_slice(), next(3, "Painted red.").as_bytes()].concat()).unwrap();
    until(&running.data, "Painted red.");
}

/// A file counted as seen before it was read: written while the store was away, its last words were never shown.
#[test]
fn what_could_not_be_read_is_read_again() {
    let env = TestEnv::new();
    let name = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40";
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    let path = env.home().join(format!(".claude/projects/-garden/{name}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::copy(example, &path).unwrap();
    env.run(&["import", "-q"]).success();
    let running = Running::new(&env, &["log", "-f", "--full", "-s", name]);
    let whole = fs::read_to_string(&path).unwrap();
    let records: Vec<_> = whole.lines().map(json).collect();
    let last = records.iter().rfind(|record| record["uuid"].is_string()).unwrap();
    let mut next = records.iter().rfind(|record| record["type"] == "user").unwrap().clone();
    let mut say = |n: u32, text: &str| {
        let before = if n == 0 { last["uuid"].clone() } else { next["uuid"].clone() };
        next["parentUuid"] = before;
        next["uuid"] = format!("10000000-0000-4000-8000-00000000000{n}").into();
        next["message"] = serde_json::json!({ "role": "user", "content": text });
        add(&path, &format!("{next}\n"));
    };
    say(0, "Painted white.");
    until(&running.data, "Painted white.");
    let (store, away) = (super::store(&env), env.home().join("away"));
    fs::rename(&store, &away).unwrap();
    say(1, "Painted red.");
    until(&running.talk, "warning: ");
    fs::rename(&away, &store).unwrap();
    until(&running.data, "Painted red.");
}

#[test]
fn it_ends_when_nobody_reads_it() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let mut shell = env.shell("sh", "undertext log -f | head -n 1");
    let output = shell.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(output.stdout.split(|&byte| byte == b'\n').count(), 2);
    // By ctrl-C without a word.
    let running = Running::new(&env, &["log", "-f"]);
    until(&running.data, "Done.");
    kill_process(Pid::from_child(&running.child), ending(Signal::INT)).unwrap();
    assert_eq!(running.talk.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
    fs::remove_file(live_path(&env, &session)).unwrap();
    let none = env.run(&["log", "-f", "--at", "@1"]);
    assert_eq!(none.code(), Some(2));
}

/// Writes a thread of Codex of two turns where Codex keeps it, takes it in, and follows it. Returns what goes on, with where the
/// first turn ends.
fn thread(env: &TestEnv) -> (Running, (u64, u64)) {
    let mut thread = Rollout::first(THREAD);
    thread.turn("one");
    let end = thread.end();
    thread.turn("two");
    write(&segment(env, 10, THREAD), thread.bytes.as_bytes());
    env.run(&["import", "-q"]).success();
    let running = Running::new(env, &["log", "-f", "-n", "1", THREAD]);
    until(&running.data, "to two");
    (running, end)
}

fn segment(env: &TestEnv, hour: u32, ids: &str) -> PathBuf {
    let day = env.home().join(".codex/sessions/2026/08/01");
    day.join(format!("rollout-2026-08-01T{hour}-00-00-{ids}.jsonl"))
}

#[test]
fn a_session_is_followed_to_the_file_that_a_command_begins() {
    let env = TestEnv::new();
    let (running, _) = thread(&env);
    env.run(&["revert", "-q", "1", "-s", THREAD, "-m", "Look again."]).success();
    until(&running.talk, "the session continues in");
    until(&running.data, "Look again.");
    env.run(&["append", "-q", "-s", THREAD, "And now test it."]).success();
    until(&running.data, "And now test it.");
    env.run(&["undo", "-q", "-s", THREAD]).success();
    env.run(&["undo", "-q", "-s", THREAD]).success();
    env.run(&["append", "-q", "-s", THREAD, "So be it."]).success();
    until(&running.data, "So be it.");
}

#[test]
fn a_session_is_followed_to_the_file_that_its_agent_begins() {
    let env = TestEnv::new();
    let (running, end) = thread(&env);
    let mut next = Rollout::behind(THREAD, THREAD, end, &serde_json::json!({}));
    next.turn("three");
    let path = segment(&env, 11, &format!("{THREAD}_{SECOND}"));
    write(&path, next.bytes.as_bytes());
    until(&running.data, "to three");
    let so_far = next.bytes.len();
    next.turn("four");
    add(&path, &next.bytes[so_far..]);
    until(&running.data, "to four");
    // Once the store has it, it goes on from there.
    env.run(&["import", "-q"]).success();
    env.run(&["append", "-q", "-s", THREAD, "And now test it."]).success();
    let said = until(&running.data, "And now test it.");
    assert!(!said.concat().contains("three"), "{said:#?}");
}
