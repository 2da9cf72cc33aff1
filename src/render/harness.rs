//! Text that an agent's program inserts into a conversation, wrapped in tags to mark what no person typed.
//!
//! ```text
//! <system-reminder>..</system-reminder>            only for the model: hidden from a reader
//! <bash-input>git fetch</bash-input>               a person typed it: ! git fetch
//! <command-name>/review</command-name><command-args>12</..>   /review 12
//! ```

use std::borrow::Cow;

use undertext::wire::{Heading, Report};

/// Tags around text that a reader wants to see.
const TELLING: [&str; 6] = [
    "note-from-later",
    "summary",
    "task-notification",
    "teammate-message",
    "subagent_notification",
    "user_query",
];
/// The tag around a program's text in the user's role.
const OWN: &str = "system";
/// The beginning of a message that an agent sent back to itself.
const MAIL: &str = "You just got a D-Mail";
/// Tags around the output of a command.
const PRINTED: [&str; 4] =
    ["bash-stdout", "bash-stderr", "local-command-stdout", "local-command-stderr"];
/// Tags around a program's additions to what a person typed.
const ASIDE: [&str; 3] = ["command-contents", "local-command-caveat", "system-reminder"];
/// Maximum width of a remark by the program.
const REMARK: usize = 100;

/// Returns a text as a person typed or saw it, without the program's tags. If there is text outside the tags, returns it
/// unchanged, because then somebody wrote about tags.
pub(crate) fn unwrap(text: &str) -> Cow<'_, str> {
    let Some(tags) = tags(text) else { return text.into() };
    if let [(OWN, inner)] = tags.as_slice() {
        return told(inner).unwrap_or(text).into();
    }
    let within = |tag: &str| tags.iter().find(|(name, _)| *name == tag).map(|(_, inner)| *inner);
    let mut typed = Vec::new();
    for (tag, inner) in &tags {
        match *tag {
            "bash-input" => typed.push(format!("! {inner}")),
            "command-name" => {
                let arguments = within("command-args").unwrap_or_default();
                typed.push(format!("{inner} {arguments}").trim_end().to_owned());
            }
            "command-message" if within("command-name").is_none() => {
                typed.push((*inner).to_owned());
            }
            "command-args" | "command-message" if within("command-name").is_some() => {}
            tag if PRINTED.contains(&tag) && inner.is_empty() => {}
            tag if PRINTED.contains(&tag) => typed.push((*inner).to_owned()),
            tag if ASIDE.contains(&tag) => {}
            _ => return text.into(),
        }
    }
    // Text by the program alone is left to `is_own`.
    let is_own = tags.iter().all(|(tag, _)| ASIDE.contains(tag));
    if is_own { text.into() } else { typed.join("\n").into() }
}

/// Returns a tool's output without the frame that the program adds to every output, and the exit code of a failed command.
pub(crate) fn output(text: &str) -> (Option<String>, Cow<'_, str>) {
    let error = text.trim().strip_prefix("<tool_use_error>");
    if let Some(error) = error.and_then(|text| text.strip_suffix("</tool_use_error>")) {
        return (None, error.into());
    }
    if let Some((code, output)) = reported(text) {
        return (code, output.into());
    }
    let Some(Heading { code, output, .. }) = Heading::of(text) else { return (None, text.into()) };
    let code = code.map(str::to_owned);
    match reported(output) {
        Some((inner, output)) => (inner.or(code), output.into()),
        None => (code, output.into()),
    }
}

/// Returns the output in a JSON report that has nothing else but the usual frame, and the exit code of a failed command.
fn reported(text: &str) -> Option<(Option<String>, String)> {
    let report = Report::of(text).filter(|report| report.is_plain)?;
    Some((report.code.map(|code| code.to_string()), report.output))
}

/// Returns the content of a program's own tag, if a person or the agent wrote it.
fn told(inner: &str) -> Option<&str> {
    let is_tagged = TELLING.iter().any(|tag| inner.starts_with(&format!("<{tag}>")));
    (is_tagged || inner.starts_with(MAIL)).then_some(inner)
}

/// Returns true if a text has nothing for a reader: it is empty or consists of tags.
pub(crate) fn is_own(text: &str) -> bool {
    let text = unwrap(text);
    tags(&text).is_some_and(|tags| tags.iter().all(|(tag, _)| !TELLING.contains(tag)))
}

/// Returns true if the program's text is a short remark rather than instructions for the model.
pub(crate) fn is_remark(text: &str) -> bool {
    let text = text.trim();
    !is_own(text) && !text.contains('\n') && text.chars().nth(REMARK).is_none()
}

/// Splits a text into tags and their trimmed content. Returns `None` if there is text outside the tags.
fn tags(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let open = rest.strip_prefix('<')?;
        let end = open.find(|c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c))?;
        let (name, open) = open.split_at(end);
        // Codex repeats the whole opening tag in the closing one: `</permissions instructions>`.
        let close = format!("</{name}");
        let is_whole = |at: &usize| {
            open.get(at + close.len()..).is_some_and(|behind| behind.starts_with(['>', ' ']))
        };
        let at = open.match_indices(&close).map(|(at, _)| at).find(is_whole)?;
        let (inner, behind) = open.split_at_checked(at).filter(|_| !name.is_empty())?;
        found.push((name, inner.split_once('>')?.1.trim()));
        rest = behind.split_once('>')?.1.trim_start();
    }
    Some(found)
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
        check("<bash-input>ls</bash-input><bash-stdout>a</bash-stdout>", "! ls\na");
        let caveat = "<local-command-caveat>not asked</local-command-caveat>\n";
        check(&format!("{caveat}{named}"), "/review");
        for said in [
            &format!("Why is only {named} shown?"),
            &format!("{named}\nand why"),
            &format!("{named}<b>word</b>"),
            "It types <bash-input>ls</bash-input>.",
            "<bash-input>ls</bash-input> types it",
            "<command-name>/review",
        ] {
            check(said, said);
        }
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
        check("Script completed\nWall time 0.1 seconds\nOutput:\n\none", None, "\none");
        for said in [
            r#"{"output":"all fine","error":"the disk is full"}"#,
            "error: link failed\nOutput:\na.out",
            "Wall time: 1 s\nerror: link failed\nOutput:\na.out",
            "Output",
        ] {
            check(said, None, said);
        }
        let nested = "Output:\n{\n".repeat(100_000);
        check(&nested, None, &nested["Output:\n".len()..]);
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
