"""A model on loopback that records what an agent sends: Anthropic's messages, OpenAI's responses.

It answers "Mock answer.", but where the last thing said is `RUN: COMMAND`, it first calls the agent's tool for that.
"""

import gzip
import http.server
import json
import subprocess
import threading
import uuid

ANSWER = "Mock answer."
RUN = "RUN: "
# The names that agents give to the tool that runs a command, and what it is called with.
TOOLS = {
    "Bash": lambda command: {"command": command},
    "bash": lambda command: {"command": command},
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
}


class Model:
    """Serves on a port of its own until the block ends; `asked` holds path and body of each request, in order."""

    def __enter__(self):
        model = self
        self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.reply("application/json", json.dumps({"data": [], "models": []}))

            def do_POST(self):
                path, body = self.path.split("?")[0], read(self)
                model.asked.append((path, body))
                self.reply(*answer(path, body))

            def reply(self, kind, text):
                data = text.encode()
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()


def read(handler):
    """Returns the body of a request as JSON, unpacked; an empty object if it is none."""
    data = handler.rfile.read(int(handler.headers.get("content-length") or 0))
    packed = handler.headers.get("content-encoding")
    if packed == "gzip":
        data = gzip.decompress(data)
    elif packed == "zstd":
        data = subprocess.run(["zstd", "-dc"], input=data, capture_output=True, check=True).stdout
    try:
        return json.loads(data)
    except ValueError:
        return {}


def events(steps):
    """Returns a stream of server-sent events, each named by its type."""
    return "".join(f"event: {step['type']}\ndata: {json.dumps(step)}\n\n" for step in steps)


def answer(path, body):
    """Returns the type and the text of an answer."""
    if path.endswith("/count_tokens"):
        return "application/json", json.dumps({"input_tokens": 1000})
    if path.endswith("/messages"):
        return messages(body)
    if path.endswith("/responses"):
        return responses(body)
    return "application/json", "{}"


def wanted_call(body, said):
    """Returns the tool that the last message asks for, and what it is called with, if the agent has one."""
    last = said[-1] if said else {}
    content = last.get("content") if last.get("role") == "user" else None
    texts = [content] if isinstance(content, str) else [block.get("text") or "" for block in content or []]
    command = next((text[len(RUN):] for text in texts if text.startswith(RUN)), None)
    names = {tool.get("name") for tool in body.get("tools") or []}
    return next(((name, TOOLS[name](command)) for name in TOOLS if command and name in names), None)


def messages(body):
    """Answers as Anthropic's interface does, in a stream where that is asked for."""
    # An answer has an id of its own, whichever process asks.
    number, called = uuid.uuid4().hex, wanted_call(body, body.get("messages") or [])
    block, delta = {"type": "text", "text": ANSWER}, {"type": "text_delta", "text": ANSWER}
    empty = block | {"text": ""}
    if called:
        empty = {"type": "tool_use", "id": f"toolu_mock{number}", "name": called[0], "input": {}}
        block = empty | {"input": called[1]}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(called[1])}
    stop = "tool_use" if called else "end_turn"
    message = {
        "id": f"msg_mock{number}", "type": "message", "role": "assistant", "model": body.get("model", "mock"),
        "content": [block], "stop_reason": stop, "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 3},
    }
    if not body.get("stream"):
        return "application/json", json.dumps(message)
    return "text/event-stream", events([
        {"type": "message_start", "message": message | {"content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ])


def responses(body):
    """Answers as OpenAI's interface of responses does, in a stream."""
    called = wanted_call(body, body.get("input") or [])
    said = [{"type": "output_text", "text": ANSWER, "annotations": []}]
    item = {"type": "message", "id": "msg_mock", "status": "completed", "role": "assistant", "content": said}
    if called:
        name = f"call_mock{uuid.uuid4().hex}"
        item = {
            "type": "function_call", "id": "fc_mock", "status": "completed", "call_id": name, "name": called[0],
            "arguments": json.dumps(called[1]),
        }
    usage = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
    response = {
        "id": "resp_mock", "object": "response", "created_at": 1, "status": "completed",
        "model": body.get("model", "mock"), "output": [item], "usage": usage,
    }
    return "text/event-stream", events([
        {"type": "response.created", "response": response | {"status": "in_progress", "output": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ])
