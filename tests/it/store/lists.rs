//! What lists show, and how sessions are found: by the beginning of an id, by a tie, by the place of a file.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use crate::fixture::number;
use undertext::{
    model::{Card, MachineId, Place, SessionName, Tie, TieKind, Timestamp},
    store::{Commit, Listed, SessionFilter, Store, nearest},
    verbs,
};

use super::{
    lab::{commit, over_each},
    writer::Writer,
};

/// Returns the sessions that a filter lets through, which are as many as are counted.
fn listed(store: &dyn Store, filter: &SessionFilter) -> Vec<Listed> {
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    for all in store.sessions(&SessionFilter { limit: None, ..filter.clone() }).unwrap() {
        *counted.entry(all.name.format).or_default() += 1;
    }
    assert_eq!(store.tally(filter).unwrap(), counted, "{filter:?}");
    store.sessions(filter).unwrap()
}

#[test]
fn the_beginning_of_an_id_is_compared_as_it_is_written() {
    const HIGHEST: char = char::MAX;
    let ids = [
        "a".to_owned(),
        "ab".into(),
        "aB".into(),
        "a%c".into(),
        "a_c".into(),
        "a*c".into(),
        "a\0c".into(),
        "b".into(),
        "ä".into(),
        "äb".into(),
        "日本".into(),
        format!("a{HIGHEST}"),
        format!("a{HIGHEST}b"),
        format!("{HIGHEST}{HIGHEST}"),
        "a\u{d7ff}x".into(),
        "a\u{e000}x".into(),
    ];
    let mut prefixes: BTreeSet<String> =
        ["", "x", "A", "%", "_", "*", "?", "[a]", "\0"].map(Into::into).into();
    for id in &ids {
        prefixes.extend(id.char_indices().map(|(at, c)| id[..at + c.len_utf8()].to_owned()));
    }
    over_each(|store| {
        for (n, id) in ids.iter().enumerate() {
            let mut writer = Writer::new(store, id);
            writer.name.format = ["claude", "native", "pi"][n % 3].to_owned();
            commit(store, writer.begin()).unwrap();
        }
        for prefix in &prefixes {
            let list = |format: Option<&str>, limit| {
                let (format, prefix) = (format.map(str::to_owned), Some(prefix.clone()));
                let filter = SessionFilter { format, prefix, limit, ..SessionFilter::default() };
                let listed = listed(store, &filter).into_iter();
                listed.map(|listed| listed.name.id).collect::<Vec<_>>()
            };
            // All are equally old, and of those the one that came last is the newest.
            let begins = |id: &&String| id.starts_with(prefix);
            let expected: Vec<String> = ids.iter().rev().filter(begins).cloned().collect();
            assert_eq!(list(None, None), expected, "{prefix:?}");
            assert_eq!(list(None, Some(1)), expected[..expected.len().min(1)], "{prefix:?}");
            // The title of each is its id.
            let filter = SessionFilter { title: Some(prefix.clone()), ..SessionFilter::default() };
            let titled = listed(store, &filter).into_iter();
            assert_eq!(titled.map(|listed| listed.name.id).collect::<Vec<_>>(), expected);
            let natives = ids.iter().skip(1).step_by(3).rev().filter(begins);
            assert_eq!(list(Some("native"), None), natives.cloned().collect::<Vec<_>>());
        }
    });
}

