//! The structure of the sources, checked by reading them: no circle of subjects, and no verb made of another.
//!
//! A subject is a folder. Of the folders in one folder none needs itself by way of others; what a folder shares with those inside it
//! is its own affair.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::tidy::{is_ident, none, sources};

#[test]
fn no_subjects_import_each_other_in_a_circle() {
    none(circles(&sources()).into_iter());
}

/// The verbs that are made of others: a recovery compacts and truncates, a turn appends and recovers, a handle holds a session for any
/// of them, a redaction may be of what the audit finds, a repair verifies, and a restore attaches the file.
const COMPOSED: [&str; 8] =
    ["dmail", "findings", "handle", "handoff", "mend", "recover", "restore", "turn"];

#[test]
fn no_verb_imports_another() {
    none(leaning(&sources()).into_iter());
}

/// Returns the imports of verbs by files of `verbs` that are not made of them. A verb is a file of which the room's root
/// exports a function.
fn leaning(files: &[(String, String)]) -> Vec<String> {
    let texts: BTreeMap<Module, Vec<&str>> =
        files.iter().map(|(path, text)| (module_of(path), code(text))).collect();
    let rooms =
        Rooms { uses: texts.iter().map(|(module, tokens)| (module, uses(tokens))).collect() };
    let root = vec!["verbs".to_owned()];
    let exports = rooms.uses.get(&root).into_iter().flatten().filter(|of| of.is_public);
    let is_function = |name: &str| name.starts_with(|c: char| c.is_ascii_lowercase());
    let functions = exports.filter(|of| of.path.last().is_some_and(|name| is_function(name)));
    let verbs: BTreeSet<Module> = functions
        .filter_map(|of| rooms.file(rooms.absolute(&root, &of.path)?))
        .filter(|file| file.len() > 1 && file[0] == "verbs")
        .collect();
    let inside = texts.iter().filter(|(module, _)| {
        module.len() > 1 && module[0] == "verbs" && !COMPOSED.contains(&name_of(module))
    });
    let leans = inside.flat_map(|(module, tokens)| {
        let edges = rooms.edges(module, tokens).into_iter();
        let to = edges.filter(|to| verbs.contains(to));
        to.map(|to| format!("{} -> {}", name_of(module), name_of(&to)))
    });
    leans.collect()
}

/// Returns the last name of a module.
fn name_of(module: &Module) -> &str {
    &module[module.len() - 1]
}

#[test]
fn a_planted_import_of_a_verb_is_found() {
    let found = |undo: &str, turn: &str| {
        let files = [
            (
                "verbs/mod.rs",
                "mod revert;\nmod undo;\nmod turn;\npub use revert::{Back, revert};\npub use undo::undo;",
            ),
            ("verbs/revert.rs", "pub struct Back;"),
            ("verbs/undo.rs", undo),
            ("verbs/turn.rs", turn),
        ];
        leaning(&files.map(|(path, text)| (path.to_owned(), text.to_owned())))
    };
    let import = "use crate::verbs::revert::revert;";
    assert_eq!(found("", ""), [""; 0]);
    assert_eq!(found(import, import), ["undo -> revert"]);
    assert_eq!(found("use super::revert;", ""), ["undo -> revert"]);
}

