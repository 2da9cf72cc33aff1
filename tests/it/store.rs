//! The contract of every store: each claim holds for the one in memory, for one that is made outside of the crate, and for
//! SQLite with journals of every size.
//!
//! Commits are put together by hand here, so that they can also be put together wrongly. What only a store in a file can be
//! asked (another connection, opening it again) is in `settling`; what breaks it, in `faults`; what becomes of lines, in `bytes`;
//! `random` compares stores whatever comes.

mod bytes;
mod faults;
mod lab;
mod ledger;
mod random;
mod settling;
mod writer;

use std::collections::BTreeSet;

use undertext::{
    model::{
        Bulk, Card, Checkpoint, Command, Entry, EntryId, Facts, Kind, LineId, MachineId, Move,
        NameTag, Named, OperationId, Origin, Parent, Pending, Place, Position, Record, Run,
        Running, Sidecar, StoreId, Tagged, Tie, TieKind, Timestamp,
    },
    store::{
        Access, Commit, Cursor, Derived, MemoryStore, NewLine, SessionFilter, SessionKey, Sighting,
        SqliteStore, Store, StoreError,
    },
};

use bytes::{assert_all, repetitive};
use lab::{
    all_answers, answers, assert_same, assert_whole, commit, commit_all, kind, labs, line_of,
    over_each, settle,
};
use writer::{Writer, given, hash_again, place, seal_again};

/// Commits two entries with a run whose running hash is wrong, and which the operation's hash covers all the same.
pub(crate) fn commit_wrong_running_hash(store: &std::path::Path) {
    let store = SqliteStore::open(store, Access::Write).unwrap();
    let mut writer = Writer::new(&store, "s");
    writer.running = Running::EMPTY.then(b"x", EntryId::of(None, LineId::of(b"y")));
    commit(&store, writer.begin()).unwrap();
}

/// Makes a store with a row in every table of facts, some operations being in the journal.
pub(crate) fn fill_every_table(path: &std::path::Path) {
    let store = SqliteStore::open(path, Access::Write).unwrap();
    let mut writer = Writer::new(&store, "one");
    commit(&store, writer.begin()).unwrap();
    for next in writer.rest() {
        commit(&store, next).unwrap();
    }
    settle(&store);
    for _ in 0..3 {
        commit(&store, writer.next(&repetitive(0, 1), |_| {})).unwrap();
    }
}

/// Does a few things of every kind, each in a transaction of its own, and hands the store over after each.
fn go_through(store: &dyn Store, mut look: impl FnMut(&dyn Store)) {
    for id in ["one", "two"] {
        let mut writer = Writer::new(store, id);
        let key = commit(store, writer.begin()).unwrap();
        look(store);
        for next in writer.rest() {
            commit(store, next).unwrap();
            look(store);
        }
        let mut writing = store.begin().unwrap();
        writing.count(key, 1, &[(1, vec![7]), (4, vec![300, 0]), (7, Vec::new())]).unwrap();
        writing.sight(&[sighting(b"/a", 1), sighting(b"", 2)]).unwrap();
        assert!(writing.commit().unwrap().unsettled.is_none());
        look(store);
    }
}

fn sighting(path: &[u8], length: u64) -> Sighting {
    let path = path.to_vec();
    Sighting { path, inode: u64::MAX, length, modified: -1, changed: i64::MAX }
}

#[test]
fn all_stores_give_equal_answers_to_every_question() {
    for lab in labs() {
        let store = lab.open();
        let oracle = MemoryStore::with_id(store.id().unwrap());
        let (mut told, mut expected) = (Vec::new(), Vec::new());
        go_through(store.as_ref(), |store| told.push(all_answers(store)));
        go_through(&oracle, |store| expected.push(all_answers(store)));
        for (told, expected) in told.iter().zip(&expected) {
            assert_same(told, expected);
        }
        assert_eq!(told.len(), expected.len());
        assert_whole(store.as_ref());
    }
}

