//! Tests the wording of every error, notice and reason of the library, with its hints, in one snapshot. A new variant without a
//! sample here does not compile.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::archive::{Misread, NoPlace, SyncError, Vain, Why};
use crate::context::compact::CompactError;
use crate::context::model::{Fault, ModelError};
use crate::context::overflow::Figures;
use crate::context::plan::Nothing;
use crate::context::recover::{Large, Unrecovered};
use crate::context::stages::{Flaw, SummaryError};
use crate::context::window::Source;
use crate::disk::Refusal;
use crate::live::Denied;
use crate::model::{CheckpointNumber, GenerationNumber, OperationNumber, SessionName};
use crate::report::{Moment, Notice, Quirk, Stopped};
use crate::session::{Elsewhere, Gap, SessionError};
use crate::settings::{Exclusion, SettingsError};
use crate::store::{BundleError, StoreError};
use crate::trust::Strange;
use crate::verbs::OpsError;
use crate::wire::jsonl::ReadError;

/// Writes samples of each variant of an enum. A missing variant makes the `match` non-exhaustive.
macro_rules! list {
    ($text:ident, $enum:ty, $say:expr, { $($variant:pat => [$($sample:expr),+ $(,)?]),+ $(,)? }) => {{
        fn check(value: &$enum) {
            match value { $($variant => ()),+ }
        }
        writeln!($text, "# {}", stringify!($enum)).unwrap();
        $($(
            let sample: $enum = $sample;
            check(&sample);
            assert!(matches!(&sample, $variant), "{sample:?} stands behind another variant");
            writeln!($text, "{}", $say(sample)).unwrap();
        )+)+
        $text.push('\n');
    }};
}

/// Returns an error with its hints, each with the verb of its command.
fn hinted(error: impl Into<OpsError>) -> String {
    let error = error.into();
    let mut text = error.to_string();
    for hint in error.hints() {
        write!(text, "\n    hint: {}", hint.words).unwrap();
        if let Some(line) = hint.line {
            write!(text, " ({})", line.verb).unwrap();
        }
    }
    text
}

fn path() -> PathBuf {
    PathBuf::from("/home/ann/a.jsonl")
}

fn broken() -> io::Error {
    io::Error::other("the disk is broken")
}

fn told(text: &str) -> String {
    text.to_owned()
}

const SEVEN: OperationNumber = OperationNumber::new(7);

#[test]
fn every_message_is_known_and_says_what_comes_next() {
    let mut text = String::new();
    store(&mut text);
    session(&mut text);
    sync(&mut text);
    ops(&mut text);
    models(&mut text);
    reasons(&mut text);
    notices(&mut text);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../tests/pins");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("messages", text));
}

fn store(text: &mut String) {
    use StoreError as E;
    let at = || PathBuf::from("/store");
    list!(text, StoreError, hinted, {
        E::Conflict => [E::Conflict],
        E::Refused(_) => [E::Refused(told("a line is missing"))],
        E::Corrupt { .. } => [E::corrupt("segment 3", "its hash does not match")],
        E::Newer { .. } => [E::Newer { path: at(), found: 3, known: 2 }],
        E::Old { .. } => [E::Old { path: at(), found: 1, known: 2 }],
        E::NewerFacts { .. } => [E::NewerFacts { operation: SEVEN }],
        E::Forgotten { .. } => [E::Forgotten { path: at(), witnessed: 7, newest: 5 }],
        E::Foreign { .. } => [E::Foreign { path: at() }],
        E::Absent { .. } => [E::Absent { path: at() }],
        E::ReadOnly { .. } => [E::ReadOnly { path: at() }],
        E::Replaced { .. } => [E::Replaced { path: at() }],
        E::Unsure { .. } => [E::Unsure { path: at() }],
        E::Full => [E::Full],
        E::Busy => [E::Busy],
        E::Io { .. } => [E::Io { path: at(), source: broken() }],
        E::Database(_) => [E::Database(broken().into())],
    });
}

