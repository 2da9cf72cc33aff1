"""later.py AGENT PROGRAM: has a revert wait while a session is open, and `undertext resume --apply` start the agent.

AGENT is claude or codex. The agent itself says three things; a revert of the second is refused while its file is open, and waits
with a note. What the agent sends once it was started must have the first thing, the note and what is said then, and neither of
the others. Run it by `unshare -rn`, with the path of undertext in UNDERTEXT.
"""

import glob
import json
import os
import pathlib
import subprocess
import sys

import agent
import claude
import codex
from mock_model import Model

SAID = ["Paint the shed.", "Burn the boat.", "Sell the oars."]
NOTE, THEN = "Keep the boat whole.", "What is left to do?"
CLAUDE = "5e555e55-0000-4000-8000-000000000005"


def by_claude(program, folder, model):
    """Has Claude Code say all; returns its file, its words to start it without a screen, and its variables."""
    kept = claude.kept(folder)
    for n, said in enumerate(SAID):
        claude.ask(program, folder, model, said, "--resume" if n else "--session-id", CLAUDE)
    variables = {
        "CLAUDE_CONFIG_DIR": os.path.join(folder, "home", ".claude"), "ANTHROPIC_BASE_URL": model.url, "IS_SANDBOX": "1",
        "ANTHROPIC_API_KEY": "mock", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
    }
    start = f'"{program}" -p "{THEN}" "$@" --model claude-sonnet-4-5 --dangerously-skip-permissions'
    return os.path.join(kept, f"{CLAUDE}.jsonl"), start, variables


def by_codex(program, folder, model):
    """Does the same with Codex."""
    kept = codex.kept(folder, model)
    for n, said in enumerate(SAID):
        words = ["resume", "--last"] if n else []
        agent.run(folder, [program, "exec", "--skip-git-repo-check", *words, said], {})
    [file] = glob.glob(os.path.join(kept, "sessions", "*", "*", "*", "rollout-*.jsonl"))
    return file, f'"{program}" exec --skip-git-repo-check "$@" "{THEN}"', {}


def main(name, program):
    agent.raise_loopback()
    with agent.home() as folder, Model() as model:
        file, start, variables = {"claude": by_claude, "codex": by_codex}[name](program, folder, model)
        own = pathlib.Path(folder, "bin", name)
        own.parent.mkdir()
        own.write_text(f"#!/bin/sh\nexec {start}\n", encoding="utf-8")
        own.chmod(0o755)
        env = {"HOME": os.path.join(folder, "home"), "PATH": f"{own.parent}:{os.environ['PATH']}", "LANG": "C.UTF-8"}

        def ask(*words):
            command = [os.environ["UNDERTEXT"], *words]
            return subprocess.run(
                command, cwd=os.path.join(folder, "project"), env=env | variables, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, check=False,
            )

        failed = []

        def check(what, is_so):
            if not is_so:
                failed.append(what)

        ask("import")
        revert = ["revert", "@1", "-m", NOTE]
        with open(file, "rb") as held:
            before = held.read()
            refused = ask(*revert)
            check(f"the refusal offers --later: {refused}", refused.returncode == 3 and " --later" in refused.stderr)
            saved = ask(*revert, "--later")
            check(f"the revert waits: {saved}", saved.returncode == 0)
        check("the file is as it was", pathlib.Path(file).read_bytes() == before)
        unasked = ask("resume")
        check(f"nothing starts unasked: {unasked}", unasked.returncode == 1)
        n_asked = len(model.asked)
        resumed = ask("resume", "--apply")
        check(f"the agent starts: {resumed}", resumed.returncode == 0)
        sent = [json.dumps(body) for _, body in model.asked[n_asked:]]
        # It asks for other things too, such as a title.
        sent = max((body for body in sent if THEN in body), key=len, default="")
        for text in [SAID[0], NOTE, THEN]:
            check(f"{text!r} is sent", text in sent)
        for text in SAID[1:]:
            check(f"{text!r} is not sent", text not in sent)
        for what in failed:
            print(f"{name}: not so: {what}")
        print(f"{name}: {len(failed)} of what a revert that waits promises is not so")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
