//! What a session is by the design alone: branches with the conversation that each shows, the one that is current,
//! numbers, and operations with what they moved from and to.
//!
//! It is the oracle of [`crate::model_based`]: values, and no call of the library. Where the design leaves something open, a
//! method takes the program's answer; each such place has a comment that begins with "Open".
//!
//! Invariant: a method that returns an error has changed nothing.

use std::collections::BTreeMap;

/// What stands in a conversation; the numbers are unlike any other in the case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A message of the user: a turn begins.
    Turn(usize),
    /// Any other message, a note, a call.
    Said(usize),
    /// A long result, and whether it is whole.
    Result(usize, bool),
    /// The summary of a compaction.
    Summary,
}

pub(crate) type Talk = Vec<Item>;

/// Returns what a reader sees of a conversation.
pub(crate) fn shown(talk: &[Item]) -> Vec<String> {
    let item = |item: &Item| match *item {
        Item::Turn(n) | Item::Said(n) | Item::Result(n, false) => vec![n.to_string()],
        Item::Result(n, true) => vec![n.to_string(), format!("end of {n}")],
        Item::Summary => vec!["summary".to_owned()],
    };
    talk.iter().flat_map(item).collect()
}

/// Returns a conversation with its long results cut.
pub(crate) fn cut(talk: &[Item]) -> Talk {
    let cut = |item: &Item| match *item {
        Item::Result(n, _) => Item::Result(n, false),
        other => other,
    };
    talk.iter().map(cut).collect()
}

/// What an operation moves from and to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) branches: BTreeMap<String, Talk>,
    pub(crate) current: String,
    pub(crate) hidden: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) command: &'static str,
    /// The operation that an undo or a redo takes back.
    pub(crate) undoes: Option<usize>,
    pub(crate) undone: bool,
    from: State,
    to: State,
}

#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    /// The number of the operation that gave it.
    operation: usize,
    /// The conversation before it.
    pub(crate) before: Talk,
    /// How often the session had changed: a place has one number.
    at: usize,
    /// Whether its place is the program's affair.
    pub(crate) is_open: bool,
}

/// What a verb answers of what the design leaves open: whether there is an operation, and the names of what was left.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) operation: bool,
    pub(crate) left: Vec<String>,
    /// The branches that an undo or a revert left.
    pub(crate) branches: Vec<String>,
}

/// Why something is impossible.
pub(crate) type Refused = &'static str;

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) state: State,
    /// Numbered from 1.
    pub(crate) operations: Vec<Operation>,
    /// Numbered from 0.
    pub(crate) checkpoints: Vec<Checkpoint>,
    /// What the live file says, if it is there.
    pub(crate) live: Option<Talk>,
    /// Whether the file is the store's own.
    pub(crate) is_owned: bool,
    /// Whether the live file was written anew.
    is_anew: bool,
    changes: usize,
}

