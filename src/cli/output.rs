//! Output: stdout carries data, stderr carries messages.
//!
//! Data is written through [`Write`]. A reader that closes the pipe causes [`io::ErrorKind::BrokenPipe`], which a command returns
//! with `?` and [`super::error`] turns into success. Messages are best effort: an error on stderr is ignored.
//!
//! Invariant: messages never interrupt a pager, they wait for it to end. A progress line is always cleared before anything else
//! is written.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::ColorChoice;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use undertext::report::{Hint, Line};

use super::CommandError;
use super::env::{self, Env};
use super::hint::Naming;
use crate::render::style::{Label, Styles};
use crate::render::{json, safe, units, wrap};

const BUFFER: usize = 64 * 1024;
const UNKNOWN_WIDTH: usize = 80;
const REDRAW: Duration = Duration::from_millis(100);
/// Minimum age of a task before its remaining time is estimated.
const SURE: Duration = Duration::from_secs(2);
const CLEAR_LINE: &str = "\r\x1b[K";
/// Maximum size of a copied text: several terminals drop a sequence of 100,000 bytes.
const LONGEST_COPY: usize = 74_000;

/// The user's preferences for the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manners {
    pub(crate) colour: ColorChoice,
    pub(crate) paged: bool,
    pub(crate) quiet: bool,
}

/// The two streams of a command.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact about a stream")]
pub(crate) struct Output {
    data: BufWriter<Box<dyn Write>>,
    talk: Box<dyn Write>,
    pager: Pager,
    /// Messages that wait for the pager to end.
    held: String,
    data_styles: Styles,
    talk_styles: Styles,
    quiet: bool,
    naming: Naming,
    columns: usize,
    data_is_terminal: bool,
    /// Keep lines within the width although the data goes elsewhere.
    is_captured: bool,
    talk_is_terminal: bool,
    progress: Option<Drawing>,
}

/// The progress of a long task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress<'a> {
    pub(crate) label: &'a str,
    pub(crate) done: u64,
    pub(crate) total: Option<u64>,
    pub(crate) bytes: u64,
    /// The total number of bytes, if known.
    pub(crate) of: Option<u64>,
}

enum Pager {
    Unwanted,
    Available { program: String, args: Vec<String>, variables: Vec<(&'static str, &'static str)> },
    Running(Child),
}

/// The state of the progress line: when it was last drawn, and whether it is visible.
#[derive(Default)]
struct Drawing {
    begun: Option<Instant>,
    last: Option<Instant>,
    shown: bool,
}

impl Output {
    pub(crate) fn new(env: &Env, manners: Manners) -> Self {
        let styles = |is_terminal| {
            Styles::new(match manners.colour {
                ColorChoice::Always => true,
                ColorChoice::Never => false,
                ColorChoice::Auto => is_terminal && env.welcomes_colour,
            })
        };
        let pager = match env.pager.split_first() {
            Some((program, args)) if manners.paged && env.terminal.stdout && program != "cat" => {
                let (program, args) = (program.clone(), args.to_vec());
                Pager::Available { program, args, variables: env.pager_variables.clone() }
            }
            _ => Pager::Unwanted,
        };
        Self {
            data: BufWriter::with_capacity(BUFFER, Box::new(io::stdout())),
            talk: Box::new(io::stderr()),
            pager,
            held: String::new(),
            data_styles: styles(env.terminal.stdout),
            talk_styles: styles(env.terminal.stderr),
            quiet: manners.quiet,
            naming: Naming { short: env.short, ..Naming::default() },
            columns: env.columns.unwrap_or(UNKNOWN_WIDTH),
            data_is_terminal: env.terminal.stdout,
            is_captured: false,
            talk_is_terminal: env.terminal.stderr,
            progress: (env.terminal.stderr && !manners.quiet && !env.is_dumb)
                .then(Drawing::default),
        }
    }

    /// Creates an output that discards everything.
    pub(crate) fn silent(env: &Env) -> Self {
        let manners = Manners { colour: ColorChoice::Never, paged: false, quiet: true };
        let (data, talk) = (BufWriter::new(Box::new(io::sink()) as Box<dyn Write>), io::sink());
        Self { data, talk: Box::new(talk), ..Self::new(env, manners) }
    }

