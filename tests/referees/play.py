"""play.py [--all] [--seconds N] [--some N] [--corpus DIR] AGENT=PROGRAM..: has undertext change copies of session files, has each agent
resume them, and compares what the agent sends with what `undertext context` shows.

AGENT is claude or codex with its program, pi with the folder it is installed in, or kimi with the Python that has it.
UNDERTEXT names the program that is judged. Each file plays PLAYS, N of the pairs of verbs, and N of the plays in which the
agent writes too, so that the files together play them all. Prints a table for each agent and verb, and exits with 1 when something that is
not in known.txt disagrees, or when an agent compared too little.
"""

import argparse
import collections
import concurrent.futures
import difflib
import fnmatch
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import parts

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
FILES = {
    "claude": ["claude/*.jsonl", "claude-shapes/*.jsonl"],
    "codex": ["codex/*.jsonl", "codex-shapes/*.jsonl", "codex-made/*.jsonl", "codex*/*/rollout-*.jsonl"],
    "pi": ["pi/*.jsonl"],
    "kimi": ["kimi/*/context.jsonl"],
}
OWN = {
    "claude": "claude-garden.jsonl", "codex": "codex-weather.jsonl",
    "pi": "pi-boat.jsonl", "kimi": "kimi-lighthouse/6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c/context.jsonl",
}
NOTE = "Look at the tests first."
# Each line is one copy of a file, changed step by step.
PLAYS = [
    ["append", "undo"],
    ["branch", "append"],
    ["revert", "undo", "redo"],
    ["revert 0", "undo", "redo"],
    ["switch"],
    ["truncate", "undo"],
    ["truncate", "append", "undo"],
    ["compact", "undo"],
    ["compact", "append", "undo", "revert"],
    ["clear", "append", "undo", "undo"],
    ["redact", "append", "revert"],
    ["redact entry", "append"],
    ["forget", "append"],
    ["answer", "revert", "undo"],
]
VERBS = ["append", "revert", "switch", "truncate", "compact", "clear"]
PAIRS = [list(pair) for pair in itertools.product(VERBS, repeat=2)]
# The agents whose referee lets them go on by themselves, and plays in which they do.
WRITERS = ["claude", "codex", "pi", "kimi"]
WROTE = [play for verb in VERBS for play in (["wrote", verb, "undo"], [verb, "wrote", "undo"])]
# How many comparisons must agree at the least, and how long an agent may take for one.
LEAST = 4
SECONDS = 45
# A message that Codex says again, behind the history, where it does not find what a session began with.
RULES = re.compile("user text [0-9a-f]+ # AGENTS.md instructions")


class Refused(Exception):
    """A program would not do it, and says why."""


class Nothing(Exception):
    """There is nothing that a verb could change."""


class Late(Exception):
    """The time is up."""


