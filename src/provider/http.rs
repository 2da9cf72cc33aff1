//! A model behind an HTTP endpoint: OpenAI-compatible chat completions or Anthropic messages, streamed or not.
//!
//! A request with a transient fault (429, 5xx, a broken connection) is repeated after 1, 2, 4 .. seconds or after the time that
//! the server asks for, unless that is too long. One that timed out is not repeated, because it would take as long again. If a
//! server refuses an option of a request and names the one it wants, that one is used from then on.
//!
//! Invariant: the key is never sent except in a header of the request, and never appears in an answer or error, however a server
//! spells it.
//! Invariant: no key is sent to another computer as plain text unless its endpoint allows it.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::BTreeMap,
    fmt, thread,
    time::{Duration, Instant},
};

use serde_json::json;
use ureq::{
    Agent, Timeout,
    http::Uri,
    tls::{PemItem, RootCerts, TlsConfig, parse_pem},
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
        network::{self, Network},
        openai,
        stream::{self, Deadline},
    },
    secrets::{Masking, Masks},
};

/// The maximum size of an answer in bytes.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

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
    /// Anthropic messages.
    Anthropic,
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
    /// The time limit of one request, including its answer.
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
    /// Masks the key, if there is one.
    masking: Masking,
}

/// The options that an endpoint wants.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Way {
    streams: bool,
    limit_name: String,
    /// True if the user set the name, so that no error message overrides it.
    is_set: bool,
}

/// The possible names of the field for the maximum size of an answer.
const LIMIT_NAMES: [&str; 2] = ["max_tokens", "max_completion_tokens"];

impl Way {
    fn of(endpoint: &Endpoint, address: &str) -> Self {
        // OpenAI's newer models only know one of them, most others only the other.
        let usual = LIMIT_NAMES[usize::from(address.starts_with("https://api.openai.com/"))];
        let limit_name = endpoint.limit_name.clone();
        Self {
            streams: endpoint.streams,
            is_set: limit_name.is_some(),
            limit_name: limit_name.unwrap_or_else(|| usual.to_owned()),
        }
    }

