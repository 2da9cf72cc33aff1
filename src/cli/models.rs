//! Shared by the commands that may ask a model: creates providers and hooks from the settings, and reports compactions.
//!
//! Invariant: a key is read from the environment only where it is used, and reaches nothing but its provider.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args as _, FromArgMatches as _};
use serde_json::Value;
use undertext::context::compact::Writer;
use undertext::context::event::Event;
use undertext::context::facts::Loss;
use undertext::context::history::{self, Limits};
use undertext::context::model::{ChatModel, Fault, ModelError, Summarizer, Tool};
use undertext::context::plan::{self, Keep, Nearness};
use undertext::context::tokens::Counting;
use undertext::context::visible::Visible;
use undertext::context::window::{Verdict, Window, Windows};
use undertext::context::{Shape, machine};
use undertext::disk;
use undertext::model::Timestamp;
use undertext::provider::process::{self, Task};
use undertext::provider::{Api, Command, Endpoint, Http, Key, Network};
use undertext::report::Hint;
use undertext::settings::{Provider, ProviderKind, Settings};
use undertext::verbs::{self, Allowed, Asked, Compacted, Compacting, Rule, Session};

use super::common::{counted, say_written, shown};
use super::env::Env;
use super::output::Output;
use super::{CommandError, Context, Opened};
use crate::render::units::grouped;

/// Default time limit of a hook, in seconds.
const HOOK_LIMIT: u64 = 30;
/// Maximum output of a hook, in bytes.
const HOOK_BYTES: usize = 1 << 20;
/// Default maximum length of a model's answer, in tokens.
pub(crate) const MAX_TOKENS: u64 = 8_192;
/// The environment variable that names a file of trusted certificates.
const ROOTS: &str = "SSL_CERT_FILE";
/// The provider name that selects the built-in extract.
const EXTRACT: &str = "extract";

/// The options of a compaction, for each command that may compact.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Summing {
    /// Keep N newest messages, P percent or T tokens [default: 20%]
    #[arg(long, value_name = "N|P%|Tk", allow_negative_numbers = true)]
    keep: Option<Keep>,

    /// What the summary should dwell on
    #[arg(long, visible_alias = "instructions", value_name = "TEXT")]
    focus: Option<String>,

    /// Provider that writes the summary [default: extract]
    #[arg(long, value_name = "NAME")]
    summarizer: Option<String>,

    /// Fail if the model fails, instead of falling back
    #[arg(long)]
    strict: bool,

    /// Show the model files in DIR [default: this project]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Show the model other files too, but never keys
    #[arg(long)]
    outside: bool,

    /// Size of the context window in tokens
    #[arg(long, value_name = "TOKENS", value_parser = super::common::tokens, allow_negative_numbers = true)]
    pub(crate) window: Option<u64>,

    /// Print events on stderr as JSON Lines
    #[arg(long)]
    pub(crate) events: bool,
}

/// A configured model.
pub(crate) trait Model: Summarizer + ChatModel {}

impl<T: Summarizer + ChatModel> Model for T {}

/// Prints an event, or drops it.
pub(crate) type Sink = Rc<dyn Fn(&Event)>;
/// Runs a configured hook command.
pub(crate) type Hook = Box<dyn Fn(&Value) -> Result<(), String>>;

/// Everything that a compaction needs. [`Kit::compacting`] lends it to the library.
pub(crate) struct Kit<'a> {
    pub(crate) asked: Asked,
    keep: Keep,
    summing: &'a Summing,
    settings: &'a Settings,
    folder: Option<PathBuf>,
    hidden: Vec<PathBuf>,
    summarizer: Option<Box<dyn Model>>,
    skills: Vec<Tool>,
    allowed: Allowed,
    before: Option<Hook>,
    after: Option<Hook>,
    clock: Box<dyn Fn() -> Timestamp>,
    pub(crate) sink: Sink,
}

