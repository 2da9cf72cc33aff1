//! The shapes of Claude Code's files that were tried on the program itself, written anew: each expectation is what it sent.

use std::{fs, path::Path};

use crate::{
    compact::asked,
    fixture::{self, Seeded, number},
};
use serde_json::{Value, json};
use undertext::{
    json::Raw,
    model::{Block, EntryNumber, Kind, Message, Role, Timestamp},
    verbs::{self, Archive},
    wire::{Claude, Draft, Edit, Edited, Read as _, Setting, Walk as _, Write as _},
};

use crate::graph::FileGraph;

const SESSION: &str = "00005e55-0000-4000-8000-000000000001";

fn uuid(n: u64) -> Value {
    if n == 0 { Value::Null } else { json!(format!("00005e55-0000-4000-8000-{n:012x}")) }
}

/// A link of the chain, written at second `n`.
fn link(class: &str, n: u64, parent: u64, message: &Value) -> Value {
    json!({
        "parentUuid": uuid(parent), "isSidechain": false, "type": class, "message": message, "uuid": uuid(n),
        "timestamp": at(n, 0), "userType": "external", "cwd": "/w", "sessionId": SESSION, "version": "2.1.226",
    })
}

fn at(second: u64, milli: u64) -> Value {
    json!(format!("2026-08-01T10:{:02}:{:02}.{milli:03}Z", second / 60, second % 60))
}

fn user(n: u64, parent: u64, text: &str) -> Value {
    link("user", n, parent, &json!({ "role": "user", "content": text }))
}

fn block(n: u64, parent: u64, id: &str, block: &Value) -> Value {
    link(
        "assistant",
        n,
        parent,
        &json!({ "role": "assistant", "id": id, "model": "m", "content": [block] }),
    )
}

fn answer(n: u64, parent: u64, text: &str) -> Value {
    block(n, parent, &format!("m{n}"), &json!({ "type": "text", "text": text }))
}

fn call(n: u64, parent: u64, id: &str, tool: &str) -> Value {
    block(n, parent, id, &json!({ "type": "tool_use", "id": tool, "name": "Read", "input": {} }))
}

fn result(n: u64, parent: u64, tool: &str) -> Value {
    let block = json!({ "type": "tool_result", "tool_use_id": tool, "content": "ok" });
    link("user", n, parent, &json!({ "role": "user", "content": [block] }))
}

fn told(n: u64, parent: u64) -> Value {
    with(link("system", n, parent, &Value::Null), &[("subtype", json!("turn_duration"))])
}

fn boundary(n: u64, above: u64, metadata: &Value) -> Value {
    let fields = [
        ("subtype", json!("compact_boundary")),
        ("logicalParentUuid", uuid(above)),
        ("compactMetadata", metadata.clone()),
    ];
    with(link("system", n, 0, &Value::Null), &fields)
}

fn summary(n: u64, parent: u64) -> Value {
    with(user(n, parent, "summary"), &[("isCompactSummary", json!(true))])
}

fn pin(leaf: u64, explicit: bool) -> Value {
    json!({ "type": "last-prompt", "leafUuid": uuid(leaf), "explicit": explicit, "sessionId": SESSION })
}

fn with(mut record: Value, fields: &[(&str, Value)]) -> Value {
    for (key, value) in fields {
        record[*key] = value.clone();
    }
    record
}

/// Two turns, records 1 to 4.
fn base() -> Vec<Value> {
    vec![user(1, 0, "one"), answer(2, 1, "x1"), user(3, 2, "two"), answer(4, 3, "x2")]
}

/// The two turns, a compaction (5, 6) and a third turn (7, 8).
fn compacted(metadata: &Value) -> Vec<Value> {
    let after = [boundary(5, 4, metadata), summary(6, 5), user(7, 6, "three"), answer(8, 7, "x3")];
    [base(), after.to_vec()].concat()
}

fn kept(names: &[u64]) -> Value {
    let uuids: Vec<Value> = names.iter().map(|n| uuid(*n)).collect();
    json!({ "preservedMessages": { "anchorUuid": uuid(6), "uuids": uuids } })
}

fn file(records: &[Value]) -> String {
    records.iter().map(|record| record.to_string() + "\n").collect::<Vec<_>>().concat()
}

/// Returns what a resume of the file sends, in a word for each block.
fn resumed(text: &str) -> String {
    let graph = FileGraph::read(&Claude, text.as_bytes());
    if graph.head().is_none() {
        return "nothing".to_owned();
    }
    said(&graph, &graph.context())
}

fn said(graph: &FileGraph, entries: &[EntryNumber]) -> String {
    let blocks =
        entries.iter().flat_map(|entry| graph.messages(*entry)).flat_map(|message| message.blocks);
    let words = blocks.map(|block| match block {
        Block::Text(text) => text,
        Block::Call { id, .. } => format!("call:{id}"),
        Block::Result { id, .. } => format!("result:{id}"),
        _ => String::new(),
    });
    words.collect::<Vec<_>>().join(" ").trim().to_owned()
}

#[track_caller]
fn check(before: Vec<Value>, more: &[Value], expected: &str) {
    assert_eq!(resumed(&file(&[before, more.to_vec()].concat())), expected);
}

#[test]
fn a_pin_holds_unless_what_was_written_last_descends_from_it() {
    check(base(), &[pin(2, false)], "one x1 two x2");
    check(base(), &[pin(2, true)], "one x1");
    check(base(), &[pin(3, true)], "one x1 two");
    check(base(), &[pin(2, true), pin(4, false)], "one x1 two x2");
    check(base(), &[pin(2, true), pin(0, false)], "one x1");
    check(base(), &[pin(77, true)], "one x1 two x2");
    let third = [user(5, 2, "three"), answer(6, 5, "x3")];
    check(base(), &[&[pin(4, false)], &third[..]].concat(), "one x1 two x2");
    check(base(), &[&[pin(2, true)], &third[..]].concat(), "one x1 three x3");
    check(base(), &[pin(2, true), user(5, 4, "three")], "one x1 two x2 three");
    check(base(), &[pin(2, true), user(5, 0, "three")], "one x1");
    check(base(), &[pin(2, true), told(5, 4)], "one x1 two x2");
}

#[test]
fn a_record_that_is_no_link_takes_over_the_name_of_none() {
    for class in ["my-annotation", "queue-operation", "custom-title", "summary", "last-prompt"] {
        for n in 1..=4 {
            let aside =
                json!({ "type": class, "uuid": uuid(n), "customTitle": "T", "summary": "S" });
            check(base(), std::slice::from_ref(&aside), "one x1 two x2");
            check(base(), &[aside, user(5, 4, "three")], "one x1 two x2 three");
        }
    }
}

#[test]
fn a_pin_stays_explicit_while_others_name_its_leaf_and_nothing_is_written() {
    check(base(), &[pin(2, true), pin(2, false)], "one x1");
    check(base(), &[pin(2, true), pin(2, false), told(5, 4)], "one x1 two x2");
    check(base(), &[pin(2, true), pin(4, false), pin(2, false)], "one x1 two x2");
}

