//! Faults: the findings of a check.

use crate::{
    model::DATABASE,
    store::{FaultKind, SessionKey, StoreError},
};

/// A finding of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// How serious it is.
    pub kind: FaultKind,
    /// The session, if it is about one.
    pub session: Option<SessionKey>,
    /// The damaged item, such as `entry 12` or `segment 3`.
    pub item: String,
    /// The problem with it.
    pub problem: String,
}

impl Fault {
    /// Makes a fault of one item.
    pub(crate) fn of(
        session: Option<SessionKey>,
        item: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Self { kind: FaultKind::Thing, session, item: item.into(), problem: problem.into() }
    }

    /// Makes a fault of the whole store.
    pub(crate) fn of_store(problem: impl Into<String>) -> Self {
        Self { kind: FaultKind::Store, ..Self::of(None, DATABASE, problem) }
    }

    /// Returns the damage that an error reports, or else the error.
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
