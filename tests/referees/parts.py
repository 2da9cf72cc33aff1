"""What a model is sent, as parts that can be compared: who speaks, what it is, and which words or which call.

A part is one line: `user text 1f2e3d4c5b6a7980 the first words`, `assistant call ID`, `tool result 1f2e3d4c5b6a7980 ID`. Left
out is the content of an agent says by itself and no file: reminders, unless they hold words of the user, the prompt with which a
session is resumed, and answers that it puts in for calls that nothing answered. Reasoning and empty texts are left out too.
"""

import hashlib
import json
import re

PROMPT = "REFEREE: go on."
REMINDER = re.compile("<system-reminder>.*?</system-reminder>", re.DOTALL)
# How Claude Code sends the words that a user said while it worked.
QUEUED = "The user sent a new message"
# The digest of a result that an agent cut as it sent it.
CUT = "cut"


def digest(words):
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def text(role, words):
    """Returns the part of a text, in a list; nothing for what is left out."""
    words = words.strip()
    if not words or words.startswith(PROMPT) or words.startswith("<system-reminder>") and QUEUED not in words:
        return []
    return [f"{role} text {digest(words)} {' '.join(words.split())[:60]}"]


def call(name):
    return [f"assistant call {name}"]


def result(name, content):
    """Returns the part of a result, whose content is a string or a list of blocks that may have texts."""
    blocks = [content] if isinstance(content, str) else content or []
    words = "".join(block if isinstance(block, str) else block.get("text") or "" for block in blocks)
    kept = REMINDER.sub(lambda found: found[0] if QUEUED in found[0] else "", words)
    return [f"tool result {digest(kept.strip())} {name}"]


def named(part):
    """Returns which call a part answers, if it is a result."""
    return part.split(" ", 3)[3] if part.startswith("tool result ") else None


def blocks(role, content):
    """Returns the parts of a message in Anthropic's blocks, which undertext prints too."""
    if isinstance(content, str):
        return text(role, content)
    found = []
    for block in content:
        kind = block["type"]
        if kind == "text":
            found += text(role, block["text"])
        elif kind == "tool_use":
            found += call(block["id"])
        elif kind == "tool_result":
            found += result(block["tool_use_id"], block.get("content"))
        elif kind == "image":
            found.append(f"{role} image")
    return found


def show(parts):
    """Prints parts, one a line, whatever characters they hold."""
    for part in parts:
        print(json.dumps(part))
