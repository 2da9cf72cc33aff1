//! Finding against all that was said: each line that a pattern is in, and no other, whichever way leads there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::{fs, slice};

use regex::Regex;
use undertext::json::Raw;
use undertext::model::{Block, EntryNumber, Message};
use undertext::report::Hit;
use undertext::settings::Exclude;
use undertext::store::{Access, SessionFilter};
use undertext::verbs::{self, Archive, Case, Machine, Pattern, Search, Sought, Words};
use undertext::wire::Heading;

use crate::needs;

/// A line as it was said: the session, the text's first bytes' place in it, and the line.
type Said = (String, String);

/// Returns every line of every text in an archive, with the session that has it, each as often as it was said.
fn everything(archive: &Archive) -> Vec<Said> {
    let mut said = Vec::new();
    for session in archive.every().unwrap() {
        let entries = archive.store().state(session.key).unwrap().next_entry();
        for entry in EntryNumber::each(EntryNumber::FIRST..entries) {
            let mut messages = verbs::messages(&archive.at(&session).unwrap(), entry).unwrap();
            if messages.is_empty() {
                let mut remarks = |_, line: Result<Vec<u8>, _>| {
                    let line = line.unwrap();
                    let record = Raw::object(&line).into_iter();
                    messages.extend(
                        record.flat_map(|record| (session.format.traits().remarks)(record)),
                    );
                };
                archive.store().lines(session.key, &[entry], &mut remarks).unwrap();
            }
            for message in messages {
                for text in texts(&message) {
                    let lines = text.strip_suffix('\n').unwrap_or(&text).split('\n');
                    let of = |line: &str| (session.name.id.clone(), line.to_owned());
                    said.extend(lines.filter(|_| !text.is_empty()).map(of));
                }
            }
        }
    }
    said
}

fn texts(message: &Message) -> Vec<String> {
    let mut texts = Vec::new();
    for block in &message.blocks {
        block_texts(block, &mut texts);
    }
    texts
}

fn block_texts(block: &Block, texts: &mut Vec<String>) {
    match block {
        Block::Text(text) => texts.push(text.clone()),
        Block::Thinking(thinking) => texts.push(thinking.text.clone()),
        Block::Call { name, input, .. } => {
            texts.push(name.clone());
            json_texts(input, texts);
        }
        Block::Result { blocks, .. } => {
            for block in blocks {
                match block {
                    Block::Text(text) => texts.push(reported(text).unwrap_or_else(|| text.clone())),
                    _ => block_texts(block, texts),
                }
            }
        }
        Block::Other { json, .. } => {
            let mut all = Vec::new();
            json_texts(json, &mut all);
            // A document in base64 is no words.
            texts.extend(all.into_iter().filter(|t| t.len() < 1024 || t.contains([' ', '\n'])));
        }
        Block::Image(_) => {}
    }
}

/// Returns an output whose end is a report in JSON, with what that reports in its place.
fn reported(text: &str) -> Option<String> {
    let heading = Heading::of(text).map_or(0, |heading| text.len() - heading.output.len());
    let (heading, report) = text.split_at(heading);
    let report: serde_json::Map<String, serde_json::Value> = serde_json::from_str(report).ok()?;
    let known = "chunk_id duration_seconds exit_code metadata original_token_count output session_id wall_time_seconds";
    let is_known = report.keys().all(|key| known.split(' ').any(|known| known == key));
    let output = report.get("output").and_then(|output| output.as_str()).filter(|_| is_known)?;
    Some(format!("{heading}{output}"))
}

fn json_texts(json: &str, texts: &mut Vec<String>) {
    fn walk(value: &serde_json::Value, texts: &mut Vec<String>) {
        match value {
            serde_json::Value::String(text) => texts.push(text.clone()),
            serde_json::Value::Array(items) => items.iter().for_each(|item| walk(item, texts)),
            serde_json::Value::Object(fields) => fields.values().for_each(|it| walk(it, texts)),
            _ => {}
        }
    }
    match serde_json::from_str(json) {
        Ok(value) => walk(&value, texts),
        Err(_) => texts.push(json.to_owned()),
    }
}

/// Returns a search of everything.
fn search_for(pattern: Pattern) -> Search {
    let sessions = SessionFilter { hidden: true, ..SessionFilter::default() };
    Search { sessions, ..Search::of(Sought::Pattern(pattern)) }
}

fn hits(archive: &Archive, pattern: Pattern) -> Vec<Hit> {
    let mut hits = Vec::new();
    let searched = verbs::search(archive, &search_for(pattern), |_, hit| {
        hits.push(hit.clone());
        Ok::<_, verbs::OpsError>(())
    });
    assert!(!searched.unwrap().has_more);
    hits
}

/// Counts the lines of hits by the session and the line, once for each place.
fn counted(hits: &[Hit]) -> BTreeMap<Said, usize> {
    let mut counted = BTreeMap::new();
    for hit in hits {
        for place in &hit.places {
            for line in &hit.lines {
                *counted.entry((place.session.id.clone(), line.line.clone())).or_default() += 1;
            }
        }
    }
    counted
}

/// Takes files into a store.
fn imported(root: &Path, files: &[PathBuf]) -> Archive {
    let mut archive = Archive::open(root, Access::Write, Box::new(Machine)).unwrap();
    verbs::import(&mut archive, files, &[], &mut |_| ()).unwrap();
    archive
}

