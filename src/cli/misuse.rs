//! Arguments that cannot be understood, in words of our own: what is wrong, and what to type next.
//!
//! The words and options of git and of other programs lead to the help of what does the same here.
//!
//! Invariant: no hint for a word that is no command changes a session when it is typed.

use std::error::Error as _;
use std::ffi::{OsStr, OsString};

use anyhow::anyhow;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use undertext::ops;
use undertext::report::{Hint, Line};
use undertext::settings::distance;

use super::env::Env;
use super::error::CommandError;
use super::hint::NAME;

/// A word or an option of at most this distance from one that is known is taken for a slip; a short one, of at most 1.
const SLIP: usize = 2;
/// From this many letters on the beginning of a command is taken for it.
const LEAST: usize = 3;
/// The commands that change nothing and need no more words.
const PLAIN: [&str; 4] = ["sessions", "log", "graph", "status"];
/// From this many letters on a word is not short.
const LONG: usize = 5;

/// Words of other programs: the command that does that here, and for what.
const FOREIGN: [(&[&str], &str, &[&str]); 36] = [
    (&["checkout"], "to make a branch the current one", &["help", "switch"]),
    (
        &["checkout", "reset", "rewind", "rollback", "back", "goto", "jump"],
        "to go back to a turn",
        &["help", "revert"],
    ),
    (
        &["commit", "stash", "add", "save", "snapshot", "tag", "mark", "bookmark"],
        "every turn is kept already; to mark a place",
        &["help", "checkpoint"],
    ),
    (
        &["fork", "worktree", "copy", "cp"],
        "to name a place and go on from there",
        &["help", "branch"],
    ),
    (
        &["merge", "rebase", "cherry-pick", "compare", "difftool"],
        "branches are not merged; to compare two",
        &["help", "diff"],
    ),
    (&["reflog", "history", "ops"], "to list what was done", &["operations"]),
    (&["history", "read", "print", "chat", "conversation"], "to read the conversation", &["log"]),
    (&["blame", "annotate", "hidden"], "to see what was cut, and by whom", &["audit"]),
    (&["list", "ls", "ll", "dir", "projects", "session"], "to list the sessions", &["sessions"]),
    (&["cat", "view", "open", "less", "more"], "to read an entry", &["show", "HEAD"]),
    (&["open", "view"], "to read the conversation", &["log"]),
    (&["tree", "branches", "gitk"], "to see turns and branches", &["graph"]),
    (&["info", "about", "whoami", "where", "st"], "to see where a session stands", &["status"]),
    (&["tokens", "usage", "cost", "window", "prompt"], "to see what a model is sent", &["context"]),
    (&["continue", "start", "run", "launch"], "to start the agent again", &["help", "resume"]),
    (
        &["clone", "pull", "fetch", "sync", "scan", "update", "load", "init", "ingest"],
        "to take in the sessions of your agents",
        &["help", "import"],
    ),
    (
        &["push", "archive", "bundle", "dump", "backup"],
        "to copy the store",
        &["help", "store", "backup"],
    ),
    (&["push", "dump", "write", "download"], "to write a session's file", &["help", "export"]),
    (&["stats", "size", "du"], "to count what the store holds", &["store", "stats"]),
    (&["rebuild", "reindex"], "to recompute what is derived", &["help", "store", "rebuild"]),
    (&["find", "grep", "rg", "ag"], "to find what was said", &["help", "search"]),
    (&["index", "reindex"], "to bring the index of words up to date", &["help", "store", "index"]),
    (
        &["rm", "delete", "remove", "drop", "hide", "archive"],
        "no session is deleted; to leave one out of lists",
        &["help", "sessions"],
    ),
    (&["prune", "shrink", "trim", "cut"], "to cut long results", &["help", "truncate"]),
    (
        &["summarize", "summarise", "summary", "compress", "shrink"],
        "to put a summary in the place of old turns",
        &["help", "compact"],
    ),
    (&["pack", "vacuum", "gc"], "to give back room", &["help", "store", "pack"]),
    (
        &["fsck", "check", "repair", "fix", "health"],
        "to look at the folder of the store",
        &["doctor"],
    ),
    (&["fsck", "check"], "to compute every hash again", &["verify"]),
    (
        &["secrets", "leaks", "gitleaks", "scan", "keys"],
        "to find keys and passwords",
        &["audit", "--secrets"],
    ),
    (
        &["config", "settings", "set", "options"],
        "to read about every setting",
        &["context", "--settings"],
    ),
    (&["ask", "send", "message", "say", "exec"], "to have a model answer", &["help", "turn"]),
    (&["create", "begin"], "to begin a session of undertext's own", &["help", "new"]),
    (
        &["completion", "complete", "autocomplete"],
        "to complete commands in a shell",
        &["help", "completions"],
    ),
    (&["manual", "docs", "doc", "usage", "commands"], "to list the commands", &["help"]),
    (&["version", "v"], "to see the version", &["--version"]),
    (&["rename", "mv"], "to give a branch another name", &["help", "branch"]),
];

