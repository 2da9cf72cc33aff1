//! Changes of sessions: a verb's plan becomes an operation, and the session's live file follows it.
//!
//! ```text
//! execute     lock, reconcile, ask the verb for its plan, prepare the plan's goal, commit, let the live file follow
//! reconcile   before a change, a session and its live file are brought to agree
//! goal        what a plan wants of the live file: add, reach, replay, compact
//! draft       the operation while it is put together, its commit, and the steps on files
//! ```
//!
//! Invariant: a change that fails before its commit has changed nothing but a temporary file.

pub(crate) mod draft;
pub(crate) mod execute;
pub(crate) mod goal;
pub(crate) mod reconcile;
pub(crate) mod start;

pub(crate) use execute::{cache, exclusively, execute, execute_first, execute_uncaught};
pub use start::{is_unsaid, resume, settle, waiting};
