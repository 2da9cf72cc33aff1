//! Taking in files: whatever they hold and in whatever parts they come, the same session.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::fixture::number;
use proptest::prelude::*;
use serde_json::{Value, json};
use undertext::model::IdPrefix;
use undertext::model::{Checkpoint, EntryId, EntryNumber, Kind, Timestamp};
use undertext::store::Access;
use undertext::verbs::{self, Ambient, Archive, Imported, Quirk, Session, Step, Summary};
use uuid::Uuid;

use crate::needs;

struct Ticking(i64);

impl Ambient for Ticking {
    fn now(&mut self) -> Timestamp {
        self.0 += 1;
        Timestamp(self.0)
    }

    fn uuid(&mut self) -> Uuid {
        self.0 += 1;
        Uuid::from_u128(u128::from(self.0.unsigned_abs()))
    }
}

fn archive() -> Archive {
    Archive::in_memory(Box::new(Ticking(0)))
}

fn import(archive: &mut Archive, paths: &[PathBuf]) -> (Summary, Vec<Imported>) {
    let mut imported = Vec::new();
    let summary = verbs::import(archive, paths, &[], &mut |step| {
        if let Step::Imported(done) = step {
            imported.push(done);
        }
    });
    (summary.unwrap(), imported)
}

fn only(archive: &Archive) -> Session {
    let mut sessions = archive.every().unwrap();
    assert_eq!(sessions.len(), 1);
    sessions.pop().unwrap()
}

/// Returns the ids of all entries, and those of the main path.
fn seen(archive: &Archive, session: &Session) -> (Vec<EntryId>, Vec<EntryId>) {
    let store = archive.store();
    let entries = store.entries(session.key, EntryNumber::ALL).unwrap();
    let position = store.state(session.key).unwrap().position().unwrap();
    let path = verbs::View::new(store, session, position, None).path(usize::MAX).unwrap();
    let id = |n: EntryNumber| entries[n.index().unwrap()].id;
    assert_eq!(path.entries.last().copied(), position.head);
    (entries.iter().map(|entry| entry.id).collect(), path.entries.into_iter().map(id).collect())
}

fn exported(archive: &Archive, session: &Session, generation: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let write = &mut |part: &[u8]| {
        bytes.extend_from_slice(part);
        Ok(())
    };
    verbs::export(&archive.at(session).unwrap(), Some(number(generation)), write).unwrap();
    bytes
}

#[test]
fn what_is_behind_long_lines_is_taken_in_like_all_else() {
    let folder = tempfile::tempdir().unwrap();
    let long = ["x", "y", "z"].map(|sign| sign.repeat(9 << 20));
    let said: Vec<&str> = ["begin", &long[0], "between", &long[1], &long[2], "end"].into();
    let record = |(n, said): (usize, &&str)| {
        let parent = n.checked_sub(1).map_or("null".to_owned(), |n| format!("\"u{n}\""));
        format!(
            r#"{{"type":"user","uuid":"u{n}","parentUuid":{parent},"sessionId":"s","timestamp":"2026-01-01T00:00:0{n}.000Z","cwd":"/w","message":{{"role":"user","content":"{said}"}}}}{}"#,
            "\n"
        )
    };
    let path = folder.path().join("s.jsonl");
    let bytes: String = said.iter().enumerate().map(record).collect();
    fs::write(&path, &bytes).unwrap();
    // Read ahead by threads, in memory, and behind what was taken in before.
    let at = folder.path().join("store");
    let mut stored = Archive::open(&at, Access::Write, Box::new(Ticking(0))).unwrap();
    let mut grown = archive();
    let begin: String = said.iter().enumerate().take(1).map(record).collect();
    fs::write(&path, &begin).unwrap();
    import(&mut grown, std::slice::from_ref(&path));
    fs::write(&path, &bytes).unwrap();
    for archive in [&mut stored, &mut archive(), &mut grown] {
        let (_, imported) = import(archive, std::slice::from_ref(&path));
        assert!(imported.iter().all(|imported| imported.oddities.is_empty()), "{imported:?}");
        let session = only(archive);
        let (all, path) = seen(archive, &session);
        assert_eq!((all.len(), path.len()), (6, 6));
        assert!(exported(archive, &session, 1) == bytes.as_bytes());
    }
}

