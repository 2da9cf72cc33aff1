//! The gate: who gets a page.
//!
//! The address that `serve` prints has a token. The first request with it gets a cookie and goes on to an address without it, so
//! the token is in no history; a second one gets nothing.
//!
//! Invariant: a page of another site, and a name that resolves to this machine, get nothing.

use std::sync::atomic::{AtomicBool, Ordering};

/// What decides who gets a page.
#[derive(Debug)]
pub(crate) struct Gate {
    port: u16,
    token: String,
    cookie: String,
    /// Whether the token was used.
    is_used: AtomicBool,
}

/// What a request says about itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Knock<'a> {
    pub(super) method: &'a str,
    pub(super) host: Option<&'a str>,
    pub(super) origin: Option<&'a str>,
    /// From where a browser says that it was asked.
    pub(super) site: Option<&'a str>,
    pub(super) cookies: Option<&'a str>,
    pub(super) token: Option<&'a str>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Serve,
    /// Go on to the first page with this cookie.
    Enter(String),
    /// A status, and why.
    Refuse(u16, &'static str),
}

impl Gate {
    /// `token` and `cookie` must be random.
    pub(crate) fn new(port: u16, token: String, cookie: String) -> Self {
        Self { port, token, cookie, is_used: AtomicBool::new(false) }
    }

    /// Returns the address to open.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    pub(super) fn judge(&self, knock: &Knock<'_>) -> Verdict {
        let port = self.port;
        let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let Some(host) = knock.host.filter(|host| hosts.iter().any(|own| own == host)) else {
            return Verdict::Refuse(421, "This server answers to 127.0.0.1 only\n");
        };
        let is_own = |origin: &str| origin.strip_prefix("http://") == Some(host);
        let is_near = |site: &str| matches!(site, "same-origin" | "none");
        if !knock.origin.is_none_or(is_own) {
            return Verdict::Refuse(403, "Another site may not read this\n");
        }
        if knock.method != "GET" {
            return Verdict::Refuse(405, "This server only shows pages\n");
        }
        let name = format!("undertext-{port}");
        let mut cookies = knock.cookies.unwrap_or_default().split(';').map(str::trim);
        let is_known = cookies.any(|cookie| {
            cookie
                .split_once('=')
                .is_some_and(|(key, value)| key == name && is_same(value, &self.cookie))
        });
        match knock.token {
            Some(token) if is_same(token, &self.token) => {
                if !self.is_used.swap(true, Ordering::SeqCst) {
                    let rest = "Path=/; HttpOnly; SameSite=Strict";
                    return Verdict::Enter(format!("{name}={}; {rest}", self.cookie));
                }
                if !is_known {
                    return Verdict::Refuse(
                        403,
                        "This address was used already. Start the server again\n",
                    );
                }
            }
            _ => {}
        }
        if !is_known {
            return Verdict::Refuse(403, "Open the address that the server printed\n");
        }
        if !knock.site.is_none_or(is_near) {
            return Verdict::Refuse(403, "Another site may not open this\n");
        }
        Verdict::Serve
    }
}

/// Compares two texts in a time that does not depend on where they differ.
fn is_same(one: &str, other: &str) -> bool {
    blake3::hash(one.as_bytes()) == blake3::hash(other.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_browser_that_opened_the_address_gets_pages() {
        let gate = Gate::new(7331, "t0k3n".to_owned(), "c00k13".to_owned());
        let cookie = Some("a=b; undertext-7331=c00k13");
        let good = Knock {
            method: "GET",
            host: Some("127.0.0.1:7331"),
            cookies: cookie,
            ..Knock::default()
        };
        let check = |knock: &Knock<'_>, status: u16| match gate.judge(knock) {
            Verdict::Serve => assert_eq!(200, status, "{knock:?}"),
            Verdict::Enter(cookie) => {
                assert_eq!(303, status, "{knock:?}");
                assert_eq!(cookie, "undertext-7331=c00k13; Path=/; HttpOnly; SameSite=Strict");
            }
            Verdict::Refuse(refused, _) => assert_eq!(refused, status, "{knock:?}"),
        };
        check(&good, 200);
        check(&Knock { host: Some("localhost:7331"), ..good }, 200);
        check(&Knock { origin: Some("http://127.0.0.1:7331"), ..good }, 200);
        for host in [None, Some("evil.example:7331"), Some("127.0.0.1"), Some("127.0.0.1:7332")] {
            check(&Knock { host, ..good }, 421);
        }
        for origin in
            ["http://evil.example", "null", "https://127.0.0.1:7331", "http://localhost:7331"]
        {
            check(&Knock { origin: Some(origin), ..good }, 403);
        }
        check(&Knock { site: Some("cross-site"), ..good }, 403);
        check(&Knock { site: Some("none"), ..good }, 200);
        for method in ["POST", "HEAD", "PUT", "DELETE", "OPTIONS"] {
            check(&Knock { method, ..good }, 405);
        }
        for cookies in [None, Some("undertext-7331=c00k1"), Some("undertext-7332=c00k13"), Some("")]
        {
            check(&Knock { cookies, ..good }, 403);
        }
        let new = Knock { cookies: None, token: Some("t0k3n"), ..good };
        check(&Knock { token: Some("t0k3"), ..new }, 403);
        check(&Knock { host: Some("evil.example"), ..new }, 421);
        check(&new, 303);
        check(&new, 403);
        check(&Knock { cookies: cookie, ..new }, 200);
    }
}
