//! What the agents themselves resume is what the formats say, from a file as it stands and from a store that holds it.
//!
//! Real sessions and what their agents sent lie in the corpus. A table is printed.

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

use serde_json::Value;
use sha2::{Digest, Sha256};
use undertext::{
    json::Raw,
    model::{Block, EntryNumber, Kind, Landmark, Message, Position, Role},
    verbs::{self, Archive, Machine, Session, SyncError, View},
    wire::{Claude, Codex, Format, Graph, Read as _, jsonl::Reader},
};

use crate::{
    graph::FileGraph,
    needs::{self, Corpus},
};

/// Returns a file as a session of an archive, if any format knows it.
pub(crate) fn peek(path: &Path) -> Option<(Archive, Session)> {
    match verbs::peek(path, Box::new(Machine)) {
        Err(SyncError::NoFormat(_) | SyncError::UnreadAgent { .. }) => None,
        other => Some(other.unwrap()),
    }
}

pub(crate) fn view<'a>(archive: &'a Archive, session: &'a Session) -> View<'a> {
    let position = archive.store().state(session.key).unwrap().position().unwrap();
    View::new(archive.store(), session, position, None)
}

fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

/// A block as it is compared: who speaks, what it is, and every form of its words that counts as the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    role: &'static str,
    what: &'static str,
    forms: Vec<String>,
}

/// Reads what an agent sent.
fn sent(path: &Path) -> Vec<Said> {
    let text = fs::read_to_string(path).unwrap();
    let mut said = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let message: serde_json::Value = serde_json::from_str(line).unwrap();
        let role = if message["role"] == "user" { "user" } else { "assistant" };
        for block in message["blocks"].as_array().unwrap() {
            let (what, at) = match block[0].as_str().unwrap() {
                "text" => ("text", 2),
                "tool_use" => ("call", 1),
                "tool_result" => ("result", 1),
                _ => continue,
            };
            said.push(Said { role, what, forms: vec![block[at].as_str().unwrap().to_owned()] });
        }
    }
    said
}

/// Returns what a context says, as far as the agent sends it as it is.
fn said(graph: &dyn Graph, context: &[EntryNumber]) -> Vec<Said> {
    let mut said = Vec::new();
    for &entry in context {
        let line = graph.line(entry).unwrap();
        let record = Raw::object(&line).unwrap();
        let is_reminded = record.get("type").and_then(Raw::text).as_deref() == Some("attachment")
            || record.get("origin").and_then(|origin| origin.get("kind")?.text()).as_deref()
                == Some("task-notification");
        let Some(message) = Claude.messages(record).pop().filter(|_| !is_reminded) else {
            continue;
        };
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        for block in &message.blocks {
            let (what, forms) = match block {
                Block::Text(text)
                    if text.trim().is_empty()
                        || text.trim_start().starts_with("<system-reminder>") =>
                {
                    continue;
                }
                // A text that another one follows in the same message ends with a line end.
                Block::Text(text) => {
                    ("text", vec![digest(text), digest(&format!("{text}\n")), digest(text.trim())])
                }
                Block::Call { id, .. } => ("call", vec![id.clone()]),
                Block::Result { id, .. } => ("result", vec![id.clone()]),
                _ => continue,
            };
            said.push(Said { role, what, forms });
        }
    }
    said
}

/// Compares blocks; an answer that the agent adds to what stands unanswered is no difference.
pub(crate) fn from_claude_code(
    graph: &dyn Graph,
    context: &[EntryNumber],
    truth: &Path,
) -> Compared {
    let (ours, theirs) = (said(graph, context), sent(truth));
    let nothing_asked = digest("No response requested.");
    let answered: BTreeSet<_> =
        ours.iter().filter(|said| said.what == "result").map(|said| &said.forms).collect();
    let n_blocks = ours.len();
    let mut ours = ours.iter().enumerate().peekable();
    for (at, their) in theirs.iter().enumerate() {
        let is_same = |our: &Said| {
            our.role == their.role && our.what == their.what && our.forms.contains(&their.forms[0])
        };
        if ours.next_if(|(_, our)| is_same(our)).is_some() {
            continue;
        }
        let is_added = their.forms[0] == nothing_asked
            || their.what == "result" && !answered.contains(&their.forms);
        if !is_added {
            return Err(format!("block {at}: {their:?}, not {:?}", ours.peek()));
        }
    }
    match ours.next() {
        Some((at, our)) => Err(format!("block {at} is not sent: {our:?}")),
        None => Ok(n_blocks),
    }
}

