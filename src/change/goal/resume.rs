//! Simulates a resume: computes the context that an agent would send, before anything is written for it.
//!
//! Invariant: nothing is changed here.

use crate::{
    archive::{SyncError, Workspace},
    change::{draft::Change, goal::reach::Reach},
    files::at::Standing,
    json::Raw,
    model::{Block, Position, Role},
    session::{
        Growth, View,
        history::ends::{Sending, ends},
    },
    wire::{Edit, Edited, Graph as _, Sent},
};

/// A note to write at a position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Note<'a> {
    pub(crate) words: &'a str,
    /// A prompt of the user to repeat after it.
    pub(crate) prompt: Option<&'a str>,
    pub(crate) workspace: &'a Workspace,
}

/// A message as it is compared.
type Said = (Role, Vec<Block>);

/// Returns the messages of entries, last to first, regardless of the form of their records. For a history that a rollback cut,
/// returns only the rest. Reads lines one by one, because two paths usually differ at their last message.
fn says<'s>(
    view: &'s View<'_>,
    sent: &'s Sent,
) -> impl Iterator<Item = Result<Said, SyncError>> + 's {
    let format = view.format;
    let cut = sent.edits.iter().find_map(|(entry, edit)| match edit {
        Edit::Turns(turns) => Some((*entry, *turns)),
        Edit::Content(_) | Edit::Later => None,
    });
    let messages = move |entry| {
        let line = view.line(entry)?;
        let record = Raw::object(&line);
        let messages = record.map(|record| match cut {
            Some((history, turns)) if history == entry => {
                format.sent(record, &[Edited::Turns(turns)])
            }
            _ => format.messages(record),
        });
        let said = messages.into_iter().flatten().map(|message| (message.role, message.blocks));
        Ok::<_, SyncError>(said.collect::<Vec<_>>())
    };
    sent.entries.iter().rev().flat_map(move |&entry| {
        let (said, failed) = match messages(entry) {
            Ok(said) => (said, None),
            Err(error) => (Vec::new(), Some(Err(error))),
        };
        said.into_iter().rev().map(Ok).chain(failed)
    })
}

/// A view, and what an agent sends from the end of its path.
struct Ending<'t, 'v> {
    view: &'t View<'v>,
    sent: &'t Sent,
}

/// How much of what one view sends the other must send too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    All,
    End,
}

/// Returns true if two views send the same messages, or, with [`Compared::End`], if the first ends with what the second sends.
fn is_alike(
    one: &Ending<'_, '_>,
    other: &Ending<'_, '_>,
    compared: Compared,
) -> Result<bool, SyncError> {
    let (sent, others) = (one.sent, other.sent);
    let is_cut = |sent: &Sent| sent.edits.iter().any(|(_, edit)| matches!(edit, Edit::Turns(_)));
    // The entries are the same, so their lines need not be read.
    if sent.entries == others.entries && !is_cut(sent) && !is_cut(others) {
        return Ok(true);
    }
    if !is_cut(sent) && !is_cut(others) {
        let before = sent.entries.len().checked_sub(others.entries.len());
        let end = before.filter(|before| compared == Compared::End || *before == 0);
        let end = end.and_then(|before| sent.entries.get(before..));
        if let Some(end) = end
            && one.view.alone(end)? == other.view.alone(&others.entries)?
        {
            return Ok(true);
        }
    }
    is_alike_backwards(says(one.view, sent), says(other.view, others), compared)
}

/// Compares two sequences, given backwards: equal, or, with [`Compared::End`], the first ends with the second. Stops at the first
/// difference.
fn is_alike_backwards<T: PartialEq, E>(
    ours: impl IntoIterator<Item = Result<T, E>>,
    theirs: impl IntoIterator<Item = Result<T, E>>,
    compared: Compared,
) -> Result<bool, E> {
    let (mut ours, mut theirs) = (ours.into_iter(), theirs.into_iter());
    loop {
        match (ours.next().transpose()?, theirs.next().transpose()?) {
            (None, None) => return Ok(true),
            (Some(_), None) => return Ok(compared == Compared::End),
            (one, another) if one == another => {}
            _ => return Ok(false),
        }
    }
}

/// Returns everything that a view sends.
fn whole(view: &View<'_>) -> Result<Sent, SyncError> {
    let Sending { sent, edits, is_whole, .. } = view.sending()?;
    Ok(Sent { entries: sent, edits, is_whole })
}

