//! The command line: the global options, the list of commands, and the path from the arguments to an exit code. Without a
//! command, it prints an overview.
//!
//! A command is a thin file: its `Args`, whose doc comments are the help, and a `run` that parses what the user named, calls one
//! verb of the library, and renders the result.
//!
//! Invariant: only [`env`] reads ambient state, and only [`output`] writes to a stream. It lends stderr to the picker's screen.

#![expect(clippy::doc_markdown, reason = "doc comments are help here, and backticks would show")]

mod append;
mod archive;
mod attach;
mod audit;
mod branch;
mod browse;
mod candidates;
mod checkpoint;
mod checkpoints;
mod chosen;
mod clear;
mod common;
mod compact;
mod complete;
mod completions;
mod context;
mod current;
mod diff;
mod doctor;
mod document;
mod env;
mod error;
mod export;
mod follow;
mod forget;
mod graph;
mod handoff;
mod help;
mod hint;
mod hook;
mod import;
mod landing;
mod later;
mod log;
mod man;
mod misuse;
mod models;
mod new;
mod operations;
mod options;
mod output;
mod overview;
#[cfg(feature = "browse")]
mod pick;
#[cfg(not(feature = "browse"))]
#[path = "no_pick.rs"]
mod pick;
mod pointed;
mod recover;
mod redact;
mod redo;
mod restore;
mod resume;
mod revert;
mod rotations;
mod search;
mod secrets;
mod serve;
mod sessions;
mod settings;
mod setup;
mod show;
mod shown;
mod stats;
mod status;
mod store;
mod switch;
mod truncate;
mod trust;
mod turn;
mod undo;
mod unseen;
mod verify;
mod watch;
mod words;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args as _, CommandFactory as _, FromArgMatches as _};
use undertext::model::SessionName;

pub(crate) use archive::Opened;
use env::Env;
pub(crate) use error::{CommandError, Exit};
pub(crate) use hint::NAME;
use options::Global;
use output::{Manners, Output};
pub(crate) use words::About;

/// The warning that the store's last changes cannot be read.
const TORN: &str = "torn";

/// The state that every command works with.
pub(crate) struct Context {
    pub(crate) env: Env,
    pub(crate) output: Output,
    /// Write data as JSON Lines.
    pub(crate) json: bool,
    /// The command's name as typed.
    pub(crate) verb: String,
    /// The store given by `--store`.
    asked: Option<PathBuf>,
    /// The store's folder, once chosen.
    store: Option<PathBuf>,
    /// The warnings already given.
    warned: BTreeSet<&'static str>,
    /// Import the agents' new sessions before sessions are listed or named.
    imports_new: bool,
    /// The bare program's line about sessions that it imported.
    imported: Option<String>,
    /// The session that a person picked, after the word that was typed for it.
    picked: Option<(Option<OsString>, SessionName)>,
    /// Temporary files of killed commands that this command deleted.
    deleted: Vec<PathBuf>,
    /// How long to wait for another program.
    wait: Duration,
    /// The session that the command is about to change, and its number of operations.
    begun: Option<(SessionName, u64)>,
    /// Describes a change that is not an operation of that session.
    done: Option<String>,
}

/// Keep everything a coding agent ever saw, and go back to any of it
#[derive(Debug, clap::Parser)]
#[command(
    name = NAME,
    version,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

/// Generates [`Command`] from its variants, their modules, and the words that a person types.
macro_rules! commands {
    ($($variant:ident $module:ident $word:literal,)+) => {
        /// The command to run.
        #[derive(Debug)]
        enum Command {
            $($variant($module::Args),)+
        }

        impl Command {
            fn run(&self, context: &mut Context) -> Result<Exit, CommandError> {
                match self {
                    $(Self::$variant(args) => $module::run(context, args),)+
                }
            }

            /// Describes the command of a word, without the other commands.
            fn describe(word: &str) -> Option<clap::Command> {
                match word {
                    $($word => Some($module::Args::augment_args(clap::Command::new($word))),)+
                    _ => None,
                }
            }
        }

        impl clap::Subcommand for Command {
            fn augment_subcommands(all: clap::Command) -> clap::Command {
                all.subcommands([$($word,)+].into_iter().filter_map(Self::describe))
            }

            fn augment_subcommands_for_update(all: clap::Command) -> clap::Command {
                Self::augment_subcommands(all)
            }

            fn has_subcommand(word: &str) -> bool {
                [$($word,)+].contains(&word)
            }
        }

        impl clap::FromArgMatches for Command {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Self::from_arg_matches_mut(&mut matches.clone())
            }

            fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
                let (word, mut matches) = matches.remove_subcommand().unwrap_or_default();
                match word.as_str() {
                    $($word => $module::Args::from_arg_matches_mut(&mut matches).map(Self::$variant),)+
                    _ => Err(clap::Error::new(ErrorKind::MissingSubcommand)),
                }
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }
    };
}

