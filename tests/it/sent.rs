//! What `context` shows of an agent's session is what the agent sent, block by block: who speaks, the kind, the text, a
//! call's id, name and arguments, a result's words and whether the tool failed.
//!
//! What agents sent lies in the corpus. A table is printed.

use std::{fs, path::Path};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use undertext::{
    context::{Origin, Shape},
    model::{Block, Message, Role},
    verbs::{self, Asked},
};

use crate::{needs, resume::peek};

/// A block: who speaks and what it is, and every form of the rest that counts as the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sent {
    what: String,
    forms: Vec<String>,
    /// How many characters a result has.
    length: usize,
    /// Whether a picture is in it, which has characters for the agent.
    has_picture: bool,
}

/// How many characters of reminders an agent puts behind a result at most.
const REMINDERS: usize = 4_096;

/// The part of the blocks that may be results with such reminders, in per cent.
const REMINDED: usize = 2;

impl Sent {
    fn new(what: String, forms: Vec<String>) -> Self {
        Self { what, forms, length: 0, has_picture: false }
    }

    /// Returns whether an agent's block is this one, word by word.
    fn is(&self, theirs: &Self) -> bool {
        self.what == theirs.what && self.forms.iter().any(|form| theirs.forms.contains(form))
    }

    /// Returns whether an agent's block is this result with reminders behind it, which no file holds, or with its pixels.
    fn is_reminded(&self, theirs: &Self) -> bool {
        let more = theirs.length.saturating_sub(self.length);
        self.what.starts_with("user result")
            && self.what == theirs.what
            && more > 0
            && (self.has_picture || more <= REMINDERS)
    }
}

fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

/// Writes JSON as Python does, keys in order, which the digests in the corpus are of.
fn dumped(value: &Value) -> String {
    let join = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Array(items) => format!("[{}]", join(items.iter().map(dumped).collect())),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            let field =
                |(key, value): (&String, &Value)| format!("{}: {}", quoted(key), dumped(value));
            format!("{{{}}}", join(fields.into_iter().map(field).collect()))
        }
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    let escape = |unit: u16| match char::from_u32(u32::from(unit)) {
        Some('"') => "\\\"".to_owned(),
        Some('\\') => "\\\\".to_owned(),
        Some('\n') => "\\n".to_owned(),
        Some('\r') => "\\r".to_owned(),
        Some('\t') => "\\t".to_owned(),
        Some('\u{8}') => "\\b".to_owned(),
        Some('\u{c}') => "\\f".to_owned(),
        Some(plain @ ' '..='~') => plain.to_string(),
        _ => format!("\\u{unit:04x}"),
    };
    format!("\"{}\"", text.encode_utf16().map(escape).collect::<String>())
}

/// Returns the digests of a result's content, a string or a list, as an agent may have written it.
fn contents(blocks: &[Block], answer: &str) -> Vec<String> {
    let listed = |class: &str| {
        let item = |block: &Block| match block {
            Block::Text(words) => serde_json::json!({ "type": class, "text": words }),
            Block::Image(image) => serde_json::json!({ "image": image.bytes }),
            Block::Other { json, .. } => serde_json::from_str(json).unwrap_or_default(),
            _ => Value::Null,
        };
        digest(&dumped(&Value::Array(blocks.iter().map(item).collect())))
    };
    vec![digest(answer), listed("text"), listed("input_text")]
}

fn blocks(message: &Message) -> Vec<Sent> {
    let role = if message.role == Role::Assistant { "assistant" } else { "user" };
    let sent = |block: &Block| match block {
        Block::Text(text)
            if text.trim().is_empty() || text.trim_start().starts_with("<system-reminder>") =>
        {
            None
        }
        // A text that another one follows in the same message ends with a line end.
        Block::Text(text) => Some(Sent::new(
            format!("{role} text"),
            vec![digest(text), digest(&format!("{text}\n")), digest(text.trim())],
        )),
        Block::Call { id, name, input, .. } => {
            let arguments: Value = serde_json::from_str(input).unwrap_or_default();
            let forms = vec![digest(&dumped(&arguments))];
            Some(Sent::new(format!("{role} call {id} {name}"), forms))
        }
        Block::Result { id, blocks, error, .. } => Some(Sent {
            what: format!("{role} result {id} {error}"),
            forms: contents(blocks, &block.answer_text()),
            length: block.answer_text().chars().count(),
            has_picture: blocks.iter().any(|block| matches!(block, Block::Image(_))),
        }),
        _ => None,
    };
    message.blocks.iter().filter_map(sent).collect()
}

/// Reads what Claude Code sent.
fn claude(line: &str) -> Vec<Sent> {
    let message: Value = serde_json::from_str(line).unwrap();
    let role = message["role"].as_str().unwrap();
    let field = |block: &Value, at: usize| block[at].as_str().unwrap().to_owned();
    let sent = |block: &Value| match block[0].as_str().unwrap() {
        "text" => Some(Sent::new(format!("{role} text"), vec![field(block, 2)])),
        "tool_use" => Some(Sent::new(
            format!("{role} call {} {}", field(block, 1), field(block, 2)),
            vec![field(block, 3)],
        )),
        "tool_result" => Some(Sent {
            what: format!("{role} result {} {}", field(block, 1), block[4]),
            forms: vec![field(block, 3)],
            length: usize::try_from(block[2].as_u64().unwrap()).unwrap(),
            has_picture: false,
        }),
        _ => None,
    };
    message["blocks"].as_array().unwrap().iter().filter_map(sent).collect()
}

