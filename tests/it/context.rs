//! What a model sees, held against the rules of the providers by a checker of its own, which reads only the JSON that
//! would be sent and knows nothing of how it was made.

use std::collections::BTreeSet;

use proptest::{prelude::*, test_runner::Config};
use serde_json::Value;
use undertext::{
    context::{
        self, Act, Change, Item, Origin, Plan, Prepared, Shape,
        cut::{Bound, Limit},
        history::Limits,
        measure::Measure,
        sanitize::Hygiene,
        tokens::Counting,
        window::Windows,
    },
    model::{Block, Image, Message, Role, SentAs, Source, Stop, Thinking, Timestamp},
    verbs::{self, Asked, Layers},
};

use crate::{fixture, fixture::number, needs, resume::peek};

/// Returns a request as it is written.
fn told(request: &context::Request<'_>) -> String {
    serde_json::to_string(request).unwrap()
}

/// Returns the first rule of a provider that a request breaks.
fn broken_rule(request: &Value, shape: Shape) -> Option<String> {
    match shape {
        Shape::Anthropic => anthropic(request),
        Shape::Openai => openai(request),
        Shape::Gemini => gemini(request),
        Shape::Messages | Shape::Agent => pairs(&plain_steps(request)),
    }
}

/// What a request says, step by step, as far as pairs go.
#[derive(Debug)]
enum Step {
    Calls(Vec<String>),
    Results(Vec<String>),
    Other,
}

/// Calls are followed by their results, all of them and no others, and ids are unique.
fn pairs(steps: &[Step]) -> Option<String> {
    let mut seen = BTreeSet::new();
    let mut pending: BTreeSet<&String> = BTreeSet::new();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Results(ids) => {
                for id in ids {
                    if !pending.remove(id) {
                        return Some(format!(
                            "step {at}: a result of {id:.20}, for which nothing called"
                        ));
                    }
                }
            }
            _ if !pending.is_empty() => {
                return Some(format!(
                    "step {at}: a call without its result before it: {pending:?}"
                ));
            }
            Step::Calls(ids) => {
                for id in ids {
                    if !seen.insert(id) {
                        return Some(format!("step {at}: a second call {id:.20}"));
                    }
                    pending.insert(id);
                }
            }
            Step::Other => {}
        }
    }
    (!pending.is_empty()).then(|| format!("a call without its result at the end: {pending:?}"))
}

fn of_type<'a>(blocks: &'a [Value], class: &str) -> impl Iterator<Item = &'a Value> {
    blocks.iter().filter(move |block| block["type"] == class)
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or("no word").to_owned()
}

fn plain_steps(request: &Value) -> Vec<Step> {
    let mut steps = Vec::new();
    for message in request["messages"].as_array().unwrap() {
        let blocks = message["content"].as_array().unwrap();
        let calls: Vec<String> =
            of_type(blocks, "tool_use").map(|call| word(&call["id"])).collect();
        let results: Vec<String> =
            of_type(blocks, "tool_result").map(|result| word(&result["tool_use_id"])).collect();
        let has_more = blocks.len() > calls.len() + results.len();
        if !results.is_empty() {
            steps.push(Step::Results(results));
        } else if has_more || calls.is_empty() {
            steps.push(Step::Other);
        }
        if !calls.is_empty() {
            steps.push(Step::Calls(calls));
        }
    }
    steps
}

fn is_id(id: &Value) -> bool {
    let id = id.as_str().unwrap_or_default();
    (1..=64).contains(&id.len()) && is_plain(id)
}

fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn is_blank(text: &Value) -> bool {
    text.as_str().is_none_or(|text| text.trim().is_empty())
}

