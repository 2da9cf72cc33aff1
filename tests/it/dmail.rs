//! Checkpoints that a model sees, and D-Mails to them.

use std::cell::RefCell;

use serde_json::json;
use undertext::{
    context::{
        event::Event,
        model::{ChatModel, ChatRequest, Fault, Heard, ModelError, Tool},
        tokens,
    },
    model::{Block, CheckpointNumber, Kind, Message, OperationNumber, Role, Timestamp},
    verbs::{self, Answer, Archive, Asked, Call, Compacting, Session, Turned, Turning},
};

use crate::{compact::asked, fixture};

fn clock() -> Timestamp {
    Timestamp(0)
}

/// Answers a request, given how many came before it.
type Script<'a> = dyn Fn(&[Message], usize) -> Result<Message, Fault> + 'a;

/// A model whose answers a script decides.
struct Scripted<'a> {
    script: &'a Script<'a>,
    asked: RefCell<Vec<Vec<Message>>>,
}

impl<'a> Scripted<'a> {
    fn new(script: &'a Script<'a>) -> Self {
        Self { script, asked: RefCell::default() }
    }

    /// Returns the estimated size of each request.
    fn sizes(&self) -> Vec<u64> {
        let size = |messages: &Vec<Message>| {
            let blocks = messages.iter().flat_map(|message| &message.blocks);
            blocks.map(|block| tokens::estimate(&text_of(block))).sum()
        };
        self.asked.borrow().iter().map(size).collect()
    }
}

impl ChatModel for Scripted<'_> {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn answer(
        &self,
        request: &ChatRequest<'_>,
        _: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Message, ModelError> {
        let n = self.asked.borrow().len();
        self.asked.borrow_mut().push(request.messages.to_vec());
        let answer = (self.script)(request.messages, n);
        answer.map_err(|fault| ModelError { model: "scripted".to_owned(), fault })
    }
}

fn text_of(block: &Block) -> String {
    match block {
        Block::Text(text) => text.clone(),
        Block::Call { input, .. } => input.clone(),
        block => block.answer_text().into_owned(),
    }
}

fn says(words: &str) -> Message {
    Message::new(Role::Assistant, vec![Block::Text(words.to_owned())])
}

fn calls(id: &str, name: &str, input: &serde_json::Value) -> Message {
    let (id, name, input) = (id.to_owned(), name.to_owned(), input.to_string());
    Message::new(Role::Assistant, vec![Block::Call { id, name, input, signature: None }])
}

fn mail(id: &str, checkpoint: i64, message: &str) -> Message {
    calls(id, "send_dmail", &json!({ "checkpoint": checkpoint, "message": message }))
}

/// Returns the numbers of the checkpoints in a request.
fn checkpoints(messages: &[Message]) -> Vec<i64> {
    let texts = messages.iter().flat_map(|message| &message.blocks).map(text_of);
    let lines = texts.collect::<Vec<_>>().join("\n");
    let numbers = lines.split("<system>CHECKPOINT ").skip(1);
    numbers.map(|rest| rest.split('<').next().unwrap().parse().unwrap()).collect()
}

fn all_text(messages: &[Message]) -> String {
    messages.iter().flat_map(|message| &message.blocks).map(text_of).collect::<Vec<_>>().join("\n")
}

