//! Tagged values: the canonical encoding of records. Empty fields are not written.
//!
//! ```text
//! value     field field ...                         in ascending order of tags
//! field     tag, length of the payload, payload     tag and length are varints
//! payload   a number: a varint; a signed one: zigzag; bytes and texts: as they are; a value: its fields
//! list      its field once for each item
//! ```
//!
//! A reader collects the tags that it does not know, so a program can detect what a newer one wrote.
//!
//! Invariant: equal values have equal encodings, and [`Tagged::read`] accepts only the output of [`Tagged::write`].

use std::collections::{BTreeMap, BTreeSet};

use super::{
    CheckpointNumber, Digest, EntryId, EntryNumber, FileNumber, GenerationNumber, LineId,
    MachineId, OperationId, OperationNumber, Running, Text, Timestamp,
    varint::{put_varint, take_varint},
};

/// Why bytes could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// A value that is encoded as fields.
pub trait Tagged: Sized {
    /// Appends the fields.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads fields, and adds unknown tags to `unknown`.
    fn read(bytes: &[u8], unknown: &mut Vec<u64>) -> Result<Self, Malformed>;

    /// Calls `each` for every text in the value.
    fn texts(&mut self, each: &mut dyn FnMut(&mut Text));

    /// Returns the encoding.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

/// A value that can be a field.
pub(crate) trait Field: Sized + Default {
    /// Writes the field with its tag, unless it is empty.
    fn put(&self, tag: u64, out: &mut Vec<u8>);

    /// Reads one payload of the field.
    fn take(&mut self, payload: &[u8], unknown: &mut Vec<u64>) -> Result<(), Malformed>;

    /// Calls `each` for every text in the value.
    fn texts(&mut self, _: &mut dyn FnMut(&mut Text)) {}
}

/// A value that can be the payload of a field.
pub(crate) trait Payload: Sized {
    /// Appends the payload.
    fn pack(&self, out: &mut Vec<u8>);

    /// Decodes the whole payload.
    fn unpack(payload: &[u8], unknown: &mut Vec<u64>) -> Result<Self, Malformed>;

    /// Calls `each` for every text in it.
    fn texts(&mut self, _: &mut dyn FnMut(&mut Text)) {}
}

/// Writes a field with a payload.
pub(crate) fn put_field(tag: u64, payload: &impl Payload, out: &mut Vec<u8>) {
    put_varint(out, tag);
    let start = out.len();
    payload.pack(out);
    let length = out.len() - start;
    if let Ok(short @ 0..0x80) = u8::try_from(length) {
        out.insert(start, short);
        return;
    }
    let mut prefix = Vec::with_capacity(10);
    put_varint(&mut prefix, length as u64);
    out.splice(start..start, prefix);
}

/// Takes the next field from the front, and returns its tag and payload.
pub(crate) fn take_field<'a>(bytes: &mut &'a [u8]) -> Result<(u64, &'a [u8]), Malformed> {
    let cut_short = Malformed("a field is truncated");
    let tag = take_number(bytes)?;
    let length = usize::try_from(take_number(bytes)?).map_err(|_| cut_short)?;
    let (payload, rest) = bytes.split_at_checked(length).ok_or(cut_short)?;
    *bytes = rest;
    Ok((tag, payload))
}

/// Calls `each` with the tag and payload of each field. Fails if the tags are not in ascending order.
pub(crate) fn each_field(
    mut bytes: &[u8],
    mut each: impl FnMut(u64, &[u8]) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut last = 0;
    while !bytes.is_empty() {
        let (tag, payload) = take_field(&mut bytes)?;
        if tag < last {
            return Err(Malformed("a field is out of order"));
        }
        last = tag;
        each(tag, payload)?;
    }
    Ok(())
}

/// Takes a varint and rejects encodings that are longer than necessary.
fn take_number(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    let before = *bytes;
    let value = take_varint(bytes).ok_or(Malformed("a number is truncated"))?;
    let taken = before.get(..before.len() - bytes.len()).unwrap_or_default();
    // The last of several groups is not zero, and the tenth contains only the one remaining bit.
    match taken {
        [_, .., 0] => Err(Malformed("a number is longer than it needs to be")),
        [_, _, _, _, _, _, _, _, _, last] if *last > 1 => Err(Malformed("a number is too large")),
        _ => Ok(value),
    }
}

