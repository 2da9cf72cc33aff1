//! Every step of every change is broken in turn, on a session of each format: a write, a sync, a name that is given, in the
//! store's files and in the agent's, counted together.
//!
//! | the n-th step | what happens |
//! |---|---|
//! | fails | an error, once; a write writes half |
//! | and all behind it fail | as if the program had been killed there |
//! | and all behind it fail, and the power is off | only what was synced is left, with the names that were, or those that were given |
//!
//! Whoever comes later finds nothing damaged and the change whole or not at all. The next change, which writes nothing itself,
//! carries out what was cut short: the live file reads as the store says, and no temporary file is left.

#![cfg(target_os = "linux")]

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use tempfile::TempDir;
use undertext::{
    context::{cut::Limit, plan::Keep},
    disk::{Disk, IfHeld, Kernel},
    model::Timestamp,
    store::{Access, SessionFilter},
    verbs::{self, Archive, Bound, Compacting, Manner, OpsError, Session, SyncError},
    wire::{Draft, Speaker},
};

use crate::{
    codex::live,
    compact::asked,
    fixture::{self, Seeded, workspace},
    needs,
    power::{Image, Names, below},
    rollout::{Rollout, index, indexed},
    vfs::{Countdown, Event, Failure, Faults, keep_synced},
};

/// A disk whose steps are counted with those of SQLite's files, and fail with them.
#[derive(Debug)]
struct Faulty(Arc<Countdown>);

impl Faulty {
    fn step<T>(&self, event: Event, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self.0.fails(event) { Err(io::Error::from_raw_os_error(5)) } else { work() }
    }
}

impl Disk for Faulty {
    fn make(&self, folder: &File, name: &OsStr) -> io::Result<File> {
        self.step(Event::Other, || Kernel.make(folder, name))
    }

    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        let is_off = self.0.fired();
        let written = self.step(Event::Write, || Kernel.write(file, bytes));
        if written.is_err() && !is_off {
            Kernel.write(file, &bytes[..bytes.len() / 2])?;
        }
        written
    }

    fn cut(&self, file: &File, length: u64) -> io::Result<()> {
        self.step(Event::Other, || Kernel.cut(file, length))
    }

    fn copy(&self, file: &File, from: &File, length: u64) -> io::Result<u64> {
        self.step(Event::Write, || Kernel.copy(file, from, length))
    }

    fn own(&self, file: &File, like: &File) -> io::Result<()> {
        self.step(Event::Other, || Kernel.own(file, like))
    }

    fn stamp(&self, file: &File, at: SystemTime) -> io::Result<()> {
        self.step(Event::Other, || Kernel.stamp(file, at))
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.step(Event::Sync, || Kernel.sync(file))
    }

    fn link(&self, folder: &File, name: &OsStr, other: &OsStr) -> io::Result<()> {
        self.step(Event::Other, || Kernel.link(folder, name, other))
    }

    fn rename(&self, folder: &File, name: &OsStr, to: &OsStr) -> io::Result<()> {
        self.step(Event::Other, || Kernel.rename(folder, name, to))
    }

    fn remove(&self, folder: &File, name: &OsStr) -> io::Result<()> {
        self.step(Event::Other, || Kernel.remove(folder, name))
    }

    fn lock(&self, path: &Path, if_held: IfHeld) -> io::Result<Option<File>> {
        self.step(Event::Other, || Kernel.lock(path, if_held))
    }
}

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    New,
    Append,
    Grown,
    Revert,
    RevertWithNote,
    Rotate,
    Clear,
    Undo,
    Redo,
    Switch,
    Branch,
    Checkpoint,
    Tell,
    Truncate,
    Compact,
    Import,
    Attach,
    Hide,
}

impl Verb {
    const ALL: [Self; 18] = [
        Self::New,
        Self::Append,
        Self::Grown,
        Self::Revert,
        Self::RevertWithNote,
        Self::Rotate,
        Self::Clear,
        Self::Undo,
        Self::Redo,
        Self::Switch,
        Self::Branch,
        Self::Checkpoint,
        Self::Tell,
        Self::Truncate,
        Self::Compact,
        Self::Import,
        Self::Attach,
        Self::Hide,
    ];

