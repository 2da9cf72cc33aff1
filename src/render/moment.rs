//! Moments as people write them: an age, a day of this week, or a date.

#[expect(clippy::disallowed_types, reason = "moments are named where the reader is")]
use chrono::Local;
use chrono::{
    DateTime, Datelike as _, Days, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone as _,
    Timelike as _, Utc, Weekday,
};
use undertext::model::Timestamp;

use super::time::Zone;

/// The start of a period, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// This many milliseconds ago.
    Ago(i64),
    /// The beginning of the day this many days ago.
    DaysAgo(u64),
    /// The beginning of the last such weekday, today included.
    Weekday(Weekday),
    /// A day, or a time on a day, in the reader's zone.
    At(NaiveDateTime),
    /// A moment, independent of the zone.
    Moment(Timestamp),
}

impl Since {
    /// Parses a moment.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let word = text.trim().to_lowercase();
        let day = |date: NaiveDate| date.and_time(NaiveTime::MIN);
        let found = match word.as_str() {
            "today" => Some(Self::DaysAgo(0)),
            "yesterday" => Some(Self::DaysAgo(1)),
            "last week" | "week" => Some(Self::DaysAgo(7)),
            _ => None,
        };
        found
            .or_else(|| age(&word).map(Self::Ago))
            .or_else(|| word.parse().ok().map(Self::Weekday))
            .or_else(|| Timestamp::parse(text.trim()).map(Self::Moment))
            .or_else(|| NaiveDate::parse_from_str(&word, "%Y-%m-%d").ok().map(|date| Self::At(day(date))))
            .or_else(|| {
                let forms = ["%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dt%H:%M", "%Y-%m-%dt%H:%M:%S"];
                let read = |form: &&str| NaiveDateTime::parse_from_str(&word, form).ok();
                forms.iter().find_map(read).map(Self::At)
            })
            .ok_or_else(|| "use an age such as 7d or '3 days ago', a day such as yesterday or monday, or a date such as 2026-11-01".to_owned())
    }

    /// Returns the end of the named day, if a day was named.
    pub(crate) fn day_end(self, zone: Zone, now: Timestamp) -> Option<Timestamp> {
        let is_day = match self {
            Self::DaysAgo(days) => days == 1,
            Self::Weekday(_) => true,
            Self::At(moment) => moment.time() == NaiveTime::MIN,
            Self::Ago(_) | Self::Moment(_) => false,
        };
        let day = zone.moment(self.at(zone, now)).date();
        let next = day.checked_add_days(Days::new(1)).filter(|_| is_day)?;
        Some(Self::At(next.and_time(NaiveTime::MIN)).at(zone, now))
    }

    /// Returns the timestamp of the moment.
    pub(crate) fn at(self, zone: Zone, now: Timestamp) -> Timestamp {
        let today = zone.moment(now).date();
        let back = |days: u64| today.checked_sub_days(Days::new(days)).unwrap_or(today);
        let moment = match self {
            Self::Ago(age) => return Timestamp(now.0.saturating_sub(age)),
            Self::DaysAgo(days) => back(days).and_time(NaiveTime::MIN),
            Self::Weekday(day) => {
                let since = today.weekday().days_since(day);
                back(u64::from(since)).and_time(NaiveTime::MIN)
            }
            Self::At(moment) => moment,
            Self::Moment(moment) => return moment,
        };
        let moment = match zone {
            Zone::Utc => moment.and_utc(),
            Zone::Local => in_zone(moment, |moment| {
                Local.from_local_datetime(&moment).earliest().map(|moment| moment.to_utc())
            }),
        };
        Timestamp(moment.timestamp_millis())
    }
}

/// Maximum minutes by which a zone ever skipped ahead: a whole day.
const LONGEST_GAP: i64 = 24 * 60;

/// Returns the moment at which a zone's clock shows a time. If the clock skipped that time, returns the first moment after the
/// gap.
fn in_zone(
    time: NaiveDateTime,
    shown: impl Fn(NaiveDateTime) -> Option<DateTime<Utc>>,
) -> DateTime<Utc> {
    shown(time)
        .or_else(|| {
            let minute = time.with_second(0)?;
            let next = |minutes| shown(minute.checked_add_signed(TimeDelta::minutes(minutes))?);
            (1..=LONGEST_GAP).find_map(next)
        })
        .unwrap_or_else(|| time.and_utc())
}

