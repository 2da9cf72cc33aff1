"""threads.py PROGRAM: has undertext change a thread where Codex itself keeps it, with its index of threads and without one.

After each step Codex resumes the thread: what it sends is compared with what undertext shows, and the turns that its screens
list with the messages on the path. Run it by `unshare -rn`, with the path of undertext in UNDERTEXT.
"""

import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import threading
import time

import agent
import codex
import parts
import play
from mock_model import Model

# The first request is so long that a compaction saves more than its summary takes.
ASKED = ["First, look around." + " Then look again." * 500, "Second, measure it.", "Third, cut it.", "Fourth, paint it."]
NOTE = "It was the pump."
BY_HAND = "By hand."
MORE = "And one thing more."
PLAYS = [
    ["revert 2 note"], ["revert 1"], ["revert 0"], ["revert 0 note"], ["clear"], ["clear", "append", "undo", "undo"],
    ["revert 2 note", "undo", "redo"], ["revert 3", "wrote", "undo"], ["revert 2 note", "wrote", "revert 1", "undo"],
    ["append", "revert 2", "undo"], ["revert 1", "revert 3", "switch main.1"], ["branch side @2", "switch side", "undo"],
    ["compact", "undo"], ["compact", "wrote", "revert 1"], ["native 2", "import", "revert 1", "undo"],
    ["revert 2", "native 1", "import", "undo"], ["forget", "revert 2 note", "undo", "wrote"],
]


class Thread:
    """A thread in a home of Codex."""

    def __init__(self, program, folder, model):
        self.program, self.folder, self.model = program, pathlib.Path(folder), model
        self.home, self.project = self.folder / "home", self.folder / "project"
        self.codex = self.home / ".codex"
        self.codex.mkdir()
        (self.codex / "config.toml").write_text(codex.CONFIG.format(url=model.url))
        agent.run(folder, [program, "exec", "--skip-git-repo-check", ASKED[0]], {})
        (file,) = self.codex.glob("sessions/*/*/*/*.jsonl")
        self.id = json.loads(file.read_text().splitlines()[0])["payload"]["id"]
        for asked in ASKED[1:]:
            self.resume(asked)
        self.undertext("import")

    def resume(self, asked):
        """Has Codex say one thing, and returns what it sent."""
        before = len(self.model.asked)
        command = [self.program, "exec", "--skip-git-repo-check", "resume", self.id, asked]
        agent.run(str(self.folder), command, {})
        sent = [body.get("input", []) for path, body in self.model.asked[before:] if path.endswith("/responses")]
        return next(items for items in sent if asked in json.dumps(items))

    def undertext(self, verb, *more):
        """Runs a command and returns the objects that it prints."""
        named = [] if verb == "import" else ["-s", self.id]
        command = [os.environ["UNDERTEXT"], "--json", verb, *named, *more]
        env = {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        done = subprocess.run(command, cwd=self.project, env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: {done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def step(self, step):
        """Does one thing."""
        verb, *more = step.split()
        if verb == "wrote":
            self.resume(MORE)
        elif verb == "native":
            self.listed(int(more[0]))
        elif verb == "forget":
            for file in self.codex.glob("*.sqlite*"):
                file.unlink()
        elif verb == "append":
            self.undertext("append", "--role", "user", BY_HAND)
        elif verb == "compact":
            self.undertext("compact", "--window", "200000", "--keep", "2")
        elif more[1:] == ["note"]:
            self.undertext(verb, more[0], "-m", NOTE)
        else:
            self.undertext(verb, *more)

    def listed(self, back_to=None):
        """Returns what the user said in each turn that Codex lists; also has it go back to before one of them."""
        server = subprocess.Popen(
            [self.program, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            cwd=self.project, env={"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
        )
        lines = queue.Queue()
        threading.Thread(target=lambda: [lines.put(line) for line in server.stdout], daemon=True).start()
        calls = iter(range(1, 100))

        def call(method, params):
            number = next(calls)
            server.stdin.write(json.dumps({"id": number, "method": method, "params": params}) + "\n")
            server.stdin.flush()
            end = time.monotonic() + play.SECONDS
            while time.monotonic() < end:
                answer = json.loads(lines.get(timeout=play.SECONDS))
                if answer.get("id") == number:
                    return answer.get("result", answer)
            raise TimeoutError(method)

        who = {"name": "referee", "title": "referee", "version": "1"}
        call("initialize", {"clientInfo": who, "capabilities": {"experimentalApi": True}})
        server.stdin.write(json.dumps({"method": "initialized"}) + "\n")
        call("thread/resume", {"threadId": self.id})
        turns = call("thread/turns/list", {"threadId": self.id, "sortDirection": "asc"})["data"]
        if back_to is not None:
            call("thread/revert", {"threadId": self.id, "beforeTurnId": turns[back_to]["id"]})
        server.stdin.close()
        server.wait(timeout=play.SECONDS)
        return [words(item) for turn in turns for item in turn["items"] if item["type"] == "userMessage"]

    def judge(self):
        """Returns in what Codex and undertext differ, or None."""
        told = self.undertext("context", "--window", "100000000")[0]["request"]["messages"]
        ours = [part for message in told for part in parts.blocks(message["role"], message["content"])]
        said = [words(message) for message in told if message["role"] == "user"]
        said = [text for text in said if not text.startswith("<environment_context>") and "# AGENTS.md" not in text]
        files = self.codex.glob("sessions/*/*/*/*.jsonl")
        known = {text for file in files for record in agent.records(file) for text in codex.strings(record)}
        kept = self.folder / "kept"
        shutil.copytree(self.home, kept)
        listed = self.listed()
        theirs = [part for given in self.resume(parts.PROMPT) for part in codex.item(given, known)]
        shutil.rmtree(self.home)
        kept.rename(self.home)
        # What Codex lists goes on to name what a compaction has summarised.
        is_compacted = any(text not in (*ASKED, BY_HAND, MORE) and NOTE not in text for text in said)
        if listed != said and not is_compacted:
            listed, said = ([text[:60] for text in of] for of in (listed, said))
            return f"listed {listed}, shown {said}"
        # Codex describes where it runs again at each start.
        ours, theirs = ([part for part in of if "<environment_context>" not in part] for of in (ours, theirs))
        return play.difference(ours, theirs)


def words(of):
    """Returns the words of a message."""
    content = of.get("content") or []
    return "".join(block.get("text", "") for block in content) if isinstance(content, list) else content


def main(program):
    agent.raise_loopback()
    failed = tried = 0
    with agent.home() as folder, Model() as model:
        thread = Thread(program, folder, model)
        begun = pathlib.Path(folder) / "begun"
        shutil.copytree(thread.home, begun)
        for steps in PLAYS:
            done = []
            for step in steps:
                done.append(step)
                thread.step(step)
                if step.split()[0] in ("wrote", "native", "forget"):
                    if step.split()[0] != "forget":
                        thread.undertext("import")
                    continue
                tried += 1
                if wrong := thread.judge():
                    failed += 1
                    print(f"disagreed: {', '.join(done)}: {wrong}")
            shutil.rmtree(thread.home)
            shutil.copytree(begun, thread.home)
    print(f"codex, in its own folders: {tried} tried, {tried - failed} agreed, {failed} disagreed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
