//! The page `docs/json.md`, written from the types of the reports: `json_page.md` next to this file has its prose, and a line
//! `{{Type}}` wherever the shape of a report belongs. Keys, values and descriptions come from the fields and their docs.
//!
//! `UNDERTEXT_WRITE_DOCS=1 cargo test --test it json_page` writes the page.
//!
//! Invariant: nothing here guesses. A serde attribute, a type or a function that this file does not know fails the test.

#![expect(clippy::disallowed_methods, reason = "the sources of this project are read")]

use std::{cell::RefCell, collections::BTreeMap, fs, path::Path};

use crate::needs;
use syn::{
    Attribute, Expr, Fields, GenericArgument, Item, Lit, Meta, PathArguments, Type, UseTree,
};

const WIDTH: usize = 130;

/// Strings are named after what they contain, by their key.
const STRINGS: [(&str, &[&str]); 3] = [
    ("ID", &["session", "parent", "call", "id"]),
    (
        "NAME",
        &[
            "agent", "format", "branch", "branches", "model", "tool", "name", "rule", "rules",
            "left", "command", "field", "verb", "from",
        ],
    ),
    ("PATH", &["file", "folder", "folders", "path", "store", "terminal"]),
];

/// Words that keep their first letter.
const NAMES: [&str; 2] = ["Anthropic", "Gemini"];

/// A description of a key, a value or an object on the page.
#[derive(Clone, Debug)]
struct Key {
    name: String,
    shape: String,
    docs: String,
    within: Vec<Key>,
}

/// What the attributes of a type, a field or a variant say, and its docs.
#[derive(Default)]
struct Marks {
    rename: Option<String>,
    rename_all: Option<String>,
    tag: Option<String>,
    with: Option<String>,
    is_skipped: bool,
    is_flat: bool,
    is_optional: bool,
    docs: String,
}

/// A type, and the module that defines it.
type Found = (Vec<String>, Item);

struct Sources {
    files: RefCell<BTreeMap<String, Option<syn::File>>>,
    /// Shapes with a name and a section of their own, by module and type.
    labels: BTreeMap<String, (String, String)>,
    /// The section that is being written.
    section: RefCell<String>,
    /// The lines of the template: a description that is one of them is not repeated.
    known: Vec<String>,
}

impl Marks {
    fn of(attributes: &[Attribute]) -> Self {
        let mut marks = Self::default();
        for attribute in attributes {
            if let Meta::NameValue(pair) = &attribute.meta
                && pair.path.is_ident("doc")
                && let Expr::Lit(text) = &pair.value
                && let Lit::Str(text) = &text.lit
            {
                let docs = format!("{} {}", marks.docs, text.value().trim());
                docs.trim().clone_into(&mut marks.docs);
            }
            if !attribute.path().is_ident("serde") {
                continue;
            }
            let parsed = attribute.parse_nested_meta(|meta| {
                let name = meta.path.get_ident().unwrap().to_string();
                let text = meta.value().and_then(syn::parse::ParseBuffer::parse::<syn::LitStr>);
                let text = text.map(|text| text.value()).ok();
                match name.as_str() {
                    "rename" => marks.rename = text,
                    "rename_all" => marks.rename_all = text,
                    "tag" => marks.tag = text,
                    "serialize_with" => marks.with = text,
                    "skip" => marks.is_skipped = true,
                    "flatten" => marks.is_flat = true,
                    "skip_serializing_if" => marks.is_optional = true,
                    "default" | "untagged" => {}
                    other => panic!("what does serde do with {other}?"),
                }
                Ok(())
            });
            parsed.unwrap();
        }
        marks
    }

