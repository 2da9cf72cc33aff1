//! `watch`: what agents write is taken in as they write it, through every accident.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::json;
use crate::env::{TestEnv, ending};
use crate::needs;

/// How long a line is waited for: no test is to fail because a machine is busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// A watch that runs.
struct Watching {
    child: Child,
    lines: Receiver<String>,
    stderr: Option<ChildStderr>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Watching {
    fn spawn(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take());
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            lines.map_while(|line| send.send(line).ok()).for_each(drop);
        });
        Self { child, lines, stderr }
    }

    /// Begins a watch that tells objects, and waits until it watches.
    fn begin(env: &TestEnv, args: &[&str]) -> Self {
        let watching = Self::spawn(env.command().args(["watch", "--json"]).args(args));
        while watching.next()["type"] != "watching" {}
        watching
    }

    #[track_caller]
    fn next(&self) -> Value {
        json(&self.lines.recv_timeout(PATIENCE).unwrap())
    }

    /// Returns what became of the next session, and how many entries are new, until that is as it is expected.
    #[track_caller]
    fn until(&self, session: &str, change: &str, entries: u64) -> Value {
        // What is written in several steps may be seen in several too.
        let mut sum = 0;
        loop {
            let next = self.next();
            assert_eq!((&next["type"], &next["session"]), (&"watched".into(), &session.into()));
            sum += next["entries"].as_u64().unwrap();
            if next["change"] == change || (change == "new" && next["change"] == "grown") {
                assert!(sum <= entries, "{next}");
                if sum == entries {
                    return next;
                }
            }
        }
    }

    /// Ends it by a signal, and returns its exit code.
    fn end(&mut self, signal: Signal) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), ending(signal)).unwrap();
        self.child.wait().unwrap().code()
    }

    fn talk(&mut self) -> String {
        let mut talk = String::new();
        self.stderr.take().unwrap().read_to_string(&mut talk).unwrap();
        talk
    }
}

/// Where Claude Code keeps a session.
fn file(env: &TestEnv, name: &str) -> PathBuf {
    env.home().join(format!(".claude/projects/-work/{name}.jsonl"))
}

/// Records of a session of Claude Code, from one on.
fn records(session: &str, numbers: std::ops::Range<u8>) -> String {
    let record = |n: u8| {
        let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
        let parent = n.checked_sub(1).map_or("null".to_owned(), |n| format!("\"u{n}\""));
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/work\",\
             \"sessionId\":\"{session}\",\"version\":\"2.1.0\",\"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\
             \"content\":\"Part {n} of {session}\"}},\"uuid\":\"u{n}\",\"timestamp\":\"2026-01-01T00:00:{n:02}.000Z\"}}\n"
        )
    };
    numbers.map(record).collect()
}

/// Writes a file at once, as agents append a line by one write.
fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let aside = path.with_extension("new");
    fs::write(&aside, text).unwrap();
    fs::rename(aside, path).unwrap();
}