#[test]
fn the_ids_next_to_one_are_found_past_its_sub_agents() {
    over_each(|store| {
        let ids =
            ["a", "a.b", "a/1", "a/10", "a/2", "a0", "b", "b/1", "c", "ä", "ä/1", "\0", "{", "a\0"];
        for (n, id) in ids.iter().enumerate() {
            for format in &["claude", "pi"][..=n % 2] {
                let mut writer = Writer::new(store, id);
                writer.name.format = (*format).to_owned();
                commit(store, writer.begin()).unwrap();
            }
        }
        let named = |id: &str| SessionName { format: "claude".into(), id: id.into() };
        let beside = |id: &str| {
            let mut found = store.beside(&named(id)).unwrap();
            found.sort();
            let told = found.iter().map(|name| format!("{}:{}", name.format, name.id));
            told.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(beside("a"), "claude:\0 claude:a claude:a\0 claude:a0 pi:\0 pi:a\0");
        assert_eq!(beside("a/10"), "claude:a/1 claude:a/10 claude:a/2 pi:a.b pi:a/10 pi:a0");
        assert_eq!(beside("b"), "claude:a0 claude:b claude:c pi:a0 pi:b/1");
        assert_eq!(beside("x"), "claude:c claude:{ pi:b/1 pi:ä");
        assert_eq!(beside(""), "claude:\0 claude:a pi:\0");
        let all = store.names().unwrap();
        for id in ids.iter().chain(&["", "a/", "a1", "zz", "\u{10ffff}"]) {
            let mut nearest = nearest(&named(id), all.iter().map(|(_, name)| name.clone()));
            nearest.sort();
            let mut found = store.beside(&named(id)).unwrap();
            found.sort();
            assert_eq!(found, nearest, "{id:?}");
        }
    });
}

#[test]
fn the_word_for_a_session_names_it_alone() {
    let long = |end: &str| format!("7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40{end}");
    let ids = [
        long(""),
        long("/agent-1"),
        long("/agent-10"),
        long("/agent-2"),
        "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c41".into(),
        "7c2a51de".into(),
        "9c2a51de-90b4".into(),
        "9c2a51de-90b4/q1".into(),
        "p12/agent-1".into(),
        "p123/agent-1".into(),
        "p123".into(),
        "claude:p123".into(),
        "pi:7c2a51de-1".into(),
        "日本日本日本日本日本".into(),
        "日本日本日本日本日言".into(),
        "s".into(),
    ];
    over_each(|store| {
        for (n, id) in ids.iter().enumerate() {
            for format in &["claude", "pi"][..=n % 2] {
                let mut writer = Writer::new(store, id);
                writer.name.format = (*format).to_owned();
                let ties = id.rsplit_once('/').map(|(above, _)| {
                    let tie = Tie { kind: TieKind::SubAgent, other: above.to_owned() };
                    (number(1), vec![tie])
                });
                commit(store, Commit { ties: ties.into_iter().collect(), ..writer.begin() })
                    .unwrap();
            }
        }
        let mut words = BTreeSet::new();
        for (key, name) in store.names().unwrap() {
            let found =
                |word: &str| verbs::find_session(store, Some(word), Path::new("/")).unwrap();
            let session = found(&format!("{}:{}", name.format, name.id));
            assert_eq!(session.key, key, "{name:?}");
            let word = verbs::short_name(store, &session).unwrap();
            assert_eq!(found(&word).key, key, "{name:?} by {word:?}");
            words.insert(word);
        }
        assert!(words.contains("7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c41"), "{words:?}");
        assert!(words.contains("日本日本日本日本日言"), "{words:?}");
    });
}

#[test]
fn a_list_shows_what_came_last_first() {
    over_each(|store| {
        let mut writers: Vec<Writer> =
            ["a", "b", "c"].into_iter().map(|id| Writer::new(store, id)).collect();
        for writer in &mut writers {
            commit(store, writer.begin()).unwrap();
        }
        let list = |limit, since| {
            let since = Some(Timestamp(since));
            let filter = SessionFilter { limit, since, ..SessionFilter::default() };
            let listed = listed(store, &filter).into_iter();
            listed.map(|listed| listed.name.id).collect::<String>()
        };
        assert_eq!(list(None, 0), "cba");
        for (at, limit, all) in [(0, 1, "acb"), (1, 2, "bac"), (1, 1, "bac"), (2, 3, "bca")] {
            let next = writers[at].next(&[], |_| {});
            let active = next.operation.at.0;
            commit(store, next).unwrap();
            assert_eq!(list(None, 0), all);
            assert_eq!(list(Some(limit), 0), all[..limit]);
            assert!(list(None, active).contains(&writers[at].name.id));
            assert!(!list(None, active + 1).contains(&writers[at].name.id));
        }
    });
}

#[test]
fn a_session_that_is_hidden_makes_room_in_a_list_for_the_one_behind_it() {
    over_each(|store| {
        for id in ["a", "b"] {
            commit(store, Writer::new(store, id).begin()).unwrap();
        }
        let mut writer = Writer::new(store, "c");
        commit(store, writer.begin()).unwrap();
        let mut next = writer.next(&[], |_| {});
        next.card = next.card.map(|card| Card { hidden: true, ..card });
        commit(store, next).unwrap();
        let list = |limit, hidden| {
            let filter = SessionFilter { limit, hidden, ..SessionFilter::default() };
            let listed = listed(store, &filter).into_iter();
            listed.map(|listed| listed.name.id).collect::<String>()
        };
        assert_eq!(
            [list(Some(1), false), list(Some(2), false), list(None, false)],
            ["b", "ba", "ba"]
        );
        assert_eq!(
            [list(Some(1), true), list(Some(2), true), list(None, true)],
            ["c", "cb", "cba"]
        );
    });
}

#[test]
fn a_session_of_which_no_time_is_known_stands_last_and_was_active_at_none() {
    over_each(|store| {
        let mut timeless = Writer::new(store, "a").begin();
        timeless.card = timeless.card.map(|card| Card { started: None, active: None, ..card });
        commit(store, timeless).unwrap();
        commit(store, Writer::new(store, "b").begin()).unwrap();
        let list = |since| {
            let filter = SessionFilter { since, ..SessionFilter::default() };
            let listed = listed(store, &filter).into_iter();
            listed.map(|listed| (listed.name.id, listed.card.active.is_some())).collect::<Vec<_>>()
        };
        let (a, b) = (("a".to_owned(), false), ("b".to_owned(), true));
        assert_eq!(list(None), [b.clone(), a]);
        for at in [0, -1] {
            assert_eq!(list(Some(Timestamp(at))), std::slice::from_ref(&b));
        }
    });
}

#[test]
fn a_tie_finds_the_sessions_of_a_format_that_have_it() {
    over_each(|store| {
        for (n, id) in ["d", "a", "c", "b"].into_iter().enumerate() {
            let mut writer = Writer::new(store, id);
            writer.name.format = if n == 2 { "pi" } else { "native" }.to_owned();
            let tie = |other: &str| Tie { kind: TieKind::Fork, other: other.into() };
            let mut begun = writer.begin();
            begun.ties = vec![(number(1), vec![tie("o"), tie(id)]), (number(2), vec![tie("o")])];
            commit(store, begun).unwrap();
            if n % 2 == 1 {
                // The same ties, of an operation that came later.
                let mut next = writer.next(&[], |_| {});
                next.ties = vec![(number(2), vec![tie("p"), tie("o"), tie("p")])];
                commit(store, next).unwrap();
            }
        }
        let tied = |format, kind, other: &str| {
            let tie = Tie { kind, other: other.into() };
            let tied = store.tied(format, &tie, None).unwrap();
            for (one, _) in &tied {
                let others: Vec<_> = tied.iter().filter(|(key, _)| key != one).cloned().collect();
                assert_eq!(store.tied(format, &tie, Some(*one)).unwrap(), others);
            }
            tied.into_iter().map(|(_, name)| name.id).collect::<Vec<_>>()
        };
        assert_eq!(tied("native", TieKind::Fork, "o"), ["a", "b", "d"]);
        assert_eq!(tied("native", TieKind::Fork, "p"), ["a", "b"]);
        assert_eq!(tied("pi", TieKind::Fork, "o"), ["c"]);
        assert_eq!(tied("native", TieKind::Fork, "d"), ["d"]);
        assert_eq!(tied("native", TieKind::Beginning, "o"), [""; 0]);
        assert_eq!(tied("native", TieKind::Fork, "%"), [""; 0]);
    });
}

#[test]
fn a_place_finds_the_sessions_that_have_a_file_there() {
    over_each(|store| {
        let mut one = Writer::new(store, "one");
        let mut other = Writer::new(store, "other");
        for next in [one.begin(), other.begin(), one.rare(), other.rare()] {
            commit(store, next).unwrap();
        }
        let found = |place: &Place| {
            let found = store.files(place).unwrap().into_iter();
            found.map(|(_, name, n)| format!("{} {n}", name.id)).collect::<Vec<_>>()
        };
        let [first, home, path] = [0, 1, 2].map(|n| one.state.files[n].clone());
        assert_eq!(found(&first), ["one 1", "other 1"]);
        assert_eq!(found(&home), ["one 2", "other 2"]);
        assert_eq!(found(&path), ["one 3", "other 3"]);
        // The same path on another computer, and elsewhere on this one, is another place.
        let Place::Path(machine, bytes) = path else { panic!() };
        assert_eq!(found(&Place::Path(MachineId::new(1), bytes.clone())), [""; 0]);
        assert_eq!(found(&Place::Home(machine, bytes.clone())), [""; 0]);
        assert_eq!(found(&Place::Store(bytes)), [""; 0]);
    });
}

#[test]
fn a_sub_agent_is_listed_when_asked_for_or_when_its_session_is_not_there() {
    over_each(|store| {
        let listed = |sub_agents| {
            let filter = SessionFilter { sub_agents, ..SessionFilter::default() };
            let listed = listed(store, &filter).into_iter();
            listed.map(|listed| listed.name.id).collect::<Vec<_>>().join(" ")
        };
        let mut agent = Writer::new(store, "s/agent");
        let tie = Tie { kind: TieKind::SubAgent, other: "s".into() };
        commit(store, Commit { ties: vec![(number(1), vec![tie.clone()])], ..agent.begin() })
            .unwrap();
        assert_eq!(listed(false), "s/agent");
        commit(store, Writer::new(store, "s").begin()).unwrap();
        assert_eq!(listed(false), "s");
        assert_eq!(listed(true), "s s/agent");
        // Ties take the place of those that the generation had.
        commit(store, Commit { ties: vec![(number(1), Vec::new())], ..agent.next(&[], |_| {}) })
            .unwrap();
        assert_eq!(listed(false), "s/agent s");
        let key = store.session(&agent.name).unwrap().unwrap();
        assert_eq!(store.ties(key).unwrap(), []);
        commit(store, Commit { ties: vec![(number(1), vec![tie])], ..agent.next(&[], |_| {}) })
            .unwrap();
        assert_eq!(listed(false), "s");
    });
}