class Session:
    """A copy of a session file that a store of its own follows."""

    def __init__(self, agent, program, folder, source):
        self.agent, self.program, self.n_branches = agent, program, 0
        (self.file, _), *_ = files = list(laid(folder, source))
        for file, of in files:
            file.write_bytes(of.read_bytes())
        self.env = {"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        self.folder, self.id = folder, None
        self.id = self.ask("attach", str(self.file))[0]["session"]

    def ask(self, *arguments, told=None):
        """Runs a command, which may be told something, and returns the objects that it prints."""
        program = os.environ["UNDERTEXT"]
        command = [program, "--store", str(self.folder / "store"), "--json", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self.env, input=told, capture_output=True, text=True, check=False
        )
        if done.returncode == 1 and arguments[0] == "redact":
            raise Nothing
        if done.returncode != 0:
            raise Refused(cause(done.stderr))
        return [json.loads(line) for line in done.stdout.splitlines()]

    def change(self, verb):
        """Changes the session; the first object that is printed names the operation, unless there was nothing to change."""
        told = getattr(self, verb.replace(" ", "_"))()
        if told and told[0].get("operation", 0) is None:
            raise Nothing

    def append(self):
        return self.ask("append", "-s", self.id, "--role", "user", "One thing more.")

    def answer(self):
        """Answers the last call that nothing answers."""
        told, made_up = self.told()
        sent = [m["content"] for n, m in enumerate(told["request"]["messages"]) if n in made_up]
        calls = [block["tool_use_id"] for content in sent for block in content if block["type"] == "tool_result"]
        if not calls:
            raise Nothing
        return self.ask("append", "-s", self.id, "--result", calls[-1], "It is done.")

    def revert(self):
        numbers = [told["checkpoint"] for told in self.ask("checkpoints", self.id) if told["type"] == "checkpoint"]
        if not numbers:
            raise Nothing
        return self.ask("revert", "-s", self.id, "-m", NOTE, str(numbers[len(numbers) // 2]))

    def revert_0(self):
        return self.ask("revert", "-s", self.id, "0")

    def undo(self):
        return self.ask("undo", "-s", self.id)

    def redo(self):
        return self.ask("redo", "-s", self.id)

    def branch(self):
        self.n_branches += 1
        entries = [line["entry"] for line in self.ask("log", self.id) if line["type"] == "entry"]
        for back in (back for back in (9, 3, 1) if back < len(entries)):
            try:
                return self.ask("branch", "-s", self.id, f"try{self.n_branches}", entries[-1 - back])
            except Refused:
                continue
        raise Nothing

    def switch(self):
        self.branch()
        return self.ask("switch", "-s", self.id, f"try{self.n_branches}")

    def wrote(self):
        """Lets the agent answer in the file itself, and takes that in."""
        sent(self.agent, self.program, str(self.file), str(self.folder), str(self.file))
        self.ask("import", str(self.file))

    def truncate(self):
        return self.ask("truncate", "--max-chars", "2000", self.id)

    def compact(self):
        return self.ask("compact", "--window", "200000", "--keep", "4", self.id)

    def clear(self):
        return self.ask("clear", self.id)

    def redact(self):
        """Takes out a word of the last words that were said at length."""
        texts = (block.get("text") or "" for line in self.ask("log", self.id) for block in line.get("blocks", []))
        words = sorted((word for text in texts for word in re.findall("[A-Za-z]{5,}", text)), key=len)
        if not words:
            raise Nothing
        return self.ask("redact", "--yes", told=words[-1])

    def redact_entry(self):
        return self.ask("redact", "HEAD", "-s", self.id, "--yes")

    def forget(self):
        return self.ask("forget", self.id, "--yes")

    def told(self):
        """Returns what undertext tells of the context, and which of the messages the agent makes up."""
        told = self.ask("context", "--window", "100000000", self.id)
        made_up = {message["n"] for message in told if message["type"] == "message" and message["origin"] == "synthetic"}
        return told[0], made_up

    def context(self):
        """Returns the parts that undertext shows of what would be sent."""
        told, made_up = self.told()
        sent = told["request"]["messages"]
        return [p for n, m in enumerate(sent) if n not in made_up for p in parts.blocks(m["role"], m["content"])]


def laid(folder, source):
    """Returns the files of a session, each with its source, the session's own first: those of Codex with the ones from which
    they go on, under the names by which it finds them.
    """
    try:
        first = json.loads(first_line(source))
    except ValueError:
        first = None
    meta = first.get("payload") if isinstance(first, dict) and first.get("type") == "session_meta" else None
    base = (meta or {}).get("history_base")
    if not base:
        yield folder / source.name, source
    elif source.name.startswith("rollout-"):
        others = (file for file in source.parent.glob("rollout-*") if file != source)
        yield from ((folder / file.name, file) for file in [source, *others])
    else:
        yield folder / f"rollout-2026-08-01T10-00-00-{meta['id']}.jsonl", source
        parts = (f'"id":"{base["thread_id"]}"', '"history_mode":"paginated"')
        for file in sorted(source.parent.glob("*.jsonl")):
            if all(part in first_line(file) for part in parts) and file.stat().st_size >= base["end_byte_offset"]:
                yield folder / f"rollout-2026-08-01T09-00-00-{base['thread_id']}.jsonl", file
                break


def first_line(file):
    with file.open(encoding="utf-8", errors="replace") as lines:
        return next(lines, "")


def cause(errors):
    """Returns the line of an error, or else the last one, without what differs from file to file."""
    lines = [line for line in errors.splitlines() if line.strip()] or ["no word"]
    line = next((line for line in lines if line.startswith("error:")), lines[-1])
    line = re.sub(r"(/[^\s:]+)+", "PATH", line)
    return re.sub(r"[0-9a-f]{8}(-?[0-9a-f]{4,})*", "ID", line)[:110]


def sent(agent, program, file, work, after=None):
    """Returns the parts that an agent sends; what it writes goes to the end of `after`."""
    script = str(HERE / f"{agent}.py")
    command = {
        "claude": [sys.executable, script, program, file, *([after] if after else [])],
        "codex": [sys.executable, script, program, file, *([after] if after else [])],
        "pi": ["node", str(HERE / "pi.mjs"), program, file, *([after] if after else [])],
        "kimi": [program, script, file, *([after] if after else [])],
    }[agent]
    env = {"HOME": work, "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "REFEREES_WORK": work, "PYTHONDONTWRITEBYTECODE": "1"}
    asked = subprocess.Popen(
        ["unshare", "-rn", *command], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )
    try:
        told, errors = asked.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        # With all that it started.
        os.killpg(asked.pid, signal.SIGKILL)
        asked.communicate()
        raise Refused("by the agent: it did not end") from None
    if asked.returncode == 3:
        raise Refused("by the agent: " + cause(errors))
    if asked.returncode < 0:
        raise Refused(f"by the agent: it ends by signal {-asked.returncode}")
    if asked.returncode != 0:
        raise RuntimeError(f"{agent} of {file}: {errors}")
    return [json.loads(line) for line in told.splitlines()]


def difference(ours, theirs):
    """Returns the first part in which two contexts differ, or None.

    No difference are: an answer that an agent puts in for a call without one; the order of answers that come together; where
    the rules of a system stand, because undertext shows them first as most models want them; and rules that an agent says
    again behind the history.
    """
    answered = {parts.named(part) for part in ours} | {None}
    nothing_asked = parts.text("assistant", "No response requested.")
    theirs = [p for p in theirs if p not in nothing_asked and parts.named(p) in answered]
    cut = {parts.named(p) for p in theirs if p.startswith(f"tool result {parts.CUT} ")}
    ours = [f"tool result {parts.CUT} {parts.named(p)}" if parts.named(p) in cut else p for p in ours if p not in nothing_asked]
    rules = [[part for part in of if part.startswith("system ")] for of in (ours, theirs)]
    if rules[0] != rules[1][:len(rules[0])]:
        return f"rules: sent {rules[1][:3]}, shown {rules[0][:3]}"
    ours, theirs = in_order(ours), in_order(theirs)
    # So are those that Codex says as a user's message.
    while RULES.match(theirs[-1] if theirs else "") and theirs[-1:] != ours[-1:]:
        theirs.pop()
    for tag, left, left_end, right, right_end in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag != "equal":
            return f"part {left}: sent {theirs[right:right_end][:2]}, shown {ours[left:left_end][:2]}"
    return None


def in_order(given):
    """Returns the parts of a conversation, with the answers that come together in one order."""
    given = [part for part in given if not part.startswith("system ")]
    groups = itertools.groupby(given, lambda part: part.startswith("tool result "))
    return [part for is_result, group in groups for part in (sorted(group) if is_result else group)]


def judge(session, work):
    """Compares a session as it stands."""
    theirs = sent(session.agent, session.program, str(session.file), work)
    wrong = difference(session.context(), theirs)
    return ("disagreed", wrong) if wrong else ("agreed", len(theirs))


def plays(agent, nth, some):
    """Returns the plays of the nth file."""
    chosen = [[of[(nth * some + k) % len(of)] for k in range(some)] for of in (PAIRS, WROTE)]
    return PLAYS + chosen[0] + (chosen[1] if agent in WRITERS else [])


def play(agent, program, source, work, steps_of_all, is_over):
    """Plays on copies of a file; yields verb, what came of it, and more of that. Raises Late before a play for which the time
    is up.
    """
    if is_over():
        raise Late
    with tempfile.TemporaryDirectory(dir=work) as folder:
        try:
            outcome = judge(Session(agent, program, pathlib.Path(folder), source), work)
        except Refused as why:
            outcome = ("refused", str(why))
    if outcome == ("agreed", 0):
        outcome = ("nothing", "")
    yield ("as it is", *outcome)
    # What is not resumed alike before a change tells nothing of the change.
    if outcome[0] != "agreed":
        return
    for steps in steps_of_all:
        if is_over():
            raise Late
        with tempfile.TemporaryDirectory(dir=work) as folder:
            session = Session(agent, program, pathlib.Path(folder), source)
            for verb in steps:
                try:
                    session.change(verb)
                    outcome = judge(session, work)
                except Refused as why:
                    outcome = ("refused", str(why))
                except Nothing:
                    outcome = ("nothing", "")
                yield (verb, *outcome)
                if outcome[0] in ("refused", "nothing"):
                    break


def is_newest(file):
    """Returns whether a file is no rollout from which another one next to it may go on."""
    return not file.name.startswith("rollout-") or file == max(file.parent.glob("rollout-*"))


def sources(agent, corpus):
    """Returns the files of an agent, in an order that is the same each time and mixes large and small ones."""
    if not corpus:
        return [EXAMPLES / OWN[agent]]
    files = [file for pattern in FILES[agent] for file in corpus.glob(pattern) if is_newest(file)]
    return sorted(files, key=lambda file: parts.text("", str(file.relative_to(corpus))))


def known():
    """Returns the disagreements that are known: agent, verb, pattern of files, and why."""
    lines = (HERE / "known.txt").read_text(encoding="utf-8").splitlines()
    return [[field.strip() for field in line.split("|")] for line in lines if line.strip() and not line.startswith("#")]


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--all", action="store_true")
    asked.add_argument("--seconds", type=float, default=540)
    asked.add_argument("--some", type=int, default=2)
    asked.add_argument("--corpus", type=pathlib.Path)
    asked.add_argument("agents", nargs="+")
    asked = asked.parse_args()
    listed, failed = known(), False
    with tempfile.TemporaryDirectory(dir=os.environ.get("REFEREES_WORK")) as work:
        for left, named in zip(range(len(asked.agents), 0, -1), asked.agents):
            began = time.monotonic()
            agent, program = named.split("=", 1)
            failed |= referee(agent, program, asked, asked.seconds / left, listed, work)
            asked.seconds -= time.monotonic() - began
    sys.exit(failed)


def referee(agent, program, asked, seconds, listed, work):
    """Lets one agent judge, prints its table, and returns whether it failed."""
    files = sources(agent, asked.corpus)
    end = None if asked.all else time.monotonic() + seconds
    counts, causes, wrong, late = collections.defaultdict(collections.Counter), collections.Counter(), [], []
    n_agreed = 0

    def is_over():
        """Whether the time is up; on a slow machine the least comparisons are made all the same."""
        return end is not None and time.monotonic() > end and n_agreed >= LEAST

    def one(nth, source):
        nonlocal n_agreed
        outcomes = []
        try:
            for told in play(agent, program, source, work, plays(agent, nth, asked.some), is_over):
                outcomes.append(told)
                n_agreed += told[1] == "agreed"
        except Late:
            return source, outcomes, True
        return source, outcomes, False

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, outcomes, is_late in pool.map(one, itertools.count(), files):
            if is_late:
                late.append(source.name)
            for verb, outcome, more in outcomes:
                counts[verb][outcome] += 1
                if outcome == "refused":
                    causes[f"{verb}: {more}"] += 1
                if outcome == "disagreed":
                    wrong.append((verb, name_of(source), more))
    columns = ["agreed", "refused", "nothing", "disagreed"]
    print(f"\n{agent:12}{'tried':>8}" + "".join(f"{column:>11}" for column in columns))
    for verb in ["as it is", *dict.fromkeys(verb for steps in PLAYS + WROTE for verb in steps)]:
        row = counts[verb]
        print(f"  {verb:10}{row.total():8}" + "".join(f"{row[column]:11}" for column in columns))
    for why, n in causes.most_common():
        print(f"  refused {n}: {why}")
    failed = False
    for verb, name, more in wrong:
        why = next((why for a, v, f, why in listed if a == agent and v in (verb, "*") and fnmatch.fnmatch(name, f)), None)
        print(f"  {'known' if why else 'DISAGREED'}: {verb} {name}: {why or more}")
        failed |= why is None
    for a, verb, pattern, why in listed:
        held = [name for name in map(name_of, files) if fnmatch.fnmatch(name, pattern)]
        if a == agent and held and not late and not any(v == verb and n in held for v, n, _ in wrong):
            print(f"  known, and did not happen: {verb} {pattern}: {why}")
    if late:
        print(f"  left out or cut short, because the time was up: {len(late)} of {len(files)} files: {' '.join(late)}")
    if n_agreed < LEAST:
        print(f"  FAILED: {n_agreed} comparisons agreed, fewer than {LEAST}")
        failed = True
    return failed


def name_of(source):
    """Returns the name under which a file is known."""
    return f"{source.parent.name}/{source.name}"


if __name__ == "__main__":
    main()