#[test]
fn planted_circles_are_found() {
    let found = |files: &[(&str, &str)]| -> Vec<String> {
        let own = |&(path, text): &(&str, &str)| (path.to_owned(), text.to_owned());
        circles(&files.iter().map(own).collect::<Vec<_>>())
    };
    let room = |root: &str, one: &str, other: &str| {
        found(&[("room/mod.rs", root), ("room/a/mod.rs", one), ("room/b/mod.rs", other)])
    };
    let circle = ["room/a -> room/b -> room/a"];
    let declared = "mod a;\nmod b;\n";
    let exported = "mod a;\nmod b;\npub use a::A;\npub use self::b::{B, f as g};";
    assert_eq!(room(declared, "use super::b::B;", "use crate::room::a;"), circle);
    assert_eq!(
        room(declared, "use crate::{x, room::{y, b::{self, B}}};", "use super::a::A;"),
        circle
    );
    assert_eq!(room(declared, "fn f() { super::b::f() }", "fn f(_: self::super::a::A) {}"), circle);
    assert_eq!(room(exported, "use super::B;", "use crate::room::A;"), circle);
    assert_eq!(room(exported, "use super::g;", "use crate::room::{A as Other};"), circle);
    assert_eq!(
        room(exported, "", "use super::A;"),
        [""; 0],
        "a root re-exports what it does not use"
    );
    assert_eq!(
        room("mod a;\npub struct Own;\npub fn f() { a::f() }", "use super::Own;", ""),
        [""; 0],
        "a folder's own files and its folders share what they like"
    );
    assert_eq!(
        found(&[
            ("room/mod.rs", "mod a;"),
            ("room/a.rs", "mod c;\npub(super) use c::C;\nuse super::b::B;"),
            ("room/a/c.rs", ""),
            ("room/b/mod.rs", "use super::a::C;"),
        ]),
        circle,
        "what is re-exported from inside a folder is that folder's"
    );
    let tests = "#[cfg(test)]\n#[expect(x)]\nmod tests { use super::super::b::B; fn f() {} }";
    assert_eq!(room(declared, tests, "use super::a::A;"), [""; 0]);
    let silent = "// use super::b::B;\n/* super::b */ const S: &str = \"super::b\\\"\"; const R: &str = r#\"\"super::b\"#;";
    assert_eq!(room(declared, silent, "use super::a::A;"), [""; 0]);
    assert_eq!(
        room(declared, "pub(in crate::room::b) fn f<'a>(_: &'a u8) {}", "use super::a::f;"),
        [""; 0]
    );
    assert_eq!(
        room(declared, "const C: char = '\"'; use super::b::B;", "use super::a::A;"),
        circle
    );
    let other =
        [("room/a.rs", "use crate::other::b::B;"), ("other/b.rs", "use crate::room::a::A;")];
    assert_eq!(found(&other), ["other -> room -> other"]);
}

/// A file as a module: the names that lead to it from the crate's root.
type Module = Vec<String>;

/// Returns a circle of the folders in each folder that has one.
fn circles(files: &[(String, String)]) -> Vec<String> {
    let texts: BTreeMap<Module, Vec<&str>> =
        files.iter().map(|(path, text)| (module_of(path), code(text))).collect();
    let rooms =
        Rooms { uses: texts.iter().map(|(module, tokens)| (module, uses(tokens))).collect() };
    let folders: BTreeSet<Module> =
        files.iter().filter_map(|(path, _)| Some(module_of(path.rsplit_once('/')?.0))).collect();
    // A file with a folder of its name belongs to it.
    let folder = |module: &Module| match module.split_last() {
        Some((_, above)) if !folders.contains(module) => above.to_vec(),
        _ => module.clone(),
    };
    let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, tokens) in &texts {
        let own = folder(module);
        for to in rooms.edges(module, tokens) {
            let to = folder(&to);
            let shared = own.iter().zip(&to).take_while(|(one, other)| one == other).count();
            if shared < own.len().min(to.len()) {
                edges.entry(own[..=shared].to_vec()).or_default().insert(to[..=shared].to_vec());
            }
        }
    }
    let mut found = BTreeMap::new();
    for module in edges.keys() {
        let above = &module[..module.len() - 1];
        if !found.contains_key(above)
            && let Some(way) = way_back(module, &edges)
        {
            let way: Vec<String> = way.iter().map(|module| module.join("/")).collect();
            found.insert(above.to_vec(), way.join(" -> "));
        }
    }
    found.into_values().collect()
}