/// Each of these was resumed by Claude Code 2.1.329, and this is what it sent.
#[test]
fn a_pin_on_a_part_of_a_batch_of_calls_gives_way_to_the_rest() {
    let whole = "go call:a call:b result:a result:b end";
    let noted = |n, parent| {
        let attachment = json!({ "type": "hook_additional_context", "toolUseID": "a" });
        with(link("attachment", n, parent, &json!({})), &[("attachment", attachment)])
    };
    let calls = || vec![user(1, 0, "go"), call(2, 1, "M", "a"), call(3, 2, "M", "b")];
    let rest = [result(5, 3, "b"), answer(6, 5, "end")];
    let batch = |pins: &[Value]| [&[result(4, 2, "a")], pins, &rest[..]].concat();
    check(calls(), &batch(&[pin(4, false)]), whole);
    let noted = [noted(7, 4), pin(7, false)];
    check(calls(), &batch(&noted), &whole.replace("result:a", "result:a "));
    let streamed = [result(4, 2, "a"), call(3, 2, "M", "b"), pin(4, false)];
    check(calls()[..2].to_vec(), &[&streamed[..], &rest].concat(), whole);
    // One that was explicit holds, and so does one that the batch has nothing to do with.
    check(calls(), &batch(&[pin(4, true)]), "go call:a call:b result:a result:b");
    check(
        base(),
        &[user(5, 2, "other"), answer(6, 5, "x3"), pin(4, false), told(7, 6)],
        "one x1 two x2",
    );
}

#[test]
fn without_a_message_above_the_last_link_the_newest_one_is_the_head() {
    let noted = |parent| {
        let attachment = json!({ "type": "hook_success", "stdout": "hi" });
        with(link("attachment", 9, parent, &json!({})), &[("attachment", attachment)])
    };
    for last in [told(9, 0), noted(0), noted(99)] {
        check(base(), std::slice::from_ref(&last), "one x1 two x2");
        check(base(), &[user(5, 2, "other"), last], "one x1 other");
    }
}

#[test]
fn without_a_pin_what_was_written_late_or_again_is_no_end() {
    let mut late = base();
    late.swap(2, 3);
    check(late.clone(), &[], "one x1 two x2");
    check(base(), &[user(1, 0, "one")], "one x1 two x2");
    check(late, &[pin(3, false)], "one x1 two");
    // So is what follows it and was written in the same moment.
    let together = |record| with(record, &[("timestamp", at(3, 0))]);
    let swapped = [together(answer(4, 3, "x2")), together(user(3, 2, "two"))];
    check(base()[..2].to_vec(), &swapped, "one x1 two x2");
}

#[test]
fn what_is_only_shown_or_written_next_to_the_conversation_is_no_part_of_it() {
    let snapshot = with(link("system", 5, 2, &Value::Null), &[("subtype", json!("file_snapshot"))]);
    let attachment = [("attachment", json!({ "type": "fork_briefing" }))];
    for aside in [snapshot, with(link("attachment", 5, 2, &json!({})), &attachment)] {
        check(base(), std::slice::from_ref(&aside), "one x1 two x2");
        check(base(), &[pin(2, true), aside], "one x1");
    }
    let fields = [("subtype", json!("local_command")), ("content", json!("local"))];
    let local = with(link("system", 5, 4, &Value::Null), &fields);
    check(base(), &[local.clone(), user(6, 5, "three")], "one x1 two x2 local three");
    let shown = with(local, &[("isDisplayOnly", json!(true))]);
    check(base(), &[shown, user(6, 5, "three")], "one x1 two x2 three");
}

#[test]
fn a_cleared_leaf_is_no_head_until_something_is_written() {
    check(base(), &[pin(0, true)], "nothing");
    check(base(), &[pin(0, true), pin(2, false)], "one x1 two x2");
    check(base(), &[pin(0, true), user(5, 0, "fresh")], "fresh");
    check(base(), &[pin(0, true), user(5, 4, "three")], "one x1 two x2 three");
}

#[test]
fn without_a_pin_the_last_link_is_climbed_to_a_message() {
    let progress = with(told(6, 4), &[("type", json!("progress"))]);
    check(base(), &[user(5, 2, "other"), told(6, 4)], "one x1 two x2");
    check(base(), &[user(5, 2, "other"), progress], "one x1 other");
    check(base(), &[with(user(5, 2, "said"), &[("isMeta", json!(true))])], "one x1 said");
    check(base(), &[with(user(5, 2, "side"), &[("isSidechain", json!(true))])], "one x1 two x2");
}

#[test]
fn a_boundary_wipes_the_pins_before_it_and_begins_the_context() {
    let rest = compacted(&json!({})).split_off(4);
    check(base(), &[&[pin(2, true)], &rest[..]].concat(), "summary three x3");
    check(compacted(&json!({})), &[pin(2, true)], "one x1");
    check(compacted(&json!({})), &[user(9, 2, "note"), pin(9, true)], "one x1 note");
}

#[test]
fn a_boundary_is_as_far_as_a_large_file_is_read() {
    let large = |length: usize| {
        let mut records = compacted(&json!({}));
        records.insert(2, user(32, 2, &"y".repeat(length)));
        file(&[records, vec![pin(2, true)]].concat())
    };
    assert_eq!(resumed(&large(5_000_000)), "one x1");
    assert_eq!(resumed(&large(5_300_000)), "summary three x3");
}

#[test]
fn kept_messages_stand_behind_the_summary() {
    let segment = json!({ "preservedSegment": { "anchorUuid": uuid(6), "headUuid": uuid(3), "tailUuid": uuid(4) } });
    check(compacted(&kept(&[3, 4])), &[], "summary two x2 three x3");
    check(compacted(&segment), &[], "summary two x2 three x3");
    check(compacted(&kept(&[4])), &[], "summary x2 three x3");
    check(compacted(&kept(&[3, 99])), &[], "summary three x3");
    let mut passed = compacted(&kept(&[3, 4]));
    passed[3]["type"] = json!("progress");
    check(passed, &[], "summary three x3");
    check(compacted(&kept(&[3, 99])), &[pin(2, true)], "one x1");
    check(compacted(&kept(&[3, 4])), &[pin(4, true)], "summary two x2");
    let again = [boundary(9, 8, &json!({})), summary(10, 9), user(11, 10, "four")];
    check(compacted(&kept(&[3, 4])), &again, "summary four");
    // Before anything is said behind the summary.
    let fresh = |metadata: &Value| compacted(metadata)[..6].to_vec();
    check(fresh(&kept(&[3, 4])), &[], "summary two x2");
    check(fresh(&segment), &[], "summary two x2");
    check(fresh(&kept(&[3, 4])), &[pin(4, false)], "summary two x2");
    check(fresh(&kept(&[3, 4])), &[pin(6, true)], "summary");
    check(fresh(&kept(&[3, 99])), &[], "summary");
}