    fn name_of(&self, variant: &str, own: &Self) -> String {
        let apart = |mark: &str| {
            let parts = variant.split_inclusive(|_: char| true).collect::<Vec<_>>();
            let spell = |part: &&str| match part.chars().next() {
                Some(c) if c.is_uppercase() => format!("{mark}{}", part.to_lowercase()),
                _ => (*part).to_owned(),
            };
            parts.iter().map(spell).collect::<String>().trim_start_matches(mark).to_owned()
        };
        let all = match self.rename_all.as_deref() {
            None => variant.to_owned(),
            Some("lowercase") => variant.to_lowercase(),
            Some("kebab-case") => apart("-"),
            Some("snake_case") => apart("_"),
            Some(other) => panic!("how does {other} spell {variant}?"),
        };
        own.rename.clone().unwrap_or(all)
    }
}

impl Sources {
    fn file(&self, module: &[String]) -> Option<syn::File> {
        let path = module.join("/");
        let read = || {
            let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(&path);
            let text = fs::read_to_string(src.with_extension("rs"));
            let text = text.or_else(|_| fs::read_to_string(src.join("mod.rs")));
            Some(syn::parse_file(&text.ok()?).unwrap())
        };
        self.files.borrow_mut().entry(path.clone()).or_insert_with(read).clone()
    }

    /// Finds a type by the name that it has in a module.
    fn find(&self, module: &[String], name: &str) -> Option<Found> {
        let file = self.file(module)?;
        let is_it = |item: &&Item| match item {
            Item::Struct(it) => it.ident == name,
            Item::Enum(it) => it.ident == name,
            _ => false,
        };
        if let Some(item) = file.items.iter().find(is_it) {
            return Some((module.to_vec(), item.clone()));
        }
        for item in &file.items {
            let Item::Use(used) = item else { continue };
            let mut paths = Vec::new();
            used_paths(&used.tree, &[], &mut paths);
            for mut path in
                paths.into_iter().filter(|path| path.last().is_some_and(|it| it == name))
            {
                path.pop();
                let mut from = module.to_vec();
                let mut rest = path.into_iter().peekable();
                match rest.peek().map(String::as_str) {
                    Some("crate") => from.clear(),
                    Some("super") => drop(from.pop()),
                    Some("self") => {}
                    Some(child) => {
                        let child = child.to_owned();
                        let below = [module, &[child]].concat();
                        self.file(&below)?;
                        from = below;
                    }
                    None => continue,
                }
                rest.next();
                from.extend(rest);
                return self.find(&from, name);
            }
        }
        None
    }

    /// Finds the type that a directive names: one of the reports, or one with its module.
    fn named(&self, of: &str) -> Found {
        let (module, name) = of.rsplit_once("::").unwrap_or(("report", of));
        let module: Vec<String> = module.split("::").map(str::to_owned).collect();
        self.find(&module, name).unwrap_or_else(|| panic!("{of} is unknown"))
    }

    fn label(&self, (module, item): &Found) -> Option<&(String, String)> {
        self.labels.get(&place(module, item))
    }

    /// Returns where a shape is described, unless that is here.
    fn see(&self, at: &str) -> Option<String> {
        (*self.section.borrow() != at).then(|| format!("see [{}](#{at})", at.replace('-', " ")))
    }

    /// Returns the implementation of a function for a type.
    fn function(&self, module: &[String], of: &str, name: &str) -> Option<syn::ImplItemFn> {
        let items = self.file(module)?.items;
        items.into_iter().find_map(|item| {
            let Item::Impl(block) = item else { return None };
            let Type::Path(own) = &*block.self_ty else { return None };
            if own.path.segments.last()?.ident != of || block.trait_.is_some() {
                return None;
            }
            block.items.into_iter().find_map(|item| match item {
                syn::ImplItem::Fn(it) if it.sig.ident == name => Some(it),
                _ => None,
            })
        })
    }