impl Kit<'_> {
    /// Warns if the session's window is tight; one that is too small is refused by what is done in it.
    pub(crate) fn warn(&self, context: &mut Context, opened: &Opened) {
        if let Ok(session) = opened.at()
            && let Ok(window) = verbs::window(&session, &self.asked)
        {
            warn_tight(context, &*self.sink, &opened.session, &window);
        }
    }

    pub(crate) fn compacting(&self) -> Compacting<'_> {
        let (summing, set) = (self.summing, &self.settings.compaction);
        Compacting {
            rule: rule(self.settings),
            keep: self.keep,
            focus: summing.focus.as_deref().or(unless_blank(set.focus.as_deref())),
            strict: summing.strict || set.strict,
            visible: Visible {
                folder: self.folder.as_deref(),
                outside: summing.outside || set.outside,
                hidden: &self.hidden,
            },
            limit: set.timeout.map_or(machine::LIMIT, Duration::from_secs),
            by: self.summarizer.as_deref().map_or(Writer::Extract, |model| Writer::Model(model)),
            skills: &self.skills,
            allowed: Some(&self.allowed),
            before: self.before.as_deref(),
            after: self.after.as_deref(),
            ..Compacting::of(&self.asked, &*self.clock)
        }
    }
}

impl Summing {
    /// Returns true if the options keep no message.
    pub(crate) fn keeps_nothing(&self) -> bool {
        matches!(self.keep, Some(Keep::Share(0) | Keep::Last(0)))
    }

    /// Parses options that [`Context::words_of`] wrote.
    pub(crate) fn read(words: &[String]) -> Result<Self, CommandError> {
        let command = Self::augment_args(clap::Command::new("compact").no_binary_name(true));
        let matches = command.try_get_matches_from(words);
        let read = matches.and_then(|matches| Self::from_arg_matches(&matches));
        read.map_err(|_| CommandError::user(anyhow!("cannot read its options")))
    }
}

/// Returns the options of a compaction as words, for a later call from another folder.
pub(crate) fn words_of(env: &Env, summing: &Summing) -> Result<Vec<String>, CommandError> {
    let Summing { keep, focus, summarizer, strict, folder, outside, window, events: _ } = summing;
    let folder = folder.as_deref().map(|folder| named_folder(env, folder)).transpose()?;
    let folder = folder.map(|folder| folder.to_string_lossy().into_owned());
    let keep = keep.map(|keep| keep.to_string());
    let values = [
        ("keep", keep),
        ("focus", focus.clone()),
        ("summarizer", summarizer.clone()),
        ("folder", folder),
        ("window", window.map(|window| window.to_string())),
    ];
    let values =
        values.into_iter().filter_map(|(name, value)| Some(format!("--{name}={}", value?)));
    let flags = [("--strict", *strict), ("--outside", *outside)];
    let flags = flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name.to_owned());
    Ok(values.chain(flags).collect())
}

/// Builds the kit from the command line, with the settings as defaults.
pub(crate) fn kit<'a>(
    context: &Context,
    summing: &'a Summing,
    settings: &'a Settings,
    opened: &Opened,
) -> Result<Kit<'a>, CommandError> {
    let set = &settings.compaction;
    let keep = match (summing.keep, unless_blank(set.keep.as_deref())) {
        (Some(keep), _) => keep,
        (None, Some(keep)) => keep.parse().map_err(|why: String| {
            CommandError::user(anyhow!("compaction.keep in the settings cannot be {keep:?}: {why}"))
        })?,
        (None, None) => plan::KEEP,
    };
    let sink: Sink = if summing.events { Rc::new(Output::event) } else { Rc::new(|_| ()) };
    let name = summing.summarizer.as_deref().or(unless_blank(set.summarizer.as_deref()));
    let summarizer = match name {
        None | Some(EXTRACT) => None,
        Some(name) => Some(model(&context.env, settings, name, &sink)?),
    };
    let limit = Duration::from_secs(set.hook_timeout.unwrap_or(HOOK_LIMIT));
    let hook = |line: &Option<String>| {
        unless_blank(line.as_deref())
            .map(|line| hook(line.to_owned(), context.env.current_dir.clone(), limit))
    };
    let env = context.env.ambient_source();
    Ok(Kit {
        asked: Asked {
            window: summing.window,
            limits: limits(settings, None, opened)?,
            ..usual(settings)
        },
        keep,
        summing,
        settings,
        folder: match &summing.folder {
            Some(folder) => Some(named_folder(&context.env, folder)?),
            None => context.env.project(),
        },
        hidden: hidden(context),
        summarizer,
        skills: skills(context, unless_blank(set.skills.as_deref())),
        allowed: super::settings::allowed_of(settings)?,
        before: hook(&set.before),
        after: hook(&set.after),
        clock: Box::new(move || env().now()),
        sink,
    })
}

