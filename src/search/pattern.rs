//! Patterns: what to match in a line of text.

use std::ops::Range;

use regex::{Regex, RegexBuilder};
use regex_syntax::{
    ParserBuilder,
    ast::{self, Ast, ClassAsciiKind, ClassSetItem, ClassUnicode, ClassUnicodeKind},
    hir::{self, Hir, HirKind},
};

/// How to interpret a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// Literally, anywhere.
    #[default]
    Literal,
    /// Literally, with no letter, digit or underscore next to it.
    Word,
    /// As a regular expression.
    Regex,
}

/// Whether the search is case-sensitive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Case {
    /// Only if the pattern has a capital letter.
    #[default]
    Smart,
    /// Never.
    Ignored,
    /// Always.
    Told,
}

/// Why a pattern cannot be searched for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is empty.
    #[error("the pattern is empty")]
    Empty,
    /// It contains a line break.
    #[error("the pattern contains a line break, but texts are searched line by line")]
    LineEnd,
    /// It is not a valid regular expression.
    #[error("invalid regular expression: {0}")]
    Syntax(String),
    /// It would need too much memory.
    #[error("the pattern is too large")]
    TooLarge,
}

/// A pattern to match in a line of text.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    /// What each match contains, without the word-boundary conditions.
    hir: Hir,
    manner: Manner,
}

/// The maximum length of a pattern, and the maximum size of its compiled form, both in bytes. Matching costs time proportional to
/// the size for each byte of text.
const LONGEST: usize = 8 << 10;
const LARGEST: usize = 16 << 20;

impl Pattern {
    /// Parses a pattern.
    pub fn new(words: &str, manner: Manner, case: Case) -> Result<Self, Unfit> {
        if words.is_empty() {
            return Err(Unfit::Empty);
        }
        if words.len() > LONGEST {
            return Err(Unfit::TooLarge);
        }
        let source = match manner {
            Manner::Literal | Manner::Word => regex_syntax::escape(words),
            Manner::Regex => words.to_owned(),
        };
        let tells_case = match case {
            Case::Told => true,
            Case::Ignored => false,
            Case::Smart => is_case_told(&source)?,
        };
        let syntax = |error: &dyn std::fmt::Display| {
            let told = error.to_string();
            Unfit::Syntax(told.lines().next_back().unwrap_or_default().to_owned())
        };
        let parsed = ParserBuilder::new().case_insensitive(!tells_case).build().parse(&source);
        let hir = parsed.map_err(|error| match error {
            regex_syntax::Error::Parse(error) => syntax(error.kind()),
            regex_syntax::Error::Translate(error) => syntax(error.kind()),
            error => syntax(&error),
        })?;
        if hir::visit(&hir, LineEnds).is_err() {
            return Err(Unfit::LineEnd);
        }
        let bounded = match manner {
            Manner::Word => format!(r"\b{{start-half}}(?:{source})\b{{end-half}}"),
            Manner::Literal | Manner::Regex => source,
        };
        let mut builder = RegexBuilder::new(&bounded);
        builder.case_insensitive(!tells_case).size_limit(LARGEST).dfa_size_limit(LARGEST);
        let regex = builder.build().map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => Unfit::TooLarge,
            error => syntax(&error),
        })?;
        Ok(Self { regex, hir, manner })
    }

    /// Returns what each match contains.
    pub(super) fn hir(&self) -> &Hir {
        &self.hir
    }

    /// Returns true if a match must start and end at word boundaries.
    pub(super) fn is_of_words(&self) -> bool {
        self.manner == Manner::Word
    }

    /// Returns true if a line of the text may match. If this returns false, no line does.
    pub(super) fn may_match(&self, text: &str) -> bool {
        // An anchor of a line does not match in the middle of a text.
        self.hir.properties().look_set().contains_anchor() || self.regex.is_match(text)
    }

    /// Returns true if a line has a match. A match may also treat a final CR as the end of the line.
    pub(super) fn is_match(&self, line: &str) -> bool {
        self.regex.is_match(line)
            || line.strip_suffix('\r').is_some_and(|line| self.regex.is_match(line))
    }

    /// Returns the ranges of the matches in a line, in bytes.
    pub fn matches(&self, line: &str) -> Vec<Range<usize>> {
        let found = |line| -> Vec<Range<usize>> {
            self.regex.find_iter(line).map(|found| found.range()).collect()
        };
        match (found(line), line.strip_suffix('\r')) {
            (none, Some(line)) if none.is_empty() => found(line),
            (found, _) => found,
        }
    }
}

/// Finds a literal line break in an expression; a class that contains one does not count.
struct LineEnds;

impl hir::Visitor for LineEnds {
    type Output = ();
    type Err = ();

    fn finish(self) -> Result<(), ()> {
        Ok(())
    }

    fn visit_pre(&mut self, hir: &Hir) -> Result<(), ()> {
        match hir.kind() {
            HirKind::Literal(literal) if literal.0.contains(&b'\n') => Err(()),
            _ => Ok(()),
        }
    }
}

