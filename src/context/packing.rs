//! Packing: encodes a message as bytes and decodes it.
//!
//! ```text
//! record    role, blocks, stop, summary, id, time, model, usage;  or a mark and the places of two merged messages
//! block     kind, fields                  a list: its length, its items; a text: its length, its bytes
//! ```
//!
//! Invariant: decoding never yields a message other than the one encoded, without its `meta`, which no request contains.

use std::num::NonZeroU32;

use crate::model::{
    Block, Image, Message, Role, SentAs, Source, Stop, Thinking, Timestamp, Usage, put_varint,
    take_varint,
};

/// The place of a message in the pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The number of its page, from 1.
    pub(super) page: NonZeroU32,
    /// Its offset in the page.
    pub(super) start: u32,
}

/// What is at a place.
pub(super) enum Record {
    Message(Message),
    /// Two merged messages, and whether a turn begins with the second.
    Joined([Place; 2], bool),
}

/// One half of a pair: a call or a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Half {
    /// The index of its block in the message.
    pub(super) block: usize,
    /// The id of the call.
    pub(super) id: String,
    /// Whether it is the result.
    pub(super) is_result: bool,
    /// True if it is a result that says that the tool failed.
    pub(super) error: bool,
}

impl Half {
    /// Returns the calls and results among blocks.
    pub(super) fn of(blocks: &[Block]) -> Vec<Self> {
        let half = |(block, found): (usize, &Block)| {
            let (id, is_result, error) = match found {
                Block::Call { id, .. } => (id, false, false),
                Block::Result { id, error, .. } => (id, true, *error),
                _ => return None,
            };
            Some(Self { block, id: id.clone(), is_result, error })
        };
        blocks.iter().enumerate().filter_map(half).collect()
    }
}

const ROLES: [Role; 4] = [Role::System, Role::User, Role::Assistant, Role::Tool];
/// Replaces the role for two merged messages.
const JOINED: usize = ROLES.len();
const STOPS: [Option<Stop>; 8] = [
    None,
    Some(Stop::End),
    Some(Stop::Length),
    Some(Stop::Calls),
    Some(Stop::Paused),
    Some(Stop::Refused),
    Some(Stop::Aborted),
    Some(Stop::Error),
];

/// Encodes a value as its index among the possible ones.
fn put_one<T: PartialEq>(of: &[T], value: &T, out: &mut Vec<u8>) {
    put_number(of.iter().position(|one| one == value).unwrap_or_default(), out);
}

fn put_number(number: usize, out: &mut Vec<u8>) {
    put_varint(out, number as u64);
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    put_number(text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

/// Encodes an optional value.
fn put_maybe<T>(value: Option<T>, out: &mut Vec<u8>, put: impl FnOnce(T, &mut Vec<u8>)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(value, out);
    }
}

/// Appends a message.
pub(super) fn put_message(message: &Message, out: &mut Vec<u8>) {
    let Message { role, blocks, id, time, model, usage, stop, is_summary, meta: _ } = message;
    put_one(&ROLES, role, out);
    put_blocks(blocks, out);
    put_one(&STOPS, stop, out);
    out.push(u8::from(*is_summary));
    put_maybe(id.as_deref(), out, put_text);
    put_maybe(*time, out, |time, out| put_varint(out, time.0.cast_unsigned()));
    put_maybe(model.as_deref(), out, put_text);
    put_maybe(*usage, out, |usage, out| {
        let Usage { input, output, cache_read, cache_write } = usage;
        for tokens in [input, output, cache_read, cache_write] {
            put_varint(out, tokens);
        }
    });
}

/// Appends the places of two merged messages. `begins_turn` is that of the second.
pub(super) fn put_joined(places: [Place; 2], begins_turn: bool, out: &mut Vec<u8>) {
    put_number(JOINED, out);
    for Place { page, start } in places {
        put_varint(out, page.get().into());
        put_varint(out, start.into());
    }
    out.push(begins_turn.into());
}

fn put_blocks(blocks: &[Block], out: &mut Vec<u8>) {
    put_number(blocks.len(), out);
    for block in blocks {
        match block {
            Block::Text(text) => {
                out.push(0);
                put_text(text, out);
            }
            Block::Thinking(Thinking { text, signature, is_redacted, sent_as }) => {
                out.push(1);
                put_text(text, out);
                put_maybe(signature.as_deref(), out, put_text);
                out.push(u8::from(*is_redacted));
                put_text(sent_as.as_str(), out);
            }
            Block::Call { id, name, input, signature } => {
                out.push(2);
                put_text(id, out);
                put_text(name, out);
                put_text(input, out);
                put_maybe(signature.as_deref(), out, put_text);
            }
            Block::Result { id, name, blocks, error } => {
                out.push(3);
                put_text(id, out);
                put_maybe(name.as_deref(), out, put_text);
                put_blocks(blocks, out);
                out.push(u8::from(*error));
            }
            Block::Image(Image { bytes, media, source }) => {
                out.push(4);
                put_number(*bytes, out);
                put_maybe(media.as_deref(), out, put_text);
                let (kind, text) = match source {
                    Source::Data(data) => (0, data.as_str()),
                    Source::Url(url) => (1, url.as_str()),
                    Source::Elsewhere => (2, ""),
                };
                out.push(kind);
                put_text(text, out);
            }
            Block::Other { name, json } => {
                out.push(5);
                put_text(name, out);
                put_text(json, out);
            }
        }
    }
}

fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(byte)
}

