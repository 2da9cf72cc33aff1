//! Notices: what a change found in the live file that the user should know.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::model::OperationNumber;

/// Something that the user should know about a live file or a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Another program appended entries, which were imported.
    Appended {
        /// The number of entries.
        entries: u64,
        /// The operation that imported them.
        operation: OperationNumber,
    },
    /// An interrupted change was completed.
    Finished {
        /// The live file.
        path: PathBuf,
    },
    /// The live file was missing and was written again.
    Restored {
        /// The live file.
        path: PathBuf,
    },
    /// Another program rewrote the live file: that file was set aside, and its state is preserved as a branch.
    SetAside {
        /// The file that was set aside.
        aside: PathBuf,
        /// The branch that has its entries.
        branch: String,
        /// The operation that imported it.
        operation: OperationNumber,
    },
    /// Another program changed the end of the agent's file without adding a complete record; the change was imported.
    Ending {
        /// The agent's file.
        path: PathBuf,
        /// The operation that imported it.
        operation: OperationNumber,
    },
    /// Another program rewrote the agent's file, or continued from another point of it; the session follows the file.
    Followed {
        /// The agent's file.
        path: PathBuf,
        /// Whether it was rewritten.
        is_rewritten: bool,
        /// The number of new entries.
        entries: u64,
        /// The branch that preserves the previous position of the current branch, if a command had moved it there.
        left: Option<String>,
        /// The operation that imported it.
        operation: OperationNumber,
    },
    /// An agent that only knew the old state appended entries to it.
    Joined {
        /// The number of entries.
        entries: u64,
        /// The branch that they joined.
        branch: String,
        /// The operation that imported them.
        operation: OperationNumber,
    },
    /// The store failed to do deferred maintenance; no data is lost.
    Unsettled {
        /// Why.
        why: String,
    },
    /// The live file is on another computer or in another account: only the store was changed.
    Elsewhere,
    /// The agent does not resume the session's file: only the store was changed.
    Unresumed {
        /// Why.
        why: &'static str,
    },
    /// The session was detached from a file, which stays unchanged.
    Detached {
        /// The file.
        path: PathBuf,
    },
    /// A file exists that cannot become the live file: changes of the session are not written to it.
    Unattached {
        /// Why.
        why: String,
    },
    /// A file was restored that its agent would empty, because the agent's list of folders lacks the session's folder.
    Unlisted {
        /// Why.
        why: String,
    },
    /// The agent compressed its file; the session continues without it.
    Packed {
        /// The compressed file.
        path: PathBuf,
    },
    /// The agent's file was deleted; the session continues without it.
    Gone {
        /// Where it was.
        path: PathBuf,
        /// The other file of the session in which it continues, if there is one.
        to: Option<PathBuf>,
    },
    /// A waiting change was dropped because the session moved.
    Dropped {
        /// The operation that requested it.
        operation: OperationNumber,
    },
    /// Redacted lines appeared again in a file; the store keeps them redacted.
    Redacted {
        /// The number of lines.
        lines: u64,
    },
    /// A file was imported only up to a line.
    Unread {
        /// The file.
        path: PathBuf,
        /// The number of the first line that was not imported, from 1.
        line: u64,
        /// Why.
        why: &'static str,
    },
    /// New records in a file were not searched, because the session is damaged.
    Unsought {
        /// The file.
        path: PathBuf,
        /// The damage.
        why: String,
    },
    /// A file that was set aside has grown; its new records were imported.
    Late {
        /// The file.
        aside: PathBuf,
        /// The number of entries.
        entries: u64,
        /// The branch that they joined.
        branch: Option<String>,
    },
}

impl Notice {
    /// Appends those notices that are not in `notices` yet.
    pub(crate) fn add(more: Vec<Self>, notices: &mut Vec<Self>) {
        for notice in more {
            if !notices.contains(&notice) {
                notices.push(notice);
            }
        }
    }

    /// Returns the operation that imported entries, and their number.
    pub(crate) fn taken_in(&self) -> Option<(OperationNumber, u64)> {
        match self {
            Self::Appended { entries, operation }
            | Self::Followed { entries, operation, .. }
            | Self::Joined { entries, operation, .. } => Some((*operation, *entries)),
            Self::Ending { operation, .. } => Some((*operation, 0)),
            _ => None,
        }
    }

    /// Returns the branch that preserves the previous position of the current branch.
    pub(crate) fn left(&self) -> Option<String> {
        if let Self::Followed { left, .. } = self { left.clone() } else { None }
    }

    /// Sets the file where the session continues, if this notice reports a deleted file.
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
