"""Every example in the documentation runs, and every public name is in one."""

import ast
import asyncio
import contextlib
import csv
import importlib
import importlib.util
import inspect
import io
import json
import os
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import interlingua
from interlingua import Request, dialects, from_json, set_default_client, to_json
from interlingua.catalog import list_models
from interlingua.conformance.laws import read_cases
from interlingua.local import local_server
from interlingua.prepare.schema.keywords import FOREIGN
from interlingua.providers.rows import providers as provider_rows
from support import preloaded
from support.reader import PREPARED, prepare_answers, simulated_providers, write_files
from support.type_checks import type_check

ROOT = Path(__file__).resolve().parents[1]
TUTORIAL = ROOT / "docs" / "tutorial.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
FORMAT = ROOT / "docs" / "explanation" / "canonical-format.md"
SOURCE = ROOT / "src" / "interlingua"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
INDEX = ROOT / "docs" / "reference.md"
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]+))?\)")
EXTRAS = re.compile(r"pip install (?:-e )?'(?:\.|interlingua)\[([\w,]+)\]'")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ANSWERS = re.compile(r"<!-- answers: (.*?) -->\n+\Z", re.DOTALL)

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


# Running.


def run(page):
    """
    Run the Python blocks of a page in one namespace; a text block after one is its output.

    A comment before a block has what the simulated models answer in it; all of it must be used.
    """
    whole = page.read_text(encoding="utf-8")
    namespace = {"__name__": page.stem}
    printed = None
    for fence in FENCE.finditer(whole):
        language, body = fence.groups()
        if language == "text" and printed is not None:
            assert fits(printed, body), f"it printed\n{printed}\nand not\n{body}"
        printed = None
        if language == "python":
            lines_before = whole.count("\n", 0, fence.start(2))
            code = compile("\n" * lines_before + body, str(page), "exec")
            if answers := ANSWERS.search(whole[: fence.start()].rpartition("```")[2]):
                prepare_answers(answers[1])
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(code, namespace)  # noqa: S102 -- our own pages
            assert not PREPARED, f"{page}: an answer was not used: {PREPARED}"
            printed = output.getvalue()
    return namespace


def fits(printed, expected):
    """Whether the output is the one expected, where … stands for anything on its line."""
    lines = [line.rstrip() for line in printed.rstrip().split("\n")]
    patterns = [
        re.escape(line.rstrip()).replace("…", ".*") for line in expected.rstrip().split("\n")
    ]
    return len(lines) == len(patterns) and all(map(re.fullmatch, patterns, lines))


@pytest.fixture
def providers(monkeypatch, tmp_path):
    """Keys and addresses in the environment, as a reader would have them; the simulator answers."""
    monkeypatch.chdir(tmp_path)  # examples may write files
    write_files(tmp_path)
    environment = Path(sys.executable).parent  # is active: `python` is this one
    monkeypatch.setenv("PATH", f"{environment}{os.pathsep}{os.environ['PATH']}")
    with simulated_providers(monkeypatch):
        yield


@pytest.mark.usefixtures("providers")
@every_page
def test_examples_run(page):
    """The Python blocks of a page run one after another, in one namespace."""
    run(page)


@pytest.mark.usefixtures("providers")
@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs" / "coming-from").glob("*.md")), ids=lambda page: page.stem
)
def test_the_code_of_other_libraries_runs(page, monkeypatch):
    """Theirs is in `py` blocks; without their library it is at least valid Python."""
    monkeypatch.setenv(
        "OPENAI_BASE_URL", f"{os.environ['OPENAI_BASE_URL']}/v1"
    )  # as theirs have it
    blocks = [body for language, body in FENCE.findall(page.read_text("utf-8")) if language == "py"]
    trees = [ast.parse(body) for body in blocks]
    modules = {
        node.module.split(".")[0] if isinstance(node, ast.ImportFrom) else node.names[0].name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    if all(map(importlib.util.find_spec, modules)):
        namespace = {"__name__": page.stem}
        try:
            for body in blocks:
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(body, str(page), "exec"), namespace)  # noqa: S102 -- our own pages
        finally:
            asyncio.run(close_all(namespace.values()))


async def close_all(values):
    """Close the clients among them: collected in any order, their sockets would complain first."""
    for value in values:
        if hasattr(value, "close") and not isinstance(value, (type, ModuleType)):
            closing = value.close()
            if inspect.isawaitable(closing):
                await closing


@pytest.fixture
def simulator():
    """The simulator as the tutorial starts it, on a free port: the variables it prints."""
    (command,) = re.findall(r"^\$ python (-m interlingua\.simulator .*)$", tutorial(), re.MULTILINE)
    arguments = command.replace("8899", "0").split()
    with preloaded.start(arguments, env=dict(os.environ), cwd=ROOT) as process:
        process.stdout.readline()  # what it is
        lines = [process.stdout.readline().split()[1] for _ in range(3)]
        yield dict(line.split("=", 1) for line in lines)
        process.terminate()


