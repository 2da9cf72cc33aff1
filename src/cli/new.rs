//! `new`: creates a session.

use serde_json::{Map, Value};
use undertext::verbs::{self, Layers};

use super::common::shown;
use super::{CommandError, Context, Exit, chosen, env};

/// Create a session in this folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext new
  undertext new --prefer language=French --configure model=large
  id=$(undertext new --json | jq -r .session)

It prints the id and the path of the live file, which contains the conversation
as JSON Lines: follow it with tail -F, or append to it. The session records what
is known of the machine, the user and the folder.")]
pub(crate) struct Args {
    /// Record a preference of the user
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    prefer: Vec<(String, String)>,

    /// Record how the session is configured
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    configure: Vec<(String, String)>,

    /// Use a store in this folder, which git ignores
    #[arg(long)]
    here: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let layers = Layers {
        os: env::SYSTEM.to_owned(),
        shell: context.env.shell.as_ref().map(|shell| shell.to_string_lossy().into_owned()),
        user: context.env.user.clone(),
        preferences: object(&args.prefer),
        configuration: object(&args.configure),
    };
    let here = args.here.then(|| chosen::make_here(context)).transpose()?;
    let workspace = verbs::workspace(&context.env.current_dir);
    let archive = context.open_writer()?;
    // Trust the store while it is still empty: if this command is interrupted later, a second run can trust it again.
    if let Some(folder) = &here {
        chosen::trust(&context.env, folder)?;
    }
    let created = verbs::new(&archive, &layers, &workspace)?;
    context.begun = Some((created.session.name.clone(), 0));
    if let Some(folder) = here {
        let name = context.env.homely(&folder);
        context.output.note(&format!("Store: {name}, for commands in this folder and below"));
    }
    let (id, live) = (&created.session.name.id, created.live.as_deref());
    context.answer(&created)?;
    context.say(&format!("Session {id}"))?;
    if let Some(live) = live {
        context.say(&format!("Live file {}", shown(live)))?;
    }
    Ok(Exit::Yes)
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("use the form KEY=VALUE".to_owned()),
    }
}

fn object(pairs: &[(String, String)]) -> Value {
    let fields = pairs.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str())));
    Value::Object(fields.collect::<Map<_, _>>())
}
