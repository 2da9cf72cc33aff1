//! The files of a thread: their names, their folders, and where one continues another.
//!
//! ```text
//! sessions/2026/08/01/rollout-2026-08-01T10-00-00-<thread>.jsonl           the first file; its id is the thread's
//! sessions/2026/08/01/rollout-2026-08-01T11-00-00-<thread>_<file>.jsonl    a file that continues it
//! archived_sessions/rollout-...jsonl                                       either of these, archived
//! session_index.jsonl                                                      {id, thread_name, updated_at}: the last one wins
//! ```
//!
//! Invariant: nothing here reads the file system.

use std::path::{Path, PathBuf};

use super::{Codex, hint::OPENS, read::meta};
use crate::{
    json::Raw,
    wire::{Base, FileName, Files, Shelf, fields::string, layout::resuming},
};

/// Codex's folders of threads.
const SHELVES: [&str; 2] = ["sessions", "archived_sessions"];
/// The depth of a day's folder in them. Codex reads nothing below that.
const DAY: usize = 3;

impl Files for Codex {
    fn is_file_of(&self, file: &Path, session: &str) -> bool {
        let name = file.file_name().and_then(|name| self::name(name.to_str()?));
        name.is_some_and(|name| name.session == session)
    }

    fn resume(&self, session: &str, _file: &Path) -> Option<Vec<String>> {
        resuming(["codex", "resume"], session)
    }

    /// Reads the file and offset at which the history of a file begins, from its first record.
    ///
    /// All files of a fork record where the fork was made. Only the file that continues from exactly that place has its history in
    /// the other thread.
    fn base(&self, record: Raw<'_>) -> Option<Base> {
        let meta = meta(record)?;
        let [base, forked, fork] =
            meta.pick(["history_base", "forked_from_id", "forked_from_ordinal_exclusive"]);
        let [file, ordinal, bytes] =
            base?.pick(["thread_id", "end_ordinal_exclusive", "end_byte_offset"]);
        let number = |value: Option<Raw<'_>>| value.and_then(Raw::u64);
        let ordinal = number(ordinal);
        let is_fork = number(fork).is_none_or(|fork| Some(fork) == ordinal);
        let session = string(forked).filter(|_| is_fork);
        Some(Base { file: string(file)?, bytes: number(bytes), ordinal, session })
    }

    fn file_name(&self, name: &str) -> Option<FileName> {
        self::name(name)
    }

    /// Returns the folders that may contain other files of the thread: the file's own, and those of its Codex folder.
    fn shelves(&self, file: &Path) -> Vec<Shelf> {
        let own = file.parent().map(|folder| Shelf { path: folder.to_owned(), depth: 0 });
        let shelf = |home: &Path| SHELVES.map(|name| Shelf { path: home.join(name), depth: DAY });
        own.into_iter().chain(home(file).into_iter().flat_map(shelf)).collect()
    }

    /// Returns the path of another file of a thread: in the folder of its day, in the first of Codex's folders.
    fn next_file(&self, file: &Path, name: &FileName) -> Option<PathBuf> {
        let FileName { begun, id, session } = name;
        let shelf = home(file)?.join(SHELVES.first()?);
        let day = begun.split('T').next()?.split('-');
        let folder = day.fold(shelf, |folder, part| folder.join(part));
        Some(folder.join(format!("rollout-{begun}-{session}_{id}.jsonl")))
    }

    fn home(&self, file: &Path) -> Option<PathBuf> {
        home(file).map(Path::to_owned)
    }
}

/// Returns a number for the reason why Codex does not resume a file, from its first record; 0 if it does.
pub(super) fn refusal(meta: Raw<'_>) -> u64 {
    let [version, source, mode] = meta.pick(["multi_agent_version", "source", "history_mode"]);
    let is_spawned = || source?.get("subagent")?.get("thread_spawn");
    if string(version).as_deref() == Some("v2") && is_spawned().is_some() {
        return 1;
    }
    let is_known = string(mode).is_none_or(|mode| mode == "legacy" || mode == "paginated");
    if is_known { 0 } else { 2 }
}