commands! {
    Append append "append",
    Attach attach "attach",
    Audit audit "audit",
    Branch branch "branch",
    Browse browse "browse",
    Checkpoint checkpoint "checkpoint",
    Checkpoints checkpoints "checkpoints",
    Clear clear "clear",
    Compact compact "compact",
    Completions completions "completions",
    Context context "context",
    Diff diff "diff",
    Doctor doctor "doctor",
    Export export "export",
    Forget forget "forget",
    Graph graph "graph",
    Handoff handoff "handoff",
    Help help "help",
    Hook hook "hook",
    Import import "import",
    Log log "log",
    Man man "man",
    New new "new",
    Operations operations "operations",
    Recover recover "recover",
    Redact redact "redact",
    Redo redo "redo",
    Restore restore "restore",
    Resume resume "resume",
    Revert revert "revert",
    Rotations rotations "rotations",
    Search search "search",
    Serve serve "serve",
    Sessions sessions "sessions",
    Setup setup "setup",
    Show show "show",
    Stats stats "stats",
    Status status "status",
    Store store "store",
    Switch switch "switch",
    Truncate truncate "truncate",
    Trust trust "trust",
    Turn turn "turn",
    Undo undo "undo",
    Verify verify "verify",
    Watch watch "watch",
}

/// Runs the command line.
pub(crate) fn main() -> ExitCode {
    let env = Env::read();
    if let Some(exit) = complete::answer(&env) {
        return exit;
    }
    match parse(&env.args, env.columns) {
        Ok((cli, verb)) => run(env, &cli, verb),
        // An agent that calls the hook wrongly gets no output.
        Err(answer) if answer.use_stderr() && hook::is_called(&env.args) => ExitCode::SUCCESS,
        Err(answer) if answer.kind() == ErrorKind::InvalidSubcommand => {
            let named = named(&env).and_then(|args| parse(&args, env.columns).ok());
            match named {
                Some((cli, verb)) => run(env, &cli, verb),
                None => explain(&env, &answer),
            }
        }
        Err(answer) => explain(&env, &answer),
    }
}

fn command() -> clap::Command {
    Cli::command()
}

/// Parses the arguments, and returns the name of the command too. Help is laid out only on request.
fn parse(args: &[OsString], columns: Option<usize>) -> Result<(Cli, String), clap::Error> {
    // Describing all commands is slow, and needed only to explain an error.
    if let Some(parsed) = parse_alone(args) {
        return Ok(parsed);
    }
    let mut command = command();
    let mut matches = match command.try_get_matches_from_mut(args) {
        Err(answer) if answer.kind() == ErrorKind::DisplayHelp => {
            help::lay_out(self::command(), columns, help::Described::Everyday)
                .try_get_matches_from_mut(args)?
        }
        matches => matches?,
    };
    let verb = matches.subcommand_name().unwrap_or_default().to_owned();
    let cli =
        Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))?;
    Ok((cli, verb))
}

/// Parses the arguments with only the first command they name, if they are valid.
///
/// Valid with one command means valid with all: no other word is accepted as a command.
fn parse_alone(args: &[OsString]) -> Option<(Cli, String)> {
    let mut words = args.iter().skip(1).filter_map(|word| word.to_str());
    let (verb, command) = words.find_map(|word| Some((word, Command::describe(word)?)))?;
    let all = clap::Command::new(NAME).disable_help_subcommand(true).subcommand(command);
    let mut matches = Global::augment_args(all).try_get_matches_from(args).ok()?;
    let global = Global::from_arg_matches_mut(&mut matches).ok()?;
    let command = Command::from_arg_matches_mut(&mut matches).ok()?;
    Some((Cli { global, command: Some(command) }, verb.to_owned()))
}