#[test]
fn a_file_that_cannot_be_read_on_is_taken_in_as_far_as_that() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("store");
    let mut archive = Archive::open(&at, Access::Write, Box::new(Ticking(0))).unwrap();
    // More lines than are held at once, and a line that is too long.
    let lines: String = (0..33_000).map(|n| record(1, n, n.checked_sub(1), "said")).collect();
    let long = folder.path().join("long.jsonl");
    fs::write(&long, &lines).unwrap();
    let file = fs::File::options().write(true).open(&long).unwrap();
    file.set_len(lines.len() as u64 + (513 << 20)).unwrap();
    // A compressed file that was cut off.
    let said: String = (0..4000).map(|n| record(2, n, n.checked_sub(1), "said too")).collect();
    let packed = zstd::encode_all(said.as_bytes(), 3).unwrap();
    let cut = folder.path().join("cut.jsonl.zst");
    fs::write(&cut, &packed[..packed.len() / 2]).unwrap();
    let mut notices = Vec::new();
    for (path, line, quirk) in
        [(&long, Some(33_001), Quirk::TooLong), (&cut, None, Quirk::Unreadable)]
    {
        let (summary, imported) = import(&mut archive, std::slice::from_ref(path));
        assert_eq!((summary.files, summary.skipped), (1, 0), "{summary:?}");
        let [imported] = &imported[..] else { panic!("{imported:?}") };
        let [odd] = &imported.oddities[..] else { panic!("{:?}", imported.oddities) };
        assert_eq!(odd.kind, quirk.kind());
        assert_eq!(odd.line, Some(line.unwrap_or(imported.entries + 1)));
        assert_eq!(imported.notices.len(), 1);
        notices.extend(imported.notices.iter().map(ToString::to_string));
        let (all, path) = seen(&archive, &imported.session);
        assert!(all.len() > 100 && path.len() == all.len(), "{} of {}", path.len(), all.len());
        assert_eq!(all.len() as u64 + 1, odd.line.unwrap());
        let name = imported.session.name.clone();
        let session = archive.session(&name).unwrap().unwrap();
        let exported = crate::fixture::exported(&archive, &session, None);
        let whole = if quirk == Quirk::TooLong { &lines } else { &said };
        assert!(whole.as_bytes().starts_with(&exported));
    }
    assert!(notices[0].ends_with(
        "long.jsonl:33001: the file was imported up to here: the line is longer than 512 MiB"
    ));
    // What stays as it is brings nothing, and what became whole brings the rest.
    let (summary, imported) = import(&mut archive, std::slice::from_ref(&long));
    assert_eq!((summary.unchanged, summary.skipped, imported.len()), (1, 0, 0), "{summary:?}");
    fs::write(&cut, &packed).unwrap();
    let (_, imported) = import(&mut archive, std::slice::from_ref(&cut));
    assert!(imported[0].oddities.is_empty(), "{imported:?}");
    assert_eq!(seen(&archive, &imported[0].session).1.len(), 4000);
    let verified = verbs::verify(&archive, None, &mut |_| ()).unwrap();
    assert_eq!(verified.damaged, 0, "{verified:?}");
}

/// Writes a thread of Codex with one turn. If a base is given, its history begins with so many bytes of that thread's file.
fn thread(folder: &Path, own: char, base: Option<(char, u64)>) -> PathBuf {
    let id = |thread: char| format!("019f0000-0000-7000-8000-00000000000{thread}");
    let mut meta = json!({
        "id": id(own), "timestamp": "2026-08-01T10:00:00.000Z", "cwd": "/w", "originator": "o",
        "cli_version": "0.150.0", "source": "cli", "history_mode": "paginated",
    });
    if let Some((base, bytes)) = base {
        meta["forked_from_id"] = json!(id(base));
        meta["history_base"] =
            json!({ "thread_id": id(base), "end_ordinal_exclusive": 2, "end_byte_offset": bytes });
    }
    let content = json!([{ "type": "input_text", "text": format!("It begins in {own}.") }]);
    let said = json!({ "type": "message", "role": "user", "content": content });
    let record = |n: u64, kind: &str, payload: Value| {
        let time = format!("2026-08-01T10:00:0{n}.000Z");
        json!({ "timestamp": time, "ordinal": n, "type": kind, "payload": payload })
    };
    let path = folder.join(format!("rollout-2026-08-01T10-00-00-{}.jsonl", id(own)));
    let lines = [record(0, "session_meta", meta), record(1, "response_item", said)];
    fs::write(&path, lines.map(|line| format!("{line}\n")).concat()).unwrap();
    path
}

