//! The session handle: for programs that keep a session open, with a bounded working set in memory.

use std::{collections::VecDeque, mem, time::Duration};

use mini_moka::unsync::Cache;

use crate::{
    archive::{Archive, Workspace},
    context::event::Event,
    model::{EntryNumber, Message},
    session::{Reader, Renewed, Session, Stored, messages},
    verbs::{
        Appended, Compacted, Compacting, Gate, OpsError,
        agent::{append::append, gate::Snapshot},
        window::compact::compact,
    },
    wire::{Draft, Speaker},
};

/// The working set is trimmed when it has more messages than this.
const MOST: usize = 1000;
/// The number of messages left after trimming.
const KEPT: usize = 800;
/// The number of decoded messages outside the working set that are cached.
const DECODED: u64 = 4096;
/// How long they are cached.
const DECODED_FOR: Duration = Duration::from_secs(600);

/// An open session of an archive.
///
/// Invariant: the working set and the cache never change a result.
pub struct Handle {
    archive: Archive,
    session: Session,
    workspace: Workspace,
    reader: Reader,
    /// The last messages.
    recent: VecDeque<Message>,
    /// Whether these are all messages of the session.
    is_whole: bool,
    decoded: Cache<EntryNumber, Vec<Message>>,
    gate: Gate,
}

impl Handle {
    /// Opens a session.
    pub fn new(archive: Archive, session: Session, workspace: Workspace) -> Self {
        let reader = Reader::new(&session, None);
        let (recent, is_whole, gate) = (VecDeque::new(), false, Gate::default());
        let decoded = Cache::builder().max_capacity(DECODED).time_to_live(DECODED_FOR).build();
        Self { archive, session, workspace, reader, recent, is_whole, decoded, gate }
    }

    /// Returns the session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the archive, for any other verb.
    pub fn archive(&mut self) -> &mut Archive {
        &mut self.archive
    }

    /// Returns the gate where other threads of the program wait while this one compacts the session.
    pub fn gate(&self) -> Gate {
        self.gate.clone()
    }

    /// Compacts the session while the threads at its gate wait.
    pub fn compact(
        &mut self,
        wanted: &Compacting<'_>,
        emit: &mut dyn FnMut(&Event),
    ) -> Result<Compacted, OpsError> {
        let messages = self.messages(KEPT)?;
        let before = Snapshot { session: self.session.name.clone(), messages };
        let _running = self.gate.begin(before);
        compact(&self.archive.at(&self.session)?, &self.workspace, wanted, emit)
    }

    /// Appends a message.
    pub fn say(&mut self, speaker: Speaker, text: &str) -> Result<Appended, OpsError> {
        self.append(&[Draft::Message(speaker, text.to_owned())])
    }

    /// Appends records, all or none.
    pub fn append(&mut self, drafts: &[Draft]) -> Result<Appended, OpsError> {
        append(&self.archive.at(&self.session)?, &self.workspace, drafts)
    }

    /// Returns the last messages of the current branch, oldest first.
    pub fn messages(&mut self, count: usize) -> Result<Vec<Message>, OpsError> {
        self.renew()?;
        if self.recent.len() < count && !self.is_whole {
            let read = self.read(count.max(KEPT))?;
            let found = last(&read, count);
            self.is_whole = read.len() < KEPT;
            self.recent = last(&read, KEPT).into();
            return Ok(found);
        }
        Ok(last(self.recent.make_contiguous(), count))
    }

    /// Brings the working set up to date with the session.
    fn renew(&mut self) -> Result<(), OpsError> {
        let store = self.archive.store();
        match self.reader.renew(store)? {
            Renewed::Same => {}
            Renewed::Grown(entries) => {
                // Both are taken first: if these entries cannot be read, the working set is read again.
                let (mut recent, is_whole) =
                    (mem::take(&mut self.recent), mem::take(&mut self.is_whole));
                let fresh = self.reader.page(store, 0, entries)?;
                recent.extend(fresh.into_iter().flat_map(|line| line.messages));
                let is_long = recent.len() > MOST;
                if is_long {
                    recent.drain(..recent.len() - KEPT);
                }
                (self.recent, self.is_whole) = (recent, is_whole && !is_long);
            }
            Renewed::Moved => {
                self.recent.clear();
                self.is_whole = false;
                self.decoded.invalidate_all();
            }
        }
        Ok(())
    }

    /// Reads at least this many of the last messages, or all.
    fn read(&mut self, count: usize) -> Result<Vec<Message>, OpsError> {
        let mut asked = count;
        loop {
            // An entry may have several messages, or none.
            let lines = self.reader.page(self.archive.store(), 0, asked)?;
            let is_whole = lines.len() < asked;
            let said: Vec<Message> = lines.into_iter().flat_map(|line| line.messages).collect();
            if is_whole || said.len() >= count {
                return Ok(said);
            }
            asked = asked.saturating_mul(2);
        }
    }

    /// Returns the messages of an entry.
    pub fn said(&mut self, entry: EntryNumber) -> Result<Vec<Message>, OpsError> {
        // A cached message may have been redacted since.
        self.renew()?;
        if let Some(messages) = self.decoded.get(&entry) {
            return Ok(messages.clone());
        }
        let messages = messages(&Stored::of(self.archive.store(), &self.session)?, entry)?;
        self.decoded.insert(entry, messages.clone());
        Ok(messages)
    }
}

fn last(messages: &[Message], count: usize) -> Vec<Message> {
    messages.get(messages.len().saturating_sub(count)..).unwrap_or_default().to_vec()
}