#[test]
fn a_fact_of_every_kind_comes_back() {
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        let mut commits = vec![writer.begin()];
        commits.extend(writer.rest());
        let mut kinds = Facts::default();
        for next in commits {
            let key = commit(store, next.clone()).unwrap();
            let n = next.operation.n;
            let operation = store.operations(key, n..n + 1).unwrap().remove(0);
            assert_eq!(operation, next.operation);
            let bulk = Bulk {
                entries: store.entries(key, operation.added()).unwrap(),
                runs: store
                    .growths(key, n..n + 1)
                    .unwrap()
                    .into_iter()
                    .map(|(_, run)| run)
                    .collect(),
                checkpoints: of(n, store.checkpoints(key, 0..u64::MAX).unwrap()),
                origins: of(n, store.origins(key, 0..u64::MAX).unwrap()),
            };
            assert_eq!(bulk, next.bulk);
            for (at, bytes) in (0..).zip(&next.kept) {
                assert_eq!(store.kept(key, n, at).unwrap(), *bytes);
            }
            assert_eq!(store.records(key, operation.added()).unwrap(), next.records);
            let facts = operation.facts;
            kinds.files.extend(facts.files);
            kinds.generations.extend(facts.generations);
            kinds.moves.extend(facts.moves);
            kinds.current = facts.current.or(kinds.current);
            kinds.live = facts.live.or(kinds.live);
            kinds.hidden = facts.hidden.or(kinds.hidden);
            kinds.rotations.extend(facts.rotations);
            kinds.containers.extend(facts.containers);
            kinds.sidecars.extend(facts.sidecars);
            kinds.gone.extend(facts.gone);
            kinds.bases.extend(facts.bases);
            kinds.pending.extend(facts.pending);
            kinds.carried.extend(facts.carried);
            kinds.tombstones.extend(facts.tombstones);
        }
        // A kind that is new has to be among these.
        let Facts {
            files,
            generations,
            moves,
            current,
            live,
            hidden,
            rotations,
            containers,
            sidecars,
            gone,
            bases,
            pending,
            carried,
            tombstones,
        } = kinds;
        assert!(!files.is_empty() && !generations.is_empty() && !moves.is_empty());
        assert!(current.is_some() && live.is_some() && hidden.is_some() && !rotations.is_empty());
        assert!(!containers.is_empty() && !sidecars.is_empty() && !gone.is_empty());
        assert!(!bases.is_empty() && !pending.is_empty() && !carried.is_empty());
        assert!(!tombstones.is_empty());
    });
}

fn of<T>(operation: u64, all: Vec<(u64, T)>) -> Vec<T> {
    all.into_iter().filter(|(n, _)| *n == operation).map(|(_, fact)| fact).collect()
}

#[test]
fn a_state_is_the_fold_of_all_operations() {
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        let key = commit(store, writer.begin()).unwrap();
        for next in writer.clone().rest() {
            commit(store, next).unwrap();
        }
        writer.rest();
        assert_eq!(store.state(key).unwrap(), writer.state);
    });
}

#[test]
fn the_beginning_of_an_id_is_compared_as_it_is_written() {
    const HIGHEST: char = char::MAX;
    let ids = [
        "a".to_owned(),
        "ab".into(),
        "aB".into(),
        "a%c".into(),
        "a_c".into(),
        "a*c".into(),
        "a\0c".into(),
        "b".into(),
        "ä".into(),
        "äb".into(),
        "日本".into(),
        format!("a{HIGHEST}"),
        format!("a{HIGHEST}b"),
        format!("{HIGHEST}{HIGHEST}"),
        "a\u{d7ff}x".into(),
        "a\u{e000}x".into(),
    ];
    let mut prefixes: BTreeSet<String> =
        ["", "x", "A", "%", "_", "*", "?", "[a]", "\0"].map(Into::into).into();
    for id in &ids {
        prefixes.extend(id.char_indices().map(|(at, c)| id[..at + c.len_utf8()].to_owned()));
    }
    over_each(|store| {
        for (n, id) in ids.iter().enumerate() {
            let mut writer = Writer::new(store, id);
            writer.name.format = ["claude", "native", "pi"][n % 3].to_owned();
            commit(store, writer.begin()).unwrap();
        }
        for prefix in &prefixes {
            let list = |format: Option<&str>, limit| {
                let (format, prefix) = (format.map(str::to_owned), Some(prefix.clone()));
                let filter = SessionFilter { format, prefix, limit, ..SessionFilter::default() };
                let listed = store.sessions(&filter).unwrap().into_iter();
                listed.map(|listed| listed.name.id).collect::<Vec<_>>()
            };
            // All are equally old, and of those the one that came last is the newest.
            let begins = |id: &&String| id.starts_with(prefix);
            let expected: Vec<String> = ids.iter().rev().filter(begins).cloned().collect();
            assert_eq!(list(None, None), expected, "{prefix:?}");
            assert_eq!(list(None, Some(1)), expected[..expected.len().min(1)], "{prefix:?}");
            let natives = ids.iter().skip(1).step_by(3).rev().filter(begins);
            assert_eq!(list(Some("native"), None), natives.cloned().collect::<Vec<_>>());
        }
    });
}

#[test]
fn a_list_shows_what_came_last_first() {
    over_each(|store| {
        let mut writers: Vec<Writer> =
            ["a", "b", "c"].into_iter().map(|id| Writer::new(store, id)).collect();
        for writer in &mut writers {
            commit(store, writer.begin()).unwrap();
        }
        let list = |limit, since| {
            let since = Some(Timestamp(since));
            let filter = SessionFilter { limit, since, ..SessionFilter::default() };
            let listed = store.sessions(&filter).unwrap().into_iter();
            listed.map(|listed| listed.name.id).collect::<String>()
        };
        assert_eq!(list(None, 0), "cba");
        for (at, limit, all) in [(0, 1, "acb"), (1, 2, "bac"), (1, 1, "bac"), (2, 3, "bca")] {
            let next = writers[at].next(&[], |_| {});
            let active = next.operation.at.0;
            commit(store, next).unwrap();
            assert_eq!(list(None, 0), all);
            assert_eq!(list(Some(limit), 0), all[..limit]);
            assert!(list(None, active).contains(&writers[at].name.id));
            assert!(!list(None, active + 1).contains(&writers[at].name.id));
        }
    });
}

