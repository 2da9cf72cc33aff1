//! What every store refuses, alone and within a transaction: a commit that does not fit together, or not to what is there.
//!
//! Invariant: what is refused has added nothing, and whatever is right can be added after it.

use crate::fixture::number;
use std::collections::BTreeSet;
use undertext::{
    model::{
        Card, Checkpoint, Command, Entry, EntryId, Move, NameTag, Named, OperationId,
        OperationNumber, Origin, Parent, Position, Run, Sidecar, StoreId, Tagged, Timestamp,
    },
    store::{Commit, NewLine, SessionFilter, Store, StoreError},
};

use super::{
    lab::{all_answers, assert_same, assert_whole, commit, kind, line_of, over_each},
    writer::{Writer, given, hash_again, place, seal_again},
};

#[test]
fn a_commit_on_a_stale_session_is_a_conflict_and_adds_nothing() {
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        let key = commit(store, writer.begin()).unwrap();
        let mut other = writer.clone();
        let mine = writer.next(&[b"mine".to_vec()], |_| {});
        let theirs = other.next(&[b"theirs".to_vec()], |_| {});
        commit(store, theirs.clone()).unwrap();
        let held = all_answers(store);
        let first = Writer::new(store, "s").begin();
        let mut unborn = Writer::new(store, "unborn");
        unborn.begin();
        let unborn = unborn.next(&[], |_| {});
        for stale in [mine, theirs, first, unborn] {
            let refused = commit(store, stale);
            assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
        }
        assert_same(&all_answers(store), &held);
        assert_eq!(line_of(store, key, 3), b"theirs");
    });
}

/// What is made of a commit, its hash being made again or not, and how it is refused.
struct Wrong {
    what: &'static str,
    spoil: fn(&mut Commit),
    again: Again,
    kind: &'static str,
}

/// What is made right again, so that it hides nothing.
enum Again {
    /// The record and the hash.
    Sealed,
    /// The hash of the record as it is.
    Hashed,
    Nothing,
}

const fn sealed(what: &'static str, spoil: fn(&mut Commit)) -> Wrong {
    Wrong { what, spoil, again: Again::Sealed, kind: "refused" }
}

const fn hashed(what: &'static str, spoil: fn(&mut Commit)) -> Wrong {
    Wrong { what, spoil, again: Again::Hashed, kind: "refused" }
}

const fn bare(what: &'static str, spoil: fn(&mut Commit)) -> Wrong {
    Wrong { what, spoil, again: Again::Nothing, kind: "refused" }
}

const fn stale(what: &'static str, spoil: fn(&mut Commit)) -> Wrong {
    Wrong { what, spoil, again: Again::Sealed, kind: "conflict" }
}

const TOO_GREAT: u64 = 1 << 63;

