//! Faults: what a check of a store finds wrong.

use crate::{
    model::DATABASE,
    store::{FaultKind, SessionKey, StoreError},
};

/// Something wrong that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What it comes to.
    pub kind: FaultKind,
    /// The session, if one is concerned.
    pub session: Option<SessionKey>,
    /// The damaged item, such as `entry 12` or `segment 3`.
    pub item: String,
    /// The problem with it.
    pub problem: String,
}

impl Fault {
    /// Returns that one thing is not what was written.
    pub(crate) fn of(
        session: Option<SessionKey>,
        item: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Self { kind: FaultKind::Thing, session, item: item.into(), problem: problem.into() }
    }

    /// Returns that all of the store is not what was written.
    pub(crate) fn of_store(problem: impl Into<String>) -> Self {
        Self { kind: FaultKind::Store, ..Self::of(None, DATABASE, problem) }
    }

    /// Returns the damage that an error tells of, a session's or the store's, or else the error.
    pub(crate) fn of_error(
        error: StoreError,
        session: Option<SessionKey>,
    ) -> Result<Self, StoreError> {
        match error {
            StoreError::Corrupt(fault) => Ok(Self { session, ..fault }),
            error => Err(error),
        }
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        Self::Corrupt(fault)
    }
}
