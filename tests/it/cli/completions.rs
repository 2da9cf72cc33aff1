//! Completions, as the shells themselves ask for them and insert them.

use std::fs;

use super::{conversation, store};
use crate::env::TestEnv;
use crate::needs;

/// Returns what bash offers for the last of these words, and what it prints besides.
fn in_bash(env: &TestEnv, words: &[&str], then: &str) -> (Vec<String>, String) {
    let script = r#"
        source <(undertext completions bash)
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
        # Bash hands over the word without the quote that it begins with.
        word=${COMP_WORDS[COMP_CWORD]#[\"\']}; before=${COMP_WORDS[COMP_CWORD - 1]}
        # A sign at which bash breaks words stands in the word that it completes, too.
        if [[ $before == @ ]]; then word=$before$word; fi
        _clap_complete_undertext undertext "$word" "$before"
        for reply in "${COMPREPLY[@]}"; do printf '%s\n' "$reply"; done
    "#;
    let mut bash = env.shell("bash", &format!("{script}\n{then}"));
    let output = bash.arg("bash").args(words).output().unwrap();
    let told = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (told(&output.stdout).lines().map(str::to_owned).collect(), told(&output.stderr))
}

/// Asserts what bash offers for the last of these words.
#[track_caller]
fn assert_offered(env: &TestEnv, words: &[&str], expected: &[&str]) {
    let (offered, told) = in_bash(env, words, "");
    assert_eq!(offered, expected, "{words:?}");
    assert_eq!(told, "", "{words:?}");
}

#[test]
fn bash_is_offered_what_the_store_holds() {
    let env = TestEnv::new();
    let session = conversation(&env);
    env.run(&["revert", "1"]).success();
    let short = &session[..8];
    assert_offered(&env, &["undertext", "swi"], &["switch"]);
    // A session of this folder, one whose id begins so, and one whose title does.
    assert_offered(&env, &["undertext", "log", ""], &[short]);
    assert_offered(&env, &["undertext", "log", &session[..3]], &[short]);
    assert_offered(&env, &["undertext", "log", &session[..12]], &[&session]);
    assert_offered(&env, &["undertext", "log", "-s", "Why"], &[r"Why\ does\ the\ build\ fail\?"]);
    assert_offered(&env, &["undertext", "log", r"Why\ does"], &[r"Why\ does\ the\ build\ fail\?"]);
    assert_offered(&env, &["undertext", "log", "Never"], &[]);
    for quote in ['"', '\''] {
        for typed in ["Why", "Why does t"] {
            let typed = format!("{quote}{typed}");
            assert_offered(&env, &["undertext", "log", &typed], &["Why does the build fail?"]);
        }
    }
    assert_offered(
        &env,
        &["undertext", "search", "x", "--role", ""],
        &["user", "assistant", "tool", "system"],
    );
    assert_offered(&env, &["undertext", "search", "x", "--sort", "t"], &["time"]);
    // Places and branches of the session that is named, or of the newest.
    let places = ["HEAD", "main", "main.1", "@1", "@0"];
    assert_offered(&env, &["undertext", "revert", ""], &places);
    assert_offered(&env, &["undertext", "revert", "-s", &session, ""], &places);
    assert_offered(&env, &["undertext", "show", "ma"], &["main", "main.1"]);
    assert_offered(&env, &["undertext", "switch", ""], &["main", "main.1"]);
    assert_offered(&env, &["undertext", "branch", "--hide", ""], &["main", "main.1"]);
    // Bash takes the sign of a checkpoint for a word of its own.
    assert_offered(&env, &["undertext", "revert", "@"], &["@1", "@0"]);
    assert_offered(&env, &["undertext", "revert", "@", "1"], &["@1"]);
    assert_offered(&env, &["undertext", "revert", "-s", &session, "@", "0"], &["@0"]);
    assert_offered(&env, &["undertext", "sessions", "--agent", "c"], &["claude", "codex"]);
    // An agent that calls no program cannot be set up.
    assert_offered(&env, &["undertext", "setup", ""], &["claude", "codex", "pi"]);
    assert_offered(&env, &["undertext", "revert", "--dr"], &["--dry-run"]);
    fs::write(env.project().join("it's a file.jsonl"), "").unwrap();
    assert_offered(&env, &["undertext", "log", "./it"], &[r"./it\'s\ a\ file.jsonl"]);
}

#[test]
fn where_nothing_can_be_read_nothing_is_offered_and_nothing_said() {
    let env = TestEnv::new();
    assert_offered(&env, &["undertext", "log", "x"], &[]);
    assert_offered(&env, &["undertext", "revert", "@"], &[]);
    assert!(!store(&env).exists());
    conversation(&env);
    let database = store(&env).join("store.db");
    fs::write(&database, b"no store").unwrap();
    assert_offered(&env, &["undertext", "log", "x"], &[]);
    assert_offered(&env, &["undertext", "switch", "m"], &[]);
}

#[test]
fn no_title_is_run_by_the_shell_into_which_it_is_inserted() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    let hurt = "Say $(touch hurt) `touch hurt` ; touch hurt & \\ ! \"'";
    env.run(&["append", "-q", "--role", "user", hurt]).success();
    let then = r#"eval "undertext log -n 1 ${COMPREPLY[0]}""#;
    let (offered, told) = in_bash(&env, &["undertext", "log", "Say"], then);
    assert_eq!(told, "");
    assert!(offered.last().unwrap().contains("touch hurt"), "{offered:?}");
    assert!(!env.project().join("hurt").exists());
    // Where a quote is open already, only what means nothing within it is offered.
    let (offered, _) = in_bash(&env, &["undertext", "log", "\"Say"], "");
    assert_eq!(offered, <[&str; 0]>::default());
}

#[test]
fn fish_is_offered_the_same_with_words_about_it() {
    let Some(fish) = needs::shell("fish") else { return };
    let env = TestEnv::new();
    let session = conversation(&env);
    let offered = |line: &str| {
        let script = format!("undertext completions fish | source; complete -C '{line}'");
        let output = env.shell(fish, &script).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(
        offered("undertext log "),
        format!("{}\tWhy does the build fail?, native, just now\n", &session[..8])
    );
    assert_eq!(offered("undertext revert @"), "@1\tThen mend it.\n@0\tWhy does the build fail?\n");
}

#[test]
fn zsh_is_offered_the_same_with_words_about_it() {
    let Some(zsh) = needs::shell("zsh") else { return };
    let env = TestEnv::new();
    conversation(&env);
    // What the completion system would be given.
    let script = "autoload -U compinit; compinit -D
        function _describe { shift 2; print -l ${(P)1} }
        eval \"$(undertext completions zsh)\"
        words=(undertext revert '@'); CURRENT=3
        _clap_dynamic_completer_undertext";
    let output = env.shell(zsh, script).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(told, "@1:Then mend it.\n@0:Why does the build fail?\n", "{output:?}");
}
