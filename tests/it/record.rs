//! The record of an operation and the state that records lead to, whatever is in them.
//!
//! What is made here need not fit together as a store wants it: a record holds any facts, and the fold takes any record.

use crate::fixture::number;
use proptest::{collection::vec, option::of, prelude::*};
use undertext::model::{
    Base, Bulk, Checkpoint, Command, Container, CoveredFile, CoveredRuns, CutOff, Cutting, Digest,
    Entry, EntryId, Facts, File, FileNumber, Gaps, Generation, LineId, MachineId, Move, Operation,
    OperationId, OperationNumber, Origin, Place, Position, Request, Rotation, Run, Running,
    SessionName, Sidecar, State, Step, StoreId, Tagged, Text, Timestamp, Tombstone, Words,
};

const STORE: StoreId = StoreId::new([0x5a; 16]);

/// Small numbers, and those at the ends of what a number can be.
fn integer() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![4 => 0u64..5, 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn string() -> impl Strategy<Value = String> + Clone {
    prop::sample::select(vec!["", "main", "main.1", "é\0\n", "removed-12345678"])
        .prop_map(str::to_owned)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> + Clone {
    prop_oneof![Just(Vec::new()), vec(any::<u8>(), 0..9), Just(vec![b'x'; 300])]
}

fn hash() -> impl Strategy<Value = [u8; 32]> + Clone {
    prop_oneof![Just([0; 32]), any::<[u8; 32]>()]
}

/// Words of persons by far fewer salts than there are in life, so that some stand twice.
fn text() -> impl Strategy<Value = Text> + Clone {
    let given = |(salt, text)| Text::Given(Words { salt: [salt; 16], text });
    prop_oneof![
        2 => string().prop_map(Text::Own),
        2 => (0u8..3, string()).prop_map(given),
        1 => hash().prop_map(|hash| Text::Absent(Digest::new(hash))),
    ]
}

fn place() -> impl Strategy<Value = Place> + Clone {
    prop_oneof![
        bytes().prop_map(Place::Store),
        (integer(), bytes()).prop_map(|(n, path)| Place::Home(MachineId::new(n), path)),
        (integer(), bytes()).prop_map(|(n, path)| Place::Path(MachineId::new(n), path)),
    ]
}

fn position() -> impl Strategy<Value = Position> + Clone {
    (integer(), of(integer()), integer()).prop_map(|(generation, head, horizon)| Position {
        generation: number(generation),
        head: head.map(number),
        horizon,
    })
}

fn command() -> impl Strategy<Value = Command> + Clone {
    let entry = || of(hash().prop_map(EntryId::new));
    let compact = (
        (text(), of(string()), integer(), of(integer())),
        (integer(), integer(), integer(), of(string())),
        (of(integer()), of(text()), of(text()), of(text()), of(text()), of(text())),
    );
    let compact = compact.prop_map(|(a, b, c)| Command::Compact {
        branch: a.0,
        trigger: a.1,
        pre_tokens: a.2,
        post_tokens: a.3,
        window: b.0,
        summarised: b.1,
        kept: b.2,
        model: b.3,
        duration_ms: c.0,
        fallback: c.1,
        left: c.2,
        events: c.3,
        files: c.4,
        losses: c.5,
    });
    let revert = (of(integer()), entry(), of(text()), of(text()), of(text()));
    let revert = revert.prop_map(|(checkpoint, entry, branch, message, left)| Command::Revert {
        checkpoint: checkpoint.map(number),
        entry,
        branch,
        message,
        left,
    });
    let truncate = (text(), of(text()), of(integer()), integer());
    let undo = || (integer(), string(), vec(text(), 0..3));
    prop_oneof![
        text().prop_map(|about| Command::New { about }),
        (text(), of(integer()), of(text())).prop_map(|(branch, limit, events)| Command::Append {
            branch,
            limit,
            events
        }),
        (text(), of(text())).prop_map(|(branch, from)| Command::Branch { branch, from }),
        (text(), text()).prop_map(|(from, branch)| Command::Switch { from, branch }),
        integer().prop_map(|checkpoint| Command::Checkpoint { checkpoint: number(checkpoint) }),
        revert,
        of(text()).prop_map(|left| Command::Clear { left }),
        truncate.prop_map(|(branch, left, window, limit)| Command::Truncate {
            branch,
            left,
            window,
            limit
        }),
        compact,
        undo().prop_map(|(undoes, command, left)| Command::Undo {
            undoes: number(undoes),
            command,
            left
        }),
        undo().prop_map(|(undoes, command, left)| Command::Redo {
            undoes: number(undoes),
            command,
            left
        }),
        (any::<bool>(), of(text())).prop_map(|(hidden, branch)| Command::Hide { hidden, branch }),
        (of(integer()), of(text()))
            .prop_map(|(file, left)| Command::Attach { file: file.map(number), left }),
        (integer(), any::<bool>()).prop_map(|(files, part)| Command::Import { files, part }),
        (integer(), of(text()), of(text())).prop_map(|(entries, branch, left)| Command::CatchUp {
            entries,
            branch,
            left
        }),
    ]
}

fn step<T: Clone + std::fmt::Debug>(
    value: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = Option<Step<T>>> {
    of((of(value.clone()), of(value)).prop_map(|(from, to)| Step { from, to }))
}

fn facts() -> impl Strategy<Value = Facts> {
    let file = (integer(), place()).prop_map(|(n, place)| File { n: number(n), place });
    let generation = (integer(), of(integer()))
        .prop_map(|(n, file)| Generation { n: number(n), file: file.map(number) });
    let moved = (text(), of(position()), of(position()));
    let moved = moved.prop_map(|(branch, from, to)| Move { branch, from, to });
    let rotation = (integer(), bytes(), integer(), integer(), integer(), integer());
    let rotation = rotation.prop_map(|(file, aside, old, new, inode, length)| Rotation {
        file: number(file),
        aside,
        old: number(old),
        new: number(new),
        inode,
        length,
    });
    let kept = || (integer(), hash().prop_map(Digest::new), integer());
    let container = kept().prop_map(|(generation, digest, size)| Container {
        generation: number(generation),
        digest,
        size,
    });
    let sidecar =
        kept().prop_map(|(file, digest, size)| Sidecar { file: number(file), digest, size });
    let base = (integer(), string(), string(), of(hash().prop_map(EntryId::new)));
    let base = base.prop_map(|(generation, format, id, entry)| Base {
        generation: number(generation),
        format,
        id,
        entry,
    });
    let place = (of(integer()), of(hash().prop_map(EntryId::new)), of(text()), of(integer()));
    let request = (string(), place, of(text()), vec(text(), 0..3), of(integer())).prop_map(
        |(verb, place, note, options, machine)| Request {
            verb,
            checkpoint: place.0.map(number),
            entry: place.1,
            branch: place.2,
            operation: place.3.map(number),
            note,
            options,
            machine: machine.map(MachineId::new),
        },
    );
    let waiting = step(integer().prop_map(OperationNumber::new));
    let tombstone = (integer(), integer()).prop_map(|(entry, size)| Tombstone {
        entry: number(entry),
        size,
        ..Tombstone::default()
    });
    let covered_file = (integer(), integer(), hash().prop_map(Digest::new), integer());
    let covered_file = covered_file.prop_map(|(operation, at, digest, size)| CoveredFile {
        operation: number(operation),
        at,
        digest,
        size,
        rule: None,
    });
    let lines = vec(hash().prop_map(LineId::new), 0..3);
    let covered_runs = (integer(), hash().prop_map(Digest::new), lines);
    let covered_runs = covered_runs.prop_map(|(operation, digest, lines)| CoveredRuns {
        operation: number(operation),
        digest,
        lines,
    });
    (
        (vec(file, 0..3), vec(generation, 0..3), vec(moved, 0..3)),
        (step(text()), step(integer().prop_map(FileNumber::new)), step(integer())),
        (vec(rotation, 0..2), vec(container, 0..3), vec(sidecar, 0..2), vec(integer(), 0..3)),
        (vec(base, 0..2), of(request), waiting, vec(tombstone, 0..2)),
        (of(text()), vec(covered_file, 0..2), of(text()), vec(covered_runs, 0..2)),
    )
        .prop_map(|(a, b, c, d, e)| Facts {
            files: a.0,
            generations: a.1,
            moves: a.2,
            current: b.0,
            live: b.1,
            hidden: b.2,
            rotations: c.0,
            containers: c.1,
            sidecars: c.2,
            gone: c.3.into_iter().map(number).collect(),
            bases: d.0,
            request: d.1,
            waiting: d.2,
            tombstones: d.3,
            title: e.0,
            covered_files: e.1,
            folder: e.2,
            covered_runs: e.3,
        })
}

fn run() -> impl Strategy<Value = Run> {
    let gaps = vec((0u64..300, bytes()), 0..3).prop_map(Gaps);
    let state = (integer(), hash().prop_map(Running::new), bytes());
    ((integer(), integer(), integer(), integer()), gaps, state).prop_map(|(a, gaps, b)| Run {
        generation: number(a.0),
        start: a.1,
        first: number(a.2),
        count: a.3,
        gaps,
        bytes: b.0,
        running: b.1,
        tail: b.2,
    })
}

fn bulk() -> impl Strategy<Value = Bulk> {
    let entry = (integer(), hash(), of(integer()));
    let entry = entry.prop_map(|(n, id, link)| Entry {
        n: number(n),
        id: EntryId::new(id),
        link: link.map(number),
    });
    let checkpoint = (integer(), position(), of(integer()), of(string()), of(text()));
    let checkpoint = checkpoint.prop_map(|(n, place, before, own, note)| Checkpoint {
        n: number(n),
        place,
        before: before.map(number),
        own,
        note,
    });
    let off = (string(), integer(), integer(), integer(), integer());
    let off = off.prop_map(|(call, text, whole, kept, suffix)| CutOff {
        call,
        text,
        whole,
        kept,
        suffix,
    });
    let cutting = (of(string()), integer(), integer(), vec(off, 0..3));
    let cutting = cutting.prop_map(|(tool, tokens_before, tokens_after, texts)| Cutting {
        tool,
        tokens_before,
        tokens_after,
        texts,
    });
    let origin = (integer(), integer(), of(cutting));
    let origin = origin.prop_map(|(entry, origin, cut)| Origin {
        entry: number(entry),
        origin: number(origin),
        cut,
    });
    (vec(entry, 0..3), vec(run(), 0..3), vec(checkpoint, 0..3), vec(origin, 0..3)).prop_map(
        |(entries, runs, checkpoints, origins)| Bulk { entries, runs, checkpoints, origins },
    )
}

/// What an operation is made of: when, its first entry, and what it says.
type Parts = ((i64, u64), Command, Facts, Bulk);

fn parts() -> impl Strategy<Value = Parts> {
    ((prop_oneof![Just(0), any::<i64>()], integer()), command(), facts(), bulk())
}

fn session() -> SessionName {
    SessionName { format: "native".into(), id: "s".into() }
}

fn seal(
    n: OperationNumber,
    before: Option<OperationId>,
    (at, command, facts, bulk): &Parts,
) -> Operation {
    let (at, first) = (Timestamp(at.0), number(at.1));
    let (command, facts) = (command.clone(), facts.clone());
    let operation = Operation { n, at, command, first, facts, ..Operation::default() };
    operation.seal(before, STORE, &session(), bulk)
}

fn open(operation: &Operation, record: Vec<u8>, words: &[Words]) -> Option<Operation> {
    Operation::open(operation.n, record, operation.hash, words).ok()
}

/// Puts the digests in the place of all words that persons gave.
fn without_words<T: Tagged>(mut value: T) -> T {
    value.texts(&mut Text::forget);
    value
}

proptest! {
    #[test]
    fn what_is_opened_is_what_was_sealed(parts in parts(), n in 1u64..9) {
        let sealed = seal(number(n), None, &parts);
        let words = sealed.words(&parts.3);
        // What was taken out once may be among what is given at another place: then it is at hand again.
        let mut whole = sealed.clone();
        Tagged::texts(&mut whole, &mut |text| text.fill(&words));
        prop_assert_eq!(open(&sealed, sealed.record.clone(), &words), Some(whole));
        let bare = open(&sealed, sealed.record.clone(), &[]).unwrap();
        prop_assert_eq!(&bare, &without_words(sealed.clone()));
        prop_assert_eq!(bare.to_bytes(), &sealed.record[..]);
        prop_assert_eq!(bare.hash_after(None, STORE, &session()), sealed.hash);
    }

    #[test]
    fn no_byte_of_a_record_can_change_unseen(
        parts in parts(), at: prop::sample::Index, byte: u8, how in 0..3,
    ) {
        let sealed = seal(number(1), None, &parts);
        let mut record = sealed.record.clone();
        let at = at.index(record.len());
        match how {
            0 => record[at] = byte,
            1 => record.insert(at, byte),
            _ => drop(record.remove(at)),
        }
        if record == sealed.record {
            return Ok(());
        }
        if let Some(opened) = open(&sealed, record.clone(), &[]) {
            prop_assert_ne!(opened.hash_after(None, STORE, &session()), sealed.hash);
            // There is one encoding of what is known.
            if opened.unknown.is_empty() {
                prop_assert_eq!(opened.to_bytes(), &record[..]);
                let alike = Operation { record: sealed.record.clone(), ..opened };
                prop_assert_ne!(alike, without_words(sealed));
            }
        }
    }

    #[test]
    fn no_bytes_make_an_operation_fail_otherwise(bytes: Vec<u8>) {
        let _ = Operation::open(number(1), bytes, OperationId::default(), &[]);
    }

    #[test]
    fn facts_beside_a_record_have_one_encoding_too(
        bulk in bulk(), at: prop::sample::Index, byte: u8,
    ) {
        for run in &bulk.runs {
            one_encoding(run, at, byte)?;
        }
        for checkpoint in &bulk.checkpoints {
            one_encoding(checkpoint, at, byte)?;
        }
        for origin in &bulk.origins {
            one_encoding(origin, at, byte)?;
        }
    }

    #[test]
    fn a_state_that_was_kept_goes_on_as_if_it_had_not_been(
        all in vec((parts(), proptest::bool::weighted(0.1)), 0..7),
    ) {
        let mut whole = State::default();
        let mut kept: Vec<State> = vec![State::default()];
        for (n, (parts, newer)) in (1..).zip(&all) {
            let mut operation = seal(number(n), whole.hash(), parts);
            if *newer {
                operation.unknown.push(99);
            }
            // All that were kept so far go on side by side, and one more is kept.
            kept.push(whole.clone());
            whole.apply(&operation, &parts.3);
            for state in &mut kept {
                let mut unknown = Vec::new();
                let mut again = State::read(&state.to_bytes(), &mut unknown).unwrap();
                prop_assert_eq!(&again, &*state);
                prop_assert!(unknown.is_empty());
                again.apply(&operation, &parts.3);
                *state = again;
                prop_assert_eq!(&*state, &whole);
            }
        }
        prop_assert_eq!(whole.operations(), all.len() as u64);
    }

    /// A store that reads an operation has its words or has them not; but for the names of branches it leads to one state.
    #[test]
    fn a_state_is_the_same_whether_words_are_at_hand_or_not(parts in parts()) {
        let sealed = seal(number(1), None, &parts);
        let opened = open(&sealed, sealed.record.clone(), &[]).unwrap();
        let [mut one, mut other] = [State::default(), State::default()];
        one.apply(&sealed, &parts.3);
        other.apply(&opened, &parts.3);
        for state in [&mut one, &mut other] {
            state.branches.clear();
            state.salts.clear();
            state.current = None;
        }
        prop_assert_eq!(one, other);
    }
}

/// Asserts that a value reads what it wrote, and that whatever is read of changed bytes is written as those.
fn one_encoding<T: Tagged + Clone + PartialEq + std::fmt::Debug>(
    value: &T,
    at: prop::sample::Index,
    byte: u8,
) -> Result<(), TestCaseError> {
    let mut bytes = value.to_bytes();
    let mut unknown = Vec::new();
    let read = T::read(&bytes, &mut unknown).unwrap();
    prop_assert_eq!(&read, &without_words(value.clone()));
    if !bytes.is_empty() {
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(read) = T::read(&bytes, &mut unknown)
            && unknown.is_empty()
        {
            prop_assert_eq!(read.to_bytes(), bytes);
        }
    }
    Ok(())
}
