//! Figures of taking a secret out of a large store.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use crate::{Arguments, PerProgram, agents, folder, timed, within_programs};

/// A word that few lines have.
const RARE: &str = "segfault";

/// Takes a word of 116 lines out of a store with 1,000 MB of sessions.
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
