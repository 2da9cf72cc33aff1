//! `serve`: what it answers over raw HTTP, and to whom.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{store, with_examples};
use crate::env::TestEnv;

const GARDEN: &str = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40";

/// A server, and the cookie of its reader.
struct Served {
    process: Child,
    port: u16,
    token: String,
    cookie: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An answer: its status, its head and its body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Served {
    fn start(env: &TestEnv) -> Self {
        let mut command = env.command();
        command.args(["serve", "--port", "0"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let (host, token) = address.trim().split_once("/?token=").unwrap();
        let port = host.rsplit(':').next().unwrap().parse().unwrap();
        let mut served = Self { process, port, token: token.to_owned(), cookie: String::new() };
        let entered = served.ask("GET", &format!("/?token={token}"), &[]);
        assert_eq!(entered.status, 303, "{}", entered.head);
        assert!(entered.head.contains("\r\nlocation: /\r\n"), "{}", entered.head);
        let cookie = entered.head.split("set-cookie: ").nth(1).unwrap();
        assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
        cookie.split(';').next().unwrap().clone_into(&mut served.cookie);
        served
    }

    /// Sends a request with these headers, and with the host and the cookie unless they are among them.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let has = |name: &str| headers.iter().any(|(other, _)| *other == name);
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !has("Host") {
            write!(request, "Host: 127.0.0.1:{}\r\n", self.port).unwrap();
        }
        if !has("Cookie") && !self.cookie.is_empty() {
            write!(request, "Cookie: {}\r\n", self.cookie).unwrap();
        }
        for (name, value) in headers {
            write!(request, "{name}: {value}\r\n").unwrap();
        }
        stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: format!("{head}\r\n"), body: body.to_owned() }
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[])
    }

    #[track_caller]
    fn check(&self, method: &str, path: &str, headers: &[(&str, &str)], status: u16) {
        let answer = self.ask(method, path, headers);
        assert_eq!(answer.status, status, "{method} {path} {headers:?}: {}", answer.head);
        if status != 200 {
            assert!(!answer.body.contains("garden"), "{path} tells of a session");
        }
    }
}

/// A machine with the example sessions in its store.
fn stored() -> TestEnv {
    let env = with_examples();
    let names = ["claude-garden.jsonl", "native-rewind.jsonl", "native-tools.jsonl"];
    for name in names.into_iter().filter(|name| env.project().join(name).exists()) {
        env.run(&["import", name]).success();
    }
    env
}

#[test]
fn nobody_but_the_reader_gets_a_page() {
    let env = stored();
    let served = Served::start(&env);
    served.check("GET", "/", &[], 200);
    served.check("GET", "/", &[("Cookie", "a=b")], 403);
    served.check("GET", "/", &[("Cookie", &served.cookie[..served.cookie.len() - 1])], 403);
    served.check("GET", "/", &[("Host", "evil.example")], 421);
    served.check("GET", "/", &[("Host", "127.0.0.1:1")], 421);
    served.check("GET", "/", &[("Origin", "http://evil.example")], 403);
    served.check("GET", "/", &[("Origin", "null")], 403);
    served.check("GET", "/", &[("Sec-Fetch-Site", "cross-site")], 403);
    let used = format!("/?token={}", served.token);
    served.check("GET", &used, &[("Cookie", "")], 403);
    served.check("GET", "/?token=guessed", &[("Cookie", "")], 403);
    for method in ["POST", "HEAD", "PUT", "DELETE", "OPTIONS"] {
        assert_eq!(served.ask(method, "/", &[]).status, 405, "{method}");
    }
    for path in ["/", &format!("/s/{GARDEN}"), "/nowhere"] {
        let head = served.get(path).head;
        for header in [
            "cache-control: no-store",
            "x-content-type-options: nosniff",
            "x-frame-options: DENY",
            "referrer-policy: no-referrer",
            "default-src 'none'",
            "frame-ancestors 'none'",
        ] {
            assert!(head.contains(header), "{path} lacks {header}: {head}");
        }
    }
}

#[test]
fn no_trick_leads_out_of_the_store() {
    let env = stored();
    fs::write(env.project().join("notes.txt"), "garden").unwrap();
    let served = Served::start(&env);
    for path in [
        "/s/..",
        "/s/%2e%2e",
        "/../../etc/passwd",
        "/s/%2Fetc%2Fpasswd",
        "/s/notes.txt",
        "/s/native-tools.jsonl",
        "/s/.%2Fnotes.txt",
        "/s/%00",
        "/s/%ff",
        "/s/--help",
        "/s/-s",
        "/etc/passwd",
        "/s",
        "/s/nothing/audit",
        &format!("/s/{GARDEN}/--out=x..y"),
        &format!("/s/{GARDEN}/no-branch"),
    ] {
        let answer = served.get(path);
        assert!(matches!(answer.status, 404 | 503), "{path}: {} {}", answer.status, answer.body);
        assert!(!answer.body.contains("root:"), "{path}");
    }
    assert!(!env.project().join("x..y").exists());
}

