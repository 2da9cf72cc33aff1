//! Plans: the changes that a verb requests for a session, decided from its state alone and executed in one place.
//!
//! ```text
//! undo of append    main: A -> B             main: B -> A
//! undo of revert    main: B -> A             main: A -> B, and main.1, which the revert created, is removed
//!                   main.1: . -> B
//! undo of the first main: A -> B, B -> C     main: C -> A, and main.1: . -> C preserves the records since
//! ```
//!
//! Invariant: a plan depends on nothing but the state and the request, and making one changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    Command, FileNumber, MAIN, Operation, OperationNumber, Position, Request, State, Step, Text,
    Words,
};

/// Branches with this name and a number contain the entries that another program wrote into a replaced live file.
pub(crate) const OUTSIDE: &str = "outside";
/// Branches with this name and a number contain the entries of an agent that knew only an older state.
pub(crate) const LATE: &str = "late";

/// The changes that a verb requests for a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan<G> {
    /// The command of the operation.
    pub(crate) command: Command,
    /// The changes of the state.
    pub(crate) steps: Steps,
    /// The goal for the live file. It decides the position of the current branch.
    pub(crate) goal: G,
}

/// The changes of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    /// The new positions of branches; `None` removes one.
    pub(crate) branches: BTreeMap<String, Option<Position>>,
    /// The new current branch.
    pub(crate) current: Option<String>,
    /// The old and the new live file; either may be absent.
    pub(crate) live: Option<Step<FileNumber>>,
    /// Whether the session becomes hidden or visible.
    pub(crate) hidden: Option<bool>,
    /// The new waiting change.
    pub(crate) request: Option<Request>,
    /// The old and the new operation with the waiting change; either may be absent.
    pub(crate) waiting: Option<Step<OperationNumber>>,
    /// A new checkpoint, with a person's note.
    pub(crate) checkpoint: Option<(Position, Option<Text>)>,
}

impl Steps {
    /// Moves a branch.
    pub(crate) fn set(&mut self, branch: &str, to: Option<Position>) {
        self.branches.insert(branch.to_owned(), to);
    }

    /// Adds a branch for the old end of a branch, and returns its name.
    pub(crate) fn leave(&mut self, state: &State, branch: &str, from: Position) -> String {
        let left = free_name(branch, |name| {
            state.branches.contains_key(name) || self.branches.contains_key(name)
        });
        self.set(&left, Some(from));
        left
    }

    /// Removes the names for old ends of the current branch at a position that the branch returns to.
    pub(crate) fn take_up(&mut self, state: &State, at: Position) {
        let number =
            |name: &str| name.strip_prefix(state.current())?.strip_prefix('.')?.parse::<u64>().ok();
        let is_left = |name: &str| number(name).is_some();
        let left = state.branches.iter().filter(|(name, left)| **left == at && is_left(name));
        for (name, _) in left {
            self.set(name, None);
        }
    }

    /// Returns the current branch after these steps.
    pub(crate) fn current<'a>(&'a self, state: &'a State) -> &'a str {
        self.current.as_deref().unwrap_or(state.current())
    }

    /// Returns the position of the current branch after these steps.
    pub(crate) fn position(&self, state: &State) -> Option<Position> {
        let current = self.current(state);
        let stands = || state.branches.get(current).copied();
        self.branches.get(current).copied().unwrap_or_else(stands)
    }
}

/// Returns the first unused branch name with a number.
pub(crate) fn free_name(branch: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let names = (1..u64::MAX).map(|n| format!("{branch}.{n}"));
    names.into_iter().find(|name| !is_taken(name)).unwrap_or_default()
}

/// Wraps a text from a person for a record. Its salt is drawn when the record is sealed.
pub(crate) fn given(text: &str) -> Text {
    Text::Given(Words { salt: Words::UNSALTED, text: text.to_owned() })
}

/// Wraps a branch name for a record: as is if undertext chose it, or uses it as a substitute for a redacted one.
pub(crate) fn branch_text(name: &str) -> Text {
    let (base, numbers) = name.split_once('.').unwrap_or((name, ""));
    let are_numbers = || numbers.split('.').all(|n| n.bytes().all(|digit| digit.is_ascii_digit()));
    let is_own = matches!(base, MAIN | OUTSIDE | LATE) && (numbers.is_empty() || are_numbers());
    if is_own || Text::is_of_absent(name) { Text::Own(name.to_owned()) } else { given(name) }
}

