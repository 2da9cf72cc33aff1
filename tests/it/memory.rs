//! Memory: what a long line costs, and what many short ones cost.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::needs;

const MEGABYTE: usize = 1 << 20;
const SESSION: &str = "00000000-0000-4000-8000-00000000000a";

/// Writes a session with a long line of about so many bytes, which compress little, between short ones.
fn session(path: &Path, length: usize) {
    let noise = (0..length as u64).map(|n| {
        let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        char::from(b'0' + u8::try_from((mixed ^ mixed >> 29) % 64).unwrap()).to_ascii_lowercase()
    });
    let noise: String = noise.map(|c| if c == '\\' { '/' } else { c }).collect();
    let record = |n: usize, role: &str, text: &str| {
        let parent = if n == 1 { "null".to_owned() } else { format!("\"u{}\"", n - 1) };
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"sessionId\":\"{SESSION}\",\
             \"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\"content\":\"{text}\"}},\"uuid\":\"u{n}\",\
             \"timestamp\":\"2026-01-01T00:00:0{n}.000Z\"}}\n"
        )
    };
    let lines = [
        record(1, "user", "hello"),
        record(2, "assistant", "hello"),
        record(3, "user", &noise),
        record(4, "assistant", "that was long"),
    ];
    fs::write(path, lines.concat()).unwrap();
}

/// Runs a command and prints the most memory that it had, in kilobytes. It has one processor, so that how far one thread gets
/// ahead of another does not depend on who else is busy.
const RUN: &str = "
import os, resource, subprocess, sys
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
bare = {'HOME': os.getcwd(), 'MALLOC_ARENA_MAX': '1'}
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, env=bare)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
";

/// Runs a command over a store and returns the most memory that it had, as the system counts it to its end.
fn peak(python: &str, store: &Path, args: &[&str]) -> usize {
    let mut command = Command::new(python);
    command.args(["-c", RUN, env!("CARGO_BIN_EXE_undertext"), "-q", "--store"]).arg(store);
    command.args(args).current_dir(store.parent().unwrap());
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).unwrap().trim().parse::<usize>().unwrap() * 1024
}

#[test]
fn a_long_line_costs_two_and_a_half_times_its_length_to_keep_and_three_times_to_show() {
    let Some(python) = needs::python() else { return };
    let lengths = [8 * MEGABYTE, 32 * MEGABYTE];
    let folder = tempfile::tempdir().unwrap();
    let peaks = lengths.map(|length| {
        let folder = folder.path().join(length.to_string());
        fs::create_dir(&folder).unwrap();
        let (file, store, out) = (folder.join("a.jsonl"), folder.join("store"), folder.join("out"));
        session(&file, length);
        let peaks = [
            vec!["import", file.to_str().unwrap()],
            vec!["export", SESSION, "-o", out.to_str().unwrap()],
            vec!["verify"],
            vec!["log", SESSION],
        ]
        .map(|args| (args[0].to_owned(), peak(python, &store, &args)));
        assert!(fs::read(&out).unwrap() == fs::read(&file).unwrap());
        peaks
    });
    let [short, long] = peaks;
    for ((command, short), (_, long)) in short.into_iter().zip(long) {
        let grown = long.saturating_sub(short);
        // What is shown of a line has to be unescaped once more.
        let halves = if command == "log" { 6 } else { 5 };
        let limit = halves * (lengths[1] - lengths[0]) / 2 + 8 * MEGABYTE;
        println!("{command}: {} MB, {} MB", short / MEGABYTE, long / MEGABYTE);
        assert!(grown <= limit, "{command} had {short} bytes, then {long}");
        assert!(long <= 3 * lengths[1] + 200 * MEGABYTE, "{command} had {long} bytes");
    }
}

#[test]
fn a_short_line_costs_little_more_than_its_id_and_its_place() {
    // This one and the next take minutes.
    let Some(()) = needs::sweep() else { return };
    let Some(python) = needs::python() else { return };
    let counts = [80_000, 200_000];
    for line in ["{\"a\":1}\n", "no object\n"] {
        let folder = tempfile::tempdir().unwrap();
        let peaks = counts.map(|count| {
            let file = folder.path().join(format!("{count}.jsonl"));
            session(&file, 1);
            let mut text = fs::read_to_string(&file).unwrap();
            text.push_str(&line.repeat(count));
            fs::write(&file, text).unwrap();
            let store = folder.path().join(count.to_string());
            [
                vec!["import", file.to_str().unwrap()],
                vec!["verify"],
                vec!["store", "rebuild", SESSION],
            ]
            .map(|args| (args.clone(), peak(python, &store, &args)))
            .map(|(args, peak)| (args[..args.len().min(2)].join(" "), peak))
        });
        let [few, many] = peaks;
        for ((command, few), (_, many)) in few.into_iter().zip(many) {
            let each = many.saturating_sub(few) / (counts[1] - counts[0]);
            let (few, many) = (few / MEGABYTE, many / MEGABYTE);
            println!("{line:?}: {command}: {few} MB, {many} MB, {each} bytes a line");
            assert!(each <= 400, "{command}: {each} bytes for each line {line:?}");
        }
    }
}

#[test]
fn an_entry_costs_little_to_take_in_to_draw_to_list_and_to_write_as_a_document() {
    let Some(()) = needs::sweep() else { return };
    let Some(python) = needs::python() else { return };
    // Both have more bytes than are kept at hand.
    let counts = [80_000, 200_000];
    let folder = tempfile::tempdir().unwrap();
    let peaks = counts.map(|count| {
        let file = folder.path().join(format!("{count}.jsonl"));
        let store = folder.path().join(count.to_string());
        let said = |n: usize| {
            let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
            let parent = if n == 0 { "null".to_owned() } else { format!("\"u{}\"", n - 1) };
            let words = "words of a message that nobody will read ".repeat(4);
            format!(
                "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"sessionId\":\"{SESSION}\",\
                 \"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\"id\":\"m{n}\",\"content\":\"{words}{n}\"}},\
                 \"uuid\":\"u{n}\",\"timestamp\":\"2026-01-01T00:00:00.000Z\"}}\n"
            )
        };
        fs::write(&file, (0..count).map(said).collect::<String>()).unwrap();
        let asked: [&[&str]; 5] = [
            &["import", file.to_str().unwrap()],
            &["graph", SESSION],
            &["checkpoints", SESSION],
            &["export", SESSION],
            &["export", SESSION, "--as", "markdown"],
        ];
        asked.map(|args| peak(python, &store, args))
    });
    let limits =
        [("import", 600), ("graph", 700), ("checkpoints", 450), ("export", 300), ("markdown", 600)];
    for (n, (command, limit)) in limits.into_iter().enumerate() {
        let each = peaks[1][n].saturating_sub(peaks[0][n]) / (counts[1] - counts[0]);
        println!("{command}: {each} bytes an entry");
        assert!(each <= limit, "{command} had {each} bytes for each entry");
    }
}
