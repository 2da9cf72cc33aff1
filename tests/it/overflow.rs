//! Refusals as providers word them: those that tell of an overflow, and those that do not.
//!
//! Some were read while the judge was built, and all of these must be right. The others were written beforehand and kept
//! back, or written since by someone who did not look: of these nearly all must be right, which tells how the next ones fare.

use undertext::context::overflow::{Figures, Verdict, judge};

/// Returns the lines of a list, each cut into so many fields, the first of which is a status.
fn lines(text: &'static str, fields: usize) -> Vec<(Option<u16>, Vec<&'static str>)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let fields: Vec<&str> = line.splitn(fields, '|').collect();
            (fields[0].parse().ok(), fields[1..].to_vec())
        })
        .collect()
}

#[test]
fn an_overflow_is_told_with_its_figures() {
    for (status, fields) in lines(include_str!("../overflow/seen.txt"), 4) {
        let [used, limit, said] = fields[..] else { panic!("{fields:?}") };
        let figures = Figures { used: used.parse().ok(), limit: limit.parse().ok() };
        assert_eq!(judge(status, said), Verdict::Overflow(figures), "{said}");
    }
}

#[test]
fn a_rate_a_refusal_and_a_busy_server_are_no_overflow() {
    for (status, fields) in lines(include_str!("../overflow/others.txt"), 3) {
        let [expected, said] = fields[..] else { panic!("{fields:?}") };
        let is = match judge(status, said) {
            Verdict::RateLimited(_) => "rate",
            Verdict::Unavailable => "busy",
            Verdict::Refused => "refused",
            Verdict::Overflow(figures) => panic!("an overflow of {figures:?}: {said}"),
        };
        assert_eq!(is, expected, "{said}");
    }
}

/// Returns the lines of a list that are, or are not, taken for an overflow, and how many lines there are.
fn told(text: &'static str, is_overflow: bool) -> (Vec<&'static str>, usize) {
    let all = lines(text, 2);
    let is = |status, said| matches!(judge(status, said), Verdict::Overflow(_)) == is_overflow;
    let found = all.iter().filter(|(status, said)| is(*status, said[0]));
    (found.map(|(_, said)| said[0]).collect(), all.len())
}

#[test]
fn wordings_that_were_kept_back_are_told_apart_too() {
    let (missed, of) = told(include_str!("../overflow/held.txt"), false);
    assert!(of > 200 && missed.len() * 20 <= of, "{} of {of}: {missed:#?}", missed.len());
    let (taken, of) = told(include_str!("../overflow/others-held.txt"), true);
    assert!(of > 140 && taken.len() * 25 <= of, "{} of {of}: {taken:#?}", taken.len());
}