/// What is wrong with the commits of [`good`].
const WRONG: &[Wrong] = &[
    // What it follows.
    stale("no operation before", |c| c.expected = None),
    stale("another operation before", |c| c.expected = Some(OperationId::new([7; 32]))),
    stale("another session", |c| c.session.id = "t".into()),
    sealed("a number that does not follow", |c| c.operation.n = c.operation.n.next()),
    sealed("the number of the operation before", |c| c.operation.n = c.operation.n.minus(1)),
    sealed("a first entry that does not follow", |c| c.operation.first = c.operation.first.next()),
    sealed("a first entry that is there", |c| c.operation.first = c.operation.first.minus(1)),
    // What the record and the hash cover.
    bare("another hash", |c| c.operation.hash = OperationId::new([7; 32])),
    bare("another time", |c| c.operation.at = Timestamp(5)),
    bare("another command", |c| c.operation.command = Command::Clear { left: None }),
    bare("a fact that the record does not hold", |c| c.operation.facts.gone.push(number(1))),
    hashed("a fact that the record does not hold, hashed", |c| {
        c.operation.facts.gone.push(number(1));
    }),
    hashed("a time that the record does not hold", |c| c.operation.at = Timestamp(5)),
    hashed("a record with more in it", |c| c.operation.record.extend([200, 1, 0])),
    hashed("a record with less in it", |c| c.operation.record.truncate(9)),
    hashed("no record", |c| c.operation.record.clear()),
    hashed("a field that is not known", |c| c.operation.unknown.push(9)),
    hashed("entries that are not named", |c| {
        c.operation.entries = None;
        c.operation.record = c.operation.to_bytes();
    }),
    hashed("other entries named", |c| {
        c.operation.entries = Named::entries(&c.bulk.entries[1..]);
        c.operation.record = c.operation.to_bytes();
    }),
    hashed("runs that are not named", |c| {
        c.operation.runs = None;
        c.operation.record = c.operation.to_bytes();
    }),
    hashed("checkpoints that are not named", |c| {
        c.operation.checkpoints = None;
        c.operation.record = c.operation.to_bytes();
    }),
    hashed("origins that are not named", |c| {
        c.operation.origins = None;
        c.operation.record = c.operation.to_bytes();
    }),
    bare("a run that is not there", |c| c.bulk.runs.clear()),
    bare("another separator", |c| c.bulk.runs[0].gaps.0.push((1, b" ".to_vec()))),
    bare("a checkpoint of another place", |c| c.bulk.checkpoints[0].place.horizon += 1),
    bare("a checkpoint without its note", |c| c.bulk.checkpoints[0].note = None),
    bare("an origin of another entry", |c| {
        c.bulk.origins[0].origin = c.bulk.origins[0].origin.next();
    }),
    bare("an origin more", |c| {
        c.bulk.origins.push(Origin { entry: number(6), origin: number(1), cut: None });
    }),
    sealed("a command that is not known", |c| c.operation.command = Command::Unknown { code: 99 }),
    sealed("no command", |c| c.operation.command = Command::default()),
    // Entries and lines.
    sealed("an entry with another id", |c| c.bulk.entries[0].id = EntryId::new([1; 32])),
    sealed("an entry with another number", |c| c.bulk.entries[0].n = number(9)),
    sealed("entries in another order", |c| c.bulk.entries.swap(0, 1)),
    sealed("entries and lines in another order", |c| {
        c.bulk.entries.swap(0, 1);
        c.lines.swap(0, 1);
    }),
    sealed("an entry that is linked to itself", |c| {
        c.bulk.entries[0].link = Some(c.bulk.entries[0].n);
    }),
    sealed("an entry that is linked to a later one", |c| {
        c.bulk.entries[0].link = Some(c.bulk.entries[1].n);
    }),
    sealed("an entry that is linked to what is not there", |c| {
        c.bulk.entries[0].link = Some(number(0));
    }),
    sealed("an entry that is linked to the wrong one", |c| {
        c.bulk.entries[0].link = Some(number(1));
    }),
    sealed("an entry that is not linked", |c| c.bulk.entries[0].link = None),
    sealed("an entry that should not be linked", |c| c.bulk.entries[2].link = Some(number(1))),
    sealed("an entry that was there before", |c| {
        let line = NewLine::new(br#"{"uuid":"a"}"#.to_vec(), Vec::new());
        let id = EntryId::of(None, line.id());
        c.bulk.entries[2] = Entry { id, ..c.bulk.entries[2] };
        c.lines[2] = line;
    }),
    sealed("an entry that came with the operation before", |c| {
        let line = NewLine::new(br#"{"uuid":"c"}"#.to_vec(), Vec::new());
        let id = EntryId::of(None, line.id());
        c.bulk.entries[2] = Entry { id, ..c.bulk.entries[2] };
        c.lines[2] = line;
    }),
    sealed("an entry that stands twice", |c| {
        c.bulk.entries[2].id = c.bulk.entries[3].id;
        c.lines[2] = c.lines[3].clone();
    }),
    sealed("another line", |c| c.lines[0] = NewLine::new(b"y".to_vec(), Vec::new())),
    sealed("a line too few", |c| c.lines.truncate(1)),
    sealed("a line too many", |c| c.lines.push(NewLine::new(b"y".to_vec(), Vec::new()))),
    sealed("no lines", |c| c.lines.clear()),
    sealed("a record too few", |c| c.records.truncate(1)),
    sealed("a record too many", |c| c.records.push(c.records[0].clone())),
    sealed("records in another order", |c| c.records.swap(0, 1)),
    sealed("a record of another entry", |c| c.records[0].n = c.records[0].n.next()),
    sealed("a record that follows itself", |c| {
        c.records[0].parent = Parent::Entry(c.records[0].n);
    }),
    sealed("a record that follows a later one", |c| {
        c.records[0].parent = Parent::Entry(c.records[1].n);
    }),
    sealed("a record that follows what never is", |c| {
        c.records[0].parent = Parent::Entry(number(0));
    }),
    // Numbers of the session.
    sealed("a checkpoint whose number does not follow", |c| {
        let n = &mut c.bulk.checkpoints[0].n;
        *n = n.next();
    }),
    sealed("a checkpoint whose number is given", |c| {
        let n = &mut c.bulk.checkpoints[0].n;
        *n = n.minus(1);
    }),
    sealed("checkpoints in another order", |c| c.bulk.checkpoints.swap(0, 1)),
    sealed("a file whose number does not follow", |c| {
        let n = &mut c.operation.facts.files[0].n;
        *n = n.next();
    }),
    sealed("a file whose number is given", |c| c.operation.facts.files[0].n = number(1)),
    sealed("a generation whose number does not follow", |c| {
        let n = &mut c.operation.facts.generations[0].n;
        *n = n.next();
    }),
    sealed("a generation whose number is given", |c| {
        c.operation.facts.generations[0].n = number(1);
    }),
    sealed("a run of no generation", |c| c.bulk.runs[0].generation = number(0)),
    sealed("a run of a generation that is not begun", |c| {
        let n = &mut c.bulk.runs[1].generation;
        *n = n.next();
    }),
    sealed("runs in another order", |c| c.bulk.runs.swap(0, 1)),
    sealed("a run that stands twice", |c| {
        let run = c.bulk.runs[1].clone();
        c.bulk.runs.push(run);
    }),
    sealed("a run behind the end of its generation", |c| c.bulk.runs[0].start += 1),
    sealed("a run before the end of its generation", |c| c.bulk.runs[0].start -= 1),
    sealed("a run behind the beginning of its generation", |c| c.bulk.runs[1].start = 1),
    sealed("an entry that stands in the place of two", |c| {
        c.bulk.origins.push(Origin { origin: number(2), ..c.bulk.origins[0].clone() });
    }),
    sealed("an entry that stands in the place of another already", |c| {
        c.bulk.origins.insert(0, Origin { entry: number(3), origin: number(2), cut: None });
    }),
    sealed("origins in another order", |c| {
        c.bulk.origins.push(Origin { entry: number(1), origin: number(2), cut: None });
    }),
    sealed("a run of entries that are not there", |c| c.bulk.runs[1].first = number(7)),
    sealed("a run of no entry", |c| c.bulk.runs[1].first = number(0)),
    sealed("an entry that is not there and stands in the place of another", |c| {
        c.bulk.origins[0].entry = number(8);
    }),
    sealed("an entry that stands in the place of one that is not there", |c| {
        c.bulk.origins[0].origin = number(8);
    }),
    sealed("an entry that stands in the place of none", |c| c.bulk.origins[0].origin = number(0)),
    // Numbers that a store cannot hold.
    sealed("a run with too many bytes", |c| c.bulk.runs[0].bytes = TOO_GREAT),
    sealed("a run with too many entries", |c| c.bulk.runs[1].count = u64::MAX),
    sealed("a run of entries that never are", |c| c.bulk.runs[0].first = number(u64::MAX)),
    sealed("a checkpoint at an entry that never is", |c| {
        c.bulk.checkpoints[0].place.head = Some(number(TOO_GREAT));
    }),
    sealed("a checkpoint with a horizon that never is", |c| {
        c.bulk.checkpoints[0].place.horizon = TOO_GREAT;
    }),
    sealed("a checkpoint in a generation that never is", |c| {
        c.bulk.checkpoints[0].place.generation = number(TOO_GREAT);
    }),
    sealed("a checkpoint before a turn that never is", |c| {
        c.bulk.checkpoints[0].before = Some(number(u64::MAX));
    }),
    sealed("an origin that never is", |c| c.bulk.origins[0].origin = number(TOO_GREAT)),
    sealed("an entry that never is", |c| c.bulk.origins[0].entry = number(TOO_GREAT)),
    sealed("a name that is no tag", |c| c.records[0].name = Some(NameTag::new(TOO_GREAT))),
    sealed("a twin that is no tag", |c| c.twins.push(NameTag::new(u64::MAX))),
    sealed("ties of a generation that never is", |c| c.ties.push((number(TOO_GREAT), Vec::new()))),
    sealed("too many turns", |c| {
        c.card = c.card.take().map(|card| Card { turns: TOO_GREAT, ..card });
    }),
    // Files that are kept.
    bare("other bytes of a kept file", |c| c.kept[0][0] ^= 1),
    bare("kept bytes too few", |c| c.kept.truncate(1)),
    bare("kept bytes too many", |c| c.kept.push(Vec::new())),
    bare("kept bytes in another order", |c| c.kept.swap(0, 2)),
    sealed("a kept file of another length", |c| c.operation.facts.containers[0].size += 1),
    sealed("a sidecar without bytes", |c| {
        c.operation.facts.sidecars.push(Sidecar { file: number(1), ..Sidecar::default() });
    }),
];

/// Returns a session of which some is there, and a commit in which there is something of all that can be wrong.
fn good(store: &dyn Store, id: &str) -> (Vec<Commit>, Commit) {
    let mut writer = Writer::new(store, id);
    let mut before = vec![writer.begin()];
    before.push(writer.next(&[br#"{"uuid":"c"}"#.to_vec()], |brought| {
        brought.bulk.origins.push(Origin { entry: number(3), origin: number(1), cut: None });
        let note = Some(given("note"));
        let place = place(3);
        brought.bulk.checkpoints.push(Checkpoint {
            n: number(0),
            place,
            note,
            ..Checkpoint::default()
        });
    }));
    let lines = [&b"x"[..], b"x", br#"{"uuid":"d"}"#, br#"{"uuid":"e"}"#].map(<[u8]>::to_vec);
    let mut good = writer.clone().rare();
    good = writer.next(&lines, |brought| {
        brought.facts = good.operation.facts.clone();
        brought.kept.clone_from(&good.kept);
        brought.facts.moves.push(Move { branch: given("b"), from: None, to: Some(place(4)) });
        brought.bulk.runs.push(Run {
            generation: number(2),
            first: number(2),
            count: 2,
            ..Run::default()
        });
        for n in 1..3 {
            let place = Position { head: None, ..place(n) };
            let note = Some(given(&format!("note {n}")));
            let checkpoint = Checkpoint { n: number(n), place, note, ..Checkpoint::default() };
            brought.bulk.checkpoints.push(checkpoint);
        }
        brought.bulk.origins.push(Origin { entry: number(5), origin: number(2), cut: None });
    });
    (before, good)
}

/// Tries every wrong commit instead of a good one, and asserts that each is refused in its way.
fn try_wrong(good: &Commit, store: StoreId, refused: &mut dyn FnMut(Commit) -> StoreError) {
    for Wrong { what, spoil, again, kind: wanted } in WRONG {
        let mut bad = good.clone();
        spoil(&mut bad);
        match again {
            Again::Sealed => seal_again(&mut bad, store),
            Again::Hashed => hash_again(&mut bad, store),
            Again::Nothing => {}
        }
        assert!(bad != *good, "{what}");
        let error = refused(bad);
        assert_eq!(kind(&error), *wanted, "{what}: {error}");
    }
    let mut bad = good.clone();
    seal_again(&mut bad, StoreId::new([0xee; 16]));
    assert_eq!(kind(&refused(bad)), "refused", "the hash of another store");
    let mut bad = good.clone();
    bad.session.id = "t".into();
    seal_again(&mut bad, store);
    bad.session.clone_from(&good.session);
    assert_eq!(kind(&refused(bad)), "refused", "the hash of another session");
    let mut bad = good.clone();
    bad.expected = None;
    hash_again(&mut bad, store);
    bad.expected = good.expected;
    assert_eq!(kind(&refused(bad)), "refused", "the hash of another beginning");
}

#[test]
fn a_commit_that_does_not_fit_together_is_refused_and_adds_nothing() {
    over_each(|store| {
        let (before, good) = good(store, "s");
        for next in before {
            commit(store, next).unwrap();
        }
        let held = all_answers(store);
        try_wrong(&good, store.id().unwrap(), &mut |bad| {
            let error = commit(store, bad).unwrap_err();
            assert_same(&all_answers(store), &held);
            error
        });
        commit(store, good).unwrap();
        assert_whole(store);
    });
}

/// The same when some of what it contradicts came in the same transaction, which goes on.
#[test]
fn a_commit_that_is_refused_leaves_its_transaction_as_it_was() {
    for is_there in [true, false] {
        over_each(|store| {
            let (mut before, good) = good(store, "s");
            let mut other = Writer::new(store, "other");
            commit(store, other.begin()).unwrap();
            if is_there {
                commit(store, before.remove(0)).unwrap();
            }
            let mut writing = store.begin().unwrap();
            for next in before {
                writing.add(next).unwrap();
            }
            let held = all_answers(store);
            try_wrong(&good, store.id().unwrap(), &mut |bad| writing.add(bad).unwrap_err());
            assert_same(&all_answers(store), &held);
            writing.add(other.next(&[b"in between".to_vec()], |_| {})).unwrap();
            let key = writing.add(good.clone()).unwrap();
            assert!(writing.commit().unwrap().unsettled.is_none());
            assert_eq!(store.operations(key, OperationNumber::ALL).unwrap().len(), 3);
            assert_eq!(store.kept(key, number(3), 2).unwrap(), good.kept[2]);
            assert_eq!(line_of(store, key, 6), good.lines[2].bytes());
            assert_whole(store);
        });
    }
}

#[test]
fn a_session_that_is_refused_at_its_birth_is_not_there() {
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        let begun = writer.begin();
        let ways: [fn(&mut Commit); 3] = [
            |c| c.operation.hash = OperationId::new([7; 32]),
            // What an index refuses, if nothing else does.
            |c| {
                c.bulk.entries[1].id = c.bulk.entries[0].id;
                c.lines[1] = c.lines[0].clone();
            },
            |c| c.bulk.checkpoints.push(Checkpoint { n: number(1), ..Checkpoint::default() }),
        ];
        for (at, way) in ways.into_iter().enumerate() {
            let mut bad = begun.clone();
            way(&mut bad);
            if at > 0 {
                seal_again(&mut bad, store.id().unwrap());
            }
            let mut writing = store.begin().unwrap();
            assert_eq!(kind(&writing.add(bad).unwrap_err()), "refused");
            assert!(writing.commit().unwrap().unsettled.is_none());
            assert_eq!(store.session(&writer.name).unwrap(), None);
            assert!(store.sessions(&SessionFilter::default()).unwrap().is_empty());
            assert!(store.names().unwrap().is_empty());
            assert_eq!(store.since(None).unwrap().0, []);
        }
        commit(store, begun).unwrap();
    });
}

/// Returns the locks that this process has on a file. A busy system may list one twice.
fn locks_on(path: &std::path::Path, proc: &std::path::Path) -> BTreeSet<String> {
    use std::os::unix::fs::MetadataExt as _;
    let inode = format!(":{} ", std::fs::metadata(path).unwrap().ino());
    let all = std::fs::read_to_string(proc.join("locks")).unwrap();
    let own = format!(" {} ", std::process::id());
    let found = all.lines().filter(|lock| lock.contains(&inode) && lock.contains(&own));
    found.map(|lock| lock.split_once(": ").unwrap().1.to_owned()).collect()
}

#[test]
fn to_open_a_store_once_more_ends_no_lock_on_it() {
    let Some(proc) = crate::needs::proc() else { return };
    let folder = super::lab::Folder::new(64, 1 << 20);
    let mut writer = super::writer::Writer::new(&folder.write(), "one");
    super::lab::commit(&folder.write(), writer.begin()).unwrap();
    let store = folder.write();
    let _writing = store.begin().unwrap();
    let before = locks_on(&folder.path(), proc);
    assert!(!before.is_empty());
    drop(folder.read());
    drop(store.reader());
    assert_eq!(locks_on(&folder.path(), proc), before);
}
