//! The store: its size, the findings of a verification, and the problems of its folder.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{
    hint::Line,
    shape::{object, path, report},
};
use crate::{
    model::{DATABASE, OperationNumber, SessionName},
    store::{FaultKind, Loss, Sizes},
};

/// The size of the sessions of one format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// The name of the format.
    pub agent: String,
    /// The number of sessions.
    pub sessions: u64,
    /// The number of entries.
    pub entries: u64,
    /// The total length of their lines in bytes; a line that several sessions share counts in each.
    pub bytes: u64,
}

report!(Stats, "agent");

report!(Sizes, "store", |it| {
    lines: it.lines,
    raw: it.raw,
    texts: it.texts,
    kept: it.kept,
    stored: it.stored,
});

/// The size of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionStats {
    /// The agent's id of the session.
    pub session: String,
    /// The name of its format.
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
    /// The number of generations of its files.
    pub states: u64,
}

report!(SessionStats, "session");

/// A bundle of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BackedUp {
    /// Its file.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The session is new in the store.
    New,
    /// The store had the beginning of it.
    Grown,
    /// The store had all of it.
    Same,
    /// It was not imported, for this reason.
    Refused(String),
}

impl Fate {
    /// Returns its name in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Grown => "grown",
            Self::Same => "same",
            Self::Refused(_) => "refused",
        }
    }
}

/// A session of a bundle, imported or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brought {
    /// The session.
    pub session: SessionName,
    /// The outcome.
    pub fate: Fate,
    /// The number of new operations.
    pub operations: u64,
    /// The number of new entries.
    pub entries: u64,
    /// Why its live file could not be written; the next change of the session retries.
    pub unwritten: Option<String>,
}

impl Brought {
    pub(crate) fn new(session: &SessionName, fate: Fate) -> Self {
        let (operations, entries, unwritten) = (0, 0, None);
        Self { session: session.clone(), fate, operations, entries, unwritten }
    }
}

report!(Brought, "bundled", |it| {
    session: it.session.id,
    agent: it.session.format,
    state: it.fate.as_str(),
    why: match &it.fate {
        Fate::Refused(why) => Some(why),
        _ => it.unwritten.as_ref(),
    },
    operations: it.operations,
    entries: it.entries,
});

/// A store that was packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The size before.
    pub before: Sizes,
    /// The size after.
    pub after: Sizes,
    /// How many of its parts are damaged; they were not repacked.
    pub damaged: u64,
}

report!(Packed, "packed", |it| {
    lines: it.after.lines,
    raw: it.after.raw,
    before: it.before.stored,
    after: it.after.stored,
    damaged: it.damaged,
}, hints: |it| {
    let verify = || Line::new("verify").to("to see what is damaged");
    (it.damaged > 0).then(verify)
});

/// A finding of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
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

    /// Returns its severity.
    pub fn severity(&self) -> &'static str {
        if self.kind.is_damage() { "damage" } else { "note" }
    }
}

/// The figures of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
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
    pub outdated: u64,
    /// The number of entries whose lines were redacted. The entries keep their ids.
    pub redacted: u64,
    /// How many of the damaged items are session files that someone changed; the store itself is intact.
    pub files: u64,
    /// The number of files that cannot be read and so could not be checked.
    pub unread: u64,
    /// The number of entries that were lost when the store was damaged and that the repair could not recover.
    pub lost: u64,
}

report!(Finding, "finding", |it| {
    severity: it.severity(),
    session: it.session,
    item: it.item,
    problem: it.problem,
});

impl Verified {
    /// Counts a finding.
    pub(crate) fn count(&mut self, kind: FaultKind) {
        *if kind.is_damage() { &mut self.damaged } else { &mut self.notes } += 1;
        match kind {
            FaultKind::Derived => self.outdated += 1,
            FaultKind::File => self.files += 1,
            FaultKind::Unread => self.unread += 1,
            FaultKind::Lost => self.lost += 1,
            _ => {}
        }
    }

    /// Returns true if nothing is damaged and everything was checked.
    pub fn is_ok(&self) -> bool {
        self.damaged == 0 && self.unread == 0
    }
}

