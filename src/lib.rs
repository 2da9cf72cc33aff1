//! Undertext is an append-only, content-addressed store with branches for the sessions of coding agents. It works on the files
//! that agents already write and keeps everything that an agent ever saw.
//!
//! This page describes the architecture: the vocabulary, the code map, and the invariants. The library implements the verbs; the
//! program `undertext` is a thin command line over them.
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
//! let archive = Archive::open(&folder.path().join("store"), Access::Write, Box::new(Machine))?;
//! let session = verbs::new(&archive, &Layers::default(), &workspace)?.session;
//!
//! // A batch is one operation. Each user message gets a checkpoint before it.
//! let said = [
//!     Draft::Message(Speaker::User, "Why does the build fail?".to_owned()),
//!     Draft::Message(Speaker::Assistant, "A symbol is missing.".to_owned()),
//!     Draft::Message(Speaker::User, "Then mend it.".to_owned()),
//! ];
//! let appended = verbs::append(&archive.at(&session)?, &workspace, &said)?;
//! assert_eq!(appended.checkpoints, [0, 1]);
//!
//! // You can also set a checkpoint at the current position.
//! let marked = verbs::checkpoint(&archive.at(&session)?, Some("before the mending"))?;
//! assert_eq!(marked.checkpoint, 2);
//!
//! // Revert to just before the second user message, with a note for the model. The reverted end gets a name.
//! let note = Some("The symbol is in libm.");
//! let reverted = verbs::revert(&archive.at(&session)?, &workspace, "1", note)?;
//! assert_eq!(reverted.left.as_deref(), Some("main.1"));
//! let last = |archive: &Archive| -> Result<String, OpsError> {
//!     let at = archive.at(&session)?;
//!     let log = verbs::log(&at, None, 1)?;
//!     Ok(log.lines.iter().flat_map(|line| &line.messages).map(|message| message.text()).collect())
//! };
//! assert!(last(&archive)?.contains("libm"));
//!
//! // Undo the revert.
//! verbs::undo(&archive.at(&session)?, None)?;
//! assert_eq!(last(&archive)?, "Then mend it.");
//!
//! // A long-running program uses a handle, which keeps the last messages in memory.
//! let mut handle = Handle::new(archive, session.clone(), workspace);
//! handle.say(Speaker::Assistant, "Done.")?;
//! let recent: Vec<String> = handle.messages(2)?.iter().map(|message| message.text()).collect();
//! assert_eq!(recent, ["Then mend it.", "Done."]);
//!
//! // Recompute every hash.
//! let verified = verbs::verify(handle.archive(), Some(&session), &mut |_| ())?;
//! assert_eq!((verified.entries, verified.damaged), (5, 0));
//! # Ok(())
//! # }
//! ```
//!
//! # Vocabulary
//!
//! - **session**: one conversation of one agent, permanently named by its format and the agent's id.
//! - **line**: the bytes of one record exactly as read; its **separator** is the white space before it.
//! - **tail**: the bytes after the last line of a file that do not form a line yet.
//! - **text**: a JSON string of 256 bytes or more inside a line, stored once.
//! - **entry**: a line in a session; its id covers the line, and the entry before it if the record has no name.
//! - **generation**: one state of one file: its entries in order, with their separators and the tail.
//! - **base**: the file that another file of the same session continues; a path reads through it.
//! - **run**: consecutive entries that were added to a generation.
//! - **position**: a generation, a head in it, and a horizon: the path ignores entries after the horizon.
//! - **path**: the entries up to a position's head, as the agent's own resume would read them.
//! - **branch**: a name for a position; one branch is **current**, and the live file contains it.
//! - **checkpoint**: a number that is never reused, and its position; every user turn has one.
//! - **boundary**: where a history was compacted; its summary follows.
//! - **signpost**: a record outside the conversation that may redirect a path.
//! - **origin**: the entry that a changed entry represents. The part that only the origin has is **undertext**.
//! - **operation**: one command that changed a session; its hash covers its facts and the operation before it.
//! - **live file**: the file that the agent reads and appends to.
//! - **rotation**: the live file is set aside, and its successor gets its name.
//! - **archive**: a store with its live files.
//!
//! # Three classes of data
//!
//! - **Facts** ([`model::Facts`]) belong to an operation and never change; the operation's hash covers them.
//! - **Bytes** are lines, addressed by content ([`model::LineId`]). They may be repacked.
//! - **Derived** rows ([`model::Record`], [`model::Card`]) are computed from the other two; [`verbs::rebuild`] reproduces them.
//!
//! # Code map
//!
//! Each folder may import the folders after its arrow; a test checks this table. Another test checks that the subfolders of a
//! folder do not import each other in a cycle.
//!
//! ```text
//! json      a scanner of bytes, and edits in place      -> nothing
//! cover     overwrites the redacted parts of a line     -> json
//! dag       graphs over closures                        -> nothing
//! model     values: ids, lines, facts, messages         -> json
//! settings  what the user configures, parsed from text  -> nothing
//! disk      reading untrusted files, changing files     -> nothing
//! trust     what this user approved on this machine     -> model disk
//! wire      formats, the only way in and out            -> model json dag
//! context   what the model sees of a session            -> model json
//! provider  models; the only code with network access   -> model json context secrets
//! store     persistence: facts, bytes, caches           -> model disk
//! live      files that an agent reads                   -> model json wire disk
//! session   reading a session; the plans of verbs       -> model json dag wire store
//! search    full-text search over all sessions          -> model json wire store session
//! secrets   finds and masks secrets in texts            -> model json cover
//! report    the answers of verbs, their JSON and hints  -> model wire context store session settings
//! archive   a store with its lock and its machine       -> model json wire store session live disk report settings
//! files     the session files that an archive knows     -> model json wire store session live disk report settings archive
//! purge     deletes redacted bytes everywhere           -> model wire store session live disk report archive files
//! change    changes a session and its live file         -> model json wire store session live disk report archive files purge
//! redaction takes bytes out of sessions                 -> model json cover store session live disk report archive files purge change
//! intake    imports files and bundles                   -> model json wire store session live disk report archive files change
//! mend      repairs a damaged store                     -> model wire store session live disk report settings archive files change
//! verbs     one function per verb                       -> all of these but trust and provider
//! render    terminal output (of the program)            -> the library
//! page      sessions as HTML (of the program)           -> the library, render
//! serve     pages over HTTP (of the program)            -> nothing
//! cli       commands (of the program)                   -> the library, render, page, serve
//! ```
//!
//! A command takes this path. `cli` finds the archive and the session and calls a verb of [`verbs`]. The verb asks `change` to
//! execute it; `change` takes the archive's lock, catches up with the live file and shows the verb the state of the session.
//! The verb returns a plan, which is a value. `change` prepares the plan's goal, simulates a resume of it, commits the operation
//! to the [`store`] and has [`live`] write the live file. The verb returns a [`report`]; `render` shows it to people, and
//! programs read it as JSON.
//!
//! A reader or a dry run opens the archive as a preview: an overlay, a store in memory, sits on top of the real one. New records
//! in the live file, or a whole change, are visible in the preview and vanish with it. Reads go through a [`verbs::View`], which
//! implements the [`wire::Graph`] that a [`wire::Format`] walks to find a path.
//!
//! The feature `models` enables [`provider`], `tokens` enables exact token counts ([`context::tokens`]), and `watch` enables
//! watching folders ([`disk::Watch`]). All are on unless a library sets `default-features = false`; the program needs all three.
//!
//! To read the code, start with [`model`]: its `id`, `line` and `operation` are the frozen contract. Then read `schema.sql`,
//! [`store`], [`wire::Format`] and [`verbs::append`].
//!
//! # Invariants
//!
//! Architecture invariant: nothing that the library returns or stores depends on the clock, the time zone, randomness or the
//! environment, except through the [`verbs::Ambient`] that the caller passes in.
//!
//! Architecture invariant: only [`provider`] opens a connection, and no API key is stored, logged or part of an error.
//!
//! Architecture invariant: only `store/sqlite` contains SQL and column names. One exception: [`live::Index`] has those of the
//! databases in which Codex lists its sessions.
//!
//! Architecture invariant: the store decides nothing about sessions; it knows no format and opens no live file.
//!
//! Architecture invariant: no format opens a file, and nothing outside [`wire`] knows the shape of an agent's records. One
//! exception: [`live::Index`] knows the tables and locks of Codex's session list.
//!
//! Architecture invariant: only [`live`] writes a file that an agent reads, and it never overwrites one in place. A fact in the
//! store does not permit a write; [`live::Writable`] does. Each step of a write is a method of [`disk::Disk`], so a test can make
//! it fail. One exception: [`live::Index`] updates a Codex database in place. It changes the path of one session in one
//! statement, which SQLite executes atomically; tests cannot interrupt its steps.
//!
//! Architecture invariant: [`live`] rewrites an agent's settings file as a whole, from the bytes that the user saw, and only in a
//! way that can be reverted.
//!
//! Architecture invariant: [`disk`] opens and reads every file that others could have written: regular files only, without
//! blocking, up to a size limit.
//!
//! Architecture invariant: only the folders from `archive` to `mend` take a lock or open a transaction. One exception:
//! [`live::Index`] takes the locks by which Codex marks a session as loaded, and only when `change` asks for it.
//!
//! Architecture invariant: facts are never updated or deleted; the triggers of the schema refuse it for every program.
//!
//! Architecture invariant: every write to a store happens in a [`store::Transaction`], which rolls back unless it is committed.
//!
//! Architecture invariant: the bytes of a line are never canonicalised, completed or dropped, however broken they are.
//!
//! Architecture invariant: a verb that reads takes no lock, writes no byte and creates no folder. A separate verb stores the
//! token counts made while reading, as a cache.
//!
//! Architecture invariant: the JSON of an answer is defined in [`report`], never in a front end.
//!
//! Architecture invariant: a hint is a value of the library; a front end spells its command line.
//!
//! Architecture invariant: untrusted text reaches a terminal only through `render/safe`.
//!
//! Architecture invariant: no input causes a panic.

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
