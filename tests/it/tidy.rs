//! The architecture, checked by reading the sources: what may import what, and what no source holds.

use std::fs;
use std::path::{Path, PathBuf};

use undertext::wire::{self, Traits};

/// Folder, then the folders it may import: the table of the architecture, complete.
const LAYERS: [(&str, &[&str]); 29] = [
    ("json", &[]),
    ("cover", &["json"]),
    ("dag", &[]),
    ("model", &["json"]),
    ("settings", &[]),
    ("disk", &[]),
    ("trust", &["model", "disk"]),
    ("wire", &["model", "json", "dag"]),
    ("context", &["model", "json"]),
    ("store", &["model", "disk"]),
    ("provider", &["model", "json", "context", "secrets"]),
    ("live", &["model", "json", "wire", "disk"]),
    ("session", &["model", "json", "dag", "wire", "store"]),
    ("search", &["model", "json", "wire", "store", "session"]),
    ("secrets", &["model", "json", "cover"]),
    ("report", &["model", "wire", "context", "store", "session", "settings"]),
    (
        "archive",
        &["model", "json", "wire", "store", "session", "live", "disk", "report", "settings"],
    ),
    (
        "files",
        &[
            "model", "json", "wire", "store", "session", "live", "disk", "report", "settings",
            "archive",
        ],
    ),
    ("purge", &["model", "wire", "store", "session", "live", "disk", "report", "archive", "files"]),
    (
        "change",
        &[
            "model", "json", "wire", "store", "session", "live", "disk", "report", "archive",
            "files", "purge",
        ],
    ),
    (
        "redaction",
        &[
            "model", "json", "cover", "store", "session", "live", "disk", "report", "archive",
            "files", "purge", "change",
        ],
    ),
    (
        "intake",
        &[
            "model", "json", "wire", "store", "session", "live", "disk", "report", "archive",
            "files", "change",
        ],
    ),
    (
        "mend",
        &[
            "model", "wire", "store", "session", "live", "disk", "report", "settings", "archive",
            "files", "change",
        ],
    ),
    (
        "verbs",
        &[
            "model",
            "json",
            "cover",
            "dag",
            "wire",
            "context",
            "store",
            "session",
            "search",
            "secrets",
            "live",
            "disk",
            "report",
            "settings",
            "archive",
            "files",
            "purge",
            "change",
            "redaction",
            "intake",
            "mend",
        ],
    ),
    // These are the binary, which also imports the library, as `undertext::`.
    ("render", &[]),
    ("browse", &["render"]),
    ("page", &["render"]),
    ("serve", &[]),
    ("cli", &["render", "browse", "page", "serve"]),
];

