//! Figures of finding a session again: which one `search` lists first, and its CPU time against that of `rg`.
//!
//! Each line of `queries.tsv` has a kind, a query, and the files of the corpus whose sessions answer it. The kinds are `terms`
//! (words of the session), `other` (its topic in other words), `phrase` (close to what somebody said) and `error` (from a tool's
//! output).
//!
//! Invariant: the program never sees sessions outside the corpus, because it runs in an empty home folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use undertext::verbs;

use crate::{
    Arguments,
    agents::{corpus, is_there},
    build, compare, folder, own,
    search::{COMMON, RARE},
};

/// Number of processes measured together, because the system counts CPU time in hundredths of a second.
const PROCESSES: u32 = 20;

/// Counts queries by the rank of the right answer.
#[derive(Default)]
struct Tally {
    queries: usize,
    first: usize,
    five: usize,
    empty: usize,
}

impl Tally {
    fn add(&mut self, answer: &[String], meant: &BTreeSet<String>) {
        let rank = answer.iter().position(|session| meant.contains(session));
        self.queries += 1;
        self.first += usize::from(rank == Some(0));
        self.five += usize::from(rank.is_some_and(|rank| rank < 5));
        self.empty += usize::from(answer.is_empty());
    }
}

fn program(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(own());
    command.env_clear().env("HOME", home).current_dir(home);
    command.args(["-q", "--store", "store"]).args(args);
    command
}

/// Returns the sessions in JSON lines of this type, each once, in order.
fn sessions(json: &[u8], line_type: &str) -> Vec<String> {
    let mut sessions = Vec::new();
    for line in serde_json::Deserializer::from_slice(json).into_iter::<Value>() {
        let line = line.unwrap();
        let session = line["session"].as_str().filter(|_| line["type"] == line_type);
        sessions.extend(session.map(str::to_owned).filter(|session| !sessions.contains(session)));
    }
    sessions
}

/// Searches for real sessions, and counts how often `search` lists the right one.
pub(crate) fn finding(_: &Arguments) {
    let Some(corpus) = corpus().map(|corpus| corpus.canonicalize().unwrap()) else { return };
    let home = folder();
    let home = home.path();
    let lines = include_str!("queries.tsv").lines();
    let queries: Vec<Vec<&str>> = lines.map(|line| line.split('\t').collect()).collect();
    let mut imported = BTreeMap::new();
    for file in queries.iter().flat_map(|query| query[2].split(',')) {
        imported.entry(file).or_insert_with(|| {
            let mut import = program(home, &["import", "--json"]);
            sessions(&import.arg(corpus.join(file)).output().unwrap().stdout, "imported")
        });
    }
    assert!(program(home, &["import"]).arg(&corpus).output().unwrap().status.success());
    let (mut all, mut kinds) = (Tally::default(), BTreeMap::<&str, Tally>::new());
    for query in &queries {
        let meant = query[2].split(',').flat_map(|file| imported[file].clone()).collect();
        assert_ne!(meant, BTreeSet::new(), "no session in {}", query[2]);
        let output = program(home, &["search", "--json", "--", query[1]]).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}: {}", query[1], output.status);
        let answer = sessions(&output.stdout, "hit");
        all.add(&answer, &meant);
        kinds.entry(query[0]).or_default().add(&answer, &meant);
    }
    let Tally { queries, first, five, empty } = all;
    println!(
        "finding          hit@1 {first} (at least 50), hit@5 {five} (at least 57), empty {empty} (limit 0) of {queries}"
    );
    let kinds = kinds.iter().map(|(kind, Tally { queries, first, five, empty })| {
        format!("{kind} {first}, {five}, {empty} of {queries}")
    });
    println!("                 {}", kinds.collect::<Vec<_>>().join("; "));
    let files = verbs::sources(&[corpus], &mut |_| ());
    for (limit, word) in [(1.0, RARE), (4.0, COMMON)].into_iter().filter(|_| is_there("rg")) {
        let (mut search, mut rg) = (program(home, &["search", word]), Command::new("rg"));
        rg.args(["-ci", word]).args(files.iter().map(|source| &source.path));
        let ours = (&*format!("search {word}"), || processor_time(&mut search));
        compare("finding-rg", limit, 5, ours, ("rg -ci", || processor_time(&mut rg)));
    }
}

/// Returns the CPU time of one run of a command.
fn processor_time(command: &mut Command) -> Duration {
    let before = build::used();
    for _ in 0..PROCESSES {
        command.stdout(Stdio::null()).status().unwrap();
    }
    build::used().saturating_sub(before) / PROCESSES
}