#[test]
fn pages_show_what_the_store_has() {
    let env = stored();
    let served = Served::start(&env);
    let list = served.get("/").body;
    let ids: Vec<&str> = list
        .match_indices("href=\"/s/")
        .filter_map(|(at, _)| list[at + 9..].split('"').next())
        .collect();
    assert!(ids.len() >= 2, "{list}");
    for id in &ids {
        for rest in ["", "/operations", "/audit"] {
            let answer = served.get(&format!("/s/{id}{rest}"));
            assert_eq!(answer.status, 200, "{id}{rest}: {}", answer.body);
        }
        let page = served.get(&format!("/s/{id}")).body;
        // Links from the page of a session lead to pages.
        let links =
            page.match_indices("href=\"/s/").filter_map(|(at, _)| page[at + 6..].split('"').next());
        for link in links.collect::<Vec<_>>() {
            assert_eq!(served.get(link).status, 200, "{link}");
        }
        let files = served.get(&format!("/s/{id}/files"));
        assert!(files.head.contains(&format!("location: /s/{id}#files")), "{}", files.head);
    }
    let found = served.get("/?q=kettle").body;
    assert!(found.contains("class=\"hits\"") && found.contains('#'), "{found}");
    assert!(served.get("/?q=nowhereatall").body.contains("0 messages"));
    assert_eq!(served.get("/?q=%22").status, 200);
}

#[test]
fn a_hundred_readers_get_the_same_page() {
    let env = stored();
    let served = Served::start(&env);
    let list = served.get("/").body;
    let id = list.split("href=\"/s/").nth(1).unwrap().split('"').next().unwrap();
    let path = format!("/s/{id}");
    let first = served.get(&path).body;
    thread::scope(|scope| {
        let readers: Vec<_> = (0..100).map(|_| scope.spawn(|| served.get(&path).body)).collect();
        for reader in readers {
            assert!(reader.join().unwrap() == first);
        }
    });
}

#[test]
fn a_store_that_changes_or_is_replaced_is_shown_as_it_is() {
    let env = TestEnv::new();
    env.run(&["new", "-q"]).success();
    env.run(&["append", "-q", "The first message."]).success();
    let served = Served::start(&env);
    let list = served.get("/").body;
    let id = list.split("href=\"/s/").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let path = format!("/s/{id}");
    let page = served.get(&path).body;
    assert!(page.contains("The first message."));
    // The page asks for events, which tell of a new message.
    let events = page.split("data-live=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| served.get(&events));
        thread::sleep(Duration::from_millis(300));
        env.run(&["append", "-q", "The second message."]).success();
        let begun = Instant::now();
        let event = waiting.join().unwrap();
        assert!(event.body.contains("event: grown"), "{} {}", event.head, event.body);
        assert!(begun.elapsed() < Duration::from_secs(20));
    });
    assert!(served.get(&path).body.contains("The second message."));
    env.run(&["store", "pack"]).success();
    assert!(served.get(&path).body.contains("The second message."));
    let folder = store(&env);
    let aside = folder.with_file_name("aside");
    fs::rename(&folder, &aside).unwrap();
    let lost = served.get(&path);
    assert!(
        matches!(lost.status, 404 | 503) && !lost.body.contains("second message"),
        "{}",
        lost.body
    );
    assert_eq!(served.get("/").status, 200);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("store.db"), "no store").unwrap();
    let broken = served.get(&path);
    assert!(matches!(broken.status, 404 | 503), "{}: {}", broken.status, broken.body);
    fs::remove_dir_all(&folder).unwrap();
    fs::rename(&aside, &folder).unwrap();
    assert!(served.get(&path).body.contains("The second message."));
}

#[test]
fn secrets_are_masked_until_they_are_asked_for() {
    const KEY: &str = "ghp_R2kq8vTz0LmXw5YbN3cJ7dHs9fGaPe1uVi4o";
    let env = TestEnv::new();
    env.run(&["new", "-q"]).success();
    env.run(&["append", "-q", &format!("Deploy with {KEY} now.")]).success();
    env.run(&["revert", "0", "-q", "-m", "Another way."]).success();
    env.run(&["append", "-q", "Deploy without a key."]).success();
    let served = Served::start(&env);
    let list = served.get("/").body;
    let id = list.split("href=\"/s/").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let pages = ["", "/operations", "/audit", "/main.1", "/main..main.1"];
    let pages = pages.map(|rest| format!("/s/{id}{rest}"));
    for path in ["/", "/?q=deploy"].into_iter().chain(pages.iter().map(String::as_str)) {
        let answer = served.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert!(!answer.body.contains(KEY), "{path} shows the key");
    }
    let shown = served.get(&format!("/s/{id}?secrets=shown"));
    assert!(shown.body.contains(KEY), "{}", shown.body);
}

#[test]
fn the_charts_of_stats_are_a_page_and_their_style_is_allowed() {
    let env = TestEnv::new();
    let served = Served::start(&env);
    assert_eq!(served.get("/stats").status, 404, "without sessions");
    let garden = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/claude-garden.jsonl");
    env.run(&["import", "-q", garden]).success();
    let file = env.project().join("usage.svg");
    env.run(&["stats", "--svg", file.to_str().unwrap()]).success();
    let picture = fs::read_to_string(file).unwrap();
    let served = Served::start(&env);
    assert!(served.get("/").body.contains("href=\"/stats\""));
    let answer = served.get("/stats");
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.body.contains(picture.trim()), "{}", answer.body);
    assert!(!answer.body.contains("style=\""), "the policy forbids it");
    assert!(answer.head.contains("no-store"), "{}", answer.head);
}
