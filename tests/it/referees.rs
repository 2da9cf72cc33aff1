//! The agents themselves resume what undertext wrote into their files: reverted, undone, and brought to a branch.
//!
//! `UNDERTEXT_REFEREES` names a folder of programs that run an agent on a file and print what it sent to a model; the agents
//! are no part of the project, and without them there is nothing to compare. A table is printed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use undertext::{
    context::cut::Limit,
    model::Timestamp,
    ops::{self, Archive, Bound, Compacting, Machine, Manner, OpsError, Session, Workspace},
    store::Access,
    wire::{Claude, Codex, Format, Graph},
};

use crate::resume::{Difference, compare, corpus, files, from_claude_code, from_codex, peek, view};

#[expect(clippy::disallowed_methods, reason = "a test is told where the referees lie")]
fn referee(program: &str) -> Option<PathBuf> {
    std::env::var_os("UNDERTEXT_REFEREES").map(|folder| PathBuf::from(folder).join(program))
}

/// A copy of a session file in a folder of its own, attached to a store.
struct Case {
    folder: tempfile::TempDir,
    file: PathBuf,
    archive: Archive,
    session: Session,
    referee: PathBuf,
    difference: Difference,
    table: Vec<String>,
}

impl Case {
    fn new(path: &Path, referee: PathBuf, difference: Difference) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(path.file_name().unwrap());
        fs::copy(path, &file).unwrap();
        let store = folder.path().join("store");
        let mut archive = Archive::open(&store, Access::Write, Box::new(Machine)).unwrap();
        let (session, _) = ops::take_up(&mut archive, &file).unwrap();
        Self { folder, file, archive, session, referee, difference, table: Vec::new() }
    }

    /// Compares what the agent resumes with what the file says, and that with what the store says.
    fn check(&mut self, step: &str) {
        let output = Command::new(&self.referee).arg(&self.file).output().unwrap();
        let truth = self.folder.path().join("truth");
        fs::write(&truth, &output.stdout).unwrap();
        let (there, session) = peek(&self.file).unwrap();
        let graph = view(&there, &session);
        let mut found = if output.status.success() {
            compare(self.session.format, &graph, &truth, self.difference).0
        } else {
            Some(format!("refused: {}", String::from_utf8_lossy(&output.stderr)))
        };
        let words = |archive: &Archive, session: &Session| {
            let position = archive.store().tip(session.key).unwrap().position.unwrap();
            let graph = view(archive, session);
            let path = position
                .head
                .map(|head| session.format.path(&graph, head, usize::MAX).unwrap().entries);
            let context = session.format.context(&graph, &path.unwrap_or_default()).unwrap();
            let said = |entry: u64| ops::messages(archive, session, entry).unwrap();
            let said = context.into_iter().flat_map(said);
            said.map(|message| (message.role, message.blocks)).collect::<Vec<_>>()
        };
        if words(&there, &session) != words(&self.archive, &self.session) {
            found.get_or_insert_with(|| "the store shows another path".to_owned());
        }
        let name = self.file.file_name().unwrap().to_string_lossy();
        self.table.push(format!("{name:50} {step:8} {}", found.as_deref().unwrap_or("agrees")));
    }

    /// Returns the name of an entry's record.
    fn record_id(&self, entry: u64) -> String {
        let line = view(&self.archive, &self.session).line(entry).unwrap();
        let record: Value = serde_json::from_slice(&line).unwrap();
        record["id"]
            .as_str()
            .unwrap_or_else(|| panic!("{record} in {}", self.file.display()))
            .to_owned()
    }

    /// Cuts what a small window has no room for, and restores it.
    fn cut(&mut self) {
        let bound = Bound { limit: Limit::of_window(8_000), window: Some(8_000) };
        let done = match ops::truncate(&mut self.archive, &self.session, bound) {
            Ok(done) => done,
            Err(error) => {
                self.table.push(format!("{:50} cut      {error}", self.file.display()));
                return;
            }
        };
        if done.operation.is_none() {
            return;
        }
        assert_eq!(done.written.as_deref(), Some(self.file.as_path()));
        self.check("cut");
        ops::undo(&mut self.archive, &self.session, None).unwrap();
        self.check("restored");
    }

    /// Compacts the session, and restores it.
    fn compact(&mut self) {
        let asked = crate::compact::asked(200_000);
        let wanted = Compacting::of(&asked, &|| Timestamp(0));
        let (archive, nowhere) = (&mut self.archive, Workspace::default());
        let done = match ops::compact(archive, &self.session, &nowhere, &wanted, &mut |_| ()) {
            Ok(done) => done,
            Err(error) => {
                self.table.push(format!("{:50} compacted {error}", self.file.display()));
                return;
            }
        };
        if done.operation.is_none() {
            return;
        }
        self.check("compacted");
        ops::undo(&mut self.archive, &self.session, None).unwrap();
        self.check("back");
    }

    fn play(&mut self) {
        let nowhere = Workspace::default();
        let checkpoints = ops::checkpoints(&self.archive, &self.session).unwrap();
        let Some(middle) = checkpoints.get(checkpoints.len() / 2) else { return };
        let middle = middle.checkpoint.n.to_string();
        let note = Some("Look at the tests first.");
        let tell = |step: &str, error: &OpsError, table: &mut Vec<String>| {
            table.push(format!("{:50} {step:8} {error}", self.file.display()));
        };
        match ops::revert(&mut self.archive, &self.session, &nowhere, &middle, note) {
            Ok(_) => self.check("reverted"),
            Err(error) => return tell("reverted", &error, &mut self.table),
        }
        ops::undo(&mut self.archive, &self.session, None).unwrap();
        self.check("undone");
        let entry = ["HEAD~9", "HEAD~3", "HEAD~1"]
            .into_iter()
            .find_map(|entry| ops::find_entry(&self.archive, &self.session, entry).ok());
        let Some(entry) = entry else { return };
        ops::branch(&mut self.archive, &self.session, "try", Some(&entry)).unwrap();
        match ops::switch(&mut self.archive, &self.session, "try") {
            Ok(_) => self.check("branched"),
            Err(error) => self.table.push(format!("{:50} branched {error}", self.file.display())),
        }
    }
}

