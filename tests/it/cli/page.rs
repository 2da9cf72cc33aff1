//! Pages: what `export` writes as HTML, and what is not in it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use base64::Engine as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::env::TestEnv;
use crate::needs;

const ID: &str = "8f14e45f-ceea-467f-a26a-5dba2f5b6d35";
const KEY: &str = "ghp_R2kq8vTz0LmXw5YbN3cJ7dHs9fGaPe1uVi4o";
/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A record of Claude Code: its number, the number before it, its role and its content.
fn record(n: u32, parent: Option<u32>, role: &str, content: &Value) -> String {
    let name = |n: u32| format!("00000000-0000-4000-8000-{n:012}");
    let record = json!({
        "parentUuid": parent.map(name), "isSidechain": false, "userType": "external",
        "cwd": "/home/ada/code", "sessionId": ID, "version": "2.1.0", "type": role,
        "message": {"role": role, "content": content, "id": format!("msg_{n}")},
        "uuid": name(n), "timestamp": format!("2026-01-01T00:{:02}:{:02}.000Z", n / 60, n % 60),
    });
    format!("{record}\n")
}

/// Writes a session file of records that follow each other, and returns its path.
fn session(env: &TestEnv, records: &[(&str, Value)]) -> PathBuf {
    let records = records.iter().enumerate().map(|(n, (role, content))| {
        let n = u32::try_from(n).unwrap();
        record(n, n.checked_sub(1), role, content)
    });
    let path = env.project().join("talk.jsonl");
    fs::write(&path, records.collect::<String>()).unwrap();
    path
}

fn call(id: &str, name: &str, input: &Value) -> Value {
    json!([{"type": "tool_use", "id": id, "name": name, "input": input}])
}

fn result(id: &str, text: &str) -> Value {
    json!([{"type": "tool_result", "tool_use_id": id, "content": text}])
}

/// Exports the session, and returns its page and what was said about it.
fn page(env: &TestEnv, args: &[&str]) -> (String, String) {
    let all = [&["export", "talk.jsonl", "-o", "talk.html", "--force"], args].concat();
    let said = env.run(&all).success();
    (fs::read_to_string(env.project().join("talk.html")).unwrap(), said.stderr)
}

/// A session with one of everything that a shared page leaves out.
fn private(env: &TestEnv) {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}});
    let thinking = json!([{"type": "thinking", "thinking": "SECRETTHOUGHT", "signature": "SIGNATURE"}, {"type": "text", "text": "I look."}]);
    let lines: Vec<String> = (1..=30).map(|n| format!("line{n}x")).collect();
    let thirty = lines.join("\n");
    let records = [
        record(
            0,
            None,
            "user",
            &json!([{"type": "text", "text": format!("Deploy with {KEY} from /home/ada/code, ask ada@example.org")}, image]),
        ),
        record(1, Some(0), "assistant", &thinking),
        record(2, Some(1), "user", &json!("REVERTEDPROMPT")),
        record(3, Some(2), "assistant", &json!("REVERTEDANSWER")),
        record(4, Some(1), "user", &json!("Print the environment")),
        record(5, Some(4), "assistant", &call("t1", "Bash", &json!({"command": "cat .env"}))),
        record(6, Some(5), "user", &result("t1", "DUMPEDVALUE=1")),
        record(
            7,
            Some(6),
            "assistant",
            &call(
                "t2",
                "Write",
                &json!({"file_path": "/home/ada/code/.env", "content": "WRITTENVALUE=2"}),
            ),
        ),
        record(8, Some(7), "user", &result("t2", "written")),
        record(9, Some(8), "assistant", &call("t3", "Bash", &json!({"command": "seq 30"}))),
        record(10, Some(9), "user", &result("t3", &thirty)),
        record(11, Some(10), "assistant", &json!("Done.")),
    ];
    fs::write(env.project().join("talk.jsonl"), records.concat()).unwrap();
}