    /// Brings a session to where the change can be made.
    fn prepare(self, place: &Place) {
        let (archive, session) = place.open();
        let here = workspace();
        match self {
            Self::Undo => {
                verbs::revert(&archive.at(&session).unwrap(), &here, "1", Some("back"))
                    .map(|_| ())
                    .unwrap();
            }
            Self::Redo => {
                verbs::revert(&archive.at(&session).unwrap(), &here, "1", None)
                    .map(|_| ())
                    .unwrap();
                verbs::undo(&archive.at(&session).unwrap(), None).map(|_| ()).unwrap();
            }
            Self::Switch => {
                let target = verbs::find_place(&archive.at(&session).unwrap(), "@1").unwrap();
                verbs::branch(&archive.at(&session).unwrap(), "side", Some(&target)).unwrap();
            }
            Self::Attach if place.format != "native" => {
                verbs::detach(&archive.at(&session).unwrap()).unwrap();
            }
            Self::Grown => {
                // The agent has appended to its file, or another program to the store's.
                let line: &[u8] = match place.format {
                    "kimi" => b"{\"role\":\"user\",\"content\":\"It grew.\"}\n",
                    _ => b"{\"type\":\"no record of anyone's\"}\n",
                };
                let file = live(&archive, &session);
                io::Write::write_all(&mut File::options().append(true).open(file).unwrap(), line)
                    .unwrap();
            }
            _ => {}
        }
    }

    /// Makes the change.
    fn run(self, place: &Place, archive: &mut Archive, session: &Session) -> Result<(), OpsError> {
        let here = workspace();
        let said = |text: &str| [Draft::Message(Speaker::User, text.to_owned())];
        match self {
            Self::New => verbs::new(archive, &verbs::Layers::default(), &here).map(|_| ()),
            Self::Append | Self::Grown => {
                verbs::append(&archive.at(session).unwrap(), &here, &said("What else?")).map(|_| ())
            }
            Self::Revert => {
                verbs::revert(&archive.at(session).unwrap(), &here, "1", None).map(|_| ())
            }
            Self::RevertWithNote | Self::Rotate => {
                verbs::revert(&archive.at(session).unwrap(), &here, "1", Some("It was the pump."))
                    .map(|_| ())
            }
            Self::Clear => verbs::clear(&archive.at(session).unwrap()).map(|_| ()),
            Self::Undo => verbs::undo(&archive.at(session).unwrap(), None).map(|_| ()),
            Self::Redo => verbs::redo(&archive.at(session).unwrap()).map(|_| ()),
            Self::Switch => verbs::switch(&archive.at(session).unwrap(), "side").map(|_| ()),
            Self::Branch => verbs::branch(&archive.at(session).unwrap(), "side", None).map(|_| ()),
            Self::Checkpoint => {
                verbs::checkpoint(&archive.at(session).unwrap(), Some("here")).map(|_| ())
            }
            Self::Tell if matches!(place.format, "native" | "kimi") => {
                verbs::tell_checkpoint(&archive.at(session).unwrap(), &here).map(|_| ())
            }
            Self::Tell => verbs::checkpoint(&archive.at(session).unwrap(), None).map(|_| ()),
            Self::Truncate => {
                let bound = Bound::of(Limit::of_chars(0));
                verbs::truncate(&archive.at(session).unwrap(), &bound).map(|_| ())
            }
            Self::Compact => {
                let (asked, keep) = (asked(32_000), Keep::Last(2));
                let wanted = Compacting { keep, ..Compacting::of(&asked, &|| Timestamp(0)) };
                verbs::compact(&archive.at(session).unwrap(), &here, &wanted, &mut |_| ())
                    .map(|_| ())
            }
            Self::Import => {
                let other = place.home.join("other.jsonl");
                Ok(verbs::import(archive, &[other], &[], &mut |_| ()).map(|_| ())?)
            }
            Self::Attach => verbs::attach(&archive.at(session).unwrap(), None).map(|_| ()),
            Self::Hide => verbs::hide(&archive.at(session).unwrap(), true).map(|_| ()),
        }
    }
}

/// A home with a store and an agent's file.
struct Place {
    /// The session's format, or "threads" for one of Codex's in its own folders, where it goes on in files.
    kind: &'static str,
    format: &'static str,
    home: PathBuf,
    /// The agent's file; none if the store has it.
    file: Option<PathBuf>,
}

/// What the folder is in which Kimi's session lies, by its list and by its name.
const FOLDER: &str = "/project";
const FOLDER_HASH: &str = "2ca1f4ebdc59348ffdc31d97a51a98d5";

