//! A model behind an HTTP endpoint: OpenAI-compatible chat completions, OpenAI responses or Anthropic messages, streamed or not.
//!
//! A request with a transient fault (429, 5xx, a broken connection) is repeated after 1, 2, 4 .. seconds or after the time that
//! the server asks for, unless that is too long. One that timed out is not repeated, because it would take as long again. If a
//! server refuses an option of a request or names the one it wants, the next requests follow it.
//!
//! A thread makes the request and sends the body in pieces, so that the wait for each piece has a limit.
//!
//! Invariant: keys and the values of headers are never sent except in the headers of the request, and never appear in an answer
//! or error, however a server spells them.
//! Invariant: neither is sent to another computer as plain text unless its endpoint allows it.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::BTreeMap,
    fmt,
    io::Read as _,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Number, Value, json};
use ureq::{
    Agent, RequestBuilder, Timeout,
    http::{HeaderMap, Uri},
    tls::{PemItem, RootCerts, TlsConfig, parse_pem},
    typestate::WithBody,
};

use crate::{
    context::{
        event::Event,
        model::{
            ChatModel, ChatRequest, Fault, Heard, ModelError, Summarizer, SummaryRequest, Written,
        },
    },
    model::{Block, Message, Role, Thinking, Timestamp},
    provider::{
        answer::{readable, refusal, retry_after, with_ids},
        anthropic,
        listen::{Ends, Listener, Words},
        network::{self, Network},
        openai, responses,
        stream::{self, Deadline},
        way::{CHANGES, Way},
    },
    secrets::{Masking, Masks},
};

/// The maximum size of an answer in bytes.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The maximum size of a piece of a body in bytes.
const PIECE: usize = 64 * 1024;

/// Time limits above this one count as none.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Minimum length of a key that is masked. A server that needs no key gets a placeholder such as `none`, which may be a word in
/// any sentence.
const SECRET: usize = 8;

/// The version of Anthropic's API.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The API of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// OpenAI-compatible chat completions.
    OpenAi,
    /// OpenAI responses.
    Responses,
    /// Anthropic messages.
    Anthropic,
}

/// How the answers of an API are read.
struct Dialect {
    /// The end of its URL.
    path: &'static str,
    read: fn(&str) -> Result<Message, Fault>,
    join: stream::Join,
    words: Words,
}

impl Api {
    fn dialect(self) -> Dialect {
        match self {
            Self::OpenAi => Dialect {
                path: "/chat/completions",
                read: openai::read,
                join: stream::completion,
                words: stream::completion_words,
            },
            Self::Responses => Dialect {
                path: "/responses",
                read: responses::read,
                join: stream::response,
                words: stream::response_words,
            },
            Self::Anthropic => Dialect {
                path: "/messages",
                read: anthropic::read,
                join: stream::message,
                words: stream::message_words,
            },
        }
    }
}

/// A secret that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

/// Where a model is and how to ask it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its API.
    pub api: Api,
    /// Its URL: a host, the root of its API, or the full address.
    pub url: String,
    /// The model's name.
    pub model: String,
    /// The key, if it needs one.
    pub key: Option<Key>,
    /// More headers of its requests. Their values are as secret as the key.
    pub headers: Vec<(String, Key)>,
    /// How random its answers are, if not as usual there.
    pub temperature: Option<Number>,
    /// How much it thinks: `low`, `medium`, `high` or another word of its API.
    pub effort: Option<String>,
    /// The size of the model's window in tokens, if known.
    pub window: Option<u64>,
    /// Time limits and retries.
    pub limits: Limits,
    /// True if its key may be sent to another computer over plain HTTP.
    pub insecure: bool,
    /// How to connect to it.
    pub network: Network,
    /// True if it is asked to stream. A stream is understood even if it was not asked for.
    pub streams: bool,
    /// True if requests mark what can be cached, where the API supports that.
    pub caches: bool,
    /// The name of the field for the maximum size of an answer, if the endpoint does not know the usual one.
    pub limit_name: Option<String>,
}