/// Implements [`Tagged`] for a struct: lists its fields with their tags, in ascending order.
macro_rules! tagged {
    ($type:ty { $($tag:literal: $field:ident),+ $(,)? }) => {
        impl $crate::model::tagged::Tagged for $type {
            fn write(&self, out: &mut Vec<u8>) {
                $($crate::model::tagged::Field::put(&self.$field, $tag, out);)+
            }

            fn read(
                bytes: &[u8],
                unknown: &mut Vec<u64>,
            ) -> Result<Self, $crate::model::tagged::Malformed> {
                let mut value = Self::default();
                $crate::model::tagged::each_field(bytes, |tag, payload| {
                    match tag {
                        $($tag => $crate::model::tagged::Field::take(&mut value.$field, payload, unknown)?,)+
                        other => unknown.push(other),
                    }
                    Ok(())
                })?;
                Ok(value)
            }

            fn texts(&mut self, each: &mut dyn FnMut(&mut $crate::model::Text)) {
                $($crate::model::tagged::Field::texts(&mut self.$field, each);)+
            }
        }
    };
}

pub(crate) use tagged;

impl Payload for u64 {
    fn pack(&self, out: &mut Vec<u8>) {
        put_varint(out, *self);
    }

    fn unpack(mut payload: &[u8], _: &mut Vec<u64>) -> Result<Self, Malformed> {
        let value = take_number(&mut payload)?;
        if payload.is_empty() { Ok(value) } else { Err(Malformed("a number has trailing bytes")) }
    }
}

impl Payload for i64 {
    fn pack(&self, out: &mut Vec<u8>) {
        put_varint(out, ((self << 1) ^ (self >> 63)).cast_unsigned());
    }

    fn unpack(payload: &[u8], unknown: &mut Vec<u64>) -> Result<Self, Malformed> {
        let value = u64::unpack(payload, unknown)?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }
}

impl Payload for Vec<u8> {
    fn pack(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn unpack(payload: &[u8], _: &mut Vec<u64>) -> Result<Self, Malformed> {
        Ok(payload.to_vec())
    }
}

impl Payload for String {
    fn pack(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn unpack(payload: &[u8], _: &mut Vec<u64>) -> Result<Self, Malformed> {
        String::from_utf8(payload.to_vec()).map_err(|_| Malformed("a text is not UTF-8"))
    }
}

impl<const N: usize> Payload for [u8; N] {
    fn pack(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn unpack(payload: &[u8], _: &mut Vec<u64>) -> Result<Self, Malformed> {
        payload.try_into().map_err(|_| Malformed("a hash has the wrong length"))
    }
}

impl<T: Tagged> Payload for T {
    fn pack(&self, out: &mut Vec<u8>) {
        self.write(out);
    }

    fn unpack(payload: &[u8], unknown: &mut Vec<u64>) -> Result<Self, Malformed> {
        T::read(payload, unknown)
    }

    fn texts(&mut self, each: &mut dyn FnMut(&mut Text)) {
        Tagged::texts(self, each);
    }
}

impl Field for bool {
    fn put(&self, tag: u64, out: &mut Vec<u8>) {
        u64::from(*self).put(tag, out);
    }

    fn take(&mut self, payload: &[u8], unknown: &mut Vec<u64>) -> Result<(), Malformed> {
        let mut number = u64::from(*self);
        Field::take(&mut number, payload, unknown)?;
        *self = true;
        if number == 1 { Ok(()) } else { Err(Malformed("a boolean is neither true nor false")) }
    }
}

impl<T: Payload> Field for Option<T> {
    fn put(&self, tag: u64, out: &mut Vec<u8>) {
        if let Some(value) = self {
            put_field(tag, value, out);
        }
    }