impl Place {
    /// Makes a session of a few turns, with a long result of a tool.
    fn begin(kind: &'static str, home: &Path) -> Self {
        let home = home.canonicalize().unwrap();
        let format = if kind == "threads" { "codex" } else { kind };
        let id = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40";
        let (example, name) = match format {
            "claude" => ("claude-garden.jsonl", format!("agent/{id}.jsonl")),
            "codex" => (
                "codex-weather.jsonl",
                "agent/rollout-2026-08-02T14-00-00-019fc000-4d1e-7a30-8b52-6f0e9d8c7b6a.jsonl"
                    .to_owned(),
            ),
            "pi" => ("pi-boat.jsonl", "agent/pi-boat.jsonl".to_owned()),
            _ => (
                "kimi-lighthouse/6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c/context.jsonl",
                format!("agent/sessions/{FOLDER_HASH}/{id}/context.jsonl"),
            ),
        };
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        fs::copy(examples.join("pi-boat.jsonl"), home.join("other.jsonl")).unwrap();
        if format == "pi" {
            fs::copy(examples.join("claude-garden.jsonl"), home.join("other.jsonl")).unwrap();
        }
        let file = (format != "native").then(|| match kind {
            "threads" => {
                home.join("agent/.codex/sessions/2026/08/02").join(&name["agent/".len()..])
            }
            _ => home.join(name),
        });
        let place = Self { kind, format, home, file };
        let mut archive = fixture::open(&place.store(), 1);
        archive.set_manner(place.listing());
        let session = match &place.file {
            None => fixture::session(&mut archive),
            Some(file) => {
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                if kind == "threads" {
                    let mut thread = Rollout::first("019fc000-4d1e-7a30-8b52-6f0e9d8c7b6a");
                    thread.turn("one");
                    thread.turn("two");
                    index(&place.home.join("agent/.codex"), file, thread.end().1);
                    fs::write(file, thread.bytes).unwrap();
                } else {
                    fs::copy(examples.join(example), file).unwrap();
                }
                verbs::take_up(&mut archive, file).unwrap().0
            }
        };
        for n in 0..2 {
            let (id, name, input) = (format!("c{n}"), "Bash".to_owned(), "{}".to_owned());
            let output = format!("result {n}\n{}", "a line of what a tool said\n".repeat(120));
            let drafts = [
                Draft::Message(Speaker::User, format!("Look at {n}.")),
                Draft::Call { id: id.clone(), name, input },
                Draft::Result { id, output, error: None },
                Draft::Message(Speaker::Assistant, format!("Seen {n}.")),
            ];
            verbs::append(&archive.at(&session).unwrap(), &workspace(), &drafts).unwrap();
        }
        if format == "kimi" {
            // The next change is the first one that has to list the folder.
            fs::write(place.home.join("agent/kimi.json"), "{\"work_dirs\":[]}").unwrap();
            let _ = fs::remove_file(place.home.join("agent/kimi.json.undertext-1"));
        }
        place
    }

    fn store(&self) -> PathBuf {
        self.home.join("store")
    }

    /// How a change is made in the session's folder.
    fn listing(&self) -> Manner {
        let folder = (self.format == "kimi").then(|| FOLDER.to_owned());
        Manner { folder, force: true, ..Manner::default() }
    }

    fn open(&self) -> (Archive, Session) {
        let mut archive = fixture::open(&self.store(), 2);
        archive.set_manner(self.listing());
        let session = self.session(&archive);
        (archive, session)
    }

    fn session(&self, archive: &Archive) -> Session {
        let mut sessions = sessions(archive).into_iter();
        sessions.find(|session| session.name.format == self.format).unwrap()
    }

    fn is_listed(&self) -> bool {
        let list = fs::read_to_string(self.home.join("agent/kimi.json")).unwrap_or_default();
        list.contains(FOLDER)
    }
}

/// Returns the sessions of an archive, hidden ones too.
fn sessions(archive: &Archive) -> Vec<Session> {
    let filter = SessionFilter { hidden: true, ..Default::default() };
    let mut names: Vec<_> =
        archive.sessions(&filter).unwrap().into_iter().map(|listed| listed.name).collect();
    names.sort();
    names.iter().map(|name| archive.session(name).unwrap().unwrap()).collect()
}