#[test]
fn a_session_that_is_hidden_makes_room_in_a_list_for_the_one_behind_it() {
    over_each(|store| {
        for id in ["a", "b"] {
            commit(store, Writer::new(store, id).begin()).unwrap();
        }
        let mut writer = Writer::new(store, "c");
        commit(store, writer.begin()).unwrap();
        let mut next = writer.next(&[], |_| {});
        next.card = next.card.map(|card| Card { hidden: true, ..card });
        commit(store, next).unwrap();
        let list = |limit, hidden| {
            let filter = SessionFilter { limit, hidden, ..SessionFilter::default() };
            let listed = store.sessions(&filter).unwrap().into_iter();
            listed.map(|listed| listed.name.id).collect::<String>()
        };
        assert_eq!(
            [list(Some(1), false), list(Some(2), false), list(None, false)],
            ["b", "ba", "ba"]
        );
        assert_eq!(
            [list(Some(1), true), list(Some(2), true), list(None, true)],
            ["c", "cb", "cba"]
        );
    });
}

#[test]
fn a_tie_finds_the_sessions_of_a_format_that_have_it() {
    over_each(|store| {
        for (n, id) in ["d", "a", "c", "b"].into_iter().enumerate() {
            let mut writer = Writer::new(store, id);
            writer.name.format = if n == 2 { "pi" } else { "native" }.to_owned();
            let tie = |other: &str| Tie { kind: TieKind::Fork, other: other.into() };
            let mut begun = writer.begin();
            begun.ties = vec![(1, vec![tie("o"), tie(id)]), (2, vec![tie("o")])];
            commit(store, begun).unwrap();
            if n % 2 == 1 {
                // The same ties, of an operation that came later.
                let mut next = writer.next(&[], |_| {});
                next.ties = vec![(2, vec![tie("p"), tie("o"), tie("p")])];
                commit(store, next).unwrap();
            }
        }
        let tied = |format, kind, other: &str| {
            let tied = store.tied(format, &Tie { kind, other: other.into() }).unwrap();
            tied.into_iter().map(|(_, name)| name.id).collect::<Vec<_>>()
        };
        assert_eq!(tied("native", TieKind::Fork, "o"), ["a", "b", "d"]);
        assert_eq!(tied("native", TieKind::Fork, "p"), ["a", "b"]);
        assert_eq!(tied("pi", TieKind::Fork, "o"), ["c"]);
        assert_eq!(tied("native", TieKind::Fork, "d"), ["d"]);
        assert_eq!(tied("native", TieKind::Beginning, "o"), [""; 0]);
        assert_eq!(tied("native", TieKind::Fork, "%"), [""; 0]);
    });
}

#[test]
fn a_place_finds_the_sessions_that_have_a_file_there() {
    over_each(|store| {
        let mut one = Writer::new(store, "one");
        let mut other = Writer::new(store, "other");
        for next in [one.begin(), other.begin(), one.rare(), other.rare()] {
            commit(store, next).unwrap();
        }
        let found = |place: &Place| {
            let found = store.files(place).unwrap().into_iter();
            found.map(|(_, name, n)| format!("{} {n}", name.id)).collect::<Vec<_>>()
        };
        let [first, home, path] = [0, 1, 2].map(|n| one.state.files[n].clone());
        assert_eq!(found(&first), ["one 1", "other 1"]);
        assert_eq!(found(&home), ["one 2", "other 2"]);
        assert_eq!(found(&path), ["one 3", "other 3"]);
        // The same path on another computer, and elsewhere on this one, is another place.
        let Place::Path(machine, bytes) = path else { panic!() };
        assert_eq!(found(&Place::Path(MachineId::new(1), bytes.clone())), [""; 0]);
        assert_eq!(found(&Place::Home(machine, bytes.clone())), [""; 0]);
        assert_eq!(found(&Place::Store(bytes)), [""; 0]);
    });
}

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

