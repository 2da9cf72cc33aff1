//! Figures of what a model sees.
//!
//! Sizes: 5,000 messages are more than any window holds; 100 MB is all the text of an agent in months.

use std::{process::Stdio, time::Duration};

use undertext::{
    context::{
        Item,
        pairing::repair,
        tokens::{Counting, Encoding},
    },
    model::{Block, EntryNumber, Message, Role},
    verbs,
    wire::{Draft, Speaker},
};

use crate::{Arguments, begin, compare, folder, open, talks, text, timed, within, within_programs};

/// Messages of turns with two calls each. Some results are missing, duplicated or late.
fn items(messages: usize) -> Vec<Item> {
    let call =
        |id: String| Block::Call { id, name: "read".into(), input: "{}".into(), signature: None };
    let mut items = Vec::with_capacity(messages);
    let mut entry = 0;
    let mut add = |items: &mut Vec<Item>, role, blocks| {
        entry += 1;
        let mut item = Item::said(Message::new(role, blocks), EntryNumber::new(entry));
        item.begins_turn = role == Role::User;
        items.push(item);
    };
    for turn in 0.. {
        let (a, b) = (format!("a{turn}"), format!("b{turn}"));
        let result = |id: &str| vec![Block::answer(id.into(), text(turn, 200))];
        add(&mut items, Role::User, vec![Block::Text(text(turn, 200))]);
        add(&mut items, Role::Assistant, vec![call(a.clone()), call(b.clone())]);
        if turn % 4 > 0 {
            add(&mut items, Role::Tool, result(&b));
        }
        add(&mut items, Role::Tool, result(&a));
        if turn % 5 == 0 {
            add(&mut items, Role::Tool, result(&a));
        }
        if items.len() >= messages {
            items.truncate(messages);
            return items;
        }
    }
    items
}

/// Repairs the pairs of 5,000 messages, more than any window holds.
pub(crate) fn pairs(_: &Arguments) {
    let items = items(5_000);
    within("pairs", Duration::from_millis(5), 15, || {
        let items = items.clone();
        timed(|| {
            let mut changes = Vec::new();
            std::hint::black_box(repair(items, &mut changes));
        })
    });
}

/// Reads 1,000 messages of 1 KB from the store, in a process of its own.
pub(crate) fn context(_: &Arguments) {
    let mut talks = talks(1_000, 1_000);
    within_programs("context", Duration::from_millis(30), 15, |program| {
        let mut command = talks.of(program).command(&["context", "--json", "--as", "anthropic"]);
        command.stdout(Stdio::piped());
        timed(|| assert!(command.output().unwrap().status.success()))
    });
}

/// Number of bytes of text to count.
const COUNTED: usize = 100_000_000;

/// Counts 100 MB in messages of 20 KB: our counting against the crate's own, on as many threads as there are cores.
pub(crate) fn tokens(_: &Arguments) {
    let texts: Vec<String> = (0..COUNTED / 20_000).map(|n| text(n, 20_000)).collect();
    let messages: Vec<Message> = texts
        .iter()
        .map(|text| Message::new(Role::User, vec![Block::Text(text.clone())]))
        .collect();
    let messages: Vec<&Message> = messages.iter().collect();
    let counting = Counting::Exact(Encoding::O200k);
    let vocabulary = tiktoken::get_encoding("o200k_base").unwrap();
    let cores = std::thread::available_parallelism().unwrap().get();
    compare(
        "tokens",
        1.2,
        3,
        ("ours", || timed(|| drop(std::hint::black_box(counting.messages(&messages))))),
        ("the crate", || {
            timed(|| {
                std::thread::scope(|scope| {
                    for part in texts.chunks(texts.len().div_ceil(cores)) {
                        scope.spawn(|| {
                            let count = |text: &String| vocabulary.count(text);
                            std::hint::black_box(part.iter().map(count).sum::<usize>())
                        });
                    }
                });
            })
        }),
    );
}

/// Counts the same text in the store a second time: the stored counts are read.
pub(crate) fn tokens_again(_: &Arguments) {
    let folder = folder();
    let mut archive = open(folder.path());
    let (session, workspace) = begin(&mut archive);
    let said: Vec<Draft> =
        (0..COUNTED / 20_000).map(|n| Draft::Message(Speaker::User, text(n, 20_000))).collect();
    verbs::append(&archive.at(&session).unwrap(), &workspace, &said).unwrap();
    let rule = Encoding::O200k;
    let first = verbs::counts(&archive.at(&session).unwrap(), rule).unwrap();
    assert_eq!(first.len(), said.len());
    verbs::keep_counts(&archive.at(&session).unwrap(), Counting::Exact(rule), &first).unwrap();
    within("tokens-again", Duration::from_millis(50), 15, || {
        timed(|| {
            assert_eq!(
                verbs::counts(&archive.at(&session).unwrap(), rule).unwrap().len(),
                first.len()
            );
        })
    });
}
