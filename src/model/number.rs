//! Numbers: each kind of number has its own type, so one kind cannot be mistaken for another.
//!
//! Counts, lengths and sizes are plain integers. A number supports ranges and steps, and no other arithmetic.
//!
//! Invariant: a number is stored, hashed and shown as a plain integer.

use std::{fmt, num::ParseIntError, ops::Range, str::FromStr};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident from $first:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// The first number.
            pub const FIRST: Self = Self($first);

            /// The range of all numbers.
            pub const ALL: Range<Self> = Self(0)..Self(u64::MAX);

            /// Wraps a number.
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// Returns the number.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// Returns the next one.
            #[must_use]
            pub const fn next(self) -> Self {
                self.plus(1)
            }

            /// Returns the number `count` after this one.
            #[must_use]
            pub const fn plus(self, count: u64) -> Self {
                Self(self.0.saturating_add(count))
            }

            /// Returns the number `count` before this one, or the first.
            #[must_use]
            pub fn minus(self, count: u64) -> Self {
                Self(self.0.saturating_sub(count)).max(Self::FIRST)
            }

            /// Returns the distance from `earlier`, or 0 if this one is not greater.
            pub const fn since(self, earlier: Self) -> u64 {
                self.0.saturating_sub(earlier.0)
            }

            /// Returns its index in a list of all numbers; none before the first.
            pub fn index(self) -> Option<usize> {
                self.index_from(Self::FIRST)
            }

            /// Returns its index in a list that starts with `first`; none before that.
            pub fn index_from(self, first: Self) -> Option<usize> {
                usize::try_from(self.0.checked_sub(first.0)?).ok()
            }

            /// Returns the range of only this number.
            pub const fn alone(self) -> Range<Self> {
                self..self.next()
            }

            /// Returns the numbers of a range, in order.
            pub fn each(range: Range<Self>) -> impl DoubleEndedIterator<Item = Self> {
                (range.start.0..range.end.0).map(Self)
            }

            /// Returns ranges that contain these numbers, in the given order. A number joins the previous range if fewer than
            /// `near` others are between them.
            pub fn ranges(
                numbers: impl IntoIterator<Item = Self>,
                near: u64,
            ) -> Vec<Range<Self>> {
                let mut ranges: Vec<Range<Self>> = Vec::new();
                for number in numbers {
                    match ranges.last_mut() {
                        Some(last) if (last.end..last.end.plus(near)).contains(&number) => {
                            last.end = number.next();
                        }
                        _ => ranges.push(number.alone()),
                    }
                }
                ranges
            }

            /// Splits a range into batches of `size` numbers; the last batch may be smaller.
            pub fn batches(range: Range<Self>, size: usize) -> impl Iterator<Item = Range<Self>> {
                let starts = (range.start.0..range.end.0).step_by(size).map(Self);
                starts.map(move |start| start..start.plus(size as u64).min(range.end))
            }

            /// Returns all earlier numbers, ascending.
            pub fn earlier(self) -> impl DoubleEndedIterator<Item = Self> {
                Self::each(Self::FIRST..self)
            }

            /// Returns this number and all later ones, ascending.
            pub fn onwards(self) -> impl Iterator<Item = Self> {
                (self.0..).map(Self)
            }
        }

        impl PartialEq<u64> for $name {
            fn eq(&self, other: &u64) -> bool {
                self.0 == *other
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<Self, ParseIntError> {
                text.parse().map(Self)
            }
        }
    };
}

number! {
    /// The number of an operation in its session.
    OperationNumber from 1
}

number! {
    /// The number of a checkpoint in its session, never reused.
    CheckpointNumber from 0
}

number! {
    /// The number of a file in its session.
    FileNumber from 1
}

number! {
    /// The number of a generation in its session.
    GenerationNumber from 1
}

number! {
    /// The index of an entry in its generation.
    PlaceNumber from 0
}

number! {
    /// The number of an entry in its session.
    EntryNumber from 1
}