/// Returns the command meant by a first word that is not a command: `graph` if it names a session, `sessions` if it matches
/// several.
fn named(env: &Env) -> Option<Vec<OsString>> {
    let [program, word, rest @ ..] = env.args.as_slice() else { return None };
    let text = word.to_str().filter(|word| !word.is_empty() && !word.starts_with('-'))?;
    if misuse::is_known(&command(), text) {
        return None;
    }
    let globals = [program.clone(), "sessions".into()];
    let (cli, verb) = parse(&[&globals, rest].concat(), env.columns).ok()?;
    let mut context = context(env.clone(), &cli.global, verb);
    let (verb, word) = archive::meant_by(&mut context, word)?;
    Some([&[program.clone(), verb.into(), word], rest].concat())
}

fn run(env: Env, cli: &Cli, verb: String) -> ExitCode {
    let mut context = context(env, &cli.global, verb);
    let answer = match &cli.command {
        Some(command) => command.run(&mut context),
        None => overview::run(&mut context),
    };
    if answer.is_ok() {
        overview::note_use(&context);
    }
    let written = context.output.finish().map_err(CommandError::from);
    // The answer is incomplete if the store's last changes cannot be read.
    let answer = answer.map(|exit| if context.warned.contains(TORN) { Exit::No } else { exit });
    let answer = answer.and_then(|exit| written.map(|()| exit));
    let answer = answer.map_err(|error| error.after(|| archive::made(&mut context)));
    conclude(&mut context.output, answer, context.json)
}

fn context(env: Env, global: &Global, verb: String) -> Context {
    let Global { store, json, color, no_pager, no_import, wait, quiet } = global;
    // Programs read JSON, and a pager would get in their way.
    let manners = Manners { colour: *color, paged: !no_pager && !json, quiet: *quiet };
    let mut output = Output::new(&env, manners);
    output.naming().store.clone_from(store);
    let asked = store.clone();
    let imports_new = !no_import && current::is_current(&verb);
    Context {
        env,
        output,
        json: *json,
        verb,
        asked,
        store: None,
        begun: None,
        done: None,
        warned: BTreeSet::new(),
        imports_new,
        imported: None,
        picked: None,
        deleted: Vec::new(),
        wait: Duration::from_secs(*wait),
    }
}

/// Prints the requested help or version, or explains what is wrong with the arguments.
fn explain(env: &Env, answer: &clap::Error) -> ExitCode {
    let colour = help::typed(&env.args, "--color");
    let colour = colour.and_then(|word| word.to_str()?.parse().ok()).unwrap_or_default();
    let mut output = Output::new(env, Manners { colour, paged: false, quiet: false });
    let store = help::typed(&env.args, "--store").filter(|store| !store.is_empty());
    output.naming().store = store.map(PathBuf::from);
    let told = match answer.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => help::print(&mut output, answer),
        _ => Err(misuse::explain_misuse(env, &command(), &env.args, answer)),
    };
    let written = output.finish().map_err(CommandError::from);
    let is_json = env.args.iter().any(|arg| arg == "--json");
    conclude(&mut output, told.and_then(|exit| written.map(|()| exit)), is_json)
}