/// Each of these was resumed by Claude Code 2.1.329, and this is what it sent.
#[test]
fn kept_messages_stand_without_their_summary_and_with_a_commands_words() {
    let torn = |last: &[Value]| {
        let mut records = compacted(&kept(&[3, 4]));
        records.drain(5..);
        [records, last.to_vec()].concat()
    };
    check(torn(&[user(7, 6, "three"), answer(8, 7, "x3")]), &[], "two x2 three x3");
    check(torn(&[user(7, 4, "three"), answer(8, 7, "x3")]), &[], "two x2 three x3");
    check(torn(&[told(9, 6), user(7, 9, "three")]), &[], "two x2 three");
    check(torn(&[]), &[], "two x2");
    // Words of the program that follow what was dropped follow nothing, unless something was written just before.
    let late = |record| with(record, &[("timestamp", at(59, 0))]);
    let dropped = |noted| [noted, user(10, 9, "four")];
    check(compacted(&kept(&[3, 4])), &dropped(told(9, 2)), "summary two x2 three x3 four");
    check(compacted(&kept(&[3, 4])), &dropped(late(told(9, 2))), "four");
    let fields = [("subtype", json!("local_command")), ("content", json!("local"))];
    let local = with(link("system", 9, 4, &Value::Null), &fields);
    let segment = json!({ "preservedSegment": { "anchorUuid": uuid(6), "headUuid": uuid(3), "tailUuid": uuid(9) } });
    for metadata in [kept(&[3, 4, 9]), segment] {
        let end = [local.clone(), boundary(5, 9, &metadata), summary(6, 5)];
        check(base(), &end, "summary two x2 local");
        check(base(), &[&end[..], &[user(7, 6, "three")]].concat(), "summary two x2 local three");
    }
}

#[test]
fn blocks_beside_the_chain_stand_among_those_on_it_in_the_order_of_the_file() {
    let said = |n, parent| block(n, parent, "m", &json!({ "type": "text", "text": "P" }));
    let ends = |parent| [user(20, parent, "two"), answer(21, 20, "x2")];
    let star = [
        user(1, 0, "one"),
        said(2, 1),
        call(3, 2, "m", "t3"),
        call(4, 2, "m", "t4"),
        call(5, 2, "m", "t5"),
    ];
    let star = [&star[..], &[result(6, 3, "t3"), result(7, 4, "t4"), result(8, 5, "t5")]].concat();
    let whole = "one P call:t3 call:t4 call:t5 result:t3 result:t4 result:t5 two x2";
    for leaf in [6, 7, 8] {
        check(star.clone(), &ends(leaf), whole);
    }
    // One that stands before the first block on the chain comes behind that.
    let before = [
        user(1, 0, "one"),
        call(2, 1, "m", "t2"),
        call(3, 1, "m", "t3"),
        result(4, 2, "t2"),
        result(5, 3, "t3"),
    ];
    check(before.to_vec(), &ends(5), "one call:t3 call:t2 result:t2 result:t3 two x2");
    let between = [
        user(1, 0, "one"),
        said(2, 1),
        call(3, 2, "m", "t3"),
        call(5, 2, "m", "t5"),
        result(6, 3, "t3"),
        call(4, 6, "m", "t4"),
        result(7, 4, "t4"),
        result(8, 5, "t5"),
    ];
    let whole = "one P call:t3 call:t5 call:t4 result:t3 result:t4 result:t5 two x2";
    check(between.to_vec(), &ends(7), whole);
}

#[test]
fn a_pin_gives_way_only_to_what_follows_it_as_the_parents_say() {
    // A parent that is missing is mended on the path, and no proof that the pin was left behind.
    let orphans = [user(3, 99, "three"), answer(4, 3, "x3")];
    for explicit in [false, true] {
        let pinned = vec![user(1, 0, "one"), answer(2, 1, "x1"), pin(2, explicit)];
        check(pinned.clone(), &orphans, "one x1");
        check(pinned, &[user(3, 2, "two"), answer(4, 3, "x2")], "one x1 two x2");
    }
    // A record that is said again stands behind what follows it.
    let again = [
        user(1, 0, "one"),
        pin(1, false),
        answer(2, 1, "x1"),
        user(1, 0, "one"),
        user(3, 2, "two"),
        answer(4, 3, "x2"),
    ];
    check(again.to_vec(), &[], "one x1 two x2");
}

#[test]
fn a_pin_without_a_name_that_is_no_null_says_nothing() {
    let mut odd: Vec<Value> = [json!(7), json!(""), json!(false), json!([uuid(2)])]
        .into_iter()
        .map(|leaf| with(pin(0, true), &[("leafUuid", leaf)]))
        .collect();
    odd.push(json!({ "type": "last-prompt", "lastPrompt": "two", "explicit": true, "sessionId": SESSION }));
    for odd in odd {
        check([base(), vec![odd.clone()]].concat(), &[], "one x1 two x2");
        check(base(), &[pin(2, true), odd.clone()], "one x1");
        check(base(), &[pin(0, true), odd], "nothing");
    }
}

#[test]
fn blocks_that_a_boundary_does_not_keep_are_not_sent_next_to_the_kept_ones() {
    let before = [user(1, 0, "one"), call(2, 1, "m", "t1"), result(20, 2, "t1")];
    let last = [call(3, 2, "m", "t2"), result(4, 3, "t2")];
    let compacted = [boundary(5, 4, &kept(&[3, 4])), summary(6, 5)];
    let records = [&before[..], &last, &compacted].concat();
    check(records.clone(), &[], "summary call:t2 result:t2");
    check(records, &[user(7, 6, "three")], "summary call:t2 result:t2 three");
}

#[test]
fn what_a_boundary_dropped_is_out_of_reach() {
    check(compacted(&kept(&[3, 4])), &[pin(2, true)], "summary two x2 three x3");
    check(compacted(&kept(&[3, 4])), &[user(99, 2, "note")], "summary two x2 note");
    check(compacted(&kept(&[4])), &[user(99, 3, "note")], "summary x2 note");
    check(compacted(&kept(&[3, 4])), &[user(99, 3, "note")], "summary two note");
}

#[test]
fn a_turn_behind_a_summary_begins_behind_what_its_compaction_keeps() {
    let mut records = compacted(&kept(&[3, 4]));
    records.extend([user(9, 6, "four"), user(10, 8, "five"), user(11, 6, "six")]);
    // What is said again is kept in the place of the first; a further compaction keeps nothing of this one.
    records.extend([answer(4, 3, "x2 again"), user(13, 6, "seven")]);
    records.extend([boundary(14, 13, &json!({})), summary(15, 14)]);
    records.extend([user(16, 6, "eight"), user(17, 15, "nine")]);
    let begun = |from: usize| {
        let folder = tempfile::tempdir().unwrap();
        let (store, sessions) = (folder.path().join("store"), folder.path().join("sessions"));
        fs::create_dir(&sessions).unwrap();
        let (mut archive, folders) = (fixture::open(&store, 1), [sessions.clone()]);
        for end in from..=records.len() {
            let path = sessions.join(SESSION.trim_matches('"')).with_extension("jsonl");
            fs::write(path, file(&records[..end])).unwrap();
            verbs::import(&mut archive, &folders, &folders, &mut |_| ()).unwrap();
        }
        let session = verbs::find_session(archive.store(), Some(SESSION), Path::new("/")).unwrap();
        let mut shown = verbs::newest_checkpoints(&archive.at(&session).unwrap(), 20).unwrap();
        shown.sort_by_key(|shown| shown.checkpoint.n);
        shown.iter().map(|shown| shown.checkpoint.place.head).collect::<Vec<_>>()
    };
    let heads = [0, 2, 4, 4, 8, 4, 12, 6, 15];
    let heads = heads.map(|n| (n > 0).then(|| number(n)));
    assert_eq!(begun(records.len()), heads, "at once");
    assert_eq!(begun(1), heads, "record by record");
}

