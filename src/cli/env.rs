//! All ambient state, read once at the start: arguments, folders, terminal, environment variables, and the two things that change
//! on their own, time and randomness.
//!
//! For tests only, and not in the help: `UNDERTEXT_TEST_CLOCK` starts the clock at a Unix time in milliseconds, advances it by
//! one millisecond per reading and shows times in UTC; `UNDERTEXT_TEST_SEED`, a number, makes uuids deterministic.
//!
//! Invariant: an empty variable counts as unset, as the `NO_COLOR` and XDG conventions require. The exception is an empty pager,
//! which means no pager.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::Context as _;
use chrono::{FixedOffset, Offset as _, Utc};
use undertext::disk::{self, Refusal};
use undertext::json::Raw;
use undertext::model::{MachineId, Timestamp};
use undertext::trust;
use undertext::verbs::{Ambient, Here, Machine};
use uuid::Uuid;

use super::CommandError;
use super::hint::SHORT;
use crate::render::safe;
use crate::render::time::Zone;

/// Variables that name this user's own folders. Only absolute paths count.
const FOLDERS: [&str; 4] = ["HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"];

/// The variable with which this user allows a store on a network file system.
pub(crate) const ALLOW_NETWORK: &str = "UNDERTEXT_ALLOW_NETWORK";

const DEFAULT_PAGER: &str = "less -FRX";
/// Makes pagers show colours, leave the screen as it is, and exit if everything fits on it.
const PAGER_VARIABLES: [(&str, &str); 2] = [("LESS", "FRX"), ("LV", "-c")];

pub(crate) const SYSTEM: &str = env::consts::OS;

/// The ambient state of the process.
#[derive(Clone, Debug)]
pub(crate) struct Env {
    /// The command line, program name first.
    pub(crate) args: Vec<OsString>,
    /// The program's short name, if it was called by that name.
    pub(crate) short: Option<&'static str>,
    pub(crate) current_dir: PathBuf,
    pub(crate) home: Option<PathBuf>,
    /// The user's own store: `undertext` in `$XDG_DATA_HOME` or `~/.local/share`.
    pub(crate) own_store: Option<PathBuf>,
    /// The user's own settings: `undertext` in `$XDG_CONFIG_HOME` or `~/.config`.
    pub(crate) config: Option<PathBuf>,
    /// What this machine remembers: `undertext` in `$XDG_STATE_HOME` or `~/.local/state`.
    pub(crate) state: Option<PathBuf>,
    pub(crate) user: Option<String>,
    /// The name of this machine.
    pub(crate) host: Option<String>,
    /// The path of the user's shell.
    pub(crate) shell: Option<PathBuf>,
    /// The pager and its arguments; empty for none.
    pub(crate) pager: Vec<String>,
    /// Pager variables that the user has not set; they turn colours on.
    pub(crate) pager_variables: Vec<(&'static str, &'static str)>,
    pub(crate) terminal: Terminal,
    /// The terminal's width, if it is known.
    pub(crate) columns: Option<usize>,
    /// True if `NO_COLOR` is unset and the terminal is not dumb.
    pub(crate) welcomes_colour: bool,
    /// True if the terminal understands no escape sequences, such as those that clear a line.
    pub(crate) is_dumb: bool,
    pub(crate) zone: Zone,
    variables: BTreeMap<OsString, OsString>,
    moment: Moment,
}

/// Which of the three standard streams are terminals.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terminal {
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
}

/// The source of time and randomness for the verbs.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// The next reading of a test's clock.
    clock: Option<Timestamp>,
    /// A test's seed, and how often it was drawn from.
    chance: Option<(u64, u64)>,
}

impl Ambient for Moment {
    fn now(&mut self) -> Timestamp {
        match &mut self.clock {
            None => Machine.now(),
            Some(next) => {
                let now = *next;
                next.0 += 1;
                now
            }
        }
    }

    fn offset(&mut self, at: Timestamp) -> FixedOffset {
        match self.clock {
            None => Machine.offset(at),
            Some(_) => Utc.fix(),
        }
    }

    fn uuid(&mut self) -> Uuid {
        match &mut self.chance {
            None => Machine.uuid(),
            Some((seed, drawn)) => {
                uuid::Builder::from_random_bytes(random(*seed, drawn)).into_uuid()
            }
        }
    }

