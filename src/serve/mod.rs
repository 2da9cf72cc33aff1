//! Serving pages on this machine, over HTTP.
//!
//! ```text
//! request ── gate ── cache ── answer (on a thread that may block) ── headers
//!              └ 303 with a cookie, for the token, once
//! ```
//!
//! Nothing here knows sessions: [`Source`] answers paths with pages, and says how fresh one is.
//!
//! Invariant: a request without the cookie gets no page, and no method but GET is answered.
//! Invariant: every answer forbids that it is stored, framed or read by another site.

mod cache;
mod gate;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;

pub(crate) use cache::Cache;
pub(crate) use gate::Gate;
use gate::{Knock, Verdict};

/// How many ports after the first are tried.
const PORTS: u16 = 20;
/// How many answers are prepared at the same time.
const THREADS: usize = 4;
/// How often a page is looked at for news, and how many times for one request.
const LOOK: Duration = Duration::from_secs(1);
const LOOKS: usize = 25;

/// A path and its query, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    /// The parts of the path.
    pub(crate) path: Vec<String>,
    pub(crate) query: BTreeMap<String, String>,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Page(Arc<str>),
    Moved(String),
    Missing(Arc<str>),
    Failed(Arc<str>),
}

/// Where pages come from.
pub(crate) trait Source: Send + Sync + 'static {
    /// Returns a page.
    fn answer(&self, asked: &Asked) -> Answer;
    /// Returns what changes when the page does; `None` if it should not be kept.
    fn mark(&self, asked: &Asked) -> Option<String>;
    /// Returns the policy of pages.
    fn policy(&self) -> String;
}

struct Server<S> {
    source: S,
    gate: Gate,
    cache: Mutex<Cache>,
    policy: HeaderValue,
}

/// Opens a port of this machine: the wanted one, or the next that is free.
pub(crate) fn listen(port: u16) -> io::Result<TcpListener> {
    let last = if port == 0 { 0 } else { port.saturating_add(PORTS) };
    let mut failed = None;
    for port in port..=last {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Err(failed.unwrap_or_else(|| io::ErrorKind::AddrInUse.into()))
}

/// Serves until the process ends.
pub(crate) fn run<S: Source>(
    listener: TcpListener,
    gate: Gate,
    cache: Cache,
    source: S,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let policy = HeaderValue::from_str(&source.policy()).map_err(io::Error::other)?;
    let server = Arc::new(Server { source, gate, cache: Mutex::new(cache), policy });
    let app = Router::new().fallback(handle::<S>).with_state(server);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_io().enable_time().max_blocking_threads(THREADS).build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        axum::serve(listener, app).await
    })
}

async fn handle<S: Source>(State(server): State<Arc<Server<S>>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let text = |name: HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let asked = asked(parts.uri.path(), parts.uri.query().unwrap_or_default());
    let token = asked.as_ref().and_then(|asked| asked.query.get("token"));
    let is_root = asked.as_ref().is_some_and(|asked| asked.path.is_empty());
    let verdict = server.gate.judge(&Knock {
        method: parts.method.as_str(),
        host: text(header::HOST),
        origin: text(header::ORIGIN),
        site: text(HeaderName::from_static("sec-fetch-site")),
        cookies: text(header::COOKIE),
        token: token.map(String::as_str).filter(|_| is_root),
    });
    let mut answer = match (verdict, asked) {
        (Verdict::Enter(cookie), _) => {
            let mut answer = plain(StatusCode::SEE_OTHER, "");
            set(answer.headers_mut(), header::LOCATION, "/");
            set(answer.headers_mut(), header::SET_COOKIE, &cookie);
            answer
        }
        (Verdict::Refuse(status, words), _) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::FORBIDDEN);
            let mut answer = plain(status, words);
            if status == StatusCode::METHOD_NOT_ALLOWED {
                set(answer.headers_mut(), header::ALLOW, "GET");
            }
            answer
        }
        (Verdict::Serve, None) => plain(StatusCode::NOT_FOUND, "There is no such page\n"),
        (Verdict::Serve, Some(mut asked)) => {
            if asked.path.last().is_some_and(|last| last == "events") {
                asked.path.pop();
                let known = text(HeaderName::from_static("last-event-id")).map(str::to_owned);
                let known = known.or_else(|| asked.query.get("at").cloned()).unwrap_or_default();
                events(&server, asked, known).await
            } else {
                page(&server, asked).await
            }
        }
    };
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, server.policy.clone());
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Answers with a page, from the cache if it is fresh.
async fn page<S: Source>(server: &Arc<Server<S>>, asked: Asked) -> Response {
    let server = Arc::clone(server);
    let work = tokio::task::spawn_blocking(move || {
        let mark = server.source.mark(&asked);
        let key = mark.map(|mark| (asked.clone(), mark));
        let known = |key: &(Asked, String)| {
            server.cache.lock().ok().and_then(|mut cache| cache.get(key, Instant::now()))
        };
        if let Some(page) = key.as_ref().and_then(known) {
            return Answer::Page(page);
        }
        let answer = server.source.answer(&asked);
        if let (Answer::Page(page), Some(key), Ok(mut cache)) = (&answer, key, server.cache.lock())
        {
            cache.put(key, Arc::clone(page), Instant::now());
        }
        answer
    });
    match work.await {
        Ok(Answer::Page(page)) => html(StatusCode::OK, &page),
        Ok(Answer::Missing(page)) => html(StatusCode::NOT_FOUND, &page),
        Ok(Answer::Failed(page)) => html(StatusCode::SERVICE_UNAVAILABLE, &page),
        Ok(Answer::Moved(to)) => {
            let mut answer = plain(StatusCode::SEE_OTHER, "");
            set(answer.headers_mut(), header::LOCATION, &to);
            answer
        }
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "This page could not be made\n"),
    }
}