fn anthropic(request: &Value) -> Option<String> {
    for block in request["system"].as_array().unwrap() {
        if block["type"] != "text" || is_blank(&block["text"]) {
            return Some(format!("the system prompt has {block}"));
        }
    }
    let messages = request["messages"].as_array().unwrap();
    for (at, message) in messages.iter().enumerate() {
        let expected = if at % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != expected {
            return Some(format!("message {at} is not the {expected}'s"));
        }
        let blocks = message["content"].as_array().unwrap();
        if blocks.is_empty() {
            return Some(format!("message {at} is empty"));
        }
        if expected == "assistant"
            && blocks.last().unwrap()["type"].as_str().unwrap().contains("thinking")
        {
            return Some(format!("message {at} ends with thinking"));
        }
        let last = blocks.last().unwrap();
        if at + 1 == messages.len()
            && expected == "assistant"
            && last["type"] == "text"
            && last["text"].as_str().unwrap().ends_with(char::is_whitespace)
        {
            return Some("the model's last words end with white space".to_owned());
        }
        let results = blocks.iter().take_while(|block| block["type"] == "tool_result").count();
        if of_type(blocks, "tool_result").count() > results {
            return Some(format!("message {at} has results behind other words"));
        }
        for block in blocks {
            let is_fine = match (expected, block["type"].as_str().unwrap()) {
                (_, "text") => !is_blank(&block["text"]),
                ("assistant", "thinking") => !is_blank(&block["signature"]),
                ("assistant", "redacted_thinking") => !is_blank(&block["data"]),
                ("assistant", "tool_use") => {
                    is_id(&block["id"])
                        && block["input"].is_object()
                        && (1..=128).contains(&block["name"].as_str().unwrap().len())
                        && is_plain(block["name"].as_str().unwrap())
                }
                ("user", "tool_result") => {
                    let content = block["content"].as_array().unwrap();
                    !content.is_empty()
                        && of_type(content, "text").all(|text| !is_blank(&text["text"]))
                }
                ("user", "image") => block["source"].is_object(),
                ("user", "document" | "search_result" | "container_upload") => true,
                _ => false,
            };
            if !is_fine {
                let shown: String = block.to_string().chars().take(200).collect();
                return Some(format!("message {at} may not hold {shown}"));
            }
        }
    }
    // All results of a message are in the one right behind it.
    let mut called: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let blocks = message["content"].as_array().unwrap();
        let mut results: Vec<String> =
            of_type(blocks, "tool_result").map(|result| word(&result["tool_use_id"])).collect();
        if message["role"] == "user" {
            called.sort();
            results.sort();
            if called != results {
                return Some(format!("message {at} answers {results:?}, not {called:?}"));
            }
        }
        called = of_type(blocks, "tool_use").map(|call| word(&call["id"])).collect();
    }
    pairs(&plain_steps(request))
}

fn openai(request: &Value) -> Option<String> {
    let mut steps = Vec::new();
    let mut before = String::new();
    for (at, message) in request["messages"].as_array().unwrap().iter().enumerate() {
        let role = word(&message["role"]);
        if role == before && matches!(role.as_str(), "user" | "assistant") {
            return Some(format!("message {at} is a second one of the {role}"));
        }
        let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        let is_fine = match role.as_str() {
            "tool" => !is_blank(&message["content"]) && before != "user" && !before.is_empty(),
            "assistant" => {
                let says = !is_blank(&message["content"]);
                let is_call = |call: &Value| {
                    let function = &call["function"];
                    let name = function["name"].as_str().unwrap();
                    call["type"] == "function"
                        && call["id"].as_str().unwrap().len() <= 40
                        && (1..=64).contains(&name.len())
                        && is_plain(name)
                        && serde_json::from_str::<Value>(function["arguments"].as_str().unwrap())
                            .is_ok()
                };
                (says || !calls.is_empty()) && calls.iter().all(is_call)
            }
            "user" => match message["content"].as_array() {
                Some(parts) => {
                    let is_part = |part: &Value| match part["type"].as_str() {
                        Some("text") => !is_blank(&part["text"]),
                        Some("image_url") => !is_blank(&part["image_url"]["url"]),
                        _ => false,
                    };
                    !parts.is_empty() && parts.iter().all(is_part)
                }
                None => !is_blank(&message["content"]),
            },
            "system" => !is_blank(&message["content"]),
            _ => false,
        };
        if !is_fine {
            let shown: String = message.to_string().chars().take(200).collect();
            return Some(format!("message {at} may not be {shown}"));
        }
        steps.push(match role.as_str() {
            "tool" => Step::Results(vec![word(&message["tool_call_id"])]),
            "assistant" if !calls.is_empty() => {
                Step::Calls(calls.iter().map(|call| word(&call["id"])).collect())
            }
            _ => Step::Other,
        });
        before = role;
    }
    pairs(&steps)
}

fn gemini(request: &Value) -> Option<String> {
    let contents = request["contents"].as_array().unwrap();
    let mut called: Vec<Value> = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let expected = if at % 2 == 0 { "user" } else { "model" };
        let parts = content["parts"].as_array().unwrap();
        if content["role"] != expected || parts.is_empty() {
            return Some(format!("content {at} is empty, or not the {expected}'s"));
        }
        for part in parts {
            let is_fine = match expected {
                _ if part.get("text").is_some() => !is_blank(&part["text"]),
                "model" => {
                    part["functionCall"]["args"].is_object()
                        && is_plain(part["functionCall"]["name"].as_str().unwrap())
                }
                _ if part.get("functionResponse").is_some() => {
                    part["functionResponse"]["response"].is_object()
                }
                _ => part["inlineData"].is_object() || part["fileData"].is_object(),
            };
            if !is_fine {
                return Some(format!("content {at} may not hold {part}"));
            }
        }
        let named = |key: &str| -> Vec<Value> {
            let found = parts.iter().filter_map(|part| part.get(key));
            found.map(|call| serde_json::json!([call["id"], call["name"]])).collect()
        };
        if expected == "user" {
            let mut answered = named("functionResponse");
            answered.sort_by_key(Value::to_string);
            called.sort_by_key(Value::to_string);
            if answered != called {
                return Some(format!("content {at} answers {answered:?}, not {called:?}"));
            }
            called.clear();
        } else {
            called = named("functionCall");
        }
    }
    (!called.is_empty()).then(|| format!("a call without its result at the end: {called:?}"))
}

