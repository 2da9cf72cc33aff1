//! Notices: findings of a change in the live file, which a person should know.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::model::OperationNumber;

/// A finding in the live file that a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Another program appended entries; they are taken in.
    Appended {
        /// How many.
        entries: u64,
        /// The operation that took them in.
        operation: OperationNumber,
    },
    /// A change that was cut short is carried out.
    Finished {
        /// The live file.
        path: PathBuf,
    },
    /// The live file was missing and is written again.
    Restored {
        /// The live file.
        path: PathBuf,
    },
    /// The live file was changed by another program: its state is set aside and kept as a branch.
    SetAside {
        /// Where it is.
        aside: PathBuf,
        /// The branch that holds it.
        branch: String,
        /// The operation that took it in.
        operation: OperationNumber,
    },
    /// Another program wrote the end of the agent's file otherwise, without a whole record that is new; that is taken in.
    Ending {
        /// The agent's file.
        path: PathBuf,
        /// The operation that took it in.
        operation: OperationNumber,
    },
    /// Another program rewrote the agent's file, or went on elsewhere in it; the session follows it.
    Followed {
        /// The agent's file.
        path: PathBuf,
        /// Whether it was rewritten.
        is_rewritten: bool,
        /// How many entries are new.
        entries: u64,
        /// The branch that keeps where the current one was, if a command had put it there.
        left: Option<String>,
        /// The operation that took it in.
        operation: OperationNumber,
    },
    /// An agent that knew only the old state appended to it.
    Joined {
        /// How many entries.
        entries: u64,
        /// The branch that they joined.
        branch: String,
        /// The operation that took them in.
        operation: OperationNumber,
    },
    /// The store could not do work that it puts off until there is more of it; nothing is lost.
    Unsettled {
        /// Why.
        why: String,
    },
    /// The live file is on another computer, or in another account: only the store is changed.
    Elsewhere,
    /// The agent does not resume the session's file: only the store is changed.
    Unresumed {
        /// Why.
        why: &'static str,
    },
    /// The session goes on without a file that it followed, which is left as it is.
    Detached {
        /// The file.
        path: PathBuf,
    },
    /// A file is there that cannot become the live file: changes of the session are not written to it.
    Unattached {
        /// Why.
        why: String,
    },
    /// A file is there again that its agent would empty, because its list of folders lacks the one of the session.
    Unlisted {
        /// Why.
        why: String,
    },
    /// The agent compressed its file, and the session goes on without it.
    Packed {
        /// The compressed file.
        path: PathBuf,
    },
    /// The agent's file no longer exists, and the session goes on without it.
    Gone {
        /// Where it was.
        path: PathBuf,
        /// The other file of the session in which it goes on, if there is one.
        to: Option<PathBuf>,
    },
    /// A change that waited is dropped, because the session went elsewhere.
    Dropped {
        /// The operation that had it wait.
        operation: OperationNumber,
    },
    /// Lines arrived again that were redacted before: the store has them as they were redacted.
    Redacted {
        /// How many.
        lines: u64,
    },
    /// A file is taken in as far as it can be read.
    Unread {
        /// The file.
        path: PathBuf,
        /// The line from which on nothing of it is taken in, from 1.
        line: u64,
        /// Why.
        why: &'static str,
    },
    /// What a file holds beyond its session is not looked through, because the session is damaged.
    Unsought {
        /// The file.
        path: PathBuf,
        /// The damage.
        why: String,
    },
    /// A file that was set aside has grown; the new records are taken in.
    Late {
        /// The file.
        aside: PathBuf,
        /// How many entries.
        entries: u64,
        /// The branch that they joined.
        branch: Option<String>,
    },
}

impl Notice {
    /// Adds notices to others, each that is not among them yet.
    pub(crate) fn add(more: Vec<Self>, notices: &mut Vec<Self>) {
        for notice in more {
            if !notices.contains(&notice) {
                notices.push(notice);
            }
        }
    }

