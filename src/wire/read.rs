//! Reading: what one record says, in the shape that all formats share.
//!
//! Invariant: no record, however broken, is an error.

use crate::{
    json::Raw,
    model::{Kind, Message, NameTag, Record, Timestamp},
    wire::{Answers, Earlier},
};

/// Reads records of one format, each by itself.
pub trait Read {
    /// Returns what paths need of a record.
    fn envelope(&self, record: Raw<'_>) -> Envelope;

    /// Returns what a record says: nothing unless it is part of the conversation, several messages where one record
    /// stands for a whole history.
    fn messages(&self, record: Raw<'_>) -> Vec<Message>;

    /// Returns where a record holds what tools answered.
    fn answers<'a>(&self, _record: Raw<'a>) -> Answers<'a> {
        Answers::default()
    }

    /// Returns what a record says that the agent left out by itself.
    fn earlier(&self, _record: Raw<'_>) -> Vec<Earlier> {
        Vec::new()
    }

    /// Returns the agent's own number of a checkpoint, if this record sets one.
    fn checkpoint(&self, _record: Raw<'_>) -> Option<String> {
        None
    }

    /// Returns what a record says to the model from a later state of the conversation, in the agent's own way.
    fn mail(&self, _record: Raw<'_>) -> Option<String> {
        None
    }

    /// Returns what a record may say of the model that the session is for; [`Read::told`] returns it.
    fn tells(&self, _record: &Record) -> Option<Telling> {
        None
    }

    /// Returns what a record says of the model that the session is for.
    fn told(&self, _record: Raw<'_>) -> Told {
        Told::default()
    }
}

/// What paths need of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// What it is.
    pub kind: Kind,
    /// Its own name.
    pub name: Option<String>,
    /// What it says that it follows.
    pub parent: Link,
    /// When it was written.
    pub time: Option<Timestamp>,
    /// What else the format's path rule must know of it, in a form of the format's own.
    pub hint: Vec<u8>,
}

/// The edge that a record names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// It follows nothing.
    Root,
    /// It follows the record of this name.
    Named(String),
    /// It follows the record before it in its file.
    Before,
}

impl Envelope {
    /// Returns the envelope of a line that is no record.
    pub fn opaque() -> Self {
        Self { kind: Kind::Opaque, name: None, parent: Link::Root, time: None, hint: Vec::new() }
    }

    /// Returns the tag of the name.
    pub fn tag(&self) -> Option<NameTag> {
        self.name.as_deref().map(NameTag::of)
    }
}

/// What a record may say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Its name.
    Model,
    /// How many tokens it takes.
    Window,
}

/// What a record says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The model.
    pub model: Option<String>,
    /// How many tokens it takes.
    pub window: Option<u64>,
}
