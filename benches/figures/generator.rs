//! Generates sessions in the format of Claude Code from a seed and real source text.
//!
//! The text comes from the crates that this package is built from. Repetition is calibrated on 25 MB of real sessions: a line
//! there has a mean of 4.2 KB and a median of 1.1 KB; 76% of the bytes are in strings of 256 bytes or more; 8% of all bytes
//! repeat a string of the same line, 18% one of the same file, 2% one of another file. [`Repeats`] measures these shares in the
//! generated sessions.
//!
//! Invariant: the output depends on nothing but the seed, the size and the sources.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

/// Maximum amount of source text, in bytes.
const ENOUGH: usize = 64 << 20;

/// A pseudorandom number generator: splitmix64.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below a bound.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }

    /// Returns true with a probability of `percent` in a hundred.
    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns a number of at least `least`: mostly of that magnitude, rarely many times larger.
    fn long_tailed(&mut self, least: usize, most: usize) -> usize {
        let mut n = least + self.below(least);
        while n < most && self.percent(45) {
            n += n / 2 + self.below(n);
        }
        n.min(most)
    }

    pub(crate) fn uuid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        let (time, high) = (a >> 32, (a >> 16) & 0xffff);
        let (version, variant) = (a & 0xfff, (b >> 48) & 0x3fff | 0x8000);
        format!("{time:08x}-{high:04x}-4{version:03x}-{variant:04x}-{:012x}", b & 0xffff_ffff_ffff)
    }

    /// Returns random letters and digits.
    fn noise(&mut self, length: usize) -> String {
        const LETTERS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        (0..length).map(|_| char::from(LETTERS[self.below(64)])).collect()
    }
}

/// Real text for generated sessions.
pub(crate) struct Sources {
    code: Vec<(String, String)>,
    words: Vec<String>,
}

