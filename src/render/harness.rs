//! Words that an agent's program puts into a conversation: wrapped in tags, as agents mark what no person typed.
//!
//! ```text
//! <system-reminder>..</system-reminder>            the program's own: nothing to a reader
//! <bash-input>git fetch</bash-input>               a person typed it: ! git fetch
//! <command-name>/review</command-name><command-args>12</..>   /review 12
//! ```

use std::borrow::Cow;

use serde_json::Value;

/// The tags around words that a reader wants to see.
const TELLING: [&str; 6] = [
    "note-from-later",
    "summary",
    "task-notification",
    "teammate-message",
    "subagent_notification",
    "user_query",
];
/// The tag around words that a program says in the user's place.
const OWN: &str = "system";
/// How a message begins that an agent sent back to itself.
const MAIL: &str = "You just got a D-Mail";
/// How many lines Codex says of a command before its output.
const REPORT: usize = 8;
/// How many columns a remark of the program has at most.
const REMARK: usize = 100;

/// Returns a text as a person typed or saw it, without the tags that a program put around it.
pub(crate) fn unwrap(text: &str) -> Cow<'_, str> {
    if let Some(input) = within(text, "bash-input") {
        return format!("! {input}").into();
    }
    if let Some(name) = within(text, "command-name") {
        let arguments = within(text, "command-args").unwrap_or_default();
        return format!("{name} {arguments}").trim_end().to_owned().into();
    }
    if let Some(message) = within(text, "command-message") {
        return message.into();
    }
    if let Some(told) = told(text) {
        return told.into();
    }
    let outputs = ["bash-stdout", "bash-stderr", "local-command-stdout", "local-command-stderr"];
    if outputs.iter().any(|tag| text.trim_start().starts_with(&format!("<{tag}>"))) {
        let said = outputs.iter().filter_map(|tag| within(text, tag));
        return said.filter(|said| !said.is_empty()).collect::<Vec<_>>().join("\n").into();
    }
    text.into()
}

/// Returns the output of a tool without what a program says of every one, and the exit code of a command that failed.
pub(crate) fn output(text: &str) -> (Option<String>, Cow<'_, str>) {
    let error = text.trim().strip_prefix("<tool_use_error>");
    if let Some(error) = error.and_then(|text| text.strip_suffix("</tool_use_error>")) {
        return (None, error.into());
    }
    if let Ok(Value::Object(report)) = serde_json::from_str(text)
        && let Some(output) = report.get("output").and_then(Value::as_str)
    {
        let code =
            report.get("exit_code").or(report.get("metadata").and_then(|m| m.get("exit_code")));
        let code = code.and_then(Value::as_i64).filter(|code| *code != 0);
        return (code.map(|code| code.to_string()), output.to_owned().into());
    }
    let mut rest = text;
    let mut code = None;
    for _ in 0..REPORT {
        let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
        if line.trim_end() == "Output:" {
            let (inner, output) = if behind.trim_start().starts_with('{') {
                self::output(behind)
            } else {
                (None, behind.into())
            };
            return (inner.or(code.map(str::to_owned)), output);
        }
        let told = ["Process exited with code ", "Exit code: "];
        code = code.or(told.iter().find_map(|told| line.strip_prefix(told)).filter(|n| *n != "0"));
        rest = behind;
    }
    (None, text.into())
}

/// Returns what the tag around a program's own words holds, if a person or the agent said it.
fn told(text: &str) -> Option<&str> {
    let inner = within(text, OWN).filter(|_| text.trim_start().starts_with(&format!("<{OWN}>")))?;
    let is_tagged = TELLING.iter().any(|tag| inner.starts_with(&format!("<{tag}>")));
    (is_tagged || inner.starts_with(MAIL)).then_some(inner)
}

/// Returns whether a text says nothing to a reader: it is empty, or tags hold all of it.
pub(crate) fn is_own(text: &str) -> bool {
    let text = unwrap(text);
    let mut rest = text.trim();
    while let Some(open) = rest.strip_prefix('<') {
        let end = open.find(|c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c));
        let (name, inner) = open.split_at(end.unwrap_or(open.len()));
        let Some((_, behind)) = inner.split_once(&format!("</{name}")) else { return false };
        if name.is_empty() || TELLING.contains(&name) {
            return false;
        }
        rest = behind.split_once('>').map_or("", |(_, rest)| rest).trim_start();
    }
    rest.is_empty()
}

/// Returns whether the program's words are a short remark, and not instructions for the model.
pub(crate) fn is_remark(text: &str) -> bool {
    let text = text.trim();
    !is_own(text) && !text.contains('\n') && text.chars().nth(REMARK).is_none()
}

/// Returns the text within a tag, trimmed.
fn within<'t>(text: &'t str, tag: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    Some(rest.split_once(&format!("</{tag}>"))?.0.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_words_lose_their_tags() {
        let check = |text: &str, plain: &str| assert_eq!(unwrap(text), plain);
        check("<bash-input>git fetch --all</bash-input>", "! git fetch --all");
        check("<bash-stdout>one</bash-stdout><bash-stderr>two</bash-stderr>", "one\ntwo");
        let command = "<command-message>review is running…</command-message>\n";
        let named = "<command-name>/review</command-name>";
        check(&format!("{command}{named}<command-args>12</command-args>"), "/review 12");
        check(&format!("{command}{named}"), "/review");
        check("a <b>word</b>", "a <b>word</b>");
        let note = "<note-from-later>\nx\n</note-from-later>";
        check(&format!("<system>{note}</system>"), note);
    }

    #[test]
    fn an_output_loses_what_is_said_of_every_one() {
        let check = |text: &str, code: Option<&str>, rest: &str| {
            assert_eq!(output(text), (code.map(str::to_owned), rest.into()));
        };
        let report = "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code ";
        check(&format!("{report}0\nOutput:\none\ntwo"), None, "one\ntwo");
        check(&format!("{report}2\nOutput:\n"), Some("2"), "");
        check("<tool_use_error>no file</tool_use_error>", None, "no file");
        check(r#"{"output":"one\ntwo","metadata":{"exit_code":1}}"#, Some("1"), "one\ntwo");
        check(&format!("{report}0\nOutput:\n{{\"output\":\"one\"}}"), None, "one");
        check(r#"{"other":"one"}"#, None, r#"{"other":"one"}"#);
        check("one\ntwo", None, "one\ntwo");
        check("1\n2\n3\n4\n5\n6\n7\n8\nOutput:\nx", None, "1\n2\n3\n4\n5\n6\n7\n8\nOutput:\nx");
    }

    #[test]
    fn tags_around_all_of_it_make_it_the_programs_own() {
        for own in [
            "",
            " \n",
            "<system-reminder></system-reminder>",
            "<bash-stdout></bash-stdout><bash-stderr></bash-stderr>",
            "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>",
            "<a_b c>x</a_b c>\n<d>y</d>",
            "<system>CHECKPOINT 3</system>",
        ] {
            assert!(is_own(own), "{own}");
        }
        for said in [
            "words",
            "<bash-input>ls</bash-input>",
            "<note-from-later>\nx\n</note-from-later>",
            "<system><note-from-later>\nx\n</note-from-later></system>",
            "<system>You just got a D-Mail from your future self. It says:\n\nx</system>",
            "<a>x</a> and words",
            "<a>x",
            "<<<",
        ] {
            assert!(!is_own(said), "{said}");
        }
    }
}
