//! Commands as transcripts, a file for each or for those that belong together.

mod again;
mod append;
mod attach;
mod audit;
mod backup;
mod branch;
mod browse;
mod calls;
mod checkpoint;
mod claude;
mod compact;
mod completions;
mod context;
mod current;
mod cut;
mod damage;
mod diff;
mod excluded;
mod export;
mod faults;
mod follow;
mod graph;
mod hints;
mod hits;
mod holders;
mod hook;
mod import;
mod indexed;
mod later;
mod log;
mod mend;
mod new;
mod page;
mod passage;
mod pending;
mod picker;
mod places;
mod pointed;
mod preview;
mod redact;
mod restore;
mod revert;
mod screens;
mod search;
mod secrets;
mod serve;
mod sessions;
mod setup;
mod show;
mod sidecars;
mod so;
mod stats;
mod status;
mod strange;
mod summaries;
mod tools;
mod trust;
mod undo;
mod unfinished;
mod watch;
mod wishes;
mod writers;
mod wrong;

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode};
use serde_json::Value;
use undertext::model::Timestamp;
use undertext::store::Access;
use undertext::verbs::{self, Ambient, Archive, Layers, Session, Workspace};
use undertext::wire::{Draft, Speaker};
use uuid::Uuid;

use crate::env::{CommandOutput, TestEnv};

/// Begins a session of two turns and returns its id.
fn conversation(env: &TestEnv) -> String {
    let made = json(&env.run(&["new", "--json"]).success().stdout);
    for (role, text) in [
        ("user", "Why does the build fail?"),
        ("assistant", "A symbol is missing."),
        ("user", "Then mend it."),
        ("assistant", "Done."),
    ] {
        env.run(&["append", "-q", "--role", role, text]).success();
    }
    made["session"].as_str().unwrap().to_owned()
}

/// Returns the one JSON line of an output.
#[track_caller]
fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

/// Returns the id of the entry that stands so many before the last one of the newest session.
fn back(env: &TestEnv, n: usize) -> String {
    let log = env.run(&["log", "--json"]).success().stdout;
    json(log.lines().rev().nth(n).unwrap())["entry"].as_str().unwrap().to_owned()
}

/// Returns the number of a session's newest operation.
fn newest_operation(env: &TestEnv, session: &str) -> String {
    let newest = env.run(&["operations", "-n", "1", "--json", "-s", session]).success();
    json(&newest.stdout)["operation"].to_string()
}

/// Returns the folder of the store.
fn store(env: &TestEnv) -> PathBuf {
    env.home().join(".local/share/undertext")
}

/// Returns the bytes of a session's live file.
fn live(env: &TestEnv, session: &str) -> Vec<u8> {
    fs::read(live_path(env, session)).unwrap()
}

fn live_path(env: &TestEnv, session: &str) -> PathBuf {
    store(env).join("transcripts").join(format!("{session}.jsonl"))
}

/// Makes a pipe, which keeps whoever opens it waiting.
fn pipe(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// Returns a machine whose project holds the example files.
fn with_examples() -> TestEnv {
    let env = TestEnv::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for name in ["native-rewind.jsonl", "native-tools.jsonl"] {
        fs::copy(examples.join(name), env.project().join(name)).unwrap();
    }
    env
}

/// A session in the store of a machine, changed through the library.
struct Stored {
    env: TestEnv,
    archive: Archive,
    session: Session,
    workspace: Workspace,
    live: PathBuf,
}

/// Time and chance that repeat.
struct Ticking(u32);

impl Ambient for Ticking {
    fn now(&mut self) -> Timestamp {
        self.0 += 1;
        Timestamp(981_173_106_000 + i64::from(self.0) * 1000)
    }

    fn uuid(&mut self) -> Uuid {
        self.0 += 1;
        Uuid::from_u128(u128::from(self.0) << 96)
    }

    /// Does not tick, so that words change no time.
    fn salt(&mut self) -> [u8; 16] {
        u128::from(self.0).to_be_bytes()
    }
}

impl Stored {
    /// Makes an empty session that works in the project.
    fn new() -> Self {
        let env = TestEnv::new();
        let root = env.home().join(".local/share/undertext");
        let archive = Archive::open(&root, Access::Brief, Box::new(Ticking(0))).unwrap();
        let workspace = verbs::workspace(&env.project().canonicalize().unwrap());
        let layers = Layers { os: "linux".to_owned(), ..Layers::default() };
        let created = verbs::new(&archive, &layers, &workspace).unwrap();
        let live = created.live.unwrap();
        Self { env, archive, session: created.session, workspace, live }
    }

    /// Makes a session with a turn that was left by a revert and one that goes on from there.
    fn reverted() -> Self {
        let mut stored = Self::new();
        stored.say(Speaker::User, "Paint the boat.");
        stored.say(Speaker::Assistant, "Which colour?");
        verbs::checkpoint(&stored.archive.at(&stored.session).unwrap(), Some("before colours"))
            .unwrap();
        stored.say(Speaker::User, "Red.");
        stored.say(Speaker::Assistant, "Red it is.");
        let Self { archive, session, workspace, .. } = &mut stored;
        let message = "Red paint is sold out.\n\nTry the other shop.";
        verbs::revert(&archive.at(session).unwrap(), workspace, "1", Some(message)).unwrap();
        stored.say(Speaker::Assistant, "Then blue.");
        stored
    }

    fn say(&mut self, speaker: Speaker, text: &str) {
        let draft = Draft::Message(speaker, text.to_owned());
        verbs::append(&self.archive.at(&self.session).unwrap(), &self.workspace, &[draft]).unwrap();
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        let mut output = self.env.run(args);
        (output.stdout, output.stderr) = numbered(&output.stdout, &output.stderr);
        output
    }
}

/// Replaces short ids, which cover the folder's path, by numbers in the order in which they appear.
fn numbered(stdout: &str, stderr: &str) -> (String, String) {
    let mut seen: Vec<String> = Vec::new();
    let mut replace = |text: &str| {
        let is_id = |word: &str| {
            word.len() == 8 && word.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()).map(|word| {
            let end = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).len();
            let (id, rest) = word.split_at(end);
            if !is_id(id) {
                return word.to_owned();
            }
            let n = seen.iter().position(|known| known == id).unwrap_or_else(|| {
                seen.push(id.to_owned());
                seen.len() - 1
            });
            format!("id-{n:05}{rest}")
        });
        words.collect::<String>()
    };
    (replace(stdout), replace(stderr))
}
