//! Codex's forks by reference: their history is read from the part of their parent's file that was taken in with them, and
//! where it is missing, that is told and nothing takes it from the agent.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use undertext::{
    context::{cut::Limit, plan::Keep},
    model::Timestamp,
    settings::Exclude,
    verbs::{self, Archive, Bound, Compacting, Gap, OpsError, Session, SyncError, Workspace},
    wire::{Draft, Speaker},
};

use crate::{
    codex::{import, live, peeked, sent},
    env::TestEnv,
    fixture::{Seeded, damage},
    rollout::{CHILD, Home, Rollout, SECOND, THIRD, THREAD},
};

const OWN: &str = "other | to other | more | to more";

fn whole() -> String {
    format!("rules | one | to one | {OWN}")
}

/// A thread and a fork of it by reference, which has two turns of its own.
fn fork() -> (Home, PathBuf, PathBuf) {
    let home = Home::new();
    let mut parent = Rollout::first(THREAD);
    parent.turn("one");
    let one = parent.end();
    parent.turn("two");
    let fork = json!({ "forked_from_id": THREAD, "forked_from_ordinal_exclusive": one.0 });
    let mut child = Rollout::behind(CHILD, THREAD, one, &fork);
    child.turn("other");
    child.turn("more");
    let parent = home.write(10, THREAD, &parent);
    let child = home.write(11, CHILD, &child);
    (home, parent, child)
}

fn of(archive: &Archive, id: &str) -> Session {
    let sessions = archive.every().unwrap();
    sessions.into_iter().find(|session| session.name.id == id).unwrap()
}

fn with_parent(archive: &Archive) {
    let child = of(archive, CHILD);
    assert_eq!(sent(archive, &child), whole());
    assert_eq!(verbs::elsewhere(&archive.at(&child).unwrap()).unwrap(), None);
    // The parent's turns are the parent's.
    assert_eq!(archive.store().card(child.key).unwrap().turns, 2);
    assert_eq!(damage(archive), [""; 0]);
}

#[test]
fn a_fork_goes_on_from_its_parents_file_wherever_that_lies() {
    let (home, parent, child) = fork();
    assert_eq!(peeked(&child), (whole(), None));
    for paths in [vec![home.codex()], vec![child.clone(), parent.clone()], vec![child.clone()]] {
        let mut archive = Archive::in_memory(Seeded::boxed(9));
        import(&mut archive, &paths);
        with_parent(&archive);
        let own = of(&archive, CHILD);
        let mut exported = Vec::new();
        let keep = &mut |bytes: &[u8]| {
            exported.extend_from_slice(bytes);
            Ok(())
        };
        verbs::export(&archive.at(&own).unwrap(), None, keep).unwrap();
        assert_eq!(exported, fs::read(&child).unwrap());
        let kin = verbs::kin(&archive.at(&own).unwrap()).unwrap().unwrap();
        assert_eq!((kin.session.as_str(), kin.continues), (THREAD, false));
        assert_eq!(kin.here.is_some(), kin.is_held);
        // Nothing new comes of the same files.
        let newest = |archive: &Archive| archive.store().state(own.key).unwrap().newest;
        let before = newest(&archive);
        import(&mut archive, &paths);
        assert_eq!(newest(&archive), before);
        assert!(verbs::rebuild(&mut archive, &own).unwrap().equal);
    }
    // Put away, or compressed.
    let put_away = home.codex().join("archived_sessions");
    fs::create_dir_all(&put_away).unwrap();
    let moved = put_away.join(parent.file_name().unwrap());
    fs::rename(&parent, &moved).unwrap();
    assert_eq!(peeked(&child), (whole(), None));
    let packed = zstd::encode_all(fs::read(&moved).unwrap().as_slice(), 3).unwrap();
    fs::write(format!("{}.zst", moved.display()), packed).unwrap();
    fs::remove_file(&moved).unwrap();
    assert_eq!(peeked(&child), (whole(), None));
}