/// Returns the skills below a folder: names and descriptions in the `SKILL.md` of each.
fn skills(context: &Context, folder: Option<&str>) -> Vec<Tool> {
    /// How deep below the folder a skill may be.
    const DEPTH: usize = 3;
    let Some(folder) = folder else { return Vec::new() };
    let home =
        folder.strip_prefix("~/").and_then(|rest| Some(context.env.home.as_ref()?.join(rest)));
    let mut folders = vec![(home.unwrap_or_else(|| context.env.current_dir.join(folder)), 0)];
    let mut skills = Vec::new();
    while let Some((folder, depth)) = folders.pop() {
        if let Ok(text) = disk::read_text(&folder.join("SKILL.md"), disk::TEXT) {
            let field = |name: &str| {
                let line = text
                    .lines()
                    .take(20)
                    .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
                line.map(|value| value.trim().trim_matches(['"', '\'']).to_owned())
            };
            let description = field("description").unwrap_or_default();
            skills.extend(field("name").map(|name| Tool { name, description, ..Tool::default() }));
        }
        let inside = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let inside = inside.filter(|_| depth < DEPTH).map(|entry| entry.path());
        folders.extend(inside.filter(|path| path.is_dir()).map(|path| (path, depth + 1)));
    }
    skills.sort_by(|a, b| a.name.cmp(&b.name));
    skills
}

/// Returns a folder named on the command line, if it exists.
fn named_folder(env: &Env, named: &Path) -> Result<PathBuf, CommandError> {
    let folder = env.current_dir.join(named);
    if folder.is_dir() {
        return Ok(folder);
    }
    let named = shown(named);
    Err(CommandError::user(anyhow!(
        "--folder {named}: there is no such folder; name an existing one"
    )))
}

/// Returns undertext's own folders, wherever they are. No file in them is ever shown to a model.
fn hidden(context: &Context) -> Vec<PathBuf> {
    let env = &context.env;
    let own = [&env.config, &env.own_store, &env.state, &context.store];
    own.into_iter().flatten().cloned().collect()
}

/// Creates the model of a provider in the settings. Sends nothing.
pub(crate) fn model(
    env: &Env,
    settings: &Settings,
    name: &str,
    sink: &Sink,
) -> Result<Box<dyn Model>, CommandError> {
    let provider = provider(settings, name)?;
    let missing = |key: &str| {
        CommandError::user(anyhow!("provider.{name} in the settings has no {key}"))
            .hinted(Hint::settings(""))
    };
    let limit = provider.timeout.map(Duration::from_secs);
    let api = match provider.kind {
        ProviderKind::Command => {
            let line =
                unless_blank(provider.command.as_deref()).ok_or_else(|| missing("command"))?;
            let mut command = Command::new(line).named(name);
            command.window = provider.window;
            command.task.limit = limit.unwrap_or(command.task.limit);
            return Ok(Box::new(command));
        }
        ProviderKind::Openai => Api::OpenAi,
        ProviderKind::Responses => Api::Responses,
        ProviderKind::Anthropic => Api::Anthropic,
    };
    let url = unless_blank(provider.url.as_deref()).ok_or_else(|| missing("url"))?;
    let model = unless_blank(provider.model.as_deref()).ok_or_else(|| missing("model"))?;
    let mut endpoint = Endpoint::new(api, url, model);
    let variable = |name: &str| env.variable(name).and_then(|v| v.to_str()).map(str::to_owned);
    let secret = |key: &str, what: &str| {
        variable(key).map(|value| Key::new(&value)).ok_or_else(|| {
            CommandError::user(anyhow!("{what} of provider.{name} is not set"))
                .hinted(format!("put it into the environment, as {key}"))
        })
    };
    if let Some(key) = unless_blank(provider.key_env.as_deref()) {
        endpoint.key = Some(secret(key, "the key")?);
    }
    for (header, value) in &provider.headers {
        let value = match value.strip_prefix('$') {
            Some(variable) => secret(variable, &format!("the header {header}"))?,
            None => Key::new(value),
        };
        endpoint.headers.push((header.clone(), value));
    }
    endpoint.insecure = provider.insecure;
    endpoint.window = provider.window;
    endpoint.limits.request = limit.unwrap_or(endpoint.limits.request);
    endpoint.limits.retries = provider.retries.unwrap_or(endpoint.limits.retries);
    endpoint.streams = provider.stream.unwrap_or(true);
    endpoint.temperature.clone_from(&provider.temperature);
    endpoint.effort = unless_blank(provider.effort.as_deref()).map(str::to_owned);
    endpoint.caches = provider.cache.unwrap_or(endpoint.caches);
    endpoint.limit_name = unless_blank(provider.max_tokens_as.as_deref()).map(str::to_owned);
    endpoint.network = Network::of(url, &variable);
    endpoint.network.roots = roots(env)?;
    let (sink, source) = (Rc::clone(sink), env.ambient_source());
    let refused = |error: ModelError| match error.fault {
        Fault::Exposed => {
            let why = format!("provider.{name} would send its key to {url} unencrypted");
            let leave = format!("or set insecure = true in [provider.{name}] of config.toml");
            CommandError::user(anyhow!(why)).hinted("use an https:// address").hinted(leave)
        }
        _ => CommandError::user(anyhow!(error)),
    };
    let http = Http::new(endpoint)
        .map_err(refused)?
        .noticed(move |event| sink(event))
        .timed(move || source().now());
    Ok(Box::new(http))
}