#[test]
fn threads_that_name_each_other_as_their_beginning_are_taken_in_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = archive();
    thread(folder.path(), 'a', Some(('b', 1 << 30)));
    thread(folder.path(), 'b', Some(('a', 1 << 30)));
    let folders = [folder.path().to_owned()];
    import(&mut archive, &folders);
    let (summary, imported) = import(&mut archive, &folders);
    assert_eq!((summary.unchanged, imported.len()), (2, 0), "{imported:?}");
    for session in archive.every().unwrap() {
        assert_eq!(
            verbs::operations(&archive.at(&session).unwrap(), usize::MAX).unwrap().shown.len(),
            1
        );
    }
}

#[test]
fn a_fork_that_is_taken_in_before_its_parent_is_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let folders = ["fork", "parent"].map(|name| folder.path().join(name));
    for folder in &folders {
        fs::create_dir(folder).unwrap();
    }
    let parent = thread(&folders[1], 'a', None);
    let bytes = fs::metadata(parent).unwrap().len();
    thread(&folders[0], 'b', Some(('a', bytes)));
    let mut archive = archive();
    let (summary, imported) = import(&mut archive, &folders);
    assert_eq!((summary.files, summary.sessions, archive.every().unwrap().len()), (2, 2, 2));
    // The fork is told of again, with what it lacked.
    let of = |new: bool| imported.iter().filter(|imported| imported.new == new).count();
    assert_eq!((of(true), of(false)), (2, 1), "{imported:?}");
    assert!(imported.iter().all(|imported| imported.entries > 0), "{imported:?}");
}

#[test]
fn forks_that_cannot_be_read_take_no_file_from_the_count() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = archive();
    let forks = ['b', 'c', 'd'].map(|own| thread(folder.path(), own, Some(('a', 300))));
    import(&mut archive, &forks);
    for fork in &forks {
        fs::remove_file(fork).unwrap();
        fs::create_dir(fork).unwrap();
    }
    let parent = thread(folder.path(), 'a', None);
    let (summary, _) = import(&mut archive, &[parent]);
    assert_eq!((summary.files, summary.unchanged), (1, 0));
}

#[test]
fn a_live_file_that_is_followed_is_not_counted_among_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive =
        Archive::open(&folder.path().join("store"), Access::Write, Box::new(Ticking(0))).unwrap();
    let (live, copy) = (folder.path().join("live"), folder.path().join("copy"));
    let write = |folder: &Path, count: u32| {
        fs::create_dir_all(folder).unwrap();
        let lines: String =
            (0..count).map(|n| record(1, n, n.checked_sub(1), "some words")).collect();
        fs::write(folder.join("s.jsonl"), lines).unwrap();
    };
    write(&live, 2);
    verbs::take_up(&mut archive, &live.join("s.jsonl")).unwrap();
    write(&live, 4);
    write(&copy, 6);
    let (summary, imported) = import(&mut archive, &[copy.join("s.jsonl")]);
    assert_eq!((summary.files, summary.unchanged), (1, 0));
    assert_eq!((imported[0].files, imported[0].entries), (1, 4));
}