/// Time limits and retries of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest wait for the beginning of an answer, and for each next piece of it.
    pub request: Duration,
    /// The time limit of connecting.
    pub connect: Duration,
    /// How many times a request is repeated.
    pub retries: u32,
    /// The wait before the first repetition. It doubles each time.
    pub backoff: Duration,
    /// The maximum wait. If the server asks for a longer one, the request fails.
    pub max_wait: Duration,
}

/// A model behind an endpoint.
pub struct Http {
    endpoint: Endpoint,
    address: String,
    name: String,
    agent: Agent,
    notice: Box<dyn Fn(&Event)>,
    clock: Option<Box<dyn Fn() -> Timestamp>>,
    way: RefCell<Way>,
    /// Masks the key and the values of headers.
    masking: Masking,
    /// Where words of an answer can be cut without cutting one of these.
    ends: Ends,
}

/// A part of an answer from the thread that reads it.
enum Piece {
    Head(u16, HeaderMap),
    Bytes(Vec<u8>),
    Broken(ureq::Error),
    End,
}

/// A request and its properties.
#[derive(Clone, Copy)]
struct Asking<'a> {
    request: ChatRequest<'a>,
    /// True if most of it will be sent again.
    is_repeated: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(120),
            connect: Duration::from_secs(20),
            retries: 3,
            backoff: Duration::from_secs(1),
            max_wait: Duration::from_secs(60),
        }
    }
}

impl Key {
    /// Makes a secret. Trims the white space that comes from a file or a shell.
    pub fn new(key: &str) -> Self {
        Self(key.trim().to_owned())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key(..)")
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Http").field(&self.name).finish()
    }
}

impl Endpoint {
    /// Makes an endpoint without a key and with default limits.
    pub fn new(api: Api, url: &str, model: &str) -> Self {
        Self {
            api,
            url: url.trim().to_owned(),
            model: model.to_owned(),
            key: None,
            headers: Vec::new(),
            temperature: None,
            effort: None,
            window: None,
            limits: Limits::default(),
            insecure: false,
            network: Network::default(),
            streams: false,
            caches: true,
            limit_name: None,
        }
    }

    /// Returns the URL of the requests.
    fn address(&self) -> String {
        let end = self.api.dialect().path;
        // The query stays after the path, such as `?api-version=2024-10-21`.
        let (base, rest) = self.url.split_at(self.url.find(['?', '#']).unwrap_or(self.url.len()));
        let base = base.trim_end_matches('/');
        if base.ends_with(end) {
            return format!("{base}{rest}");
        }
        let has_path = base.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
        // Anthropic's own root has no version, and compatible servers have it under a path of their own.
        let is_versioned = base.rsplit('/').next().is_some_and(|last| {
            last.strip_prefix('v')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        });
        let version = match self.api {
            Api::OpenAi | Api::Responses if has_path => "",
            Api::Anthropic if is_versioned => "",
            _ => "/v1",
        };
        format!("{base}{version}{end}{rest}")
    }
}