/// Options of other programs, each behind the command with which they are typed: what does that here, and for what.
const FOREIGN_OPTIONS: [(&str, &[&str], &str, &[&str]); 14] = [
    (
        "log",
        &["--oneline", "--graph", "--decorate", "--short", "--branches"],
        "to see a line for each turn",
        &["graph"],
    ),
    (
        "log",
        &["-p", "--patch", "--stat"],
        "to read long texts and changes whole",
        &["log", "--full"],
    ),
    (
        "log",
        &["--since", "--after", "--until", "--agent", "--folder"],
        "to list the sessions of a time, a folder or an agent",
        &["help", "sessions"],
    ),
    ("log", &["-S", "-G"], "to find the entries that speak of something", &["help", "log"]),
    (
        "status",
        &["--short", "--porcelain", "-v", "--verbose", "-b"],
        "it is short as it is; for a program",
        &["status", "--json"],
    ),
    (
        "branch",
        &["-d", "-D", "--delete"],
        "no branch is deleted; to leave one out of lists",
        &["help", "branch"],
    ),
    ("branch", &["-m", "-M", "--move"], "another name is given by --rename", &["help", "branch"]),
    (
        "branch",
        &["-a", "-l", "-r", "-v", "-vv", "--list", "--all"],
        "to list the branches",
        &["branch"],
    ),
    ("switch", &["-c", "-C", "-b", "--create"], "to make a branch", &["help", "branch"]),
    (
        "revert",
        &["--hard", "--soft", "--mixed", "--no-edit", "-n"],
        "files stay as they are; how it differs from git",
        &["help", "revert"],
    ),
    ("revert", &["--abort", "--continue", "--skip"], "to undo a change", &["help", "undo"]),
    (
        "diff",
        &["--staged", "--cached", "--name-only", "--name-status"],
        "to count what differs",
        &["diff", "--stat"],
    ),
    (
        "checkpoint",
        &["-a", "-am", "--amend"],
        "to mark a place, with a note",
        &["help", "checkpoint"],
    ),
    (
        "import",
        &["--agent", "--all"],
        "without a path it takes in the sessions of every agent",
        &["help", "import"],
    ),
];

