//! Branches: made, listed, and made current.

use crate::{
    model::{Command, Position},
    ops::OpsError,
    report::Branched,
    session::{Session, Target},
    sync::{self, Archive, SyncError, reach::reach},
};

/// Returns the branches, and which of them is current.
pub fn branches(
    archive: &Archive,
    session: &Session,
) -> Result<(Vec<(String, Position)>, String), OpsError> {
    let tip = archive.store().state(session.key)?;
    let current = tip.current().to_owned();
    Ok((tip.branches.into_iter().collect(), current))
}

/// Makes a branch at a target, or where the current one stands.
pub fn branch(
    archive: &mut Archive,
    session: &Session,
    name: &str,
    target: Option<&Target>,
) -> Result<Branched, OpsError> {
    check_name(name)?;
    let mut change = sync::begin(archive, session)?;
    if change.branch(name).is_some() {
        return Err(OpsError::BranchExists(name.to_owned()));
    }
    let here = target.map(|target| target.position).or(change.position());
    let Some(position) = here else { return Err(SyncError::Nothing("branch from").into()) };
    change.set_branch(name, Some(position));
    let branch = change.branch_text(name);
    let outcome = sync::commit(change, Command::Branch { branch })?;
    Ok(Branched {
        operation: Some(outcome.operation),
        branch: name.to_owned(),
        position,
        rotated: None,
        written: None,
        notices: outcome.notices,
    })
}

/// Makes a branch the current one: the live file holds it from now on.
pub fn switch(archive: &mut Archive, session: &Session, name: &str) -> Result<Branched, OpsError> {
    let mut change = sync::begin(archive, session)?;
    let Some(target) = change.branch(name) else {
        let branches = change.tip.branches.keys().cloned().collect();
        return Err(OpsError::NoBranch { wanted: name.to_owned(), branches });
    };
    let mut branched = Branched {
        operation: None,
        branch: name.to_owned(),
        position: target,
        rotated: None,
        written: None,
        notices: change.notices.clone(),
    };
    let from = change.tip.current().to_owned();
    if from == name {
        return Ok(branched);
    }
    if change.position() != Some(target) {
        let reached = reach(&mut change, target, None)?;
        change.set_branch(name, Some(reached.position));
        branched.position = reached.position;
        (branched.rotated, branched.written) = (reached.aside, reached.written);
    }
    change.set_current(name);
    let (from, branch) = (change.branch_text(&from), change.branch_text(name));
    branched.operation = Some(sync::commit(change, Command::Switch { from, branch })?.operation);
    Ok(branched)
}

/// Returns whether a branch may have a name.
pub fn is_branch_name(name: &str) -> bool {
    check_name(name).is_ok()
}

/// Refuses names that a person could not tell from other selectors, or from a session.
fn check_name(name: &str) -> Result<(), OpsError> {
    let bad = |why| Err(OpsError::BadName { name: name.to_owned(), why });
    if name.is_empty() || name.chars().count() > 100 {
        return bad("it must have 1 to 100 characters");
    }
    if name.chars().any(|c| c.is_control() || c.is_whitespace() || "@~:/\\".contains(c)) {
        return bad("white space, control characters and @ ~ : / \\ are not allowed");
    }
    if name.starts_with('-') || name.starts_with('.') {
        return bad("it begins with a dash or a dot");
    }
    if name == "HEAD" || name.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
        return bad("it reads like an id");
    }
    Ok(())
}
