"""The reference has every public name, option, field, warning and error, each with its meaning."""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest
from hypothesis.strategies import SearchStrategy

import interlingua
from interlingua import Message, errors, sync
from interlingua.api.run.help import list_options
from interlingua.spec.warning_table import WARNINGS

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from docs_build import reference, render, source  # noqa: E402

PLACES = reference.placed()
DESCRIBED = [
    (module, name) for module, names in PLACES.items() for name in names if ".sync" not in module
]
ROW = re.compile(r"^\| `(\w+)` \| .+ \| .* \| (.*) \|$", re.MULTILINE)


def section(module, name):
    """What the page has about a name."""
    page, _, anchor = PLACES[module][name].partition("#")
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for part in text.split("\n### ")[1:]:
        heading, _, body = part.partition("\n")
        if reference.slug(heading) == anchor:
            return body
    return None


def test_every_public_name_is_described():
    """Each name of a module is in one section of one page."""
    for module, names in PLACES.items():
        assert sorted(names) == sorted(source.names_of(module)), module
    missing = [name for module, name in DESCRIBED if section(module, name) is None]
    assert missing == []
    assert len(DESCRIBED) > 400


def runtime_fields(value):
    """The fields of a record, an error or options, as Python knows them."""
    if isinstance(value, type) and hasattr(value, "__struct_fields__"):
        refused = {"tool_call_id"} if value is Message else ()  # there only to say what to write
        return [name for name in value.__struct_fields__ if name not in refused]
    if isinstance(value, type) and issubclass(value, BaseException):
        return ()
    for attribute in ("__required_keys__", "__dataclass_fields__", "_fields"):
        if isinstance(value, type) and hasattr(value, attribute):
            keys = getattr(value, attribute)
            return (*keys, *getattr(value, "__optional_keys__", ()))
    return ()


def runtime_parameters(value):
    """The parameters of a function, or of a class that programs make."""
    name = getattr(value, "__name__", "")
    is_made = isinstance(value, type) and not runtime_fields(value)
    if is_made and (issubclass(value, BaseException) or name in render.MADE_BY_THE_LIBRARY):
        return ()
    if is_made and (getattr(value, "_is_protocol", False) or "__init__" not in vars(value)):
        return ()
    if not is_made and not inspect.isfunction(value):
        return ()
    kinds = (inspect.Parameter.VAR_KEYWORD,)
    given = inspect.signature(value).parameters.values()
    return [one.name for one in given if one.kind not in kinds and one.name[0] != "_"]


@pytest.mark.parametrize("module", [module for module in PLACES if ".sync" not in module])
def test_every_option_and_field_has_a_meaning(module):
    """What Python knows of a record or function is a row, with a type and a meaning."""
    owner = __import__(module, fromlist=["_"])
    for name in PLACES[module]:
        value = getattr(owner, name)
        rows = dict(ROW.findall(section(module, name)))
        for field in (*runtime_fields(value), *runtime_parameters(value)):
            advice = "write of it in the docstring, or in scripts/docs_build/words.py"
            assert rows.get(field), f"{name}.{field} has no meaning: {advice}"


def test_the_measure_can_fail():
    """The fields and parameters are really those of Python."""
    assert "temperature" in runtime_fields(interlingua.GenerateOptions)
    assert "input_tokens" in runtime_fields(interlingua.Usage)
    assert "providers" in runtime_parameters(interlingua.Client)
    assert "voice" in runtime_parameters(interlingua.speak)
    assert "usd" in runtime_parameters(interlingua.middleware.Budget)


# Signatures and values, which are the `py` blocks.

SHOWN = {
    f"{module}.{name}": block[1]
    for module, name in DESCRIBED
    if (block := re.match(r"\n```py\n(.*?)\n```\n", section(module, name), re.DOTALL))
}
VALUES = [place for place, code in SHOWN.items() if re.match(r"\w+ = ", code)]
CALLS = [place for place in SHOWN if place not in VALUES]
FOR_TYPE_CHECKERS = {"interlingua.media.Vector"}  # `array[float]` runs from Python 3.12 on


def read_name(place):
    """What is behind a name, and the names that are known where it is defined."""
    module, _, name = place.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    return value, vars(importlib.import_module(source.find(module, name).module))


