//! The agents themselves resume what undertext wrote into their files: reverted, undone, and brought to a branch.
//!
//! `UNDERTEXT_REFEREES` names a folder of programs that run an agent on a file and print what it sent to a model; the agents
//! are no part of the project, and without them there is nothing to compare. A table is printed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use undertext::{
    context::cut::Limit,
    ops::{self, Archive, Bound, Machine, OpsError, Session, Workspace},
    store::Access,
    wire::{Claude, Codex, Format},
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
