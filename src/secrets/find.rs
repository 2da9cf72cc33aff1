//! Finding: the secrets in a text, wherever they are and however they are escaped.

use std::{
    collections::BTreeSet,
    ops::{ControlFlow, Range},
};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use memchr::memmem;

use super::{rule::Reach, rules::Rules};
use crate::{
    cover::{LEVELS, SHORTEST, unescaped},
    json::Raw,
};

/// How many bytes before a keyword are examined, because the keyword may be the end of a longer name.
const BEFORE: usize = 64;
/// How many bytes from a keyword on are examined at first; more if a match continues.
const BEHIND: usize = 512;
/// A match that ends this close to the end of a window may be incomplete: an escape or the end of a private key may be cut off.
const UNSURE: usize = 160;
/// The maximum size of a window.
const MOST: usize = 64 << 10;

/// A secret that a rule found.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    /// The index of the rule.
    pub(crate) rule: usize,
    /// The secret, unescaped.
    pub(crate) secret: String,
}

impl std::fmt::Debug for Found {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Found {{ rule: {:?} }}", Rules::get().name(self.rule))
    }
}

/// What bytes are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A record: nothing in it is meant as it is escaped.
    Record,
    /// Any others, or a part of a record.
    Other,
}

/// Sees a secret, with the rule and the keyword; it breaks off when it has seen enough.
type See<'s> = dyn FnMut(usize, &[u8], Range<usize>) -> ControlFlow<()> + 's;

impl Rules {
    /// Returns the secrets in a record, or in any other text.
    pub(crate) fn find(&self, text: &[u8]) -> Vec<Found> {
        let (mut found, mut seen): (Vec<Found>, BTreeSet<Found>) = Default::default();
        let kind = if Raw::object(text).is_some() { Kind::Record } else { Kind::Other };
        let _ = self.each(text, kind, &mut |rule, secret, _| {
            let valid = secret.utf8_chunks().next().map(|chunk| chunk.valid()).unwrap_or_default();
            let one = Found { rule, secret: valid.to_owned() };
            if valid.len() >= SHORTEST && seen.insert(one.clone()) {
                found.push(one);
            }
            ControlFlow::Continue(())
        });
        self.settle(found)
    }

    /// Returns the first keyword that leads to a find. The bytes may be part of a record.
    pub(crate) fn first(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let mut first = None;
        let _ = self.each(bytes, Kind::Other, &mut |_, _, keyword| {
            first = Some(keyword);
            ControlFlow::Break(())
        });
        first
    }

