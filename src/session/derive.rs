//! Deriving: computes rows from lines and operations, in the same way on import and on rebuild.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    json::Raw,
    model::{
        Card, Command, EntryNumber, Kind, Lookup, NameTag, Operation, Parent, Record, SessionName,
        Tie, Timestamp, first_line,
    },
    session::SessionError,
    store::{SessionKey, Store},
    wire::{CAVEAT, EDITOR, Envelope, Format, Graph, Link, REQUEST, Titled},
};

/// How many record names of a session that is imported in parts are kept in memory.
const KNOWN: usize = 1 << 18;

/// The store and the session where names are looked up that were not derived here.
type Held<'a> = Option<(&'a dyn Store, SessionKey)>;

/// Derives records in the order of their numbers.
#[derive(Default)]
pub(crate) struct Deriver {
    /// The newest entry of each name.
    pub(crate) names: Lookup<NameTag, EntryNumber>,
    /// Whether these are all names of the session, so that the store need not be asked.
    is_all: bool,
    /// The last answer of the store.
    asked: Option<(NameTag, Option<EntryNumber>)>,
    pub(crate) records: Vec<Record>,
    pub(crate) twins: BTreeSet<NameTag>,
}

impl Deriver {
    /// Continues after the records derived so far. `is_all` says that the session had no others.
    pub(crate) fn behind(self, is_all: bool) -> Self {
        let is_all = (is_all || self.is_all) && self.names.len() < KNOWN;
        let names = if is_all { self.names } else { Lookup::default() };
        Self { names, is_all, ..Self::default() }
    }

    /// Returns the entry of a name, from the records derived here or else from the store.
    pub(crate) fn named(
        &mut self,
        tag: NameTag,
        held: Held<'_>,
    ) -> Result<Option<EntryNumber>, SessionError> {
        if let Some(entry) = self.names.get(&tag) {
            return Ok(Some(*entry));
        }
        if let Some((_, answer)) = self.asked.filter(|(asked, _)| *asked == tag) {
            return Ok(answer);
        }
        let Some((store, session)) = held.filter(|_| !self.is_all) else { return Ok(None) };
        let answer = store.named(session, tag, tag)?.last().copied();
        self.asked = Some((tag, answer));
        Ok(answer)
    }

    /// Derives the record of the next entry. `before` is the entry before it in its file.
    pub(crate) fn add(
        &mut self,
        n: EntryNumber,
        envelope: Envelope,
        before: Option<EntryNumber>,
        held: Held<'_>,
    ) -> Result<(), SessionError> {
        let parent = match &envelope.parent {
            Link::Root => Parent::Root,
            Link::Before => before.map_or(Parent::Root, Parent::Entry),
            Link::Named(name) => {
                let tag = NameTag::of(name);
                let entry = self.named(tag, held)?;
                if entry.is_none() {
                    self.twins.insert(tag);
                }
                entry.map_or(Parent::Missing, Parent::Entry)
            }
        };
        let record = Record {
            n,
            kind: envelope.kind,
            name: envelope.tag(),
            parent,
            time: envelope.time,
            hint: envelope.hint.into(),
        };
        self.take(record, held)
    }

    /// Adds a record, such as one that was derived before.
    pub(crate) fn take(&mut self, record: Record, held: Held<'_>) -> Result<(), SessionError> {
        if let Some(tag) = record.name {
            if self.named(tag, held)?.is_some() {
                self.twins.insert(tag);
            }
            self.names.insert(tag, record.n);
        }
        self.records.push(record);
        Ok(())
    }
}

/// Derives the ties of a generation from its beginning.
pub(crate) fn ties(
    format: &dyn Format,
    session: &SessionName,
    beginning: &dyn Graph,
) -> Result<Vec<Tie>, SessionError> {
    let mut ties = format.ties(&session.id, beginning)?;
    ties.sort();
    ties.dedup();
    Ok(ties)
}

/// Updates a card for an operation.
pub(crate) fn see_operation(card: &mut Card, operation: &Operation, format: &dyn Format) {
    // If records have no times, use the time of their operation.
    let stands_for_records = operation.count() > 0 && !format.traits().has_times;
    if operation.command.speaks() || stands_for_records && !operation.command.says_again() {
        card.active = card.active.max(Some(operation.at));
    }
    if stands_for_records {
        card.started = card.started.or(Some(operation.at));
    }
    if let Command::New { about } = &operation.command {
        card.started = Some(operation.at);
        let about = serde_json::from_str::<serde_json::Value>(&about.to_text()).unwrap_or_default();
        card.folder =
            about.pointer("/system/folder").and_then(|folder| folder.as_str()).map(str::to_owned);
    }
    if let Some(step) = &operation.facts.hidden {
        card.hidden = step.to.is_some();
    }
    if let Some(given) = &operation.facts.folder {
        card.folder = Some(given.to_text());
    }
    if let Some(given) = &operation.facts.title {
        card.title = title(&given.to_text());
    }
}

/// The title that records give a session: the user's takes precedence over the agent's, and that over a summary; the newest of
/// each.
#[derive(Default)]
pub(crate) struct Titles {
    pub(crate) best: Option<(Titled, String)>,
}

impl Titles {
    /// Considers the title in a record. `has` returns whether a record with this name exists; a summary counts only if its last
    /// record does.
    pub(crate) fn see(
        &mut self,
        titled: Titled,
        record: Option<Raw<'_>>,
        format: &dyn Format,
        mut has: impl FnMut(NameTag) -> Result<bool, SessionError>,
    ) -> Result<(), SessionError> {
        if self.best.as_ref().is_some_and(|(best, _)| best.rank() > titled.rank()) {
            return Ok(());
        }
        let counts = match titled {
            Titled::Summary(leaf) => has(leaf)?,
            Titled::Agent | Titled::User => true,
        };
        if counts && let Some(words) = record.and_then(|record| title(&format.title(record)?)) {
            self.best = Some((titled, words));
        }
        Ok(())
    }
}