/// Returns why an operation cannot be undone, if it cannot.
pub(crate) fn obstacle(
    operation: &Operation,
    undone: &BTreeSet<OperationNumber>,
) -> Option<&'static str> {
    if undone.contains(&operation.n) {
        Some("it is already undone")
    } else if operation.n == OperationNumber::FIRST {
        Some("it created the session")
    } else if operation.undoes().is_some() {
        Some("it is an undo; to undo the newest undo, use redo")
    } else if operation.command.takes_in() {
        Some("it only imported what another program wrote")
    } else if operation.command.is_final() {
        Some("what it redacted is not kept anywhere")
    } else {
        None
    }
}

/// Returns the inverse of an operation: each step back to where the operation moved it from. Later ends of branches get names,
/// which are also returned, unless the agent reads the same there as at the end left by the operation.
pub(crate) fn take_back<E>(
    state: &State,
    operation: &Operation,
    is_same: impl Fn(Position, Position) -> Result<bool, E>,
) -> Result<(Steps, Vec<String>), E> {
    let facts = &operation.facts;
    let (mut steps, mut later) = (Steps::default(), Vec::new());
    // A switch moves a branch to another place with the same content. Entries added there since stay on the branch.
    let is_switch = match &operation.command {
        Command::Switch { .. } => true,
        Command::Undo { command, .. } => command == "switch",
        _ => false,
    };
    let renamed = renamed(state, operation);
    for step in &facts.moves {
        let branch = step.branch.to_text();
        let now = state.branches.get(&branch).copied();
        let from = match &renamed {
            Some((_, new, _)) if *new == branch => {
                steps.set(&branch, None);
                continue;
            }
            Some((old, _, at)) if *old == branch => Some(*at),
            _ => step.from,
        };
        match (from, now) {
            _ if is_switch && came_since(state, step.to, now) => {}
            // A branch that the operation created is removed, unless it was used since.
            (None, _) if came_since(state, step.to, now) => {}
            (from, now) => {
                if let Some(now) = now.filter(|now| came_since(state, step.to, Some(*now)))
                    && !step.to.map_or(Ok(false), |to| is_same(to, now))?
                {
                    later.push((branch.clone(), now));
                }
                steps.set(&branch, from);
            }
        }
    }
    // A branch that the operation removed gets its old name back.
    let left = later.into_iter().map(|(branch, now)| steps.leave(state, &branch, now)).collect();
    let text = |text: &Option<Text>| text.as_ref().map(Text::to_text);
    let current = facts.current.as_ref().filter(|step| state.current == text(&step.to));
    steps.current = current.and_then(|step| text(&step.from));
    // A file that the operation began for the agent stays the live file: the goal moves the agent elsewhere.
    let is_begun = |step: &Step<FileNumber>| {
        facts.files.iter().any(|file| Some(file.n) == step.to) && step.from.is_some()
    };
    let live = facts.live.as_ref().filter(|step| step.to == state.live && !is_begun(step));
    steps.live = live.map(|step| Step { from: step.to, to: step.from });
    let hidden = facts.hidden.as_ref().filter(|step| step.to.is_some() == state.hidden);
    steps.hidden = hidden.map(|step| step.from.is_some());
    // A request that another change dropped stays dropped; it is restored only by redoing the undo that dropped it.
    let waiting = facts.waiting.as_ref().filter(|step| step.to == state.waiting);
    steps.waiting = match &operation.command {
        Command::Later { .. } => waiting.map(|step| Step { from: step.to, to: None }),
        Command::Undo { command, .. } if command == "later" => {
            waiting.map(|step| Step { from: step.to, to: step.from })
        }
        _ => None,
    };
    Ok((steps, left))
}

/// Returns the old and the new name of a branch that an operation renamed, and its position now. Entries added since stay with
/// the branch when it gets its old name back.
fn renamed(state: &State, operation: &Operation) -> Option<(String, String, Position)> {
    let moves = &operation.facts.moves;
    moves.iter().find_map(|old| {
        let at = old.from.filter(|_| old.to.is_none())?;
        let new = moves.iter().find(|new| new.from.is_none() && new.to == Some(at))?;
        let (old, new) = (old.branch.to_text(), new.branch.to_text());
        let now = state.branches.get(&new).copied()?;
        Some((old, new, now))
    })
}

