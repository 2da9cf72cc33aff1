//! Figures of costs that must not grow with unrelated data. Each compares a process on much data with one on little.
//!
//! Sizes: 10,000 sessions come from several agents over some years, 100,000 is more than anyone has; 100,000 entries is the
//! longest session seen, 1,000,000 is more than any agent has written. No agent writes sessions of the bad shapes tested here, or
//! nests 1,000,000 levels deep.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    Arguments, LONG, PerProgram, Times, baseline, compare, compare_programs, folder, limited, own,
    plain::Agent, text, timed,
};

const FEW_SESSIONS: usize = 1_000;
const MANY_SESSIONS: usize = 100_000;
const FEW_ENTRIES: usize = 1_000;
const MANY_ENTRIES: usize = 100_000;
const MOST_ENTRIES: usize = 1_000_000;
/// Number of records that a session begins with.
const BEGUN: usize = 10;
/// Number of times a session grows by one record, as for an agent that is watched for some weeks.
const STEPS: usize = 3_000;
const DEPTH: usize = 1_000_000;

/// Runs a program over a store, and returns the elapsed time. A run that takes too long is killed.
pub(crate) fn run(program: &Path, store: &Path, args: &[&str]) -> Duration {
    let mut command = Command::new("timeout");
    command.arg(LONG.as_secs().to_string()).arg(program).args(["-q", "--store"]).arg(store);
    command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
    let mut code = None;
    let took = timed(|| code = command.status().unwrap().code());
    assert!(matches!(code, Some(0 | 124)), "{args:?}: {code:?}");
    took
}

/// Lets each program import sessions into its own store. `write` first writes them to a folder.
pub(crate) fn taken_in<'a>(write: impl Fn(&Path) + 'a) -> PerProgram<'a, PathBuf> {
    taken_in_steps(1, move |sessions, _| write(sessions))
}

/// Imports in steps. The sessions are written again before each one.
fn taken_in_steps<'a>(steps: usize, write: impl Fn(&Path, usize) + 'a) -> PerProgram<'a, PathBuf> {
    PerProgram::new(move |program, folder| {
        let (sessions, store) = (folder.join("sessions"), folder.join("store"));
        for step in 0..steps {
            write(&sessions, step);
            let mut command = Command::new(program);
            command.args(["-q", "--store"]).arg(&store).arg("import").arg(&sessions);
            let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
            assert!(status.success(), "{status}");
        }
        store
    })
}

/// Creates stores with this number of Claude Code sessions each.
pub(crate) fn of_sessions(count: usize) -> PerProgram<'static, PathBuf> {
    taken_in(move |sessions| {
        for seed in 0..count as u64 {
            let (session, records) = Agent::Claude.records(seed, 6);
            Agent::Claude.write(sessions, &session, &records);
        }
    })
}

/// Commands that look at a few of many Claude Code sessions, and shell completion of a word, against the same commands among few
/// sessions.
pub(crate) fn lists(_: &Arguments) {
    let (mut few, mut many) = (of_sessions(FEW_SESSIONS), of_sessions(MANY_SESSIONS));
    let (session, _) = Agent::Claude.records(7, 0);
    let rows: [(&str, &[&str]); 4] = [
        ("lists", &["sessions", "-n", "50"]),
        ("lists-id", &["log", &session, "-n", "1"]),
        ("lists-status", &["status", &session[..8]]),
        ("lists-sizes", &["store", "sizes"]),
    ];
    for (name, args) in rows {
        compare_programs(
            name,
            1.5,
            51,
            ("of 100,000 sessions", |program| run(program, many.of(program), args)),
            ("of 1,000", || run(own(), few.of(own()), args)),
        );
    }
    let (few, many) = (few.of(own()).clone(), many.of(own()).clone());
    let offered = |store: &Path, word: &str| {
        let mut command = Command::new(own());
        command.args(["--", "undertext", "--store"]).arg(store).args(["log", word]);
        command.env("UNDERTEXT_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "4");
        let mut offered = Vec::new();
        let took = timed(|| offered = command.output().unwrap().stdout);
        assert!(!offered.is_empty());
        took
    };
    for (name, word) in [("complete-id", &session[..session.len() - 1]), ("complete-any", "")] {
        limited(name, Duration::from_millis(20), 51, None, |_| offered(&many, word));
        compare(
            name,
            1.5,
            51,
            ("a session among 100,000", || offered(&many, word)),
            ("among 1,000", || offered(&few, word)),
        );
    }
}

/// The cost that looking for new session files adds to a list, in homes with many sessions: against a list without the look, or
/// against the baseline.
pub(crate) fn fresh(_: &Arguments) {
    const ROUNDS: usize = 51;
    for (count, folders, most) in [(1_000, 20, 3), (10_000, 200, 25)] {
        let home = || {
            let home = folder();
            for seed in 0..count {
                let (session, records) = Agent::Claude.records(seed, 6);
                let project = format!(".claude/projects/-srv-project-{}", seed % folders);
                Agent::Claude.write(&home.path().join(project), &session, &records);
            }
            home
        };
        // An older program does not open the store of a newer one.
        let [own_home, other_home] = [Some(home()), baseline().map(|_| home())];
        let list = |program: &Path, args: &[&str]| {
            let is_own = program == own();
            let home = if is_own { &own_home } else { &other_home }.as_ref().unwrap();
            let mut command = Command::new(program);
            command.env_clear().env("HOME", home.path()).current_dir(home.path());
            command.args(["sessions", "-n", "50"]).args(args);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            timed(|| assert!(command.status().unwrap().success()))
        };
        let other = || match baseline() {
            Some(baseline) => list(baseline, &[]),
            None => list(own(), &["--no-import"]),
        };
        list(own(), &[]);
        other();
        let (mut times, mut others) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            times.push(list(own(), &[]));
            others.push(other());
        }
        let (times, others) = (Times::of(times), Times::of(others));
        let more = |a: Duration, b: Duration| (a.as_secs_f64() - b.as_secs_f64()) * 1e3;
        println!(
            "fresh-{count:<10} {:.1} ms, {:.1} ms more (limit {most} ms)   {:?}, without the look {:?}, {ROUNDS} rounds",
            more(times.median(), others.median()),
            more(times.tenth(), others.tenth()),
            times.median(),
            others.median()
        );
    }
}

