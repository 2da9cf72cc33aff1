//! `doctor`: checks the store's folder and repairs what it can.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use undertext::model::DATABASE;
use undertext::report::{Examined, Forgetful, Line, Lost, Mended, Refilled, Report, TakenBack};
use undertext::store::{Access, FaultKind, StoreError};
use undertext::verbs::{self, Agents, Ailment, Archive, Cure, Finding, MendOutcome, Verifying};

use super::archive::{is_there, leftovers};
use super::common::{counted, short_ids, shown};
use super::pointed::{self, agent_folders, forgetful_agents, writable};
use super::{About, CommandError, Context, Exit, chosen, rotations, settings, setup};
use crate::render::safe;

/// Check the store's folder, or repair the store
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext doctor
  undertext doctor --fix
  undertext doctor --files 7c2a

It checks the store's disk and file modes, everything that verify checks, files
left by crashes, and whether the undertext that agents call exists. --fix
rebuilds a damaged store from what can be read and from session files; the
damaged one is kept next to it.

Exit codes: 1 if something still needs care")]
pub(crate) struct Args {
    /// Repair the store, set modes, delete leftovers
    #[arg(long)]
    fix: bool,

    /// List a session's files that were set aside
    #[arg(long, conflicts_with = "fix")]
    files: bool,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    if args.files {
        return rotations::list(context, &args.about);
    }
    if args.about.wanted()?.is_some() {
        let error = anyhow!("doctor checks the whole store; for one session, add --files");
        let verify = Line::new("verify").to("check sessions against their hashes");
        return Err(CommandError::user(error).hinted(verify));
    }
    let root = context.root()?;
    if !is_there(&root)? {
        return Err(StoreError::Absent { path: root }.into());
    }
    let mut ailments = Vec::new();
    // Obstructions that a person has to move come first.
    let fix = args.fix && !verbs::is_obstructed(&root)?;
    if fix {
        ailments = verbs::let_in(&root)?;
        verbs::finish_mending(&root)?;
    }
    ailments.extend(verbs::doctor(&root)?);
    match open(context, &root).and_then(|archive| Ok(verbs::remainders(&archive)?)) {
        Ok(mut found) => {
            found.retain(|one| !ailments.iter().any(|known| known.path == one.path));
            ailments.extend(found);
        }
        // If the store cannot be read, the files of its sessions are unknown.
        Err(_) if !ailments.is_empty() => {}
        Err(error) => {
            let why = error.in_one_line();
            let problem = format!("the files next to its sessions could not be checked: {why}");
            ailments.push(Ailment::new(&root, problem, Cure::Person));
        }
    }
    ailments.extend(clean(context, fix));
    let mut mended = None;
    if fix {
        verbs::treat(&root, &mut ailments)?;
        mended = mend(context, &root, &mut ailments)?;
    }
    let mut findings = verify(context, &root, &ailments)?;
    // What could not be mended in the store itself is already listed.
    findings.retain(|found| !fix || is_of_file(found));
    if findings.iter().any(|found| found.kind == FaultKind::Lost) {
        findings.retain(|found| found.kind != FaultKind::Lost);
        let problem =
            "it has lost lines, but knows which ones: any file that contains them can restore them";
        ailments.push(Ailment::new(&root.join(DATABASE), problem, Cure::Mend));
    }
    ailments.extend(findings.iter().map(|found| ailment_of(&root, found)));
    if mended.is_some() || ailments.iter().any(|ailment| ailment.cured) {
        context.done = Some(format!("{} is repaired as far as possible", shown(&root)));
    }
    for ailment in &ailments {
        tell(context, ailment)?;
    }
    if let Some(mended) = &mended {
        tell_mended(context, mended)?;
    }
    for agent in forgetful_agents(&context.env) {
        tell_forgetful(context, &agent)?;
    }
    let mut lost_calls = setup::callings(context);
    lost_calls.retain(|calling| calling.is_lost);
    for calling in &lost_calls {
        context.answer(calling)?;
        let path = context.env.homely(&calling.path);
        let problem = calling.problem.as_deref().unwrap_or_default();
        context.say(&format!("{path}: {} {problem}", calling.agent))?;
    }
    // Unreadable settings stop other commands.
    let settings = context.settings();
    if let Err(error) = &settings {
        context.output.warn(&error.in_one_line());
    }
    let examined = Examined::new(&root, &ailments, mended.as_ref());
    let is_ok = examined.ok && settings.is_ok() && lost_calls.is_empty();
    let exit = if is_ok { Exit::Yes } else { Exit::No };
    if context.answer(&examined)? {
        return Ok(exit);
    }
    if is_ok {
        context.say(&format!("{} is in order", shown(&root)))?;
    }
    context.output.hints(examined.hints());
    context.output.hints(lost_calls.iter().flat_map(Report::hints).collect());
    Ok(exit)
}