fn session(text: &mut String) {
    use SessionError as E;
    let none = |wanted: &str| E::NoEntry(told(wanted));
    let nearest = vec![
        (CheckpointNumber::new(2), told("Then mend it.")),
        (CheckpointNumber::new(3), String::new()),
    ];
    let far = |wanted: &str, nearest| E::NoCheckpoint { wanted: told(wanted), nearest };
    list!(text, SessionError, hinted, {
        E::Store(_) => [E::Store(StoreError::Busy)],
        E::NoSession(_) => [E::NoSession(told("boat"))],
        E::NoSessionHere(_) => [E::NoSessionHere(PathBuf::from("/home/ann"))],
        E::AmbiguousSession { .. } => [
            E::AmbiguousSession { wanted: told("7c"), matches: Vec::new() },
        ],
        E::NoEntry(_) => [
            none("boat"), none("7"), none("main..try"), none("HEAD^^"), none("head"), none("~1"),
            none("HEAD~99"), none("HEAD~x"),
        ],
        E::Start => [E::Start],
        E::AmbiguousEntry { .. } => [
            E::AmbiguousEntry { wanted: told("7"), matches: vec![told("7c2a51de"), told("70b1e2f3")] },
        ],
        E::NoCheckpoint { .. } => [far("99", nearest.clone()), far("99", Vec::new()), far("x", nearest.clone())],
        E::Apart { .. } => [
            E::Apart { ends: vec![(told("@3"), told("main")), (told("@5"), told("main.1"))] },
        ],
        E::NoStep { .. } => [E::NoStep { wanted: told("@3.9"), last: told("@3.2") }],
        E::UnknownFormat(_) => [E::UnknownFormat(told("cursor"))],
        E::Write { .. } => [E::Write { source: broken() }],
    });
}

/// Returns the refusals to write a file whose session is open.
fn loaded() -> [SyncError; 6] {
    use crate::live::{Holder, How};
    let holder = |how| Holder {
        pid: 12,
        name: told("agent"),
        command: told("program --option"),
        terminal: None,
        stop: None,
        how,
    };
    let in_its_folder = Holder { terminal: Some(told("/dev/pts/3")), ..holder(How::Folder) };
    let service = Holder { stop: Some("program stop"), ..holder(How::Lock) };
    let all = [
        (vec![holder(How::Open)], false),
        (vec![holder(How::Open)], true),
        (vec![holder(How::Named), holder(How::Unproven)], false),
        (vec![in_its_folder], false),
        (vec![service], false),
        (Vec::new(), false),
    ];
    let title = || Some(told("Build a boat."));
    let refusal = |(holders, is_final)| SyncError::Loaded {
        path: path(),
        session: told("7c2a51de"),
        title: title(),
        holders,
        is_final,
    };
    all.map(refusal)
}