/// Returns the shortest way from a folder along imports back to itself.
fn way_back(module: &Module, edges: &BTreeMap<Module, BTreeSet<Module>>) -> Option<Vec<Module>> {
    let mut ways = vec![vec![module.clone()]];
    let mut seen = BTreeSet::new();
    let mut at = 0;
    while let Some(way) = ways.get(at).cloned() {
        at += 1;
        for next in way.last().and_then(|last| edges.get(last)).into_iter().flatten() {
            let longer = [way.as_slice(), std::slice::from_ref(next)].concat();
            if next == module {
                return Some(longer);
            }
            if seen.insert(next) {
                ways.push(longer);
            }
        }
    }
    None
}

/// Returns the module that a file below `src` is.
fn module_of(path: &str) -> Module {
    let path = path.trim_end_matches(".rs");
    path.strip_suffix("/mod").unwrap_or(path).split('/').map(str::to_owned).collect()
}

/// What the files of the rooms name.
struct Rooms<'a> {
    uses: BTreeMap<&'a Module, Vec<Use<'a>>>,
}

/// A name that a `use` brings into a file.
struct Use<'a> {
    /// Where it stands among the tokens.
    at: Range<usize>,
    path: Vec<&'a str>,
    name: &'a str,
    is_public: bool,
}

impl Rooms<'_> {
    /// Returns the files that a file imports. It doesn't import what it only re-exports from inside its own folder.
    fn edges(&self, module: &Module, tokens: &[&str]) -> BTreeSet<Module> {
        let uses = &self.uses[module];
        let is_export = |path: &Module, of: &Use<'_>| of.is_public && path.starts_with(module);
        let imported = uses
            .iter()
            .filter_map(|of| self.absolute(module, &of.path).filter(|path| !is_export(path, of)));
        let inline = paths(tokens, uses).into_iter();
        let inline = inline.filter_map(|path| self.absolute(module, &path));
        let files = imported.chain(inline).filter_map(|path| self.file(path));
        files.filter(|file| file != module).collect()
    }

    /// Returns a path of a file from the crate's root on, unless it leads into another crate.
    fn absolute(&self, module: &Module, path: &[&str]) -> Option<Module> {
        let mut base = module.clone();
        let mut rest = path;
        match *path.first()? {
            "crate" => (base, rest) = (Module::new(), &path[1..]),
            "self" | "super" => {
                while let Some(step @ ("self" | "super")) = rest.first().copied() {
                    if step == "super" {
                        base.pop();
                    }
                    rest = &rest[1..];
                }
            }
            child => {
                let is_child = |module: &&Module| {
                    module.strip_prefix(&base[..]).is_some_and(|rest| rest == [child])
                };
                self.uses.keys().copied().find(is_child)?;
            }
        }
        base.extend(rest.iter().map(|&name| name.to_owned()));
        Some(base)
    }

    /// Returns the file in which the end of a path stands, behind all re-exports.
    fn file(&self, mut path: Module) -> Option<Module> {
        // Names that are re-exported in a ring do not compile.
        for _ in 0..8 {
            let depth =
                (1..=path.len()).rev().find(|&n| self.uses.contains_key(&path[..n].to_vec()))?;
            let (file, rest) = path.split_at(depth);
            let (file, rest) = (file.to_vec(), rest.to_vec());
            let exported = rest.first().and_then(|name| {
                let of = self.uses[&file].iter().find(|of| of.is_public && of.name == name)?;
                self.absolute(&file, &of.path)
            });
            let Some(exported) = exported else { return Some(file) };
            path = [&exported, &rest[1..]].concat();
        }
        None
    }
}