    /// Returns the options that an error asks for, if they differ.
    fn after(&self, fault: &Fault) -> Option<Self> {
        let Fault::Refused { said, .. } = fault else { return None };
        let said = said.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
        if !self.streams
            && said.contains("stream")
            && says(&["must", "only support", "required", "enable"])
        {
            return Some(Self { streams: true, ..self.clone() });
        }
        let other = LIMIT_NAMES.iter().find(|name| **name != self.limit_name)?;
        let is_unknown = says(&[
            "unsupported",
            "not support",
            "unrecognized",
            "unknown",
            "not permitted",
            "extra inputs",
            "instead",
        ]) && said.contains(&self.limit_name);
        (is_unknown && !self.is_set)
            .then(|| Self { limit_name: (*other).to_owned(), ..self.clone() })
    }
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
        let end = match self.api {
            Api::OpenAi => "/chat/completions",
            Api::Anthropic => "/messages",
        };
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
            Api::OpenAi if has_path => "",
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
        if is_exposed && endpoint.key.is_some() && !endpoint.insecure {
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
            .timeout_global(Some(endpoint.limits.request))
            .timeout_connect(Some(endpoint.limits.connect))
            .user_agent(concat!("undertext/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.build())
            // The default proxy would be read from the environment, which is the caller's concern.
            .proxy(proxy)
            .build();
        let agent = Agent::new_with_config(config);
        let way = RefCell::new(Way::of(&endpoint, &address));
        let key = endpoint.key.iter().filter(|Key(key)| key.len() >= SECRET);
        let keys: BTreeMap<_, _> = key.map(|Key(key)| (key.clone(), "key")).collect();
        let (notice, masking) = (Box::new(|_: &Event| ()), Masking::new(Masks::default(), keys));
        Ok(Self { endpoint, address, name, agent, notice, clock: None, way, masking })
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
        let mut body = match endpoint.api {
            Api::OpenAi => openai::body(Some(&endpoint.model), request, &way.limit_name),
            Api::Anthropic => {
                let caches = endpoint.caches && asking.is_repeated;
                anthropic::body(&endpoint.model, request, caches)
            }
        };
        if way.streams {
            body["stream"] = true.into();
            if endpoint.api == Api::OpenAi {
                body["stream_options"] = json!({"include_usage": true});
            }
        }
        body.to_string()
    }

    /// Makes a request, and repeats it where that may help.
    fn ask(&self, asking: &Asking<'_>) -> Result<Message, ModelError> {
        let begun = Instant::now();
        let mut body = self.body(asking);
        // A server that accepts neither option has refused.
        let mut n_ways = 2;
        let mut attempt = 0;
        loop {
            let left = asking.request.limit.saturating_sub(begun.elapsed());
            let fault = match self.send(&body, left) {
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
                // An attempt that had less time than a usual request has used up the time for all attempts.
                None if matches!(fault, Fault::TimedOut { .. })
                    && left < self.endpoint.limits.request =>
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
    fn send(&self, body: &str, left: Duration) -> Result<Message, Fault> {
        let limit = self.endpoint.limits.request.min(left);
        let deadline = Deadline::after(limit);
        let broken = |error| self.broken(&error, limit);
        let request = self.agent.post(&self.address).content_type("application/json");
        let mut request = request.config().timeout_global(Some(limit)).build();
        if self.endpoint.api == Api::Anthropic {
            request = request.header("anthropic-version", ANTHROPIC_VERSION);
        }
        if let Some(Key(key)) = &self.endpoint.key {
            request = match self.endpoint.api {
                Api::OpenAi => request.header("authorization", format!("Bearer {key}")),
                Api::Anthropic => request.header("x-api-key", key),
            };
        }
        let mut response = request.send(body).map_err(broken)?;
        let status = response.status().as_u16();
        let now = self.clock.as_ref().map(|clock| clock());
        let after = retry_after(response.headers(), now);
        let moved =
            response.headers().get("location").and_then(|to| to.to_str().ok()).map(str::to_owned);
        let body = response.body_mut().with_config().limit(MAX_BYTES).read_to_vec();
        let body = body.map_err(broken)?;
        let body = String::from_utf8_lossy(&body);
        // A byte order mark is not part of the answer.
        let body = body.trim_start_matches('\u{feff}');
        // Mask the key before an error truncates the text: half a key would not be recognised.
        let masked = || self.masked(body);
        match (status, moved) {
            (200..300, _) => {
                let answer = self.read(body, &deadline).map_err(|fault| match fault {
                    fault @ Fault::TimedOut { .. } => fault,
                    fault => self.read(&masked(), &deadline).err().unwrap_or(fault),
                })?;
                Ok(self.masked_answer(answer))
            }
            (300..400, Some(to)) => {
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

    /// Parses the body of an answer.
    fn read(&self, body: &str, deadline: &Deadline) -> Result<Message, Fault> {
        let body = self.unstreamed(body, deadline)?;
        let read: fn(&str) -> Result<Message, Fault> = match self.endpoint.api {
            Api::OpenAi => openai::read,
            Api::Anthropic => anthropic::read,
        };
        // Each event of a stream may contain a part of the key.
        read(&body).map_err(|fault| read(&self.masked(&body)).err().unwrap_or(fault))
    }

    /// Joins the events of a body if it is a stream.
    fn unstreamed<'b>(&self, body: &'b str, deadline: &Deadline) -> Result<Cow<'b, str>, Fault> {
        if !stream::is_stream(body) {
            return Ok(Cow::Borrowed(body));
        }
        let join: stream::Join = match self.endpoint.api {
            Api::OpenAi => stream::completion,
            Api::Anthropic => stream::message,
        };
        stream::joined(body, join, deadline).map(Cow::Owned)
    }

    /// Classifies a connection error. A URL may contain a password, so no error repeats it.
    fn broken(&self, error: &ureq::Error, limit: Duration) -> Fault {
        match error {
            ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
                let limit = self.endpoint.limits.connect;
                let said = format!("no connection within {limit:.0?}");
                Fault::Unreachable { said, after: None }
            }
            ureq::Error::Timeout(_) => Fault::TimedOut { limit },
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
                let said = "the request cannot be made: its address or key has characters that a header cannot have";
                Fault::Refused { said: said.to_owned(), status: None }
            }
            ureq::Error::BodyExceedsLimit(_) => {
                Fault::BadAnswer { said: format!("it is longer than {MAX_BYTES} bytes") }
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
        self.ask(&Asking { request, is_repeated: false }).map(as_summary)
    }
}

impl ChatModel for Http {
    fn name(&self) -> &str {
        &self.name
    }

    fn answer(
        &self,
        request: &ChatRequest<'_>,
        _: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Message, ModelError> {
        let said = self.ask(&Asking { request: *request, is_repeated: true })?;
        Ok(with_ids(said, request))
    }
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
    fn a_server_says_in_which_way_it_wants_to_be_asked() {
        let way = |streams, limit_name: &str| Way {
            streams,
            limit_name: limit_name.to_owned(),
            is_set: false,
        };
        let after = |way: &Way, said: &str| {
            way.after(&Fault::Refused { said: said.to_owned(), status: Some(400) })
        };
        let usual = way(false, "max_tokens");
        let renamed = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        assert_eq!(after(&usual, renamed), Some(way(false, "max_completion_tokens")));
        assert_eq!(
            after(
                &way(false, "max_completion_tokens"),
                "Unrecognized request argument supplied: max_completion_tokens"
            ),
            Some(usual.clone())
        );
        for said in [
            "Stream must be set to true",
            "This model only support stream mode, please enable the stream parameter",
        ] {
            assert_eq!(after(&usual, said), Some(way(true, "max_tokens")), "{said}");
            assert_eq!(after(&way(true, "max_tokens"), said), None);
        }
        for said in
            ["max_tokens is too large: 9. This model supports at most 5", "no such model", ""]
        {
            assert_eq!(after(&usual, said), None, "{said}");
        }
        assert_eq!(after(&Way { is_set: true, ..usual }, renamed), None);
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