/// Returns the error of arguments that cannot be understood, with hints.
pub(crate) fn explain_misuse(
    env: &Env,
    all: &clap::Command,
    args: &[OsString],
    answer: &clap::Error,
) -> CommandError {
    let unknown = said(answer, ContextKind::InvalidSubcommand).concat();
    let end = args.iter().position(|arg| !unknown.is_empty() && *arg == *unknown);
    let verb = verb(all, args.get(..end.unwrap_or(args.len())).unwrap_or(args));
    let name = verb.join(" ");
    if answer.kind() == ErrorKind::InvalidSubcommand {
        let within = all.find_subcommand(&name).map(|group| (name.as_str(), group));
        return unknown_command(env, within.unwrap_or(("", all)), &unknown);
    }
    let is_missing = matches!(
        answer.kind(),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if is_missing && let Some(group) = all.find_subcommand(&name) {
        let error = anyhow!("{name} needs one of its commands: {}", names(group).join(", "));
        return CommandError::user(error).hinted(help(&verb));
    }
    if let Some(misplaced) = misplaced(all, &verb, args, answer) {
        return misplaced;
    }
    let usage = usage(all, &verb);
    let needy = needy(all, &verb, args, answer);
    let mut words = words(answer, &name, &usage, &needy);
    if answer.kind() == ErrorKind::ArgumentConflict
        && let Some((one, needed)) = needing(all, &verb, args, answer)
    {
        words = format!("{words}: {one} needs {}", needed.join(" and "));
    }
    let error = CommandError::user(anyhow!("{words}"));
    let mut hints = Vec::new();
    let wrong = said(answer, ContextKind::InvalidArg).concat();
    if answer.kind() == ErrorKind::UnknownArgument {
        hints.extend(foreign_option(&name, &wrong));
        let near = said(answer, ContextKind::SuggestedArg).into_iter();
        let bare = |word: &str| word.trim_start_matches('-').to_owned();
        let near: Vec<String> = near.filter(|other| is_slip(&bare(&wrong), &bare(other))).collect();
        if !near.is_empty() && hints.is_empty() {
            hints.push(format!("perhaps you mean {}", near.join(" or ")).into());
        }
    }
    hints.push(help(&verb));
    hints.into_iter().fold(error, CommandError::hinted)
}

/// Returns what is wrong, in one line.
fn words(answer: &clap::Error, name: &str, usage: &str, needy: &[String]) -> String {
    let said = |kind| said(answer, kind);
    let wrong = said(ContextKind::InvalidArg);
    let (first, value) = (wrong.concat(), said(ContextKind::InvalidValue).concat());
    let valid = said(ContextKind::ValidValue);
    let subject = if name.is_empty() { "undertext" } else { name };
    match answer.kind() {
        ErrorKind::UnknownArgument if first.starts_with('-') && first.len() > 1 => {
            format!("{subject} has no option {first}")
        }
        ErrorKind::UnknownArgument => format!("{first:?} is a word too many: {usage}"),
        ErrorKind::MissingRequiredArgument if !needy.is_empty() => {
            let need = if needy.len() == 1 { "needs" } else { "need" };
            format!("{} {need} {} too", needy.join(" and "), wrong.join(" and "))
        }
        ErrorKind::MissingRequiredArgument => {
            format!("{subject} needs {}: {usage}", wrong.join(" and "))
        }
        ErrorKind::InvalidValue if value.is_empty() && valid.is_empty() => {
            format!("{first} needs a value")
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            format!("{first} needs a value: {}", either(&valid))
        }
        ErrorKind::InvalidValue if !valid.is_empty() => {
            format!("{first} cannot be {value:?}: it is {}", either(&valid))
        }
        ErrorKind::ValueValidation => {
            let why = answer.source().map(ToString::to_string).unwrap_or_default();
            format!("{first} cannot be {value:?}: {why}")
        }
        ErrorKind::ArgumentConflict => {
            let prior = said(ContextKind::PriorArg);
            if prior.is_empty() || prior == wrong {
                format!("{first} is given twice")
            } else {
                format!("{first} and {} exclude each other", prior.join(", "))
            }
        }
        ErrorKind::TooManyValues => format!("{first} takes no value, and {value:?} is one"),
        ErrorKind::WrongNumberOfValues => format!("a value is missing: {first}"),
        ErrorKind::InvalidUtf8 => "an argument is not text (UTF-8)".to_owned(),
        _ => {
            let text = answer.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            text.lines().next().unwrap_or_default().to_owned()
        }
    }
}

/// Returns the error of an option that stands before the command that has it.
fn misplaced(
    all: &clap::Command,
    verb: &[String],
    args: &[OsString],
    answer: &clap::Error,
) -> Option<CommandError> {
    let command = verb.iter().try_fold(all, |at, name| at.find_subcommand(name))?;
    let option = said(answer, ContextKind::InvalidArg).concat();
    let is_it = |arg: &clap::Arg| {
        let long = arg.get_long().is_some_and(|long| option == format!("--{long}"));
        long || arg.get_short().is_some_and(|short| option == format!("-{short}"))
    };
    let at = args.iter().position(|word| Some(word.as_os_str()) == verb.first().map(OsStr::new))?;
    let (before, behind) = (args.get(1..at)?, args.get(at + verb.len()..)?);
    let is_before =
        || before.iter().any(|word| word.as_encoded_bytes().starts_with(option.as_bytes()));
    let is_known = answer.kind() == ErrorKind::UnknownArgument
        && option.starts_with('-')
        && command.get_arguments().any(is_it);
    if !is_known || !is_before() {
        return None;
    }
    let name = verb.join(" ");
    let mut words = before.iter().chain(behind);
    let mut line = typed(&verb.iter().map(String::as_str).collect::<Vec<_>>());
    while let Some(word) = words.next() {
        // Each command line names the store by itself.
        match word.to_str() {
            Some("--store") => drop(words.next()),
            Some(word) if word.starts_with("--store=") => {}
            _ => line = line.with(word),
        }
    }
    let error = anyhow!("{option} is an option of {name}, and goes after it");
    Some(CommandError::user(error).hinted(line.to("write it like this")))
}

/// Returns the options that were typed and need what is missing, if the command itself can do without it.
fn needy(
    all: &clap::Command,
    verb: &[String],
    args: &[OsString],
    answer: &clap::Error,
) -> Vec<String> {
    let missing = said(answer, ContextKind::InvalidArg);
    let mut all = all.clone();
    all.build();
    let command = verb.iter().try_fold(&all, |at, name| at.find_subcommand(name));
    let command = command.filter(|_| answer.kind() == ErrorKind::MissingRequiredArgument);
    let lacks = |option| lacking(&all, verb, option).iter().any(|arg| missing.contains(arg));
    let Some(command) = command.filter(|_| !lacks(None)) else { return Vec::new() };
    let is_needy = |arg: &&clap::Arg| typed_option(args, arg).is_some_and(|word| lacks(Some(word)));
    command.get_arguments().filter(is_needy).map(ToString::to_string).collect()
}

/// Returns what a command lacks to which one option is typed, or none. What an argument requires is known to clap alone, which is
/// asked about a line of its own.
fn lacking(all: &clap::Command, verb: &[String], option: Option<OsString>) -> Vec<String> {
    let words = [NAME].into_iter().chain(verb.iter().map(String::as_str)).map(OsString::from);
    let answer = all.clone().try_get_matches_from(words.chain(option)).err();
    let answer = answer.filter(|answer| answer.kind() == ErrorKind::MissingRequiredArgument);
    answer.map(|answer| said(&answer, ContextKind::InvalidArg)).unwrap_or_default()
}

/// Returns, of two arguments that exclude each other, the first that needs others that were not typed, and these.
fn needing(
    all: &clap::Command,
    verb: &[String],
    args: &[OsString],
    answer: &clap::Error,
) -> Option<(String, Vec<String>)> {
    let both = [ContextKind::InvalidArg, ContextKind::PriorArg].map(|kind| said(answer, kind));
    let mut all = all.clone();
    all.build();
    let command = verb.iter().try_fold(&all, |at, name| at.find_subcommand(name))?;
    let always = lacking(&all, verb, None);
    let typed = |name: &str| {
        let arg = command.get_arguments().find(|arg| arg.to_string() == name)?;
        typed_option(args, arg)
    };
    both.concat().into_iter().find_map(|name| {
        let mut lacking = lacking(&all, verb, Some(typed(&name)?));
        lacking.retain(|lacked| !always.contains(lacked) && typed(lacked).is_none());
        (!lacking.is_empty()).then_some((name, lacking))
    })
}

/// Returns an option as one word, with its value, if it was typed.
fn typed_option(args: &[OsString], arg: &clap::Arg) -> Option<OsString> {
    let long = format!("--{}", arg.get_long()?);
    let is_it = |word: &OsString| {
        let word = word.to_str().and_then(|word| word.split('=').next()).unwrap_or_default();
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        let is_short = |short| letters.is_some_and(|letters| letters.contains(short));
        arg.get_short().is_some_and(is_short) || word == long
    };
    let at = args.iter().position(is_it)?;
    if !arg.get_action().takes_values() {
        return Some(long.into());
    }
    let joined = args.get(at)?.to_str()?.split_once('=').map(|(_, value)| OsString::from(value));
    let value = joined.or_else(|| args.get(at + 1).cloned())?;
    Some([OsString::from(long), value].join(OsStr::new("=")))
}

/// Returns what clap says of an error, by its kind.
fn said(answer: &clap::Error, kind: ContextKind) -> Vec<String> {
    match answer.get(kind) {
        Some(ContextValue::String(word)) => vec![word.clone()],
        Some(ContextValue::Strings(words)) => words.clone(),
        _ => Vec::new(),
    }
}

/// Returns names as one of them is to be taken.
fn either(names: &[String]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        names => names.concat(),
    }
}

