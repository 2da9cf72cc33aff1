//! Quantities for people: exact if small, rounded if large.

use undertext::report::Expense;

/// Number of digits shown of an entry's id.
pub(crate) const DIGITS: usize = 8;

const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];

/// Formats a number of bytes as `512 B` or, rounded down to tenths of a decimal unit, `3.4 MB`.
pub(crate) fn size(bytes: u64) -> String {
    let mut scale = 1;
    let mut shown = format!("{bytes} B");
    for unit in UNITS {
        scale *= 1000;
        if bytes < scale {
            break;
        }
        shown = format!("{}.{} {unit}", bytes / scale, bytes % scale / (scale / 10));
    }
    shown
}

/// Describes the number of tokens before and after a compaction.
pub(crate) fn compacted(tokens: (Option<u64>, Option<u64>)) -> Option<String> {
    match tokens {
        (Some(before), Some(after)) => {
            Some(format!("{} → {} tokens", grouped(before), grouped(after)))
        }
        (Some(before), None) => Some(format!("{} tokens before", grouped(before))),
        (None, Some(after)) => Some(format!("{} tokens after", grouped(after))),
        (None, None) => None,
    }
}

/// Describes a compaction briefly.
pub(crate) fn compaction(tokens: (Option<u64>, Option<u64>)) -> String {
    match tokens {
        (Some(before), Some(after)) => {
            format!("compacted {} → {} tokens", rounded(before), rounded(after))
        }
        (Some(before), None) => format!("compacted {} tokens", rounded(before)),
        (None, Some(after)) => format!("compacted to {} tokens", rounded(after)),
        (None, None) => "compacted".to_owned(),
    }
}

/// Returns a bar whose height shows a part's share of a whole.
pub(crate) fn bar(part: u64, whole: u64) -> char {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let eighths = (tenths(part, whole) * 8).div_ceil(1000).clamp(1, 8);
    usize::try_from(eighths - 1).ok().and_then(|at| BARS.get(at)).copied().unwrap_or('█')
}

/// Returns a part of a whole in tenths of a percent, rounded down.
pub(crate) fn tenths(part: u64, whole: u64) -> u64 {
    let tenths = (u128::from(part) * 1000).checked_div(u128::from(whole)).unwrap_or(0);
    u64::try_from(tenths).unwrap_or(u64::MAX)
}

/// Formats a part of a whole as `12%`, or as `<1%` if it is less but not zero.
pub(crate) fn share(part: u64, whole: u64) -> String {
    match tenths(part, whole) / 10 {
        0 if part > 0 => "<1%".to_owned(),
        share => format!("{share}%"),
    }
}

/// Formats tenths of a percent as `12.3%`.
pub(crate) fn percent(tenths: u64) -> String {
    format!("{}.{}%", tenths / 10, tenths % 10)
}

/// Formats a number with a comma between groups of three digits.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Formats a number of cents as `$1,234.56`.
pub(crate) fn dollars(cents: u64) -> String {
    format!("${}.{:02}", grouped(cents / 100), cents % 100)
}

/// Formats a cost; a plus means that more has no price.
pub(crate) fn cost(expense: &Expense) -> Option<String> {
    let cost = expense.cost?;
    let plus = if expense.unpriced > 0 { "+" } else { "" };
    let cents = cost.saturating_add(5_000) / 10_000;
    let is_less = cents == 0 && cost > 0;
    Some(if is_less { "<$0.01".to_owned() } else { format!("{}{plus}", dollars(cents)) })
}

/// Formats what was used: the tokens of requests and answers, and the cost.
pub(crate) fn used(expense: &Expense) -> Option<String> {
    let usage = &expense.usage;
    let asked = usage.input.saturating_add(usage.cache_write);
    let [asked, cached, said] = [asked, usage.cache_read, usage.output].map(rounded);
    let tokens = format!("{asked} tokens in, {cached} cached, {said} out");
    let parts = [Some(tokens), cost(expense)];
    (usage.total() > 0).then(|| parts.into_iter().flatten().collect::<Vec<_>>().join(" · "))
}

/// Formats a span of milliseconds as `1 min 49 s`.
pub(crate) fn span(ms: i64) -> String {
    let s = ms / 1_000;
    match s {
        0..60 => format!("{s} s"),
        60..3_600 if s % 60 == 0 => format!("{} min", s / 60),
        60..3_600 => format!("{} min {} s", s / 60, s % 60),
        3_600..172_800 => format!("{} h {} min", s / 3_600, s % 3_600 / 60),
        _ => format!("{} days", s / 86_400),
    }
}

/// Formats a number in thousands or millions, such as `21k` or `1.2M`.
pub(crate) fn rounded(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..999_500 => format!("{}k", (n + 500) / 1_000),
        _ => {
            let tenths = n.saturating_add(50_000) / 100_000;
            format!("{}.{}M", tenths / 10, tenths % 10)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact_below_a_kilobyte_and_cut_above() {
        let check = |bytes, to: &str| assert_eq!(size(bytes), to);
        check(0, "0 B");
        check(999, "999 B");
        check(1000, "1.0 kB");
        check(3_456_789, "3.4 MB");
        check(u64::MAX, "18.4 EB");
    }

    #[test]
    fn percents_are_cut_to_tenths() {
        let check = |part, whole, to: &str| assert_eq!(percent(tenths(part, whole)), to);
        check(2, 3, "66.6%");
        check(3, 2, "150.0%");
        check(1, 0, "0.0%");
        check(u64::MAX, u64::MAX, "100.0%");
    }

    #[test]
    fn a_rounded_number_has_two_or_three_digits() {
        let check = |n, to: &str| assert_eq!(rounded(n), to);
        check(0, "0");
        check(999, "999");
        check(1_499, "1k");
        check(21_500, "22k");
        check(999_499, "999k");
        check(999_500, "1.0M");
        check(1_234_567, "1.2M");
    }

    #[test]
    fn digits_stand_in_threes() {
        let check = |n, to: &str| assert_eq!(grouped(n), to);
        check(0, "0");
        check(999, "999");
        check(1000, "1,000");
        check(324_805, "324,805");
        check(1_234_567, "1,234,567");
    }
}