#[test]
fn every_file_comes_back_byte_for_byte_and_is_taken_in_once() {
    let Some(corpus) = needs::corpus() else { return };
    let corpus = corpus.path("");
    let folder = tempfile::tempdir().unwrap();
    let mut archive = Archive::open(folder.path(), Access::Write, Box::new(Ticking(0))).unwrap();
    let (summary, _) = import(&mut archive, std::slice::from_ref(&corpus));
    let mut held = 0;
    for session in archive.every().unwrap() {
        for generation in verbs::generations(&archive.at(&session).unwrap()).unwrap() {
            let path = generation.file.unwrap();
            let mut source = fs::read(&path).unwrap();
            if path.extension().is_some_and(|end| end == "zst") {
                source = zstd::decode_all(&source[..]).unwrap();
            }
            let equal = exported(&archive, &session, generation.generation.get()) == source;
            assert!(equal, "{}", path.display());
            held += 1;
        }
    }
    assert_eq!(held, summary.files);
    assert!(held >= 115, "{held} files were compared");
    let operations = |archive: &Archive| {
        let sessions = archive.every().unwrap();
        let tips = sessions.iter().map(|session| archive.store().state(session.key).unwrap());
        tips.map(|tip| tip.operations()).sum::<u64>()
    };
    let before = operations(&archive);
    let (again, imported) = import(&mut archive, std::slice::from_ref(&corpus));
    assert_eq!((again.unchanged, again.files, imported.len()), (held, held, 0));
    assert_eq!(operations(&archive), before);
    verbs::verify(&archive, None, &mut |told| {
        if let Some(finding) = told.found() {
            assert!(!finding.kind.is_damage(), "{finding:?}");
        }
    })
    .unwrap();
}