/// Returns all names that the `use`s of a file bring in.
fn uses<'a>(tokens: &[&'a str]) -> Vec<Use<'a>> {
    let mut found = Vec::new();
    for (at, _) in tokens.iter().enumerate().filter(|(_, token)| **token == "use") {
        // What follows a bound captures names and brings none in.
        if tokens.get(at + 1).is_none_or(|next| *next == "<") {
            continue;
        }
        let is_public = at > 0 && matches!(tokens[at - 1], "pub" | ")");
        let end = at + tokens[at..].iter().position(|token| *token == ";").unwrap_or_default();
        let mut prefixes: Vec<Vec<&str>> = vec![Vec::new()];
        let mut path: Vec<&str> = Vec::new();
        let mut alias = None;
        for (n, token) in tokens[at + 1..=end].iter().copied().enumerate() {
            match token {
                "::" | "as" => {}
                "{" => prefixes.push(path.clone()),
                "," | "}" | ";" => {
                    if path.last().is_some_and(|_| Some(&path) != prefixes.last()) {
                        let mut path = path.clone();
                        path.pop_if(|last| *last == "self" && prefixes.len() > 1);
                        let name = alias.or(path.last().copied()).unwrap_or_default();
                        found.push(Use { at: at..end, path, name, is_public });
                    }
                    if token == "}" {
                        prefixes.pop();
                    }
                    alias = None;
                    path = prefixes.last().cloned().unwrap_or_default();
                }
                name if tokens[at + n] == "as" => alias = Some(name),
                name => path.push(name),
            }
        }
    }
    found
}

/// Returns the paths that stand outside of a `use` and of what says who may see an item.
fn paths<'a>(tokens: &[&'a str], uses: &[Use<'_>]) -> Vec<Vec<&'a str>> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let begins = tokens[at].starts_with(is_ident)
            && tokens.get(at + 1) == Some(&"::")
            && !tokens[..at].ends_with(&["::"])
            && !tokens[..at].ends_with(&["(", "in"]);
        if begins && !uses.iter().any(|of| of.at.contains(&at)) {
            let names = tokens[at..].chunks(2).take_while(|pair| pair[0].starts_with(is_ident));
            let names = names.scan(true, |goes_on, pair| {
                let name = goes_on.then_some(pair[0]);
                *goes_on = pair.get(1) == Some(&"::");
                name
            });
            found.push(names.collect());
        }
    }
    found
}

/// Returns the tokens of a source without comments, literals and what is compiled for tests alone.
fn code(text: &str) -> Vec<&str> {
    const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let all = tokens(text);
    let mut left = all.as_slice();
    let mut kept = Vec::new();
    while let Some((first, rest)) = left.split_first() {
        if left.starts_with(&TEST) {
            left = &left[TEST.len()..];
            left = &left[end_of_item(left)..];
        } else {
            kept.push(*first);
            left = rest;
        }
    }
    kept
}

/// Returns how many tokens an item has, its attributes among them.
fn end_of_item(tokens: &[&str]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(*token, "}" | ";") {
            return at + 1;
        }
    }
    tokens.len()
}

/// Returns names, `::` and signs.
fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let end_of = |from: usize, end: &str| {
            rest.get(from..)
                .and_then(|text| text.find(end))
                .map_or(rest.len(), |at| from + at + end.len())
        };
        let hashes = rest
            .strip_prefix('r')
            .map_or(0, |text| text.len() - text.trim_start_matches('#').len());
        let is_raw = c == 'r' && rest[1 + hashes..].starts_with('"');
        let mut is_token = false;
        let length = if rest.starts_with("//") {
            end_of(2, "\n")
        } else if rest.starts_with("/*") {
            end_of(2, "*/")
        } else if is_raw {
            end_of(2 + hashes, &format!("\"{}", &rest[1..=hashes]))
        } else if c == '"' {
            quoted(rest, '"')
        } else if c == '\'' {
            // A lifetime has no second quote right behind its first letter.
            let is_char = rest[1..].starts_with('\\') || rest.chars().nth(2) == Some('\'');
            if is_char { quoted(rest, '\'') } else { 1 }
        } else {
            is_token = !c.is_whitespace();
            match rest.find(|c| !is_ident(c)).unwrap_or(rest.len()) {
                0 if rest.starts_with("::") => 2,
                0 => c.len_utf8(),
                length => length,
            }
        };
        if is_token {
            found.push(&rest[..length]);
        }
        rest = &rest[length..];
    }
    found
}

/// Returns how long a literal in quotes is.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    text.len()
}
