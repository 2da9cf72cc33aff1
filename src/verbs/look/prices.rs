//! Prices: what models cost, from a table that is part of the program and from the user's settings.
//!
//! Invariant: money is a whole number of millionths of a dollar, so sums are exact.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    model::Usage,
    settings::{Price, Rate},
};

/// The table: a source, a date, and a price for each model.
const TABLE: &str = include_str!("prices.toml");
/// How many tokens a rate is for.
const MILLION: u128 = 1_000_000;

/// The prices of models.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Prices {
    /// Where the table was copied from.
    pub source: String,
    /// The day on which it was copied.
    pub date: String,
    models: BTreeMap<String, Price>,
}

impl Prices {
    /// Returns the table, with the user's prices instead of or in addition to it.
    pub fn with(own: &BTreeMap<String, Price>) -> Self {
        // A test reads the table.
        let mut prices: Self = toml::from_str(TABLE).unwrap_or_default();
        prices.models.extend(own.iter().map(|(name, price)| (name.clone(), *price)));
        prices
    }

    /// Returns what these tokens cost in millionths of a dollar, if the model's price is known.
    pub fn cost(&self, model: &str, usage: &Usage) -> Option<u64> {
        let Price { input, output, cache_read, cache_write } = self.price(model)?;
        let parts = [
            (usage.input, *input),
            (usage.output, *output),
            (usage.cache_read, cache_read.unwrap_or(*input)),
            (usage.cache_write, cache_write.unwrap_or(*input)),
        ];
        let cost = |(tokens, Rate(rate)): (u64, Rate)| u128::from(tokens) * u128::from(rate);
        let cost = parts.into_iter().map(cost).fold(0_u128, u128::saturating_add);
        Some(u64::try_from((cost + MILLION / 2) / MILLION).unwrap_or(u64::MAX))
    }

    /// Returns the price of a model: by its exact name, then without a provider before it, then without a version after it.
    fn price(&self, model: &str) -> Option<&Price> {
        let model = model.to_lowercase();
        let bare = model.rsplit('/').next().unwrap_or(&model);
        // Clouds put the region and the maker before a full stop.
        let plain = bare.rsplit_once("anthropic.").map_or(bare, |(_, plain)| plain);
        let names = [model.as_str(), bare, plain, unversioned(plain)];
        names.into_iter().find_map(|name| self.models.get(name))
    }
}

/// Returns a model's name without a version: `-20250929`, `-2025-04-14`, `-v1:0`, `@20250929`, `[1m]` or `-latest`.
fn unversioned(name: &str) -> &str {
    let name = name.strip_suffix("[1m]").unwrap_or(name);
    let name = name.strip_suffix("-latest").unwrap_or(name);
    let name = name.rsplit_once("-v").filter(|(_, n)| is_of(n, ":")).map_or(name, |(name, _)| name);
    let date = |(at, _): (usize, &str)| {
        let (name, date) = name.split_at_checked(at)?;
        let digits = date.bytes().filter(u8::is_ascii_digit).count();
        (digits == 8 && is_of(date.get(1..)?, "-")).then_some(name)
    };
    name.match_indices(['-', '@']).find_map(date).unwrap_or(name)
}

/// Returns true if a text has only digits and these marks.
fn is_of(text: &str, marks: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || marks.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_positive_and_without_twins() {
        let prices = Prices::with(&BTreeMap::new());
        assert!(!prices.source.is_empty() && prices.date.len() == 10);
        let rows: Vec<&str> = TABLE.lines().filter(|line| line.starts_with('"')).collect();
        let names = rows.iter().map(|row| row.split('"').nth(1).unwrap());
        assert!(names.eq(prices.models.keys()), "sorted, each once");
        assert!(rows.len() > 60);
        for (name, price) in &prices.models {
            let rates =
                [Some(price.input), Some(price.output), price.cache_read, price.cache_write];
            assert!(rates.into_iter().flatten().all(|Rate(rate)| rate > 0), "{name}");
            assert!(price.cache_read.is_none_or(|read| read <= price.input), "{name}");
            assert_eq!(unversioned(name), name);
        }
    }

    #[test]
    fn a_model_is_found_by_its_name_without_provider_and_version() {
        let own = Price { input: Rate(7_000_000), ..Price::default() };
        let prices = Prices::with(&BTreeMap::from([("openai/gpt-5".to_owned(), own)]));
        let million = Usage { input: 1_000_000, ..Usage::default() };
        let check = |model: &str, dollars: Option<u64>| {
            let cost = prices.cost(model, &million).map(|cost| cost / 1_000_000);
            assert_eq!(cost, dollars, "{model}");
        };
        check("claude-sonnet-4-5", Some(3));
        check("Claude-Sonnet-4-5-20250929", Some(3));
        check("claude-sonnet-4-5@20250929", Some(3));
        check("anthropic/claude-opus-4-5", Some(5));
        check("us.anthropic.claude-opus-4-5-20251101-v1:0", Some(5));
        check("claude-opus-4-6[1m]", Some(5));
        check("gpt-4.1-2025-04-14", Some(2));
        check("claude-3-7-sonnet-latest", Some(3));
        check("gpt-5", Some(1));
        check("openai/gpt-5", Some(7));
        for unknown in ["", "gpt", "gpt-5-turbo", "-20250929", "é/", "claude-sonnet-4-5-2025"] {
            check(unknown, None);
        }
    }

    #[test]
    fn a_cost_is_exact_to_the_millionth_and_never_overflows() {
        let price = |text: &str| toml::from_str::<Price>(text);
        let own = price("input = 3\noutput = 15.0\ncache_read = 0.3").unwrap();
        let prices = Prices::with(&BTreeMap::from([("m".to_owned(), own)]));
        let check = |[input, output, cache_read, cache_write]: [u64; 4], cost| {
            let usage = Usage { input, output, cache_read, cache_write };
            assert_eq!(prices.cost("m", &usage), Some(cost));
        };
        check([1, 0, 0, 0], 3);
        check([1, 2, 10, 1], 39);
        check([0, 0, 1, 0], 0);
        check([0, 0, 2, 0], 1);
        check([u64::MAX; 4], u64::MAX);
        for wrong in ["input = -1.0", "input = nan", "input = inf", "input = \"3\""] {
            assert!(price(wrong).is_err(), "{wrong}");
        }
    }
}
