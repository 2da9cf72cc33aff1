//! The terminal during a pick: the alternate screen on stderr, and single keys from stdin.
//!
//! stdout stays free for data, so a picker also opens in `undertext log | less`.
//!
//! Invariant: no pick leaves the terminal changed, whether it ends by a choice, an error, a panic or a signal.

use std::io::{self, BufWriter};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, KeyEventKind, poll, read,
};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{self, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::termios::tcgetwinsize;
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag::{register_conditional_default, register_usize};
use signal_hook::low_level::emulate_default_handler;

use super::picker::{Outcome, Picker, Preview};

/// Minimum size of a terminal for a picker: columns and rows.
const LEAST: [u16; 2] = [40, 8];
/// The signals that end a program without restoring its terminal.
const SIGNALS: [i32; 3] = [SIGINT, SIGQUIT, SIGTERM];
/// How long to wait for a key before checking for signals.
const WAKE: Duration = Duration::from_millis(200);
/// How often to redraw a list that grows while previews are read.
const REDRAW: Duration = Duration::from_millis(100);

/// True while the screen is open.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Returns true if the terminal is large enough.
pub(crate) fn has_room() -> bool {
    let [columns, rows] = LEAST;
    area().is_ok_and(|area| area.width >= columns && area.height >= rows)
}

/// Lets a person pick a row, and returns its number; `None` if the person cancels.
pub(crate) fn pick(
    picker: &mut Picker,
    preview: &mut dyn FnMut(usize) -> Preview,
) -> io::Result<Option<usize>> {
    let signals = Signals::watch()?;
    let screen = Screen::open()?;
    let picked = run(picker, preview, &signals);
    drop(screen);
    signals.end()?;
    picked
}

fn run(
    picker: &mut Picker,
    preview: &mut dyn FnMut(usize) -> Preview,
    signals: &Signals,
) -> io::Result<Option<usize>> {
    let backend = CrosstermBackend::new(BufWriter::new(io::stderr()));
    let mut size = area()?;
    let options = TerminalOptions { viewport: Viewport::Fixed(size) };
    let mut terminal = Terminal::with_options(backend, options)?;
    let mut is_more = true;
    loop {
        let now = area()?;
        if now != size {
            size = now;
            terminal.resize(size)?;
        }
        terminal.draw(|frame| {
            let area = frame.area();
            let cursor = picker.draw(area, frame.buffer_mut(), preview);
            frame.set_cursor_position(cursor);
        })?;
        // While nothing is typed, read previews to make them searchable.
        let drawn = Instant::now();
        let mut is_typed = has_event(Duration::ZERO)?;
        while !is_typed {
            if signals.came() {
                return Ok(None);
            }
            if area()? != size {
                break;
            }
            is_more = is_more && picker.learn(preview);
            if drawn.elapsed() >= REDRAW && is_more && picker.refresh() {
                break;
            }
            is_typed = has_event(if is_more { Duration::ZERO } else { WAKE })?;
        }
        // Handle all pending input before the next draw.
        while is_typed {
            match read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match picker.on_key(key) {
                    Outcome::Stay => {}
                    Outcome::Picked(row) => return Ok(Some(row)),
                    Outcome::Cancelled => return Ok(None),
                },
                Event::Paste(text) => picker.insert(&text),
                _ => {}
            }
            is_typed = has_more()?;
        }
    }
}

/// Waits for input. crossterm loops for ever on a closed terminal, so it is asked only if there is something to read.
fn has_event(wait: Duration) -> io::Result<bool> {
    Ok(is_readable(wait)? && poll(Duration::ZERO)?)
}

/// Returns true if there is more input, which crossterm may have read already.
fn has_more() -> io::Result<bool> {
    is_readable(Duration::ZERO)?;
    poll(Duration::ZERO)
}

/// Waits for something to read. Fails if the terminal no longer exists.
fn is_readable(wait: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let wait = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
    match event::poll(&mut polled, Some(&wait)) {
        Ok(_) => {}
        // For example by the signal of a resize.
        Err(Errno::INTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let is_over = PollFlags::HUP | PollFlags::ERR;
    let found = polled.iter().map(PollFd::revents).fold(PollFlags::empty(), PollFlags::union);
    if found.intersects(is_over) {
        return Err(io::ErrorKind::NotConnected.into());
    }
    Ok(found.contains(PollFlags::IN))
}

fn area() -> io::Result<Rect> {
    let size = tcgetwinsize(io::stderr())?;
    Ok(Rect::new(0, 0, size.ws_col, size.ws_row))
}

/// The alternate screen, closed on drop.
struct Screen;

impl Screen {
    fn open() -> io::Result<Self> {
        // A release build aborts on a panic, without running destructors.
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            close();
            before(info);
        }));
        IS_OPEN.store(true, Ordering::SeqCst);
        let screen = Self;
        enable_raw_mode()?;
        execute!(io::stderr(), EnterAlternateScreen, EnableBracketedPaste)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        close();
    }
}

/// Closes the screen, if it is open. Errors of a terminal that no longer exists are ignored.
fn close() {
    if IS_OPEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(io::stderr(), DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// The signals that would end this program, held back while the screen is open.
struct Signals {
    /// The signal that arrived, or 0.
    came: Arc<AtomicUsize>,
    /// True once signals have their default effect again.
    is_over: Arc<AtomicBool>,
}

impl Signals {
    fn watch() -> io::Result<Self> {
        let signals = Self { came: Arc::default(), is_over: Arc::default() };
        for signal in SIGNALS {
            register_conditional_default(signal, Arc::clone(&signals.is_over))?;
            register_usize(signal, Arc::clone(&signals.came), signal.unsigned_abs() as usize)?;
        }
        Ok(signals)
    }

    fn came(&self) -> bool {
        self.came.load(Ordering::SeqCst) != 0
    }

    /// Ends the program with the signal that arrived, if any.
    fn end(&self) -> io::Result<()> {
        self.is_over.store(true, Ordering::SeqCst);
        match self.came.load(Ordering::SeqCst) {
            0 => Ok(()),
            signal => emulate_default_handler(i32::try_from(signal).unwrap_or(SIGTERM)),
        }
    }
}
