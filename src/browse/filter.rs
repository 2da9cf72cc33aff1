//! The filter of the list: words, and conditions such as `is:reverted` and `since:3d`.

use undertext::model::Timestamp;

use super::data::SessionRow;
use crate::render::moment::Since;
use crate::render::time::Zone;

/// What a filter looks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    /// The words to match.
    pub(super) words: String,
    conditions: Vec<Condition>,
    since: Option<Timestamp>,
    /// The conditions that do not exist.
    pub(super) unknown: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Reverted,
    Compacted,
    Deleted,
    Open,
}

const CONDITIONS: [(&str, Condition); 4] = [
    ("reverted", Condition::Reverted),
    ("compacted", Condition::Compacted),
    ("deleted", Condition::Deleted),
    ("open", Condition::Open),
];

impl Filter {
    /// Parses a filter. An unfinished condition is unknown and has no effect.
    pub(super) fn parse(text: &str, zone: Zone, now: Timestamp) -> Self {
        let mut filter = Self::default();
        let mut words = Vec::new();
        for word in text.split_whitespace() {
            if let Some(name) = word.strip_prefix("is:") {
                match CONDITIONS.iter().find(|(known, _)| *known == name) {
                    Some((_, condition)) => filter.conditions.push(*condition),
                    None => filter.unknown.push(word.to_owned()),
                }
            } else if let Some(time) = word.strip_prefix("since:") {
                match Since::read(time) {
                    Ok(since) => filter.since = Some(since.at(zone, now)),
                    Err(_) => filter.unknown.push(word.to_owned()),
                }
            } else {
                words.push(word);
            }
        }
        filter.words = words.join(" ");
        filter
    }

    /// Returns true if a session meets the conditions.
    pub(super) fn admits(&self, row: &SessionRow) -> bool {
        let listed = &row.listed;
        let is_met = |condition: &Condition| match condition {
            Condition::Reverted => listed.reverted > 0,
            Condition::Compacted => listed.compactions > 0,
            Condition::Deleted => listed.gone,
            Condition::Open => listed.open,
        };
        self.since.is_none_or(|since| listed.card.active >= Some(since))
            && self.conditions.iter().all(is_met)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_conditions_are_separated() {
        let filter = |text| Filter::parse(text, Zone::Utc, Timestamp(10 * 86_400_000));
        let parsed = filter("retry is:reverted web since:3d is:open");
        assert_eq!(parsed.words, "retry web");
        assert_eq!(parsed.conditions, [Condition::Reverted, Condition::Open]);
        assert_eq!(parsed.since, Some(Timestamp(7 * 86_400_000)));
        assert_eq!(filter("is:rever since:x").unknown, ["is:rever", "since:x"]);
    }
}
