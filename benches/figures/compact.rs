//! Figures of compactions and turns.
//!
//! Sizes: 5,000 messages is a week of an agent's work in one session; 1,000 messages fill a large window.

use std::time::Duration;

use undertext::{
    context::{
        Shape,
        event::Event,
        facts::Facts,
        history::Limits,
        model::{ChatModel, ChatRequest, Heard, ModelError},
        plan::Piece,
        tokens::Counting,
        window::Windows,
    },
    model::{Block, Message, Role, Timestamp},
    verbs::{self, Archive, Asked, Compacting, Session, Turning, Workspace},
    wire::{Draft, Speaker},
};

use crate::{Arguments, begin, folder, open, talks, text, timed, within, within_programs};

fn talked(archive: &mut Archive, messages: usize) -> (Session, Workspace) {
    let (session, workspace) = begin(archive);
    let roles = [Speaker::User, Speaker::Assistant];
    let said: Vec<Draft> =
        (0..messages).map(|n| Draft::Message(roles[n % 2], text(n, 1000))).collect();
    verbs::append(&archive.at(&session).unwrap(), &workspace, &said).unwrap();
    (session, workspace)
}

fn asked() -> Asked {
    Asked {
        shape: Shape::Messages,
        model: None,
        window: Some(2_000_000),
        windows: Windows::default(),
        limits: Limits::default(),
        images: true,
        results: None,
        counting: Some(Counting::Estimate),
    }
}

fn clock() -> Timestamp {
    Timestamp(0)
}

/// The extract compacts 5,000 messages of 1 KB in a process of its own, and `undo` reverts that.
pub(crate) fn extract(_: &Arguments) {
    let mut talks = talks(5_000, 1_000);
    within_programs("compact", Duration::from_millis(500), 9, |program| {
        let made = talks.of(program);
        let took = made.run(&["compact"]);
        made.run(&["undo"]);
        took
    });
}

/// A model that immediately gives the same answer.
struct Ready;

impl ChatModel for Ready {
    fn name(&self) -> &'static str {
        "ready"
    }

    fn answer(
        &self,
        _: &ChatRequest<'_>,
        _: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Message, ModelError> {
        Ok(Message::new(Role::Assistant, vec![Block::Text("Done.".to_owned())]))
    }
}

/// The cost of compacting 5,000 messages apart from the summary: the plan, the records, the check and the commit.
pub(crate) fn store(_: &Arguments) {
    let folder = folder();
    let mut archive = open(folder.path());
    let (session, workspace) = talked(&mut archive, 5_000);
    let asked = asked();
    let wanted = Compacting::of(&asked, &clock);
    within("compact-store", Duration::from_millis(50), 9, || {
        // The time from the end of the summary to the end of the command.
        let ended = std::cell::Cell::new(None);
        let mut emit = |event: &Event| {
            if matches!(event, Event::CompactionEnd { .. }) {
                ended.set(Some(std::time::Instant::now()));
            }
        };
        verbs::compact(&archive.at(&session).unwrap(), &workspace, &wanted, &mut emit).unwrap();
        let time = ended.get().unwrap().elapsed();
        verbs::undo(&archive.at(&session).unwrap(), None).unwrap();
        time
    });
}

/// Checks what a summary of 5,000 messages lost. Each message names a path, a command, a number and a function.
pub(crate) fn check(_: &Arguments) {
    let message = |n: usize| {
        let said = format!("{} see /w/src/part_{n}.rs:{n}, run_{n}() and port {n}", text(n, 900));
        let input = format!(r#"{{"command":"cargo test --test part_{n}"}}"#);
        let (id, name) = (format!("c{n}"), "Bash".to_owned());
        let call = Block::Call { id, name, input, signature: None };
        Message::new([Role::User, Role::Assistant][n % 2], vec![Block::Text(said), call])
    };
    let messages: Vec<Message> = (0..5_000).map(message).collect();
    let piece = |message| Piece {
        message,
        tokens: 300,
        is_kept: false,
        is_request: message.role == Role::User,
    };
    let pieces: Vec<Piece<'_>> = messages.iter().map(piece).collect();
    let pieces: Vec<&Piece<'_>> = pieces.iter().collect();
    let summary: String = "cargo test of /w/src/part_1.rs, port 1000. ".repeat(200);
    within("compact-check", Duration::from_millis(20), 9, || {
        timed(|| assert_eq!(Facts::of(&pieces).check(&summary).losses().len(), 5))
    });
}

/// A turn in a context of 1,000 messages, with a model that answers immediately.
pub(crate) fn turn(_: &Arguments) {
    let folder = folder();
    let mut archive = open(folder.path());
    let (session, workspace) = talked(&mut archive, 1_000);
    let asked = asked();
    within("turn", Duration::from_millis(50), 9, || {
        let turning = Turning::of(Compacting::of(&asked, &clock), &Ready, 1_000);
        timed(|| {
            verbs::turn(
                &archive.at(&session).unwrap(),
                &workspace,
                Some("Well?"),
                &turning,
                &mut |_| (),
            )
            .unwrap();
        })
    });
}
