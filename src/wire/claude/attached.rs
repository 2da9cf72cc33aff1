//! Attachments: the text that the program sends for one, each text in a reminder of its own.
//!
//! Recorded from Claude Code 2.1.329 with small test files; the text about sub-agents is that of 2.1.332. Text of the program
//! that does not depend on the record (modes, hints about its tools) is not known here, nor is any other class. Providers know
//! neither.
//!
//! ```text
//! hook_success {hookName, hookEvent, content}                only for the session start and prompts, if there is output
//! hook_additional_context {hookName, content: [..]}          each part on a line
//! hook_blocking_error {hookName, blockingError: {..}}        with the command
//! hook_stopped_continuation {hookName, message}
//! async_hook_response {response: {systemMessage, ..}}        a reminder for each part
//! other hook_..                                              nothing
//! file {filename, content: {file}, truncated?}               as if a tool had read it
//! directory {path, content}                                  as if a tool had listed it
//! ```

use std::fmt::Write as _;

use serde_json::json;

use super::reminder::{reminder, unclosed};
use crate::{
    json::Raw,
    wire::fields::{shown, string, text},
};

/// How many characters of the selected lines are sent.
const SELECTED: usize = 2_000;

/// Appended to news that needs no answer.
const AMBIENT: &str = "\n\nThis is ambient context \u{2014} do not narrate it to the user unless they ask or it is \
                       directly relevant to their request.";

/// Returns the texts sent for an attachment; None if the record is not one or its class is not known here.
pub(super) fn texts(record: Raw<'_>) -> Option<Vec<String>> {
    let [class, attachment] = record.pick(["type", "attachment"]);
    if class?.text()? != "attachment" {
        return None;
    }
    let attachment = attachment?;
    let class = text(attachment, "type")?;
    let words = if class.starts_with("hook_") || class.starts_with("async_hook_") {
        hook(attachment, &class)?
    } else {
        match class.as_str() {
            "file" => file(attachment)?,
            "directory" => directory(attachment)?,
            "already_read_file"
            | "batching_reminder_sent"
            | "command_permissions"
            | "dynamic_skill" => Vec::new(),
            _ => vec![told(attachment, &class)?],
        }
    };
    Some(words.iter().map(|words| reminder(words)).collect())
}

/// Returns the texts for the outcome of a hook.
fn hook(attachment: Raw<'_>, class: &str) -> Option<Vec<String>> {
    let [name, event, content] = attachment.pick(["hookName", "hookEvent", "content"]);
    let (name, event) = (string(name).unwrap_or_default(), string(event).unwrap_or_default());
    let said = |what: &str, words: &str| vec![format!("{name} hook {what}: {}", unclosed(words))];
    Some(match class {
        "hook_success" => {
            let content = string(content).unwrap_or_default();
            let is_sent = matches!(event.as_str(), "SessionStart" | "UserPromptSubmit");
            if is_sent && !content.is_empty() { said("success", &content) } else { Vec::new() }
        }
        "hook_additional_context" => {
            let parts: Vec<String> = content
                .into_iter()
                .flat_map(Raw::items)
                .filter_map(|part| string(Some(part)))
                .collect();
            if parts.is_empty() {
                Vec::new()
            } else {
                said("additional context", &parts.join("\n"))
            }
        }
        "hook_blocking_error" => {
            let [error, command] =
                attachment.get("blockingError")?.pick(["blockingError", "command"]).map(string);
            let what = format!("blocking error from command: \"{}\"", command?);
            said(&what, &error?)
        }
        "hook_stopped_continuation" => said("stopped continuation", &text(attachment, "message")?),
        "async_hook_response" => {
            let response = attachment.get("response")?;
            let [message, more] = response.pick(["systemMessage", "hookSpecificOutput"]);
            let more = more.and_then(|more| text(more, "additionalContext"));
            [string(message), more].into_iter().flatten().map(|words| unclosed(&words)).collect()
        }
        "hook_non_blocking_error"
        | "hook_error_during_execution"
        | "hook_cancelled"
        | "hook_system_message"
        | "hook_permission_decision" => Vec::new(),
        _ => return None,
    })
}