    /// Returns the keys of a struct, in order.
    fn keys(&self, module: &[String], fields: &Fields) -> Vec<Key> {
        let mut keys = Vec::new();
        for field in fields {
            let marks = Marks::of(&field.attrs);
            let Some(name) = &field.ident else { panic!("{fields:?} has no names") };
            if marks.is_skipped {
                continue;
            }
            let name = marks
                .rename
                .clone()
                .unwrap_or_else(|| name.to_string().trim_start_matches("r#").to_owned());
            if marks.is_flat {
                let of = match &marks.with {
                    Some(with) => through(with).unwrap_or_else(|| panic!("what is in {with}?")),
                    None => field.ty.clone(),
                };
                keys.extend(self.flat(module, &of));
                continue;
            }
            let (shape, within) = match &marks.with {
                Some(with) => self.shape_with(module, with, &name),
                None => self.shape(module, &field.ty, &name),
            };
            let shape =
                if marks.is_optional { shape.trim_end_matches('?').to_owned() } else { shape };
            assert!(!marks.docs.is_empty(), "{name} of {module:?} has no description");
            keys.push(Key { name, shape, docs: marks.docs, within });
        }
        keys
    }

    fn flat(&self, module: &[String], ty: &Type) -> Vec<Key> {
        let name = last_name(ty);
        // A session is serialised as its name.
        let (module, name) = match name.as_str() {
            "Session" => (vec!["model".to_owned()], "SessionName".to_owned()),
            _ => (module.to_vec(), name),
        };
        let found =
            self.find(&module, &name).unwrap_or_else(|| panic!("{name} is unknown in {module:?}"));
        if let Some((label, at)) = self.label(&found)
            && label == ".."
        {
            let docs = self.see(at).unwrap_or_default();
            let (name, shape) = (label.clone(), String::new());
            return vec![Key { name, shape, docs, within: Vec::new() }];
        }
        let Item::Struct(it) = found.1 else { panic!("{name} is not a struct") };
        self.keys(&found.0, &it.fields)
    }

    fn shape_with(&self, module: &[String], with: &str, key: &str) -> (String, Vec<Key>) {
        if let Some(ty) = through(with) {
            return self.shape(module, &ty, key);
        }
        let shape = match with {
            "path" => "PATH",
            "some_path" => "PATH?",
            "paths" => "[PATH]",
            "id" | "name_id" => "ID",
            "text" => "TEXT",
            "some_text" => "TEXT?",
            "count" => "N",
            "before" => "N?",
            "dotted" => "NAME",
            "input" => "JSON",
            "ranges" => "[[N,\u{a0}N]]",
            "severity" => "damage|note",
            "elsewhere" => {
                let (shape, within) =
                    self.shape(module, &syn::parse_str("Beginning").unwrap(), key);
                return (format!("{shape}?"), within);
            }
            other => panic!("what does {other} write?"),
        };
        (shape.to_owned(), Vec::new())
    }

    fn shape(&self, module: &[String], ty: &Type, key: &str) -> (String, Vec<Key>) {
        let plain = |shape: &str| (shape.to_owned(), Vec::new());
        let path = match ty {
            Type::Reference(of) => return self.shape(module, &of.elem, key),
            Type::Slice(of) => {
                let (shape, within) = self.shape(module, &of.elem, key);
                return (format!("[{shape}]"), within);
            }
            Type::Tuple(all) if all.elems.is_empty() => return plain("null"),
            Type::Tuple(all) => {
                let all = all.elems.iter().map(|one| self.shape(module, one, key).0);
                return (format!("[{}]", all.collect::<Vec<_>>().join(",\u{a0}")), Vec::new());
            }
            Type::Path(path) => path,
            other => panic!("what is {other:?}?"),
        };
        let last = path.path.segments.last().unwrap();
        let name = last.ident.to_string();
        let inner = |n: usize| {
            let PathArguments::AngleBracketed(all) = &last.arguments else {
                panic!("{name} of what?")
            };
            let types = all.args.iter().filter_map(|one| match one {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            });
            types.into_iter().nth(n).unwrap()
        };
        match name.as_str() {
            "Option" => {
                let (shape, within) = self.shape(module, inner(0), key);
                (format!("{shape}?"), within)
            }
            "Vec" => {
                // The name of a command, but the words of a command line.
                let key = if key == "command" { "" } else { key };
                let (shape, within) = self.shape(module, inner(0), key);
                (format!("[{shape}]"), within)
            }
            "Cow" | "Box" => self.shape(module, inner(0), key),
            "BTreeMap" => {
                let (of, within) = self.shape(module, inner(0), key);
                let of = if of.contains('|') || of == "TEXT" { "NAME".to_owned() } else { of };
                (format!("{{{of}:{}}}", self.shape(module, inner(1), key).0), within)
            }
            "bool" => plain("BOOL"),
            "u8" | "u32" | "u64" | "usize" | "Limit" => plain("N"),
            number if number.ends_with("Number") => plain("N"),
            "String" | "str" | "OsString" | "Text" => {
                let known = STRINGS.iter().find(|(_, keys)| keys.contains(&key));
                plain(known.map_or("TEXT", |(name, _)| name))
            }
            "EntryId" | "StoreId" => plain("ID"),
            "Timestamp" => plain("TIME"),
            "Digest" | "OperationId" => plain("TEXT"),
            "Value" | "Input" => plain("JSON"),
            "Resized" => plain("[N,\u{a0}N]"),
            "Around" => plain("[TEXT]"),
            _ => self.shape_of(module, &name),
        }
    }

