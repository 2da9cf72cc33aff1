"""claude.py PROGRAM FILE [AFTER]: resumes a copy of a session file in Claude Code, and prints what it sends.

AFTER is where the copy is put as the program leaves it, with its own records at the end.
"""

import collections
import json
import os
import re
import shutil
import sys

import agent
import parts
from mock_model import Model


def session(path):
    """Returns the id that most records name."""
    named = collections.Counter(r["sessionId"] for r in agent.records(path) if isinstance(r.get("sessionId"), str))
    return named.most_common(1)[0][0] if named else "5e555e55-0000-4000-8000-000000000001"


def kept(folder):
    """Makes the folder in which the program keeps the sessions of the project, and returns it."""
    project = re.sub("[^A-Za-z0-9]", "-", os.path.join(folder, "project"))
    made = os.path.join(folder, "home", ".claude", "projects", project)
    os.makedirs(made, exist_ok=True)
    return made


def ask(program, folder, model, *arguments):
    """Runs the program on a prompt, which comes first."""
    with open(os.path.join(folder, "home", ".claude.json"), "w", encoding="utf-8") as settings:
        json.dump({"hasCompletedOnboarding": True, "projects": {}}, settings)
    agent.run(
        folder, [program, "-p", *arguments, "--model", "claude-sonnet-4-5", "--dangerously-skip-permissions"],
        {
            "CLAUDE_CONFIG_DIR": os.path.join(folder, "home", ".claude"),
            "ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "mock",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1",
        },
    )


def main(program, path, after=None):
    agent.raise_loopback()
    with agent.home() as folder, Model() as model:
        name = session(path)
        live = os.path.join(kept(folder), f"{name}.jsonl")
        shutil.copy(path, live)
        ask(program, folder, model, parts.PROMPT, "--resume", name)
        if after:
            with open(live, "rb") as left, open(after, "ab") as file:
                file.write(left.read()[os.path.getsize(after):])
        sent = [body.get("messages", []) for asked, body in model.asked if asked.endswith("/messages")]
    # It asks for other things too, such as a title.
    sent = max((m for m in sent if parts.PROMPT in json.dumps(m)), key=len, default=None)
    if sent is None:
        agent.refuse("the agent sent no conversation")
    for message in sent:
        parts.show(parts.blocks(message["role"], message["content"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
