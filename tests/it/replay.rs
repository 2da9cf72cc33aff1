//! Codex's replay of a rollout, forwards as Codex itself does it, over rollouts of random records.
//!
//! What stands here was compared with what Codex 0.169.0 sends for rollouts of this kind: compactions with and without a
//! history, rollbacks of more turns than there are, fragments in the user's place, turns without words of the user.
//! Two things it does that undertext does not show: a compaction without a history leaves out a part of a history before it,
//! and tasks are told apart by their names. Here such a history stays whole, and tasks have their names.

use proptest::prelude::*;
use serde_json::{Value, json};
use undertext::{model::Message, wire::Codex};

use crate::graph::FileGraph;

pub(crate) const SUMMARY: &str = "Another language model started to solve this problem and produced a summary of its thinking process. You also have access to the state of the tools that were used by that language model. Use this to build on the work that has already been done and avoid duplicating work. Here is the summary produced by the other language model, use the information in this summary to assist with your own analysis:\n";

#[derive(Clone, Debug)]
enum Part {
    Task,
    Context,
    User,
    Event,
    Assistant,
    Fragment(usize),
    Rule(bool),
    /// Without a history: whether it says that it is a summary.
    Compacted(bool),
    /// With one: the kinds of its messages, and whether it is complete.
    History(Vec<usize>, bool),
    Back(u64),
}

const FRAGMENTS: [&str; 3] = [
    "<environment_context>W</environment_context>",
    "<turn_aborted>W</turn_aborted>",
    // Not one to Codex of today.
    "<user_instructions>W</user_instructions>",
];

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = prop_oneof![
        6 => Just(Part::Task),
        3 => Just(Part::Context),
        8 => Just(Part::User),
        3 => Just(Part::Event),
        8 => Just(Part::Assistant),
        3 => (0..FRAGMENTS.len()).prop_map(Part::Fragment),
        3 => any::<bool>().prop_map(Part::Rule),
        1 => any::<bool>().prop_map(Part::Compacted),
        2 => (prop::collection::vec(0..4_usize, 0..4), any::<bool>())
            .prop_map(|(history, is_complete)| Part::History(history, is_complete)),
        3 => prop_oneof![4 => 0..4_u64, 1 => Just(50)].prop_map(Part::Back),
    ];
    prop::collection::vec(part, 0..40)
}

/// Writes the records of a rollout; each message has words of its own.
fn records(parts: &[Part]) -> Vec<Value> {
    let line =
        |kind: &str, payload: Value| json!({ "timestamp": "", "type": kind, "payload": payload });
    let words = |role: &str, text: String| json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] });
    let mut records = vec![line("session_meta", json!({ "id": "s", "cwd": "/w" }))];
    for (n, part) in parts.iter().enumerate() {
        let in_history = |kind: usize, m: usize| match kind {
            0 => words("user", format!("h{n}.{m}")),
            1 => words("assistant", format!("h{n}.{m}")),
            2 => words("user", FRAGMENTS[0].replace('W', &format!("h{n}.{m}"))),
            _ => words("user", format!("{SUMMARY}h{n}.{m}")),
        };
        records.push(match part {
            Part::Task => line("event_msg", json!({ "type": "task_started", "turn_id": "t" })),
            Part::Context => line("turn_context", json!({ "turn_id": "t" })),
            Part::User => line("response_item", words("user", format!("q{n}"))),
            Part::Event => line("event_msg", json!({ "type": "user_message", "message": "said" })),
            Part::Assistant => line("response_item", words("assistant", format!("a{n}"))),
            Part::Fragment(which) => line(
                "response_item",
                words("user", FRAGMENTS[*which].replace('W', &format!("f{n}"))),
            ),
            Part::Rule(goes) => {
                let mark = if *goes { "<model_switch>" } else { "" };
                line("response_item", words("developer", format!("{mark}r{n}")))
            }
            Part::Compacted(says) => {
                let mark = if *says { SUMMARY } else { "" };
                line("compacted", json!({ "message": format!("{mark}s{n}") }))
            }
            Part::History(history, is_complete) => {
                let history = history.iter().enumerate().map(|(m, kind)| in_history(*kind, m));
                let history: Vec<Value> = history.collect();
                let mut payload = json!({ "message": "", "replacement_history": history });
                if *is_complete {
                    payload["window_number"] = json!(1);
                    payload["resume_metadata"] = json!({});
                }
                line("compacted", payload)
            }
            Part::Back(n) => {
                line("event_msg", json!({ "type": "thread_rolled_back", "num_turns": n }))
            }
        });
    }
    records
}