    /// Returns the shape of one of our own types.
    fn shape_of(&self, module: &[String], name: &str) -> (String, Vec<Key>) {
        let found =
            self.find(module, name).unwrap_or_else(|| panic!("{name} is unknown in {module:?}"));
        // A request to a provider writes itself.
        if name == "Request" && found.0.starts_with(&["context".to_owned()]) {
            return ("OBJECT".to_owned(), Vec::new());
        }
        if let Some((label, _)) = self.label(&found) {
            return (label.clone(), Vec::new());
        }
        if let Item::Struct(it) = &found.1 {
            let keys = self.keys(&found.0, &it.fields);
            return (object(None, &keys), keys);
        }
        let names = self.names(&found);
        let shapes =
            names.iter().map(|key| if key.shape.is_empty() { &key.name } else { &key.shape });
        (shapes.map(String::as_str).collect::<Vec<_>>().join("|"), names)
    }

    /// Returns the values of an enum, by the names that are written.
    fn names(&self, found: &Found) -> Vec<Key> {
        let (module, Item::Enum(it)) = found else { panic!("{found:?} is not an enum") };
        let marks = Marks::of(&it.attrs);
        let arms = self
            .function(module, &it.ident.to_string(), "as_str")
            .map(|it| arms(&it))
            .unwrap_or_default();
        let mut names = Vec::new();
        for variant in &it.variants {
            let own = Marks::of(&variant.attrs);
            assert!(!own.docs.is_empty(), "{} has no description", variant.ident);
            let name = match arms.get(&variant.ident.to_string()) {
                Some(Some(name)) => name.clone(),
                // A variant that has another's names.
                Some(None) => {
                    let ty = &variant.fields.iter().next().unwrap().ty;
                    let inner = self.find(module, &last_name(ty)).unwrap();
                    names.extend(self.names(&inner));
                    continue;
                }
                None if arms.is_empty() && marks.rename_all.is_none() => {
                    variant.ident.to_string().to_lowercase()
                }
                None => marks.name_of(&variant.ident.to_string(), &own),
            };
            let (shape, within) = match &variant.fields {
                Fields::Named(_) => {
                    let keys = self.keys(module, &variant.fields);
                    (format!("{{\"{name}\":{}}}", object(None, &keys)), keys)
                }
                Fields::Unnamed(fields)
                    if fields.unnamed.iter().all(|field| Marks::of(&field.attrs).is_skipped) =>
                {
                    (String::new(), Vec::new())
                }
                Fields::Unnamed(fields) if arms.is_empty() => {
                    let field = fields.unnamed.first().unwrap();
                    let (shape, within) = match Marks::of(&field.attrs).with {
                        Some(with) => self.shape_with(module, &with, &name),
                        None => self.shape(module, &field.ty, &name),
                    };
                    (format!("{{\"{name}\":{shape}}}"), within)
                }
                _ => (String::new(), Vec::new()),
            };
            names.push(Key { name, shape, docs: own.docs, within });
        }
        names
    }

