//! What an answer costs, counted and never timed: pages that are read of a store, questions that are asked of a graph, and
//! inputs of a size that only work in proportion to it can go through.

use std::{
    cell::Cell,
    fs,
    path::{Path, PathBuf},
};

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use undertext::{
    context::{
        Shape, compact::Writer, cut::Limit, history::Limits, plan::Keep, tokens::Counting,
        window::Windows,
    },
    json::Raw,
    model::{
        EntryNumber, EntrySet, Landmark, NameTag, PlaceNumber, Record, SessionName, Timestamp,
    },
    store::{Access, SessionFilter},
    verbs::{self, Archive, Asked, Bound, Compacting, Machine, Session},
    wire::{self, Claude, Codex, Draft, Failure, Format, Graph, Native, Pi, Read as _, Walk as _},
};

use crate::{fixture, graph::FileGraph, vfs::Faults};

/// How many lines a session grows by, one at a time.
const GROWN: usize = 400;

const AGENTS: [&dyn Format; 4] = [&Claude, &Codex, &Pi, &Native];

fn uuid(session: u64, n: u64) -> String {
    format!("{session:08x}-0000-4000-8000-{n:012x}")
}

fn time(n: u64) -> String {
    format!("2026-08-{:02}T{:02}:{:02}:00.000Z", 1 + n / 1440, n / 60 % 24, n % 60)
}

/// Returns a record of a session; an odd one is an answer of the model.
fn record(format: &dyn Format, session: u64, n: u64, parent: Option<u64>) -> Value {
    let words = format!("{} {n}", "some words of a message ".repeat(12));
    let (id, is_answer) = (uuid(session, 0), n % 2 == 1);
    let role = if is_answer { "assistant" } else { "user" };
    let parent = parent.map(|parent| uuid(session, parent));
    match format.name() {
        "claude" => {
            let mut message =
                json!({ "role": role, "content": [{ "type": "text", "text": words }] });
            if is_answer {
                message["id"] = json!(format!("m{n}"));
                message["model"] = json!("claude-opus-4");
                message["usage"] = json!({ "input_tokens": 1000 + 90 * n, "output_tokens": 1 });
            }
            json!({
                "parentUuid": parent, "isSidechain": false, "type": role, "message": message,
                "uuid": uuid(session, n), "timestamp": time(n), "cwd": "/w", "sessionId": id, "version": "2.1.226",
            })
        }
        "codex" if n == 1 => json!({
            "timestamp": time(n), "type": "session_meta",
            "payload": { "id": id, "timestamp": time(n), "cwd": "/w", "originator": "o", "cli_version": "1" },
        }),
        "codex" if n % 8 == 2 => json!({
            "timestamp": time(n), "type": "event_msg",
            "payload": { "type": "task_started", "turn_id": uuid(session, n) },
        }),
        "codex" => {
            let class = if is_answer { "output_text" } else { "input_text" };
            let content = json!([{ "type": class, "text": words }]);
            let message = json!({ "type": "message", "role": role, "content": content });
            json!({ "timestamp": time(n), "type": "response_item", "payload": message })
        }
        "pi" if n == 1 => json!({
            "type": "session", "version": 3, "id": id, "timestamp": time(n), "cwd": "/w",
        }),
        "pi" => {
            let mut message =
                json!({ "role": role, "content": [{ "type": "text", "text": words }] });
            if is_answer {
                message["model"] = json!("claude-sonnet-4-5");
                message["usage"] =
                    json!({ "input": 1000 + 90 * n, "output": 1, "cacheRead": 0, "cacheWrite": 0 });
            }
            json!({
                "type": "message", "id": uuid(session, n), "parentId": parent.filter(|_| n > 2),
                "timestamp": time(n), "message": message,
            })
        }
        _ => json!({
            "type": role, "uuid": uuid(session, n), "parentUuid": parent, "sessionId": id, "timestamp": time(n),
            "cwd": "/w", "version": "0.1.0", "message": { "role": role, "content": words },
        }),
    }
}

/// Returns the lines of a session of so many records, each of which follows the one before.
fn lines(format: &dyn Format, session: u64, count: u64) -> Vec<String> {
    let record = |n: u64| record(format, session, n, n.checked_sub(1).filter(|n| *n > 0));
    (1..=count).map(|n| record(n).to_string()).collect()
}

fn write(folder: &Path, session: u64, lines: &[String]) -> PathBuf {
    let path = folder.join(format!("rollout-2026-08-01T00-00-00-{}.jsonl", uuid(session, 0)));
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    path
}

