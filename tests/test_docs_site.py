"""The documentation site builds strictly; `scripts/docs` does this for readers."""

import json
import math
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import docs_site  # noqa: E402

from support.node import run_node  # noqa: E402

PAGES = [*docs_site.pages_of(docs_site.read_config()["nav"])]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder in which the whole site was built."""
    folder = tmp_path_factory.mktemp("built")
    docs_site.build(folder)
    return folder


def test_every_page_is_built(built):
    """Each entry of the navigation is an HTML page with the words of its Markdown, and the menu."""
    for page in PAGES:
        html = (built / "site" / page.path).with_suffix(".html").read_text(encoding="utf-8")
        heading = re.search(
            r"^# (.*)", (built / "docs" / page.path).read_text("utf-8"), re.MULTILINE
        )[1]
        assert heading.split("`")[0] in html
        assert "Tutorial" in html
    assert len(PAGES) > 50


def test_llms_txt_has_one_line_for_each_page(built):
    """With its title, a link to its Markdown, and its first sentence."""
    index = (built / "site" / "llms.txt").read_text(encoding="utf-8")
    lines = re.findall(r"^- \[(.+?)\]\((.+?)\): (.+)$", index, re.MULTILINE)

    assert [(title, path) for title, path, _ in lines] == [(p.title, p.path) for p in PAGES]
    for _, path, _ in lines:
        assert (built / "site" / path).is_file()


def test_llms_full_txt_has_every_page(built):
    """Whole, in the order of the navigation."""
    full = (built / "site" / "llms-full.txt").read_text(encoding="utf-8")
    texts = [(built / "docs" / page.path).read_text(encoding="utf-8").strip() for page in PAGES]

    assert full.count("\n<!-- ") >= len(PAGES)
    at = 0
    for text in texts:
        at = full.index(text, at) + len(text)


def test_the_pages_of_the_root_are_in_the_site(built):
    """Their links lead to the pages of the site."""
    text = (built / "docs" / "changelog.md").read_text(encoding="utf-8")

    assert "](howto/command-line.md)" in text
    assert "](docs/" not in text


def test_a_page_says_that_its_answers_are_examples(built):
    """Once, where answers are prepared for the tests, and on no other page."""
    for name, count in (("howto/streaming", 1), ("howto/configuration", 1), ("reference", 0)):
        html = (built / "site" / f"{name}.html").read_text(encoding="utf-8")
        assert html.count("answers on this page are examples") == count


# The search.

WORDS = {
    "streaming": "howto/streaming",
    "temperature": "howto/settings",
    "structured output": "howto/structured-output",
    "json mode": "howto/structured-output",
    "system prompt": "howto/system-prompts",
    "reasoning": "howto/reasoning",
    "proxy": "howto/proxies",
    "certificates": "howto/proxies",
    "langfuse": "howto/observability",
    "opentelemetry": "howto/observability",
    "retry": "howto/errors-and-retries",
    "cost": "howto/costs",
    "provider package": "howto/provider-package",
}
"""What people type, and the page that they want."""


@pytest.fixture(scope="module")
def found(built):
    """The addresses that the site's own JavaScript shows for each of the words, best first."""
    script = ROOT / "tests" / "support" / "search_site.mjs"
    status, output, errors = run_node(script, built / "site", *WORDS)
    assert status == 0, errors
    return json.loads(output)


@pytest.mark.parametrize("words", WORDS)
def test_the_search_finds_the_page_first(found, words):
    """The page that says how to, before the reference and before what only mentions it."""
    assert found[words][0].partition(".html")[0] == WORDS[words], found[words]


# The sizes of pages.

SCREEN = 1080