#[expect(clippy::print_stdout, reason = "the table is for whoever runs the test")]
fn check(format: &'static dyn Format, folders: &[&str], program: &str, difference: Difference) {
    let Some(referee) = referee(program) else { return };
    let mut table = Vec::new();
    for truth in folders.iter().flat_map(|folder| files(&format!("resume/{folder}"))) {
        let folder = truth.parent().unwrap().file_name().unwrap();
        let path = corpus().unwrap().join(folder).join(truth.file_name().unwrap());
        let mut case = Case::new(&path, referee.clone(), difference);
        assert_eq!(case.session.format.name(), format.name());
        case.cut();
        case.compact();
        case.play();
        table.append(&mut case.table);
    }
    let wrong = table.iter().filter(|line| !line.ends_with("agrees")).count();
    let table = table.join("\n");
    println!("{table}");
    assert_eq!(wrong, 0, "\n{table}");
}

#[test]
fn claude_code_resumes_what_was_written_into_its_files() {
    check(&Claude, &["claude", "claude-shapes"], "claude-resume", from_claude_code);
}

#[test]
fn codex_resumes_what_was_written_into_its_files() {
    check(&Codex, &["codex", "codex-shapes"], "codex-resume", from_codex);
}

#[expect(clippy::disallowed_methods, reason = "a test is told where the agents lie")]
fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from)
}

/// Returns what a referee prints of a file, as JSON.
fn asked(mut command: Command, file: &Path, arguments: &[&str]) -> Value {
    let output = command.arg(file).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&said)
        .unwrap_or_else(|_| panic!("{said}{}", String::from_utf8_lossy(&output.stderr)))
}

