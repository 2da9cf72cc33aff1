//! Numbers: each kind of numbered thing has a type of its own, so that the number of one is never taken for another's.
//!
//! Counts, lengths and sizes are plain integers. What is consecutive can be ranged over, and nothing else is computed.
//!
//! Invariant: a number is stored, hashed and shown as the bare number that it holds.

use std::{fmt, num::ParseIntError, ops::Range, str::FromStr};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident from $first:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// The first one.
            pub const FIRST: Self = Self($first);

            /// The range of all.
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

            /// Returns the one that comes `count` later.
            #[must_use]
            pub const fn plus(self, count: u64) -> Self {
                Self(self.0.saturating_add(count))
            }

            /// Returns the one that comes `count` earlier, or the first one.
            #[must_use]
            pub fn minus(self, count: u64) -> Self {
                Self(self.0.saturating_sub(count)).max(Self::FIRST)
            }

            /// Returns by how much it is greater than `earlier`; 0 if it is not.
            pub const fn since(self, earlier: Self) -> u64 {
                self.0.saturating_sub(earlier.0)
            }

            /// Returns the index that it has in a list of all; none before the first.
            pub fn index(self) -> Option<usize> {
                self.index_from(Self::FIRST)
            }

            /// Returns the index that it has in a list of all from `first` on; none before that.
            pub fn index_from(self, first: Self) -> Option<usize> {
                usize::try_from(self.0.checked_sub(first.0)?).ok()
            }

            /// Returns the range of this one alone.
            pub const fn alone(self) -> Range<Self> {
                self..self.next()
            }

            /// Returns the numbers of a range, in order.
            pub fn each(range: Range<Self>) -> impl DoubleEndedIterator<Item = Self> {
                (range.start.0..range.end.0).map(Self)
            }

            /// Returns ranges that hold these numbers, in their order; a number joins the range before it if fewer
            /// than `near` others lie between.
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

            /// Returns the parts of a range, in order; each has `size` numbers, the last one may have fewer.
            pub fn batches(range: Range<Self>, size: usize) -> impl Iterator<Item = Range<Self>> {
                let starts = (range.start.0..range.end.0).step_by(size).map(Self);
                starts.map(move |start| start..start.plus(size as u64).min(range.end))
            }

            /// Returns all earlier ones, in order.
            pub fn earlier(self) -> impl DoubleEndedIterator<Item = Self> {
                Self::each(Self::FIRST..self)
            }

            /// Returns this one and all later ones, in order.
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
    /// The number of a checkpoint in its session, given once.
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
    /// The place of an entry in the order of its generation.
    PlaceNumber from 0
}

number! {
    /// The number of an entry in its session.
    EntryNumber from 1
}
