//! Reading for programs that stay open: a conversation as a value, paged through from its end and renewed as the session
//! goes on.
//!
//! Invariant: a renewed reader shows the same as a new one.

use crate::{
    model::{EntryNumber, OperationId, OperationNumber, Position},
    session::{
        Damages, Session, SessionError, View,
        read::lines::{Line, conversation_among, lines},
    },
    store::Store,
    wire::Path,
};

/// How many entries are asked for at first.
const FIRST: usize = 64;

/// Up to how many entries a conversation is taken to have grown by; one that went further away is read from its end again.
const GROWN: usize = 4096;

/// The conversation of a branch, as it was when it was last looked at.
#[derive(Clone, Debug)]
pub struct Reader {
    session: Session,
    /// The branch; `None` follows the current one.
    branch: Option<String>,
    /// The newest operation of the session, by its number and its hash.
    newest: Option<(OperationNumber, OperationId)>,
    /// Where the branch is.
    position: Option<Position>,
    /// The entries of the conversation that were read so far, the last one first.
    read: Vec<EntryNumber>,
    /// How many entries of the path these were found among.
    asked: usize,
    /// Whether the entries that were read are all.
    is_whole: bool,
}

/// The change of a conversation since it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// No change.
    Same,
    /// This many entries came behind its last one.
    Grown(usize),
    /// It is another one, or something was taken out of the session for ever.
    Moved,
}

/// The entries that a conversation has and that were not read.
enum Fresh {
    Same,
    /// These, the last one first.
    Grown(Vec<EntryNumber>),
    Moved,
}

impl Reader {
    /// Begins to read a branch, or whichever is current; nothing is read before it is renewed.
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

    /// Looks at the session again, and returns the change of the conversation.
    pub fn renew(&mut self, store: &dyn Store) -> Result<Renewed, SessionError> {
        let state = store.state(self.session.key)?;
        let newest = state.newest.map(|newest| (newest.n, newest.hash));
        if self.newest.is_some() && self.newest == newest {
            return Ok(Renewed::Same);
        }
        let branch = self.branch.as_deref().unwrap_or(state.current());
        let position = state.branches.get(branch).copied();
        let renewed =
            if self.is_covered(store)? { Fresh::Moved } else { self.compare(store, position)? };
        match &renewed {
            Fresh::Same => {}
            Fresh::Grown(entries) => {
                self.read.splice(0..0, entries.iter().copied());
                self.asked += entries.len();
            }
            Fresh::Moved => (self.read, self.asked, self.is_whole) = (Vec::new(), 0, false),
        }
        (self.newest, self.position) = (newest, position);
        Ok(match renewed {
            Fresh::Grown(entries) if !entries.is_empty() => Renewed::Grown(entries.len()),
            Fresh::Same | Fresh::Grown(_) => Renewed::Same,
            Fresh::Moved => Renewed::Moved,
        })
    }

    /// Returns whether something was taken out of the session since: the conversation is where it was then, and says
    /// something else.
    fn is_covered(&self, store: &dyn Store) -> Result<bool, SessionError> {
        let Some((known, _)) = self.newest else { return Ok(false) };
        let since = store.operations(self.session.key, known.next()..OperationNumber::ALL.end)?;
        Ok(since.iter().any(|operation| operation.command.is_final()))
    }

    /// Compares the conversation up to another position with the entries that were read.
    fn compare(
        &self,
        store: &dyn Store,
        position: Option<Position>,
    ) -> Result<Fresh, SessionError> {
        if self.position == position {
            return Ok(Fresh::Same);
        }
        // A branch with the same end in another generation may have other entries before it.
        let generation = |at: Option<Position>| at.map(|at| at.generation);
        let stays = generation(self.position) == generation(position);
        let known = self.read.first().copied().filter(|_| stays);
        let (Some(known), Some(view)) = (known, self.view(store, position)) else {
            return Ok(Fresh::Moved);
        };
        let mut asked = FIRST;
        loop {
            let (mut fresh, is_whole) = conversation(&view, asked)?;
            if let Some(grown) = fresh.iter().position(|entry| *entry == known) {
                fresh.truncate(grown);
                return Ok(Fresh::Grown(fresh));
            }
            if is_whole || asked >= GROWN {
                return Ok(Fresh::Moved);
            }
            asked = asked.saturating_mul(4);
        }
    }

    /// Returns up to `count` entries of the conversation, the first one first, without the last `skipped` ones; fewer only
    /// where it begins.
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
        lines(store, &self.session, &view, &entries)
    }

    fn view<'a>(&self, store: &'a dyn Store, position: Option<Position>) -> Option<View<'a>> {
        let Session { key, format, .. } = self.session;
        let view = |at| View::over(store, Some(key), format, at);
        position.map(|at| view(at).gathering(&Damages::gathered()))
    }
}

/// Returns the same as [`conversation_among`], the last entry first.
fn conversation(view: &View<'_>, asked: usize) -> Result<(Vec<EntryNumber>, bool), SessionError> {
    let (Path { mut entries, .. }, is_whole) = conversation_among(view, asked)?;
    entries.reverse();
    Ok((entries, is_whole))
}