    /// Creates an output that keeps both streams, painted and `columns` wide, and what reads them.
    #[cfg(any(feature = "browse", feature = "serve"))]
    pub(crate) fn captured(env: &Env, columns: usize) -> (Self, Captured) {
        let captured = Captured::default();
        let stream = || Box::new(captured.clone()) as Box<dyn Write>;
        let manners = Manners { colour: ColorChoice::Always, paged: false, quiet: false };
        let (data, talk) = (BufWriter::new(stream()), stream());
        let output = Self { data, talk, columns, is_captured: true, ..Self::new(env, manners) };
        (output, captured)
    }

    /// Returns the styles for data.
    pub(crate) fn styles(&self) -> Styles {
        self.data_styles
    }

    /// Returns the width to clip data to, if stdout is a terminal.
    pub(crate) fn width(&self) -> Option<usize> {
        (self.data_is_terminal || self.is_captured).then_some(self.columns)
    }

    /// Returns true if only data, warnings and errors are wanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Returns the maximum width of a line for people.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the names used in command lines, so that the caller can set them.
    pub(crate) fn naming(&mut self) -> &mut Naming {
        &mut self.naming
    }

    /// Formats a command line as you can type it.
    pub(crate) fn spell(&self, line: &Line) -> String {
        self.naming.spell(line)
    }

    /// Disables the pager, for data that arrives until nobody reads it.
    pub(crate) fn forgo_pager(&mut self) {
        self.pager = Pager::Unwanted;
    }

    /// Makes the pager start at the end of the data, if it is `less`.
    pub(crate) fn page_from_end(&mut self) {
        if let Pager::Available { program, args, .. } = &mut self.pager
            && env::is_less(program)
        {
            args.push("+G".to_owned());
        }
    }

    /// Sends all further data through the pager, if there is one and stdout is a terminal.
    pub(crate) fn page(&mut self) -> io::Result<()> {
        let Pager::Available { program, args, variables } = &self.pager else {
            return Ok(());
        };
        let mut pager = Command::new(program);
        pager.args(args).envs(variables.iter().copied()).stdin(Stdio::piped());
        let spawned = pager.spawn();
        match spawned.map(|mut child| (child.stdin.take(), child)) {
            Ok((Some(stdin), child)) => {
                self.clear_progress();
                self.data.flush()?;
                self.data = BufWriter::with_capacity(BUFFER, Box::new(stdin));
                self.pager = Pager::Running(child);
            }
            // Without a pager, the data is written directly.
            Ok((None, _)) | Err(_) => self.pager = Pager::Unwanted,
        }
        Ok(())
    }

    /// Prints an event on stderr as a JSON Line.
    pub(crate) fn event(event: &undertext::context::event::Event) {
        let _ = json::safe_line(&mut io::stderr(), event);
    }

    /// Returns a function that reports on stderr which program a change waits for.
    pub(crate) fn waits() -> undertext::verbs::Told {
        Box::new(|holder| {
            let holder = holder.map_or_else(|| "another program".to_owned(), ToString::to_string);
            let told = format!("waiting for {holder}, which is changing the store");
            let _ = writeln!(io::stderr(), "{}", safe::text(&told));
        })
    }

    /// Asks the terminal to copy a text (OSC 52). Returns false if stdout is not a terminal or the text is too long for
    /// terminals.
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<bool> {
        let sequence = copying(text).filter(|_| self.data_is_terminal);
        if let Some(sequence) = &sequence {
            write!(self, "{sequence}")?;
        }
        Ok(sequence.is_some())
    }

    /// Prints a message about what was done, or where the data is.
    pub(crate) fn note(&mut self, text: &str) {
        if !self.quiet {
            let text = wrap::fit(&safe::text(text), 0, self.talk_width());
            self.say(&format!("{text}\n"));
        }
    }

    /// Prints a hint at a next step.
    pub(crate) fn hint(&mut self, hint: impl Into<Hint>) {
        if !self.quiet {
            let text = self.naming.spell_hint(&hint.into());
            self.say_titled(Label::Hint, "hint:", &text);
        }
    }