/// Each of these was resumed by Claude Code 2.1.329, and this is what it sent.
#[test]
fn a_boundary_that_keeps_nothing_drops_all_before_it_once_one_says_what_it_keeps() {
    let late = |record: Value| with(record, &[("timestamp", at(59, 0))]);
    let two = |first: &Value, second: &Value| {
        [compacted(first), vec![boundary(9, 8, second), summary(10, 9), answer(11, 10, "x4")]]
            .concat()
    };
    let none = json!({});
    let segment = json!({ "preservedSegment": { "anchorUuid": uuid(6), "headUuid": uuid(99), "tailUuid": uuid(4) } });
    // What an older boundary kept is of no account, nor whether it could.
    for keeps in [kept(&[3, 4]), kept(&[99]), kept(&[]), segment] {
        check(two(&keeps, &none), &[pin(8, true)], "summary x4");
        check(two(&keeps, &none), &[late(user(12, 8, "note")), pin(12, true)], "note");
        check(two(&keeps, &none), &[late(user(12, 10, "note")), pin(12, true)], "summary note");
    }
    for keeps in [&none, &json!({ "preservedMessages": {} })] {
        check(two(keeps, &none), &[pin(8, true)], "summary three x3");
        check(
            two(keeps, &none),
            &[late(user(12, 8, "note")), pin(12, true)],
            "summary three x3 note",
        );
    }
    // So it is where the newest one says that it keeps nothing, and not where it names what is missing.
    let nothing = json!({ "preservedMessages": { "anchorUuid": uuid(10), "uuids": [] } });
    check(two(&none, &nothing), &[late(user(12, 8, "note")), pin(12, true)], "note");
    let missing = json!({ "preservedMessages": { "anchorUuid": uuid(10), "uuids": [uuid(99)] } });
    check(
        two(&kept(&[3, 4]), &missing),
        &[late(user(12, 8, "note")), pin(12, true)],
        "summary three x3 note",
    );
    // A boundary of a side chain is one like the others.
    let mut side = two(&none, &none);
    side[8]["isSidechain"] = json!(true);
    side[8]["compactMetadata"] =
        json!({ "preservedMessages": { "anchorUuid": uuid(10), "uuids": [uuid(8)] } });
    check(side, &[late(user(12, 7, "note")), pin(12, true)], "summary x3 note");
}

#[test]
fn a_path_crosses_boundaries_and_holds_each_entry_once() {
    let graph = FileGraph::read(&Claude, file(&compacted(&kept(&[3, 4]))).as_bytes());
    let path = Claude.path(&graph, number(8), usize::MAX).unwrap();
    assert_eq!(path.entries, [1, 2, 5, 6, 3, 4, 7, 8]);
    assert_eq!(path.repairs, []);
    assert_eq!(Claude.path(&graph, number(8), 3).unwrap().entries, [4, 7, 8]);

    let dangling = [base(), vec![boundary(5, 99, &json!({})), summary(6, 5)]].concat();
    let graph = FileGraph::read(&Claude, file(&dangling).as_bytes());
    let path = Claude.path(&graph, number(6), usize::MAX).unwrap();
    assert_eq!(path.entries, [1, 2, 3, 4, 5, 6]);
    assert_eq!(path.repairs.len(), 1);
}

#[test]
fn kept_messages_that_follow_each_other_in_a_circle_end_the_walk() {
    let mut records = compacted(&kept(&[3, 4]));
    records[2] = user(3, 4, "two");
    let graph = FileGraph::read(&Claude, file(&records).as_bytes());
    let path = Claude.path(&graph, number(8), usize::MAX).unwrap();
    assert_eq!(path.entries, [1, 2, 5, 6, 3, 4, 7, 8]);
    assert_eq!(path.repairs.len(), 1);
}

#[test]
fn a_missing_parent_is_mended_by_what_was_written_just_before() {
    let late = |seconds, milli| with(answer(4, 99, "x2"), &[("timestamp", at(seconds, milli))]);
    let three = || base()[..3].to_vec();
    check(three(), &[late(7, 900)], "one x1 two x2");
    check(three(), &[late(8, 100)], "x2");
    check(
        base()[..2].to_vec(),
        &[with(user(3, 99, "two"), &[("timestamp", at(2, 0))])],
        "one x1 two",
    );
    let side =
        with(answer(10, 2, "side"), &[("isSidechain", json!(true)), ("timestamp", at(2, 500))]);
    check(base()[..2].to_vec(), &[side, user(3, 99, "two")], "one x1 two");
    check(base()[..2].to_vec(), &[told(4, 0), user(5, 99, "two")], "two");
    check(base()[..1].to_vec(), &[user(3, 3, "self")], "one self");
    // Of one moment the first record of the file is the one, also where it stands behind.
    let at_three = |record| with(record, &[("timestamp", at(3, 0))]);
    let third = at_three(user(6, 99, "three"));
    let two = [user(3, 2, "two"), at_three(answer(4, 3, "x2"))];
    let end = answer(7, 6, "x3");
    let mended = "one x1 two three x3";
    check(base()[..2].to_vec(), &[&two[..], &[third.clone(), end.clone()]].concat(), mended);
    check(base()[..2].to_vec(), &[third, two[0].clone(), end], mended);
    // So is a parent that was passed already.
    let circle = [user(3, 4, "two"), answer(4, 3, "x2")];
    check(base()[..2].to_vec(), &circle, "one x1 two x2");
    // What was noted while a tool ran is no parent of what stands before it.
    let progress = with(told(9, 2), &[("type", json!("progress")), ("timestamp", at(3, 0))]);
    let late = with(user(3, 9, "two"), &[("timestamp", at(30, 0))]);
    check(base()[..2].to_vec(), &[progress.clone(), late.clone()], "one x1 two");
    check(base()[..2].to_vec(), &[late, progress], "two");
}

#[test]
fn an_object_behind_another_on_a_line_is_not_read() {
    let [one, x1, two, x2] = base().try_into().unwrap();
    assert_eq!(resumed(&format!("{one}\n{x1}{two}\n{x2}\n")), "one x1 x2");
    let stub = &x1.to_string()[..60];
    assert_eq!(resumed(&format!("{one}\n{x1}\n{stub}{two}\n{x2}\n")), "one x1 x2");
}