def tutorial():
    return TUTORIAL.read_text(encoding="utf-8")


def test_the_tutorial_runs_as_written(gguf, simulator, monkeypatch):
    """With its own commands and variables, on the real local model where it says so."""
    exported = dict(re.findall(r"(\w+_(?:API_KEY|BASE_URL))=(\S+)", tutorial()))
    (port,) = re.findall(r":(\d+)$", simulator["ANTHROPIC_BASE_URL"])
    exported = {name: value.replace("8899", port) for name, value in exported.items()}
    assert simulator.items() <= exported.items()
    for name, value in {**exported, "INTERLINGUA_GGUF": str(gguf)}.items():
        monkeypatch.setenv(name, value)
    set_default_client(None)
    try:
        namespace = run(TUTORIAL)
    finally:
        set_default_client(None)
        local_server(str(gguf)).stop()

    answers = [
        namespace["first"].response,
        namespace["answer"],
        namespace["person_result"].response,
    ]
    assert [answer.provider for answer in answers] == ["local"] * 3
    assert not any("simulated" in answer.text for answer in answers)
    assert namespace["answer"].usage.output_tokens > 1


def test_the_page_about_bulk_runs_on_the_local_model(gguf, monkeypatch, tmp_path):
    """Its first job is answered by the real model, and the other blocks run too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INTERLINGUA_GGUF", str(gguf))
    set_default_client(None)
    try:
        namespace = run(ROOT / "docs" / "howto" / "bulk.md")
    finally:
        set_default_client(None)
        local_server(str(gguf)).stop()

    (model,) = namespace["labelled"].models.values()
    assert (model.calls, model.cost) == (2, 0)
    assert model.output_tokens > 2
    with (tmp_path / "labels.csv").open(newline="", encoding="utf-8") as file:
        answers = [row["answer"] for row in csv.DictReader(file)]
    assert answers[0] == answers[2] != ""
    assert not any("simulated" in answer for answer in answers)


def test_the_extras_of_the_tutorial_exist():
    """What a reader is told to install can be installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = {
        extra
        for page in PAGES
        for extras in EXTRAS.findall(page.read_text(encoding="utf-8"))
        for extra in extras.split(",")
    }

    assert {"local", "mcp"} <= told <= project["optional-dependencies"].keys()


# Types.

# A page reuses names from block to block, and annotates where that says something.
STYLE = (
    "\n# mypy: allow-redefinition, disable-error-code="
    '"no-redef,no-untyped-call,no-untyped-def,redundant-expr,truthy-bool"\n'
)


def python_of(page):
    """The Python blocks of a page as one module, each line where the page has it."""
    whole = page.read_text(encoding="utf-8")
    module = ""
    for fence in FENCE.finditer(whole):
        if fence[1] == "python":
            lines_before = whole.count("\n", 0, fence.start(2))
            module += "\n" * (lines_before - module.count("\n")) + fence[2]
    return module


def test_examples_type_check(tmp_path):
    """To a strict type checker every page is as right as to Python; what is wrong it would find."""
    pages = {
        re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix(""))): python_of(page)
        for page in PAGES
    }
    wrong = "from interlingua import Request\n\nasync def main():\n    Request(mesages='Hi.')\n"

    for name, module in {**pages, "wrong": wrong}.items():
        (tmp_path / f"{name}.py").write_text(module + STYLE, encoding="utf-8")
    found = type_check(tmp_path.iterdir())

    assert [line for line in found if "wrong.py:" not in line] == []
    assert any('error: Unexpected keyword argument "mesages"' in line for line in found)


def test_the_numbers_of_models_and_providers():
    """What the pages say of the catalog is true, to the hundred; and there are fifty services."""
    pages = [ROOT / "README.md", ROOT / "docs" / "howto" / "models.md"]
    said = [re.findall(r"([\d,]+) models", page.read_text(encoding="utf-8")) for page in pages]

    assert said == [[f"{len(list_models()) // 100 * 100:,}"]] * 2
    assert len(provider_rows()) > 50


@every_page
def test_links_lead_somewhere(page):
    """Relative links name files that exist, and headings in them; readers see no file names."""
    assert re.findall(r"\[[a-z-]+\.md\]\(", page.read_text(encoding="utf-8")) == []
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        headings = re.findall(r"^#+ (.*)", linked.read_text(encoding="utf-8"), re.MULTILINE)
        slugs = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
        assert not anchor or anchor in slugs, anchor


# Words.

