//! Edits in place: set fields of an object without changing any other byte.

use std::{borrow::Cow, ops::Range};

use super::{
    raw::{Raw, same},
    scan::{Visit, scan},
    text::quote,
};

/// Returns the object with one field set; see [`with_fields`].
pub fn with_field(object: &[u8], key: &str, value: &[u8]) -> Option<Vec<u8>> {
    with_fields(object, &[(key, value)])
}

/// Returns the object with fields set and every other byte unchanged.
///
/// If the key exists, its value is replaced; if it occurs more than once, the last value. A new field is appended
/// after the last one. If two edits have the same key, the later one wins. Returns none if `object` is not exactly
/// one object, or a value is not exactly one value. A value that contains an LF makes an object that is not a line.
pub fn with_fields(object: &[u8], edits: &[(&str, &[u8])]) -> Option<Vec<u8>> {
    let mut spans = Spans::default();
    if scan(object, &mut spans).ok()? != object.len() {
        return None;
    }
    let end = spans.0.last().map_or(1, |(_, value)| value.end);
    let mut cuts: Vec<(Range<usize>, Cow<'_, [u8]>)> = Vec::new();
    let mut n_fields = spans.0.len();
    for (nth, &(key, new)) in edits.iter().enumerate() {
        Raw::value(new)?;
        if edits.iter().skip(nth + 1).any(|&(later, _)| later == key) {
            continue;
        }
        let is_old = |at: &Range<usize>| object.get(at.clone()).is_some_and(|raw| same(raw, key));
        if let Some((_, old)) = spans.0.iter().rfind(|(at, _)| is_old(at)) {
            cuts.push((old.clone(), new.into()));
        } else {
            let comma: &[u8] = if n_fields == 0 { b"" } else { b"," };
            cuts.push((end..end, [comma, quote(key).as_bytes(), b":", new].concat().into()));
            n_fields += 1;
        }
    }
    // The sort is stable, so appended fields keep their order and follow an edit of the last value.
    cuts.sort_by_key(|(old, _)| old.start);

    let mut out = Vec::with_capacity(object.len());
    let mut at = 0;
    for (old, new) in cuts {
        out.extend_from_slice(object.get(at..old.start)?);
        out.extend_from_slice(&new);
        at = old.end;
    }
    out.extend_from_slice(object.get(at..)?);
    Some(out)
}

/// The ranges of the keys and values of the outermost object.
#[derive(Default)]
pub(super) struct Spans(pub(super) Vec<(Range<usize>, Range<usize>)>);

impl Visit for Spans {
    fn field(&mut self, key: Range<usize>, value: Range<usize>) {
        self.0.push((key, value));
    }
}