fn conclude(output: &mut Output, answer: Result<Exit, CommandError>, is_json: bool) -> ExitCode {
    match answer {
        Ok(exit) => exit.into(),
        Err(error) => {
            output.error(&error, is_json);
            ExitCode::from(&error)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::error::{ContextKind, ContextValue};

    use super::*;

    #[test]
    fn the_description_of_the_command_line_is_consistent() {
        command().debug_assert();
    }

    /// Clap waives an argument that another one needs where a third one excludes it. So whatever excludes an argument has to
    /// exclude those that need it, too.
    #[test]
    fn no_option_is_taken_without_what_it_needs() {
        let mut all = command();
        all.build();
        let (mut found, mut faults) = (0, Vec::new());
        for_each_command(&all, &mut |words, command| {
            let typed = Typed { words, command, always: Vec::new() };
            let typed = Typed { always: typed.lacking(&[]), ..typed };
            let args: Vec<&clap::Arg> =
                command.get_arguments().filter(|arg| Typed::has(arg)).collect();
            for (one, needed) in args.iter().flat_map(|one| typed.needed(one)) {
                found += 1;
                for other in args.iter().filter(|other| ![one, needed].contains(other)) {
                    if typed.excludes([needed, other]) && !typed.excludes([one, other]) {
                        faults
                            .push(format!("{words:?}: {one} needs {needed}, but not with {other}"));
                    }
                }
            }
        });
        assert!(found > 10, "{found} arguments need another");
        assert_eq!(faults, [""; 0]);
    }

    /// Visits each command that has none of its own, with the words that name it.
    fn for_each_command(command: &clap::Command, visit: &mut dyn FnMut(&[&str], &clap::Command)) {
        fn walk<'c>(
            command: &'c clap::Command,
            words: &mut Vec<&'c str>,
            visit: &mut dyn FnMut(&[&str], &clap::Command),
        ) {
            words.push(command.get_name());
            if !command.has_subcommands() {
                visit(words, command);
            }
            for below in command.get_subcommands() {
                walk(below, words, visit);
            }
            words.pop();
        }
        walk(command, &mut Vec::new(), visit);
    }

    /// A command to which arguments are typed.
    struct Typed<'c> {
        words: &'c [&'c str],
        command: &'c clap::Command,
        /// What it cannot do without.
        always: Vec<&'c clap::Arg>,
    }

    impl<'c> Typed<'c> {
        /// Returns whether an argument is one that the command has of its own.
        fn has(arg: &clap::Arg) -> bool {
            !arg.is_global_set() && !["help", "version"].contains(&arg.get_id().as_str())
        }

        /// Returns what clap says to some arguments, and to what the command cannot do without.
        fn answer(&self, args: &[&clap::Arg]) -> Option<clap::Error> {
            let mut all: Vec<&clap::Arg> = self.always.clone();
            all.extend(args.iter().filter(|arg| !self.always.contains(arg)));
            // What is no option stands behind those that are, in its order.
            all.sort_by_key(|arg| arg.get_index());
            let typed = all.iter().flat_map(|arg| self.spell(arg));
            let line = self.words.iter().map(|word| (*word).to_owned()).chain(typed);
            command().try_get_matches_from(line).err()
        }

        /// Returns an argument as it is typed, with a value that it takes.
        fn spell(&self, arg: &clap::Arg) -> Vec<String> {
            let name = arg.get_long().map(|long| format!("--{long}"));
            if !arg.get_action().takes_values() {
                return name.into_iter().collect();
            }
            let first = arg.get_possible_values().first().map(|value| value.get_name().to_owned());
            let values = [
                "1",
                "7d",
                "claude",
                "user",
                "time",
                "edits",
                "private-key",
                "short",
                "a:direct:b",
                "a=b",
                "1,2",
            ];
            let values = first.into_iter().chain(values.map(str::to_owned));
            let spelt = values.map(|value| {
                let n = arg.get_num_args().map_or(1, |range| range.min_values().max(1));
                name.iter().cloned().chain(vec![value; n]).collect::<Vec<String>>()
            });
            let is_taken = |spelt: &Vec<String>| {
                let line = [NAME.to_owned()].into_iter().chain(spelt.iter().cloned());
                let answer = self.command.clone().try_get_matches_from(line).err();
                let kind = answer.map(|answer| answer.kind());
                !matches!(kind, Some(ErrorKind::ValueValidation | ErrorKind::InvalidValue))
            };
            spelt.into_iter().find(is_taken).unwrap_or_else(|| panic!("no value for {arg}"))
        }

        /// Returns what is missing where some arguments are typed.
        fn lacking(&self, args: &[&clap::Arg]) -> Vec<&'c clap::Arg> {
            let answer =
                self.answer(args).filter(|it| it.kind() == ErrorKind::MissingRequiredArgument);
            let missing = answer.and_then(|it| it.get(ContextKind::InvalidArg).cloned());
            let Some(ContextValue::Strings(missing)) = missing else { return Vec::new() };
            let is_missing = |arg: &&clap::Arg| missing.contains(&arg.to_string());
            self.command.get_arguments().filter(is_missing).collect()
        }

        /// Returns an argument with each one that it needs.
        fn needed<'a>(&self, arg: &'a clap::Arg) -> Vec<(&'a clap::Arg, &'c clap::Arg)> {
            self.lacking(&[arg]).into_iter().map(|needed| (arg, needed)).collect()
        }

        /// Returns whether two arguments exclude each other.
        fn excludes(&self, both: [&clap::Arg; 2]) -> bool {
            self.answer(&both).is_some_and(|answer| answer.kind() == ErrorKind::ArgumentConflict)
        }
    }
}
