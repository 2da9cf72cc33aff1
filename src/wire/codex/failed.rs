//! Detects from a tool's output that its command failed. Records do not say it in any other way.
//!
//! ```text
//! {"output": .., "metadata": {"exit_code": 1}}                 JSON in a string; newer versions put exit_code next to output
//! Exit code: 1 / Wall time: .. / Output: / ..                  a heading, up to the line Output:
//! Chunk ID: .. / Process exited with code 1 / .. / Output:     likewise
//! Script failed / Wall time .. / Output:                       likewise, or one whose output is such JSON
//! ```

use std::borrow::Cow;

use crate::{json::Raw, model::Block, wire::fields::string};

/// The beginnings of heading lines.
const HEADING: [&str; 10] = [
    "Chunk ID: ",
    "Exit code: ",
    "Original token count: ",
    "Process exited with code ",
    "Process running with session ID ",
    "Script ",
    "Total output lines: ",
    "Wall time ",
    "Wall time: ",
    "Warning: truncated output",
];
/// The keys of a JSON report other than the output.
const REPORTED: [&[u8]; 8] = [
    b"chunk_id",
    b"duration_seconds",
    b"exit_code",
    b"metadata",
    b"original_token_count",
    b"output",
    b"session_id",
    b"wall_time_seconds",
];
/// The beginnings of the lines with the exit code.
const CODES: [&str; 2] = ["Exit code: ", "Process exited with code "];

/// Returns true if the blocks of an output say that the command failed.
pub(super) fn failed(blocks: &[Block]) -> bool {
    let mut texts = blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let Some(first) = texts.next() else { return false };
    match Heading::of(first) {
        Some(Heading { is_failed, output, .. }) => {
            is_failed || std::iter::once(output).chain(texts).any(is_reported)
        }
        None => is_reported(first),
    }
}

/// What Codex reports about a command before its output.
#[derive(Clone, Copy, Debug)]
pub struct Heading<'t> {
    /// The first exit code that is not zero.
    pub code: Option<&'t str>,
    /// True if it says that the command failed.
    pub is_failed: bool,
    /// The text after it.
    pub output: &'t str,
}

impl<'t> Heading<'t> {
    /// Parses the heading of an output; None if it has none.
    pub fn of(text: &'t str) -> Option<Self> {
        let (mut code, mut is_failed) = (None, false);
        let mut rest = text;
        while let Some((line, output)) = rest.split_once('\n') {
            let line = line.trim_end();
            if line == "Output:" {
                return Some(Self { code, is_failed, output });
            }
            if !line.is_empty() && !HEADING.iter().any(|begin| line.starts_with(begin)) {
                return None;
            }
            let mut codes = CODES.iter().filter_map(|begin| line.strip_prefix(begin));
            let told = codes.find(|code| *code != "0");
            is_failed |= line == "Script failed"
                || told.is_some_and(|code| code.parse::<i64>().is_ok_and(|code| code != 0));
            code = code.or(told);
            rest = output;
        }
        None
    }
}

/// What Codex reports about a command as JSON, with its output.
#[derive(Clone, Debug)]
pub struct Report {
    /// The exit code, if it is not zero.
    pub code: Option<i64>,
    /// The command's output.
    pub output: String,
    /// True if it contains nothing specific to this command.
    pub is_plain: bool,
}

impl Report {
    /// Parses an output as a report; None if it is not one.
    pub fn of(text: &str) -> Option<Self> {
        let report = Raw::object(text.trim().as_bytes())?;
        let [output, metadata, code] = report.pick(["output", "metadata", "exit_code"]);
        let code = code.or_else(|| metadata?.get("exit_code"));
        let code = code.and_then(|code| str::from_utf8(code.bytes()).ok()?.parse().ok());
        Some(Self {
            code: code.filter(|code| *code != 0),
            output: string(output)?,
            is_plain: report.fields().all(|(key, _)| REPORTED.contains(&key)),
        })
    }
}

/// Returns a tool's output without the heading or JSON in which Codex may report it.
pub fn plain_output(text: &str) -> Cow<'_, str> {
    let output = Heading::of(text).map_or(text, |heading| heading.output);
    let report = Report::of(output).filter(|report| report.is_plain);
    let heading = text.strip_suffix(output).unwrap_or_default();
    report.map_or(text.into(), |report| [heading, &report.output].concat().into())
}

/// Returns true if a JSON report says that the command failed.
fn is_reported(text: &str) -> bool {
    Report::of(text).is_some_and(|report| report.code.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_by_the_lines_of_its_output() {
        let check = |text: &str, expected: &str| assert_eq!(plain_output(text), expected);
        check(r#"{"output":"one\ntwo","metadata":{"exit_code":1}}"#, "one\ntwo");
        check("Script completed\nOutput:\n{\"output\":\"one\"}", "Script completed\nOutput:\none");
        for other in [r#"{"output":"one","error":"two"}"#, r#"{"exit_code":1}"#, "one\ntwo", ""] {
            check(other, other);
        }
    }

    #[test]
    fn an_output_that_says_another_code_than_zero_failed() {
        let failed = |texts: &[&str]| {
            failed(&texts.iter().map(|text| Block::Text((*text).to_owned())).collect::<Vec<_>>())
        };
        let done = "Script completed\nWall time 0.1 seconds\nOutput:\n";
        for texts in [
            &[r#"{"output":"no such file","metadata":{"exit_code":1,"duration_seconds":0.1}}"#][..],
            &[r#"{"chunk_id":"a","exit_code":-1,"output":""}"#],
            &["Exit code: 2\nWall time: 0 seconds\nOutput:\nerror"],
            &["Chunk ID: a\nWall time: 0.1 seconds\nProcess exited with code 101\n\
               Original token count: 3\nOutput:\nerror"],
            &["Script failed\nWall time 0.1 seconds\nOutput:\n", "Script error:\nno"],
            &[done, r#"{"chunk_id":"a","exit_code":1,"output":"error"}"#],
        ] {
            assert!(failed(texts), "{texts:?}");
        }
        for texts in [
            &[][..],
            &["Plan updated"],
            &[r#"{"output":"fine","metadata":{"exit_code":0}}"#],
            &[r#"{"exit_code":1}"#],
            &["Exit code: 0\nWall time: 0 seconds\nOutput:\nExit code: 1\nOutput:\n"],
            &["Exit code: 1 is what make says\n"],
            &["It said:\nExit code: 1\nOutput:\n"],
            &["Chunk ID: a\nProcess running with session ID 7\nOutput:\n"],
            &[done, r#"{"exit_code":0,"output":"fine"}"#, "more"],
        ] {
            assert!(!failed(texts), "{texts:?}");
        }
    }
}