#[test]
fn the_last_record_of_a_name_counts() {
    check(base(), &[answer(2, 1, "again")], "one again two x2");
    check(base(), &[answer(2, 1, "again"), pin(4, true)], "one again two x2");
}

#[test]
fn a_split_message_is_joined_and_its_results_follow() {
    let split = [
        user(1, 0, "go"),
        block(2, 1, "M", &json!({ "type": "text", "text": "both" })),
        call(3, 2, "M", "a"),
        result(4, 3, "a"),
        call(5, 3, "M", "b"),
        result(6, 5, "b"),
    ];
    let all = "go both call:a call:b result:a result:b end";
    check(split.to_vec(), &[answer(7, 4, "end"), pin(7, false)], all);
    check(split.to_vec(), &[answer(7, 6, "end")], all);
    let mut chained = split;
    chained[4] = call(5, 4, "M", "b");
    check(chained.to_vec(), &[answer(7, 6, "end")], all);
}

#[test]
fn results_that_hang_elsewhere_stand_among_the_others_in_the_order_of_the_file() {
    let calls = || vec![user(1, 0, "go"), call(2, 1, "M", "a"), call(3, 2, "M", "b")];
    let (in_order, late) =
        ("go call:a call:b result:a result:b end", "go call:a call:b result:b result:a end");
    check(calls(), &[result(4, 3, "b"), result(5, 2, "a"), answer(6, 5, "end")], late);
    check(calls(), &[result(4, 3, "b"), result(5, 2, "a"), answer(6, 4, "end")], late);
    // One may follow another, and the conversation go on from the first of them.
    check(calls(), &[result(4, 3, "a"), result(5, 4, "b"), answer(6, 4, "end")], in_order);
    check(calls(), &[result(4, 2, "a"), result(5, 3, "b"), answer(6, 5, "end")], in_order);
    check(
        calls(),
        &[result(4, 2, "a"), answer(6, 4, "end"), result(5, 3, "b"), user(7, 6, "on")],
        &format!("{in_order} on"),
    );
    let third = [
        call(6, 3, "M", "c"),
        result(5, 4, "b"),
        result(8, 6, "c"),
        result(4, 3, "a"),
        answer(9, 5, "end"),
    ];
    check(calls(), &third, "go call:a call:b call:c result:c result:a result:b end");
    let siblings = [
        call(5, 1, "N", "b"),
        call(4, 1, "N", "a"),
        result(6, 4, "a"),
        result(7, 5, "b"),
        answer(8, 6, "end"),
    ];
    check(vec![user(1, 0, "go")], &siblings, in_order);
}

/// Each of these was resumed by Claude Code 2.1.329, and this is what it sent.
#[test]
fn words_of_the_program_behind_a_result_or_a_call_next_to_the_chain_are_sent_with_it() {
    let calls = || vec![user(1, 0, "go"), call(2, 1, "M", "a"), call(3, 2, "M", "b")];
    let meta = |n, parent, text| with(user(n, parent, text), &[("isMeta", json!(true))]);
    let local = |n, parent| {
        let fields = [("subtype", json!("local_command")), ("content", json!("local"))];
        with(link("system", n, parent, &Value::Null), &fields)
    };
    let queued = |n, parent| {
        let attachment = json!({ "type": "queued_command", "prompt": "wait" });
        with(link("attachment", n, parent, &json!({})), &[("attachment", attachment)])
    };
    let batch = |beside: &[Value], leaf| {
        let [first, second] = [result(4, 2, "a"), result(5, 3, "b")];
        [&[first], beside, &[second, answer(6, leaf, "end")]].concat()
    };
    let results = "go call:a call:b result:a";
    for (beside, said) in [
        (vec![queued(7, 4)], "wait"),
        (vec![meta(7, 4, "skill")], "skill"),
        (vec![local(7, 4)], "local"),
        (vec![meta(7, 4, "skill"), meta(8, 7, "more")], "skill more"),
        (vec![meta(7, 4, "skill"), meta(8, 4, "more")], "skill more"),
        (vec![local(7, 4), told(8, 7), queued(9, 8)], "wait local"),
        (vec![meta(7, 2, "skill")], "skill"),
    ] {
        check(calls(), &batch(&beside, 5), &format!("{results} {said} result:b end"));
        let records = [calls(), batch(&beside, 5)].concat();
        assert_eq!(leaves(&records), [""; 0]);
    }
    // What was written last comes behind, also where the conversation went on long before.
    let both = [result(4, 2, "a"), meta(7, 4, "A"), result(5, 3, "b"), meta(8, 5, "B")];
    let whole = "go call:a call:b result:a A result:b B end";
    for leaf in [7, 8] {
        check(calls(), &[&both[..], &[answer(9, leaf, "end")]].concat(), whole);
    }
    check(
        calls(),
        &[batch(&[], 5), vec![meta(7, 4, "late"), user(8, 6, "on")]].concat(),
        "go call:a call:b result:a result:b late end on",
    );
    let on_chain = [result(4, 2, "a"), told(7, 4), meta(8, 7, "skill"), answer(6, 7, "end")];
    check(calls()[..2].to_vec(), &on_chain, "go call:a result:a skill end");
    // So does a result behind such words.
    let behind = [result(4, 2, "a"), told(7, 4), result(5, 7, "b"), answer(6, 4, "end")];
    check(calls(), &behind, "go call:a call:b result:a result:b end");
    // Words that fork, that were answered, of a sub-agent, or behind an answer without a call are left.
    let side = with(meta(7, 4, "side"), &[("isSidechain", json!(true))]);
    for beside in [
        vec![meta(7, 4, "skill"), meta(8, 7, "x"), meta(9, 7, "y")],
        vec![meta(7, 4, "skill"), answer(8, 7, "left")],
        vec![side],
    ] {
        check(calls(), &batch(&beside, 5), &format!("{results} result:b end"));
    }
    check(base(), &[meta(7, 2, "skill"), user(8, 4, "on")], "one x1 two x2 on");
    // What came while the model worked is sent before a prompt that it follows.
    let on = [user(5, 4, "on"), meta(6, 5, "skill"), queued(7, 6), answer(8, 7, "x3")];
    check(base(), &on, "one x1 two x2 wait on skill x3");
    check(base()[..1].to_vec(), &[queued(7, 1), answer(8, 7, "x3")], "wait one x3");
    let left = [calls(), batch(&[meta(7, 4, "skill"), answer(8, 7, "left")], 5)].concat();
    assert_eq!(leaves(&left), ["go call:a call:b result:a skill result:b left"]);
}