pub(crate) fn plan(shape: Shape, limits: Limits) -> Plan {
    let hygiene = Hygiene { shape, images: true, maker: Some(Shape::Anthropic) };
    Plan {
        hygiene,
        limits,
        counting: Counting::Estimate,
        measure: Measure::default(),
        in_place: None,
    }
}

/// Prepares a request and holds it against the rules, the limits, its own report, and itself prepared again.
#[track_caller]
fn checked(items: &[Item], shape: Shape, limits: Limits) -> Prepared {
    let plan = plan(shape, limits);
    let prepared = context::prepare(items.to_vec(), &plan, None);
    let request = context::request(&prepared.items, shape);
    let request: Value = serde_json::from_str(&told(&request)).unwrap();
    if let Some(broken) = broken_rule(&request, shape) {
        panic!("{shape:?}: {broken}\n{items:#?}\n{:#?}", prepared.items);
    }
    let strict = context::prepare(
        items.to_vec(),
        &Plan { in_place: Some(["missing", "interrupted"]), ..plan },
        None,
    );
    let request = context::request(&strict.items, shape);
    let request: Value = serde_json::from_str(&told(&request)).unwrap();
    assert_eq!(broken_rule(&request, shape), None, "{shape:?}, in place\n{items:#?}");
    if !prepared.limited.exceeds {
        assert!(
            limits.messages.is_none_or(|most| prepared.items.len() <= most),
            "{shape:?} {limits:?} {}",
            prepared.items.len()
        );
        assert!(limits.tokens.is_none_or(|most| prepared.tokens() <= most), "{shape:?} {limits:?}");
    }
    let turns = prepared.items.iter().filter(|item| item.begins_turn).count();
    assert!(limits.turns.is_none_or(|most| turns <= most.max(1)), "{shape:?} {limits:?} {turns}");
    let synthetic = |items: &[Item]| -> usize {
        items
            .iter()
            .map(|item| item.message().parts().filter(|block| is_missing(block)).count())
            .sum()
    };
    let had = synthetic(items) as u64;
    assert!((synthetic(&prepared.items) as u64).saturating_sub(had) <= prepared.repaired.added);
    let counted = |act, why: &str| {
        let is = |change: &&Change| {
            change.step == context::Step::Pairs && change.act == act && change.why.contains(why)
        };
        prepared.changes.iter().filter(is).count() as u64
    };
    assert_eq!(counted(Act::Added, ""), prepared.repaired.added);
    assert_eq!(counted(Act::Moved, ""), prepared.repaired.moved);
    assert_eq!(counted(Act::Dropped, "another result"), prepared.repaired.duplicates);
    assert_eq!(counted(Act::Dropped, "not in the context"), prepared.repaired.orphans);
    // What was counted is what counting again gives.
    for item in &prepared.items {
        assert_eq!(item.tokens, Some(plan.counting.message(&item.message())));
    }
    let again = context::prepare(prepared.items.clone(), &plan, None);
    assert_eq!(again.items, prepared.items, "{shape:?} {limits:?}");
    assert_eq!(again.changes.iter().find(|change| change.act != Act::Merged), None, "{shape:?}");
    assert_eq!(again.repaired, context::pairing::Repaired::default());
    prepared
}

fn is_missing(block: &Block) -> bool {
    matches!(block, Block::Result { error: true, .. })
        && block.answer_text().starts_with("[undertext: the result")
}

fn check_all(items: &[Item]) -> Vec<Prepared> {
    Shape::ALL.into_iter().map(|shape| checked(items, shape, Limits::default())).collect()
}

fn text(words: &str) -> Block {
    Block::Text(words.to_owned())
}

fn call(id: &str) -> Block {
    Block::Call {
        id: id.into(),
        name: "read".into(),
        input: r#"{"n":12345678901234567890123}"#.into(),
        signature: None,
    }
}

fn result(id: &str, words: &str) -> Block {
    Block::answer(id.into(), words.into())
}

/// Makes items of messages, each an entry; those of the user begin turns.
fn items(messages: impl IntoIterator<Item = Message>) -> Vec<Item> {
    let items = messages.into_iter().zip(1..).map(|(message, entry)| {
        let mut item = Item::said(message, number(entry));
        item.begins_turn = item.role() == Role::User && !item.is_summary();
        item
    });
    items.collect()
}

fn user(words: &str) -> Message {
    Message::new(Role::User, vec![text(words)])
}

fn model(blocks: Vec<Block>) -> Message {
    Message::new(Role::Assistant, blocks)
}

fn tool(id: &str, words: &str) -> Message {
    Message::new(Role::Tool, vec![result(id, words)])
}

