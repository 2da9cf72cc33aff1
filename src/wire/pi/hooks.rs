//! The hooks of pi: an extension, a file of its own in the user's folder of extensions, which pi loads as it starts.
//!
//! An extension to which somebody added something is theirs: it is left as it is, and counts as a call if it makes this one.
//!
//! pi has no file before the first answer; at the end of a turn the answer is in it. Older versions do not tell of a session's
//! end.

use serde_json::{Map, Value};

use crate::{
    json,
    wire::{Call, Invalid},
};

/// The first line, by which the file is known.
const MARK: &str = "// Made by undertext, which deletes this file again unless it was changed.\n";

/// Returns the extension that makes a call.
pub(super) fn extension(agent: &str, call: &Call) -> String {
    let Call { program, variables } = call;
    let variables =
        variables.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    let variables = Value::Object(variables.collect::<Map<_, _>>());
    let (program, agent) = (json::quote(program), json::quote(agent));
    format!(
        r#"{MARK}import {{ spawn }} from "node:child_process";

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

/// What stands before the program in an extension, and before its variables.
const PROGRAM: &str = "const program = ";
const VARIABLES: &str = "const variables = ";

/// Puts a call into the extension that is there, if there is one.
pub(super) fn put(there: Option<&[u8]>, agent: &str, call: &Call) -> Result<Vec<u8>, Invalid> {
    let made = extension(agent, call).into_bytes();
    match there {
        Some(there) if is_altered(there, agent) => {
            // It makes this call if both lines that say so are as they were.
            let there_too =
                |line| said(there, line).is_some_and(|it| Some(it) == said(&made, line));
            if there_too(PROGRAM) && there_too(VARIABLES) {
                return Ok(there.to_vec());
            }
            let words = "it was changed by somebody since undertext made it: delete it first";
            Err(Invalid(words.to_owned()))
        }
        Some(there) if !is_made(there, agent) => Err(Invalid("somebody else made it".to_owned())),
        _ => Ok(made),
    }
}

/// Returns whether the file is such an extension to which somebody added something.
pub(super) fn is_altered(extension: &[u8], agent: &str) -> bool {
    extension.starts_with(MARK.as_bytes()) && !is_made(extension, agent)
}

/// Returns whether the file is such an extension as it was made, whichever program it names.
pub(super) fn is_made(there: &[u8], agent: &str) -> bool {
    let call = || {
        let program = serde_json::from_str(said(there, PROGRAM)?).ok()?;
        let variables: Map<String, Value> = serde_json::from_str(said(there, VARIABLES)?).ok()?;
        let variables = variables.into_iter().map(|(name, value)| match value {
            Value::String(value) => Some((name, value)),
            _ => None,
        });
        Some(Call { program, variables: variables.collect::<Option<_>>()? })
    };
    call().is_some_and(|call| extension(agent, &call).as_bytes() == there)
}

/// Returns what an extension says behind the beginning of a line.
fn said<'a>(extension: &'a [u8], begins: &str) -> Option<&'a str> {
    let text = str::from_utf8(extension).ok()?;
    text.lines().find_map(|line| line.strip_prefix(begins)?.strip_suffix(';'))
}
