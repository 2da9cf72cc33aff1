"""made.py AGENT PROGRAM FOLDER: has an agent make session files by itself, and lays them in FOLDER for play.py.

AGENT and PROGRAM are what play.py takes. Each agent says a few things to a model on loopback, with a call of a tool, and then
does what it has of its own: goes back, forks, compacts, gives a name, migrates. Each state is laid as a file of its own, named by
what was done last; a session of several files, and a fork with what it goes on from, as a folder. Prints their names.
"""

import contextlib
import glob
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
import claude
import codex
from mock_model import RUN, Model

HERE = pathlib.Path(__file__).resolve().parent
SAID = ["What is in the shed?", RUN + "seq 3000", "And behind it?"]
LATER = "And in the garden?"
SECONDS = 30


def by_claude(program, folder, model, lay):
    kept, name = claude.kept(folder), "5e555e55-0000-4000-8000-000000000002"
    live = os.path.join(kept, f"{name}.jsonl")

    def ask(*arguments):
        claude.ask(program, folder, model, *arguments)

    def resume(words, *more):
        ask(words, "--resume", name, *more)

    ask(SAID[0], "--session-id", name)
    for words in SAID[1:]:
        resume(words)
    lay("said", live)
    resume(LATER, "--fork-session")
    lay("forked", *(set(glob.glob(f"{kept}/*.jsonl")) - {live}))
    answer = next(r["uuid"] for r in agent.records(live) if r.get("type") == "assistant")
    resume(LATER, "--resume-session-at", answer)
    lay("gone-back", live)
    resume("/compact")
    lay("compacted", live)
    resume(LATER)
    lay("compacted-and-said", live)
    resume("/rename The shed")
    lay("named", live)


class Server:
    """Codex's own server for editors, on its standard input and output."""

    def __init__(self, program, folder):
        env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": os.path.join(folder, "home")}
        self.process = subprocess.Popen(
            [program, "app-server"], cwd=os.path.join(folder, "project"), env=env, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        self.lines, self.asked = queue.Queue(), 0
        threading.Thread(target=lambda: [self.lines.put(line) for line in self.process.stdout], daemon=True).start()

    def __enter__(self):
        client = {"name": "referee", "title": "referee", "version": "1"}
        self.call("initialize", clientInfo=client, capabilities={"experimentalApi": True})
        self.send({"method": "initialized"})
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def until(self, is_wanted):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(queue.Empty):
                told = json.loads(self.lines.get(timeout=1))
                if is_wanted(told):
                    return told
        raise RuntimeError("the server of Codex does not answer")

    def call(self, method, **params):
        self.asked += 1
        number = self.asked
        self.send({"id": number, "method": method, "params": params})
        told = self.until(lambda told: told.get("id") == number)
        if "result" not in told:
            raise RuntimeError(f"{method}: {told}")
        return told["result"]

    def turn(self, method, **params):
        """Calls what begins a turn, and waits for its end."""
        self.call(method, **params)
        self.until(lambda told: told.get("method") == "turn/completed")


def by_codex(program, folder, model, lay):
    kept = codex.kept(folder, model)

    def run(*arguments):
        agent.run(folder, [program, *arguments], {})

    def files():
        return sorted(glob.glob(f"{kept}/sessions/*/*/*/*.jsonl"))

    def exec_(*arguments):
        # The time in a file's name has no parts of a second.
        time.sleep(1.1)
        run("exec", "--skip-git-repo-check", *arguments)

    exec_(SAID[0])
    thread = codex.thread(files()[0])
    for words in SAID[1:]:
        exec_("resume", thread, words)
    lay("said", *files())
    exec_("fork", thread, LATER)
    lay("forked", *files())
    fork = files()[-1]
    os.remove(fork)

    with Server(program, folder) as server:
        server.call("thread/resume", threadId=thread)
        server.call("thread/name/set", threadId=thread, name="The shed")
        turns = server.call("thread/turns/list", threadId=thread, sortDirection="asc")["data"]
        server.call("thread/revert", threadId=thread, beforeTurnId=turns[2]["id"])
    lay("gone-back", *files())
    exec_("resume", thread, LATER)
    lay("gone-back-and-said", *files())
    with Server(program, folder) as server:
        server.call("thread/resume", threadId=thread)
        server.turn("thread/compact/start", threadId=thread)
    lay("compacted", *files())
    exec_("resume", thread, LATER)
    lay("compacted-and-said", *files())
    exec_("fork", thread, LATER)
    lay("compacted-and-forked", *files())

    # A thread of the older kind, and what Codex makes of it.
    older = set(files())
    with Server(program, folder) as server:
        thread = server.call("thread/start", historyMode="legacy")["thread"]["id"]
        for words in SAID:
            server.turn("turn/start", threadId=thread, input=[{"type": "text", "text": words}])
        server.turn("thread/compact/start", threadId=thread)
        server.turn("turn/start", threadId=thread, input=[{"type": "text", "text": LATER}])
    lay("legacy", *(set(files()) - older))
    [legacy] = set(files()) - older
    before = pathlib.Path(legacy).read_bytes()
    # What Codex says in the user's place where it has plugins and other agents, and a call that is not answered yet.
    tags = ("recommended_plugins", "agent_message_board_notification")
    items = [message(f"<{tag}>\nx\n</{tag}>") for tag in tags] + [message(LATER)]
    with open(legacy, "ab") as file:
        file.write(b"".join(map(line, items)))
    lay("in-the-users-place", legacy)
    with open(legacy, "ab") as file:
        file.write(line({"type": "custom_tool_call", "name": "apply_patch", "input": "x", "call_id": "call_patch"}))
    lay("unanswered", legacy)
    pathlib.Path(legacy).write_bytes(before)
    run("migrate-rollouts", "--apply", "--thread", thread)
    lay("migrated", *(set(files()) - older))


def message(words):
    """Returns an item of Codex that stands in the user's place."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]}


def line(item):
    """Returns the line of a rollout that holds an item."""
    record = {"timestamp": "2026-08-01T10:00:00.000Z", "type": "response_item", "payload": item}
    return json.dumps(record).encode() + b"\n"


def by_script(command):
    """Returns a maker whose script prints each state that it has made: a name and its files, a line each."""
    def make(program, folder, _model, lay):
        made = os.path.join(folder, "project")
        for line in agent.run(folder, command(program), {"REFEREES_MADE": made}).stdout.splitlines():
            lay(*json.loads(line))
    return make


MAKERS = {
    "claude": by_claude,
    "codex": by_codex,
    "pi": by_script(lambda program: ["node", str(HERE / "pi.mjs"), program, "--make"]),
    "kimi": by_script(lambda program: [program, str(HERE / "kimi.py"), "--make"]),
}


def main(name, program, out):
    agent.raise_loopback()
    out = pathlib.Path(out)

    def lay(state, *files):
        several = len(files) > 1 or name == "kimi"
        into = out / name / state if several else out / name
        into.mkdir(parents=True, exist_ok=True)
        for file in files:
            own = os.path.basename(file)
            shutil.copy(file, into / (own if several else f"{state}.jsonl"))
        print(f"{name}/{state}", flush=True)

    with agent.home() as folder, Model() as model:
        MAKERS[name](program, folder, model, lay)


main(*sys.argv[1:])
