"""codex.py PROGRAM FILE: resumes a copy of a rollout in Codex, and prints what it sends.

Codex says its own instructions and the environment again at each start: a message counts if the file holds its texts, and
not as what the session began with (`base_instructions`). Rollouts next to the file, from which it may go on, are copied too.
"""

import json
import os
import re
import sys

import agent
import parts
from mock_model import Model

ROLLOUT = re.compile(r"rollout-[0-9T-]{19}-[0-9a-f-]{36}(_[0-9a-f-]{36})?\.jsonl")
# How it cuts a long answer of several parts.
CUT = re.compile("…[0-9]+ (tokens|chars|bytes) truncated…")
CONFIG = """
model = "mock"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "read-only"
check_for_update_on_startup = false
[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
"""


def strings(value):
    """Returns every string in a value."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(inner)


def thread(path):
    """Returns the id of the thread that a rollout holds."""
    for record in agent.records(path):
        if record.get("type") == "session_meta" or "instructions" in record:
            return record.get("payload", record).get("id")
    return None


def item(given, known):
    """Returns the parts of an item that was sent."""
    kind = given.get("type", "message")
    if kind in ("message", "agent_message"):
        # What is of no role that others have is the user's, as undertext shows it.
        role = {"developer": "system", "assistant": "assistant"}.get(given.get("role"), "user")
        found = []
        for block in given.get("content") or []:
            if not block["type"].endswith("text"):
                found.append(f"{role} image")
            elif block["text"] in known:
                found += parts.text(role, block["text"])
            else:
                return []
        return found
    if kind in ("function_call_output", "custom_tool_call_output"):
        output = given.get("output")
        if output == "aborted":
            return []
        texts = [block.get("text") or "" for block in output] if isinstance(output, list) else []
        if any(CUT.search(text) and text not in known for text in texts):
            return [f"tool result {parts.CUT} {given['call_id']}"]
        return parts.result(given["call_id"], output)
    if kind.endswith("_call") and given.get("call_id"):
        return parts.call(given["call_id"])
    return []


def beside(path):
    """Returns the rollouts next to a file that has the name of one, itself included."""
    if not ROLLOUT.fullmatch(os.path.basename(path)):
        return [path]
    folder = os.path.dirname(path)
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if ROLLOUT.fullmatch(name)]


def put(path, rollout):
    """Copies a rollout to where Codex reads it."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as source:
        # A thread is resumed with the provider that it was begun with. Other files name places in it by their bytes.
        mock = '"model_provider":"mock"'
        told = re.sub(r'"model_provider":\s*"[^"]*"', lambda found: mock.ljust(len(found[0])), source.read())
    with open(rollout, "w", encoding="utf-8", errors="surrogateescape", newline="") as copy:
        copy.write(told)


def kept(folder, model):
    """Makes the folder in which the program keeps all that is its own, with its settings, and returns it."""
    made = os.path.join(folder, "home", ".codex")
    os.makedirs(made)
    with open(os.path.join(made, "config.toml"), "w", encoding="utf-8") as config:
        config.write(CONFIG.format(url=model.url))
    return made


def main(program, path, after=None):
    agent.raise_loopback()
    files = beside(path)
    with agent.home() as folder, Model() as model:
        day = os.path.join(kept(folder, model), "sessions", "2026", "08", "01")
        os.makedirs(day)
        name = thread(path)
        own = os.path.basename(path) if len(files) > 1 else f"rollout-2026-08-01T10-00-00-{name}.jsonl"
        for file in files:
            put(file, os.path.join(day, os.path.basename(file) if len(files) > 1 else own))
        agent.run(folder, [program, "exec", "--skip-git-repo-check", "resume", str(name), parts.PROMPT], {})
        if after:
            with open(os.path.join(day, own), "rb") as left, open(after, "ab") as file:
                file.write(left.read()[os.path.getsize(after):])
        sent = [body.get("input", []) for asked, body in model.asked if asked.endswith("/responses")]
    sent = next((items for items in sent if parts.PROMPT in json.dumps(items)), None)
    if sent is None:
        agent.refuse("the agent sent no conversation")
    records = [record for file in files for record in agent.records(file)]
    known = {text for record in records for text in strings(record)}
    for record in records:
        if record.get("type") == "session_meta":
            known.discard(((record["payload"].get("base_instructions")) or {}).get("text"))
    for given in sent:
        parts.show(item(given, known))


if __name__ == "__main__":
    main(*sys.argv[1:])
