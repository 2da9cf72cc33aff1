//! The figure of pages: how long one of a long session takes, and how large it is.

use std::{fmt::Write as _, fs, path::Path, process::Command, time::Duration};

use serde_json::{Value, json};

use crate::{Arguments, bytes, folder, own, timed, within_programs};

/// The number of entries, and the most bytes of their page.
const ENTRIES: usize = 10_000;
const LARGEST: u64 = 5_000_000;
/// How many entries a turn has.
const TURN: usize = 40;

/// Writes the page of a session of Claude Code: prompts, answers, commands with long results, and edits.
pub(crate) fn page(_arguments: &Arguments) {
    let folder = folder();
    let (source, target) = (folder.path().join("long.jsonl"), folder.path().join("long.html"));
    fs::write(&source, session()).unwrap();
    let export = |program: &Path| {
        let mut export = Command::new(program);
        export.arg("-q").arg("--store").arg(folder.path().join("store")).arg("export");
        export.arg(&source).args(["--as", "html", "--force", "-o"]).arg(&target);
        timed(|| assert!(export.status().unwrap().success()))
    };
    export(own());
    let size = fs::metadata(&target).unwrap().len();
    println!("page             {:.1} MB (limit {:.0})", bytes(size) / 1e6, bytes(LARGEST) / 1e6);
    within_programs("page", Duration::from_secs(3), 3, export);
}

fn session() -> String {
    let mut session = String::new();
    for n in 0..ENTRIES {
        let (turn, at) = (n / TURN, n % TURN);
        let (role, content) = match at {
            0 => ("user", json!(format!("Look at bed {turn}. Is it dry?"))),
            _ if at == TURN - 1 => {
                ("assistant", json!(format!("Bed {turn} is **watered**.\n\n- one\n- two\n")))
            }
            _ if at % 2 == 1 => ("assistant", json!([call(n)])),
            _ => ("user", json!([answer(n)])),
        };
        let parent = n.checked_sub(1).map(name);
        let record = json!({
            "parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": "/garden",
            "sessionId": name(ENTRIES), "version": "2.1.0", "type": role, "uuid": name(n),
            "message": {"role": role, "content": content, "id": format!("msg_{n}")},
            "timestamp": format!("2026-01-{:02}T{:02}:{:02}:{:02}.000Z", 1 + n / 3600 / 24, n / 3600 % 24, n / 60 % 60, n % 60),
        });
        writeln!(session, "{record}").unwrap();
    }
    session
}

fn name(n: usize) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

fn call(n: usize) -> Value {
    let (name, input) = match n / 2 % 3 {
        0 => ("Bash", json!({"command": format!("water --bed {n} --minutes 3")})),
        1 => ("Read", json!({"file_path": format!("/garden/src/bed{n}.rs")})),
        _ => (
            "Edit",
            json!({"file_path": "/garden/src/bed.rs", "old_string": format!("let dry = {n};\nlet wet = 1;"),
                "new_string": format!("let dry = {};\nlet wet = 1;", n + 1)}),
        ),
    };
    json!({"type": "tool_use", "id": format!("toolu_{n}"), "name": name, "input": input})
}

fn answer(n: usize) -> Value {
    let lines =
        (0..60).map(|at| format!("log {at}: bed {} was watered for {at} minutes\n", at * 7 % 13));
    let text: String = lines.collect();
    json!({"type": "tool_result", "tool_use_id": format!("toolu_{}", n - 1), "content": text})
}