/// Compares items with those that Codex sent.
pub(crate) fn from_codex(graph: &dyn Graph, context: &[EntryNumber], truth: &Path) -> Compared {
    let lines =
        graph.end().earlier().map(|place| graph.line(graph.at(place).unwrap().unwrap()).unwrap());
    let instructions = |line: Vec<u8>| {
        let record: Value = serde_json::from_slice(&line).unwrap_or_default();
        record["payload"]["base_instructions"]["text"].as_str().map(digest)
    };
    let mut theirs: Vec<String> =
        fs::read_to_string(truth).unwrap().lines().filter_map(item).collect();
    // The agent puts instructions first, afresh: the file's own, or those of another model.
    let first =
        lines.into_iter().find_map(instructions).map(|digest| format!("developer {digest}"));
    let mut ours: Vec<String> =
        first.into_iter().filter(|first| theirs.first() == Some(first)).collect();
    for &entry in context {
        let line = graph.line(entry).unwrap();
        ours.extend(Codex.messages(Raw::object(&line).unwrap()).iter().map(shown));
    }
    // Behind the history the agent says its rules again, some in words that the file holds.
    while theirs.len() > ours.len()
        && theirs.last().is_some_and(|last| last.starts_with("developer "))
    {
        theirs.pop();
    }
    let same = ours.iter().zip(&theirs).take_while(|(one, other)| one == other).count();
    if ours == theirs {
        return Ok(ours.len());
    }
    Err(format!("item {same}: {:?}, not {:?}", theirs.get(same), ours.get(same)))
}

fn shown(message: &Message) -> String {
    let role = match message.role {
        Role::System => "developer",
        role => role.as_str(),
    };
    let mut out = String::new();
    for block in &message.blocks {
        match block {
            Block::Text(text) if out.is_empty() => {
                write!(out, "{role} {}", digest(text)).unwrap();
            }
            Block::Text(text) => write!(out, " {}", digest(text)).unwrap(),
            Block::Thinking(_) => out.push_str("reasoning"),
            Block::Call { id, .. } => write!(out, "call {id}").unwrap(),
            Block::Result { id, .. } => write!(out, "output {id}").unwrap(),
            Block::Image(_) => write!(out, " {}", digest("[input_image]")).unwrap(),
            Block::Other { name, .. } => out.push_str(name),
        }
    }
    out
}

/// Returns what Codex sent, from a line of the judge; None for the output that it puts in for an unanswered call.
fn item(line: &str) -> Option<String> {
    let item: Value = serde_json::from_str(line).unwrap();
    let field = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let kind = field("type");
    Some(match kind.as_str() {
        "message" => {
            let blocks = item["blocks"].as_array().unwrap();
            let digests: Vec<_> = blocks.iter().map(|block| block[1].as_str().unwrap()).collect();
            format!("{} {}", field("role"), digests.join(" "))
        }
        _ if kind.ends_with("_output") && field("hash") == digest("aborted") => return None,
        _ if kind.ends_with("_output") => format!("output {}", field("call_id")),
        _ if !field("call_id").is_empty() => format!("call {}", field("call_id")),
        _ => kind,
    })
}

/// How many parts of a context are what the agent sent, or the first difference.
pub(crate) type Compared = Result<usize, String>;
pub(crate) type Compare = fn(&dyn Graph, &[EntryNumber], &Path) -> Compared;

/// Compares what is sent of a session with what its agent sent, and returns how many repairs its path took too.
pub(crate) fn compare(
    format: &dyn Format,
    graph: &dyn Graph,
    truth: &Path,
    compare: Compare,
) -> (Compared, usize) {
    let head = format.head(graph).unwrap();
    let path = head.map(|head| format.path(graph, head, usize::MAX).unwrap()).unwrap_or_default();
    let context = format.context(graph, &path.entries).unwrap().entries;
    (compare(graph, &context, truth), path.repairs.len())
}

/// Compares the files of a folder of which the agent's own word is known: at least so many.
#[expect(clippy::print_stdout, reason = "the table is for whoever runs the test")]
fn check(
    corpus: &Corpus,
    format: &'static dyn Format,
    (folder, truths): (&str, &str),
    compare_sent: Compare,
    least: usize,
) {
    let mut table = Vec::new();
    let (mut n_compared, mut n_wrong) = (0, 0);
    for truth in corpus.files(truths) {
        let path = corpus.path(folder).join(truth.file_name().unwrap());
        let file = FileGraph::open(format, &path);
        let (archive, session) = peek(&path).unwrap();
        let graphs: [(&str, &dyn Graph); 2] =
            [("file", &file), ("store", &view(&archive, &session))];
        for (what, graph) in graphs {
            let (compared, repairs) = compare(format, graph, &truth, compare_sent);
            n_wrong += usize::from(compared.is_err());
            n_compared += compared.as_ref().unwrap_or(&0);
            let compared = compared.map_or_else(|wrong| wrong, |parts| format!("{parts} agree"));
            let name = truth.file_name().unwrap().to_str().unwrap();
            table.push(format!("{name:50} {what:5} {repairs:3} repairs  {compared}"));
        }
    }
    let table = table.join("\n");
    println!("{table}");
    assert_eq!(n_wrong, 0, "\n{table}");
    assert!(n_compared >= least, "{n_compared} parts were compared, fewer than {least}");
}