fn sync(text: &mut String) {
    use SyncError as E;
    let [open, kept, named, folder, service, nobody] = loaded();
    let [in_use, ..] = loaded();
    let gap = |gap| Elsewhere { file: told("b.jsonl"), ordinal: Some(3), gap };
    let held = |holder| E::Held { path: path(), holder, limit: Duration::from_secs(30) };
    let process = |command: &str| Some(crate::archive::Holder { pid: 12, command: told(command) });
    let uncaught =
        |why| E::Uncaught { session: told("7c2a51de"), path: path(), why: Box::new(why) };
    let denied = |why| E::Denied { session: told("7c2a51de"), path: path(), why };
    list!(text, SyncError, hinted, {
        E::Store(_) => [E::Store(StoreError::Busy)],
        E::Session(_) => [E::Session(SessionError::NoEntry(told("7")))],
        E::Io { .. } => [
            E::Io { path: path(), source: broken() },
            E::Io { path: path(), source: io::ErrorKind::StorageFull.into() },
        ],
        E::Behind { .. } => [E::Behind { operation: SEVEN, path: path(), source: broken() }],
        E::Ahead { .. } => [E::Ahead { path: path() }],
        E::Held { .. } => [held(process("program --option")), held(process("")), held(None)],
        E::Watched { .. } => [E::Watched { path: path(), holder: process("program --option") }],
        E::Denied { .. } => [
            denied(Denied::Outside), denied(Denied::Gone), denied(Denied::Crooked), denied(Denied::Link),
            denied(Denied::Refused(Refusal::Link)), denied(Denied::InPlace(Refusal::Link)), denied(Denied::Io(broken())),
            denied(Denied::Io(io::ErrorKind::StorageFull.into())),
        ],
        E::Foreign { .. } => [E::Foreign { path: path(), owner: told("ann") }],
        E::Uncaught { .. } => [
            uncaught(E::Io { path: path(), source: broken() }),
            uncaught(in_use),
        ],
        E::Loaded { .. } => [open, kept, named, folder, service, nobody],
        E::Another { .. } => [E::Another { path: path(), session: told("boat"), live: PathBuf::from("b.jsonl") }],
        E::Left { .. } => [E::Left { path: path(), by: PathBuf::from("b.jsonl") }],
        E::Unread(_) => [
            E::Unread(gap(Gap::Parent(told("70d782f7")))), E::Unread(gap(Gap::Missing)),
            E::Unread(gap(Gap::Short)), E::Unread(gap(Gap::Endless)),
        ],
        E::Unlisted { .. } => [E::Unlisted { index: path(), why: told("its words") }],
        E::OutOfReach { .. } => [E::OutOfReach { path: path(), why: told("its words") }],
        E::Invalid { .. } => [
            E::Invalid { line: Some(3), why: told("the record has no type") },
            E::Invalid { line: None, why: told("the note is empty") },
        ],
        E::Nothing(Vain::Undo) => [E::Nothing(Vain::Undo)],
        E::Nothing(Vain::Redo) => [E::Nothing(Vain::Redo)],
        E::Nothing(Vain::Append) => [E::Nothing(Vain::Append)],
        E::Nothing(Vain::Branch) => [E::Nothing(Vain::Branch)],
        E::Nothing(Vain::Checkpoint) => [E::Nothing(Vain::Checkpoint)],
        E::Nothing(Vain::Compact) => [E::Nothing(Vain::Compact)],
        E::Nothing(Vain::Truncate) => [E::Nothing(Vain::Truncate)],
        E::Nothing(Vain::Reach) => [E::Nothing(Vain::Reach)],
        E::Nothing(Vain::CatchUp) => [E::Nothing(Vain::CatchUp)],
        E::Nothing(Vain::Attach) => [E::Nothing(Vain::Attach)],
        E::Nothing(Vain::Detach) => [E::Nothing(Vain::Detach)],
        E::Nothing(Vain::Restore { .. }) => [
            E::Nothing(Vain::Restore { there: Some(path()) }),
            E::Nothing(Vain::Restore { there: None }),
        ],
        E::NoFormat(_) => [E::NoFormat(path())],
        E::UnreadAgent { .. } => [E::UnreadAgent { path: path(), agent: "Copilot" }],
        E::Excluded { .. } => [E::Excluded { path: path(), by: Exclusion::Session(told("8f14")) }],
        E::LeftOut { .. } => [E::LeftOut {
            session: told("70d782f7"), path: path(), by: Exclusion::Folder(PathBuf::from("/home/ann/secret")),
        }],
        E::Unredacted(_) => [E::Unredacted(Box::new(E::Store(StoreError::Full)))],
        E::Read(_) => [
            E::Read(ReadError::Io { offset: 7, source: broken() }),
            E::Read(ReadError::TooLong { offset: 7, number: 3, max: 100 }),
        ],
        E::Own(_) => [E::Own(path())],
        E::Compressed(_) => [E::Compressed(path())],
        E::Marked(_) => [E::Marked(CheckpointNumber::new(3))],
        E::Misread(Misread::NoRecord) => [E::Misread(Misread::NoRecord)],
        E::Misread(Misread::Nothing) => [E::Misread(Misread::Nothing)],
        E::Misread(Misread::Otherwise) => [E::Misread(Misread::Otherwise)],
        E::Misread(Misread::Less) => [E::Misread(Misread::Less)],
        E::Misread(Misread::Earlier) => [E::Misread(Misread::Earlier)],
        E::NoPlace { why: NoPlace::NoName, .. } => [E::NoPlace { path: path(), why: NoPlace::NoName }],
        E::NoPlace { why: NoPlace::Full { .. }, .. } => [E::NoPlace { path: path(), why: NoPlace::Full { needed: 420, free: 17 } }],
        E::NoPlace { why: NoPlace::InStore, .. } => [E::NoPlace { path: path(), why: NoPlace::InStore }],
        E::NoPlace { why: NoPlace::AgentsFile, .. } => [E::NoPlace { path: path(), why: NoPlace::AgentsFile }],
        E::NoPlace { why: NoPlace::Taken, .. } => [E::NoPlace { path: path(), why: NoPlace::Taken }],
    });
}