/// Returns the command that was typed: its name, behind that of its group if it is in one.
fn verb(all: &clap::Command, args: &[OsString]) -> Vec<String> {
    let mut at = all;
    let mut verb = Vec::new();
    for word in args.iter().skip(1).filter_map(|word| word.to_str()) {
        if let Some(command) = at.find_subcommand(word) {
            verb.push(word.to_owned());
            at = command;
        }
    }
    verb
}

/// Returns how a command is typed.
fn usage(all: &clap::Command, verb: &[String]) -> String {
    let mut all = all.clone();
    all.build();
    let command = verb.iter().try_fold(&mut all, |at, name| at.find_subcommand_mut(name));
    let usage = command.map(|command| command.render_usage().to_string()).unwrap_or_default();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    usage.strip_prefix(NAME).unwrap_or(usage).trim_start().to_owned()
}

/// Returns the hint to read how a command is used.
fn help(verb: &[String]) -> Hint {
    let words = "how it is used";
    match verb {
        [] => Line::new("help").to(words),
        [first, rest @ ..] => {
            let line = rest.iter().fold(Line::new(first), Line::with);
            line.flag("help").to(words)
        }
    }
}

/// Returns the names of the commands in a group.
fn names(group: &clap::Command) -> Vec<String> {
    group.get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

/// Returns the error of a word that is no command, of the program or of one of its groups.
fn unknown_command(env: &Env, (name, group): (&str, &clap::Command), word: &str) -> CommandError {
    if !name.is_empty() {
        let error =
            anyhow!("{name} has no command {word:?}: there are {}", names(group).join(", "));
        return CommandError::user(error).hinted(help(&[name.to_owned()]));
    }
    let path = env.current_dir.join(word);
    let what = if word.contains('/') && !path.exists() { "command or file" } else { "command" };
    let error = CommandError::user(anyhow!("there is no {what} {word:?}"));
    let lower = word.to_lowercase();
    let known = FOREIGN.iter().filter(|(words, ..)| words.contains(&lower.as_str()));
    let mut hints: Vec<Hint> = known.map(|(_, purpose, line)| typed(line).to(*purpose)).collect();
    if hints.is_empty() {
        let begins = |name: &String| lower.len() >= LEAST && name.starts_with(&lower);
        let is_near = |name: &String| is_slip(&lower, name) || begins(name);
        let near = names(group).into_iter().filter(is_near);
        let line = |name: String| {
            let is_plain = PLAIN.contains(&name.as_str());
            if is_plain { Line::new(name) } else { Line::new("help").with(name) }
        };
        hints.extend(near.map(|name| line(name).to("perhaps you mean")));
    }
    if undertext::wire::by_name(&lower).is_some() {
        hints.push(Line::new("sessions").option("agent", lower).to("to list its sessions"));
    } else if path.is_file() && ops::peek(&path, env.ambient()).is_ok() {
        hints.push(Line::new("log").with(word).to("to read this session file"));
    } else if !word.is_empty() && path.is_dir() {
        let folder = Line::new("sessions").option("folder", word);
        hints.push(folder.to("to list the sessions that work in this folder"));
        let found = Line::new("import").with(word).flag("dry-run");
        hints.push(found.to("to list the session files in it"));
    }
    if hints.is_empty() && !word.is_empty() && !word.contains('/') {
        let is_id = |c: char| c.is_ascii_hexdigit() || c == '-';
        hints.push(if word.chars().all(is_id) {
            Line::new("graph").with(word).to("if it is a session, to see its turns")
        } else {
            Line::new("search").with(word).to("to find these words")
        });
    }
    hints.push(Line::new("help").to("list the commands"));
    hints.into_iter().fold(error, CommandError::hinted)
}

/// Returns what does here what an option of another program does there.
fn foreign_option(verb: &str, option: &str) -> Option<Hint> {
    let number = option.strip_prefix('-').filter(|n| !n.is_empty());
    if let Some(n) = number.filter(|n| n.bytes().all(|byte| byte.is_ascii_digit()))
        && verb == "log"
    {
        return Some(Line::new(verb).with("-n").with(n).to("to see the last entries"));
    }
    let known =
        FOREIGN_OPTIONS.iter().find(|(of, names, ..)| *of == verb && names.contains(&option));
    known.map(|(.., purpose, line)| typed(line).to(*purpose))
}

/// Returns a command from its words.
fn typed(words: &[&str]) -> Line {
    let (verb, rest) = words.split_first().map_or(("help", words), |(verb, rest)| (*verb, rest));
    rest.iter().copied().fold(Line::new(verb), Line::with)
}

/// Returns whether a word is another one with a slip.
fn is_slip(word: &str, other: &str) -> bool {
    let least = word.chars().count().min(other.chars().count());
    distance(word, other) <= if least < LONG { 1 } else { SLIP }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_another_word() {
        assert!(is_slip("revrt", "revert") && is_slip("snhow", "show"));
        assert!(!is_slip("tag", "log") && !is_slip("cat", "man"));
    }

    #[test]
    fn every_hint_for_a_foreign_word_is_a_command_that_changes_nothing() {
        let all = crate::cli::command();
        let reading = [
            "help",
            "log",
            "sessions",
            "graph",
            "show",
            "status",
            "context",
            "store",
            "operations",
            "audit",
            "doctor",
            "verify",
            "--version",
        ];
        let lines = FOREIGN.iter().map(|(.., line)| line);
        let optional = FOREIGN_OPTIONS.iter().map(|(.., line)| line);
        for line in lines.chain(optional) {
            let [first, rest @ ..] = line else { unreachable!("a line has words") };
            assert!(reading.contains(first) || ["branch", "diff"].contains(first), "{line:?}");
            let helped = rest.iter().try_fold(&all, |at, name| at.find_subcommand(name));
            assert!(*first != "help" || helped.is_some(), "{line:?}");
        }
        for (words, ..) in FOREIGN {
            let known = words.iter().find(|word| all.find_subcommand(word).is_some());
            assert_eq!(known, None);
        }
    }
}
