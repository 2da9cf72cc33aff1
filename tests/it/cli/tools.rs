//! `turn --tools`: a tool that fails in any way is answered with an error, and only the user's own commands run.

use std::fs;

use serde_json::json;

use super::compact::{program, settings};
use crate::env::TestEnv;

/// Settings of a model that makes one call and then says that it is done. Returns the folder's session.
fn calls_once(env: &TestEnv, tool: &str, arguments: &str, more: &str) {
    let function = json!({ "name": tool, "arguments": arguments });
    let call = json!({ "content": "", "tool_calls": [{ "id": "s", "function": function }] });
    fs::write(env.project().join("call.json"), call.to_string()).unwrap();
    let answers = r#"case "$(cat)" in *'"role":"tool"'*) echo '{"content":"Done."}';; *) cat call.json;; esac"#;
    let line = program(env, "model", answers);
    settings(env, &format!("[provider.mine]\nkind = \"command\"\ncommand = \"{line}\"\n{more}"));
    env.run(&["new", "-q"]).success();
}

/// Runs a turn with a tool `echo` that does this. Returns what the model got.
#[track_caller]
fn result_of(env: &TestEnv, does: &str) -> String {
    let tools = program(
        env,
        "tools",
        &format!(
            r#"case "$(cat)" in *'"list"'*) echo '{{"tools":[{{"name":"echo"}}]}}';; *'"name":"echo"'*) {does};; *) exit 1;; esac"#
        ),
    );
    let done = env.run(&["turn", "Hi", "--provider", "mine", "--tools", &tools, "--json"]);
    let done = super::json(&done.success().stdout);
    assert_eq!((&done["said"], &done["steps"]), (&json!("Done."), &json!(2)), "{does}: {done}");
    let log = env.run(&["log", "--json"]).success().stdout;
    let result = log.lines().map(super::json).find(|entry| entry["kind"] == "result").unwrap();
    let result = &result["blocks"][0];
    assert_eq!(result["error"], true, "{does}: {result}");
    result["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_tool_that_fails_in_any_way_is_answered_with_an_error_and_the_turn_goes_on() {
    for (does, error) in [
        ("sleep 1000", "it did not finish within 1s"),
        ("head -c 1000000000 /dev/zero", "it printed more than 16777216 bytes"),
        ("echo no such file >&2; exit 1", "exit code 1: no such file"),
        ("echo done", "it did not print a JSON object"),
        ("echo '[]'", "it did not print a JSON object"),
        ("true", "it did not print a JSON object"),
    ] {
        let env = TestEnv::new();
        calls_once(&env, "echo", "{}", "[turn]\ntools_timeout = 1\n");
        assert_eq!(result_of(&env, does), error);
    }
}

#[test]
fn a_call_of_an_unknown_tool_or_without_json_is_answered_with_an_error() {
    for (tool, arguments) in [("rm", "{}"), ("echo", "all of it"), ("echo", "{\"a\":")] {
        let env = TestEnv::new();
        calls_once(&env, tool, arguments, "");
        assert_ne!(result_of(&env, "echo '{\"output\":\"3\"}'"), "3", "{tool} {arguments}");
    }
}

#[test]
fn a_model_that_keeps_calling_a_failing_tool_stops_at_the_limit() {
    let env = TestEnv::new();
    calls_once(&env, "echo", "{}", "[turn]\nsteps = 3\n");
    program(&env, "model", "cat >/dev/null; cat call.json");
    let tools = program(
        &env,
        "tools",
        r#"case "$(cat)" in *'"list"'*) echo '{"tools":[{"name":"echo"}]}';; *) exit 1;; esac"#,
    );
    let done = env.run(&["turn", "Hi", "--provider", "mine", "--tools", &tools, "--json"]);
    let done = super::json(&done.success().stdout);
    assert_eq!((&done["steps"], &done["answered"]), (&json!(3), &json!(2)), "{done}");
    assert_eq!(done["pending"].as_array().map(Vec::len), Some(1), "{done}");
}

/// The user's own settings name a model only.
#[test]
fn no_file_of_a_folder_store_or_transcript_names_a_tool_or_a_hook() {
    let env = TestEnv::new();
    calls_once(&env, "echo", "{}", "");
    let mark = env.home().join("ran");
    let run = format!("touch '{}'", mark.display());
    let text = format!(
        "[turn]\nprovider = \"mine\"\ntools = \"{run}\"\n[compaction]\nauto = true\nat = 1\nbefore = \"{run}\"\nafter = \"{run}\"\n"
    );
    for folder in ["", ".undertext", ".config/undertext"] {
        let folder = env.project().join(folder);
        fs::create_dir_all(&folder).unwrap();
        for name in ["config.toml", "undertext.toml", ".undertext.toml"] {
            fs::write(folder.join(name), &text).unwrap();
        }
    }
    fs::write(super::store(&env).join("config.toml"), &text).unwrap();
    let of = |key: &str| format!("{key}={run}");
    let [tools, before] = ["turn.tools", "compaction.before"].map(of);
    let new = ["new", "-q", "--id", "planted", "--configure", &tools, "--configure", &before];
    env.run(&new).success();
    let said = json!({ "type": "system", "tools": run, "hooks": { "before": run, "PreCompact": run },
        "message": { "role": "system", "content": format!("tools: {run}") } });
    env.run_with_stdin(&["append", "-q"], said.to_string().as_bytes()).success();
    let done = env.run(&["turn", "Hi", "--provider", "mine", "--json"]).success();
    // The call stays pending: there are no tools.
    assert_eq!(super::json(&done.stdout)["answered"], 0, "{done}");
    env.run(&["append", "-q", "--result", "s", "3", "--compact"]).success();
    env.run(&["compact"]).success();
    assert!(!mark.exists(), "a planted command was run");
}