fn ops(text: &mut String) {
    use OpsError as E;
    let large = Large { entry: told("7c2a51de"), what: told("tool"), tokens: 9_000 };
    let unfit = |used, truncated, largest| Unrecovered::DoesNotFit {
        session: told("70d782f7"),
        window: 8_000,
        used,
        compactions: 2,
        truncated,
        largest,
        said: told("its words"),
    };
    list!(text, OpsError, hinted, {
        E::Store(_) => [E::Store(StoreError::Busy)],
        E::Session(_) => [E::Session(SessionError::NoEntry(told("7")))],
        E::Sync(_) => [E::Sync(SyncError::Nothing(Vain::Undo))],
        E::Window { .. } => [
            E::Window { tokens: 5, by: Source::Asked, least: 16_000 },
            E::Window { tokens: 5, by: Source::File, least: 16_000 },
        ],
        E::NoBranch { .. } => [
            E::NoBranch { wanted: told("try"), branches: vec![told("main"), told("main.1")] },
        ],
        E::CurrentBranch(_) => [E::CurrentBranch(told("main"))],
        E::BranchExists(_) => [E::BranchExists(told("main"))],
        E::SessionExists(_) => [E::SessionExists("one".into())],
        E::BadId { .. } => [E::BadId { id: "a b".into(), why: "its words" }],
        E::BadName { .. } => [E::BadName { name: told("a b"), why: "its words" }],
        E::NoFile { .. } => [E::NoFile { wanted: path(), among: vec![path()] }],
        E::NoContainer { .. } => [E::NoContainer { generation: GenerationNumber::new(2) }],
        E::NoGeneration { .. } => [
            E::NoGeneration { wanted: GenerationNumber::new(9), newest: GenerationNumber::new(2) },
        ],
        E::TooShort { .. } => [E::TooShort { least: 4 }],
        E::SecretReason => [E::SecretReason],
        E::NotUndoable { .. } => [E::NotUndoable { n: SEVEN, why: "it created the session" }],
        E::NotKept { .. } => [E::NotKept { wanted: told("@13"), why: "no turn follows it" }],
        E::NoOperation(_) => [E::NoOperation(SEVEN)],
        E::Summary { .. } => [
            E::Summary { error: SummaryError::TimedOut { model: told("large") }, strict: true },
            E::Summary { error: SummaryError::TimedOut { model: told("large") }, strict: false },
        ],
        E::Model(_) => [E::Model(model(Fault::Silent { was_cut: false }))],
        E::Unrecovered(_) => [
            Unrecovered::Blocked { session: told("70d782f7"), window: 8_000, by: Source::Asked, least: 16_000 }.into(),
            unfit(Some(9_000), true, vec![large.clone()]).into(),
            unfit(None, false, Vec::new()).into(),
        ],
        E::Hook { .. } => [E::Hook { hook: "before_compaction", why: told("its words") }],
        E::Unset { .. } => [E::Unset { path: path(), why: told("it is not a JSON object") }],
        E::NoBundle(_) => [E::NoBundle("session 7c2a: entry 3: line 3 is damaged".into())],
        E::Bundle { .. } => [
            bundle(BundleError::Foreign, 0),
            bundle(BundleError::Newer("version 2".into()), 0),
            bundle(BundleError::Short, 1),
            bundle(BundleError::Damaged("a hash does not match".into()), 3),
            bundle(BundleError::Read(broken()), 0),
        ],
        E::NothingAsked => [E::NothingAsked],
        E::Deadline(_) => [E::Deadline(Box::new(Stopped {
            state: Moment::Present,
            session: "7c2a".into(),
            request: serde_json::Value::Null,
        }))],
        E::Overtaken => [E::Overtaken],
    });
}

fn bundle(why: BundleError, imported: u64) -> OpsError {
    OpsError::Bundle { path: path(), why, imported }
}

fn model(fault: Fault) -> ModelError {
    ModelError { model: told("large"), fault }
}