/// A command on a store's only session, a long one, against a short one.
fn of_lengths(name: &str, args: &[&str]) {
    for agent in Agent::ALL {
        let stores = |count: usize| {
            taken_in(move |sessions| {
                let (session, records) = agent.records(1, count);
                agent.write(sessions, &session, &records);
            })
        };
        let (mut few, mut many) = (stores(FEW_ENTRIES), stores(MANY_ENTRIES));
        let (session, _) = agent.records(1, 0);
        let args: Vec<&str> = args.iter().copied().chain([session.as_str()]).collect();
        compare_programs(
            &format!("{name}-{}", agent.name()),
            1.6,
            51,
            ("of 100,000 entries", |program| run(program, many.of(program), &args)),
            ("of 1,000", || run(own(), few.of(own()), &args)),
        );
    }
}

pub(crate) fn log(_: &Arguments) {
    of_lengths("log", &["log", "-n", "1"]);
}

pub(crate) fn status(_: &Arguments) {
    of_lengths("status", &["status"]);
}

/// Bends the records of a session, given the names of the id and parent fields.
type Bend = fn(&mut [Value], [&str; 2]);

/// Shapes that no agent writes but a file can have.
const SHAPES: [(&str, Bend); 4] = [
    ("late", |records, _| records.reverse()),
    ("wide", |records, [name, parent]| {
        let first = records[0][name].clone();
        records[1..].iter_mut().for_each(|record| record[parent] = first.clone());
    }),
    ("circle", |records, [name, parent]| {
        records[0][parent] = records.last().unwrap()[name].clone();
    }),
    ("one-name", |records, [name, parent]| {
        let first = records[0][name].clone();
        for record in records {
            (record[name], record[parent]) = (first.clone(), first.clone());
        }
    }),
];

/// Commands on a session in a bad shape, against its records in their original order.
pub(crate) fn shapes(_: &Arguments) {
    for agent in [Agent::Claude, Agent::Pi] {
        let (session, records) = agent.records(1, MANY_ENTRIES);
        let heading = usize::from(agent != Agent::Claude);
        let mut plain = taken_in(|sessions| agent.write(sessions, &session, &records));
        for (shape, bend) in SHAPES {
            let mut bent = records.clone();
            bend(&mut bent[heading..], agent.names());
            let mut bent = taken_in(|sessions| agent.write(sessions, &session, &bent));
            for command in ["graph", "log", "context", "status"] {
                compare_programs(
                    &format!("{shape}-{command}-{}", agent.name()),
                    3.0,
                    3,
                    ("of 100,000 entries", |program| {
                        run(program, bent.of(program), &[command, &session])
                    }),
                    ("in order", || run(own(), plain.of(own()), &[command, &session])),
                );
            }
        }
    }
}

