//! Waiting changes: requested while an agent has the session open, made when the session is resumed.
//!
//! ```text
//! later      stores the request; it replaces one that is waiting
//! waiting    reads it
//! resume     plans the request again and makes the change; that operation drops the request as it moves the session
//! undo       drops the request, and redo restores it
//! ```
//!
//! Invariant: a session never has two waiting changes, and only the verb named in the request makes it.

use crate::{
    archive::At,
    change::{self, goal::Stay},
    files::at::Standing,
    model::{Command, MachineId, OperationNumber, Request, Text},
    report::{Delayed, Waiting},
    session::{
        Session,
        plan::{Plan, Steps, branch_text, given},
    },
    verbs::{
        OpsError,
        back::target::{Back, check_note, named, undoable},
    },
};

/// The option that keeps the turn.
const KEEP: &str = "--keep";
/// The option that sets the agent's file aside.
const ROTATE: &str = "--rotate";

/// A change that is requested now and made later.
#[derive(Clone, Debug)]
pub enum Later {
    /// Going back to just before a place, with an optional note.
    Revert(String, Option<String>),
    /// Going back to just after a turn, with an optional note.
    Keep(String, Option<String>),
    /// Making a branch current.
    Switch(String),
    /// Undoing an operation; by default the newest that moved the conversation.
    Undo(Option<OperationNumber>),
    /// A compaction, with its command-line options.
    Compact(Vec<String>),
}

impl Later {
    /// Decodes a waiting change. Returns nothing if part of it was redacted or a newer program requested it.
    pub fn of(waiting: &Waiting) -> Option<Self> {
        let Request { verb, operation, note, options, .. } = &waiting.request;
        let is_redacted = |text: &Text| matches!(text, Text::Absent(_));
        if note.iter().chain(options).any(is_redacted) {
            return None;
        }
        let note = note.as_ref().map(Text::to_text);
        let place = waiting.place();
        match verb.as_str() {
            "revert" if waiting.has(KEEP) => Some(Self::Keep(place?, note)),
            "revert" => Some(Self::Revert(place?, note)),
            "switch" => Some(Self::Switch(place?)),
            "undo" => Some(Self::Undo(*operation)),
            "compact" => {
                let words = options.iter().map(Text::to_text);
                Some(Self::Compact(words.filter(|word| word != ROTATE).collect()))
            }
            _ => None,
        }
    }
}

/// Stores a change to be made when the session is resumed.
pub fn later(session: &At<'_>, change: &Later) -> Result<Delayed, OpsError> {
    let (replaced, made) = change::execute(session, |before| {
        let mut request = request(before, session, change)?;
        if session.archive.manner.rotate {
            request.options.push(Text::Own(ROTATE.to_owned()));
        }
        request.machine =
            Some(session.archive.here().machine).filter(|n| *n != MachineId::default());
        let command = Command::Later { verb: request.verb.clone() };
        let steps = Steps { request: Some(request), ..Steps::default() };
        let replaced = change::waiting(&before.opened()?)?;
        Ok::<_, OpsError>((replaced, Some(Plan { command, steps, goal: Stay })))
    })?;
    let waiting = change::waiting(&session.again()?)?.unwrap_or_default();
    Ok(Delayed { waiting, replaced, notices: made.done.notices })
}

fn request(before: &Standing<'_>, session: &Session, change: &Later) -> Result<Request, OpsError> {
    let opened = before.opened()?;
    let find = |back: Back<'_>| Ok::<_, OpsError>(named(before, &back.find(&opened)?)?);
    let own = |word: &str| Text::Own(word.to_owned());
    let (verb, request) = match change {
        Later::Revert(place, note) => {
            check_note(note.as_deref())?;
            let mut request = find(Back::To(place))?;
            // The current branch will grow, so its end is stored as an entry.
            request.branch.take_if(|branch| branch.to_text() == before.state.current());
            ("revert", Request { note: note.as_deref().map(given), ..request })
        }
        Later::Keep(place, note) => {
            check_note(note.as_deref())?;
            find(Back::Keeping(place))?;
            let (note, options) = (note.as_deref().map(given), vec![own(KEEP)]);
            ("revert", Request { note, options, ..find(Back::To(place))? })
        }
        Later::Switch(name) => {
            if !before.state.branches.contains_key(name) {
                return Err(OpsError::no_branch(&before.state, name));
            }
            ("switch", Request { branch: Some(branch_text(name)), ..Request::default() })
        }
        Later::Undo(wanted) => {
            let operation = Some(undoable(before, session, *wanted)?.n);
            ("undo", Request { operation, ..Request::default() })
        }
        Later::Compact(words) => {
            let text = |word: &String| if word.contains('=') { given(word) } else { own(word) };
            let options = words.iter().map(text).collect();
            ("compact", Request { options, ..Request::default() })
        }
    };
    Ok(Request { verb: verb.to_owned(), ..request })
}