report!(Verified, "verified", |it| {
    ok: it.is_ok(),
    sessions: it.sessions,
    operations: it.operations,
    entries: it.entries,
    damaged: it.damaged,
    notes: it.notes,
    unread: it.unread,
    redacted: it.redacted,
    lost: it.lost,
}, hints: |it| {
    let again = || Line::new("verify").to("to compare unreadable files, once they can be read");
    if it.damaged > it.outdated + it.files {
        Some(Line::new("doctor").flag("fix").to("to repair what can be repaired"))
    } else {
        let rebuild = || Line::about("store").with("rebuild").to("to rebuild the derived rows from the facts");
        (it.outdated > 0).then(rebuild).or_else(|| (it.unread > 0).then(again))
    }
});

/// A file or folder with a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ailment {
    /// The file or folder.
    pub path: PathBuf,
    /// The problem.
    pub problem: String,
    /// The repair that `doctor` can do.
    pub cure: Cure,
    /// Whether the repair was done.
    pub cured: bool,
}

impl Ailment {
    /// Creates a problem that is not repaired yet.
    pub fn new(path: &Path, problem: impl Into<String>, cure: Cure) -> Self {
        Self { path: path.to_owned(), problem: problem.into(), cure, cured: false }
    }
}

/// How to repair a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cure {
    /// Set this mode.
    Mode(u32),
    /// Delete the file: an interrupted change left it behind.
    Delete,
    /// Salvage the store, and recover lost lines from the files of its sessions.
    Mend,
    /// A person has to fix it.
    Person,
}

impl Cure {
    /// Returns its name in JSON.
    fn as_str(self) -> &'static str {
        match self {
            Self::Mode(_) => "mode",
            Self::Delete => "delete",
            Self::Mend => "mend",
            Self::Person => "manual",
        }
    }
}

report!(Ailment, "ailment", |it| {
    path: it.path.to_string_lossy(),
    problem: it.problem,
    cure: it.cure.as_str(),
    cured: it.cured,
});

/// An agent that deletes sessions by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Forgetful {
    /// The agent.
    pub agent: &'static str,
    /// Its settings file.
    #[serde(serialize_with = "path")]
    pub settings: PathBuf,
    /// The setting for how many days it keeps a session.
    pub field: &'static str,
    /// The number of days.
    pub days: u64,
}

report!(Forgetful, "forgetful");

/// A damaged store that was repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// The path of the repaired store.
    pub path: PathBuf,
    /// The folder that preserves the damaged store; none if the store itself was intact.
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
    pub lost: Vec<Loss>,
}

/// A file from which lines of a damaged store were recovered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refilled {
    /// The session.
    pub session: String,
    /// The file.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// The number of lines.
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

object!(Loss, |it| { session: it.session.as_ref().map(|name| &name.id), item: it.item });

report!(Mended, "mended", |it| {
    path: it.path.to_string_lossy(),
    kept: it.kept.as_ref().map(|kept| kept.to_string_lossy()),
    sessions: it.sessions,
    entries: it.entries,
    refilled: it.refilled,
    forgotten: it.forgotten,
    taken_back: it.taken_back,
    imported: it.imported,
    imported_sessions: it.imported_sessions,
    lost: it.lost,
});

/// The folder of a store that was checked.
#[derive(Clone, Copy, Debug)]
pub struct Examined<'a> {
    /// The folder.
    pub path: &'a Path,
    /// The problems found in it.
    pub ailments: &'a [Ailment],
    /// The store, if it was repaired.
    pub mended: Option<&'a Mended>,
}

impl Examined<'_> {
    /// Returns true if no problem remains.
    pub fn is_ok(&self) -> bool {
        self.ailments.iter().all(|ailment| ailment.cured)
            && self.mended.is_none_or(|mended| mended.lost.is_empty() && mended.forgotten == 0)
    }
}

report!(Examined<'_>, "examined", |it| {
    ok: it.is_ok(),
    path: it.path.to_string_lossy(),
}, hints: |it| {
    let is_curable =
        it.ailments.iter().any(|ailment| !ailment.cured && ailment.cure != Cure::Person);
    let fix = || Line::new("doctor").flag("fix").to("to repair what can be repaired");
    let has_forgotten = it.mended.is_some_and(|mended| mended.forgotten > 0);
    let import = || Line::new("import").to("to import what agents' own files still contain");
    is_curable.then(fix).or_else(|| has_forgotten.then(import))
});