/// Takes session files into a store and returns its folder, with everything in the database and nothing in its WAL.
fn stored(format: &dyn Format, sessions: u64, count: u64) -> TempDir {
    let (store, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    for session in 1..=sessions {
        write(folder.path(), session, &lines(format, session, count));
    }
    let mut archive = fixture::open(store.path(), 1);
    verbs::import(&mut archive, &[folder.path().to_owned()], &[], &mut |_| ()).unwrap();
    drop(archive);
    let db = Connection::open(store.path().join("store.db")).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    store
}

/// Returns how many pages a question reads of a store.
fn reads(store: &TempDir, ask: impl FnOnce(&Archive)) -> i64 {
    let watch = Faults::none(store.path());
    ask(&Archive::open(store.path(), Access::Read, Box::new(Machine)).unwrap());
    watch.reads()
}

fn named(archive: &Archive, session: u64) -> Session {
    verbs::find_session(archive.store(), Some(&uuid(session, 0)), Path::new("/")).unwrap()
}

fn asked() -> Asked {
    Asked {
        shape: Shape::Messages,
        model: None,
        window: None,
        windows: Windows::default(),
        limits: Limits::default(),
        images: true,
        results: None,
        counting: Some(Counting::Estimate),
    }
}

#[test]
fn the_end_of_a_long_session_is_read_as_that_of_a_short_one() {
    for format in AGENTS {
        let [short, long] = [1_500, 9_000].map(|count| stored(format, 1, count));
        let check = |what: &str, ask: &dyn Fn(&Archive, &Session)| {
            let [few, many] = [&short, &long]
                .map(|store| reads(store, |archive| ask(archive, &named(archive, 1))));
            // A tree that holds fifteen times as much is a level or two higher.
            assert!(many <= few + 24, "{} {what}: {few} pages, then {many}", format.name());
        };
        check("log", &|archive, session| {
            assert_eq!(verbs::log(&archive.at(session).unwrap(), None, 1).unwrap().lines.len(), 1);
        });
        check("status", &|archive, session| {
            verbs::status(&archive.at(session).unwrap()).unwrap();
            assert!(
                verbs::fullness(&archive.at(session).unwrap(), &asked()).unwrap().tokens > 1000
            );
        });
        check("the newest checkpoints", &|archive, session| {
            let newest = verbs::newest_checkpoints(&archive.at(session).unwrap(), 20).unwrap();
            assert_eq!(newest.len(), 20);
            let newest = newest.last().map(|shown| shown.checkpoint.n);
            let at = verbs::standing_at(&archive.at(session).unwrap()).unwrap();
            assert_eq!(at.map(verbs::Spot::checkpoint), newest);
        });
        check("the newest turns of the graph", &|archive, session| {
            let at = archive.at(session).unwrap();
            let recent = verbs::recent_drawing(&at, 100, verbs::Detail::default()).unwrap();
            let nodes = recent.nodes(0..9).unwrap();
            let newest = verbs::newest_checkpoints(&at, 1).unwrap()[0].checkpoint.n;
            assert_eq!((nodes[0].checkpoint, nodes[0].is_head), (Some(newest), true));
        });
        check("branches", &|archive, session| {
            assert_eq!(verbs::branches(&archive.at(session).unwrap()).unwrap().len(), 1);
        });
        check("the last entry", &|archive, session| {
            let head = verbs::find_place(&archive.at(session).unwrap(), "HEAD").unwrap();
            verbs::messages(&archive.at(session).unwrap(), head.entry().unwrap()).unwrap();
        });
    }
}

#[test]
fn the_newest_turns_are_drawn_as_in_the_whole_graph() {
    for format in AGENTS {
        let store = stored(format, 1, 600);
        let archive = Archive::open(store.path(), Access::Read, Box::new(Machine)).unwrap();
        let session = named(&archive, 1);
        let at = archive.at(&session).unwrap();
        let whole = verbs::graph(&at, verbs::Detail::default()).unwrap().nodes;
        let recent = verbs::recent_drawing(&at, 100, verbs::Detail::default()).unwrap();
        let recent = recent.nodes(0..usize::MAX).unwrap();
        assert!(recent.len() > 10 && recent.len() < whole.len(), "{}", recent.len());
        // The oldest one may be the rest of a turn.
        for (one, other) in recent.iter().zip(&whole).take(recent.len() - 1) {
            assert_eq!(
                (one.id, one.checkpoint, &one.words),
                (other.id, other.checkpoint, &other.words)
            );
        }
    }
}

#[test]
fn to_count_checkpoints_no_turn_is_read() {
    for format in AGENTS {
        let store = stored(format, 1, 1_500);
        let asked = |ask: &dyn Fn(&Archive, &Session) -> usize| {
            let mut given = 0;
            let pages = reads(&store, |archive| given = ask(archive, &named(archive, 1)));
            (given, pages)
        };
        let (counted, few) = asked(&|archive, session| {
            usize::try_from(verbs::sizes_of(&archive.at(session).unwrap()).unwrap().checkpoints)
                .unwrap()
        });
        let (listed, many) = asked(&|archive, session| {
            verbs::checkpoints(&archive.at(session).unwrap()).unwrap().len()
        });
        assert_eq!(counted, listed);
        assert!(few < many, "{}: {few} pages to count, {many} to list", format.name());
    }
}

#[test]
fn a_change_of_a_long_session_reads_as_little_as_of_a_short_one() {
    // A native session goes back in a copy of what stays, which is read.
    for format in AGENTS.into_iter().filter(|format| format.name() != Native.name()) {
        let kept = [1_500, 9_000].map(|count| {
            let folder = TempDir::new().unwrap();
            let (store, sessions) = (folder.path().join("store"), folder.path().join("sessions"));
            fs::create_dir(&sessions).unwrap();
            write(&sessions, 1, &lines(format, 1, count));
            let mut archive = fixture::open(&store, 1);
            let folders = [sessions];
            verbs::import(&mut archive, &folders, &folders, &mut |_| ()).unwrap();
            drop(archive);
            let db = Connection::open(store.join("store.db")).unwrap();
            db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            (store, folder)
        });
        let check = |what: &str, change: &dyn Fn(&mut Archive, &Session)| {
            let [few, many] = [&kept[0], &kept[1]].map(|(store, _)| {
                let watch = Faults::none(store);
                let mut archive = fixture::open(store, 2);
                let session = named(&archive, 1);
                change(&mut archive, &session);
                watch.reads()
            });
            assert!(many <= few + 24, "{} {what}: {few} pages, then {many}", format.name());
        };
        let nowhere = verbs::workspace(Path::new("/"));
        check("revert, undo and redo", &|archive, session| {
            let reverted =
                verbs::revert(&archive.at(session).unwrap(), &nowhere, "HEAD~4", None).unwrap();
            assert!(reverted.landing.kept.is_some());
            verbs::undo(&archive.at(session).unwrap(), None).unwrap();
            verbs::redo(&archive.at(session).unwrap()).unwrap();
        });
        check("revert with a note", &|archive, session| {
            verbs::revert(&archive.at(session).unwrap(), &nowhere, "HEAD~4", Some("a note"))
                .unwrap();
        });
        check("append", &|archive, session| {
            let words = Draft::Note("more words".into());
            verbs::append(&archive.at(session).unwrap(), &nowhere, &[words]).unwrap();
        });
        let asked = asked();
        let compact = |archive: &mut Archive, session: &Session| {
            let wanted = Compacting::of(&asked, &|| Timestamp(0));
            // An extract of a longer session is longer, up to its limit.
            let by = Writer::Caller("In a few words.");
            let wanted = Compacting { keep: Keep::Last(2), by, appendix: false, ..wanted };
            verbs::compact(&archive.at(session).unwrap(), &nowhere, &wanted, &mut |_| ()).unwrap()
        };
        for (store, _) in &kept {
            let mut archive = fixture::open(store, 2);
            let session = named(&archive, 1);
            assert!(compact(&mut archive, &session).done.operation.is_some());
            for n in 0..20 {
                let words = Draft::Note(format!("{n} {}", "words behind a summary ".repeat(20)));
                verbs::append(&archive.at(&session).unwrap(), &nowhere, &[words]).unwrap();
            }
        }
        check("compact", &|archive, session| {
            assert!(compact(archive, session).done.operation.is_some());
        });
    }
}

#[test]
fn a_session_that_grew_line_by_line_is_read_as_one_that_came_at_once() {
    for format in [&Claude, &Codex] as [&dyn Format; 2] {
        let kept = [1, GROWN].map(|times| {
            let folder = TempDir::new().unwrap();
            let (store, sessions) = (folder.path().join("store"), folder.path().join("sessions"));
            fs::create_dir(&sessions).unwrap();
            let (lines, folders) = (lines(format, 1, GROWN as u64 + 8), [sessions.clone()]);
            let mut archive = fixture::open(&store, 1);
            for n in 1..=times {
                write(&sessions, 1, &lines[..lines.len() - times + n]);
                verbs::import(&mut archive, &folders, &folders, &mut |_| ()).unwrap();
            }
            drop(archive);
            let db = Connection::open(store.join("store.db")).unwrap();
            db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            let runs: usize =
                db.query_row("SELECT count(*) FROM run", [], |row| row.get(0)).unwrap();
            assert!(2 * runs > times, "{runs} of {times}");
            (store, folder)
        });
        let check = |what: &str, ask: &dyn Fn(&Archive, &Session)| {
            let [once, often] = [&kept[0], &kept[1]].map(|(store, _)| {
                let watch = Faults::none(store);
                let archive = Archive::open(store, Access::Read, Box::new(Machine)).unwrap();
                ask(&archive, &named(&archive, 1));
                watch.reads()
            });
            assert!(often <= once + 8, "{} {what}: {once} pages, then {often}", format.name());
        };
        check("log", &|archive, session| {
            assert_eq!(verbs::log(&archive.at(session).unwrap(), None, 1).unwrap().lines.len(), 1);
        });
        check("status", &|archive, session| {
            verbs::status(&archive.at(session).unwrap()).unwrap();
        });
        check("an entry by its id", &|archive, session| {
            let head =
                verbs::find_place(&archive.at(session).unwrap(), "HEAD").unwrap().entry().unwrap();
            let id = archive.store().entries(session.key, head.alone()).unwrap().remove(0).id;
            let found =
                verbs::find_place(&archive.at(session).unwrap(), &format!("{id:.16}")).unwrap();
            assert_eq!(found.entry(), Some(head));
        });
    }
}

#[test]
fn the_original_of_a_long_fork_is_found_as_that_of_a_short_one() {
    let [few, many] = [1_500, 9_000].map(|count| {
        let (store, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let original = lines(&Claude, 1, count);
        let own = |session, n| record(&Claude, session, n, Some(count)).to_string();
        let session = |n| format!(r#""sessionId":"{}""#, uuid(n, 0));
        let fork = original.iter().map(|line| line.replace(&session(1), &session(2)));
        let fork: Vec<String> = fork.chain([own(2, count + 2)]).collect();
        write(folder.path(), 2, &fork);
        write(folder.path(), 1, &[original, vec![own(1, count + 1)]].concat());
        let mut archive = fixture::open(store.path(), 1);
        verbs::import(&mut archive, &[folder.path().to_owned()], &[], &mut |_| ()).unwrap();
        drop(archive);
        reads(&store, |archive| {
            let kin = verbs::kin(&archive.at(&named(archive, 2)).unwrap()).unwrap().unwrap();
            assert_eq!(kin.session, uuid(1, 0));
            assert_eq!(verbs::kin(&archive.at(&named(archive, 1)).unwrap()).unwrap(), None);
        })
    });
    // Each step of a search by halves may read a page more.
    assert!(many <= 2 * few, "{few} pages, then {many}");
}

#[test]
fn a_page_of_many_sessions_is_read_as_one_of_few() {
    let [few, many] = [150, 1_500].map(|sessions| stored(&Claude, sessions, 2));
    let check = |what: &str, ask: &dyn Fn(&Archive)| {
        let [few, many] = [&few, &many].map(|store| reads(store, ask));
        // A segment that is full has more pages than one of few sessions.
        assert!(many <= few + 40, "{what}: {few} pages, then {many}");
    };
    check("a session by its id", &|archive| {
        assert_eq!(named(archive, 7).name.id, uuid(7, 0));
        let beginning =
            verbs::find_session(archive.store(), Some("00000007"), Path::new("/")).unwrap();
        assert_eq!(beginning.name.id, uuid(7, 0));
    });
    check("the word for a session", &|archive| {
        let word = verbs::short_name(archive.store(), &named(archive, 7)).unwrap();
        assert_eq!(word, "00000007");
    });
    check("the newest session of a folder, and of one below it", &|archive| {
        for folder in ["/w", "/w/below/it"] {
            verbs::find_session(archive.store(), None, Path::new(folder)).unwrap();
        }
    });
    check("the check of a session", &|archive| {
        let verified = verbs::verify(archive, Some(&named(archive, 7)), &mut |_| {}).unwrap();
        assert_eq!((verified.sessions, verified.entries, verified.damaged), (1, 2, 0));
    });
    check("the newest sessions", &|archive| {
        let page = SessionFilter { limit: Some(20), ..SessionFilter::default() };
        let listed = archive.sessions(&page).unwrap();
        assert_eq!(listed.len(), 20);
        for found in listed {
            let session = archive.session(&found.name).unwrap().unwrap();
            assert_eq!(verbs::kin(&archive.at(&session).unwrap()).unwrap(), None);
        }
    });
}

/// A graph that counts what it is asked.
struct Counted<'g> {
    graph: &'g FileGraph,
    asked: Cell<u64>,
}

impl Counted<'_> {
    fn ask(&self) -> &FileGraph {
        self.asked.set(self.asked.get() + 1);
        self.graph
    }
}

impl Graph for Counted<'_> {
    fn end(&self) -> PlaceNumber {
        self.graph.end()
    }

    fn at(&self, place: PlaceNumber) -> Result<Option<EntryNumber>, Failure> {
        self.ask().at(place)
    }

    fn place(&self, entry: EntryNumber) -> Result<Option<PlaceNumber>, Failure> {
        self.ask().place(entry)
    }

    fn record(&self, entry: EntryNumber) -> Result<Record, Failure> {
        self.ask().record(entry)
    }

    fn parent(&self, entry: EntryNumber) -> Result<Option<EntryNumber>, Failure> {
        self.ask().parent(entry)
    }

    fn line(&self, entry: EntryNumber) -> Result<Vec<u8>, Failure> {
        self.ask().line(entry)
    }

    fn named(&self, name: NameTag) -> Result<Option<EntryNumber>, Failure> {
        self.ask().named(name)
    }

    fn landmark(
        &self,
        landmark: Landmark,
        before: PlaceNumber,
    ) -> Result<Option<(PlaceNumber, EntryNumber)>, Failure> {
        self.ask().landmark(landmark, before)
    }

    fn is_glued(&self, place: PlaceNumber) -> Result<bool, Failure> {
        self.ask().is_glued(place)
    }

    fn bytes(&self) -> Result<u64, Failure> {
        self.ask().bytes()
    }
}

