//! Persistence: the traits between sessions and the place where they are kept.
//!
//! A store holds three classes of data. **Facts** ([`FactStore`]) arrive with an operation and never change. **Bytes**
//! ([`ByteStore`]) are lines, and files kept byte for byte; how they are packed is the store's own affair. **Derived**
//! rows and caches ([`CacheStore`]) are computed by the caller, arrive with the facts and may be replaced. All of it is
//! written in a [`Transaction`], which undoes itself when it is dropped. A store decides nothing about sessions: it
//! keeps its input, refuses a commit that contradicts its content ([`Commit::check`]), and checks all that it reads.
//!
//! ```text
//! overlay   recent operations, laid over a store beneath: one way of answering for all stores
//! memory    an overlay over nothing, the oracle of the tests, or over another store, which it never changes
//! sqlite    an overlay of the operations in its journal over its tables
//! ```
//!
//! Invariant: [`Transaction::commit`] is one atomic and durable step; when it returns, everything that was added survives a
//! power cut. Nobody else sees a part of it; a caller that asks the transaction's store sees all additions so far.
//! Invariant: absence is `None` or an empty answer; an error means that the store failed or is damaged.

mod answer;
mod bundle;
mod commit;
mod encoding;
mod error;
mod fault;
mod memory;
mod overlay;
mod sieve;
mod sqlite;
mod threads;
mod traits;
mod values;

pub use bundle::{BundleError, BundleReader, BundleWriter, Bundled, is_bundle};
pub use commit::{
    Commit, Covered, Covering, Coverings, FileCovering, Known, NewLine, RunsCovering, TakenOut,
    Whole,
};
pub use error::{FaultKind, StoreError};
pub(crate) use error::{OTHER_WITNESS, sound};
pub use fault::Fault;
pub use memory::MemoryStore;
pub use sieve::Sieve;
pub use sqlite::{
    Access, Document, FORMAT_VERSION, Loss, Mark, Piece, RULES_VERSION, Reach, Salvage, Settled,
    SqliteStore, WEIGHTS, Wanted, WantedFile, Weight, Witness, WordIndex, is_witnessed,
};
pub(crate) use threads::cores;
pub use traits::{
    ByteStore, CacheStore, DoorStore, FactStore, Reading, Store, Transaction, whole_lines,
};
pub use values::{
    Came, Committed, Cursor, Derived, Listed, SessionFilter, SessionKey, Sighting, Sizes, Total,
    Within, nearest,
};