/// Reads the certificates that replace the default ones, if the environment names a file of them.
fn roots(env: &Env) -> Result<Option<String>, CommandError> {
    let Some(path) = env.variable(ROOTS).map(Path::new) else { return Ok(None) };
    let read = disk::read_text(path, disk::TEXT).map_err(|error| {
        let (path, why) = (shown(path), disk::words(&error));
        CommandError::user(anyhow!("{ROOTS} names {path}, which cannot be read: {why}"))
            .hinted(format!(
                "undertext does not fall back to other certificates; name a readable file, or unset {ROOTS}"
            ))
    });
    read.map(Some)
}

/// Returns the request that the settings describe, for the whole history.
pub(crate) fn usual(settings: &Settings) -> Asked {
    Asked {
        shape: Shape::Agent,
        model: None,
        window: None,
        windows: windows(settings),
        limits: Limits::default(),
        images: true,
        results: None,
        counting: Some(Counting::Estimate),
    }
}

/// Returns the default request of an agent. Unreadable settings count as empty.
pub(crate) fn usual_request(context: &mut Context) -> Asked {
    let settings = context.read_settings().map(|read| read.settings).unwrap_or_default();
    usual(&settings)
}

/// Returns the window sizes from the settings.
pub(crate) fn windows(settings: &Settings) -> Windows {
    let (window, default) = (&settings.window, Windows::default());
    let models = settings.models.iter();
    Windows {
        models: models.filter_map(|(name, model)| Some((name.clone(), model.window?))).collect(),
        cap: window.cap,
        default: window.default.filter(|&tokens| tokens > 0).unwrap_or(default.default),
        block: window.block.unwrap_or(default.block),
        warn: window.warn.unwrap_or(default.warn),
    }
}

/// Returns how much of the history may be sent, according to the settings and the session's channel and user.
pub(crate) fn limits(
    settings: &Settings,
    key: Option<&str>,
    opened: &Opened,
) -> Result<Limits, CommandError> {
    let some = |n: usize| (n > 0).then_some(n);
    let channels = settings.channels.iter().map(|(name, channel)| {
        let users = channel.users.iter().filter(|(_, turns)| **turns > 0);
        let channel = history::Channel {
            direct: some(channel.direct),
            group: some(channel.group),
            users: users.map(|(user, turns)| (user.clone(), *turns)).collect(),
        };
        (name.to_lowercase(), channel)
    });
    let channels: BTreeMap<String, history::Channel> = channels.collect();
    let of_key = match (key, channels.is_empty()) {
        (_, true) => None,
        (Some(key), _) => Some(key.to_owned()),
        (None, _) => verbs::session_key(&opened.at()?)?,
    };
    let of_key = of_key.as_deref().and_then(history::Key::parse);
    let of_key = of_key.and_then(|key| history::turns_of(&channels, &key));
    let limits = &settings.limits;
    Ok(Limits {
        turns: of_key.or(some(limits.turns)),
        messages: some(limits.messages),
        tokens: (limits.tokens > 0).then_some(limits.tokens),
        since: None,
    })
}

/// Returns the rule that decides when a context is compacted.
pub(crate) fn rule(settings: &Settings) -> Rule {
    let (set, usual) = (&settings.compaction, Rule::default());
    Rule {
        percent: set.percent.unwrap_or(usual.percent).min(100),
        at: set.at,
        reserve: set.reserve.unwrap_or(usual.reserve),
    }
}