    fn salt(&mut self) -> [u8; 16] {
        match &mut self.chance {
            None => Machine.salt(),
            // A separate sequence, so that salts do not change a test's uuids.
            Some((seed, drawn)) => random(!*seed, &mut drawn.clone()),
        }
    }
}

/// Returns the next random bytes of a seeded sequence.
fn random(seed: u64, drawn: &mut u64) -> [u8; 16] {
    let input = (u128::from(seed) << 64 | u128::from(*drawn)).to_be_bytes();
    *drawn = drawn.wrapping_add(1);
    let mut random = [0; 16];
    blake3::Hasher::new().update(&input).finalize_xof().fill(&mut random);
    random
}

impl Env {
    /// Reads the state of this process.
    pub(crate) fn read() -> Self {
        let terminal = Terminal {
            stdin: io::stdin().is_terminal(),
            stdout: io::stdout().is_terminal(),
            stderr: io::stderr().is_terminal(),
        };
        // A deleted folder has no path. `.` fails only where it is used.
        let current_dir = env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        let mut env =
            Self::new(env::args_os().collect(), env::vars_os().collect(), current_dir, terminal);
        if env.columns.is_none() {
            env.columns = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        }
        env
    }

    fn new(
        args: Vec<OsString>,
        variables: BTreeMap<OsString, OsString>,
        current_dir: PathBuf,
        terminal: Terminal,
    ) -> Self {
        let raw = |name: &str| variables.get(OsStr::new(name));
        let set = |name: &str| raw(name).filter(|value| !value.is_empty());
        let text = |name: &str| set(name).and_then(|value| value.to_str());

        let home = set("HOME").or_else(|| set("USERPROFILE")).map(PathBuf::from);
        let home = home.filter(|home| home.is_absolute());
        let is_dumb = text("TERM") == Some("dumb");
        let pager = raw("UNDERTEXT_PAGER").or_else(|| raw("PAGER"));
        let pager = pager.map_or(DEFAULT_PAGER.into(), |pager| pager.to_string_lossy());
        // A dumb terminal cannot move its cursor.
        let mut pager = if is_dumb { Vec::new() } else { command(&pager) };
        // A user's own LESS may lack `-R`, so it is passed as an argument.
        if pager.first().is_some_and(|program| is_less(program))
            && text("LESS").is_some_and(|set| !set.contains('R'))
        {
            pager.insert(1, "-R".to_owned());
        }
        let is_unset = |(name, _): &(&str, &str)| set(name).is_none();
        let xdg = |name: &str, instead: &str| {
            let named = set(name).map(PathBuf::from).filter(|path| path.is_absolute());
            let folder = named.or_else(|| home.as_ref().map(|home| home.join(instead)));
            folder.map(|folder| folder.join("undertext"))
        };
        let called = args.first().and_then(|program| Path::new(program).file_name());
        Self {
            short: called.filter(|name| *name == SHORT).map(|_| SHORT),
            own_store: xdg("XDG_DATA_HOME", ".local/share"),
            config: xdg("XDG_CONFIG_HOME", ".config"),
            state: xdg("XDG_STATE_HOME", ".local/state"),
            home,
            user: ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(text).map(str::to_owned),
            host: rustix::system::uname().nodename().to_str().ok().map(str::to_owned),
            shell: set("SHELL").map(PathBuf::from),
            pager,
            pager_variables: PAGER_VARIABLES.into_iter().filter(is_unset).collect(),
            columns: text("COLUMNS").and_then(|columns| columns.parse().ok()).filter(|&n| n > 0),
            welcomes_colour: set("NO_COLOR").is_none() && !is_dumb,
            is_dumb,
            zone: if set("UNDERTEXT_TEST_CLOCK").is_some() { Zone::Utc } else { Zone::Local },
            moment: Moment {
                clock: text("UNDERTEXT_TEST_CLOCK")
                    .and_then(|millis| millis.parse().ok())
                    .map(Timestamp),
                chance: text("UNDERTEXT_TEST_SEED")
                    .and_then(|seed| seed.parse().ok())
                    .map(|seed| (seed, 0)),
            },
            args,
            current_dir,
            terminal,
            variables,
        }
    }

