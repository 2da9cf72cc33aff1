//! Mending: repairs JSON that some writers produce and strict readers reject: an escape of an unpaired surrogate, and a number
//! too large for a double.
//!
//! Invariant: JSON that a strict reader accepts is not changed.

use super::text::utf16_unit;

/// The first of the characters that represent surrogates whose other half may still follow: the last ones for private use.
const HALVES: u32 = 0x10_f800;
/// The range of surrogates.
const FIRST: u32 = 0xd800;
const LAST: u32 = 0xdfff;

/// Returns the repaired JSON, if it needs repair: an unpaired surrogate becomes U+FFFD, and a number that is too large becomes a
/// string.
pub fn mended(json: &str) -> Option<String> {
    mended_by(json, &|_| r"\ufffd".to_owned())
}

/// Does the same, but replaces each unpaired surrogate with a distinct character for [`joined`].
pub fn with_halves(json: &str) -> Option<String> {
    mended_by(json, &|unit| {
        let half = char::from_u32(HALVES + (u32::from(unit) - FIRST));
        half.unwrap_or(char::REPLACEMENT_CHARACTER).to_string()
    })
}

/// Returns true if a character is a half from [`with_halves`].
pub fn is_half(c: char) -> bool {
    (HALVES..=HALVES + (LAST - FIRST)).contains(&u32::from(c))
}

/// Returns a text in which adjacent halves from [`with_halves`] are joined into their character, and every other half becomes
/// U+FFFD.
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
