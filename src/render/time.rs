//! Moments for people: to the second, in the reader's zone.

use chrono::Local;
use undertext::model::Timestamp;

/// The zone that times are shown in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    Utc,
    Local,
}

impl Zone {
    /// Returns a moment as `2026-08-01 10:00:01`.
    pub(crate) fn show(self, time: Timestamp) -> String {
        let form = "%Y-%m-%d %H:%M:%S";
        match self {
            Self::Utc => time.utc().format(form).to_string(),
            Self::Local => time.utc().with_timezone(&Local).format(form).to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_shown_to_the_second() {
        assert_eq!(Zone::Utc.show(Timestamp(981_173_106_789)), "2001-02-03 04:05:06");
    }
}
