"""kimi.py FILE [AFTER]: restores a copy of a context.jsonl with Kimi CLI's own Context, and prints what it holds; with AFTER,
that file gets a turn of Kimi's own first. Run by its Python.
"""

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

import parts
from kimi_cli.soul.context import Context
from kosong.message import Message


def blocks(message):
    """Returns the parts of a message."""
    if message.role == "tool":
        return parts.result(message.tool_call_id)
    content = message.content if isinstance(message.content, list) else [message.content]
    texts = [part if isinstance(part, str) else getattr(part, "text", "") for part in content]
    found = [p for text in texts if text for p in parts.text(message.role, text)]
    return found + [p for call in message.tool_calls or [] for p in parts.call(call.id)]


async def write(file):
    context = Context(Path(file))
    await context.restore()
    await context.checkpoint(False)
    await context.append_message(Message(role="user", content="Kimi goes on."))
    await context.append_message(Message(role="assistant", content="Mock answer."))


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


asyncio.run(main(*sys.argv[1:]))
