//! Errors for people: what failed and why, what to do next, and the exit code.
//!
//! An [`anyhow::Error`] that reaches `?` is a failure. A bare [`io::Error`] is a failure to write output: an error of a file gets
//! the file's name before it reaches a command.

use std::io;
use std::process::ExitCode;

use undertext::disk;
use undertext::report::{Failed, Hint};
use undertext::store::{ErrorKind, Listed, StoreError};
use undertext::verbs::{self, OpsError, SessionError, SyncError};

use super::common;
use super::hint::Naming;
use crate::render::style::{Label, Styles};
use crate::render::time::Zone;
use crate::render::{safe, wrap};

/// Longer error texts are cut to this many characters.
const LONGEST: usize = 2000;

/// How a command that did its work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Done, or the answer is yes.
    Yes,
    /// The answer is no: a check found something.
    No,
}

/// The kind of an error. It decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Wrong use: the request cannot be met.
    User,
    /// The requested thing does not exist.
    Absent,
    /// Something failed that should have worked.
    Failed,
    /// The store was written by a newer version.
    NewerStore,
    /// A bug in this program.
    Internal,
    /// The output could not be written.
    Output,
    /// The change was made, but the output could not be written.
    Untold,
    /// The reader of the output closed it, which is not an error.
    BrokenPipe,
    /// A person was asked and declined.
    #[cfg_attr(not(feature = "browse"), expect(dead_code, reason = "nothing is asked so"))]
    Declined,
}

/// An error with hints at the next step.
#[derive(Debug)]
pub(crate) struct CommandError {
    kind: Kind,
    error: anyhow::Error,
    hints: Vec<Hint>,
}

impl CommandError {
    pub(crate) fn new(kind: Kind, error: impl Into<anyhow::Error>) -> Self {
        Self { kind, error: error.into(), hints: Vec::new() }
    }