#[test]
fn the_parent_stays_a_session_of_its_own() {
    let (home, parent, _) = fork();
    let mut archive = Archive::in_memory(Seeded::boxed(9));
    import(&mut archive, &[home.codex()]);
    let held = of(&archive, THREAD);
    assert_eq!(sent(&archive, &held), "rules | one | to one | two | to two");
    let mut more =
        Rollout { bytes: fs::read_to_string(&parent).unwrap(), next: 40, has_ordinals: true };
    more.turn("three");
    fs::write(&parent, &more.bytes).unwrap();
    import(&mut archive, &[home.codex()]);
    assert_eq!(sent(&archive, &held), "rules | one | to one | two | to two | three | to three");
    with_parent(&archive);
    assert_eq!(archive.every().unwrap().len(), 2);
    assert_eq!(verbs::kin(&archive.at(&held).unwrap()).unwrap(), None);
}

#[test]
fn a_parent_that_the_store_holds_or_that_comes_later_completes_its_forks() {
    let (_home, parent, child) = fork();
    let bytes = fs::read(&parent).unwrap();
    let mut archive = Archive::in_memory(Seeded::boxed(9));
    import(&mut archive, std::slice::from_ref(&parent));
    fs::remove_file(&parent).unwrap();
    import(&mut archive, std::slice::from_ref(&child));
    with_parent(&archive);

    let mut archive = Archive::in_memory(Seeded::boxed(9));
    import(&mut archive, std::slice::from_ref(&child));
    assert_eq!(sent(&archive, &of(&archive, CHILD)), OWN);
    fs::write(&parent, bytes).unwrap();
    import(&mut archive, std::slice::from_ref(&parent));
    with_parent(&archive);
}

#[test]
fn nothing_of_a_parent_that_the_settings_leave_out_comes_with_a_fork() {
    let (home, ..) = fork();
    let mut archive = Archive::in_memory(Seeded::boxed(9));
    let sessions = vec![THREAD.to_owned()];
    archive.set_exclude(Exclude { sessions, ..Exclude::default() });
    import(&mut archive, &[home.codex()]);
    assert_eq!(archive.every().unwrap().len(), 1);
    assert_eq!(sent(&archive, &of(&archive, CHILD)), OWN);
    // It is whole as soon as they do not.
    archive.set_exclude(Exclude::default());
    import(&mut archive, &[home.codex()]);
    with_parent(&archive);
}

#[test]
fn a_fork_of_a_fork_reads_through_both() {
    let (home, parent, child) = fork();
    let bytes = fs::read_to_string(&child).unwrap();
    let other: String = bytes.split_inclusive('\n').take(6).collect();
    let more = json!({ "forked_from_id": CHILD, "forked_from_ordinal_exclusive": 20 });
    let mut grandchild = Rollout::behind(SECOND, CHILD, (20, other.len() as u64), &more);
    grandchild.turn("deep");
    let grandchild = home.write(12, SECOND, &grandchild);
    let expected = "rules | one | to one | other | to other | deep | to deep".to_owned();
    assert_eq!(peeked(&grandchild), (expected.clone(), None));
    let mut archive = Archive::in_memory(Seeded::boxed(9));
    import(&mut archive, &[parent.clone(), child.clone()]);
    fs::remove_file(&parent).unwrap();
    fs::remove_file(&child).unwrap();
    import(&mut archive, std::slice::from_ref(&grandchild));
    assert_eq!(sent(&archive, &of(&archive, SECOND)), expected);
    let kin = verbs::kin(&archive.at(&of(&archive, SECOND)).unwrap()).unwrap().unwrap();
    assert_eq!(kin.session, CHILD);
}