/// `PI` names the folder in which pi is installed.
#[test]
fn pi_resumes_what_was_written_into_its_files() {
    let (Some(probe), Some(pi)) = (referee("pi_probe.mjs"), named("PI")) else { return };
    let ask = |file: &Path, arguments: &[&str]| {
        let mut command = Command::new("node");
        command.arg(&probe).arg("--pi").arg(&pi);
        asked(command, file, arguments)["context"].clone()
    };
    for path in files("pi") {
        // What pi hangs on, or mends on its own as it opens it, is no judge.
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if [
            "dup-id",
            "corrupt-mid",
            "noheader",
            "two-headers",
            "torn-tail",
            "v1",
            "large-session",
            "v2hook",
            "cycle-self",
        ]
        .contains(&name.as_str())
        {
            continue;
        }
        let mut case = Case::new(&path, probe.clone(), from_claude_code);
        let nowhere = Workspace::default();
        let before = ask(&case.file, &["info"]);
        let checkpoints = ops::checkpoints(&case.archive, &case.session).unwrap();
        let Some(middle) = checkpoints.get(checkpoints.len() / 2) else { continue };
        let place = middle.checkpoint.place;
        let parent = match place.head {
            Some(head) => case.record_id(head),
            None => "null".to_owned(),
        };
        let there = ask(&path, &["branch", &parent]);
        let middle = middle.checkpoint.n.to_string();
        ops::revert(&mut case.archive, &case.session, &nowhere, &middle, None).unwrap();
        assert_eq!(ask(&case.file, &["info"])["digest"], there["digest"], "{name}");
        ops::undo(&mut case.archive, &case.session, None).unwrap();
        assert_eq!(ask(&case.file, &["info"])["digest"], before["digest"], "{name}");
        let note = Some("Look at the tests first.");
        ops::revert(&mut case.archive, &case.session, &nowhere, &middle, note).unwrap();
        let noted = ask(&case.file, &["info"])["messages"].as_u64().unwrap();
        assert_eq!(noted, there["messages"].as_u64().unwrap() + 1, "{name}");
        let manner = Manner { rotate: true, ..Manner::default() };
        case.archive.set_manner(manner);
        ops::undo(&mut case.archive, &case.session, None).unwrap();
        assert_eq!(ask(&case.file, &["info"])["digest"], before["digest"], "{name}, rotated");
        let asked = crate::compact::asked(200_000);
        let wanted = Compacting::of(&asked, &|| Timestamp(0));
        let done = ops::compact(&mut case.archive, &case.session, &nowhere, &wanted, &mut |_| ());
        let Ok(done) = done else { continue };
        if done.operation.is_some() {
            let messages = ask(&case.file, &["info"])["messages"].as_u64().unwrap();
            assert_eq!(messages, done.parts.kept.messages as u64 + 1, "{name}, compacted");
            ops::undo(&mut case.archive, &case.session, None).unwrap();
            assert_eq!(ask(&case.file, &["info"])["digest"], before["digest"], "{name}, back");
        }
    }
}

/// `KIMI` names a Python that has Kimi CLI.
#[test]
fn kimi_resumes_what_was_written_into_its_files() {
    let (Some(probe), Some(python)) = (referee("kimi_probe.py"), named("KIMI")) else { return };
    let ask = |file: &Path, arguments: &[&str]| {
        let mut command = Command::new(&python);
        command.arg(&probe);
        asked(command, file, arguments)
    };
    for path in files("kimi").into_iter().filter(|path| path.ends_with("context.jsonl")) {
        let mut case = Case::new(&path, probe.clone(), from_claude_code);
        let nowhere = Workspace::default();
        let history = |case: &Case| ask(&case.file, &["restore", "--history"])["history"].clone();
        let before = history(&case);
        let name = path.display();
        let checkpoints = ops::checkpoints(&case.archive, &case.session).unwrap();
        let own: Vec<&str> = checkpoints.iter().filter_map(|shown| shown.own.as_deref()).collect();
        let last = own.last().unwrap().strip_prefix("kimi:").unwrap();
        // Kimi's own way back, on a copy.
        let copy = case.folder.path().join("copy").join("context.jsonl");
        fs::create_dir(copy.parent().unwrap()).unwrap();
        fs::copy(&path, &copy).unwrap();
        let there = ask(&copy, &["revert", last, "--history"])["history"].clone();
        let wanted = format!("kimi:{last}");
        ops::revert(&mut case.archive, &case.session, &nowhere, &wanted, None).unwrap();
        assert_eq!(history(&case), there, "{name}");
        assert!(case.file.with_file_name("context_1.jsonl").exists(), "{name}");
        ops::undo(&mut case.archive, &case.session, None).unwrap();
        assert_eq!(history(&case), before, "{name}");
        let note = Some("Look at the tests first.");
        ops::revert(&mut case.archive, &case.session, &nowhere, &wanted, note).unwrap();
        let noted = history(&case);
        let (last, rest) = noted.as_array().unwrap().split_last().unwrap();
        assert_eq!(rest, there.as_array().unwrap().as_slice(), "{name}");
        assert!(last.to_string().contains("Look at the tests first."), "{last}");
    }
}
