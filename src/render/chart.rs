//! The picture of `stats`: a year as a heat map, days as bars, and the largest agents, models and folders. One SVG file without
//! scripts or references, in light and dark.
//!
//! ```text
//! $ 123.45   61 sessions ..
//! ▒ ░ █ .. 53 weeks, Monday on top      darker is more
//! ▂▁▅█▂ .. 90 days: cost, tokens
//! Agents  Models  Folders               the largest eight of each
//! ```
//!
//! Invariant: every text from outside is escaped, here and nowhere else.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use chrono::{Datelike as _, Days, NaiveDate};
use undertext::report::{Expense, Spent};

use super::safe;
use super::units::{self, grouped, rounded, tenths};

const WIDTH: u64 = 900;
const MARGIN: u64 = 30;
/// The number of weeks in the heat map.
const WEEKS: u64 = 53;
/// The side of a day in it, with its gap.
const CELL: u64 = 15;
/// The number of days in the bar charts, and their height.
const BARS: u64 = 90;
const HEIGHT: u64 = 70;
/// The largest number of rows of a group.
const ROWS: usize = 8;
/// The longest name of a row in columns.
pub(crate) const NAME: usize = 30;

/// Its style. A page that has it inside allows exactly this text.
pub(crate) const STYLE: &str = "\
svg{--bg:#fff;--fg:#1f2328;--dim:#656d76;--bar:#2f81a8;--l0:#ebedf0;--l1:#b7dcec;--l2:#74b6d3;--l3:#3a8db5;--l4:#175a7d}
@media(prefers-color-scheme:dark){svg{--bg:#0d1117;--fg:#e6edf3;--dim:#8d96a0;--bar:#58a6c8;--l0:#1c2128;--l1:#123c52;--l2:#1d6285;--l3:#3591bd;--l4:#7fd0f5}}
text{font:12px system-ui,sans-serif;fill:var(--fg)}.h{font-size:15px;font-weight:600}.d{fill:var(--dim)}.e{text-anchor:end}
.p{fill:var(--bg)}.b{fill:var(--bar)}.l0{fill:var(--l0)}.l1{fill:var(--l1)}.l2{fill:var(--l2)}.l3{fill:var(--l3)}.l4{fill:var(--l4)}";

/// What the picture shows.
pub(crate) struct Chart {
    pub(crate) all: Expense,
    pub(crate) days: Vec<Spent>,
    /// Groups with their headings.
    pub(crate) groups: Vec<(&'static str, Vec<Spent>)>,
    pub(crate) today: NaiveDate,
    /// Where the prices are from.
    pub(crate) source: String,
}

/// The elements drawn so far, and the top of the next one.
struct Canvas {
    body: String,
    y: u64,
}

impl Canvas {
    fn text(&mut self, x: u64, class: &str, text: &str) {
        let (y, text) = (self.y, escaped(text));
        let _ = writeln!(self.body, r#"<text x="{x}" y="{y}" class="{class}">{text}</text>"#);
    }

    /// Draws a box of `[x, y, width, height]` with a tooltip.
    fn block(&mut self, [x, y, width, height]: [u64; 4], class: &str, tip: &str) {
        let tip = escaped(tip);
        let _ = writeln!(
            self.body,
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="2" class="{class}"><title>{tip}</title></rect>"#
        );
    }
}

/// Returns the picture.
pub(crate) fn draw(chart: &Chart) -> String {
    let mut canvas = Canvas { body: String::new(), y: MARGIN + 10 };
    let Expense { sessions, turns, requests, usage, .. } = &chart.all;
    let many = |n: u64, one: &str| format!("{} {one}{}", grouped(n), if n == 1 { "" } else { "s" });
    let facts = [
        cost(&chart.all),
        many(*sessions, "session"),
        many(*turns, "turn"),
        many(*requests, "request"),
        format!("{} tokens", rounded(usage.total())),
    ];
    let facts = facts.join(" · ");
    canvas.text(MARGIN, "h", &facts);
    canvas.y += 30;
    let days: BTreeMap<&str, &Expense> =
        chart.days.iter().filter_map(|day| Some((day.name.as_deref()?, &day.expense))).collect();
    year(&mut canvas, chart, &days);
    bars(&mut canvas, chart, &days, "Cost by day", &|it| it.cost.unwrap_or(0));
    bars(&mut canvas, chart, &days, "Tokens by day", &|it| it.usage.total());
    for (heading, rows) in &chart.groups {
        group(&mut canvas, chart, heading, rows);
    }
    canvas.text(MARGIN, "d", &format!("undertext · estimated from {}", chart.source));
    let (height, body) = (canvas.y + MARGIN, canvas.body);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n\
         <rect width=\"100%\" height=\"100%\" class=\"p\"/>\n{body}</svg>\n",
        escaped(&facts)
    )
}

/// Returns what is compared: costs, or tokens if no price is known.
fn weight(chart: &Chart, expense: &Expense) -> u64 {
    if chart.all.cost.is_some() { expense.cost.unwrap_or(0) } else { expense.usage.total() }
}

fn cost(expense: &Expense) -> String {
    units::cost(expense).unwrap_or_else(|| "no price".to_owned())
}

fn tip(name: &str, expense: &Expense) -> String {
    let tokens = rounded(expense.usage.total());
    format!("{name}: {}, {tokens} tokens, {} turns", cost(expense), grouped(expense.turns))
}

/// Draws the last year, a column for each week.
fn year(canvas: &mut Canvas, chart: &Chart, days: &BTreeMap<&str, &Expense>) {
    let weekday = u64::from(chart.today.weekday().num_days_from_monday());
    let back = (WEEKS - 1) * 7 + weekday;
    let first = chart.today.checked_sub_days(Days::new(back)).unwrap_or(chart.today);
    let dates = (0..=back).filter_map(|n| Some((n, first.checked_add_days(Days::new(n))?)));
    let dates: Vec<(u64, NaiveDate)> = dates.collect();
    let found = |date: NaiveDate| days.get(date.to_string().as_str()).copied();
    let weights = dates.iter().filter_map(|(_, date)| Some(weight(chart, found(*date)?)));
    let most = weights.max().unwrap_or(0);
    for (n, date) in &dates {
        if date.day() == 1 {
            canvas.text(MARGIN + n / 7 * CELL, "d", &date.format("%b").to_string());
        }
    }
    canvas.y += 8;
    for (n, date) in dates {
        let place = [MARGIN + n / 7 * CELL, canvas.y + n % 7 * CELL, CELL - 3, CELL - 3];
        let name = date.to_string();
        let (level, tip) = match found(date) {
            Some(expense) => {
                let share = tenths(weight(chart, expense), most);
                (1 + (share * 4).div_ceil(1_000).saturating_sub(1).min(3), tip(&name, expense))
            }
            None => (0, name),
        };
        canvas.block(place, &format!("l{level}"), &tip);
    }
    canvas.y += 7 * CELL + 30;
}

/// Draws the last days as bars.
fn bars(
    canvas: &mut Canvas,
    chart: &Chart,
    days: &BTreeMap<&str, &Expense>,
    heading: &str,
    value: &dyn Fn(&Expense) -> u64,
) {
    let dates = (0..BARS).filter_map(|n| {
        let date = chart.today.checked_sub_days(Days::new(BARS - 1 - n))?.to_string();
        let expense = days.get(date.as_str())?;
        Some((n, tip(&date, expense), value(expense)))
    });
    let dates: Vec<(u64, String, u64)> = dates.collect();
    let most = dates.iter().map(|(.., value)| *value).max().unwrap_or(0);
    if most == 0 {
        return;
    }
    canvas.text(MARGIN, "h", heading);
    canvas.text(WIDTH - MARGIN, "d e", &format!("{BARS} days"));
    canvas.y += 12;
    let step = (WIDTH - 2 * MARGIN) / BARS;
    for (n, tip, value) in dates {
        let height = (tenths(value, most) * HEIGHT / 1_000).max(1);
        let place = [MARGIN + n * step, canvas.y + HEIGHT - height, step - 2, height];
        canvas.block(place, "b", &tip);
    }
    canvas.y += HEIGHT + 30;
}

/// Draws the largest rows of a group.
fn group(canvas: &mut Canvas, chart: &Chart, heading: &str, rows: &[Spent]) {
    canvas.text(MARGIN, "h", heading);
    canvas.y += 22;
    let most = rows.iter().map(|row| weight(chart, &row.expense)).max().unwrap_or(0);
    for Spent { name, expense, .. } in rows.iter().take(ROWS) {
        let name = name.as_deref().unwrap_or("unknown");
        canvas.text(MARGIN, "", &safe::clip(&safe::line(name), NAME));
        let width = (tenths(weight(chart, expense), most) * 400 / 1_000).max(1);
        canvas.block([270, canvas.y - 10, width, 12], "b", &tip(name, expense));
        canvas.text(770, "e", &cost(expense));
        canvas.text(WIDTH - MARGIN, "d e", &format!("{} tokens", rounded(expense.usage.total())));
        canvas.y += 20;
    }
    if let Some(more) = rows.len().checked_sub(ROWS).filter(|more| *more > 0) {
        canvas.text(MARGIN, "d", &format!("{} more", grouped(more as u64)));
        canvas.y += 20;
    }
    canvas.y += 16;
}

/// Escapes a text for XML. Control characters, which XML does not allow, become visible.
fn escaped(text: &str) -> String {
    let text = safe::line(text);
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use undertext::model::Usage;

    use super::*;

    #[test]
    fn a_picture_has_no_script_and_escapes_every_name() {
        let usage = Usage { input: 5, ..Usage::default() };
        let expense = Expense { cost: Some(20_000), usage, ..Expense::default() };
        let spent = |name: &str| Spent {
            name: Some(name.to_owned()),
            expense: expense.clone(),
            ..Spent::default()
        };
        let evil = "</text><script>alert('1')</script>\u{1b}[2J\u{202e}&\"";
        let chart = Chart {
            all: expense.clone(),
            days: vec![spent("2026-11-30"), spent(evil)],
            groups: vec![("Folders", (0..12).map(|_| spent(evil)).collect())],
            today: NaiveDate::from_ymd_opt(2026, 11, 30).unwrap(),
            source: "a <table>".to_owned(),
        };
        let picture = draw(&chart);
        assert!(!picture.contains("<script") && !picture.contains("href"));
        assert!(!picture.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'));
        assert!(picture.contains("&lt;/text&gt;") && picture.contains("a &lt;table&gt;"));
        assert!(picture.contains("4 more") && picture.contains("2026-11-30: $0.02, 5 tokens"));
        assert!(picture.contains(r#"class="l4""#));
        let elements = ["<svg", "<title", "<style", "<rect", "<text"];
        let begun = picture.matches('<').count() - picture.matches("</").count();
        assert_eq!(elements.iter().map(|it| picture.matches(it).count()).sum::<usize>(), begun);
    }
}
