"""Everything long shows its progress on a terminal, and nowhere else."""

import io
import os
import re
import sys

import pytest

from interlingua.cli.local import show_download
from interlingua.cli.output import Output
from interlingua.simulator import Simulator, VideoScript, latency, serve_in_thread
from support.cli import KEY, Program

VEO = "gemini:veo-3.1-generate-001"
pty = pytest.importorskip("pty")


def on_terminal(program, *arguments):
    """What a command shows on a terminal of 80 columns, without colours and movements."""
    master, slave = pty.openpty()
    program.env |= {"COLUMNS": "80", "LINES": "24", "TERM": "xterm", "NO_COLOR": "1"}
    with program.start(*arguments, stderr=slave, stdout=slave) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # Linux: the other side is closed
                piece = b""
            if not piece:
                break
            shown += piece
        code = process.wait(30)
    os.close(master)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert code == 0, text
    bars = [line for line in re.split(r"[\r\n]+", text) if "━" in line]
    assert max(map(len, bars)) <= 80
    return text


@pytest.fixture
def slow(tmp_path):
    """The program with a simulator that takes its time."""
    videos = [VideoScript(polls=3)]
    app = Simulator(latency(first=0.3), key=KEY, videos=videos, batch_polls=3)
    with serve_in_thread(app) as server:
        program = Program(tmp_path, server.url)
        program.env |= {"GEMINI_API_KEY": KEY, "GEMINI_BASE_URL": server.url}
        (tmp_path / "a.mp3").write_bytes(b"ID3")
        (tmp_path / "in.jsonl").write_text('"one"\n"two"\n"three"\n')
        yield program


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("embed", "-m", "openai:text-embedding-3-small", "-d", "2", "a", "b"), "Embedding .*/2"),
        (("image", "-m", "openai:gpt-image-1", "-o", "a.png", "a"), "Drawing .*0:00:0"),
        (("speak", "-m", "openai:tts-1", "-v", "alloy", "-o", "a.wav", "a"), "Speaking .*0:00:0"),
        (("transcribe", "-m", "openai:whisper-1", "a.mp3"), "Transcribing .*0:00:0"),
        (
            ("video", "create", "-m", VEO, "-o", "a.mp4", "a", "--poll", "0.3"),
            r"Making the video \(in progress\) .*0:00:0",
        ),
        (
            ("batch", "submit", "in.jsonl", "-m", "openai:gpt-5.2", "--wait", "--poll", "0.3"),
            r"Waiting \(in progress\) .*[12]/3",
        ),
        (("compare", "-m", "openai:gpt-5.2", "-m", "openai:gpt-5-mini", "a"), "Asking .*[01]/2"),
        (("check", "--only", "8 the grammar holds"), "Checking .*/4"),
    ],
)  # fmt: skip
def test_on_a_terminal(slow, arguments, shown):
    """A bar with the amount or the time elapsed, which fits into the line."""
    assert re.search(shown, on_terminal(slow, *arguments))


def test_elsewhere(slow):
    """In a pipe there is no bar."""
    done = slow.run("image", "-m", "openai:gpt-image-1", "-o", "a.png", "a")

    assert (done.stdout, done.stderr) == ("a.png\n", "")


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("unit", "shown"), [("items", "3/12"), ("bytes", "3.0/12.0 MB"), ("percent", "25 %")]
)
def test_units(monkeypatch, unit, shown):
    """Items are counted, bytes are megabytes, and the title and the total may change."""
    for name, value in {"COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    size = 1e6 if unit == "bytes" else 1
    with Output().progress("First", unit=unit) as progress:
        progress(2 * size, total=12 * size, title="Second")
        progress(3 * size)
        progress._display.refresh()

    assert "Second" in terminal.getvalue()
    assert shown in terminal.getvalue()


def test_without_a_terminal(monkeypatch):
    """Everything may be called, and nothing is written."""
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with Output().progress("Title", 3) as progress:
        progress(1, total=5, title="Other")
        progress.step()

    assert pipe.getvalue() == ""


@pytest.mark.parametrize(
    ("stream", "shown"), [(Terminal, "46.4/92.9 MB"), (io.StringIO, "(93 MB)")]
)
def test_download_of_the_local_model(monkeypatch, stream, shown):
    """A bar with megabytes on a terminal, and one line elsewhere."""
    for name, value in {"COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    written = stream()
    monkeypatch.setattr(sys, "stderr", written)
    with show_download(Output(), "Downloading smollm2", 92_871_040) as report:
        report(46_435_520)

    assert "Downloading smollm2" in written.getvalue()
    assert shown in written.getvalue()