#[test]
fn what_is_done_to_a_fork_covers_its_parents_history() {
    let (home, parent, child) = fork();
    let mut more =
        Rollout { bytes: fs::read_to_string(&child).unwrap(), next: 40, has_ordinals: true };
    let long = "word ".repeat(5_000);
    more.item("assistant", &long);
    more.turn("last");
    fs::write(&child, &more.bytes).unwrap();
    let all = format!("{} | {long} | last | to last", whole());
    let root = home.0.path().join("store");
    let before = fs::read(&parent).unwrap();
    let mut archive = crate::fixture::open(&root, 6);
    import(&mut archive, &[home.codex()]);
    let session = of(&archive, CHILD);
    let nowhere = Workspace::default();
    let agrees = |archive: &Archive, expected: &str| {
        assert_eq!(sent(archive, &session), expected);
        let live = live(archive, &session);
        assert_eq!(peeked(&live), (expected.to_owned(), None), "what the file says alone");
    };
    verbs::clear(&archive.at(&session).unwrap()).unwrap();
    agrees(&archive, "rules");
    verbs::undo(&archive.at(&session).unwrap(), None).unwrap();
    agrees(&archive, &all);
    verbs::revert(&archive.at(&session).unwrap(), &nowhere, "1", None).unwrap();
    agrees(&archive, "rules | one | to one");
    verbs::undo(&archive.at(&session).unwrap(), None).unwrap();
    let (asked, clock) = (crate::compact::asked(32_000), || Timestamp(0));
    let compacting = Compacting { keep: Keep::Last(1), ..Compacting::of(&asked, &clock) };
    let done =
        verbs::compact(&archive.at(&session).unwrap(), &nowhere, &compacting, &mut |_| ()).unwrap();
    assert_eq!(done.nothing, None);
    let said = sent(&archive, &session);
    assert!(said.starts_with("rules | ") && said.ends_with(" | to last"), "{said}");
    agrees(&archive, &said);
    verbs::append(
        &archive.at(&session).unwrap(),
        &nowhere,
        &[Draft::Message(Speaker::User, "y".into())],
    )
    .unwrap();
    agrees(&archive, &format!("{said} | y"));
    verbs::undo(&archive.at(&session).unwrap(), None).unwrap();
    agrees(&archive, &said);
    verbs::undo(&archive.at(&session).unwrap(), None).unwrap();
    agrees(&archive, &all);
    assert_eq!(fs::read(&parent).unwrap(), before);
    assert_eq!(damage(&archive), [""; 0]);
}

#[test]
fn a_fork_whose_parent_is_missing_says_so() {
    let (_home, parent, child) = fork();
    let bytes = fs::read(&parent).unwrap();
    fs::remove_file(&parent).unwrap();
    let env = TestEnv::new();
    let lies = format!("the history before the fork is in the parent session {THREAD}");
    let file = child.to_str().unwrap();
    let show = |of: &str, held: &str| {
        for command in ["log", "graph", "context"] {
            let said = env.run(&[command, of]).success().stderr;
            let expected = format!("warning: {lies} ({held}); that history is not shown");
            assert!(said.contains(&expected), "{command} {of}: {said}");
        }
        let status = env.run(&["status", of]).success().stdout;
        assert!(status.replace("\n            ", " ").contains(&lies), "{status}");
    };
    let json = |args: &[&str]| -> Value {
        let said = env.run(args).success().stdout;
        let of_child = said.lines().find(|line| line.contains(&format!("\"session\":\"{CHILD}\"")));
        serde_json::from_str(of_child.unwrap()).unwrap()
    };
    show(file, "not in the store");
    env.run(&[Path::new("import"), &child]).success();
    show(CHILD, "not in the store");
    let status = json(&["status", "--json", CHILD]);
    let elsewhere = &status["elsewhere"];
    assert_eq!((&elsewhere["session"], &elsewhere["why"]), (&json!(THREAD), &json!("parent")));
    let kin = &json(&["sessions", "--json"])["kin"];
    assert_eq!((&kin["held"], &kin["continues"]), (&json!(false), &json!(true)));
    fs::write(&parent, bytes).unwrap();
    env.run(&[Path::new("import"), &parent]).success();
    assert_eq!(env.run(&["log", CHILD]).success().stderr, "");
    let kin = &json(&["sessions", "--json"])["kin"];
    assert_eq!((&kin["session"], &kin["shown"]), (&json!(THREAD), &json!(true)));
    assert_eq!((&kin["held"], &kin["continues"]), (&json!(true), &json!(false)));
    // The parent says nothing of the kind.
    assert_eq!(env.run(&["log", THREAD]).success().stderr, "");
}

