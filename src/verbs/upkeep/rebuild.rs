//! Rebuilding: the derived rows are made again from facts and bytes.

use crate::{
    archive::{Archive, rebuild as rows},
    change,
    report::Rebuilt,
    session::Session,
    verbs::OpsError,
};

/// Makes the derived rows of a session again and replaces those that are not equal.
pub fn rebuild(archive: &mut Archive, session: &Session) -> Result<Rebuilt, OpsError> {
    Ok(change::exclusively(archive, |store| rows::rebuild(store, session))?)
}

/// Makes the sums over all sessions again, once the derived rows of each are made again.
pub fn sum_up(archive: &mut Archive) -> Result<(), OpsError> {
    Ok(change::exclusively(archive, rows::freshen)?)
}
