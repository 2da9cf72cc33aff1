//! Changes of sessions: a verb's plan becomes an operation, and the session's live file follows it.
//!
//! ```text
//! execute     locks, reconciles, asks the verb for its plan, prepares the plan's goal, commits, updates the live file
//! reconcile   makes a session and its live file agree before a change
//! goal        what a plan wants for the live file: add, reach, replay, compact
//! draft       the operation under construction, its commit, and the steps on files
//! ```
//!
//! Invariant: a change that fails before its commit has changed nothing except a temporary file.

pub(crate) mod draft;
pub(crate) mod execute;
pub(crate) mod goal;
pub(crate) mod reconcile;
pub(crate) mod start;

pub(crate) use execute::{cache, exclusively, execute, execute_first, execute_uncaught};
pub use start::{is_unsaid, resume, settle, waiting};
