import io
import sys

import pytest

from interlingua.local.model import plain, show


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_the_bar_grows():
    """Each change of the percentage is drawn over the last; too much counts as all."""
    out = Terminal()

    with plain("Fetching", 200, out=out) as report:
        for done in (0, 1, 100, 101, 300):
            report(done)

    drawn = out.getvalue().removesuffix("\n").split("\r")[1:]
    assert [line[-5:] for line in drawn] == ["  0 %", " 50 %", "100 %"]
    assert [line.count("#") for line in drawn] == [0, 15, 30]


def test_elsewhere_one_line_says_it():
    """A log file gets one line, not a hundred."""
    out = io.StringIO()

    with plain("Fetching", 2_000_000, out=out) as report:
        report(1_000_000)

    assert out.getvalue() == "Fetching (2 MB)\n"


def test_a_failure_ends_the_line():
    """What is said after a failure does not stand behind the bar."""
    out = Terminal()

    with pytest.raises(OSError, match="gone"), plain("Fetching", 10, out=out):
        raise OSError("gone")

    assert out.getvalue().endswith("\n")


def test_show_says_it_on_stderr(capsys):
    """Whichever bar there is, the title goes to stderr and stdout stays clean."""
    with show("Fetching it", 10) as report:
        report(10)

    said = capsys.readouterr()
    assert "Fetching it" in said.err
    assert said.out == ""


def test_show_does_without_rich(monkeypatch, capsys):
    """A plain line comes where `rich` cannot be imported."""
    monkeypatch.setitem(sys.modules, "rich.progress", None)

    with show("Fetching it", 5_000_000):
        pass

    assert capsys.readouterr().err == "Fetching it (5 MB)\n"
