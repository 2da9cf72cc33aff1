//! Colours: maps labels to escape sequences. No other file does.
//!
//! Invariant: output never depends on colour. Painting only adds escape sequences around a text.

use std::fmt::Write as _;

/// A piece of a line, as safe text.
pub(crate) type Span = (Label, String);

/// The kind of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    Plain,
    Heading,
    Dim,
    Id,
    Time,
    Branch,
    Head,
    Checkpoint,
    Boundary,
    User,
    Assistant,
    Tool,
    Note,
    Hint,
    Warning,
    Error,
    Match,
    Added,
    Removed,
    /// Of Markdown: emphasis, and code.
    #[cfg(feature = "browse")]
    Emphasis,
    #[cfg(feature = "browse")]
    Code,
}

/// All labels. Of those that look the same, only the first one.
#[cfg(feature = "browse")]
const LABELS: [Label; 21] = [
    Label::Plain,
    Label::Heading,
    Label::Dim,
    Label::Id,
    Label::Time,
    Label::Branch,
    Label::Head,
    Label::Checkpoint,
    Label::Boundary,
    Label::User,
    Label::Assistant,
    Label::Tool,
    Label::Note,
    Label::Hint,
    Label::Warning,
    Label::Error,
    Label::Match,
    Label::Added,
    Label::Removed,
    Label::Emphasis,
    Label::Code,
];

/// Splits a painted line into its pieces, each with a label that is painted in the same way.
#[cfg(feature = "browse")]
pub(crate) fn unpaint(line: &str) -> Vec<Span> {
    let mut parts = line.split("\x1b[");
    let first = parts.next().map(|text| (Label::Plain, text.to_owned()));
    let painted = parts.filter_map(|part| {
        let (code, text) = part.split_once('m')?;
        let label = LABELS.into_iter().find(|label| label.code() == Some(code));
        Some((label.unwrap_or(Label::Plain), text.to_owned()))
    });
    first.into_iter().chain(painted).filter(|(_, text)| !text.is_empty()).collect()
}

/// Decides whether labels are painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Styles {
    coloured: bool,
}

impl Label {
    /// Returns the parameters of the label's escape sequence: bold, dim and the eight base colours, which every terminal has and
    /// every theme keeps readable.
    pub(crate) fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Heading => Some("1"),
            Self::Dim | Self::Time => Some("2"),
            Self::Id => Some("33"),
            Self::Branch | Self::Tool => Some("35"),
            Self::Head => Some("1;36"),
            Self::Checkpoint | Self::Hint => Some("36"),
            Self::Boundary => Some("2;35"),
            Self::User => Some("1;34"),
            Self::Assistant => Some("1;32"),
            Self::Note | Self::Warning => Some("1;33"),
            Self::Error | Self::Match => Some("1;31"),
            Self::Added => Some("32"),
            Self::Removed => Some("31"),
            #[cfg(feature = "browse")]
            Self::Emphasis => Some("3"),
            #[cfg(feature = "browse")]
            Self::Code => Some("36"),
        }
    }
}

impl Styles {
    /// Styles that return text as it is.
    pub(crate) const PLAIN: Self = Self { coloured: false };
    #[cfg(test)]
    pub(crate) const COLOURED: Self = Self { coloured: true };

    /// Returns styles that paint if `coloured`, and otherwise return text as it is.
    pub(crate) fn new(coloured: bool) -> Self {
        Self { coloured }
    }

    /// Returns true if painting adds colour.
    pub(crate) fn is_coloured(self) -> bool {
        self.coloured
    }

    /// Paints a line and drops the white space at its end.
    pub(crate) fn paint_line(self, spans: &[Span]) -> String {
        let painted: String = spans.iter().map(|(label, text)| self.paint(*label, text)).collect();
        painted.trim_end().to_owned()
    }

    /// Paints safe text in its label's colour, line by line, because pagers reset colour at the end of a line.
    pub(crate) fn paint(self, label: Label, text: &str) -> String {
        let (true, Some(code)) = (self.coloured, label.code()) else {
            return text.to_owned();
        };
        let mut painted = String::with_capacity(text.len() + 16);
        for (n, line) in text.split('\n').enumerate() {
            if n > 0 {
                painted.push('\n');
            }
            if !line.is_empty() {
                write!(painted, "\x1b[{code}m{line}\x1b[0m")
                    .expect("a string takes all that is written");
            }
        }
        painted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_styles_leave_text_as_it_is() {
        assert_eq!(Styles::PLAIN.paint(Label::Error, "a\nb"), "a\nb");
    }

    #[cfg(feature = "browse")]
    #[test]
    fn a_painted_line_splits_into_its_pieces() {
        let spans: Vec<Span> = LABELS.map(|label| (label, format!("{label:?} "))).into();
        let painted: String =
            spans.iter().map(|(label, text)| Styles::COLOURED.paint(*label, text)).collect();
        let parts = unpaint(&painted);
        assert_eq!(parts.len(), spans.len());
        for ((label, text), (other, same)) in spans.iter().zip(&parts) {
            assert_eq!((label.code(), text), (other.code(), same));
        }
        assert_eq!(unpaint(""), []);
    }

    #[test]
    fn colour_ends_with_each_line() {
        let painted = Styles::COLOURED.paint(Label::Id, "a\n\nb\n");
        assert_eq!(painted, "\x1b[33ma\x1b[0m\n\n\x1b[33mb\x1b[0m\n");
        assert_eq!(Styles::COLOURED.paint(Label::Plain, "a"), "a");
    }
}
