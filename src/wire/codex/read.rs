//! Reads the item in a record of a rollout, and its message.
//!
//! Invariant: nothing here depends on another record.

use std::collections::BTreeMap;

use super::{
    failed::failed,
    hint::{
        BASE, MODEL, OPENS, PREPARES, ROLLBACK, STARTS, TURN, WINDOW, call, of_call, of_history,
        prepares,
    },
    types,
};
use crate::{
    json::{Kind as JsonKind, Raw},
    model::{Block, Image, Kind, Message, Role, SentAs, Source, Thinking, Timestamp, Usage},
    wire::{
        Answer, Piece, Scene, Told,
        answers::{between, parts},
        fields::{self, json, other, shown, string, text},
    },
};

/// The beginning of a summary that announces itself as one.
pub(super) const SUMMARY: &str = "Another language model started to solve this problem and produced a summary of its thinking \
     process. You also have access to the state of the tools that were used by that language model. Use this to build on the \
     work that has already been done and avoid duplicating work. Here is the summary produced by the other language model, use \
     the information in this summary to assist with your own analysis:\n";
/// The beginning of summaries that older versions of undertext wrote. Codex treats them as the user's text.
const OLD_SUMMARY: &str = "Another language model started to solve this problem.\n";
/// The beginning of the description of the environment.
const ENVIRONMENT: &str = "<environment_context>";
/// The beginning of project rules in old versions. Current versions treat them as the user's text.
const INSTRUCTIONS: &str = "<user_instructions>";
/// Texts in the user's place that are not the user's: their beginnings and ends, ignoring case.
const FRAGMENTS: [(&str, &str); 9] = [
    (ENVIRONMENT, "</environment_context>"),
    ("# agents.md instructions", "</instructions>"),
    (INSTRUCTIONS, "</user_instructions>"),
    ("<turn_aborted>", "</turn_aborted>"),
    ("<skill>", "</skill>"),
    ("<user_shell_command>", "</user_shell_command>"),
    ("<subagent_notification>", "</subagent_notification>"),
    ("<agent_message_board_notification>", "</agent_message_board_notification>"),
    ("<recommended_plugins>", "</recommended_plugins>"),
];
/// More of them, matching case.
const SPELT_FRAGMENTS: [(&str, &str); 4] = [
    ("<goal_context>", "</goal_context>"),
    ("Warning: The maximum number of unified exec processes you can keep open is", ""),
    (
        "Warning: apply_patch was requested via ",
        "Use the apply_patch tool instead of exec_command.",
    ),
    ("Warning: Your account was flagged for potentially high-risk cyber activity", ""),
];
/// And those that also need an attribute or a name of their own.
const NAMED_FRAGMENTS: [(&str, &str); 3] = [
    ("<hook_prompt", "</hook_prompt>"),
    ("<codex_internal_context source=\"", "</codex_internal_context>"),
    ("<external_", ">"),
];

/// The beginnings of developer rules that Codex repeats when they change. They belong to the turn after them.
const RULES: [&str; 20] = [
    "<permissions instructions>",
    "approved command prefix saved:",
    "<model_switch>",
    "<managed_developer_instructions>",
    "<persistent_mode>",
    "<apps_instructions>",
    "<collaboration_mode>",
    "<multi_agent_role>",
    "<multi_agent_mode>",
    "<environments_instructions>",
    "<git_attribution>",
    "<plugins_instructions>",
    "<realtime_conversation>",
    "<skills_instructions>",
    "<tools>",
    "<personality_spec>",
    "<token_budget>",
    "<context_window>",
    "<context_window_guidance>",
    "<rollout_budget>",
];

/// The texts of records without messages that no other record repeats: type and key.
const REMARKS: [(&str, &str); 11] = [
    ("entered_review_mode", "prompt"),
    ("entered_review_mode", "user_facing_hint"),
    ("error", "message"),
    ("exited_review_mode", "review_output"),
    ("guardian_assessment", "rationale"),
    ("message", "content"),
    ("thread_goal_updated", "goal"),
    ("thread_name_updated", "thread_name"),
    ("undo_completed", "message"),
    ("warning", "message"),
    ("web_search_end", "results"),
];

