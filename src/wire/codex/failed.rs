//! Failed: whether a tool's output says that the command failed. A record says it in no other way.
//!
//! ```text
//! {"output": .., "metadata": {"exit_code": 1}}                 JSON in a string; newer versions say exit_code beside output
//! Exit code: 1 / Wall time: .. / Output: / ..                  a heading, up to the line Output:
//! Chunk ID: .. / Process exited with code 1 / .. / Output:     the same
//! Script failed / Wall time .. / Output:                       the same, or one whose output is such JSON
//! ```

use crate::{json::Raw, model::Block};

/// How the lines of a heading begin.
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

/// Returns whether the blocks of an output say that the command failed.
pub(super) fn failed(blocks: &[Block]) -> bool {
    let mut texts = blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let Some(first) = texts.next() else { return false };
    match heading(first) {
        Some((is_failed, behind)) => {
            is_failed || std::iter::once(behind).chain(texts).any(is_reported)
        }
        None => is_reported(first),
    }
}

/// Returns whether a heading says that the command failed, and what stands behind it.
fn heading(text: &str) -> Option<(bool, &str)> {
    let mut is_failed = false;
    let mut rest = text;
    while let Some((line, behind)) = rest.split_once('\n') {
        let line = line.trim_end();
        if line == "Output:" {
            return Some((is_failed, behind));
        }
        if !line.is_empty() && !HEADING.iter().any(|begin| line.starts_with(begin)) {
            return None;
        }
        let codes = ["Exit code: ", "Process exited with code "];
        let code = codes.iter().find_map(|begin| line.strip_prefix(begin)?.parse::<i64>().ok());
        is_failed |= code.is_some_and(|code| code != 0) || line == "Script failed";
        rest = behind;
    }
    None
}

/// Returns whether a report in JSON says that the command failed.
fn is_reported(text: &str) -> bool {
    let Some(report) = Raw::object(text.trim().as_bytes()) else { return false };
    let [output, metadata, code] = report.pick(["output", "metadata", "exit_code"]);
    let code = code.or_else(|| metadata?.get("exit_code"));
    let code = code.and_then(|code| std::str::from_utf8(code.bytes()).ok()?.parse::<i64>().ok());
    output.and_then(Raw::text).is_some() && code.is_some_and(|code| code != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
