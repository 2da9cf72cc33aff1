//! What compactions keep: 200 facts are planted in a conversation, which is compacted once, three and ten times in a window of
//! 32,000 tokens. A fact is kept if the context still has it word for word.
//!
//! `facts.toml` has the facts: 20 wordings of each of four kinds. Between two compactions an agent works until the next is due;
//! that work names files, numbers and requests of its own, which compete with the planted facts.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::Deserialize;
use serde_json::json;
use undertext::{
    context::{
        Shape,
        compact::Writer,
        history::Limits,
        model::{ModelError, Summarizer, SummaryRequest, Written},
        plan::Keep,
        tokens::Counting,
        window::Windows,
    },
    model::{Stop, Timestamp},
    verbs::{self, Archive, Asked, Compacting, Session, Workspace},
    wire::{Draft, Speaker},
};

use crate::{Arguments, begin, folder, open, text};

const WINDOW: u64 = 32_000;
/// After how many compactions the facts are counted.
const ROUNDS: [usize; 3] = [1, 3, 10];

#[derive(Deserialize)]
struct File {
    wording: Vec<Wording>,
}

#[derive(Deserialize)]
struct Wording {
    kind: String,
    role: String,
    tool: Option<String>,
    text: String,
    facts: Vec<String>,
    later: Option<String>,
}

/// Returns the facts, each with its kind, and the conversation that has them.
fn planted() -> (Vec<(String, String)>, Vec<Draft>) {
    let file: File = toml::from_str(include_str!("facts.toml")).unwrap();
    let mut all: Vec<(&Wording, &String)> =
        file.wording.iter().flat_map(|of| of.facts.iter().map(move |fact| (of, fact))).collect();
    // In an order that keeps wordings apart.
    let n = all.len();
    all = (0..n).map(|nth| all[nth * 37 % n]).collect();
    let (mut facts, mut drafts) = (Vec::new(), Vec::new());
    let mut later: Vec<(usize, Draft)> = Vec::new();
    for (nth, (wording, fact)) in all.into_iter().enumerate() {
        facts.push((wording.kind.clone(), fact.clone()));
        let said = wording.text.trim().replace("{fact}", fact);
        match (&*wording.role, wording.tool.clone()) {
            ("user", _) => drafts.push(Draft::Message(Speaker::User, said)),
            ("assistant", _) => drafts.push(Draft::Message(Speaker::Assistant, said)),
            ("call", Some(tool)) => drafts.extend(called(nth, &tool, said, "Done.".to_owned())),
            (_, tool) => {
                let input = json!({"command": "make check", "file_path": "notes.md"}).to_string();
                drafts.extend(called(nth, &tool.unwrap_or_default(), input, said));
            }
        }
        let speaker = if nth % 2 == 0 { Speaker::Assistant } else { Speaker::User };
        let again = wording.later.as_ref().map(|text| text.replace("{fact}", fact));
        later.extend(again.map(|text| (nth + 4, Draft::Message(speaker, text))));
        let (due, rest) = later.into_iter().partition(|(at, _)| *at <= nth);
        drafts.extend(Vec::into_iter(due).map(|(_, draft)| draft));
        later = rest;
    }
    drafts.extend(later.into_iter().map(|(_, draft)| draft));
    (facts, drafts)
}

fn called(n: usize, tool: &str, input: String, output: String) -> [Draft; 2] {
    let id = format!("call-{tool}-{n}");
    let call = Draft::Call { id: id.clone(), name: tool.to_owned(), input };
    [call, Draft::Result { id, output, error: None }]
}

/// Returns a turn of ordinary work.
fn worked(n: usize) -> Vec<Draft> {
    const ASKED: [&str; 6] = [
        "Go on.",
        "And the next one, please.",
        "Why does that test fail?",
        "Please clean up the module that you just changed.",
        "Can you explain what this does before you change it?",
        "Good. Now the same for the other parser.",
    ];
    let path = format!("/home/dev/app/src/part_{}/file_{n}.rs", n % 9);
    let mut drafts = vec![Draft::Message(Speaker::User, ASKED[n % ASKED.len()].to_owned())];
    drafts.push(Draft::Message(
        Speaker::Assistant,
        format!("I'll look at {path} first. {}", text(n, 150)),
    ));
    let read = json!({ "file_path": path }).to_string();
    let code: String = (0..40).fold(String::new(), |mut out, line| {
        let _ = writeln!(out, "{line}\tlet value_{n}_{line} = {};", text(n * 41 + line, 30));
        out
    });
    drafts.extend(called(10_000 + 3 * n, "Read", read, code));
    let edit = json!({"file_path": path, "old_string": text(n, 60), "new_string": text(n + 1, 60)});
    drafts.extend(called(
        10_001 + 3 * n,
        "Edit",
        edit.to_string(),
        "The file was changed.".to_owned(),
    ));
    let run = json!({"command": format!("cargo test part_{n}")}).to_string();
    let output = format!("running {} tests\ntest result: ok. {}", 100 + n, text(n, 200));
    drafts.extend(called(10_002 + 3 * n, "Bash", run, output));
    drafts.push(Draft::Message(Speaker::Assistant, format!("It passes. {}", text(n + 7, 300))));
    drafts
}