/// Returns what is sent, a word for each block.
fn shown(prepared: &Prepared) -> Vec<String> {
    let show = |block: &Block| match block {
        Block::Text(text) => text.clone(),
        Block::Thinking(_) => "thinking".to_owned(),
        Block::Call { id, .. } => format!("call:{id}"),
        Block::Result { id, .. } if is_missing(block) => format!("missing:{id}"),
        Block::Result { id, .. } => format!("result:{id}={}", block.answer_text()),
        Block::Image(_) => "image".to_owned(),
        Block::Other { name, .. } => format!("[{name}]"),
    };
    let items = prepared.items.iter();
    items
        .map(|item| {
            let blocks: Vec<String> = item.message().blocks.iter().map(show).collect();
            format!("{} {}", item.role().as_str(), blocks.join(" "))
        })
        .collect()
}

#[test]
fn pairs_are_repaired_as_the_owners_of_results_demand() {
    let check = |messages: Vec<Message>, expected: &[&str], figures: [u64; 4]| {
        let prepared = checked(&items(messages), Shape::Messages, Limits::default());
        assert_eq!(shown(&prepared), expected);
        let context::pairing::Repaired { added, duplicates, orphans, moved } = prepared.repaired;
        assert_eq!([added, duplicates, orphans, moved], figures, "{expected:?}");
    };
    let two = || model(vec![call("a"), call("b")]);
    check(
        vec![user("q"), two(), tool("a", "1"), tool("b", "2")],
        &["user q", "assistant call:a call:b", "tool result:a=1", "tool result:b=2"],
        [0, 0, 0, 0],
    );
    // In the order of their calls, each right behind the message.
    check(
        vec![user("q"), two(), tool("b", "2"), tool("a", "1"), user("r")],
        &["user q", "assistant call:a call:b", "tool result:a=1", "tool result:b=2", "user r"],
        [0, 0, 0, 1],
    );
    check(
        vec![user("q"), two(), user("wait"), tool("a", "1"), tool("x", "?"), tool("a", "again")],
        &["user q", "assistant call:a call:b", "tool result:a=1", "tool missing:b", "user wait"],
        [1, 1, 1, 1],
    );
    // One id, called for twice: each gets its own, and the second another name.
    check(
        vec![user("q"), model(vec![call("a")]), user("r"), model(vec![call("a")]), tool("a", "2")],
        &[
            "user q",
            "assistant call:a",
            "tool missing:a",
            "user r",
            "assistant call:a_2",
            "tool result:a_2=2",
        ],
        [1, 0, 0, 0],
    );
    check(
        vec![
            user("q"),
            model(vec![call("a")]),
            tool("a", "1"),
            user("r"),
            model(vec![call("a")]),
            tool("a", "2"),
        ],
        &[
            "user q",
            "assistant call:a",
            "tool result:a=1",
            "user r",
            "assistant call:a_2",
            "tool result:a_2=2",
        ],
        [0, 0, 0, 0],
    );
    // A late real result takes the place of a synthetic one.
    let mut synthetic = tool("a", "x");
    synthetic.blocks = vec![Block::failure(
        "a".into(),
        "[openclaw] missing tool result in session history; inserted synthetic error result for transcript repair.".into())];
    check(
        vec![
            user("q"),
            model(vec![call("a")]),
            synthetic,
            user("r"),
            model(vec![text("on")]),
            tool("a", "late"),
        ],
        &["user q", "assistant call:a", "tool result:a=late", "user r", "assistant on"],
        [0, 1, 0, 1],
    );
    // A result before its call.
    check(
        vec![user("q"), tool("a", "early"), model(vec![call("a")])],
        &["user q", "assistant call:a", "tool result:a=early"],
        [0, 0, 0, 1],
    );
}

#[test]
fn a_message_that_was_broken_off_keeps_real_results_and_loses_open_calls() {
    let broken = |blocks| Message { stop: Some(Stop::Aborted), ..model(blocks) };
    let check = |messages: Vec<Message>, expected: &[&str]| {
        let prepared = checked(&items(messages), Shape::Messages, Limits::default());
        assert_eq!(shown(&prepared), expected);
    };
    check(
        vec![user("q"), broken(vec![text("I"), call("a"), call("b")]), tool("b", "2"), user("r")],
        &["user q", "assistant I call:b", "tool result:b=2", "user r"],
    );
    check(vec![user("q"), broken(vec![call("a")]), user("r")], &["user q", "user r"]);
    check(vec![user("q"), broken(vec![]), user("r")], &["user q", "user r"]);
    let thought = Block::Thinking(Thinking {
        text: "hm".into(),
        signature: Some("s".into()),
        ..Thinking::default()
    });
    check(vec![user("q"), broken(vec![thought, call("a")]), user("r")], &["user q", "user r"]);
}

#[test]
fn records_of_one_message_are_one_and_string_content_is_never_lost() {
    let part = |blocks| Message { id: Some("m".into()), ..model(blocks) };
    let messages = vec![
        user("one"),
        user("two"),
        part(vec![text("I look.")]),
        part(vec![call("a")]),
        tool("a", "1"),
        part(vec![call("b")]),
        tool("b", "2"),
        user("three"),
    ];
    let prepared = checked(&items(messages.clone()), Shape::Anthropic, Limits::default());
    assert_eq!(
        shown(&prepared),
        ["user one two", "assistant I look. call:a call:b", "user result:a=1 result:b=2 three"]
    );
    assert_eq!(prepared.items[0].origin, Origin::Merged);
    assert_eq!(*prepared.items[1].entries, [3, 4, 6]);
    let prepared = checked(&items(messages), Shape::Openai, Limits::default());
    assert_eq!(
        shown(&prepared),
        [
            "user one two",
            "assistant I look. call:a call:b",
            "tool result:a=1",
            "tool result:b=2",
            "user three"
        ]
    );
}

