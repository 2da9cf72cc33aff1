//! Creates, lists, renames, hides and switches branches.

use crate::{
    archive::{At, SyncError, Vain},
    change::{
        self,
        goal::{Stay, reach::Reach},
    },
    json::Raw,
    model::{Command, Kind, Position, State, Timestamp, first_line},
    report::{Branched, ListedBranch, Switched},
    session::{
        Damages, Stored, Target, View,
        plan::{Plan, Steps, branch_text},
        read::lines::last,
        words,
    },
    verbs::{OpsError, back::landing::landing, look::note::said_from_later},
    wire::Graph as _,
};

/// How many entries before the end of a branch are searched for its last message.
const LAST: usize = 16;

/// Returns the branches.
pub fn branches(session: &At<'_>) -> Result<Vec<ListedBranch>, OpsError> {
    let listed = session.state.branches.iter().map(|(branch, &position)| {
        let view = session.view(position);
        let (time, said) = last_words(&view.gathering(&Damages::gathered()))?;
        let first = |text: String| first_line(&text).unwrap_or_default().to_owned();
        let opening = session.format.traits().note_opening;
        let words = said.map(|text| match said_from_later(&text, opening) {
            Some(later) => first(later.to_owned()),
            None => words(&text).unwrap_or_else(|| first(text)),
        });
        Ok(ListedBranch {
            branch: Some(branch.clone()),
            entry: session.entry_id(position.head)?,
            current: branch == session.state.current(),
            time,
            words,
            ..ListedBranch::default()
        })
    });
    listed.collect()
}

/// Returns the last message on a view's path and its time. Without a message, the time is that of the last entry.
fn last_words(view: &View<'_>) -> Result<(Option<Timestamp>, Option<String>), OpsError> {
    let mut time = None;
    let last = last(view, LAST)?.entries;
    for &entry in last.iter().rev() {
        let record = view.record(entry)?;
        if Some(&entry) == last.last() {
            time = record.time;
        }
        if matches!(record.kind, Kind::User | Kind::Note | Kind::Assistant | Kind::Summary) {
            let line = view.line(entry)?;
            let messages = Raw::object(&line).map(|record| view.format.messages(record));
            let mut texts = messages.unwrap_or_default().into_iter().rev().map(|it| it.text());
            if let Some(text) = texts.find(|text| !text.trim().is_empty()) {
                return Ok((record.time.or(time), Some(text)));
            }
        }
    }
    Ok((time, None))
}

/// Creates a branch at a target, or at the current position.
pub fn branch(session: &At<'_>, name: &str, target: Option<&Target>) -> Result<Branched, OpsError> {
    check_name(name)?;
    let (entry, made) = change::execute(session, |before| {
        if before.state.branches.contains_key(name) {
            return Err(OpsError::BranchExists(name.to_owned()));
        }
        let here = target.map(|target| target.position).or(before.position());
        let Some(position) = here else { return Err(SyncError::Nothing(Vain::Branch).into()) };
        let entry = position.head.map(|head| before.id_of(head)).transpose()?;
        let mut steps = Steps::default();
        steps.set(name, Some(position));
        let command = Command::Branch { branch: branch_text(name), from: None };
        Ok((entry, Some(Plan { command, steps, goal: Stay })))
    })?;
    let branch = name.to_owned();
    Ok(Branched { branch, entry, from: None, hidden: false, done: made.done })
}

/// Renames a branch.
pub fn rename_branch(session: &At<'_>, from: &str, name: &str) -> Result<Branched, OpsError> {
    check_name(name)?;
    let (entry, made) = change::execute(session, |before| {
        let position = stands(&before.state, from)?;
        if before.state.branches.contains_key(name) {
            return Err(OpsError::BranchExists(name.to_owned()));
        }
        let entry = position.head.map(|head| before.id_of(head)).transpose()?;
        let mut steps = Steps::default();
        steps.set(name, Some(position));
        steps.set(from, None);
        steps.current = (before.state.current() == from).then(|| name.to_owned());
        let command = Command::Branch { branch: branch_text(name), from: Some(branch_text(from)) };
        Ok((entry, Some(Plan { command, steps, goal: Stay })))
    })?;
    let (branch, from) = (name.to_owned(), Some(from.to_owned()));
    Ok(Branched { branch, entry, from, hidden: false, done: made.done })
}

/// Hides a branch from lists. Its name becomes free; its entries stay.
pub fn hide_branch(session: &At<'_>, name: &str) -> Result<Branched, OpsError> {
    let (entry, made) = change::execute(session, |before| {
        let position = stands(&before.state, name)?;
        if before.state.current() == name {
            return Err(OpsError::CurrentBranch(name.to_owned()));
        }
        let entry = position.head.map(|head| before.id_of(head)).transpose()?;
        let mut steps = Steps::default();
        steps.set(name, None);
        let command = Command::Hide { hidden: true, branch: Some(branch_text(name)) };
        Ok((entry, Some(Plan { command, steps, goal: Stay })))
    })?;
    let branch = name.to_owned();
    Ok(Branched { branch, entry, from: None, hidden: true, done: made.done })
}

/// Returns the end of a branch.
pub fn branch_end(session: &Stored<'_>, name: &str) -> Result<Target, OpsError> {
    let position = stands(&session.state, name)?;
    Ok(Target { position, checkpoint: None, branch: Some(name.to_owned()) })
}

/// Returns the position of a branch.
fn stands(state: &State, name: &str) -> Result<Position, OpsError> {
    state.branches.get(name).copied().ok_or_else(|| OpsError::no_branch(state, name))
}

/// Makes a branch current: the live file contains it from now on.
pub fn switch(session: &At<'_>, name: &str) -> Result<Switched, OpsError> {
    let ((entry, from), made) = change::execute(session, |before| {
        let target = stands(&before.state, name)?;
        let entry = target.head.map(|head| before.id_of(head)).transpose()?;
        let (from, stood) = (before.state.current(), before.position());
        if from == name {
            return Ok::<_, OpsError>(((entry, stood), None));
        }
        let steps = Steps { current: Some(name.to_owned()), ..Steps::default() };
        let moves = before.position() != Some(target);
        let goal = moves.then_some(Reach { target, note: None });
        let command = Command::Switch { from: branch_text(from), branch: branch_text(name) };
        Ok(((entry, stood), Some(Plan { command, steps, goal })))
    })?;
    let reached = made.reached.flatten();
    Ok(Switched {
        branch: name.to_owned(),
        entry: reached.map_or(entry, |reached| reached.entry),
        done: made.done,
        landing: landing(session, from, None),
    })
}

/// Returns true if a name is valid for a branch.
pub fn is_branch_name(name: &str) -> bool {
    check_name(name).is_ok()
}

/// Refuses names that look like other selectors or like a session.
fn check_name(name: &str) -> Result<(), OpsError> {
    let bad = |why| Err(OpsError::BadName { name: name.to_owned(), why });
    if name.is_empty() || name.chars().count() > 100 {
        return bad("it must have 1 to 100 characters");
    }
    if name.chars().any(|c| c.is_control() || c.is_whitespace() || "@~:/\\".contains(c)) {
        return bad("white space, control characters and @ ~ : / \\ are not allowed");
    }
    if name.starts_with('-') || name.starts_with('.') {
        return bad("it must not begin with a dash or a dot");
    }
    if name == "HEAD" {
        return bad("HEAD always means where the session is");
    }
    if name.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
        return bad("it looks like an id");
    }
    Ok(())
}