    fn take(&mut self, payload: &[u8], unknown: &mut Vec<u64>) -> Result<(), Malformed> {
        match self.replace(T::unpack(payload, unknown)?) {
            None => Ok(()),
            Some(_) => Err(Malformed("a field appears twice")),
        }
    }

    fn texts(&mut self, each: &mut dyn FnMut(&mut Text)) {
        if let Some(value) = self {
            value.texts(each);
        }
    }
}

impl<T: Payload> Field for Vec<T> {
    fn put(&self, tag: u64, out: &mut Vec<u8>) {
        for item in self {
            put_field(tag, item, out);
        }
    }

    fn take(&mut self, payload: &[u8], unknown: &mut Vec<u64>) -> Result<(), Malformed> {
        self.push(T::unpack(payload, unknown)?);
        Ok(())
    }

    fn texts(&mut self, each: &mut dyn FnMut(&mut Text)) {
        for item in self {
            item.texts(each);
        }
    }
}

impl Field for Vec<u8> {
    fn put(&self, tag: u64, out: &mut Vec<u8>) {
        if !self.is_empty() {
            put_field(tag, self, out);
        }
    }

    fn take(&mut self, payload: &[u8], _: &mut Vec<u64>) -> Result<(), Malformed> {
        if !self.is_empty() || payload.is_empty() {
            return Err(Malformed("a field is empty or appears twice"));
        }
        *self = payload.to_vec();
        Ok(())
    }
}

impl<T: Payload + Ord> Field for BTreeSet<T> {
    fn put(&self, tag: u64, out: &mut Vec<u8>) {
        for item in self {
            put_field(tag, item, out);
        }
    }

    fn take(&mut self, payload: &[u8], unknown: &mut Vec<u64>) -> Result<(), Malformed> {
        self.insert(T::unpack(payload, unknown)?);
        Ok(())
    }
}

/// An entry of a map.
#[derive(Default)]
struct Named {
    name: Option<String>,
    payload: Vec<u8>,
}

tagged!(Named { 1: name, 2: payload });

impl<T: Payload> Field for BTreeMap<String, T> {
    fn put(&self, tag: u64, out: &mut Vec<u8>) {
        for (name, value) in self {
            let mut payload = Vec::new();
            value.pack(&mut payload);
            put_field(tag, &Named { name: Some(name.clone()), payload }, out);
        }
    }

    fn take(&mut self, payload: &[u8], unknown: &mut Vec<u64>) -> Result<(), Malformed> {
        let Named { name, payload } = Payload::unpack(payload, unknown)?;
        let name = name.ok_or(Malformed("a value has no name"))?;
        self.insert(name, T::unpack(&payload, unknown)?);
        Ok(())
    }
}

impl Tagged for Text {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Own(text) => put_field(1, text, out),
            Self::Given(words) => put_field(2, &words.digest(), out),
            Self::Absent(digest) => put_field(2, digest, out),
        }
    }

    fn read(mut bytes: &[u8], unknown: &mut Vec<u64>) -> Result<Self, Malformed> {
        let (tag, payload) = take_field(&mut bytes)?;
        if !bytes.is_empty() {
            return Err(Malformed("a text appears twice"));
        }
        Ok(match tag {
            1 => Self::Own(Payload::unpack(payload, unknown)?),
            2 => Self::Absent(Payload::unpack(payload, unknown)?),
            other => {
                unknown.push(other);
                Self::default()
            }
        })
    }

