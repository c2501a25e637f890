"""
The picture docs/assets/terminal.svg: the command line in a terminal, from a real run.

The commands run in a pseudo-terminal against the simulator, whose answers are written below.
"""

import codecs
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping
from html import escape
from itertools import groupby
from pathlib import Path

import pyte

from docs_build import pages
from interlingua import Request
from interlingua.simulator import Script, Simulator, Turn, latency, pieces, serve_in_thread, text

COLUMNS, LINES = 92, 44
PICTURE = pages.DOCS / "assets" / "terminal.svg"
ANSWERS = {
    "tides": "Because the Earth turns through **two bulges** of water: one below the Moon, and "
    "one on the far side, where the Moon pulls *less*.",
    "Python": "A cosine is a good start:\n\n```python\ndef height(hours: float) -> float:\n"
    '    """The tide, in metres."""\n    return 3.5 * cos(2 * pi * hours / 12.42)\n```\n\n'
    "The period is **12 h 25 min**, because the Moon moves on.",
    "haiku": "The harbour breathes out,\nboats lean on shining mud.\nSix hours. It breathes in.",
}
CHAT, OTHER, THIRD = "openai:gpt-5.2", "anthropic:claude-haiku-4-5", "gemini:gemini-2.5-flash"
QUIET = 0.7  # seconds without output, after which a program is waiting
STEPS = [
    (["ask", "-u", "-m", CHAT, "Why are there two tides a day?"], []),
    (
        ["chat", "-m", OTHER],
        ["A formula in Python?", f"/model {CHAT}", "And a haiku, please.", "/cost", "\x04"],
    ),
    (["compare", "-m", OTHER, "-m", THIRD, "Why tides?"], []),
]
# Width and height of a cell, size of the font, and the space around.
CELL, LINE, FONT, MARGIN = 8.4, 18, 14, 16
GROUND, TEXT, FAINT, EDGE = "#16181d", "#d7dae0", "#8b919c", "#3a3f4a"
TITLE = "interlingua, with answers of the simulator"
STYLE = (
    f"text{{font:{FONT}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    f"fill:{TEXT};white-space:pre}}.b{{font-weight:bold}}.i{{font-style:italic}}"
    ".u{text-decoration:underline}"
)
COLORS = {"red": "#f07178", "green": "#a5d66f", "brown": "#e6c07b", "blue": "#6cb6ff",
          "magenta": "#d69cf0", "cyan": "#5ccfe6", "white": TEXT, "black": FAINT}  # fmt: skip


def answer(request: Request) -> Turn:
    """The answer to a prompt, in pieces, as a model would send it."""
    prompt = request.messages[-1].text
    found = next(value for word, value in ANSWERS.items() if word in prompt)
    return text(found) + pieces(9) + latency(first=0.3, between=0.01)


