//! Time: milliseconds since 1970 in UTC. Never read from the clock here; callers pass it in.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, Datelike as _, SecondsFormat, Utc};

/// A moment, to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Reads an RFC 3339 text.
    pub fn parse(text: &str) -> Option<Self> {
        DateTime::parse_from_rfc3339(text).ok().map(|time| Self(time.timestamp_millis()))
    }

    /// Decodes a stored time, in which 0 means unknown.
    pub(crate) fn known(number: i64) -> Option<Self> {
        (number != 0).then_some(Self(number))
    }

    /// Returns the moment in UTC; moments outside the years 1 to 9999 become 1970.
    pub fn utc(self) -> DateTime<Utc> {
        let moment = DateTime::from_timestamp_millis(self.0);
        moment.filter(|moment| (1..=9999).contains(&moment.year())).unwrap_or_default()
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let millis = |since: Duration| i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Self(millis(since)),
            Err(before) => Self(-millis(before.duration())),
        }
    }
}

impl fmt::Display for Timestamp {
    /// Writes RFC 3339 with milliseconds, as agents do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.utc().to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_1970_gives_a_negative_time() {
        for millis in [0, 1, 250, 86_400_000, 253_402_300_799_999] {
            let since = Duration::from_millis(millis);
            let millis = i64::try_from(millis).unwrap();
            assert_eq!(Timestamp::from(SystemTime::UNIX_EPOCH + since), Timestamp(millis));
            assert_eq!(Timestamp::from(SystemTime::UNIX_EPOCH - since), Timestamp(-millis));
        }
    }

    #[test]
    fn a_timestamp_reads_what_it_writes() {
        let text = "2026-08-01T10:00:01.250Z";
        assert_eq!(Timestamp::parse(text).unwrap().to_string(), text);
        assert_eq!(Timestamp::parse("2026-08-01T12:00:01.250+02:00").unwrap().to_string(), text);
        assert_eq!(Timestamp::parse("yesterday"), None);
        for beyond in [i64::MAX, i64::MIN, 8_210_266_876_799_999, 253_402_300_800_000] {
            assert_eq!(Timestamp(beyond).to_string(), "1970-01-01T00:00:00.000Z");
        }
        assert_eq!(Timestamp(253_402_300_799_999).to_string(), "9999-12-31T23:59:59.999Z");
    }
}