/// Each of these was resumed by Claude Code 2.1.329, and this is what it sent.
#[test]
fn words_of_the_program_on_which_the_next_block_of_a_message_hangs_are_sent_between_the_calls() {
    let calls = || vec![user(1, 0, "go"), call(2, 1, "M", "a")];
    let said = |n, parent| block(n, parent, "M", &json!({ "type": "text", "text": "more" }));
    let meta = |n, parent, text| with(user(n, parent, text), &[("isMeta", json!(true))]);
    let fields = [("subtype", json!("local_command")), ("content", json!("local"))];
    let local = |n, parent| with(link("system", n, parent, &Value::Null), &fields);
    let queued = |n, parent| {
        let attachment = json!({ "type": "queued_command", "prompt": "wait" });
        with(link("attachment", n, parent, &json!({})), &[("attachment", attachment)])
    };
    let end = [call(6, 2, "M", "b"), result(7, 2, "a"), result(8, 6, "b"), answer(9, 8, "end")];
    let behind = "result:a result:b";
    for (beside, whole) in [
        (vec![queued(3, 2), said(4, 3)], format!("go call:a more call:b wait {behind} end")),
        (
            vec![queued(3, 2), call(4, 3, "M", "c"), result(5, 4, "c")],
            format!("go call:a call:c call:b wait result:c {behind} end"),
        ),
        (
            vec![queued(3, 2), said(4, 3), user(5, 4, "left")],
            format!("go call:a more call:b wait {behind} end"),
        ),
        (
            vec![result(3, 2, "c"), meta(4, 3, "skill"), said(5, 4)],
            format!("go call:a more call:b result:c skill {behind} end"),
        ),
        // The program says these in the user's place, where they part the message.
        (vec![local(3, 2), said(4, 3)], format!("go call:a local more call:b {behind} end")),
        (
            vec![meta(3, 2, "skill"), said(4, 3)],
            format!("go call:a skill more call:b {behind} end"),
        ),
        (vec![meta(3, 2, "skill")], format!("go call:a skill call:b {behind} end")),
        (vec![queued(3, 2), answer(4, 3, "left")], format!("go call:a call:b {behind} end")),
    ] {
        check(calls(), &[&beside[..], &end].concat(), &whole);
    }
    let between = [local(3, 2), call(4, 3, "M", "b"), result(5, 4, "b"), answer(6, 5, "end")];
    check(calls(), &between, "go call:a local call:b result:b end");
}

/// A message that is said again is another one, and what an older compaction kept it kept.
#[test]
fn each_compaction_is_checked_by_the_entries_that_it_kept() {
    let checked = |records: &[Value]| -> Vec<(u64, u64)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("{SESSION}.jsonl"));
        fs::write(&path, file(records)).unwrap();
        let (archive, session) = crate::resume::peek(&path).unwrap();
        let found = verbs::audit_boundaries(&archive.at(&session).unwrap()).unwrap();
        found.iter().map(|boundary| (boundary.summarised, boundary.kept)).collect()
    };
    let said = [user(1, 0, "go"), answer(2, 1, "x"), user(3, 2, "go"), answer(4, 3, "x")];
    let after = [user(7, 6, "go"), answer(8, 7, "x")];
    let once = |metadata: &Value| {
        [&said[..], &[boundary(5, 4, metadata), summary(6, 5)], &after[..]].concat()
    };
    assert_eq!(checked(&once(&json!({}))), [(4, 0)]);
    assert_eq!(checked(&once(&kept(&[3, 4]))), [(2, 2)]);
    let again = [boundary(9, 8, &json!({})), summary(10, 9), user(11, 10, "go")];
    let twice = [once(&kept(&[3, 4])), again.to_vec()].concat();
    assert_eq!(checked(&twice), [(2, 2), (4, 0)]);
}

fn leaves(records: &[Value]) -> Vec<String> {
    let graph = FileGraph::read(&Claude, file(records).as_bytes());
    graph.leaves().into_iter().map(|leaf| said(&graph, &graph.path(leaf))).collect()
}

#[test]
fn a_leaf_is_what_a_rewind_left_and_not_what_hangs_beside() {
    let again = [base(), vec![user(5, 2, "again"), answer(6, 5, "x3")]].concat();
    assert_eq!(leaves(&again), ["one x1 two x2"]);
    assert_eq!(
        leaves(&[again, vec![user(7, 0, "anew")]].concat()),
        ["one x1 two x2", "one x1 again x3"]
    );
    let synthetic = with(answer(7, 4, "No response requested."), &[]);
    let exit = [
        user(5, 4, "<command-name>/exit</command-name>"),
        user(6, 5, "<local-command-stdout>Bye</local-command-stdout>"),
    ];
    assert_eq!(
        leaves(&[base(), exit.to_vec(), vec![synthetic, user(8, 7, "on")]].concat()),
        [""; 0]
    );
    let side = with(user(9, 0, "side"), &[("isSidechain", json!(true))]);
    assert_eq!(leaves(&[base(), vec![side]].concat()), ["side"]);
}

#[test]
fn an_error_of_the_interface_is_no_part_of_what_is_sent_and_no_branch() {
    let failed = |n, parent| {
        let mut failed =
            with(answer(n, parent, "API Error: 529"), &[("isApiErrorMessage", json!(true))]);
        failed["message"]["model"] = json!("<synthetic>");
        failed
    };
    check(base(), &[user(5, 4, "three"), failed(6, 5)], "one x1 two x2 three");
    check(
        base(),
        &[user(5, 4, "three"), failed(6, 5), user(7, 6, "again")],
        "one x1 two x2 three again",
    );
    let shown = with(user(5, 4, "shown"), &[("isVirtual", json!(true))]);
    check(base(), &[shown, user(6, 5, "three")], "one x1 two x2 three");
    let of_a_model = with(answer(5, 4, "x3"), &[("isApiErrorMessage", json!(true))]);
    check(base(), &[of_a_model], "one x1 two x2 x3");
    let aside = [base(), vec![failed(5, 3), user(6, 4, "three")]].concat();
    assert_eq!(leaves(&aside), [""; 0]);
}

