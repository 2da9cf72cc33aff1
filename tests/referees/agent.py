"""Runs an agent where nothing but itself can be reached: a HOME of its own, no variables, and no network but loopback.

A driver is started by `unshare -rn python3 DRIVER PROGRAM FILE`; it prints the parts that the agent sent, or says on stderr
why the agent refused and ends with 3.
"""

import contextlib
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile


def raise_loopback():
    """Raises the loopback of this network, which begins without one."""
    get, put, is_up = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        name = struct.pack("16sh14s", b"lo", 0, b"")
        flags = struct.unpack("16sh14s", fcntl.ioctl(any_socket, get, name))[1]
        fcntl.ioctl(any_socket, put, struct.pack("16sh14s", b"lo", flags | is_up, b""))


def refuse(why):
    """Ends with the reason why there is nothing to compare."""
    print(why.strip()[-400:], file=sys.stderr)
    sys.exit(3)


@contextlib.contextmanager
def home():
    """Returns a folder that is removed in the end: `home` and `project` lie in it."""
    # Not in the temporary folder, where some agents do not look for what they keep.
    with tempfile.TemporaryDirectory(dir=os.environ.get("REFEREES_WORK")) as folder:
        for name in ("home", "project"):
            os.mkdir(os.path.join(folder, name))
        yield folder


def run(folder, command, variables):
    """Runs a command in the project of a folder; refuses where it fails."""
    own = {"HOME": os.path.join(folder, "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    variables = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"} | own | variables
    done = subprocess.run(
        command, cwd=os.path.join(folder, "project"), env=variables, stdin=subprocess.DEVNULL,
        capture_output=True, check=False, text=True, errors="replace",
    )
    if done.returncode != 0:
        refuse(done.stderr + done.stdout)
    return done


def records(path):
    """Returns the records of a JSONL file that are objects."""
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            with contextlib.suppress(ValueError):
                record = json.loads(line)
                if isinstance(record, dict):
                    yield record