fn models(text: &mut String) {
    use Fault as F;
    let said = || told("its words");
    let after = |after| F::RateLimited { said: said(), after };
    let away = |after| F::Unreachable { said: said(), after };
    list!(text, Fault, |fault| model(fault).to_string(), {
        F::Overflow { .. } => [F::Overflow { said: said(), figures: Figures::default() }],
        F::RateLimited { .. } => [after(None), after(Some(Duration::from_secs(3)))],
        F::Refused { .. } => [
            F::Refused { said: said(), status: None }, F::Refused { said: said(), status: Some(401) },
        ],
        F::Exposed => [F::Exposed],
        F::Unreachable { .. } => [away(None), away(Some(Duration::from_secs(3)))],
        F::TimedOut { .. } => [F::TimedOut { limit: Duration::from_secs(60) }],
        F::BadAnswer { .. } => [F::BadAnswer { said: said() }],
        F::Declined { .. } => [F::Declined { said: said() }],
        F::Silent { .. } => [F::Silent { was_cut: true }, F::Silent { was_cut: false }],
    });
    let flawed = |flaw| SummaryError::Flawed { model: told("large"), flaw };
    list!(text, Flaw, |flaw| flawed(flaw).to_string(), {
        Flaw::Empty => [Flaw::Empty],
        Flaw::Cut => [Flaw::Cut],
        Flaw::Thinks => [Flaw::Thinks],
        Flaw::Refuses => [Flaw::Refuses],
        Flaw::Unheaded => [Flaw::Unheaded],
        Flaw::Poor(_) => [Flaw::Poor(vec!["src/a.rs".to_owned()])],
        Flaw::TooLong { .. } => [Flaw::TooLong { tokens: 900, most: 500 }],
    });
    list!(text, SummaryError, |error: SummaryError| error.to_string(), {
        SummaryError::Model(_) => [model(F::Silent { was_cut: true }).into()],
        SummaryError::TimedOut { .. } => [SummaryError::TimedOut { model: told("large") }],
        SummaryError::Flawed { .. } => [flawed(Flaw::Empty)],
    });
    list!(text, CompactError, |error: CompactError| error.to_string(), {
        CompactError::Nothing(_) => [
            Nothing::Empty.into(), Nothing::NothingNew.into(), Nothing::AllKept(7).into(),
            Nothing::NoGain.into(), Nothing::NotDue.into(),
        ],
        CompactError::Summary(_) => [flawed(Flaw::Empty).into()],
    });
}

fn reasons(text: &mut String) {
    let excluded = |by| {
        let session = SessionName { format: told("a-format"), id: told("8f14") };
        Why::Excluded { session, by }
    };
    let denied = || Why::Denied(Box::new(SyncError::Ahead { path: path() }));
    list!(text, Why, |why: Why| format!("skipped a.jsonl: {why}"), {
        Why::Unreadable(_) => [Why::Unreadable(broken())],
        Why::Special => [Why::Special],
        Why::Twice => [Why::Twice],
        Why::Link => [Why::Link],
        Why::MadeUp => [Why::MadeUp],
        Why::TooMany => [Why::TooMany],
        Why::Aside => [Why::Aside],
        Why::Unheld => [Why::Unheld],
        Why::Store => [Why::Store],
        Why::Beside(_) => [Why::Beside("an agent")],
        Why::Unread(_) => [Why::Unread("Copilot")],
        Why::NoFormat => [Why::NoFormat],
        Why::Emptied(_) => [Why::Emptied(SessionName { format: told("a-format"), id: told("8f14") })],
        Why::Excluded { .. } => [
            excluded(Exclusion::Folder(PathBuf::from("/home/ann/secret"))),
            excluded(Exclusion::Agent(told("a-format"))),
            excluded(Exclusion::Unplaced),
            excluded(Exclusion::Unread(told("config.toml, line 3: window.block cannot be -1"))),
        ],
        Why::Denied(_) => [denied()],
        Why::Along => [Why::Along],
        Why::Lines(_) => [Why::Lines(ReadError::TooLong { offset: 7, number: 3, max: 100 })],
    });
    list!(text, Refusal, |refusal: Refusal| format!("cannot read a.jsonl: {refusal}"), {
        Refusal::NoFile(_) => [Refusal::NoFile("a pipe")],
        Refusal::Link => [Refusal::Link],
        Refusal::MadeUp => [Refusal::MadeUp],
        Refusal::TooLong(_) => [Refusal::TooLong(100)],
    });
    list!(text, Strange, |why: Strange| format!("~/app/.undertext is not used: {why}"), {
        Strange::Unknown => [Strange::Unknown],
        Strange::Replaced => [Strange::Replaced],
        Strange::Empty => [Strange::Empty],
        Strange::Link(_) => [Strange::Link(PathBuf::from("store.db"))],
        Strange::Odd(_) => [Strange::Odd(PathBuf::from("hook.sh"))],
        Strange::Foreign(_) => [Strange::Foreign(PathBuf::new())],
        Strange::Open => [Strange::Open],
        Strange::Brought(_) => [Strange::Brought(PathBuf::from("store.db-wal"))],
        Strange::Unreadable(_) => [Strange::Unreadable(told("the disk is broken"))],
    });
    let (file, key) = (told("config.toml"), told("window.block"));
    list!(text, SettingsError, |error: SettingsError| error.to_string(), {
        SettingsError::Syntax { .. } => [
            SettingsError::Syntax { file: file.clone(), line: 3, problem: told("unclosed table") },
        ],
        SettingsError::Together { .. } => [
            SettingsError::Together { problem: told("missing field `url`") },
        ],
        SettingsError::Value { .. } => [
            SettingsError::Value { file: file.clone(), line: 3, key, problem: told("-1: it must be a number") },
        ],
    });
    list!(text, Quirk, |quirk: Quirk| format!("a.jsonl:3: {}", quirk.words()), {
        Quirk::Opaque => [Quirk::Opaque],
        Quirk::Glued => [Quirk::Glued],
        Quirk::Torn => [Quirk::Torn],
        Quirk::Rewritten => [Quirk::Rewritten],
        Quirk::Repeated => [Quirk::Repeated],
        Quirk::Unkept => [Quirk::Unkept],
        Quirk::TooLong => [Quirk::TooLong],
        Quirk::Unreadable => [Quirk::Unreadable],
        Quirk::LeftOut(_) => [Quirk::LeftOut("it is next to the session and cannot be read")],
        Quirk::Mended(_) => [Quirk::Mended("its parent is not in the file")],
    });
}