ODD = re.compile(
    r"\b(?:anew|told|whoever|rooms|weakness(?:es)?|one's own|cannot be said|keys? that ends?"
    r"|the house|by whom)\b",
    re.IGNORECASE,
)
"""What a native engineer would not write: expire, recreate, vulnerability, package, …"""
WRITTEN = [*PAGES, *(ROOT / f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY"))]


def odd_words(text):
    """Those in the prose of a page; code is not prose."""
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))
    return ODD.findall(prose)


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_in_plain_english(page):
    """Also the docstrings of public names, which are the reference."""
    assert odd_words(page.read_text(encoding="utf-8")) == []


def test_odd_words_are_found():
    """In prose, not in code."""
    text = "A key that ends is made Anew.\n\n```python\ntold = 1\n```\nSee `told` in the rooms.\n"

    assert odd_words(text) == ["key that ends", "Anew", "rooms"]


def linked_pages(page):
    """The pages of docs/ that a page links to."""
    targets = {target for target, _ in LINK.findall(page.read_text(encoding="utf-8")) if target}
    return {(page.parent / target).resolve() for target in targets} & set(PAGES)


def test_every_page_is_two_clicks_away():
    """From the first page, by links in the text alone."""
    first = linked_pages(ROOT / "docs" / "index.md")
    reached = first.union(*map(linked_pages, first))

    assert len(first) > 50
    missing = [page for page in PAGES if page.parent != ROOT and page not in reached]
    assert [str(page.relative_to(ROOT)) for page in missing] in ([], ["docs/index.md"])


# Public names.


def referenced():
    """The names in the index of the reference, by module."""
    sections = INDEX.read_text(encoding="utf-8").split("\n## `")[1:]
    return {
        section.split("`", 1)[0]: re.findall(r"^\| \[`(\w+)`\]", section, re.MULTILINE)
        for section in sections
    }


def public(owner):
    """The names a module lists or else defines."""
    found = importlib.import_module(owner)
    listed = getattr(found, "__all__", None)
    if found is interlingua:  # the reference also has what is importable without being listed
        return [*listed, *(found._UNLISTED - {"Warning"})]
    return [name for name in defined(found) if name[0] != "_"] if listed is None else listed


def defined(module):
    for node in ast.parse(inspect.getsource(module)).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield name


MODULES = (
    "interlingua",
    "interlingua.errors",
    "interlingua.events",
    "interlingua.batch",
    "interlingua.bulk",
    "interlingua.bulk.sync",
    "interlingua.files",
    "interlingua.history",
    "interlingua.integrations.sdk",
    "interlingua.serving",
    "interlingua.tools",
    "interlingua.execution",
    "interlingua.mcp",
    "interlingua.media",
    "interlingua.video",
    "interlingua.catalog",
    "interlingua.middleware",
    "interlingua.stores",
    "interlingua.dialects",
    "interlingua.transport",
    "interlingua.sync",
    "interlingua.sync.batch",
    "interlingua.sync.files",
    "interlingua.sync.media",
    "interlingua.sync.video",
    "interlingua.simulator",
    "interlingua.testing",
    "interlingua.conformance.adapter",
    "interlingua.conformance.endpoint",
    "interlingua.conformance.laws",
    "interlingua.conformance.plugin",
    "interlingua.conformance.recordings",
    "interlingua.conformance.report",
    "interlingua.conformance.canonical",
    "interlingua.conformance.strategies",
)


def test_the_reference_is_whole():
    """It has every public name once, and none that there is not."""
    found = referenced()

    assert found.keys() == set(MODULES)
    for owner in MODULES:
        assert sorted(found[owner]) == sorted(public(owner)), owner


@cache
def mentioned(page):
    """What the examples of a page use, and what they call, by the full names of imports."""
    blocks = FENCE.findall(page.read_text(encoding="utf-8"))
    tree = ast.parse("\n".join(body for language, body in blocks if language == "python"))
    known = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            known |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            known |= {a.asname or a.name: a.name for a in node.names}

    def full_name(node):
        if isinstance(node, ast.Attribute):
            return f"{full_name(node.value)}.{node.attr}"
        return known.get(node.id, "") if isinstance(node, ast.Name) else ""

    used, called = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            used.add(full_name(node))
        if isinstance(node, ast.Call):
            called.add(full_name(node.func))
        called.update(full_name(decorator) for decorator in getattr(node, "decorator_list", ()))
    return used, called


