//! `serve`: shows the sessions in a browser on this machine.
//!
//! Each page is made on a thread of its own, which opens the store like a command that reads. So whatever happens to the store,
//! a page is right, or says what is wrong.

use super::{CommandError, Context, Exit};

/// Show the sessions as pages in your browser
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext serve --open
  undertext serve --port 8000

It prints one address, which works once and only on this machine. The pages are
read only: a list of all sessions with a search, each session with its reverted
branches, and what is written while you read. It runs until you stop it.")]
pub(crate) struct Args {
    /// Use this port, or a free one after it
    #[arg(long, value_name = "N", default_value_t = 7331)]
    port: u16,

    /// Open the address in your browser
    #[arg(long)]
    open: bool,
}

#[cfg(not(feature = "serve"))]
pub(crate) fn run(_: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let Args { port, open } = args;
    Err(CommandError::user(anyhow::anyhow!("this program was built without pages"))
        .hinted(format!("--port {port}, --open {open} need the feature serve")))
}

#[cfg(feature = "serve")]
pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    pages::run(context, args)
}

#[cfg(feature = "serve")]
mod pages {
    use std::collections::BTreeMap;
    use std::ffi::{OsStr, OsString};
    use std::fmt::Write as _;
    use std::io::Write as _;
    use std::time::Duration;

    use anyhow::anyhow;
    use undertext::disk::Stamp;
    use undertext::model::{DATABASE, Timestamp};
    use undertext::report::{Hit, ListedSession};
    use undertext::store::SessionFilter;
    use undertext::verbs::{self, Case, Having, Masks, Order, Search, Sort, split_place};

    use super::{Args, CommandError, Exit};
    use crate::cli::common::{counted, titled};
    use crate::cli::env::{self, Env};
    use crate::cli::options::Global;
    use crate::cli::output::Output;
    use crate::cli::{
        Context, Opened, archive, document, overview, search, sessions, settings, stats, watch,
    };
    use crate::page::chosen::{Choices, Sharing, Tools};
    use crate::page::{self, Frame, Ink, Listing, Manner, PageView, Row};
    use crate::render::{moment, safe};
    use crate::serve::{self, Answer, Asked, Cache, Gate, Source, encode};

    /// Results are whole in sessions of at most this many entries, unless `?tools=full` asks for them.
    const WHOLE: u64 = 3_000;
    /// Maximum number of sessions listed, of messages found, and of lines of each.
    const LISTED: usize = 300;
    const FOUND: usize = 100;
    const LINES: usize = 4;
    /// Maximum length of a line of a hit, in characters.
    const LONGEST: usize = 240;
    /// The width of the reports of commands.
    const COLUMNS: usize = 120;
    /// The filters of the list.
    const FILTERS: [&str; 4] = ["open", "reverted", "compacted", "deleted"];