#[test]
fn the_words_that_the_program_adds_are_part_of_what_it_sends_only() {
    let words = |record: &Value, sent: bool| {
        let line = record.to_string();
        let raw = Raw::object(line.as_bytes()).unwrap();
        let messages = if sent { Claude.sent(raw, &[]) } else { Claude.messages(raw) };
        messages.iter().map(undertext::model::Message::text).collect::<String>()
    };
    let check = |record: &Value, own: &str, begin: &str, end: &str| {
        assert_eq!(words(record, false), own);
        let sent = words(record, true);
        assert!(sent.starts_with(begin) && sent.contains(own) && sent.ends_with(end), "{sent}");
    };
    let task = [("origin", json!({ "kind": "task-notification" }))];
    let begin = "<system-reminder>\n[SYSTEM NOTIFICATION - NOT USER INPUT]\n";
    check(&with(user(5, 4, "done"), &task), "done", begin, "\n\ndone\n</system-reminder>");
    check(&user(5, 4, "<task-notification>"), "<task-notification>", "<task-", "tion>");
    let queued = |more: &[(&str, Value)]| {
        let attachment = with(json!({ "type": "queued_command", "prompt": "wait" }), more);
        with(link("attachment", 5, 4, &json!({})), &[("attachment", attachment)])
    };
    let begin = "<system-reminder>\nThe user sent a new message while you were working:\nwait\n\n";
    // As they were sent at first, if the record has it in the shape that the program takes.
    let listed = |text: &str| json!([{ "type": "text", "text": text }]);
    for (rendered, sent) in [
        (json!([{ "content": "so: wait" }]), Some("so: wait")),
        (json!([{ "content": listed("so: wait") }]), Some("so: wait")),
        (json!([{ "content": "so:" }, { "content": listed("wait") }]), Some("so:\nwait")),
        (json!([]), None),
        (json!("so: wait"), None),
        (json!([{ "content": "" }]), None),
        (json!([{ "content": [] }]), None),
        (json!([{ "content": listed("") }]), None),
        (json!([{ "content": "so" }, { "text": "wait" }]), None),
        (json!([{ "content": [{ "type": "image" }, { "type": "text", "text": "so" }] }]), None),
    ] {
        let record = with(queued(&[]), &[("rendered", rendered)]);
        assert_eq!(words(&record, false), "wait");
        match sent {
            Some(sent) => assert_eq!(words(&record, true), sent),
            None => check(&record, "wait", begin, "continue this turn.\n</system-reminder>"),
        }
    }
    check(&queued(&[]), "wait", begin, "continue this turn.\n</system-reminder>");
    let mode = [("commandMode", json!("task-notification"))];
    check(&queued(&mode), "wait", "<system-reminder>\n[SYSTEM", "\n\nwait\n</system-reminder>");
    let loads = |tool: &str| {
        let mut record = result(5, 4, "a");
        record["message"]["content"][0]["content"] =
            json!([{ "type": "tool_reference", "tool_name": tool }]);
        record
    };
    check(&loads("WebFetch"), "", "Tool loaded.", "");
    assert_eq!(words(&loads("mcp__server__tool"), true), "");
}

/// Each of these was resumed by Claude Code 2.1.332, and this is what it sent.
#[test]
fn what_a_hook_put_out_and_a_note_of_the_program_itself_are_sent_in_a_reminder() {
    let sent = |words: &Value, fields: Value| {
        let mut record = user(5, 4, "");
        record["message"]["content"] = words.clone();
        let Value::Object(fields) = fields else { panic!("{fields}") };
        record.as_object_mut().unwrap().extend(fields);
        let line = record.to_string();
        let sent = Claude.sent(Raw::object(line.as_bytes()).unwrap(), &[]);
        sent.iter().map(undertext::model::Message::text).collect::<Vec<_>>().join("|")
    };
    let reminder = |words: &str| format!("<system-reminder>\n{words}\n</system-reminder>");
    let usual = "The text below is the output of a hook, not a message from the user.";
    let own = "The text below is the output of a hook that was set up.";
    for (lead, expected) in [
        (json!(null), usual),
        (json!(own), own),
        (json!("Something else"), usual),
        (json!(format!("{own}\nmore")), usual),
    ] {
        let fields = json!({ "isMeta": true, "hookText": true, "hookTextLead": lead });
        for words in [json!("go on"), json!([{ "type": "text", "text": "go on" }])] {
            assert_eq!(sent(&words, fields.clone()), reminder(&format!("{expected}\ngo on")));
        }
    }
    let hook = json!({ "isMeta": true, "hookText": true });
    for (words, expected) in [
        ("a < b <i>", "a < b <i>"),
        ("</system-reminder>", "&lt;/system-reminder>"),
        ("< / System-Reminder >", "&lt; / System-Reminder >"),
        ("<system-reminders>", "<system-reminders>"),
        ("<system-reminder-x", "&lt;system-reminder-x"),
        ("é<", "é&lt;"),
        ("<</ ", "<&lt;/ "),
    ] {
        let expected = reminder(&format!("{usual}\n{expected}"));
        assert_eq!(sent(&json!(words), hook.clone()), expected);
    }
    let note = |text: Value| json!({ "isMeta": true, "ownNote": true, "ownNoteText": text });
    assert_eq!(
        sent(&json!("</system-reminder>"), note(json!("x"))),
        reminder("</system-reminder>")
    );
    let retry = json!("The PermissionDenied hook indicated you may retry this tool call.");
    let begin = "The refusal above is not final for this call:";
    let own = format!("{begin} try it.");
    assert_eq!(sent(&retry, note(json!(own))), reminder(&own));
    for other in [json!(null), json!("try it"), json!(format!("{own}\n")), json!(format!("{own}<"))]
    {
        let sent = sent(&retry, note(other));
        let begin = format!("<system-reminder>\n{begin} the PermissionDenied hook set up for");
        assert!(sent.starts_with(&begin) && sent.ends_with("did ask for.\n</system-reminder>"));
    }
    // Other records, and other contents, are sent as they stand.
    for fields in [json!({ "hookText": true }), json!({ "isMeta": true, "hookText": "true" })] {
        assert_eq!(sent(&json!("go on"), fields), "go on");
    }
    let two = json!([{ "type": "text", "text": "go" }, { "type": "text", "text": "on" }]);
    assert_eq!(sent(&two, hook), "go\non");
}

#[test]
fn notes_of_what_was_done_to_the_conversation_are_not_sent_and_a_cut_result_is_by_its_stand_in() {
    let noted = |class: &str| {
        let attachment = json!({ "type": class, "callIds": ["a", "b"], "standIn": "cut" });
        with(link("attachment", 5, 4, &json!({})), &[("attachment", attachment)])
    };
    let before = [user(1, 0, "go"), call(2, 1, "M", "a"), result(3, 2, "a"), answer(4, 3, "end")];
    for class in ["tool_results_cut", "thinking_drop", "deferred_tools_record"] {
        let records = [&before[..], &[noted(class), user(6, 5, "on")]].concat();
        let graph = FileGraph::read(&Claude, file(&records).as_bytes());
        let path = graph.path(graph.head().unwrap());
        let sent = Claude.context(&graph, &path).unwrap();
        assert_eq!(sent.entries, [1, 2, 3, 4, 6], "{class}");
        let edit = (number(3), Edit::Content(number(5)));
        let is_cut = class == "tool_results_cut";
        assert_eq!(sent.edits, Vec::from_iter(is_cut.then_some(edit)), "{class}");
    }
    // Of several records the first one counts.
    let again = with(noted("tool_results_cut"), &[("uuid", uuid(7)), ("parentUuid", uuid(5))]);
    let records = [&before[..], &[noted("tool_results_cut"), again, user(8, 7, "on")]].concat();
    let graph = FileGraph::read(&Claude, file(&records).as_bytes());
    let sent = Claude.context(&graph, &graph.path(graph.head().unwrap())).unwrap();
    assert_eq!(sent.edits, [(number(3), Edit::Content(number(5)))]);
    // Nothing stands in for what is no longer than it, nor for an error.
    let cut = noted("tool_results_cut").to_string();
    for (content, error, shown) in [
        (json!("long"), false, "cut"),
        (json!("own"), false, "own"),
        (json!("long"), true, "long"),
        (json!([{ "type": "text", "text": "ab" }, { "type": "text", "text": "cd" }]), false, "cut"),
        (json!([{ "type": "image", "source": {} }]), false, "cut"),
    ] {
        let mut result = before[2].clone();
        result["message"]["content"][0]["content"] = content;
        result["message"]["content"][0]["is_error"] = json!(error);
        let result = result.to_string();
        let edit = Edited::Content(Raw::object(cut.as_bytes()).unwrap());
        let sent = Claude.sent(Raw::object(result.as_bytes()).unwrap(), &[edit]);
        let [Block::Result { blocks, .. }] = &sent[0].blocks[..] else { panic!("{sent:?}") };
        assert_eq!(blocks[..], [Block::Text(shown.to_owned())], "{result}");
    }
}