impl Http {
    /// Prepares an endpoint without sending anything. Fails if its key would be sent to another computer as plain text.
    pub fn new(endpoint: Endpoint) -> Result<Self, ModelError> {
        let address = endpoint.address();
        let uri: Option<Uri> = address.parse().ok();
        let host = uri.as_ref().and_then(Uri::host).map(str::to_owned);
        let name = match &host {
            Some(host) => format!("{} at {host}", endpoint.model),
            None => endpoint.model.clone(),
        };
        let refuse = |fault| Err(ModelError { model: name.clone(), fault });
        let fail = |said: &str| refuse(Fault::Refused { said: said.to_owned(), status: None });
        if host.is_none()
            || !matches!(uri.as_ref().and_then(Uri::scheme_str), Some("http" | "https"))
        {
            return fail("its address must begin with http:// or https://");
        }
        let is_exposed = uri.as_ref().is_some_and(network::is_readable_by_others);
        let has_secrets = endpoint.key.is_some() || !endpoint.headers.is_empty();
        if is_exposed && has_secrets && !endpoint.insecure {
            return refuse(Fault::Exposed);
        }
        let proxy = endpoint.network.proxy.as_deref().map(ureq::Proxy::new).transpose();
        let Ok(proxy) = proxy else { return fail("the proxy's address is not valid") };
        let mut tls = TlsConfig::builder();
        if let Some(pem) = &endpoint.network.roots {
            let items: Result<Vec<_>, _> = parse_pem(pem.as_bytes()).collect();
            let Ok(items) = items else {
                return fail("cannot read the certificates to trust");
            };
            let roots: Vec<_> = items
                .into_iter()
                .filter_map(|item| match item {
                    PemItem::Certificate(root) => Some(root),
                    _ => None,
                })
                .collect();
            if roots.is_empty() {
                return fail("the file of certificates to trust has none");
            }
            tls = tls.root_certs(RootCerts::from(roots));
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(endpoint.limits.connect))
            .user_agent(concat!("undertext/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.build())
            // The default proxy would be read from the environment, which is the caller's concern.
            .proxy(proxy)
            .build();
        let agent = Agent::new_with_config(config);
        let way = Way::of(&endpoint.model, &address, endpoint.limit_name.clone());
        let way = RefCell::new(Way { streams: endpoint.streams, ..way });
        let keys = endpoint.key.iter().chain(endpoint.headers.iter().map(|(_, value)| value));
        let keys = keys.filter(|Key(key)| key.len() >= SECRET);
        let keys: BTreeMap<_, _> = keys.map(|Key(key)| (key.clone(), "key")).collect();
        let ends = Ends::of(keys.keys().map(String::as_str));
        let (notice, masking) = (Box::new(|_: &Event| ()), Masking::new(Masks::default(), keys));
        Ok(Self { endpoint, address, name, agent, notice, clock: None, way, masking, ends })
    }

    /// Sets a callback that is called for each repeated request.
    #[must_use]
    pub fn noticed(mut self, notice: impl Fn(&Event) + 'static) -> Self {
        self.notice = Box::new(notice);
        self
    }

    /// Sets a clock, for a server that says until when to wait but not what time it is.
    #[must_use]
    pub fn timed(mut self, clock: impl Fn() -> Timestamp + 'static) -> Self {
        self.clock = Some(Box::new(clock));
        self
    }

    /// Returns the body of a request, with the options that the endpoint wants.
    fn body(&self, asking: &Asking<'_>) -> String {
        let (endpoint, way) = (&self.endpoint, self.way.borrow());
        let request = &asking.request;
        let model = endpoint.model.as_str();
        let mut body = match endpoint.api {
            Api::OpenAi => openai::body(Some(model), request, &way),
            Api::Responses => responses::body(model, request, &way),
            Api::Anthropic => {
                let caches = endpoint.caches && asking.is_repeated;
                anthropic::body(model, request, &way, caches)
            }
        };
        if way.streams {
            body["stream"] = true.into();
            if endpoint.api == Api::OpenAi && way.takes("stream_options") {
                body["stream_options"] = json!({"include_usage": true});
            }
        }
        if let Some(effort) = &endpoint.effort {
            match endpoint.api {
                Api::OpenAi => body["reasoning_effort"] = effort.as_str().into(),
                Api::Responses => body["reasoning"] = json!({"effort": effort}),
                Api::Anthropic => anthropic::think(&mut body, effort, &way),
            }
        }
        // Anthropic's models do not think at any other temperature than their own.
        if let Some(temperature) = &endpoint.temperature
            && body.get("thinking").is_none()
        {
            body["temperature"] = Value::Number(temperature.clone());
        }
        body.to_string()
    }

    /// Makes a request, and repeats it where that may help.
    fn ask(
        &self,
        asking: &Asking<'_>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Message, ModelError> {
        let begun = Instant::now();
        let mut body = self.body(asking);
        let mut n_ways = CHANGES;
        let mut attempt = 0;
        let mut has_heard = false;
        loop {
            if std::mem::take(&mut has_heard) {
                heard(Heard::Void);
            }
            let left = asking.request.limit.saturating_sub(begun.elapsed());
            let mut hear = |words: &str| {
                has_heard = true;
                heard(Heard::Words(words));
            };
            let fault = match self.send(&body, left, &mut hear) {
                Ok(message) => return Ok(message),
                Err(fault) => self.masked_fault(fault),
            };
            let other = (n_ways > 0).then(|| self.way.borrow().after(&fault)).flatten();
            if let Some(other) = other {
                n_ways -= 1;
                self.way.replace(other);
                body = self.body(asking);
                continue;
            }
            attempt += 1;
            let late = |limit| Fault::TimedOut { limit };
            let fault = match self.wait(attempt, &fault) {
                Some(wait) if wait >= asking.request.limit.saturating_sub(begun.elapsed()) => {
                    late(asking.request.limit)
                }
                Some(wait) => {
                    (self.notice)(&Event::RequestRetry {
                        model: self.name.clone(),
                        attempt,
                        wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                        why: fault.to_string(),
                    });
                    thread::sleep(wait);
                    continue;
                }
                // The last attempt has used up the time for all attempts.
                None if matches!(fault, Fault::TimedOut { .. })
                    && begun.elapsed() >= asking.request.limit =>
                {
                    late(asking.request.limit)
                }
                None => fault,
            };
            return Err(ModelError { model: self.name.clone(), fault });
        }
    }

    /// Returns how long to wait before repeating the request; None if it is not repeated.
    fn wait(&self, attempt: u32, fault: &Fault) -> Option<Duration> {
        let limits = &self.endpoint.limits;
        if attempt > limits.retries {
            return None;
        }
        let own =
            limits.backoff.saturating_mul(2_u32.saturating_pow(attempt - 1)).min(limits.max_wait);
        match fault {
            Fault::RateLimited { after, .. } | Fault::Unreachable { after, .. } => {
                let wait = after.map_or(own, |after| after.max(own));
                (wait <= limits.max_wait).then_some(wait)
            }
            _ => None,
        }
    }

    /// Makes one request within the time left.
    fn send(
        &self,
        body: &str,
        left: Duration,
        heard: &mut dyn FnMut(&str),
    ) -> Result<Message, Fault> {
        let deadline = Deadline::after(left.min(FOREVER));
        let pieces = fetched(self.request(left), body.to_owned());
        let (status, headers) = loop {
            match self.next(&pieces, &deadline)? {
                Piece::Head(status, headers) => break (status, headers),
                Piece::Broken(error) => return Err(self.broken(&error)),
                Piece::Bytes(_) | Piece::End => {}
            }
        };
        let now = self.clock.as_ref().map(|clock| clock());
        let after = retry_after(&headers, now);
        let moved = headers.get("location").and_then(|to| to.to_str().ok()).map(str::to_owned);
        let is_answer = (200..300).contains(&status);
        let words = self.endpoint.api.dialect().words;
        let mut listener = Listener::new(words, &self.masking, self.ends, heard);
        let mut body = Vec::new();
        loop {
            match self.next(&pieces, &deadline)? {
                Piece::Bytes(bytes) if body.len() + bytes.len() > MAX_BYTES => {
                    let said = format!("it is longer than {MAX_BYTES} bytes");
                    return Err(Fault::BadAnswer { said });
                }
                Piece::Bytes(bytes) => {
                    if is_answer {
                        listener.push(&bytes);
                    }
                    body.extend(bytes);
                }
                Piece::Broken(error) => return Err(self.broken(&error)),
                Piece::Head(..) => {}
                Piece::End => break,
            }
        }
        listener.end();
        let body = String::from_utf8_lossy(&body);
        // A byte order mark is not part of the answer.
        let body = body.trim_start_matches('\u{feff}');
        // Mask the key before an error truncates the text: half a key would not be recognised.
        let masked = || self.masked(body);
        match moved {
            _ if is_answer => {
                let answer = self.read(body, &deadline).map_err(|fault| match fault {
                    fault @ Fault::TimedOut { .. } => fault,
                    fault => self.read(&masked(), &deadline).err().unwrap_or(fault),
                })?;
                Ok(self.masked_answer(answer))
            }
            Some(to) if (300..400).contains(&status) => {
                let said = format!("it has moved to {}", readable(&self.masked(&to)));
                Err(Fault::Refused { said, status: Some(status) })
            }
            _ => {
                let said = masked();
                let whole = self.unstreamed(&said, &deadline).unwrap_or(Cow::Borrowed(&said));
                Err(refusal(Some(status), &self.masked(&whole), after))
            }
        }
    }

    /// Returns a request without its body.
    fn request(&self, left: Duration) -> RequestBuilder<WithBody> {
        let endpoint = &self.endpoint;
        let request = self.agent.post(&self.address).content_type("application/json");
        // The thread ends then too, whatever the server does.
        let limit = Some(left).filter(|left| *left < FOREVER);
        let mut request = request.config().timeout_global(limit).build();
        if endpoint.api == Api::Anthropic {
            request = request.header("anthropic-version", ANTHROPIC_VERSION);
        }
        if let Some(Key(key)) = &endpoint.key {
            request = match endpoint.api {
                Api::OpenAi | Api::Responses => {
                    request.header("authorization", format!("Bearer {key}"))
                }
                Api::Anthropic => request.header("x-api-key", key),
            };
        }
        let headers = endpoint.headers.iter();
        headers.fold(request, |request, (name, Key(value))| request.header(name, value))
    }

    /// Waits for the next piece of an answer.
    fn next(&self, pieces: &Receiver<Piece>, deadline: &Deadline) -> Result<Piece, Fault> {
        let silence = self.endpoint.limits.request;
        match pieces.recv_timeout(silence.min(deadline.left())) {
            Ok(piece) => Ok(piece),
            Err(RecvTimeoutError::Timeout) => {
                deadline.check()?;
                Err(Fault::TimedOut { limit: silence })
            }
            Err(RecvTimeoutError::Disconnected) => {
                let said = "the connection broke".to_owned();
                Err(Fault::Unreachable { said, after: None })
            }
        }
    }

    /// Parses the body of an answer.
    fn read(&self, body: &str, deadline: &Deadline) -> Result<Message, Fault> {
        let body = self.unstreamed(body, deadline)?;
        let read = self.endpoint.api.dialect().read;
        // Each event of a stream may contain a part of the key.
        read(&body).map_err(|fault| read(&self.masked(&body)).err().unwrap_or(fault))
    }

    /// Joins the events of a body if it is a stream.
    fn unstreamed<'b>(&self, body: &'b str, deadline: &Deadline) -> Result<Cow<'b, str>, Fault> {
        if !stream::is_stream(body) {
            return Ok(Cow::Borrowed(body));
        }
        let join = self.endpoint.api.dialect().join;
        stream::joined(body, join, deadline).map(Cow::Owned)
    }