    /// Returns the block of a directive: the shape of a report or of a part, and what is to say of its keys.
    fn section(&self, directive: &str, kinds: &BTreeMap<String, String>) -> String {
        let report = vec!["report".to_owned()];
        let (label, of) = match directive.split_once(": ") {
            Some((label, of)) => (Some(label), of),
            None => (None, directive),
        };
        let name = of.rsplit("::").next().unwrap();
        if let Some(done) = name.strip_prefix("Changed<") {
            let done = done.trim_end_matches('>');
            let (module, item) =
                self.find(&["report".to_owned(), "shape".to_owned()], "Changed").unwrap();
            let Item::Struct(changed) = item else { panic!() };
            let mut fields = changed.fields;
            let Fields::Named(named) = &mut fields else { panic!() };
            drop(named.named.pop());
            let mut keys = self.keys(&module, &fields);
            keys.extend(self.flat(&report, &syn::parse_str(done).unwrap()));
            return self.block(&[object(Some(&kinds[done]), &keys)], &keys);
        }
        let found = self.named(of);
        let marks = Marks::of(match &found.1 {
            Item::Struct(it) => &it.attrs,
            Item::Enum(it) => &it.attrs,
            _ => panic!("{name} is not a type"),
        });
        match (&found.1, label) {
            (Item::Enum(_), _) if marks.tag.is_some() => {
                let mut keys = self.names(&found);
                let tag = marks.tag.unwrap();
                let indent = label.map_or(String::new(), |label| format!("{label}  "));
                let lines: Vec<String> = keys
                    .iter()
                    .enumerate()
                    .map(|(n, key)| {
                        let mut all = format!("{{\"{tag}\":\"{}\"", key.name);
                        all.extend(
                            key.within
                                .iter()
                                .map(|key| format!(", \"{}\":{}", key.name, key.shape)),
                        );
                        let indent = if n == 0 { indent.clone() } else { " ".repeat(indent.len()) };
                        format!("{indent}{all}}}")
                    })
                    .collect();
                for key in &mut keys {
                    key.shape.clear();
                }
                self.block(&lines, &keys)
            }
            (Item::Enum(_), Some(label)) => {
                let names = self.names(&found);
                let shapes: Vec<&str> =
                    names
                        .iter()
                        .map(|key| {
                            if key.shape.is_empty() {
                                key.name.as_str()
                            } else {
                                key.shape.as_str()
                            }
                        })
                        .collect();
                self.block(&[format!("{label}  {}", shapes.join("|"))], &names)
            }
            (Item::Struct(it), Some("..")) => {
                let keys = self.keys(&found.0, &it.fields);
                self.block(&[object(kinds.get(name).map(String::as_str), &keys)], &keys)
            }
            (Item::Struct(it), Some(label)) => {
                let keys = self.keys(&found.0, &it.fields);
                self.block(&[format!("{label}  {}", object(None, &keys))], &keys)
            }
            (Item::Struct(it), None) => {
                let kind = &kinds[name];
                if self.label(&found).is_some() {
                    return self.block(&[format!("{{\"type\":{kind}, ..}}")], &[]);
                }
                let keys = self.keys(&found.0, &it.fields);
                self.block(&[object(Some(kind), &keys)], &keys)
            }
            _ => panic!("{name} is not a report"),
        }
    }

    fn block(&self, shapes: &[String], keys: &[Key]) -> String {
        let mut block = String::from("```text\n");
        for shape in shapes {
            let indent = shape.find('{').unwrap_or(0) + 1;
            block.extend([&wrapped(shape, indent), "\n"]);
        }
        block += "```\n";
        let mut list = Vec::new();
        self.list(keys, 0, &mut list);
        if !list.is_empty() {
            block.push('\n');
        }
        for line in list {
            let indent = line.len() - line.trim_start().len() + 2;
            block.extend([&wrapped(&line, indent), "\n"]);
        }
        block
    }

