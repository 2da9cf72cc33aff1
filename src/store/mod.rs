//! Persistence: the traits between sessions and storage, with their implementations.
//!
//! A store holds three classes of data. **Facts** ([`FactStore`]) arrive with an operation and never change. **Bytes**
//! ([`ByteStore`]) are lines, and files stored byte for byte; their compression is up to the store. **Derived** rows and
//! caches ([`CacheStore`]) are computed by the caller, arrive with the facts and may be replaced. All of it is written in a
//! [`Transaction`], which rolls back when it is dropped. A store makes no decisions about sessions: it stores its input,
//! refuses a commit that contradicts its content ([`Commit::check`]), and verifies everything it reads.
//!
//! ```text
//! overlay   recent operations on top of other data; all stores answer queries through it
//! memory    an overlay alone, the oracle of the tests, or on top of another store, which it never changes
//! sqlite    an overlay of the operations in its journal, on top of its tables
//! ```
//!
//! Invariant: no [`Transaction::commit`] is partial. It is atomic and durable: when it returns, everything added survives a power
//! cut. No one else sees a part of it; the caller sees all additions so far through the transaction's store.
//! Invariant: no absence is an error: it is `None` or an empty answer. An error means that the store failed or is damaged.

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
pub use error::{ErrorKind, FaultKind, StoreError};
pub(crate) use error::{OTHER_WITNESS, beginnings, damage, elsewhere, full, has_others, sound};
pub use fault::Fault;
pub use memory::MemoryStore;
pub use sieve::Sieve;
pub use sqlite::{
    Access, Document, FORMAT_VERSION, Loss, Mark, Piece, RULES_VERSION, Reach, Salvage, Settled,
    SqliteStore, Testimony, WEIGHTS, Wanted, WantedFile, Weight, Witness, WordIndex, is_witnessed,
};
pub(crate) use threads::cores;
pub use traits::{
    ByteStore, CacheStore, DoorStore, FactStore, Reading, Store, Transaction, whole_lines,
};
pub use values::{
    Came, Committed, Cursor, Derived, Listed, SessionFilter, SessionKey, Sighting, Sizes, Total,
    Within, nearest,
};
