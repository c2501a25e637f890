"""Read public names from the source: what they are, their docstrings, parameters and fields."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from interlingua.sync.blocking import blocking_docstring

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
CODE_WIDTH = 88
"""The characters that fit a line of code on the site."""

Callable_: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Node: TypeAlias = ast.ClassDef | Callable_ | ast.AnnAssign | ast.Assign


class Definition(NamedTuple):
    """Where a name is defined."""

    module: str
    name: str
    node: Node
    doc: str


class Entry(NamedTuple):
    """A parameter, an option or a field."""

    name: str
    type: str
    default: str
    meaning: str


# Modules.


@cache
def text_of(module: str) -> str:
    """The source of a module."""
    path = SOURCE.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return path.read_text(encoding="utf-8")


@cache
def body_of(module: str) -> list[ast.stmt]:
    """The statements of a module; those under `if TYPE_CHECKING:` count as well."""
    statements: list[ast.stmt] = []
    for node in ast.parse(text_of(module)).body:
        statements += node.body if isinstance(node, ast.If) else [node]
    return statements


def names_of(module: str) -> list[str]:
    """The names that a module lists, or else defines."""
    found = importlib.import_module(module)
    if module == "interlingua":  # the reference also has what is importable without being listed
        return sorted({*found.__all__, *found._UNLISTED} - {"Warning"}, key=str.lower)  # noqa: SLF001
    listed = getattr(found, "__all__", None)
    if listed is not None:
        return [*listed]
    return [name for name in map(_name_of, body_of(module)) if name and name[0] != "_"]


def _name_of(node: ast.stmt) -> str | None:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return None


@cache
def find(module: str, name: str) -> Definition | None:
    """The definition of a name, also through imports; None if it is not of this library."""
    body = body_of(module)
    for index, node in enumerate(body):
        if _name_of(node) == name and not is_decorated(node, "overload"):
            assert isinstance(node, Node)  # noqa: S101 -- for type checkers
            return _of_async_function(module, name, node) or Definition(
                module, name, node, _doc(body, index)
            )
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("interlingua"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return find(node.module or "", alias.name)
    return None


def _of_async_function(module: str, name: str, node: Node) -> Definition | None:
    """A blocking function, which has the docstring of an async one; None if it is none."""
    for call in (getattr(node, "value", None), *getattr(node, "decorator_list", ())):
        match call:
            case ast.Call(
                func=ast.Name(id=maker),
                args=[ast.Attribute(value=ast.Name(id=owner), attr=attribute), *_],
            ) if maker == "documented_by" or maker.startswith("blocking"):
                found = find(_imported_module(module, owner), attribute)
                assert found is not None  # noqa: S101
                doc = inspect.cleandoc(blocking_docstring(found.doc))
                return Definition(module, name, node, doc)
    return None


def _imported_module(module: str, name: str) -> str:
    """The module that another one imports under a name."""
    for node in body_of(module):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return f"{node.module}.{alias.name}"
    raise LookupError(f"{module} does not import {name}")


def is_decorated(node: ast.stmt, *names: str) -> bool:
    """Whether it has a decorator whose name ends so."""
    decorators = [
        one.func if isinstance(one, ast.Call) else one
        for one in getattr(node, "decorator_list", ())
    ]
    return any(ast.unparse(one).endswith(names) for one in decorators)


def _doc(body: list[ast.stmt], index: int) -> str:
    """The docstring of a statement: inside of it, or after it."""
    node = body[index]
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return ast.get_docstring(node) or ""
    following = body[index + 1] if index + 1 < len(body) else None
    match following:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return inspect.cleandoc(text)
    return ""


# Classes.


def lineage(found: Definition) -> list[Definition]:
    """A class and those of its bases that are in this library, the most general first."""
    assert isinstance(found.node, ast.ClassDef)  # noqa: S101
    bases: list[Definition] = []
    for base in found.node.bases:
        name = ast.unparse(base).partition("[")[0]
        above = find(found.module, name)
        if above is not None and isinstance(above.node, ast.ClassDef):
            bases += [one for one in lineage(above) if one not in bases]
    return [*bases, found]


def fields_of(found: Definition) -> list[Entry]:
    """The public fields of a record, an error or options, those of its bases first."""
    entries: dict[str, Entry] = {}
    for owner in lineage(found):
        body = [*_flat(owner.node)]
        for index, node in enumerate(body):
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
                continue
            name, kind = node.target.id, _plain_type(node.annotation, owner.module)
            is_shared = kind.startswith("ClassVar")
            if name.startswith("_") or (is_shared and "Literal" not in kind):
                continue
            meaning = _doc(body, index) or sentence_about(name, owner.doc)
            if is_shared:
                kind, meaning = "str", meaning or "What it is, also in JSON; always this value."
            if not meaning and name in entries:
                meaning = entries[name].meaning
            entries[name] = Entry(name, kind, _default(node.value, owner.module), meaning)
    return [*entries.values()]


def _plain_type(annotation: ast.expr, module: str) -> str:
    """An annotation as it is written, with the types of aliases that add a rule to a type."""
    return re.sub(r"\w+", lambda word: _without_rule(word[0], module), ast.unparse(annotation))


def _without_rule(name: str, module: str) -> str:
    found = find(module, name)
    match found and found.node:
        case ast.AnnAssign(
            value=ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[kind, *_]))
        ):
            return ast.unparse(kind).strip("'")  # what only type checkers import is in quotes
    return name


def own_fields(found: Definition) -> list[Entry]:
    """The fields that a class adds to those of its bases."""
    inherited = {
        entry.name for base in lineage(found)[:-1] for entry in fields_of(base) if base != found
    }
    return [entry for entry in fields_of(found) if entry.name not in inherited]


def _flat(node: ast.AST) -> Iterator[ast.stmt]:
    assert isinstance(node, ast.ClassDef)  # noqa: S101
    for statement in node.body:
        if not isinstance(statement, ast.If):  # what only type checkers see
            yield statement


def _default(value: ast.expr | None, module: str) -> str:
    """The default as it is written; a constant of the module by its value."""
    if value is None:
        return ""
    text = ast.unparse(value)
    factory = re.fullmatch(r"(?:msgspec\.)?field\(default_factory=(\w+).*\)", text)
    if factory:
        return {"dict": "{}", "list": "[]"}.get(factory[1], "made anew")
    constant = find(module, text) if re.fullmatch(r"[A-Z][A-Z0-9_]+", text) else None
    if constant is not None and isinstance(constant.node, (ast.Assign, ast.AnnAssign)):
        inner = constant.node.value
        if inner is not None and not isinstance(inner, (ast.Call, ast.Name)):
            return ast.unparse(inner)
    return text


def methods_of(found: Definition) -> list[Callable_]:
    """The public methods and properties of a class, also inherited ones."""
    methods: dict[str, Callable_] = {}
    for owner in lineage(found):
        for node in _flat(owner.node):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            # a part of an object that is made on its first use is not for users
            if node.name[0] != "_" and not is_decorated(node, "overload", "setter", ".attribute"):
                methods[node.name] = node
    return [*methods.values()]


def constructor_of(found: Definition) -> tuple[Callable_, str] | None:
    """The `__init__` of a class, and the docstrings that speak of it; None if there is none."""
    for owner in reversed(lineage(found)):
        for node in _flat(owner.node):
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                return node, f"{found.doc}\n\n{owner.doc}\n\n{ast.get_docstring(node) or ''}"
    return None


def is_record(found: Definition) -> bool:
    """Whether the fields of a class are what it is made of: a Struct, a dataclass, options."""
    for owner in lineage(found):
        assert isinstance(owner.node, ast.ClassDef)  # noqa: S101
        bases = {ast.unparse(base).rpartition(".")[2] for base in owner.node.bases}
        decorators = " ".join(map(ast.unparse, owner.node.decorator_list))
        if bases & {"Struct", "NamedTuple", "TypedDict"} or "dataclass" in decorators:
            return True
    return False


def has_base(found: Definition, name: str) -> bool:
    """Whether a class is derived from another of this name, such as `TypedDict`."""
    nodes = [owner.node for owner in lineage(found) if isinstance(owner.node, ast.ClassDef)]
    bases = {ast.unparse(base) for node in nodes for base in node.bases}
    return name in bases or any(owner.name == name for owner in lineage(found))


# Functions.


def parameters_of(node: Callable_, doc: str, module: str = "interlingua") -> list[Entry]:
    """The parameters, without `self` and `**options`."""
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + args.defaults
    pairs = [*zip(plain, defaults, strict=True)]
    pairs += zip(args.kwonlyargs, args.kw_defaults, strict=True)
    if args.vararg is not None:
        pairs.insert(len(plain), (args.vararg, None))
    filled_in = {"self", "cls", "draw"} if is_decorated(node, "composite") else {"self", "cls"}
    return [
        Entry(arg.arg, _annotation(arg), _default(value, module), sentence_about(arg.arg, doc))
        for arg, value in pairs
        if arg.arg not in filled_in and arg.arg[0] != "_"
    ]


def _annotation(arg: ast.arg) -> str:
    return "" if arg.annotation is None else ast.unparse(arg.annotation)


def options_of(node: Callable_) -> str | None:
    """The name of the options that a function takes as keywords."""
    kwarg = node.args.kwarg
    if kwarg is None or kwarg.annotation is None:
        return None
    match = re.fullmatch(r"Unpack\[(\w+)\]", ast.unparse(kwarg.annotation))
    return match[1] if match else None


def method_signature(node: Callable_, module: str) -> str:
    """How a method is called, in one line, without what it returns."""
    return f"{node.name}({', '.join(_call_parts(node, module))})"


def signature(node: Callable_, name: str, module: str, *, result: bool = True) -> str:
    """How it is called: the parameters with their defaults, without types."""
    parts = _call_parts(node, module)
    returns = f" -> {_result(node)}" if result and node.returns is not None else ""
    line = f"{name}({', '.join(parts)}){returns}"
    if len(line) <= CODE_WIDTH:
        return line
    lines = [" " * 3]
    for part in parts:
        if len(lines[-1]) + len(part) + 2 > CODE_WIDTH:
            lines.append(" " * 3)
        lines[-1] += f" {part},"
    return "\n".join((f"{name}(", *lines, f"){returns}"))


def _result(node: Callable_) -> str:
    """What a call of it gives: a decorator may have changed that."""
    returned = ast.unparse(node.returns) if node.returns is not None else "None"
    if is_decorated(node, "composite"):
        return f"SearchStrategy[{returned}]"
    if is_decorated(node, "contextmanager"):
        return re.sub(r"^(?:Async)?(?:Iterator|Generator)\[(.*)\]$", r"\1", returned)
    return returned


def _call_parts(node: Callable_, module: str) -> list[str]:
    args = node.args
    parts, keyword_only = [], False
    for entry in parameters_of(node, "", module):
        is_keyword = entry.name in {arg.arg for arg in args.kwonlyargs}
        is_rest = args.vararg is not None and entry.name == args.vararg.arg
        if is_keyword and not keyword_only and args.vararg is None:
            parts.append("*")
        keyword_only |= is_keyword
        star = "*" if is_rest else ""
        parts.append(f"{star}{entry.name}" + (f"={entry.default}" if entry.default else ""))
        if args.posonlyargs and entry.name == args.posonlyargs[-1].arg:
            parts.append("/")
    if args.kwarg is not None:
        parts.append(f"**{args.kwarg.arg}")
    return parts


def assignment(found: Definition) -> str:
    """A value as it is written in the source, without its type; empty if it has none."""
    node = found.node
    assert isinstance(node, (ast.Assign, ast.AnnAssign))  # noqa: S101
    text = ast.get_source_segment(text_of(found.module), node)
    if node.value is None or text is None:
        return ""
    annotation = f": {ast.unparse(node.annotation)}" if isinstance(node, ast.AnnAssign) else ""
    return text.replace(f"{found.name}{annotation} =", f"{found.name} =", 1)


# Docstrings.


def summary(doc: str) -> str:
    """The first sentence."""
    return next(iter(sentences(doc)), "")


def sentences(doc: str) -> Iterator[str]:
    """The sentences of a docstring; an entry of a list counts as one, code is left out."""
    for paragraph in re.split(r"\n\s*\n", doc):
        if paragraph.startswith("    "):
            continue
        for piece in re.split(r"\n(?=- )", paragraph):
            text = " ".join(piece.split())
            if text.startswith("- "):
                yield text[2:]
            else:
                yield from re.split(r"(?<=[.!?]) (?=[A-Z`\"])", text)


def sentence_about(name: str, doc: str) -> str:
    """
    What a docstring says a name means: `- `name`: …` in a list, or a clause that begins with it.

    "`name` is a …" is read as "A …", and "`name` limits …" as "Limits …". A sentence that only
    mentions the name says how something works and not what the name is: it is no meaning.
    """
    mention = re.compile(rf"`\*{{0,2}}{name}(?:=[^`]*)?`")
    found = [sentence for sentence in sentences(doc) if mention.search(sentence)]
    for sentence in found:
        names = rf"(?:`\w+`(?:, | and ))*`{name}`(?:(?:, | and )`\w+`)*"
        listed = re.match(rf"({names}): (.+)", sentence)
        if listed:
            return _capital(listed[2])
    for clause in (clause for sentence in found for clause in _clauses(sentence)):
        said = _SAID.match(clause.removeprefix(f"`{name}`")) if mention.match(clause) else None
        if said:
            return _capital(clause.removeprefix(f"`{name}`")[said.end() :])
    return ""


_IS = r"(?:(?:is|are) (?=(?:an?|the|what|how|in|names|rates|text|called|your|keyed|for)\b))?"
_SAID = re.compile(rf" {_IS}(?=[\w\"])(?!(?:and|or|is|are|may|must)\b)")


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _clauses(sentence: str) -> list[str]:
    """The parts of a sentence of which each says something of another name."""
    parts = re.split(r"; (?=`)", sentence)
    return [part if part.endswith((".", "…")) else f"{part}." for part in parts]