#[test]
fn the_first_message_is_the_users_where_a_provider_wants_it() {
    let messages =
        || vec![Message::new(Role::System, vec![text("rules")]), model(vec![text("hi")])];
    let of = |shape| shown(&checked(&items(messages()), shape, Limits::default()));
    let with = ["system rules", "user [undertext: the session goes on from here]", "assistant hi"];
    assert_eq!(of(Shape::Anthropic), with);
    assert_eq!(of(Shape::Gemini), with);
    assert_eq!(of(Shape::Openai), ["system rules", "assistant hi"]);
}

#[test]
fn reasoning_goes_back_only_to_who_made_it() {
    let check = |sent_as, signature: Option<&str>, kept: &[Shape]| {
        let signature = signature.map(str::to_owned);
        let thought = Thinking { text: "hm".into(), signature, is_redacted: false, sent_as };
        let message = Message {
            model: Some("any-model".to_owned()),
            ..model(vec![Block::Thinking(thought), text("a")])
        };
        for shape in Shape::ALL {
            let found = checked(&items([user("q"), message.clone()]), shape, Limits::default());
            let is_kept = shape == Shape::Messages || kept.contains(&shape);
            let expected = if is_kept { "assistant thinking a" } else { "assistant a" };
            assert_eq!(shown(&found)[1], expected, "{sent_as:?} {shape:?}");
        }
    };
    check(SentAs::Block, Some("s"), &[Shape::Anthropic]);
    check(SentAs::Block, None, &[]);
    check(SentAs::Content, None, &[Shape::Openai]);
    check(SentAs::Plain, None, &[Shape::Openai]);
    check(SentAs::Details, Some("[]"), &[Shape::Openai]);
    check(SentAs::Item, Some("{}"), &[Shape::Openai]);
    // What an agent that only speaks with OpenAI's models calls a signature is none for Anthropic.
    let thought =
        Thinking { text: "hm".into(), signature: Some("s".into()), ..Thinking::default() };
    let said = model(vec![Block::Thinking(thought), text("a")]);
    let mut plan = plan(Shape::Anthropic, Limits::default());
    plan.hygiene.maker = Some(Shape::Openai);
    assert_eq!(shown(&context::prepare(items([user("q"), said]), &plan, None))[1], "assistant a");
}

#[test]
fn reasoning_is_in_the_fields_of_chat_completions_and_an_unsigned_call_has_a_stand_in_for_gemini() {
    let thought = |sent_as, signature: Option<&str>| {
        let signature = signature.map(str::to_owned);
        let (text, is_redacted) = ("hm".to_owned(), false);
        Block::Thinking(Thinking { text, signature, is_redacted, sent_as })
    };
    let details = r#"[{"type":"reasoning.text","text":"hm"}]"#;
    let said = [
        user("q"),
        model(vec![thought(SentAs::Content, None), call("a"), call("b")]),
        tool("a", "1"),
        tool("b", "2"),
        model(vec![thought(SentAs::Details, Some(details)), text("x")]),
        user("r"),
        model(vec![thought(SentAs::Plain, None), text("y")]),
    ];
    let asked = |shape| {
        let found = checked(&items(said.clone()), shape, Limits::default());
        serde_json::to_value(context::request(&found.items, shape)).unwrap()
    };
    let openai = asked(Shape::Openai);
    assert_eq!(openai["messages"][1]["reasoning_content"], "hm");
    assert_eq!(openai["messages"][4]["reasoning_details"].to_string(), details);
    // A text without calls needs no reasoning, and some providers refuse it there.
    assert_eq!(openai["messages"][6].get("reasoning"), None);
    let gemini = asked(Shape::Gemini);
    let parts = &gemini["contents"][1]["parts"];
    assert_eq!(parts[0]["thoughtSignature"], "skip_thought_signature_validator");
    assert_eq!(parts[1].get("thoughtSignature"), None);
}

#[test]
fn pictures_are_sent_unless_they_are_not_wanted_or_not_there() {
    let picture = |source| Block::Image(Image { bytes: 100, media: None, source });
    let messages = || {
        vec![Message::new(
            Role::User,
            vec![picture(Source::Data("aGk=".into())), picture(Source::Elsewhere)],
        )]
    };
    for shape in Shape::ALL {
        let prepared = checked(&items(messages()), shape, Limits::default());
        assert_eq!(shown(&prepared), ["user image [a picture that is not in the session]"]);
        assert_eq!(context::sanitize::pictures(&prepared.items), (1, 100));
        let mut plan = plan(shape, Limits::default());
        plan.hygiene.images = false;
        let without = context::prepare(items(messages()), &plan, None);
        assert_eq!(context::sanitize::pictures(&without.items), (0, 0));
        assert_eq!(without.changes[0].act, Act::Cut);
    }
}

