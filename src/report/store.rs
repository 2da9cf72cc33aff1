//! The store: its size, the findings of a verification, and the problems of its folder.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::shape::{named, path, report, some_path};
use crate::model::hint::Line;
use crate::{
    model::{DATABASE, OperationNumber, SessionName},
    store::{FaultKind, Loss, Sizes},
};

/// The size of the sessions of one format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AgentSizes {
    /// The agent.
    pub agent: String,
    /// The number of sessions.
    pub sessions: u64,
    /// The number of entries.
    pub entries: u64,
    /// The total length of their lines in bytes; a line that several sessions share counts in each.
    pub bytes: u64,
}

report!(AgentSizes, "agent");

report!(Sizes, "store");

/// The size of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionSizes {
    /// The session.
    pub session: String,
    /// The agent.
    pub agent: String,
    /// The number of entries.
    pub entries: u64,
    /// The total length of their lines in bytes.
    pub bytes: u64,
    /// The number of user turns.
    pub turns: u64,
    /// The number of branches.
    pub branches: u64,
    /// The number of checkpoints.
    pub checkpoints: u64,
    /// How many states of the session's files the store has, current ones included.
    pub states: u64,
}

report!(SessionSizes, "session");

/// A bundle of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BackedUp {
    /// The file of the bundle.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// The number of sessions.
    pub sessions: u64,
    /// The number of operations.
    pub operations: u64,
    /// The number of entries.
    pub entries: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
}

report!(BackedUp, "backup");

/// The outcome for a session of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The session is new in the store.
    New,
    /// The store had the beginning of the session.
    Grown,
    /// The store had all of the session.
    Same,
    /// The session was not imported.
    Refused,
}

impl Fate {
    /// Returns its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Grown => "grown",
            Self::Same => "same",
            Self::Refused => "refused",
        }
    }
}

/// A session of a bundle, imported or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Brought {
    /// The session.
    #[serde(flatten)]
    pub session: SessionName,
    /// What happened to the session.
    pub state: Fate,
    /// Why the session was refused, or why its live file was not written; the next change of the session retries that.
    pub why: Option<String>,
    /// How many operations were added.
    pub operations: u64,
    /// How many entries were added.
    pub entries: u64,
}

impl Brought {
    pub(crate) fn new(session: &SessionName, state: Fate, why: Option<String>) -> Self {
        Self { session: session.clone(), state, why, operations: 0, entries: 0 }
    }
}

report!(Brought, "bundled");
named!(Fate);

/// A store that was packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Packed {
    /// The number of lines.
    pub lines: u64,
    /// The uncompressed size of all lines, in bytes.
    pub raw: u64,
    /// The size of the store before, in bytes.
    pub before: u64,
    /// The size of the store after, in bytes.
    pub after: u64,
    /// How many damaged parts were left unchanged.
    pub damaged: u64,
}

report!(Packed, "packed", hints: |it| {
    let verify = || Line::new("verify").to("to see what is damaged");
    (it.damaged > 0).then(verify)
});

/// A finding of a verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether it is `damage` or only a `note`.
    #[serde(rename = "severity", serialize_with = "severity")]
    pub kind: FaultKind,
    /// The affected session, if there is one.
    pub session: Option<String>,
    /// The affected item.
    pub item: String,
    /// The problem.
    pub problem: String,
}

impl Finding {
    /// Returns the finding that a store cannot be read.
    pub fn of_whole_store(problem: String) -> Self {
        Self { kind: FaultKind::Store, session: None, item: DATABASE.to_owned(), problem }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "so a field is handed over")]
fn severity<S: Serializer>(kind: &FaultKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.severity())
}

/// The figures of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Whether nothing is damaged and every file could be read.
    pub ok: bool,
    /// The number of sessions.
    pub sessions: u64,
    /// The number of operations.
    pub operations: u64,
    /// The number of entries.
    pub entries: u64,
    /// The number of findings that are damage.
    pub damaged: u64,
    /// The number of findings that are notes.
    pub notes: u64,
    /// How many of the damaged items are derived rows.
    #[serde(skip)]
    pub outdated: u64,
    /// How many of the damaged items are session files that someone changed; the store itself is intact.
    #[serde(skip)]
    pub files: u64,
    /// How many files cannot be read; there is a note for each.
    pub unread: u64,
    /// How many entries have redacted text.
    pub redacted: u64,
    /// How many entries were lost with a damaged store and could not be recovered; there is a finding for each.
    pub lost: u64,
}

report!(Finding, "finding");

impl Verified {
    /// Returns the figures before anything was found.
    pub(crate) fn sound() -> Self {
        Self { ok: true, ..Self::default() }
    }

    /// Counts a finding.
    pub(crate) fn count(&mut self, kind: FaultKind) {
        self.ok &= !kind.is_damage() && kind != FaultKind::Unread;
        *if kind.is_damage() { &mut self.damaged } else { &mut self.notes } += 1;
        match kind {
            FaultKind::Derived => self.outdated += 1,
            FaultKind::File => self.files += 1,
            FaultKind::Unread => self.unread += 1,
            FaultKind::Lost => self.lost += 1,
            _ => {}
        }
    }
}