    /// Lists the descriptions of keys, each once.
    fn list(&self, keys: &[Key], depth: usize, list: &mut Vec<String>) {
        for key in keys {
            let bare = key.shape.trim_matches(['[', ']', '?']);
            let label = self.labels.values().find(|(label, _)| label == bare);
            let see = label.and_then(|(_, at)| self.see(at)).map(|see| format!(", {see}"));
            let docs = format!("{}{}", description(&key.docs), see.unwrap_or_default());
            let line = match key.name.as_str() {
                ".." if docs.is_empty() => continue,
                ".." => format!("- other keys: {docs}"),
                name => format!("- `{name}`: {docs}"),
            };
            let pad = "  ".repeat(depth);
            let at = list.len();
            self.list(&key.within, depth + 1, list);
            let is_known =
                self.known.contains(&line) || list.iter().any(|other| other.trim() == line);
            if list.len() > at || !is_known {
                list.insert(at, format!("{pad}{line}"));
            }
        }
    }
}

fn used_paths(tree: &UseTree, before: &[String], paths: &mut Vec<Vec<String>>) {
    match tree {
        UseTree::Path(path) => {
            used_paths(&path.tree, &[before, &[path.ident.to_string()]].concat(), paths);
        }
        UseTree::Name(name) => paths.push([before, &[name.ident.to_string()]].concat()),
        UseTree::Group(group) => {
            for item in &group.items {
                used_paths(item, before, paths);
            }
        }
        UseTree::Rename(_) | UseTree::Glob(_) => {}
    }
}

/// Returns the names that the arms of `as_str` give to variants; none where an arm asks another type.
fn arms(function: &syn::ImplItemFn) -> BTreeMap<String, Option<String>> {
    let Some(syn::Stmt::Expr(Expr::Match(all), None)) = function.block.stmts.first() else {
        return BTreeMap::new();
    };
    let arm = |arm: &syn::Arm| {
        let path = match &arm.pat {
            syn::Pat::Path(it) => &it.path,
            syn::Pat::TupleStruct(it) => &it.path,
            other => panic!("what does {other:?} match?"),
        };
        let name = match &*arm.body {
            Expr::Lit(it) => match &it.lit {
                Lit::Str(name) => Some(name.value()),
                _ => None,
            },
            _ => None,
        };
        (path.segments.last().unwrap().ident.to_string(), name)
    };
    all.arms.iter().map(arm).collect()
}

/// Returns the type that `through::<Type, ..>` writes.
fn through(with: &str) -> Option<Type> {
    let path: syn::ExprPath = syn::parse_str(with).unwrap();
    let last = path.path.segments.last().filter(|last| last.ident == "through")?;
    let PathArguments::AngleBracketed(all) = &last.arguments else { return None };
    all.args.iter().find_map(|one| match one {
        GenericArgument::Type(ty) => Some(ty.clone()),
        _ => None,
    })
}

fn last_name(ty: &Type) -> String {
    match ty {
        Type::Reference(of) => last_name(&of.elem),
        Type::Path(path) => path.path.segments.last().unwrap().ident.to_string(),
        other => panic!("what is {other:?}?"),
    }
}

fn object(kind: Option<&str>, keys: &[Key]) -> String {
    let kind = kind.map(|kind| format!("\"type\":{kind}"));
    let key = |key: &Key| match key.name.as_str() {
        ".." => "..".to_owned(),
        name => format!("\"{name}\":{}", key.shape),
    };
    let all: Vec<String> = kind.into_iter().chain(keys.iter().map(key)).collect();
    format!("{{{}}}", all.join(", "))
}

/// Returns the place of a type: its module and its name.
fn place(module: &[String], item: &Item) -> String {
    let name = match item {
        Item::Struct(it) => &it.ident,
        Item::Enum(it) => &it.ident,
        other => panic!("{other:?} is not a type"),
    };
    format!("{}::{name}", module.join("::"))
}

