//! Fields: the texts and numbers in a JSON value, as lines for a person.
//!
//! ```text
//! {"a":"x","b":{"c":["1","2\n3"],"n":4}}      a: x
//!                                             b.c: 1
//!                                             b.c:
//!                                             2
//!                                             3
//!                                             b.n: 4
//! ```

use std::fmt;
use std::rc::Rc;

use serde_json::Value;

use super::{safe, units};

/// Minimum length in bytes at which a text without blanks counts as data rather than prose.
const DATA: usize = 1024;
/// Maximum width of a name.
const NAME: usize = 60;

/// A text or a number, and its path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// The path of names that leads to the field; empty if the value itself is a text.
    pub(crate) name: Rc<str>,
    pub(crate) text: String,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, text } = self;
        if name.is_empty() {
            f.write_str(text)
        } else if text.contains('\n') {
            write!(f, "{name}:\n{text}")
        } else {
            write!(f, "{name}: {text}")
        }
    }
}

/// Returns the fields of a JSON value, or of the JSON inside a JSON string. Anything else is a single text.
pub(crate) fn fields(json: &str) -> Vec<Field> {
    let mut found = Vec::new();
    let none = Rc::from("");
    match serde_json::from_str(json) {
        Ok(Value::String(text)) => match serde_json::from_str(&text) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => add(&none, &value, &mut found),
            _ => add(&none, &Value::String(text), &mut found),
        },
        Ok(value) => add(&none, &value, &mut found),
        Err(_) => add(&none, &Value::String(json.to_owned()), &mut found),
    }
    found
}

fn add(name: &Rc<str>, value: &Value, found: &mut Vec<Field>) {
    let text = match value {
        Value::Null => return,
        Value::Array(items) => return items.iter().for_each(|item| add(name, item, found)),
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = safe::clip(key, NAME);
                let name =
                    if name.is_empty() { key.into() } else { format!("{name}.{key}").into() };
                add(&name, value, found);
            }
            return;
        }
        Value::String(text) if text.len() >= DATA && !text.contains([' ', '\n']) => {
            format!("[data, {}]", units::size(text.len() as u64))
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    found.push(Field { name: Rc::clone(name), text });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &[&str]) {
        let told: Vec<String> = fields(json).iter().map(ToString::to_string).collect();
        assert_eq!(told, expected, "{json}");
    }

    #[test]
    fn each_text_stands_behind_the_names_that_lead_to_it() {
        let deep = r#"{"a":"x","b":{"c":["1","2\n3"],"n":4},"d":null,"e":[{"f":true}]}"#;
        check(deep, &["a: x", "b.c: 1", "b.c:\n2\n3", "b.n: 4", "e.f: true"]);
        check(r#""{\"cmd\":\"ls\"}""#, &["cmd: ls"]);
        check(r#""ls""#, &["ls"]);
        check("no json", &["no json"]);
        check("{}", &[]);
        let long = "k".repeat(100_000);
        let name = format!("{}…", "k".repeat(NAME - 1));
        check(&format!(r#"{{"{long}":[1,2]}}"#), &[&format!("{name}: 1"), &format!("{name}: 2")]);
    }

    #[test]
    fn data_is_told_by_its_size() {
        check(&format!(r#"{{"a":"{}"}}"#, "x".repeat(2048)), &["a: [data, 2.0 kB]"]);
        check(&format!(r#"{{"a":"{}"}}"#, "x ".repeat(2)), &["a: x x "]);
    }
}