#[test]
fn hidden_is_absent_unless_asked_for() {
    let env = TestEnv::new();
    private(&env);
    let (text, said) = page(&env, &[]);
    let kept = ["I look.", "Print the environment", "line20x", "Done.", "$ cat .env"];
    for it in kept {
        assert!(text.contains(it), "{it}");
    }
    let hidden = [
        KEY,
        "/home/ada",
        "ada@",
        "SECRETTHOUGHT",
        "SIGNATURE",
        "REVERTED",
        "DUMPEDVALUE",
        "WRITTENVALUE",
        "line21x",
        PIXEL,
        "\u{f8f0}",
        "\u{f8f1}",
    ];
    for it in hidden {
        assert!(!text.contains(it), "{it}");
    }
    for words in [
        "1 reverted turn, 1 thought, 1 picture, 2 environments or key files",
        "Masked: github-pat, ",
        "Masked: home folder, ",
        "Masked: e-mail, ",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(text.contains("left out by the author"));
    let check = |args: &[&str], words: &str| {
        assert!(page(&env, args).0.contains(words), "{args:?} has no {words}");
    };
    check(&["--thinking"], "SECRETTHOUGHT");
    check(&["--reverted"], "REVERTEDANSWER");
    check(&["--images"], &format!("data:image/png;base64,{PIXEL}"));
    check(&["--tools", "full"], "line30x");
    check(&["--no-mask"], KEY);
    check(&["--no-mask"], "WRITTENVALUE");
    let (text, _) = page(&env, &["--tools", "none"]);
    assert!(!text.contains("line1x") && !text.contains("seq 30") && text.contains("3 calls"));
    let (text, _) = page(&env, &["--from", "@2"]);
    assert!(!text.contains("Deploy with") && text.contains("Print the environment"));
    let (text, _) = page(&env, &["--to", "@0"]);
    assert!(text.contains("I look.") && !text.contains("Done."));
}

#[test]
fn every_form_takes_the_same_choices() {
    let env = TestEnv::new();
    private(&env);
    for form in ["markdown", "json", "html"] {
        let export = |args: &[&str]| {
            let all = [&["export", "talk.jsonl", "--as", form], args].concat();
            env.run(&all).success().stdout
        };
        let text = export(&["--tools", "short"]);
        for it in [
            KEY,
            "SECRETTHOUGHT",
            "SIGNATURE",
            "REVERTED",
            "DUMPEDVALUE",
            "WRITTENVALUE",
            "line21x",
        ] {
            assert!(!text.contains(it), "{form}: {it}");
        }
        assert!(text.contains("line20x") && text.contains("10 more lines"), "{form}");
        assert!(export(&["--thinking"]).contains("SECRETTHOUGHT"), "{form}");
        assert!(export(&["--reverted"]).contains("REVERTEDANSWER"), "{form}");
        assert!(!export(&["--tools", "none"]).contains("seq 30"), "{form}");
        assert!(!export(&["--to", "@0"]).contains("Done."), "{form}");
    }
}

#[test]
fn a_page_is_a_private_file_that_loads_nothing_and_is_not_replaced() {
    let env = TestEnv::new();
    session(
        &env,
        &[("user", json!("Hello")), ("assistant", json!("**Hi** [x](https://a.example/)"))],
    );
    let (text, _) = page(&env, &[]);
    let out = env.project().join("talk.html");
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
    let again = env.run(&["export", "talk.jsonl", "-o", "talk.html"]);
    assert_eq!((again.code(), fs::read_to_string(&out).unwrap()), (Some(2), text.clone()));
    let within = |tag: &str| {
        let (_, rest) = text.split_once(&format!("<{tag}>")).unwrap();
        rest.split_once(&format!("</{tag}>")).unwrap().0
    };
    for tag in ["style", "script"] {
        let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(within(tag)));
        assert!(text.contains(&format!("{tag}-src &#39;sha256-{hash}&#39;")), "{tag}");
        assert_eq!(text.matches(&format!("<{tag}")).count(), 1);
    }
    assert!(text.contains("default-src &#39;none&#39;"));
    for loads in [" src=", "<link rel=\"stylesheet", "<iframe", "<base", "@import", "url("] {
        assert!(!text.contains(loads), "{loads}");
    }
    assert!(text.contains("<strong>Hi</strong> <a href=\"https://a.example/\" rel=\"noopener noreferrer nofollow\">x</a>"));
    assert!(within("script").len() < 8_000, "the script has {} bytes", within("script").len());
}

