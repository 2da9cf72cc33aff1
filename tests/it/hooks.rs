//! The calls in agents' settings: put in and taken out again, every other byte stays.

use proptest::prelude::*;
use undertext::wire::{self, Call, Hooks};

fn agent(name: &str) -> &'static dyn Hooks {
    wire::by_name(name).unwrap().traits().hooks.unwrap()
}

fn call(program: &str) -> Call {
    let variables = vec![("HOME".to_owned(), "/home/ann".to_owned())];
    Call { program: program.to_owned(), variables }
}

/// Puts a call in, and another one in its place, and takes it out; returns the settings with the first.
#[track_caller]
fn round(name: &str, settings: Option<&[u8]>) -> Vec<u8> {
    let agent = agent(name);
    let on = agent.hooked(settings, &call("/bin/undertext")).unwrap();
    let shown = || String::from_utf8_lossy(&on).into_owned();
    assert_ne!(Some(on.as_slice()), settings);
    assert_eq!(agent.unhooked(&on).unwrap().as_deref(), settings, "{}", shown());
    let again = agent.hooked(Some(&on), &call("/bin/undertext")).unwrap();
    assert_eq!(again, on, "twice is once");
    let moved = agent.hooked(Some(&on), &call("/opt/it's here/undertext")).unwrap();
    assert_ne!(moved, on);
    assert_eq!(agent.unhooked(&moved).unwrap().as_deref(), settings, "{}", shown());
    on
}

/// Takes a call out of settings in which a person changed something meanwhile.
#[track_caller]
fn changed(name: &str, settings: &str, from: &str, to: &str, expected: &str) {
    let on = String::from_utf8(round(name, Some(settings.as_bytes()))).unwrap();
    assert!(on.contains(from), "{on}");
    let off = agent(name).unhooked(on.replacen(from, to, 1).as_bytes()).unwrap().unwrap();
    assert_eq!(String::from_utf8(off).unwrap(), expected);
}

