//! Pages: sessions as HTML, in one file that makes no request, or served on this machine.
//!
//! ```text
//! course (library)   the path of a session, and its reverted branches
//!   -> chosen        what a reader gets: masked, and without what was not asked for
//!   -> view          turns, runs of calls, edits, lists, in HTML fragments made by `ink`
//!   -> templates     the page
//! ```
//!
//! Markdown and JSON exports render what [`chosen`] returns, too.
//!
//! Invariant: a text that was not chosen is not in [`chosen::Conversation`], so it cannot be in any output.
//! Invariant: a text of a conversation reaches a page only through [`ink`], which escapes it.
//! Invariant: a page runs no script but its own, loads nothing, and has no inline handler or style.

pub(crate) mod chosen;
#[cfg(feature = "page")]
mod html;
#[cfg(feature = "page")]
mod ink;
mod private;
#[cfg(feature = "page")]
mod view;

#[cfg(feature = "page")]
pub(crate) use html::{Frame, Listed, conversation, index, listed};
#[cfg(feature = "page")]
#[cfg(feature = "serve")]
pub(crate) use html::{Listing, Row, charts, list, report, served_policy};
#[cfg(feature = "serve")]
pub(crate) use ink::Ink;
#[cfg(feature = "page")]
pub(crate) use view::{Manner, PageView, places};