/// Crate, then the paths under `src` that may import it.
const CRATES: [(&str, &[&str]); 23] = [
    ("aho_corasick", &["cover/secrets", "secrets"]),
    ("anyhow", &["cli"]),
    ("askama", &["page"]),
    ("axum", &["serve"]),
    ("base64", &["page"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("frizbee", &["browse"]),
    ("notify", &["disk/events"]),
    ("pulldown_cmark", &["page", "render/prose.rs"]),
    ("ratatui", &["browse"]),
    ("regex", &["cli", "context/facts.rs", "search"]),
    ("regex_automata", &["secrets"]),
    ("regex_syntax", &["search", "secrets"]),
    ("rusqlite", &["live/index", "store/sqlite"]),
    ("sha2", &["page"]),
    ("signal_hook", &["browse", "cli"]),
    ("terminal_size", &["cli"]),
    ("tiktoken", &["context/tokens"]),
    ("tokio", &["serve"]),
    ("unicode_normalization", &["search"]),
    ("ureq", &["provider"]),
];

#[test]
fn folders_import_downward_only() {
    let faults = sources().into_iter().flat_map(|(path, text)| {
        let faults = layer_of(&path).map(|layer| upward_imports(layer, &text)).unwrap_or_default();
        faults.into_iter().map(move |target| format!("{path} imports crate::{target}"))
    });
    none(faults);
}

#[test]
fn every_folder_has_its_place_in_the_table() {
    let folders = sources().into_iter().filter(|(path, _)| path.contains('/'));
    none(folders.filter(|(path, _)| layer_of(path).is_none()).map(|(path, _)| path));
}

#[test]
fn modules_do_not_reach_around_their_parent() {
    none(
        sources()
            .into_iter()
            .filter(|(_, text)| text.contains("super::super"))
            .map(|(path, _)| path),
    );
}

#[test]
fn crates_stay_where_they_belong() {
    let faults = sources().into_iter().flat_map(|(path, text)| {
        let strays =
            CRATES.iter().filter(|(_, homes)| !homes.iter().any(|home| path.starts_with(home)));
        let strays = strays.filter(|(name, _)| names_crate(&text, name));
        strays.map(|(name, _)| format!("{path} imports {name}")).collect::<Vec<_>>()
    });
    none(faults);
}

#[test]
fn every_file_says_what_it_owns() {
    let silent = sources().into_iter().chain(tests()).filter(|(_, text)| !text.starts_with("//!"));
    none(silent.map(|(path, _)| path));
}

#[test]
fn every_test_file_is_declared() {
    let texts: Vec<String> = tests().into_iter().map(|(_, text)| text).collect();
    let forgotten = tests().into_iter().filter(|(path, _)| {
        let path = Path::new(path.strip_suffix("/mod.rs").unwrap_or(path));
        let declaration = format!("mod {};", path.file_stem().unwrap().to_str().unwrap());
        path != Path::new("main.rs") && !texts.iter().any(|text| declares(text, &declaration))
    });
    none(forgotten.map(|(path, _)| path));
}

#[test]
fn no_source_holds_a_path_of_the_machine_it_was_written_on() {
    let own = [Some(env!("CARGO_MANIFEST_DIR")), option_env!("HOME"), option_env!("CARGO_HOME")];
    let own: Vec<&str> = own.into_iter().flatten().filter(|path| path.len() > 1).collect();
    let guilty = sources()
        .into_iter()
        .chain(tests())
        .filter(|(_, text)| own.iter().any(|path| text.contains(&format!("{path}/"))));
    none(guilty.map(|(path, _)| path));
}

#[test]
fn a_test_that_cannot_run_says_so() {
    let faults = tests().into_iter().flat_map(|(path, text)| {
        let faults = silent_returns(&path, &text).into_iter().map(str::to_owned);
        faults.map(move |line| format!("{path}: {line}")).collect::<Vec<_>>()
    });
    none(faults);
}

#[test]
fn command_lines_are_spelt_in_one_file() {
    // What the model reads in a result that was cut is no hint of a command.
    let elsewhere = ["cli/hint.rs", "context/cut.rs"];
    let sources = sources().into_iter().filter(|(path, _)| !elsewhere.contains(&path.as_str()));
    let faults = sources.flat_map(|(path, text)| {
        let spelt = |line: &&str| spells_a_command(line);
        let lines: Vec<String> = said(&text).lines().filter(spelt).map(str::to_owned).collect();
        lines.into_iter().map(move |line| format!("{path}: {}", line.trim()))
    });
    none(faults);
}

#[test]
fn the_json_of_an_answer_is_spelt_in_the_reports_only() {
    // What a tool is asked is no answer; what writes a report adds its type.
    let elsewhere = ["cli/turn.rs", "render/json.rs"];
    let faces = sources().into_iter().filter(|(path, _)| !elsewhere.contains(&path.as_str()));
    let faces = faces.filter(|(path, _)| path.starts_with("cli/") || path.starts_with("render/"));
    none(faces.filter(|(_, text)| spells_json(&said(text))).map(|(path, _)| path));
}

#[test]
fn agents_are_known_to_their_formats_only() {
    // Field names that the id of a line is made of; names of models and of providers; how a provider is told a
    // system's words.
    let elsewhere = [
        "model/line.rs",
        "context/overflow.rs",
        "context/sanitize.rs",
        "context/tokens.rs",
        "context/window.rs",
        "provider/anthropic.rs",
    ];
    let sources = sources().into_iter().filter(|(path, _)| !elsewhere.contains(&path.as_str()));
    let words = agents_words();
    let faults = sources.filter(|(path, _)| !path.starts_with("wire/")).flat_map(|(path, text)| {
        let faults = spelt_words(&said(&text), &words);
        faults.into_iter().map(move |line| format!("{path}: {line}"))
    });
    none(faults);
}

#[test]
fn the_help_of_an_import_names_every_agent() {
    let help = sources().into_iter().find(|(path, _)| path == "cli/import.rs").unwrap().1;
    let folders = wire::FORMATS.into_iter().flat_map(|format| format.traits().folders);
    let agents: Vec<&str> = folders.map(|folder| folder.agent).collect();
    assert!(agents.len() > wire::FORMATS.len());
    let unnamed = agents.into_iter().filter(|agent| !help.contains(agent));
    none(unnamed.map(str::to_owned));
}

#[test]
fn a_planted_fault_is_found() {
    let words = agents_words();
    let spells = |code: &str| !spelt_words(&said(code), &words).is_empty();
    assert!(spells("match format.name() {\n    \"claude\" => 1,"));
    assert!(spells("let path = home.join(\".codex/sessions\");"));
    assert!(spells("let words = note.strip_prefix(\"<system>\");"));
    assert!(spells("record.get(\"isSidechain\")"));
    assert!(spells("let why = \"Kimi CLI would empty it\";"));
    assert!(!spells("let why = \"an api of pixels\"; let claude = \"\";"));
    assert!(!spells("/// Returns `claude`.\nlet format = Claude; // \"codex\""));
    let silent = |text: &str| silent_returns("crash.rs", text).len();
    assert_eq!(silent("    if std::env::var_os(\"CORPUS\").is_none() {"), 1);
    let test = |body: &str| silent(&format!("#[test]\nfn it_works() {{\n{body}\n}}\n"));
    assert_eq!(test("    let Some(corpus) = corpus() else { return };"), 1);
    assert_eq!(test("    if !Path::new(\"/proc\").exists() {\n        return;\n    }"), 1);
    assert_eq!(test("    let Some(corpus) = needs::corpus() else { return };"), 0);
    assert_eq!(
        test("    if let Some(root) = needs::child() {\n        return go_on(&root);\n    }"),
        0
    );
    assert_eq!(silent("fn helper() {\n    return;\n}"), 0);
    let planted = |text: &str| said(text).lines().any(spells_a_command);
    assert!(planted("output.hint(\"take it back: undertext undo\");"));
    assert!(planted("error.hinted(format!(\"{NAME} undo\"))"));
    assert!(!planted("/// Runs `undertext undo`.\n//! undertext undo"));
    assert!(!planted("#[command(after_help = \"\\\n  undertext undo\")]\nlet x;"));
    assert!(planted(
        "#[command(after_help = \"\\\n  undertext log\")]\nlet x = \"undertext undo\";"
    ));
    assert!(spells_json("let fields = json!({ \"n\": 1 });"));
    assert!(spells_json("#[derive(Serialize)]\nstruct Shape {"));
    assert!(!spells_json("json::line(out, report)?;"));
    assert_eq!(upward_imports("dag", "use crate::store::Store;"), ["store"]);
    let group = "use crate::{\n    model::{Entry, Run},\n    provider::{self, http},\n};";
    assert_eq!(upward_imports("verbs", group), ["provider"]);
    assert_eq!(upward_imports("verbs", "use crate::{model, "), [""], "fails closed");
    assert_eq!(upward_imports("wire", "use crate::model::Entry; pub(crate) fn f() {}"), [""; 0]);
    assert_eq!(upward_imports("render", "crate::cli::env"), ["cli"]);
    assert!(names_crate("use clap::Args;", "clap"));
    assert!(!names_crate("use clap_complete::Shell;", "clap"));
    assert!(!names_crate("use myclap::Args;", "clap"));
    assert!(declares("mod env;\npub(crate) mod tidy;", "mod tidy;"));
    assert!(!declares("// mod tidy;", "mod tidy;"));
}

/// Returns what agents and their programs are called, where they keep sessions, and words that only their records have.
fn agents_words() -> Vec<String> {
    const RECORDS: [&str; 16] = [
        "_checkpoint",
        "_system_prompt",
        "compact_boundary",
        "event_msg",
        "firstKeptEntryId",
        "isCompactSummary",
        "isSidechain",
        "last-prompt",
        "leafUuid",
        "parentId",
        "parentUuid",
        "payload",
        "replacement_history",
        "response_item",
        "session_meta",
        "toolUseResult",
    ];
    let mut words: Vec<String> = RECORDS.map(str::to_owned).into();
    for format in wire::FORMATS {
        let Traits { name, programs, secrets, live_name, folders, note_opening, no_model, .. } =
            *format.traits();
        words.extend((name != "native").then(|| name.to_owned()));
        words.extend(
            [live_name, no_model, Some(note_opening)].into_iter().flatten().map(str::to_owned),
        );
        words.extend(programs.iter().chain(secrets).map(|&name| name.to_owned()));
        for folder in folders {
            words.extend(
                [Some(folder.agent), folder.usual].into_iter().flatten().map(str::to_owned),
            );
            words.extend(folder.variable.map(str::to_owned));
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the lines of code that spell one of these words in a text, capital letters or not.
fn spelt_words(code: &str, words: &[String]) -> Vec<String> {
    let spells = |text: &str, word: &str| {
        let (text, word) = (text.to_lowercase(), word.to_lowercase());
        let is_whole = |(at, _): (usize, &str)| {
            let end = at + word.len();
            !text[..at].ends_with(is_ident) && !text[end..].starts_with(is_ident)
        };
        text.match_indices(&word).any(is_whole)
    };
    let texts = |line: &str| -> Vec<String> {
        let line = line.split(" // ").next().unwrap_or_default();
        line.split('"').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let guilty =
        |line: &&str| texts(line).iter().any(|text| words.iter().any(|word| spells(text, word)));
    code.lines().filter(guilty).map(|line| line.trim().to_owned()).collect()
}

/// Returns the lines of a file of tests that look for what the machine has, and those in tests that return before the end
/// without a function of `needs`.
fn silent_returns<'a>(path: &str, text: &'a str) -> Vec<&'a str> {
    if matches!(path, "needs.rs" | "tidy.rs") {
        return Vec::new();
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut faults = Vec::new();
    let mut end_of_test = None;
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        if code == "#[test]" {
            end_of_test = Some(format!("{}}}", &line[..line.len() - code.len()]));
        } else if end_of_test.as_deref() == Some(*line) {
            end_of_test = None;
        }
        let said = lines[at.saturating_sub(2)..=at].iter().any(|line| line.contains("needs::"));
        // A return with a value is the return of a closure.
        let returns =
            end_of_test.is_some() && ["return;", "return }"].iter().any(|end| code.contains(end));
        if (returns && !said) || looks_at_the_machine(code) {
            faults.push(*line);
        }
    }
    faults
}

/// Returns whether code reads a variable that is not there on every machine.
fn looks_at_the_machine(code: &str) -> bool {
    ["env::var", "env::vars", "option_env!"].iter().any(|look| code.contains(look))
        && !code.contains("env::var_os(\"PATH\")")
}

/// Returns a source without comments, help texts and unit tests.
fn said(text: &str) -> String {
    let text = text.split("\nmod tests {").next().unwrap();
    let mut parts = text.split("after_help = \"");
    let first = parts.next().unwrap().to_owned();
    let code =
        parts.fold(first, |code, part| code + part.split_once("\")]").map_or("", |(_, code)| code));
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns whether a word is a command: it has a file, which says what it takes.
fn is_command(word: &str) -> bool {
    let sources = sources();
    let file = sources.iter().find(|(path, _)| *path == format!("cli/{word}.rs"));
    file.is_some_and(|(_, text)| text.contains("struct Args {"))
}

/// Returns whether a line of code spells a command line in a text.
fn spells_a_command(line: &str) -> bool {
    ["undertext ", "{NAME} "].iter().any(|name| {
        line.match_indices(name).any(|(at, _)| {
            let is_text = line[..at].contains('"');
            let word = leading_ident(&line[at + name.len()..]);
            // A store of undertext is called so too.
            is_text && word != "store" && is_command(word)
        })
    })
}

/// Returns whether code says which fields an object has.
fn spells_json(code: &str) -> bool {
    ["json!(", "Serialize"].iter().any(|word| code.contains(word))
}

/// Returns the folders outside what `layer` may import that a source imports all the same. Its tests may import any.
fn upward_imports(layer: &str, text: &str) -> Vec<String> {
    let text = text.split_once("\nmod tests {").map_or(text, |(code, _)| code);
    let allowed = LAYERS.iter().find(|(name, _)| *name == layer).unwrap().1;
    let targets = text.split("crate::").skip(1).flat_map(first_segments);
    targets
        .filter(|target| *target != layer && !allowed.contains(target))
        .map(str::to_owned)
        .collect()
}

/// Returns the modules that follow `crate::`: one, or those of a group in braces, whose own groups are left out.
fn first_segments(rest: &str) -> Vec<&str> {
    let Some(group) = rest.strip_prefix('{') else { return vec![leading_ident(rest)] };
    let mut depth = 1;
    let mut start = 0;
    let mut items = Vec::new();
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            ',' | '}' if depth == 1 => {
                items.push(leading_ident(group[start..at].trim_start()));
                start = at + 1;
                if c == '}' {
                    items.retain(|item| !item.is_empty());
                    return items;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    // A group without an end fails the check, because nothing is called "".
    vec![""]
}

fn leading_ident(rest: &str) -> &str {
    rest.split(|c: char| !is_ident(c)).next().unwrap_or("")
}

fn names_crate(text: &str, name: &str) -> bool {
    text.match_indices(&format!("{name}::")).any(|(at, _)| !text[..at].ends_with(is_ident))
}

fn declares(text: &str, declaration: &str) -> bool {
    text.lines().any(|line| matches!(line.strip_suffix(declaration), Some("" | "pub(crate) ")))
}

pub(crate) fn is_ident(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the folder right under `src` that a path lies in, if it is in the table.
fn layer_of(path: &str) -> Option<&'static str> {
    let (folder, _) = path.split_once('/')?;
    LAYERS.iter().map(|&(name, _)| name).find(|name| *name == folder)
}

#[track_caller]
pub(crate) fn none(faults: impl Iterator<Item = String>) {
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

pub(crate) fn sources() -> Vec<(String, String)> {
    rust_files("src")
}

fn tests() -> Vec<(String, String)> {
    rust_files("tests/it")
}

/// Returns path below `root` and text of each Rust file there.
fn rust_files(root: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
    let mut files = Vec::new();
    let mut left: Vec<PathBuf> = vec![root.clone()];
    while let Some(dir) = left.pop() {
        for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let below = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
                files.push((below, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}