/// Finds the temporary files of killed commands, wherever they were written, and deletes them if `fix` is set.
fn clean(context: &mut Context, fix: bool) -> Vec<Ailment> {
    let Some(leftovers) = leftovers(&context.env) else { return Vec::new() };
    let looked =
        if fix { leftovers.clear() } else { leftovers.find().map(|found| (Vec::new(), found)) };
    let (deleted, left) = looked.unwrap_or_default();
    let ailment =
        |path: PathBuf, cure| Ailment::new(&path, "it is left over from a killed command", cure);
    let cure = if fix { Cure::Person } else { Cure::Delete };
    let left = left.into_iter().map(|path| ailment(path, cure));
    let deleted = deleted.into_iter().map(|path| ailment(path, Cure::Delete));
    deleted.map(|one| Ailment { cured: true, ..one }).chain(left).collect()
}

fn open(context: &mut Context, root: &Path) -> Result<Archive, CommandError> {
    let mut archive = Archive::open(root, Access::Read, context.env.ambient())?;
    archive.set_here(context.env.here()?);
    archive.set_writable(writable(context));
    Ok(archive)
}

/// Returns the findings of a verification, unless it is already known why the store cannot be read.
fn verify(
    context: &mut Context,
    root: &Path,
    ailments: &[Ailment],
) -> Result<Vec<Finding>, CommandError> {
    let mut findings = Vec::new();
    let is_unread = |one: &Ailment| !one.cured && one.path == root.join(DATABASE);
    if ailments.iter().any(is_unread) {
        return Ok(findings);
    }
    let archive = match open(context, root) {
        Err(_) if !ailments.is_empty() => return Ok(findings),
        archive => archive?,
    };
    let output = &mut context.output;
    verbs::verify(&archive, None, &mut |told| match told {
        Verifying::Session(done, all) => output.steps("verifying session", done, all),
        Verifying::Found(finding) => findings.push(finding.clone()),
    })?;
    findings.retain(|found| found.kind.is_damage() || found.kind == FaultKind::Unread);
    Ok(findings)
}

/// Converts a verification's finding to an ailment.
fn ailment_of(root: &Path, finding: &Finding) -> Ailment {
    let Finding { session, item, problem, .. } = finding;
    if is_of_file(finding) {
        return Ailment::new(Path::new(item), problem, Cure::Person);
    }
    let of = session.as_ref().map(|session| format!("session {session}, ")).unwrap_or_default();
    Ailment::new(&root.join(DATABASE), format!("{of}{item}: {problem}"), Cure::Mend)
}

fn is_of_file(finding: &Finding) -> bool {
    matches!(finding.kind, FaultKind::File | FaultKind::Ahead | FaultKind::Unread)
}

/// Mends the store. If that fails, adds the damage it found to `ailments`.
fn mend(
    context: &mut Context,
    root: &Path,
    ailments: &mut Vec<Ailment>,
) -> Result<Option<Mended>, CommandError> {
    let mut findings = Vec::new();
    let here = context.env.drawn_here()?;
    let folders = pointed::paths(&agent_folders(&context.env));
    let exclude = settings::exclude_or_all(context);
    let trusted = fs::canonicalize(root)
        .ok()
        .and_then(|root| chosen::trusted_place(&context.env, &root).ok());
    let (ambient, writable) = (context.env.ambient(), writable(context));
    let agents = Agents { here: &here, folders: &folders, exclude, writable };
    let output = &mut context.output;
    let outcome = verbs::mend(
        root,
        agents,
        ambient,
        &mut |finding| findings.push(finding.clone()),
        &mut |done, all| output.steps("reading the damaged store", done, all),
    )?;
    let why = match outcome {
        MendOutcome::Mended(mended) => {
            for ailment in ailments.iter_mut().filter(|ailment| ailment.cure == Cure::Mend) {
                ailment.cured = true;
            }
            if let Some(trusted) = trusted.filter(|_| mended.kept.is_some()) {
                chosen::trust_mended(&context.env, &trusted)?;
            }
            return Ok(Some(mended));
        }
        MendOutcome::Left(why) => why,
    };
    findings.retain(|found| found.kind.is_damage());
    // The findings say more, and mending again would not help.
    ailments.retain(|ailment| ailment.cure != Cure::Mend || findings.is_empty());
    for ailment in ailments.iter_mut().filter(|ailment| ailment.cure == Cure::Mend) {
        ailment.cure = Cure::Person;
    }
    ailments.extend(findings.iter().map(|found| {
        let Ailment { path, problem, .. } = ailment_of(root, found);
        Ailment::new(&path, format!("{problem}; {why}"), Cure::Person)
    }));
    Ok(None)
}

