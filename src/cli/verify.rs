//! `verify`: recomputes every hash and checks what it protects.

use std::io::{self, Write as _};

use undertext::report::{Line, Report as _};
use undertext::store::FaultKind;
use undertext::verbs::{self, Finding, Verified, Verifying};

use super::common::counted;
use super::output::Output;
use super::words::ONE_OR_ALL;
use super::{About, CommandError, Context, Exit, archive};
use crate::render::style::Label;
use crate::render::{json, safe};

/// Recompute every hash and report damage
#[derive(Debug, clap::Args)]
#[command(mut_arg("session", |arg| arg.help(ONE_OR_ALL)), after_help = "\
Examples:
  undertext verify
  undertext verify 7c2a
  undertext verify --json | tail -1 | jq .ok

All damage is reported, not only the first.

Exit codes: 1 if something is damaged or a file cannot be read")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    /// Report oddities in agents' files too
    #[arg(short, long)]
    verbose: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let opened = archive::find_or_all(context, args.about.wanted()?);
    let json = context.json;
    let mut written = Ok(());
    let mut notes = 0;
    let verified = match opened {
        Ok((archive, session)) => {
            let output = &mut context.output;
            verbs::verify(&archive, session.as_ref(), &mut |told| match told {
                Verifying::Session(done, all) => output.steps("verifying session", done, all),
                Verifying::Found(finding)
                    if !json && !args.verbose && finding.kind == FaultKind::Oddity =>
                {
                    notes += 1;
                }
                Verifying::Found(finding) if written.is_ok() => {
                    written = tell(output, json, finding);
                }
                Verifying::Found(_) => {}
            })?
        }
        // A store that is too damaged to open is still reported by `verify`.
        Err(error) if error.is_damage() => {
            let finding = Finding::of_whole_store(error.in_one_line());
            written = tell(&mut context.output, json, &finding);
            Verified { damaged: 1, ..Verified::default() }
        }
        Err(error) => return Err(error),
    };
    written?;
    let exit = conclude(context, verified)?;
    if notes > 0 {
        let odd = counted(notes, "oddity", "oddities");
        context.output.hint(
            Line::new("verify")
                .flag("verbose")
                .to(format!("{odd} in agents' files, without damage; to see them")),
        );
    }
    Ok(exit)
}

fn tell(output: &mut Output, json: bool, finding: &Finding) -> io::Result<()> {
    if json {
        return json::line(output, finding);
    }
    let Finding { kind, session, item, problem } = finding;
    let label = if kind.is_damage() { Label::Error } else { Label::Note };
    let session = session.as_ref().map_or_else(String::new, |session| format!("{session}: "));
    let told = format!("{session}{item}: {problem}");
    let title = output.styles().paint(label, kind.severity());
    writeln!(output, "{title}: {}", safe::text(&told))
}

fn conclude(context: &mut Context, verified: Verified) -> Result<Exit, CommandError> {
    if !context.answer(&verified)? {
        let Verified { sessions, operations, entries, damaged, unread, redacted, lost, .. } =
            verified;
        let found = if damaged == 0 {
            "no damage found".to_owned()
        } else {
            format!("{} damaged", counted(damaged, "thing is", "things are"))
        };
        let sessions = counted(sessions, "session", "sessions");
        let operations = counted(operations, "operation", "operations");
        let entries = counted(entries, "entry", "entries");
        let parts = [
            (lost, format!("; {} lost", counted(lost, "entry was", "entries were"))),
            (redacted, format!("; intact, {redacted} redacted")),
            (unread, format!("; {} not be read", counted(unread, "file could", "files could"))),
        ];
        let more: String =
            parts.into_iter().filter(|(n, _)| *n > 0).map(|(_, part)| part).collect();
        context.say(&format!("Verified {sessions}, {operations}, {entries}: {found}{more}"))?;
        context.output.hints(verified.hints());
    }
    Ok(if verified.ok { Exit::Yes } else { Exit::No })
}