#[test]
fn a_hostile_conversation_does_nothing() {
    let env = TestEnv::new();
    let hostile = "</title></style></script><script>alert(1)</script><svg onload=alert(1)>\
        <img src=x onerror=alert(1)>\n\n<style>*{display:none}</style>\n\n[a](javascript:alert(1)) \
        [b](data:text/html,<script>) ![c](https://evil.example/x.png) <https://ok.example>\n\n\
        <javascript:alert(1)> \u{202e}abc \x1b]0;t\x07 \" onmouseover=\"alert(1) ' `</code>`\n\n\
        ```\" onclick=\"x\n</pre><script>\n```\n[masked: x]: javascript:alert(1)\n&lt;script&gt;";
    let broken = json!([{"type": "image", "source": {"type": "base64", "media_type": "image/svg+xml", "data": "\"><script>"}},
        {"type": "image", "source": {"type": "url", "url": "https://evil.example/y.png"}}, {"type": "text", "text": hostile}]);
    session(
        &env,
        &[
            ("user", broken),
            (
                "assistant",
                json!([{"type": "thinking", "thinking": hostile, "signature": ""}, {"type": "text", "text": hostile}]),
            ),
            (
                "assistant",
                call(
                    hostile,
                    hostile,
                    &json!({"file_path": hostile, "old_string": hostile, "new_string": "x"}),
                ),
            ),
            ("user", result(hostile, hostile)),
            ("assistant", call("t2", "Bash", &json!({"command": hostile}))),
            ("user", result("t2", hostile)),
        ],
    );
    let (text, _) = page(&env, &["--thinking", "--images", "--tools", "full"]);
    assert_eq!(text.matches("<script").count(), 1, "only the page's own");
    assert_eq!((text.matches("<style").count(), text.matches("<svg").count()), (1, 0));
    for tag in [
        "<img",
        "javascript:alert(1)\"",
        "href=\"data:text",
        "evil.example/x.png\"",
        "\u{202e}",
        "\x1b",
    ] {
        assert!(!text.contains(tag), "{tag}");
    }
    let body = text.split_once("<body").unwrap().1;
    let tags = body.split('<').filter_map(|part| Some(part.split_once('>')?.0));
    for tag in tags.take_while(|tag| *tag != "script") {
        let is_handler =
            tag.split_whitespace().any(|word| word.starts_with("on") && word.contains('='));
        assert!(!is_handler && !tag.contains("style="), "<{tag}>");
    }
}

#[test]
fn a_line_of_fifty_megabytes_is_a_page_of_a_few() {
    let env = TestEnv::new();
    let long = "<b>x</b> ".repeat(50_000_000 / 9);
    session(
        &env,
        &[
            ("user", json!("Go")),
            ("assistant", call("t1", "Bash", &json!({"command": "yes"}))),
            ("user", result("t1", &long)),
            ("assistant", json!(long)),
        ],
    );
    let (text, _) = page(&env, &["--tools", "full"]);
    assert!(text.len() < 8_000_000, "{}", text.len());
}

#[test]
fn several_sessions_make_an_index() {
    let env = TestEnv::new();
    session(&env, &[("user", json!("One")), ("assistant", json!("1"))]);
    let other = fs::read_to_string(env.project().join("talk.jsonl")).unwrap();
    let other = other.replace(ID, "c9f0f895-fb98-4b91-8f2a-3c5b6d7e8f90").replace("One", "Two");
    fs::write(env.project().join("other.jsonl"), other).unwrap();
    let said = env.run(&["export", "talk.jsonl", "other.jsonl", "-o", "all.html"]).success();
    assert!(said.stderr.contains("Wrote an index"), "{said}");
    let index = fs::read_to_string(env.project().join("all.html")).unwrap();
    for id in [ID, "c9f0f895-fb98-4b91-8f2a-3c5b6d7e8f90"] {
        assert!(index.contains(&format!("href=\"all-{id}.html\"")), "{index}");
        assert!(env.project().join(format!("all-{id}.html")).exists());
    }
}

#[test]
fn choices_are_for_documents() {
    let env = TestEnv::new();
    session(&env, &[("user", json!("One"))]);
    let said = env.run(&["export", "talk.jsonl", "--thinking"]);
    assert_eq!(said.code(), Some(2), "{said}");
    assert!(said.stderr.contains("--as html, markdown or json"), "{said}");
    assert_eq!(env.run(&["export", "talk.jsonl", "-o", "x.md", "--review"]).code(), Some(2));
}

#[test]
fn every_session_of_the_corpus_is_a_page() {
    let Some(corpus) = needs::corpus() else { return };
    let env = TestEnv::new();
    for folder in ["claude", "claude-shapes", "codex", "kimi", "pi"] {
        for path in corpus.files(folder) {
            let said = env.run(&[
                "export",
                path.to_str().unwrap(),
                "--as",
                "html",
                "--reverted",
                "--thinking",
            ]);
            if said.stdout.is_empty() {
                continue;
            }
            let text = said.stdout;
            assert!(text.ends_with("</html>\n"), "{}", path.display());
            assert!(!text.contains(['\u{f8f0}', '\u{f8f1}', '\x1b']), "{}", path.display());
            let mut ids: Vec<&str> = text
                .match_indices(" id=\"")
                .filter_map(|(at, _)| text[at + 5..].split('"').next())
                .collect();
            let all = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), all, "{}: an id is there twice", path.display());
        }
    }
}
