//! A reader for programs that stay open: pages through a conversation from its end, and is renewed as the session changes.
//!
//! Invariant: a renewed reader never shows anything else than a new one.

use crate::{
    model::{EntryNumber, OperationId, OperationNumber, Position},
    session::{
        Damages, Session, SessionError, Stored, View,
        read::lines::{Line, conversation_among, lines},
    },
    store::Store,
    wire::Path,
};

/// How many entries are read first.
const FIRST: usize = 64;

/// A conversation that changed by more entries than this is read from its end again.
const GROWN: usize = 4096;

/// The conversation of a branch as of the last renewal.
#[derive(Clone, Debug)]
pub struct Reader {
    session: Session,
    /// The branch; `None` follows the current one.
    branch: Option<String>,
    /// The number and the hash of the session's newest operation.
    newest: Option<(OperationNumber, OperationId)>,
    /// The position of the branch.
    position: Option<Position>,
    /// The entries of the conversation read so far, newest first.
    read: Vec<EntryNumber>,
    /// How many entries of the path were searched for them.
    asked: usize,
    /// Whether these are all entries.
    is_whole: bool,
}

/// How a conversation changed since the last renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// No change.
    Same,
    /// This many entries were appended.
    Grown(usize),
    /// The branch is elsewhere, or something in the session was redacted.
    Moved,
}

impl Reader {
    /// Makes a reader of a branch, by default the current one. Nothing is read before it is renewed.
    pub fn new(session: &Session, branch: Option<&str>) -> Self {
        Self {
            session: session.clone(),
            branch: branch.map(str::to_owned),
            newest: None,
            position: None,
            read: Vec::new(),
            asked: 0,
            is_whole: false,
        }
    }

    /// Brings the reader up to date, and returns how the conversation changed.
    pub fn renew(&mut self, store: &dyn Store) -> Result<Renewed, SessionError> {
        let state = store.state(self.session.key)?;
        let newest = state.newest.map(|newest| (newest.n, newest.hash));
        if self.newest.is_some() && self.newest == newest {
            return Ok(Renewed::Same);
        }
        let branch = self.branch.as_deref().unwrap_or(state.current());
        let position = state.branches.get(branch).copied();
        let fresh = if self.is_covered(store)? { None } else { self.fresh(store, position)? };
        (self.newest, self.position) = (newest, position);
        let Some(fresh) = fresh else {
            (self.read, self.asked, self.is_whole) = (Vec::new(), 0, false);
            return Ok(Renewed::Moved);
        };
        let count = fresh.len();
        self.read.splice(0..0, fresh);
        self.asked += count;
        Ok(if count > 0 { Renewed::Grown(count) } else { Renewed::Same })
    }

    /// Returns true if something was redacted since the last renewal: the same entries may now have different messages.
    fn is_covered(&self, store: &dyn Store) -> Result<bool, SessionError> {
        let Some((known, _)) = self.newest else { return Ok(false) };
        let since = store.operations(self.session.key, known.next()..OperationNumber::ALL.end)?;
        Ok(since.iter().any(|operation| operation.command.is_final()))
    }

    /// Returns the entries of the conversation up to another position that come after the entries read so far, newest first.
    /// Returns nothing if the conversation does not continue them.
    fn fresh(
        &self,
        store: &dyn Store,
        position: Option<Position>,
    ) -> Result<Option<Vec<EntryNumber>>, SessionError> {
        if self.position == position {
            return Ok(Some(Vec::new()));
        }
        // In another generation, a branch with the same end may have different entries before it.
        let generation = |at: Option<Position>| at.map(|at| at.generation);
        let stays = generation(self.position) == generation(position);
        let known = self.read.first().copied().filter(|_| stays);
        let (Some(known), Some(view)) = (known, self.view(store, position)) else {
            return Ok(None);
        };
        let mut asked = FIRST;
        loop {
            let (mut fresh, is_whole) = conversation(&view, asked)?;
            if let Some(grown) = fresh.iter().position(|entry| *entry == known) {
                fresh.truncate(grown);
                return Ok(Some(fresh));
            }
            if is_whole || asked >= GROWN {
                return Ok(None);
            }
            asked = asked.saturating_mul(4);
        }
    }

    /// Returns `count` entries of the conversation, oldest first, skipping the last `skipped` ones. Returns fewer only at its
    /// beginning.
    pub fn page(
        &mut self,
        store: &dyn Store,
        skipped: usize,
        count: usize,
    ) -> Result<Vec<Line>, SessionError> {
        let wanted = skipped.saturating_add(count);
        let Some(view) = self.view(store, self.position) else { return Ok(Vec::new()) };
        while self.read.len() < wanted && !self.is_whole {
            self.asked = self.asked.saturating_mul(2).max(wanted).max(FIRST);
            (self.read, self.is_whole) = conversation(&view, self.asked)?;
        }
        let mut entries: Vec<EntryNumber> =
            self.read.iter().skip(skipped).take(count).copied().collect();
        entries.reverse();
        lines(&Stored::of(store, &self.session)?, &view, &entries)
    }

    fn view<'a>(&self, store: &'a dyn Store, position: Option<Position>) -> Option<View<'a>> {
        let Session { key, format, .. } = self.session;
        let view = |at| View::over(store, Some(key), format, at);
        position.map(|at| view(at).gathering(&Damages::gathered()))
    }
}

/// Like [`conversation_among`], newest entry first.
fn conversation(view: &View<'_>, asked: usize) -> Result<(Vec<EntryNumber>, bool), SessionError> {
    let (Path { mut entries, .. }, is_whole) = conversation_among(view, asked)?;
    entries.reverse();
    Ok((entries, is_whole))
}
