//! The example files: small sessions as the agents write them, with what each can do to a history.

use std::fs;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use undertext::verbs;

use crate::env::TestEnv;
use crate::fixture::{self, Seeded};

const KIMI: &str = "kimi-lighthouse/6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c/context.jsonl";
const FILES: [&str; 6] = [
    "claude-garden.jsonl",
    "codex-weather.jsonl",
    KIMI,
    "native-rewind.jsonl",
    "native-tools.jsonl",
    "pi-boat.jsonl",
];

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

fn with_examples() -> TestEnv {
    let env = TestEnv::new();
    crate::format::copy(&examples(), &env.project());
    env
}

#[test]
fn every_file_is_read_without_a_loss() {
    for name in FILES {
        let path = examples().join(name);
        let (archive, session) = verbs::peek(&path, Seeded::boxed(1)).unwrap();
        assert!(name.starts_with(session.format.name()), "{name}");
        assert!(fixture::exported(&archive, &session, None) == fs::read(&path).unwrap(), "{name}");
        assert!(
            verbs::log(&archive.at(&session).unwrap(), None, usize::MAX).unwrap().lines.len() > 5,
            "{name}"
        );
        assert!(fixture::damage(&archive).is_empty(), "{name}");
    }
}

#[test]
fn every_file_is_counted_as_it_is() {
    let env = with_examples();
    let counted = FILES.map(|name| env.run(&["store", "sizes", name]).success().stdout);
    assert_snapshot!(counted.concat(), @"
    7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40 (claude): 4 turns, 28 entries, 14.2 kB, 1 branch, 4 checkpoints, 1 file state
    019fc000-4d1e-7a30-8b52-6f0e9d8c7b6a (codex): 3 turns, 30 entries, 8.9 kB, 1 branch, 3 checkpoints, 1 file state
    6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c (kimi): 2 turns, 36 entries, 2.9 kB, 1 branch, 7 checkpoints, 2 file states
    4b6f0c9e-5a51-4d0e-9a53-1f0f7e6b2a10 (native): 6 turns, 15 entries, 5.0 kB, 1 branch, 6 checkpoints, 1 file state
    9c2d7f34-11aa-4f6b-8d2e-6a1b0c3d4e5f (native): 2 turns, 12 entries, 4.8 kB, 1 branch, 2 checkpoints, 1 file state
    5d9e0c1a-7b42-4f38-9c60-1a2b3c4d5e6f (pi): 4 turns, 16 entries, 4.5 kB, 1 branch, 4 checkpoints, 1 file state
    ");
    assert!(!env.home().join(".local").exists());
}

#[test]
fn claude_code_rewound_and_compacted() {
    let env = with_examples();
    assert_snapshot!(env.run(&["graph", "claude-garden.jsonl"]), @"
    7c2a51de  Watering the beds                         claude-opus-5 · 20 Aug 2026 09:00–09:02 · 1 file
    ◉  @3  09:02  It rained in the night. Does the plan still hold?                            main
    ◆      09:01  compacted 2k → 210 tokens, 2 things lost
    ○  @2  09:01  The beans flower. A plan for tomorrow is enough.                         1✎
    │ ○  @1  09:01  The beans flower. Write me a plan for the whole week.                      reverted
    ├─╯
    ○  @0  09:00  Which beds need water today? The notes are in beds.md, the rain in rai…  1$
    ");
    assert_snapshot!(env.run(&["log", "-n", "7", "claude-garden.jsonl"]), @"
    assistant  fe440675  2026-08-20 09:01
      Write plan.md, 1 line

    assistant  58b172f5  2026-08-20 09:01
      It is in plan.md: leeks and beans, ten litres each.
      1 record for the agent's own use: -v shows it

    ──── boundary  df0df268  2026-08-20 09:01  1,630 → 210 tokens ────
      Conversation compacted

    summary  4d48f527  2026-08-20 09:01
      This session is being continued from a previous conversation that ran out of context. The summary: leeks and flowering beans need water, thyme does not; plan.md says ten litres each for tomorrow.

    @3  user  8f7f0045  2026-08-20 09:02
      It rained in the night. Does the plan still hold?

    assistant  7389a7cd  2026-08-20 09:02
      Only for the beans: the leeks have had enough until Friday.
      1 record for the agent's own use: -v shows it
    ");
}

#[test]
fn codex_rolled_back() {
    let env = with_examples();
    assert_snapshot!(env.run(&["graph", "codex-weather.jsonl"]), @"
    019fc000  When was the wind strongest?                          gpt-5.6-sol · 2 Aug 2026 14:00–14:02
    ◉  @2  14:02  Draw it over the hours.                                                      main
    │ ○  @1  14:01  Draw it as a rose.                                                         reverted
    ├─╯
    ○  @0  14:00  When was the wind strongest?                                             1$
    ");
}

#[test]
fn pi_branched_labelled_and_compacted() {
    let env = with_examples();
    assert_snapshot!(env.run(&["graph", "pi-boat.jsonl"]), @"
    5d9e0c1a  Painting the boat                               claude-sonnet-4-5 · 4 Jul 2026 18:00–18:02
    ◉  @3  18:01  And the name on the stern?                                                   main
    ◆      18:01  compacted 260 tokens, 2 things lost
    ○  @2  18:01  In white, please.
    │ ○  @1  18:01  In red, please.                                                            reverted
    ├─╯
    ○  @0  18:00  How much paint does the hull take?
    ");
}

#[test]
fn kimi_cli_got_a_message_from_later() {
    let env = with_examples();
    assert_snapshot!(env.run(&["graph", KIMI]), @"
    6f1d2c3b  The lamp flickers. What is wrong?                                              3 Feb 04:05
    ◉  @4 kimi:4  from later:  Trim by 2 mm only; 5 mm is too short.                           main
    │ ○             assistant:  I trim it.  reverted by a D-Mail to kimi:4                 1$  reverted
    ├─╯
    ○  @3 kimi:3  Yes, and trim the old one.
    ○  @0 kimi:0  The lamp flickers. What is wrong?
    ");
}

#[test]
fn a_checkpoint_is_gone_back_to_on_whichever_branch_it_lies() {
    let env = with_examples();
    env.run(&["import", "."]).success();
    // The turn that was rewound.
    assert_snapshot!(env.run(&["show", "@1", "-s", "7c2a"]), @"
    @1  user  24c2f26c  2026-08-20 09:01
      The beans flower. Write me a plan for the whole week.

    assistant  b9d10cec  2026-08-20 09:01
      Monday to Sunday: leeks and beans each evening, thyme never.
    ");
    assert_snapshot!(env.run(&["revert", "1", "-s", "7c2a"]), @r#"
    7c2a51de is now just before @1 "The beans flower. Write me a plan for the whol…"
    @2, @3 (2 turns) are kept on branch main.1. Nothing is deleted.
    Context 1k → 1k tokens (<1%): the compaction at 2026-08-20 09:01 is undone too.
    Files are not restored. 1 was edited since: plan.md +1
    Your prompt @1, to send again or change:
      The beans flower. Write me a plan for the whole week.
    Undo  undertext undo 7c2a51de
    ------- stderr -------
    The agent's own file is not changed
    hint: to write this state to a file: undertext export 7c2a51de -o 7c2a51de.jsonl
    "#);
    assert_snapshot!(env.run(&["log", "-n", "1", "7c2a"]), @"
    assistant  455a298b  2026-08-20 09:00
      The leeks do: two millimetres in three days are not enough. The thyme does not, and the beans only if they flower.
      1 record for the agent's own use: -v shows it
    ");
    assert_snapshot!(env.run(&["revert", "kimi:3", "-s", "6f1d"]), @r#"
    6f1d2c3b is now just before @3 "Yes, and trim the old one."
    @3 (1 turn) is kept on branch main.1. Nothing is deleted.
    Context 1k → 920 tokens (2%)
    Your prompt @3, to send again or change:
      Yes, and trim the old one.
    Undo  undertext undo 6f1d2c3b
    ------- stderr -------
    The agent's own file is not changed
    hint: to write this state to a file: undertext export 6f1d2c3b -o 6f1d2c3b.jsonl
    "#);
    assert_snapshot!(env.run(&["graph", "6f1d"]), @"
    6f1d2c3b  The lamp flickers. What is wrong?                                              3 Feb 04:05
      ○  @4 kimi:4  from later:  Trim by 2 mm only; 5 mm is too short.                         main.1
      │ ○             assistant:  I trim it.  reverted by a D-Mail to kimi:4               1$  reverted
      ├─╯
      ○  @3 kimi:3  Yes, and trim the old one.                                                 reverted
    ╭─╯
    ◉  @0 kimi:0  The lamp flickers. What is wrong?                                            main
    6f1d2c3b is just before @3
    ");
    env.run(&["verify"]).success();
}
