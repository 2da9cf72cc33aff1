//! Judges how a file compares with what the store knows of it. The judgement is a pure function; it says which bytes it needs.
//!
//! The first row that applies decides:
//!
//! | the file | whose | verdict |
//! |---|---|---|
//! | does not exist | any | gone |
//! | is the old file of the newest rotation, and its agent appended to it | an agent's | other |
//! | is the old file of the newest rotation | the store's, an agent's | unfinished |
//! | has its known length and is untouched | any | same |
//! | was set aside, and is another file now, or has not grown | set aside | same |
//! | was set aside and has grown | set aside | grown |
//! | is longer, and the bytes before the known end match | any | grown |
//! | ends within the bytes of the newest operation | the store's | short |
//! | has the same bytes | any | same |
//! | is anything else | any | other |
//!
//! Invariant: the judgement never asks for a look when an earlier row decides.

use crate::live;

/// Who owns a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The store: one of its own transcripts.
    Store,
    /// The agent: a file that the session follows.
    Agent,
    /// A rotation set it aside.
    Aside,
    /// Anyone: a file to be imported.
    Import,
}

/// What the store knows of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) whose: Whose,
    /// Its length.
    pub(crate) length: u64,
    /// Inode and length of the file that a rotation sets aside: the newest rotation, or the one that set this file aside.
    pub(crate) rotation: Option<(u64, u64)>,
}

/// What looking at a file's metadata showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) inode: u64,
    /// Length of the content, if known without reading it.
    pub(crate) length: Option<u64>,
    /// True if its times, or the stamp of the newest operation, show that nobody changed it.
    pub(crate) is_untouched: bool,
}

impl From<live::Seen> for Seen {
    fn from(seen: live::Seen) -> Self {
        Self { inode: seen.inode, length: Some(seen.length), is_untouched: false }
    }
}

/// A question about a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Is it the old file of the newest rotation?
    Old,
    /// Do the bytes before the known end match?
    End,
    /// Is it missing only part of the newest operation's bytes?
    Rest,
    /// How does the whole file compare?
    Whole,
}

/// How a whole file compares with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    /// The bytes are equal.
    Equal,
    /// The file starts with the known bytes and has more.
    Longer,
    /// The bytes differ.
    Other,
}

/// The answers so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Looked {
    pub(crate) old: Option<bool>,
    pub(crate) end: Option<bool>,
    pub(crate) rest: Option<bool>,
    pub(crate) whole: Option<Whole>,
}

/// The verdict on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It has the known bytes.
    Same,
    /// It does not exist.
    Gone,
    /// A rotation was committed but not carried out.
    Unfinished,
    /// Part of the newest operation's bytes is missing.
    Short,
    /// It has more bytes after the known ones.
    Grown,
    /// It has other content.
    Other,
}

/// A verdict, or the look needed before one is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Is(Verdict),
    Look(Look),
}

