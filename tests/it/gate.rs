//! A session that several threads of a program use: while one compacts it, the others wait at its gate.

use std::{
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

use undertext::{
    context::compact::Writer,
    context::model::{ModelError, Summarizer, SummaryRequest, Written},
    model::{Message, Timestamp},
    verbs::{self, Archive, Compacting, Handle, Layers, Waited, Workspace},
    wire::Speaker,
};

use crate::{compact::asked, fixture::Seeded};

/// Longer than any test waits, so that a busy machine changes nothing.
const LONG: Duration = Duration::from_secs(600);

/// Says that it was asked, and answers once it is told to.
struct Slow {
    asked: Sender<()>,
    told: Receiver<()>,
}

impl Summarizer for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn summarize(&self, _: &SummaryRequest) -> Result<Written, ModelError> {
        self.asked.send(()).unwrap();
        self.told.recv().unwrap();
        let words = "Everything that was said, in a few words.";
        let text = format!("## Request and intent\n{words}\n## Current focus\n## Errors and fixes");
        Ok(Written { text, ..Written::default() })
    }
}

#[test]
fn threads_wait_for_a_compaction_or_give_up_with_the_conversation_before_it() {
    let archive = Archive::in_memory(Seeded::boxed(1));
    let workspace = Workspace::default();
    let session = verbs::new(&archive, &Layers::default(), &workspace).unwrap().session;
    let mut handle = Handle::new(archive, session, workspace);
    for n in 0..20 {
        let role = if n % 2 == 0 { Speaker::User } else { Speaker::Assistant };
        handle.say(role, &format!("message {n}: {}", "words ".repeat(200))).unwrap();
    }
    let before = handle.messages(100).unwrap();
    let gate = handle.gate();
    let (asked_of, was_asked) = channel();
    let (tell, told) = channel();
    let others = thread::spawn({
        let gate = gate.clone();
        move || {
            was_asked.recv().unwrap();
            // The model is at work: who cannot wait goes on with what was there before, whole and of this session.
            let given_up = gate.wait(Duration::ZERO);
            let patient = thread::spawn({
                let gate = gate.clone();
                move || gate.wait(LONG)
            });
            while gate.n_waiters() == 0 {
                thread::yield_now();
            }
            tell.send(()).unwrap();
            (given_up, patient.join().unwrap())
        }
    });
    let (asked, clock) = (asked(200_000), || Timestamp(0));
    let slow = Slow { asked: asked_of, told };
    let wanted =
        Compacting { by: Writer::Model(&slow), limit: LONG, ..Compacting::of(&asked, &clock) };
    let compacted = handle.compact(&wanted, &mut |_| ()).unwrap();
    assert!(compacted.done.operation.is_some());
    let (given_up, patient) = others.join().unwrap();
    let Waited::GivenUp(snapshot) = given_up else { panic!("{given_up:?}") };
    assert_eq!(snapshot.messages, before);
    assert_eq!(snapshot.session, handle.session().name);
    assert_eq!(patient, Waited::Whole);
    let after: String = handle.messages(100).unwrap().iter().map(Message::text).collect();
    assert!(after.contains("in a few words"), "{after}");
    assert_eq!(gate.wait(Duration::ZERO), Waited::Whole);
}
