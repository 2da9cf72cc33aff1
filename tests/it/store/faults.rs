//! What breaks a store in a file, one call to the system at a time: a write or a sync that fails, a disk that is full, a process
//! that is killed, a power cut, a bit that flips.
//!
//! Invariant: whatever was acknowledged is there, whatever was not is there wholly or not at all, and who comes later finds
//! nothing wrong and goes on.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::FileExt,
    path::Path,
    process::{Command, Stdio},
};

use undertext::{
    model::{Bulk, EntryNumber, OperationId, OperationNumber, SessionName},
    store::{
        Access, ByteStore, CacheStore, FactStore, SqliteStore, Store, StoreError, whole_lines,
    },
    verbs::{self, Archive, Machine},
};

use super::{
    lab::{Folder, assert_same, assert_whole, commit, count, line_of},
    writer::Writer,
};
use crate::{
    fixture::{self, number, numbers},
    needs,
    vfs::{Failure, Faults},
};
#[cfg(target_os = "linux")]
use crate::{power::Image, vfs::keep_synced};

/// Begins a session with a few operations, of which the last ones wait in the journal.
fn begun(folder: &Folder) -> Writer {
    let store = folder.write();
    let mut writer = Writer::new(&store, "s");
    commit(&store, writer.begin()).unwrap();
    for n in 0..3 {
        commit(&store, writer.next(&[format!("beginning {n}").into_bytes()], |_| {})).unwrap();
    }
    writer
}