impl Sources {
    /// Reads the sources of the crates that this package is built from.
    pub(crate) fn read() -> Self {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["metadata", "--format-version", "1", "--locked"]);
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        let metadata: Value = serde_json::from_slice(&cargo.output().unwrap().stdout).unwrap();
        let manifests = metadata["packages"].as_array().unwrap().iter();
        let mut folders: Vec<PathBuf> = manifests
            .filter_map(|package| {
                Some(Path::new(package["manifest_path"].as_str()?).parent()?.into())
            })
            .collect();
        folders.sort();
        let mut sources = Self { code: Vec::new(), words: Vec::new() };
        let (mut size, mut ahead) = (0, folders);
        ahead.reverse();
        while let Some(path) = ahead.pop().filter(|_| size < ENOUGH) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                let mut inner: Vec<_> =
                    fs::read_dir(&path).unwrap().map(|child| child.unwrap().path()).collect();
                inner.sort();
                ahead.extend(inner.into_iter().rev());
            }
            let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
            if !matches!(kind, "rs" | "c" | "h" | "md" | "toml" | "txt") || !path.is_file() {
                continue;
            }
            let Ok(text) = fs::read_to_string(&path) else { continue };
            size += text.len();
            if kind == "md" {
                sources
                    .words
                    .extend(text.split("\n\n").filter(|part| part.len() > 80).map(str::to_owned));
            }
            // Sessions work on files of a readable size, so large ones are split.
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let cut = rest.char_indices().map(|(at, _)| at).find(|&at| at >= 60_000);
                let cut = cut.and_then(|at| rest[at..].find('\n').map(|end| at + end + 1));
                let (part, behind) = rest.split_at(cut.unwrap_or(rest.len()));
                let n = sources.code.len();
                sources.code.push((format!("/srv/project/{n}/{name}"), part.to_owned()));
                rest = behind;
            }
        }
        assert!(size > 1 << 20, "the crates that the package is built from are not there");
        sources
    }

    /// Returns prose of about `length` bytes.
    fn prose(&self, chance: &mut Chance, length: usize) -> String {
        let mut text = String::new();
        while text.len() < length {
            let part = &self.words[chance.below(self.words.len())];
            let end = part.char_indices().map(|(at, _)| at).find(|&at| at >= length - text.len());
            text.push_str(&part[..end.unwrap_or(part.len())]);
            text.push_str("\n\n");
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// A file that a session works on.
struct Work {
    path: String,
    lines: Vec<String>,
}

/// The state of writing a session.
struct Writing<'a> {
    sources: &'a Sources,
    chance: Chance,
    file: BufWriter<fs::File>,
    written: u64,
    session: String,
    last: Option<String>,
    time: i64,
    works: Vec<Work>,
}

/// Writes session files of `bytes` bytes in total into a folder. Returns their paths and their actual size.
pub(crate) fn write(
    sources: &Sources,
    folder: &Path,
    seed: u64,
    files: u64,
    bytes: u64,
) -> (Vec<PathBuf>, u64) {
    let mut paths = Vec::new();
    let mut total = 0;
    for n in 0..files {
        let mut chance = Chance::new(seed.wrapping_mul(1_000_003).wrapping_add(n));
        let session = chance.uuid();
        let path = folder.join(format!("{session}.jsonl"));
        total += session_file(sources, chance, &session, &path, |written, _| {
            written >= bytes * (n + 1) / files - bytes * n / files
        });
        paths.push(path);
    }
    (paths, total)
}

/// Writes a session until `done` returns true for its bytes and records. Returns its size in bytes.
pub(crate) fn session_file(
    sources: &Sources,
    chance: Chance,
    session: &str,
    path: &Path,
    done: impl Fn(u64, u64) -> bool,
) -> u64 {
    let mut writing = Writing {
        sources,
        chance,
        file: BufWriter::new(fs::File::create(path).unwrap()),
        written: 0,
        session: session.to_owned(),
        last: None,
        time: 1_750_000_000_000,
        works: Vec::new(),
    };
    let mut records = 0;
    while !done(writing.written, records) {
        records += writing.turn();
    }
    writing.file.flush().unwrap();
    writing.written
}

impl Writing<'_> {
    fn line(&mut self, record: &Value) {
        let line = record.to_string();
        self.written += line.len() as u64 + 1;
        writeln!(self.file, "{line}").unwrap();
    }

    fn now(&mut self) -> String {
        self.time += 200 + i64::try_from(self.chance.below(9000)).unwrap();
        let (seconds, millis) = (self.time / 1000, self.time % 1000);
        let (days, second) = (seconds / 86_400 - 20_254, seconds % 86_400);
        let (month, day) = (6 + days / 28, 1 + days % 28);
        let (year, month) = (2025 + (month - 1) / 12, 1 + (month - 1) % 12);
        let (hour, minute) = (second / 3600, second / 60 % 60);
        format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}.{millis:03}Z", second % 60)
    }

    /// Writes a record of the conversation: the common fields and its own.
    fn record(&mut self, kind: &str, own: Value) {
        let uuid = self.chance.uuid();
        let timestamp = self.now();
        let mut record = json!({
            "parentUuid": self.last,
            "isSidechain": false,
            "userType": "external",
            "cwd": "/srv/project",
            "sessionId": self.session,
            "version": "2.1.20",
            "gitBranch": "main",
            "type": kind,
        });
        let Value::Object(own) = own else { panic!("a record's own fields are an object") };
        let fields = record.as_object_mut().unwrap();
        fields.extend(own);
        fields.insert("uuid".into(), json!(uuid));
        fields.insert("timestamp".into(), json!(timestamp));
        self.line(&record);
        self.last = Some(uuid);
    }

    fn assistant(&mut self, message: &str, block: Value) {
        let (input, read) = (self.chance.below(9), 20_000 + self.chance.below(90_000));
        let request = format!("req_011{}", self.chance.noise(21));
        let usage = json!({
            "input_tokens": input,
            "cache_creation_input_tokens": self.chance.below(4000),
            "cache_read_input_tokens": read,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": self.chance.below(900),
            "service_tier": "standard",
        });
        let message = json!({
            "model": "claude-opus-4-5-20251101", "id": message, "type": "message", "role": "assistant",
            "content": [block], "stop_reason": null, "stop_sequence": null, "usage": usage,
        });
        self.record("assistant", json!({"message": message, "requestId": request}));
    }

    fn result(&mut self, call: &str, content: &str, result: Value) {
        let block = json!({"tool_use_id": call, "type": "tool_result", "content": content});
        let message = json!({"role": "user", "content": [block]});
        self.record("user", json!({"message": message, "toolUseResult": result}));
    }

    fn progress(&mut self, call: &str, data: Value) {
        self.record("progress", json!({"data": data, "parentToolUseID": call, "toolUseID": call}));
    }

    /// Returns the index of a file to work on, mostly one that the session already knows.
    fn work(&mut self) -> usize {
        if self.works.is_empty() || self.works.len() < 40 && self.chance.percent(35) {
            let (path, text) = &self.sources.code[self.chance.below(self.sources.code.len())];
            let lines = text.lines().map(str::to_owned).collect();
            self.works.push(Work { path: path.clone(), lines });
            return self.works.len() - 1;
        }
        // Recent files are in use; older ones are rarely touched again.
        let back = self.chance.below(6).min(self.works.len() - 1);
        self.works.len() - 1 - back
    }

    /// Writes a turn: the user's prompt and the assistant's work. Returns its number of records.
    fn turn(&mut self) -> u64 {
        let mut records = 1;
        let length = if self.chance.percent(4) { 6000 } else { 40 };
        let length = self.chance.long_tailed(length, 60_000);
        let text = self.sources.prose(&mut self.chance, length);
        self.record("user", json!({"message": {"role": "user", "content": text}}));
        if self.chance.percent(60) {
            let snapshot = json!({
                "type": "file-history-snapshot", "messageId": self.last, "isSnapshotUpdate": false,
                "snapshot": {"messageId": self.last, "trackedFileBackups": {}, "timestamp": self.now()},
            });
            self.line(&snapshot);
            records += 1;
        }
        for _ in 0..2 + self.chance.below(14) {
            records += self.step();
        }
        let id = format!("msg_01{}", self.chance.noise(22));
        let length = self.chance.long_tailed(200, 4000);
        let text = self.sources.prose(&mut self.chance, length);
        self.assistant(&id, json!({"type": "text", "text": text}));
        let took = self.chance.below(90_000);
        self.record("system", json!({"subtype": "turn_duration", "durationMs": took}));
        records + 2
    }

    /// Writes one message of the assistant, with a call and its result.
    fn step(&mut self) -> u64 {
        let mut records = 2;
        let id = format!("msg_01{}", self.chance.noise(22));
        let call = format!("toolu_01{}", self.chance.noise(22));
        if self.chance.percent(50) {
            let length = self.chance.long_tailed(120, 9000);
            let text = self.sources.prose(&mut self.chance, length);
            let signature = self.chance.noise(300 + length / 2);
            self.assistant(
                &id,
                json!({"type": "thinking", "thinking": text, "signature": signature}),
            );
            records += 1;
        }
        if self.chance.percent(40) {
            let length = self.chance.long_tailed(60, 1500);
            let text = self.sources.prose(&mut self.chance, length);
            self.assistant(&id, json!({"type": "text", "text": text}));
            records += 1;
        }
        let use_of = |name: &str, input: Value| json!({"type": "tool_use", "id": call, "name": name, "input": input});
        let work = self.work();
        let path = self.works[work].path.clone();
        let count = self.works[work].lines.len();
        let tool = self.chance.below(100);
        if tool < 40 {
            let length = self.chance.long_tailed(70, 1500).min(count);
            let from = self.chance.below(count - length + 1);
            let lines = &self.works[work].lines[from..from + length];
            let plain = lines.join("\n");
            let mut numbered = String::new();
            for (n, line) in (from + 1..).zip(lines) {
                writeln!(numbered, "{n:>6}→{line}").unwrap();
            }
            self.assistant(
                &id,
                use_of("Read", json!({"file_path": path, "offset": from + 1, "limit": length})),
            );
            records += self.hook(&call);
            let file = json!({"filePath": path, "content": plain, "numLines": length, "startLine": from + 1, "totalLines": count});
            self.result(&call, &numbered, json!({"type": "text", "file": file}));
        } else if tool < 77 {
            let command = format!("cargo test {}", self.chance.noise(6));
            self.assistant(
                &id,
                use_of("Bash", json!({"command": command, "description": "Runs the tests"})),
            );
            records += self.hook(&call);
            let length = self.chance.long_tailed(30, 2500).min(count);
            let from = self.chance.below(count - length + 1);
            let out = self.works[work].lines[from..from + length].join("\n");
            let whole =
                json!({"stdout": out, "stderr": "", "interrupted": false, "isImage": false});
            self.result(&call, &out, whole);
        } else if tool < 90 {
            let at = self.chance.below(count);
            let end = count.min(at + 3);
            let original = self.works[work].lines.join("\n");
            let old = self.works[work].lines[at..end].join("\n");
            let new = format!("{old} // {}", self.chance.noise(8));
            let input = json!({"file_path": path, "old_string": old, "new_string": new});
            self.assistant(&id, use_of("Edit", input));
            records += self.hook(&call);
            let patch = json!([{"oldStart": at + 1, "oldLines": end - at, "newStart": at + 1, "newLines": end - at, "lines": [format!("-{old}"), format!("+{new}")]}]);
            let result = json!({"filePath": path, "oldString": old, "newString": new, "originalFile": original, "structuredPatch": patch, "userModified": false, "replaceAll": false});
            // Often the file stays as it was, as after an edit that failed or was undone, so that results repeat earlier ones.
            if self.chance.percent(35) {
                self.works[work].lines.splice(at..end, new.lines().map(str::to_owned));
            }
            self.result(&call, &format!("The file {path} has been updated successfully."), result);
        } else if tool < 96 {
            let input = json!({"pattern": "fn ", "path": path});
            self.assistant(&id, use_of("Grep", input));
            records += self.hook(&call);
            let step = 7 + self.chance.below(20);
            let found: Vec<&str> =
                self.works[work].lines.iter().step_by(step).map(String::as_str).collect();
            let (found, n) = (found.join("\n"), found.len());
            let result = json!({"mode": "content", "numFiles": 0, "filenames": [], "content": found, "numLines": n});
            self.result(&call, &found, result);
        } else {
            records += self.agent(&id, &call);
        }
        records
    }

    fn hook(&mut self, call: &str) -> u64 {
        let happens = self.chance.percent(60);
        if happens {
            self.progress(call, json!({"type": "hook_progress", "hookEvent": "PreToolUse", "hookName": "PreToolUse:Read", "command": "callback"}));
        }
        happens.into()
    }

    /// Writes a sub-agent's work: its progress records. Some of them repeat all of its last messages.
    fn agent(&mut self, id: &str, call: &str) -> u64 {
        let length = self.chance.long_tailed(400, 5000);
        let prompt = self.sources.prose(&mut self.chance, length);
        let input =
            json!({"description": "Looks for it", "prompt": prompt, "subagent_type": "Explore"});
        self.assistant(id, json!({"type": "tool_use", "id": call, "name": "Task", "input": input}));
        let count = 3 + self.chance.below(12);
        let mut said: Vec<Value> = Vec::new();
        for _ in 0..count {
            let work = self.work();
            let lines = &self.works[work].lines;
            let length = self.chance.long_tailed(20, 250).min(lines.len());
            let from = self.chance.below(lines.len() - length + 1);
            let message = json!({"type": "user", "message": {"role": "user", "content": lines[from..from + length].join("\n")}, "uuid": self.chance.uuid()});
            said.push(message.clone());
            let heard = if self.chance.percent(45) { said.clone() } else { Vec::new() };
            let data = json!({"type": "agent_progress", "message": message, "normalizedMessages": heard, "prompt": prompt, "agentId": "a1"});
            self.progress(call, data);
        }
        let length = self.chance.long_tailed(800, 9000);
        let text = self.sources.prose(&mut self.chance, length);
        let result = json!({"status": "completed", "prompt": prompt, "agentId": "a1", "content": [{"type": "text", "text": text}]});
        self.result(call, &text, result);
        count as u64
    }
}

/// How much of session files is repeated.
#[derive(Default)]
pub(crate) struct Repeats {
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
    pub(crate) long: u64,
    pub(crate) line: u64,
    pub(crate) file: u64,
    pub(crate) other: u64,
}

impl Repeats {
    /// Measures session files.
    pub(crate) fn of(paths: &[PathBuf]) -> Self {
        let mut repeats = Self::default();
        let mut everywhere: BTreeSet<[u8; 32]> = BTreeSet::new();
        for path in paths {
            let mut here = BTreeSet::new();
            let content = fs::read(path).unwrap();
            for line in content.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
                repeats.bytes += line.len() as u64 + 1;
                repeats.lines += 1;
                let mut same = BTreeSet::new();
                for found in undertext::model::line::split(line) {
                    for span in found.shape.map(|shape| shape.texts).unwrap_or_default() {
                        let text = &found.bytes[span];
                        let (id, length) = (*blake3::hash(text).as_bytes(), text.len() as u64);
                        repeats.long += length;
                        if !same.insert(id) {
                            repeats.line += length;
                        } else if !here.insert(id) {
                            repeats.file += length;
                        } else if !everywhere.insert(id) {
                            repeats.other += length;
                        }
                    }
                }
            }
        }
        repeats
    }
}
