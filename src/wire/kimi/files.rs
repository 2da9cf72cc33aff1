//! The files of a session: their names, the files that Kimi CLI keeps next to them, and its lists of folders and titles.
//!
//! ```text
//! kimi.json                                     the folders that it works in, each once
//! sessions/<MD5 of the folder>/<session>/       context.jsonl, context_N.jsonl, state.json
//! ```
//!
//! Invariant: nothing here reads the file system.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Kimi;
use crate::{
    json::Raw,
    wire::{Annex, Invalid, Layout, ReadTitles, Share, fields::text, unread::is_beside_kimi_code},
};

/// The live file. Rotated files have a number.
pub(super) const LIVE: &str = "context.jsonl";
/// The folder of a session's sub-agents, with a subfolder for each.
pub(super) const SUB_AGENTS: &str = "subagents";
/// The file of a session's own settings.
pub(super) const STATE: &str = "state.json";

/// Returns the session id for a file: the name of its folder; for a sub-agent, after the session's id.
pub(super) fn session_of(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    if name != LIVE && rotation(name).is_none() {
        return None;
    }
    let word = |path: Option<&Path>| Some(path?.file_name()?.to_string_lossy().into_owned());
    let folder = file.parent()?;
    let id = word(Some(folder))?;
    match folder.parent() {
        Some(above) if above.ends_with(SUB_AGENTS) => {
            Some(format!("{}/{id}", word(above.parent())?))
        }
        _ => Some(id),
    }
}

/// Returns the number of a rotated file.
pub(super) fn rotation(name: &str) -> Option<u64> {
    name.strip_prefix("context_")?.strip_suffix(".jsonl")?.parse().ok()
}

/// Returns the settings file of a file's session.
fn state(file: &Path) -> Option<PathBuf> {
    let is_session = file.ends_with(LIVE) && !is_beside_kimi_code(file);
    is_session.then(|| file.with_file_name(STATE))
}

/// Reads a session's title from its settings. A title that nobody gave is the beginning of the first message.
fn titled(state: &Path, held: &[u8]) -> Option<[String; 2]> {
    let held = Raw::file(held)?;
    let is_given = held.get("title_generated").and_then(Raw::bool) == Some(true);
    let title = text(held, "custom_title").filter(|_| is_given)?;
    Some([session_of(&state.with_file_name(LIVE))?, title])
}

impl Layout for Kimi {
    fn annexes(&self, file: &Path, _session: &str) -> Vec<Annex> {
        let annex = |state: PathBuf| {
            let (from, folder) = (state.parent()?.to_owned(), PathBuf::new());
            let name = Some(STATE.to_owned());
            Some(Annex { from, folder, name, is_apart: false, share: Share::Session })
        };
        state(file).and_then(annex).into_iter().collect()
    }

    fn title_list(&self, file: &Path) -> Option<(PathBuf, ReadTitles)> {
        Some((state(file)?, |list, held| titled(list, held).into_iter().collect()))
    }

    fn keeper(&self, file: &Path) -> Option<PathBuf> {
        self.is_state(file).then(|| file.with_file_name(LIVE))
    }

    fn is_state(&self, file: &Path) -> bool {
        file.ends_with(STATE)
    }

    fn rotation(&self, name: &str) -> Option<u64> {
        self::rotation(name)
    }

    fn archived_name(&self, names: &[String]) -> Option<String> {
        let newest = names.iter().filter_map(|name| rotation(name)).max().unwrap_or(0);
        Some(format!("context_{}.jsonl", newest.saturating_add(1)))
    }

    /// Returns the file that lists the folders of sessions: `kimi.json` next to `sessions/<hash of the folder>/<session>/`.
    fn index(&self, file: &Path) -> Option<PathBuf> {
        Some(folder_hash(file)?.0.parent()?.join("kimi.json"))
    }

    fn listed_folder(&self, file: &Path, index: &[u8]) -> Option<String> {
        let hash = folder_hash(file)?.1;
        let index: Value = serde_json::from_slice(index).ok()?;
        let mut folders = index.get("work_dirs")?.as_array()?.iter();
        let found =
            folders.find_map(|known| known["path"].as_str().filter(|path| hash_of(path) == hash));
        found.map(str::to_owned)
    }

    fn list_folder(
        &self,
        file: &Path,
        index: &[u8],
        folders: &[&str],
    ) -> Result<Option<Vec<u8>>, Invalid> {
        let Some((_, hash)) = folder_hash(file) else { return Ok(None) };
        let invalid = |why: &str| Invalid(why.to_owned());
        let mut index: Value = match index.trim_ascii() {
            [] => json!({}),
            index => serde_json::from_slice(index).map_err(|error| Invalid(error.to_string()))?,
        };
        let fields = index.as_object_mut().ok_or_else(|| invalid("it is not a JSON object"))?;
        let listed = fields.entry("work_dirs").or_insert_with(|| json!([]));
        let listed = listed.as_array_mut().ok_or_else(|| invalid("work_dirs is not a list"))?;
        let is_its = |path: &str| hash_of(path) == hash;
        if listed.iter().filter_map(|known| known["path"].as_str()).any(is_its) {
            return Ok(None);
        }
        let unknown = "the session's folder is not listed, so Kimi CLI would empty the session";
        let folder =
            folders.iter().find(|folder| is_its(folder)).ok_or_else(|| invalid(unknown))?;
        listed.push(json!({ "path": folder, "kaos": "local", "last_session_id": null }));
        Ok(serde_json::to_vec_pretty(&index).ok())
    }
}

/// Returns the folder of all sessions, and the hash of the folder that a file's session works in.
fn folder_hash(file: &Path) -> Option<(&Path, &str)> {
    let work = file.ancestors().find(|above| {
        above.parent().is_some_and(|sessions| sessions.file_name() == Some("sessions".as_ref()))
    })?;
    let hash = work.file_name()?.to_str()?;
    let is_hash = hash.len() == 32 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then_some((work.parent()?, hash))
}

fn hash_of(folder: &str) -> String {
    use md5::{Digest, Md5};
    Md5::digest(folder.as_bytes())
        .iter()
        .fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}