/// Returns the texts for a file that the user mentioned: a call that reads it, and the result.
fn file(attachment: Raw<'_>) -> Option<Vec<String>> {
    let [name, content, truncated] = attachment.pick(["filename", "content", "truncated"]);
    let name = string(name)?;
    let content = content.filter(|content| text(*content, "type").as_deref() == Some("text"))?;
    let [lines, first] = content.get("file")?.pick(["content", "startLine"]);
    let (lines, first) = (string(lines)?, first.and_then(Raw::u64).unwrap_or(1));
    let mut found = String::new();
    for (n, line) in (first..).zip(lines.split('\n')) {
        let _ = write!(found, "\n{n}\t{line}");
    }
    if lines.is_empty() {
        let empty = "Warning: the file exists but the contents are empty.";
        found = format!("\n<system-reminder>{empty}</system-reminder>");
    }
    let mut words = called("Read", &json!({ "file_path": name }).to_string(), &found);
    if truncated.and_then(Raw::bool) == Some(true) {
        words.push(format!(
            "Note: The file {name} was too large and has been truncated to the first 2000 lines. No need to mention the \
             truncation. Use Read to read more of the file if you need."
        ));
    }
    Some(words)
}

/// Returns the texts for a folder that the user mentioned: a call that lists it, and the result.
fn directory(attachment: Raw<'_>) -> Option<Vec<String>> {
    let [path, content] = attachment.pick(["path", "content"]).map(string);
    let (path, found) = (path?, format!("\n{}", content?));
    let about = format!("Lists files in {path}");
    let input = json!({ "command": format!("ls {path}"), "description": about }).to_string();
    Some(called("Bash", &input, &found))
}

fn called(tool: &str, input: &str, found: &str) -> Vec<String> {
    vec![
        format!("Called the {tool} tool with the following input: {input}"),
        format!("Result of calling the {tool} tool:{found}"),
    ]
}

/// Returns the text of an attachment that consists of one text.
fn told(attachment: Raw<'_>, class: &str) -> Option<String> {
    let field = |key| text(attachment, key);
    Some(match class {
        "total_tokens_reminder" | "silent_turn_reminder" => field("text")?,
        "critical_system_reminder" => field("content")?,
        "read_truncation_notice" => field("banner")?
            .replace("<system-reminder>", "&lt;system-reminder&gt;")
            .replace("</system-reminder>", "&lt;/system-reminder&gt;"),
        "date_change" => format!(
            "The date has changed. Today's date is now {}. No need to announce the new date \u{2014} the user's own clock \
             shows it.",
            field("newDate")?
        ),
        "nested_memory" => {
            let memory = text(attachment.get("content")?, "content")?;
            format!("Contents of {}:\n\n{memory}", field("path")?)
        }
        "edited_text_file" => {
            let (name, snippet) = (field("filename")?, field("snippet")?);
            let changes = if snippet.is_empty() {
                "The changes are not shown here; use Read if you need the current content."
                    .to_owned()
            } else {
                format!("Here are the relevant changes (shown with line numbers):\n{snippet}")
            };
            format!(
                "Note: {name} changed on disk since you last read it. That's usually deliberate, so take it as the current \
                 state rather than reverting it; if the change looks wrong, say so rather than undoing it yourself \u{2014} \
                 otherwise no need to call it out. {changes}"
            )
        }
        "compact_file_reference" => format!(
            "Note: {} was read before the last conversation was summarized, but the contents are too large to include. Use \
             Read tool if you need to access it.",
            field("filename")?
        ),
        "selected_lines_in_ide" => selected(attachment)?,
        "opened_file_in_ide" => format!(
            "The user opened the file {} in the IDE. This may or may not be related to the current task.",
            field("filename")?
        ),
        "plan_file_reference" => format!(
            "A plan file exists from plan mode at: {}\n\nPlan contents:\n\n{}\n\nIf this plan is relevant to the current work \
             and not already complete, continue working on it.",
            field("planFilePath")?,
            field("planContent")?
        ),
        "skill_listing" => format!(
            "The following skills are available for use with the Skill tool:\n\n{}",
            field("content")?
        ),
        "mcp_instructions_delta" => instructions(attachment),
        "agent_listing_delta" => agents(attachment),
        _ => return None,
    })
}