/// Describes how near a compaction is.
pub(crate) fn describe_nearness(near: &Nearness) -> String {
    if near.is_due {
        format!("due to be compacted, at {}", grouped(near.at))
    } else {
        format!("compaction due at {} ({} to go)", grouped(near.at), grouped(near.left))
    }
}

/// Finds a provider in the settings.
pub(crate) fn provider<'s>(
    settings: &'s Settings,
    name: &str,
) -> Result<&'s Provider, CommandError> {
    settings.provider.get(name).ok_or_else(|| {
        let names: Vec<&str> = settings.provider.keys().map(String::as_str).collect();
        let error = CommandError::user(anyhow!("the settings have no provider {name:?}"));
        let error = match names.as_slice() {
            [] => error,
            [only] => error.hinted(format!("available: {only}")),
            names => error.hinted(format!("available: {}", names.join(", "))),
        };
        error.hinted(Hint::settings("set one in config.toml"))
    })
}

/// Returns a setting, or `None` if it is blank.
pub(crate) fn unless_blank(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.trim().is_empty())
}

/// Creates a hook from a command line. The command reads the event on stdin, and fails by its exit code.
fn hook(line: String, folder: PathBuf, limit: Duration) -> Hook {
    Box::new(move |told| {
        let task =
            Task { line: line.clone(), folder: Some(folder.clone()), limit, max_bytes: HOOK_BYTES };
        let done = process::run(&task, told.to_string().as_bytes());
        let done = done.map_err(|error| format!("`{line}`: {error}"))?;
        match (done.code, done.errors.trim()) {
            (Some(0), _) => Ok(()),
            (Some(code), "") => Err(format!("`{line}` ended with {code}")),
            (Some(_), errors) => Err(errors.to_owned()),
            (None, _) => Err(format!("`{line}` was killed")),
        }
    })
}

/// Warns of a window that is tight, programs by an event.
pub(crate) fn warn_tight(
    context: &mut Context,
    sink: &dyn Fn(&Event),
    session: &Session,
    window: &Window,
) {
    if window.verdict == Verdict::Warned {
        let (session, enough) = (session.name.id.clone(), window.least);
        sink(&Event::WindowTight { session, window: window.tokens, enough });
        let (tokens, enough) = (counted(window.tokens, "token", "tokens"), grouped(enough));
        context.output.warn(&format!("a window of {tokens} is tight; at least {enough} is better"));
    }
}

/// Prints what a compaction did.
pub(crate) fn tell_compaction(context: &mut Context, done: &Compacted) -> Result<(), CommandError> {
    tell_failures(context, done);
    let messages = |n: usize| counted(n as u64, "message", "messages");
    context.say(&format!(
        "Compacted {}: summarised {}, kept {}",
        done.branch,
        messages(done.summarised),
        messages(done.kept),
    ))?;
    context.say(&format!(
        "The context went from about {} to {} tokens in a {}-token window",
        grouped(done.pre_tokens),
        grouped(done.post_tokens),
        grouped(done.window)
    ))?;
    let lost: Vec<Loss> = done.losses.iter().filter(|loss| loss.kept < loss.of).cloned().collect();
    if !lost.is_empty() {
        context.say(&format!("The summary names {}", shares(&lost)))?;
    }
    if let Some(left) = &done.left {
        context.say(&format!("The previous state is kept as branch {left}"))?;
    }
    say_written(context, &done.done)
}

/// Warns of failures in a compaction that was made anyway.
pub(crate) fn tell_failures(context: &mut Context, done: &Compacted) {
    tell_fallback(context, done.fallback.as_deref());
    if let Some(error) = &done.after {
        context.output.warn(&format!("after_compaction failed: {error}"));
    }
}

/// Warns if a model was asked for a summary and an extract replaces it.
pub(crate) fn tell_fallback(context: &mut Context, why: Option<&str>) {
    if let Some(error) = why {
        context.output.warn(&format!("no model wrote a summary: {error}"));
        context.output.note("Used an extract instead");
    }
}

/// Describes how much of each kind a summary names.
pub(crate) fn shares(losses: &[Loss]) -> String {
    let share = |loss: &Loss| format!("{} of {} {}", loss.kept, loss.of, loss.kind.as_str());
    losses.iter().map(share).collect::<Vec<_>>().join(", ")
}