/// Returns the position at which an agent resumes a growth, if it then reads the context of `wanted`, followed by the note if
/// given.
pub(crate) fn reads(
    change: &Change<'_>,
    growth: &Growth,
    to: Reach<'_>,
) -> Result<Option<Position>, SyncError> {
    let format = change.before.format;
    let position = change.end_of(growth)?;
    let (there, here) = (change.look(to.target), change.ahead(position, growth));
    let [path_there, path_here] = ends(&there, &here)?;
    let wanted = format.context(&there, &path_there)?;
    let mut found = format.context(&here, &path_here)?;
    let texts = to.note.into_iter().flat_map(|note| [Some(note.words), note.prompt]);
    let texts: Vec<&str> = texts.flatten().collect();
    for words in texts.iter().rev() {
        let last = found.entries.pop().into_iter().collect();
        let last = Sent { entries: last, ..Sent::default() };
        let said = says(&here, &last).collect::<Result<Vec<_>, _>>()?;
        let has_words = |block: &Block| matches!(block, Block::Text(text) if text.contains(words));
        if !said.iter().any(|(_, blocks)| blocks.iter().any(has_words)) {
            return Ok(None);
        }
    }
    let is_same = sends(&there, wanted, &here, found, texts.len())?;
    Ok(is_same.then_some(position))
}

/// Returns true if the agent sends the same from two positions. They may differ in their lines: the lines that move an agent back
/// to a place come after that place.
pub(crate) fn is_same(
    before: &Standing<'_>,
    one: Position,
    other: Position,
) -> Result<bool, SyncError> {
    match (before.view(one), before.view(other)) {
        (Some(here), Some(there)) => match sends_same(&here, &there) {
            // Damage must not block a revert.
            Err(error) if error.is_damage() => Ok(one == other),
            same => same,
        },
        _ => Ok(one == other),
    }
}

/// Returns true if the path to `to` begins with the path to `from`.
pub(crate) fn leads_on(
    before: &Standing<'_>,
    from: Position,
    to: Position,
) -> Result<bool, SyncError> {
    let (Some(here), Some(there)) = (before.view(from), before.view(to)) else { return Ok(false) };
    match ends(&here, &there).map_err(SyncError::from) {
        // Damage must not block a revert.
        Err(error) if error.is_damage() => Ok(false),
        found => found.map(|[here, there]| there.starts_with(&here)),
    }
}

/// Returns true if an agent sends the same from two views of a session.
fn sends_same<'v>(there: &View<'v>, here: &View<'v>) -> Result<bool, SyncError> {
    let [path_there, path_here] = ends(there, here)?;
    let wanted = there.format.context(there, &path_there)?;
    let found = here.format.context(here, &path_here)?;
    if wanted.edits != found.edits {
        return Ok(false);
    }
    sends(there, wanted, here, found, 0)
}