    /// Prints hints at several next steps.
    pub(crate) fn hints(&mut self, hints: Vec<Hint>) {
        for hint in hints {
            self.hint(hint);
        }
    }

    /// Lends stderr to a full-screen view, and returns its styles. Flushes the data and clears the progress line first.
    #[cfg(any(feature = "browse", feature = "serve"))]
    pub(crate) fn lend(&mut self) -> io::Result<Styles> {
        self.clear_progress();
        self.data.flush()?;
        Ok(self.talk_styles)
    }

    /// Asks a question at the terminal. Returns true if the answer is yes.
    pub(crate) fn ask(&mut self, question: &str) -> io::Result<bool> {
        let answer = self.ask_for(&format!("{question} [y/N]"))?;
        Ok(matches!(answer.as_deref(), Some("y" | "yes")))
    }

    /// Asks a question at the terminal, and returns the answer in lower case; `None` at the end of input.
    pub(crate) fn ask_for(&mut self, question: &str) -> io::Result<Option<String>> {
        self.say(&format!("{} ", safe::text(question)));
        let _ = self.talk.flush();
        let answer = env::read_typed()?;
        let text = String::from_utf8_lossy(&answer).trim().to_lowercase();
        Ok((!answer.is_empty()).then_some(text))
    }

    /// Prints a warning, even if the command is quiet.
    pub(crate) fn warn(&mut self, text: &str) {
        self.say_titled(Label::Warning, "warning:", text);
    }

    /// Prints an error; in JSON mode, as an object.
    pub(crate) fn error(&mut self, error: &CommandError, is_json: bool) {
        if error.is_silent() {
            return;
        }
        let told = if is_json {
            let mut line = Vec::new();
            let _ = json::line(&mut line, &error.report(&self.naming));
            String::from_utf8_lossy(&line).into_owned()
        } else {
            error.render(self.talk_styles, &self.naming, self.talk_width())
        };
        self.say(&told);
    }

    /// Shows the number of completed steps.
    pub(crate) fn steps(&mut self, label: &str, done: u64, all: u64) {
        self.progress(Progress { label, done, total: Some(all), bytes: 0, of: None });
    }

    /// Shows the progress of a long task on a terminal, a few times a second at most.
    pub(crate) fn progress(&mut self, progress: Progress<'_>) {
        let is_due = |last: Instant| last.elapsed() >= REDRAW;
        let due = self.progress.as_ref().is_some_and(|drawing| drawing.last.is_none_or(is_due));
        if !due || matches!(self.pager, Pager::Running(_)) || self.data.flush().is_err() {
            return;
        }
        let begun = self.progress.as_ref().and_then(|drawing| drawing.begun);
        let begun = begun.unwrap_or_else(Instant::now);
        let line = progress.line(begun.elapsed());
        // The last column stays free, because some terminals wrap as soon as it is filled.
        let line = safe::clip(&line, self.columns.saturating_sub(1));
        let _ = write!(self.talk, "{CLEAR_LINE}{}", self.talk_styles.paint(Label::Dim, &line));
        let _ = self.talk.flush();
        self.progress =
            Some(Drawing { begun: Some(begun), last: Some(Instant::now()), shown: true });
    }