/// Judges a file, or returns the look it needs next.
pub(crate) fn judge(known: &Known, seen: Option<&Seen>, looked: Looked) -> Judgement {
    use Judgement::{Is, Look as Ask};
    let Some(seen) = seen else { return Is(Verdict::Gone) };
    if known.whose == Whose::Aside {
        let is_it = known.rotation.is_some_and(|(inode, _)| inode == seen.inode);
        let has_grown = seen.length.is_some_and(|length| length > known.length);
        return Is(if is_it && has_grown { Verdict::Grown } else { Verdict::Same });
    }
    // The inode alone does not identify the old file: once that is deleted, the system may reuse the number.
    let may_be_old = |(inode, least)| inode == seen.inode && seen.length >= Some(least);
    let has_grown = known.rotation.is_some_and(|(_, length)| seen.length > Some(length));
    if known.rotation.is_some_and(may_be_old) {
        match looked.old {
            None => return Ask(Look::Old),
            Some(true) if known.whose == Whose::Agent && has_grown => return Is(Verdict::Other),
            Some(true) => return Is(Verdict::Unfinished),
            Some(false) => {}
        }
    }
    if seen.is_untouched && seen.length == Some(known.length) {
        return Is(Verdict::Same);
    }
    if seen.length.is_some_and(|length| length > known.length) {
        return match looked.end {
            None => Ask(Look::End),
            Some(true) => Is(Verdict::Grown),
            Some(false) => Is(Verdict::Other),
        };
    }
    // At most the newest operation can be missing, because each operation starts by catching up.
    if known.whose == Whose::Store && seen.length < Some(known.length) {
        match looked.rest {
            None => return Ask(Look::Rest),
            Some(true) => return Is(Verdict::Short),
            Some(false) => {}
        }
    }
    match looked.whole {
        None => Ask(Look::Whole),
        Some(Whole::Equal) => Is(Verdict::Same),
        Some(Whole::Longer) => Is(Verdict::Grown),
        Some(Whole::Other) => Is(Verdict::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANYONE: [Whose; 3] = [Whose::Store, Whose::Agent, Whose::Import];

    fn known(whose: Whose) -> Known {
        Known { whose, length: 100, rotation: None }
    }

    fn seen(length: u64, is_untouched: bool) -> Seen {
        Seen { inode: 7, length: Some(length), is_untouched }
    }

    /// Judges with all answers known, and says which looks were asked for.
    fn judged(known: Known, seen: Option<Seen>, answers: Looked) -> (Verdict, Vec<Look>) {
        let (mut looked, mut asked) = (Looked::default(), Vec::new());
        loop {
            match judge(&known, seen.as_ref(), looked) {
                Judgement::Is(verdict) => return (verdict, asked),
                Judgement::Look(look) => {
                    assert!(!asked.contains(&look), "{look:?} is asked for twice");
                    asked.push(look);
                    match look {
                        Look::Old => looked.old = Some(answers.old.unwrap()),
                        Look::End => looked.end = Some(answers.end.unwrap()),
                        Look::Rest => looked.rest = Some(answers.rest.unwrap()),
                        Look::Whole => looked.whole = Some(answers.whole.unwrap()),
                    }
                }
            }
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_gone_whoever_had_it() {
        for whose in [Whose::Store, Whose::Agent, Whose::Aside, Whose::Import] {
            let found = judged(known(whose), None, Looked::default());
            assert_eq!(found, (Verdict::Gone, vec![]), "{whose:?}");
        }
    }

    #[test]
    fn the_old_file_of_a_rotation_is_its_agents_where_that_went_on_in_it() {
        let known = |whose| Known { rotation: Some((7, 90)), ..known(whose) };
        let answers = Looked { old: Some(true), ..Looked::default() };
        let looked = |whose, length| judged(known(whose), Some(seen(length, false)), answers);
        for whose in [Whose::Store, Whose::Agent] {
            assert_eq!(looked(whose, 90), (Verdict::Unfinished, vec![Look::Old]));
        }
        assert_eq!(looked(Whose::Store, 95), (Verdict::Unfinished, vec![Look::Old]));
        assert_eq!(looked(Whose::Agent, 95), (Verdict::Other, vec![Look::Old]));
    }

    #[test]
    fn what_nobody_touched_is_not_read() {
        for whose in ANYONE {
            let found = judged(known(whose), Some(seen(100, true)), Looked::default());
            assert_eq!(found, (Verdict::Same, vec![]), "{whose:?}");
        }
    }

    #[test]
    fn a_longer_file_has_grown_if_what_stands_before_is_the_same() {
        for whose in ANYONE {
            for (end, verdict) in [(true, Verdict::Grown), (false, Verdict::Other)] {
                let answers = Looked { end: Some(end), ..Looked::default() };
                for is_untouched in [false, true] {
                    let found = judged(known(whose), Some(seen(101, is_untouched)), answers);
                    assert_eq!(found, (verdict, vec![Look::End]), "{whose:?}");
                }
            }
        }
    }

    #[test]
    fn only_the_stores_own_file_can_be_cut_short() {
        let other = Looked { rest: Some(true), whole: Some(Whole::Other), ..Looked::default() };
        let found = judged(known(Whose::Store), Some(seen(99, false)), other);
        assert_eq!(found, (Verdict::Short, vec![Look::Rest]));
        for whose in [Whose::Agent, Whose::Import] {
            let found = judged(known(whose), Some(seen(99, false)), other);
            assert_eq!(found, (Verdict::Other, vec![Look::Whole]), "{whose:?}");
        }
        let found = judged(
            known(Whose::Store),
            Some(seen(99, false)),
            Looked { rest: Some(false), ..other },
        );
        assert_eq!(found, (Verdict::Other, vec![Look::Rest, Look::Whole]));
    }

    #[test]
    fn what_was_touched_or_has_no_known_length_is_compared_whole() {
        let verdicts = [
            (Whole::Equal, Verdict::Same),
            (Whole::Longer, Verdict::Grown),
            (Whole::Other, Verdict::Other),
        ];
        for whose in ANYONE {
            for (whole, verdict) in verdicts {
                let answers = Looked { whole: Some(whole), ..Looked::default() };
                let found = judged(known(whose), Some(seen(100, false)), answers);
                assert_eq!(found, (verdict, vec![Look::Whole]), "{whose:?}");
            }
        }
        for (whole, verdict) in verdicts {
            let answers = Looked { whole: Some(whole), ..Looked::default() };
            let packed = Seen { length: None, ..seen(0, false) };
            let found = judged(known(Whose::Import), Some(packed), answers);
            assert_eq!(found, (verdict, vec![Look::Whole]));
        }
    }

    #[test]
    fn a_rotation_is_unfinished_while_the_file_is_the_old_one() {
        for whose in [Whose::Store, Whose::Agent] {
            let rotating = |inode| Known { rotation: Some((inode, 100)), ..known(whose) };
            for (old, verdict) in [(true, Verdict::Unfinished), (false, Verdict::Same)] {
                let answers = Looked { old: Some(old), ..Looked::default() };
                let found = judged(rotating(7), Some(seen(100, true)), answers);
                assert_eq!(found, (verdict, vec![Look::Old]), "{whose:?}");
            }
            // Another inode, or a file that is shorter than the old one was, cannot be it.
            let found = judged(rotating(8), Some(seen(100, true)), Looked::default());
            assert_eq!(found, (Verdict::Same, vec![]), "{whose:?}");
            let answers =
                Looked { rest: Some(false), whole: Some(Whole::Other), ..Looked::default() };
            let (verdict, asked) = judged(rotating(7), Some(seen(99, true)), answers);
            assert_eq!(verdict, Verdict::Other, "{whose:?}");
            assert!(!asked.contains(&Look::Old), "{whose:?}");
        }
    }

    #[test]
    fn a_file_that_was_set_aside_counts_only_if_it_is_it_and_has_grown() {
        let aside = |inode| Known { rotation: Some((inode, 100)), ..known(Whose::Aside) };
        for (inode, length, verdict) in [
            (7, 101, Verdict::Grown),
            (7, 100, Verdict::Same),
            (7, 99, Verdict::Same),
            (8, 101, Verdict::Same),
        ] {
            let found = judged(aside(inode), Some(seen(length, false)), Looked::default());
            assert_eq!(found, (verdict, vec![]), "inode {inode}, length {length}");
        }
    }
}
