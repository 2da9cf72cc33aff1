//! The pane of the sessions: the list, and what narrows it.

use chrono::Datelike as _;
use undertext::model::{SessionName, Timestamp};

use super::cursor::Cursor;
use super::data::{SessionRow, Sessions};
use super::dialog::Field;
use super::filter::Filter;
use super::keys::Act;
use super::matching::Texts;
use super::state::Look;

/// How long a week is, in milliseconds.
const WEEK: i64 = 7 * 24 * 3_600_000;

/// Which sessions are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Scope {
    Here,
    #[default]
    All,
    Week,
}

/// The list of sessions and what narrows it.
#[derive(Default)]
pub(super) struct List {
    pub(super) all: Sessions,
    texts: Texts,
    /// The rows that are shown.
    pub(super) shown: Vec<usize>,
    pub(super) cursor: Cursor,
    pub(super) scope: Scope,
    pub(super) agent: Option<String>,
    pub(super) filter: Field,
    /// The conditions of the filter that do not exist.
    pub(super) unknown: Vec<String>,
}

impl List {
    /// Lists other sessions. The cursor stays on its session, or on `shown` at first.
    pub(super) fn replace(&mut self, sessions: Sessions, shown: Option<&SessionName>, look: Look) {
        let is_first = self.all.rows.is_empty();
        let name = if is_first { shown.cloned() } else { self.name() };
        self.texts = Texts::default();
        for (n, row) in sessions.rows.iter().enumerate() {
            let id = row.listed.name.id.as_str();
            for text in [&row.title, &row.folder, id, &row.listed.name.format] {
                self.texts.add(n, text);
            }
        }
        if is_first && shown.is_none() && sessions.rows.iter().any(|row| row.is_here) {
            self.scope = Scope::Here;
        }
        self.all = sessions;
        self.narrow(look);
        self.put_cursor(name.as_ref());
    }

    /// Returns the visible row with a number.
    pub(super) fn row(&self, at: usize) -> Option<&SessionRow> {
        self.all.rows.get(*self.shown.get(at)?)
    }

    /// Returns the row of a session, even if it is not shown.
    pub(super) fn row_of(&self, name: &SessionName) -> Option<&SessionRow> {
        self.all.rows.iter().find(|row| row.listed.name == *name)
    }

    /// Returns the session under the cursor.
    pub(super) fn name(&self) -> Option<SessionName> {
        self.row(self.cursor.at).map(|row| row.listed.name.clone())
    }

    /// Puts the cursor on a session. Returns false if it is not shown.
    pub(super) fn put_cursor(&mut self, name: Option<&SessionName>) -> bool {
        let is_it = |at: &usize| self.row(*at).is_some_and(|row| Some(&row.listed.name) == name);
        let at = (0..self.shown.len()).find(is_it);
        self.cursor.at = at.unwrap_or(self.cursor.at);
        self.cursor.limit(self.shown.len());
        at.is_some()
    }

    /// Returns the lines from the first visible row on: rows, and the headings above them.
    pub(super) fn lines(&self, look: Look) -> impl Iterator<Item = (usize, Option<String>)> {
        let rows = self.cursor.top..self.shown.len();
        rows.flat_map(move |at| {
            let heading = self.heading(at, look).map(|heading| (at, Some(heading)));
            heading.into_iter().chain([(at, None)])
        })
    }

    /// Returns the heading above a row, if another month begins there. Matches of a filter have no order in time.
    fn heading(&self, at: usize, look: Look) -> Option<String> {
        let month = |at: usize| self.row(at).and_then(|row| month_of(row, look));
        let before = at.checked_sub(1).and_then(month);
        month(at).filter(|month| self.filter.text.is_empty() && before.as_ref() != Some(month))
    }

    /// Scrolls so that the cursor is visible in a pane of this height.
    pub(super) fn fit(&mut self, height: usize, look: Look) {
        self.cursor.fit(height);
        let at = self.cursor.at;
        while self.cursor.top < at && !self.lines(look).take(height).any(|it| it == (at, None)) {
            self.cursor.top += 1;
        }
    }

    /// Finds the rows that the scope, the agent and the filter admit.
    fn narrow(&mut self, look: Look) {
        let Look { zone, now, .. } = look;
        let filter = Filter::parse(&self.filter.text, zone, now);
        let all = &self.all.rows;
        let mut found = self.texts.find(&filter.words, all.len());
        found.retain(|row| {
            let Some(row) = all.get(*row) else { return false };
            let is_in_scope = match self.scope {
                Scope::Here => row.is_here,
                Scope::All => true,
                Scope::Week => row.listed.card.active >= Some(Timestamp(now.0 - WEEK)),
            };
            let of_agent = |agent: &String| *agent == row.listed.name.format;
            is_in_scope && self.agent.as_ref().is_none_or(of_agent) && filter.admits(row)
        });
        self.unknown = filter.unknown;
        self.shown = found;
        self.cursor.limit(self.shown.len());
    }

    /// Narrows the list by what was typed. The cursor goes to the best match, or back to its session.
    pub(super) fn filter(&mut self, look: Look) {
        let name = self.name();
        self.narrow(look);
        self.cursor = Cursor { at: 0, top: 0, ..self.cursor };
        if self.filter.text.is_empty() {
            self.put_cursor(name.as_ref());
        }
    }

    /// Lists all sessions, if the list hides one.
    pub(super) fn reveal(&mut self, name: &SessionName, look: Look) {
        if !self.put_cursor(Some(name)) {
            (self.scope, self.agent) = (Scope::All, None);
            self.filter = Field::default();
            self.narrow(look);
            self.put_cursor(Some(name));
        }
    }

    /// Chooses the next scope, or the next agent; after the last agent, all of them.
    pub(super) fn choose(&mut self, act: Act, look: Look) {
        let name = self.name();
        if act == Act::Scope {
            self.scope = match self.scope {
                Scope::Here => Scope::All,
                Scope::All => Scope::Week,
                Scope::Week => Scope::Here,
            };
        } else {
            let agents = self.all.rows.iter().map(|row| &row.listed.name.format);
            self.agent = agents.filter(|agent| Some(*agent) > self.agent.as_ref()).min().cloned();
        }
        self.narrow(look);
        self.put_cursor(name.as_ref());
    }
}

/// Returns the month of a session that is neither open nor of this week.
fn month_of(row: &SessionRow, look: Look) -> Option<String> {
    let is_old = |at: &Timestamp| !row.listed.open && at.0 < look.now.0 - WEEK;
    let active = row.listed.card.active.filter(is_old)?;
    let [then, now] = [active, look.now].map(|time| look.zone.moment(time));
    Some(if (then.year(), then.month()) == (now.year(), now.month()) {
        "earlier this month".to_owned()
    } else {
        then.format(if then.year() == now.year() { "%B" } else { "%B %Y" }).to_string()
    })
}