/// Parses an age into milliseconds: `90m`, `3 days`, `an hour ago`.
pub(crate) fn age(text: &str) -> Option<i64> {
    const MINUTE: i64 = 60_000;
    let text = text.strip_suffix(" ago").unwrap_or(text);
    let end = text.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0);
    let (number, unit) = match end {
        Some(end) => (text.get(..end)?.parse::<u32>().ok()?, text.get(end..)?),
        None => (1, text.strip_prefix("an ").or_else(|| text.strip_prefix("a "))?),
    };
    let scale = match unit.trim_start() {
        "m" | "min" | "mins" | "minute" | "minutes" => MINUTE,
        "h" | "hour" | "hours" => 60 * MINUTE,
        "d" | "day" | "days" => 24 * 60 * MINUTE,
        "w" | "week" | "weeks" => 7 * 24 * 60 * MINUTE,
        "month" | "months" => 30 * 24 * 60 * MINUTE,
        _ => return None,
    };
    i64::from(number).checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_and_a_unit() {
        let check = |text, expected: Option<i64>| assert_eq!(age(text), expected, "{text}");
        check("30m", Some(1_800_000));
        check("7d", Some(604_800_000));
        check("4294967295w", Some(4_294_967_295 * 604_800_000));
        check("3 days ago", Some(3 * 86_400_000));
        check("90 min", Some(5_400_000));
        check("an hour ago", Some(3_600_000));
        check("a week", Some(604_800_000));
        for wrong in ["", "d", "7", "-1d", "7y", "7é", "1.5h", "ago", "3 ago", "a", "a 3d", "days"]
        {
            check(wrong, None);
        }
    }

    /// Such a time was read as UTC, hours away: in Cairo it is midnight that is skipped, with which a day begins.
    #[test]
    fn a_time_that_the_clock_skips_is_the_first_one_behind_it() {
        let time = |text: &str| NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S").unwrap();
        let check = |gap: [&str; 2], hours: [i64; 2], text: &str, to: &str| {
            let [begin, end] = gap.map(time);
            let shown = |moment: NaiveDateTime| {
                let hours = if moment < begin { hours[0] } else { hours[1] };
                let utc = moment - TimeDelta::hours(hours);
                (moment < begin || moment >= end).then(|| utc.and_utc())
            };
            assert_eq!(in_zone(time(text), shown), time(to).and_utc(), "{text}");
        };
        let cairo = |text, to| {
            check(["2026-04-24 00:00:00", "2026-04-24 01:00:00"], [2, 3], text, to);
        };
        cairo("2026-04-23 23:59:59", "2026-04-23 21:59:59");
        cairo("2026-04-24 00:00:00", "2026-04-23 22:00:00");
        cairo("2026-04-24 00:30:15", "2026-04-23 22:00:00");
        cairo("2026-04-24 01:00:00", "2026-04-23 22:00:00");
        cairo("2026-04-24 01:30:00", "2026-04-23 22:30:00");
        let apia = ["2011-12-30 00:00:00", "2011-12-31 00:00:00"];
        check(apia, [-10, 14], "2011-12-30 00:00:00", "2011-12-30 10:00:00");
    }

    #[test]
    fn a_moment_has_many_names() {
        // A Saturday, 04:05:06.
        let now = Timestamp(981_173_106_789);
        let check = |text: &str, to: &str| {
            let at = Since::read(text).unwrap().at(Zone::Utc, now);
            assert_eq!(Zone::Utc.show(at), to, "{text}");
        };
        check("1h", "2001-02-03 03:05:06");
        check("today", "2001-02-03 00:00:00");
        check("Yesterday", "2001-02-02 00:00:00");
        check("saturday", "2001-02-03 00:00:00");
        check("mon", "2001-01-29 00:00:00");
        check("2001-01-30", "2001-01-30 00:00:00");
        check("2001-01-30 12:30", "2001-01-30 12:30:00");
        check("2001-01-30T12:30:15", "2001-01-30 12:30:15");
        let day_end = |text: &str| Since::read(text).unwrap().day_end(Zone::Utc, now);
        let check_end = |text, to: &str| {
            assert_eq!(day_end(text).map(|end| Zone::Utc.show(end)).as_deref(), Some(to));
        };
        check_end("yesterday", "2001-02-03 00:00:00");
        check_end("mon", "2001-01-30 00:00:00");
        check_end("2001-01-30", "2001-01-31 00:00:00");
        for no_day in ["today", "1d", "last week", "2001-01-30 12:30"] {
            assert_eq!(day_end(no_day), None, "{no_day}");
        }
        // As JSON has it.
        check("2001-01-30T12:30:15.250Z", "2001-01-30 12:30:15");
        check("2001-01-30T12:30:15+02:00", "2001-01-30 10:30:15");
        for wrong in ["", "soon", "2001-13-01", "someday"] {
            assert!(Since::read(wrong).is_err(), "{wrong}");
        }
    }
}
