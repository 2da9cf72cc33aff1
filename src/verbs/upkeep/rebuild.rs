//! Rebuilding: computes the derived rows again from facts and bytes.

use crate::{
    archive::{Archive, rebuild as rows},
    change,
    report::Rebuilt,
    session::Session,
    verbs::OpsError,
};

/// Computes the derived rows of a session again and replaces those that differ.
pub fn rebuild(archive: &mut Archive, session: &Session) -> Result<Rebuilt, OpsError> {
    Ok(change::exclusively(archive, |store| rows::rebuild(store, session))?)
}

/// Computes the totals over all sessions again, after the derived rows of each session were rebuilt.
pub fn sum_up(archive: &mut Archive) -> Result<(), OpsError> {
    Ok(change::exclusively(archive, rows::freshen)?)
}