/// What a generated file is made of.
#[derive(Clone, Debug)]
enum Part {
    /// A record: whether it is the user's, how far back its parent is, and when it was written.
    Record(bool, u8, u16),
    /// What stands between records, or instead of one.
    Noise(&'static str),
}

fn part() -> impl Strategy<Value = Part> {
    let noise = [
        "\n",
        "\r\n",
        " \n\n",
        "",
        "garbage\n",
        "{\"torn\":\n",
        "\0\0\n",
        "{}\n",
        "{\"type\":\"x\"}",
    ];
    prop_oneof![
        4 => (any::<bool>(), 0u8..4, any::<u16>()).prop_map(|(user, back, at)| Part::Record(user, back, at)),
        1 => proptest::sample::select(noise.to_vec()).prop_map(Part::Noise),
    ]
}

/// Writes a file of a session; the names of records begin at `first`.
fn write(format: &str, parts: &[Part], first: usize) -> Vec<u8> {
    let mut file = String::new();
    let mut written: Vec<usize> = Vec::new();
    for (n, part) in (first..).zip(parts) {
        match part {
            Part::Noise(noise) => file.push_str(noise),
            Part::Record(user, back, at) => {
                let back = written.len().checked_sub(1 + usize::from(*back));
                let parent = back.map_or("null".to_owned(), |i| format!("\"u{}\"", written[i]));
                let role = if *user { "user" } else { "assistant" };
                let extra = match format {
                    "claude" => "\"userType\":\"external\",\"isSidechain\":false,",
                    _ => "",
                };
                let text = format!("{n} ").repeat(usize::from(*at) % 120);
                if matches!(format, "kimi" | "codex" | "pi") {
                    let parent = back.map(|i| written[i]);
                    file.push_str(&plain(format, n, parent, role, &text));
                    written.push(n);
                    continue;
                }
                let line = format!(
                    "{{\"parentUuid\":{parent},{extra}\"cwd\":\"/p\",\"sessionId\":\"s\",\"version\":\"2.0.0\",\
                     \"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\"content\":\"{text}\"}},\
                     \"uuid\":\"u{n}\",\"timestamp\":\"2026-01-01T00:{:02}:{:02}.000Z\"}}\n",
                    at / 60 % 60,
                    at % 60
                );
                file.push_str(&line);
                written.push(n);
            }
        }
    }
    file.into_bytes()
}

/// What must never change of a checkpoint.
#[derive(Debug, PartialEq)]
struct Numbered {
    entry: Option<EntryId>,
    before: Option<EntryId>,
    own: Option<String>,
    horizon: u64,
}

fn numbered(archive: &Archive, session: &Session) -> BTreeMap<u64, Numbered> {
    let entries = archive.store().entries(session.key, EntryNumber::ALL).unwrap();
    let id = |n: Option<EntryNumber>| n.map(|n| entries[n.index().unwrap()].id);
    let shown = verbs::checkpoints(&archive.at(session).unwrap()).unwrap();
    let numbered = |shown: verbs::Shown| {
        let Checkpoint { n, place, before, own, .. } = shown.checkpoint;
        let (entry, before, horizon) = (id(place.head), id(before), place.horizon);
        (n.get(), Numbered { entry, before, own, horizon })
    };
    shown.into_iter().map(numbered).collect()
}

/// Writes a record of an agent whose records have no uuid, or have it elsewhere.
fn plain(format: &str, n: usize, parent: Option<usize>, role: &str, text: &str) -> String {
    let time = "\"timestamp\":\"2026-01-01T00:00:00.000Z\"";
    match format {
        "kimi" => {
            let marker = match n % 3 {
                0 => format!("{{\"role\": \"_checkpoint\", \"id\": {n}}}\n"),
                1 => format!(
                    "{{\"role\": \"_checkpoint\", \"id\": {n}}}\n\
                     {{\"role\":\"user\",\"content\":\"<system>CHECKPOINT {n}</system>\"}}\n"
                ),
                _ => String::new(),
            };
            format!("{marker}{{\"role\":\"{role}\",\"content\":\"{text}\"}}\n")
        }
        "codex" => format!(
            "{{{time},\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\"role\":\"{role}\",\
             \"content\":[{{\"type\":\"input_text\",\"text\":\"{text}\"}}]}}}}\n"
        ),
        _ => {
            let parent = parent.map_or("null".to_owned(), |n| format!("\"{n:08x}\""));
            format!(
                "{{\"type\":\"message\",\"id\":\"{n:08x}\",\"parentId\":{parent},{time},\
                 \"message\":{{\"role\":\"{role}\",\"content\":\"{text}\"}}}}\n"
            )
        }
    }
}

fn begin() -> Part {
    Part::Record(true, 0, 0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: needs::rounds(32, 128), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_that_comes_in_parts_is_the_same_session(
        parts in prop::collection::vec(part(), 0..24),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        format in prop::sample::select(vec!["native", "claude"]),
    ) {
        let parts = [vec![begin()], parts].concat();
        let whole = write(format, &parts, 0);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("s.jsonl");
        fs::write(&path, &whole).unwrap();
        let mut at_once = archive();
        import(&mut at_once, std::slice::from_ref(&path));

        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len())).collect();
        cuts.sort_unstable();
        let mut in_parts = archive();
        for cut in cuts.into_iter().chain([whole.len()]) {
            fs::write(&path, &whole[..cut]).unwrap();
            let (_, imported) = import(&mut in_parts, std::slice::from_ref(&path));
            let quirks: Vec<_> = imported.iter().flat_map(|i| &i.oddities).map(|o| o.kind).collect();
            prop_assert!(!quirks.contains(&verbs::Quirk::Rewritten.kind()));
        }
        let (session, other) = (only(&at_once), only(&in_parts));
        prop_assert_eq!(&session.name, &other.name);
        prop_assert_eq!(seen(&at_once, &session), seen(&in_parts, &other));
        prop_assert_eq!(verbs::generations(&in_parts.at(&other).unwrap()).unwrap().len(), 1);
        prop_assert!(exported(&in_parts, &other, 1) == whole);
    }