/// Returns true if two views send the same, given what they send from the ends of their paths. Ignores the last `n_left_out`
/// entries of the second view.
fn sends<'v>(
    there: &View<'v>,
    mut wanted: Sent,
    here: &View<'v>,
    mut found: Sent,
    n_left_out: usize,
) -> Result<bool, SyncError> {
    if wanted.is_whole != found.is_whole {
        // Only the end of one of them is known.
        let mut both = [Ending { view: there, sent: &wanted }, Ending { view: here, sent: &found }];
        if !wanted.is_whole {
            both.reverse();
        }
        let [all, end] = both;
        if !is_alike(&all, &end, Compared::End)? {
            return Ok(false);
        }
        (wanted, found) = (whole(there)?, whole(here)?);
        found.entries.truncate(found.entries.len() - n_left_out);
    }
    let there = Ending { view: there, sent: &wanted };
    is_alike(&there, &Ending { view: here, sent: &found }, Compared::All)
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test stops at the first surprise")]
#[expect(clippy::disallowed_methods, reason = "a test reads what it wrote itself")]
mod tests {
    use std::{collections::BTreeSet, fmt::Write as _, fs};

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::Compared;
    use crate::{
        archive::{Archive, Machine},
        intake::import,
        model::{EntryNumber, GenerationNumber, Position},
        session::{Session, View, history::ends::ends_within},
    };

    /// A record: what it is, how many records behind it stands the one that it follows, and a number more.
    type Made = (u8, i8, u8);

    fn record() -> impl Strategy<Value = Made> {
        let back = prop_oneof![20 => Just(1i8), 3 => 2i8..6, 1 => -3i8..1, 1 => Just(i8::MAX)];
        (0u8..24, back, any::<u8>())
    }

    fn name(n: i64) -> String {
        format!("00000000-0000-4000-8000-{n:012}")
    }

    fn line(format: &str, n: usize, before: &[Made], (what, back, more): Made) -> Value {
        let n = i64::try_from(n).unwrap();
        // Now and then a name is said twice, and a time is an old one.
        let own = if more == 7 { n / 2 } else { n };
        let parent = n - i64::from(back);
        let parent = if parent < 0 || back == i8::MAX && more % 2 == 0 {
            Value::Null
        } else {
            json!(name(parent))
        };
        let parent = if back == i8::MAX && more % 2 == 1 { json!(name(999)) } else { parent };
        let seconds = if more == 9 { n / 2 } else { n };
        let time = format!("2001-02-03T04:{:02}:{:02}.000Z", seconds / 60, seconds % 60);
        let far = name(n - i64::from(more % 8));
        let near = name(n + 1);
        let text = format!("words {n}");
        match format {
            "claude" => {
                let mut record = json!({ "parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": "/w",
                    "sessionId": "s", "version": "2.1.0", "uuid": name(own), "timestamp": time });
                let role = if what < 10 { "user" } else { "assistant" };
                record["type"] = json!(role);
                record["message"] = json!({ "role": role, "content": text });
                match what {
                    0 => record["isSidechain"] = json!(true),
                    1..6 => {
                        record["message"]["content"] =
                            json!([{ "type": "tool_result", "tool_use_id": "t", "content": text }]);
                    }
                    10..16 => {
                        record["message"]["id"] = {
                            // No message of the model is on both sides of a boundary.
                            let boundaries = before.iter().filter(|made| made.0 == 21).count();
                            json!(format!("m{}-{boundaries}", n / 3))
                        }
                    }
                    20 => {
                        return json!({ "type": "last-prompt", "leafUuid": far, "sessionId": "s" });
                    }
                    21 => {
                        record["type"] = json!("system");
                        record["subtype"] = json!("compact_boundary");
                        record["logicalParentUuid"] = parent;
                        if more % 3 == 0 {
                            // What comes before another boundary is not kept.
                            let since = before.iter().rev().take_while(|made| made.0 != 21).count();
                            let back = i64::from(more % 8).min(i64::try_from(since).unwrap());
                            let (head, tail) = (name(n - back), name(n - 1));
                            record["compactMetadata"] = json!({ "preservedSegment": {
                                "anchorUuid": near, "headUuid": head, "tailUuid": tail } });
                        }
                    }
                    22 | 23 => {
                        record["type"] = json!("system");
                        record["subtype"] = json!("local_command");
                    }
                    _ => {}
                }
                record
            }
            "pi" => match what {
                0 => {
                    json!({ "type": "context_edit", "id": name(own), "parentId": parent, "timestamp": time, "targetId": far })
                }
                1 => {
                    json!({ "type": "compaction", "id": name(own), "parentId": parent, "timestamp": time,
                    "summary": text, "firstKeptEntryId": far, "tokensBefore": 7 })
                }
                _ => {
                    let role = if what < 12 { "user" } else { "assistant" };
                    json!({ "type": "message", "id": name(own), "parentId": parent, "timestamp": time,
                        "message": { "role": role, "content": [{ "type": "text", "text": text }], "timestamp": n } })
                }
            },
            _ => {
                let said = |class: &str, payload: Value| json!({ "timestamp": time, "type": class, "payload": payload });
                let role = if what < 14 { "user" } else { "assistant" };
                let kind = if what < 14 { "input_text" } else { "output_text" };
                let message = json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] });
                match what {
                    0..4 => said(
                        "event_msg",
                        json!({ "type": "task_started", "turn_id": name(n), "model_context_window": 9 }),
                    ),
                    4 => said(
                        "event_msg",
                        json!({ "type": "thread_rolled_back", "num_turns": more % 3 }),
                    ),
                    5 => said(
                        "compacted",
                        json!({ "message": text, "replacement_history": [message] }),
                    ),
                    6 => said("compacted", json!({ "message": text })),
                    7 => said("turn_context", json!({ "cwd": "/w", "model": "m" })),
                    _ => said("response_item", message),
                }
            }
        }
    }

    /// Takes in a session of a format.
    fn archive(format: &str, made: &[Made]) -> (Archive, Session) {
        let opening = match format {
            "claude" => None,
            "pi" => Some(
                json!({ "type": "session", "version": 3, "id": "s", "timestamp": "2001-02-03T04:00:00.000Z", "cwd": "/w" }),
            ),
            _ => Some(
                json!({ "timestamp": "2001-02-03T04:00:00.000Z", "type": "session_meta", "payload": {
                "id": name(0), "timestamp": "2001-02-03T04:00:00.000Z", "cwd": "/w", "originator": "x", "cli_version": "0.169.0" } }),
            ),
        };
        let mut bytes = String::new();
        let lines = made.iter().enumerate().map(|(n, one)| line(format, n, &made[..n], *one));
        for line in opening.into_iter().chain(lines) {
            writeln!(bytes, "{line}").unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("{}.jsonl", name(0)));
        fs::write(&path, bytes).unwrap();
        let mut archive = Archive::in_memory(Box::new(Machine));
        import(&mut archive, &[path], &[], &mut |_| ()).unwrap();
        let session = archive.every().unwrap().remove(0);
        (archive, session)
    }

    /// What is told of a path by its last entries, and by all of it.
    fn told(view: &View<'_>, end: &[EntryNumber]) -> (Vec<EntryNumber>, Option<Vec<EntryNumber>>) {
        let whole = view.path(usize::MAX).unwrap().entries;
        let before = whole.strip_suffix(end).expect("the end of a path is its end").to_vec();
        let sent = view.format.context(view, &whole).unwrap().entries;
        let last = view.format.context(view, end).unwrap();
        let sent = sent.strip_suffix(&*last.entries).expect("what is sent of the end is sent last");
        assert!(!last.is_whole || sent.is_empty());
        (before, (!last.is_whole).then(|| sent.to_vec()))
    }

    /// Compares the ends of pairs of paths with the whole paths, and returns how many were shorter.
    fn compare(format: &str, made: &[Made], pairs: &[[(u8, u8); 2]]) -> usize {
        let (archive, session) = archive(format, made);
        let count = archive.store().state(session.key).unwrap().next_entry().get() - 1;
        let mut shorter = 0;
        for pair in pairs {
            let views = pair.map(|(head, horizon)| {
                let horizon = count - u64::from(horizon) % count.min(8);
                let head = EntryNumber::new(
                    1 + (count - 1).saturating_sub(u64::from(head) % 16).min(horizon - 1),
                );
                let position =
                    Position { generation: GenerationNumber::FIRST, head: Some(head), horizon };
                View::new(archive.store(), &session, position, None)
            });
            let [one, other] = &views;
            let found = ends_within(4, one, other).unwrap();
            let whole = one.path(usize::MAX).unwrap().entries;
            shorter += usize::from(found[0].len() < whole.len());
            let (before, sent) = told(one, &found[0]);
            let (other_before, other_sent) = told(other, &found[1]);
            if let (Some(sent), Some(other_sent)) = (sent, other_sent) {
                assert_eq!((&before, sent), (&other_before, other_sent), "{pair:?}");
            }
            // What a boundary keeps comes after its summary as long as no other boundary follows.
            let sorted = |entries: Vec<EntryNumber>| entries.into_iter().collect::<BTreeSet<_>>();
            assert_eq!(sorted(before), sorted(other_before), "{pair:?}");
            let sending = one.sending_within(2).unwrap();
            assert_eq!(sending.sent, one.format.context(one, &whole).unwrap().entries);
        }
        shorter
    }

    fn pairs() -> impl Strategy<Value = Vec<[(u8, u8); 2]>> {
        prop::collection::vec([(any::<u8>(), any::<u8>()), (any::<u8>(), any::<u8>())], 1..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_ends_of_paths_of_claude_code_tell_what_the_whole_paths_do(
            made in prop::collection::vec(record(), 1..60), pairs in pairs(),
        ) {
            compare("claude", &made, &pairs);
        }

        #[test]
        fn the_ends_of_paths_of_pi_tell_what_the_whole_paths_do(
            made in prop::collection::vec(record(), 1..60), pairs in pairs(),
        ) {
            compare("pi", &made, &pairs);
        }

        #[test]
        fn the_ends_of_paths_of_codex_tell_what_the_whole_paths_do(
            made in prop::collection::vec(record(), 1..60), pairs in pairs(),
        ) {
            compare("codex", &made, &pairs);
        }
    }

    #[test]
    fn what_a_rollback_drops_of_the_last_entries_is_not_counted_among_them() {
        // A history, a rollback of no turns, and one that reaches back to the history.
        let mut made: Vec<Made> = vec![(6, 1, 0); 23];
        (made[0], made[1], made[2]) = ((5, 1, 0), (5, 1, 0), (0, 1, 0));
        (made[3], made[5], made[6], made[7]) = ((4, 1, 0), (8, 1, 0), (0, 1, 0), (4, 1, 2));
        (made[19], made[20], made[21], made[22]) = ((8, 1, 0), (0, 1, 0), (0, 1, 0), (0, 1, 0));
        compare("codex", &made, &[[(2, 0), (0, 4)]]);
    }

    #[test]
    fn what_a_dropped_compaction_left_out_is_on_one_of_two_paths() {
        // The compaction that the rollback drops left out the answer and the two summaries before the last turn.
        let mut made: Vec<Made> = vec![(0, 1, 0); 25];
        (made[3], made[4], made[6], made[7]) = ((14, 1, 0), (6, 1, 0), (6, 1, 0), (8, 1, 0));
        (made[15], made[21], made[22]) = ((8, 1, 0), (6, 1, 0), (4, 1, 1));
        compare("codex", &made, &[[(0, 0), (0, 4)]]);
    }

    #[test]
    fn a_path_that_ends_among_kept_messages_is_compared_behind_their_summary() {
        let plain: Made = (0, 1, 0);
        let mut made = vec![plain; 23];
        (made[3], made[4], made[5]) = ((0, i8::MAX, 84), (10, 1, 0), (10, 3, 0));
        (made[16], made[17]) = ((21, 1, 150), (6, 1, 0));
        compare("claude", &made, &[[(24, 0), (0, 80)]]);
        // The first kept message is a block of an answer that began before.
        let mut made = vec![plain; 22];
        (made[9], made[10], made[11]) = ((10, 1, 0), (0, 2, 0), (10, 1, 8));
        made[17] = (21, 1, 87);
        compare("claude", &made, &[[(38, 16), (0, 0)]]);
    }

    #[test]
    fn the_ends_of_paths_within_a_long_turn_are_short() {
        let made: Vec<Made> = (0..400).map(|n| (if n % 3 == 0 { 10 } else { 2 }, 1, 0)).collect();
        for format in ["claude", "pi"] {
            assert_eq!(
                compare(format, &made, &[[(0, 0), (9, 0)], [(9, 1), (2, 3)]]),
                2,
                "{format}"
            );
        }
    }

    #[test]
    fn the_ends_of_paths_on_both_sides_of_a_compaction_are_short() {
        let mut made: Vec<Made> =
            (0..400).map(|n| (if n % 2 == 0 { 8 } else { 18 }, 1, 0)).collect();
        // A boundary that keeps the four messages before it, and its summary.
        made[396] = (21, 1, 84);
        let before = (4, 4);
        assert_eq!(compare("claude", &made, &[[(0, 0), before]]), 1);
        // Each behind an older one.
        for (older, newest) in [(1, 1), (1, 84), (84, 84)] {
            (made[300], made[396]) = ((21, 1, older), (21, 1, newest));
            assert_eq!(compare("claude", &made, &[[(0, 0), before]]), 1, "{older} {newest}");
        }
    }

    #[test]
    fn paths_are_compared_from_their_ends_and_not_beyond_their_first_difference() {
        let check = |ours: &str, theirs: &str, compared, expect| {
            let said = |text: &str| -> Vec<Result<char, ()>> {
                text.chars().rev().map(|c| if c == '!' { Err(()) } else { Ok(c) }).collect()
            };
            let (ours, theirs) = (said(ours), said(theirs));
            assert_eq!(super::is_alike_backwards(ours, theirs, compared), expect);
        };
        check("abc", "abc", Compared::All, Ok(true));
        check("abc", "bc", Compared::All, Ok(false));
        check("abc", "bc", Compared::End, Ok(true));
        check("bc", "abc", Compared::End, Ok(false));
        // What cannot be read is before the difference.
        check("!!c", "!!d", Compared::All, Ok(false));
        check("!bc", "c", Compared::End, Ok(true));
        check("!c", "bc", Compared::All, Err(()));
    }

    #[test]
    fn the_ends_of_plain_paths_are_short() {
        let made: Vec<Made> = (0..400).map(|n| (if n % 2 == 0 { 8 } else { 18 }, 1, 0)).collect();
        for format in ["claude", "pi", "codex"] {
            assert_eq!(
                compare(format, &made, &[[(0, 0), (4, 0)], [(9, 1), (2, 3)]]),
                2,
                "{format}"
            );
        }
    }
}