#[test]
fn origins_are_told_in_the_order_of_their_entries() {
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        let key = commit(store, writer.begin()).unwrap();
        commit(store, writer.next(&repetitive(0, 5), |_| {})).unwrap();
        for entries in [vec![6], vec![3, 7], vec![2], vec![4, 5]] {
            let origins = entries.iter().map(|&entry| Origin { entry, origin: 1, cut: None });
            commit(store, writer.next(&[], |brought| brought.bulk.origins.extend(origins)))
                .unwrap();
        }
        let told = |range| {
            let origins = store.origins(key, range).unwrap().into_iter();
            origins.map(|(operation, origin)| (origin.entry, operation)).collect::<Vec<_>>()
        };
        assert_eq!(told(0..u64::MAX), [(2, 5), (3, 4), (4, 6), (5, 6), (6, 3), (7, 4)]);
        assert_eq!(told(3..6), [(3, 4), (4, 6), (5, 6)]);
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
    sealed("a number that does not follow", |c| c.operation.n += 1),
    sealed("the number of the operation before", |c| c.operation.n -= 1),
    sealed("a first entry that does not follow", |c| c.operation.first += 1),
    sealed("a first entry that is there", |c| c.operation.first -= 1),
    // What the record and the hash cover.
    bare("another hash", |c| c.operation.hash = OperationId::new([7; 32])),
    bare("another time", |c| c.operation.at = Timestamp(5)),
    bare("another command", |c| c.operation.command = Command::Clear { left: None }),
    bare("a fact that the record does not hold", |c| c.operation.facts.gone.push(1)),
    hashed("a fact that the record does not hold, hashed", |c| c.operation.facts.gone.push(1)),
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
    bare("an origin of another entry", |c| c.bulk.origins[0].origin += 1),
    bare("an origin more", |c| {
        c.bulk.origins.push(Origin { entry: 6, origin: 1, cut: None });
    }),
    sealed("a command that is not known", |c| c.operation.command = Command::Unknown { code: 99 }),
    sealed("no command", |c| c.operation.command = Command::default()),
    sealed("a command that waits and is not known", |c| {
        let command = Command::Unknown { code: 99 };
        c.operation.facts.pending.push(Pending { command, to: None });
    }),
    // Entries and lines.
    sealed("an entry with another id", |c| c.bulk.entries[0].id = EntryId::new([1; 32])),
    sealed("an entry with another number", |c| c.bulk.entries[0].n = 9),
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
        c.bulk.entries[0].link = Some(0);
    }),
    sealed("an entry that is linked to the wrong one", |c| c.bulk.entries[0].link = Some(1)),
    sealed("an entry that is not linked", |c| c.bulk.entries[0].link = None),
    sealed("an entry that should not be linked", |c| c.bulk.entries[2].link = Some(1)),
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
    sealed("a record of another entry", |c| c.records[0].n += 1),
    sealed("a record that follows itself", |c| {
        c.records[0].parent = Parent::Entry(c.records[0].n);
    }),
    sealed("a record that follows a later one", |c| {
        c.records[0].parent = Parent::Entry(c.records[1].n);
    }),
    sealed("a record that follows what never is", |c| c.records[0].parent = Parent::Entry(0)),
    // Numbers of the session.
    sealed("a checkpoint whose number does not follow", |c| c.bulk.checkpoints[0].n += 1),
    sealed("a checkpoint whose number is given", |c| c.bulk.checkpoints[0].n -= 1),
    sealed("checkpoints in another order", |c| c.bulk.checkpoints.swap(0, 1)),
    sealed("a file whose number does not follow", |c| c.operation.facts.files[0].n += 1),
    sealed("a file whose number is given", |c| c.operation.facts.files[0].n = 1),
    sealed("a generation whose number does not follow", |c| {
        c.operation.facts.generations[0].n += 1;
    }),
    sealed("a generation whose number is given", |c| c.operation.facts.generations[0].n = 1),
    sealed("a run of no generation", |c| c.bulk.runs[0].generation = 0),
    sealed("a run of a generation that is not begun", |c| c.bulk.runs[1].generation += 1),
    sealed("runs in another order", |c| c.bulk.runs.swap(0, 1)),
    sealed("a run that stands twice", |c| {
        let run = c.bulk.runs[1].clone();
        c.bulk.runs.push(run);
    }),
    sealed("a run behind the end of its generation", |c| c.bulk.runs[0].start += 1),
    sealed("a run before the end of its generation", |c| c.bulk.runs[0].start -= 1),
    sealed("a run behind the beginning of its generation", |c| c.bulk.runs[1].start = 1),
    sealed("an entry that stands in the place of two", |c| {
        c.bulk.origins.push(Origin { origin: 2, ..c.bulk.origins[0].clone() });
    }),
    sealed("an entry that stands in the place of another already", |c| {
        c.bulk.origins.insert(0, Origin { entry: 3, origin: 2, cut: None });
    }),
    sealed("origins in another order", |c| {
        c.bulk.origins.push(Origin { entry: 1, origin: 2, cut: None });
    }),
    sealed("a run of entries that are not there", |c| c.bulk.runs[1].first = 7),
    sealed("a run of no entry", |c| c.bulk.runs[1].first = 0),
    sealed("an entry that is not there and stands in the place of another", |c| {
        c.bulk.origins[0].entry = 8;
    }),
    sealed("an entry that stands in the place of one that is not there", |c| {
        c.bulk.origins[0].origin = 8;
    }),
    sealed("an entry that stands in the place of none", |c| c.bulk.origins[0].origin = 0),
    // Numbers that a store cannot hold.
    sealed("a run with too many bytes", |c| c.bulk.runs[0].bytes = TOO_GREAT),
    sealed("a run with too many entries", |c| c.bulk.runs[1].count = u64::MAX),
    sealed("a run of entries that never are", |c| c.bulk.runs[0].first = u64::MAX),
    sealed("a checkpoint at an entry that never is", |c| {
        c.bulk.checkpoints[0].place.head = Some(TOO_GREAT);
    }),
    sealed("a checkpoint with a horizon that never is", |c| {
        c.bulk.checkpoints[0].place.horizon = TOO_GREAT;
    }),
    sealed("a checkpoint in a generation that never is", |c| {
        c.bulk.checkpoints[0].place.generation = TOO_GREAT;
    }),
    sealed("a checkpoint before a turn that never is", |c| {
        c.bulk.checkpoints[0].before = Some(u64::MAX);
    }),
    sealed("an origin that never is", |c| c.bulk.origins[0].origin = TOO_GREAT),
    sealed("an entry that never is", |c| c.bulk.origins[0].entry = TOO_GREAT),
    sealed("a name that is no tag", |c| c.records[0].name = Some(NameTag::new(TOO_GREAT))),
    sealed("a twin that is no tag", |c| c.twins.push(NameTag::new(u64::MAX))),
    sealed("ties of a generation that never is", |c| c.ties.push((TOO_GREAT, Vec::new()))),
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
        c.operation.facts.sidecars.push(Sidecar { file: 1, ..Sidecar::default() });
    }),
];

