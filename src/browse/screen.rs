//! The terminal during a screen: the alternate screen on stderr, and single keys from stdin.
//!
//! stdout stays free for data, so a picker also opens in `undertext log | less`.
//!
//! Invariant: no screen leaves the terminal changed, whether it ends by a choice, an error, a panic or a signal, or is suspended.

use std::io::{self, BufWriter, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, Event,
    KeyEventKind, poll, read,
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
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::flag::{register_conditional_default, register_usize};
use signal_hook::low_level::emulate_default_handler;

use super::data::{Answer, Effect};
use super::picker::{Outcome, Picker, Preview};
use super::state::Browse;

/// Minimum size of a terminal for a picker: columns and rows.
const LEAST: [u16; 2] = [40, 8];
/// The signals that end a program without restoring its terminal.
const SIGNALS: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
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
    let mut size = area()?;
    let mut terminal = terminal(size)?;
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

/// Wakes a screen from another thread.
pub(crate) struct Wake(UnixStream);

impl Wake {
    /// Creates a waker, and what the screen waits for.
    pub(crate) fn pair() -> io::Result<(Self, UnixStream)> {
        let (wakes, woken) = UnixStream::pair()?;
        wakes.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        Ok((Self(wakes), woken))
    }

    pub(crate) fn wake(&self) {
        // A full buffer wakes the screen as well.
        let _ = (&self.0).write(&[0]);
    }
}

/// What runs beside a screen.
pub(crate) struct Host<'a> {
    pub(crate) answers: &'a Receiver<Answer>,
    /// Readable when there are answers.
    pub(crate) woken: UnixStream,
    /// Passes on what is asked for. Returns the sequence that a copy sends to the terminal.
    pub(crate) ask: &'a mut dyn FnMut(Effect) -> Option<String>,
    /// Runs something that needs the terminal, which is as it was before. Returns the text that it edited.
    pub(crate) outside: &'a mut dyn FnMut(&Effect) -> io::Result<Option<String>>,
}

/// Shows a screen until the person quits.
pub(crate) fn live(browse: &mut Browse, mut host: Host<'_>) -> io::Result<()> {
    let signals = Signals::watch()?;
    let screen = Screen::open()?;
    execute!(io::stderr(), EnableMouseCapture)?;
    let ended = keep_alive(browse, &mut host, &signals);
    drop(screen);
    signals.end()?;
    ended
}

type Tty = Terminal<CrosstermBackend<BufWriter<io::Stderr>>>;

fn keep_alive(browse: &mut Browse, host: &mut Host<'_>, signals: &Signals) -> io::Result<()> {
    let mut size = area()?;
    let mut terminal = terminal(size)?;
    loop {
        let now = area()?;
        if now != size {
            size = now;
            terminal.resize(size)?;
        }
        browse.resize(size.width, size.height);
        for effect in browse.take_effects() {
            match effect {
                Effect::Quit => return Ok(()),
                Effect::Suspend => {
                    close();
                    emulate_default_handler(SIGTSTP)?;
                    terminal = reopen()?;
                }
                Effect::Outside(_) | Effect::Command(..) | Effect::Edit(_) => {
                    close();
                    let ran = (host.outside)(&effect);
                    signals.forget();
                    terminal = reopen()?;
                    match ran? {
                        Some(edited) => browse.on_edited(&edited),
                        None => browse.refresh(),
                    }
                }
                effect => {
                    if let Some(sequence) = (host.ask)(effect) {
                        io::stderr().write_all(sequence.as_bytes())?;
                    }
                }
            }
        }
        terminal.draw(|frame| {
            let area = frame.area();
            if let Some(cursor) = browse.draw(area, frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        })?;
        loop {
            if signals.came() {
                return Ok(());
            }
            let mut is_typed = has_event_or(&host.woken)?;
            let is_new = is_typed || area()? != size;
            // Handle all pending input before the next draw.
            while is_typed {
                on_event(browse, read()?);
                is_typed = has_more()?;
            }
            let is_answered = drain(browse, host)?;
            if is_new || is_answered {
                break;
            }
        }
    }
}

fn on_event(browse: &mut Browse, event: Event) {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => browse.on_key(key),
        Event::Paste(text) => browse.on_paste(&text),
        Event::Mouse(mouse) => browse.on_mouse(mouse),
        _ => {}
    }
}

/// Takes in all answers. Returns false if there are none.
fn drain(browse: &mut Browse, host: &mut Host<'_>) -> io::Result<bool> {
    let mut woken = [0; 64];
    loop {
        match host.woken.read(&mut woken) {
            Ok(1..) => {}
            Ok(0) => return Err(io::Error::other("the thread that reads sessions has ended")),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let answers = host.answers.try_iter();
    let many = answers.map(|answer| browse.on_answer(answer)).count();
    Ok(many > 0)
}

fn terminal(size: Rect) -> io::Result<Tty> {
    let backend = CrosstermBackend::new(BufWriter::new(io::stderr()));
    Terminal::with_options(backend, TerminalOptions { viewport: Viewport::Fixed(size) })
}

/// Opens the screen again after it was closed for a while. Everything is drawn again.
fn reopen() -> io::Result<Tty> {
    enter()?;
    execute!(io::stderr(), EnableMouseCapture)?;
    terminal(area()?)
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

/// Waits for input or for something in a stream. Returns true if there is input.
fn has_event_or(stream: &UnixStream) -> io::Result<bool> {
    if has_more()? {
        return Ok(true);
    }
    let stdin = io::stdin();
    let polled = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(stream, PollFlags::IN)];
    Ok(is_any_readable(polled, WAKE)? && poll(Duration::ZERO)?)
}

/// Waits for something to read. Fails if the terminal no longer exists.
fn is_readable(wait: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    is_any_readable([PollFd::new(&stdin, PollFlags::IN)], wait)
}

/// Waits until one of them can be read. Returns true if it is the first, which is the terminal; fails if that no longer exists.
fn is_any_readable<const N: usize>(
    mut polled: [PollFd<'_>; N],
    wait: Duration,
) -> io::Result<bool> {
    let wait = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
    match event::poll(&mut polled, Some(&wait)) {
        Ok(_) => {}
        // For example by the signal of a resize.
        Err(Errno::INTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let found = polled.first().map_or(PollFlags::empty(), PollFd::revents);
    if found.intersects(PollFlags::HUP | PollFlags::ERR) {
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
        let screen = Self;
        enter()?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        close();
    }
}

fn enter() -> io::Result<()> {
    IS_OPEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(io::stderr(), EnterAlternateScreen, EnableBracketedPaste)
}

/// Closes the screen, if it is open. Errors of a terminal that no longer exists are ignored.
fn close() {
    if IS_OPEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(
            io::stderr(),
            DisableMouseCapture,
            DisableBracketedPaste,
            LeaveAlternateScreen,
            Show
        );
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

    /// Forgets a signal that was meant for another program.
    fn forget(&self) {
        self.came.store(0, Ordering::SeqCst);
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