    /// Returns the value of a variable, or `None` if it is empty.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str).filter(|v| !v.is_empty())
    }

    /// Returns the environment variables that an agent must pass to undertext, so that it finds the same store and settings: this
    /// user's folders, and `agent`, the variable of the agent's folder.
    pub(crate) fn handed_on(&self, agent: Option<&'static str>) -> Vec<(&'static str, OsString)> {
        let folders = FOLDERS.into_iter().chain(agent).filter_map(|name| {
            let folder = Path::new(self.variable(name)?);
            let counts = folder.is_absolute() || !FOLDERS.contains(&name);
            counts.then(|| (name, self.current_dir.join(folder).into_os_string()))
        });
        let allowed = self.variable(ALLOW_NETWORK).map(|_| (ALLOW_NETWORK, "1".into()));
        folders.chain(allowed).collect()
    }

    /// Returns the current folder by the shell's name for it, which may contain links.
    pub(crate) fn shells_dir(&self) -> PathBuf {
        let named = self.variable("PWD").map(PathBuf::from).filter(|path| path.is_absolute());
        let here = self.current_dir.canonicalize().ok();
        let is_here = |path: &PathBuf| here.is_some() && path.canonicalize().ok() == here;
        named.filter(is_here).unwrap_or_else(|| self.current_dir.clone())
    }

    /// Returns the user's project: this user's repository that contains the current folder, or the current folder. `None` if it
    /// contains the home folder, because then it is not a project.
    pub(crate) fn project(&self) -> Option<PathBuf> {
        let here = self.current_dir.canonicalize().ok()?;
        let home = self.home.as_ref().and_then(|home| home.canonicalize().ok());
        let is_project =
            |folder: &Path| !home.as_ref().is_some_and(|home| home.starts_with(folder));
        let own = rustix::process::geteuid().as_raw();
        let is_own = |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.uid() == own);
        let mut above = here.ancestors().take_while(|folder| is_project(folder));
        let repository = above.find(|folder| is_own(folder) && is_own(&folder.join(".git")));
        let project = repository.map(Path::to_owned).unwrap_or(here);
        is_project(&project).then_some(project)
    }

    /// Returns the path of this program as it was typed or found in PATH, if that leads here. This path stays valid when another
    /// version is installed there.
    pub(crate) fn program(&self) -> io::Result<PathBuf> {
        let running = env::current_exe()?;
        let is_it = |path: &PathBuf| {
            let [path, running] = [path, &running].map(|path| path.canonicalize().ok());
            path.is_some() && path == running
        };
        let typed = self.args.first().map(PathBuf::from).unwrap_or_default();
        let path = self.variable("PATH").unwrap_or_default();
        let folders = env::split_paths(path).filter(|folder| folder.is_absolute());
        let mut found = if typed.components().count() > 1 {
            vec![self.current_dir.join(&typed)]
        } else {
            folders.map(|folder| folder.join(&typed)).collect()
        };
        found.retain(is_it);
        Ok(found.into_iter().next().unwrap_or(running))
    }

    /// Returns a path for display, with `~` for the home folder.
    pub(crate) fn homely(&self, path: &Path) -> String {
        match self.home.as_deref().and_then(|home| path.strip_prefix(home).ok()) {
            Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
            Some(below) => format!("~/{}", safe::path(below)),
            None => safe::path(path),
        }
    }

    /// Returns a function that creates a source of time and randomness for each archive.
    pub(crate) fn ambient_source(&self) -> impl Fn() -> Box<dyn Ambient> + use<> {
        let moment = self.moment;
        move || Box::new(moment)
    }

    /// Returns the computer and account that paths belong to. Without a number for this computer, no path belongs to it.
    pub(crate) fn here(&self) -> Result<Here, CommandError> {
        let machine = self.state.as_deref().map(trust::machine).transpose();
        let machine = machine.context("cannot read this computer's number")?.flatten();
        Ok(Here { machine: machine.unwrap_or_default(), ..self.nowhere() })
    }

    /// Returns a computer that no path belongs to.
    pub(crate) fn nowhere(&self) -> Here {
        Here { machine: MachineId::default(), home: self.home.clone() }
    }

    /// Returns the computer and account that paths belong to. Draws a number for this computer if it has none.
    pub(crate) fn drawn_here(&self) -> Result<Here, CommandError> {
        let here = self.here()?;
        if here.machine != MachineId::default() {
            return Ok(here);
        }
        let Some(state) = self.state.as_deref() else { return Ok(here) };
        // Zero means no number.
        let drawn = self.ambient().uuid().as_u64_pair().0 | 1;
        let machine = trust::draw_machine(state, MachineId::new(drawn));
        let machine = machine.context("cannot save this computer's number")?;
        Ok(Here { machine, ..here })
    }

    /// Returns a source of time and randomness for one archive.
    pub(crate) fn ambient(&self) -> Box<dyn Ambient> {
        Box::new(self.moment)
    }
}

