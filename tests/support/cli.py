"""The command line as a process of its own, against a simulator on loopback."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pyte
import pytest

from interlingua.simulator import Simulator, pieces, serve_in_thread, stall, text
from support import preloaded
from support.patience import PATIENCE

KEY = "sk-planted-key-of-a-test"
MODEL = "openai:gpt-5.2"
COUNT = "one two three four five six seven eight " * 50
COUNTING = text(COUNT) + pieces(4) + stall(at=4000)
"""An answer that begins at once and never goes on, so that it can be interrupted at any time."""


class Program:
    """Runs `python -m interlingua` in a home of its own, with one simulated provider."""

    def __init__(self, home: Path, url: str | None = None) -> None:
        names = ("PATH", "PYTHONPATH", "PYTHONHASHSEED", "SYSTEMROOT", "XDG_CACHE_HOME")
        self.home = home
        self.env = {name: os.environ[name] for name in names if name in os.environ}
        self.env |= {"INTERLINGUA_HOME": str(home), "HOME": str(home), "PYTHONUTF8": "1"}
        if url is not None:
            self.env |= {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1"}
            self.env |= {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": url}

    def run(self, *arguments, stdin="", **variables):
        """Run a command to its end."""
        env = {**self.env, **variables}
        with self.start(*arguments, stdin=subprocess.PIPE, env=env) as process:
            out, err = process.communicate(stdin)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def start(self, *arguments, **options):
        """Start a command."""
        options = {"env": self.env, "cwd": self.home, **options}
        return preloaded.start(["-m", "interlingua", *arguments], **options)

    @staticmethod
    def command(*arguments):
        """The command as a list, for a fresh interpreter."""
        return [sys.executable, "-m", "interlingua", *arguments]


def simulated(*answers):
    """A server with these answers, as a context manager."""
    return serve_in_thread(Simulator(*answers, key=KEY))


class Terminal:
    """A pseudo-terminal with the program in it, and what is on its screen."""

    def __init__(self, program, *arguments, columns=80, lines=24, **variables):
        self.fd, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._screen = pyte.HistoryScreen(columns, lines, history=10_000, ratio=1)
        self._stream = pyte.ByteStream(self._screen)
        self.process = program.start(
            *arguments,
            stdin=child,
            stdout=child,
            stderr=child,
            env={**program.env, "TERM": "xterm", **variables},
            has_terminal=True,
        )
        os.close(child)
        self.printed = self.seen = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def expect(self, wanted):
        """Read until this text has been printed; returns what was before it."""
        if not self._read_until(lambda: wanted in self.seen):
            self._kill()
            pytest.fail(f"{wanted!r} is not in {self.seen!r}")
        before, _, self.seen = self.seen.partition(wanted)
        return before

    def expect_match(self, pattern):
        """Read until what was printed, without colours and movements, has a match."""
        if not self._read_until(lambda: re.search(pattern, plain(self.seen))):
            self._kill()
            pytest.fail(f"{pattern!r} is not in {plain(self.seen)!r}")

    def interrupt(self, wanted):
        """Press Ctrl-C until this text has been printed; returns what was before it.

        Python's line editor notices the signal while it waits for a key. A signal that comes
        just before that, while it still draws its prompt, is noticed with the next key only.
        """
        end = time.monotonic() + PATIENCE
        while wanted not in self.seen and time.monotonic() < end:
            self.type("\x03")
            self._read_until(lambda: wanted in self.seen, 5)
        return self.expect(wanted)

    def type(self, text):
        """Type a text."""
        os.write(self.fd, text.encode())

    def close(self):
        """Read to the end; returns the exit code."""
        end = time.monotonic() + PATIENCE
        while select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
            try:
                if not self._read():
                    break
            except OSError:  # the program has ended
                break
        code = self.process.wait(timeout=max(1, end - time.monotonic()))
        os.close(self.fd)
        return code

    @property
    def text(self):
        """All lines, from the top of the scrollback, without the empty ones at the end."""
        rows = [*self._screen.history.top, *map(self._screen.buffer.get, range(self._screen.lines))]
        columns = range(self._screen.columns)
        texts = ["".join(row[column].data for column in columns) if row else "" for row in rows]
        return "\n".join(text.rstrip() for text in texts).rstrip()

    def _read_until(self, condition, seconds=PATIENCE):
        """Read what is printed until something is true; returns whether it became so in time."""
        end = time.monotonic() + seconds
        while not condition():
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                return False
            self._read()
        return True

    def _kill(self):
        self.process.kill()
        self.process.wait()
        os.close(self.fd)

    def _read(self):
        data = os.read(self.fd, 4096)
        self._stream.feed(data)
        text = self._decoder.decode(data)  # a line editor may print a character byte by byte
        self.printed += text
        self.seen += text
        return data


def wait_for(condition, process):
    """Wait until something is true, while the program runs."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, "the program has ended"
        assert time.monotonic() < end, "it never came to be so"
        time.sleep(0.01)


def plain(printed):
    """What a terminal was sent, without colours and movements."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed)
