#!/usr/bin/env python3
"""Draws docs/picture.svg: python3 docs/picture.py PATH/TO/undertext

Runs the program on examples/claude-garden.jsonl in an empty home, on a terminal of 80 columns, and draws what it prints. The
lanes of the graph are shapes and every word has its own place, so the columns line up in any font. The card brings its own
background, so it looks alike on light and dark pages.
"""

import fcntl, html, os, pathlib, pty, re, shutil, struct, subprocess, sys, tempfile, termios, unicodedata

COLUMNS, WIDE, TALL, PAD, BAR = 80, 9.6, 21, 24, 34
LINES = [
    "undertext graph",
    "undertext revert @3 -m 'It stays dry until Friday after all.'",
    "undertext graph",
]
INK, PAPER, DIM = "#e6e1d6", "#1f2229", "#8d919b"
COLOURS = {"33": "#e5b567", "35": "#c792ea", "36": "#6cc4d8"}
DOCS = pathlib.Path(__file__).resolve().parent


def answers(program):
    """Yields each command and what it prints."""
    # Ids cover the path of the home: a fixed one gives the same picture again.
    home = os.path.realpath(tempfile.gettempdir()) + "/undertext-picture"
    os.mkdir(home, 0o700)
    try:
        folder = pathlib.Path(home, ".claude/projects/-garden")
        folder.mkdir(parents=True)
        os.mkdir(home + "/garden")
        session = (DOCS.parent / "examples/claude-garden.jsonl").read_text().replace("/home/ann", home)
        (folder / "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl").write_text(session)
        env = {"HOME": home, "TZ": "UTC", "TERM": "xterm-256color", "UNDERTEXT_PAGER": "cat", "LC_ALL": "C.UTF-8",
               "PATH": home + ":" + os.environ["PATH"]}
        os.symlink(os.path.realpath(program), home + "/undertext")
        for second, line in enumerate(LINES):
            # A debug build takes chance and time from here: a minute after the session's last turn.
            env["UNDERTEXT_TEST_SEED"] = str(second)
            env["UNDERTEXT_TEST_CLOCK"] = str(1787216580000 + 1000 * second)
            ours, theirs = pty.openpty()
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
            run = subprocess.Popen(["sh", "-c", line], cwd=home + "/garden", env=env, stdin=subprocess.DEVNULL,
                                   stdout=theirs, stderr=subprocess.DEVNULL)
            os.close(theirs)
            said = b""
            try:
                while part := os.read(ours, 65536):
                    said += part
            except OSError:
                pass  # The other end is closed.
            if run.wait():
                sys.exit(f"{line}: exit {run.returncode}")
            # A revert copies the prompt to the clipboard, with a sequence that prints nothing.
            said = re.sub(r"\x1b\].*?(\x07|\x1b\\)|\r", "", said.decode())
            yield line, said.rstrip("\n").split("\n")
    finally:
        shutil.rmtree(home)


def pieces(line):
    """Yields (column, text, colour, is bold) for each run of one style."""
    column, style = 0, []
    for text, codes in re.findall(r"([^\x1b]+)|\x1b\[([\d;]*)m", line):
        if not text:
            style = [] if codes in ("", "0") else codes.split(";")
            continue
        colour = next((COLOURS[code] for code in style if code in COLOURS), DIM if "2" in style else INK)
        yield column, text, colour, "1" in style
        column += sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def shape(c, x, y, colour):
    """Draws a sign of the graph in the cell whose middle is (x, y), or returns None."""
    h, w = TALL / 2, WIDE
    line = lambda d: f'<path d="{d}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
    dot = lambda r, fill: f'<circle cx="{x}" cy="{y}" r="{r}" fill="{fill}" stroke="{colour}" stroke-width="1.6"/>'
    return {
        "○": lambda: dot(4, PAPER),
        "◉": lambda: dot(5, PAPER) + f'<circle cx="{x}" cy="{y}" r="2.4" fill="{colour}"/>',
        "◆": lambda: f'<path d="M{x} {y - 5}L{x + 5} {y}L{x} {y + 5}L{x - 5} {y}Z" fill="{colour}"/>',
        "│": lambda: line(f"M{x} {y - h}V{y + h}"),
        "├": lambda: line(f"M{x} {y - h}V{y + h}M{x} {y}H{x + w / 2}"),
        "─": lambda: line(f"M{x - w / 2} {y}H{x + w / 2}"),
        "╯": lambda: line(f"M{x - w / 2} {y}H{x - 3}Q{x} {y} {x} {y - 4}V{y - h}"),
    }.get(c, lambda: None)()


def main(program):
    rows, prompts = [], set()
    for line, said in answers(program):
        prompts.add(len(rows))
        rows += ["$ " + line, *said, ""]
    rows.pop()
    width, height = round(COLUMNS * WIDE + 2 * PAD), BAR + len(rows) * TALL + PAD
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        'font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,\'DejaVu Sans Mono\',monospace" font-size="15.5">',
        "<title>undertext graph, then revert with a note, then graph</title>",
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="10" fill="{PAPER}" stroke="#4a4e58"/>',
        *(f'<circle cx="{PAD + 18 * n}" cy="18" r="5.5" fill="#4a4e58"/>' for n in range(3)),
    ]
    for n, row in enumerate(rows):
        y = BAR + TALL * n + TALL / 2
        for column, text, colour, is_bold in pieces(row):
            if n in prompts:
                colour, is_bold = "#f5f1e8", True
            for m in re.finditer(r"[○◉◆│├─╯]|[^\s○◉◆│├─╯]+(?: [^\s○◉◆│├─╯]+)*", text):
                x = round(PAD + WIDE * (column + m.start()), 1)
                lane = DIM if m[0] in "│├─╯" else colour
                if drawn := shape(m[0], round(x + WIDE / 2, 1), y, lane):
                    out.append(drawn)
                    continue
                weight = ' font-weight="bold"' if is_bold else ""
                length = round(WIDE * len(m[0]), 1)
                out.append(f'<text x="{x}" y="{y + 5}" fill="{colour}"{weight} textLength="{length}" '
                           f'lengthAdjust="spacingAndGlyphs">{html.escape(m[0])}</text>')
    (DOCS / "picture.svg").write_text("\n".join([*out, "</svg>", ""]))


if __name__ == "__main__":
    main(*sys.argv[1:])