#[test]
fn what_would_take_a_missing_parents_history_from_a_fork_is_refused() {
    let (home, parent, child) = fork();
    fs::remove_file(&parent).unwrap();
    let root = home.0.path().join("store");
    let mut archive = crate::fixture::open(&root, 6);
    import(&mut archive, &[home.codex()]);
    let session = of(&archive, CHILD);
    let nowhere = Workspace::default();
    let before = fs::read(&child).unwrap();
    let (asked, clock) = (crate::compact::asked(32_000), || Timestamp(0));
    let compacting = Compacting { keep: Keep::Last(1), ..Compacting::of(&asked, &clock) };
    let compacted =
        verbs::compact(&archive.at(&session).unwrap(), &nowhere, &compacting, &mut |_| ());
    assert!(matches!(compacted, Err(OpsError::Sync(SyncError::Unread(_)))), "{compacted:?}");
    let cleared = verbs::clear(&archive.at(&session).unwrap());
    assert!(matches!(cleared, Err(OpsError::Sync(SyncError::Unread(_)))), "{cleared:?}");
    assert_eq!(fs::read(&child).unwrap(), before);
    // A turn that is the fork's own goes by a rollback, which leaves the parent's turns alone.
    verbs::revert(&archive.at(&session).unwrap(), &nowhere, "1", None).unwrap();
    assert_eq!(sent(&archive, &session), "other | to other");
    verbs::revert(&archive.at(&session).unwrap(), &nowhere, "0", None).unwrap();
    assert_eq!(sent(&archive, &session), "");
    let written = fs::read_to_string(&child).unwrap();
    assert!(!written.contains("\"compacted\""), "{written}");
    let rolled: u64 = written
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|line| line["payload"]["num_turns"].as_u64())
        .sum();
    assert_eq!(rolled, 2);
}

#[test]
fn a_result_of_a_fork_is_not_cut_where_its_parents_history_is_missing() {
    let (home, parent, child) = fork();
    fs::remove_file(&parent).unwrap();
    let mut more =
        Rollout { bytes: fs::read_to_string(&child).unwrap(), next: 40, has_ordinals: true };
    more.long_answer();
    fs::write(&child, &more.bytes).unwrap();
    let root = home.0.path().join("store");
    let mut archive = crate::fixture::open(&root, 8);
    import(&mut archive, &[home.codex()]);
    let bound = Bound::of(Limit::of_chars(10_000));
    let session = of(&archive, CHILD);
    let cut = verbs::truncate(&archive.at(&session).unwrap(), &bound);
    assert!(matches!(cut, Err(OpsError::Sync(SyncError::Unread(_)))), "{cut:?}");
    assert_eq!(fs::read_to_string(&child).unwrap(), more.bytes);
}

#[test]
fn a_fork_that_went_back_into_its_parent_still_has_its_history_there() {
    let (home, parent, child) = fork();
    // Codex names the place in the parent again, both as base and as fork; within the fork it names the fork's own file.
    let own = fs::read_to_string(&child).unwrap();
    let lines: Vec<&str> = own.split_inclusive('\n').collect();
    let other = lines[..6].concat();
    let fork: Value = serde_json::from_str(lines[0]).unwrap();
    let of_fork = &fork["payload"]["forked_from_ordinal_exclusive"];
    let more = json!({ "forked_from_id": THREAD, "forked_from_ordinal_exclusive": of_fork });
    let mut within = Rollout::behind(CHILD, CHILD, (20, other.len() as u64), &more);
    within.turn("within");
    let within = home.write(12, &format!("{CHILD}_{SECOND}"), &within);
    let rules: usize =
        fs::read_to_string(&parent).unwrap().split_inclusive('\n').take(2).map(str::len).sum();
    let more = json!({ "forked_from_id": THREAD, "forked_from_ordinal_exclusive": 2 });
    let mut into = Rollout::behind(CHILD, THREAD, (2, rules as u64), &more);
    into.turn("into");
    let into = home.write(13, &format!("{CHILD}_{THIRD}"), &into);
    let before = "rules | one | to one | other | to other";
    assert_eq!(peeked(&within), (format!("{before} | within | to within"), None));
    assert_eq!(peeked(&into), ("rules | into | to into".to_owned(), None));
    let mut archive = Archive::in_memory(Seeded::boxed(9));
    import(&mut archive, &[home.codex()]);
    assert_eq!(sent(&archive, &of(&archive, CHILD)), "rules | into | to into");
    for session in archive.every().unwrap() {
        let kin = verbs::kin(&archive.at(&session).unwrap()).unwrap();
        let expected = (session.name.id == CHILD).then(|| THREAD.to_owned());
        assert_eq!(kin.map(|kin| kin.session), expected);
    }
    fs::remove_file(&parent).unwrap();
    let missing = Some(Gap::Parent(THREAD.into()));
    assert_eq!(
        peeked(&within),
        ("other | to other | within | to within".to_owned(), missing.clone())
    );
    assert_eq!(peeked(&into), ("into | to into".to_owned(), missing));
}
