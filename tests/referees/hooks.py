"""hooks.py AGENT PROGRAM: has undertext set up an agent, and looks whether what the agent then says is taken in without a word.

AGENT is claude, codex or pi; PROGRAM is what play.py takes. The project names another store, as one that cannot be trusted would.
After each step the store must hold the session's file byte for byte. Then undertext is gone, which must not be noticed, and then it
takes its call out again, which must leave the settings as they were. Run it by `unshare -rn`, with the path of undertext in
UNDERTEXT.
"""

import glob
import json
import os
import pathlib
import subprocess
import sys
import time

import agent
import claude
import codex
from mock_model import RUN, Model

SECONDS = 30
SAID = ["What is in the shed?", RUN + "seq 3000", "And behind it?"]
CLAUDE = "5e555e55-0000-4000-8000-000000000003"
PI = {
    "providers": {
        "mock": {
            "baseUrl": "{url}", "api": "anthropic-messages", "apiKey": "mock",
            "models": [{
                "id": "mock", "name": "mock", "reasoning": False, "input": ["text"], "contextWindow": 100000, "maxTokens": 1000,
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
            }],
        }
    }
}


class Machine:
    """A home in which undertext is installed and an agent runs."""

    def __init__(self, folder, model):
        self.folder, self.model = pathlib.Path(folder), model
        self.home, self.project = self.folder / "home", self.folder / "project"
        self.undertext = self.home / "bin" / "undertext"
        self.undertext.parent.mkdir()
        self.install()
        # What a project may say of the environment.
        self.theirs = self.project / "theirs"
        self.strange = {"UNDERTEXT_STORE": str(self.theirs), "XDG_DATA_HOME": str(self.theirs), "XDG_STATE_HOME": str(self.theirs)}

    def install(self):
        self.undertext.symlink_to(os.environ["UNDERTEXT"])

    def run(self, *words, home=None):
        """Runs a command of undertext and returns what it prints."""
        env = {"HOME": str(home or self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        done = subprocess.run([self.undertext, *words], cwd=self.home, env=env, capture_output=True, check=False)
        return done.stdout if done.returncode == 0 else b""

    def held(self, *words):
        """Runs a command over the content of the store: elsewhere, from where no agent's file is looked at."""
        return self.run(*words, "--store", str(self.home / ".local" / "share" / "undertext"), home=self.folder / "elsewhere")

    def is_taken_in(self, file):
        """Waits until the store holds a session's file as it is."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            listed = [json.loads(line) for line in self.held("sessions", "--json").splitlines()]
            whole = pathlib.Path(file).read_bytes()
            if any(self.held("export", "-s", one["session"]) == whole for one in listed):
                return True
            time.sleep(0.1)
        return False


def by_claude(program, machine):
    settings = machine.home / ".claude" / "settings.json"
    kept = claude.kept(str(machine.folder))
    settings.write_text('{\n  "cleanupPeriodDays": 99,\n  "hooks": { "Stop": [] }\n}')
    (machine.project / ".claude").mkdir()
    (machine.project / ".claude" / "settings.json").write_text(json.dumps({"env": machine.strange}))

    def ask(words):
        is_begun = os.path.exists(f"{kept}/{CLAUDE}.jsonl")
        claude.ask(program, str(machine.folder), machine.model, words, "--resume" if is_begun else "--session-id", CLAUDE)
        return f"{kept}/{CLAUDE}.jsonl"

    return settings, [*SAID, "/compact", "And now?"], ask


def by_codex(program, machine):
    settings = machine.home / ".codex" / "config.toml"
    settings.parent.mkdir()
    told = machine.folder / "told"
    notify = f'notify = ["/bin/sh", "-c", "echo \\"$1\\" >> {told}", "theirs"]\n'
    settings.write_text(notify + codex.CONFIG.format(url=machine.model.url))

    def files():
        return glob.glob(f"{settings.parent}/sessions/*/*/*/*.jsonl")

    def ask(words):
        resume = ["resume", "--last"] if files() else []
        agent.run(str(machine.folder), [program, "exec", "--skip-git-repo-check", *resume, words], machine.strange)
        end = time.monotonic() + SECONDS
        asked = machine.asked = getattr(machine, "asked", 0) + 1
        while not (told.exists() and len(told.read_text().splitlines()) >= asked):
            if time.monotonic() > end:
                raise RuntimeError("the program that was told before is told no longer")
            time.sleep(0.1)
        (file,) = files()
        return file

    return settings, SAID, ask


def by_pi(folder, machine):
    settings = machine.home / ".pi" / "agent" / "extensions" / "undertext.ts"
    settings.parent.parent.mkdir(parents=True)
    PI["providers"]["mock"]["baseUrl"] = machine.model.url
    (settings.parent.parent / "models.json").write_text(json.dumps(PI))
    sessions = settings.parent.parent / "sessions"

    def ask(words):
        go_on = ["--continue"] if sessions.exists() else []
        command = ["-p", *go_on, "--provider", "mock", "--model", "mock", words]
        agent.run(str(machine.folder), [f"{folder}/node_modules/.bin/pi", *command], machine.strange)
        (file,) = glob.glob(f"{sessions}/*/*.jsonl")
        return file

    return settings, SAID, ask


def read(path):
    return path.read_bytes() if path.exists() else None


def main(name, program):
    agent.raise_loopback()
    wrong = []
    with agent.home() as folder, Model() as model:
        machine = Machine(folder, model)
        settings, steps, ask = {"claude": by_claude, "codex": by_codex, "pi": by_pi}[name](program, machine)
        before = read(settings)
        machine.run("setup", name, "--yes")
        during = read(settings)
        if during == before:
            wrong.append("it cannot be set up")
        for words in steps:
            file = ask(words)
            if not machine.is_taken_in(file):
                wrong.append(f"not taken in behind {words!r}")
        machine.undertext.unlink()
        file = ask("And without it?")
        machine.install()
        # Codex says more of itself in its settings.
        if read(settings) == during:
            machine.run("setup", name, "--off", "--yes")
            if read(settings) != before:
                wrong.append("the settings are not as before")
        elif name != "codex":
            wrong.append("the agent changed its settings")
        if "hook_non_blocking_error" in pathlib.Path(file).read_text(encoding="utf-8", errors="replace"):
            wrong.append("the agent notices its hooks")
        if machine.theirs.exists():
            wrong.append("something went where the project says")
        log = machine.home / ".local" / "state" / "undertext" / "hooks" / "log"
        for line in wrong:
            print(f"disagreed: {line}\n{log.read_text() if log.exists() else 'no log'}")
    print(f"{name}, set up: {len(steps)} steps, {len(wrong)} disagreed")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
