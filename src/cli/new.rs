//! `new`: creates a session.

use std::path::Path;

use serde_json::{Map, Value};
use undertext::disk;
use undertext::verbs::{self, Layers};

use super::common::shown;
use super::env::{self, Env};
use super::{CommandError, Context, Exit, chosen};

/// Create a session in this folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext new
  undertext new --id review-42
  undertext new --prefer language=French --configure model=large
  id=$(undertext new --json | jq -r .session)

It prints the id and the path of the live file, which contains the conversation
as JSON Lines: follow it with tail -F, or append to it. The session records what
is known of the machine, the user and the folder.")]
pub(crate) struct Args {
    /// Use this id [default: a new uuid]
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    id: Option<String>,

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
    if let Some(id) = &args.id {
        verbs::check_id(id)?;
    }
    let layers = Layers {
        preferences: object(&args.prefer),
        configuration: object(&args.configure),
        ..layers(&context.env)
    };
    let here = args.here.then(|| chosen::make_here(context)).transpose()?;
    let workspace = verbs::workspace(&context.env.current_dir);
    let archive = context.open_writer()?;
    // Trust the store while it is still empty: if this command is interrupted later, a second run can trust it again.
    if let Some(folder) = &here {
        chosen::trust(&context.env, folder)?;
    }
    let created = match &args.id {
        Some(id) => verbs::new_with_id(&archive, id, &layers, &workspace)?,
        None => verbs::new(&archive, &layers, &workspace)?,
    };
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

/// Returns what is known of the machine, the user and the folder.
pub(super) fn layers(env: &Env) -> Layers {
    let kernel = rustix::system::uname();
    Layers {
        os: env::SYSTEM.to_owned(),
        os_version: os_version(),
        kernel: Some(kernel.release().to_string_lossy().into_owned()),
        shell: env.shell.as_ref().map(|shell| shell.to_string_lossy().into_owned()),
        user: env.user.clone(),
        dependencies: verbs::dependencies(&env.current_dir),
        ..Layers::default()
    }
}

/// Returns the operating system's name and version.
fn os_version() -> Option<String> {
    let read = |path: &str| disk::read_text(Path::new(path), disk::SMALL).ok();
    let linux = ["/etc/os-release", "/usr/lib/os-release"].into_iter().find_map(read);
    if let Some(release) = linux {
        let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
        return Some(name.trim_matches(['"', '\'']).to_owned());
    }
    let plist = read("/System/Library/CoreServices/SystemVersion.plist")?;
    let (_, version) = plist.split_once("<key>ProductVersion</key>")?;
    let (version, _) = version.split_once("<string>")?.1.split_once("</string>")?;
    Some(format!("macOS {version}"))
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("use the form KEY=VALUE".to_owned()),
    }
}

fn object(pairs: &[(String, String)]) -> Value {
    let fields = pairs.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str())));
    Value::Object(fields.collect::<Map<_, _>>())
}
