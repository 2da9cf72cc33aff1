//! Explaining: the effective settings as a settings file, with the meaning of each key and the source of its value.

use std::fmt::Write as _;

use super::{
    EXAMPLE, Read, Setting,
    read::{EXAMPLE_FILE, keys, pattern},
};

impl Read {
    /// Returns the effective settings as the text of a settings file.
    pub fn explain(&self) -> String {
        let known = keys(&EXAMPLE_FILE).unwrap_or_default();
        let mut text = String::with_capacity(EXAMPLE.len() * 2);
        let mut start = 0;
        for line in EXAMPLE.split_inclusive('\n') {
            // The header of a section is also the first key of the sections around it.
            let here = known.iter().filter(|key| (start..start + line.len()).contains(&key.at));
            let key = here.max_by_key(|key| key.path.len());
            start += line.len();
            let Some(key) = key else {
                text.push_str(line);
                continue;
            };
            if pattern(&key.path) != key.path {
                // Names that the user chooses: those in the example are only examples.
                let _ = write!(text, "# {line}");
                continue;
            }
            let (set, why) = line.split_once('#').unwrap_or((line, "\n"));
            match (set.split_once('='), self.set.iter().find(|set| set.key == key.path)) {
                (None, _) => text.push_str(line),
                (Some((name, _)), Some(found)) => {
                    let _ = write!(text, "{name}= {}  # [{}]{why}", found.value, found.place());
                }
                (Some(_), None) => {
                    let _ = write!(text, "{}  # [default]{why}", set.trim_end());
                }
            }
        }
        let own = self.set.iter().filter(|set| pattern(&set.key) != set.key);
        let mut section: &[String] = &[];
        for set in own {
            let Some((name, above)) = set.key.split_last() else { continue };
            if above != section {
                section = above;
                let _ = write!(text, "\n[{}]\n", dotted(above));
            }
            let _ = writeln!(text, "{} = {}  # [{}]", bare(name), set.value, set.place());
        }
        for set in &self.refused {
            let _ = writeln!(text, "\n# Ignored: {} [{}]", set.name(), set.place());
        }
        text
    }
}

impl Setting {
    /// Returns the key as written in a file.
    pub fn name(&self) -> String {
        dotted(&self.key)
    }

    /// Returns the file and line that set it.
    fn place(&self) -> String {
        format!("{}, line {}", self.file, self.line)
    }
}

/// Joins names into a dotted key.
fn dotted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| bare(name)).collect();
    names.join(".")
}

/// Returns a name as a key, quoted if necessary.
fn bare(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        serde_json::Value::from(name).to_string()
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::{Author, File, Settings};

    #[test]
    fn what_is_explained_says_the_same_and_whence() {
        let user = File {
            name: "user",
            author: Author::User,
            text: "[window]\nblock = 5\n[compaction]\nfocus = 'a \"b\" # c'\n[provider.\"a.b\"]\nmodel = 'm'\n",
        };
        let store = File {
            name: "store",
            author: Author::Store,
            text: "[compaction]\nbefore = 'id'\n[channels.irc.users]\n7 = 3\n",
        };
        let read = Settings::read(&[user, store]).unwrap();
        let text = read.explain();
        for line in [
            "block = 5  # [user, line 2] a smaller window is refused before anything is sent",
            "warn = 32000  # [default] a smaller window is warned of",
            "# [provider.local]\n# kind",
            "# [channels.telegram]\n# direct",
            "[provider.\"a.b\"]\nmodel = \"m\"  # [user, line 6]",
            "[channels.irc.users]\n7 = 3  # [store, line 4]",
            "# Ignored: compaction.before [store, line 2]",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        let again = File { name: "again", author: Author::User, text: &text };
        let again = Settings::read(&[again]).unwrap();
        assert_eq!(again.unknown, []);
        for set in &read.set {
            assert!(
                again.set.iter().any(|found| (&found.key, &found.value) == (&set.key, &set.value))
            );
        }
    }
}
