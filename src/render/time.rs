//! Times for people, in the reader's zone: to the second, abbreviated, or as an age.

#[expect(clippy::disallowed_types, reason = "times are shown where the reader is")]
use chrono::Local;
use chrono::{Datelike as _, NaiveDateTime};
use undertext::model::Timestamp;

/// The zone in which times are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    Utc,
    Local,
}

impl Zone {
    /// Formats a time as `2026-08-01 10:00:01`.
    pub(crate) fn show(self, time: Timestamp) -> String {
        self.moment(time).format("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// Formats a time as `2026-08-01 10:00`.
    pub(crate) fn minute(self, time: Timestamp) -> String {
        self.moment(time).format("%Y-%m-%d %H:%M").to_string()
    }

    /// Formats a time to the minute, without the day if it is today, and without the year if it is this year.
    pub(crate) fn short(self, now: Timestamp, time: Timestamp) -> String {
        let (today, moment) = (self.moment(now), self.moment(time));
        let form = match () {
            () if moment.date() == today.date() => "%H:%M",
            () if moment.year() == today.year() => "%-d %b %H:%M",
            () => "%Y-%m-%d %H:%M",
        };
        moment.format(form).to_string()
    }

    /// Formats a span as `26 Nov 13:55–16:13`, with the year if it is not this year, and with the zone.
    pub(crate) fn span(self, now: Timestamp, from: Timestamp, to: Timestamp) -> String {
        let [now, from, to] = [now, from, to].map(|time| self.moment(time));
        let day = |at: NaiveDateTime| {
            let form = if at.year() == now.year() { "%-d %b" } else { "%-d %b %Y" };
            at.format(form).to_string()
        };
        let [first, end] = [from, to].map(|at| at.format("%H:%M").to_string());
        let end = match (from.date() == to.date(), first == end) {
            (true, true) => String::new(),
            (true, false) => format!("–{end}"),
            (false, _) => format!(" – {} {end}", day(to)),
        };
        format!("{} {first}{end}", day(from))
    }

    /// Formats how long ago a time was, such as `3 h ago`. A distant or future time is shown as its day.
    pub(crate) fn age(self, now: Timestamp, time: Timestamp) -> String {
        const MINUTE: i64 = 60_000;
        const HOUR: i64 = 60 * MINUTE;
        const DAY: i64 = 24 * HOUR;
        match now.0.saturating_sub(time.0) {
            past @ 0.. if past < MINUTE => "just now".to_owned(),
            past @ 0.. if past < HOUR => format!("{} min ago", past / MINUTE),
            past @ 0.. if past < DAY => format!("{} h ago", past / HOUR),
            past @ 0.. if past < 30 * DAY => format!("{} d ago", past / DAY),
            _ => self.moment(time).format("%Y-%m-%d").to_string(),
        }
    }

    /// Returns a time on the zone's clock.
    pub(crate) fn moment(self, time: Timestamp) -> NaiveDateTime {
        match self {
            Self::Utc => time.utc().naive_utc(),
            Self::Local => time.utc().with_timezone(&Local).naive_local(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_shown_to_the_second() {
        assert_eq!(Zone::Utc.show(Timestamp(981_173_106_789)), "2001-02-03 04:05:06");
        assert_eq!(Zone::Utc.minute(Timestamp(981_173_106_789)), "2001-02-03 04:05");
    }

    #[test]
    fn a_short_moment_leaves_out_what_it_shares_with_now() {
        let now = Timestamp(981_173_106_789);
        let check = |before: i64, to: &str| {
            assert_eq!(Zone::Utc.short(now, Timestamp(now.0 - before)), to);
        };
        check(60_000, "04:04");
        check(86_400_000, "2 Feb 04:05");
        check(86_400_000 * 40, "2000-12-25 04:05");
    }

    #[test]
    fn a_span_says_each_day_once() {
        let (now, minute, day) = (Timestamp(981_173_106_789), 60_000, 86_400_000);
        let check = |from: i64, to: i64, expected: &str| {
            let [from, to] = [from, to].map(|before| Timestamp(now.0 - before));
            assert_eq!(Zone::Utc.span(now, from, to), expected);
        };
        check(minute, minute, "3 Feb 04:04");
        check(2 * minute, 0, "3 Feb 04:03–04:05");
        check(day, 0, "2 Feb 04:05 – 3 Feb 04:05");
        check(40 * day, 0, "25 Dec 2000 04:05 – 3 Feb 04:05");
    }

    #[test]
    fn an_age_is_in_its_largest_unit_and_far_ones_are_days() {
        let now = Timestamp(981_173_106_789);
        let check = |before: i64, to: &str| {
            assert_eq!(Zone::Utc.age(now, Timestamp(now.0 - before)), to);
        };
        check(59_999, "just now");
        check(60_000, "1 min ago");
        check(3 * 3_600_000 + 1, "3 h ago");
        check(29 * 86_400_000, "29 d ago");
        check(30 * 86_400_000, "2001-01-04");
        check(-86_400_000, "2001-02-04");
    }
}