/// The content of a record.
pub(super) enum Part<'a> {
    Item(Raw<'a>),
    Compacted(Raw<'a>),
    Event(Raw<'a>),
    /// Its type.
    Other(String),
    /// A record that Codex skips.
    Refused,
}

/// Returns the content of a record, with or without an envelope.
pub(super) fn part(record: Raw<'_>) -> Part<'_> {
    let [class, payload] = record.pick(["type", "payload"]);
    let kind = string(class).unwrap_or_default();
    let Some(payload) = payload else {
        // Files of the first versions have no envelopes.
        return if kind == "compacted" { Part::Compacted(record) } else { Part::Item(record) };
    };
    match kind.as_str() {
        _ if types::is_framed(record) && !types::is_record(record, &kind, payload) => Part::Refused,
        "response_item" => Part::Item(payload),
        "compacted" => Part::Compacted(payload),
        "event_msg" => Part::Event(payload),
        _ => Part::Other(kind),
    }
}

/// Returns the kind, flags and number of a record.
pub(super) fn reading(part: Part<'_>) -> (Kind, u8, u64) {
    match part {
        Part::Item(item) => {
            let [class, role, content] = item.pick(["type", "role", "content"]);
            let class = class.and_then(Raw::text).unwrap_or_default();
            let kind = item_kind(&class, role, content);
            let is_said = is_said(kind, &class, content);
            let tokens = if is_said { texts(content).map(|text| text.len()).sum() } else { 0 };
            let flags = match kind {
                _ if is_said && sums_up(content) => 0,
                _ if is_said || class == "agent_message" => TURN,
                Kind::System if is_developer(role) && texts(content).any(|text| is_rule(&text)) => {
                    PREPARES
                }
                _ => 0,
            };
            (kind, flags, if is_said { tokens_of(tokens) } else { pairing(item, &class) })
        }
        Part::Compacted(payload) => {
            if let Some(history) = history(payload) {
                let [number, resumed] = payload.pick(["window_number", "resume_metadata"]);
                let has_window = number.and_then(Raw::u64).is_some();
                let is_complete = resumed.is_some_and(|resumed| resumed.kind() == JsonKind::Object);
                let n_turns = history.items().filter(|item| is_turn(*item)).count();
                return (Kind::Boundary, BASE, of_history(has_window, is_complete, n_turns));
            }
            let summary = text(payload, "message").unwrap_or_default();
            let flags = if is_summary(&summary) { 0 } else { TURN };
            (Kind::Boundary, flags, tokens_of(summary.len()))
        }
        Part::Event(payload) => match text(payload, "type").as_deref() {
            Some("thread_rolled_back") => {
                let turns = payload.get("num_turns").and_then(Raw::u64);
                // Codex skips the event if it cannot parse the number.
                let turns = turns.filter(|turns| u32::try_from(*turns).is_ok());
                (Kind::Meta, ROLLBACK, turns.unwrap_or(0))
            }
            Some("task_started" | "turn_started") if text(payload, "turn_id").is_some() => {
                (Kind::Meta, STARTS, 0)
            }
            Some("user_message") if text(payload, "message").is_some() => (Kind::Meta, TURN, 0),
            Some("token_count") => (Kind::Meta, WINDOW, 0),
            _ => (Kind::Meta, 0, 0),
        },
        Part::Other(kind) => match kind.as_str() {
            "turn_context" => (Kind::Meta, PREPARES | MODEL, 0),
            "world_state" => (Kind::Meta, PREPARES, 0),
            "session_meta" => (Kind::Meta, OPENS, 0),
            _ => (Kind::Meta, 0, 0),
        },
        Part::Refused => (Kind::Opaque, 0, 0),
    }
}

/// The kinds of calls: the item types that make one, and the type of its result. Codex ignores a result of another kind.
const CALLS: [(&[&str], &str); 3] = [
    (&["function_call", "local_shell_call"], "function_call_output"),
    (&["custom_tool_call"], "custom_tool_call_output"),
    (&["tool_search_call"], "tool_search_output"),
];

/// Returns the number in the hint of a call or result; 0 for any other item.
fn pairing(item: Raw<'_>, class: &str) -> u64 {
    let is_of = |(calls, answer): &(&[&str], &str)| calls.contains(&class) || *answer == class;
    let Some(kind) = CALLS.iter().position(is_of) else { return 0 };
    text(item, "call_id").map_or(0, |id| of_call(&id, kind))
}

/// Codex's names for the usage counts. Input includes what was read from a cache.
const USAGE: [&str; 4] =
    ["input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens"];

/// Reads the facts in a record about the model: token counts contain its window and the newest answer's usage, the
/// settings of a turn its name, the first record of a file what is sent besides the conversation.
pub(super) fn told(class: &str, payload: Raw<'_>) -> Told {
    let size = |of: Raw<'_>, key| of.get(key).and_then(Raw::u64).filter(|tokens| *tokens > 0);
    match class {
        "event_msg" => {
            let info = payload.get("info");
            let window = |of| size(of, "model_context_window");
            let usage = |key| {
                let used = fields::usage(info?.get(key)?, USAGE);
                let cached = used.cache_read.saturating_add(used.cache_write);
                Some(Usage { input: used.input.saturating_sub(cached), ..used })
            };
            let [usage, total] = ["last_token_usage", "total_token_usage"].map(usage);
            let window = window(payload).or_else(|| window(info?));
            Told { window, usage, total, ..Told::default() }
        }
        "turn_context" => Told { model: text(payload, "model"), ..Told::default() },
        "session_meta" => Told {
            system: payload.get("base_instructions").and_then(|given| text(given, "text")),
            tools: payload.get("dynamic_tools").filter(|tools| !tools.is_null()).map(json),
            ..Told::default()
        },
        _ => Told::default(),
    }
}

/// Reads the facts in a record about Codex's environment: the first record of a file, the settings of a turn, and the description
/// of the environment for the model.
pub(super) fn scene(record: Raw<'_>) -> Scene {
    let [class, payload] = record.pick(["type", "payload"]);
    let payload = payload.unwrap_or(record);
    match string(class).as_deref() {
        // The first record of a file, which had no type at first.
        None | Some("session_meta") => {
            let git = payload.get("git");
            let of_git = |key| git.and_then(|git| text(git, key));
            Scene {
                version: text(payload, "cli_version"),
                folder: text(payload, "cwd"),
                git_branch: of_git("branch").or_else(|| of_git("commit_hash")),
                remote: of_git("repository_url"),
                provider: text(payload, "model_provider"),
                ..Scene::default()
            }
        }
        Some("turn_context") => {
            let (folder, model) = (text(payload, "cwd"), text(payload, "model"));
            Scene { folder, model, ..Scene::default() }
        }
        Some("response_item" | "message") => {
            let mut told = texts(payload.get("content"));
            let told = told.find(|text| begins(text.trim_start(), ENVIRONMENT));
            let of = |tag: &str| {
                let value = between(told.as_deref()?, &format!("<{tag}>"), &format!("</{tag}>"))?;
                (!value.contains('<')).then(|| value.trim().to_owned())
            };
            let os = of("operating_system").or_else(|| of("os"));
            Scene { os, shell: of("shell"), folder: of("cwd"), ..Scene::default() }
        }
        _ => Scene::default(),
    }
}

/// Returns true if a rollback counts this item of a history as a turn.
fn is_turn(item: Raw<'_>) -> bool {
    let [class, role, content] = item.pick(["type", "role", "content"]);
    let class = class.and_then(Raw::text).unwrap_or_default();
    let is_said = is_said(item_kind(&class, role, content), &class, content);
    class == "agent_message" || is_said && !sums_up(content)
}

/// Returns true if Codex treats an item of this kind as the user's text, which includes project rules from old versions.
fn is_said(kind: Kind, class: &str, content: Option<Raw<'_>>) -> bool {
    let is_rules = |text: String| !is_fragment(&text) || begins(text.trim(), INSTRUCTIONS);
    kind == Kind::User || kind == Kind::Note && class == "message" && texts(content).all(is_rules)
}

fn is_developer(role: Option<Raw<'_>>) -> bool {
    role.and_then(Raw::text).is_some_and(|role| role == "developer")
}

/// Returns true if a text is the summary of a compaction. Rollbacks do not count it, and another compaction drops it.
fn sums_up(content: Option<Raw<'_>>) -> bool {
    texts(content).next().is_some_and(|text| is_summary(&text))
}

/// Returns true if a text announces itself as a summary.
fn is_summary(text: &str) -> bool {
    text.starts_with(SUMMARY)
}

/// Estimates tokens as Codex does, four bytes each.
pub(super) fn tokens_of(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

pub(super) fn item_kind(class: &str, role: Option<Raw<'_>>, content: Option<Raw<'_>>) -> Kind {
    match class {
        "message" => match role.and_then(Raw::text).as_deref() {
            Some("user") if texts(content).any(|text| is_fragment(&text)) => Kind::Note,
            Some("user") => Kind::User,
            Some("assistant") => Kind::Assistant,
            // It is never sent.
            Some("system") | None => Kind::Meta,
            // Text of any other role is sent unchanged and does not begin a turn.
            Some(_) => Kind::System,
        },
        "agent_message" => Kind::Note,
        "reasoning"
        | "function_call"
        | "custom_tool_call"
        | "local_shell_call"
        | "tool_search_call"
        | "web_search_call"
        | "image_generation_call"
        | "compaction"
        | "compaction_summary"
        | "context_compaction" => Kind::Assistant,
        "function_call_output" | "custom_tool_call_output" | "tool_search_output" => Kind::Result,
        _ => Kind::Meta,
    }
}

/// Returns the texts of an item's content.
pub(super) fn texts(content: Option<Raw<'_>>) -> impl Iterator<Item = String> {
    string(content)
        .into_iter()
        .chain(content.into_iter().flat_map(Raw::items).filter_map(|part| text(part, "text")))
}

/// Returns true if a text begins with a mark, ignoring case.
fn begins(text: &str, mark: &str) -> bool {
    text.get(..mark.len()).is_some_and(|head| head.eq_ignore_ascii_case(mark))
}

/// Returns true if a text ends with a mark, ignoring case.
fn ends(text: &str, mark: &str) -> bool {
    let start = text.len().checked_sub(mark.len());
    start.and_then(|start| text.get(start..)).is_some_and(|tail| tail.eq_ignore_ascii_case(mark))
}

fn is_rule(text: &str) -> bool {
    RULES.iter().any(|rule| begins(text.trim_start(), rule))
}

/// Returns true if Codex itself put a text in the user's place.
pub(super) fn is_fragment(text: &str) -> bool {
    let text = text.trim();
    let is_spelt = |(begin, end): &(&str, &str)| text.starts_with(begin) && text.ends_with(end);
    FRAGMENTS.iter().any(|(begin, end)| begins(text, begin) && ends(text, end))
        || SPELT_FRAGMENTS.iter().any(is_spelt)
        || is_named_fragment(text)
}

fn is_named_fragment(text: &str) -> bool {
    let [(hook, hook_end), (context, context_end), (external, _)] = NAMED_FRAGMENTS;
    if let Some(rest) = text.strip_prefix(context).filter(|rest| rest.ends_with(context_end)) {
        let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
        let source = rest.split_once("\">").map_or("", |(source, _)| source);
        return source.starts_with(|first: char| first.is_ascii_lowercase())
            && source.bytes().all(is_plain);
    }
    if let Some((name, rest)) = text.strip_prefix(external).and_then(|rest| rest.split_once('>')) {
        return rest.ends_with(&format!("</external_{name}>"));
    }
    // The run that the hook belongs to.
    let run = between(text, "hook_run_id=\"", "\"").unwrap_or_default();
    begins(text, hook) && ends(text, hook_end) && !run.trim().is_empty()
}

/// Returns the history with which a compaction replaces everything before it.
pub(super) fn history(payload: Raw<'_>) -> Option<Raw<'_>> {
    payload.get("replacement_history").filter(|history| history.kind() == JsonKind::Array)
}

/// Returns the items of a compaction's history after a rollback that keeps this many of its turns. The records that prepare the
/// first dropped turn are dropped too, but nothing before the very first turn is.
pub(super) fn left_of(record: Raw<'_>, n_turns: u64) -> Vec<Raw<'_>> {
    let Part::Compacted(payload) = part(record) else { return Vec::new() };
    let mut items: Vec<Raw<'_>> = history(payload).into_iter().flat_map(Raw::items).collect();
    let turns = items.iter().enumerate().filter(|(_, item)| is_turn(**item));
    let turns: Vec<usize> = turns.map(|(at, _)| at).collect();
    let Some(&first) = turns.first() else { return items };
    let gone = usize::try_from(n_turns).ok().and_then(|n| turns.get(n)).copied();
    items.truncate(gone.unwrap_or(items.len()));
    let is_prepared = |item: &Raw<'_>| {
        let (kind, flags, _) = reading(Part::Item(*item));
        prepares(kind, flags)
    };
    while items.len() > first && items.last().is_some_and(is_prepared) {
        items.pop();
    }
    items
}

/// Returns the calls in a compaction's history, each with a bit for its kind.
pub(super) fn calls_of(record: Raw<'_>) -> BTreeMap<u64, u8> {
    let Part::Compacted(payload) = part(record) else { return BTreeMap::new() };
    let items: Vec<Raw<'_>> = history(payload).into_iter().flat_map(Raw::items).collect();
    calls(&items)
}

fn calls(items: &[Raw<'_>]) -> BTreeMap<u64, u8> {
    let mut found = BTreeMap::new();
    for item in items {
        let class = text(*item, "type").unwrap_or_default();
        if CALLS.iter().any(|(calls, _)| calls.contains(&class.as_str()))
            && let Some((id, kind)) = call(pairing(*item, &class))
        {
            *found.entry(id).or_default() |= kind;
        }
    }
    found
}

/// Drops results in a history whose call is of another kind.
pub(super) fn of_their_kinds(mut items: Vec<Raw<'_>>) -> Vec<Raw<'_>> {
    let calls = calls(&items);
    items.retain(|item| {
        let class = text(*item, "type").unwrap_or_default();
        call(pairing(*item, &class)).is_none_or(|(id, kind)| is_of_kind(&calls, id, kind))
    });
    items
}

/// Returns true if a result of this kind may answer the call with this id: the call is of the same kind or is missing.
pub(super) fn is_of_kind(calls: &BTreeMap<u64, u8>, id: u64, kind: u8) -> bool {
    calls.get(&id).is_none_or(|kinds| kinds & kind != 0)
}

/// Returns how much of a text is Codex's own mark.
pub(super) fn own_words(text: &str) -> [usize; 2] {
    if let Some(begin) = [SUMMARY, OLD_SUMMARY].into_iter().find(|begin| text.starts_with(begin)) {
        return [begin.len(), 0];
    }
    let begins = RULES.into_iter().map(|mark| (mark, ""));
    let fragments = FRAGMENTS.into_iter().chain(SPELT_FRAGMENTS).chain(NAMED_FRAGMENTS);
    fields::marked(text, fragments.chain(begins))
}

pub(super) fn said(role: Role, blocks: Vec<Block>, time: Option<Timestamp>) -> Message {
    Message { time, ..Message::new(role, blocks) }
}

/// Returns the sender and recipient of a message between agents.
pub(super) fn headline(item: Raw<'_>) -> Option<String> {
    let [class, author, recipient] = item.pick(["type", "author", "recipient"]);
    if string(class)? != "agent_message" {
        return None;
    }
    let words = item_message(item, None)?.text();
    let (head, told) = words.split_once("Payload:").unwrap_or(("", &words));
    let kind = head.lines().find_map(|line| line.strip_prefix("Message Type: "));
    let kind = || kind.unwrap_or("message").replace('_', " ").to_lowercase();
    let told = told.trim().lines().next().map_or_else(kind, str::to_owned);
    Some(format!("{} to {}: {told}", string(author)?, string(recipient)?))
}

pub(super) fn item_message(item: Raw<'_>, time: Option<Timestamp>) -> Option<Message> {
    let kind = text(item, "type")?;
    let field = |key| text(item, key).unwrap_or_default();
    let (role, blocks) = match kind.as_str() {
        "message" | "agent_message" => {
            let role = match text(item, "role").as_deref() {
                Some("assistant") => Role::Assistant,
                Some("developer") => Role::System,
                Some("system") => return None,
                _ => Role::User,
            };
            (role, item.get("content").map(content).unwrap_or_default())
        }
        "reasoning" => {
            let parts = ["summary", "content"]
                .into_iter()
                .filter_map(|key| item.get(key))
                .flat_map(Raw::items);
            let words: Vec<String> = parts.filter_map(|part| text(part, "text")).collect();
            let signature = text(item, "encrypted_content");
            let is_redacted = words.is_empty() && signature.is_some();
            let text = words.join("\n");
            let thinking = Thinking { text, signature, is_redacted, sent_as: SentAs::Block };
            (Role::Assistant, vec![Block::Thinking(thinking)])
        }
        "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call" => {
            let input =
                ["arguments", "action"].into_iter().find_map(|key| item.get(key)).map(shown);
            let input = input.or_else(|| item.get("input").map(json));
            let id = text(item, "call_id").or_else(|| text(item, "id")).unwrap_or_default();
            let name =
                text(item, "name").unwrap_or_else(|| kind.trim_end_matches("_call").to_owned());
            let input = input.unwrap_or_else(|| "{}".into());
            (Role::Assistant, vec![Block::Call { id, name, input, signature: None }])
        }
        "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
            let output = item.get("output").or_else(|| item.get("tools"));
            let blocks = output.map(content).unwrap_or_default();
            let error = failed(&blocks);
            (Role::Tool, vec![Block::Result { id: field("call_id"), name: None, blocks, error }])
        }
        _ if item_kind(&kind, None, None) == Kind::Assistant => {
            (Role::Assistant, vec![other(item)])
        }
        _ => return None,
    };
    let is_summary = match blocks.first() {
        Some(Block::Text(text)) => {
            role == Role::User && (is_summary(text) || text.starts_with(OLD_SUMMARY))
        }
        Some(Block::Other { name, .. }) => {
            matches!(name.as_str(), "compaction" | "compaction_summary" | "context_compaction")
        }
        _ => false,
    };
    Some(Message { is_summary, ..said(role, blocks, time) })
}

/// Returns the texts of a record without messages: those that no item of the session repeats, or everything in a record that
/// Codex refuses to read.
pub(super) fn remarks(record: Raw<'_>) -> Vec<Message> {
    match part(record) {
        Part::Item(said) | Part::Event(said) => fields::remarks(said, &REMARKS),
        Part::Refused => {
            let payload = record.get("payload");
            let items = payload.and_then(history).into_iter().flat_map(Raw::items);
            payload.into_iter().chain(items).filter_map(|item| item_message(item, None)).collect()
        }
        Part::Compacted(_) | Part::Other(_) => Vec::new(),
    }
}

/// Returns a tool's result: a string, parts, or, in old versions, JSON in a string.
pub(super) fn answer(item: Raw<'_>) -> Option<Answer<'_>> {
    let [class, call, output] = item.pick(["type", "call_id", "output"]);
    if item_kind(&class?.text()?, None, None) != Kind::Result {
        return None;
    }
    let output = output?;
    let texts = match output.kind() {
        JsonKind::String => Piece::within(output, "output").into_iter().collect(),
        JsonKind::Object => {
            parts(output.get("content"), "text").into_iter().filter_map(Piece::new).collect()
        }
        _ => parts(Some(output), "text").into_iter().filter_map(Piece::new).collect(),
    };
    Some(Answer { call: string(call).unwrap_or_default(), texts })
}

/// Returns how much of an output was truncated, according to the marker in its middle.
pub(super) fn omitted(text: &str) -> Option<String> {
    const UNITS: [&str; 3] = [" tokens truncated…", " chars truncated…", " bytes truncated…"];
    for unit in UNITS {
        let Some((before, _)) = text.split_once(unit) else { continue };
        let (_, number) = before.rsplit_once('…')?;
        if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(format!("{number}{}", unit.trim_end_matches(" truncated…")));
        }
    }
    let lines = between(text, "[... omitted ", " lines ...]")?;
    let (left_out, of) = lines.split_once(" of ")?;
    let [left_out, of] = [left_out, of].map(|number| number.parse::<u64>().ok());
    left_out
        .zip(of)
        .filter(|(left_out, _)| *left_out > 0)
        .map(|(n, of)| format!("{n} of {of} lines"))
}

pub(super) fn content(content: Raw<'_>) -> Vec<Block> {
    if content.kind() != JsonKind::Array {
        return vec![Block::Text(shown(content))];
    }
    let block = |part: Raw<'_>| match text(part, "type").as_deref() {
        Some("input_text" | "output_text" | "text") => {
            Block::Text(text(part, "text").unwrap_or_default())
        }
        Some("input_image") => {
            let bytes = part.bytes().len();
            let nowhere = Image { bytes, media: None, source: Source::Elsewhere };
            Block::Image(text(part, "image_url").map_or(nowhere, |url| Image::at(&url, bytes)))
        }
        _ => other(part),
    };
    content.items().map(block).collect()
}

/// Returns the payload of a record that begins a session.
pub(super) fn meta(record: Raw<'_>) -> Option<Raw<'_>> {
    (text(record, "type").as_deref() == Some("session_meta")).then(|| record.get("payload"))?
}