fn read() -> Vec<Tool> {
    let (name, schema) = ("read".to_owned(), r#"{"type":"object"}"#.to_owned());
    vec![Tool { name, schema, ..Tool::default() }]
}

/// Runs a turn with a tool whose results have about 4,000 characters.
fn run(
    archive: &Archive,
    session: &Session,
    asked: &Asked,
    prompt: Option<&str>,
    model: &dyn ChatModel,
) -> Turned {
    run_with(archive, session, asked, prompt, model, &mut |_| ())
}

fn run_with(
    archive: &Archive,
    session: &Session,
    asked: &Asked,
    prompt: Option<&str>,
    model: &dyn ChatModel,
    emit: &mut dyn FnMut(&Event),
) -> Turned {
    let tools = read();
    let answer = |call: &Call| Answer {
        output: format!("{} {}", call.input, "fn main() { todo!() } ".repeat(180)),
        error: None,
    };
    let turning = Turning {
        tools: &tools,
        answer: Some(&answer),
        ..Turning::of(Compacting::of(asked, &clock), model, 1_000)
    };
    verbs::turn(&archive.at(session).unwrap(), &fixture::workspace(), prompt, &turning, emit)
        .unwrap()
}

/// Returns the messages of the current branch.
fn conversation(archive: &Archive, session: &Session) -> Vec<Message> {
    let log = verbs::log(&archive.at(session).unwrap(), None, 1_000).unwrap();
    log.lines.into_iter().flat_map(|line| line.messages).collect()
}

fn kinds(archive: &Archive, session: &Session) -> Vec<Kind> {
    let log = verbs::log(&archive.at(session).unwrap(), None, 1_000).unwrap();
    log.lines.iter().map(|line| line.kind).collect()
}

#[test]
fn a_model_that_goes_back_finishes_with_a_third_of_the_context() {
    let explore = |sends: bool| {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = fixture::open(folder.path(), 1);
        let session = fixture::session(&mut archive);
        let asked = asked(200_000);
        let script = |messages: &[Message], n: usize| {
            let is_back = all_text(messages).contains("The bug is in file 17");
            Ok(match n {
                0..30 => calls(&format!("c{n}"), "read", &json!({ "path": format!("/w/{n}.rs") })),
                30 if sends => mail("d", checkpoints(messages)[0], "The bug is in file 17."),
                31 => {
                    assert!(is_back);
                    says("It is in file 17.")
                }
                _ => says("It is in file 17."),
            })
        };
        let model = Scripted::new(&script);
        let mut events = Vec::new();
        let mut emit = |event: &Event| events.push(event.clone());
        let done = run_with(&archive, &session, &asked, Some("Find the bug."), &model, &mut emit);
        assert_eq!(done.said, "It is in file 17.");
        assert_eq!((done.dmails, done.steps), if sends { (1, 32) } else { (0, 31) });
        let sent = events.iter().filter(|event| matches!(event, Event::DmailSent { .. })).count();
        assert_eq!(sent, done.dmails);
        fixture::assert_sound(&mut archive, &session);
        (done.tokens, *model.sizes().last().unwrap())
    };
    let (with, without) = (explore(true), explore(false));
    assert!(with.0 * 3 < without.0 && with.1 * 3 < without.1, "{with:?} {without:?}");
}

#[test]
fn the_note_of_a_dmail_says_what_happened_and_undo_takes_all_of_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    fixture::say(&mut archive, &session, "An earlier turn.");
    let asked = asked(200_000);
    let script = |messages: &[Message], n: usize| {
        Ok(match n {
            0 => Message::new(
                Role::Assistant,
                [says("I look at a.rs first.").blocks, calls("c1", "read", &json!({})).blocks]
                    .concat(),
            ),
            // Both calls of one answer: the other one gets its result first.
            1 => Message::new(
                Role::Assistant,
                [
                    mail("d1", checkpoints(messages)[0] - 1, "a.rs is not it; try b.rs.").blocks,
                    calls("c2", "read", &json!({})).blocks,
                ]
                .concat(),
            ),
            _ => says("It was b.rs."),
        })
    };
    let model = Scripted::new(&script);
    let done = run(&archive, &session, &asked, Some("Find it."), &model);
    assert_eq!((done.said.as_str(), done.dmails, done.answered), ("It was b.rs.", 1, 2));
    // The checkpoint is the one of the prompt's turn, so the prompt comes again after the note.
    let last = model.asked.borrow().last().unwrap().clone();
    let text = all_text(&last);
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    assert!(place("An earlier turn.") < place("a.rs is not it; try b.rs."));
    assert!(place("a.rs is not it; try b.rs.") < place("Find it."));
    assert_eq!(text.matches("Find it.").count(), 1);
    assert_eq!(text.matches("I look at a.rs first.").count(), 1, "only quoted");
    for words in [
        "at your own request: your call d1 of send_dmail",
        "That is done, so don't send it again",
        "are as they are now",
        r#"The user has already read these answers of yours: "I look at a.rs first.""#,
        "The user's prompt is repeated below.",
        "To read what happened: `undertext log --at ",
    ] {
        place(words);
    }
    // One operation.
    let list = archive.store().operations(session.key, OperationNumber::ALL).unwrap();
    let reverts: Vec<_> = list.iter().filter(|one| one.command.as_str() == "revert").collect();
    assert_eq!(reverts.len(), 1);
    let before = kinds(&archive, &session);
    verbs::undo(&archive.at(&session).unwrap(), Some(reverts[0].n)).unwrap();
    let again = conversation(&archive, &session);
    let text = all_text(&again);
    assert!(
        text.contains("I look at a.rs first.")
            && !text.contains("a.rs is not it; try b.rs.\n\nTake"),
        "{text}"
    );
    assert_ne!(before, kinds(&archive, &session));
    fixture::assert_sound(&mut archive, &session);
}

