//! pi's hook: an extension, which is a file of our own in the user's folder of extensions. pi loads it when it starts.
//!
//! Its first line identifies it, whichever version wrote it. An extension to which somebody added lines counts as a call if it
//! makes this one. One that was changed otherwise may contain something that a person wrote: it is updated or removed, and a copy
//! is kept.
//!
//! pi has no session file before the first answer; at the end of a turn the answer is in it. Older versions do not report the end
//! of a session.

use serde_json::{Map, Value};

use crate::{
    json,
    wire::{Call, Hooks, Invalid},
};

/// The name under which the extension calls the program.
const AGENT: &str = super::TRAITS.name;
/// The beginning of the first line, which identifies the file.
const MARK: &str = "// Made by undertext";
/// The rest of that line. Older versions worded it differently.
const PROMISE: &str = ", which takes this file away again, and keeps a copy if it was changed.";

/// Returns the extension that makes a call.
fn extension(call: &Call) -> String {
    let Call { program, variables } = call;
    let variables =
        variables.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    let variables = Value::Object(variables.collect::<Map<_, _>>());
    let (program, agent) = (json::quote(program), json::quote(AGENT));
    format!(
        r#"{MARK}{PROMISE}
import {{ spawn }} from "node:child_process";

const program = {program};
const variables = {variables};

// Names the session's file; whatever fails is no affair of the session.
function tell(event: string, context: any) {{
  try {{
    const file = context?.sessionManager?.getSessionFile?.();
    if (typeof file === "string") {{
      const words = ["hook", {agent}, JSON.stringify({{ event, transcript_path: file }})];
      const told = spawn(program, words, {{ env: variables, detached: true, stdio: "ignore" }});
      told.on("error", () => {{}});
      told.unref();
    }}
  }} catch {{}}
}}

export default function (pi: any) {{
  for (const event of ["session_start", "session_compact", "turn_end", "agent_end", "session_shutdown"]) {{
    pi.on(event, (_: unknown, context: any) => tell(event, context));
  }}
}}
"#
    )
}

/// The text before the program, and the text before its variables, in an extension.
const PROGRAM: &str = "const program = ";
const VARIABLES: &str = "const variables = ";

/// The extension. Only a file of our own is changed.
#[derive(Debug)]
pub(super) struct PiHooks;

impl Hooks for PiHooks {
    fn file(&self) -> &'static str {
        "extensions/undertext.ts"
    }

    fn hooked(&self, there: Option<&[u8]>, call: &Call) -> Result<Vec<u8>, Invalid> {
        let made = extension(call).into_bytes();
        match there {
            Some(there) if !is_own(there) => Err(Invalid("undertext did not create it".to_owned())),
            // Lines that somebody inserted between those of the call do not change it.
            Some(there) if is_within(&made, there) => Ok(there.to_vec()),
            _ => Ok(made),
        }
    }

    fn unhooked(&self, extension: &[u8]) -> Result<Option<Vec<u8>>, Invalid> {
        Ok((!is_own(extension)).then(|| extension.to_vec()))
    }

    fn programs(&self, extension: &[u8]) -> Vec<String> {
        program(extension).into_iter().collect()
    }

    fn may_hold_more(&self, extension: &[u8]) -> bool {
        is_own(extension) && !is_made(extension)
    }
}

/// Returns true if the file is our extension, whichever version wrote it and whoever changed it.
fn is_own(extension: &[u8]) -> bool {
    extension.split(|byte| *byte == b'\n').any(|line| line.starts_with(MARK.as_bytes()))
}

/// Returns true if the file is our extension exactly as it was written, whichever program it names.
fn is_made(there: &[u8]) -> bool {
    let call = || {
        let variables: Map<String, Value> = serde_json::from_str(said(there, VARIABLES)?).ok()?;
        let variables = variables.into_iter().map(|(name, value)| match value {
            Value::String(value) => Some((name, value)),
            _ => None,
        });
        Some(Call { program: program(there)?, variables: variables.collect::<Option<_>>()? })
    };
    there.starts_with(MARK.as_bytes())
        && call().is_some_and(|call| body(extension(&call).as_bytes()).eq(body(there)))
}

/// Returns the program that an extension calls.
fn program(extension: &[u8]) -> Option<String> {
    serde_json::from_str(said(extension, PROGRAM).filter(|_| is_own(extension))?).ok()
}

/// Returns true if another extension contains all lines of this one except the first, in order.
fn is_within(made: &[u8], there: &[u8]) -> bool {
    let mut there = there.split(|byte| *byte == b'\n');
    body(made).all(|line| there.any(|found| found == line))
}

/// Returns the lines of an extension after the first.
fn body(extension: &[u8]) -> impl Iterator<Item = &[u8]> {
    extension.split(|byte| *byte == b'\n').skip(1)
}

/// Returns the rest of the first line that begins with a text, without its semicolon.
fn said<'a>(extension: &'a [u8], begins: &str) -> Option<&'a str> {
    let text = str::from_utf8(extension).ok()?;
    text.lines().find_map(|line| line.strip_prefix(begins)?.strip_suffix(';'))
}