fn said(item: &Value) -> &str {
    item["content"][0]["text"].as_str().unwrap()
}

fn is_fragment(item: &Value) -> bool {
    item["role"] == "user"
        && FRAGMENTS[..2].iter().any(|fragment| {
            let (begin, end) = fragment.split_once('W').unwrap();
            said(item).starts_with(begin) && said(item).ends_with(end)
        })
}

fn is_turn(item: &Value) -> bool {
    item["role"] == "user" && !is_fragment(item) && !said(item).starts_with(SUMMARY)
}

fn prepares(item: &Value) -> bool {
    is_fragment(item) || item["role"] == "developer" && said(item).starts_with("<model_switch>")
}

/// Returns the compaction with a history from which on Codex replays.
fn base(records: &[Value]) -> Option<usize> {
    let of_kind = |n: &usize, kind: &str| records[*n]["type"] == kind;
    let has_history = |n: &usize| records[*n]["payload"]["replacement_history"].is_array();
    let newest = (0..records.len()).rev().find(|n| of_kind(n, "compacted"))?;
    if has_history(&newest) && records[newest]["payload"]["resume_metadata"].is_object() {
        return Some(newest);
    }
    let (mut pending, mut counts, mut found) = (0, false, None);
    for n in (0..records.len()).rev() {
        let payload = &records[n]["payload"];
        match payload["type"].as_str() {
            Some("thread_rolled_back") => pending += payload["num_turns"].as_u64().unwrap(),
            Some("user_message") => counts = true,
            Some("message") => counts |= is_turn(payload),
            _ if of_kind(&n, "compacted") && has_history(&n) => found = found.or(Some(n)),
            _ => {}
        }
        if n == 0 || payload["type"] == "task_started" {
            if pending == 0 && found.is_some() {
                return found;
            }
            pending -= u64::from(pending > 0 && counts);
            (counts, found) = (false, None);
        }
    }
    None
}

fn sent(records: &[Value]) -> Vec<String> {
    let base = base(records);
    // Each item, and whether it is one of the history from which on the records are replayed.
    let mut items: Vec<(bool, Value)> = Vec::new();
    if let Some(base) = base {
        let history = records[base]["payload"]["replacement_history"].as_array().unwrap();
        items.extend(history.iter().map(|item| (true, item.clone())));
    }
    // What of it stood before a compaction without a history: that leaves out none of it here.
    let mut held: Option<Vec<(bool, Value)>> = None;
    for record in records.iter().skip(base.map_or(0, |base| base + 1)) {
        let payload = &record["payload"];
        if record["type"] == "response_item" {
            items.push((false, payload.clone()));
        } else if record["type"] == "compacted" && payload["replacement_history"].is_null() {
            let of_base = items.iter().filter(|(is_of_base, _)| *is_of_base).cloned();
            held.get_or_insert_with(|| of_base.collect());
            items.retain(|(_, item)| is_turn(item));
            let summary = payload["message"].as_str().unwrap();
            items.push((false, json!({ "role": "user", "content": [{ "text": summary }] })));
        } else if payload["type"] == "thread_rolled_back" {
            let turns: Vec<usize> = (0..items.len()).filter(|n| is_turn(&items[*n].1)).collect();
            let n = usize::try_from(payload["num_turns"].as_u64().unwrap()).unwrap();
            if n > 0 && !turns.is_empty() {
                let mut cut = turns[turns.len().saturating_sub(n)];
                while cut > turns[0] && prepares(&items[cut - 1].1) {
                    cut -= 1;
                }
                items.truncate(cut);
            }
        }
    }
    let (of_base, behind): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|(is_of_base, _)| *is_of_base);
    let of_base = held.unwrap_or(of_base);
    of_base.iter().chain(&behind).map(|(_, item)| said(item).to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::needs::rounds(200, 1_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_rollout_is_replayed_backwards_as_codex_replays_it_forwards(parts in parts()) {
        let records = records(&parts);
        let lines: Vec<String> = records.iter().map(|record| record.to_string() + "\n").collect();
        let file = FileGraph::read(&Codex, lines.concat().as_bytes());
        let shown: Vec<String> = file.sent_messages().iter().map(Message::text).collect();
        prop_assert_eq!(shown, sent(&records));
    }
}