/// Returns all that a store says of its sessions, times left out.
fn shown(archive: &Archive) -> Vec<String> {
    let mut all = Vec::new();
    for session in sessions(archive) {
        let card = verbs::status(&archive.at(&session).unwrap()).unwrap().card;
        all.push(format!("{} {}", session.name.format, card.hidden));
        for listed in verbs::branches(&archive.at(&session).unwrap()).unwrap() {
            let name = listed.branch.unwrap();
            let target = verbs::find_place(&archive.at(&session).unwrap(), &name).ok();
            let said = target.map(|target| fixture::said(archive, &session, Some(&target)));
            all.push(format!("{name} {} {said:?}", listed.current));
        }
        for shown in verbs::checkpoints(&archive.at(&session).unwrap()).unwrap() {
            let found = shown.checkpoint;
            all.push(format!("@{} {:?} {:?}", found.n, found.place, shown.words));
        }
        for view in verbs::operations(&archive.at(&session).unwrap(), usize::MAX).unwrap().shown {
            let operation = view.operation;
            let (n, command) = (operation.n, operation.command.as_str());
            all.push(format!("{n} {command} {}", view.undone));
        }
    }
    all
}

/// What is left once a step has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Everything; only this step failed.
    Once,
    /// What was done before.
    Frozen,
    /// What was synced before.
    Cut(Names),
}

const FAULTS: [Fault; 4] =
    [Fault::Cut(Names::Synced), Fault::Cut(Names::Given), Fault::Once, Fault::Frozen];

/// Makes a change whose n-th step fails, with all behind it if they are to be so, and returns how it ended, how many steps
/// there were, and what a power cut leaves.
fn attempt(
    place: &Place,
    verb: Verb,
    n: i64,
    fault: Fault,
) -> (Result<(), OpsError>, i64, Option<Image>) {
    let faults = Faults::arm(&place.home, Failure::Step, n, fault != Fault::Once);
    if matches!(fault, Fault::Cut(_)) {
        keep_synced(Some(Image::of(&place.home, Some(faults.countdown()))));
    }
    let done = (|| {
        let mut archive = Archive::open(&place.store(), Access::Brief, Seeded::boxed(3))?;
        archive.set_writable(fixture::writable(&place.store()));
        archive.set_disk(Arc::new(Faulty(faults.countdown())));
        archive.set_manner(Manner { rotate: verb == Verb::Rotate, ..place.listing() });
        let session = place.session(&archive);
        verb.run(place, &mut archive, &session)
    })();
    (done, faults.counted(), keep_synced(None))
}

/// Puts a home back to what it was.
fn put_back(home: &Path, before: &[(PathBuf, Vec<u8>)]) {
    for path in below(home) {
        fs::remove_file(path).unwrap();
    }
    for (path, bytes) in before {
        fs::write(path, bytes).unwrap();
    }
}

/// What is known of a home.
struct Seen {
    shown: Vec<String>,
    /// Whether Kimi's list has the session's folder.
    is_listed: bool,
}

impl Seen {
    fn of(place: &Place, archive: &Archive) -> Self {
        Self { shown: shown(archive), is_listed: place.is_listed() }
    }

    /// Returns what is shown of operations, the newest of a session first.
    fn operations(&self) -> Vec<&String> {
        let is_number = |line: &&String| line.starts_with(|first: char| first.is_ascii_digit());
        self.shown.iter().filter(is_number).collect()
    }
}

/// Breaks the steps of every verb on a session of a format and returns how many.
#[track_caller]
fn break_each(format: &'static str) -> String {
    let (mut tried, mut flaws, mut refused) = (0, Vec::new(), Vec::new());
    // How many of a verb's steps are broken, in each of the ways.
    let wanted: i64 = needs::rounds(1, 3);
    for verb in Verb::ALL {
        let folder = TempDir::new().unwrap();
        let home = folder.path().join("home");
        fs::create_dir(&home).unwrap();
        let place = Place::begin(format, &home);
        verb.prepare(&place);
        let home = place.home.clone();
        let held: Vec<_> =
            below(&home).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
        let before = Seen::of(&place, &place.open().0);
        // The files are new ones each time, which costs a few steps more.
        put_back(&home, &held);
        let (done, steps, _) = attempt(&place, verb, i64::MAX, Fault::Once);
        let after = Seen::of(&place, &place.open().0);
        if let Err(error) = done {
            // What a format refuses is refused before anything is written.
            assert!(matches!(error, OpsError::Sync(_)), "{format} {verb:?}: {error:?}");
            refused.push(verb);
            continue;
        }
        for (shift, fault) in (0..).zip(FAULTS) {
            // A power cut may come after all steps too.
            let last = steps + i64::from(matches!(fault, Fault::Cut(_)));
            let most = wanted.min(last);
            for i in 0..most {
                let n = last - (i * last + shift * last / 4) / most;
                put_back(&home, &held);
                let (done, _, image) = attempt(&place, verb, n, fault);
                if let (Fault::Cut(names), Some(image)) = (fault, image) {
                    image.cut(names);
                }
                if let Err(flaw) = flaw(&place, &done, &before, &after) {
                    let step = format!("{format} {verb:?}, step {n} of {steps}, {fault:?}");
                    flaws.push(format!("{step}, {done:?}: {flaw}"));
                }
                tried += 1;
            }
        }
    }
    assert!(flaws.is_empty(), "{} of {tried}:\n{}", flaws.len(), flaws.join("\n"));
    format!("{format}: {tried} steps were broken; refused: {refused:?}")
}

