//! The keys of `browse`: one table that the key handling, the help, the footer and the tests read.
//!
//! A key is written as it is typed: `j`, `G`, `ctrl-d`, `space`, `enter`. Two keys in a row are written with a space: `g c`.

use std::collections::BTreeMap;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::seek::Jump;

/// A pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pane {
    #[default]
    Sessions,
    Turns,
    Reading,
}

impl Pane {
    pub(super) const ALL: [Self; 3] = [Self::Sessions, Self::Turns, Self::Reading];
}

/// What a key does.
#[rustfmt::skip]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Act {
    Down, Up, First, Last, HalfDown, HalfUp, Left, Right, NextPane, Focus(Pane),
    NextTurn, PreviousTurn, PageDown, PageUp, Jump(Jump), Repeat, Return, Open, Back, Close, Quit,
    Suspend, Larger, Smaller, Range, Detail, Thoughts, Files, Diff, FoldReverted, UnfoldAll, Find, FindNext, FindPrevious, Scope,
    Agent, SearchAll, CopyCommand, CopyTurn, CopyPrompt, CopyPlace, CopyCode, Revert, Keep, Compare,
    Switch, Name, Resume, ResumeInWindow, Undo, Redo, Lost, Command, Messages, Help,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) act: Act,
    /// The name that `[keys]` in the settings uses.
    pub(crate) name: &'static str,
    pub(crate) keys: &'static [&'static str],
    /// The panes where it works.
    pub(crate) panes: &'static [Pane],
    /// What it does, for the help.
    pub(crate) words: &'static str,
    /// A word for the footer; empty if the footer does not show it.
    pub(crate) brief: &'static str,
}

const ALL: &[Pane] = &Pane::ALL;
const CONVERSATION: &[Pane] = &[Pane::Turns, Pane::Reading];
const LIST: &[Pane] = &[Pane::Sessions];

const fn key(
    act: Act,
    name: &'static str,
    keys: &'static [&'static str],
    panes: &'static [Pane],
    words: &'static str,
    brief: &'static str,
) -> Key {
    Key { act, name, keys, panes, words, brief }
}