/// Draws words of texts: parts of lines that begin and end anywhere.
fn drawn(said: &[Said], count: usize) -> Vec<String> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |most: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % most.max(1)
    };
    let mut words = Vec::new();
    while words.len() < count {
        let (_, line) = &said[below(said.len())];
        let chars: Vec<char> = line.chars().collect();
        let first = below(chars.len());
        // One in three is of a script or a sign beyond ASCII, where the line has one.
        let first = match chars.iter().skip(first).position(|c| !c.is_ascii()) {
            Some(at) if words.len() % 3 == 0 => first + at,
            _ => first,
        };
        let length = 1 + below(16);
        let word: String = chars.iter().skip(first).take(length).collect();
        if !word.is_empty() {
            words.push(word);
        }
    }
    words
}

#[test]
fn every_line_that_has_a_pattern_is_found_and_no_other() {
    let Some(corpus) = needs::corpus() else { return };
    let folder = tempfile::tempdir().unwrap();
    let archive = imported(&folder.path().join("plain"), &corpus.sessions());
    let said = everything(&archive);
    let count = if cfg!(debug_assertions) { 24 } else { 1000 };
    let indexed = imported(&folder.path().join("indexed"), &corpus.sessions());
    let whole = verbs::index(&indexed, &Exclude::default(), &|| true, &mut |_, _| ()).unwrap();
    assert!(whole.is_whole && whole.entries > 0);
    let mut found = 0;
    for (n, words) in drawn(&said, count).iter().enumerate() {
        let manner = [Words::Literal, Words::Word, Words::Regex][n % 3];
        let words = if manner == Words::Regex { regex::escape(words) } else { words.clone() };
        let pattern = Pattern::new(&words, manner, Case::Smart).unwrap();
        let source = match manner {
            Words::Regex => words.clone(),
            Words::Word => format!(r"\b{{start-half}}(?:{})\b{{end-half}}", regex::escape(&words)),
            Words::Literal => regex::escape(&words),
        };
        let has_capital = words.chars().any(char::is_uppercase);
        let source = if has_capital { source } else { format!("(?i){source}") };
        let oracle = Regex::new(&source).unwrap();
        let mut expected: BTreeMap<Said, usize> = BTreeMap::new();
        for said in said.iter().filter(|(_, line)| oracle.is_match(line)) {
            *expected.entry(said.clone()).or_default() += 1;
        }
        for (way, archive) in [("without an index", &archive), ("with one", &indexed)] {
            let counted = counted(&hits(archive, pattern.clone()));
            let differs =
                |one: &BTreeMap<Said, usize>, other: &BTreeMap<Said, usize>| -> Vec<Said> {
                    let all = one.iter().filter(|(said, n)| other.get(*said) != Some(*n));
                    all.map(|(said, _)| said.clone()).take(9).collect()
                };
            let (more, less) = (differs(&counted, &expected), differs(&expected, &counted));
            assert!(counted == expected, "{way}, {manner:?} {words:?}: {more:#?}, not {less:#?}");
        }
        found += expected.values().sum::<usize>();
    }
    assert!(found > count);
}

/// Writes a session of some messages to a folder.
fn write_session(folder: &Path, n: usize, said: &[&str]) -> PathBuf {
    let id = format!("{n:08x}-0000-4000-8000-000000000000");
    let record = |(at, words): (usize, &&str)| {
        format!(
            r#"{{"type":"user","uuid":"{id}-{at}","parentUuid":null,"sessionId":"{id}","timestamp":"2026-08-01T10:00:00.000Z","message":{{"role":"user","content":"{words}"}}}}"#
        ) + "\n"
    };
    let path = folder.join(format!("{id}.jsonl"));
    fs::write(&path, said.iter().enumerate().map(record).collect::<String>()).unwrap();
    path
}

#[test]
fn an_index_of_many_sessions_comes_to_its_end_by_and_by() {
    const SESSIONS: usize = 1_000;
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    fs::create_dir(&files).unwrap();
    for n in 0..SESSIONS {
        write_session(&files, n, &["a plum"]);
    }
    let root = folder.path().join("store");
    let mut archive = imported(&root, slice::from_ref(&files));
    let found = |archive: &Archive, words: &str| {
        let pattern = Pattern::new(words, Words::Word, Case::Smart).unwrap();
        hits(archive, pattern).iter().map(|hit| hit.places.len()).sum::<usize>()
    };
    let (mut left, mut added, mut rounds) = (SESSIONS as u64, 0, 0);
    let mut pears = 0;
    loop {
        let most = AtomicUsize::new(400);
        let one_less = |most: usize| most.checked_sub(1);
        let goes_on = || most.fetch_update(Relaxed, Relaxed, one_less).is_ok();
        let mut all = 0;
        let done = verbs::index(&archive, &Exclude::default(), &goes_on, &mut |_, n| all = n);
        let done = done.unwrap();
        assert_eq!((found(&archive, "plum"), found(&archive, "pear")), (SESSIONS, pears));
        assert!(all <= left, "{all} of {left} are looked at in round {rounds}");
        assert_ne!(done.entries, 0);
        (added, rounds) = (added + done.entries, rounds + 1);
        if done.is_whole {
            break;
        }
        // One that was in it already goes on, and is looked at once more.
        left = all - 256 + 1;
        let grown = write_session(&files, rounds, &["a plum", "a pear"]);
        verbs::import(&mut archive, &[grown], &[], &mut |_| ()).unwrap();
        pears += 1;
    }
    assert_eq!((added, rounds), ((SESSIONS + pears) as u64, 4));
}
