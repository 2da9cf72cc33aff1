//! Rebuilding: the derived rows are made again from facts and bytes.

use crate::{
    ops::OpsError,
    session::Session,
    sync::{self, Archive, Rebuilt, rebuild as rows},
};

/// Makes the derived rows of a session again and replaces those that are not equal.
pub fn rebuild(archive: &mut Archive, session: &Session) -> Result<Rebuilt, OpsError> {
    Ok(sync::exclusively(archive, |store| rows::rebuild(store, session))?)
}

/// Makes the derived rows of all sessions again, such as those that an older version of the program has left.
pub fn rebuild_all(archive: &mut Archive) -> Result<(), OpsError> {
    Ok(sync::exclusively(archive, rows::rebuild_all)?)
}
