//! Planted secrets: how many of those that are hidden in records are found, and how many of what only looks like one.
//!
//! Secrets have the shape that their issuers give them and chance for their characters; no rule's own examples are among them.

use super::Rules;
use crate::json::quote;

/// How many records there are of each kind.
const EACH: usize = 20;

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const CODE: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const SAFE: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const WORDY: &str = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789!%^*_+-~.";

/// Chance, the same each time.
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % below
    }

    fn of(&mut self, alphabet: &str, length: usize) -> String {
        let all: Vec<char> = alphabet.chars().collect();
        (0..length).map(|_| all[self.next(all.len())]).collect()
    }

    fn one<'a>(&mut self, several: &[&'a str]) -> &'a str {
        several[self.next(several.len())]
    }

    /// Returns a password as a generator of passwords makes it: letters of both kinds, a digit at least.
    fn password(&mut self) -> String {
        loop {
            let length = 10 + self.next(10);
            let found = self.of(WORDY, length);
            let starts = found.starts_with(|c: char| c.is_ascii_alphanumeric());
            if starts && found.bytes().any(|byte| byte.is_ascii_digit()) {
                return found;
            }
        }
    }

    fn base64(&mut self, bytes: usize) -> String {
        let end = ["", "==", "="][bytes % 3];
        let code = self.of(CODE, (bytes * 8).div_ceil(6));
        format!("{code}{end}")
    }
}

/// A secret by which its service tells it, whatever stands around it.
fn telling(chance: &mut Chance, kind: usize) -> Option<String> {
    Some(match kind {
        0 => format!("AKIA{}", chance.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
        1 => format!("ghp_{}", chance.of(ALNUM, 36)),
        2 => format!("github_pat_{}_{}", chance.of(ALNUM, 22), chance.of(ALNUM, 59)),
        3 => format!("glpat-{}", chance.of(ALNUM, 20)),
        4 => format!(
            "xoxb-{}-{}-{}",
            chance.of("123456789", 12),
            chance.of("123456789", 12),
            chance.of(ALNUM, 24)
        ),
        5 => format!("sk_live_{}", chance.of(ALNUM, 24)),
        6 => format!("sk-proj-{}T3BlbkFJ{}", chance.of(SAFE, 74), chance.of(SAFE, 74)),
        7 => format!("sk-ant-api03-{}AA", chance.of(SAFE, 93)),
        8 => format!("sk-ant-oat01-{}AA", chance.of(SAFE, 93)),
        9 => format!("AIza{}", chance.of(SAFE, 35)),
        10 => format!("GOCSPX-{}", chance.of(SAFE, 28)),
        11 => format!("npm_{}", chance.of(ALNUM, 36)),
        12 => format!("pypi-AgEIcHlwaS5vcmc{}", chance.of(SAFE, 120)),
        13 => {
            format!("hf_{}", chance.of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 34))
        }
        14 => format!("SG.{}.{}", chance.of(SAFE, 22), chance.of(SAFE, 43)),
        15 => format!("SK{}", chance.of(HEX, 32)),
        16 => format!("dop_v1_{}", chance.of(HEX, 64)),
        17 => format!("shpat_{}", chance.of(HEX, 32)),
        18 => format!("hvs.{}", chance.of(SAFE, 95)),
        19 => format!("{}:AA{}", chance.of("123456789", 10), chance.of(SAFE, 33)),
        20 => format!("eyJhbGciOiJIUzI1NiJ9.eyJ{}.{}", chance.of(ALNUM, 60), chance.of(SAFE, 43)),
        21 => format!("gsk_{}", chance.of(ALNUM, 52)),
        22 => format!("sk-or-v1-{}", chance.of(HEX, 64)),
        23 => {
            let kind = chance.one(&["RSA ", "EC ", "OPENSSH ", ""]);
            let lines: Vec<String> =
                (0..6 + chance.next(12)).map(|_| chance.of(CODE, 64)).collect();
            format!(
                "-----BEGIN {kind}PRIVATE KEY-----\n{}\n-----END {kind}PRIVATE KEY-----",
                lines.join("\n")
            )
        }
        _ => return None,
    })
}

