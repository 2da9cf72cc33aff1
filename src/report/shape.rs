//! Shapes: how a report becomes a JSON object.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::hint::{Hint, NamedHint};
use crate::session::Session;

/// An answer for programs: an object with a type. Serialising it yields the fields in the order in which they are printed.
pub trait Report: Serialize {
    /// Returns the type, which is printed first.
    fn kind(&self) -> &'static str;

    /// Returns the next steps.
    fn hints(&self) -> Vec<Hint> {
        Vec::new()
    }
}

/// Implements `Serialize` for a value: lists its fields in order.
macro_rules! object {
    ($name:ty, |$it:ident| { $($key:ident: $value:expr),* $(,)? }) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let $it = self;
                let mut object = to.serialize_map(None)?;
                $(object.serialize_entry(stringify!($key), &$value)?;)*
                object.end()
            }
        }
    };
}

/// Implements [`Report`]: the type, the fields unless they are derived, and the hints if there are any.
macro_rules! report {
    ($name:ty, $kind:literal $(, hints: |$it:pat_param| $hints:expr)?) => {
        impl $crate::report::Report for $name {
            fn kind(&self) -> &'static str {
                $kind
            }
            $(
                fn hints(&self) -> Vec<$crate::report::Hint> {
                    let $it = self;
                    $hints.into_iter().collect()
                }
            )?
        }
    };
    ($name:ty, $kind:literal, |$it:ident| { $($fields:tt)* } $(, $($hints:tt)*)?) => {
        $crate::report::shape::object!($name, |$it| { $($fields)* });
        $crate::report::shape::report!($name, $kind $(, $($hints)*)?);
    };
}

pub(super) use {object, report};

/// Serialises a path as text; invalid UTF-8 is replaced.
pub(super) fn path<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

/// Serialises a path, or null.
#[expect(clippy::ref_option, reason = "so a field is handed over")]
pub(super) fn some_path<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(to)
}

/// The result of a change, preceded by the session that was changed.
#[derive(Clone, Debug, Serialize)]
pub struct Changed<'a, T> {
    session: &'a str,
    title: Option<String>,
    format: &'a str,
    #[serde(flatten)]
    done: &'a T,
}

impl<'a, T> Changed<'a, T> {
    /// Combines a result with its session.
    pub fn of(session: &'a Session, title: Option<String>, done: &'a T) -> Self {
        Self { session: &session.name.id, title, format: &session.name.format, done }
    }
}

impl<T: Report> Report for Changed<'_, T> {
    fn kind(&self) -> &'static str {
        self.done.kind()
    }

    fn hints(&self) -> Vec<Hint> {
        self.done.hints()
    }
}

/// An error, as a report.
#[derive(Clone, Debug, Serialize)]
pub struct Failed<'a> {
    /// The error.
    pub error: String,
    /// Its causes, from the nearest to the root.
    pub causes: Vec<String>,
    /// The next steps.
    pub hints: Vec<NamedHint<'a>>,
    /// The exit code.
    pub exit: u8,
}

report!(Failed<'_>, "error");

#[cfg(test)]
mod tests {
    use crate::{
        model::CheckpointNumber,
        model::{EntryId, SessionName, Timestamp},
        report::{Changed, Marked, Page, Report},
        session::Session,
        store::SessionKey,
    };

    fn told(report: &impl Report) -> String {
        format!("{} {}", report.kind(), serde_json::to_string(report).unwrap())
    }

    #[test]
    fn a_change_is_told_behind_its_session_and_notices_are_not() {
        let name = SessionName { format: "native".to_owned(), id: "7c2a51de".to_owned() };
        let session = Session::from_store(SessionKey(1), name).unwrap();
        let marked =
            Marked { checkpoint: CheckpointNumber::new(2), operation: None, notices: Vec::new() };
        assert_eq!(
            told(&Changed::of(&session, None, &marked)),
            r#"checkpoint {"session":"7c2a51de","title":null,"format":"native","checkpoint":2,"operation":null}"#
        );
    }

    #[test]
    fn ids_times_and_paths_are_told_as_they_are_printed() {
        let text = |value: &dyn std::fmt::Display| format!("\"{value}\"");
        let (id, time) = (EntryId::new([7; 32]), Timestamp(1));
        assert_eq!(serde_json::to_string(&id).unwrap(), text(&id));
        assert_eq!(serde_json::to_string(&time).unwrap(), text(&time));
        let path = std::path::Path::new("a/b");
        assert_eq!(told(&Page { path }), r#"page {"path":"a/b"}"#);
    }
}