    fn texts(&mut self, each: &mut dyn FnMut(&mut Text)) {
        each(self);
    }
}

macro_rules! hash_field {
    ($($type:ident),+) => {$(
        impl Payload for $type {
            fn pack(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(self.as_bytes());
            }

            fn unpack(payload: &[u8], _: &mut Vec<u64>) -> Result<Self, Malformed> {
                Self::from_slice(payload).ok_or(Malformed("a hash has the wrong length"))
            }
        }
    )+};
}

hash_field!(Digest, EntryId, LineId, OperationId, Running);

macro_rules! zero_is_nothing {
    ($($type:ident: $zero:expr),+) => {$(
        impl Field for $type {
            fn put(&self, tag: u64, out: &mut Vec<u8>) {
                if *self != $zero {
                    put_field(tag, self, out);
                }
            }

            fn take(&mut self, payload: &[u8], unknown: &mut Vec<u64>) -> Result<(), Malformed> {
                if *self != $zero {
                    return Err(Malformed("a field appears twice"));
                }
                *self = Payload::unpack(payload, unknown)?;
                if *self == $zero { Err(Malformed("a field is empty")) } else { Ok(()) }
            }
        }
    )+};
}

zero_is_nothing!(
    u64: 0,
    Digest: Digest::NONE,
    Running: Running::EMPTY,
    OperationId: OperationId::default(),
    OperationNumber: OperationNumber::default(),
    CheckpointNumber: CheckpointNumber::default(),
    FileNumber: FileNumber::default(),
    EntryNumber: EntryNumber::default(),
    GenerationNumber: GenerationNumber::default(),
    Timestamp: Timestamp(0)
);

impl Payload for Timestamp {
    fn pack(&self, out: &mut Vec<u8>) {
        self.0.pack(out);
    }

    fn unpack(payload: &[u8], unknown: &mut Vec<u64>) -> Result<Self, Malformed> {
        Ok(Self(Payload::unpack(payload, unknown)?))
    }
}

macro_rules! number_field {
    ($($type:ident),+) => {$(
        impl Payload for $type {
            fn pack(&self, out: &mut Vec<u8>) {
                self.get().pack(out);
            }

            fn unpack(payload: &[u8], unknown: &mut Vec<u64>) -> Result<Self, Malformed> {
                Ok(Self::new(Payload::unpack(payload, unknown)?))
            }
        }
    )+};
}

number_field!(
    CheckpointNumber,
    EntryNumber,
    FileNumber,
    GenerationNumber,
    OperationNumber,
    MachineId
);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Inner {
        number: u64,
        bytes: Vec<u8>,
    }

    tagged!(Inner { 1: number, 2: bytes });

    #[derive(Debug, Default, PartialEq)]
    struct Outer {
        flag: bool,
        maybe: Option<u64>,
        signed: Option<i64>,
        text: Option<String>,
        one: Option<Inner>,
        many: Vec<Inner>,
    }

    tagged!(Outer { 1: flag, 2: maybe, 3: signed, 5: text, 6: one, 9: many });

    fn inner() -> impl Strategy<Value = Inner> {
        (any::<u64>(), any::<Vec<u8>>()).prop_map(|(number, bytes)| Inner { number, bytes })
    }

    proptest! {
        #[test]
        fn a_value_reads_what_it_wrote_and_nothing_else(
            flag: bool, maybe: Option<u64>, signed: Option<i64>, text: Option<String>,
            one in proptest::option::of(inner()), many in proptest::collection::vec(inner(), 0..4),
            at: prop::sample::Index, byte: u8,
        ) {
            let value = Outer { flag, maybe, signed, text, one, many };
            let mut bytes = value.to_bytes();
            let mut unknown = Vec::new();
            prop_assert_eq!(Outer::read(&bytes, &mut unknown), Ok(value));
            prop_assert!(unknown.is_empty());
            // A value read from changed bytes is written as those bytes again.
            if let Some(changed) = (!bytes.is_empty()).then(|| at.index(bytes.len())) {
                bytes[changed] = byte;
                if let (Ok(value), []) = (Outer::read(&bytes, &mut unknown), unknown.as_slice()) {
                    prop_assert_eq!(value.to_bytes(), bytes);
                }
            }
        }

        #[test]
        fn no_bytes_make_a_reader_fail_otherwise(bytes: Vec<u8>) {
            let _ = Outer::read(&bytes, &mut Vec::new());
        }
    }

    #[test]
    fn an_unknown_tag_is_told() {
        let mut bytes = Outer { flag: true, ..Outer::default() }.to_bytes();
        put_field(7, &"new".to_owned(), &mut bytes);
        let mut unknown = Vec::new();
        assert_eq!(Outer::read(&bytes, &mut unknown).map(|value| value.flag), Ok(true));
        assert_eq!(unknown, [7]);
    }
}