    pub(super) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
        use anyhow::Context as _;
        watch::end_quietly().context("cannot watch for signals")?;
        let settings = context.settings()?.serve;
        let listener = serve::listen(args.port).context("cannot open a port of this machine")?;
        let port = listener.local_addr().context("cannot open a port of this machine")?.port();
        let mut ambient = context.env.ambient();
        let mut random = || ambient.uuid().simple().to_string();
        let gate = Gate::new(port, random() + &random(), random() + &random());
        let address = gate.address();
        writeln!(context.output, "{address}")?;
        context.output.flush()?;
        if args.open && !env::open_in_browser(&address) {
            context.output.note("No browser could be started: open the address yourself");
        }
        context.output.note("Serving on this machine until you press ctrl-C");
        let lives = Duration::from_secs(settings.minutes.saturating_mul(60));
        let room = usize::try_from(settings.cache.saturating_mul(1_000_000)).unwrap_or(usize::MAX);
        let pages = Pages {
            env: context.env.clone(),
            global: Global { store: context.asked.clone(), ..Global::default() },
        };
        serve::run(listener, gate, Cache::new(room, lives), pages).context("the server ended")?;
        Ok(Exit::Yes)
    }

    /// Makes pages.
    struct Pages {
        env: Env,
        global: Global,
    }

    impl Source for Pages {
        fn answer(&self, asked: &Asked) -> Answer {
            let answer = self.page(asked);
            answer.unwrap_or_else(|error| {
                let is_missing = error.is_absence();
                let text = error.in_one_line();
                let page = page::report("This cannot be shown", "", &text, &frame());
                if is_missing { Answer::Missing(page.into()) } else { Answer::Failed(page.into()) }
            })
        }

        fn mark(&self, asked: &Asked) -> Option<String> {
            let [first, word, ..] = asked.path.as_slice() else { return None };
            if first != "s" {
                return None;
            }
            let mut context = self.context("show");
            let opened = open(&mut context, word).ok()?;
            let session = opened.at().ok()?;
            let mut mark = format!("{}", session.state.operations());
            let live = verbs::file_of(&session).ok().flatten();
            let store = opened.archive.root().map(|root| root.join(DATABASE));
            for path in live.into_iter().chain(store) {
                if let Ok(Some(stamp)) = Stamp::at(&path) {
                    let (s, ns) = stamp.modified;
                    let _ = write!(mark, "-{}-{}-{s}-{ns}", stamp.inode, stamp.length);
                }
            }
            Some(mark)
        }

        fn policy(&self) -> String {
            page::served_policy()
        }
    }

    fn frame() -> Frame {
        Frame {
            is_served: true,
            home: Some("/".to_owned()),
            foot: vec![
                format!("undertext {}", env!("CARGO_PKG_VERSION")),
                "on this machine".to_owned(),
            ],
            ..Frame::default()
        }
    }

    /// Opens a session of the store as its live file has it now. A word is never a file.
    fn open(context: &mut Context, word: &str) -> Result<Opened, CommandError> {
        let archive = context.open_reader()?;
        let session = archive::lookup(&context.env, &archive, Some(OsStr::new(word)))?;
        let opened = Opened { archive, session };
        context.follow(&opened);
        Ok(opened)
    }

    impl Pages {
        fn context(&self, verb: &str) -> Context {
            // Only the list imports what is new.
            let global = Global { no_import: verb != "sessions", ..self.global.clone() };
            let mut context = crate::cli::context(self.env.clone(), &global, verb.to_owned());
            context.output = Output::silent(&self.env);
            context
        }

        fn page(&self, asked: &Asked) -> Result<Answer, CommandError> {
            let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
            match path.as_slice() {
                [] => Ok(Answer::Page(self.list(asked)?.into())),
                ["stats"] => self.charts(),
                ["s", word] => self.session(asked, word, None),
                ["s", word, view @ ("files" | "commands" | "lost")] => {
                    Ok(Answer::Moved(format!("/s/{}#{view}", encode(word))))
                }
                ["s", word, "operations"] => self.command(word, "Operations", &["operations"]),
                ["s", word, "audit"] => self.command(word, "Audit", &["audit"]),
                ["s", word, ends] if ends.contains("..") => {
                    let (one, other) = ends.split_once("..").unwrap_or((ends, ""));
                    self.command(word, "Comparison", &["diff", one, other])
                }
                ["s", word, branch] => self.session(asked, word, Some(branch)),
                _ => {
                    let text = "There is no such page";
                    let page = page::report("Not found", "", text, &frame());
                    Ok(Answer::Missing(page.into()))
                }
            }
        }

        fn session(
            &self,
            asked: &Asked,
            word: &str,
            branch: Option<&str>,
        ) -> Result<Answer, CommandError> {
            if let Some((session, place)) = split_place(word) {
                let place = place.trim_start_matches('@');
                return Ok(Answer::Moved(format!("/s/{}#{place}", encode(session))));
            }
            let mut context = self.context("show");
            let opened = open(&mut context, word)?;
            let session = &opened.at()?;
            let is_whole = session.state.entries() <= WHOLE
                || asked.query.get("tools").is_some_and(|how| how == "full");
            let choices = Choices {
                thinking: true,
                reverted: true,
                images: true,
                tools: if is_whole { Tools::Full } else { Tools::Short },
                from: None,
                to: None,
                sharing: Sharing::Local,
            };
            let is_bare = asked.query.get("secrets").is_some_and(|how| how == "shown");
            let masks = if is_bare { None } else { Some(masks(&mut context)?) };
            let mut reading = document::read(&mut context, &opened, &choices, branch, masks)?;
            if let Some(folder) = &mut reading.said.facts.folder {
                *folder = context.env.homely(folder.as_ref());
            }
            let view = PageView::new(
                &reading.said,
                Manner { tools: choices.tools, zone: context.env.zone },
            );
            let id = encode(&session.name.id);
            let mut links = vec![
                (format!("/s/{id}/operations"), "operations".to_owned()),
                (format!("/s/{id}/audit"), "audit".to_owned()),
            ];
            let current = session.state.current();
            for name in session.state.branches.keys().filter(|name| *name != current).take(12) {
                let ends = format!("{}..{}", encode(current), encode(name));
                links.push((
                    format!("/s/{id}/{}", encode(name)),
                    format!("branch {}", safe::line(name)),
                ));
                links.push((format!("/s/{id}/{ends}"), "compare".to_owned()));
            }
            if !is_whole {
                links.push((format!("/s/{id}?tools=full"), "whole results".to_owned()));
            }
            if !view.ink.found.is_empty() {
                links.push((format!("/s/{id}?secrets=shown"), "show secrets".to_owned()));
            }
            if branch.is_some() {
                links.insert(0, (format!("/s/{id}"), "current branch".to_owned()));
            }
            let mark = self.mark(asked).unwrap_or_default();
            let live = branch.is_none().then(|| format!("/s/{id}/events?at={}", encode(&mark)));
            let mut frame = Frame { links, live, ..frame() };
            frame.foot.push(session.name.id.clone());
            if !reading.damaged.is_empty() {
                frame.foot.push(counted(
                    reading.damaged.len() as u64,
                    "damaged entry",
                    "damaged entries",
                ));
            }
            Ok(Answer::Page(page::conversation(&reading.said, &view, &frame).into()))
        }

        /// Shows what a command that only reads prints about a session.
        fn command(&self, word: &str, title: &str, args: &[&str]) -> Result<Answer, CommandError> {
            let mut context = self.context("show");
            let opened = open(&mut context, word)?;
            let name = format!("{}:{}", opened.session.name.format, opened.session.name.id);
            let [verb, places @ ..] = args else {
                return Err(CommandError::user(anyhow!("no command")));
            };
            let flags = [verb, "-s", &name, "--"];
            let args: Vec<&str> =
                if places.is_empty() { flags[..3].to_vec() } else { [&flags[..], places].concat() };
            let words = ["undertext"].into_iter().chain(args.iter().copied());
            let words: Vec<OsString> = words.map(OsString::from).collect();
            let (mut output, captured) = Output::captured(&self.env, COLUMNS);
            output.naming().store.clone_from(&self.global.store);
            match crate::cli::parse(&words, Some(COLUMNS)) {
                Err(error) => write!(output, "{error}")?,
                Ok((cli, verb)) => {
                    let mut context = self.context(&verb);
                    context.output = output;
                    let answer = cli.command.map(|command| command.run(&mut context));
                    let _ = context.output.finish();
                    if let Some(Err(error)) = answer {
                        return Err(error);
                    }
                }
            }
            let id = encode(&opened.session.name.id);
            let shown = format!("undertext {}", args.join(" ").replace(" --", ""));
            let frame =
                Frame { links: vec![(format!("/s/{id}"), "the session".to_owned())], ..frame() };
            let card = opened.archive.store().card(opened.session.key)?;
            let title = format!("{title}: {}", titled(card.title.as_deref()));
            let text = captured.text();
            let masking = verbs::masking(&opened.at()?, masks(&mut context)?)?;
            let (title, text) = (masking.mask(&title).text, masking.mask(&text).text);
            Ok(Answer::Page(page::report(&title, &shown, &text, &frame).into()))
        }

        /// Shows what all sessions used, and when agents deleted some.
        fn charts(&self) -> Result<Answer, CommandError> {
            let mut context = self.context("stats");
            let archive = context.open_reader()?;
            let (picture, unread) = stats::picture_of_all(&mut context, &archive)?;
            let note = match (&picture, unread) {
                (_, 1..) => counted(unread, "session cannot be read", "sessions cannot be read"),
                (None, 0) => "No answers with token counts".to_owned(),
                (Some(_), 0) => String::new(),
            };
            let filter = SessionFilter::default();
            let having = Having { deleted: true, ..Having::default() };
            let read =
                sessions::read_list(&mut context, &archive, &filter, &having, Order::Newest)?;
            let mut deleted: Vec<(String, u64)> = Vec::new();
            for listed in &read.sessions {
                let month = listed.card.active.map_or_else(
                    || "Some time".to_owned(),
                    |at| context.env.zone.moment(at).date().format("%B %Y").to_string(),
                );
                match deleted.iter_mut().find(|(known, _)| *known == month) {
                    Some((_, count)) => *count += 1,
                    None => deleted.push((month, 1)),
                }
            }
            let page = page::charts(picture.as_deref(), &note, &deleted, &frame());
            Ok(Answer::Page(page.into()))
        }

        /// Returns the list of sessions, or what a search finds in them.
        fn list(&self, asked: &Asked) -> Result<String, CommandError> {
            let mut context = self.context("sessions");
            let query = asked.query.get("q").cloned().unwrap_or_default();
            let mut listing = Listing { query, ..Listing::default() };
            let archive = match context.open_reader() {
                Err(error) if error.is_absence() => {
                    listing.note =
                        format!("No sessions yet. Looked in {}", overview::looked_in(&context.env));
                    return Ok(page::list(&listing, &frame()));
                }
                opened => opened?,
            };
            let mut ink = Ink::default();
            if !listing.query.trim().is_empty() {
                let (rows, total) = found(&mut context, &archive, &listing.query, &mut ink)?;
                listing.groups = vec![("Found".to_owned(), rows)];
                listing.note = total;
                return Ok(page::list(&listing, &frame()));
            }
            let now = context.env.ambient().now();
            let since = asked.query.get("since").map(|since| moment::Since::read(since));
            let since = since.transpose().map_err(|why| CommandError::user(anyhow!(why)))?;
            let filter = SessionFilter {
                limit: Some(LISTED),
                since: since.map(|since| since.at(context.env.zone, now)),
                format: asked.query.get("agent").cloned(),
                ..SessionFilter::default()
            };
            let having = Having::default();
            let read =
                sessions::read_list(&mut context, &archive, &filter, &having, Order::Newest)?;
            overview::keep_glances(&mut context, &read.glances);
            let wanted = asked.query.get("is").map(String::as_str).unwrap_or_default();
            let folder = asked.query.get("in").map(String::as_str).unwrap_or_default();
            let is_in = |listed: &&ListedSession| {
                folder.is_empty() || listed.card.folder.as_deref() == Some(folder)
            };
            let all: Vec<&ListedSession> = read.sessions.iter().filter(is_in).collect();
            for name in FILTERS {
                let count = all.iter().filter(|listed| has(listed, name)).count() as u64;
                let to = if wanted == name { "/".to_owned() } else { format!("/?is={name}") };
                listing.filters.push((to, name.to_owned(), count, wanted == name));
            }
            let masking = verbs::Masking::by_rules(masks(&mut context)?);
            let shown = all.into_iter().filter(|listed| wanted.is_empty() || has(listed, wanted));
            for listed in shown {
                let day = match (listed.open, listed.card.active) {
                    (true, _) => "Open now".to_owned(),
                    (false, None) => "Some time".to_owned(),
                    (false, Some(at)) => day(&context, now, at),
                };
                let row = row_of(&context, listed, &masking, &mut ink);
                match listing.groups.iter_mut().find(|(name, _)| *name == day) {
                    Some((_, rows)) => rows.push(row),
                    None => listing.groups.push((day, vec![row])),
                }
            }
            // What is open comes first.
            listing.groups.sort_by_key(|(name, _)| name != "Open now");
            let many: usize = listing.groups.iter().map(|(_, rows)| rows.len()).sum();
            listing.note = counted(many as u64, "session", "sessions");
            if read.more > 0 {
                let _ = write!(listing.note, ", and {} older ones: search finds them", read.more);
            }
            Ok(page::list(&listing, &frame()))
        }
    }

    /// Returns what is masked on this machine: secrets.
    fn masks(context: &mut Context) -> Result<Masks, CommandError> {
        let secrets = Some(settings::allowed(context)?);
        Ok(Masks { secrets, is_marked: true, ..Masks::default() })
    }

    fn has(listed: &ListedSession, name: &str) -> bool {
        match name {
            "open" => listed.open,
            "reverted" => listed.reverted > 0,
            "compacted" => listed.compactions > 0,
            "deleted" => listed.gone,
            _ => false,
        }
    }

    fn day(context: &Context, now: Timestamp, at: Timestamp) -> String {
        let [today, day] = [now, at].map(|at| context.env.zone.moment(at).date());
        match (today - day).num_days() {
            0 => "Today".to_owned(),
            1 => "Yesterday".to_owned(),
            _ => day.format("%-d %B %Y").to_string(),
        }
    }

    fn row_of(
        context: &Context,
        listed: &ListedSession,
        masking: &verbs::Masking,
        ink: &mut Ink,
    ) -> Row {
        let (bars, share) = sessions::fullness(&listed.context, listed.tokens, listed.window);
        let mark = |n: u64, sign: char| (n > 0).then(|| format!("{sign} {n}"));
        let folder = listed.card.folder.as_ref().map(|it| context.env.homely(it.as_ref()));
        let facts = [
            Some(listed.name.format.clone()),
            folder,
            Some(counted(listed.card.turns, "turn", "turns")),
            mark(listed.reverted, '↶'),
            mark(listed.compactions, '◆'),
            Some(format!("{bars} {share}").trim().to_owned()).filter(|bars| !bars.is_empty()),
            listed.gone.then(|| "deleted by its agent, saved here".to_owned()),
        ];
        Row {
            link: format!("/s/{}", encode(&listed.name.id)),
            title: ink.line(&masking.mask(&titled(listed.card.title.as_deref())).text),
            facts: facts.into_iter().flatten().map(|fact| ink.line(&fact)).collect(),
            text: Vec::new(),
        }
    }

    /// Searches all sessions, and returns the hits and how many there are.
    fn found(
        context: &mut Context,
        archive: &verbs::Archive,
        words: &str,
        ink: &mut Ink,
    ) -> Result<(Vec<Row>, String), CommandError> {
        let sought = search::sought_of(words, Case::Smart).map_err(CommandError::user)?;
        let search = Search { limit: Some(FOUND), sort: Sort::Relevance, ..Search::of(sought) };
        if archive.root().is_some() {
            crate::cli::store::bring_index_along(context, archive, &|| true);
        }
        let masks = masks(context)?;
        let mut maskings: BTreeMap<String, verbs::Masking> = BTreeMap::new();
        let mut rows = Vec::new();
        let searched = verbs::search(archive, &search, |_, hit| {
            if let Some(place) = hit.places.first() {
                let id = place.session.id.clone();
                if !maskings.contains_key(&id)
                    && let Some(session) = archive.session(&place.session)?
                {
                    let at = archive.at(&session)?;
                    maskings.insert(id.clone(), verbs::masking(&at, masks.clone())?);
                }
                rows.extend(
                    maskings.get(&id).and_then(|masking| hit_row(context, hit, masking, ink)),
                );
            }
            Ok::<_, CommandError>(())
        })?;
        let total = match (searched.messages, searched.sessions) {
            (Some(messages), Some(sessions)) => format!(
                "{} in {}",
                counted(messages, "message", "messages"),
                counted(sessions, "session", "sessions"),
            ),
            _ => counted(rows.len() as u64, "message", "messages"),
        };
        Ok((rows, total))
    }

    fn hit_row(
        context: &Context,
        hit: &Hit,
        masking: &verbs::Masking,
        ink: &mut Ink,
    ) -> Option<Row> {
        let place = hit.places.first()?;
        let step = place.step().filter(|step| !step.ends_with(".0"));
        let turn = place.turn.map(|turn| format!("@{turn}"));
        let anchor = step.or(turn);
        let id = encode(&place.session.id);
        let to = anchor.as_deref().map(|at| format!("#{}", at.trim_start_matches('@')));
        let folder = place.folder.as_ref().map(|it| context.env.homely(it.as_ref()));
        let facts =
            [anchor, hit.time.map(|at| context.env.zone.minute(at)), folder, hit.tool.clone()];
        let title = titled(place.title.as_deref());
        let lines = hit.lines.iter().take(LINES).map(|line| {
            let masked = masking.mask(&line.line);
            let cut =
                masked.text.char_indices().nth(LONGEST).map_or(masked.text.len(), |(at, _)| at);
            ink.line(masked.text.get(..cut).unwrap_or_default())
        });
        let text = lines.collect();
        Some(Row {
            link: format!("/s/{id}{}", to.unwrap_or_default()),
            title: ink.line(&masking.mask(&title).text),
            facts: facts.into_iter().flatten().map(|fact| ink.line(&fact)).collect(),
            text,
        })
    }
}