/// Returns true if a branch was moved since an operation. A branch that an undo or redo restored, in a new generation with the
/// same head, does not count.
fn came_since(state: &State, left: Option<Position>, now: Option<Position>) -> bool {
    match (left, now) {
        (Some(left), Some(now)) if left.generation != now.generation => {
            left.head != now.head || !state.is_restored(now.generation)
        }
        (left, now) => left != now,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::model::{EntryNumber, Facts, GenerationNumber, Move};

    fn at(head: u64) -> Position {
        Position {
            generation: GenerationNumber::FIRST,
            head: Some(EntryNumber::new(head)),
            horizon: head,
        }
    }

    fn state(branches: &[(&str, u64)]) -> State {
        let branches = branches.iter().map(|(name, head)| ((*name).to_owned(), at(*head)));
        State { branches: branches.collect(), current: Some("main".into()), ..State::default() }
    }

    /// Returns the steps that the inverse of these moves sets, and the names of the later ends.
    fn taken_back(
        state: &State,
        moves: &[(&str, Option<u64>, Option<u64>)],
    ) -> (Vec<(String, Option<u64>)>, Vec<String>) {
        let step = |(branch, from, to): &(&str, Option<u64>, Option<u64>)| Move {
            branch: branch_text(branch),
            from: from.map(at),
            to: to.map(at),
        };
        let facts = Facts { moves: moves.iter().map(step).collect(), ..Facts::default() };
        let command = Command::Hide { hidden: true, branch: None };
        let n = OperationNumber::new(2);
        let sealed = Operation { n, command, facts, ..Operation::default() };
        let is_same = |_, _| Ok::<_, Infallible>(false);
        let (steps, left) = take_back(state, &sealed, is_same).unwrap();
        let head = |(name, to): (String, Option<Position>)| {
            (name, to.and_then(|to| to.head).map(EntryNumber::get))
        };
        (steps.branches.into_iter().map(head).collect(), left)
    }

    #[test]
    fn the_inverse_goes_back_to_where_each_branch_came_from() {
        let state = state(&[("main", 2), ("main.1", 5)]);
        let (set, left) =
            taken_back(&state, &[("main", Some(5), Some(2)), ("main.1", None, Some(5))]);
        assert_eq!(set, [("main".into(), Some(5)), ("main.1".into(), None)]);
        assert!(left.is_empty());
    }

    #[test]
    fn what_came_since_gets_a_name() {
        let (set, left) = taken_back(&state(&[("main", 7)]), &[("main", Some(1), Some(5))]);
        assert_eq!(set, [("main".into(), Some(1)), ("main.1".into(), Some(7))]);
        assert_eq!(left, ["main.1"]);
    }

    /// It was given the name of a branch that came back, which then stood in its place.
    #[test]
    fn what_came_since_takes_no_name_from_a_branch_that_comes_back() {
        let moves = [("main", Some(1), Some(5)), ("main.1", Some(4), None)];
        let (set, left) = taken_back(&state(&[("main", 7)]), &moves);
        let set: BTreeMap<_, _> = set.into_iter().collect();
        assert_eq!(set["main"], Some(1));
        assert_eq!(set["main.1"], Some(4));
        assert_eq!(set["main.2"], Some(7));
        assert_eq!(left, ["main.2"]);
    }

    #[test]
    fn a_branch_that_was_made_and_used_since_stays() {
        let (set, _) = taken_back(&state(&[("side", 9), ("main", 1)]), &[("side", None, Some(5))]);
        assert!(set.is_empty());
    }

    /// It stood where it was renamed, and what was said since was left on the new name.
    #[test]
    fn what_came_to_a_renamed_branch_goes_back_with_it_to_its_name() {
        let renamed = [("main", Some(5), None), ("trunk", None, Some(5))];
        let (set, left) = taken_back(&state(&[("trunk", 7)]), &renamed);
        assert_eq!(set, [("main".into(), Some(7)), ("trunk".into(), None)]);
        assert!(left.is_empty());
        // One that came to have the old name keeps what it has under another one.
        let (set, left) = taken_back(&state(&[("trunk", 7), ("main", 9)]), &renamed);
        let all = [("main", Some(7)), ("main.1", Some(9)), ("trunk", None)];
        assert_eq!(set, all.map(|(name, at)| (name.to_owned(), at)));
        assert_eq!(left, ["main.1"]);
    }

    #[test]
    fn a_name_that_is_taken_is_not_given_again() {
        let state = state(&[("main", 7), ("main.1", 3)]);
        let mut steps = Steps::default();
        assert_eq!(steps.leave(&state, "main", at(7)), "main.2");
        assert_eq!(steps.leave(&state, "main", at(7)), "main.3");
    }

    #[test]
    fn only_names_that_undertext_gives_are_in_the_record_as_they_are() {
        for own in ["main", "main.1", "late.2", "outside.1", "main.1.2"] {
            assert_eq!(branch_text(own), Text::Own(own.into()));
        }
        for theirs in ["mine", "main.x", "side.1"] {
            assert_eq!(branch_text(theirs), given(theirs));
        }
    }
}