/// Returns a session of which some is there, and a commit in which there is something of all that can be wrong.
fn good(store: &dyn Store, id: &str) -> (Vec<Commit>, Commit) {
    let mut writer = Writer::new(store, id);
    let mut before = vec![writer.begin()];
    before.push(writer.next(&[br#"{"uuid":"c"}"#.to_vec()], |brought| {
        brought.bulk.origins.push(Origin { entry: 3, origin: 1, cut: None });
        let note = Some(given("note"));
        let place = place(3);
        brought.bulk.checkpoints.push(Checkpoint { n: 0, place, note, ..Checkpoint::default() });
    }));
    let lines = [&b"x"[..], b"x", br#"{"uuid":"d"}"#, br#"{"uuid":"e"}"#].map(<[u8]>::to_vec);
    let mut good = writer.clone().rare();
    good = writer.next(&lines, |brought| {
        brought.facts = good.operation.facts.clone();
        brought.kept.clone_from(&good.kept);
        brought.facts.moves.push(Move { branch: given("b"), from: None, to: Some(place(4)) });
        brought.bulk.runs.push(Run { generation: 2, first: 2, count: 2, ..Run::default() });
        for n in 1..3 {
            let place = Position { head: None, ..place(n) };
            let note = Some(given(&format!("note {n}")));
            let checkpoint = Checkpoint { n, place, note, ..Checkpoint::default() };
            brought.bulk.checkpoints.push(checkpoint);
        }
        brought.bulk.origins.push(Origin { entry: 5, origin: 2, cut: None });
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
            assert_eq!(store.operations(key, 0..u64::MAX).unwrap().len(), 3);
            assert_eq!(store.kept(key, 3, 2).unwrap(), good.kept[2]);
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
            |c| c.bulk.checkpoints.push(Checkpoint { n: 1, ..Checkpoint::default() }),
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

#[test]
fn what_a_newer_program_wrote_is_read_and_nothing_is_added_to_it() {
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        let key = commit(store, writer.begin()).unwrap();
        commit(store, writer.next(&[b"x".to_vec()], |_| {})).unwrap();
        // A session in which an operation is not known altogether, as a store says that has read it.
        let state = undertext::model::State { unknown: Some(2), ..writer.state.clone() };
        let derived = Derived {
            records: store.records(key, 0..u64::MAX).unwrap(),
            twins: store.twins(key).unwrap(),
            ties: store.ties(key).unwrap(),
            card: store.card(key).unwrap(),
            state,
        };
        let mut writing = store.begin().unwrap();
        writing.derive(key, &derived).unwrap();
        assert!(writing.commit().unwrap().unsettled.is_none());
        let held = all_answers(store);
        for lines in [1, 30] {
            let lines: Vec<Vec<u8>> = (0..lines).map(|n| format!("{n}").into_bytes()).collect();
            let refused = commit(store, writer.clone().next(&lines, |_| {})).unwrap_err();
            assert!(matches!(refused, StoreError::NewerFacts { operation: 2 }), "{refused}");
        }
        assert_same(&all_answers(store), &held);
        // Another session goes on.
        let mut other = Writer::new(store, "other");
        commit(store, other.begin()).unwrap();
        commit(store, other.next(&[b"x".to_vec()], |_| {})).unwrap();
    });
}

#[test]
fn a_transaction_that_is_dropped_leaves_nothing_and_the_next_one_works() {
    over_each(|store| {
        let mut one = Writer::new(store, "one");
        let key = commit(store, one.begin()).unwrap();
        commit(store, one.next(&repetitive(0, 3), |_| {})).unwrap();
        let mut writing = store.begin().unwrap();
        writing.count(key, 1, &[(1, vec![7])]).unwrap();
        writing.sight(&[sighting(b"/a", 1)]).unwrap();
        assert!(writing.commit().unwrap().unsettled.is_none());
        let held = all_answers(store);
        let lines: Vec<Vec<u8>> = repetitive(3, 30);
        for many in [&lines[..1], &lines] {
            let mut gone = one.clone();
            let mut other = Writer::new(store, "other");
            let mut writing = store.begin().unwrap();
            writing.add(gone.next(many, |_| {})).unwrap();
            let born = writing.add(other.begin()).unwrap();
            writing.add(gone.rare()).unwrap();
            writing.add(other.next(many, |_| {})).unwrap();
            writing.count(key, 1, &[(1, vec![9]), (2, vec![9]), (6, vec![9])]).unwrap();
            writing.count(born, 1, &[(1, vec![9])]).unwrap();
            writing.sight(&[sighting(b"/a", 2), sighting(b"/b", 2)]).unwrap();
            let records = store.records(key, 0..u64::MAX).unwrap();
            let derived = Derived { records, ..Derived::default() };
            writing.derive(key, &derived).unwrap();
            writing.freshened().unwrap();
            drop(writing);
            assert_same(&all_answers(store), &held);
            assert_whole(store);
        }
        // The numbers and the lines that were taken are free again.
        let mut other = Writer::new(store, "other");
        let added =
            [one.next(&lines, |_| {}), other.begin(), one.rare(), other.next(&lines, |_| {})];
        commit_all(store, added).unwrap();
        assert_eq!(line_of(store, key, 35), lines[29]);
        assert_whole(store);
    });
}

#[test]
fn one_transaction_is_open_at_a_time() {
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        let mut writing = store.begin().unwrap();
        assert_eq!(kind(&store.begin().err().unwrap()), "busy");
        // The one that is open does not mind.
        writing.add(writer.begin()).unwrap();
        assert_eq!(kind(&store.begin().err().unwrap()), "busy");
        assert!(writing.commit().unwrap().unsettled.is_none());
        drop(store.begin().unwrap());
        let key = commit(store, writer.next(&[b"x".to_vec()], |_| {})).unwrap();
        assert_eq!(line_of(store, key, 3), b"x");
    });
}