impl Model {
    /// Begins with what an agent's file says, or with nothing.
    pub(crate) fn begin(is_owned: bool, talk: &[Item], commands: &[&'static str]) -> Self {
        let branches = BTreeMap::from([("main".to_owned(), Talk::new())]);
        let state = State { branches, current: "main".to_owned(), hidden: false };
        let (operations, live) = (Vec::new(), Some(talk.to_vec()));
        let (checkpoints, is_anew, changes) = (Vec::new(), false, 0);
        let mut model = Self { state, operations, checkpoints, live, is_owned, is_anew, changes };
        for command in commands {
            model.grow(command, talk, talk, None);
        }
        model
    }

    pub(crate) fn talk(&self) -> &Talk {
        &self.state.branches[&self.state.current]
    }

    /// Returns whether a checkpoint stands: its operation does.
    pub(crate) fn stands(&self, n: usize) -> bool {
        self.checkpoints.get(n).is_some_and(|one| !self.operations[one.operation - 1].undone)
    }

    fn record(&mut self, command: &'static str, undoes: Option<usize>, to: State) {
        let from = std::mem::replace(&mut self.state, to);
        let is_moved =
            from.branches[&from.current] != *self.talk() || from.current != self.state.current;
        self.changes += usize::from(is_moved || undoes.is_some());
        let to = self.state.clone();
        self.operations.push(Operation { command, undoes, undone: false, from, to });
        if command != "checkpoint" && command != "branch" && command != "hide" {
            self.live = self.live.is_some().then(|| self.talk().clone());
            self.is_anew = false;
        }
    }

    /// Moves the current branch to a conversation; every turn that is new in what a file says has a number, of which the
    /// program gave so many.
    fn grow(
        &mut self,
        command: &'static str,
        to_talk: &[Item],
        says: &[Item],
        answer: Option<usize>,
    ) -> Vec<usize> {
        let mut to = self.state.clone();
        let (known, changes, is_shown) =
            (self.talk().clone(), self.changes, self.is_numbered_here());
        to.branches.insert(to.current.clone(), to_talk.to_vec());
        self.record(command, None, to);
        let (operation, first) = (self.operations.len(), self.checkpoints.len());
        let is_new = |i: &usize| matches!(says[*i], Item::Turn(_)) && !known.contains(&says[*i]);
        let turns: Vec<usize> = (0..says.len()).filter(is_new).collect();
        // What writes its file anew moves a session to another place, which may show the same.
        let same_file = ["append", "checkpoint", "branch", "hide"];
        let is_anew = |one: &Operation| !same_file.contains(&one.command);
        let last_anew = self.operations[..operation - 1].iter().rposition(is_anew);
        for end in &turns {
            let is_here = says[..*end] == known && says == to_talk;
            let at = if is_here { changes } else { usize::MAX };
            let number =
                (0..first).rev().find(|n| self.stands(*n) && self.checkpoints[*n].at == at);
            // Open: which places are one is a matter of files, where something was taken back in between.
            let is_one = is_here && is_shown && answer.is_some_and(|given| given < turns.len());
            let is_since = number
                .is_some_and(|n| last_anew.is_some_and(|at| at >= self.checkpoints[n].operation));
            let is_two = is_since && answer == Some(turns.len());
            if !(is_here && number.is_some() && !is_two || is_one) {
                self.checkpoints.push(Checkpoint {
                    operation,
                    before: says[..*end].to_vec(),
                    at,
                    is_open: false,
                });
            }
        }
        (first..self.checkpoints.len()).collect()
    }

    /// Another program wrote the live file.
    pub(crate) fn write(&mut self, talk: Option<Talk>, is_anew: bool) {
        self.is_anew = talk.is_some() && (self.is_anew || is_anew);
        self.live = talk;
    }

    /// The session follows its live file: the current branch shows what the file says. A file of the store's own that was
    /// written anew follows the store.
    pub(crate) fn catch_up(&mut self, command: &'static str, left: Option<String>, given: usize) {
        let old = self.talk().clone();
        let is_followed = !(self.is_owned && self.is_anew);
        let live = self.live.clone().filter(|_| is_followed).unwrap_or_else(|| old.clone());
        let left = left.filter(|_| self.is_anew);
        let says = self.live.clone().unwrap_or_else(|| old.clone());
        self.grow(command, &live, &says, Some(given));
        self.state.leave(left.as_ref(), if is_followed { old } else { says });
        self.is_anew = false;
    }

    /// Returns the numbers of the turns, of which the program gave so many.
    pub(crate) fn append(&mut self, items: &[Item], answer: usize) -> Vec<usize> {
        let talk = [&self.talk()[..], items].concat();
        self.grow("append", &talk, &talk, Some(answer))
    }

    pub(crate) fn branch(&mut self, name: &str) -> Result<(), Refused> {
        let mut to = self.state.clone();
        if to.branches.insert(name.to_owned(), self.talk().clone()).is_some() {
            return Err("there is one of that name");
        }
        self.record("branch", None, to);
        Ok(())
    }

    pub(crate) fn switch(&mut self, name: &str) -> Result<(), Refused> {
        if !self.state.branches.contains_key(name) {
            return Err("there is none of that name");
        }
        if self.state.current != name {
            let to = State { current: name.to_owned(), ..self.state.clone() };
            self.record("switch", None, to);
        }
        Ok(())
    }

    /// Returns whether a number shows what the session does. Open: which places are one is a matter of files.
    pub(crate) fn is_numbered_here(&self) -> bool {
        let mut numbers = 0..self.checkpoints.len();
        numbers.any(|n| self.stands(n) && self.checkpoints[n].before == *self.talk())
    }

    /// Puts a checkpoint where the session stands, or finds the one that is there.
    pub(crate) fn checkpoint(&mut self, number: usize, has_note: bool) {
        let (at, before) = (self.changes, self.talk().clone());
        if let Some(known) = self.checkpoints.get(number) {
            assert!(self.stands(number) && known.before == before, "@{number} is elsewhere");
            assert!(!has_note, "the note would be lost");
            return;
        }
        assert_eq!(number, self.checkpoints.len(), "the next number");
        let here = (0..number).find(|n| self.stands(*n) && self.checkpoints[*n].at == at);
        assert_eq!(here, None, "a place has one number");
        self.record("checkpoint", None, self.state.clone());
        self.checkpoints.push(Checkpoint {
            operation: self.operations.len(),
            before,
            at,
            is_open: false,
        });
    }

    /// Takes a number that a turn has once more. Open: where a file says a turn again, in a format whose records have no names,
    /// that is another turn.
    pub(crate) fn number_again(&mut self, n: usize, shows: &[String], is_whole: bool) {
        let talk = self.talk();
        let turns = (0..talk.len()).filter(|i| matches!(talk[*i], Item::Turn(_)));
        // Of a result that was cut, its place may show the whole.
        let whole = shows.iter().filter(|word| !word.starts_with("end of"));
        let whole: Vec<String> = whole.cloned().collect();
        let end = turns.into_iter().find(|i| {
            let before = &talk[..*i];
            shown(before) == *shows || shown(&cut(before)) == *shows || shown(before) == whole
        });
        // Open: where in a record that says all that stays the turns of it are.
        let is_open = end.is_none() && is_whole;
        assert!(end.is_some() || is_open, "@{n} stands before no turn: {shows:?}");
        let end = end.unwrap_or_default();
        let operation = self.operations.len();
        assert!(!matches!(self.operations[operation - 1].command, "append" | "checkpoint"));
        assert_eq!(n, self.checkpoints.len(), "the next number");
        let before = talk[..end].to_vec();
        self.checkpoints.push(Checkpoint { operation, before, at: usize::MAX, is_open });
    }

    /// Takes the current branch to a conversation, and on from there with a note.
    pub(crate) fn go(
        &mut self,
        command: &'static str,
        talk: &[Item],
        note: Option<Item>,
        answer: &Answer,
    ) {
        let from = self.talk().clone();
        let mut to = self.state.clone();
        to.branches.insert(to.current.clone(), talk.iter().copied().chain(note).collect());
        to.leave(answer.left.first(), from.clone());
        to.take_up(&answer.branches);
        // Open: what stands on another branch anyway may be left without a name of its own.
        assert!(
            to.branches.values().any(|one| one.starts_with(&from)),
            "what was left has no name"
        );
        // Open: going where the branch stands may be no operation.
        if answer.operation {
            self.record(command, None, to);
        } else {
            assert_eq!(to, self.state, "it went elsewhere, and there is no operation");
        }
    }

    /// Cuts the long results of the current branch.
    pub(crate) fn truncate(&mut self, answer: &Answer) {
        let talk = cut(self.talk());
        assert_eq!(answer.operation, talk != *self.talk(), "there is something to cut");
        self.go("truncate", &talk, None, answer);
    }

    /// Follows a compaction. Open: what of the old is shown beside the summary (a rule of each agent), and when there is
    /// too little to compact; what is shown was there, in that order, and the last message stays.
    pub(crate) fn compact(&mut self, now: &[String], answer: &Answer) {
        if !answer.operation {
            return;
        }
        let mut old = self.talk().iter();
        let mut talk = Talk::new();
        for word in now.iter().filter(|word| !word.starts_with("end of")) {
            if word == "summary" {
                talk.push(Item::Summary);
                // Codex says what is kept again behind it.
                old = self.talk().iter();
            } else {
                let found = old.find(|item| shown(&[**item])[0] == *word);
                talk.push(*found.unwrap_or_else(|| panic!("{word} was not there before: {now:?}")));
            }
        }
        assert!(talk.contains(&Item::Summary));
        assert!(self.talk().last().is_none_or(|last| talk.contains(last)), "the last one stays");
        let mut to = self.state.clone();
        to.leave(answer.left.first(), self.talk().clone());
        to.branches.insert(to.current.clone(), talk);
        self.record("compact", None, to);
    }

    pub(crate) fn hide(&mut self, hidden: bool) {
        let to = State { hidden, ..self.state.clone() };
        self.record("hide", None, to);
    }

    /// Takes back an operation, or the newest one that moved the conversation.
    pub(crate) fn undo(&mut self, n: Option<usize>, answer: &Answer) -> Result<usize, Refused> {
        let can = |one: &Operation| {
            let fixed = matches!(one.command, "new" | "import" | "catch-up" | "undo" | "redo");
            !fixed && !one.undone
        };
        let moved =
            |one: &Operation| can(one) && !matches!(one.command, "branch" | "checkpoint" | "hide");
        let newest = || self.operations.iter().rposition(moved).map(|index| index + 1);
        let n = n.or_else(newest).ok_or("there is nothing to undo")?;
        let one = n.checked_sub(1).and_then(|index| self.operations.get(index));
        let one = one.filter(|one| can(one)).ok_or("it cannot be undone")?;
        let to = self.state.back(one, answer)?;
        self.operations[n - 1].undone = true;
        self.record("undo", Some(n), to);
        Ok(n)
    }

    /// Takes back the newest undo. Open: what was done since ends what can be redone.
    pub(crate) fn redo(&mut self, answer: &Answer) -> Result<usize, Refused> {
        let counts = |one: &Operation| match one.command {
            "redo" | "hide" | "import" | "catch-up" => false,
            "undo" => !one.undone,
            _ => true,
        };
        let newest = self
            .operations
            .iter()
            .rposition(counts)
            .filter(|n| self.operations[*n].command == "undo");
        let n = newest.ok_or("there is nothing to redo")? + 1;
        let to = self.state.back(&self.operations[n - 1], answer)?;
        self.operations[n - 1].undone = true;
        let undone = self.operations[n - 1].undoes.unwrap_or_default();
        self.operations[undone - 1].undone = false;
        self.record("redo", Some(n), to);
        Ok(n)
    }
}

impl State {
    fn leave(&mut self, name: Option<&String>, talk: Talk) {
        if let Some(name) = name {
            assert!(self.branches.insert(name.clone(), talk).is_none(), "{name} is another branch");
        }
    }