#[test]
fn what_a_providers_interface_refuses_is_sent_in_words() {
    let picture = |media: &str, source| {
        Block::Image(Image { bytes: 100, media: Some(media.to_owned()), source })
    };
    let data = |data: &str| Source::Data(data.to_owned());
    let address = |url: &str| Source::Url(url.to_owned());
    let result = |id: &str, error| {
        let blocks = vec![text("boom"), picture("image/png", data("aGk="))];
        let block = Block::Result { id: id.to_owned(), name: None, blocks, error };
        Message::new(Role::Tool, vec![block])
    };
    let input = r#"{"a":"\ud83d","n":1e999,"b":"\ud83d\ude00"}"#.to_owned();
    let call = |id: &str| Block::Call {
        id: id.to_owned(),
        name: "t".to_owned(),
        input: input.clone(),
        signature: None,
    };
    let said = [
        Message::new(
            Role::User,
            vec![
                picture("image/svg+xml", data("aGk=")),
                picture("image/png", data("data:image/png;base64,aGk=")),
                picture("image/png", data("not base64!")),
                picture("image/png", address("[REDACTED_IMAGE_URL]")),
                picture("image/png", address("https://a.b/c.png")),
            ],
        ),
        model(vec![call("a"), call("b")]),
        result("a", true),
        result("b", false),
    ];
    let prepared = checked(&items(said), Shape::Anthropic, Limits::default());
    assert_eq!(
        shown(&prepared),
        [
            "user [a picture of the kind image/svg+xml] image [a picture whose bytes cannot be read] \
             [a picture at [REDACTED_IMAGE_URL]] image",
            "assistant call:a call:b",
            "tool result:a=boom\n[a picture] result:b=boom",
        ]
    );
    let sent = told(&context::request(&prepared.items, Shape::Anthropic));
    assert!(sent.contains(r#""input":{"a":"\ufffd","n":"1e999","b":"\ud83d\ude00"}"#), "{sent}");
    assert!(!sent.contains("data:image"), "{sent}");
    // The picture of the tool that did not fail stays.
    assert_eq!(sent.matches(r#""data":"aGk=""#).count(), 2, "{sent}");
}

#[test]
fn what_an_agent_sends_stands_as_it_is_whatever_a_provider_would_take() {
    let id = "toolu.".repeat(12);
    let source = Source::Data("aGk=".into());
    let picture = Block::Image(Image { bytes: 100, media: None, source });
    let name = format!("mcp.{}", "tool".repeat(20));
    let (input, blocks) = ("[1]".to_owned(), vec![text("seen"), picture]);
    let said = [
        user("q"),
        model(vec![Block::Call { id: id.clone(), name, input, signature: None }]),
        Message::new(Role::Tool, vec![Block::Result { id, name: None, blocks, error: false }]),
    ];
    for in_place in [Some(["missing", "interrupted"]), None] {
        let plan = Plan { in_place, ..plan(Shape::Agent, Limits::default()) };
        let prepared = context::prepare(items(said.clone()), &plan, None);
        let sent: Vec<Message> =
            prepared.items.iter().map(|item| item.message().into_owned()).collect();
        assert_eq!(sent, said, "{:?}", prepared.changes);
    }
}

#[test]
fn arguments_are_sent_digit_for_digit() {
    let prepared =
        checked(&items([user("q"), model(vec![call("a")])]), Shape::Anthropic, Limits::default());
    let request = context::request(&prepared.items, Shape::Anthropic);
    assert!(told(&request).contains(r#""input":{"n":12345678901234567890123}"#));
}

#[test]
fn what_nobody_expects_is_prepared_all_the_same() {
    let nothing: Vec<Message> = Vec::new();
    for prepared in check_all(&items(nothing)) {
        assert_eq!(prepared.items, []);
    }
    // Only results: nobody called for them.
    for prepared in check_all(&items((0..10).map(|n| tool(&format!("c{n}"), "r")))) {
        assert_eq!(prepared.items, []);
        assert_eq!(prepared.repaired.orphans, 10);
    }
    for prepared in check_all(&items([Message::new(Role::System, vec![text("rules")])])) {
        assert_eq!(shown(&prepared), ["system rules"]);
    }
    // Ten thousand results of one call.
    let many =
        [user("q"), model(vec![call("a")])].into_iter().chain((0..10_000).map(|_| tool("a", "r")));
    for prepared in check_all(&items(many)) {
        assert_eq!(prepared.repaired.duplicates, 9_999);
    }
    // Ten thousand calls of one id.
    let many = (0..10_000).flat_map(|_| [model(vec![call("a")]), tool("a", "r")]);
    check_all(&items([user("q")].into_iter().chain(many)));
    // Ids of a megabyte that differ in their last letter.
    let long = |end: &str| "é".repeat(500_000) + end;
    let messages = [
        user("q"),
        model(vec![call(&long("a")), call(&long("b"))]),
        tool(&long("b"), "2"),
        tool(&long("a"), "1"),
    ];
    for prepared in check_all(&items(messages)) {
        assert_eq!(prepared.repaired.added, 0);
    }
    let other = Block::Other { name: "hologram".into(), json: r#"{"type":"hologram"}"#.into() };
    let messages = || [Message::new(Role::User, vec![text("q"), other.clone()])];
    assert_eq!(
        shown(&checked(&items(messages()), Shape::Messages, Limits::default())),
        ["user q [hologram]"]
    );
    assert_eq!(
        shown(&checked(&items(messages()), Shape::Anthropic, Limits::default())),
        ["user q"]
    );
}

/// Turns with tools, of which some results are missing, double or late.
fn long(turns: usize) -> Vec<Item> {
    let messages = (0..i64::try_from(turns).unwrap()).flat_map(|n| {
        let (a, b) = (format!("a{n}"), format!("b{n}"));
        let mut said = vec![
            Message { time: Some(Timestamp(n * 1000)), ..user(&format!("question {n}")) },
            model(vec![text("I look."), call(&a), call(&b)]),
            tool(&a, "found"),
        ];
        if n % 3 > 0 {
            said.push(tool(&b, "found too"));
        }
        if n % 5 == 0 {
            said.push(tool(&a, "again"));
        }
        said.push(model(vec![text("Done.")]));
        said
    });
    let summary = Message { is_summary: true, ..user("what was before") };
    items([Message::new(Role::System, vec![text("rules")]), summary].into_iter().chain(messages))
}

#[test]
fn long_sessions_have_at_most_what_was_asked_for() {
    for turns in [100, 10_000] {
        let items = long(turns);
        let newest = i64::try_from(turns).unwrap() * 1000;
        for shape in Shape::ALL {
            for limits in [
                Limits { turns: Some(7), ..Limits::default() },
                Limits { messages: Some(50), ..Limits::default() },
                Limits { tokens: Some(1_000), ..Limits::default() },
                Limits { since: Some(Timestamp(newest - 9_000)), ..Limits::default() },
                Limits {
                    turns: Some(30),
                    messages: Some(40),
                    tokens: Some(2_000),
                    since: Some(Timestamp(5)),
                },
            ] {
                let prepared = checked(&items, shape, limits);
                let Prepared { items, limited, .. } = &prepared;
                let is_less = !limited.exceeds && limited.kept > 0 && limited.kept < turns;
                assert!(is_less, "{shape:?} {limits:?} {limited:?}");
                assert!(items.iter().any(Item::is_summary), "the summary stays");
                assert!(items[0].message().text().starts_with("rules"), "the instructions stay");
                if limits.messages == Some(50) && limits.turns.is_none() {
                    assert!(items.len() > 40, "not less than fits: {}", items.len());
                }
            }
        }
    }
}

/// Asks for the context of a session as it stands.
fn asked(shape: Shape) -> Asked {
    Asked {
        shape,
        model: None,
        window: None,
        windows: Windows { block: 0, ..Windows::default() },
        limits: Limits::default(),
        results: None,
        images: true,
        counting: Some(Counting::Estimate),
    }
}

/// Asks for the context of a session with exact counts.
pub(crate) fn asked_exactly() -> Asked {
    Asked { counting: None, ..asked(Shape::Messages) }
}

#[test]
fn every_real_session_becomes_a_request_that_a_provider_takes() {
    let Some(corpus) = needs::corpus() else { return };
    let mut n_sessions = 0;
    for path in corpus.files("") {
        if !path.extension().is_some_and(|extension| extension == "jsonl" || extension == "zst") {
            continue;
        }
        let Some((archive, session)) = peek(&path) else { continue };
        n_sessions += 1;
        for shape in Shape::ALL {
            let mut asked = asked(shape);
            for limits in [Limits::default(), Limits { turns: Some(2), ..Limits::default() }] {
                asked.limits = limits;
                let found = verbs::context(&archive.at(&session).unwrap(), None, &asked).unwrap();
                let request = context::request(&found.prepared.items, shape);
                let request: Value = serde_json::from_str(&told(&request)).unwrap();
                let broken = broken_rule(&request, shape);
                assert_eq!(broken, None, "{} {shape:?}", path.display());
                let again =
                    context::prepare(found.prepared.items.clone(), &plan(shape, limits), None);
                let figures = again.repaired;
                assert_eq!(figures, context::pairing::Repaired::default(), "{}", path.display());
                assert!(again.items.len() == found.prepared.items.len(), "{}", path.display());
                // Cut to the least, the request has the same messages and is as sound.
                let cut = Asked { results: Some(Bound::of(Limit::of_chars(0))), ..asked.clone() };
                let cut = verbs::context(&archive.at(&session).unwrap(), None, &cut).unwrap();
                assert_eq!(cut.prepared.items.len(), found.prepared.items.len());
                assert!(cut.tokens() <= found.tokens());
                let request = context::request(&cut.prepared.items, shape);
                let request: Value = serde_json::from_str(&told(&request)).unwrap();
                assert_eq!(broken_rule(&request, shape), None, "{} {shape:?}", path.display());
            }
        }
    }
    assert!(n_sessions >= 120, "{n_sessions} sessions");
}

#[test]
fn a_line_is_counted_once_and_what_is_kept_is_what_counting_gives() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = verbs::new(&archive, &Layers::default(), &fixture::workspace()).unwrap().session;
    for n in 0..40 {
        fixture::say(&mut archive, &session, &"a word or two ".repeat(n));
    }
    let asked = asked_exactly();
    let first = verbs::context(&archive.at(&session).unwrap(), None, &asked).unwrap();
    assert_eq!(first.fresh.len(), 40);
    verbs::keep_counts(&archive.at(&session).unwrap(), first.counting, &first.fresh).unwrap();
    let second = verbs::context(&archive.at(&session).unwrap(), None, &asked).unwrap();
    assert_eq!(second.fresh, []);
    assert_eq!(second.prepared, first.prepared);
    assert_eq!(fixture::damage(&archive), [""; 0]);
    // In the tokens of another vocabulary nothing is known yet.
    let other = Asked { model: Some("gpt-4".into()), ..asked };
    assert_eq!(
        verbs::context(&archive.at(&session).unwrap(), None, &other).unwrap().fresh.len(),
        40
    );
}

fn any_block() -> impl Strategy<Value = Block> {
    let id = prop_oneof![Just("a"), Just("b"), Just("c"), Just("functions.x:0"), Just("")];
    let words = prop_oneof![Just(""), Just(" "), Just("words"), Just("more\nwords")];
    let inner = (id.clone(), words.clone(), any::<bool>()).prop_map(|(id, words, error)| {
        let blocks = if words == " " { Vec::new() } else { vec![Block::Text(words.into())] };
        Block::Result { id: id.into(), name: None, blocks, error }
    });
    let input = prop_oneof![Just("{}"), Just(""), Just("[1]"), Just("{"), Just("\"s\"")];
    let name = prop_oneof![Just("read"), Just("mcp.tool/x"), Just("")];
    let signature = prop_oneof![Just(None), Just(Some("s".to_owned()))];
    prop_oneof![
        3 => words.clone().prop_map(text),
        4 => inner,
        4 => (id, name, input).prop_map(|(id, name, input)| Block::Call {
            id: id.into(), name: name.into(), input: input.into(), signature: None
        }),
        1 => (words.clone(), signature, any_form()).prop_map(|(words, signature, sent_as)| Block::Thinking(Thinking {
            text: words.into(), is_redacted: words.is_empty() && signature.is_some(), signature, sent_as
        })),
        1 => Just(Block::Image(Image { bytes: 9, media: None, source: Source::Url("http://x/y".into()) })),
        1 => Just(Block::Other { name: "document".into(), json: r#"{"type":"document"}"#.into() }),
        1 => Just(Block::Other { name: "x".into(), json: r#"{"type":"x"}"#.into() }),
    ]
}

fn any_form() -> impl Strategy<Value = SentAs> {
    use SentAs::{Block, Content, Details, Item, Plain};
    prop::sample::select(&[Block, Content, Plain, Details, Item][..])
}

fn any_items() -> impl Strategy<Value = Vec<Item>> {
    let role = prop_oneof![
        1 => Just(Role::System),
        3 => Just(Role::User),
        5 => Just(Role::Assistant),
        5 => Just(Role::Tool)
    ];
    let stop =
        prop_oneof![4 => Just(None), 1 => Just(Some(Stop::Aborted)), 1 => Just(Some(Stop::Calls))];
    let id = prop_oneof![3 => Just(None), 1 => Just(Some("m".to_owned())), 1 => Just(Some("n".to_owned()))];
    let blocks = prop::collection::vec(any_block(), 0..4);
    let message = (role, blocks, stop, id, 0..9_i64, 0..12).prop_map(
        |(role, blocks, stop, id, time, summary)| {
            let time = (time > 0).then_some(Timestamp(time));
            let is_summary = summary == 0 && role == Role::User;
            Message { stop, id, time, is_summary, ..Message::new(role, blocks) }
        },
    );
    prop::collection::vec(message, 0..24).prop_map(items)
}

proptest! {
    #![proptest_config(Config { cases: 500, failure_persistence: None, ..Config::default() })]

    #[test]
    fn any_messages_become_a_request_that_a_provider_takes(
        items in any_items(),
        turns in prop::option::of(1..5_usize),
        messages in prop::option::of(1..12_usize),
        tokens in prop::option::of(1..200_u64),
        since in prop::option::of((0..9_i64).prop_map(Timestamp)),
    ) {
        for shape in Shape::ALL {
            checked(&items, shape, Limits::default());
            checked(&items, shape, Limits { turns, messages, tokens, since });
        }
    }
}