/// Compares commands on an agent's session between two stores.
fn each_command(
    row: &str,
    agent: Agent,
    commands: &[(&str, &[&str])],
    (ours, stores): (&str, &mut PerProgram<'_, PathBuf>),
    (other, others): (&str, &mut PerProgram<'_, PathBuf>),
) {
    let (session, _) = agent.records(1, 0);
    for (name, args) in commands {
        let args: Vec<&str> = args.iter().copied().chain([session.as_str()]).collect();
        compare_programs(
            &format!("{row}-{name}-{}", agent.name()),
            1.5,
            21,
            (ours, |program| run(program, stores.of(program), &args)),
            (other, || run(own(), others.of(own()), &args)),
        );
    }
}

/// Commands on a session of 1,000,000 entries, against one of 1,000 with the same end after a compaction.
pub(crate) fn long(_: &Arguments) {
    const BEHIND: usize = 20;
    let commands: [(&str, &[&str]); 7] = [
        ("log-1", &["log", "-n", "1"]),
        ("log-500", &["log", "-n", "500"]),
        ("status", &["status"]),
        ("show", &["show", "HEAD"]),
        ("context", &["context"]),
        ("checkpoints", &["checkpoints", "-n", "20"]),
        ("append", &["append", "some words"]),
    ];
    for agent in Agent::ALL {
        let stores = |count| taken_in(move |sessions| agent.write_long(sessions, 1, count, BEHIND));
        let (mut few, mut many) = (stores(FEW_ENTRIES), stores(MOST_ENTRIES));
        let (ours, other) = (("of 1,000,000 entries", &mut many), ("of 1,000", &mut few));
        each_command("long", agent, &commands, ours, other);
    }
}

/// Commands on a session that grew one record at a time, against one imported at once.
pub(crate) fn steps(_: &Arguments) {
    let commands: [(&str, &[&str]); 5] = [
        ("log-1", &["log", "-n", "1"]),
        ("status", &["status"]),
        ("show", &["show", "HEAD"]),
        ("checkpoints", &["checkpoints", "-n", "20"]),
        ("append", &["append", "some words"]),
    ];
    for agent in Agent::ALL {
        let (session, records) = agent.records(1, STEPS + BEGUN);
        let mut once = taken_in(|sessions| agent.write(sessions, &session, &records));
        let mut grown = taken_in_steps(STEPS, |sessions, step| {
            agent.write(sessions, &session, &records[..=BEGUN + step]);
        });
        let (ours, other) = (("in 3,000 steps", &mut grown), ("at once", &mut once));
        each_command("steps", agent, &commands, ours, other);
    }
}

/// Commands on a session of 100,000 entries, against the usual tools on its file.
pub(crate) fn peers(_: &Arguments) {
    let agent = Agent::Claude;
    let (session, records) = agent.records(1, MANY_ENTRIES);
    let mut stores = taken_in(|sessions| agent.write(sessions, &session, &records));
    let file = stores.of(own()).with_file_name("sessions").join(format!("{session}.jsonl"));
    let commands: [(&str, f64, &[&str], &[&str]); 4] = [
        ("log-tail", 6.0, &["log", "-n", "500"], &["tail", "-n", "500"]),
        ("export-cat", 40.0, &["export"], &["cat"]),
        ("graph-jq", 1.0, &["graph"], &["jq", "-c", "."]),
        ("context-jq", 1.5, &["context"], &["jq", "-c", "."]),
    ];
    for (name, limit, args, peer) in commands {
        let args: Vec<&str> = args.iter().copied().chain([session.as_str()]).collect();
        let other = || {
            let mut command = Command::new(peer[0]);
            command.args(&peer[1..]).arg(&file).stdout(Stdio::null());
            timed(|| assert!(command.status().unwrap().success()))
        };
        compare_programs(
            name,
            limit,
            9,
            ("of 100,000 entries", |program| run(program, stores.of(program), &args)),
            (&peer.join(" "), other),
        );
    }
}

/// Truncates a session with a deeply nested result, against a flat result of the same size.
pub(crate) fn deep(_: &Arguments) {
    let folder = folder();
    let flat = format!("\"{}\"", "x".repeat(2 * DEPTH));
    let nested = format!("{}1{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    let (session, mut records) = Agent::Claude.records(1, 3);
    records.pop();
    records[1]["message"]["content"] =
        json!([{ "type": "tool_use", "id": "toolu_1", "name": "Read", "input": {} }]);
    let mut result = records[0].clone();
    result["parentUuid"] = records[1]["uuid"].clone();
    result["uuid"] = json!("00000000-0000-4000-8000-000000000001");
    result["message"]["content"] =
        json!([{ "type": "tool_result", "tool_use_id": "toolu_1", "content": text(1, 400_000) }]);
    let write = |sessions: &Path, nested: &str| {
        Agent::Claude.write(sessions, &session, &records);
        let path = sessions.join(format!("{session}.jsonl"));
        let line = result.to_string();
        let line = format!("{},\"toolUseResult\":{nested}}}\n", line.strip_suffix('}').unwrap());
        fs::write(&path, fs::read_to_string(&path).unwrap() + &line).unwrap();
    };
    let mut deep = taken_in(|sessions| write(sessions, &nested));
    let mut flat = taken_in(|sessions| write(sessions, &flat));
    let copy = folder.path().join("copy");
    let truncate = |program: &Path, store: &Path| {
        let _ = fs::remove_dir_all(&copy);
        assert!(Command::new("cp").arg("-a").args([store, &copy]).status().unwrap().success());
        run(program, &copy, &["truncate", &session])
    };
    compare_programs(
        "deep",
        3.0,
        9,
        ("a line 1,000,000 deep", |program| truncate(program, deep.of(program))),
        ("a flat one", || truncate(own(), flat.of(own()))),
    );
}