    /// Lets the names go of which none is among these: the current branch must have taken up what they keep.
    fn take_up(&mut self, names: &[String]) {
        let (current, talk) = (format!("{}.", self.current), self.branches[&self.current].clone());
        self.branches.retain(|name, kept| {
            let is_there = names.is_empty() || names.contains(name);
            assert!(is_there || *kept == talk && name.starts_with(&current), "{name} is gone");
            is_there
        });
    }

    /// Returns the state with what an operation moved where it came from, and names for what came since.
    fn back(&self, one: &Operation, answer: &Answer) -> Result<Self, Refused> {
        let mut next = self.clone();
        let mut names = answer.left.iter();
        let moved = one.from.branches.keys().chain(one.to.branches.keys());
        // What writes a file anew moves the current branch, also to a place that shows the same.
        let is_anew =
            |name: &String| matches!(one.command, "clear" | "revert") && *name == one.from.current;
        let is_moved = |name: &&String| {
            one.from.branches.get(*name) != one.to.branches.get(*name) || is_anew(name)
        };
        let moved = moved.filter(is_moved);
        for name in moved.collect::<std::collections::BTreeSet<_>>() {
            let came =
                self.branches.get(name).filter(|now| Some(*now) != one.to.branches.get(name));
            match one.from.branches.get(name) {
                Some(talk) => {
                    // Found, and not in the design: where something was done and undone since, the program names what nothing
                    // has come to, as one that differs in its place in the file and in nothing that is shown.
                    if let Some(since) = came.or_else(|| self.branches.get(name)) {
                        next.leave(names.next(), since.clone());
                    }
                    next.branches.insert(name.clone(), talk.clone())
                }
                // What came since has that name already. Open: where it is current, that may be what came, or
                // be refused.
                None if answer.branches.contains(name) => continue,
                None if came.is_some() && *name != self.current => continue,
                None => next.branches.remove(name),
            };
            if let Some(came) = came {
                let is_kept = next.branches.values().any(|talk| talk.starts_with(came));
                assert!(is_kept || answer.left.is_empty(), "what came since {one:?} has no name");
            }
        }
        // Who switched since goes on where that led.
        if one.from.current != one.to.current && self.current == one.to.current {
            next.current.clone_from(&one.from.current);
        }
        if one.from.hidden != one.to.hidden {
            next.hidden = one.from.hidden;
        }
        let has_current = next.branches.contains_key(&next.current);
        has_current.then_some(next).ok_or("the current branch would be gone")
    }
}