/// Returns why Codex does not resume a file, from the hint of its first record, if it does not.
pub(super) fn unresumed(flags: u8, number: u64, is_unframed: bool) -> Option<&'static str> {
    match number {
        _ if flags & OPENS == 0 || is_unframed => {
            Some("Codex does not resume files of its older versions, which begin differently")
        }
        0 => None,
        1 => Some("Codex resumes a sub-agent only together with its parent"),
        _ => Some("Codex does not know how the file stores its history"),
    }
}

/// Parses the name of a file. A name whose ids are not UUIDs is not Codex's, such as a copy that somebody made next to it.
pub(super) fn name(name: &str) -> Option<FileName> {
    const TIME: &str = "0000-00-00T00-00-00";
    const ID: &str = "00000000-0000-0000-0000-000000000000";
    let stem = name.strip_suffix(".zst").unwrap_or(name).strip_suffix(".jsonl")?;
    let (begun, ids) = stem.strip_prefix("rollout-")?.split_at_checked(TIME.len())?;
    let (session, id) =
        ids.strip_prefix('-').map(|ids| ids.split_once('_').unwrap_or((ids, ids)))?;
    let is_whole = is_like(begun, TIME) && is_like(session, ID) && is_like(id, ID);
    is_whole.then(|| FileName { begun: begun.into(), id: id.into(), session: session.into() })
}

/// Returns true if a text equals a shape, with any hexadecimal digit where the shape has a zero.
fn is_like(text: &str, shape: &str) -> bool {
    let is_like = |(found, wanted): (u8, u8)| match wanted {
        b'0' => found.is_ascii_hexdigit(),
        _ => found == wanted,
    };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(is_like)
}

/// Returns the Codex folder that contains a file.
pub(super) fn home(file: &Path) -> Option<&Path> {
    let is_shelf = |folder: &&Path| {
        SHELVES.iter().any(|shelf| folder.file_name().is_some_and(|name| name == *shelf))
    };
    file.ancestors().skip(1).take(DAY + 1).find(is_shelf).and_then(Path::parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_when_a_file_was_begun_which_it_is_and_of_which_thread() {
        const A: &str = "019f0000-0000-7000-8000-00000000000a";
        const B: &str = "019f0000-0000-7000-8000-00000000000b";
        let time = "2026-08-01T10-00-00";
        let check = |text: &str, expected: Option<[&str; 3]>| {
            let found = name(text).map(|name| [name.begun, name.id, name.session]);
            assert_eq!(found, expected.map(|all| all.map(str::to_owned)), "{text}");
        };
        check(&format!("rollout-{time}-{A}.jsonl"), Some([time, A, A]));
        check(&format!("rollout-{time}-{A}_{B}.jsonl.zst"), Some([time, B, A]));
        for none in [
            format!("rollout-{time}.jsonl"),
            format!("rollout-{time}-.jsonl"),
            format!("rollout-{time}-{A}_.jsonl"),
            format!("rollout-{time}-{A}_backup.jsonl"),
            format!("rollout-{time}-{A} (2).jsonl"),
            format!("rollout-{time}-{A}.json"),
            format!("rollout-2026-08-01 10:00:00-{A}.jsonl"),
            format!("rollout-2026-08-01T10-00-0é-{A}.jsonl"),
            "rollout-1.jsonl".to_owned(),
            "a.jsonl".to_owned(),
        ] {
            check(&none, None);
        }
    }

    #[test]
    fn other_files_lie_beside_a_file_and_in_its_codex() {
        let paths = |file: &str| -> Vec<(String, usize)> {
            let shelves = Codex.shelves(Path::new(file)).into_iter();
            shelves.map(|shelf| (shelf.path.to_string_lossy().into_owned(), shelf.depth)).collect()
        };
        let of = |path: &str, depth| (path.to_owned(), depth);
        let both = [of("/c/sessions", 3), of("/c/archived_sessions", 3)];
        let day = "/c/sessions/2026/08/01";
        assert_eq!(paths(&format!("{day}/r.jsonl")), [&[of(day, 0)][..], &both].concat());
        let put_away = "/c/archived_sessions";
        assert_eq!(paths("/c/archived_sessions/r.jsonl"), [&[of(put_away, 0)][..], &both].concat());
        assert_eq!(paths("/c/sessions/2026/08/01/deeper/r.jsonl").len(), 1);
        assert_eq!(paths("/w/r.jsonl"), [of("/w", 0)]);
    }
}