class Terminal:
    """A screen, on which programs write one after the other."""

    def __init__(self, env: dict[str, str]) -> None:
        self._env = env
        self.screen = FaintScreen(COLUMNS, LINES)
        self._stream = pyte.Stream(self.screen)
        self.screen.set_mode(pyte.modes.LNM)

    def run(self, arguments: list[str], lines: list[str]) -> None:
        """Run a command, and type these lines at its prompts."""
        shown = " ".join(f'"{word}"' if " " in word else word for word in arguments)
        self._stream.feed(f"\x1b[1;32m$\x1b[0m \x1b[1minterlingua {shown}\x1b[0m\n")
        fd, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        command = [sys.executable, "-m", "interlingua", *arguments]
        process = subprocess.Popen(  # noqa: S603 -- ours
            command, stdin=child, stdout=child, stderr=child, env=self._env, start_new_session=True
        )
        os.close(child)
        for line in lines:
            self._read(fd, "> ")
            os.write(fd, (line if line == "\x04" else f"{line}\n").encode())
        self._read(fd, None)
        process.wait()
        os.close(fd)
        self._stream.feed("\n")

    def _read(self, fd: int, prompt: str | None) -> None:
        """Read until the program waits behind this prompt, or to the end."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if not select.select([fd], [], [], QUIET)[0]:
                row = self.screen.display[self.screen.cursor.y][: self.screen.cursor.x]
                if prompt is not None and row == prompt:
                    return
                continue
            try:
                data = decoder.decode(os.read(fd, 4096))
            except OSError:
                return
            self._stream.feed(data.replace("\x1b[2m", "\x1b[30m"))  # pyte knows no faint text


class FaintScreen(pyte.Screen):
    """A screen whose lines that scroll off are an error: the picture must hold all of them."""

    def index(self) -> None:
        """Go to the next line."""
        if self.cursor.y == self.lines - 1:
            raise SystemExit("The terminal has too few lines for the picture; raise LINES.")
        super().index()


def draw(screen: pyte.Screen) -> str:
    """The screen as SVG."""
    rows = [screen.buffer[index] for index in range(screen.lines)]
    count = max(index for index, row in enumerate(screen.display) if row.strip()) + 1
    width, height = COLUMNS * CELL + 2 * MARGIN, (count + 1) * LINE + 2 * MARGIN
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}"'
    inner = f'x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{TITLE}">',
        f"<style>{STYLE}</style>",
        f'<rect {inner} rx="8" fill="{GROUND}" stroke="{EDGE}"/>',
    ]
    for index, color in enumerate(("#f07178", "#e6c07b", "#a5d66f")):
        x = MARGIN + 6 + 20 * index
        parts.append(f'<circle cx="{x}" cy="{MARGIN + 2}" r="6" fill="{color}"/>')
    place = f'x="{width / 2:.0f}" y="{MARGIN + 6}" text-anchor="middle"'
    parts.append(f'<text {place} style="fill:{FAINT}">{TITLE}</text>')
    for index, row in enumerate(rows[:count]):
        parts += _draw_row(row, MARGIN + (index + 2) * LINE)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _draw_row(row: Mapping[int, pyte.screens.Char], y: int) -> Iterator[str]:
    cells = [(column, row[column]) for column in range(COLUMNS)]
    for style, group in groupby(cells, key=lambda cell: _style(cell[1])):
        run = list(group)
        content = "".join(cell.data for _, cell in run)
        if content.strip():
            start = run[0][0] + len(content) - len(content.lstrip())
            content = content.strip()
            yield (
                f'<text x="{MARGIN + start * CELL:.1f}" y="{y}" '
                f'textLength="{len(content) * CELL:.1f}"{style}>{escape(content)}</text>'
            )


def _style(cell: pyte.screens.Char) -> str:
    names = [letter for letter, is_on in (
        ("b", cell.bold), ("i", cell.italics), ("u", cell.underscore)) if is_on]  # fmt: skip
    classes = f' class="{" ".join(names)}"' if names else ""
    color = COLORS.get(cell.fg)
    return classes + (f' style="fill:{color}"' if color and color != TEXT else "")


def texts() -> dict[Path, str]:
    """Run the commands and draw the screen."""
    with (
        serve_in_thread(Simulator(Script(answer))) as server,
        tempfile.TemporaryDirectory() as home,
    ):
        bases = {"OPENAI": f"{server.url}/v1", "ANTHROPIC": server.url, "GEMINI": server.url}
        env = {**os.environ, "INTERLINGUA_HOME": home, "TERM": "xterm", "COLUMNS": str(COLUMNS)}
        env |= {"INTERLINGUA_NO_LOG": "1", "LINES": str(LINES)}
        for name, url in bases.items():
            env |= {f"{name}_API_KEY": "simulated", f"{name}_BASE_URL": url}
        env.pop("NO_COLOR", None)
        terminal = Terminal(env)
        for arguments, lines in STEPS:
            terminal.run(arguments, lines)
    return {PICTURE: draw(terminal.screen)}