fn notices(text: &mut String) {
    use Notice as N;
    let branch = || told("main.1");
    let followed = |entries, is_rewritten, left| N::Followed {
        path: path(),
        is_rewritten,
        entries,
        left,
        operation: SEVEN,
    };
    let late = |entries, branch| N::Late { aside: path(), entries, branch };
    list!(text, Notice, |notice: Notice| notice.to_string(), {
        N::Appended { .. } => [
            N::Appended { entries: 1, operation: SEVEN }, N::Appended { entries: 2, operation: SEVEN },
        ],
        N::Finished { .. } => [N::Finished { path: path() }],
        N::Restored { .. } => [N::Restored { path: path() }],
        N::SetAside { .. } => [N::SetAside { aside: path(), branch: branch(), operation: SEVEN }],
        N::Ending { .. } => [N::Ending { path: path(), operation: SEVEN }],
        N::Followed { .. } => [followed(1, true, None), followed(2, false, Some(branch()))],
        N::Joined { .. } => [N::Joined { entries: 2, branch: branch(), operation: SEVEN }],
        N::Unsettled { .. } => [N::Unsettled { why: told("the disk is broken") }],
        N::Elsewhere => [N::Elsewhere],
        N::Unresumed { .. } => [N::Unresumed { why: "the agent reads another file" }],
        N::Detached { .. } => [N::Detached { path: path() }],
        N::Unattached { .. } => [N::Unattached { why: told("a.jsonl.zst is compressed, so undertext cannot keep the session in sync with it") }],
        N::Unlisted { .. } => [N::Unlisted { why: told("the session's folder is not listed") }],
        N::Packed { .. } => [N::Packed { path: path() }],
        N::Gone { .. } => [N::Gone { path: path(), to: None }, N::Gone { path: path(), to: Some(path()) }],
        N::Dropped { .. } => [N::Dropped { operation: SEVEN }],
        N::Redacted { .. } => [N::Redacted { lines: 1 }, N::Redacted { lines: 2 }],
        N::Unread { .. } => [N::Unread { path: path(), line: 3, why: "its words" }],
        N::Unsought { .. } => [N::Unsought { path: path(), why: "entry 7 is damaged".into() }],
        N::Late { .. } => [late(1, None), late(2, Some(branch()))],
    });
}