/// Returns the text for lines that the user selected.
fn selected(attachment: Raw<'_>) -> Option<String> {
    let [first, last, name, lines] =
        attachment.pick(["lineStart", "lineEnd", "filename", "content"]);
    let (first, last, lines) = (shown(first?), shown(last?), string(lines)?);
    let lines = match lines.char_indices().nth(SELECTED) {
        Some((end, _)) => format!("{}\n... (truncated)", lines.get(..end)?),
        None => lines,
    };
    Some(format!(
        "The user selected the lines {first} to {last} from {}:\n{lines}\n\nThis may or may not be related to the current \
         task.",
        string(name)?
    ))
}

fn lists(attachment: Raw<'_>, keys: [&str; 2]) -> [Vec<String>; 2] {
    attachment.pick(keys).map(|list| {
        let items = list.into_iter().flat_map(Raw::items);
        items.filter_map(|item| string(Some(item))).collect()
    })
}

/// Returns the text about kinds of sub-agents that were added and removed.
fn agents(attachment: Raw<'_>) -> String {
    let [added, removed] = lists(attachment, ["addedLines", "removedTypes"]);
    let is = |key| attachment.get(key).and_then(Raw::bool) == Some(true);
    let mut parts = Vec::new();
    if !added.is_empty() {
        let lead = if is("isInitial") {
            "Available agent types for the Agent tool:"
        } else {
            "New agent types are now available for the Agent tool:"
        };
        parts.push(format!("{lead}\n{}", added.join("\n")));
    }
    if !removed.is_empty() {
        let removed = removed.join("\n- ");
        parts.push(format!(
            "The following agent types are no longer available:\n- {removed}{AMBIENT}"
        ));
    }
    if !added.is_empty() && is("isInitial") && is("showConcurrencyNote") {
        let note = "When you launch multiple agents for independent work, send them in a single message with multiple tool \
                    uses so they run concurrently.";
        parts.push(note.to_owned());
    }
    parts.join("\n\n")
}

