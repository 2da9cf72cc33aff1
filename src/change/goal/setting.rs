//! Settings of new records: where a line may begin, and the time, folder and parent of a record.

use uuid::{Builder, Uuid};

use crate::{
    archive::{SyncError, Workspace},
    files::at::Standing,
    json::Raw,
    model::{EntryNumber, Kind, Position},
    session::Growth,
    wire::{Draft, Format, Graph as _, Nearby, Setting},
};

/// How many of the last entries to search for a record that names the model. The first number is usually enough.
const MODEL_WITHIN: [usize; 2] = [16, 1024];

/// The nearby record that new ones imitate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Near {
    /// Its line.
    line: Option<Vec<u8>>,
    /// How many bytes of records come after it, if no compaction does.
    since: Option<u64>,
    /// True if the records of the file have no names.
    is_nameless: bool,
}

/// Returns the bytes needed before a record so that it begins a line: a file may end without a line feed.
pub(crate) fn line_start(growth: &Growth) -> Vec<u8> {
    let tail = growth.tail.as_slice();
    let open = match tail.iter().rposition(|&byte| byte == b'\n') {
        Some(end) => tail.len() > end + 1,
        None => growth.length() > 0,
    };
    if open { b"\n".to_vec() } else { Vec::new() }
}

/// Returns lines in the form in which they are appended to a growth.
pub(crate) fn behind(growth: &Growth, lines: &[Vec<u8>]) -> Vec<u8> {
    let mut more = line_start(growth);
    for line in lines {
        more.extend(line);
        more.push(b'\n');
    }
    more
}

impl Near {
    /// Notes a record that was written, if the next one imitates it.
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
    /// Returns the setting of a record that follows `parent`. An agent's record imitates one nearby.
    pub(crate) fn setting(
        &self,
        workspace: &Workspace,
        parent: Option<String>,
    ) -> Result<Setting, SyncError> {
        Ok(self.setting_near(workspace, parent, &self.near(self.position())?))
    }

    /// Like [`Self::setting`], with the nearby record given.
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

    /// Writes records that follow each other from a position on.
    pub(crate) fn write(
        &self,
        workspace: &Workspace,
        at: Position,
        drafts: &[Draft],
    ) -> Result<Vec<Vec<u8>>, SyncError> {
        let mut parent = at.head.map(|head| self.record_name(head)).transpose()?.flatten();
        let near = self.near(Some(at))?;
        let mut lines = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let written = self.format.write(draft, &self.setting_near(workspace, parent, &near));
            let line = written.map_err(|error| SyncError::Invalid { line: None, why: error.0 })?;
            parent = Raw::object(&line).and_then(|record| self.format.envelope(record).name);
            lines.push(line);
        }
        Ok(lines)
    }

    /// Returns the record that a new one at this position imitates.
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

    /// Returns the last entry on the path to a position that names the model, and the size of the entries after it.
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

    /// Like [`Self::setting`], with the session's own folder if the workspace has none.
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

    /// Returns a new record name. Names that increase with time keep their index compact.
    fn fresh_name(&self) -> Uuid {
        let mut random = [0; 10];
        // Bytes 6 and 8 of a random UUID contain its version and variant. The bytes used here are purely random.
        let chance = self.archive.uuid().into_bytes();
        random[..6].copy_from_slice(&chance[..6]);
        random[6..].copy_from_slice(&chance[9..13]);
        Builder::from_unix_timestamp_millis(self.at.0.unsigned_abs(), &random).into_uuid()
    }
}