    fn each(&self, bytes: &[u8], kind: Kind, see: &mut See<'_>) -> ControlFlow<()> {
        let Some(keywords) = &self.keywords else { return ControlFlow::Continue(()) };
        for hit in keywords.find_overlapping_iter(bytes) {
            let called = self.called.get(hit.pattern().as_usize()).into_iter().flatten();
            for &n in called {
                self.try_rule(n, bytes, hit.range(), kind, see)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Tries a rule at one of its keywords.
    fn try_rule(
        &self,
        n: usize,
        bytes: &[u8],
        keyword: Range<usize>,
        kind: Kind,
        see: &mut See<'_>,
    ) -> ControlFlow<()> {
        let found = self.all.get(n).and_then(|rule| Some((rule, rule.compiled()?)));
        let Some((rule, compiled)) = found else { return ControlFlow::Continue(()) };
        let (before, mut behind) = match compiled.reach {
            Reach::From(longest) => {
                let most = if rule.long { MOST } else { BEHIND };
                (BEFORE, longest.saturating_add(BEFORE).min(most))
            }
            Reach::Around(far) => (far + BEFORE, far.max(BEHIND)),
        };
        let rest = bytes.get(keyword.end..).unwrap_or_default();
        loop {
            let from = keyword.start.saturating_sub(before);
            let mut to = keyword.start.saturating_add(behind).min(bytes.len());
            let mut is_cut = (from > 0, to < bytes.len());
            // A long match contains its keyword once, so it ends before the next occurrence.
            let again = rest.get(..to.saturating_sub(keyword.end)).filter(|_| rule.long);
            let again = again.and_then(|rest| memmem::find(rest, bytes.get(keyword.clone())?));
            if let Some(again) = again {
                (to, is_cut.1) = (keyword.end + again, false);
            }
            let window = Window {
                before: bytes.get(from..keyword.start).unwrap_or_default(),
                behind: bytes.get(keyword.start..to).unwrap_or_default(),
                is_cut,
            };
            let mut is_short = false;
            window.each_reading(kind, &mut |text, at| {
                let mut from = 0;
                while let Some(found) = rule.find(text, from, at) {
                    from = found.end.max(found.start + 1);
                    let goes_on = window.is_cut.1 && found.end + UNSURE >= text.len();
                    // A match that starts after the keyword either is near it or does not count.
                    is_short |= goes_on && found.start <= at;
                    let is_cut = goes_on || window.is_cut.0 && found.start == 0;
                    if !is_cut && self.holds(rule, &found) {
                        see(n, found.secret, keyword.clone())?;
                    }
                }
                ControlFlow::Continue(())
            })?;
            if !is_short || behind >= MOST {
                return ControlFlow::Continue(());
            }
            behind *= 4;
        }
    }

    /// Of secrets that are equal or contain each other, keeps the most specific one.
    fn settle(&self, mut found: Vec<Found>) -> Vec<Found> {
        if found.len() < 2 {
            return found;
        }
        let is_weak = |one: &Found| self.all.get(one.rule).is_some_and(|rule| rule.weak);
        found.sort_by_key(|one| (is_weak(one), one.rule));
        let related = related(&found);
        let mut settled: BTreeSet<usize> = BTreeSet::new();
        for (n, (one, related)) in found.iter().zip(related).enumerate() {
            let mut is_kept = true;
            for (at, other) in related.into_iter().filter_map(|at| Some((at, found.get(at)?))) {
                let is_equal = is_weak(one) == is_weak(other);
                let is_there = settled.contains(&at);
                match gives_way(&other.secret, &one.secret).filter(|_| is_there) {
                    Some(is_worse) if is_worse && is_equal => _ = settled.remove(&at),
                    Some(_) => is_kept = false,
                    None => {}
                }
            }
            if is_kept {
                settled.insert(n);
            }
        }
        let all = found.into_iter().enumerate();
        all.filter(|(n, _)| settled.contains(n)).map(|(_, one)| one).collect()
    }
}

/// Returns, for each find, those that contain it or that it contains, possibly escaped.
fn related(found: &[Found]) -> Vec<BTreeSet<usize>> {
    let mut related = vec![BTreeSet::new(); found.len()];
    let mut builder = AhoCorasick::builder();
    // The text is short: building a faster automaton would cost more than running this one.
    let builder = builder.kind(Some(AhoCorasickKind::NoncontiguousNFA));
    let Ok(all) = builder.build(found.iter().map(|one| &one.secret)) else {
        return vec![(0..found.len()).collect(); found.len()];
    };
    for (n, one) in found.iter().enumerate() {
        for reading in readings(one.secret.as_bytes()) {
            for other in all.find_overlapping_iter(&reading).map(|found| found.pattern().as_usize())
            {
                related.get_mut(n).into_iter().for_each(|of| _ = of.insert(other));
                related.get_mut(other).into_iter().for_each(|of| _ = of.insert(n));
            }
        }
    }
    related
}

/// Returns true if the secret `one` gives way to `other`, where one of them contains the other. The escaped one gives way, then
/// the one with a name before it or an escape after it, then the shorter one. Returns none if neither contains the other.
fn gives_way(one: &str, other: &str) -> Option<bool> {
    if one == other || is_spelling(other, one) {
        return Some(false);
    }
    if is_spelling(one, other) {
        return Some(true);
    }
    let is_named = |long: &str, short: &str| {
        let long = long.trim_end_matches(['"', '\'']);
        long.strip_suffix(short).is_some_and(|name| name.ends_with(['=', ':']))
    };
    let is_worse = |long: &str, short: &str| {
        let is_escape = long.strip_prefix(short).is_some_and(|rest| rest.starts_with('\\'));
        is_named(long, short) || is_escape
    };
    if one.contains(other) {
        return Some(is_worse(one, other));
    }
    other.contains(one).then(|| !is_worse(other, one))
}

/// Returns true if `text` is `of` with escapes.
fn is_spelling(text: &str, of: &str) -> bool {
    readings(text.as_bytes()).skip(1).any(|reading| reading == of.as_bytes())
}

/// Returns a text as it is, then with its escapes resolved, then with those in the result resolved, and so on.
fn readings(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let next = |text: &Vec<u8>| Some(unescaped(text)).filter(|next| next.len() < text.len());
    std::iter::successors(Some(text.to_vec()), next).take(LEVELS + 1)
}

/// The bytes around a keyword.
struct Window<'b> {
    before: &'b [u8],
    behind: &'b [u8],
    /// Whether there is more text before it, and after it.
    is_cut: (bool, bool),
}

impl Window<'_> {
    /// Calls `each` with every reading of the bytes and the offset of the keyword: as they are, with escapes resolved, and so on.
    fn each_reading(
        &self,
        kind: Kind,
        each: &mut dyn FnMut(&[u8], usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (mut before, mut behind) = (self.before.to_vec(), self.behind.to_vec());
        for level in 0..=LEVELS {
            let next = (unescaped(&before), unescaped(&behind));
            // Without escapes, the next reading would be the same.
            let goes_on = (next.0.len(), next.1.len()) != (before.len(), behind.len());
            if level > 0 || kind == Kind::Other || !goes_on {
                let text = [before.as_slice(), behind.as_slice()].concat();
                each(&text, before.len())?;
            }
            if !goes_on {
                break;
            }
            (before, behind) = next;
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rules and the secrets that are found in a text.
    fn find(text: &str) -> Vec<(String, String)> {
        let rules = Rules::get();
        let found = rules.find(text.as_bytes());
        assert_eq!(rules.first(text.as_bytes()).is_some(), !found.is_empty(), "{text}");
        found.into_iter().map(|one| (rules.name(one.rule).to_owned(), one.secret)).collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let found = find(text);
        let found: Vec<_> = found.iter().map(|(rule, it)| (rule.as_str(), it.as_str())).collect();
        assert_eq!(found, expected, "{text}");
    }

    /// Checks a text as it is, and as what a record says.
    #[track_caller]
    fn check_in_record(text: &str, expected: &[(&str, &str)]) {
        check(text, expected);
        check(&format!(r#"{{"content":{}}}"#, crate::json::quote(text)), expected);
    }

    const KEY: &str = "ghp_R2kq8vTz0LmXw5YbN3cJ7dHs9fGaPe1uVi4o";

    #[test]
    fn a_secret_is_found_in_any_spelling_of_the_text_around_it() {
        let found = [("github-pat", KEY)];
        check(KEY, &found);
        check(&format!(r#"{{"a":"one\n{KEY}\ntwo"}}"#), &found);
        check(&format!(r#"{{"a":"{{\"b\":\"\\n{KEY}\\n\"}}"}}"#), &found);
        check(&format!(r#"{{"{KEY}":1}}"#), &found);
        check(&format!(r#"torn {{"a":"{KEY}"#), &found);
        let mut text = format!("GITHUB={KEY}");
        for _ in 0..LEVELS {
            text = crate::json::quote(&text);
            check(&text, &found);
        }
    }

    #[test]
    fn the_key_of_a_value_is_its_name() {
        check(
            r#"{"api_key":"q8Zr2LmXw5YbN3cJ7dHs"}"#,
            &[("generic-api-key", "q8Zr2LmXw5YbN3cJ7dHs")],
        );
        check(
            r#"{"a":"{\"db_password\": \"tr0ub4dor&3x\"}"}"#,
            &[("password-in-quotes", "tr0ub4dor&3x")],
        );
    }

    #[test]
    fn passwords_are_found_where_they_are_given() {
        check("PGPASSWORD=k9#vLq2z psql", &[("password-in-variable", "k9#vLq2z")]);
        check(r#"{"a":"x\nDB_PASSWORD=k9#vLq2z\ny"}"#, &[("password-in-variable", "k9#vLq2z")]);
        check("password: k9#vLq2z\n", &[("password-in-configuration", "k9#vLq2z")]);
        check("app --db-password k9#vLq2z run", &[("password-in-command", "k9#vLq2z")]);
        check("mysql -u app -pk9#vLq2z main", &[("password-of-client", "k9#vLq2z")]);
        check("postgres://app:k9%23vLq2z@db/x", &[("password-in-url", "k9%23vLq2z")]);
        check(r#"{"u":"redis:\/\/:k9%23vLq2z@cache:6379"}"#, &[("password-in-url", "k9%23vLq2z")]);
        check(
            "Authorization: Basic YXBwOms5I3ZMcTJ6",
            &[("authorization-header", "YXBwOms5I3ZMcTJ6")],
        );
        check(
            "Server=db;User ID=bob;Password=kT7#pQ2zLm9w;Encrypt=True",
            &[("password-in-connection", "kT7#pQ2zLm9w")],
        );
        check(
            "docker login -u me -p Hx9kV2mQ7z registry.example",
            &[("password-of-client", "Hx9kV2mQ7z")],
        );
        let token = "aK3mZq8RtYw2LpVx9NbHd5GsQ1eW4rTy";
        check(&format!("mytool --token {token}"), &[("token-in-command", token)]);
        check(&format!("x --npm-api-key={token} run"), &[("token-in-command", token)]);
        let token = format!("dckr_pat_{token}");
        check(&token, &[("docker-access-token", &token)]);
        let key = "k3h$8v0x!q2m@w9z&r5t^y7u*i1o(p4a)s6d-f+g=jlzx";
        check(&format!("SECRET_KEY = 'django-insecure-{key}'"), &[("django-secret-key", key)]);
        check(
            "-H 'authorization: Bearer q8Zr2LmXw5YbN3cJ7dHs'",
            &[("bearer-token", "q8Zr2LmXw5YbN3cJ7dHs")],
        );
    }

    #[test]
    fn a_private_key_is_found_however_its_lines_are_shown() {
        let chars = b"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7+/x9Kz";
        let line = |n: usize| -> String {
            (0..64).map(|at| char::from(chars[(n * 13 + at * at * 7 + at) % chars.len()])).collect()
        };
        let lines: Vec<String> = (0..24).map(line).collect();
        let body = lines.join("\n");
        let pem = |kind: &str, head: &str| {
            format!("-----BEGIN {kind}-----\n{head}{body}\n-----END {kind}-----")
        };
        let plain = pem("PRIVATE KEY", "");
        let shown = |mark: &dyn Fn(usize) -> String| {
            let marked = plain.lines().enumerate().map(|(n, line)| mark(n + 1) + line);
            marked.collect::<Vec<String>>().join("\n")
        };
        let locked = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0F0F\n\n";
        let texts = [
            plain.clone(),
            pem("RSA PRIVATE KEY", locked),
            pem("PGP PRIVATE KEY BLOCK", "Version: GnuPG v2\n\n"),
            shown(&|n| format!("{n:6}\u{2192}")),
            shown(&|n| format!("{n:6}\t")),
            shown(&|_| "-".to_owned()),
            shown(&|_| "> ".to_owned()),
            shown(&|n| format!("id_rsa:{n}:")),
        ];
        for text in texts {
            let record =
                format!(r#"{{"output":{}}}"#, crate::json::quote(&format!("a\n{text}\nb")));
            for text in [text.clone(), record] {
                let found = find(&text);
                assert!(found.iter().any(|(_, secret)| secret.contains(&lines[20])), "{text}");
            }
        }
        // Where the end is not shown, all lines that are go.
        for text in [
            shown(&|n| format!("{n:6}\u{2192}")),
            shown(&|_| "+".to_owned()),
            shown(&|_| "id_rsa-".to_owned()),
            plain.replace('\n', "\\n\" +\n\""),
        ] {
            let cut: String = text.split_inclusive('\n').take(15).collect();
            let found = find(&format!("{cut}exit 0"));
            assert!(found.iter().any(|(_, secret)| secret.contains(&lines[13])), "{text}");
        }
        // In a file of settings it may be encoded once more.
        for kind in ["RSA ", "EC ", "", "OPENSSH ", "ENCRYPTED ", "DSA ", "PGP "] {
            let coded = base64(pem(&format!("{kind}PRIVATE KEY"), "").as_bytes());
            check(&format!("    client-key-data: {coded}\n"), &[("encoded-private-key", &coded)]);
        }
        let coded = base64(pem("RSA PRIVATE KEY", "").as_bytes());
        for width in [64, 76] {
            let rows: Vec<&str> = (0..coded.len())
                .step_by(width)
                .map(|at| &coded[at..coded.len().min(at + width)])
                .collect();
            let text = rows.join("\n");
            check(&format!("$ base64 id_rsa\n{text}\nexit 0"), &[("encoded-private-key", &text)]);
        }
        let public = base64(pem("CERTIFICATE", "").as_bytes());
        check(&format!("    certificate-authority-data: {public}\n"), &[]);
        let putty = format!(
            "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: x\nPublic-Lines: 1\n\
             AAAA\nPrivate-Lines: 1\n{}\nPrivate-MAC: 00",
            lines[3]
        );
        check(&putty, &[("putty-private-key", &lines[3])]);
    }

    /// Returns bytes in base64.
    fn base64(bytes: &[u8]) -> String {
        const CODE: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let group = |three: &[u8]| {
            let byte = |n: usize| usize::from(three.get(n).copied().unwrap_or(0));
            let all = byte(0) << 16 | byte(1) << 8 | byte(2);
            let code = |n: usize| char::from(CODE[all >> (18 - 6 * n) & 63]);
            (0..4).map(|n| if n <= three.len() { code(n) } else { '=' }).collect::<String>()
        };
        bytes.chunks(3).map(group).collect()
    }

    #[test]
    fn passwords_are_found_in_files_of_settings_and_statements() {
        let password = "Yv3crw8DaiI9";
        for (text, rule) in [
            ("host=db\ndb_password=@", "password-in-configuration"),
            ("db:\n  password: @", "password-in-configuration"),
            ("spring.datasource.password=@", "password-in-configuration"),
            ("db_pass=@\nX=1\n", "password-in-setting"),
            ("ansible_become_pass: @\nx: 1", "password-in-setting"),
            ("define( 'DB_PASSWORD', '@' );", "password-in-define"),
            ("<add><db-password>@</db-password></add>", "password-in-element"),
            ("CREATE USER x IDENTIFIED BY \"@\";", "password-in-statement"),
            ("ALTER USER x WITH PASSWORD '@';", "password-in-statement"),
            ("machine api.example.net\n  login me\n  password @\n", "netrc-password"),
        ] {
            let text = text.replace('@', password);
            check_in_record(&text, &[(rule, password)]);
        }
        for password in ["Yv3cr$8DaiI", "Zv3c(r)8Dai", "Qv3c&r8DaiI", "Rv3c,r8DaiI", "Sv3c[r8DaiI"]
        {
            let text = format!("A=1\nexport DB_PASSWORD={password}\nB=2\n");
            check(&text, &[("password-in-env-file", password)]);
        }
    }

    #[test]
    fn tokens_of_services_are_found() {
        let chars =
            "aK3mZq8RtYw2LpVx9NbHd5GsQ1eW4rTyUc7Jf6XoBi0MvEaK3mZq8RtYw2LpVx9NbHd5GsQ1eW4rTy";
        let hex = "3f786850e387550fdab836ed7e6dc881de23001b3f786850e387550fdab836ed";
        let (of, hex) = (|n: usize| &chars[..n], |n: usize| &hex[..n]);
        let up = |n: usize| chars[..n].to_ascii_uppercase();
        let uuid = "3f786850-e387-550f-dab8-36ed7e6dc881";
        for (rule, token) in [
            (
                "slack-browser-token",
                format!("xoxc-123456789012-123456789012-1234567890123-{}", hex(64)),
            ),
            ("slack-browser-token", format!("xoxd-{}%2B{}", of(40), of(20))),
            ("google-refresh-token", format!("1//0{}", of(70))),
            ("figma-token", format!("figd_{}", of(40))),
            ("tavily-key", format!("tvly-{}", of(32))),
            ("pinecone-key", format!("pcsk_{}_{}", of(6), of(63))),
            ("langsmith-key", format!("lsv2_pt_{}_{}", hex(32), hex(10))),
            ("nvidia-key", format!("nvapi-{}", of(64))),
            ("kimi-key", format!("sk-kimi-{}", of(64))),
            ("cerebras-key", format!("csk-{}", &hex(48))),
            ("together-key", format!("tgp_v1_{}", of(43))),
            ("neon-key", format!("napi_{}", hex(64))),
            ("notion-secret", format!("ntn_{}", of(46))),
            ("circleci-token", format!("CCIPAT_{}_{}", of(22), hex(40))),
            ("google-auth-key", format!("AQ.Ab8RN6{}", of(44))),
            ("github-refresh-token", format!("ghr_{}", of(76))),
            ("gitlab-pat-routable", format!("glpat-{}.01.{}", of(27), &hex(9))),
            ("plain-sk-key", format!("sk-{}", of(48))),
            ("plain-sk-key", format!("sk-{}", hex(32))),
            ("crates-token", format!("cio{}", of(32))),
            ("azure-key", format!("{}JQQJ99{}", of(52), of(26))),
            ("azure-key", format!("{}+ASt{}==", of(76), of(6))),
            ("azure-key", format!("{}AIoT{}=", of(33), of(6))),
            ("vercel-token", format!("vcp_{}", of(56))),
            ("atlassian-token", format!("ATCTT3{}", of(78).repeat(2))),
            ("vault-token", format!("hvs.{}", of(24))),
            ("dynatrace-token", format!("dt0s01.{}.{}", up(8), up(64))),
            ("braintree-token", format!("access_token$production${}${}", hex(16), hex(32))),
            ("plaid-token", format!("access-production-{uuid}")),
            ("shopify-token", format!("shpua_{}", hex(32))),
            ("resend-key", format!("re_{}_{}", of(8), of(24))),
            ("render-key", format!("rnd_{}", of(32))),
            ("elevenlabs-key", format!("sk_{}", hex(48))),
            ("apify-token", format!("apify_api_{}", of(36))),
            ("smtp-key", format!("xsmtpsib-{}-{}", hex(64), of(16))),
            ("mailchimp-key", format!("{}-us21", hex(32))),
            ("hubspot-token", format!("pat-na1-{uuid}")),
            ("clickup-token", format!("pk_12345678_{}", up(32))),
            ("typeform-api-token", format!("tfp_{}", of(59))),
            ("sonar-token", format!("squ_{}", hex(40))),
            ("salesforce-token", format!("00D{}!{}", of(12), of(48).repeat(2))),
            ("riot-key", format!("RGAPI-{uuid}")),
            ("llama-cloud-key", format!("llx-{}", of(48))),
            ("context7-key", format!("ctx7sk-{uuid}")),
            ("brave-key", format!("BSA{}", of(28))),
            ("daytona-key", format!("dtn_{}", hex(64))),
            ("cursor-key", format!("key_{}", hex(64))),
            ("mollie-key", format!("live_{}", of(30))),
            ("xendit-key", format!("xnd_production_{}", of(60))),
            ("neon-password", format!("npg_{}", of(12))),
            ("aiven-password", format!("AVNS_{}", of(19))),
            ("cockroach-key", format!("CCDB1_{}_{}", of(22), of(40))),
            ("xata-key", format!("xau_{}", of(40))),
            ("axiom-token", format!("xaat-{uuid}")),
            ("logfire-token", format!("pylf_v1_us_{}", of(43))),
            ("swarm-token", format!("SWMTKN-1-{}-{}", hex(50), hex(25))),
            ("k3s-token", format!("K10{}::server:{}", hex(64), hex(32))),
            ("matrix-token", format!("syt_{}_{}_{}", of(12), "kZmRtYwLpVxNbHdGsQeW", of(6))),
            ("new-relic-key", format!("NRII-{}", of(32))),
            ("circleci-token", format!("CCIPRJ_{}_{}", of(22), hex(40))),
        ] {
            check(&format!("here: {token}\nend"), &[(rule, &token)]);
        }
        let hook = format!("1234567890123456789/{}", of(68));
        check(&format!("https://discord.com/api/webhooks/{hook}"), &[("discord-webhook", &hook)]);
    }

    #[test]
    fn secrets_are_found_in_addresses_forms_and_what_shells_are_given() {
        let (password, token) = ("Yv3crw8DaiI9", "aK3mZq8RtYw2LpVx9NbHd5GsQ1eW4rTy");
        for (text, rule) in [
            ("GET https://x.example/v1?user=ada&access_token=@&a=b", "secret-in-query"),
            ("https://x.example/api?key=@#top", "secret-in-query"),
            ("-d client_secret=@&grant_type=x", "secret-in-query"),
            ("https://x.example/c/b?sv=2022-11-02&sp=r&sig=@", "secret-in-query"),
            ("otpauth://totp/a:b?secret=NB2W45DFOIZA5LXT&issuer=a", "one-time-password-secret"),
        ] {
            let secret = if text.contains('@') { token } else { "NB2W45DFOIZA5LXT" };
            check(&text.replace('@', secret), &[(rule, secret)]);
        }
        for (text, rule) in [
            ("$ cat ~/.pgpass\ndb.internal:5432:*:app:@\n", "pgpass-password"),
            ("echo ${DB_PASSWORD:-@}", "password-in-default"),
            ("set -gx DB_PASSWORD @\n", "password-in-set"),
            (
                "kubectl create secret generic x --from-literal=password=@ -n prod",
                "password-in-command",
            ),
        ] {
            let text = text.replace('@', password);
            check_in_record(&text, &[(rule, password)]);
        }
        let bot = "8123456789:AAF3kq8vTz0LmXw5YbN3cJ7dHs9fGaPe1uV";
        check(&format!("https://api.telegram.org/bot{bot}/getMe"), &[("telegram-token", bot)]);
        let key = "q8Zr2LmXw5YbN3cJ7dHsq1TzKp4VbNm6RtYw9LpVx0E=";
        check(&format!("APP_KEY=base64:{key}"), &[("laravel-app-key", key)]);
    }

    #[test]
    fn passwords_are_found_next_to_their_names_in_forms_and_in_calls() {
        let password = "Yv3crw8DaiI9";
        for (text, rule) in [
            ("env:\n- name: DB_PASSWORD\n  value: ^\n- name: X\n", "password-of-name"),
            (r#"[{"name":"DB_PASSWORD","value":"^"},{"name":"A"}]"#, "password-of-name"),
            ("ParameterKey=DBPassword,ParameterValue=^", "password-of-name"),
            (r#"<property name="password" value="^"/>"#, "password-of-name"),
            (
                r#"{"Name": "/x/db_password", "Type": "SecureString", "Value": "^"}"#,
                "password-of-name",
            ),
            (
                "\"db_password\": {\n \"sensitive\": true,\n \"value\": \"^\"\n}",
                "password-of-output",
            ),
            ("  ~ password = \"old\" -> \"^\"", "password-that-changes"),
            ("user=ada&password=^&client_id=web", "password-in-form"),
            ("GET /login?user=ada&pwd=^&r=1 HTTP/1.1", "password-in-form"),
            ("root:^@tcp(127.0.0.1:3306)/test", "password-in-dsn"),
            ("smtp://ada@x.example:^@smtp.x.example:587", "password-in-url"),
            ("postgres://app:^@${DB_HOST}:5432/x", "password-in-url"),
            ("os.environ[\"DB_PASSWORD\"] = \"^\"", "password-in-quotes"),
            ("config['password'] = '^'", "password-in-quotes"),
            ("const password: string = \"^\";", "password-in-quotes"),
            ("DB_PW=^\n", "password-in-short-variable"),
            ("source.setPassword(\"^\");", "password-in-call"),
            ("storePassword \"^\"\n", "password-of-keystore"),
            ("keytool -genkey -storepass ^ -alias x", "password-of-keystore"),
            ("ConvertTo-SecureString \"^\" -AsPlainText", "password-as-secure-string"),
            ("- **Password**: `^`\n", "password-in-bold"),
            ("requirepass ^\n", "password-of-server"),
            ("[wifi-security]\npsk=^\n", "wireless-key"),
            ("db:5433:main:app:^\n", "pgpass-password"),
        ] {
            let text = text.replace('^', password);
            check_in_record(&text, &[(rule, password)]);
        }
        for (password, rule) in [
            ("four words 9 long K7", "password-in-quoted-variable"),
            ("Kq7pL2x>W9mKt4v", "password-in-quoted-variable"),
            ("Kq7pL2x$W9mKt4v!", "password-in-quotes"),
        ] {
            let text = format!("export DB_PASSWORD=\"{password}\"\n");
            check(&text, &[(rule, password)]);
            let text = format!("app --password '{password}' run");
            check(&text, &[("password-in-command", password)]);
        }
    }

    #[test]
    fn passwords_that_programs_are_given_are_found() {
        let password = "Yv3crw8DaiI9";
        for (text, rule) in [
            ("mongosh -u admin -p '^' --host db", "password-of-program"),
            ("mongodump -u admin -p^ -d x", "password-of-program"),
            ("/opt/tools/bin/sqlcmd -S host -U sa -P \"^\" -Q 'select 1'", "password-of-program"),
            ("mosquitto_pub -h x -u ada -P ^ -t t", "password-of-program"),
            ("ldapsearch -x -D cn=admin,dc=x -w ^ -b dc=x", "password-of-program"),
            ("openssl enc -aes-256-cbc -k ^ -in x", "password-of-program"),
            ("htpasswd -b .htpasswd ada ^\n", "password-of-program"),
            ("htpasswd -nbB -C 10 ada ^", "password-of-program"),
            ("unzip -P ^ a.zip", "password-of-program"),
            ("7z x -p^ a.7z", "password-of-program"),
            ("net user ada ^ /add", "password-of-program"),
            ("rabbitmqctl add_user ada ^", "password-of-program"),
            ("az login --service-principal -u x -p ^ --tenant t", "password-of-client"),
            ("openssl rsa -in k.pem -passin pass:^ -out x", "password-of-openssl"),
            ("http -a ada:^ https://x.example", "password-of-user"),
            ("https --auth 'ada:^' x.example", "password-of-user"),
            ("curl -u ada:^ https://x.example", "password-of-user"),
            ("curl -s --user 'ada:^' https://x.example", "password-of-user"),
            ("curl -su ada:^ https://x.example", "password-of-user"),
            ("curl --proxy-user ada:^ https://x.example", "password-of-user"),
            ("smbclient //srv/share -U ada%^", "password-of-user"),
            ("lftp -u ada,^ ftp://x", "password-of-user"),
            ("sqlplus system/^@db", "password-of-user"),
            ("echo '^' | sudo -S apt install x", "password-in-pipe"),
            ("echo \"root:^\" | chpasswd", "password-in-pipe"),
            ("echo ^ | docker login -u x --password-stdin", "password-in-pipe"),
            ("sudo -S true <<< '^'", "password-in-pipe"),
            ("INSERT INTO users (name, password) VALUES ('bob', '^');", "password-in-row"),
            ("insert into `u` (`id`, `pwd`, `at`)\n  values (7, '^', now())", "password-in-row"),
            ("INSERT INTO passwords VALUES ('bob', '^')", "password-in-row"),
            ("password: ^  # changed in May\nport: 1", "password-in-configuration"),
            ("db_password = ^ // old\n", "password-in-configuration"),
            ("db_pass: ^  # old\n", "password-in-setting"),
        ] {
            let text = text.replace('^', password);
            check_in_record(&text, &[(rule, password)]);
        }
        for text in [
            "mongosh -u admin -p --host db1.example",
            "mongo --port 27017 -p $PASS1",
            "sqlcmd -S tcp:host,1433 -P \"$(cat /run/x1)\"",
            "7z x archive-p1.7z",
            "7z a out.7z dir1 -mx9",
            "openssl rsa -passin env:PASS1",
            "openssl enc -aes-256-cbc -k $KEY1 -in x",
            "htpasswd -c .htpasswd user12345",
            "htpasswd -bc /etc/nginx/.htpasswd admin1 \"$PASS1\"",
            "net user ada1234567 /add",
            "rabbitmqctl add_vhost vhost123",
            "curl https://x.example/a -u https://y.example:8443/abc1",
            "curl -sSfL -o file:abc123 https://x",
            "curl -U proxy https://x:8080",
            "the http request to https://x.example:8080 -a",
            "smbclient -U user //srv/share1",
            "sqlplus user@db12345",
            "echo hello2world | sudo tee /etc/x1",
            "echo \"deb http://x 1\" | sudo tee -a /etc/apt/s1",
            "echo $PASS1 | sudo -S apt install",
            "INSERT INTO users VALUES ('bob', 'Tr0ub4dor&3')",
            "INSERT INTO users (id, name) VALUES (1, 'bob123xyz9');",
            "INSERT INTO users (name, password) VALUES ('bob12345x', $1);",
            "INSERT INTO users (name, password) VALUES ('bob12345x', crypt('x', 'y1'));",
            "INSERT INTO u (name, password) VALUES ('bob', '5f4dcc3b5aa765d61d8327deb882cf99');",
            "INSERT INTO u (name, password_hash) VALUES ('bob', '$2b$10$aK3mZq8RtYw2LpVx9NbHd5');",
            "password: string  # at least 8",
            "password = hash2(x) // changed",
            "password = input1.value // from the form",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn what_people_and_consoles_say_is_found() {
        let hex = "3f786850e387550fdab836ed7e6dc881";
        for (text, rule, secret) in [
            (
                "DISCORD_TOKEN=^",
                "discord-bot-token",
                "MTk4NjIyNDgzNDcxOTI1MjQ4.Gq7pL2.aK3mZq8RtYw2LpVx9NbHd5GsQ1eW4rTyUc7Jf6",
            ),
            (
                "Authorization: Bot ^",
                "discord-bot-token",
                "NzkyNzE1NDU0MTk2MDg4ODQy.X-hvzA.Ovy4MCQywSkoMRRclStW4xAYK7Ivq8RtYw2",
            ),
            (
                "curl -b 'sessionid=^' https://x.example",
                "session-cookie-in-command",
                "aK3mZq8RtYw2LpVx9NbHd5GsQ1eW4rTy",
            ),
            ("the password for ada is ^.", "password-in-prose", "Yv3crw8DaiI9"),
            ("GMAIL_APP_PASSWORD = \"^\"", "app-password", "qzkx wvtp mhgr bdnj"),
            ("  db_password: ^\n", "password-in-base64", "WXYzY3J3OERhaUk5ZA=="),
            ("DD_API_KEY=^", "datadog-key", hex),
            ("$ cat config/master.key\n^", "rails-master-key", hex),
        ] {
            check_in_record(&text.replace('^', secret), &[(rule, secret)]);
        }
        for text in [
            "the password is stored as sha256-hash",
            "git checkout -b auth-token=feature",
            "smtp: this will send mail",
            "the password is validated2",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn what_somebody_is_known_by_is_found() {
        let chars =
            "aK3mZq8RtYw2LpVx9NbHd5GsQ1eW4rTyUc7Jf6XoBi0MvEaK3mZq8RtYw2LpVx9NbHd5GsQ1eW4rTy";
        let of = |n: usize| -> String { chars.chars().cycle().take(n).collect() };
        let web = format!("eyJ{}.{}.{}.{}.{}", of(50), of(342), of(16), of(400), of(22));
        for (text, rule, secret) in [
            ("Set-Cookie: sessionid=^; Path=/; HttpOnly", "session-cookie", of(32)),
            ("-H 'Cookie: theme=dark; auth_token=^'", "session-cookie", of(40)),
            (
                "app:^:19000:0:99999:7:::",
                "password-hash-of-user",
                format!("$6$aK3mZq8R${}", of(60)),
            ),
            ("{\"refresh_token\":\"^\",\"scope\":\"x\"}", "long-token", format!("0.{}", of(700))),
            ("token: ^", "encrypted-web-token", web),
            ("-H \"Authorization: ^\" https://x", "authorization-header-alone", of(40)),
            (
                "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"a\",\"d\":\"^\"}",
                "private-web-key",
                of(43),
            ),
            (
                "MNEMONIC=\"^\"",
                "recovery-phrase",
                "orbit velvet canyon maple drift sugar pencil hover jungle frozen cargo tulip"
                    .into(),
            ),
        ] {
            let text = text.replace('^', &secret);
            check_in_record(&text, &[(rule, &secret)]);
        }
    }

    #[test]
    fn many_in_one_text_cost_in_proportion() {
        // Where each costs as much as all that are before it, this does not come to an end.
        let password = |n: u64| format!("Q{:016x}w", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let passwords: BTreeSet<String> = (1..=3000).map(password).collect();
        let lines: Vec<String> =
            passwords.iter().map(|password| format!("DB_PASSWORD={password}")).collect();
        let found = find(&lines.join("\n")).into_iter().map(|(_, secret)| secret).collect();
        let missed: Vec<&String> = passwords.difference(&found).collect();
        assert!(missed.is_empty(), "{missed:?}");
        check(&"-----BEGIN PRIVATE KEY-----\n".repeat(4000), &[]);
        let key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7".repeat(4);
        let cut = format!("-----BEGIN PRIVATE KEY-----\n{key}\n");
        let whole = format!("{}-----END PRIVATE KEY-----", cut.replace("MII", "MIJ"));
        check(&format!("{cut}{whole}"), &[("private-key", &cut), ("private-key", &whole)]);
    }

    #[test]
    fn what_stands_for_a_secret_is_none() {
        for text in [
            "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: {name: db, key: password}\n",
            "{\"name\":\"password\",\"value\":\"\"}",
            "{\"name\":\"primary_key\",\"value\":\"user_id\"}",
            "setPassword(\"newPassword\")",
            "DB_PASSWORD=\"$(pass show db/1)\"",
            "DB_PASSWORD=\"${PASSWORD_1:?}\"",
            "app --password \"$DB_PASSWORD1\"",
            "**Password**: at least 8 characters",
            "http://localhost:3000,admin@example.org",
            "Cookie: theme=dark; lang=en",
            "\"tokens\": {\"input\": {\"value\": 12345678}}",
            "-----BEGIN PRIVATE KEY-----\nyour key here\n/usr/local/share/something/else\n",
            "cache_key = \"3f786850e387550fdab836ed7e6dc881de23001b\"",
            "key: \"a94a8fe5ccb19ba61c4c0873d391e987982fbbd3\"",
            r#"{"key":"a94a8fe5ccb19ba61c4c0873d391e987982fbbd3"}"#,
            "page_token=CAUQAA1b2c3d4e5f6a7b8c9d0",
            r#"nextToken: "eyJsYXN0S2V5IjoiMTIzNDU2Nzg5MCJ9""#,
            r#""clientSecret": "REPLACE_ME_WITH_SECRET_1""#,
            "curl -u admin:admin http://localhost:8080",
            "the login form password validation2 fails\n",
            "num_pass: 128of130\n",
            "<password>changeme</password>",
            "the token task-abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
            "PASSWORD=$DB_PASSWORD",
            "PASSWORD=${DB_PASSWORD}",
            "PASSWORD=<your password>",
            "PASSWORD=changeme",
            "PASSWORD=xxxxxxxx",
            "PASSWORD=********",
            "password: process.env.DB_PASSWORD",
            "password: string;",
            "password = get_password()",
            "password: z.string().min(8),",
            "postgres://user:password@localhost:5432/db",
            "postgres://postgres:postgres@localhost",
            "https://user:$TOKEN@example.org",
            "https://example.org:8080/a@b",
            "--password-file /run/secrets/db1",
            "a; password = readPassword1(); b",
            "x; password = hash_of_it;",
            "docker login -u me -p $PASSWORD",
            "mytool --token $TOKEN --token-file ./tokens/of-the-first-one-2",
            "mytool --token YOUR_TOKEN_GOES_HERE_NOW",
            "SECRET_KEY = os.environ['DJANGO_SECRET_KEY']",
            "mysql -h host -p main",
            "Authorization: Bearer $TOKEN",
            "Authorization: Bearer <token>",
            "AKIAIOSFODNN7EXAMPLE",
            "re_compile_abcdefghijklmnopqrstuvwx",
            "precious_cio12345678901234567890123456789012",
            "https://us1.api.mailchimp.com/3.0/",
            "hvs.method_of_a_long_class_1",
            "m0-abcdefghijklmnopqrstuvwxyzabcdefghijklmnop",
            "token-abcde:abc, oauth:user, live_streaming1234567890123456789",
            "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn a_private_key_is_found_with_any_line_ends() {
        let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7".repeat(4);
        let key = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----");
        check(&key, &[("private-key", &key)]);
        let json = format!(r#"{{"private_key":{}}}"#, crate::json::quote(&key));
        check(&json, &[("private-key", &key)]);
        check(&crate::json::quote(&json), &[("private-key", &key)]);
        // One that was cut short.
        let cut = key.get(..150).unwrap();
        check(cut, &[("private-key", cut)]);
    }

    #[test]
    fn of_several_finds_in_one_place_one_is_told() {
        check(&format!("GITHUB_TOKEN={KEY}"), &[("github-pat", KEY)]);
        check(&format!("https://x:{KEY}@github.com/a"), &[("github-pat", KEY)]);
        check(
            "key: access_token=q8Zr2LmXw5YbN3cJ7dHs",
            &[("generic-api-key", "q8Zr2LmXw5YbN3cJ7dHs")],
        );
    }
}