/// Returns a doc comment as the description of a key.
fn description(docs: &str) -> String {
    let docs = docs.trim_end_matches('.');
    let is_name = NAMES.iter().any(|name| docs.starts_with(name));
    let mut chars = docs.chars();
    let first = chars.next().unwrap_or_default();
    let rest = chars.as_str();
    if rest.starts_with(|c: char| c.is_lowercase() || c == ' ') && !is_name {
        format!("{}{rest}", first.to_lowercase())
    } else {
        docs.to_owned()
    }
}

fn wrapped(text: &str, indent: usize) -> String {
    let lead = text.len() - text.trim_start().len();
    let (mut lines, mut line) = (String::new(), text[..lead].to_owned());
    for (n, word) in text.trim_start().split(' ').enumerate() {
        if n > 0 && line.len() + 1 + word.len() > WIDTH {
            lines.extend([line.trim_end(), "\n"]);
            line = " ".repeat(indent);
        } else if n > 0 {
            line.push(' ');
        }
        line += word;
    }
    (lines + &line).replace('\u{a0}', " ")
}

/// Returns the types of all reports, by the name of their type.
fn kinds(folder: &Path) -> BTreeMap<String, String> {
    let mut kinds =
        BTreeMap::from([("UnreadSession".to_owned(), "\"damaged\"|\"unread\"".to_owned())]);
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|it| it != "rs") {
            continue;
        }
        for item in syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap().items {
            if let Item::Macro(it) = item
                && it.mac.path.is_ident("report")
            {
                let tokens = it.mac.tokens.to_string();
                let (name, rest) = tokens.split_once(", ").unwrap();
                let name = name.split('<').next().unwrap().trim();
                let kind = rest.split(',').next().unwrap().trim();
                kinds.insert(name.to_owned(), kind.to_owned());
            }
        }
    }
    kinds
}

/// Returns the page for a template.
fn page(template: &str, kinds: &BTreeMap<String, String>) -> String {
    let directive = |line: &str| Some(line.strip_prefix("{{")?.strip_suffix("}}")?.to_owned());
    let anchor = |line: &str| {
        let heading = line.starts_with('#').then(|| line.trim_start_matches('#').trim());
        heading.map(|it| it.to_lowercase().replace(' ', "-"))
    };
    let known = template.lines().map(str::to_owned).collect();
    let (files, section) = (RefCell::default(), RefCell::default());
    let mut sources = Sources { files, labels: BTreeMap::new(), section, known };
    let mut at = String::new();
    for line in template.lines() {
        at = anchor(line).unwrap_or(at);
        if let Some((label, of)) = directive(line).as_deref().and_then(|it| it.split_once(": ")) {
            let (module, item) = sources.named(of);
            sources.labels.insert(place(&module, &item), (label.to_owned(), at.clone()));
        }
    }
    let lines = template.lines().map(|line| {
        if let Some(at) = anchor(line) {
            sources.section.replace(at);
        }
        match directive(line) {
            Some(it) => sources.section(&it, kinds),
            None => format!("{line}\n"),
        }
    });
    lines.collect()
}

#[test]
fn the_page_of_json_is_what_the_types_of_the_reports_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kinds = kinds(&root.join("src/report"));
    let template = fs::read_to_string(root.join("tests/it/json_page.md")).unwrap();
    for name in kinds.keys().filter(|name| !["Cleared", "Redone"].contains(&name.as_str())) {
        let is_there = |line: &str| {
            let of = line.strip_prefix("{{").and_then(|line| line.strip_suffix("}}"));
            of.is_some_and(|of| of.split([':', '<', '>', ' ']).any(|word| word == name))
        };
        assert!(template.lines().any(is_there), "{name} is not on the page");
    }
    let (page, path) = (page(&template, &kinds), root.join("docs/json.md"));
    if needs::writes_docs() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(path).unwrap();
    assert!(written == page, "UNDERTEXT_WRITE_DOCS=1 cargo test --test it json_page");
}