/// Returns what is wrong after a change, if it is not there whole or not at all, or the next ones do not bring everything to
/// agree.
fn flaw(
    place: &Place,
    done: &Result<(), OpsError>,
    before: &Seen,
    after: &Seen,
) -> Result<(), String> {
    let mut archive = fixture::open(&place.store(), 4);
    let found = Seen::of(place, &archive);
    let [was, is, will] = [before, &found, after].map(Seen::operations);
    // A change that catches up first is two operations.
    let is_between = was.len() < is.len() && is.len() < will.len() && will.ends_with(&is);
    let is_nothing = found.shown == before.shown;
    let is_whole = found.shown == after.shown;
    let is_right = match done {
        Ok(()) => is_whole,
        Err(OpsError::Sync(SyncError::Behind { .. })) => is_whole || is_between,
        Err(_) => is_whole || is_between || is_nothing,
    };
    if !is_right {
        let [before, found, after] = [before, &found, after].map(|seen| seen.shown.join("\n"));
        return Err(format!("half of it:\n{found}\n--- before\n{before}\n--- after\n{after}"));
    }
    // What was acknowledged is in an agent's file already; the store's own may follow later.
    if done.is_ok() && place.file.is_some() {
        agree(place, &archive, &place.session(&archive))?;
    }
    // The next change writes nothing itself, and nobody says in which folder it is made.
    for session in sessions(&archive) {
        verbs::hide(&archive.at(&session).unwrap(), false).map_err(|error| error.to_string())?;
        agree(place, &archive, &session)?;
    }
    let should_be = if is_whole { after.is_listed } else { before.is_listed };
    if place.is_listed() != should_be && !is_between {
        return Err(format!("Kimi's list has the folder: {}", !should_be));
    }
    archive.set_manner(place.listing());
    for session in sessions(&archive) {
        fixture::say(&mut archive, &session, "There is power again.");
        agree(place, &archive, &session)?;
        if !verbs::rebuild(&mut archive, &session).unwrap().equal {
            return Err("the derived rows differ".to_owned());
        }
    }
    let damage = fixture::damage(&archive);
    if damage.is_empty() { Ok(()) } else { Err(damage.join("; ")) }
}

/// Sees that the live file reads as the store says, and that nothing else lies there.
fn agree(place: &Place, archive: &Archive, session: &Session) -> Result<(), String> {
    let is_left = |path: &PathBuf| path.extension() == Some("undertext-new".as_ref());
    if let Some(left) = below(&place.home).into_iter().find(is_left) {
        return Err(format!("{} is left", left.display()));
    }
    let state = archive.store().state(session.key).unwrap();
    let live = state.live.and_then(|live| archive.path_of(state.file(live)?));
    let Some(file) = live else { return Ok(()) };
    if place.kind == "threads" && session.format.name() == "codex" {
        let indexed = indexed(&place.home.join("agent/.codex"), &session.name.id);
        if indexed != file {
            return Err(format!("Codex reads {}, not {}", indexed.display(), file.display()));
        }
    }
    let found = fs::read(&file).map_err(|error| format!("the live file: {error}"))?;
    let expected = fixture::exported(archive, session, None);
    if found != expected {
        let [found, expected] = [&found, &expected].map(|bytes| String::from_utf8_lossy(bytes));
        return Err(format!("the live file differs:\n{found}\n--- from\n{expected}"));
    }
    // What begins with nothing is told to be Kimi's by where it lies only.
    if session.format.name() != "native" && !found.trim_ascii().is_empty() {
        let (peeked, alone) = verbs::peek(&file, Seeded::boxed(6)).unwrap();
        let [there, here] =
            [(&peeked, &alone), (archive, session)].map(|(a, s)| fixture::said(a, s, None));
        if there != here {
            return Err(format!("the agent reads {there:#?}, and the store says {here:#?}"));
        }
    }
    Ok(())
}

