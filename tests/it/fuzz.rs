//! Any bytes, as whoever writes files or answers may send them: as a session's file, as a model's answer, as an agent's database.
//! Nothing panics, hangs or changes what it should only read.
//!
//! The claims are functions of bytes alone, so that a fuzzer can ask them too (`fuzz/`). Here the seeds are asked, and the
//! examples.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{LazyLock, Mutex},
    thread,
    time::Duration,
};

use undertext::{
    context::{
        Shape,
        cut::Limit,
        history::Limits,
        model::{ChatModel as _, ChatRequest},
        tokens::Counting,
        window::Windows,
    },
    live::{Index, Writable},
    model::{Message, Role},
    provider::{Api, Endpoint, Http},
    verbs::{self, Archive, Asked, Bound, Machine, OpsError, Session, SyncError, Workspace},
    wire::{self, Draft, Speaker},
};

/// Where a file of each format lies, by its first byte.
const PLACES: [&str; 5] = [
    "agent/7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl",
    "agent/rollout-2026-08-02T14-00-00-019fc000-4d1e-7a30-8b52-6f0e9d8c7b6a.jsonl",
    "agent/2026-08-02_boat.jsonl",
    "agent/sessions/2ca1f4ebdc59348ffdc31d97a51a98d5/7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40/context.jsonl",
    "agent/native.jsonl",
];

/// A file of any bytes, where an agent would have it, goes through each verb: what is refused is refused with a reason, the
/// file always reads as the store says, and nothing is damaged. The first byte says which agent, and with which verb it begins.
pub(crate) fn verbs(bytes: &[u8]) {
    let Some((how, bytes)) = bytes.split_first() else { return };
    let how = usize::from(*how);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let path = root.join(PLACES[how % PLACES.len()]);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    let mut archive = Archive::in_memory(Box::new(Machine));
    let mut writable = Writable::default();
    for format in wire::FORMATS {
        writable.folder(format.name(), &root);
    }
    archive.set_writable(writable);
    let Ok((session, _)) = verbs::take_up(&mut archive, &path) else { return };
    look(&archive, &session);
    for n in 0..VERBS {
        let done = change(&mut archive, &session, (how / PLACES.len() + n) % VERBS);
        let is_refused = |error: &OpsError| {
            let io =
                matches!(error, OpsError::Sync(SyncError::Io { .. } | SyncError::Behind { .. }));
            !io && !matches!(error, OpsError::Store(_))
        };
        assert!(done.as_ref().err().is_none_or(is_refused), "{done:?}: {}", bytes.escape_ascii());
        let state = archive.store().state(session.key).unwrap();
        let live = state.live.and_then(|live| archive.path_of(state.file(live)?));
        if let Some(live) = live {
            let is_same = exported(&archive, &session) == fs::read(live).unwrap();
            assert!(is_same, "{done:?}: {}", bytes.escape_ascii());
        }
    }
    look(&archive, &session);
    verbs::verify(&archive, None, &mut |told| {
        if let Some(finding) = told.found() {
            assert!(!finding.kind.is_damage(), "{finding:?}: {}", bytes.escape_ascii());
        }
    })
    .unwrap();
}

/// Whichever part of a graph is drawn or read, a node is what it is in the whole graph.
fn look_at_the_end(archive: &Archive, session: &Session) {
    let at = archive.at(session).unwrap();
    let detail = verbs::Detail { acts: true, ..verbs::Detail::default() };
    let drawing = verbs::drawing(&at, detail).unwrap();
    let whole = verbs::graph(&at, detail).unwrap().nodes;
    let middle = drawing.count() / 2;
    let halves = [drawing.nodes(0..middle), drawing.nodes(middle..usize::MAX)];
    assert_eq!(halves.map(Result::unwrap).concat(), whole);
    for entries in [1, 5, usize::MAX] {
        let recent = verbs::recent_drawing(&at, entries, detail).unwrap();
        recent.nodes(0..usize::MAX).unwrap();
    }
}

/// Asks all that can be asked of a session.
fn look(archive: &Archive, session: &Session) {
    verbs::status(&archive.at(session).unwrap()).unwrap();
    verbs::graph(
        &archive.at(session).unwrap(),
        verbs::Detail { all: true, ..verbs::Detail::default() },
    )
    .unwrap();
    look_at_the_end(archive, session);
    verbs::audit(&archive.at(session).unwrap()).unwrap();
    verbs::audit_boundaries(&archive.at(session).unwrap()).unwrap();
    verbs::checkpoints(&archive.at(session).unwrap()).unwrap();
    verbs::operations(&archive.at(session).unwrap(), usize::MAX).unwrap();
    let log = verbs::log(&archive.at(session).unwrap(), None, usize::MAX).unwrap();
    for id in log.lines.iter().filter_map(|line| line.id).take(9) {
        let target = verbs::find_place(&archive.at(session).unwrap(), &id.to_string()).unwrap();
        let _ = verbs::show(&archive.at(session).unwrap(), &target);
    }
    for shape in [Shape::Messages, Shape::Openai, Shape::Anthropic] {
        let asked = Asked {
            shape,
            model: None,
            window: Some(32_000),
            windows: Windows::default(),
            limits: Limits::default(),
            images: true,
            results: None,
            counting: Some(Counting::Estimate),
        };
        let _ = verbs::context(&archive.at(session).unwrap(), None, &asked);
    }
}

