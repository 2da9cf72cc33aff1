//! Judging: how a file compares with the store's knowledge of it. The judgement is pure; it says which bytes it needs.
//!
//! | the file | whose | verdict |
//! |---|---|---|
//! | is not there | anyone's | gone |
//! | is still the old file of the newest rotation | the store's, an agent's | unfinished |
//! | is that, and its agent went on in it | an agent's | other |
//! | is as it was left | anyone's | same |
//! | was set aside, and is another one by now, or has not grown | set aside | same |
//! | was set aside and has grown | set aside | grown |
//! | is longer, and its bytes before the known end are the known ones | anyone's | grown |
//! | ends within the bytes of the newest operation | the store's | cut short |
//! | holds the same bytes | anyone's | same |
//! | is anything else | anyone's | other |
//!
//! Invariant: no look is asked for where an earlier line of the table decides.

/// Whose a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The store's own transcript.
    Store,
    /// The agent's, which the session follows.
    Agent,
    /// Set aside by a rotation.
    Aside,
    /// Anyone's, which is taken in.
    Import,
}

/// The store's knowledge of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) whose: Whose,
    /// How long it is.
    pub(crate) length: u64,
    /// The inode of the file, and its length, that a rotation sets aside: the newest one, or that of a file set aside.
    pub(crate) rotation: Option<(u64, u64)>,
}

/// The result of a look at a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) inode: u64,
    /// How long its content is, if that is known without reading it.
    pub(crate) length: Option<u64>,
    /// Whether its times, or the stamp of the newest operation, say that nobody touched it.
    pub(crate) is_untouched: bool,
}

/// A look at bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Does it hold the content of the old file of the newest rotation?
    Old,
    /// Are the bytes before the known end the known ones?
    End,
    /// Does it lack only a part of the newest operation's bytes?
    Rest,
    /// How does all of it compare?
    Whole,
}

/// How all of a file compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    /// It holds the same bytes.
    Equal,
    /// It holds them, and more behind them.
    Longer,
    /// It holds other bytes.
    Other,
}

/// The answers of the looks so far.
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
    /// It holds the known bytes.
    Same,
    /// It is not there.
    Gone,
    /// A rotation was committed and not carried out.
    Unfinished,
    /// It lacks a part of the newest operation's bytes.
    Short,
    /// It holds more bytes behind the known ones.
    Grown,
    /// It holds other content.
    Other,
}

/// A verdict, or the look that it needs first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Is(Verdict),
    Look(Look),
}

/// Judges a file.
pub(crate) fn judge(known: &Known, seen: Option<&Seen>, looked: Looked) -> Judgement {
    use Judgement::{Is, Look as Ask};
    let Some(seen) = seen else { return Is(Verdict::Gone) };
    if known.whose == Whose::Aside {
        let is_it = known.rotation.is_some_and(|(inode, _)| inode == seen.inode);
        let has_grown = seen.length.is_some_and(|length| length > known.length);
        return Is(if is_it && has_grown { Verdict::Grown } else { Verdict::Same });
    }
    // An inode alone does not say that a file is the old one: when that no longer exists, its number may be given to a new file.
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
    // Only the newest operation can be missing, because each one begins by catching up.
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
