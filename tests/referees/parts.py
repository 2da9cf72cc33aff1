"""What a model is sent, as parts that can be compared: who speaks, what it is, and which words or which call.

A part is one line: `user text 1f2e3d4c5b6a7980 the first words`, `assistant call ID`, `tool result ID`. Left out is what an
agent says by itself and no file holds: texts that begin as one of `ADDED`, the prompt with which a session is resumed, and
answers that it puts in for calls that nothing answered. Reasoning and empty texts are left out too.
"""

import hashlib
import json

PROMPT = "REFEREE: go on."
ADDED = ("<system-reminder>", PROMPT)


def text(role, words):
    """Returns the part of a text, in a list; nothing for what is left out."""
    words = words.strip()
    if not words or words.startswith(ADDED):
        return []
    digest = hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return [f"{role} text {digest} {' '.join(words.split())[:60]}"]


def call(name):
    return [f"assistant call {name}"]


def result(name):
    return [f"tool result {name}"]


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
            found += result(block["tool_use_id"])
        elif kind == "image":
            found.append(f"{role} image")
    return found


def show(parts):
    """Prints parts, one a line, whatever characters they hold."""
    for part in parts:
        print(json.dumps(part))