#[test]
fn claude_code_resumes_real_files_as_we_say() {
    let Some(corpus) = needs::corpus() else { return };
    check(&corpus, &Claude, ("claude", "resume/claude"), from_claude_code, 4_400);
}

#[test]
fn claude_code_resumes_shapes_as_we_say() {
    let Some(corpus) = needs::corpus() else { return };
    check(&corpus, &Claude, ("claude-shapes", "resume/claude-shapes"), from_claude_code, 100);
}

#[test]
fn codex_resumes_real_files_as_we_say() {
    let Some(corpus) = needs::corpus() else { return };
    check(&corpus, &Codex, ("codex", "resume/codex"), from_codex, 1_600);
}

#[test]
fn codex_resumes_shapes_as_we_say() {
    let Some(corpus) = needs::corpus() else { return };
    check(&corpus, &Codex, ("codex-shapes", "resume/codex-shapes"), from_codex, 52);
}

#[test]
fn codex_resumes_what_it_made_as_we_say() {
    let Some(corpus) = needs::corpus() else { return };
    check(&corpus, &Codex, ("codex-made", "codex-made/resume"), from_codex, 80);
}

#[test]
fn a_store_gives_back_what_it_was_given_and_walks_as_the_file_does() {
    let Some(corpus) = needs::corpus() else { return };
    let alone = tempfile::tempdir().unwrap();
    let (mut n_files, mut n_entries) = (0, 0);
    for (n, path) in corpus.sessions().into_iter().enumerate() {
        // Beside what its agent set aside, a file is one of several.
        let folder = alone.path().join(n.to_string());
        fs::create_dir(&folder).unwrap();
        let copy = folder.join(path.file_name().unwrap());
        fs::copy(&path, &copy).unwrap();
        let path = copy;
        let Some((archive, session)) = peek(&path) else {
            println!("{} is of no format", path.display());
            continue;
        };
        let name = path.display();
        let log = verbs::log(&archive.at(&session).unwrap(), None, usize::MAX).unwrap();
        let mut bytes = Vec::new();
        let mut each = |part: &[u8]| {
            bytes.extend_from_slice(part);
            Ok(())
        };
        verbs::export(&archive.at(&session).unwrap(), None, &mut each).unwrap();
        let mut source = fs::read(&path).unwrap();
        if path.extension().is_some_and(|end| end == "zst") {
            source = zstd::decode_all(&source[..]).unwrap();
        }
        assert!(bytes == source, "{name} is exported with other bytes");
        assert_eq!(crate::fixture::damage(&archive), [""; 0], "{name}");

        let (file, view) = (FileGraph::read(session.format, &bytes), view(&archive, &session));
        assert_same(&view, &file, &path);
        let head = file.head();
        assert_eq!(session.format.head(&view).unwrap(), head, "{name}");
        let mut path = head.map(|head| file.path(head)).unwrap_or_default();
        let walked = head.map(|head| session.format.path(&view, head, usize::MAX).unwrap());
        assert_eq!(walked.unwrap_or_default().entries, path, "{name}");
        // A log leaves out what is no part of the conversation.
        path.retain(|entry| {
            !matches!(file.record(*entry).unwrap().kind, Kind::Meta | Kind::Opaque)
        });
        assert_eq!(log.lines.iter().map(|line| line.n).collect::<Vec<_>>(), path, "{name}");
        assert_eq!(session.format.leaves(&view).unwrap(), file.leaves(), "{name}");
        println!("{name}: {} of {} entries in the log", path.len(), file.end());
        n_files += 1;
        n_entries += file.end().get();
    }
    assert!(n_files >= 90 && n_entries >= 13_600, "{n_files} files, {n_entries} entries");
}