/// Waits until a page changes, and says so as an event. After a while without news the stream ends, and the browser asks again.
async fn events<S: Source>(server: &Arc<Server<S>>, asked: Asked, known: String) -> Response {
    let mut event = ": no news\nretry: 500\n\n".to_owned();
    for nth in 0..LOOKS {
        let (within, asked) = (Arc::clone(server), asked.clone());
        let mark = tokio::task::spawn_blocking(move || within.source.mark(&asked)).await;
        let Ok(Some(mark)) = mark else { break };
        if mark != known && !known.is_empty() {
            event = format!("event: grown\nid: {mark}\ndata: {mark}\nretry: 500\n\n");
            break;
        }
        if nth + 1 < LOOKS {
            tokio::time::sleep(LOOK).await;
        }
    }
    let mut answer = plain(StatusCode::OK, &event);
    set(answer.headers_mut(), header::CONTENT_TYPE, "text/event-stream");
    answer
}

fn html(status: StatusCode, page: &str) -> Response {
    let mut answer = plain(status, page);
    set(answer.headers_mut(), header::CONTENT_TYPE, "text/html; charset=utf-8");
    answer
}

fn plain(status: StatusCode, text: &str) -> Response {
    let mut answer = Response::new(Body::from(text.to_owned()));
    *answer.status_mut() = status;
    set(answer.headers_mut(), header::CONTENT_TYPE, "text/plain; charset=utf-8");
    answer
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Decodes a path and a query. Returns `None` if a part is no text, or is none that a page has.
fn asked(path: &str, query: &str) -> Option<Asked> {
    let parts = path.split('/').filter(|part| !part.is_empty());
    let path: Option<Vec<String>> = parts.map(|part| decode(part, false)).collect();
    let path = path?;
    if path.iter().any(|part| matches!(part.as_str(), "." | "..") || part.contains(['/', '\0'])) {
        return None;
    }
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let query = pairs.map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(key, true)?, decode(value, true)?))
    });
    Some(Asked { path, query: query.collect::<Option<_>>()? })
}

/// Decodes a part of an address.
fn decode(text: &str, is_query: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' if is_query => b' ',
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Encodes a text as a part of an address.
pub(crate) fn encode(text: &str) -> String {
    let mut address = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~:".contains(&byte) {
            address.push(char::from(byte));
        } else {
            let _ = write!(address, "%{byte:02X}");
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_decoded_and_tricks_are_no_pages() {
        let path = |path: &str| asked(path, "").map(|asked| asked.path.join("|"));
        assert_eq!(path("/s/82/main..main.1").as_deref(), Some("s|82|main..main.1"));
        assert_eq!(path("//s//a%20b/").as_deref(), Some("s|a b"));
        for trick in
            ["/s/..", "/s/%2e%2e/x", "/s/%2Fetc%2Fpasswd", "/s/%00", "/s/%zz", "/s/%ff", "/%"]
        {
            assert_eq!(path(trick), None, "{trick}");
        }
        let query = asked("/", "q=a+b%26c&is=reverted&x").unwrap().query;
        assert_eq!(
            (query["q"].as_str(), query["is"].as_str(), query["x"].as_str()),
            ("a b&c", "reverted", "")
        );
        assert_eq!(decode(&encode("a/b ü%"), false).as_deref(), Some("a/b ü%"));
    }
}
