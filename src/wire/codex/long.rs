//! Long tool results: Codex truncates them when it resumes a session.
//!
//! Recorded from Codex 0.169.0 with generated results and several models. All texts of a result share one limit. The text
//! that exceeds it keeps its beginning and end, later texts are dropped, and images stay. The items in a compaction's history are
//! sent whole.

use crate::model::Block;

/// The limit of a result's texts in bytes.
const MOST: usize = 12_000;

/// Truncates the texts of a result that exceed the limit.
pub(super) fn cut(blocks: &mut Vec<Block>) {
    let mut left = MOST;
    let mut omitted = 0;
    blocks.retain_mut(|block| {
        let Block::Text(text) = block else { return true };
        if left == 0 && !text.is_empty() {
            omitted += 1;
            return false;
        }
        if let Some(short) = shortened(text, left) {
            (*text, left) = (short, 0);
        } else {
            left -= text.len();
        }
        true
    });
    if omitted > 0 {
        blocks.push(Block::Text(format!("[omitted {omitted} text items ...]")));
    }
}

/// Returns the beginning and end of a text that is longer than `most` bytes.
fn shortened(text: &str, most: usize) -> Option<String> {
    let over = text.len().checked_sub(most).filter(|over| *over > 0)?;
    let is_boundary = |at: &usize| text.is_char_boundary(*at);
    let before = (0..=most / 2).rev().find(is_boundary)?;
    let behind = (most / 2 + over..=text.len()).find(is_boundary)?;
    let (before, rest) = text.split_at_checked(before)?;
    let (middle, behind) = rest.split_at_checked(behind - before.len())?;
    Some(format!("{before}\u{2026}{} chars truncated\u{2026}{behind}", middle.chars().count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of these was resumed by Codex 0.169.0, and this is what it sent.
    #[test]
    fn the_texts_of_an_answer_have_one_measure() {
        let text = |n: usize, of: &str| of.repeat(n);
        let sent = |texts: &[String]| {
            let mut blocks: Vec<Block> = texts.iter().cloned().map(Block::Text).collect();
            cut(&mut blocks);
            let told = blocks.iter().map(|block| match block {
                Block::Text(text) => text.clone(),
                _ => String::new(),
            });
            told.collect::<Vec<_>>()
        };
        let whole = text(12_000, "a");
        let only = std::slice::from_ref(&whole);
        assert_eq!(sent(only), only);
        let half = text(6_000, "a");
        assert_eq!(sent(&[text(12_001, "a")]), [format!("{half}…1 chars truncated…{half}")]);
        let half = text(3_000, "é");
        assert_eq!(sent(&[text(6_001, "é")]), [format!("{half}…1 chars truncated…{half}")]);
        let half = text(2_000, "€");
        assert_eq!(sent(&[text(5_000, "€")]), [format!("{half}…1000 chars truncated…{half}")]);
        let several = ["Head\n".to_owned(), text(30_000, "é"), "b".to_owned()];
        let (before, behind) = (text(2_998, "é"), text(2_999, "é"));
        let cut = format!("{before}…24003 chars truncated…{behind}");
        assert_eq!(sent(&several), ["Head\n", &cut, "[omitted 1 text items ...]"]);
        let full = [whole.clone(), "b".to_owned(), "c".to_owned()];
        assert_eq!(sent(&full), [&whole, "[omitted 2 text items ...]"]);
    }
}