fn take_bool(bytes: &mut &[u8]) -> Option<bool> {
    Some(take_byte(bytes)? == 1)
}

fn take_number(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(take_varint(bytes)?).ok()
}

fn take_one<T: Copy>(of: &[T], bytes: &mut &[u8]) -> Option<T> {
    of.get(take_number(bytes)?).copied()
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    let length = take_number(bytes)?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(std::str::from_utf8(text).ok()?.to_owned())
}

/// Decodes an optional value; None if the bytes are invalid.
#[expect(clippy::option_option, reason = "a value that is not there is no mistake")]
fn take_maybe<T>(
    bytes: &mut &[u8],
    take: impl FnOnce(&mut &[u8]) -> Option<T>,
) -> Option<Option<T>> {
    Some(if take_bool(bytes)? { Some(take(bytes)?) } else { None })
}

/// Decodes the record at a place.
pub(super) fn take_record(bytes: &mut &[u8]) -> Option<Record> {
    let role = take_number(bytes)?;
    if role == JOINED {
        let places = [take_place(bytes)?, take_place(bytes)?];
        return Some(Record::Joined(places, take_bool(bytes)?));
    }
    Some(Record::Message(take_message(*ROLES.get(role)?, bytes)?))
}

fn take_place(bytes: &mut &[u8]) -> Option<Place> {
    let page = NonZeroU32::new(u32::try_from(take_varint(bytes)?).ok()?)?;
    Some(Place { page, start: u32::try_from(take_varint(bytes)?).ok()? })
}

/// Decodes a message after its role.
fn take_message(role: Role, bytes: &mut &[u8]) -> Option<Message> {
    let blocks = take_blocks(bytes)?;
    let stop = take_one(&STOPS, bytes)?;
    let is_summary = take_bool(bytes)?;
    let id = take_maybe(bytes, take_text)?;
    let time = take_maybe(bytes, |bytes| Some(Timestamp(take_varint(bytes)?.cast_signed())))?;
    let model = take_maybe(bytes, take_text)?;
    let usage = take_maybe(bytes, |bytes| {
        let mut tokens = || take_varint(bytes);
        let (input, output, cache_read, cache_write) = (tokens()?, tokens()?, tokens()?, tokens()?);
        Some(Usage { input, output, cache_read, cache_write })
    })?;
    Some(Message { id, time, model, usage, stop, is_summary, ..Message::new(role, blocks) })
}

/// The calls and results of a message.
pub(super) enum Outline {
    /// The number of its blocks, and those that are calls or results.
    Blocks(usize, Vec<Half>),
    /// Two merged messages.
    Joined([Place; 2]),
}

/// Decodes only the calls and results at a place.
pub(super) fn take_outline(bytes: &mut &[u8]) -> Option<Outline> {
    if take_number(bytes)? == JOINED {
        return Some(Outline::Joined([take_place(bytes)?, take_place(bytes)?]));
    }
    let count = take_number(bytes)?;
    let mut halves = Vec::new();
    for block in 0..count {
        pass_block(block, bytes, &mut halves)?;
    }
    Some(Outline::Blocks(count, halves))
}

fn pass(bytes: &mut &[u8]) -> Option<()> {
    let length = take_number(bytes)?;
    *bytes = bytes.get(length..)?;
    Some(())
}