#[test]
fn each_result_of_a_record_is_cut_by_the_first_record_that_tells_of_it() {
    let cut = |n: u64, calls: &[&str]| {
        let stand_in = format!("cut {n}");
        let attachment =
            json!({ "type": "tool_results_cut", "callIds": calls, "standIn": stand_in });
        with(link("attachment", n, n - 1, &json!({})), &[("attachment", attachment)])
    };
    let long =
        |tool: &str| json!({ "type": "tool_result", "tool_use_id": tool, "content": "at length" });
    let both = json!({ "role": "user", "content": [long("a"), long("b")] });
    let begun = [user(1, 0, "go"), call(2, 1, "M", "a"), call(3, 2, "M", "b")];
    for (cuts, shown) in [
        ([cut(5, &["a"]), cut(6, &["b"])], ["cut 5", "cut 6"]),
        ([cut(5, &["b"]), cut(6, &["a"])], ["cut 6", "cut 5"]),
        ([cut(5, &["b"]), cut(6, &["a", "b"])], ["cut 6", "cut 5"]),
        ([cut(5, &["a", "b"]), cut(6, &["a"])], ["cut 5", "cut 5"]),
        ([cut(5, &["c"]), cut(6, &["b"])], ["at length", "cut 6"]),
    ] {
        let records =
            [&begun[..], &[link("user", 4, 3, &both)], &cuts, &[user(7, 6, "on")]].concat();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("{SESSION}.jsonl"));
        fs::write(&path, file(&records)).unwrap();
        let mut archive = Archive::in_memory(Seeded::boxed(1));
        let (session, _) = verbs::take_up(&mut archive, &path).unwrap();
        let context =
            verbs::context(&archive.at(&session).unwrap(), None, &asked(u64::MAX)).unwrap();
        let results =
            context.prepared.items.iter().flat_map(|item| item.message().into_owned().blocks);
        let results = results.filter_map(|block| match block {
            Block::Result { blocks, .. } => Some(Message::new(Role::Tool, blocks).text()),
            _ => None,
        });
        assert_eq!(results.collect::<Vec<_>>(), shown, "{cuts:?}");
    }
}

#[test]
fn what_is_of_no_type_is_no_content() {
    let content =
        json!([{ "type": "text", "text": "ok" }, "bare", { "of": 1 }, { "type": 1 }, null]);
    let record = link("user", 1, 0, &json!({ "role": "user", "content": content })).to_string();
    let sent = Claude.sent(Raw::object(record.as_bytes()).unwrap(), &[]);
    assert_eq!(sent[0].blocks, [Block::Text("ok".to_owned())]);
}

#[test]
fn only_what_a_person_asked_begins_a_turn() {
    let kind =
        |record: Value| Claude.envelope(Raw::object(record.to_string().as_bytes()).unwrap()).kind;
    assert_eq!(kind(user(1, 0, "ask")), Kind::User);
    assert_eq!(kind(user(1, 0, "<command-message>review</command-message>")), Kind::User);
    for text in [
        "<command-name>/exit</command-name>",
        "<bash-input>ls</bash-input>",
        "[Request interrupted by user]",
    ] {
        assert_eq!(kind(user(1, 0, text)), Kind::Note, "{text}");
    }
    for flag in ["isMeta", "isSidechain", "isVisibleInTranscriptOnly"] {
        assert_eq!(kind(with(user(1, 0, "ask"), &[(flag, json!(true))])), Kind::Note, "{flag}");
    }
    assert_eq!(kind(result(1, 0, "a")), Kind::Result);
    assert_eq!(kind(summary(1, 0)), Kind::Summary);
    assert_eq!(kind(boundary(1, 0, &json!({}))), Kind::Boundary);
    assert_eq!(kind(pin(1, false)), Kind::Meta);
}

#[test]
fn going_back_by_appending_resumes_there_with_the_note() {
    let setting = |parent| Setting {
        session: SESSION.to_owned(),
        parent: uuid(parent).as_str().map(str::to_owned),
        uuid: "00005e55-0000-4000-8000-0000000000ff".to_owned(),
        time: Timestamp::parse("2026-08-01T11:00:00Z").unwrap(),
        folder: "/elsewhere".to_owned(),
        git_branch: None,
        nearby: Some(user(1, 0, "one").to_string().into_bytes()),
        is_nameless: false,
        since: None,
        tool: None,
        call: None,
    };
    let after = |records: &[Value], parent: u64, note| {
        let graph = FileGraph::read(&Claude, file(records).as_bytes());
        let to = (parent > 0).then_some(parent);
        let lines = graph.way(to.map(number), note, &setting(parent))?;
        let lines = lines.into_iter().map(|line| String::from_utf8(line).unwrap() + "\n");
        Some(resumed(&(file(records) + &lines.collect::<String>())))
    };
    let back = |parent, note| after(&base(), parent, note).unwrap();
    assert_eq!(back(2, None), "one x1");
    assert_eq!(back(2, Some("note")), "one x1 note");
    assert_eq!(back(0, None), "nothing");
    assert_eq!(back(0, Some("note")), "note");
    // What a boundary dropped is out of reach, and so is what another record of its name has replaced.
    assert_eq!(after(&compacted(&json!({})), 2, Some("note")).unwrap(), "one x1 note");
    assert_eq!(after(&compacted(&kept(&[3, 4])), 4, None).unwrap(), "summary two x2");
    assert_eq!(after(&compacted(&kept(&[3, 4])), 2, Some("note")), None);
    assert_eq!(after(&[base(), vec![answer(2, 1, "again")]].concat(), 2, None), None);

    let line = Claude.write(&Draft::Note("note".into()), &setting(2)).unwrap();
    let record = Raw::object(&line).unwrap();
    assert_eq!(Claude.envelope(record).kind, Kind::Note);
    let field = |key| record.get(key).unwrap().text().unwrap().into_owned();
    assert_eq!((field("version").as_str(), field("cwd").as_str()), ("2.1.226", "/w"));
}

#[test]
fn a_long_session_of_broken_records_is_walked_in_time() {
    let records: Vec<Value> =
        (1..20_000).map(|n| with(user(n, 99_999 - n, "x"), &[("timestamp", at(1, 0))])).collect();
    let graph = FileGraph::read(&Claude, file(&records).as_bytes());
    assert_eq!(graph.path(graph.head().unwrap()).len(), 19_999);
    assert_eq!(graph.leaves(), [0; 0]);
}
