//! Undertext keeps everything a coding agent ever saw: an append-only, content-addressed, branching store for agent
//! sessions, over the files that agents already write.
//!
//! This page is the architecture: what the words mean, where things are, and what must never happen. The library has the
//! verbs; the program `undertext` is a thin command line on them.
//!
//! # An example
//!
//! ```
//! use undertext::verbs::{self, Archive, Handle, Layers, Machine, OpsError};
//! use undertext::store::Access;
//! use undertext::wire::{Draft, Speaker};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let workspace = verbs::workspace(folder.path());
//! let mut archive = Archive::open(&folder.path().join("store"), Access::Write, Box::new(Machine))?;
//! let session = verbs::new(&mut archive, &Layers::default(), &workspace)?.session;
//!
//! // A batch is one operation; each message of the user has a checkpoint before it.
//! let said = [
//!     Draft::Message(Speaker::User, "Why does the build fail?".to_owned()),
//!     Draft::Message(Speaker::Assistant, "A symbol is missing.".to_owned()),
//!     Draft::Message(Speaker::User, "Then mend it.".to_owned()),
//! ];
//! let appended = verbs::append(&mut archive, &session, &workspace, &said)?;
//! assert_eq!(appended.checkpoints, [0, 1]);
//!
//! // A checkpoint of one's own is where the session is.
//! let marked = verbs::checkpoint(&mut archive, &session, Some("before the mending"))?;
//! assert_eq!(marked.checkpoint, 2);
//!
//! // Back to before the second message, with a note for the model; what was left has a name.
//! let note = Some("The symbol is in libm.");
//! let reverted = verbs::revert(&mut archive, &session, &workspace, "1", note)?;
//! assert_eq!(reverted.left.as_deref(), Some("main.1"));
//! let last = |archive: &Archive| -> Result<String, OpsError> {
//!     let log = verbs::log(archive.store(), &session, None, 1)?;
//!     Ok(log.lines.iter().flat_map(|line| &line.messages).map(|message| message.text()).collect())
//! };
//! assert!(last(&archive)?.contains("libm"));
//!
//! // And forth again.
//! verbs::undo(&mut archive, &session, None)?;
//! assert_eq!(last(&archive)?, "Then mend it.");
//!
//! // A program that stays open holds the session by a handle, which keeps the last messages in memory.
//! let mut handle = Handle::new(archive, session.clone(), workspace);
//! handle.say(Speaker::Assistant, "Done.")?;
//! let recent: Vec<String> = handle.messages(2)?.iter().map(|message| message.text()).collect();
//! assert_eq!(recent, ["Then mend it.", "Done."]);
//!
//! // Every hash is computed again.
//! let verified = verbs::verify(handle.archive(), Some(&session), &mut |_| ())?;
//! assert_eq!((verified.entries, verified.damaged), (5, 0));
//! # Ok(())
//! # }
//! ```
//!
//! # Vocabulary
//!
//! - **session**: one conversation of one agent; named for ever by the format and the agent's id.
//! - **line**: the bytes of one record as they arrived; its **separator** is the white space before it.
//! - **tail**: the bytes behind the last line of a file, which are not yet a line.
//! - **text**: a JSON string of 256 bytes or more inside a line, stored once.
//! - **entry**: a line in a session; its id covers the line, and the entry before it if the record has no name.
//! - **generation**: one state of one file: its entries in order, with their separators and the tail.
//! - **base**: the file from which another file of the same session goes on; a path reads through it.
//! - **run**: a stretch by which a generation grew.
//! - **position**: a generation, a head in it, and a horizon behind which nothing exists.
//! - **path**: the entries up to a position's head, as the agent's own resume would read them.
//! - **branch**: a name for a position; one is **current**, and the live file holds it.
//! - **checkpoint**: a number, given once, and its place; every turn of the user has one.
//! - **boundary**: where a history was compacted; its summary follows.
//! - **signpost**: a record that is no part of the conversation, but may say where a path goes.
//! - **origin**: the entry that a changed entry represents. The part that only the origin holds is **undertext**.
//! - **operation**: one command that changed a session; its hash covers its facts and the operation before it.
//! - **live file**: the file that the agent reads and appends to.
//! - **rotation**: the live file is set aside and another one put in its place.
//! - **archive**: a store with its live files.
//!
//! # Three classes of data
//!
//! - **Facts** ([`model::Facts`]) arrive with an operation and never change; its hash vouches for them.
//! - **Bytes** are lines, addressed by their content ([`model::LineId`]); their packing may change.
//! - **Derived** rows ([`model::Record`], [`model::Card`]) are functions of the other two, and [`verbs::rebuild`] makes equal ones.
//!
//! # Code map
//!
//! Each folder may import the ones after its arrow, and a test checks this table. Another test checks that the folders in one folder
//! do not import each other in a circle.
//!
//! ```text
//! json      a scanner of bytes, and edits in place      -> nothing
//! cover     what is to go of a line is written over      -> json
//! dag       graphs over closures                        -> nothing
//! model     values: ids, lines, facts, messages         -> json
//! settings  what the user sets, read from text          -> nothing
//! disk      reading what others wrote, changing files    -> nothing
//! trust     what this user has said on this machine     -> model disk
//! wire      formats, the only way in and out            -> model json dag
//! context   what a model sees of a session              -> model json
//! provider  models, the only code on a network          -> model json context secrets
//! store     persistence: facts, bytes, caches           -> model disk
//! live      files that an agent reads                   -> model json wire disk
//! session   a session as it is read, and verbs' plans   -> model json dag wire store
//! search    what was said in any session, by its words  -> model json wire store session
//! secrets   what looks like a secret in a text, masks   -> model json cover
//! report    what verbs answer, its JSON and hints       -> model wire context store session settings
//! archive   a store with its lock and its machine       -> model json wire store session live disk report settings
//! files     session files, as an archive knows them     -> model json wire store session live disk report settings archive
//! purge     redacted bytes go from everywhere           -> model wire store session live disk report archive files
//! change    a session is changed, and its live file     -> model json wire store session live disk report archive files purge
//! redaction bytes are taken out of sessions             -> model json cover store session live disk report archive files purge change
//! intake    files and bundles come in                   -> model json wire store session live disk report archive files change
//! mend      a damaged store is repaired                 -> model wire store session live disk report settings archive files change
//! verbs     a function each                             -> all of these but trust and provider
//! render    what is shown (of the program)              -> the library
//! cli       commands (of the program)                   -> the library, render
//! ```
//!
//! A command goes down like this: `cli` finds the archive and the session and calls a verb of [`verbs`]; the verb asks `change`
//! to execute it, which takes the archive's lock, catches up with the live file and shows the verb where the session
//! is; the verb answers with a plan, a value; `change` prepares the plan's goal, simulates a resume of it, commits the
//! operation to the [`store`] and has [`live`] write the live file; the verb returns a [`report`], which `render`
//! shows to people and programs read as JSON. Whoever reads, or wants a dry run, opens an archive as a preview: a store in memory is
//! laid over the real one, so that what the live file holds beyond it, or a whole change, is seen there and ends with the
//! value. Reading goes through an [`verbs::View`], which is the [`wire::Graph`] that a
//! [`wire::Format`] walks to find a path.
//!
//! The feature `models` has the room [`provider`], the feature `tokens` exact counts of tokens ([`context::tokens`]), the feature
//! `watch` the watching of folders ([`disk::Watch`]). All are on unless a library says `default-features = false`, and the
//! program needs all.
//!
//! To read the code, begin with [`model`], whose `id`, `line` and `operation` are the contract that is frozen, then
//! `schema.sql`, [`store`], [`wire::Format`] and [`verbs::append`].
//!
//! # Invariants
//!
//! Architecture invariant: nothing that the library returns or keeps comes from the clock, the time zone, chance or the
//! environment, but for the values of an [`verbs::Ambient`], which a caller passes in.
//!
//! Architecture invariant: only [`provider`] opens a connection, and no key is kept, logged or part of an error.
//!
//! Architecture invariant: SQL and names of columns stand only in `store/sqlite`. One exception: [`live::Index`] has those of the
//! databases in which Codex lists its sessions.
//!
//! Architecture invariant: the store decides nothing about sessions; it knows no format and opens no live file.
//!
//! Architecture invariant: no format opens a file, and nothing outside of [`wire`] knows the shape of an agent's records. One
//! exception: [`live::Index`] knows the tables and the locks of Codex's list of sessions.
//!
//! Architecture invariant: only [`live`] writes a file that an agent reads, no such file is written over, and a fact of
//! a store does not permit writing: [`live::Writable`] does. Each step of it is a method of [`disk::Disk`], so that a
//! test can break it. One exception: [`live::Index`] updates a database of Codex where it is. It changes the path of one session
//! in one statement, which SQLite carries out as a whole or not at all; no test can break the steps of that.
//!
//! Architecture invariant: an agent's settings are changed by [`live`] as a whole, from the bytes that were shown, and only into bytes
//! out of which the change can be taken again.
//!
//! Architecture invariant: [`disk`] opens and reads every file that others could have written: regular files only,
//! without waiting, to a cap.
//!
//! Architecture invariant: only the rooms from `archive` to `mend` take a lock or open a transaction. One exception: [`live::Index`] takes the locks by which
//! Codex says that it has a session loaded, and only when `change` asks for it.
//!
//! Architecture invariant: no fact is updated or deleted; the schema's triggers refuse it whoever asks.
//!
//! Architecture invariant: every write to a store happens in a [`store::Transaction`], which undoes itself unless it is
//! committed.
//!
//! Architecture invariant: no byte of a line is ever made canonical, completed or dropped, however broken it is.
//!
//! Architecture invariant: no verb that reads takes the lock, writes a byte or makes a folder. A verb of its own keeps
//! the counts made while reading, as a cache.
//!
//! Architecture invariant: the JSON of an answer is spelt in [`report`], and in no face.
//!
//! Architecture invariant: a hint is a value of the library, and a face spells its command line.
//!
//! Architecture invariant: text from outside reaches a terminal only through `render/safe`.
//!
//! Architecture invariant: no input makes a panic.

mod archive;
mod change;
pub mod context;
mod cover;
pub mod dag;
pub mod disk;
mod files;
mod intake;
pub mod json;
pub mod live;
mod mend;
#[cfg(test)]
mod messages;
pub mod model;
#[cfg(feature = "models")]
pub mod provider;
mod purge;
mod redaction;
pub mod report;
mod search;
mod secrets;
mod session;
pub mod settings;
pub mod store;
pub mod trust;
pub mod verbs;
pub mod wire;