/// All keys. The footer shows those with a brief word, in this order, until it is full.
#[rustfmt::skip]
pub(crate) const TABLE: &[Key] = &[
    key(Act::Open, "open", &["enter"], ALL, "open, or unfold the lines under the cursor", "read"),
    key(Act::Revert, "revert", &["r"], CONVERSATION, "revert to just before this turn", "revert"),
    key(Act::Keep, "keep", &["R"], CONVERSATION, "revert, but keep this turn", ""),
    key(Act::Compare, "compare", &["c"], CONVERSATION, "compare a reverted turn's branch with the current one", "compare"),
    key(Act::Resume, "resume", &["o"], ALL, "resume the session in its agent, then return here", "resume"),
    key(Act::ResumeInWindow, "resume-in-window", &["O"], ALL, "resume the session in a new window of tmux", ""),
    key(Act::Find, "find", &["/"], ALL, "filter the sessions, or find in this pane", "find"),
    key(Act::SearchAll, "search", &["s"], ALL, "search the text of all sessions", "search all"),
    key(Act::Scope, "scope", &["f"], LIST, "this folder, all sessions, or this week", "scope"),
    key(Act::Agent, "agent", &["a"], LIST, "only one agent's sessions", "agent"),
    key(Act::Undo, "undo", &["u"], ALL, "undo the last change of the session", "undo"),
    key(Act::Redo, "redo", &["U"], ALL, "redo what was undone", ""),
    key(Act::Switch, "switch", &["b"], CONVERSATION, "switch to this reverted branch", ""),
    key(Act::Name, "name", &["m"], CONVERSATION, "name the place just before this turn, as a branch", ""),
    key(Act::Lost, "lost", &["L"], ALL, "list what compactions lost", ""),
    key(Act::Down, "down", &["j", "down"], ALL, "down", ""),
    key(Act::Up, "up", &["k", "up"], ALL, "up", ""),
    key(Act::First, "first", &["g g", "home"], ALL, "to the first row", ""),
    key(Act::Last, "last", &["G", "end"], ALL, "to the last row", ""),
    key(Act::HalfDown, "half-down", &["ctrl-d"], ALL, "down half a page", ""),
    key(Act::HalfUp, "half-up", &["ctrl-u"], ALL, "up half a page", ""),
    key(Act::PageDown, "page-down", &["space", "pgdn"], ALL, "page the conversation down, from any pane", ""),
    key(Act::PageUp, "page-up", &["pgup"], ALL, "page the conversation up, from any pane", ""),
    key(Act::NextTurn, "next-turn", &["J"], ALL, "next turn down, from any pane", ""),
    key(Act::PreviousTurn, "previous-turn", &["K"], ALL, "next turn up, from any pane", ""),
    key(Act::Jump(Jump::Compaction), "next-compaction", &["g c"], ALL, "go to the next compaction", ""),
    key(Act::Jump(Jump::Reverted), "next-reverted", &["g r"], ALL, "go to the next reverted turn", ""),
    key(Act::Jump(Jump::Failure), "next-failure", &["g f"], ALL, "go to the next turn with a failed call", ""),
    key(Act::Jump(Jump::Edit), "next-edit", &["g e"], ALL, "go to the next turn that edits a file", ""),
    key(Act::Jump(Jump::Note), "next-note", &["g n"], ALL, "go to the next note", ""),
    key(Act::Jump(Jump::Question), "next-question", &["g q"], ALL, "go to the next question of yours", ""),
    key(Act::Repeat, "repeat", &["."], ALL, "repeat the last of these", ""),
    key(Act::Return, "return", &[","], ALL, "return to where you were before it", ""),
    key(Act::Left, "left", &["h", "left"], ALL, "to the pane on the left", ""),
    key(Act::Right, "right", &["l", "right"], ALL, "to the pane on the right", ""),
    key(Act::NextPane, "next-pane", &["tab"], ALL, "to the next pane", ""),
    key(Act::Focus(Pane::Sessions), "sessions", &["1"], ALL, "to the sessions", ""),
    key(Act::Focus(Pane::Turns), "turns", &["2"], ALL, "to the turns", ""),
    key(Act::Focus(Pane::Reading), "reading", &["3"], ALL, "to the conversation", ""),
    key(Act::Larger, "larger", &["+"], ALL, "give this pane more room, then the whole screen", ""),
    key(Act::Smaller, "smaller", &["_"], ALL, "give this pane less room", ""),
    key(Act::Detail, "detail", &["t"], ALL, "tools: titles, short, full", ""),
    key(Act::Thoughts, "thoughts", &["T"], ALL, "the model's thoughts: hidden, a line, full", ""),
    key(Act::Files, "files", &["f"], &[Pane::Reading], "only the edits of this turn, or everything", ""),
    key(Act::Diff, "diff", &["D"], &[Pane::Reading], "edits side by side, or line by line", ""),
    key(Act::FoldReverted, "fold-reverted", &["z"], &[Pane::Turns], "fold each reverted branch to one row, or unfold them", ""),
    key(Act::UnfoldAll, "unfold-all", &["Z"], ALL, "unfold everything, or fold it again", ""),
    key(Act::FindNext, "find-next", &["n"], CONVERSATION, "next match", ""),
    key(Act::FindPrevious, "find-previous", &["N"], CONVERSATION, "previous match", ""),
    key(Act::Range, "range", &["v"], &[Pane::Turns], "begin or end a range of turns to copy", ""),
    key(Act::CopyCommand, "copy-command", &["y y"], ALL, "copy the command that shows this", ""),
    key(Act::CopyTurn, "copy-turn", &["y t"], ALL, "copy the turn as it is shown", ""),
    key(Act::CopyPrompt, "copy-prompt", &["y p"], ALL, "copy the prompt of the turn", ""),
    key(Act::CopyPlace, "copy-place", &["y l"], ALL, "copy the place, such as 82@14", ""),
    key(Act::CopyCode, "copy-code", &["y c"], &[Pane::Reading], "copy the code under the cursor", ""),
    key(Act::Command, "command", &[":"], ALL, "run any command on this session", ""),
    key(Act::Messages, "messages", &["!"], ALL, "messages and errors of this run", ""),
    key(Act::Back, "back", &["esc"], ALL, "one level out; never quits", ""),
    key(Act::Suspend, "suspend", &["ctrl-z"], ALL, "suspend", ""),
    key(Act::Help, "help", &["?"], ALL, "all keys; type to filter, and enter runs one", "keys"),
    key(Act::Close, "close", &["q"], ALL, "close this view; in the sessions, quit", "quit"),
    key(Act::Quit, "quit", &["Q", "ctrl-c"], ALL, "quit", ""),
];

/// The keys in force: the table, with the user's own keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    /// The keys that replace those of a row, by its name.
    own: BTreeMap<String, Vec<String>>,
}