#[test]
fn a_live_file_that_got_the_number_of_the_one_before_it_is_not_taken_for_that() {
    let folder = TempDir::new().unwrap();
    let (mut archive, here) = (fixture::open(folder.path(), 1), workspace());
    let session = fixture::session(&mut archive);
    for text in ["one", "two", "three"] {
        fixture::say(&mut archive, &session, text);
    }
    verbs::revert(&archive.at(&session).unwrap(), &here, "1", None).unwrap();
    verbs::undo(&archive.at(&session).unwrap(), None).unwrap();
    // The file that the undoing has set aside is a beginning of the live one: a copy of both may have any numbers.
    let live = fixture::live(&archive, &session);
    let aside = verbs::rotations(&archive.at(&session).unwrap()).unwrap().pop().unwrap().path;
    let (now, before) = (fs::read(&live).unwrap(), fs::read(&aside).unwrap());
    assert!(now.starts_with(&before));
    fs::write(&aside, now).unwrap();
    fs::rename(&aside, &live).unwrap();
    fs::write(&aside, before).unwrap();
    fixture::say(&mut archive, &session, "four");
    assert_eq!(fixture::said(&archive, &session, None), ["one", "two", "three", "four"]);
    fixture::assert_sound(&mut archive, &session);
}

#[test]
fn of_a_line_that_could_not_be_written_nothing_stays_in_an_agents_file() {
    let folder = TempDir::new().unwrap();
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    let place = Place::begin("claude", &home);
    let file = place.file.as_ref().unwrap();
    let before = fs::read(file).unwrap();
    let held: Vec<_> =
        below(&home).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    let (_, steps, _) = attempt(&place, Verb::Append, i64::MAX, Fault::Once);
    let mut was_cut_short = false;
    for n in 1..=steps {
        put_back(&home, &held);
        let (done, _, _) = attempt(&place, Verb::Append, n, Fault::Once);
        let found = fs::read(file).unwrap();
        let is_behind = matches!(done, Err(OpsError::Sync(SyncError::Behind { .. })));
        was_cut_short |= is_behind && found == before;
        assert!(found.ends_with(b"\n"), "step {n} of {steps}, {done:?}");
    }
    assert!(was_cut_short);
}

#[test]
fn an_agents_file_that_is_only_set_aside_is_not_taken_for_deleted() {
    let folder = TempDir::new().unwrap();
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    let place = Place::begin("claude", &home);
    let (mut archive, session) = place.open();
    archive.set_manner(Manner { rotate: true, ..Manner::default() });
    verbs::revert(&archive.at(&session).unwrap(), &workspace(), "1", Some("back")).unwrap();
    let said = fixture::said(&archive, &session, None);
    // Where a file cannot have two names it is without one for an instant.
    let live = place.file.clone().unwrap();
    fs::rename(&live, fixture::successor(&live)).unwrap();
    verbs::hide(&archive.at(&session).unwrap(), false).unwrap();
    agree(&place, &archive, &session).unwrap();
    assert_eq!(fixture::said(&archive, &session, None), said);
    let aside = verbs::rotations(&archive.at(&session).unwrap()).unwrap().pop().unwrap();
    assert_eq!(aside.state, verbs::RotatedState::Whole);
    // A file that is not there, with no successor, was deleted.
    fs::remove_file(&live).unwrap();
    verbs::hide(&archive.at(&session).unwrap(), false).unwrap();
    assert_eq!(archive.store().state(session.key).unwrap().live, None);
}

#[test]
fn a_change_of_a_native_session_is_whole_or_not_there_whichever_step_fails() {
    println!("{}", break_each("native"));
}

#[test]
fn a_change_of_a_claude_code_session_is_whole_or_not_there_whichever_step_fails() {
    println!("{}", break_each("claude"));
}

#[test]
fn a_change_of_a_codex_session_is_whole_or_not_there_whichever_step_fails() {
    println!("{}", break_each("codex"));
}

#[test]
fn a_change_of_a_codex_thread_that_goes_on_in_files_is_whole_or_not_there_whichever_step_fails() {
    println!("{}", break_each("threads"));
}

#[test]
fn a_change_of_a_pi_session_is_whole_or_not_there_whichever_step_fails() {
    println!("{}", break_each("pi"));
}

#[test]
fn a_change_of_a_kimi_session_is_whole_or_not_there_whichever_step_fails() {
    println!("{}", break_each("kimi"));
}
