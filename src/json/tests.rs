//! The scanner, the view and the edits, by tables and against a second parser.

use std::ops::Range;

use proptest::prelude::*;
use serde::de::IgnoredAny;

use super::{edit::Spans, raw::Part, scan::plain, text::decode, *};

fn raw(json: &str) -> Raw<'_> {
    Raw::value(json.as_bytes()).unwrap()
}

fn check(bytes: impl AsRef<[u8]>, expected: Result<usize, usize>) {
    let bytes = bytes.as_ref();
    let found = scan(bytes, &mut ()).map_err(|Looked(n)| n);
    assert_eq!(found, expected, "{}", bytes.escape_ascii());
}

#[test]
fn gathered_fields_are_those_that_get_gives_however_many_there_are() {
    for more in [0, 2000] {
        let more = (0..more).map(|n| format!(r#","f{n}":{n}"#)).collect::<Vec<_>>().concat();
        let line = format!(r#"{{"a":1,"b\u0062":[2,{{"a":3}}],"c":"x"{more},"a":"last"}}"#);
        let record = Raw::object(line.as_bytes()).unwrap();
        let fields = record.gathered();
        for key in ["a", "bb", "c", "f0", "f1999", "none", ""] {
            assert_eq!(fields.get(key), record.get(key), "{key}");
        }
        assert_eq!(fields.text("a").as_deref(), Some("last"));
    }
}

#[test]
fn picked_fields_are_those_that_get_gives() {
    let record = Raw::object(br#"{"a":1,"b":[2],"\u0061":3,"c":{"a":4}}"#).unwrap();
    let picked = record.pick(["a", "x", "c", "a"]);
    assert_eq!(picked, ["a", "x", "c", "a"].map(|key| record.get(key)));
    assert_eq!(picked[0].and_then(Raw::u64), Some(3));
}

#[test]
fn an_object_ends_at_its_brace() {
    check("{}", Ok(2));
    check("{ \t\r\n}x", Ok(6));
    check(r#"{"a":1}{"b":2}"#, Ok(7));
    check(r#"{"a" : [ 1 , -0.5e+3, {"b":[]} , "}" ] , "" : null }"#, Ok(52));
    check(r#"{"a":"\"\\\/\b\f\n\r\t\u00e9\uD800"}"#, Ok(36));
    check(b"{\"\xff\":\"\x7f\x80\xc3\"}", Ok(11));
}

#[test]
fn a_failure_tells_the_first_byte_that_cannot_be() {
    check("", Err(0));
    check("x{}", Err(1));
    check(" {}", Err(1));
    check("[]", Err(1));
    check("{", Err(1));
    check(r#"{"a":"#, Err(5));
    check(r#"{"a":1"#, Err(6));
    check(r#"{"a":"unfinished, long enough"#, Err(29));
    check("{,}", Err(2));
    check(r#"{"a"1}"#, Err(5));
    check(r#"{"a":}"#, Err(6));
    check(r#"{"a":1,}"#, Err(8));
    check(r#"{"a":[1,]}"#, Err(9));
    check(r#"{"a":[1}}"#, Err(8));
    check(r#"{"a":{"b":1]}"#, Err(12));
    check(r#"{"a":01}"#, Err(7));
    check(r#"{"a":+1}"#, Err(6));
    check(r#"{"a":1.}"#, Err(8));
    check(r#"{"a":1e}"#, Err(8));
    check(r#"{"a":-}"#, Err(7));
    check(r#"{"a":trux}"#, Err(9));
    check(r#"{"a":NaN}"#, Err(6));
    check(r#"{"a":"\x"}"#, Err(8));
    check(r#"{"a":"\u12g4"}"#, Err(11));
    check("{\"a\":\"0123456789\x1f\"}", Err(17));
    check("{\"a\":\"\n\"}", Err(7));
    check("{\x0c}", Err(2));
    check("\u{feff}{}", Err(1));
}

#[test]
fn a_string_stops_at_quote_backslash_and_control_bytes_only() {
    for byte in 0..=u8::MAX {
        let stops = byte < 0x20 || byte == b'"' || byte == b'\\';
        // In the first words, in a block of a long string, and behind the last block.
        for at in (0..20).chain([64, 100, 127, 128, 191, 192, 200]) {
            for around in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
                let mut bytes = vec![around; at.max(20) + 7];
                bytes[at] = byte;
                let end = if stops { at } else { bytes.len() };
                assert_eq!(plain(&bytes, 0), end, "{byte} at {at}");
            }
        }
    }
}

#[test]
fn millions_of_levels_are_no_danger() {
    let depth = 3_000_000;
    let open = br#"{"a":["#.repeat(depth);
    check(&open, Err(open.len()));
    let deep = [open, b"]}".repeat(depth)].concat();
    check(&deep, Ok(deep.len()));
    let inside = Raw::object(&deep).unwrap().get("a").unwrap();
    assert_eq!(inside.items().count(), 1);
}

#[test]
fn every_level_remembers_its_bracket() {
    for depth in [1, 62, 63, 64, 65, 126, 127, 200] {
        for wrong in 0..depth {
            let mut close: Vec<u8> =
                (0..depth).rev().map(|n| if n % 3 == 0 { b'}' } else { b']' }).collect();
            let open: Vec<u8> = (0..depth)
                .flat_map(|n| if n % 3 == 0 { &b"{\"\":"[..] } else { &b"["[..] }.to_vec())
                .collect();
            let at = open.len() + 1 + wrong;
            let whole = [&open[..], b"1", &close].concat();
            check(&whole, Ok(whole.len()));
            close[wrong] ^= b'}' ^ b']';
            check([&open[..], b"1", &close].concat(), Err(at + 1));
        }
    }
}

#[test]
fn a_visit_sees_values_and_outer_fields() {
    #[derive(Default)]
    struct Seen(Vec<Range<usize>>, Spans);
    impl Visit for Seen {
        fn text(&mut self, span: Range<usize>) {
            self.0.push(span);
        }
        fn field(&mut self, key: Range<usize>, value: Range<usize>) {
            self.1.field(key, value);
        }
    }
    let json = br#"{"a":"x" , "b" : {"c":["y",{}],"d":2} ,"e":[] }"#;
    let at = |spans: &[Range<usize>]| -> Vec<String> {
        spans.iter().map(|s| String::from_utf8_lossy(&json[s.clone()]).into()).collect()
    };
    let mut seen = Seen::default();
    assert_eq!(scan(json, &mut seen), Ok(json.len()));
    assert_eq!(at(&seen.0), ["x", "y"]);
    let (keys, values): (Vec<_>, Vec<_>) = seen.1.0.into_iter().unzip();
    assert_eq!(at(&keys), ["a", "b", "e"]);
    assert_eq!(at(&values), [r#""x""#, r#"{"c":["y",{}],"d":2}"#, "[]"]);
}

#[test]
fn values_are_read_where_they_lie() {
    let json = raw(r#"{"a": {"b": [1, "x", [2], {}]}, "n": 18446744073709551615, "a\n": null,
        "f": -1.5e2, "t": true, "e": {}, "t": false}"#);
    let items: Vec<_> = json.get("a").unwrap().get("b").unwrap().items().collect();
    assert_eq!(items, [raw("1"), raw(r#""x""#), raw("[2]"), raw("{}")]);
    assert_eq!(json.get("n").unwrap().u64(), Some(u64::MAX));
    assert_eq!(json.get("f").unwrap().f64(), Some(-150.0));
    assert_eq!(json.get("f").unwrap().u64(), None);
    assert!(json.get("a\n").unwrap().is_null());
    assert_eq!(json.get("t").unwrap().bool(), Some(false), "the last key wins");
    assert_eq!(json.get("a\\n"), None);
    assert_eq!(json.get("b"), None);
    assert_eq!(json.fields().count(), 7);
    assert_eq!(json.get("e").unwrap().fields().count(), 0);
}

#[test]
fn a_wrong_kind_gives_nothing() {
    for json in ["{}", "[]", r#""""#, "0", "true", "false", "null"] {
        let raw = raw(json);
        let answers = [
            raw.text().is_some(),
            raw.f64().is_some(),
            raw.bool().is_some(),
            raw.is_null(),
            matches!(raw.kind(), Kind::Object | Kind::Array),
        ];
        assert_eq!(answers.iter().filter(|&&yes| yes).count(), 1, "{json}");
        assert_eq!(raw.fields().count() + raw.items().count(), 0, "{json}");
        assert_eq!(raw.get(""), None);
    }
    assert_eq!(raw("[1]").fields().count(), 0);
    assert_eq!(raw(r#"{"a":1}"#).items().count(), 0);
    assert_eq!(raw("1e999").f64(), None);
    assert_eq!(raw("18446744073709551616").u64(), None);
    assert_eq!(Raw::value(b" 1"), None);
    assert_eq!(Raw::value(b"1 "), None);
    assert_eq!(Raw::value(b""), None);
    assert_eq!(Raw::object(b"{}{}"), None);
    assert_eq!(Raw::object(b"[]"), None);
}

#[test]
fn strings_of_a_value_are_its_own_and_no_keys() {
    let check = |json, expected: &[&str]| {
        let strings = raw(json).strings(|key| key == b"left out");
        assert_eq!(strings.map(|found| found.text().unwrap()).collect::<Vec<_>>(), expected);
    };
    check(r#""x""#, &["x"]);
    check(r#"{"a" : "x" , "b":[ "y", {"c":1,"d":"z"}, ":" ]}"#, &["x", "y", "z", ":"]);
    check(r#"["x",{"left out" : {"a":["y"]},"b":"z"},{"left out":"y"},"w"]"#, &["x", "z", "w"]);
    check("[]", &[]);
    check("1", &[]);
}

#[test]
fn parts_of_a_value_are_in_the_order_in_which_they_stand() {
    let check = |json: &str, expected: &str| {
        let parts = raw(json).parts().map(|part| match part {
            Part::Open(Kind::Object) => "{".to_owned(),
            Part::Open(_) => "[".to_owned(),
            Part::Close => ".".to_owned(),
            Part::Key(key) => format!("{}:", String::from_utf8_lossy(key.bytes())),
            Part::Leaf(leaf) => String::from_utf8_lossy(leaf.bytes()).into_owned(),
        });
        assert_eq!(parts.collect::<Vec<_>>().join(" "), expected);
    };
    check(r#""x""#, r#""x""#);
    check("-1.5e3", "-1.5e3");
    check(
        r#" { "a" : [1, true ,null,":"] ,"b":{},"c\"":{"d":"e"} } "#.trim(),
        r#"{ "a": [ 1 true null ":" . "b": { . "c\"": { "d": "e" . ."#,
    );
}

#[test]
fn text_is_decoded_and_mended() {
    let check = |inner: &[u8], expected: &str| {
        let json = [b"\"", inner, b"\""].concat();
        let raw = Raw::value(&json).unwrap();
        assert_eq!(raw.inner(), Some(inner));
        assert_eq!(raw.text().unwrap(), expected);
    };
    check(b"", "");
    check("plain é".as_bytes(), "plain é");
    check(br#"\"\\\/\b\f\n\r\t."#, "\"\\/\u{8}\u{c}\n\r\t.");
    check(br"\u00e9\u0000\uFFFF", "é\0\u{ffff}");
    check(br"a\ud83d\ude00z", "a😀z");
    check(br"\ud83d", "\u{fffd}");
    check(br"\ude00\ud83d", "\u{fffd}\u{fffd}");
    check(br"\ud83d\ud83d\ude00", "\u{fffd}😀");
    check(br"\ud83dA\u0041", "\u{fffd}AA");
    check(b"\xff\\n\xe2\x82", "\u{fffd}\n\u{fffd}");
}

#[test]
fn an_edit_keeps_every_other_byte() {
    let check = |object: &str, key: &str, value: &str, expected: Option<&str>| {
        let edited = with_field(object.as_bytes(), key, value.as_bytes());
        assert_eq!(edited.as_deref(), expected.map(str::as_bytes), "{object}");
    };
    check("{}", "a", "1", Some(r#"{"a":1}"#));
    check("{ }", "a\"", "1", Some(r#"{"a\"":1 }"#));
    check(r#"{ "b" : 2 }"#, "a", "[]", Some(r#"{ "b" : 2,"a":[] }"#));
    check(r#"{"a":0, "b" : 2 }"#, "b", "null", Some(r#"{"a":0, "b" : null }"#));
    check(r#"{"a":0,"x":1,"a":2}"#, "a", "3", Some(r#"{"a":0,"x":1,"a":3}"#));
    check(r#"{"\u0061":0}"#, "a", "3", Some(r#"{"\u0061":3}"#));
    check(r#"{"x":{"a":1}}"#, "a", "3", Some(r#"{"x":{"a":1},"a":3}"#));
    check(r#"{"a":0}"#, "a", "", None);
    check(r#"{"a":0}"#, "a", "1 ", None);
    check(r#"{"a":0} "#, "a", "1", None);
    check("[]", "a", "1", None);

    let edits: [(&str, &[u8]); 5] =
        [("n", b"0"), ("b", b"[1]"), ("a", b"2"), ("m", b"3"), ("n", b"4")];
    let edited = with_fields(br#"{"a":0,"b":1}"#, &edits).unwrap();
    assert_eq!(edited, br#"{"a":2,"b":[1],"m":3,"n":4}"#);
}

/// Bytes that are often JSON and often nearly so.
fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        &b"{"[..],
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\"",
        b"\\",
        b" ",
        b"\n",
        b"\"a\"",
        b"\"a\":",
        b"\"\\u0041\"",
        b"\\ud8",
        b"1",
        b"0",
        b"-",
        b".5",
        b"e9",
        b"true",
        b"null",
        b"false",
        b"{}",
        b"[]",
        b"{\"k\":",
        b"\xff",
        b"\x1f",
        b"0123456789abcdef",
    ]);
    let valid = Just(b"0".to_vec()).prop_recursive(6, 40, 4, |inner| {
        let list = prop::collection::vec(inner, 0..4);
        (list, any::<bool>(), " {0,2}").prop_map(|(list, is_object, gap)| {
            let gap = gap.as_bytes();
            let items: Vec<_> = list
                .iter()
                .map(|item| [if is_object { b"\"k\":" } else { &b""[..] }, gap, item].concat())
                .collect();
            let (open, close) = if is_object { (b"{", b"}") } else { (b"[", b"]") };
            [open, gap, &items.join(&b","[..]), gap, close].concat()
        })
    });
    let mixed = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    let cut = (valid.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(
        |(mut json, at, byte)| {
            let at = at.index(json.len());
            json[at] = byte;
            json
        },
    );
    prop_oneof![valid, mixed, cut]
}

#[test]
fn a_value_knows_where_it_was_read() {
    let json = br#"{"a": ["x", 1]}"#;
    let item = Raw::object(json).unwrap().get("a").unwrap().items().next().unwrap();
    assert_eq!(item.span_in(json), Some(7..10));
    assert_eq!(item.span_in(&json[8..]), None);
    assert_eq!(item.span_in(&json[..9]), None);
}

#[test]
fn a_place_in_a_text_is_found_in_its_spelling() {
    let raw = b"a\\n\\u00e9\\ud83d\\ude00\\ud83dx\xffy\xe2\x82z\xc3\xa9\\\"";
    let text = decode(raw);
    for (at, _) in text.char_indices().chain([(text.len(), ' ')]) {
        let (before, behind) = raw.split_at(place_of(raw, at));
        assert_eq!(decode(before).into_owned() + &decode(behind), text, "at {at}");
        assert_eq!(decode(before).len(), at);
    }
    assert_eq!(place_of(raw, 999), raw.len());
}

proptest! {
    #[test]
    fn the_grammar_is_that_of_a_second_parser(json in nearly_json()) {
        let trimmed = !json.first().is_some_and(|b| is_blank(*b))
            && !json.last().is_some_and(|b| is_blank(*b));
        let other = serde_json::from_slice::<IgnoredAny>(&json).is_ok();
        prop_assert_eq!(Raw::value(&json).is_some(), other && trimmed);
    }

    #[test]
    fn what_fails_fails_at_the_same_byte_whatever_follows(json in nearly_json(), more in nearly_json()) {
        let whole = [&json[..], &more].concat();
        match scan(&json, &mut ()) {
            Ok(end) => prop_assert_eq!(scan(&whole, &mut ()), Ok(end)),
            Err(Looked(n)) if n < json.len() => {
                prop_assert_eq!(scan(&whole, &mut ()), Err(Looked(n)));
            }
            Err(_) => {}
        }
    }

    #[test]
    fn strings_are_those_of_every_level_in_order(json in nearly_json()) {
        /// The same by its definition, a level at a time.
        fn strings<'a>(value: Raw<'a>, found: &mut Vec<Raw<'a>>) {
            match value.kind() {
                Kind::String => found.push(value),
                Kind::Array => value.items().for_each(|item| strings(item, found)),
                Kind::Object => {
                    let stays = value.fields().filter(|(key, _)| *key != b"k");
                    stays.for_each(|(_, value)| strings(value, found));
                }
                _ => {}
            }
        }
        let Some(value) = Raw::value(&json) else { return Ok(()) };
        let mut expected = Vec::new();
        strings(value, &mut expected);
        prop_assert_eq!(value.strings(|key| key == b"k").collect::<Vec<_>>(), expected);
    }

    #[test]
    fn text_reads_back_what_quote_wrote(text in ".*") {
        let quoted = quote(&text);
        prop_assert_eq!(raw(&quoted).text().unwrap(), text);
    }

    #[test]
    fn a_set_field_is_found(json in nearly_json(), key in "[ka\\\\\"]{0,2}", value in nearly_json()) {
        let edited = with_field(&json, &key, &value);
        let is_valid = Raw::object(&json).is_some() && Raw::value(&value).is_some();
        prop_assert_eq!(edited.is_some(), is_valid);
        if let Some(edited) = edited {
            let object = Raw::object(&edited).unwrap();
            prop_assert_eq!(object.get(&key).unwrap().bytes(), &value[..]);
        }
    }
}
