//! `browse`: the screen of all sessions.
//!
//! The screen runs on this thread and never waits. Others open the store, call the verbs and send what they report. A request
//! that a newer one replaces is dropped.
//!
//! ```text
//! the screen     keys ──> state ──> Effect ─┐                    state <── Answer
//! the worker     Read, Plan, Run, Show      ├─> verb ──> report ──────────┤
//! the drawer     Graph, Rows, Seek          ├─> rows of a graph ──────────┤
//! the setter     LayOut                     ├─> rows of a conversation ───┤
//! the searcher   Search                     └─> hits ─────────────────────┤
//! the lister     every few seconds                the list of sessions ───┘
//! ```

use anyhow::anyhow;
use undertext::report::Line;

use super::{About, CommandError, Context, Exit};

/// Show all sessions on a screen: read, go back, search
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext browse
  undertext browse 7c2a           begin with this session

Three panes show the sessions, the turns of one, and the conversation of one
turn; a terminal of less than 110 columns shows two. Keys:

  j k J K space    move in a pane, by turns, page the conversation
  tab 1 2 3        another pane          enter  open, or unfold
  / s f a          filter, search all, choose the folder or the agent
  r R u U b c      revert, keep this turn, undo, redo, switch, compare
  o : y ? q        resume, any command, copy, all keys, quit

A change asks first, and says which turns move. The screen follows sessions as
agents write them.")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let env = &context.env;
    let takes_sequences = env.variable("TERM").is_some() && !env.is_dumb;
    if context.json || !(env.terminal.stdin && env.terminal.stderr && takes_sequences) {
        let error = anyhow!("this needs a terminal that can move its cursor");
        return Err(CommandError::user(error)
            .hinted(Line::new("sessions").to("list the sessions"))
            .hinted(Line::new("graph").to("see the turns of one"))
            .hinted(Line::new("log").to("read it")));
    }
    screen::run(context, args)
}

#[cfg(not(feature = "browse"))]
mod screen {
    use anyhow::anyhow;

    use super::{Args, CommandError, Context, Exit};

    pub(super) fn run(_context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
        args.about.wanted()?;
        Err(CommandError::user(anyhow!("this program was built without screens")))
    }
}

#[cfg(feature = "browse")]
mod screen {
    mod drawer;

    use std::collections::{BTreeMap, BTreeSet, VecDeque};
    use std::ffi::{OsStr, OsString};
    use std::fs;
    use std::io::{self, BufRead as _, Write as _};
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
    use std::thread;
    use std::time::{Duration, Instant};

    use anyhow::{Context as _, anyhow};
    use chrono::Datelike as _;
    use undertext::disk::{self, Stamp};
    use undertext::model::{EntryId, SessionName, Timestamp};
    use undertext::report::{Hit, ListedSession};
    use undertext::store::SessionFilter;
    use undertext::verbs::{self, Case, Difference, Having, Order, Search, Side, Sort};

    use self::drawer::Drawer;
    use super::{Args, CommandError, Exit};
    use crate::browse::{
        self, Answer, Browse, Comparison, Conversation, Effect, Found, Host, Keys, Look, Report,
        SessionRow, Sessions, Wake,
    };
    use crate::cli::env::{Env, Terminal};
    use crate::cli::hint::Naming;
    use crate::cli::options::Global;
    use crate::cli::output::{Output, copying};
    use crate::cli::{Context, Opened, common, overview, search, sessions, shown, store};
    use crate::render::search as hits;
    use crate::render::style::{Label, Span, Styles, unpaint};
    use crate::render::time::Zone;
    use crate::render::{safe, units};