/// Returns true if smart case is case-sensitive for an expression: it has a capital letter or a class of capitals, or it has no
/// literal character at all.
fn is_case_told(source: &str) -> Result<bool, Unfit> {
    let parsed = ast::parse::Parser::new().parse(source);
    let ast = parsed.map_err(|error| Unfit::Syntax(error.kind().to_string()))?;
    Ok(ast::visit(&ast, Capitals { has_sign: false }).unwrap_or(true))
}

/// Finds a capital letter. Otherwise the result is true if there was no literal character.
struct Capitals {
    has_sign: bool,
}

impl Capitals {
    /// Checks literal characters of the expression.
    fn see(&mut self, mut signs: impl Iterator<Item = char>) -> Result<(), ()> {
        self.has_sign = true;
        if signs.any(char::is_uppercase) { Err(()) } else { Ok(()) }
    }
}

impl ast::Visitor for Capitals {
    type Output = bool;
    type Err = ();

    fn finish(self) -> Result<bool, ()> {
        Ok(!self.has_sign)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), ()> {
        match ast {
            Ast::Literal(literal) => self.see([literal.c].into_iter()),
            Ast::ClassUnicode(class) if is_of_capitals(class) => Err(()),
            _ => Ok(()),
        }
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), ()> {
        match item {
            ClassSetItem::Literal(literal) => self.see([literal.c].into_iter()),
            ClassSetItem::Range(range) => self.see([range.start.c, range.end.c].into_iter()),
            ClassSetItem::Ascii(class) if class.kind == ClassAsciiKind::Upper => Err(()),
            ClassSetItem::Unicode(class) if is_of_capitals(class) => Err(()),
            _ => Ok(()),
        }
    }
}

/// Returns true if a class is one of capital letters, or its complement.
fn is_of_capitals(class: &ClassUnicode) -> bool {
    let (ClassUnicodeKind::Named(name) | ClassUnicodeKind::NamedValue { value: name, .. }) =
        &class.kind
    else {
        return false;
    };
    let name: String = name.chars().filter(char::is_ascii_alphabetic).collect();
    let names = ["lu", "uppercaseletter", "upper", "uppercase", "lt", "titlecaseletter"];
    names.contains(&name.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(words: &str, manner: Manner, line: &str) -> bool {
        Pattern::new(words, manner, Case::Smart).unwrap().is_match(line)
    }

    #[test]
    fn words_are_meant_as_they_stand_or_as_an_expression() {
        assert!(matches("a.c(", Manner::Literal, "x a.c( y"));
        assert!(!matches("a.c", Manner::Literal, "abc"));
        assert!(matches("a.c", Manner::Regex, "abc"));
        assert!(matches("log", Manner::Word, "a log, written"));
        assert!(!matches("log", Manner::Word, "logged"));
        assert!(matches("->", Manner::Word, "a -> b"));
        assert!(matches("日志", Manner::Literal, "读取日志文件"));
    }

    #[test]
    fn a_capital_letter_tells_case() {
        assert!(matches("error", Manner::Literal, "ERROR"));
        assert!(!matches("Error", Manner::Literal, "ERROR"));
        assert!(matches(r"\Serror\W", Manner::Regex, "xERROR "));
        assert!(!matches(r"[A-Z]rror", Manner::Regex, "xerror"));
        assert!(matches("éclair", Manner::Literal, "ÉCLAIR"));
        // So does a class of them, and where no letter stands as such the classes say what is meant.
        let classes =
            [r"\p{Lu}", r"\p{Uppercase_Letter}", r"\p{gc=Lu}", "[[:upper:]]", r"[\p{Lu}0]"];
        for class in classes.into_iter().chain(["[A-Z]", "[0-Z]"]) {
            for behind in ["rror", r"\w+"] {
                let expression = format!("^{class}{behind}$");
                assert!(matches(&expression, Manner::Regex, "Error"), "{expression}");
                assert!(!matches(&expression, Manner::Regex, "error"), "{expression}");
            }
        }
        assert!(!matches(r"\p{Ll}{4}", Manner::Regex, "ERROR"));
        assert!(!matches(r"^[[:lower:]]+$", Manner::Regex, "ERROR"));
        assert!(matches(r"[a-z]rror", Manner::Regex, "ERROR"));
        assert!(matches(r"\p{L}rror", Manner::Regex, "ERROR"));
    }

    #[test]
    fn what_is_no_pattern_says_so() {
        let unfit = |words: &str, manner| Pattern::new(words, manner, Case::Smart).unwrap_err();
        assert_eq!(unfit("", Manner::Literal), Unfit::Empty);
        assert_eq!(unfit("a\nb", Manner::Word), Unfit::LineEnd);
        assert_eq!(unfit(&"a".repeat(10 << 20), Manner::Literal), Unfit::TooLarge);
        assert_eq!(unfit("((a{1000}){1000}){1000}", Manner::Regex), Unfit::TooLarge);
        for usual in
            [r"\w{1,50}", r"\pL{50,200}", "error.{0,200}timeout", "a.{500}z", r"(\w+\s?)*q$"]
        {
            assert!(Pattern::new(usual, Manner::Regex, Case::Smart).is_ok(), "{usual}");
        }
        assert!(unfit("a(b", Manner::Regex).to_string().contains("unclosed group"));
        assert!(unfit("*", Manner::Regex).to_string().contains("repetition operator"));
    }
}
