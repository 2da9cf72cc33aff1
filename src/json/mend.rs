//! Mending: JSON that some writers write and a strict reader refuses. Half of a character, which an escape can name, is no text,
//! and a number can be larger than any type holds.
//!
//! Invariant: what a strict reader takes comes out as it is.

use super::text::utf16_unit;

/// The characters that stand for halves while their other halves may still come: the last ones that have no meaning to anyone.
const HALVES: u32 = 0x10_f800;
/// The first and the last half of a character.
const FIRST: u32 = 0xd800;
const LAST: u32 = 0xdfff;

/// Returns JSON without what a strict reader refuses, if it has any of that: half of a character is the mark of a lost one, and
/// a number that no number can hold is a text.
pub fn mended(json: &str) -> Option<String> {
    mended_by(json, &|_| r"\ufffd".to_owned())
}

/// Returns the same with a character of its own in place of each half, for [`joined`].
pub fn with_halves(json: &str) -> Option<String> {
    mended_by(json, &|unit| {
        let half = char::from_u32(HALVES + (u32::from(unit) - FIRST));
        half.unwrap_or(char::REPLACEMENT_CHARACTER).to_string()
    })
}

/// Returns a text in which the halves of [`with_halves`] that met are the characters that they are halves of, and each other
/// half is the mark of a lost character.
pub fn joined(text: &str) -> String {
    let half = |c: char| {
        let unit = u32::from(c).checked_sub(HALVES)?.checked_add(FIRST)?;
        u16::try_from(unit).ok().filter(|unit| u32::from(*unit) <= LAST)
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let Some(first) = half(c) else {
            out.push(c);
            continue;
        };
        let next = rest.clone().next().and_then(half);
        let met = next.and_then(|next| char::decode_utf16([first, next]).next()?.ok());
        if met.is_some() {
            rest.next();
        }
        out.push(met.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    out
}

fn mended_by(json: &str, half: &dyn Fn(u16) -> String) -> Option<String> {
    let mut out = String::new();
    let mut done = 0;
    let mut put = |from: usize, to: usize, instead: &str| {
        out.push_str(json.get(done..from).unwrap_or_default());
        out.push_str(instead);
        done = to;
    };
    let bytes = json.as_bytes();
    let mut at = 0;
    let mut is_text = false;
    while let Some(byte) = bytes.get(at) {
        let rest = json.get(at..).unwrap_or_default();
        let escape = rest.as_bytes();
        at += match byte {
            b'"' => {
                is_text = !is_text;
                1
            }
            b'\\' => match (utf16_unit(escape), escape.get(6..).and_then(utf16_unit)) {
                (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
                (Some(alone @ 0xd800..=0xdfff), _) => {
                    put(at, at + 6, &half(alone));
                    6
                }
                _ => 2,
            },
            b'-' | b'0'..=b'9' if !is_text => {
                let is_part =
                    |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
                let number = rest.get(..rest.find(|c| !is_part(c)).unwrap_or(rest.len()));
                let number = number.unwrap_or_default();
                if number.parse::<f64>().is_ok_and(f64::is_infinite) {
                    put(at, at + number.len(), &format!("\"{number}\""));
                }
                number.len().max(1)
            }
            _ => 1,
        };
    }
    put(json.len(), json.len(), "");
    (out != json).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_made_readable_and_else_left_alone() {
        let check = |said: &str, expected: &str| {
            let made = mended(said);
            assert_eq!(made.as_deref().unwrap_or(said), expected);
            assert_eq!(made.is_some(), said != expected);
            assert_eq!(mended(expected), None, "twice is as once");
        };
        check(
            r#"{"a":"\ud83d\ude00","n":1e300,"b":"1e999","c":-12.5}"#,
            r#"{"a":"\ud83d\ude00","n":1e300,"b":"1e999","c":-12.5}"#,
        );
        check(r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#);
        check(
            r#"["\ude00x","\ud83dx\ude00","\\ud83d","é\uD83D"]"#,
            r#"["\ufffdx","\ufffdx\ufffd","\\ud83d","é\ufffd"]"#,
        );
        check(r#"{"\ud83d\ud83d\ude00":"\""}"#, r#"{"\ufffd\ud83d\ude00":"\""}"#);
        check("[1e999,-1E+999,0]", r#"["1e999","-1E+999",0]"#);
        check(&format!("[{}]", "9".repeat(400)), &format!("[\"{}\"]", "9".repeat(400)));
        check("{}", "{}");
    }

    #[test]
    fn halves_that_meet_are_the_character_that_they_are_halves_of() {
        let text = |json: &str| with_halves(json).unwrap_or_else(|| json.to_owned());
        let parts = [r"a\ud83d", r"\ude00b", r"\ude00", r"\ud83d", r"c\ud83dd"];
        assert_eq!(joined(&parts.map(text).concat()), "a\u{1f600}b\u{fffd}\u{fffd}c\u{fffd}d");
        assert_eq!(joined("plain \u{1f600}"), "plain \u{1f600}");
    }
}