/// How an entry counts in a card.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// It is new.
    New,
    /// It belongs to another session's file.
    Elsewhere,
    /// A command wrote it, such as a note or a repeated entry.
    Again,
}

/// Updates a session's card to account for an entry.
pub(crate) fn see_entry(
    card: &mut Card,
    kind: Kind,
    time: Option<Timestamp>,
    record: Option<Raw<'_>>,
    format: &dyn Format,
    said: Said,
) {
    let time = time.and_then(|time| Timestamp::known(time.0));
    if said != Said::Again {
        card.active = card.active.max(time);
    }
    card.started = card.started.or(time);
    if card.folder.is_none() {
        card.folder = record.and_then(|record| format.folder(record));
    }
    if kind == Kind::User {
        card.turns += u64::from(said == Said::New);
        if card.title.is_none() {
            let messages = record.map(|record| format.messages(record)).unwrap_or_default();
            card.title = messages.iter().find_map(|message| words(&message.text()));
        }
    }
}

/// Returns the first words that a person wrote in a text: the heading of a plan, and nothing for a bare command.
pub fn words(text: &str) -> Option<String> {
    let said = without_tags(text);
    // An editor puts its open files before the request.
    let said = match said.split_once(REQUEST) {
        Some((before, request)) if before.starts_with(EDITOR) => request,
        _ => said,
    };
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().filter(|first| !is_command(first) && !first.starts_with(CAVEAT))?;
    let heading = lines.next().filter(|next| first.ends_with(':') && next.starts_with('#'));
    title(heading.map_or(first, |heading| heading.trim_start_matches('#')))
}

/// Returns a text without the XML elements that agents put at its beginning. HTML elements are part of the text.
fn without_tags(text: &str) -> &str {
    let mut ends = None;
    let mut rest = text.trim_start();
    while let Some((tag, inner)) = rest.strip_prefix('<').and_then(|tag| tag.split_once('>')) {
        let name = tag.split_whitespace().next().unwrap_or_default();
        if !name.contains(['-', '_']) || !name.chars().all(is_in_name) {
            break;
        }
        let ends = ends.get_or_insert_with(|| behind_ends(inner)).get_mut(name);
        let behind = ends.and_then(|ends| {
            let is_over = |behind: &mut &str| behind.len() + name.len() + "</>".len() > inner.len();
            while ends.pop_if(is_over).is_some() {}
            ends.last().copied()
        });
        rest = behind.unwrap_or(inner).trim_start();
    }
    rest
}

/// Returns the text after each closing tag, by element name, the first one last. Searching for each tag separately would be
/// quadratic.
fn behind_ends(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut ends: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (at, mark) in text.rmatch_indices("</") {
        let name = text.get(at + mark.len()..).unwrap_or_default();
        let (name, behind) = name.split_at(name.find(|c| !is_in_name(c)).unwrap_or(name.len()));
        if let Some(behind) = behind.strip_prefix('>') {
            ends.entry(name).or_default().push(behind);
        }
    }
    ends
}

/// Returns true for characters in the element names of agents.
fn is_in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// Returns true if a line is only an agent's command, such as `/mode`.
fn is_command(line: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    line.strip_prefix('/').is_some_and(|name| !name.is_empty() && name.chars().all(is_name))
}

/// Returns the first line of a text, cut to the length of a title.
pub(crate) fn title(text: &str) -> Option<String> {
    Some(first_line(text)?.chars().take(Card::TITLE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_are_those_of_a_person() {
        let check = |text: &str, to: Option<&str>| assert_eq!(words(text).as_deref(), to, "{text}");
        check("  Go on.\nAnd on.", Some("Go on."));
        check("<ide_opened_file>a.rs</ide_opened_file>\nWhy?", Some("Why?"));
        check("<system-reminder>x</system-reminder> <a_b k=\"v\">y</a_b>Why?", Some("Why?"));
        check("<a-b>never closed: why?", Some("never closed: why?"));
        check("<a-b>x<a-b>y</a-b>Why?</a-b>", Some("Why?</a-b>"));
        check("<a_b></c_d></a_b><c_d>Why?", Some("Why?"));
        check("<div>Why is this red?</div>", Some("<div>Why is this red?</div>"));
        check("<command-message>init</command-message>\n<command-name>/init</command-name>", None);
        check("/mode", None);
        let asked = "# Context from my IDE setup:\n\n## Open tabs:\n- a.md\n\n## My request for Codex:\nWhy?";
        check(asked, Some("Why?"));
        check(
            "Why does it say ## My request for Codex:\nhere?",
            Some("Why does it say ## My request for Codex:"),
        );
        check("/review the parser", Some("/review the parser"));
        check("/etc/hosts is wrong", Some("/etc/hosts is wrong"));
        check("Implement the following plan:\n\n# A new lexer\n\nFirst", Some("A new lexer"));
        check("Look:\n\n- one", Some("Look:"));
        check(&format!("{CAVEAT} DO NOT respond to these messages."), None);
        check(" \n ", None);
    }

    #[test]
    fn a_million_elements_that_never_end_take_one_look_at_the_text() {
        let same = "<a_b>".repeat(1_000_000);
        let others = (0..1_000_000).map(|n| format!("<a_{n}>")).collect::<Vec<_>>().concat();
        for begin in [same, others] {
            assert_eq!(words(&(begin + "Why?")).as_deref(), Some("Why?"));
        }
    }
}