fn tell_mended(context: &mut Context, mended: &Mended) -> Result<(), CommandError> {
    context.answer(mended)?;
    let Mended { path, kept, sessions, entries, refilled, forgotten, taken_back, lost, .. } =
        mended;
    let (sessions, entries) =
        (counted(*sessions, "session", "sessions"), counted(*entries, "entry", "entries"));
    context.say(&format!("Repaired: {} has {sessions}, {entries}", shown(path)))?;
    let ids: Vec<&str> = refilled.iter().map(|one| one.session.as_str()).collect();
    for (Refilled { path, lines, whole, .. }, session) in refilled.iter().zip(short_ids(&ids)) {
        let lines = (*lines > 0).then(|| counted(*lines, "line", "lines"));
        let file = whole.then(|| "a whole file".to_owned());
        let what = lines.into_iter().chain(file).collect::<Vec<_>>().join(" and ");
        context.say(&format!("  {what} of session {session} recovered from {}", shown(path)))?;
    }
    let ids: Vec<&str> = taken_back.iter().map(|one| one.session.as_str()).collect();
    for (TakenBack { path, entries, left, .. }, session) in taken_back.iter().zip(short_ids(&ids)) {
        let entries = counted(*entries, "entry", "entries");
        let came = format!("{entries} of session {session} recovered from {}", shown(path));
        let left = left
            .as_ref()
            .map(|left| format!("; the store's old position is branch {}", safe::line(left)));
        context.say(&format!("  {came}{}", left.unwrap_or_default()))?;
    }
    if mended.imported > 0 {
        let entries = counted(mended.imported, "entry", "entries");
        let sessions = counted(mended.imported_sessions, "session", "sessions");
        context.say(&format!("  {entries} of {sessions} imported from agents' files"))?;
    }
    if *forgotten > 0 {
        let changes = counted(*forgotten, "change", "changes");
        context.say(&format!(
            "  lost: the store's last {changes}, with the checkpoints, branches and notes that they made{}",
            if taken_back.is_empty() { "" } else { "; the parts that were recovered are listed above" }
        ))?;
    }
    for Lost { session, item } in lost {
        let of = session.as_ref().map(|id| format!(" of session {}", safe::line(id)));
        context.say(&format!("  lost: {item}{}", of.unwrap_or_default()))?;
    }
    match kept {
        Some(kept) => context.say(&format!("The damaged store is kept in {}", shown(kept))),
        None => Ok(()),
    }
}

fn tell_forgetful(context: &mut Context, report: &Forgetful) -> Result<(), CommandError> {
    let Forgetful { agent, settings, field, days } = report;
    let settings = context.env.homely(settings);
    let text = format!(
        "{agent} deletes sessions that were not continued for {days} days; to keep them, put \"{field}\": 36500 into {settings}"
    );
    context.answer(report)?;
    context.say(&text)
}

fn tell(context: &mut Context, ailment: &Ailment) -> Result<(), CommandError> {
    let Ailment { path, problem, cure, cured } = ailment;
    let done = match (cured, cure) {
        (false, _) | (true, Cure::Mend) => String::new(),
        (true, Cure::Mode(mode)) => format!("; it is {mode:04o} now"),
        (true, _) => "; it is deleted".to_owned(),
    };
    context.answer(ailment)?;
    context.say(&format!("{}: {problem}{done}", shown(path)))
}
