//! The connection to an endpoint: a proxy, and the trusted certificates.

use std::{fmt, net::IpAddr};

use ureq::http::Uri;

/// How to connect to an endpoint.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// The URL of a proxy, which may contain a password.
    pub proxy: Option<String>,
    /// Certificates to trust instead of the usual ones, as PEM.
    pub roots: Option<String>,
}

impl fmt::Debug for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (proxy, roots) = (self.proxy.is_some(), self.roots.is_some());
        out.debug_struct("Network").field("proxy", &proxy).field("roots", &roots).finish()
    }
}

impl Network {
    /// Returns the proxy that environment variables set for a URL: `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY`,
    /// unless `NO_PROXY` lists its host; each also in lowercase. This computer itself is always reached without a proxy.
    pub fn of(url: &str, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let either = |name: &str| {
            let found = variable(&name.to_lowercase()).or_else(|| variable(name));
            found.filter(|value| !value.trim().is_empty())
        };
        let uri: Option<Uri> = url.trim().parse().ok();
        let host = uri.as_ref().map(host).unwrap_or_default();
        let is_listed = |list: String| {
            list.split(',')
                .map(|item| item.trim().trim_start_matches(['*', '.']).to_lowercase())
                .any(|item| {
                    let below = || host.strip_suffix(&item).is_some_and(|rest| rest.ends_with('.'));
                    // A bare `*` is empty here; it only counts as the whole list.
                    host == item || (!item.is_empty() && below())
                })
                || list.trim() == "*"
        };
        if is_this_computer(&host) {
            return Self::default();
        }
        let own = if url.trim_start().starts_with("https:") { "HTTPS_PROXY" } else { "HTTP_PROXY" };
        let proxy = either(own).or_else(|| either("ALL_PROXY"));
        let proxy = proxy.filter(|_| !either("NO_PROXY").is_some_and(is_listed));
        Self { proxy, roots: None }
    }
}

/// Returns true if a request to a URL passes through other computers as plain text.
pub(super) fn is_readable_by_others(uri: &Uri) -> bool {
    uri.scheme_str() == Some("http") && !is_this_computer(&host(uri))
}

/// Returns the host of a URL, in lowercase.
fn host(uri: &Uri) -> String {
    uri.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase()
}

/// Returns true if a host is this computer.
fn is_this_computer(host: &str) -> bool {
    let is_own = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    host.parse().is_ok_and(is_own) || host == "localhost" || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_taken_from_the_variables_that_fit_the_address() {
        let check = |url: &str, variables: &[(&str, &str)], expected: Option<&str>| {
            let variable = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(
                Network::of(url, &variable).proxy.as_deref(),
                expected,
                "{url} {variables:?}"
            );
        };
        let both = [("HTTPS_PROXY", "http://s"), ("http_proxy", "http://p")];
        check("https://a.b/c", &both, Some("http://s"));
        check("http://a.b/c", &both, Some("http://p"));
        check(
            "http://a.b",
            &[("ALL_PROXY", "http://all"), ("HTTP_PROXY", " ")],
            Some("http://all"),
        );
        for none in ["a.b", ".b", "*.b", "x, B", "*"] {
            check("http://a.b:80/c", &[("HTTP_PROXY", "http://p"), ("NO_PROXY", none)], None);
        }
        check("http://ab", &[("HTTP_PROXY", "http://p"), ("NO_PROXY", "b,,")], Some("http://p"));
        check("http://a.b", &[], None);
        let own =
            ["http://localhost:1/v1", "http://127.0.0.2", "http://[::1]:8/", "http://m.localhost"];
        for url in own.into_iter().chain(["https://LOCALHOST", "http://0.0.0.0:11434"]) {
            check(url, &[("ALL_PROXY", "http://p"), ("HTTP_PROXY", "http://p")], None);
        }
        check("http://localhost.b", &[("HTTP_PROXY", "http://p")], Some("http://p"));
    }
}
