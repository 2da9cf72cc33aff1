//! Listing: the sessions that a filter lets through, and next to them those of which too little can be read to tell.
//!
//! A store answers from one index. Where that, or the row of one session, is damaged, the sessions are asked one by one.

use std::cmp::Reverse;

use crate::{
    model::{SessionName, TieKind},
    store::{Listed, SessionFilter, SessionKey, Store, StoreError},
};

/// Sessions that a filter lets through.
#[derive(Default)]
pub(crate) struct Found {
    /// The newest first.
    pub(crate) listed: Vec<Listed>,
    /// Those of which cannot be told whether they belong there, each with its damage.
    pub(crate) damaged: Vec<(SessionName, StoreError)>,
}

/// Returns the sessions that a filter lets through.
pub(crate) fn listed(store: &dyn Store, filter: &SessionFilter) -> Result<Found, StoreError> {
    match store.sessions(filter) {
        Err(StoreError::Corrupt { .. }) => one_by_one(store, filter),
        listed => Ok(Found { listed: listed?, damaged: Vec::new() }),
    }
}

fn one_by_one(store: &dyn Store, filter: &SessionFilter) -> Result<Found, StoreError> {
    let mut found = Found::default();
    for (key, name) in store.names()? {
        let card = store.card(key).and_then(|card| {
            let is_left_out = !filter.sub_agents && is_sub_agent(store, key, &name)?;
            Ok((card, is_left_out))
        });
        match card {
            Ok((card, is_left_out)) => {
                let listed = Listed { key, name, card };
                if !is_left_out && filter.matches(&listed) {
                    found.listed.push(listed);
                }
            }
            Err(error @ StoreError::Corrupt { .. }) if filter.may_match(&name) => {
                found.damaged.push((name, error));
            }
            Err(StoreError::Corrupt { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    found.listed.sort_by_key(|listed| Reverse((listed.card.active, listed.key)));
    found.listed.truncate(filter.limit.unwrap_or(usize::MAX));
    Ok(found)
}

/// Returns whether a session works for another one that is there.
fn is_sub_agent(
    store: &dyn Store,
    session: SessionKey,
    name: &SessionName,
) -> Result<bool, StoreError> {
    for tie in store.ties(session)?.into_iter().flat_map(|(_, ties)| ties) {
        let other = SessionName { format: name.format.clone(), id: tie.other };
        if tie.kind == TieKind::SubAgent && store.session(&other)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