/// Returns how many blocks agree, and how many more but for reminders, or the first that does not; what an agent says by itself
/// is no difference.
fn compared(path: &Path, truth: &Path) -> Result<(usize, usize), String> {
    let (archive, session) = peek(path).unwrap();
    let asked = Asked { shape: Shape::Agent, ..crate::compact::asked(u64::MAX) };
    let found = verbs::context(&archive.at(&session).unwrap(), None, &asked).unwrap();
    let ours = found.prepared.items.iter().filter(|item| item.role() != Role::System);
    let ours: Vec<(bool, Sent)> = ours
        .flat_map(|item| {
            let is_made_up = item.origin == Origin::Synthetic;
            blocks(&item.message()).into_iter().map(move |block| (is_made_up, block))
        })
        .collect();
    let text = fs::read_to_string(truth).unwrap();
    let theirs: Vec<Sent> = text.lines().filter(|line| !line.is_empty()).flat_map(claude).collect();
    let said_by_itself = digest("No response requested.");
    let mut ours = ours.into_iter().peekable();
    let (mut n, mut n_reminded) = (0, 0);
    for (at, their) in theirs.iter().enumerate() {
        if ours.next_if(|(_, our)| our.is(their)).is_some() {
            n += 1;
        } else if ours.next_if(|(_, our)| our.is_reminded(their)).is_some() {
            n_reminded += 1;
        } else if their.forms[0] != said_by_itself {
            return Err(format!("block {at}: {their:?}, not {:?}", ours.peek()));
        }
    }
    match ours.find(|(is_made_up, _)| !is_made_up) {
        Some(our) => Err(format!("not sent: {our:?}")),
        None => Ok((n, n_reminded)),
    }
}

#[test]
fn a_context_is_what_claude_code_sent_block_by_block() {
    let Some(corpus) = needs::corpus() else { return };
    let (mut table, mut n_wrong, mut n_same, mut n_reminded) = (Vec::new(), 0, 0, 0);
    for folder in ["claude", "claude-shapes"] {
        for truth in corpus.files(&format!("resume/{folder}")) {
            let name = truth.file_name().unwrap();
            let found = compared(&corpus.path(folder).join(name), &truth);
            n_wrong += usize::from(found.is_err());
            let (same, reminded) = *found.as_ref().unwrap_or(&(0, 0));
            (n_same, n_reminded) = (n_same + same, n_reminded + reminded);
            let found = found.map_or_else(
                |wrong| wrong,
                |(n, reminded)| format!("{n} agree, {reminded} but for reminders"),
            );
            table.push(format!("{folder:13} {:40} {found}", name.display()));
        }
    }
    let table = table.join("\n");
    println!("{table}");
    assert_eq!(n_wrong, 0, "\n{table}");
    assert!(n_same >= 2_200, "{n_same} blocks agree");
    assert!(n_reminded * 100 <= n_same * REMINDED, "{n_reminded} of {n_same}");
}

/// Returns the calls and the answers that Codex sent, each with the digest of an answer.
fn codex(text: &str) -> Vec<(String, String)> {
    let items = text.lines().filter(|line| !line.is_empty());
    let items = items.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let field = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let of = |item: Value| {
        let (kind, id) = (field(&item, "type"), field(&item, "call_id"));
        match kind.as_str() {
            _ if id.is_empty() => None,
            _ if kind.ends_with("_output") => Some((format!("output {id}"), field(&item, "hash"))),
            _ => Some((format!("call {id} {}", field(&item, "name")), String::new())),
        }
    };
    items.filter_map(of).collect()
}

#[test]
fn calls_and_answers_are_those_that_codex_sent_in_its_own_words_where_one_is_missing() {
    let Some(corpus) = needs::corpus() else { return };
    let mut n_same = 0;
    for folder in ["codex", "codex-shapes"] {
        for truth in corpus.files(&format!("resume/{folder}")) {
            let path = corpus.path(folder).join(truth.file_name().unwrap());
            let (archive, session) = peek(&path).unwrap();
            let asked = Asked { shape: Shape::Agent, ..crate::compact::asked(u64::MAX) };
            let found = verbs::context(&archive.at(&session).unwrap(), None, &asked).unwrap();
            let blocks =
                found.prepared.items.iter().flat_map(|item| item.message().into_owned().blocks);
            let ours = blocks.filter_map(|block| match &block {
                Block::Call { id, name, .. } => Some((format!("call {id} {name}"), Vec::new())),
                Block::Result { id, blocks, .. } => {
                    Some((format!("output {id}"), contents(blocks, &block.answer_text())))
                }
                _ => None,
            });
            let theirs = codex(&fs::read_to_string(&truth).unwrap());
            let ours: Vec<(String, Vec<String>)> = ours.collect();
            for ((our, forms), (their, digest)) in ours.iter().zip(&theirs) {
                let is_same = our == their || our.starts_with(their.trim_end());
                let is_said = digest.is_empty() || forms.contains(digest);
                assert!(
                    is_same && is_said,
                    "{}: {our} {forms:?}, not {their} {digest}",
                    path.display()
                );
                n_same += 1;
            }
            assert_eq!(ours.len(), theirs.len(), "{}", path.display());
        }
    }
    assert!(n_same >= 400, "{n_same} calls and answers agree");
}