/// A model that always says the same.
struct Says(&'static str, Option<Stop>, String);

impl Summarizer for Says {
    fn name(&self) -> &'static str {
        self.0
    }

    fn summarize(&self, _: &SummaryRequest) -> Result<Written, ModelError> {
        Ok(Written { text: self.2.clone(), stop: self.1, ..Written::default() })
    }
}

/// Returns a summary with all headings that says this under each.
fn headed(text: &str) -> String {
    [
        "Request and intent",
        "Current focus",
        "Errors and fixes",
        "Files modified",
        "Decisions",
        "Pending",
    ]
    .map(|name| format!("## {name}\n{text}\n"))
    .join("\n")
}

fn asked() -> Asked {
    Asked {
        shape: Shape::Agent,
        model: None,
        window: Some(WINDOW),
        windows: Windows::default(),
        limits: Limits::default(),
        images: true,
        results: None,
        counting: Some(Counting::Estimate),
    }
}

/// Returns how many facts of each kind are kept after some compactions, and their number.
fn kept(
    by: Writer<'_>,
    facts: &[(String, String)],
    drafts: &[Draft],
) -> Vec<BTreeMap<String, (usize, usize)>> {
    let folder = folder();
    let mut archive: Archive = open(folder.path());
    let (session, workspace): (Session, Workspace) = begin(&mut archive);
    let (asked, clock) = (asked(), || Timestamp(0));
    let append = |drafts: &[Draft]| {
        verbs::append(&archive.at(&session).unwrap(), &workspace, drafts).unwrap();
    };
    append(drafts);
    let (mut counts, mut n) = (Vec::new(), 0);
    for round in 1..=ROUNDS[2] {
        // Enough after the planted facts that none of them is among the kept messages.
        for _ in 0..if round == 1 { 30 } else { 12 } {
            append(&worked(n));
            n += 1;
        }
        let wanted = Compacting { by, keep: Keep::Last(8), ..Compacting::of(&asked, &clock) };
        verbs::compact(&archive.at(&session).unwrap(), &workspace, &wanted, &mut |_| ()).unwrap();
        if !ROUNDS.contains(&round) {
            continue;
        }
        let context = verbs::context(&archive.at(&session).unwrap(), None, &asked).unwrap();
        let said: String =
            context.prepared.items.iter().map(|item| item.message().text() + "\n").collect();
        let mut kinds: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (kind, fact) in facts {
            let count = kinds.entry(kind.clone()).or_default();
            *count = (count.0 + usize::from(said.contains(fact)), count.1 + 1);
        }
        counts.push(kinds);
    }
    counts
}

/// Prints which share of the facts each writer of summaries keeps.
pub(crate) fn kept_facts(_: &Arguments) {
    let (facts, drafts) = planted();
    let all: Vec<&str> = facts.iter().map(|(_, fact)| &**fact).collect();
    let general = "The user and the assistant worked on the project and made good progress on several parts of it.";
    let says = |name, stop, text: String| Says(name, stop, text);
    let writers = [
        says("refuses", None, "I am sorry, but I cannot help with that request. ".repeat(20)),
        says("is cut off", Some(Stop::Length), headed(general)),
        says("thinks aloud", None, format!("Okay, let me think about what happened. {general}")),
        says("is general", None, headed(general)),
        says("repeats all", None, headed("See below.") + &all.join("\n- ")),
    ];
    let writers = writers.iter().map(|says| (says.0, Writer::Model(says)));
    let limits = [80, 75, 75, 75, 75, 100];
    for ((name, by), limit) in [("extract", Writer::Extract)].into_iter().chain(writers).zip(limits)
    {
        for (kinds, round) in kept(by, &facts, &drafts).iter().zip(ROUNDS) {
            let sum = |of: fn(&(usize, usize)) -> usize| kinds.values().map(of).sum::<usize>();
            let share = sum(|count| count.0) * 100 / sum(|count| count.1);
            let by_kind: Vec<String> =
                kinds.iter().map(|(kind, (kept, of))| format!("{kind} {kept} of {of}")).collect();
            println!(
                "kept             {name:12} after {round:2}: {share:3}% (at least {limit}%); {}",
                by_kind.join(", ")
            );
        }
    }
}
