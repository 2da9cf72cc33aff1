//! Listing: the sessions that match a filter, and separately those too damaged to decide.
//!
//! A store answers from one index. If the index or the row of a session is damaged, the sessions are read one by one.

use std::cmp::Reverse;

use crate::{
    model::{SessionName, TieKind},
    store::{Listed, SessionFilter, SessionKey, Store, StoreError},
};

/// The sessions that match a filter.
#[derive(Default)]
pub(crate) struct Found {
    /// Newest first.
    pub(crate) listed: Vec<Listed>,
    /// Sessions for which the filter cannot be decided, with their damage.
    pub(crate) damaged: Vec<(SessionName, StoreError)>,
}

/// Returns the sessions that match a filter.
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

/// Returns true if a session works for another one in the store.
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
