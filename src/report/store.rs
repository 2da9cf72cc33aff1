//! The store: how much it holds, the findings of a verification, and the ailments of its folder.

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

/// How much the sessions of one format hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// The name of the format.
    pub agent: String,
    /// How many sessions there are.
    pub sessions: u64,
    /// How many entries.
    pub entries: u64,
    /// How many bytes their lines have; a line that several sessions share counts in each.
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

/// How much is held of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionStats {
    /// The agent's id of it.
    pub session: String,
    /// The name of its format.
    pub agent: String,
    /// How many entries there are.
    pub entries: u64,
    /// How many bytes their lines have.
    pub bytes: u64,
    /// How many turns of the user.
    pub turns: u64,
    /// How many branches.
    pub branches: u64,
    /// How many checkpoints.
    pub checkpoints: u64,
    /// How many states of its files.
    pub states: u64,
}

report!(SessionStats, "session");

/// A bundle of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BackedUp {
    /// Its file.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// How many sessions it holds.
    pub sessions: u64,
    /// How many operations.
    pub operations: u64,
    /// How many entries.
    pub entries: u64,
    /// How many bytes the file has.
    pub bytes: u64,
}

report!(BackedUp, "backup");

/// What becomes of a session of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The store did not have it.
    New,
    /// The store had its beginning.
    Grown,
    /// The store had all of it.
    Same,
    /// It was not imported, for this reason.
    Refused(String),
}

impl Fate {
    /// Returns its name, for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Grown => "grown",
            Self::Same => "same",
            Self::Refused(_) => "refused",
        }
    }
}

/// A session of a bundle that was imported, or was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brought {
    /// The session.
    pub session: SessionName,
    /// What became of it.
    pub fate: Fate,
    /// How many operations were new.
    pub operations: u64,
    /// How many entries.
    pub entries: u64,
    /// Why its live file could not be written; the next change of the session tries again.
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
    /// How much it took up before.
    pub before: Sizes,
    /// How much it takes up now.
    pub after: Sizes,
    /// How many of its parts are damaged, and stay as they are.
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
    /// What it comes to.
    pub kind: FaultKind,
    /// The session, if one is concerned.
    pub session: Option<String>,
    /// The thing concerned.
    pub item: String,
    /// The problem.
    pub problem: String,
}

impl Finding {
    /// Returns that a store cannot be read.
    pub fn of_whole_store(problem: String) -> Self {
        Self { kind: FaultKind::Store, session: None, item: DATABASE.to_owned(), problem }
    }

    /// Returns how much it matters.
    pub fn severity(&self) -> &'static str {
        if self.kind.is_damage() { "damage" } else { "note" }
    }
}

/// The figures of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// How many sessions.
    pub sessions: u64,
    /// How many operations.
    pub operations: u64,
    /// How many entries.
    pub entries: u64,
    /// How many findings are damage.
    pub damaged: u64,
    /// How many are notes.
    pub notes: u64,
    /// How many of the damaged things are derived rows.
    pub outdated: u64,
    /// How many entries' lines had something taken out of them; the entries keep their ids.
    pub redacted: u64,
    /// How many of them are files of sessions that somebody changed: in the store nothing is damaged.
    pub files: u64,
    /// How many files cannot be read, so that nothing is known of them.
    pub unread: u64,
    /// How many entries were lost when the store was damaged: none of their lines came back when it was mended.
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

    /// Returns whether nothing is damaged, and everything was looked at.
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

/// An ailment: a file or folder that needs care.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ailment {
    /// The file or folder.
    pub path: PathBuf,
    /// The problem.
    pub problem: String,
    /// The cure that the doctor knows.
    pub cure: Cure,
    /// Whether it was done.
    pub cured: bool,
}

impl Ailment {
    /// Makes one that is not cured yet.
    pub fn new(path: &Path, problem: impl Into<String>, cure: Cure) -> Self {
        Self { path: path.to_owned(), problem: problem.into(), cure, cured: false }
    }
}

/// The cure of an ailment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cure {
    /// Set this mode.
    Mode(u32),
    /// Delete the file: it is the remainder of a change that was cut short.
    Delete,
    /// Salvage the store, and take back from its sessions' files what it lost.
    Mend,
    /// Only a person can help.
    Person,
}

impl Cure {
    /// Returns its name, for programs.
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
    /// The file of its settings.
    #[serde(serialize_with = "path")]
    pub settings: PathBuf,
    /// The field in it that says how many days a session is kept.
    pub field: &'static str,
    /// How many days that are.
    pub days: u64,
}

report!(Forgetful, "forgetful");

/// A damaged store that was mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    /// Where the mended one is.
    pub path: PathBuf,
    /// The folder in which the damaged one is kept; none if the store itself was whole.
    pub kept: Option<PathBuf>,
    /// How many sessions there are.
    pub sessions: u64,
    /// How many entries.
    pub entries: u64,
    /// The files from which lines came back, each once.
    pub refilled: Vec<Refilled>,
    /// How many changes the store had forgotten, as its witness tells; files hold what they wrote, and not the changes.
    pub forgotten: u64,
    /// The live files that gave back what the store had forgotten.
    pub taken_back: Vec<TakenBack>,
    /// How many entries were imported from agents' files because the store had lost it.
    pub imported: u64,
    /// How many sessions that concerns.
    pub imported_sessions: u64,
    /// What did not come back, each of a session or of the store.
    pub lost: Vec<Loss>,
}

/// A file from which lines of a damaged store came back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refilled {
    /// The session.
    pub session: String,
    /// The file.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// How many lines.
    pub lines: u64,
    /// Whether the file itself came back, which was kept whole.
    pub whole: bool,
}

/// A live file that gave back what its store had forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TakenBack {
    /// The session.
    pub session: String,
    /// The live file.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// How many entries came back.
    pub entries: u64,
    /// The operation that took them in.
    pub operation: OperationNumber,
    /// The branch that keeps where the store was, if the live file does not go on from there.
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

/// The folder of a store that was examined.
#[derive(Clone, Copy, Debug)]
pub struct Examined<'a> {
    /// The folder.
    pub path: &'a Path,
    /// The ailments that were found in it.
    pub ailments: &'a [Ailment],
    /// The store, if it was mended.
    pub mended: Option<&'a Mended>,
}

impl Examined<'_> {
    /// Returns whether nothing in it needs care.
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