    /// Classifies a connection error. A URL may contain a password, so no error repeats it.
    fn broken(&self, error: &ureq::Error) -> Fault {
        match error {
            ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
                let limit = self.endpoint.limits.connect;
                let said = format!("no connection within {limit:.0?}");
                Fault::Unreachable { said, after: None }
            }
            ureq::Error::Timeout(_) => Fault::TimedOut { limit: self.endpoint.limits.request },
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
                let said = "the request cannot be made: its address, key or headers have characters that a header cannot have";
                Fault::Refused { said: said.to_owned(), status: None }
            }
            ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => {
                Fault::BadAnswer { said: format!("it does not speak HTTP ({error})") }
            }
            error => Fault::Unreachable { said: error.to_string(), after: None },
        }
    }

    /// Returns a text with the key masked.
    fn masked<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.masking.mask(text).text
    }

    fn mask(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.masked(text) {
            *text = masked;
        }
    }

    /// Masks the key in every field that the server chose.
    fn masked_answer(&self, mut answer: Message) -> Message {
        answer.id.iter_mut().chain(&mut answer.model).for_each(|text| self.mask(text));
        for block in &mut answer.blocks {
            match block {
                Block::Text(text) => self.mask(text),
                Block::Thinking(Thinking { text, signature, .. }) => {
                    [text].into_iter().chain(signature).for_each(|text| self.mask(text));
                }
                Block::Call { id, name, input, signature } => {
                    [id, name, input].into_iter().chain(signature).for_each(|text| self.mask(text));
                }
                Block::Other { name, json } => {
                    self.mask(name);
                    self.mask(json);
                }
                // A server's answer contains neither.
                Block::Result { .. } | Block::Image(_) => {}
            }
        }
        answer
    }

    /// Masks the key in the text of a fault.
    fn masked_fault(&self, mut fault: Fault) -> Fault {
        match &mut fault {
            Fault::Overflow { said, .. }
            | Fault::RateLimited { said, .. }
            | Fault::Refused { said, .. }
            | Fault::Unreachable { said, .. }
            | Fault::BadAnswer { said }
            | Fault::Declined { said } => self.mask(said),
            Fault::Exposed | Fault::TimedOut { .. } | Fault::Silent { .. } => {}
        }
        fault
    }
}