    #[test]
    fn a_checkpoint_keeps_its_number_and_every_turn_has_one(
        parts in prop::collection::vec(part(), 0..24),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        format in prop::sample::select(vec!["native", "claude", "kimi", "codex", "pi"]),
    ) {
        let parts = [vec![begin()], parts].concat();
        let whole = write(format, &parts, 0);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("context.jsonl");
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len())).collect();
        cuts.sort_unstable();
        let mut archive = archive();
        let mut known: BTreeMap<u64, Numbered> = BTreeMap::new();
        for cut in cuts.into_iter().chain([whole.len()]) {
            fs::write(&path, &whole[..cut]).unwrap();
            import(&mut archive, std::slice::from_ref(&path));
            let Some(session) = archive.every().unwrap().pop() else { continue };
            let found = numbered(&archive, &session);
            for (n, before) in &known {
                prop_assert_eq!(found.get(n), Some(before));
            }
            known = found;
        }
        let session = only(&archive);
        let mut at_once = self::archive();
        import(&mut at_once, std::slice::from_ref(&path));
        prop_assert_eq!(&numbered(&at_once, &only(&at_once)), &known);
        // Numbers have no gaps, and whichever branch a turn lies on, one leads to what stands before it.
        prop_assert!(known.keys().copied().eq(0..known.len() as u64));
        let store = archive.store();
        let shown = verbs::checkpoints(&archive.at(&session).unwrap()).unwrap();
        for record in store.records(session.key, EntryNumber::ALL).unwrap() {
            let is_its = |found: &&verbs::Shown| found.turn == Some(record.n);
            if record.kind == Kind::User {
                prop_assert_eq!(shown.iter().filter(is_its).count(), 1, "entry {}", record.n);
            }
        }
        for Numbered { entry, .. } in known.values() {
            prop_assert!(entry.is_none_or(|entry| store.find(session.key, &IdPrefix::whole(&entry)).unwrap().len() == 1));
        }
    }

    #[test]
    fn turns_have_the_same_checkpoints_though_names_and_lines_stand_again_and_again(
        lines in prop::collection::vec((1u32..4, 0u32..4, 0usize..2, any::<bool>()), 1..24),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let said = |(n, parent, text, is_user): (u32, u32, usize, bool)| {
            let line = record(1, n, (parent > 0).then_some(parent), ["one", "other"][text]);
            if is_user { line } else { line.replace("\"user\"", "\"assistant\"") }
        };
        let lines: Vec<String> = lines.into_iter().map(said).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("s.jsonl");
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(lines.len())).collect();
        cuts.sort_unstable();
        let found = |ends: &mut dyn Iterator<Item = usize>| {
            let mut archive = archive();
            for end in ends {
                fs::write(&path, lines[..end].concat()).unwrap();
                import(&mut archive, std::slice::from_ref(&path));
            }
            numbered(&archive, &only(&archive))
        };
        let one_by_one = found(&mut (1..=lines.len()));
        prop_assert_eq!(&found(&mut cuts.into_iter().chain([lines.len()])), &one_by_one);
    }

    #[test]
    fn files_of_one_session_come_in_any_order(
        shared in prop::collection::vec(part(), 0..8),
        one in prop::collection::vec(part(), 0..8),
        other in prop::collection::vec(part(), 0..8),
        format in prop::sample::select(vec!["native", "claude"]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let shared = [vec![begin()], shared].concat();
        let mut paths = Vec::new();
        for (name, rest) in [("a", one), ("b", other)] {
            let end = write(format, &rest, 100 + 100 * paths.len());
            let path = root.join(name);
            fs::write(&path, [write(format, &shared, 0), end].concat()).unwrap();
            paths.push(path);
        }
        let mut results = Vec::new();
        for order in [vec![0, 1], vec![1, 0]] {
            let mut archive = archive();
            for n in order {
                import(&mut archive, std::slice::from_ref(&paths[n]));
            }
            let (mut ids, path) = seen(&archive, &only(&archive));
            ids.sort();
            results.push((ids, path));
        }
        let mut archive = archive();
        import(&mut archive, &paths);
        let (mut ids, path) = seen(&archive, &only(&archive));
        ids.sort();
        results.push((ids, path));
        prop_assert_eq!(&results[0], &results[1]);
        prop_assert_eq!(&results[0], &results[2]);
    }
}

/// A record of Claude Code's, named by its session and its number.
fn record(session: u32, n: u32, parent: Option<u32>, text: &str) -> String {
    let name = |n: u32| format!("{session:08}-0000-4000-8000-{n:012}");
    let record = serde_json::json!({
        "parentUuid": parent.map(name), "isSidechain": false, "userType": "external", "cwd": "/w",
        "sessionId": name(0), "version": "2.1.20", "type": if n % 2 == 1 { "user" } else { "assistant" },
        "message": {"role": if n % 2 == 1 { "user" } else { "assistant" }, "content": text},
        "uuid": name(n), "timestamp": format!("2026-01-01T00:{:02}:{:02}.000Z", n / 60 % 60, n % 60),
    });
    format!("{record}\n")
}