/// A secret that only the words around it tell, within them.
fn told(chance: &mut Chance, kind: usize) -> Option<(String, String)> {
    let password = chance.password();
    let coded = password.replace('%', "%25").replace('^', "%5E");
    Some(match kind {
        0 => {
            let scheme =
                chance.one(&["postgres", "postgresql", "mysql", "mongodb+srv", "amqp", "rediss"]);
            let user = chance.one(&["app", "svc_orders", "admin", "root"]);
            (
                coded.clone(),
                format!("{scheme}://{user}:{coded}@db-{}.internal:5432/main", chance.of(LOWER, 4)),
            )
        }
        1 => (coded.clone(), format!("redis://:{coded}@cache:6379/0")),
        2 => (coded.clone(), format!("git clone https://ada:{coded}@git.example.net/a/b.git")),
        3 => (
            password.clone(),
            format!(
                "{}={password}",
                chance.one(&[
                    "DB_PASSWORD",
                    "PGPASSWORD",
                    "MYSQL_ROOT_PASSWORD",
                    "SMTP_PASS",
                    "REDIS_PASSWORD"
                ])
            ),
        ),
        4 => (
            password.clone(),
            format!(
                "  {}: {password}\n  port: 5432",
                chance.one(&["password", "db_password", "passwd"])
            ),
        ),
        5 => (
            password.clone(),
            format!(
                "{} = \"{password}\"",
                chance.one(&["password", "dbPassword", "ADMIN_PASSWORD", "smtp_pass"])
            ),
        ),
        6 => (
            password.clone(),
            format!(
                r#"{{"user":"app","{}":"{password}"}}"#,
                chance.one(&["password", "passphrase", "db_password"])
            ),
        ),
        7 => (password.clone(), format!("deploy --user ada --password {password} --to prod")),
        8 => (password.clone(), format!("mysqldump -h db -u root -p{password} main > dump.sql")),
        9 => {
            let token = chance.of(ALNUM, 40);
            (
                token.clone(),
                format!("curl -s https://api.example.net/v1 -H 'Authorization: Bearer {token}'"),
            )
        }
        10 => {
            let token = chance.base64(24);
            (token.clone(), format!("> Authorization: Basic {token}\n> Accept: */*"))
        }
        11 => {
            let key = chance.base64(30);
            (
                key.clone(),
                format!(
                    "{} = {key}",
                    chance.one(&[
                        "aws_secret_access_key",
                        "AWS_SECRET_ACCESS_KEY",
                        "secret_access_key"
                    ])
                ),
            )
        }
        12 => {
            let key = chance.of(HEX, 32);
            (
                key.clone(),
                format!(
                    "{}={key}",
                    chance.one(&[
                        "STEAM_API_KEY",
                        "WEATHER_KEY",
                        "MAPS_API_KEY",
                        "APP_SECRET",
                        "AUTH_TOKEN"
                    ])
                ),
            )
        }
        13 => {
            let key = chance.of(SAFE, 40);
            (
                key.clone(),
                format!(
                    "const {} = '{key}';",
                    chance.one(&["apiKey", "clientSecret", "accessToken", "authToken"])
                ),
            )
        }
        14 => {
            let key = chance.base64(64);
            (
                key.clone(),
                format!(
                    "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={key};EndpointSuffix=core.windows.net"
                ),
            )
        }
        15 => {
            let key = chance.of(ALNUM, 32);
            (key.clone(), format!(r#"{{"client_id":"web","client_secret":"{key}"}}"#))
        }
        16 => (password.clone(), format!("machine git.example.net login ada password {password}")),
        _ => return None,
    })
}

/// What looks like a secret and is none.
fn harmless(chance: &mut Chance, kind: usize) -> Option<String> {
    let uuid = |chance: &mut Chance| {
        let part = |chance: &mut Chance, n| chance.of(HEX, n);
        format!(
            "{}-{}-4{}-a{}-{}",
            part(chance, 8),
            part(chance, 4),
            part(chance, 3),
            part(chance, 3),
            part(chance, 12)
        )
    };
    Some(match kind {
        0 => format!("session {} of {}", uuid(chance), uuid(chance)),
        1 => format!("commit {}\nAuthor: Ada <ada@example.org>\n\n    index {}..{}", chance.of(HEX, 40), chance.of(HEX, 7), chance.of(HEX, 7)),
        2 => format!(r#""node_modules/key": {{"resolved": "https://example.org/key-1.0.tgz", "integrity": "sha512-{}"}}"#, chance.base64(64)),
        3 => format!("[[package]]\nname = \"secrecy\"\nversion = \"0.8.0\"\nchecksum = \"{}\"", chance.of(HEX, 64)),
        4 => format!("data:image/png;base64,iVBORw0KGgo{}", chance.base64(900)),
        5 => format!("{}=${}", chance.one(&["PASSWORD", "API_KEY", "TOKEN"]), chance.one(&["DB_PASSWORD", "{API_KEY}", "(pass show x)"])),
        6 => format!("{}: {}", chance.one(&["password", "api_key", "token"]), chance.one(&["<your key here>", "process.env.API_KEY", "xxxxxxxxxxxxxxxx", "changeme", "YOUR_API_KEY", "string", "${{ secrets.TOKEN }}", "os.environ['KEY']"])),
        7 => format!("aws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        8 => format!("!function(e,t){{var n=t.key||e.keyCode;{0}.token=function(a,{1}){{return {1}.access({0},n)}}}}(window)", chance.of("abcdefgh", 1), chance.of("ijklmnop", 1)),
        9 => format!(r#"{{"usage":{{"input_tokens":{},"cache_creation_input_tokens":{}}},"id":"msg_01{}"}}"#, chance.next(99999), chance.next(99999), chance.of(ALNUM, 22)),
        10 => format!(r#"{{"type":"tool_use","id":"toolu_01{}","name":"Read","input":{{"file_path":"/project/src/auth/token.rs"}}}}"#, chance.of(ALNUM, 22)),
        11 => format!(r#"{{"type":"thinking","thinking":"The key to this is the token","signature":"{}"}}"#, chance.base64(300)),
        12 => format!("FROM debian@sha256:{}\nENV KEY_FILE=/run/secrets/key", chance.of(HEX, 64)),
        13 => "fn password(&self) -> &str { &self.password }\nlet token = lexer.next_token();\nassert_eq!(token.kind, TokenKind::Ident);".to_owned(),
        14 => format!("etag: W/\"{}\"\nx-request-id: req_011C{}", chance.of(HEX, 32), chance.of(ALNUM, 20)),
        15 => "psql postgres://postgres:postgres@localhost:5432/test\nhttps://user:password@example.com/".to_owned(),
        16 => format!("keyboard_shortcut: ctrl+{}, primary_key: user_id, sort_key=created_at_desc", chance.of(LOWER, 1)),
        17 => "The `Authorization: Bearer <token>` header carries the access token that /oauth/token returned".to_owned(),
        18 => format!("  key: {}\n  restore-keys: linux-cargo-", chance.one(&["linux-cargo-${{ hashFiles('**/Cargo.lock') }}", "${{ runner.os }}-node"])),
        19 => format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{} ada@host", chance.of(CODE, 43)),
        20 => format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----", chance.of(CODE, 400)),
        21 => format!("test auth::tests::rejects_a_bad_token_{} ... ok\ntest keys::password_is_hashed ... ok", chance.next(99)),
        22 => format!("GET /v1/items?page_token=2&key=name 200 {}ms", chance.next(999)),
        _ => return None,
    })
}

/// Puts a text into a record in one of the ways in which agents keep it.
fn record(chance: &mut Chance, text: &str) -> String {
    let text = quote(&format!(
        "{}\n{text}\n{}",
        chance.one(&["$ cat .env", "Here it is:", "1\tport=80"]),
        chance.one(&["done", "", "exit 0"])
    ));
    match chance.next(5) {
        0 => {
            format!(r#"{{"type":"user","uuid":"a","message":{{"role":"user","content":{text}}}}}"#)
        }
        1 => format!(
            r#"{{"type":"user","uuid":"a","message":{{"content":[{{"type":"tool_result","content":{text}}}]}},"toolUseResult":{{"stdout":{text}}}}}"#
        ),
        2 => {
            let input = quote(&format!(r#"{{"command":{text}}}"#));
            format!(
                r#"{{"type":"response_item","payload":{{"type":"function_call","arguments":{input}}}}}"#
            )
        }
        3 => format!(r#"{{"type":"user","isCompactSummary":true,"message":{{"content":{text}}}}}"#),
        _ => format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":{text}}}]}}}}"#
        ),
    }
}

#[test]
fn most_of_what_is_planted_is_found_and_little_else() {
    let rules = Rules::get();
    let mut chance = Chance(0x5eed_cafe);
    let (mut planted, mut hits, mut alarms) = (0, 0, 0);
    let mut missed = Vec::new();
    let mut look = |chance: &mut Chance, text: &str, secret: Option<&str>, kind: String| {
        let record = record(chance, text);
        let found = rules.find(record.as_bytes());
        assert_eq!(rules.first(record.as_bytes()).is_some(), !found.is_empty(), "{record}");
        let is_hit = |found: &str| secret.is_some_and(|secret| found == secret);
        let hit = found.iter().any(|one| is_hit(&one.secret));
        planted += usize::from(secret.is_some());
        hits += usize::from(hit);
        let others: Vec<_> = found.iter().filter(|one| !is_hit(&one.secret)).collect();
        alarms += others.len();
        if secret.is_some() && !hit || !others.is_empty() {
            let others: Vec<_> =
                others.iter().map(|one| (rules.name(one.rule), &one.secret)).collect();
            missed.push(format!("{kind}: {text:?}: {others:?}"));
        }
    };
    for _ in 0..EACH {
        for kind in 0.. {
            let Some(secret) = telling(&mut chance, kind) else { break };
            let around = chance.one(&["", "KEY=", "Use ", "token: ", "\""]);
            let end = if around == "\"" { "\"" } else { "" };
            look(
                &mut chance,
                &format!("{around}{secret}{end}"),
                Some(&secret),
                format!("telling {kind}"),
            );
        }
        for kind in 0.. {
            let Some((secret, text)) = told(&mut chance, kind) else { break };
            look(&mut chance, &text, Some(&secret), format!("told {kind}"));
        }
        for kind in 0.. {
            let Some(text) = harmless(&mut chance, kind) else { break };
            look(&mut chance, &text, None, format!("harmless {kind}"));
        }
    }
    let number = |n: usize| f64::from(u32::try_from(n).unwrap());
    let share = |part: usize, whole: usize| number(part) / number(whole);
    let (precision, recall) = (share(hits, hits + alarms), share(hits, planted));
    println!("{planted} planted, {hits} found, {alarms} false alarms");
    println!("precision {precision:.3}, recall {recall:.3}");
    for one in missed.iter().take(60) {
        println!("  {}", one.chars().take(300).collect::<String>());
    }
    assert!(precision >= 0.97 && recall >= 0.95, "{precision} {recall}");
}