/// Maximum number of bytes read from stdin, or from a file given instead.
pub(crate) const STDIN: u64 = 1 << 30;

/// Opens an address in the user's browser. Returns false if nothing can.
pub(crate) fn open_in_browser(address: &str) -> bool {
    let program = if SYSTEM == "macos" { "open" } else { "xdg-open" };
    let started = std::process::Command::new(program)
        .arg(address)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn();
    started.is_ok()
}

/// Reads all of stdin.
pub(crate) fn read_stdin() -> io::Result<Vec<u8>> {
    disk::whole(io::stdin().lock(), STDIN)
}

/// Reads a text from stdin. `what` is its name in errors.
pub(crate) fn read_text(what: &str) -> Result<String, CommandError> {
    let not_text = |_| CommandError::user(anyhow::anyhow!("{what} on stdin is not UTF-8"));
    String::from_utf8(read_stdin()?).map_err(not_text)
}

/// Maximum length of a line that a terminal passes on, in bytes. It silently drops the rest.
const TYPED: u64 = if cfg!(target_os = "linux") { 4095 } else { 1023 };

/// Reads a typed line. A line that the terminal may have cut off is an error.
pub(crate) fn read_typed() -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    io::stdin().lock().take(TYPED).read_until(b'\n', &mut line)?;
    if line.len() as u64 == TYPED && !line.ends_with(b"\n") {
        return Err(Refusal::TooLong(TYPED - 1).into());
    }
    Ok(line)
}

/// Maximum size of an agent's event.
const EVENT: u64 = 16 << 20;
/// How long to wait for an event on stdin.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reads an agent's event from stdin. The event ends where its object ends, because the writer may leave stdin open.
pub(crate) fn read_event() -> io::Result<Vec<u8>> {
    let (send, receive) = mpsc::sync_channel(0);
    let read = move || {
        let mut piece = vec![0; 1 << 16];
        loop {
            let read = match io::stdin().read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map(|length| piece.get(..length).unwrap_or_default().to_vec()),
            };
            let is_last = read.as_ref().map_or(true, Vec::is_empty);
            if send.send(read).is_err() || is_last {
                return;
            }
        }
    };
    thread::Builder::new().spawn(read)?;
    let (end, mut event) = (Instant::now() + PATIENCE, Vec::new());
    while event.len() as u64 <= EVENT {
        match receive.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(piece) => {
                let piece = piece?;
                event.extend_from_slice(&piece);
                if piece.is_empty() || is_object(&event) {
                    return Ok(event);
                }
            }
            Err(_) if event.is_empty() => return Err(io::ErrorKind::TimedOut.into()),
            Err(_) => return Ok(event),
        }
    }
    Err(Refusal::TooLong(EVENT).into())
}

/// Returns true if the bytes are one complete JSON object.
fn is_object(bytes: &[u8]) -> bool {
    bytes.trim_ascii_end().ends_with(b"}") && Raw::object(bytes.trim_ascii()).is_some()
}

/// Splits a command line into a program and its arguments. A line with shell syntax is run by `sh -c`.
fn command(line: &str) -> Vec<String> {
    const MEANINGFUL: &[char] = &[
        '|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '"', '\'', '*', '?', '[', '#', '~', '=',
        '%',
    ];
    if line.contains(MEANINGFUL) {
        return ["sh", "-c", line].map(str::to_owned).to_vec();
    }
    line.split_whitespace().map(str::to_owned).collect()
}