/// Adds one of the things that a store is given: small operations and large ones, several at once, long strings, nothing at all, and
/// packs them all now and then.
/// `n` makes its lines unlike any other. Returns the lines, and why something was put off, if it was.
fn step(
    store: &dyn Store,
    writer: &mut Writer,
    n: u64,
) -> Result<(Vec<Vec<u8>>, Option<StoreError>), StoreError> {
    let named = |i: usize| format!(r#"{{"uuid":"{n}.{i}","text":"message {n}"}}"#).into_bytes();
    // One string is met in one line only, the other in many.
    let (own, shared) = (format!("{n} ").repeat(900), "again ".repeat(100));
    let long = format!(r#"{{"n":{n},"a":"{own}","b":"{shared}","c":"{own}"}}"#);
    let lines: Vec<Vec<u8>> = match n % 8 {
        2 => (0..20).map(named).collect(),
        3 => vec![long.into_bytes(), format!("no object {n}").into_bytes()],
        4 => Vec::new(),
        6 => (0..6).map(|i| format!("line {n}.{i}").into_bytes()).collect(),
        _ => vec![named(0)],
    };
    let mut next = writer.clone();
    let mut writing = store.begin()?;
    if n % 8 == 6 {
        for line in &lines {
            writing.add(next.next(std::slice::from_ref(line), |_| {}))?;
        }
    } else {
        writing.add(next.next(&lines, |_| {}))?;
    }
    let committed = writing.commit()?;
    *writer = next;
    // What fails in packing is put off.
    let packed = if n % 8 == 5 { store.pack(&mut |_, _| {}).err() } else { None };
    Ok((lines, committed.unsettled.or(packed)))
}

fn name() -> SessionName {
    SessionName { format: "native".into(), id: "s".into() }
}

/// Asserts that lines are in the session.
#[track_caller]
fn assert_kept(store: &dyn Store, acknowledged: &[Vec<u8>]) {
    let key = store.session(&name()).unwrap().unwrap();
    let all = EntryNumber::FIRST..store.state(key).unwrap().next_entry();
    let numbers: Vec<EntryNumber> = EntryNumber::each(all).collect();
    let mut lines = BTreeSet::new();
    let mut add = |_, line| {
        lines.insert(line);
    };
    whole_lines(store, key, &numbers, &mut add).unwrap();
    for line in acknowledged {
        let text = String::from_utf8_lossy(line);
        assert!(lines.contains(line), "{text:.60} was acknowledged and is lost");
    }
}

/// Asserts that one who comes later finds all that was acknowledged and nothing wrong, and can go on.
#[track_caller]
fn assert_sound(folder: &Folder, acknowledged: &[Vec<u8>]) {
    let reader = folder.read();
    assert_kept(&reader, acknowledged);
    assert_whole(&reader);
    let store = folder.write();
    assert_same(&super::answers(&store, &name()), &super::answers(&reader, &name()));
    // Each operation is there with all that it brought, and follows the one before it.
    let key = store.session(&name()).unwrap().unwrap();
    let state = store.state(key).unwrap();
    assert_eq!(
        store.operations(key, OperationNumber::ALL).unwrap().len() as u64,
        state.operations()
    );
    assert_eq!(store.records(key, EntryNumber::ALL).unwrap().len() as u64, state.entries());
    assert_chained(&store);
    let mut writer = Writer::load(&store, &name());
    let n = 1_000_000 + state.operations() * 8;
    for n in [n + 1, n + 2, n + 6] {
        let (_, unsettled) = step(&store, &mut writer, n).unwrap();
        assert!(unsettled.is_none(), "{unsettled:?}");
    }
    assert_kept(&store, acknowledged);
    assert_whole(&store);
}

/// Asserts that the hash of each operation covers what it brought, and the one before.
#[track_caller]
fn assert_chained(store: &dyn Store) {
    assert!(is_chained(store).unwrap());
}

fn is_chained(store: &dyn Store) -> Result<bool, StoreError> {
    let id = store.id()?;
    for (key, name) in store.names()? {
        let mut before: Option<OperationId> = None;
        for operation in store.operations(key, OperationNumber::ALL)? {
            let n = operation.n;
            let runs = store.growths(key, n.alone())?.into_iter().map(|(_, run)| run).collect();
            let entries = store.entries(key, operation.added())?;
            let bulk = Bulk { entries, runs, ..Bulk::default() };
            if !operation.names(&bulk, None)
                || operation.hash_after(before, id, &name) != operation.hash
            {
                return Ok(false);
            }
            before = Some(operation.hash);
        }
        if store.state(key)?.hash() != before {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Lets the n-th write or sync fail, for every n, until a whole run needs fewer.
#[track_caller]
fn fail_each(failure: Failure, forever: bool) {
    let growth = needs::rounds(2, 12);
    let mut reported = 0;
    let mut n = 1;
    loop {
        let folder = Folder::new(3, 1 << 20);
        let mut writer = begun(&folder);
        let faulty = Faults::arm(folder.path().parent().unwrap(), failure, n, forever);
        let (mut acknowledged, mut failed) = (Vec::new(), None);
        match folder.open_for(Access::Brief) {
            Err(error) => failed = Some(error),
            Ok(store) => {
                for i in 0..14 {
                    match step(&store, &mut writer, i) {
                        Ok((lines, unsettled)) => {
                            acknowledged.extend(lines);
                            reported += u32::from(unsettled.is_some());
                        }
                        Err(error) => {
                            failed = failed.or(Some(error));
                            // Whoever goes on looks where the session stands.
                            writer = Writer::load(&store, &name());
                        }
                    }
                }
                // What is there can still be read by the one to whom it happened.
                assert_kept(&store, &acknowledged);
            }
        }
        let fired = faulty.fired();
        if let Some(error) = &failed {
            let full = matches!(error, StoreError::Full);
            assert_eq!(full, failure == Failure::Full, "{failure:?} {n}: {error:?}");
        }
        drop(faulty);
        assert_sound(&folder, &acknowledged);
        if !fired {
            assert!(failed.is_none(), "{failed:?}");
            break;
        }
        // The first ones one by one, then ever fewer.
        n += 1 + n / growth;
    }
    assert!(n > 8, "no more than {n} calls were tried");
    assert!(reported > 0 || failure == Failure::Sync, "no settling failed");
}

#[test]
fn no_write_that_fails_takes_anything_acknowledged_with_it() {
    fail_each(Failure::Write, false);
}

#[test]
fn no_sync_that_fails_takes_anything_acknowledged_with_it() {
    fail_each(Failure::Sync, false);
}

#[test]
fn a_disk_that_is_full_from_some_write_on_takes_nothing_with_it() {
    fail_each(Failure::Full, true);
}

#[test]
fn after_a_sync_that_failed_nothing_more_is_written() {
    let folder = Folder::new(64, 1 << 20);
    let mut writer = begun(&folder);
    let faulty = Faults::arm(folder.path().parent().unwrap(), Failure::Sync, 1, false);
    let store = folder.write();
    let lost = commit(&store, writer.clone().next(&[b"lost".to_vec()], |_| {}));
    assert!(matches!(lost, Err(StoreError::Io { .. })), "{lost:?}");
    assert!(faulty.fired());
    let refused = commit(&store, writer.next(&[b"refused".to_vec()], |_| {}));
    assert!(matches!(refused, Err(StoreError::Unsure { .. })), "{refused:?}");
    assert_kept(&store, &[b"beginning 0".to_vec()]);
    drop(store);
    assert_sound(&folder, &[]);
}

/// Does a few things with a store, and is killed at the call whose number stands in a file, if there are so many.
fn go_on(root: &Path) {
    let n = fs::read_to_string(root.join("call")).unwrap().parse().unwrap();
    let _faulty = Faults::arm(root, Failure::Kill, n, false);
    let mut store = SqliteStore::open(&root.join("store.db"), Access::Brief).unwrap();
    store.set_journal(3, 1 << 20);
    let mut writer = Writer::load(&store, &name());
    for n in 0..14 {
        step(&store, &mut writer, n).unwrap();
        needs::tell_parent(&format!("did {n}"));
    }
    needs::tell_parent("did all");
}

#[test]
fn nothing_acknowledged_is_lost_when_a_writer_is_killed_at_any_call() {
    if let Some(root) = needs::child() {
        return go_on(&root);
    }
    let test = "nothing_acknowledged_is_lost_when_a_writer_is_killed_at_any_call";
    let growth = needs::rounds(4, 20);
    let mut n = 1;
    loop {
        let folder = Folder::new(3, 1 << 20);
        begun(&folder);
        let root = folder.path().parent().unwrap().to_owned();
        fs::write(root.join("call"), n.to_string()).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args([&format!("store::faults::{test}"), "--exact", "--nocapture"])
            .env(needs::CHILD, &root)
            .stderr(Stdio::null())
            .output()
            .unwrap();
        let told = String::from_utf8(child.stdout).unwrap();
        // Only what was told to the end was acknowledged.
        let whole = told.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let done: BTreeSet<&str> = whole.lines().filter_map(|l| l.strip_prefix("did ")).collect();
        // The same steps, elsewhere, tell which lines these are.
        let other = Folder::new(64, 1 << 20);
        let mut writer = begun(&other);
        let mut acknowledged = Vec::new();
        for n in (0..14).take_while(|n: &u64| done.contains(n.to_string().as_str())) {
            acknowledged.extend(step(&other.write(), &mut writer, n).unwrap().0);
        }
        assert_sound(&folder, &acknowledged);
        if done.contains("all") {
            break;
        }
        n += 1 + n / growth;
    }
    assert!(n > 40, "no more than {n} calls were tried");
}

/// What a power cut leaves of a file: what was synced last, all that was written, or the beginning of that.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy)]
enum Left {
    Synced,
    Written,
    Half,
}

#[cfg(target_os = "linux")]
#[test]
fn a_power_cut_at_any_moment_takes_nothing_acknowledged_with_it() {
    let folder = Folder::new(3, 1 << 20);
    let mut writer = begun(&folder);
    let root = folder.path().parent().unwrap().canonicalize().unwrap();
    let files = ["store.db", "store.db-wal", "store.witness"];
    let mut image = Some(Image::of(&root, None));
    let store = folder.write();
    let mut acknowledged = Vec::new();
    let mut tried = 0;
    let rounds = needs::rounds(10, 30);
    for n in 0..rounds {
        keep_synced(image);
        acknowledged.extend(step(&store, &mut writer, n).unwrap().0);
        if n % 10 == 9 {
            // The pages move into the database, which is synced then.
            let db = folder.sql();
            db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        }
        image = keep_synced(None);
        for left in [
            [Left::Synced, Left::Synced, Left::Synced],
            [Left::Synced, Left::Synced, Left::Written],
            [Left::Synced, Left::Written, Left::Written],
            [Left::Synced, Left::Half, Left::Half],
            [Left::Written, Left::Written, Left::Half],
            [Left::Written, Left::Synced, Left::Written],
        ] {
            let cut = Folder::new(3, 1 << 20);
            for (file, left) in files.iter().zip(left) {
                let written = fs::read(root.join(file)).unwrap_or_default();
                let synced = image.as_ref().map(|image| image.safe(&root.join(file))).unwrap();
                let bytes = match left {
                    Left::Synced => synced,
                    Left::Written => written,
                    // What was written after the sync reached the disk by half.
                    Left::Half => {
                        let alike = synced.iter().zip(&written).take_while(|(a, b)| a == b).count();
                        let half = alike + (written.len() - alike) / 2;
                        [&written[..half], synced.get(half..).unwrap_or_default()].concat()
                    }
                };
                if !bytes.is_empty() {
                    fs::write(cut.path().parent().unwrap().join(file), bytes).unwrap();
                }
            }
            assert_sound(&cut, &acknowledged);
            tried += 1;
        }
    }
    assert_eq!(tried, 6 * rounds);
}

/// Returns everything that a store says of its facts and its bytes, or how it failed.
fn everything(folder: &Folder) -> Result<Vec<String>, StoreError> {
    let store = folder.open_for(Access::Read)?;
    let mut all = vec![format!("{:?} {:?}", store.id()?, store.names()?)];
    for (key, name) in store.names()? {
        all.push(format!("{:?}", store.session(&name)?));
        let range = 0..u64::MAX;
        let entries = store.entries(key, numbers(range.clone()))?;
        all.push(format!("{:?}", store.operations(key, numbers(range.clone()))?));
        all.push(format!("{:?}", store.growths(key, numbers(range.clone()))?));
        all.push(format!("{:?}", store.checkpoints(key, numbers(range.clone()))?));
        all.push(format!("{:?}", store.origins(key, numbers(range.clone()))?));
        all.push(format!("{:?}", store.lengths(key, numbers(range))?));
        let numbers: Vec<EntryNumber> = entries.iter().map(|entry| entry.n).collect();
        all.push(format!("{entries:?}"));
        whole_lines(&store, key, &numbers, &mut |n, line| all.push(format!("{n} {line:?}")))?;
    }
    Ok(all)
}

/// Returns what a verification calls damage, if the store can be opened.
fn damage(folder: &Folder) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let root = folder.path().parent().unwrap().to_owned();
    if let Ok(archive) = Archive::open(&root, Access::Read, Box::new(Machine)) {
        let _ = verbs::verify(&archive, None, &mut |told| {
            if let Some(finding) = told.found()
                && finding.kind.is_damage()
            {
                found.insert(format!("{}: {}", finding.item, finding.problem));
            }
        });
    }
    found
}

#[test]
fn a_read_that_fails_is_no_damage_and_no_full_disk() {
    let folder = Folder::new(3, 1 << 20);
    drop(begun(&folder));
    let whole = everything(&folder).unwrap();
    // The rows that were derived for this store are not what its lines say.
    let known = damage(&folder);
    let mut failed = 0;
    for n in 1.. {
        let faulty = Faults::arm(folder.path().parent().unwrap(), Failure::Read, n, false);
        let said = everything(&folder);
        let found = damage(&folder);
        assert!(found.is_subset(&known), "{n}: {found:?}");
        let is_calm = |error: &StoreError| {
            !matches!(
                error,
                StoreError::Corrupt { .. } | StoreError::Full | StoreError::Foreign { .. }
            )
        };
        match said {
            Ok(said) => assert_eq!(said, whole),
            Err(error) => {
                failed += 1;
                assert!(is_calm(&error), "{n}: {error:?}");
            }
        }
        if !faulty.fired() {
            break;
        }
    }
    assert!(failed > 5, "{failed}");
    assert_eq!(everything(&folder).unwrap(), whole);
}

/// Each line has pages of its own, so that some read fetches nothing else.
#[test]
fn a_line_that_cannot_be_read_is_not_derived_as_one_that_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    for n in 0..4 {
        let words: Vec<String> =
            (0..2000).map(|word| ((word + n) * 2_654_435_761_u64).to_string()).collect();
        fixture::say(&mut archive, &session, &words.join(" "));
    }
    drop(archive);
    fixture::settle(folder.path());
    let mut failed = 0;
    for n in 1.. {
        let faulty = Faults::arm(folder.path(), Failure::Read, n, false);
        if let Ok(mut archive) = Archive::open(folder.path(), Access::Write, Box::new(Machine)) {
            failed += usize::from(verbs::rebuild(&mut archive, &session).is_err());
        }
        let is_over = !faulty.fired();
        drop(faulty);
        let mut archive = fixture::open(folder.path(), 1);
        assert!(verbs::rebuild(&mut archive, &session).unwrap().equal, "{n}");
        if is_over {
            break;
        }
    }
    assert!(failed > 4, "{failed}");
}

#[test]
fn a_flipped_bit_is_found_or_changes_no_fact_and_no_byte() {
    let folder = Folder::new(64, 1 << 20);
    let mut writer = begun(&folder);
    let store = folder.write();
    for n in (0..24).chain([40, 41, 43, 48, 49]) {
        step(&store, &mut writer, n).unwrap();
    }
    drop(store);
    assert!(count(&folder.path(), "journal") >= 5);
    folder.sql().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let (path, good) = (folder.path(), fs::read(folder.path()).unwrap());
    let whole = everything(&folder).unwrap();
    let mut dice = crate::fixture::Dice(0xf11b);
    let (mut found, mut without_effect, mut unseen) = (0, 0, Vec::new());
    let rounds = needs::rounds(80, 400);
    for _ in 0..rounds {
        let (at, bit) = (dice.below(good.len() as u64), dice.below(8));
        let byte = good[usize::try_from(at).unwrap()];
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.write_at(&[byte ^ (1 << bit)], at).unwrap();
        // What the store itself checks, and the chain, which covers the records of operations.
        let checked = folder.open_for(Access::Read).and_then(|store| {
            let mut faults = 0;
            store.check(None, &mut |_| faults += 1)?;
            Ok(faults == 0 && is_chained(&store)?)
        });
        match (checked, everything(&folder)) {
            (Ok(true), Ok(all)) if all == whole => without_effect += 1,
            (Ok(true), _) => unseen.push((at, bit)),
            _ => found += 1,
        }
        file.write_at(&[byte], at).unwrap();
        for companion in ["store.db-wal", "store.db-shm"] {
            let _ = fs::remove_file(path.with_file_name(companion));
        }
    }
    assert!(found > rounds / 8, "{found} found, {without_effect} without effect");
    assert_eq!(unseen, [], "not found: (offset, bit)");
    assert_eq!(everything(&folder).unwrap(), whole);
    assert_eq!(line_of(&folder.read(), folder.read().names().unwrap()[0].0, 3), b"beginning 0");
}

#[test]
fn what_is_damaged_is_kept_once_more_when_it_comes_again() {
    let text = "a string that is met more than once ".repeat(20);
    let lines = |n: usize| -> Vec<Vec<u8>> {
        vec![
            br#"{"uuid":"named"}"#.to_vec(),
            b"a line without a name".to_vec(),
            format!(r#"{{"n":{n},"text":"{text}"}}"#).into_bytes(),
        ]
    };
    // Once in rows of their own, once in a segment.
    for (more, damage) in [
        (0, "UPDATE fresh SET body = zeroblob(length(body)) WHERE key > 2"),
        (4000, "UPDATE segment SET body = zeroblob(length(body))"),
    ] {
        let folder = Folder::new(0, 0);
        let store = folder.write();
        let add = |id: &str, n: usize, more: usize| {
            let mut writer = Writer::new(&store, id);
            let key = commit(&store, writer.begin()).unwrap();
            let more = (0..more).map(|n| format!("line {n} {}", n * n * 7919).into_bytes());
            let all: Vec<Vec<u8>> = lines(n).into_iter().chain(more).collect();
            commit(&store, writer.next(&all, |_| {})).unwrap();
            key
        };
        let damaged = add("damaged", 1, more * 10);
        folder.sql().execute_batch(damage).unwrap();
        // Nothing that this connection knows by heart is asked for: what another one has damaged is.
        let store = folder.write();
        let add = |id: &str, n: usize| {
            let mut writer = Writer::new(&store, id);
            let key = commit(&store, writer.begin()).unwrap();
            commit(&store, writer.next(&lines(n), |_| {})).unwrap();
            key
        };
        for (id, n) in [("again", 1), ("and again", 2)] {
            let key = add(id, n);
            for (at, line) in (3..).zip(lines(n)) {
                assert_eq!(line_of(&store, key, at), line, "{more} {id} {at}");
                assert!(whole_lines(&store, damaged, &[number(at)], &mut |_, _| ()).is_err());
            }
        }
        let mut sessions = BTreeSet::new();
        store.check(None, &mut |fault| sessions.extend(fault.session)).unwrap();
        assert_eq!(sessions.into_iter().collect::<Vec<_>>(), [damaged]);
    }
}
