//! Figures of `browse`, on a terminal that this bench reads: how soon a key is answered among many sessions, how soon the end of a
//! long session is shown, and how much memory it takes to scroll in it.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::{Arguments, Times, bytes, growth, own, plain::Agent};

const SESSIONS: usize = 10_000;
const ENTRIES: usize = 1_000_000;
/// How many keys are pressed, and how long a person waits between two.
const KEYS: usize = 500;
const PAUSE: Duration = Duration::from_millis(20);
/// How many screens are scrolled, down and up.
const SCREENS: usize = 200;
/// How often a session is opened.
const ROUNDS: usize = 11;
/// How long the screen is waited for.
const LIMIT: Duration = Duration::from_secs(120);

/// The program on a terminal of 120 columns and 32 rows.
struct Screen {
    host: File,
    child: Child,
    /// What it sent and was not looked at yet.
    sent: String,
}

impl Screen {
    fn open(store: &Path, args: &[&str]) -> Self {
        let host = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&host).unwrap();
        unlockpt(&host).unwrap();
        let name = ptsname(&host, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let terminal = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
        let size = Winsize { ws_col: 120, ws_row: 32, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&host, size).unwrap();
        let mut command = Command::new(own());
        command.args(["--no-import", "--store"]).arg(store).arg("browse").args(args);
        command.env("TERM", "xterm").env("NO_COLOR", "1");
        let child = command
            .stdin(terminal.try_clone().unwrap())
            .stderr(terminal)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { host: host.into(), child, sent: String::new() }
    }

    /// Reads what it sends until that is enough.
    fn until(&mut self, what: &str, is_it: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        let mut buffer = vec![0; 1 << 16];
        while !is_it(&self.sent) {
            assert!(begun.elapsed() < LIMIT, "no {what}");
            self.receive(&mut buffer, Duration::from_secs(1));
        }
        self.sent.clear();
    }

    /// Reads until nothing is sent for a while.
    fn rest(&mut self, wait: Duration) {
        let mut buffer = vec![0; 1 << 16];
        while self.receive(&mut buffer, wait) {}
        self.sent.clear();
    }

    fn receive(&mut self, buffer: &mut [u8], wait: Duration) -> bool {
        let mut polled = [PollFd::new(&self.host, PollFlags::IN)];
        let wait = Timespec { tv_sec: 0, tv_nsec: wait.as_nanos().min(999_999_999) as i64 };
        if poll(&mut polled, Some(&wait)).unwrap() == 0 {
            return false;
        }
        let n = self.host.read(buffer).unwrap();
        self.sent.push_str(&String::from_utf8_lossy(&buffer[..n]));
        true
    }

    fn press(&mut self, keys: &str) {
        self.host.write_all(keys.as_bytes()).unwrap();
    }

    /// Returns the most memory that it had, in bytes.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    fn quit(mut self) {
        self.press("Q");
        let mut buffer = vec![0; 1 << 16];
        while self.host.read(&mut buffer).is_ok_and(|n| n > 0) {}
        assert!(self.child.wait().unwrap().success());
    }
}

/// Returns true once the mark of the cursor was drawn in the first column.
fn has_moved(sent: &str) -> bool {
    sent.match_indices('▌').any(|(at, _)| {
        let place = sent[..at].rfind('H').and_then(|end| Some((sent[..end].rfind('[')?, end)));
        place.is_some_and(|(start, end)| sent[start..end].ends_with(";1"))
    })
}

/// How soon keys are answered among 10,000 sessions: one row down or up, and letters of a filter.
pub(crate) fn keys(_: &Arguments) {
    let mut stores = growth::of_sessions(SESSIONS);
    let mut screen = Screen::open(stores.of(own()), &[]);
    // Only what changes is sent: 100 becomes 10,000.
    screen.until("whole list", |sent| sent.contains(",000 "));
    screen.rest(Duration::from_secs(2));
    let mut moved = Vec::new();
    for n in 0..KEYS {
        let begun = Instant::now();
        // Within a page, where each key moves the mark.
        screen.press(if n % 40 < 20 { "j" } else { "k" });
        screen.until("cursor", has_moved);
        moved.push(begun.elapsed());
        std::thread::sleep(PAUSE);
    }
    report_keys("browse-keys", moved, Duration::from_millis(16));
    screen.press("/");
    screen.rest(Duration::from_secs(1));
    let mut typed = Vec::new();
    for letter in "session about the parser of dates in june and the tests".chars() {
        let begun = Instant::now();
        screen.press(letter.encode_utf8(&mut [0; 4]));
        screen.until("letter", |sent| !sent.is_empty());
        typed.push(begun.elapsed());
        screen.rest(PAUSE);
    }
    report_keys("browse-filter", typed, Duration::from_millis(16));
    screen.press("\x1b");
    screen.rest(PAUSE);
    screen.quit();
}

/// Prints the median and the 99th percentile.
fn report_keys(name: &str, mut times: Vec<Duration>, limit: Duration) {
    times.sort_unstable();
    let most = times[times.len() * 99 / 100];
    println!(
        "{name:<16} {:?}, p99 {most:?} (limit {limit:?})   {} keys",
        times[times.len() / 2],
        times.len()
    );
}

/// How soon the newest turn of a session of 1,000,000 entries is shown, and the memory of scrolling in it.
pub(crate) fn long(_: &Arguments) {
    let mut stores = growth::taken_in(|sessions| {
        Agent::Pi.write_long(sessions, 1, ENTRIES, usize::MAX);
    });
    let store = stores.of(own()).clone();
    let (session, _) = Agent::Pi.records(1, 0);
    // Every other entry is a turn.
    let newest = format!("@{}", ENTRIES / 2 - 1);
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let mut screen = Screen::open(&store, &[&session]);
        screen.until("turn", |sent| sent.contains(&newest));
        times.push(begun.elapsed());
        screen.quit();
    }
    let times = Times::of(times);
    println!(
        "browse-end       {:?}, {:?} (limit 100 ms)   {ROUNDS} rounds, with the start of the program",
        times.median(),
        times.tenth()
    );
    let mut screen = Screen::open(&store, &[&session]);
    screen.until("turn", |sent| sent.contains(&newest));
    for n in 0..SCREENS {
        screen.press(if n % 4 == 3 { "\x15" } else { "\x04" });
        screen.rest(PAUSE);
    }
    println!("browse-memory    {:.0} MB (limit 150 MB)", bytes(screen.memory()) / 1e6);
    screen.quit();
}