/// Returns the text about servers that were added and removed.
fn instructions(attachment: Raw<'_>) -> String {
    let [added, removed] = lists(attachment, ["addedBlocks", "removedNames"]);
    let mut parts = Vec::new();
    if !added.is_empty() {
        parts.push(format!(
            "# MCP Server Instructions\n\nThe following MCP servers have provided instructions for how to use their tools and \
             resources:\n\n{}",
            added.join("\n\n")
        ));
    }
    if !removed.is_empty() {
        parts.push(format!(
            "The following MCP servers have disconnected. Their instructions above no longer apply:\n{}{AMBIENT}",
            removed.join("\n")
        ));
    }
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[track_caller]
    fn check(attachment: &Value, expected: Option<&[&str]>) {
        let record = json!({ "type": "attachment", "attachment": attachment }).to_string();
        let found = texts(Raw::object(record.as_bytes()).unwrap());
        let expected = expected.map(|texts| {
            let reminder = |text: &&str| format!("<system-reminder>\n{text}\n</system-reminder>");
            texts.iter().map(reminder).collect::<Vec<_>>()
        });
        assert_eq!(found, expected, "{attachment}");
    }

    /// Each of these was resumed by Claude Code 2.1.329, and this is what it sent.
    #[test]
    fn of_what_hooks_put_out_only_some_is_sent() {
        let hook = |class: &str, event: &str, more: Value| {
            let name = format!("{event}:x");
            let mut hook = json!({ "type": class, "hookName": name, "hookEvent": event });
            hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            hook
        };
        let out = |content: &str| json!({ "content": content, "stdout": "out", "stderr": "err" });
        for event in ["SessionStart", "UserPromptSubmit"] {
            let expected = format!("{event}:x hook success: said");
            check(&hook("hook_success", event, out("said")), Some(&[&expected]));
            check(&hook("hook_success", event, out("")), Some(&[]));
        }
        for event in ["PreToolUse", "PostToolUse", "Stop", "SessionEnd"] {
            check(&hook("hook_success", event, out("said")), Some(&[]));
        }
        let more = json!({ "content": ["one", "<system-reminder> two"] });
        check(
            &hook("hook_additional_context", "PreToolUse", more),
            Some(&["PreToolUse:x hook additional context: one\n&lt;system-reminder> two"]),
        );
        let nothing = json!({ "content": [] });
        check(&hook("hook_additional_context", "PreToolUse", nothing), Some(&[]));
        let error = json!({ "blockingError": { "blockingError": "no", "command": "lint" } });
        check(
            &hook("hook_blocking_error", "PostToolUse", error),
            Some(&["PostToolUse:x hook blocking error from command: \"lint\": no"]),
        );
        let stopped = json!({ "message": "enough" });
        check(
            &hook("hook_stopped_continuation", "PostToolUse", stopped),
            Some(&["PostToolUse:x hook stopped continuation: enough"]),
        );
        let response = json!({ "response": {
            "systemMessage": "one", "hookSpecificOutput": { "additionalContext": "two" },
        } });
        check(&hook("async_hook_response", "PostToolUse", response), Some(&["one", "two"]));
        for class in ["hook_non_blocking_error", "hook_system_message", "hook_cancelled"] {
            check(&hook(class, "PostToolUse", out("said")), Some(&[]));
        }
        check(&hook("hook_of_tomorrow", "PostToolUse", out("said")), None);
    }

    /// The same.
    #[test]
    fn files_and_what_came_with_them_are_sent_in_the_programs_words() {
        let file = |lines: &str| {
            let file = json!({ "filePath": "/w/a", "content": lines, "startLine": 5 });
            json!({ "type": "file", "filename": "/w/a", "content": { "type": "text", "file": file } })
        };
        let call = "Called the Read tool with the following input: {\"file_path\":\"/w/a\"}";
        check(&file("one\ntwo"), Some(&[call, "Result of calling the Read tool:\n5\tone\n6\ttwo"]));
        let image = json!({ "type": "file", "filename": "/w/a", "content": { "type": "image" } });
        check(&image, None);
        let folder = json!({ "type": "directory", "path": "/w", "content": "a\nb" });
        let call = "Called the Bash tool with the following input: \
                    {\"command\":\"ls /w\",\"description\":\"Lists files in /w\"}";
        check(&folder, Some(&[call, "Result of calling the Bash tool:\na\nb"]));
        let lines = json!({
            "type": "selected_lines_in_ide", "lineStart": 1, "lineEnd": 2, "filename": "/w/a",
            "content": "\u{e9}".repeat(2_001),
        });
        let expected = format!(
            "The user selected the lines 1 to 2 from /w/a:\n{}\n... (truncated)\n\nThis may or may not be related to the \
             current task.",
            "\u{e9}".repeat(2_000)
        );
        check(&lines, Some(&[&expected]));
        let memory = json!({ "type": "nested_memory", "path": "/w/CLAUDE.md", "content": { "content": "rules" } });
        check(&memory, Some(&["Contents of /w/CLAUDE.md:\n\nrules"]));
        check(&json!({ "type": "total_tokens_reminder", "text": "left" }), Some(&["left"]));
        check(&json!({ "type": "command_permissions", "allowedTools": [] }), Some(&[]));
        check(&json!({ "type": "class_of_tomorrow", "text": "left" }), None);
        let listing = |more: Value| {
            let mut listing = json!({ "type": "agent_listing_delta", "addedTypes": ["a"] });
            listing.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            listing
        };
        check(
            &listing(json!({ "addedLines": ["- a: one", "- b: two"], "isInitial": true })),
            Some(&["Available agent types for the Agent tool:\n- a: one\n- b: two"]),
        );
        let gone = format!("The following agent types are no longer available:\n- a\n- b{AMBIENT}");
        check(&listing(json!({ "addedLines": [], "removedTypes": ["a", "b"] })), Some(&[&gone]));
    }
}