const VERBS: usize = 8;

/// Makes one of the changes.
fn change(archive: &mut Archive, session: &Session, n: usize) -> Result<(), OpsError> {
    let here = Workspace { folder: "/project".into(), ..Workspace::default() };
    match n {
        0 => verbs::revert(&archive.at(session).unwrap(), &here, "1", Some("It was the pump."))
            .map(|_| ()),
        1 | 4 => verbs::undo(&archive.at(session).unwrap(), None).map(|_| ()),
        2 => {
            let said = [Draft::Message(Speaker::User, "What else?".to_owned())];
            verbs::append(&archive.at(session).unwrap(), &here, &said).map(|_| ())
        }
        3 => {
            let bound = Bound::of(Limit::of_chars(0));
            verbs::truncate(&archive.at(session).unwrap(), &bound).map(|_| ())
        }
        5 => verbs::redo(&archive.at(session).unwrap()).map(|_| ()),
        6 => verbs::clear(&archive.at(session).unwrap()).map(|_| ()),
        _ => verbs::revert(&archive.at(session).unwrap(), &here, "0", None).map(|_| ()),
    }
}

fn exported(archive: &Archive, session: &Session) -> Vec<u8> {
    let mut bytes = Vec::new();
    verbs::export(&archive.at(session).unwrap(), None, &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    })
    .unwrap();
    bytes
}

/// What the server of [`stream`] answers next: a status, and the body.
static ANSWER: Mutex<(u16, Vec<u8>)> = Mutex::new((200, Vec::new()));

/// A server that answers each request with [`ANSWER`].
static SERVER: LazyLock<String> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || drop(serve(&stream)));
        }
    });
    url
});

fn serve(mut stream: &TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let lower = line.to_ascii_lowercase();
            if let Some(said) = lower.strip_prefix("content-length:") {
                length = said.trim().parse().unwrap_or(0);
            }
        }
        reader.read_exact(&mut vec![0; length])?;
        let (status, body) = ANSWER.lock().unwrap().clone();
        let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), &body].concat())?;
    }
}

thread_local! {
    static MODELS: [Http; 2] = [Api::OpenAi, Api::Anthropic].map(|api| {
        let mut endpoint = Endpoint::new(api, &SERVER, "test-model");
        endpoint.limits.retries = 0;
        endpoint.limits.backoff = Duration::ZERO;
        Http::new(endpoint).unwrap()
    });
}

/// A model's answer of any bytes is an answer or an error. The first byte says which interface is spoken, and whether the
/// server refuses.
pub(crate) fn stream(bytes: &[u8]) {
    let Some((how, body)) = bytes.split_first() else { return };
    let status = if how & 2 == 0 { 200 } else { 429 };
    *ANSWER.lock().unwrap() = (status, body.to_vec());
    let messages = [Message::new(Role::User, Vec::new())];
    let request = ChatRequest {
        system: "",
        messages: &messages,
        tools: &[],
        max_tokens: 500,
        limit: Duration::MAX,
    };
    let answer = MODELS.with(|models| models[usize::from(how & 1)].answer(&request, &mut |_| ()));
    assert!(answer.is_err() || status == 200, "{answer:?}");
}

/// A database of any bytes, where Codex has its own, is read or refused, and reading changes nothing. An exchange of the file
/// of a session changes that database at most.
pub(crate) fn database(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let names = ["state_5.sqlite", "thread_history_1.sqlite"];
    for name in names {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let index = Index::of(folder.path().to_owned());
    let _ = (index.file("a-1"), index.listed("a-1"));
    for name in names {
        assert!(fs::read(folder.path().join(name)).unwrap() == bytes, "{name}");
    }
    let _ = index.exchange("a-1", Path::new("/a"), Path::new("/b"));
    assert!(fs::read(folder.path().join(names[1])).unwrap() == bytes);
    for entry in fs::read_dir(folder.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(names.iter().any(|known| name.starts_with(known)), "{name}");
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn below(folder: &str) -> Vec<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let mut files: Vec<_> =
            fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty());
        files
    }

    #[test]
    fn every_seed_of_a_session_goes_through_the_verbs() {
        for seed in below("fuzz/seeds/verbs") {
            verbs(&fs::read(seed).unwrap());
        }
    }

    #[test]
    fn every_seed_of_an_answer_is_an_answer_or_an_error() {
        for seed in below("fuzz/seeds/stream") {
            stream(&fs::read(seed).unwrap());
        }
    }

    #[test]
    fn every_seed_of_a_database_is_read_and_not_changed() {
        for seed in below("fuzz/seeds/database") {
            database(&fs::read(seed).unwrap());
        }
    }
}
