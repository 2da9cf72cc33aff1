//! Shapes: how a report becomes a JSON object.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::model::hint::{Hint, NamedHint};
use crate::{context, model::SessionName, session::Session};

/// An answer for programs: an object with a type. Its type is printed first, then the fields that serde derives.
pub trait Report: Serialize {
    /// Returns the type, which is printed first.
    fn kind(&self) -> &'static str;

    /// Returns the next steps.
    fn hints(&self) -> Vec<Hint> {
        Vec::new()
    }
}

/// Implements [`Report`]: the type, and the hints if there are any.
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
}

/// Implements `Serialize` for values whose `as_str` returns their name.
macro_rules! named {
    ($($name:ty),* $(,)?) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }
    )*};
}

pub(super) use {named, report};

named!(context::Act, context::Origin, context::Shape, context::Step, context::measure::Word);

/// Serialises a path as text; invalid UTF-8 is replaced.
pub(super) fn path<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

/// Serialises a path, or null.
#[expect(clippy::ref_option, reason = "so a field is handed over")]
pub(super) fn some_path<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(to)
}

/// Serialises the id of a session.
pub(super) fn id<S: Serializer>(session: &Session, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&session.name.id)
}

/// Serialises a value as the text that people read, or null.
#[expect(clippy::ref_option, reason = "so a field is handed over")]
pub(super) fn some_text<T: ToString, S: Serializer>(
    value: &Option<T>,
    to: S,
) -> Result<S::Ok, S::Error> {
    value.as_ref().map(T::to_string).serialize(to)
}

/// Serialises the id in the name of a session.
pub(super) fn name_id<S: Serializer>(name: &SessionName, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&name.id)
}

/// Serialises paths.
pub(super) fn paths<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

/// Serialises the number of values.
pub(super) fn count<T, S: Serializer>(values: &[T], to: S) -> Result<S::Ok, S::Error> {
    values.len().serialize(to)
}

/// Serialises a value in the form that programs get.
pub(super) fn through<'a, F, T: ?Sized, S>(value: &'a T, to: S) -> Result<S::Ok, S::Error>
where
    F: From<&'a T> + Serialize,
    S: Serializer,
{
    F::from(value).serialize(to)
}

/// The session of a report.
#[derive(Serialize)]
pub(super) struct Owner<'a> {
    /// The session.
    session: &'a str,
    /// The agent.
    format: &'a str,
}

impl<'a> From<&'a Session> for Owner<'a> {
    fn from(session: &'a Session) -> Self {
        Self { session: &session.name.id, format: &session.name.format }
    }
}

/// The result of a change, preceded by the session that was changed.
#[derive(Clone, Debug, Serialize)]
pub struct Changed<'a, T> {
    /// The session.
    session: &'a str,
    /// The title of the session.
    title: Option<String>,
    /// The agent.
    format: &'a str,
    /// The result.
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
    /// What happened.
    pub error: String,
    /// What caused the error, the immediate cause first.
    pub causes: Vec<String>,
    /// Possible next steps.
    pub hints: Vec<NamedHint<'a>>,
    /// The exit code, see `undertext help options`.
    pub exit: u8,
}

report!(Failed<'_>, "error");

#[cfg(test)]
mod tests {
    use crate::{
        model::CheckpointNumber,
        model::{EntryId, SessionName, Timestamp},
        report::{Changed, Done, Marked, Page, Report},
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
            Marked { checkpoint: CheckpointNumber::new(2), shown: None, done: Done::default() };
        assert_eq!(
            told(&Changed::of(&session, None, &marked)),
            r#"checkpoint {"session":"7c2a51de","title":null,"format":"native","checkpoint":2,"operation":null,"rotated":null,"written":null}"#
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
