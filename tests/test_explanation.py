"""The generated parts of the explanation are those of the code and of the measurement."""

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from interlingua.conformance.laws import LAWS
from interlingua.prepare import settings
from interlingua.prepare.history import rules
from interlingua.spec.warning_table import WARNINGS

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "explanation"
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "benchmarks")]

import report  # noqa: E402
from docs_build import performance, render  # noqa: E402


def page(name):
    return (FOLDER / name).read_text(encoding="utf-8")


def test_the_picture_shows_the_walk():
    """A box for each stay: from `generate` to the transport and back."""
    svg = ET.fromstring(page("walk.svg"))  # noqa: S314 -- our own file
    texts = [node.text for node in svg.iter("{http://www.w3.org/2000/svg}text")]

    files = [text for text in texts if text.endswith(".py")]
    assert files[0] == "generate.py"
    boxes = svg.findall(".//{http://www.w3.org/2000/svg}rect")
    assert boxes[-1].get("class") == "api"
    assert {"attempts.py", "generation.py", "prepare.py", "canned.py"} <= set(files)


def test_every_rule_is_on_the_page():
    """With what it is about and with warnings of the table; every rule that warns says of what."""
    text = page("prepare-rules.md")
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+) \|$", text, re.MULTILINE)
    known = {code: codes for code, _, codes in rows}

    for rule, _ in (*settings.RULES, *rules.RULES):
        for code in re.findall(r"`(\w+)`", known[render.first_paragraph(rule)]):
            assert code in WARNINGS
    assert text.count("none: nothing is lost") < 6


def test_every_law_is_on_the_page():
    """By its name."""
    assert [name for name in LAWS if f"| {name} |" not in page("laws.md")] == []


# Performance.


@pytest.fixture
def figures(tmp_path, monkeypatch, capsys):
    """What a benchmark of two dialects saves."""
    for name in ("_SEEN", "_TABLES", "_LIMITS"):
        monkeypatch.setattr(report, name, [])
    samples = {
        (who, name): [cost * 1e-6, cost * 2e-6]
        for name in ("openai_chat", "gemini_generate")
        for who, cost in (("raw", 100), ("ours", 150), ("vendor", 1000))
    }
    vendors = {"openai_chat": "openai", "gemini_generate": "google-genai"}
    measure = report.Measure("A call", "us", 1e6, {"raw": 1.6}, fastest=0.1)
    report.compare(measure, samples, vendors)
    report.save(tmp_path / "figures.json", is_quick=True)
    assert "A call (us)" in capsys.readouterr().out
    return json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))


def test_a_benchmark_saves_its_figures(figures):
    """Costs, ratios and limits, and what they were measured with; nothing of the machine's name."""
    (table,) = figures["tables"]
    assert table["rows"][0] == {
        "dialect": "openai_chat",
        "vendor_name": "openai",
        "raw": 100.0,
        "ours": 150.0,
        "vendor": 1000.0,
        "x_raw": 1.5,
        "x_vendor": 0.15,
        "x_fastest": 0.15,
    }
    assert [each["kept"] for each in figures["limits"]] == [True, False] * 2
    assert {*figures["about"]} == {"python", "system", "cores", "quick", "packages"}


def test_the_page_shows_the_figures(figures):
    """A row for each dialect, a row for each limit, and that a quick run is a quick run."""
    text = performance.tables(figures)

    assert "### A call (µs of CPU)" in text
    assert "| `openai_chat` | 150.0 | 100.0 | 1.50 | openai 1,000.0 | 0.15 | 0.15 |" in text
    assert "| A call, openai_chat, x fastest | 0.15 | 0.1 | no |" in text
    assert "quick run" in text


def test_the_saved_figures_are_those_of_a_whole_run():
    """The page is written from a run with many rounds and all tables."""
    saved = json.loads(performance.FIGURES.read_text(encoding="utf-8"))

    assert len(saved["tables"]) > 5
    assert not saved["about"]["quick"]