#[test]
fn claude_code_gets_its_settings_back() {
    for settings in [
        "",
        "\n",
        " \r\n\t",
        "{}",
        "{}\n",
        "{ }",
        "{\n}\n",
        "\n {}",
        r#"{"hooks":{}}"#,
        r#"{"hooks": { } }"#,
        r#"{"hooks":{"Stop":[]}}"#,
        r#"{"hooks":{"Stop":[ ],"SessionEnd":[]},"a":1}"#,
        "{\n  \"model\": \"opus\",\n  \"hooks\": {}\n}\n",
        "{\n  \"hooks\": {\n    \"Stop\": []\n  },\n  \"model\": \"opus\"\n}",
        "{\r\n\t\"model\": \"opus\"\r\n}\r\n",
        "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"make\"}]}]}}",
        "{\n \"hooks\": {\n  \"Stop\": [\n   {\"matcher\": \"\", \"hooks\": [{\"type\": \"command\", \"command\": \"p='x'\"}]}\n  ]\n }\n}",
        "{\"env\":{\"A\":\"\\u00e9 \u{e9} }]\"},\"hooks\":{\"Notification\":[{\"hooks\":[]}]}}",
        "{\"hooks\":{\"Stop\":[]},\"hooks\":{\"Stop\":[1]}}",
    ] {
        round("claude", Some(settings.as_bytes()));
    }
    let made = String::from_utf8(round("claude", None)).unwrap();
    insta::assert_snapshot!(made, @r#"
    {
      "hooks": {
        "SessionStart": [
          {
            "hooks": [
              {
                "type": "command",
                "command": "p='/bin/undertext'; [ ! -x \"$p\" ] || /usr/bin/env -i HOME='/home/ann' \"$p\" hook claude >/dev/null 2>&1; :",
                "timeout": 10
              }
            ]
          }
        ],
        "Stop": [
          {
            "hooks": [
              {
                "type": "command",
                "command": "p='/bin/undertext'; [ ! -x \"$p\" ] || /usr/bin/env -i HOME='/home/ann' \"$p\" hook claude >/dev/null 2>&1; :",
                "timeout": 10
              }
            ]
          }
        ],
        "PreCompact": [
          {
            "hooks": [
              {
                "type": "command",
                "command": "p='/bin/undertext'; [ ! -x \"$p\" ] || /usr/bin/env -i HOME='/home/ann' \"$p\" hook claude >/dev/null 2>&1; :",
                "timeout": 10
              }
            ]
          }
        ],
        "SessionEnd": [
          {
            "hooks": [
              {
                "type": "command",
                "command": "p='/bin/undertext'; [ ! -x \"$p\" ] || /usr/bin/env -i HOME='/home/ann' \"$p\" hook claude >/dev/null 2>&1; :",
                "timeout": 10
              }
            ]
          }
        ]
      }
    }
    "#);
}

#[test]
fn what_a_person_changed_in_claude_codes_settings_stays() {
    let settings = "{\n  \"model\": \"opus\"\n}\n";
    let model = ("\"opus\"", "\"sonnet\"");
    changed("claude", settings, model.0, model.1, "{\n  \"model\": \"sonnet\"\n}\n");
    let theirs = r#"{ "type": "command", "command": "make" }, {"#;
    // Another command in the group of ours, and another group in the list of the event.
    let expected = |list: &str| {
        format!(
            "{{\n  \"model\": \"opus\",\n  \"hooks\": {{\n    \"SessionStart\": {list}\n  }}\n}}\n"
        )
    };
    let group = "{\n        \"hooks\": [\n          ";
    changed(
        "claude",
        settings,
        &format!("{group}{{"),
        &format!("{group}{theirs}"),
        &expected(&format!(
            "[\n      {group}{}\n        ]\n      }}\n    ]",
            &theirs[..theirs.len() - 3]
        )),
    );
    changed(
        "claude",
        settings,
        "\"SessionStart\": [\n      ",
        "\"SessionStart\": [\n      {\"hooks\":[]}, ",
        &expected("[\n      {\"hooks\":[]}\n    ]"),
    );
    // All but ours was taken out.
    let on = String::from_utf8(round("claude", Some(settings.as_bytes()))).unwrap();
    let on = on.replacen("\"model\": \"opus\",\n  ", "", 1);
    assert_eq!(agent("claude").unhooked(on.as_bytes()).unwrap(), None);
}

/// What a person had added to our line went with it when the call was taken out, and when it was put in a second time.
#[test]
fn what_a_person_added_to_a_call_of_claude_codes_stays() {
    let claude = agent("claude");
    let text = |settings: Option<Vec<u8>>| String::from_utf8(settings.unwrap()).unwrap();
    let on = |settings: &str, program: &str| {
        text(claude.hooked(Some(settings.as_bytes()), &call(program)).ok())
    };
    let off = |settings: &str| text(claude.unhooked(settings.as_bytes()).unwrap());
    let lines = |settings: &str| settings.matches("hook claude").count();
    let made = text(Some(round("claude", Some(b"{\"a\":1}"))));
    assert!(!claude.is_altered(made.as_bytes()));
    for (event, end) in made.match_indices("; :\"").map(|(at, _)| at + 3).enumerate() {
        let theirs = [&made[..end], " ; notify-send done", &made[end..]].concat();
        assert!(claude.is_altered(theirs.as_bytes()), "{event}");
        assert_eq!(on(&theirs, "/bin/undertext"), theirs, "it is a call like the others");
        let left = off(&theirs);
        assert_eq!((lines(&left), left.matches("notify-send").count()), (1, 1), "{left}");
        assert_eq!(on(&left, "/bin/undertext").matches("hook claude").count(), 4, "{left}");
        let moved = on(&theirs, "/opt/undertext");
        assert_eq!((lines(&moved), moved.matches("notify-send").count()), (5, 1), "{moved}");
        assert_eq!(on(&moved, "/opt/undertext"), moved);
        assert_eq!(off(&moved), left);
    }
    // A group with a matcher is theirs, and the line in it is ours.
    let matcher = made.replacen("{\"hooks\":[{", "{\"matcher\":\"startup\",\"hooks\":[{", 1);
    assert_ne!(matcher, made);
    assert!(!claude.is_altered(matcher.as_bytes()));
    assert_eq!(on(&matcher, "/bin/undertext"), matcher);
    let left = r#"{"a":1,"hooks":{"SessionStart":[{"matcher":"startup","hooks":[]}]}}"#;
    assert_eq!(off(&matcher), left);
}

#[test]
fn settings_that_are_none_are_refused() {
    let check = |name, settings: &[u8], why: &str| {
        let error = agent(name).hooked(Some(settings), &call("/bin/undertext")).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    };
    for (settings, why) in [
        ("[]", "not a JSON object"),
        ("{\"a\":1,}", "not a JSON object"),
        ("{\n// a comment\n}", "not a JSON object"),
        ("\u{feff}{}", "not a JSON object"),
        ("{\"hooks\":[]}", "\"hooks\" in it is not a section"),
        ("{\"hooks\":null}", "\"hooks\" in it is not a section"),
        ("{\"hooks\":{\"Stop\":{}}}", "\"Stop\" in it is not a list"),
    ] {
        check("claude", settings.as_bytes(), why);
    }
    check("codex", b"notify = \"make\"", "\"notify\" in it is not a list of strings");
    check("codex", b"notify = [1]", "\"notify\" in it is not a list of strings");
    check("codex", b"[notify]\na = 1", "\"notify\" in it is not a list of strings");
    check("codex", b"a = ", "not TOML");
    check("codex", b"\xff", "not text");
    check("pi", b"export default 1", "undertext did not create it");
    assert!(wire::by_name("kimi").unwrap().traits().hooks.is_none());
}

#[test]
fn codex_gets_its_settings_back() {
    for settings in [
        "",
        "\n",
        "# mine\n",
        "model = \"o3\"",
        "model = \"o3\"\n\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n",
        "\u{feff}model = \"o3\"\r\n",
        "notify = []\n",
        "notify = [ ]",
        "model = \"o3\"\nnotify = [\"say\", 'it\\s']  # aloud\n[a]\nnotify = 1\n",
        "notify=[\n  # the program\n  \"say\",\n  \"done\",\n]\n",
    ] {
        round("codex", Some(settings.as_bytes()));
    }
    let made = String::from_utf8(round("codex", None)).unwrap();
    insta::assert_snapshot!(made, @r#"
    notify = ["/bin/sh", "-c", "for e; do :; done; p='/bin/undertext'; [ ! -x \"$p\" ] || /usr/bin/env -i HOME='/home/ann' \"$p\" hook codex \"$e\" >/dev/null 2>&1; [ $# -lt 2 ] || exec \"$@\"", "undertext"]
    "#);
    let chained = round("codex", Some(b"notify = [\"say\", \"done\"]\n"));
    insta::assert_snapshot!(String::from_utf8(chained).unwrap(), @r#"
    notify = ["/bin/sh", "-c", "for e; do :; done; p='/bin/undertext'; [ ! -x \"$p\" ] || /usr/bin/env -i HOME='/home/ann' \"$p\" hook codex \"$e\" >/dev/null 2>&1; [ $# -lt 2 ] || exec \"$@\"", "undertext", "say", "done"]
    "#);
    changed("codex", "a = 1\n", "a = 1\n", "a = 2\n\n[b]\n", "a = 2\n\n[b]\n");
    changed(
        "codex",
        "notify = [\"say\"]\n",
        "\"say\"]",
        "\"say\", \"it\"]",
        "notify = [\"say\", \"it\"]\n",
    );
}

/// A formatter had laid the call out over several lines: what was left of it was a bracket, and the settings no TOML.
#[test]
fn codex_loses_a_call_in_whatever_layout() {
    let made = String::from_utf8(round("codex", None)).unwrap();
    let words: toml::Table = toml::from_str(&made).unwrap();
    let words = words["notify"].as_array().unwrap().iter();
    let words = words.map(|word| serde_json::json!(word.as_str().unwrap()).to_string());
    let [shell, option, script, name] = words.collect::<Vec<_>>().try_into().unwrap();
    let check = |before: &str, call: &str, behind: &str, left: &str| {
        let settings = format!("{before}{call}{behind}");
        let off = agent("codex").unhooked(settings.as_bytes()).unwrap().unwrap_or_default();
        let off = String::from_utf8(off).unwrap();
        assert!(toml::from_str::<toml::Table>(&off).is_ok(), "{off}");
        assert_eq!(off, left, "{settings}");
    };
    for call in [
        format!("notify = [{shell}, {option},\n  {script}, {name}\n]"),
        format!("notify = [\n {shell},\n {option}, {script}, {name} ]"),
        format!("\"notify\"=[\r\n{shell}\r\n,{option},{script},\r\n# of mine\r\n{name}\r\n]"),
        format!("  notify = [ {shell}, {option}, {script}, {name} # of mine\n, ]"),
    ] {
        check("", &call, "", "");
        check("\u{feff}", &call, " \r\n", "\u{feff}");
        check("a = 1\n", &call, "\nb = 2\n", "a = 1\nb = 2\n");
        check("# on\n", &call, "\t\n\n[c]\nd = 1", "# on\n\n[c]\nd = 1");
        check("a = 1\n", call.trim_start(), "# mine\n", "a = 1\n# mine\n");
    }
    let listed = format!("notify = [\n  {shell},\n  {option},\n  {script},\n  {name},\n]");
    check("", &listed, "\n", "notify = [\n  \n]\n");
}

/// A command at the end of the script was deleted without a word; one before it hid the call.
#[test]
fn what_a_person_added_to_a_call_of_codex_stays() {
    let call = call("/bin/undertext");
    for kept in [None, Some(&b""[..]), Some(b"notify = [\"say\"]\n")] {
        let made = String::from_utf8(agent("codex").hooked(kept, &call).unwrap()).unwrap();
        assert!(!agent("codex").is_altered(made.as_bytes()));
        for (from, to) in [
            ("exec \\\"$@\\\"", "exec \\\"$@\\\"; notify-send done"),
            ("for e;", "date >> /tmp/turns; for e;"),
            ("\"-c\"", "\"-ec\""),
            ("/bin/sh", "/bin/bash"),
            ("\"undertext\"", "\"mine\""),
        ] {
            let theirs = made.replacen(from, to, 1);
            assert_ne!(theirs, made);
            assert!(agent("codex").is_altered(theirs.as_bytes()), "{theirs}");
            let off = agent("codex").unhooked(theirs.as_bytes()).unwrap().unwrap();
            assert_eq!(String::from_utf8(off).unwrap(), theirs);
            let on = agent("codex").hooked(Some(theirs.as_bytes()), &call).unwrap();
            assert_eq!(String::from_utf8(on).unwrap(), theirs, "it makes the call already");
        }
    }
}

/// One that another version made, or with a comment, was somebody else's; without the call it was said to be none.
#[test]
fn pis_extension_is_known_whoever_changed_it() {
    let pi = agent("pi");
    let made = String::from_utf8(pi.hooked(None, &call("/bin/undertext")).unwrap()).unwrap();
    let (first, body) = made.split_once('\n').unwrap();
    let older = |first: &str| format!("{first}\n{body}");
    let added = [
        format!("{made}// Mine.\n"),
        format!("// Mine.\n{made}"),
        made.replacen("  try {", "  console.log(event);\n  try {", 1),
    ];
    let known = [
        "// Made by undertext, which deletes this file again unless it was changed.",
        "// Made by undertext, which deletes this file again and looks after nothing that is added to it.",
        "// Made by undertext 9.9",
        first,
    ];
    let changed = [
        made.replacen("tell(event, context)", "{ console.log(event); tell(event, context) }", 1),
        made.replace("\"turn_end\", ", ""),
        format!("{first}\n// Of another version.\n"),
        made.replace('\n', "\r\n"),
    ];
    // The extension, whether it makes the call, and whether it is as it was made.
    let all = (added.iter().map(|it| (it.clone(), true, false)))
        .chain(known.map(|first| (older(first), true, true)))
        .chain(changed.map(|it| (it, false, false)));
    for (there, is_current, is_made) in all {
        let there = there.as_bytes();
        let shown = String::from_utf8_lossy(there);
        assert_eq!(pi.unhooked(there).unwrap(), None, "{shown}");
        assert_eq!(pi.may_hold_more(there), !is_made, "{shown}");
        let on = pi.hooked(Some(there), &call("/bin/undertext")).unwrap();
        assert_eq!(on, if is_current { there } else { made.as_bytes() }, "{shown}");
        let moved = pi.hooked(Some(there), &call("/opt/undertext")).unwrap();
        assert_eq!(moved, pi.hooked(None, &call("/opt/undertext")).unwrap());
    }
    let theirs = b"export default () => {}";
    assert_eq!(pi.unhooked(theirs).unwrap().unwrap(), theirs);
    assert!(!pi.may_hold_more(theirs));
}

#[test]
fn the_program_that_is_called_is_read_out_of_settings() {
    for (name, settings) in [
        ("claude", None),
        ("claude", Some(&br#"{"hooks":{"Stop":[{"hooks":[{"command":"p='x'; make"}]}]}}"#[..])),
        ("codex", None),
        ("codex", Some(b"notify = [\"say\", \" hook codex\"]")),
        ("pi", None),
    ] {
        let agent = agent(name);
        assert_eq!(agent.programs(settings.unwrap_or_default()), [""; 0], "{name}");
        let program = "/opt/it's \"here\"/undertext";
        let on = agent.hooked(settings, &call(program)).unwrap();
        let mut programs = agent.programs(&on);
        programs.dedup();
        assert_eq!(programs, [program], "{name}");
    }
}

#[test]
fn pi_loses_its_extension() {
    let made = String::from_utf8(round("pi", None)).unwrap();
    insta::assert_snapshot!(made, @r#"
    // Made by undertext, which takes this file away again, and keeps a copy if it was changed.
    import { spawn } from "node:child_process";

    const program = "/bin/undertext";
    const variables = {"HOME":"/home/ann"};

    // Names the session's file; whatever fails is no affair of the session.
    function tell(event: string, context: any) {
      try {
        const file = context?.sessionManager?.getSessionFile?.();
        if (typeof file === "string") {
          const words = ["hook", "pi", JSON.stringify({ event, transcript_path: file })];
          const told = spawn(program, words, { env: variables, detached: true, stdio: "ignore" });
          told.on("error", () => {});
          told.unref();
        }
      } catch {}
    }

    export default function (pi: any) {
      for (const event of ["session_start", "session_compact", "turn_end", "agent_end", "session_shutdown"]) {
        pi.on(event, (_: unknown, context: any) => tell(event, context));
      }
    }
    "#);
}

/// Returns JSON values as a person may lay them out.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("-1.5e3".to_owned()),
        "[a-z\u{e9}\\]\\}, ]{0,6}".prop_map(|text| format!("\"{text}\"")),
        Just("\"a\\\"b\\\\\"".to_owned()),
    ];
    let blank = prop::sample::select(vec!["", " ", "\n", "\n  ", "\t", "\r\n "]);
    leaf.prop_recursive(3, 24, 4, move |inner| {
        let items = prop::collection::vec((blank.clone(), inner.clone(), blank.clone()), 0..4);
        let array = (items, blank.clone()).prop_map(|(items, end)| {
            let items: Vec<_> =
                items.into_iter().map(|(a, item, b)| format!("{a}{item}{b}")).collect();
            if items.is_empty() { format!("[{end}]") } else { format!("[{}]", items.join(",")) }
        });
        let key = prop::sample::select(vec!["Stop", "SessionEnd", "hooks", "a", "command"]);
        let fields = prop::collection::vec((blank.clone(), key, blank.clone(), inner), 0..4);
        let object = (fields, blank.clone()).prop_map(|(fields, end)| {
            let field = |(a, key, b, value): (&str, &str, &str, String)| {
                format!("{a}\"{key}\"{b}:{b}{value}{a}")
            };
            let fields: Vec<_> = fields.into_iter().map(field).collect();
            if fields.is_empty() {
                format!("{{{end}}}")
            } else {
                format!("{{{}}}", fields.join(","))
            }
        });
        prop_oneof![array, object]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::needs::rounds(100, 400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_settings_come_back(
        lead in prop::sample::select(vec!["", "\n", "\n  ", "\n\t", " "]),
        fields in prop::collection::vec((prop::sample::select(vec!["a", "hooks", "env"]), value()), 0..4),
        tail in prop::sample::select(vec!["", "\n", " \r\n"]),
    ) {
        let fields: Vec<String> =
            fields.into_iter().map(|(key, value)| format!("{lead}\"{key}\": {value}")).collect();
        let settings = format!("{{{}{tail}}}{tail}", fields.join(","));
        let claude = agent("claude");
        if let Ok(on) = claude.hooked(Some(settings.as_bytes()), &call("/bin/undertext")) {
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&on).is_ok());
            let off = claude.unhooked(&on).unwrap().unwrap();
            prop_assert_eq!(String::from_utf8(off).unwrap(), settings);
        }
    }
}