def parameters_of(value):
    """The public parameters, without types."""
    return [
        one.replace(annotation=inspect.Parameter.empty)
        for one in inspect.signature(value).parameters.values()
        if one.name[0] != "_"
    ]


def is_generator(value):
    return inspect.isgeneratorfunction(value) or inspect.isasyncgenfunction(value)


@pytest.mark.parametrize("place", CALLS)
def test_signatures_are_those_of_python(place):
    """Same parameters, same kinds, equal defaults; `await` and `with` where they are needed."""
    value, known = read_name(place)
    keywords, call = re.fullmatch(
        r"(await |async with |with |)(.*)", SHOWN[place], re.DOTALL
    ).groups()
    made = {}
    exec(f"from __future__ import annotations\ndef {call}: ...", {**known}, made)  # noqa: S102 -- ours

    assert parameters_of(made[value.__name__]) == parameters_of(value)
    assert (keywords == "await ") == inspect.iscoroutinefunction(value)
    is_manager = is_generator(inspect.unwrap(value)) and not is_generator(value)
    assert ("with" in keywords) == is_manager


@pytest.mark.parametrize("place", sorted({*VALUES} - FOR_TYPE_CHECKERS))
def test_values_are_those_of_python(place):
    """The code of a value makes an equal one where it is defined."""
    value, known = read_name(place)
    made = {}
    exec(SHOWN[place], {**known}, made)  # noqa: S102 -- ours

    (shown,) = made.values()
    is_strategy = isinstance(value, SearchStrategy)  # these compare by identity
    assert type(shown) is type(value) if is_strategy else shown == value


def test_the_pages_have_all_signatures():
    """Every `py` block of the reference is one that is tested here."""
    pages = [
        path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md")
    ]

    assert sum(page.count("\n```py\n") for page in pages) == len(SHOWN)
    assert len(CALLS) > 200
    assert len(VALUES) > 30


# Help.

FUNCTIONS = ("generate", "stream", "generate_object", "stream_object")


@pytest.mark.parametrize("module", [interlingua, sync], ids=lambda module: module.__name__)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_lists_every_option(module, name):
    """`help(generate)` has each option of the signature, in one column."""
    text = inspect.getdoc(getattr(module, name))

    listed = re.findall(r"^- `(\w+)` \((.+?)\): \S", text, re.MULTILINE | re.DOTALL)
    options = {*runtime_fields(interlingua.GenerateOptions)}
    assert {option for option, _ in listed} == options
    assert text.splitlines()[0][0].isupper()


def test_help_is_in_one_column_in_every_python():
    """Newer versions remove the indent of docstrings, older ones keep it."""
    for text in ("\n    Ask.\n\n    More.\n    ", "\nAsk.\n\nMore.\n", "Ask."):

        def function():
            pass

        function.__doc__ = text
        lines = inspect.getdoc(list_options(function)).splitlines()
        assert lines[0] == "Ask."
        assert "Options:" in lines
        assert not any(line.startswith("    ") for line in lines)


# Warnings and errors.


def test_every_warning_has_its_cause_and_cure():
    """On the page, under its kind, with its message."""
    page = (ROOT / "docs" / "reference" / "warnings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", page, re.MULTILINE)

    assert sorted(code for code, *_ in rows) == sorted(WARNINGS)
    for code, row in WARNINGS.items():
        before = page[: page.index(f"| `{code}` |")]
        assert re.findall(r"^## Kind `(\w+)`", before, re.MULTILINE)[-1] == row.kind
        assert all(re.fullmatch(r"[A-Z`].*\.", text) for text in (row.cause, row.cure))


@pytest.mark.parametrize("name", [n for n in errors.__all__ if n not in ("SDKError", "ErrorClass")])
def test_every_error_has_its_cause_and_cure(name):
    """In its docstring and on the page, with its class and whether it is retried."""
    kind, text = getattr(errors, name), section("interlingua.errors", name)

    for word in ("Cause: ", "Cure: "):
        assert word in inspect.getdoc(kind)
        assert f"\n{word}" in text
    retried = "retried" if kind.default_retryable else "not retried"
    assert f"Class `{kind.error_class.value}`; {retried} by default." in text