    /// Creates the error of a request that cannot be met.
    pub(crate) fn user(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Kind::User, error)
    }

    /// Creates the error of a request for something that does not exist.
    pub(crate) fn absent(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Kind::Absent, error)
    }

    /// Creates the error for a question that a person declined.
    #[cfg(feature = "browse")]
    pub(crate) fn declined() -> Self {
        Self::new(Kind::Declined, anyhow::anyhow!("nothing was picked"))
    }

    /// Adds a hint at the next step.
    pub(crate) fn hinted(mut self, hint: impl Into<Hint>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Replaces the error's message and hints. The old message becomes the cause.
    pub(crate) fn called(self, words: String, hints: impl IntoIterator<Item = Hint>) -> Self {
        Self { error: self.error.context(words), hints: hints.into_iter().collect(), ..self }
    }

    pub(crate) fn into_hints(self) -> Vec<Hint> {
        self.hints
    }

    /// Returns true if the error says that the store does not exist.
    pub(crate) fn is_absence(&self) -> bool {
        self.error
            .downcast_ref::<StoreError>()
            .is_some_and(|error| matches!(error, StoreError::Absent { .. }))
    }

    /// Returns true if the error says that an agent has the session open, and would see the change after closing it.
    pub(crate) fn is_open(&self) -> bool {
        let error = self.error.downcast_ref::<OpsError>();
        let is_final = |error: &SyncError| match error {
            SyncError::Loaded { is_final, .. } => Some(*is_final),
            _ => None,
        };
        matches!(error, Some(OpsError::Sync(error)) if is_final(error) == Some(false))
    }

    /// Returns true if the error says that the agent would not resume at the place.
    #[cfg(feature = "browse")]
    pub(crate) fn is_out_of_reach(&self) -> bool {
        let error = self.error.downcast_ref::<OpsError>();
        matches!(error, Some(OpsError::Sync(SyncError::OutOfReach { .. })))
    }

    /// Returns true if the error says that the store is damaged.
    pub(crate) fn is_damage(&self) -> bool {
        self.error
            .downcast_ref::<StoreError>()
            .is_some_and(|error| matches!(error, StoreError::Corrupt { .. }))
    }

    /// Returns true if a retry may succeed, as after a full disk or while another program was working.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.kind, Kind::User | Kind::Absent | Kind::Failed)
    }

    /// Returns what failed and why, in one line.
    pub(crate) fn in_one_line(&self) -> String {
        self.causes().join(": ")
    }

    /// Adds that the change was made, if the output could not be written.
    pub(crate) fn after(self, made: impl FnOnce() -> Option<String>) -> Self {
        if self.kind != Kind::Output {
            return self;
        }
        match made() {
            Some(made) => Self { kind: Kind::Untold, error: self.error.context(made), ..self },
            None => self,
        }
    }

    /// Returns true if the output cannot be written.
    pub(crate) fn is_output(&self) -> bool {
        matches!(self.kind, Kind::Output | Kind::BrokenPipe)
    }

    /// Returns true if the error is not reported.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.kind, Kind::BrokenPipe | Kind::Declined)
    }

    /// Formats the error, its causes and its hints for the terminal, safely escaped.
    pub(crate) fn render(&self, styles: Styles, naming: &Naming, width: Option<usize>) -> String {
        let mut shown = String::new();
        let mut tell = |label, title: &str, text: &str| {
            shown.push_str(&styles.paint(label, title));
            shown.push(' ');
            let end = text.char_indices().nth(LONGEST).map(|(at, _)| at);
            let text = text.get(..end.unwrap_or(text.len())).unwrap_or(text);
            // An id may contain line breaks.
            let text = if label == Label::Error { safe::line(text) } else { safe::text(text) };
            shown.push_str(&wrap::fit(&text, title.len() + 1, width));
            shown.push_str(if end.is_some() { "…" } else { "" });
            shown.push('\n');
        };
        for (n, cause) in self.causes().iter().enumerate() {
            let title = if n == 0 { "error:" } else { "caused by:" };
            tell(Label::Error, title, cause);
        }
        for hint in &self.hints {
            tell(Label::Hint, "hint:", &naming.spell_hint(hint));
        }
        if self.kind == Kind::Internal {
            tell(Label::Hint, "hint:", "this is a bug in undertext; please report it");
        }
        shown
    }

    /// Returns the error in the form for programs.
    pub(crate) fn report(&self, naming: &Naming) -> Failed<'_> {
        let mut causes = self.causes().into_iter();
        let error = causes.next().unwrap_or_default();
        let hints = self.hints.iter().map(|hint| naming.name(hint)).collect();
        Failed { error, causes: causes.collect(), hints, exit: self.code() }
    }

    /// Returns the error and its causes. A system error of a file is joined with the failed action into one line.
    fn causes(&self) -> Vec<String> {
        let mut causes: Vec<String> = self.error.chain().map(in_words).collect();
        if self.is_absence() {
            causes.truncate(1);
        }
        if let (Some(io), [what, why]) =
            (self.error.root_cause().downcast_ref::<io::Error>(), causes.as_slice())
            && self.kind != Kind::Output
            && io.kind() != io::ErrorKind::Other
        {
            causes = vec![format!("{what}: {why}")];
        }
        causes
    }

    fn code(&self) -> u8 {
        match self.kind {
            Kind::BrokenPipe => 0,
            Kind::Absent | Kind::Declined => 1,
            Kind::User => 2,
            Kind::Failed | Kind::Internal | Kind::Output => 3,
            Kind::NewerStore => 4,
            Kind::Untold => 5,
        }
    }
}

/// Describes an error.
pub(super) fn in_words(error: &(dyn std::error::Error + 'static)) -> String {
    error.downcast_ref::<io::Error>().map_or_else(|| error.to_string(), disk::words)
}

/// Creates the error for a typed path: wrong use if the path is impossible, otherwise a failure.
pub(crate) fn of_path(what: String, error: io::Error) -> CommandError {
    use io::ErrorKind as E;
    let is_wrong =
        matches!(error.kind(), E::NotFound | E::NotADirectory | E::IsADirectory | E::AlreadyExists);
    let kind = if is_wrong { Kind::User } else { Kind::Failed };
    let error = CommandError::new(kind, anyhow::Error::new(error).context(what));
    if is_wrong { error.hinted("name a path in an existing folder") } else { error }
}

impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        Self::new(Kind::Failed, error)
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        let broken = error.kind() == io::ErrorKind::BrokenPipe;
        let kind = if broken { Kind::BrokenPipe } else { Kind::Output };
        Self::new(kind, anyhow::Error::new(error).context("cannot write the output"))
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Yes => Self::SUCCESS,
            Exit::No => Self::from(1),
        }
    }
}