#[test]
fn a_transaction_with_nothing_in_it_changes_nothing() {
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        commit(store, writer.begin()).unwrap();
        let (held, (_, cursor)) = (all_answers(store), store.since(None).unwrap());
        assert!(store.begin().unwrap().commit().unwrap().unsettled.is_none());
        assert_same(&all_answers(store), &held);
        assert_eq!(store.since(Some(&cursor)).unwrap(), (Vec::new(), cursor));
    });
}

#[test]
fn several_operations_become_durable_together_and_are_read_meanwhile() {
    let unique =
        |n: usize| format!(r#"{{"n":{n},"x":"{}"}}"#, format!("{n},").repeat(300)).into_bytes();
    let batches = [repetitive(0, 20), (0..2500).map(unique).collect(), repetitive(3, 20)];
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        let mut small = Writer::new(store, "small");
        let mut writing = store.begin().unwrap();
        let key = writing.add(writer.begin()).unwrap();
        let other = writing.add(small.begin()).unwrap();
        for (n, batch) in (0u64..).zip(&batches) {
            let lines = repetitive(7, 2);
            writing.add(small.next(&lines, |_| {})).unwrap();
            assert_eq!(line_of(store, other, 4 + 2 * n), lines[1]);
            assert_eq!(writing.add(writer.next(batch, |_| {})).unwrap(), key);
            // Lists, names and places are those of the moment as well.
            assert_eq!(store.state(key).unwrap(), writer.state);
            let listed = store.sessions(&SessionFilter::default()).unwrap();
            assert_eq!(listed.len(), 2);
            assert_eq!(store.files(&writer.state.files[0]).unwrap().len(), 2);
        }
        assert_eq!(line_of(store, key, 4), batches[0][1]);
        assert_eq!(line_of(store, key, 1500), batches[1][1500 - 23]);
        assert!(writing.commit().unwrap().unsettled.is_none());
        assert_all(store, key, &batches);
        assert_eq!(store.operations(other, 0..u64::MAX).unwrap().len(), 4);
    });
}

