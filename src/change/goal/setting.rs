//! Settings of new records: where a line may begin, and what a record says of its time, its folder and its parent.

use uuid::{Builder, Uuid};

use crate::{
    archive::{SyncError, Workspace},
    files::at::Standing,
    model::{EntryNumber, Kind, Position},
    session::Growth,
    wire::{Format, Graph as _, Nearby, Setting},
};

/// Among how many of the last entries a record is looked for that says which model answers; most often few are enough.
const MODEL_WITHIN: [usize; 2] = [16, 1024];

/// The record nearby that new ones are written like.
#[derive(Clone, Debug, Default)]
pub(crate) struct Near {
    /// Its line.
    line: Option<Vec<u8>>,
    /// How many bytes of records come after it, if no compaction does.
    since: Option<u64>,
    /// Whether the records of the file have no names.
    is_nameless: bool,
}

/// Returns the bytes that must stand before a record so that it begins a line: a file may end with its last record.
pub(crate) fn line_start(growth: &Growth) -> Vec<u8> {
    let tail = growth.tail.as_slice();
    let open = match tail.iter().rposition(|&byte| byte == b'\n') {
        Some(end) => tail.len() > end + 1,
        None => growth.length() > 0,
    };
    if open { b"\n".to_vec() } else { Vec::new() }
}

/// Returns lines as they come after a growth.
pub(crate) fn behind(growth: &Growth, lines: &[Vec<u8>]) -> Vec<u8> {
    let mut more = line_start(growth);
    for line in lines {
        more.extend(line);
        more.push(b'\n');
    }
    more
}

impl Near {
    /// Takes up a record that was written, where the next one is written like it.
    pub(crate) fn pass(&mut self, format: &dyn Format, line: &[u8], kind: Kind) {
        let is_like = match format.traits().nearby {
            Nearby::Nothing => return,
            Nearby::Head | Nearby::Last => true,
            Nearby::Model => kind == Kind::Assistant,
        };
        if is_like {
            *self = Self { line: Some(line.to_vec()), since: Some(0), ..*self };
        } else {
            self.since = self.since.map(|since| since + line.len() as u64);
        }
    }
}

impl Standing<'_> {
    /// Returns where and when a record is written that follows `parent`; an agent's record is written like one nearby.
    pub(crate) fn setting(
        &self,
        workspace: &Workspace,
        parent: Option<String>,
    ) -> Result<Setting, SyncError> {
        Ok(self.setting_near(workspace, parent, &self.near(self.position())?))
    }

    /// Returns a setting as [`Self::setting`] does, where the record nearby is known.
    pub(crate) fn setting_near(
        &self,
        workspace: &Workspace,
        parent: Option<String>,
        near: &Near,
    ) -> Setting {
        Setting {
            session: self.name.id.clone(),
            parent,
            uuid: self.fresh_name().to_string(),
            time: self.at,
            folder: workspace.folder.clone(),
            git_branch: workspace.git_branch.clone(),
            nearby: near.line.clone(),
            is_nameless: near.is_nameless,
            since: near.since,
            tool: None,
            call: None,
        }
    }

    /// Returns the record that a new one at a position is written like.
    pub(crate) fn near(&self, at: Option<Position>) -> Result<Near, SyncError> {
        let Some(at) = at else { return Ok(Near::default()) };
        let last = || Ok::<_, SyncError>(self.growth(at.generation)?.last.map(|(n, _)| (n, None)));
        let near = match self.format.traits().nearby {
            Nearby::Nothing => None,
            Nearby::Head => at.head.map(|head| (head, None)),
            Nearby::Last => last()?,
            Nearby::Model => match self.last_model(at)? {
                None => last()?,
                found => found,
            },
        };
        let view = self.view(at);
        let is_nameless = view.map_or(Ok(false), |view| self.format.is_nameless(&view))?;
        let (near, since) = near.unzip();
        let line = near.map(|near| self.line(near)).transpose()?;
        Ok(Near { line, since: since.flatten(), is_nameless })
    }

    /// Returns the last entry on the path to a position that says which model answers, and the bytes of those behind it.
    fn last_model(&self, at: Position) -> Result<Option<(EntryNumber, Option<u64>)>, SyncError> {
        let (Some(view), Some(session)) = (self.view(at), &self.session) else { return Ok(None) };
        for within in MODEL_WITHIN {
            let path = view.path(within)?.entries;
            let mut since = Some(0);
            for entry in path.iter().rev() {
                let record = view.record(*entry)?;
                if self.format.names_model(&record) {
                    return Ok(Some((*entry, since)));
                }
                let length =
                    self.store().lengths(session.key, entry.alone())?.into_iter().sum::<u64>();
                since = since.filter(|_| record.kind != Kind::Boundary).map(|since| since + length);
            }
            if path.len() < within {
                break;
            }
        }
        Ok(None)
    }

    /// Returns a setting as [`Self::setting`] does, in the session's own folder where the workspace names none.
    pub(crate) fn setting_in_folder(
        &self,
        workspace: &Workspace,
        parent: Option<String>,
    ) -> Result<Setting, SyncError> {
        let mut setting = self.setting(workspace, parent)?;
        if let (true, Some(session)) = (setting.folder.is_empty(), &self.session) {
            setting.folder = self.store().card(session.key)?.folder.unwrap_or_default();
        }
        Ok(setting)
    }

    /// Returns a fresh name of a record: names that follow the time keep an index of them compact.
    fn fresh_name(&self) -> Uuid {
        let mut random = [0; 10];
        // Bytes 6 and 8 of a random uuid hold its version and variant; these are chance alone.
        let chance = self.archive.uuid().into_bytes();
        random[..6].copy_from_slice(&chance[..6]);
        random[6..].copy_from_slice(&chance[9..13]);
        Builder::from_unix_timestamp_millis(self.at.0.unsigned_abs(), &random).into_uuid()
    }
}
