//! Figures of truncation and its audit.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    Arguments, Made, PerProgram, bytes, compare_programs, folder, open, own, record, text, timed,
    within_programs,
};

/// The number of messages in a session to truncate. One in EVERY of them is a result that is too long.
const MESSAGES: usize = 5_000;
const EVERY: usize = 100;
/// The length of such a result and of any other message: 25 MB in total.
const LONG: usize = 350_000;
const SHORT: usize = 1_500;

/// The number of cut results in an audited session.
const CUT: usize = 10_000;

/// Returns the native record of a tool call.
fn call(id: &str, name: &str) -> Value {
    let message = json!({ "role": "assistant", "content": "" });
    json!({ "type": "tool_use", "message": message, "tool": { "id": id, "name": name, "input": {} } })
}

/// Returns the native record of a tool's result.
fn result(id: &str, output: &str) -> Value {
    let message = json!({ "role": "system", "content": "" });
    json!({ "type": "tool_result", "message": message, "toolResult": { "id": id, "output": output } })
}

/// Lets a program create a session of calls and results. Some results are long.
fn filled(program: &Path, store: &Path) -> Made {
    let said = |n: usize| match n % 4 {
        0 => record("user", &text(n, SHORT)),
        1 => call(&format!("c{n}"), "Bash"),
        2 => {
            let length = if n % EVERY == 2 { LONG } else { SHORT };
            result(&format!("c{}", n - 1), &text(n, length))
        }
        _ => record("assistant", &text(n, SHORT)),
    };
    let made = Made::begin(program, store);
    for from in (0..MESSAGES).step_by(500) {
        made.append(&[], (from..from + 500).map(said));
    }
    made
}

/// Returns the same session in a fresh copy of its store.
fn copied(made: &Made, to: &Path) -> Made {
    let _ = fs::remove_dir_all(to);
    assert!(Command::new("cp").arg("-a").args([&made.store, to]).status().unwrap().success());
    Made { store: to.to_owned(), ..made.clone() }
}

/// One process cuts 50 long results among 5,000 messages. The yardstick writes and syncs a file of the session's size.
pub(crate) fn truncate(_: &Arguments) {
    let folder = folder();
    let (copy, other) = (folder.path().join("copy"), folder.path().join("other"));
    let mut stores = PerProgram::new(filled);
    let content = fs::read(stores.of(own()).live()).unwrap();
    compare_programs(
        "truncate",
        3.0,
        7,
        ("cut", |program| copied(stores.of(program), &copy).run(&["truncate"])),
        ("write and sync", || {
            timed(|| {
                let mut file = fs::File::create(&other).unwrap();
                file.write_all(&content).unwrap();
                file.sync_all().unwrap();
            })
        }),
    );
    within_programs("truncate", Duration::from_millis(70), 7, |program| {
        copied(stores.of(program), &copy).run(&["truncate"])
    });
    let whole = stores.of(own());
    copied(whole, &copy).run(&["truncate"]);
    let before = open(&whole.store).store().sizes().unwrap();
    let after = open(&copy).store().sizes().unwrap();
    let grown = bytes(after.stored - before.stored) / bytes(content.len() as u64) * 100.0;
    println!(
        "truncate-size    {grown:.2}% (limit 1)   the store grows by {:.2} MB, the session has {:.1} MB",
        bytes(after.stored - before.stored) / 1e6,
        bytes(content.len() as u64) / 1e6,
    );
}

/// Lets a program create a session of results that are each cut on arrival.
fn cut(program: &Path, store: &Path) -> Made {
    let pair = |n: usize| {
        let id = format!("c{n}");
        [call(&id, "Read"), result(&id, &text(n, 2_600))]
    };
    let made = Made::begin(program, store);
    for from in (0..CUT).step_by(1_000) {
        made.append(&["--max-chars", "2000"], (from..from + 1_000).flat_map(pair));
    }
    let told = made.command(&["audit", "--json"]).stdout(Stdio::piped()).output().unwrap().stdout;
    // The last line is the total.
    assert_eq!(told.split_inclusive(|&byte| byte == b'\n').count(), CUT + 1);
    made
}

/// One process lists 10,000 cut results.
pub(crate) fn audit(_: &Arguments) {
    let mut stores = PerProgram::new(cut);
    within_programs("audit", Duration::from_millis(100), 9, |program| {
        stores.of(program).run(&["audit", "--json"])
    });
}