#[test]
fn a_dmail_that_cannot_be_sent_is_refused_in_words_and_the_loop_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    fixture::say(&mut archive, &session, "One.");
    fixture::say(&mut archive, &session, "Two.");
    // Checkpoint 1 is before the second turn; going back to 0 puts it on another branch.
    verbs::revert(&archive.at(&session).unwrap(), &fixture::workspace(), "1", None).unwrap();
    fixture::say(&mut archive, &session, "Three.");
    let elsewhere = {
        verbs::revert(&archive.at(&session).unwrap(), &fixture::workspace(), "2", None).unwrap();
        fixture::say(&mut archive, &session, "Four.");
        let marked = verbs::checkpoint(&archive.at(&session).unwrap(), None).unwrap();
        verbs::revert(&archive.at(&session).unwrap(), &fixture::workspace(), "1", None).unwrap();
        i64::try_from(marked.checkpoint.get()).unwrap()
    };
    let asked = asked(200_000);
    let script = |messages: &[Message], n: usize| {
        let first = || checkpoints(messages)[0];
        Ok(match n {
            0 => mail("d0", -1, "Back."),
            1 => mail("d1", 99, "Back."),
            2 => mail("d2", elsewhere, "Back."),
            3 => mail("d3", first(), "  "),
            4 => calls("d4", "send_dmail", &json!({ "message": "Back." })),
            5 => Message::new(
                Role::Assistant,
                [mail("d5", first(), "Yes.").blocks, mail("d6", first(), "No.").blocks].concat(),
            ),
            _ => says("Done."),
        })
    };
    let model = Scripted::new(&script);
    let done = run(&archive, &session, &asked, Some("Go."), &model);
    assert_eq!((done.said.as_str(), done.dmails, done.answered), ("Done.", 1, 6));
    let request = model.asked.borrow()[5].clone();
    let results: Vec<String> = request
        .iter()
        .flat_map(|message| &message.blocks)
        .filter(|block| matches!(block, Block::Result { .. }))
        .map(text_of)
        .collect();
    let first = checkpoints(&request)[0];
    for (result, words) in results.iter().zip([
        format!("checkpoint -1 does not exist; you can go back to {first}"),
        format!("checkpoint 99 does not exist; you can go back to {first}"),
        format!("checkpoint {elsewhere} is not in this conversation; you can go back to {first}"),
        "the message is empty".to_owned(),
        "checkpoint must be the number in a CHECKPOINT line".to_owned(),
    ]) {
        assert!(result.contains(&words), "{words}: {result}");
    }
    // The second one of a step is refused, and the first one is carried out.
    let last = all_text(model.asked.borrow().last().unwrap());
    assert!(last.contains("Yes.") && !last.contains("No."), "{last}");
    fixture::assert_sound(&mut archive, &session);
}

#[test]
fn a_checkpoint_is_shown_before_each_request_and_once_if_it_fails() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    let asked = asked(200_000);
    let script = |_: &[Message], n: usize| match n {
        0 => Ok(calls("c0", "read", &json!({}))),
        1 => Err(Fault::Refused { said: "no".to_owned(), status: Some(401) }),
        2 => Ok(calls("c1", "read", &json!({}))),
        _ => Ok(says("Done.")),
    };
    let model = Scripted::new(&script);
    let tools = read();
    let answer = |_: &Call| Answer::default();
    let turning = Turning {
        tools: &tools,
        answer: Some(&answer),
        ..Turning::of(Compacting::of(&asked, &clock), &model, 1_000)
    };
    let turn = |prompt| {
        let workspace = fixture::workspace();
        verbs::turn(&archive.at(&session).unwrap(), &workspace, prompt, &turning, &mut |_| ())
    };
    assert!(turn(Some("Go.")).is_err());
    assert_eq!(turn(None).unwrap().said, "Done.");
    let numbers: Vec<Vec<i64>> =
        model.asked.borrow().iter().map(|asked| checkpoints(asked)).collect();
    let [first, second, again, third] = numbers.as_slice() else { panic!("{numbers:?}") };
    assert_eq!((first.len(), second.len(), again, third.len()), (1, 2, second, 3));
    assert!(third.is_sorted(), "{third:?}");
    // Each is the place just before it: going back there leaves out the line itself.
    let n = CheckpointNumber::new(u64::try_from(third[1]).unwrap());
    verbs::revert(&archive.at(&session).unwrap(), &fixture::workspace(), &n.to_string(), None)
        .unwrap();
    let here = conversation(&archive, &session);
    assert_eq!(checkpoints(&here), [third[0]]);
    // They are steps: only the prompt begins a turn.
    assert_eq!(kinds(&archive, &session).iter().filter(|kind| **kind == Kind::User).count(), 1);
    fixture::assert_sound(&mut archive, &session);
}

#[test]
fn a_dmail_that_is_pending_when_the_program_ends_is_sent_by_the_next_turn() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    let asked = asked(200_000);
    let script = |messages: &[Message], n: usize| {
        Ok(match n {
            0 => mail("d", checkpoints(messages)[0], "I was here."),
            _ => says("Done."),
        })
    };
    let model = Scripted::new(&script);
    let tools = read();
    let answer = |_: &Call| Answer::default();
    let turning = |steps| Turning {
        tools: &tools,
        answer: Some(&answer),
        steps,
        ..Turning::of(Compacting::of(&asked, &clock), &model, 1_000)
    };
    let turn = |prompt, steps| {
        let workspace = fixture::workspace();
        verbs::turn(
            &archive.at(&session).unwrap(),
            &workspace,
            prompt,
            &turning(steps),
            &mut |_| (),
        )
        .unwrap()
    };
    assert_eq!(turn(Some("Go."), 1).pending.len(), 1);
    let done = turn(None, 5);
    assert_eq!((done.said.as_str(), done.dmails), ("Done.", 1));
    assert!(all_text(model.asked.borrow().last().unwrap()).contains("I was here."));
    fixture::assert_sound(&mut archive, &session);
}