/// Asserts that two graphs answer each question alike.
fn assert_same(view: &View<'_>, file: &FileGraph, path: &Path) {
    let name = path.display();
    assert_eq!(view.end(), file.end(), "{name}");
    assert_eq!(view.bytes().unwrap(), file.bytes().unwrap(), "{name}");
    let landmarks = |place| {
        let of = |graph: &dyn Graph| {
            [Landmark::Boundary, Landmark::Signpost]
                .map(|kind| graph.landmark(kind, place).unwrap())
        };
        assert_eq!(of(view), of(file), "{name} {place}");
    };
    landmarks(file.end());
    for place in file.end().earlier() {
        let entry = file.at(place).unwrap().unwrap();
        assert_eq!(view.at(place).unwrap(), Some(entry), "{name} {place}");
        assert_eq!(view.is_glued(place).unwrap(), file.is_glued(place).unwrap(), "{name} {place}");
        assert_eq!(view.place(entry).unwrap(), file.place(entry).unwrap(), "{name} {place}");
        assert_eq!(view.parent(entry).unwrap(), file.parent(entry).unwrap(), "{name} {place}");
        landmarks(place);
        let record = view.record(entry).unwrap();
        assert_eq!(record, file.record(entry).unwrap(), "{name} {place}");
        if let Some(tag) = record.name {
            assert_eq!(view.named(tag).unwrap(), file.named(tag).unwrap(), "{name} {place}");
            assert_eq!(
                view.bears(&record).unwrap(),
                file.bears(&record).unwrap(),
                "{name} {place}"
            );
        }
    }
}

#[test]
fn what_lies_behind_the_horizon_does_not_exist() {
    let Some(corpus) = needs::corpus() else { return };
    let folders = ["claude-shapes", "claude-broken", "codex-shapes", "pi"];
    let mut n_compared = 0;
    for path in folders.into_iter().flat_map(|folder| corpus.files(folder)) {
        let Some((archive, session)) = peek(&path) else { continue };
        let bytes = fs::read(&path).unwrap();
        let mut ends = Vec::new();
        let mut reader = Reader::new(bytes.as_slice());
        while let Some(located) = reader.next_line().unwrap() {
            ends.push(located.offset + located.line.bytes.len() as u64);
        }
        let whole = archive.store().state(session.key).unwrap().position().unwrap();
        for (horizon, end) in (1..).zip(ends) {
            let part = bytes.get(..usize::try_from(end).unwrap()).unwrap();
            let file = FileGraph::read(session.format, part);
            // An opaque line is one only when its end is there.
            if file.end() == horizon && horizon < whole.horizon {
                let position = Position { head: None, horizon, ..whole };
                assert_same(&View::new(archive.store(), &session, position, None), &file, &path);
                n_compared += 1;
            }
            if horizon > 60 {
                break;
            }
        }
    }
    assert!(n_compared >= 375, "{n_compared} states were compared");
}

#[test]
fn every_message_of_claude_code_lies_on_the_path_of_a_head_or_a_leaf() {
    let Some(corpus) = needs::corpus() else { return };
    let folders = ["claude", "claude-shapes", "claude-broken"];
    let mut n_messages = 0;
    for path in folders.into_iter().flat_map(|folder| corpus.files(folder)) {
        let graph = FileGraph::open(&Claude, &path);
        let (head, leaves) = (graph.head(), graph.leaves());
        let mut reached = BTreeSet::new();
        for head in head.iter().chain(&leaves) {
            let path = graph.path(*head);
            let unique: BTreeSet<EntryNumber> = path.iter().copied().collect();
            assert_eq!(unique.len(), path.len(), "an entry lies twice on a path");
            reached.extend(unique);
        }
        let is_message = |kind| {
            matches!(kind, Kind::User | Kind::Note | Kind::Assistant | Kind::Result | Kind::Summary)
        };
        // Of several records of one name only the last one counts.
        let is_last =
            |n, name: Option<_>| name.is_none_or(|name| graph.named(name).unwrap() == Some(n));
        let messages = graph
            .records
            .iter()
            .filter(|record| is_message(record.kind) && is_last(record.n, record.name));
        // The talk of a command beside its made-up answer is no branch.
        let is_talk = |n| {
            let text = graph.words(&[n]);
            text.starts_with("<command-name>") || text.starts_with("<local-command")
        };
        let missed: Vec<EntryNumber> = messages
            .map(|record| record.n)
            .inspect(|_| n_messages += 1)
            .filter(|n| !reached.contains(n) && !is_talk(*n))
            .collect();
        println!("{} {} entries, leaves {leaves:?}", path.display(), graph.end());
        assert_eq!(missed, [0; 0], "{}", path.display());
    }
    assert!(n_messages >= 4_140, "{n_messages} messages");
}