    /// Returns false if stdout is a pipe whose reader closed it.
    pub(crate) fn is_read() -> bool {
        let stdout = io::stdout();
        let mut asked = [PollFd::new(&stdout, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_told = poll(&mut asked, Some(&now)).is_ok();
        let is_closed = |fd: &PollFd<'_>| fd.revents().intersects(PollFlags::ERR | PollFlags::HUP);
        !(is_told && asked.iter().any(is_closed))
    }

    /// Flushes the data, waits for the pager, and prints the messages held back for it.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.clear_progress();
        let mut written = self.data.flush();
        if let Pager::Running(child) = &mut self.pager {
            // Closing the pager's input lets it end.
            self.data = BufWriter::new(Box::new(io::sink()));
            written = written.and(child.wait().map(drop));
            self.pager = Pager::Unwanted;
        }
        let held = std::mem::take(&mut self.held);
        let _ = self.talk.write_all(held.as_bytes());
        written
    }

    fn say_titled(&mut self, label: Label, title: &str, text: &str) {
        let text = wrap::fit(&safe::text(text), title.len() + 1, self.talk_width());
        self.say(&format!("{} {text}\n", self.talk_styles.paint(label, title)));
    }

    /// Returns the width to wrap messages to, if stderr is a terminal.
    fn talk_width(&self) -> Option<usize> {
        (self.talk_is_terminal || self.is_captured).then_some(self.columns)
    }

    fn say(&mut self, shown: &str) {
        self.clear_progress();
        if matches!(self.pager, Pager::Running(_)) {
            self.held.push_str(shown);
        } else {
            // Flushing keeps the order on a terminal that shows both streams. An error recurs at the next write.
            let _ = self.data.flush();
            let _ = self.talk.write_all(shown.as_bytes());
        }
    }

    fn clear_progress(&mut self) {
        if let Some(drawing) = &mut self.progress
            && drawing.shown
        {
            let _ = write!(self.talk, "{CLEAR_LINE}");
            drawing.shown = false;
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.clear_progress();
        self.data.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.data.flush()
    }
}

/// What a captured output was sent.
#[cfg(any(feature = "browse", feature = "serve"))]
#[derive(Clone, Default)]
pub(crate) struct Captured(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

#[cfg(any(feature = "browse", feature = "serve"))]
impl Captured {
    /// Returns the text so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.borrow()).into_owned()
    }
}

#[cfg(any(feature = "browse", feature = "serve"))]
impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the sequence that asks a terminal to copy a text (OSC 52). Returns `None` if the text is too long for terminals.
pub(crate) fn copying(text: &str) -> Option<String> {
    let is_possible = text.len() <= LONGEST_COPY;
    is_possible.then(|| format!("\x1b]52;c;{}\x07", base64(text.as_bytes())))
}

/// Encodes bytes in base64.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut coded = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits =
            (0..3).fold(0, |bits, at| bits << 8 | three.get(at).map_or(0, |&b| usize::from(b)));
        for at in 0..4 {
            let digit = DIGITS.get(bits >> (18 - 6 * at) & 63).filter(|_| at <= three.len());
            coded.push(digit.map_or('=', |&digit| char::from(digit)));
        }
    }
    coded
}