def height_of(text):
    """
    About how many pixels a page is high in a window that is 1300 wide.

    Fitted to what Chromium shows of the pages of the reference: within 7 % of those that are long.
    """
    total, is_code = 120, False
    for line in text.splitlines():
        if line.startswith("```"):
            is_code = not is_code
            total += 16
        elif is_code or line.startswith("    "):
            total += 21
        elif line.startswith("#"):
            total += 72
        elif line.startswith("|") and line.strip("|-"):
            cells = [len(re.sub(r"\]\([^)]*\)", "", cell)) for cell in line.strip("|").split(" | ")]
            total += 18 + 22 * max(math.ceil(sum(cells) / 125), *(-(-cell // 75) for cell in cells))
        elif line and not line.startswith(("<!--", "|")):
            total += 8 + 27 * math.ceil(len(line) / 135)
    return total


def test_pages_of_the_reference_are_not_too_long():
    """Each has at most twelve screens; a group with more names has two pages (docs/reference/)."""
    folder = ROOT / "docs" / "reference"
    heights = {page.name: height_of(page.read_text("utf-8")) for page in folder.glob("*.md")}

    assert {name: height for name, height in heights.items() if height > 12 * SCREEN} == {}
    assert max(heights.values()) > 8 * SCREEN


# How a page begins.

HOWTO = sorted((ROOT / "docs" / "howto").glob("*.md"))
BEGINNING = re.compile(
    r"# [^\n]+\n\n"
    r"(?P<prose>(?:(?!<!--|```|#)[^\n]+\n)*)\n?"
    r"(?:<!-- answers: [^\n]* -->\n\n)?"
    r"```(?P<language>\w+)\n(?P<program>.*?)\n```\n\n"
    r"(?P<output>```text\n)?",
    re.DOTALL,
)
SENTENCE = re.compile(r"[.:?!](?=\s+[A-Z`*\[]|\s*\Z)")


def what_is_wrong(text):
    """What is wrong with the beginning of a page about how to do something."""
    match = BEGINNING.match(text)
    if match is None:
        return "no program after the title and a short paragraph"
    if len(SENTENCE.findall(match["prose"])) > 2:
        return "more than two sentences before the program"
    lines = match["program"].splitlines()
    if len(lines) > 35:
        return f"a program of {len(lines)} lines"
    shown = any(not line.startswith("$ ") for line in lines) and lines[0].startswith("$ ")
    return "" if match["output"] or shown else "no output after the program"


@pytest.mark.parametrize("page", HOWTO, ids=lambda page: page.stem)
def test_a_page_begins_with_a_call_and_its_output(page):
    """People see at once what to write and what they get, before anything is explained."""
    assert what_is_wrong(page.read_text("utf-8")) == ""


def test_the_first_page_fits_on_one_screen():
    """A swap in ten lines with its output, the installation, the doors, the speed; README too."""
    text = (ROOT / "docs" / "index.md").read_text("utf-8")
    match = BEGINNING.match(text)
    first, *_ = text.partition("## Where to go")
    doors, speed = re.findall(r"(?:^\|.*\n)+", first, re.MULTILINE)

    assert len(match["program"].splitlines()) <= 10
    assert ".swap(" in match["program"]
    assert "$ pip install" in first
    assert doors.count("](") >= 3
    assert "**Interlingua**" in speed
    assert len(first.splitlines()) <= 50  # as many as Chromium shows at 1300 x 1000
    assert match["program"] in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("One. Two.\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n", ""),
        ("```console\n$ il ask\nHello.\n```\n\n", ""),
        ("One. Two. Three.\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n", "more than two"),
        ("One.\n\n```python\nprint(1)\n```\n\nThen prose.\n", "no output"),
        ("```console\n$ il ask\n```\n\n", "no output"),
        ("One.\n\nA second paragraph.\n\n```python\n1\n```\n\n```text\n1\n```\n", "no program"),
        (f"```python\n{'x' * 2}{chr(10) * 40}y\n```\n\n```text\n1\n```\n", "a program of"),
        ("## A heading\n\n```python\n1\n```\n\n```text\n1\n```\n", "no program"),
    ],
)
def test_a_wrong_beginning_is_found(text, problem):
    """The measure of the test above."""
    found = what_is_wrong(f"# A page\n\n{text}")

    assert found.startswith(problem) if problem else found == ""


# What a build refuses.

GOOD = "# A page\n\nIts first sentence.\n"


def small_site(folder, monkeypatch, page, nav="other.md"):
    """A project with two pages, of which one is given."""
    (folder / "docs").mkdir()
    (folder / "docs" / "index.md").write_text(page)
    (folder / "docs" / "other.md").write_text(GOOD)
    (folder / "mkdocs.yml").write_text(
        "site_name: Small\nsite_description: A test\ntheme: {font: false}\n"
        f"use_directory_urls: false\nnav:\n- One: index.md\n- Two: {nav}\n"
    )
    monkeypatch.setattr(docs_site, "ROOT", folder)
    monkeypatch.setattr(docs_site, "DOCS", folder / "docs")
    monkeypatch.setattr(docs_site, "ROOT_PAGES", {})
    return folder / "built"


def test_a_good_site_is_built(tmp_path, monkeypatch):
    """The measure for the sites below."""
    page = f"{GOOD}\nSee [the other](other.md#a-page).\n\n- a\n- b\n"

    site = docs_site.build(small_site(tmp_path, monkeypatch, page))

    assert (site / "other.html").is_file()


@pytest.mark.parametrize(
    ("page", "nav", "problem"),
    [
        (f"{GOOD}\n[x](nowhere.md)\n", "other.md", "page does not exist"),
        (f"{GOOD}\n[x](other.md#nowhere)\n", "other.md", "anchor does not exist"),
        (f"{GOOD}\n<a href='nowhere.html'>x</a>\n", "other.md", "nowhere.html"),
        (f"{GOOD}\n![x](http://elsewhere.example/x.png)\n", "other.md", "loads http://elsewhere"),
        (f"{GOOD}- a list\n", "other.md", "docs/index.md:4: a list needs an empty line"),
        (f"{GOOD}\n- a\n  - b\n", "other.md", "docs/index.md:6: a list inside a list"),
        ("# Only a heading\n", "other.md", "index.md has no first sentence"),
        (GOOD, "index.md", "other.md is not in the navigation"),
        (GOOD, "missing.md", "missing.md of the navigation does not exist"),
    ],
)
def test_a_bad_site_is_refused(tmp_path, monkeypatch, page, nav, problem):
    """The error names the page and what is wrong with it."""
    output = small_site(tmp_path, monkeypatch, page, nav)

    with pytest.raises(docs_site.BuildError, match=re.escape(problem)):
        docs_site.build(output)


def test_a_bar_in_a_cell_ends_no_cell(tmp_path, monkeypatch):
    """Neither in code nor between two pieces of code."""
    table = "| x | y |\n|---|---|\n| `a` \\| `b` | `str \\| None` |\n"
    output = small_site(tmp_path, monkeypatch, f"{GOOD}\n{table}")

    html = (docs_site.build(output) / "index.html").read_text(encoding="utf-8")

    cells = re.findall(r"<td>(.*?)</td>", html)
    assert cells == ["<code>a</code> | <code>b</code>", "<code>str | None</code>"]


def test_links_out_of_the_documentation_become_text(tmp_path, monkeypatch):
    """The site has no page for a source file; a reader sees its name."""
    output = small_site(tmp_path, monkeypatch, f"{GOOD}\nSee [the code](../code.py).\n")
    (tmp_path / "code.py").touch()

    docs_site.build(output)

    assert "See the code." in (output / "docs" / "index.md").read_text(encoding="utf-8")


# The page about installation.


def test_the_install_page_has_every_extra():
    """One row each, and none that there is not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)

    assert sorted(rows) == sorted(project["optional-dependencies"])
    for dependency in project["dependencies"]:
        assert f"`{re.split('[<>=,]', dependency)[0]}`" in page