report!(Verified, "verified", hints: |it| {
    let again = || Line::new("verify").to("to compare unreadable files, once they can be read");
    if it.damaged > it.outdated + it.files {
        Some(Line::new("doctor").flag("fix").to("to repair what can be repaired"))
    } else {
        let rebuild = || Line::about("store").with("rebuild").to("to rebuild the derived rows from the facts");
        (it.outdated > 0).then(rebuild).or_else(|| (it.unread > 0).then(again))
    }
});

/// A file or folder with a problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ailment {
    /// The file or folder.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// The problem.
    pub problem: String,
    /// How `--fix` solves the problem.
    pub cure: Cure,
    /// Whether the problem was solved.
    pub cured: bool,
}

impl Ailment {
    /// Creates a problem that is not repaired yet.
    pub fn new(path: &Path, problem: impl Into<String>, cure: Cure) -> Self {
        Self { path: path.to_owned(), problem: problem.into(), cure, cured: false }
    }
}

/// How to repair a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cure {
    /// It sets the mode.
    Mode(#[serde(skip)] u32),
    /// It deletes the file, which an interrupted change did not delete.
    Delete,
    /// It repairs the store, and recovers lost lines from the files of its sessions.
    Mend,
    /// You have to solve it yourself.
    #[serde(rename = "manual")]
    Person,
}

report!(Ailment, "ailment");

/// An agent that deletes sessions by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Forgetful {
    /// The agent.
    pub agent: &'static str,
    /// The agent's settings file.
    #[serde(serialize_with = "path")]
    pub settings: PathBuf,
    /// The name of the setting that makes the agent delete old sessions.
    pub field: &'static str,
    /// The value of that setting, in days.
    pub days: u64,
}

report!(Forgetful, "forgetful");

/// A damaged store that was repaired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mended {
    /// The path of the repaired store.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// The folder that keeps the damaged store; `null` if the store itself was intact.
    #[serde(serialize_with = "some_path")]
    pub kept: Option<PathBuf>,
    /// The number of sessions.
    pub sessions: u64,
    /// The number of entries.
    pub entries: u64,
    /// The files from which lines were recovered.
    pub refilled: Vec<Refilled>,
    /// How many changes the store had lost, according to its witness. Files have the records of those changes, not the changes
    /// themselves.
    pub forgotten: u64,
    /// The live files from which lost records were recovered.
    pub taken_back: Vec<TakenBack>,
    /// How many lost entries were imported from agents' files.
    pub imported: u64,
    /// The number of sessions with such entries.
    pub imported_sessions: u64,
    /// What could not be recovered, per session or for the whole store.
    pub lost: Vec<Lost>,
}

/// What a repair could not recover.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// The session, if it is part of one.
    pub session: Option<String>,
    /// What is lost.
    pub item: String,
}

impl From<Loss> for Lost {
    fn from(Loss { session, item }: Loss) -> Self {
        Self { session: session.map(|name| name.id), item }
    }
}

/// A file from which lines of a damaged store were recovered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refilled {
    /// The session.
    pub session: String,
    /// The file.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// The number of recovered lines.
    pub lines: u64,
    /// Whether the file itself, which had been stored whole, was recovered.
    pub whole: bool,
}

/// A live file from which lost records were recovered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TakenBack {
    /// The session.
    pub session: String,
    /// The live file.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// The number of recovered entries.
    pub entries: u64,
    /// The operation that imported them.
    pub operation: OperationNumber,
    /// The branch that preserves the store's state, if the live file does not continue from it.
    pub left: Option<String>,
}

report!(Mended, "mended");

/// The folder of a store that was checked.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Examined<'a> {
    /// Whether no problem remains.
    pub ok: bool,
    /// The folder.
    #[serde(serialize_with = "path")]
    pub path: &'a Path,
    /// The problems found in it.
    #[serde(skip)]
    pub ailments: &'a [Ailment],
    /// The store, if it was repaired.
    #[serde(skip)]
    pub mended: Option<&'a Mended>,
}

impl<'a> Examined<'a> {
    /// Returns the report on a folder with these problems, after this repair.
    pub fn new(path: &'a Path, ailments: &'a [Ailment], mended: Option<&'a Mended>) -> Self {
        let ok = ailments.iter().all(|ailment| ailment.cured)
            && mended.is_none_or(|mended| mended.lost.is_empty() && mended.forgotten == 0);
        Self { ok, path, ailments, mended }
    }
}

report!(Examined<'_>, "examined", hints: |it| {
    let is_curable =
        it.ailments.iter().any(|ailment| !ailment.cured && ailment.cure != Cure::Person);
    let fix = || Line::new("doctor").flag("fix").to("to repair what can be repaired");
    let has_forgotten = it.mended.is_some_and(|mended| mended.forgotten > 0);
    let import = || Line::new("import").to("to import what agents' own files still contain");
    is_curable.then(fix).or_else(|| has_forgotten.then(import))
});
