//! Settings of new records: where a line may begin, and what a record says of its time, its folder and its parent.

use uuid::{Builder, Uuid};

use crate::{
    session::Growth,
    sync::{SyncError, Workspace, standing::Standing},
    wire::{Nearby, Setting},
};

/// Returns the bytes that must stand before a record so that it begins a line: a file may end with its last record.
pub(crate) fn line_start(growth: &Growth) -> Vec<u8> {
    let tail = growth.tail.as_slice();
    let open = match tail.iter().rposition(|&byte| byte == b'\n') {
        Some(end) => tail.len() > end + 1,
        None => growth.length() > 0,
    };
    if open { b"\n".to_vec() } else { Vec::new() }
}

impl Standing<'_> {
    /// Returns where and when a record is written that follows `parent`; an agent's record is written like the one before it.
    pub(crate) fn setting(
        &self,
        workspace: &Workspace,
        parent: Option<String>,
    ) -> Result<Setting, SyncError> {
        let near = match (self.format.traits().nearby, self.position()) {
            (Nearby::Nothing, _) | (_, None) => None,
            (Nearby::Head, Some(at)) => at.head,
            (Nearby::Last, Some(at)) => self.growth(at.generation)?.last.map(|(n, _)| n),
        };
        Ok(Setting {
            session: self.name.id.clone(),
            parent,
            uuid: self.fresh_name().to_string(),
            time: self.at,
            folder: workspace.folder.clone(),
            git_branch: workspace.git_branch.clone(),
            nearby: near.map(|near| self.line(near)).transpose()?,
        })
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