@pytest.mark.parametrize("module", MODULES)
def test_every_public_function_is_called_in_an_example(module):
    """By its public name, in a block that is run; so are other names used."""
    used, called = map(set.union, *map(mentioned, PAGES))
    owner = importlib.import_module(module)
    functions = [name for name in public(module) if inspect.isfunction(getattr(owner, name))]
    hooks = {
        "pytest_addoption",
        "pytest_configure",
        "pytest_generate_tests",
        "pytest_terminal_summary",
    }  # called by pytest
    fixtures = {
        "cassette",
        "cassette_mode",
        "cassette_path",
        "conformance",
        "scripted_client",
        "simulator",
    }  # filled in by pytest; see test_testing

    assert public(module)
    assert [n for n in functions if n not in hooks and f"{module}.{n}" not in called] == []
    others = [name for name in public(module) if name not in {*functions, *fixtures}]
    assert [name for name in others if f"{module}.{name}" not in used] == []


# The map in CONTRIBUTING.md.


def contributing():
    return CONTRIBUTING.read_text(encoding="utf-8")


def map_of_rooms():
    """What the map says about each room, by its name; a line that is indented goes on."""
    (body,) = [body for language, body in FENCE.findall(contributing()) if language == "text"]
    entries = re.findall(r"^(\S+)/? +(.+(?:\n +.+)*)$", body, re.MULTILINE)
    return {name.rstrip("/"): words for name, words in entries}


def test_contributing_fits_in_the_head():
    """It is a map and not an index: at most 8 kB, and about twenty rows of where to go."""
    rows = re.findall(r"^\|", contributing().partition("## To change X")[2], re.MULTILINE)

    assert len(CONTRIBUTING.read_bytes()) <= 8_000
    assert len(rows) <= 30


def test_the_map_names_every_room():
    """And every room inside one, and no other; the order is that of the import contracts."""
    entries = map_of_rooms()
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    inner = {
        room: {path.parent.name for path in (SOURCE / room).glob("*/__init__.py")} for room in rooms
    }

    assert {*entries} == rooms | {"*.py"}
    for room in rooms:
        assert {*re.findall(r"\b(\w+)/", entries[room])} == inner[room], room
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    level = {name: n for n, layer in enumerate(layers) for name in re.findall(r"\.(\w+)", layer)}
    order = [level[room] for room in entries if room != "*.py"]
    assert order == sorted(order)


def test_paths_in_contributing_exist():
    """A path is a file of the project, of the package, or of every dialect."""
    prose = FENCE.sub("", contributing())
    folders = [SOURCE / "dialects" / name for name in dialects.names()]
    paths = re.findall(r"`(?:\./)?([\w./-]+(?:/|/[\w.-]+|\.(?:py|md|json|toml)))(?: PATH)?`", prose)

    assert len(paths) > 40
    for path in paths:
        in_dialects = all((folder / path).exists() for folder in folders)
        assert (ROOT / path).exists() or (SOURCE / path).exists() or in_dialects, path


def test_names_in_contributing_exist():
    """A name after a path is defined in that file."""
    places = re.findall(r"`([\w/]+\.py)`: ((?:`[\w.]+`(?:, )?)+)", contributing())

    assert places
    for path, names in places:
        source = (SOURCE / path).read_text(encoding="utf-8")
        for name in re.findall(r"\w+", names):
            assert re.search(rf"^\s*(?:def |class )?{name}\b", source, re.MULTILINE), (path, name)


# CHANGELOG.md.


def test_the_changelog_is_about_what_users_have():
    """One section for each version that was published or is next, on two screens at most."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (\S+)", text, re.MULTILINE)

    assert versions == [interlingua.__version__]
    assert len(text.encode()) <= 6_000
    assert "### Known to be missing" in text


# The private marks in `extra`.

MARK = re.compile(r'"(~[a-z_]+)"')


def test_the_private_marks_are_explained():
    """The page has each mark that the source writes, and no other."""
    sources = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    marks = {mark for source in sources for mark in MARK.findall(source)}
    marks -= FOREIGN  # keys that schema libraries write
    rows = re.findall(r"^\| `(~\w+)` \|", FORMAT.read_text(encoding="utf-8"), re.MULTILINE)

    assert len(marks) > 5
    assert sorted(rows) == sorted(marks)


def without_marks(value):
    if isinstance(value, dict):
        return {k: without_marks(v) for k, v in value.items() if not k.startswith("~")}
    return [without_marks(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", dialects.names())
def test_the_private_marks_may_be_dropped(name):
    """They are never sent, and a request that was stored without them still encodes."""
    dialect, marked = dialects.get(name), 0
    for case in read_cases(ROOT / "tests" / "fixtures" / name):
        if case.call is None:
            continue
        request = dialect.decode_request(case.call)
        assert MARK.search(json.dumps(dialect.encode_request(request).body)) is None
        stored = json.loads(to_json(request))
        marked += MARK.search(json.dumps(stored)) is not None
        dialect.encode_request(from_json(without_marks(stored), Request))

    assert marked
