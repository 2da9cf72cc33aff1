//! Listing: sessions as lists show them, sub-agents below the session that they work for.

use std::collections::BTreeSet;

use crate::{
    model::SessionName,
    ops::OpsError,
    report::{DamagedSession, ListedSession, Listing},
    session::{Bond, Kin, Session, kin, listing},
    store::{SessionFilter, StoreError},
    sync::{Archive, gone},
};

/// Returns the sessions that a filter lets through, the newest first, each with the session that it was made of. Those that
/// cannot be read are named next to them.
pub fn list(archive: &Archive, filter: &SessionFilter) -> Result<Listing, OpsError> {
    let found = listing::listed(archive.store(), filter)?;
    let mut damaged: Vec<DamagedSession> = Vec::new();
    let mut damage = |name: SessionName, error: OpsError| match error {
        OpsError::Store(error @ StoreError::Corrupt { .. }) => {
            damaged.push(DamagedSession { name, problem: error.to_string() });
            Ok(())
        }
        error => Err(error),
    };
    for (name, error) in found.damaged {
        damage(name, error.into())?;
    }
    let mut sessions = Vec::new();
    for found in found.listed {
        let session = archive.session(&found.name)?;
        let (kin, gone) = match session.map(|session| beyond(archive, &session)).transpose() {
            Ok(beyond) => beyond.unwrap_or_default(),
            Err(error) => {
                damage(found.name.clone(), error)?;
                (None, false)
            }
        };
        sessions.push(ListedSession { name: found.name, card: found.card, kin, gone });
    }
    Ok(Listing { sessions: below_parents(sessions), damaged })
}

/// Returns the session that one was made of, and whether its agent's file is gone.
fn beyond(archive: &Archive, session: &Session) -> Result<(Option<Kin>, bool), OpsError> {
    let state = archive.store().state(session.key)?;
    Ok((kin(archive.store(), session)?, gone::lost(archive, &state).is_some()))
}

/// Puts sub-agents below the session that they work for.
fn below_parents(listed: Vec<ListedSession>) -> Vec<ListedSession> {
    let names: BTreeSet<_> = listed.iter().map(|found| found.name.clone()).collect();
    let parent = |found: &ListedSession| {
        let kin = found.kin.as_ref().filter(|kin| kin.bond == Bond::SubAgent)?;
        let name = SessionName { format: found.name.format.clone(), id: kin.session.clone() };
        names.contains(&name).then_some(name)
    };
    let (aside, mut ordered): (Vec<_>, Vec<_>) =
        listed.into_iter().partition(|listed| parent(listed).is_some());
    // The newest comes last here, so that it ends up right below its session.
    let mut left: Vec<_> = aside.into_iter().rev().collect();
    while !left.is_empty() {
        let before = left.len();
        let mut rest = Vec::new();
        for listed in left {
            let wanted = parent(&listed);
            match ordered.iter().position(|found| Some(&found.name) == wanted.as_ref()) {
                Some(place) => ordered.insert(place + 1, listed),
                None => rest.push(listed),
            }
        }
        left = rest;
        if left.len() == before {
            // Sub-agents of each other belong below nothing.
            ordered.append(&mut left);
        }
    }
    ordered
}