/// Returns true if a pager is `less`.
pub(crate) fn is_less(program: &str) -> bool {
    Path::new(program).file_name() == Some(OsStr::new("less"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(current_dir: &str, variables: &[(&str, &str)]) -> Env {
        let variables = variables.iter().map(|&(name, value)| (name.into(), value.into()));
        Env::new(Vec::new(), variables.collect(), current_dir.into(), Terminal::default())
    }

    /// A relative folder, which names no store, was made absolute and named another one; leave for a network was lost.
    #[test]
    fn the_variables_that_count_are_handed_on() {
        let set = [
            ("HOME", "/h"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "/var/state"),
            ("AGENT_HOME", "code"),
            ("UNDERTEXT_ALLOW_NETWORK", "yes"),
        ];
        let expected = [
            ("HOME", "/h"),
            ("XDG_STATE_HOME", "/var/state"),
            ("AGENT_HOME", "/w/code"),
            ("UNDERTEXT_ALLOW_NETWORK", "1"),
        ];
        let handed = env("/w", &set).handed_on(Some("AGENT_HOME"));
        assert_eq!(handed, expected.map(|(name, value)| (name, value.into())));
    }

    #[test]
    fn an_empty_variable_is_unset() {
        let env = env("/", &[("NO_COLOR", ""), ("HOME", ""), ("COLUMNS", ""), ("AGENT_HOME", "")]);
        assert!(env.welcomes_colour);
        assert_eq!((&env.home, env.columns, env.variable("AGENT_HOME")), (&None, None, None));
    }

    #[test]
    fn colour_is_unwelcome_with_no_color_or_a_dumb_terminal() {
        assert!(!env("/", &[("NO_COLOR", "1")]).welcomes_colour);
        let dumb = env("/", &[("TERM", "dumb")]);
        assert!(!dumb.welcomes_colour && dumb.is_dumb);
        assert!(env("/", &[("TERM", "xterm")]).welcomes_colour);
    }

    #[test]
    fn less_shows_colours_however_it_is_named_and_set() {
        let check = |pager: &str, less: &str, args: &[&str], told: usize| {
            let env = env("/", &[("PAGER", pager), ("LESS", less)]);
            assert_eq!(
                (env.pager, env.pager_variables.len()),
                (args.iter().map(|&it| it.to_owned()).collect(), told),
                "{pager}, {less}"
            );
        };
        check("less", "", &["less"], 2);
        check("/usr/bin/less -S", "-i", &["/usr/bin/less", "-R", "-S"], 1);
        check("less", "-iR", &["less"], 1);
        check("more", "-i", &["more"], 1);
        assert_eq!(env("/", &[("LV", "-l")]).pager_variables, [("LESS", "FRX")]);
    }

    #[test]
    fn the_own_pager_wins_and_an_empty_one_means_none() {
        assert_eq!(env("/", &[]).pager, ["less", "-FRX"]);
        assert_eq!(env("/", &[("PAGER", "more")]).pager, ["more"]);
        assert_eq!(env("/", &[("PAGER", "less -R")]).pager, ["less", "-R"]);
        let shell = env("/", &[("PAGER", "LESS=R less | cat")]).pager;
        assert_eq!(shell, ["sh", "-c", "LESS=R less | cat"]);
        let none: [&str; 0] = [];
        assert_eq!(env("/", &[("PAGER", "more"), ("UNDERTEXT_PAGER", "")]).pager, none);
    }

    #[test]
    fn xdg_wins_over_home_unless_it_is_relative() {
        let data = |xdg| env("/", &[("HOME", "/h"), ("XDG_DATA_HOME", xdg)]).own_store;
        assert_eq!(data("/x"), Some("/x/undertext".into()));
        assert_eq!(data("x"), Some("/h/.local/share/undertext".into()));
    }

    #[test]
    fn the_test_clock_starts_where_told_and_ticks() {
        let mut ambient = env("/", &[("UNDERTEXT_TEST_CLOCK", "1000")]).ambient();
        assert_eq!([ambient.now(), ambient.now()], [Timestamp(1000), Timestamp(1001)]);
    }

    #[test]
    fn seeded_uuids_repeat_and_real_ones_do_not() {
        let draw = |seed| {
            let mut ambient = env("/", &[("UNDERTEXT_TEST_SEED", seed)]).ambient();
            [ambient.uuid(), ambient.uuid()]
        };
        assert_eq!(draw("7"), draw("7"));
        assert_ne!(draw("7"), draw("8"));
        let [first, second] = draw("7");
        assert_ne!(first, second);
        assert_eq!(first.get_version_num(), 4);
        assert_ne!(env("/", &[]).ambient().uuid(), env("/", &[]).ambient().uuid());
    }
}