/// Returns how many questions it takes to find every path of a file, and how many entries they have in all.
fn asked_for_paths(format: &'static dyn Format, lines: &[String]) -> (u64, usize) {
    let graph = FileGraph::read(format, (lines.join("\n") + "\n").as_bytes());
    let counted = Counted { graph: &graph, asked: Cell::new(0) };
    let mut known = EntrySet::default();
    let mut paths = format.paths(&counted).unwrap();
    let head = format.head(&counted).unwrap();
    for leaf in head.into_iter().chain(format.leaves(&counted).unwrap()) {
        wire::added(&mut paths, leaf, &mut known).unwrap();
    }
    (counted.asked.get(), known.iter().count())
}

#[test]
fn the_paths_of_a_file_take_questions_in_proportion_to_it() {
    type Shape = fn(&'static dyn Format, u64) -> Vec<String>;
    let late: Shape = |format, count| {
        let mut lines = lines(format, 1, count);
        lines[usize::from(format.name() == "pi")..].reverse();
        lines
    };
    let fan: Shape = |format, count| {
        let line = |n: u64| match n {
            1..=50 => record(format, 1, n, n.checked_sub(1).filter(|n| *n > 0)),
            _ => record(format, 1, n, Some(50)),
        };
        (1..=count).map(|n| line(n).to_string()).collect()
    };
    let repeated: Shape = |format, count| {
        let line = |n: u64| record(format, 1, 2 + n % 7, n.checked_sub(1).map(|n| 2 + n % 5));
        (0..count).map(|n| line(n).to_string().replace("words of", &n.to_string())).collect()
    };
    // Their parents are missing, and all were written in the same second.
    let orphans: Shape = |format, count| {
        let at = |n: u64| record(format, 1, n, Some(n + 1_000_000));
        (2..=count).map(|n| at(n).to_string().replace(&time(n), &time(2))).collect()
    };
    // Each follows the one before it, and the first one the last one.
    let circle: Shape = |format, count| {
        let before = |n: u64| if n > 1 { n - 1 } else { count };
        (1..=count).map(|n| record(format, 1, n, Some(before(n))).to_string()).collect()
    };
    let one_name: Shape = |format, count| {
        let line =
            |n: u64| record(format, 1, 2, Some(2)).to_string().replace("words of", &n.to_string());
        (0..count).map(line).collect()
    };
    // A message whose blocks and their results hang beside each other.
    let parallel: Shape = |format, count| {
        let mut lines = lines(format, 1, 3);
        for n in 4..=count {
            let mut record = record(format, 1, n | 1, Some(3));
            if format.name() == "claude" {
                record["uuid"] = json!(uuid(1, n));
                record["message"]["id"] = json!("m3");
            }
            lines.push(record.to_string());
        }
        lines
    };
    // A message whose blocks hang beside each other, each with a question behind it.
    let spread: Shape = |format, count| {
        let mut lines = lines(format, 1, 2);
        for n in 3..=count {
            let mut record = record(format, 1, n, Some(if n % 2 == 1 { 2 } else { n - 1 }));
            if format.name() == "claude" && n % 2 == 1 {
                record["message"]["id"] = json!("m3");
            }
            lines.push(record.to_string());
        }
        lines
    };
    let formats: [&'static dyn Format; 3] = [&Claude, &Pi, &Native];
    for (name, shape) in [
        ("late", late),
        ("fan", fan),
        ("repeated", repeated),
        ("orphans", orphans),
        ("circle", circle),
        ("one name", one_name),
        ("parallel", parallel),
        ("spread", spread),
    ] {
        for format in formats {
            in_proportion(name, format, &|count| shape(format, count));
        }
    }
}

#[test]
fn the_paths_over_crossed_boundaries_take_questions_in_proportion_to_the_file() {
    // Each message follows a boundary behind it, which names nothing and so follows the message before.
    in_proportion("crossed boundaries", &Claude, &|count| {
        let half = count / 2;
        let message = |n: u64| record(&Claude, 1, n, Some(2 * half - n + 2)).to_string();
        let boundary = |n: u64| {
            let mut record = record(&Claude, 1, half + n, None);
            record["type"] = json!("system");
            record["subtype"] = json!("compact_boundary");
            record["logicalParentUuid"] = json!(uuid(2, n));
            record.to_string()
        };
        let head = record(&Claude, 1, 2 * half + 3, Some(half + 1)).to_string();
        (1..=half).map(message).chain((1..=half).map(boundary)).chain([head]).collect()
    });
}

/// Asserts that the paths of a file four times as long take four times as many questions, and somewhat more for what is sorted.
#[track_caller]
fn in_proportion(name: &str, format: &'static dyn Format, shape: &dyn Fn(u64) -> Vec<String>) {
    let [few, many] = [500, 2_000].map(|count| asked_for_paths(format, &shape(count)));
    let told = format!("{name} of {}: {few:?} then {many:?}", format.name());
    assert!(many.0 <= 6 * few.0 + 1_000, "{told}");
}

#[test]
fn the_paths_of_a_codex_thread_take_questions_in_proportion_to_it() {
    let said = |n: u64, class: &str, payload: Value| {
        json!({ "timestamp": time(n), "type": class, "payload": payload }).to_string()
    };
    let begin = lines(&Codex, 1, 1);
    // A user's message, whatever its number.
    let turn = |n: u64| record(&Codex, 1, 8 * n + 4, None)["payload"].clone();
    let history = |n: u64| {
        let payload = json!({ "message": "m", "replacement_history": [turn(n)] });
        said(n, "compacted", payload)
    };
    let back =
        |n: u64| said(n, "event_msg", json!({ "type": "thread_rolled_back", "num_turns": 1 }));
    let asked = |n: u64| said(n, "response_item", turn(n));
    let whole = |lines: &dyn Fn(u64) -> Vec<String>, count: u64| {
        [begin.clone(), (1..=count / 3).flat_map(lines).collect()].concat()
    };
    in_proportion("histories in one task", &Codex, &|count| {
        whole(&|n| vec![asked(n), history(n)], count)
    });
    in_proportion("histories that are taken back", &Codex, &|count| {
        whole(&|n| vec![asked(n), history(n), back(n)], count)
    });
    in_proportion("turns that are taken back", &Codex, &|count| {
        whole(&|n| vec![asked(n), back(n)], count)
    });
}

#[test]
fn the_callers_of_a_turns_sub_agents_take_questions_in_proportion_to_it() {
    let [few, many] = [500, 2_000].map(|count| {
        let mut call = record(&Claude, 1, 3, Some(2));
        call["message"]["content"] =
            json!([{ "type": "tool_use", "id": "t", "name": "Task", "input": { "prompt": "p" } }]);
        let mut lines = vec![record(&Claude, 1, 2, None).to_string(), call.to_string()];
        for n in 4..count {
            let mut record = record(&Claude, 1, n, (n % 2 == 1).then(|| n - 1));
            record["isSidechain"] = json!(true);
            lines.push(record.to_string());
        }
        let graph = FileGraph::read(&Claude, (lines.join("\n") + "\n").as_bytes());
        let counted = Counted { graph: &graph, asked: Cell::new(0) };
        let mut callers = Claude.callers(&counted);
        for place in graph.end().earlier() {
            let entry = graph.at(place).unwrap().unwrap();
            let is_first = place.get() >= 2 && place.get() % 2 == 0;
            assert_eq!(callers(entry).unwrap().is_some(), is_first, "{place}");
        }
        counted.asked.get()
    });
    assert!(many <= 5 * few, "{few} then {many}");
}

#[test]
fn what_is_kept_behind_a_summary_is_found_without_its_path() {
    let asked = [500, 4_000].map(|count| {
        let mut lines = lines(&Claude, 1, count);
        let mut boundary = record(&Claude, 1, count + 1, None);
        boundary["type"] = json!("system");
        boundary["subtype"] = json!("compact_boundary");
        boundary["logicalParentUuid"] = json!(uuid(1, count));
        boundary["compactMetadata"] = json!({ "preservedMessages": {
            "anchorUuid": uuid(1, count + 2), "uuids": [uuid(1, count - 1), uuid(1, count)],
        } });
        let mut summary = record(&Claude, 1, count + 2, Some(count + 1));
        summary["isCompactSummary"] = json!(true);
        lines.extend([boundary.to_string(), summary.to_string()]);
        let graph = FileGraph::read(&Claude, (lines.join("\n") + "\n").as_bytes());
        let counted = Counted { graph: &graph, asked: Cell::new(0) };
        let last = Claude.last_kept(&counted, fixture::number(count + 2)).unwrap();
        assert_eq!(last, count);
        counted.asked.get()
    });
    assert_eq!(asked[0], asked[1]);
}

/// Takes a file into a store and returns its graph.
fn graph(folder: &TempDir, lines: &[String]) -> verbs::GraphView {
    let path = write(folder.path(), 1, lines);
    let (archive, session) = verbs::peek(&path, Box::new(Machine)).unwrap();
    verbs::graph(
        &archive.at(&session).unwrap(),
        verbs::Detail { all: true, ..verbs::Detail::default() },
    )
    .unwrap()
}

#[test]
fn parents_behind_their_children_make_the_graph_that_they_make_in_order() {
    let formats: [&dyn Format; 3] = [&Claude, &Pi, &Native];
    for format in formats {
        let folder = TempDir::new().unwrap();
        let mut lines = lines(format, 1, 3_000);
        let in_order = graph(&folder, &lines);
        lines[usize::from(format.name() == "pi")..].reverse();
        let late = graph(&folder, &lines);
        let outline = |graph: &verbs::GraphView| {
            let nodes = graph.nodes.iter();
            nodes.map(|node| (node.uuid.clone(), node.parents.clone())).collect::<Vec<_>>()
        };
        assert_eq!(outline(&late), outline(&in_order), "{}", format.name());
    }
}

#[test]
fn a_line_that_nests_a_million_deep_is_cut() {
    let words = "a word ".repeat(1_000);
    let depth = 1_000_000;
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = format!("{}\"{words}\"{}", open.repeat(depth), close.repeat(depth));
        let mut result = record(&Claude, 1, 2, Some(1));
        result["message"]["content"] =
            json!([{ "type": "tool_result", "tool_use_id": "c", "content": words }]);
        let line =
            format!("{},\"toolUseResult\":{nested}}}", result.to_string().trim_end_matches('}'));
        let folder = TempDir::new().unwrap();
        let path =
            write(folder.path(), 1, &[record(&Claude, 1, 1, None).to_string(), line.clone()]);
        let (archive, session) = verbs::peek(&path, Box::new(Machine)).unwrap();
        let bound = Bound::of(Limit::of_chars(2_000));
        let found = verbs::oversized(&archive.at(&session).unwrap(), &bound).unwrap().results;
        assert_eq!(found.len(), 1);
        let cut = verbs::truncate(&archive.at(&session).unwrap(), &bound).unwrap();
        assert!(cut.saved > 8_000, "{}", cut.saved);
    }
}

#[test]
fn results_that_nest_a_million_deep_are_read() {
    let depth = 1_000_000;
    let open = r#"{"type":"tool_result","tool_use_id":"c","content":["#.repeat(depth);
    let line = format!(
        r#"{{"type":"user","uuid":"u","parentUuid":null,"message":{{"role":"user","content":[{open}{}]}}}}"#,
        "]}".repeat(depth)
    );
    let record = Raw::object(line.as_bytes()).unwrap();
    assert_eq!(Claude.messages(record).len(), 1);
}

#[test]
fn fullness_is_what_the_whole_context_says() {
    let mut dice = fixture::Dice(0x51de);
    let mut told = [0, 0, 0];
    for round in 0..60 {
        let count = 40 + dice.below(500);
        let mut lines = Vec::new();
        let format: &dyn Format = if dice.below(3) == 0 { &Pi } else { &Claude };
        for n in 1..=count {
            let mut record = record(format, 1, n, (n > 1).then(|| n - 1));
            // Some sessions never say what was used, and in others some answers do not.
            if round % 3 == 0 || round % 3 == 1 && dice.below(200) > 0 {
                record["message"]["usage"] = json!({});
            }
            if format.name() == "claude" && dice.below(150) == 0 {
                record["type"] = json!("system");
                record["subtype"] = json!("compact_boundary");
            }
            lines.push(record.to_string());
        }
        let folder = TempDir::new().unwrap();
        let (archive, session) =
            verbs::peek(&write(folder.path(), 1, &lines), Box::new(Machine)).unwrap();
        let whole = verbs::context(&archive.at(&session).unwrap(), None, &asked()).unwrap();
        let found = verbs::fullness(&archive.at(&session).unwrap(), &asked()).unwrap();
        assert_eq!(found.window, whole.window);
        assert_eq!(verbs::window(&archive.at(&session).unwrap(), &asked()).unwrap(), whole.window);
        if found.is_least {
            assert!(found.tokens > found.window.tokens && whole.tokens() >= found.tokens);
            told[0] += 1;
        } else {
            assert_eq!((found.tokens, found.word), (whole.measured.tokens, whole.measured.word));
            told[1 + usize::from(whole.reported.is_some())] += 1;
        }
    }
    assert!(told[1..].iter().all(|n| *n > 5), "{told:?}");
}

#[test]
fn a_session_is_found_by_what_its_id_begins_with() {
    let store = stored(&Claude, 20, 2);
    let archive = Archive::open(store.path(), Access::Read, Box::new(Machine)).unwrap();
    for wild in ["%", "_", "0000000_", "*", "[0]"] {
        assert!(
            verbs::find_session(archive.store(), Some(wild), Path::new("/")).is_err(),
            "{wild}"
        );
    }
    let name = SessionName { format: "claude".into(), id: uuid(20, 0) };
    assert_eq!(named(&archive, 20).name, name);
}

#[test]
fn the_changes_to_a_message_of_many_records_are_in_proportion_to_it() {
    let without_result =
        |n: u64| json!({ "type": "tool_use", "id": format!("c{n}"), "name": "R", "input": {} });
    let one_id = |_| json!({ "type": "tool_use", "id": "c", "name": "R", "input": {} });
    let refused = |n: u64| match n % 3 {
        0 => json!({ "type": "text", "text": "" }),
        1 => json!({ "type": "tool_use", "id": "", "name": "R", "input": {} }),
        _ => json!({ "type": "tool_use", "id": format!("c{n}"), "name": "", "input": {} }),
    };
    let check = |what: &str, block: &dyn Fn(u64) -> Value| {
        let [few, many] = [300, 600].map(|count| {
            let mut lines = vec![record(&Claude, 1, 1, None).to_string()];
            for n in 2..count {
                let mut record = record(&Claude, 1, n, Some(n - 1));
                record["type"] = json!("assistant");
                let content = [block(n)];
                record["message"] = json!({ "role": "assistant", "id": "m", "content": content });
                lines.push(record.to_string());
            }
            let folder = TempDir::new().unwrap();
            let path = write(folder.path(), 1, &lines);
            let (archive, session) = verbs::peek(&path, Box::new(Machine)).unwrap();
            let context = verbs::context(&archive.at(&session).unwrap(), None, &asked()).unwrap();
            let changes = &context.prepared.changes;
            assert!(changes.iter().any(|change| change.entries.len() as u64 == count - 2));
            changes.iter().map(|change| change.entries.len()).sum::<usize>()
        });
        assert!(2 * many <= 5 * few, "{what}: {few} entries are named, then {many}");
    };
    check("calls without a result", &without_result);
    check("calls with one id", &one_id);
    check("parts that no provider takes", &refused);
}

/// Returns the lines of a file of Claude Code's in which names, parents and messages go wild.
fn wild(dice: &mut fixture::Dice) -> Vec<String> {
    let count = 3 + dice.below(70);
    let names = 2 + dice.below(count);
    let line = |n: u64, dice: &mut fixture::Dice| {
        let parent = match dice.below(20) {
            0 => None,
            1 => Some(999_999),
            2..10 => n.checked_sub(1).filter(|n| *n > 0),
            _ => Some(1 + dice.below(names)),
        };
        let mut record = record(&Claude, 1, n, parent);
        if dice.below(6) == 0 {
            record["uuid"] = json!(uuid(1, 1 + dice.below(names)));
        }
        if dice.below(3) == 0 {
            record["timestamp"] = json!(time(dice.below(20)));
        }
        let words = format!("words {n}");
        match dice.below(12) {
            0..4 => {
                record["type"] = json!("assistant");
                let content = [
                    json!({ "type": "tool_use", "id": format!("c{n}"), "name": "R", "input": {} }),
                ];
                let id = format!("m{}", dice.below(1 + count / 5));
                record["message"] = json!({ "role": "assistant", "id": id, "content": content });
            }
            4..7 => {
                record["type"] = json!("user");
                let content =
                    [json!({ "type": "tool_result", "tool_use_id": "c", "content": words })];
                record["message"] = json!({ "role": "user", "content": content });
            }
            7 => record["type"] = json!("progress"),
            8 => {
                record["type"] = json!("system");
                record["subtype"] = json!("turn_duration");
            }
            9 if dice.below(3) == 0 => {
                let kept: Vec<String> = (0..3).map(|_| uuid(1, 1 + dice.below(names))).collect();
                record["type"] = json!("system");
                record["subtype"] = json!("compact_boundary");
                record["compactMetadata"] =
                    json!({ "preservedMessages": { "anchorUuid": kept[0], "uuids": kept[1..] } });
            }
            10 => record["isSidechain"] = json!(dice.below(2) == 0),
            _ => {}
        }
        record.to_string()
    };
    (1..=count).map(|n| line(n, dice)).collect()
}

#[test]
fn paths_that_share_what_they_read_add_what_whole_paths_add() {
    let mut dice = fixture::Dice(0x9a75);
    let mut n_paths = 0;
    for _ in 0..400 {
        let file = wild(&mut dice).join("\n") + "\n";
        let graph = FileGraph::read(&Claude, file.as_bytes());
        let head = Claude.head(&graph).unwrap();
        let mut paths = Claude.paths(&graph).unwrap();
        let (mut known, mut expected_known) = (EntrySet::default(), EntrySet::default());
        for leaf in head.into_iter().chain(Claude.leaves(&graph).unwrap()) {
            let added = wire::added(&mut paths, leaf, &mut known).unwrap();
            let whole = graph.path(leaf);
            assert_eq!(paths(leaf, usize::MAX).unwrap().entries, whole, "{file}");
            let from = whole.iter().rposition(|entry| expected_known.contains(*entry));
            let expected = &whole[from.unwrap_or(0)..];
            expected_known.extend(expected);
            // One entry alone adds nothing but itself.
            if added.len() > 1 || expected.len() > 1 {
                assert_eq!(added, expected, "{leaf} of {file}");
                n_paths += 1;
            }
        }
        assert_eq!(known, expected_known, "{file}");
    }
    assert!(n_paths > 400, "{n_paths}");
}

/// Each file was compared with the store three times, line by line.
#[test]
fn an_import_after_only_times_changed_reads_no_line_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let folders = [folder.path().join("sessions")];
    fs::create_dir(&folders[0]).unwrap();
    let mut held = 0;
    let files: Vec<PathBuf> = (1..=3)
        .map(|session| {
            let text = |n: u64| {
                let words =
                    (0..60).map(|i| undertext::model::LineId::of(format!("{n} {i}").as_bytes()));
                words.map(|word| word.to_string()).collect::<String>()
            };
            let lines = (1..=100).map(|n| {
                let mut record = record(&Claude, session, n, (n > 1).then(|| n - 1));
                record["message"]["content"] = json!(text(1000 * session + n));
                record.to_string() + "\n"
            });
            let file = folders[0].join(format!("{}.jsonl", uuid(session, 0)));
            let bytes: String = lines.collect();
            held += i64::try_from(bytes.len()).unwrap();
            fs::write(&file, bytes).unwrap();
            file
        })
        .collect();
    let store = folder.path().join("store");
    let mut archive = fixture::open(&store, 1);
    verbs::import(&mut archive, &folders, &folders, &mut |_| ()).unwrap();
    drop(archive);
    let db = Connection::open(store.join("store.db")).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let page: i64 = db.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    drop(db);
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    let imported = || {
        let watch = Faults::none(&store);
        let mut archive = fixture::open(&store, 2);
        let summary = verbs::import(&mut archive, &folders, &folders, &mut |_| ()).unwrap();
        assert_eq!((summary.unchanged, summary.entries), (3, 0));
        watch.reads()
    };
    for file in &files {
        fs::File::options().write(true).open(file).unwrap().set_modified(long_ago).unwrap();
    }
    let touched = imported();
    // Half of the text is what such text can be packed into.
    assert!(touched < held / page / 8, "{touched} of {}", held / page);
    // Once settled, they are not read again.
    let again = imported();
    assert!(again <= touched, "{again}");
}
