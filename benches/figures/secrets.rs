//! Figures of finding secrets in a large store, and of redacting one.

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use crate::{Arguments, PerProgram, agents, bytes, compare, folder, own, timed, within_programs};

/// A word in few lines.
const RARE: &str = "segfault";

/// The rules. The yardstick searches for their keywords.
const RULES: [&str; 2] =
    [include_str!("../../src/secrets/own.toml"), include_str!("../../src/secrets/gitleaks.toml")];

/// Searches 1,000 MB of sessions for secrets, against an `rg` that only counts the lines with a rule's keyword. With the rules'
/// expressions, `rg` would take many minutes.
pub(crate) fn audit(arguments: &Arguments) {
    let folder = folder();
    let source = folder.path().join("sessions");
    let (files, size) = agents::sessions(arguments, &source);
    let (store, rules) = (folder.path().join("store"), folder.path().join("rules"));
    let mut import = Command::new(own());
    import.args(["-q", "--store"]).arg(&store).args(["import", "--detached"]).arg(&source);
    assert!(import.status().unwrap().success());
    let tables = RULES.map(|text| text.parse::<toml::Table>().unwrap());
    let all = tables.iter().flat_map(|table| table["rules"].as_array().unwrap());
    let all = all.filter_map(|rule| rule.get("keywords")?.as_array());
    let assigned = tables.iter().filter_map(|table| table.get("assigned")?.as_table());
    let assigned = assigned.flatten().filter_map(|(_, of)| of["name"].as_str());
    let called = all.flatten().filter_map(|keyword| keyword.as_str());
    let all: BTreeSet<&str> = called.chain(assigned.flat_map(|name| name.split('|'))).collect();
    let all: Vec<&str> = all.into_iter().collect();
    fs::write(&rules, all.join("\n")).unwrap();
    let ours = || {
        let mut audit = Command::new(own());
        audit.args(["-q", "--store"]).arg(&store).args(["audit", "--secrets", "--json"]);
        timed(|| {
            assert!(matches!(audit.output().unwrap().status.code(), Some(0 | 1)));
        })
    };
    let rate = bytes(size) / 1e6 / ours().as_secs_f64();
    println!("audit-secrets    {rate:.0} MB/s of {} MB", size / 1_000_000);
    if !agents::is_there("rg") {
        println!("                 no rg, and nothing to compare with");
        return;
    }
    let rg = || {
        let mut rg = Command::new("rg");
        rg.args(["-ciF", "-f"]).arg(&rules).args(&files);
        timed(|| {
            assert!(matches!(rg.output().unwrap().status.code(), Some(0 | 1)));
        })
    };
    compare("audit-secrets", 4.0, 3, ("audit --secrets", ours), ("rg -ciF -f", rg));
}

/// Redacts a word from 116 lines of a store with 1,000 MB of sessions.
pub(crate) fn redact(arguments: &Arguments) {
    let folder = folder();
    let source = folder.path().join("sessions");
    agents::sessions(arguments, &source);
    let mut stores = PerProgram::new(|program, store: &Path| {
        let mut import = Command::new(program);
        import.args(["-q", "--store"]).arg(store).args(["import", "--detached"]).arg(&source);
        assert!(import.status().unwrap().success());
        store.to_owned()
    });
    let copy = folder.path().join("copy");
    within_programs("redact", Duration::from_secs(5), 5, |program| {
        let store = stores.of(program).clone();
        let _ = fs::remove_dir_all(&copy);
        fs::create_dir(&copy).unwrap();
        for name in ["store.db", "store.db-wal", "store.witness"] {
            if store.join(name).exists() {
                fs::copy(store.join(name), copy.join(name)).unwrap();
            }
        }
        let mut redact = Command::new(program);
        redact.args(["-q", "--store"]).arg(&copy).args(["redact", "--yes"]);
        redact.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        timed(|| {
            let mut child = redact.spawn().unwrap();
            child.stdin.take().unwrap().write_all(RARE.as_bytes()).unwrap();
            assert!(child.wait().unwrap().success());
        })
    });
}