impl Summarizer for Http {
    fn name(&self) -> &str {
        &self.name
    }

    fn window(&self) -> Option<u64> {
        self.endpoint.window
    }

    fn summarize(&self, request: &SummaryRequest) -> Result<Written, ModelError> {
        let prompt = prompt(request);
        let request = as_chat(request, &prompt);
        self.ask(&Asking { request, is_repeated: false }, &mut |_| ()).map(as_summary)
    }
}

impl ChatModel for Http {
    fn name(&self) -> &str {
        &self.name
    }

    fn answer(
        &self,
        request: &ChatRequest<'_>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Message, ModelError> {
        let said = self.ask(&Asking { request: *request, is_repeated: true }, heard)?;
        Ok(with_ids(said, request))
    }
}

/// Makes a request in a thread, and returns the pieces of its answer as they come.
fn fetched(request: RequestBuilder<WithBody>, body: String) -> Receiver<Piece> {
    let (sender, pieces) = mpsc::channel();
    thread::spawn(move || {
        let fetch = || -> Result<(), ureq::Error> {
            let response = request.send(body)?;
            let (head, body) = response.into_parts();
            let mut is_heard = sender.send(Piece::Head(head.status.as_u16(), head.headers)).is_ok();
            let mut reader = body.into_reader();
            let mut room = vec![0; PIECE];
            while is_heard {
                let n = reader.read(&mut room).map_err(ureq::Error::from)?;
                let bytes = room.get(..n).unwrap_or_default().to_vec();
                is_heard = n > 0 && sender.send(Piece::Bytes(bytes)).is_ok();
            }
            Ok(())
        };
        // Nobody listens any more to a request that was given up.
        let _ = match fetch() {
            Ok(()) => sender.send(Piece::End),
            Err(error) => sender.send(Piece::Broken(error)),
        };
    });
    pieces
}