    /// Returns the operation that took in entries, and how many.
    pub(crate) fn taken_in(&self) -> Option<(OperationNumber, u64)> {
        match self {
            Self::Appended { entries, operation }
            | Self::Followed { entries, operation, .. }
            | Self::Joined { entries, operation, .. } => Some((*operation, *entries)),
            Self::Ending { operation, .. } => Some((*operation, 0)),
            _ => None,
        }
    }

    /// Returns the branch that keeps where the current one was.
    pub(crate) fn left(&self) -> Option<String> {
        if let Self::Followed { left, .. } = self { left.clone() } else { None }
    }

    /// Says that the session goes on in a file, if the one in which it was no longer exists.
    pub(crate) fn go_on(&mut self, file: Option<&Path>) {
        if let Self::Gone { to, .. } = self {
            *to = file.map(Path::to_owned);
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Appended { entries, .. } => {
                let noun = if *entries == 1 { "entry" } else { "entries" };
                write!(f, "imported {entries} {noun} that another program appended to the session's file")
            }
            Self::Finished { path } => {
                write!(f, "finished an interrupted change to {}", path.display())
            }
            Self::Restored { path } => {
                write!(f, "{} was missing, so undertext wrote it again", path.display())
            }
            Self::SetAside { aside, branch, .. } => write!(
                f,
                "another program rewrote the session's file; the rewritten file is kept as {}, and its entries as branch {branch}",
                aside.display()
            ),
            Self::Ending { path, .. } => {
                write!(f, "imported the changed end of {}, which has no new entries", path.display())
            }
            Self::Followed { path, is_rewritten, entries, left, .. } => {
                let noun = if *entries == 1 { "new entry" } else { "new entries" };
                let (path, what) = (path.display(), if *is_rewritten { "was rewritten" } else { "continues from another point" });
                write!(f, "{path} {what}; the session continues in that file, which has {entries} {noun}")?;
                left.as_ref()
                    .map_or(Ok(()), |left| write!(f, "; the old end is kept as branch {left}"))
            }
            Self::Joined { entries, branch, .. } => {
                let noun = if *entries == 1 { "entry" } else { "entries" };
                write!(
                    f,
                    "an agent that knew only the old state added {entries} {noun} to branch {branch}"
                )
            }
            Self::Unsettled { why } => write!(
                f,
                "the change was made, but maintenance of the store failed: {why}; the next change tries again"
            ),
            Self::Elsewhere => f.write_str(
                "only the store was changed: the session's file is on another computer or in another account",
            ),
            Self::Unresumed { why } => write!(f, "only the store was changed: {why}"),
            Self::Detached { path } => {
                write!(f, "{} is left alone from now on; the session continues without the file", path.display())
            }
            Self::Unattached { why } => {
                write!(f, "changes to the session are not written to its file: {why}")
            }
            Self::Unlisted { why } => write!(f, "{why}: start the agent once in that folder first"),
            Self::Packed { path } => write!(
                f,
                "the agent compressed the session's file as {}; the session continues without the file until you decompress and import it",
                path.display()
            ),
            Self::Gone { path, to: None } => {
                write!(f, "{} was deleted; the session continues without the file", path.display())
            }
            Self::Gone { path, to: Some(to) } => {
                write!(f, "{} was deleted; the session continues in {}", path.display(), to.display())
            }
            Self::Dropped { operation } => {
                write!(f, "this drops the waiting change (operation {operation})")
            }
            Self::Redacted { lines } => {
                let has = if *lines == 1 { "line contains" } else { "lines contain" };
                write!(f, "{lines} new {has} redacted text; the store leaves that text out, but the file still contains it")
            }
            Self::Unread { path, line, why } => write!(f, "{}:{line}: {why}", path.display()),
            Self::Unsought { path, why } => {
                write!(f, "new records in {} were not searched: {why}", path.display())
            }
            Self::Late { aside, entries, branch } => {
                let noun = if *entries == 1 { "entry" } else { "entries" };
                write!(f, "another program wrote {entries} {noun} to {} after that file was renamed", aside.display())?;
                branch.as_ref().map_or(Ok(()), |branch| write!(f, "; the new entries are on branch {branch}"))
            }
        }
    }
}