impl Progress<'_> {
    /// Formats the progress line after `elapsed` time.
    fn line(&self, elapsed: Duration) -> String {
        let Self { label, done, total, bytes, of } = *self;
        let total = total.map(|total| format!("/{total}")).unwrap_or_default();
        let mut line = format!("{} {done}{total}", safe::line(label));
        // Tasks that do not count bytes show none.
        if bytes > 0 {
            let _ = write!(line, ", {}", units::size(bytes));
        }
        // Content that is not new is read but not counted.
        if let Some(of) = of.filter(|of| *of >= bytes && bytes > 0) {
            let percent = bytes.saturating_mul(100) / of;
            let _ = write!(line, " of {}, {percent}%", units::size(of));
            let seconds = elapsed.as_secs().saturating_mul(of - bytes) / bytes;
            if elapsed >= SURE {
                let left = if seconds < 60 {
                    format!("{seconds} s")
                } else {
                    format!("{} min", seconds.div_ceil(60))
                };
                let _ = write!(line, ", {left} left");
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// Both streams of a terminal, in the order in which it got them.
    #[derive(Clone, Default)]
    struct Screen(Rc<RefCell<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Screen {
        fn output(&self, quiet: bool) -> Output {
            Output {
                data: BufWriter::new(Box::new(self.clone())),
                talk: Box::new(self.clone()),
                pager: Pager::Unwanted,
                held: String::new(),
                data_styles: Styles::PLAIN,
                talk_styles: Styles::PLAIN,
                quiet,
                naming: Naming::default(),
                columns: 20,
                is_captured: false,
                data_is_terminal: true,
                talk_is_terminal: false,
                progress: (!quiet).then(Drawing::default),
            }
        }

        fn shows(&self, expected: &str) {
            assert_eq!(String::from_utf8_lossy(&self.0.borrow()), expected);
        }
    }

    const HALF: Progress<'_> =
        Progress { label: "reading", done: 1, total: Some(2), bytes: 1_500_000, of: None };

    #[test]
    fn data_and_talk_keep_their_order() {
        let screen = Screen::default();
        let mut output = screen.output(false);
        writeln!(output, "data").unwrap();
        output.note("a note");
        writeln!(output, "more").unwrap();
        output.hint("a hint\x1b[2J");
        output.finish().unwrap();
        screen.shows("data\na note\nmore\nhint: a hint\\x1b[2J\n");
    }

    #[test]
    fn a_quiet_command_only_warns() {
        let screen = Screen::default();
        let mut output = screen.output(true);
        output.note("a note");
        output.hint("a hint");
        output.progress(HALF);
        output.warn("a warning");
        output.finish().unwrap();
        screen.shows("warning: a warning\n");
    }

    #[test]
    fn the_progress_line_is_clipped_throttled_and_cleared() {
        let screen = Screen::default();
        let mut output = screen.output(false);
        output.progress(HALF);
        output.progress(HALF);
        screen.shows("\r\x1b[Kreading 1/2, 1.5 MB");
        writeln!(output, "data").unwrap();
        output.finish().unwrap();
        screen.shows("\r\x1b[Kreading 1/2, 1.5 MB\r\x1b[Kdata\n");
        let known = Progress { of: Some(6_000_000), ..HALF };
        let check = |progress: Progress<'_>, seconds, to: &str| {
            assert_eq!(progress.line(Duration::from_secs(seconds)), to);
        };
        check(HALF, 9, "reading 1/2, 1.5 MB");
        check(Progress { bytes: 0, ..HALF }, 9, "reading 1/2");
        check(Progress { bytes: 0, ..known }, 9, "reading 1/2");
        check(known, 1, "reading 1/2, 1.5 MB of 6.0 MB, 25%");
        check(known, 10, "reading 1/2, 1.5 MB of 6.0 MB, 25%, 30 s left");
        check(known, 50, "reading 1/2, 1.5 MB of 6.0 MB, 25%, 3 min left");
        check(Progress { of: Some(1), ..HALF }, 50, "reading 1/2, 1.5 MB");
    }

    #[test]
    fn a_text_is_copied_only_by_a_terminal_and_only_if_it_is_short() {
        let check = |text: &str, is_terminal, expected: &str| {
            let screen = Screen::default();
            let mut output = Output { data_is_terminal: is_terminal, ..screen.output(false) };
            assert_eq!(output.copy(text).unwrap(), !expected.is_empty());
            output.finish().unwrap();
            screen.shows(expected);
        };
        check("", true, "\x1b]52;c;\x07");
        check("f", true, "\x1b]52;c;Zg==\x07");
        check("fo", true, "\x1b]52;c;Zm8=\x07");
        check("foo", true, "\x1b]52;c;Zm9v\x07");
        check("日本\n", true, "\x1b]52;c;5pel5pysCg==\x07");
        check("foo", false, "");
        check(&"x".repeat(LONGEST_COPY + 1), true, "");
    }

    #[test]
    fn talk_waits_for_the_pager() {
        let screen = Screen::default();
        let mut output = screen.output(false);
        output.pager = Pager::Available {
            program: "true".to_owned(),
            args: Vec::new(),
            variables: Vec::new(),
        };
        output.page().unwrap();
        output.note("a note");
        screen.shows("");
        output.finish().unwrap();
        screen.shows("a note\n");
    }

    #[test]
    fn data_goes_unpaged_where_there_is_no_pager() {
        let screen = Screen::default();
        let mut output = screen.output(false);
        let program = "no-such-pager".to_owned();
        output.pager = Pager::Available { program, args: Vec::new(), variables: Vec::new() };
        output.page().unwrap();
        writeln!(output, "data").unwrap();
        output.finish().unwrap();
        screen.shows("data\n");
    }
}
