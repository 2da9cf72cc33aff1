"""kimi.py FILE [AFTER]: restores a copy of a context.jsonl with Kimi CLI's own Context, and prints what it holds; with AFTER,
that file gets a turn of Kimi's own first. Run by its Python.

kimi.py --make: has that Context make a session in REFEREES_MADE, and prints a name and the files of each state, as made.py
wants it.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import parts
from kimi_cli.soul.context import Context
from kosong.message import Message


def blocks(message):
    """Returns the parts of a message."""
    content = message.content if isinstance(message.content, list) else [message.content]
    texts = [part if isinstance(part, str) else getattr(part, "text", "") for part in content]
    if message.role == "tool":
        return parts.result(message.tool_call_id, texts)
    found = [p for text in texts if text for p in parts.text(message.role, text)]
    return found + [p for call in message.tool_calls or [] for p in parts.call(call.id)]


async def say(context, words):
    await context.checkpoint(False)
    await context.append_message(Message(role="user", content=words))
    await context.append_message(Message(role="assistant", content="Mock answer."))


async def write(file):
    context = Context(Path(file))
    await context.restore()
    await say(context, "Kimi goes on.")


async def make(folder):
    context = Context(folder / "context.jsonl")
    (folder / "context.jsonl").touch()

    def lay(state):
        kept = folder / state
        kept.mkdir()
        files = [Path(shutil.copy(file, kept)) for file in sorted(folder.glob("context*.jsonl"))]
        print(json.dumps([state, *map(str, files)]))

    await context.write_system_prompt("You are Kimi.")
    for words in ("What is in the shed?", "And behind it?", "And in the garden?"):
        await say(context, words)
    lay("said")
    await context.revert_to(1)
    lay("gone-back")
    await say(context, "And on the roof?")
    lay("gone-back-and-said")
    # As its own compaction does.
    prompt = context.system_prompt
    await context.clear()
    await context.write_system_prompt(prompt)
    await context.checkpoint(False)
    await context.append_message(Message(role="user", content="<system>The shed was looked at.</system>"))
    lay("compacted")
    await say(context, "And now?")
    lay("compacted-and-said")


async def main(file, after=None):
    if after:
        await write(after)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "context.jsonl"
        shutil.copy(file, copy)
        context = Context(copy)
        await context.restore()
        if context.system_prompt:
            parts.show(parts.text("system", context.system_prompt))
        for message in context.history:
            parts.show(blocks(message))


if sys.argv[1] == "--make":
    asyncio.run(make(Path(os.environ["REFEREES_MADE"])))
else:
    asyncio.run(main(*sys.argv[1:]))