#[test]
fn derived_rows_are_replaced_and_facts_are_not() {
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        let key = commit(store, writer.begin()).unwrap();
        let mut other = Writer::new(store, "other");
        let beside = commit(store, other.begin()).unwrap();
        for next in [writer.rare(), writer.next(&repetitive(0, 2), |_| {}), other.rare()] {
            commit(store, next).unwrap();
        }
        let untouched = answers(store, &other.name);
        let facts = |store: &dyn Store| {
            let all = answers(store, &writer.name);
            let derived = ["records", "named", "card", "twins", "ties", "boundary"];
            let is_fact = |told: &String| !derived.iter().any(|kind| told.starts_with(kind));
            all.into_iter().filter(is_fact).collect::<Vec<_>>()
        };
        let held = facts(store);
        let mut records = store.records(key, 0..u64::MAX).unwrap();
        records[1].kind = Kind::Note;
        records[1].name = Some(NameTag::of("new"));
        records[0].name = None;
        records[4] = Record { kind: Kind::Boundary, hint: vec![9], ..records[4].clone() };
        let card = Card { title: None, ..Card::default() };
        let tie = Tie { kind: TieKind::SubAgent, other: "t".into() };
        let ties = vec![(2, vec![tie.clone()])];
        let state = store.state(key).unwrap();
        let derived = Derived { records, twins: vec![NameTag::new(3)], ties, card, state };
        let mut writing = store.begin().unwrap();
        writing.derive(key, &derived).unwrap();
        assert!(writing.commit().unwrap().unsettled.is_none());
        assert_eq!(store.records(key, 0..u64::MAX).unwrap(), derived.records);
        assert_eq!(store.twins(key).unwrap(), derived.twins);
        assert_eq!(store.ties(key).unwrap(), derived.ties);
        assert_eq!(store.tied("native", &tie).unwrap(), [(key, writer.name.clone())]);
        assert!(store.tied("claude", &tie).unwrap().is_empty());
        assert_eq!(store.card(key).unwrap(), derived.card);
        assert_eq!(store.boundary(key, 0..u64::MAX).unwrap(), Some(5));
        let named = |name| store.named(key, NameTag::of(name), NameTag::of(name)).unwrap();
        assert_eq!((named("new"), named("a"), named("b")), (vec![2], vec![], vec![]));
        assert_same(&facts(store), &held);
        assert_same(&answers(store, &other.name), &untouched);
        // What comes next stands behind what was replaced.
        commit(store, writer.next(&[br#"{"uuid":"new"}"#.to_vec()], |_| {})).unwrap();
        assert_eq!(named("new"), [2, 6]);
        assert_eq!(store.records(key, 0..6).unwrap(), derived.records[..5]);
        assert_eq!(store.records(beside, 0..u64::MAX).unwrap().len(), 3);
    });
}

#[test]
fn a_sub_agent_is_listed_when_asked_for_or_when_its_session_is_not_there() {
    over_each(|store| {
        let listed = |sub_agents| {
            let filter = SessionFilter { sub_agents, ..SessionFilter::default() };
            let listed = store.sessions(&filter).unwrap().into_iter();
            listed.map(|listed| listed.name.id).collect::<Vec<_>>().join(" ")
        };
        let mut agent = Writer::new(store, "s/agent");
        let tie = Tie { kind: TieKind::SubAgent, other: "s".into() };
        commit(store, Commit { ties: vec![(1, vec![tie.clone()])], ..agent.begin() }).unwrap();
        assert_eq!(listed(false), "s/agent");
        commit(store, Writer::new(store, "s").begin()).unwrap();
        assert_eq!(listed(false), "s");
        assert_eq!(listed(true), "s s/agent");
        // Ties take the place of those that the generation had.
        commit(store, Commit { ties: vec![(1, Vec::new())], ..agent.next(&[], |_| {}) }).unwrap();
        assert_eq!(listed(false), "s/agent s");
        let key = store.session(&agent.name).unwrap().unwrap();
        assert_eq!(store.ties(key).unwrap(), []);
        commit(store, Commit { ties: vec![(1, vec![tie])], ..agent.next(&[], |_| {}) }).unwrap();
        assert_eq!(listed(false), "s");
    });
}

#[test]
fn token_counts_are_kept_by_the_entry_and_the_rule() {
    over_each(|store| {
        let mut one = Writer::new(store, "one");
        let mut other = Writer::new(store, "other");
        let key = commit(store, one.begin()).unwrap();
        let twin = commit(store, other.begin()).unwrap();
        commit(store, one.next(&[b"late".to_vec()], |_| {})).unwrap();
        assert_eq!(store.counts(key, 0..u64::MAX, 1).unwrap(), []);
        let counts = [(1, vec![7]), (2, vec![300, 0]), (3, Vec::new())];
        let count = |counts: &[(u64, Vec<u64>)]| {
            let mut writing = store.begin().unwrap();
            writing.count(key, 1, counts).unwrap();
            // Who writes sees it.
            let there = store.counts(key, 0..u64::MAX, 1).unwrap();
            assert!(counts.iter().all(|counted| there.contains(counted)), "{there:?}");
            assert!(writing.commit().unwrap().unsettled.is_none());
        };
        count(&counts);
        count(&counts[..1]);
        assert_eq!(store.counts(key, 0..u64::MAX, 1).unwrap(), counts);
        assert_eq!(store.counts(key, 2..3, 1).unwrap(), counts[1..2]);
        assert_eq!(store.counts(key, 0..u64::MAX, 2).unwrap(), []);
        // The same lines in another session may be known by it, and are no others.
        let known = store.counts(twin, 0..u64::MAX, 1).unwrap();
        assert!(known.is_empty() || known == counts[..2], "{known:?}");
        // A newer count takes the place of one that was kept.
        count(&[(2, vec![301])]);
        assert_eq!(store.counts(key, 2..3, 1).unwrap(), [(2, vec![301])]);
    });
}

#[test]
fn a_sighting_takes_the_place_of_the_one_before() {
    over_each(|store| {
        let sight = |seen: &[Sighting]| {
            let mut writing = store.begin().unwrap();
            writing.sight(seen).unwrap();
            assert!(writing.commit().unwrap().unsettled.is_none());
        };
        assert_eq!(store.sighting(b"/a").unwrap(), None);
        let odd = sighting(b"/\xff\0", 3);
        sight(&[sighting(b"/a", 1), odd.clone()]);
        sight(&[sighting(b"/a", 2), sighting(b"/b", 2)]);
        assert_eq!(store.sighting(b"/a").unwrap(), Some(sighting(b"/a", 2)));
        assert_eq!(store.sighting(b"/\xff\0").unwrap(), Some(odd));
        assert_eq!(store.sighting(b"/").unwrap(), None);
    });
}

#[test]
fn a_cursor_tells_each_session_that_took_something_in_once() {
    over_each(|store| {
        let ids = |keys: &[SessionKey]| {
            let names = store.names().unwrap();
            let id = |key: &SessionKey| &names.iter().find(|(held, _)| held == key).unwrap().1.id;
            keys.iter().map(id).cloned().collect::<String>()
        };
        let since = |cursor: &Cursor| {
            let (keys, cursor) = store.since(Some(cursor)).unwrap();
            (ids(&keys), cursor)
        };
        let (none, start) = store.since(None).unwrap();
        assert_eq!(none, []);
        assert_eq!(since(&start), (String::new(), start.clone()));
        let mut writers: Vec<Writer> =
            ["a", "b", "c"].into_iter().map(|id| Writer::new(store, id)).collect();
        for writer in &mut writers {
            commit(store, writer.begin()).unwrap();
        }
        let (told, first) = since(&start);
        assert_eq!(told, "abc");
        let mut next = |at: usize, lines| {
            let lines = repetitive(at, lines);
            commit(store, writers[at].next(&lines, |_| {})).unwrap();
        };
        next(2, 1);
        next(0, 1);
        next(2, 1);
        let (told, second) = since(&first);
        assert_eq!(told, "ac");
        assert_eq!(since(&second).0, "");
        // A large one settles what is small and came before; nothing is told again for that.
        next(1, 0);
        let (told, third) = since(&second);
        assert_eq!(told, "b");
        next(1, 30);
        assert_eq!(since(&third).0, "b");
        next(0, 0);
        let (told, last) = since(&third);
        assert_eq!(told, "ab");
        assert_eq!(since(&last).0, "");
        // Earlier cursors tell all that came behind them, and none tells everything.
        assert_eq!(since(&first).0, "abc");
        assert_eq!(since(&start).0, "abc");
        assert_eq!(ids(&store.since(None).unwrap().0), "abc");
        // What is written down and read again is the same cursor.
        assert_eq!(since(&Cursor::new(third.as_bytes().to_vec())).0, "ab");
    });
}

#[test]
fn a_session_that_is_not_there_is_no_answer() {
    over_each(|store| {
        commit(store, Writer::new(store, "s").begin()).unwrap();
        let nobody = SessionKey(4711);
        let all = 0..u64::MAX;
        let refused = [
            store.state(nobody).err(),
            store.card(nobody).err(),
            store.kept(nobody, 1, 0).err(),
            store.lines(nobody, &[1], &mut |_, _| ()).err(),
        ];
        for error in refused {
            assert_eq!(error.as_ref().map(kind), Some("corrupt"), "{error:?}");
        }
        // A list of nothing is as good as an error.
        assert_eq!(store.operations(nobody, all.clone()).unwrap_or_default(), []);
        assert_eq!(store.entries(nobody, all.clone()).unwrap_or_default(), []);
        assert_eq!(store.checkpoints(nobody, all).unwrap_or_default(), []);
        assert_eq!(store.ties(nobody).unwrap_or_default(), []);
    });
}