    /// How often files are checked for growth.
    const TICK: Duration = Duration::from_millis(300);
    /// How often new sessions are looked for.
    const LISTED: Duration = Duration::from_secs(5);
    /// Rereading may take at most 1/SHARE of the time.
    const SHARE: u32 = 5;
    /// How many sessions are listed first, before all of them.
    const FIRST: usize = 100;
    /// Maximum number of messages that a search shows, and of lines of each.
    const FOUND: usize = 100;
    const LINES: usize = 40;
    /// The width of the reports of commands.
    const COLUMNS: usize = 100;
    /// How commands call an argument that is a turn or a branch.
    const PLACES: [&str; 3] = ["PLACE", "ENTRY", "BRANCH"];
    /// Maximum size of an edited note.
    const LONGEST_NOTE: u64 = 1 << 20;
    /// What a dry run and its hints say to a person at a prompt only.
    const UNSAID: [&str; 3] = ["Nothing was changed: this was a dry run", "hint: ", "note: "];

    pub(super) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
        let wanted = args.about.wanted()?;
        let session = wanted.is_some().then(|| stored_session(context, wanted)).transpose()?;
        let styles = context.output.lend()?;
        let (zone, now) = (context.env.zone, context.env.ambient().now());
        let naming = context.output.naming().clone();
        let naming = Naming { session: None, ..naming };
        let spell = Box::new(move |line: &super::Line| naming.spell(line));
        let settings = context.settings()?;
        let look = Look { styles, zone, now, glyphs: settings.browse.glyphs };
        let (keys, unknown) = Keys::new(settings.keys);
        let mut browse = Browse::new(look, keys, spell, Box::new(candidates));
        for name in unknown {
            let why =
                format!("[keys] in your settings: nothing is called {name}; ? lists the names");
            browse.on_answer(Answer::Failed(why));
        }
        if let Some(session) = session {
            browse.start_with(session);
        }
        let (asks, asked) = channel();
        let (answers, answered) = channel();
        let (wake, woken) = Wake::pair().context("cannot wake the screen")?;
        let mut env = context.env.clone();
        env.terminal = Terminal::default();
        let global = Global {
            store: context.asked.clone(),
            wait: context.wait.as_secs(),
            no_import: !context.imports_new,
            ..Global::default()
        };
        let opener = Outside { env: context.env.clone(), store: context.asked.clone() };
        let outside = Outside { env: context.env.clone(), store: context.asked.clone() };
        let (changes, changed) = channel();
        let hand = Hand { env, global, answers, wake: Arc::new(wake) };
        let (lister, teller) = (hand.clone(), hand.clone());
        thread::spawn(move || lister.list_until(&changed));
        // The other thread imports what is new.
        let hand = Hand { global: Global { no_import: true, ..hand.global.clone() }, ..hand };
        let (draws, drawn) = channel();
        let drawer = Drawer { hand: hand.clone(), asked: drawn, queue: VecDeque::new() };
        thread::spawn(move || drawer.work());
        let (searches, searched) = channel();
        let (searcher, newest) = (hand.clone(), Arc::new(AtomicU64::new(0)));
        let asked_last = Arc::clone(&newest);
        thread::spawn(move || searcher.search_all(&searched, &asked_last));
        let (drafts, drafted) = channel();
        let setter = hand.clone();
        thread::spawn(move || setter.lay_out_all(&drafted));
        let queue = VecDeque::new();
        thread::spawn(move || Worker { hand, asked, queue, changes, shown: None }.work());
        let mut ask = |effect: Effect| {
            // The screen ends when a thread does.
            let _ = match effect {
                Effect::Copy(text) => return copying(&text),
                Effect::Window(args) => {
                    teller.report(opener.open_window(&args));
                    return None;
                }
                Effect::Graph(..) | Effect::Rows { .. } | Effect::Seek { .. } => draws.send(effect),
                Effect::LayOut(_) => drafts.send(effect),
                Effect::Search(words) => {
                    let n = newest.fetch_add(1, Ordering::Relaxed) + 1;
                    let _ = searches.send((n, words));
                    return None;
                }
                effect => asks.send(effect),
            };
            None
        };
        let mut leave = |effect: &Effect| outside.run(effect);
        let host = Host { answers: &answered, woken, ask: &mut ask, outside: &mut leave };
        browse::live(&mut browse, host).context("cannot draw on the terminal")?;
        Ok(Exit::Yes)
    }

    /// Returns the session that a word names. A file is not in the store, so the screen could not list it.
    fn stored_session(
        context: &mut Context,
        wanted: Option<&OsStr>,
    ) -> Result<SessionName, CommandError> {
        let opened = context.find(wanted)?;
        if opened.archive.root().is_some() {
            return Ok(opened.session.name);
        }
        let import = wanted.into_iter().fold(super::Line::new("import"), super::Line::with);
        let error = anyhow!("the screen shows sessions of the store, and this is a file");
        Err(CommandError::user(error).hinted(import.to("import it first")))
    }

    /// Runs programs that need the terminal.
    struct Outside {
        env: Env,
        store: Option<PathBuf>,
    }

    impl Outside {
        /// Runs a command line, and waits for a person to read what it said. Returns the text that it edited.
        fn run(&self, effect: &Effect) -> io::Result<Option<String>> {
            let (args, is_read) = match effect {
                Effect::Edit(text) => {
                    return Ok(Some(self.edit(text).unwrap_or_else(|_| text.clone())));
                }
                Effect::Outside(args) => (args.iter().map(OsString::from).collect(), false),
                Effect::Command(typed, session) => (command_line(typed, session.as_ref()), true),
                _ => return Ok(None),
            };
            let mut command = Command::new(self.env.program()?);
            let ended = command.args(self.store_option()).args(args).status()?;
            if is_read || !ended.success() {
                write!(io::stderr(), "\n⏎ returns to the screen ")?;
                io::stderr().flush()?;
                io::stdin().lock().read_line(&mut String::new())?;
            }
            Ok(None)
        }

        fn store_option(&self) -> impl Iterator<Item = &OsStr> {
            self.store.iter().flat_map(|store| ["--store".as_ref(), store.as_os_str()])
        }

        /// Lets a person edit a text. Without an editor, or if it fails, the text stays as it is.
        fn edit(&self, text: &str) -> io::Result<String> {
            let names = ["VISUAL", "EDITOR"].iter().find_map(|name| self.env.variable(name));
            let editor = names.unwrap_or("vi".as_ref());
            let name = format!("undertext-note-{}.md", uuid::Uuid::new_v4());
            let path = std::env::temp_dir().join(name);
            let mut file = disk::make(&path)?;
            file.write_all(text.as_bytes())?;
            // An editor may have arguments.
            let script = format!("{} \"$1\"", editor.to_string_lossy());
            let ended = Command::new("sh").arg("-c").arg(script).arg("sh").arg(&path).status();
            let edited = disk::read_text(&path, LONGEST_NOTE);
            fs::remove_file(&path)?;
            let is_done = ended.is_ok_and(|ended| ended.success());
            Ok(edited.ok().filter(|_| is_done).unwrap_or_else(|| text.to_owned()))
        }

        /// Runs a command line in a new window of tmux.
        fn open_window(&self, args: &[String]) -> Result<(), CommandError> {
            if self.env.variable("TMUX").is_none() {
                return Err(CommandError::user(anyhow!("O needs tmux; o resumes here")));
            }
            let mut command = Command::new("tmux");
            command.args(["new-window", "--"]).arg(self.env.program().context("no program")?);
            let ran = command.args(self.store_option()).args(args).output();
            let ran = ran.context("cannot run tmux")?;
            if ran.status.success() {
                return Ok(());
            }
            let why = String::from_utf8_lossy(&ran.stderr).into_owned();
            Err(CommandError::user(anyhow!("tmux: {}", safe::line(why.trim()))))
        }
    }

    /// Returns the words that may follow a command line: commands, or a command's subcommands, its options, and the places if it is
    /// about one.
    fn candidates(before: &str, places: Vec<String>) -> Vec<String> {
        let mut command = crate::cli::command();
        for word in before.split_whitespace() {
            if let Some(inner) = command.find_subcommand(word) {
                command = inner.clone();
            }
        }
        let long = |arg: &clap::Arg| arg.get_long().map(|long| format!("--{long}"));
        let is_first = before.trim().is_empty();
        let options: Vec<String> = command.get_arguments().filter_map(long).collect();
        let names = command.get_subcommands().map(|command| command.get_name().to_owned());
        let is_place = |arg: &clap::Arg| {
            let mut names = arg.get_value_names().into_iter().flatten();
            names.any(|name| PLACES.contains(&name.as_str())) || arg.get_id() == "branch"
        };
        let takes_place = command.get_arguments().any(is_place);
        let places = places.into_iter().filter(|_| takes_place);
        names.chain(places).chain(options.into_iter().filter(|_| !is_first)).collect()
    }

    /// Returns the words of a typed command line, about a session if the command is about one and names none.
    fn command_line(typed: &str, session: Option<&SessionName>) -> Vec<OsString> {
        let mut words = split(typed);
        let about = words.first().and_then(|word| crate::cli::Command::describe(word));
        let takes_session =
            about.is_some_and(|command| command.get_arguments().any(|arg| arg.get_id() == "named"));
        let is_named = words.iter().any(|word| word == "-s" || word.starts_with("--session"));
        if let Some(SessionName { format, id }) = session.filter(|_| takes_session && !is_named) {
            words.extend(["-s".to_owned(), format!("{format}:{id}")]);
        }
        words.into_iter().map(OsString::from).collect()
    }

    /// Splits a line into words. Quotes keep spaces together.
    fn split(typed: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for c in typed.chars() {
            match (c, quote) {
                (c, Some(open)) if c == open => quote = None,
                ('\'' | '"', None) => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (c, None) if c.is_whitespace() => words.extend(word.take()),
                (c, _) => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }

    /// What a thread needs to call verbs and to send what they report.
    #[derive(Clone)]
    struct Hand {
        env: Env,
        global: Global,
        answers: Sender<Answer>,
        wake: Arc<Wake>,
    }

    /// The thread that reads places of the shown session, and runs command lines.
    struct Worker {
        hand: Hand,
        asked: Receiver<Effect>,
        queue: VecDeque<Effect>,
        /// Tells the thread that lists sessions that one was changed.
        changes: Sender<()>,
        shown: Option<Shown>,
    }

    /// The session that is being read.
    struct Shown {
        context: Context,
        opened: Opened,
        stamp: Option<FileStamp>,
    }

    /// Returns the next request, skipping those that a newer one replaces. Returns `None` if none arrives in time.
    fn next(
        asked: &Receiver<Effect>,
        queue: &mut VecDeque<Effect>,
        wait: Duration,
    ) -> Result<Option<Effect>, RecvTimeoutError> {
        if queue.is_empty() {
            match asked.recv_timeout(wait) {
                Ok(effect) => queue.push_back(effect),
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        queue.extend(asked.try_iter());
        while let Some(effect) = queue.pop_front() {
            let same =
                |other: &Effect| std::mem::discriminant(other) == std::mem::discriminant(&effect);
            if !(effect.is_replaced() && queue.iter().any(same)) {
                return Ok(Some(effect));
            }
        }
        Ok(None)
    }

    impl Worker {
        fn work(mut self) {
            while let Ok(request) = next(&self.asked, &mut self.queue, LISTED) {
                if let Some(request) = request {
                    self.answer(request);
                }
            }
        }

        fn answer(&mut self, request: Effect) {
            match request {
                Effect::Read(session, place) => {
                    let read = self
                        .shown(&session)
                        .and_then(|shown| read(&shown.context, &shown.opened, &place));
                    if let Some(read) = self.hand.report(read) {
                        self.hand.send(Answer::Conversation(read));
                    }
                }
                Effect::Whole(session, entry) => {
                    let whole = self.shown(&session).and_then(|shown| whole(&shown.opened, entry));
                    if let Some(line) = self.hand.report(whole).flatten() {
                        self.hand.send(Answer::Whole(session, Box::new(line)));
                    }
                }
                Effect::Compare(session, place) => {
                    let compared =
                        self.shown(&session).and_then(|shown| compare(&shown.opened, &place));
                    if let Some(compared) = self.hand.report(compared) {
                        self.hand.send(Answer::Compared(compared));
                    }
                }
                Effect::Run(args) => {
                    let report = self.hand.capture(&args);
                    self.shown = None;
                    self.hand.send(Answer::Done { args, report });
                    // Without the other thread, the list only stays as it is.
                    let _ = self.changes.send(());
                }
                Effect::Show(args) => {
                    let report = self.hand.capture(&args);
                    self.hand.send(Answer::Shown { args, report });
                }
                Effect::Plan(args) => self.plan(args),
                _ => {}
            }
        }

        /// Returns a session, opened as its file is now.
        fn shown(&mut self, name: &SessionName) -> Result<&Shown, CommandError> {
            let is_current = |shown: &Shown| {
                shown.opened.session.name == *name && shown.stamp == stamp_of(&shown.opened)
            };
            let current = self.shown.take().filter(is_current);
            let open = || {
                let mut context = self.hand.context("show");
                let opened = open(&mut context, name)?;
                Ok::<_, CommandError>(Shown { stamp: stamp_of(&opened), context, opened })
            };
            let shown = current.map_or_else(open, Ok)?;
            Ok(self.shown.insert(shown))
        }

        /// Tries a command line without changing anything.
        fn plan(&self, args: Vec<String>) {
            let tried = [&args[..], &["--dry-run".to_owned()]].concat();
            let mut report = self.hand.capture(&tried);
            let is_said = |line: &Vec<Span>| {
                let text: String = line.iter().map(|(_, text)| text.as_str()).collect();
                !UNSAID.iter().any(|unsaid| text.starts_with(unsaid))
            };
            report.lines.retain(is_said);
            let is_idle = |line: &Vec<Span>| {
                line.iter().any(|(_, text)| text.ends_with("; nothing was changed"))
            };
            report.is_idle = report.is_done && report.lines.iter().any(is_idle);
            let session = self.shown.as_ref().and_then(|shown| shown.opened.at().ok());
            let open = session
                .and_then(|session| verbs::open_in(&session).first().map(ToString::to_string));
            self.hand.send(Answer::Plan { args, report, open });
        }
    }

    impl Hand {
        fn send(&self, answer: Answer) {
            // Without a screen, nobody needs the answer.
            let _ = self.answers.send(answer);
            self.wake.wake();
        }

        /// Reports an error, unless it is `None`.
        fn report<T>(&self, result: Result<T, CommandError>) -> Option<T> {
            match result {
                Ok(value) => Some(value),
                Err(error) => {
                    self.send(Answer::Failed(error.in_one_line()));
                    None
                }
            }
        }

        fn context(&self, verb: &str) -> Context {
            let mut context = crate::cli::context(self.env.clone(), &self.global, verb.to_owned());
            let naming = context.output.naming().clone();
            context.output = Output::silent(&self.env);
            *context.output.naming() = naming;
            context
        }

        /// Lays out conversations.
        fn lay_out_all(&self, asked: &Receiver<Effect>) {
            let mut queue = VecDeque::new();
            while let Ok(request) = next(asked, &mut queue, LISTED) {
                let Some(Effect::LayOut(drafts)) = request else { continue };
                for draft in drafts {
                    let rows = draft.lay_out();
                    self.send(Answer::LaidOut(draft, rows));
                }
            }
        }

        /// Lists the sessions again and again, first a few of them, until nobody needs it.
        fn list_until(&self, changed: &Receiver<()>) {
            let mut limit = Some(FIRST);
            loop {
                let begun = Instant::now();
                let listed = self.listing(limit);
                if let Some(sessions) = self.report(listed) {
                    self.send(Answer::Sessions(sessions));
                }
                let pause = LISTED.max(begun.elapsed() * SHARE);
                let pause = if limit.take().is_some() { Duration::ZERO } else { pause };
                if changed.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
                    return;
                }
            }
        }

        fn listing(&self, limit: Option<usize>) -> Result<Sessions, CommandError> {
            let mut context = self.context("sessions");
            let here = context.env.homely(&context.env.current_dir);
            let looked_in = overview::looked_in(&context.env);
            let empty = Sessions { here, looked_in, is_whole: true, rows: Vec::new() };
            let archive = match context.open_reader() {
                Err(error) if error.is_absence() => return Ok(empty),
                opened => opened?,
            };
            let filter = SessionFilter { limit, ..SessionFilter::default() };
            let having = Having::default();
            let mut listing =
                sessions::read_list(&mut context, &archive, &filter, &having, Order::Newest)?;
            let folder = Some(common::within(&context.env, Path::new(".")));
            let within = SessionFilter { folder, ..SessionFilter::default() };
            let within: BTreeSet<SessionName> =
                archive.sessions(&within)?.into_iter().map(|listed| listed.name).collect();
            drop(archive);
            overview::keep_glances(&mut context, &listing.glances);
            listing.sessions.sort_by_key(|listed| !listed.open);
            let ids: Vec<&str> =
                listing.sessions.iter().map(|listed| listed.name.id.as_str()).collect();
            let words = common::short_ids(&ids);
            let now = context.env.ambient().now();
            let row = |(listed, word): (ListedSession, String)| {
                let active = listed.card.active;
                let age = active.map(|at| age(context.env.zone, now, at)).unwrap_or_default();
                let folder = listed.card.folder.as_ref();
                SessionRow {
                    word,
                    title: common::titled(listed.card.title.as_deref()),
                    age,
                    folder: folder.map(|it| context.env.homely(it.as_ref())).unwrap_or_default(),
                    is_here: within.contains(&listed.name),
                    context: context_of(&listed),
                    listed,
                }
            };
            let is_whole = listing.more == 0;
            let rows = listing.sessions.into_iter().zip(words).map(row).collect();
            Ok(Sessions { rows, is_whole, ..empty })
        }

        /// Runs a command line as if it was typed, and returns what it printed.
        fn capture(&self, args: &[String]) -> Report {
            let words = ["undertext"].into_iter().chain(args.iter().map(String::as_str));
            let words: Vec<OsString> = words.map(OsString::from).collect();
            let (mut output, captured) = Output::captured(&self.env, COLUMNS);
            output.naming().store.clone_from(&self.global.store);
            let mut is_out_of_reach = false;
            let is_done = match crate::cli::parse(&words, Some(COLUMNS)) {
                Err(answer) => {
                    let _ = write!(output, "{answer}");
                    let _ = output.finish();
                    false
                }
                Ok((cli, verb)) => {
                    let mut context = self.context(&verb);
                    context.output = output;
                    let answer = cli.command.map(|command| command.run(&mut context));
                    let _ = context.output.finish();
                    match answer {
                        Some(Err(error)) => {
                            context.output.error(&error, false);
                            is_out_of_reach = error.is_out_of_reach();
                            false
                        }
                        Some(Ok(exit)) => exit == Exit::Yes,
                        None => false,
                    }
                }
            };
            let text = captured.text();
            let lines = text.lines().map(unpaint).collect();
            Report { is_done, is_out_of_reach, lines, ..Report::default() }
        }

        /// Searches for the words that were asked for last, until nobody asks.
        fn search_all(&self, asked: &Receiver<(u64, String)>, newest: &AtomicU64) {
            while let Ok(request) = asked.recv() {
                let (n, words) = asked.try_iter().last().unwrap_or(request);
                let found = self.found(&words, &|| newest.load(Ordering::Relaxed) == n);
                if let Some((found, total)) = self.report(found) {
                    self.send(Answer::Found { words, found, total });
                }
            }
        }

        /// Searches. Words that the index lacks are added to it only as long as `is_wanted`.
        fn found(
            &self,
            words: &str,
            is_wanted: &(dyn Fn() -> bool + Sync),
        ) -> Result<(Vec<Found>, String), CommandError> {
            let sought = search::sought_of(words, Case::Smart).map_err(CommandError::user)?;
            let mut context = self.context("search");
            let archive = match context.open_reader() {
                Err(error) if error.is_absence() => return Ok((Vec::new(), "no sessions".into())),
                opened => opened?,
            };
            let search = Search { limit: Some(FOUND), sort: Sort::Relevance, ..Search::of(sought) };
            if archive.root().is_some() {
                store::bring_index_along(&mut context, &archive, is_wanted);
            }
            let mut names: BTreeMap<SessionName, String> = BTreeMap::new();
            let mut found = Vec::new();
            let searched = verbs::search(&archive, &search, |_, hit| {
                let Some(place) = hit.places.first() else { return Ok(()) };
                if !names.contains_key(&place.session) {
                    let session = archive.session(&place.session)?;
                    let word = session.map(|it| context.short_name(&archive, &it)).transpose()?;
                    names.insert(place.session.clone(), word.unwrap_or_default());
                }
                let word = names.get(&place.session).map(String::as_str).unwrap_or_default();
                found.extend(found_of(&context, hit, word));
                Ok::<_, CommandError>(())
            })?;
            let total = match (searched.messages, searched.sessions) {
                (Some(messages), Some(sessions)) => format!(
                    "{} in {}",
                    common::counted(messages, "message", "messages"),
                    common::counted(sessions, "session", "sessions"),
                ),
                _ => common::counted(found.len() as u64, "message", "messages"),
            };
            Ok((found, total))
        }
    }

    /// Opens a session as its live file has it now.
    fn open(context: &mut Context, name: &SessionName) -> Result<Opened, CommandError> {
        let archive = context.open_reader()?;
        let session = archive.session(name)?;
        let session =
            session.ok_or_else(|| anyhow!("session {} is no longer in the store", name.id));
        let opened = Opened { archive, session: session.map_err(CommandError::user)? };
        context.follow(&opened);
        Ok(opened)
    }

    /// What changes when a session's file does: its inode, its length, and when it was written.
    type FileStamp = (u64, u64, (i64, i64));

    fn stamp_of(opened: &Opened) -> Option<FileStamp> {
        let session = opened.at().ok()?;
        let file = verbs::file_of(&session).ok()??;
        let stamp = Stamp::at(&file).ok()??;
        Some((stamp.inode, stamp.length, stamp.modified))
    }

    /// Reads the conversation of a place.
    fn read(context: &Context, opened: &Opened, place: &str) -> Result<Conversation, CommandError> {
        let session = &opened.at()?;
        let passage = verbs::find_passage(session, place)?;
        let log = verbs::log_of(session, &passage.target, &passage.entries, usize::MAX)?;
        let word = context.short_name(&opened.archive, &opened.session).ok();
        let naming = Naming { session: word.map(OsString::from), ..Naming::default() };
        let beneath = shown::beneath(&log.sub_agents, &naming);
        Ok(Conversation {
            session: session.name.clone(),
            place: place.to_owned(),
            beneath,
            lines: log.lines,
            folder: session.archive.store().card(session.key)?.folder,
        })
    }

    /// Compares a place with the current one.
    fn compare(opened: &Opened, place: &str) -> Result<Comparison, CommandError> {
        let session = &opened.at()?;
        let one = verbs::find_place(session, place)?;
        let other = verbs::find_place(session, "HEAD")?;
        let mut sides = [Vec::new(), Vec::new()];
        for row in verbs::diff((session, &one), (session, &other))?.rows {
            let [reverted, now] = &mut sides;
            match row {
                Difference::Only(Side::One, line) => reverted.push(line),
                Difference::Only(Side::Other, line) => now.push(line),
                Difference::Changed(one, other) => {
                    reverted.push(one);
                    now.push(*other);
                }
                Difference::Same(_) | Difference::Renewed(_) => {}
            }
        }
        let folder = session.archive.store().card(session.key)?.folder;
        Ok(Comparison { session: session.name.clone(), sides, folder })
    }

    /// Reads an entry as it was before it was cut.
    fn whole(opened: &Opened, entry: EntryId) -> Result<Option<verbs::Line>, CommandError> {
        let session = &opened.at()?;
        let target = verbs::find_place(session, &entry.to_string())?;
        let Some((cut, _)) = verbs::show(session, &target)? else { return Ok(None) };
        let original = verbs::original(session, &target)?;
        let whole = verbs::show(session, &original)?;
        Ok(whole.map(|(line, _)| verbs::Line { n: cut.n, id: cut.id, cuts: Vec::new(), ..line }))
    }

    /// Returns the operation that an undo would undo.
    fn undo_of(opened: &Opened) -> Option<String> {
        let session = opened.at().ok()?;
        let n = verbs::undoable(&session).ok()?;
        let operation = session.archive.store().operations(session.key, n.alone()).ok()?.pop()?;
        Some(format!("operation {n} ({})", operation.command.as_str()))
    }

    /// Formats an age in at most eight columns.
    fn age(zone: Zone, now: Timestamp, at: Timestamp) -> String {
        let (age, moment) = (zone.age(now, at), zone.moment(at));
        match age.strip_suffix(" ago") {
            Some(age) => age.to_owned(),
            None if age == "just now" => "now".to_owned(),
            None if moment.year() == zone.moment(now).year() => moment.format("%-d %b").to_string(),
            None => moment.format("%b %Y").to_string(),
        }
    }

    /// Formats how full a session's window was and is.
    fn context_of(listed: &ListedSession) -> String {
        let (bars, share) = sessions::fullness(&listed.context, listed.tokens, listed.window);
        match listed.tokens.zip(listed.window) {
            Some((tokens, window)) => {
                let [tokens, window] = [tokens, window].map(units::rounded);
                format!("context {bars} {tokens} of {window} ({share})").replace("  ", " ")
            }
            None => String::new(),
        }
    }

    /// Returns a hit as a row of the search, with its text.
    fn found_of(context: &Context, hit: &Hit, word: &str) -> Option<Found> {
        let place = hit.places.first()?;
        let step = place.step().map(|step| format!("{word}{step}"));
        let step = step.unwrap_or_else(|| format!("{word} {}", common::short(place.entry)));
        let look = hits::Look {
            styles: Styles::new(true),
            zone: context.env.zone,
            width: None,
            full: false,
        };
        let mut line = Vec::new();
        hits::line(&mut line, hit, &safe::line(&step), look).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let title = common::titled(place.title.as_deref());
        let folder = place.folder.as_ref().map(|it| context.env.homely(it.as_ref()));
        let mut text = vec![format!("{title}  {}", folder.unwrap_or_default()), String::new()];
        text.extend(hit.lines.iter().take(LINES).map(|line| line.line.clone()));
        let mut head = unpaint(line.trim());
        head.push((Label::Plain, String::new()));
        Some(Found {
            session: place.session.clone(),
            entry: place.entry,
            turn: place.turn.map(|n| format!("@{n}")),
            head,
            text,
        })
    }
}