impl From<&CommandError> for ExitCode {
    fn from(error: &CommandError) -> Self {
        Self::from(error.code())
    }
}

/// Maximum number of sessions listed in an error.
const LISTED: usize = 8;

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        OpsError::from(error).into()
    }
}

impl From<SessionError> for CommandError {
    fn from(error: SessionError) -> Self {
        OpsError::from(error).into()
    }
}

impl From<SyncError> for CommandError {
    fn from(error: SyncError) -> Self {
        OpsError::from(error).into()
    }
}

impl From<OpsError> for CommandError {
    fn from(error: OpsError) -> Self {
        let kind = match error.kind() {
            ErrorKind::User => Kind::User,
            ErrorKind::Absent => Kind::Absent,
            ErrorKind::Failed => Kind::Failed,
            ErrorKind::Newer => Kind::NewerStore,
        };
        let mut hints = error.hints();
        if let OpsError::Session(SessionError::AmbiguousSession { matches, .. }) = &error {
            hints.extend(candidates(matches));
        }
        let error = match error {
            // The verb writes to the output, whose reader may have closed it.
            OpsError::Session(SessionError::Write { source }) => return source.into(),
            OpsError::Store(source) => CommandError::new(kind, source),
            error => CommandError::new(kind, error),
        };
        hints.into_iter().fold(error, CommandError::hinted)
    }
}

/// Lists the sessions that may be meant, each as you can type it.
fn candidates(matches: &[Listed]) -> impl Iterator<Item = Hint> {
    let is_shared = |id: &str| matches.iter().filter(|other| other.name.id == id).count() > 1;
    let shown = matches.iter().take(LISTED).map(move |Listed { name, card, .. }| {
        let format = if is_shared(&name.id) { format!("{}:", name.format) } else { String::new() };
        let title = card.title.as_deref().map(common::first_line).unwrap_or_default();
        let title = verbs::shortened(title);
        let active = card.active.map(|active| format!(", {}", Zone::Local.minute(active)));
        let active = active.unwrap_or_default();
        format!("{format}{}  {title}  ({}{active})", name.id, name.format).into()
    });
    let more = matches.len().saturating_sub(LISTED);
    shown.chain((more > 0).then(|| format!("{more} more").into()))
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};
    use insta::assert_snapshot;
    use undertext::report::Line;

    use super::*;

    #[test]
    fn a_line_break_in_what_is_named_does_not_break_the_line_of_an_error() {
        let error = CommandError::user(anyhow!("session a\nb is not there"));
        let shown = error.render(Styles::PLAIN, &Naming::default(), None);
        assert_eq!(shown, "error: session a b is not there\n");
    }

    #[test]
    fn an_error_tells_its_causes_then_the_next_step() {
        let cause = Err::<(), _>(anyhow!("permission denied")).context("cannot open \x1b]0;x\x07");
        let error = CommandError::from(cause.context("cannot import").unwrap_err())
            .hinted(Line::new("doctor").to("look at the store"));
        assert_snapshot!(error.render(Styles::PLAIN, &Naming::default(), None), @r"
        error: cannot import
        caused by: cannot open \x1b]0;x\x07
        caused by: permission denied
        hint: look at the store: undertext doctor
        ");
    }

    #[test]
    fn kinds_have_the_documented_codes() {
        let check = |kind, code| assert_eq!(CommandError::new(kind, anyhow!("x")).code(), code);
        check(Kind::BrokenPipe, 0);
        check(Kind::Absent, 1);
        check(Kind::Declined, 1);
        check(Kind::User, 2);
        check(Kind::Failed, 3);
        check(Kind::Internal, 3);
        check(Kind::NewerStore, 4);
        check(Kind::Output, 3);
        check(Kind::Untold, 5);
    }

    #[test]
    fn only_a_broken_pipe_is_silent() {
        let from = |kind: io::ErrorKind| CommandError::from(io::Error::from(kind));
        assert!(from(io::ErrorKind::BrokenPipe).is_silent());
        assert!(!from(io::ErrorKind::StorageFull).is_silent());
    }
}