/// Writes sessions of all sizes, whole and broken, and returns their files in the order of their names.
fn sessions(folder: &Path) -> Vec<PathBuf> {
    let session = |session: u32| {
        let mut file = Vec::new();
        for n in 1..4 + session % 7 * 20 {
            let text = format!("{session} says {n}: ").repeat(1 + (session * n) as usize % 400);
            file.extend(record(session, n, (n > 1).then(|| n - 1), &text).into_bytes());
        }
        match session % 10 {
            3 => file.extend(b"no object\n{\"uuid\":\"torn"),
            // Longer than what is read ahead, with a record before and one behind.
            5 => {
                let long = record(session, 901, None, &"long ".repeat(1 << 20));
                file.extend((long + &record(session, 902, Some(901), "short")).into_bytes());
            }
            7 => file.extend(record(session, 903, None, "glued").trim_end().repeat(2).into_bytes()),
            _ => {}
        }
        let path = folder.join(format!("{session:08}-0000-4000-8000-{:012}.jsonl", 0));
        fs::write(&path, file).unwrap();
        path
    };
    (0..24).map(session).collect()
}

#[test]
fn files_that_are_taken_in_together_give_what_each_gives_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (source, store) = (folder.path().join("source"), folder.path().join("store"));
    fs::create_dir(&source).unwrap();
    let source = source.canonicalize().unwrap();
    let files = sessions(&source);
    let mut together = Archive::open(&store, Access::Write, Box::new(Ticking(0))).unwrap();
    let (summary, imported) = import(&mut together, std::slice::from_ref(&source));
    assert_eq!((summary.files, summary.sessions, imported.len()), (24, 24, 24));
    let mut alone = archive();
    for file in &files {
        let (_, one) = import(&mut alone, std::slice::from_ref(file));
        let name = &one[0].session.name;
        let other = imported.iter().find(|other| other.session.name == *name).unwrap();
        assert_eq!(
            (other.entries, other.bytes, &other.oddities),
            (one[0].entries, one[0].bytes, &one[0].oddities)
        );
        assert_eq!(other.operation, 1);
        let session = together.session(name).unwrap().unwrap();
        assert_eq!(seen(&together, &session), seen(&alone, &one[0].session));
        assert!(exported(&together, &session, 1) == fs::read(file).unwrap(), "{}", file.display());
    }
    verbs::verify(&together, None, &mut |told| {
        if let Some(finding) = told.found() {
            assert!(!finding.kind.is_damage(), "{finding:?}");
        }
    })
    .unwrap();
}

#[test]
fn an_import_that_is_killed_is_taken_up_again() {
    let folder = tempfile::tempdir().unwrap();
    let (source, store) = (folder.path().join("source"), folder.path().join("store"));
    fs::create_dir(&source).unwrap();
    let files = sessions(&source);
    let run = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_undertext"));
        command.env_clear().env("HOME", folder.path());
        command.args(["-q", "--store"]).arg(&store).arg("import").arg(&source);
        command.stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let stored = || {
        let parts = ["store.db", "store.db-wal"].map(|part| fs::metadata(store.join(part)));
        parts.into_iter().flatten().map(|part| part.len()).sum::<u64>()
    };
    for round in 0..needs::rounds(4, 12) {
        let before = stored();
        let mut child = run();
        // It is killed when it has stored something, or a little more each time.
        while stored() <= before + round * 30_000 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let Ok(archive) = Archive::open(&store, Access::Read, Box::new(Ticking(0))) else {
            continue;
        };
        for session in archive.every().unwrap() {
            let path = source.join(format!("{}.jsonl", session.name.id));
            assert!(exported(&archive, &session, 1) == fs::read(path).unwrap(), "{session:?}");
        }
    }
    assert!(run().wait().unwrap().success());
    let archive = Archive::open(&store, Access::Read, Box::new(Ticking(0))).unwrap();
    assert_eq!(archive.every().unwrap().len(), files.len());
    verbs::verify(&archive, None, &mut |told| {
        if let Some(finding) = told.found() {
            assert!(!finding.kind.is_damage(), "{finding:?}");
        }
    })
    .unwrap();
}