impl Keys {
    /// Creates the keys in force, and lists the names that no row has.
    pub(crate) fn new(own: BTreeMap<String, Vec<String>>) -> (Self, Vec<String>) {
        let is_known = |name: &str| TABLE.iter().any(|key| key.name == name);
        let unknown = own.keys().filter(|name| !is_known(name)).cloned().collect();
        (Self { own }, unknown)
    }

    /// Returns the keys of a row.
    pub(crate) fn of(&self, key: &Key) -> Vec<&str> {
        match self.own.get(key.name) {
            Some(own) => own.iter().map(String::as_str).collect(),
            None => key.keys.to_vec(),
        }
    }

    /// Returns what typed keys do in a pane.
    pub(super) fn find(&self, pane: Pane, typed: &str) -> Option<Act> {
        let is_it = |key: &&Key| key.panes.contains(&pane) && self.of(key).contains(&typed);
        TABLE.iter().find(is_it).map(|key| key.act)
    }

    /// Returns the rows whose keys begin with a key in a pane.
    pub(super) fn after<'k>(
        &'k self,
        pane: Pane,
        first: &'k str,
    ) -> impl Iterator<Item = (&'k str, &'static Key)> {
        let rows = TABLE.iter().filter(move |key| key.panes.contains(&pane));
        rows.flat_map(move |row| {
            let keys = self.of(row).into_iter();
            keys.filter_map(move |key| {
                let (one, next) = key.split_once(' ')?;
                (one == first).then_some((next, row))
            })
        })
    }
}

/// The names of keys that are no characters.
#[rustfmt::skip]
const NAMES: [(KeyCode, &str); 13] = [
    (KeyCode::Char(' '), "space"), (KeyCode::Enter, "enter"), (KeyCode::Esc, "esc"), (KeyCode::Tab, "tab"),
    (KeyCode::Up, "up"), (KeyCode::Down, "down"), (KeyCode::Left, "left"), (KeyCode::Right, "right"),
    (KeyCode::Home, "home"), (KeyCode::End, "end"), (KeyCode::PageUp, "pgup"), (KeyCode::PageDown, "pgdn"),
    (KeyCode::Backspace, "backspace"),
];

/// Returns the name of a pressed key; `None` for keys without one.
pub(super) fn name(event: KeyEvent) -> Option<String> {
    let named = NAMES.iter().find(|(code, _)| *code == event.code).map(|(_, name)| *name);
    let name = match event.code {
        KeyCode::Char(c) if named.is_none() => c.to_string(),
        _ => named?.to_owned(),
    };
    let is_held = |held| event.modifiers.contains(held);
    Some(match (is_held(KeyModifiers::CONTROL), is_held(KeyModifiers::ALT)) {
        (true, _) => format!("ctrl-{name}"),
        (_, true) => format!("alt-{name}"),
        _ => name,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_key_does_two_things_in_one_pane() {
        for pane in Pane::ALL {
            let mut seen = BTreeSet::new();
            for row in TABLE.iter().filter(|row| row.panes.contains(&pane)) {
                assert!(row.keys.iter().all(|key| seen.insert(*key)), "{pane:?} {}", row.name);
            }
            let firsts = seen.iter().filter_map(|key| key.split_once(' ')).map(|(one, _)| one);
            assert!(firsts.into_iter().all(|first| !seen.contains(first)), "{pane:?}");
        }
        let names: BTreeSet<&str> = TABLE.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), TABLE.len(), "names are unique");
    }

    #[test]
    fn own_keys_replace_those_of_the_table() {
        let own = BTreeMap::from([
            ("undo".to_owned(), vec!["z".to_owned()]),
            ("fly".to_owned(), vec!["w".to_owned()]),
        ]);
        let (keys, unknown) = Keys::new(own);
        assert_eq!(unknown, ["fly"]);
        assert_eq!(keys.find(Pane::Turns, "z"), Some(Act::Undo));
        assert_eq!(keys.find(Pane::Turns, "u"), None);
        assert_eq!(keys.find(Pane::Turns, "r"), Some(Act::Revert));
        assert_eq!(keys.find(Pane::Sessions, "r"), None);
    }

    #[test]
    fn keys_have_the_names_that_settings_use() {
        let check = |code, held, name: &str| {
            assert_eq!(super::name(KeyEvent::new(code, held)).as_deref(), Some(name));
        };
        check(KeyCode::Char('G'), KeyModifiers::SHIFT, "G");
        check(KeyCode::Char('d'), KeyModifiers::CONTROL, "ctrl-d");
        check(KeyCode::Char(' '), KeyModifiers::NONE, "space");
        assert_eq!(super::name(KeyEvent::new(KeyCode::F(1), KeyModifiers::NONE)), None);
    }
}
