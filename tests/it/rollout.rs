//! Rollouts for tests: files of Codex's threads, written line by line as Codex 0.169.0 writes them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rusqlite::Connection;
use serde_json::{Value, json};

pub(crate) const THREAD: &str = "019f0000-0000-7000-8000-00000000000a";
pub(crate) const SECOND: &str = "019f0000-0000-7000-8000-00000000000b";
pub(crate) const THIRD: &str = "019f0000-0000-7000-8000-00000000000c";
pub(crate) const CHILD: &str = "019f0000-0000-7000-8000-00000000000f";

/// A rollout while it is put together: its bytes and the ordinal of its next line.
#[derive(Clone)]
pub(crate) struct Rollout {
    pub(crate) bytes: String,
    pub(crate) next: u64,
    pub(crate) has_ordinals: bool,
}

impl Rollout {
    /// Begins a thread.
    pub(crate) fn first(thread: &str) -> Self {
        let mut rollout = Self { bytes: String::new(), next: 0, has_ordinals: true };
        rollout.meta(thread, &json!({}));
        rollout.item("developer", "rules");
        rollout
    }

    /// Begins a file that goes on from a place in another.
    pub(crate) fn behind(
        thread: &str,
        file: &str,
        (ordinal, bytes): (u64, u64),
        more: &Value,
    ) -> Self {
        let mut rollout = Self { bytes: String::new(), next: ordinal, has_ordinals: true };
        let base = json!({ "thread_id": file, "end_ordinal_exclusive": ordinal, "end_byte_offset": bytes });
        let mut fields = json!({ "history_base": base });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        rollout.meta(thread, &fields);
        rollout
    }

    pub(crate) fn meta(&mut self, thread: &str, more: &Value) {
        let mut meta = json!({ "id": thread, "session_id": thread, "cwd": "/w", "history_mode": "paginated", "cli_version": "1" });
        meta.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.line("session_meta", meta);
    }

    pub(crate) fn line(&mut self, kind: &str, payload: Value) {
        let second = self.next;
        let mut line = json!({ "timestamp": format!("2026-08-01T10:{:02}:{:02}.000Z", second / 60, second % 60) });
        if self.has_ordinals {
            line["ordinal"] = json!(self.next);
        }
        line["type"] = json!(kind);
        line["payload"] = payload;
        self.bytes += &(line.to_string() + "\n");
        self.next += 1;
    }

    pub(crate) fn item(&mut self, role: &str, words: &str) {
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        let content = json!([{ "type": kind, "text": words }]);
        self.line("response_item", json!({ "type": "message", "role": role, "content": content }));
    }

    pub(crate) fn event(&mut self, payload: Value) {
        self.line("event_msg", payload);
    }

    pub(crate) fn turn(&mut self, words: &str) {
        self.event(json!({ "type": "task_started", "turn_id": words }));
        self.line("turn_context", json!({ "cwd": "/w" }));
        self.item("user", words);
        self.item("assistant", &format!("to {words}"));
        self.event(json!({ "type": "task_complete", "turn_id": words }));
    }

    /// Adds a call and a long answer of its tool: 100,000 characters.
    pub(crate) fn long_answer(&mut self) {
        self.line(
            "response_item",
            json!({ "type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c" }),
        );
        let output = "word ".repeat(20_000);
        self.line(
            "response_item",
            json!({ "type": "function_call_output", "call_id": "c", "output": output }),
        );
    }

    /// Returns the place behind the last line.
    pub(crate) fn end(&self) -> (u64, u64) {
        (self.next, self.bytes.len() as u64)
    }
}

/// A home with Codex's folder in it.
pub(crate) struct Home(pub(crate) tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn codex(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(".codex")
    }

    /// Returns where a file lies that was begun in an hour.
    pub(crate) fn path(&self, hour: u32, ids: &str) -> PathBuf {
        let day = self.codex().join("sessions/2026/08/01");
        day.join(format!("rollout-2026-08-01T{hour:02}-00-00-{ids}.jsonl"))
    }

    pub(crate) fn write(&self, hour: u32, ids: &str, rollout: &Rollout) -> PathBuf {
        let path = self.path(hour, ids);
        write(&path, rollout.bytes.as_bytes());
        path
    }
}

pub(crate) fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Makes the index of a Codex: the file that it reads for a thread, and up to which byte it has listed that.
pub(crate) fn index(codex: &Path, file: &Path, listed: u64) {
    fs::create_dir_all(codex.join("thread-writer-locks")).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let ids = &name["rollout-2026-08-01T10-00-00-".len()..name.len() - ".jsonl".len()];
    let (thread, own) = ids.split_once('_').unwrap_or((ids, ids));
    let state = Connection::open(codex.join("state_5.sqlite")).unwrap();
    state.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS threads (id TEXT PRIMARY KEY, rollout_path TEXT NOT NULL, title TEXT)").unwrap();
    let row = (thread, file.to_str().unwrap());
    state.execute("REPLACE INTO threads VALUES (?1, ?2, 'its title')", row).unwrap();
    let list = Connection::open(codex.join("thread_history_1.sqlite")).unwrap();
    list.execute_batch("CREATE TABLE IF NOT EXISTS thread_history_projection_state (thread_id TEXT PRIMARY KEY, next_rollout_byte_offset INTEGER NOT NULL)").unwrap();
    list.execute("REPLACE INTO thread_history_projection_state VALUES (?1, ?2)", (own, listed))
        .unwrap();
}

/// Returns the file that the index of a Codex names for a thread.
pub(crate) fn indexed(codex: &Path, thread: &str) -> PathBuf {
    let state = Connection::open(codex.join("state_5.sqlite")).unwrap();
    let path = "SELECT rollout_path FROM threads WHERE id = ?1";
    PathBuf::from(state.query_row(path, [thread], |row| row.get::<_, String>(0)).unwrap())
}

pub(crate) fn later(file: &str) -> String {
    format!("{THREAD}_{file}")
}

/// A thread of three files: one two three four; one two five six; one two five seven.
pub(crate) struct Thread {
    pub(crate) home: Home,
    pub(crate) files: [PathBuf; 3],
}

impl Thread {
    pub(crate) fn new() -> Self {
        let mut first = Rollout::first(THREAD);
        first.turn("one");
        first.turn("two");
        let two = first.end();
        first.turn("three");
        first.turn("four");
        let mut second = Rollout::behind(THREAD, THREAD, two, &json!({}));
        second.turn("five");
        let five = second.end();
        second.turn("six");
        let mut third = Rollout::behind(THREAD, SECOND, five, &json!({}));
        third.turn("seven");
        let home = Home::new();
        let files = [
            home.write(10, THREAD, &first),
            home.write(11, &later(SECOND), &second),
            home.write(12, &later(THIRD), &third),
        ];
        Self { home, files }
    }

    /// The same without its third file.
    pub(crate) fn of_two() -> Self {
        let thread = Self::new();
        fs::remove_file(&thread.files[2]).unwrap();
        thread
    }
}