/// Appends to a file.
fn append(path: &Path, text: &str) {
    use std::io::Write as _;
    fs::File::options().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn what_agents_write_is_taken_in_and_what_they_take_away_is_kept() {
    let env = TestEnv::new();
    let boat = file(&env, "boat");
    write(&boat, &records("boat", 0..2));
    for args in [&[][..], &["--poll"]] {
        let mut watch = Watching::begin(&env, args);
        symlink("..", boat.with_file_name("loop")).unwrap();
        append(&boat, &records("boat", 2..4));
        watch.until("boat", "grown", 2);
        // A session in a folder that comes, and in the home of an agent that comes.
        let other = env.home().join(".claude/projects/-other/deep/boat2.jsonl");
        write(&other, &records("boat2", 0..3));
        watch.until("boat2", "new", 3);
        let pi = env.home().join(".pi/agent/sessions/--work--/p.jsonl");
        write(&pi, &fs::read_to_string(example("pi-boat.jsonl")).unwrap());
        assert_eq!(watch.next()["agent"], "pi");
        // Rewritten, shortened, deleted.
        write(&boat, &records("boat", 0..4).replace("Part", "Piece"));
        watch.until("boat", "rewritten", 4);
        let first = records("boat", 0..1).replace("Part", "Piece").len() as u64;
        fs::File::options().write(true).open(&boat).unwrap().set_len(first).unwrap();
        watch.until("boat", "rewritten", 0);
        fs::remove_dir_all(other.parent().unwrap()).unwrap();
        let gone = watch.until("boat2", "deleted", 0);
        assert_eq!(gone["path"], other.canonicalize().unwrap_or(other.clone()).to_str().unwrap());
        assert_eq!(watch.end(Signal::TERM), Some(0));
        let talk = watch.talk();
        assert!(!talk.contains("warning"), "{talk}");
        // Everything is there, also what went.
        let graph = env.run(&["log", "-s", "boat2"]).success().stdout;
        assert!(graph.contains("Part 2 of boat2"), "{graph}");
        assert!(env.run(&["verify"]).success().stdout.contains("no damage"));
        let _ = fs::remove_dir_all(env.home().join(".local/share/undertext"));
        fs::remove_dir_all(env.home().join(".pi")).unwrap();
        fs::remove_file(boat.with_file_name("loop")).unwrap();
        write(&boat, &records("boat", 0..2));
    }
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

#[test]
fn a_person_reads_a_line_a_change() {
    let env = TestEnv::new();
    let boat = file(&env, "boat");
    write(&boat, &records("boat", 0..2));
    let mut watch = Watching::spawn(env.command().arg("watch"));
    let line = || watch.lines.recv_timeout(PATIENCE).unwrap();
    assert_snapshot!(line(), @"Imported 1 session (1 new): 2 new entries, 472 B");
    // The line may be there before it watches; then the session is taken in by the next look.
    append(&boat, &records("boat", 2..3));
    assert_snapshot!(line(), @"claude  boat  1 new entry  Part 0 of boat");
    // A tool's long answer, which no record names yet.
    let answer = boat.with_extension("").join("tool-results/answer.txt");
    fs::create_dir_all(answer.parent().unwrap()).unwrap();
    fs::write(answer.with_extension("part"), "said").unwrap();
    fs::rename(answer.with_extension("part"), &answer).unwrap();
    assert_snapshot!(line(), @"claude  boat  1 new file stored alongside  Part 0 of boat");
    fs::remove_file(&boat).unwrap();
    assert_snapshot!(line(), @"claude  boat  deleted; the store has all the content  Part 0 of boat");
    assert_eq!(watch.end(Signal::INT), Some(0));
    assert_snapshot!(watch.talk(), @"
    Claude Code: ~/.claude/projects
    Watching 1 folder; ctrl-C ends it
    ");
}

#[test]
fn what_an_agent_keeps_away_from_a_session_is_taken_in_when_the_session_says_no_more() {
    let env = TestEnv::new();
    write(&file(&env, "boat"), &records("boat", 0..2));
    let watching = Watching::begin(&env, &[]);
    for (name, id) in [("file-history", "boat"), ("image-cache", "boat")] {
        let kept = env.home().join(".claude").join(name).join(id).join("a@v1");
        // What belongs to no session, or looks like one, brings none in.
        let strange = env.home().join(".claude").join(name).join("strange/b.jsonl");
        write(&strange, &records("strange", 0..2));
        let aside = env.home().join("aside");
        fs::write(&aside, name).unwrap();
        fs::create_dir_all(kept.parent().unwrap()).unwrap();
        fs::rename(aside, &kept).unwrap();
        while watching.until("boat", "grown", 0)["sidecars"] != 1 {}
        fs::remove_file(&kept).unwrap();
        env.run(&["restore", "boat"]).success();
        assert_eq!(fs::read_to_string(&kept).unwrap(), name);
    }
    let sessions = env.run(&["sessions", "--json"]).success().stdout;
    assert_eq!(sessions.lines().count(), 1, "{sessions}");
}

#[test]
fn where_the_system_tells_of_no_changes_files_are_looked_at_again_and_again() {
    let Some(namespaces) = needs::namespaces() else { return };
    let env = TestEnv::new();
    let boat = file(&env, "boat");
    write(&boat, &records("boat", 0..2));
    fs::write(env.project().join("more"), records("boat", 2..4)).unwrap();
    let (home, boat) = (env.home().display(), boat.display());
    let program = env!("CARGO_BIN_EXE_undertext");
    let script = format!(
        "echo 0 > /proc/sys/user/max_inotify_watches
         wait_for() {{ n=0; until grep -q $1 out; do n=$((n + 1)); test $n -lt 3000; sleep 0.1; done; }}
         cd {home}/project; export HOME={home}
         {program} watch --json > out 2> talk & watch=$!
         wait_for '\"watching\"'; cat more >> {boat}; wait_for '\"watched\"'
         kill $watch; wait $watch; tail -n 1 out; cat talk"
    );
    let told = namespaces.run(&script, env.home());
    let (line, talk) = told.split_once('\n').unwrap();
    assert_eq!((&json(line)["change"], &json(line)["entries"]), (&"grown".into(), &2.into()));
    assert!(talk.contains("the system does not report all changes"), "{talk}");
}

#[test]
fn one_program_watches_for_a_store() {
    let env = TestEnv::new();
    let mut watch = Watching::begin(&env, &[]);
    let second = env.run(&["watch"]);
    assert_eq!((second.code(), second.stdout.as_str()), (Some(3), ""));
    let words = "error: another program is already running `watch` for the store at $HOME/.local/share/undertext: ";
    assert!(second.stderr.starts_with(words), "{second}");
    // Another store has a watch of its own, and other commands go on meanwhile.
    let other = Watching::begin(&env, &["--store", "other"]);
    write(&file(&env, "boat"), &records("boat", 0..2));
    watch.until("boat", "new", 2);
    other.until("boat", "new", 2);
    let _ = env.run(&["checkpoint", "-s", "boat"]).success();
    // A kill leaves nothing that hinders the next one.
    assert_eq!(watch.end(Signal::KILL), None);
    append(&file(&env, "boat"), &records("boat", 2..4));
    other.until("boat", "grown", 2);
    drop(other);
    let mut watch = Watching::begin(&env, &[]);
    append(&file(&env, "boat"), &records("boat", 4..5));
    watch.until("boat", "grown", 1);
    assert_eq!(watch.end(Signal::HUP), Some(0));
}

#[test]
fn one_program_watches_for_a_store_that_was_made_again() {
    let env = TestEnv::new();
    let mut first = Watching::begin(&env, &[]);
    write(&file(&env, "boat"), &records("boat", 0..2));
    first.until("boat", "new", 2);
    let away = |name| fs::rename(super::store(&env), env.home().join(name)).unwrap();
    away("one");
    // Alone it goes on with the new one, and is the only one.
    append(&file(&env, "boat"), &records("boat", 2..3));
    first.until("boat", "new", 3);
    assert_eq!(env.run(&["watch"]).code(), Some(3));
    // Where another one was there first, it waits for that one.
    away("two");
    let second = Watching::begin(&env, &[]);
    append(&file(&env, "boat"), &records("boat", 3..4));
    second.until("boat", "grown", 1);
    let talk = BufReader::new(first.stderr.take().unwrap()).lines();
    let (send, told) = mpsc::channel();
    thread::spawn(move || {
        talk.map_while(Result::ok).map_while(|line| send.send(line).ok()).for_each(drop);
    });
    let is_told = |line: &str| line.contains("another program is already running `watch`");
    while !is_told(&told.recv_timeout(PATIENCE).unwrap()) {}
    drop(second);
    append(&file(&env, "boat"), &records("boat", 4..5));
    first.until("boat", "grown", 1);
    assert_eq!(env.run(&["watch"]).code(), Some(3));
}

#[test]
fn a_file_that_is_emptied_is_told_of() {
    let env = TestEnv::new();
    let watch = Watching::begin(&env, &[]);
    let boat = file(&env, "boat");
    write(&boat, &records("boat", 0..2));
    watch.until("boat", "new", 2);
    fs::write(&boat, "").unwrap();
    let told = watch.until("boat", "emptied", 0);
    assert_eq!(told["path"], boat.canonicalize().unwrap().to_str().unwrap());
    write(&boat, &records("boat", 0..3));
    loop {
        let next = watch.next();
        if next["change"] != "emptied" {
            assert_eq!(next["entries"], 1, "{next}");
            break;
        }
    }
}

#[test]
fn kills_at_any_time_lose_nothing() {
    let env = TestEnv::new();
    let boat = file(&env, "boat");
    write(&boat, &records("boat", 0..1));
    let rounds = needs::rounds(4, 12);
    for n in 1..rounds {
        let mut watch = Watching::begin(&env, &[]);
        append(&boat, &records("boat", n..n + 1));
        thread::sleep(Duration::from_millis(u64::from(n) * 20));
        watch.end(Signal::KILL);
    }
    let mut watch = Watching::begin(&env, &[]);
    assert_eq!(watch.end(Signal::TERM), Some(0));
    assert!(env.run(&["verify"]).success().stdout.contains("no damage"));
    fs::remove_file(&boat).unwrap();
    assert_eq!(env.run(&["export", "-q", "boat"]).success().stdout, records("boat", 0..rounds));
}

#[test]
fn a_closed_pipe_ends_it() {
    let env = TestEnv::new();
    let mut child = env.command().arg("watch").stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_cannot_be_taken_in_is_tried_again() {
    let env = TestEnv::new();
    let mut watch = Watching::begin(&env, &["--wait", "0"]);
    let store = super::store(&env);
    let lock = store.join("lock");
    let lock = fs::File::options().write(true).create(true).truncate(false).open(lock).unwrap();
    lock.lock().unwrap();
    write(&file(&env, "boat"), &records("boat", 0..2));
    let mut talk = BufReader::new(watch.stderr.take().unwrap()).lines().map(Result::unwrap);
    let told = talk.find(|line| line.starts_with("warning: ")).unwrap();
    assert!(told.ends_with("trying again"), "{told}");
    lock.unlock().unwrap();
    watch.until("boat", "new", 2);
    assert_eq!(talk.next().as_deref(), Some("Importing works again"));
    // A store that somebody takes away comes back with what is written from then on.
    fs::remove_dir_all(&store).unwrap();
    append(&file(&env, "boat"), &records("boat", 2..3));
    watch.until("boat", "new", 3);
}

#[test]
fn settings_hold_from_the_moment_they_are_written() {
    let env = TestEnv::new();
    let watch = Watching::begin(&env, &[]);
    write(&file(&env, "boat"), &records("boat", 0..2));
    watch.until("boat", "new", 2);
    let settings = env.home().join(".config/undertext/config.toml");
    write(&settings, "[exclude]\nfolders = [\"/work\"]\n");
    append(&file(&env, "boat"), &records("boat", 2..3));
    write(&file(&env, "boat3"), &records("boat3", 0..2));
    let elsewhere = records("boat4", 0..2).replace("\"/work\"", "\"/elsewhere\"");
    write(&file(&env, "boat4"), &elsewhere);
    watch.until("boat4", "new", 2);
    assert_eq!(env.run(&["sessions", "--json"]).success().stdout.lines().count(), 2);
}

/// The title and the prompt of a session are there a moment before its folder is.
#[test]
fn what_is_said_before_its_folder_is_known_waits() {
    let env = TestEnv::new();
    write(&env.home().join(".config/undertext/config.toml"), "[exclude]\nfolders = [\"/work\"]\n");
    let watch = Watching::begin(&env, &[]);
    let prompt = |session: &str| {
        format!(
            "{{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"sessionId\":\"{session}\",\
             \"timestamp\":\"2026-01-01T00:00:00.000Z\",\"content\":\"Part 0\"}}\n"
        )
    };
    write(&file(&env, "boat"), &prompt("boat"));
    write(&file(&env, "boat2"), &prompt("boat2"));
    // One that is taken in tells that the others were seen.
    let elsewhere = |name: &str| records(name, 0..2).replace("\"/work\"", "\"/elsewhere\"");
    write(&file(&env, "boat3"), &elsewhere("boat3"));
    watch.until("boat3", "new", 2);
    assert_eq!(env.run(&["sessions", "--json"]).success().stdout.lines().count(), 1);
    append(&file(&env, "boat"), &records("boat", 0..2));
    append(&file(&env, "boat2"), &elsewhere("boat2"));
    watch.until("boat2", "new", 3);
    assert_eq!(env.run(&["sessions", "--json"]).success().stdout.lines().count(), 2);
}

/// nohup has a program ignore the end of its terminal; a watch listened to it nevertheless, and ended.
#[test]
fn a_signal_that_is_ignored_from_the_start_ends_nothing() {
    let env = TestEnv::new();
    let boat = file(&env, "boat");
    write(&boat, &records("boat", 0..2));
    let line = "trap '' HUP; exec undertext watch --json";
    let mut watch = Watching::spawn(&mut env.shell("sh", line));
    while watch.next()["type"] != "watching" {}
    kill_process(Pid::from_child(&watch.child), Signal::HUP).unwrap();
    append(&boat, &records("boat", 2..3));
    watch.until("boat", "grown", 1);
    assert_eq!(watch.end(Signal::TERM), Some(0));
}