/// Returns a request for a summary as a conversation of one message, without tools.
fn as_chat<'a>(request: &'a SummaryRequest, message: &'a [Message; 1]) -> ChatRequest<'a> {
    let SummaryRequest { system, max_tokens, limit, .. } = request;
    ChatRequest { system, messages: message, tools: &[], max_tokens: *max_tokens, limit: *limit }
}

fn prompt(request: &SummaryRequest) -> [Message; 1] {
    [Message::new(Role::User, vec![Block::Text(request.prompt.clone())])]
}

/// Returns an answer as a summary. Calls are ignored, because no tools were offered.
fn as_summary(message: Message) -> Written {
    let text = message.text();
    Written { text, model: message.model, usage: message.usage, stop: message.stop }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_completed() {
        let check = |api, url: &str, expected: &str| {
            assert_eq!(Endpoint::new(api, url, "m").address(), expected);
        };
        check(
            Api::OpenAi,
            "https://api.openai.com/v1",
            "https://api.openai.com/v1/chat/completions",
        );
        check(Api::OpenAi, "http://localhost:8080/", "http://localhost:8080/v1/chat/completions");
        check(Api::OpenAi, "https://x/openai/v1beta/", "https://x/openai/v1beta/chat/completions");
        check(Api::OpenAi, "https://x/a/chat/completions", "https://x/a/chat/completions");
        // What is asked of a place stays behind the whole of its path.
        for path in ["", "/chat/completions", "/"] {
            let url = format!("https://x/openai/deployments/m{path}?api-version=2024-10-21");
            let whole = "https://x/openai/deployments/m/chat/completions?api-version=2024-10-21";
            check(Api::OpenAi, &url, whole);
        }
        check(Api::OpenAi, "https://x?to=/y/", "https://x/v1/chat/completions?to=/y/");
        check(Api::Anthropic, "https://x/v1/?beta=true", "https://x/v1/messages?beta=true");
        check(Api::Anthropic, "https://api.anthropic.com", "https://api.anthropic.com/v1/messages");
        check(Api::Anthropic, "https://x/anthropic", "https://x/anthropic/v1/messages");
        check(Api::Anthropic, "https://x/v1", "https://x/v1/messages");
    }

    #[test]
    fn an_address_that_is_none_is_refused_before_anything_is_sent() {
        for url in ["", "api.openai.com", "ftp://x/y", "http://", "http://a b/"] {
            assert!(Http::new(Endpoint::new(Api::OpenAi, url, "m")).is_err(), "{url}");
        }
        let mut endpoint = Endpoint::new(Api::OpenAi, "https://user:secret@x/v1", "m");
        let http = Http::new(endpoint.clone()).unwrap();
        assert_eq!(Summarizer::name(&http), "m at x");
        endpoint.network.roots = Some("no certificate".to_owned());
        assert!(Http::new(endpoint).is_err());
    }

    #[test]
    fn a_key_goes_to_another_computer_in_secret_or_by_leave() {
        let made = |url: &str, key: Option<&str>, insecure| {
            let mut endpoint = Endpoint::new(Api::Anthropic, url, "m");
            (endpoint.key, endpoint.insecure) = (key.map(Key::new), insecure);
            Http::new(endpoint).map(drop).map_err(|error| error.fault)
        };
        for (url, key, insecure, expected) in [
            ("http://models.example", Some("k"), false, Err(Fault::Exposed)),
            (" HTTP://models.example/v1 ", Some("k"), false, Err(Fault::Exposed)),
            ("http://models.example", Some("k"), true, Ok(())),
            ("http://models.example", None, false, Ok(())),
            ("https://models.example", Some("k"), false, Ok(())),
            ("http://127.0.0.1:1", Some("k"), false, Ok(())),
            ("http://localhost", Some("k"), false, Ok(())),
        ] {
            assert_eq!(made(url, key, insecure), expected, "{url}");
        }
    }

    #[test]
    fn a_key_is_never_printed() {
        let mut endpoint = Endpoint::new(Api::OpenAi, "https://x", "m");
        endpoint.key = Some(Key::new(" sk-secret\n"));
        endpoint.network.proxy = Some("http://u:secret@proxy".to_owned());
        assert!(!format!("{endpoint:?}").contains("secret"));
        let http = Http::new(endpoint).unwrap();
        assert!(!format!("{http:?}").contains("secret"));
        // What is so short is no secret, and a word of any sentence.
        let mut plain = Endpoint::new(Api::OpenAi, "https://x", "m");
        plain.key = Some(Key::new("none"));
        let said = "nonesuch model: none";
        assert_eq!(Http::new(plain).unwrap().masked(said), said);
        let said = "invalid key: sk-secret".to_owned();
        let fault = http.masked_fault(Fault::Refused { said, status: Some(401) });
        assert_eq!(
            fault.to_string(),
            "the request failed with status 401: invalid key: [masked: key]"
        );
    }
}