/// Skips a block unless it is a call or result.
fn pass_block(block: usize, bytes: &mut &[u8], halves: &mut Vec<Half>) -> Option<()> {
    match take_byte(bytes)? {
        0 => pass(bytes)?,
        1 => {
            pass(bytes)?;
            take_maybe(bytes, pass)?;
            take_bool(bytes)?;
            pass(bytes)?;
        }
        2 => {
            let id = take_text(bytes)?;
            pass(bytes)?;
            pass(bytes)?;
            take_maybe(bytes, pass)?;
            halves.push(Half { block, id, is_result: false, error: false });
        }
        3 => {
            let id = take_text(bytes)?;
            take_maybe(bytes, pass)?;
            for within in 0..take_number(bytes)? {
                pass_block(within, bytes, &mut Vec::new())?;
            }
            halves.push(Half { block, id, is_result: true, error: take_bool(bytes)? });
        }
        4 => {
            take_number(bytes)?;
            take_maybe(bytes, pass)?;
            take_byte(bytes)?;
            pass(bytes)?;
        }
        _ => {
            pass(bytes)?;
            pass(bytes)?;
        }
    }
    Some(())
}

fn take_blocks(bytes: &mut &[u8]) -> Option<Vec<Block>> {
    let mut blocks = Vec::new();
    for _ in 0..take_number(bytes)? {
        blocks.push(match take_byte(bytes)? {
            0 => Block::Text(take_text(bytes)?),
            1 => Block::Thinking(Thinking {
                text: take_text(bytes)?,
                signature: take_maybe(bytes, take_text)?,
                is_redacted: take_bool(bytes)?,
                sent_as: SentAs::of_word(&take_text(bytes)?),
            }),
            2 => Block::Call {
                id: take_text(bytes)?,
                name: take_text(bytes)?,
                input: take_text(bytes)?,
                signature: take_maybe(bytes, take_text)?,
            },
            3 => Block::Result {
                id: take_text(bytes)?,
                name: take_maybe(bytes, take_text)?,
                blocks: take_blocks(bytes)?,
                error: take_bool(bytes)?,
            },
            4 => Block::Image(Image {
                bytes: take_number(bytes)?,
                media: take_maybe(bytes, take_text)?,
                source: match (take_byte(bytes)?, take_text(bytes)?) {
                    (0, data) => Source::Data(data),
                    (1, url) => Source::Url(url),
                    _ => Source::Elsewhere,
                },
            }),
            _ => Block::Other { name: take_text(bytes)?, json: take_text(bytes)? },
        });
    }
    Some(blocks)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_block() -> impl Strategy<Value = Block> {
        let word = || any::<String>();
        let maybe = || any::<Option<String>>();
        let source = prop_oneof![
            word().prop_map(Source::Data),
            word().prop_map(Source::Url),
            Just(Source::Elsewhere)
        ];
        let leaf = prop_oneof![
            word().prop_map(Block::Text),
            (word(), maybe(), any::<bool>(), prop::sample::select(&SentAs::ALL[..])).prop_map(
                |(text, signature, is_redacted, sent_as)| {
                    Block::Thinking(Thinking { text, signature, is_redacted, sent_as })
                }
            ),
            (word(), word(), word(), maybe()).prop_map(|(id, name, input, signature)| {
                Block::Call { id, name, input, signature }
            }),
            (any::<usize>(), maybe(), source)
                .prop_map(|(bytes, media, source)| Block::Image(Image { bytes, media, source })),
            (word(), word()).prop_map(|(name, json)| Block::Other { name, json }),
        ];
        leaf.prop_recursive(2, 8, 4, move |inner| {
            let blocks = prop::collection::vec(inner, 0..4);
            (word(), maybe(), blocks, any::<bool>())
                .prop_map(|(id, name, blocks, error)| Block::Result { id, name, blocks, error })
        })
    }

    pub(in crate::context) fn any_message() -> impl Strategy<Value = Message> {
        let usage = any::<Option<[u64; 4]>>().prop_map(|usage| {
            let [input, output, cache_read, cache_write] = usage?;
            Some(Usage { input, output, cache_read, cache_write })
        });
        let head = (
            prop::sample::select(&ROLES[..]),
            prop::sample::select(&STOPS[..]),
            any::<Option<i64>>().prop_map(|time| time.map(Timestamp)),
            usage,
        );
        let texts = (any::<Option<String>>(), any::<Option<String>>(), any::<bool>());
        (head, texts, prop::collection::vec(any_block(), 0..4)).prop_map(
            |((role, stop, time, usage), (id, model, is_summary), blocks)| Message {
                id,
                time,
                model,
                usage,
                stop,
                is_summary,
                ..Message::new(role, blocks)
            },
        )
    }

    proptest! {
        #[test]
        fn bytes_that_end_early_are_no_message(message in any_message(), at: prop::sample::Index) {
            let mut bytes = Vec::new();
            put_message(&message, &mut bytes);
            prop_assert!(matches!(
                take_record(&mut bytes.as_slice()),
                Some(Record::Message(found)) if found == message
            ));
            bytes.truncate(at.index(bytes.len()));
            prop_assert!(take_record(&mut bytes.as_slice()).is_none());
        }
    }
}
