"""Write public names as Markdown: signature, docstring, tables of parameters, fields, methods."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

from docs_build import source
from docs_build.source import Definition, Entry
from docs_build.words import MADE_BY_THE_LIBRARY, MEANINGS

MAX_VALUE = 600
"""The characters of a value that is shown whole."""
DEFAULTS_TO = re.compile(r"\s*Defaults to ([^.]+(?:\.\d+[^.]*)?)\.")


def heading(module: str, name: str) -> str:
    """The heading of a name, as it is written after `from interlingua import …`."""
    found = source.find(module, name)
    is_class = found is not None and isinstance(found.node, ast.ClassDef)
    word = "class " if is_class else ""  # `Tool` and `tool` would have the same anchor
    return f"{word}`{f'{module}.{name}'.removeprefix('interlingua.')}`"


def section(module: str, name: str) -> str:
    """Everything about one name."""
    found = source.find(module, name)
    if found is None:
        raise LookupError(f"{module}.{name} is not defined in the library")
    parts = [f"### {heading(module, name)}"]
    if isinstance(found.node, ast.ClassDef):
        parts += _class(found)
    elif isinstance(found.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        parts += _function(found)
    else:
        parts += _value(found)
    return "\n\n".join(part for part in parts if part)


# Kinds of names.


def _function(found: Definition) -> list[str]:
    node = found.node
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))  # noqa: S101
    if source.is_decorated(node, "fixture"):  # a test names it as a parameter; pytest calls it
        return [found.doc]
    return [
        _code(source.signature(node, _keywords(node) + found.name, found.module)),
        found.doc,
        _parameters(found, node, found.doc),
        _options(found, node),
    ]


def _keywords(node: source.Callable_) -> str:
    """The keywords before a call of it."""
    is_async = isinstance(node, ast.AsyncFunctionDef)
    if source.is_decorated(node, "contextmanager"):
        return "async with " if is_async else "with "
    return "await " if is_async else ""


def _class(found: Definition) -> list[str]:
    if source.has_base(found, "SDKError"):
        return _error(found)
    if source.has_base(found, "TypedDict"):
        return [found.doc, table("option", options_of(found))]
    parts = [found.doc]
    constructor = source.constructor_of(found)
    if source.is_record(found):
        parts.append(table("field", source.fields_of(found)))
    else:
        if constructor is not None and found.name not in MADE_BY_THE_LIBRARY:
            node, doc = constructor
            call = source.signature(node, found.name, found.module, result=False)
            parts.insert(0, _code(call))
            parts.append(_parameters(found, node, doc))
            if _is_named_adapter(found):
                return [*parts, "Its settings and methods are those of `HttpAdapter`."]
            parts.append(_options(found, node))
        parts.append(table("attribute", source.fields_of(found)))
    return [*parts, _methods(found)]


def _is_named_adapter(found: Definition) -> bool:
    return found.name != "HttpAdapter" and source.has_base(found, "HttpAdapter")


def _error(found: Definition) -> list[str]:
    fields = source.own_fields(found) if found.name != "SDKError" else source.fields_of(found)
    if found.name == "SDKError":
        return [found.doc, table("field", fields), _methods(found)]
    about = f"Class `{_of_error(found, 'error_class').lower()}`; "
    about += "retried" if _of_error(found, "default_retryable") == "True" else "not retried"
    return [found.doc, about + " by default.", table("field", fields)]


def _of_error(found: Definition, name: str) -> str:
    """What a class, or else its nearest base, sets."""
    for owner in reversed(source.lineage(found)):
        for node in getattr(owner.node, "body", ()):
            match node:
                case (
                    ast.Assign(targets=[ast.Name(id=target)], value=ast.expr() as value)
                    | ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value)
                ) if target == name:
                    return ast.unparse(value).removeprefix("ErrorClass.")
    return ""


def _value(found: Definition) -> list[str]:
    shown = source.assignment(found)
    return [_code(shown) if 0 < len(shown) < MAX_VALUE else "", found.doc]


# Tables.


def options_of(found: Definition) -> list[Entry]:
    """The options with their defaults, which their docstrings say."""
    known = source.find("interlingua", "GenerateOptions")
    shared = {entry.name: entry.meaning for entry in source.fields_of(known)} if known else {}
    entries = []
    for entry in source.fields_of(found):
        meaning = entry.meaning or shared.get(entry.name, "") or MEANINGS.get(entry.name, "")
        default = DEFAULTS_TO.search(meaning)
        entries.append(entry._replace(meaning=meaning, default=default[1] if default else ""))
    return entries


def parameters(found: Definition, node: source.Callable_, doc: str) -> list[Entry]:
    """The parameters with their meanings, from the docstring or the list of common words."""
    entries = []
    for entry in source.parameters_of(node, doc, found.module):
        special = MEANINGS.get(f"{found.name}.{entry.name}", "")
        meaning = special or entry.meaning or MEANINGS.get(entry.name, "")
        entries.append(entry._replace(meaning=meaning))
    return entries


def _parameters(found: Definition, node: source.Callable_, doc: str) -> str:
    return table("parameter", parameters(found, node, doc))


def table(kind: str, entries: Iterable[Entry]) -> str:
    """A table of names with their types, defaults and meanings; empty if there are none."""
    rows = [
        f"| `{entry.name}` | {_cell_code(entry.type)} | {_default(kind, entry)} "
        f"| {_meaning(kind, entry)} |"
        for entry in entries
    ]
    if not rows:
        return ""
    return "\n".join((f"| {kind} | type | default | meaning |", "|---|---|---|---|", *rows))


def _meaning(kind: str, entry: Entry) -> str:
    """The meaning; without the default, which an option has in its own column."""
    return cell(DEFAULTS_TO.sub("", entry.meaning) if kind == "option" else entry.meaning)


def _default(kind: str, entry: Entry) -> str:
    if kind == "option":
        return cell(entry.default) or "not set"
    return _cell_code(entry.default) or ("" if kind == "attribute" else "required")


def _methods(found: Definition) -> str:
    rows = []
    for node in source.methods_of(found):
        doc = ast.get_docstring(node) or ""
        names = [ast.unparse(one) for one in node.decorator_list]
        if any("property" in name for name in names):
            call = f"`{node.name}`"
        else:
            call = _cell_code(_keywords(node) + source.method_signature(node, found.module))
        rows.append(f"| {call} | {cell(doc)} |")
    return "\n".join(("| property or method | |", "|---|---|", *rows)) if rows else ""


def names_table(module: str) -> str:
    """The names of a module with one sentence each, for forms of what is described elsewhere."""
    rows = []
    for name in source.names_of(module):
        found = source.find(module, name)
        rows.append(f"| `{name}` | {cell(source.summary(found.doc)) if found else ''} |")
    return "\n".join(("| name | |", "|---|---|", *rows))


def _options(found: Definition, node: source.Callable_) -> str:
    """Which options it takes as keywords: a reference to their table, or the table."""
    name = source.options_of(node)
    if name is None or node.args.kwarg is None:
        return ""
    word = f"`**{node.args.kwarg.arg}`"
    if any(name in source.names_of(module) for module in _WITH_OPTIONS):
        return f"{word} are those of `{name}`."
    owners = source.lineage(found) if isinstance(found.node, ast.ClassDef) else [found]
    options = next(filter(None, (source.find(owner.module, name) for owner in owners)), None)
    shared = source.find("interlingua", "GenerateOptions")
    assert options is not None  # noqa: S101
    assert shared is not None  # noqa: S101
    known = {entry.name for entry in options_of(shared)}
    entries = {entry.name: entry for entry in options_of(options)}
    missing = sorted(known - entries.keys())
    if len(missing) > 3:
        return f"{word}:\n\n{table('option', entries.values())}"
    without = f", without {', '.join(f'`{each}`' for each in missing)}" if missing else ""
    more = table("option", [entries[each] for each in entries if each not in known])
    return f"{word} are those of `GenerateOptions`{without}.\n\n{more}".strip()


_WITH_OPTIONS = ("interlingua", "interlingua.media", "interlingua.batch", "interlingua.bulk")


# Text.


def cell(text: str) -> str:
    """A docstring as the cell of a table: one line, without code."""
    paragraphs = [part for part in re.split(r"\n\s*\n", text) if not part.startswith("    ")]
    return " ".join(" ".join(paragraphs).split()).replace("|", "\\|")


def first_paragraph(function: Callable[..., Any]) -> str:
    """The first paragraph of a docstring, as a cell."""
    return cell((inspect.getdoc(function) or "").partition("\n\n")[0])


def _cell_code(text: str) -> str:
    one_line = " ".join(text.split()).replace("|", "\\|")
    return f"`{one_line}`" if one_line else ""


def _code(text: str) -> str:
    return f"```py\n{text}\n```"
