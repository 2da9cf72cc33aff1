//! The session handle: for programs that stay open, with a bounded working set.

use std::{collections::VecDeque, time::Duration};

use mini_moka::unsync::Cache;

use crate::{
    context::event::Event,
    model::{Message, OperationId},
    ops::{
        Appended, Compacted, Compacting, Gate, OpsError, append::append, compact::compact,
        gate::Snapshot,
    },
    session::{Session, log, messages},
    sync::{Archive, Workspace},
    wire::{Draft, Speaker},
};

/// When the working set grows beyond this, it is cut.
const MOST: usize = 1000;
/// To how many messages it is cut.
const KEPT: usize = 800;
/// How many decoded messages outside of the working set are kept at hand.
const DECODED: u64 = 4096;
/// For how long.
const DECODED_FOR: Duration = Duration::from_secs(600);

/// A session of an archive that is held open.
///
/// Invariant: neither the working set nor the cache shows in any result.
pub struct Handle {
    archive: Archive,
    session: Session,
    workspace: Workspace,
    seen: Option<OperationId>,
    recent: VecDeque<(u64, Message)>,
    decoded: Cache<u64, Vec<Message>>,
    gate: Gate,
}

impl Handle {
    /// Holds a session open.
    pub fn new(archive: Archive, session: Session, workspace: Workspace) -> Self {
        let decoded = Cache::builder().max_capacity(DECODED).time_to_live(DECODED_FOR).build();
        let (recent, gate) = (VecDeque::new(), Gate::default());
        Self { archive, session, workspace, seen: None, recent, decoded, gate }
    }

    /// Returns the session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the archive, for any other verb.
    pub fn archive(&mut self) -> &mut Archive {
        &mut self.archive
    }

    /// Returns the gate at which other threads of the program wait while this one compacts the session.
    pub fn gate(&self) -> Gate {
        self.gate.clone()
    }

    /// Compacts the session, while those at its gate wait.
    pub fn compact(
        &mut self,
        wanted: &Compacting<'_>,
        emit: &mut dyn FnMut(&Event),
    ) -> Result<Compacted, OpsError> {
        let messages = self.messages(KEPT)?;
        let before = Snapshot { session: self.session.name.clone(), messages };
        let _running = self.gate.begin(before);
        compact(&mut self.archive, &self.session, &self.workspace, wanted, emit)
    }

    /// Appends a message.
    pub fn say(&mut self, speaker: Speaker, text: &str) -> Result<Appended, OpsError> {
        self.append(&[Draft::Message(speaker, text.to_owned())])
    }

    /// Appends records, all or none.
    pub fn append(&mut self, drafts: &[Draft]) -> Result<Appended, OpsError> {
        let before = self.newest()?;
        let appended = append(&mut self.archive, &self.session, &self.workspace, drafts)?;
        // Only if nothing else came in between does the working set simply go on.
        if self.seen == before && appended.notices.is_empty() && !self.recent.is_empty() {
            for entry in &appended.entries {
                if self.recent.back().is_none_or(|(last, _)| *last < entry.n) {
                    let said = messages(self.archive.store(), &self.session, entry.n)?;
                    self.recent.extend(said.into_iter().map(|message| (entry.n, message)));
                }
            }
            self.seen = self.newest()?;
            self.cut();
        }
        Ok(appended)
    }

    /// Returns the last messages of the current branch, the first one first.
    pub fn messages(&mut self, count: usize) -> Result<Vec<Message>, OpsError> {
        let newest = self.newest()?;
        if self.seen != newest || self.recent.len() < count.min(KEPT) {
            let log = log(self.archive.store(), &self.session, None, count.max(KEPT))?;
            let messages = log
                .lines
                .into_iter()
                .flat_map(|line| line.messages.into_iter().map(move |message| (line.n, message)));
            let mut messages: VecDeque<_> = messages.collect();
            let asked: Vec<Message> = last(&messages, count);
            messages.drain(..messages.len().saturating_sub(KEPT));
            (self.recent, self.seen) = (messages, newest);
            return Ok(asked);
        }
        Ok(last(&self.recent, count))
    }

    /// Returns what an entry says.
    pub fn said(&mut self, entry: u64) -> Result<Vec<Message>, OpsError> {
        if let Some(messages) = self.decoded.get(&entry) {
            return Ok(messages.clone());
        }
        let messages = messages(self.archive.store(), &self.session, entry)?;
        self.decoded.insert(entry, messages.clone());
        Ok(messages)
    }

    fn newest(&self) -> Result<Option<OperationId>, OpsError> {
        Ok(self.archive.store().state(self.session.key)?.hash())
    }

    fn cut(&mut self) {
        if self.recent.len() > MOST {
            self.recent.drain(..self.recent.len() - KEPT);
        }
    }
}

fn last(messages: &VecDeque<(u64, Message)>, count: usize) -> Vec<Message> {
    messages
        .iter()
        .skip(messages.len().saturating_sub(count))
        .map(|(_, message)| message.clone())
        .collect()
}
