//! The hooks of pi: an extension, a file of its own in the user's folder of extensions, which pi loads as it starts.
//!
//! pi has no file before the first answer; at the end of a turn the answer is in it. Older versions do not tell of a session's
//! end.

use serde_json::{Map, Value};

use crate::{
    json,
    wire::{Call, Invalid},
};

/// The first line, by which the file is known.
const MARK: &str = "// Made by undertext, which deletes this file again and looks after nothing that is added to it.\n";

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

/// Returns whether the file is such an extension.
pub(super) fn is_made(extension: &[u8]) -> bool {
    extension.starts_with(MARK.as_bytes())
}

/// Returns the error of somebody else's file in its place.
pub(super) fn foreign() -> Invalid {
    Invalid("somebody else made it".to_owned())
}
