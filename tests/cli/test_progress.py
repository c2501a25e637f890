"""Everything long shows its progress on a terminal, and nowhere else."""

import io
import re
import sys

import pytest

from interlingua.cli.local import show_download
from interlingua.cli.output import Output
from interlingua.simulator import Script, Simulator, VideoScript, latency, serve_in_thread
from support.cli import KEY, Program, Terminal, plain, simulated, wait_for

VEO = "gemini:veo-3.1-generate-001"
PROMPTS = 400


@pytest.fixture
def silent(tmp_path):
    """The program with a simulator that does not answer, and what that has received."""
    script = Script(latency(first=3600))
    with simulated(script) as server:
        (tmp_path / "a.mp3").write_bytes(b"ID3")
        yield Program(tmp_path, server.url), script


@pytest.fixture
def endless(tmp_path):
    """The program with a simulator whose jobs go on and on."""
    app = Simulator(key=KEY, videos=[VideoScript(polls=1_000_000)], batch_polls=PROMPTS)
    with serve_in_thread(app) as server:
        program = Program(tmp_path, server.url)
        program.env |= {"GEMINI_API_KEY": KEY, "GEMINI_BASE_URL": server.url}
        (tmp_path / "in.jsonl").write_text('"one"\n' * PROMPTS)
        yield program


def show(program, *arguments, until):
    """Run a command on a terminal until it shows this."""
    terminal = Terminal(program, *arguments, NO_COLOR="1")
    terminal.expect_match(until)
    return terminal


def assert_lines_fit(terminal):
    """Nothing that was drawn, at any time, is wider than the terminal."""
    assert max(map(len, re.split(r"[\r\n]+", plain(terminal.printed)))) <= 80


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("embed", "-m", "openai:text-embedding-3-small", "-d", "2", "a", "b"), "Embedding .*0/2"),
        (("image", "-m", "openai:gpt-image-1", "-o", "a.png", "a"), "Drawing .*0:00:0"),
        (("speak", "-m", "openai:tts-1", "-v", "alloy", "-o", "a.wav", "a"), "Speaking .*0:00:0"),
        (("transcribe", "-m", "openai:whisper-1", "a.mp3"), "Transcribing .*0:00:0"),
        (("compare", "-m", "openai:gpt-5.2", "-m", "openai:gpt-5-mini", "a"), "Asking .*0/2"),
    ],
)
def test_on_a_terminal(silent, arguments, shown):
    """A bar with the amount or the time elapsed, which fits into the line."""
    program, script = silent
    terminal = show(program, *arguments, until=shown)
    wait_for(lambda: script.received, terminal.process)
    terminal.interrupt("interrupted")

    assert terminal.close() == 130
    assert_lines_fit(terminal)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (
            ("video", "create", "-m", VEO, "-o", "a.mp4", "a"),
            r"Making the video \(in progress\) .*0:00:0",
        ),
        (
            ("batch", "submit", "in.jsonl", "-m", "openai:gpt-5.2", "--wait"),
            rf"Waiting \(in progress\) .*━.* [1-9]\d*/{PROMPTS} .*0:00:0",
        ),
    ],
)
def test_jobs_on_a_terminal(endless, arguments, shown):
    """The state of the job and the time elapsed, and of a batch how much of it is done."""
    terminal = show(endless, *arguments, "--poll", "0.01", until=shown)
    terminal.interrupt("interrupted")

    assert terminal.close() == 130
    assert_lines_fit(terminal)


def test_the_last_state_on_a_terminal(bare):
    """All is done at the end."""
    terminal = show(bare, "check", "--only", "8 the grammar holds", until="Checking .*━.* 5/5")

    assert terminal.close() == 0
    assert_lines_fit(terminal)


def test_elsewhere(program, tmp_path):
    """In a pipe there is no bar."""
    done = program.run("image", "-m", "openai:gpt-image-1", "-o", str(tmp_path / "a.png"), "a")

    assert (done.stdout, done.stderr) == (f"{tmp_path / 'a.png'}\n", "")


class Screen(io.StringIO):
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
    terminal = Screen()
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


@pytest.mark.parametrize(("stream", "shown"), [(Screen, "46.4/92.9 MB"), (io.StringIO, "(93 MB)")])
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
