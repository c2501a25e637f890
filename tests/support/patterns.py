"""Every regular expression of the package, and texts that are hard for it."""

import ast
import gc
import importlib
import math
import pkgutil
import re
import time
from collections import defaultdict
from itertools import chain, pairwise, product
from pathlib import Path
from re import _constants as sre
from re import _parser as sre_parser

import interlingua

SOURCE = Path(interlingua.__file__).parent
USES = ("match", "fullmatch", "search", "sub", "split", "findall", "finditer")
TINY = 24  # characters; only an exponential pattern takes long for them
SIZES = (500, 2_000, 8_000)
FLOOR = 0.002  # seconds of CPU; a shorter time has no meaningful ratio


def modules():
    """Every module of the package, imported."""
    names = [found.name for found in pkgutil.walk_packages([str(SOURCE)], "interlingua.")]
    return [importlib.import_module(name) for name in names if not name.endswith("__main__")]


def written():
    """Where each call of `re` stands, its pattern (None if it is data), and how it is used."""
    methods = Methods("\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")))
    for module in modules():
        source = Path(module.__file__).read_text(encoding="utf-8")
        if not re.search(r"\bre\.", source):  # most modules: they need not be parsed
            continue
        nodes = list(ast.walk(ast.parse(source)))
        parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
        for node in filter(_is_call_of_re, nodes):
            where = f"{module.__name__}:{node.lineno}"
            yield where, _evaluate(node, vars(module)), _uses(node, parents, methods)


class Methods:
    """The methods that a text calls on each name, found in one reading of it."""

    def __init__(self, text):
        self._called, self._aliases = defaultdict(set), defaultdict(set)
        for name, method in re.findall(rf"\b(\w+)\.({'|'.join(USES)})\b", text):
            self._called[name].add(method)
        for alias, name in re.findall(r"\b(\w+)=(\w+)\b", text):
            self._aliases[name].add(alias)

    def of(self, name):
        """Those called on the name, or else on the parameters that it is passed as."""
        aliases = self._aliases[name]
        return self._called[name] or set().union(*(self._called[alias] for alias in aliases))


def held():
    """The patterns that the modules hold, also in containers and as bound methods."""
    for module in modules():
        for value in vars(module).values():
            yield from _patterns_in(value)


def _is_call_of_re(node):
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in ("compile", *USES)
    )


def _evaluate(node, names):
    flags = [word.value for word in node.keywords if word.arg == "flags"]
    if node.func.attr == "compile":
        flags += node.args[1:]
    try:
        pattern, *flag = [
            eval(ast.unparse(part), dict(names))  # noqa: S307 -- our own source
            for part in (node.args[0], *flags)
        ]
    except NameError:
        return None
    return re.compile(pattern, *flag)


def _uses(node, parents, methods):
    """How the pattern is used: each method that is called on it somewhere."""
    if node.func.attr != "compile":
        return {node.func.attr}
    parent = parents[node]
    if isinstance(parent, ast.Attribute):
        return {parent.attr}
    while not isinstance(parent, ast.Assign | ast.AnnAssign | ast.keyword):
        parent = parents.get(parent)
        if parent is None:
            return {"fullmatch"}
    if isinstance(parent, ast.keyword):
        name = parent.arg
    else:
        target = parent.targets[0] if isinstance(parent, ast.Assign) else parent.target
        name = ast.unparse(target).rpartition(".")[2]
    return methods.of(name) or {"search"}  # of all uses the one that tries most


def _patterns_in(value):
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(getattr(value, "__self__", None), re.Pattern):
        yield value.__self__
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _patterns_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _patterns_in(item)
    elif isinstance(getattr(value, "pattern", None), re.Pattern):
        yield value.pattern


def hard_units(pattern):
    """What to repeat: the literals and class members of the pattern, and pairs of them."""
    flags = pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    pieces = list(dict.fromkeys(_literals(sre_parser.parse(_text(pattern), flags))))
    short = [piece for piece in pieces if len(piece) == 1]
    pairs = chain(pairwise(pieces), product(short, pieces))
    return list(dict.fromkeys(chain(pieces, map("".join, pairs), ("".join(pieces),))))[:120]


def hard_text(pattern, head, unit, size):
    """A text of about this size that repeats the unit, and then ends as no pattern does."""
    text = head + unit * (size // len(unit)) + "\0"
    return text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


def _text(pattern):
    text = pattern.pattern
    return text.decode("latin-1") if isinstance(text, bytes) else text


def _literals(parsed):
    """The literal runs of a parsed pattern, and one character of each class."""
    run = ""
    for operator, value in parsed:
        if operator is sre.LITERAL:
            run += chr(value)
            continue
        if run:
            yield run
            run = ""
        yield from _inner(operator, value)
    if run:
        yield run


def _inner(operator, value):
    if operator is sre.IN:
        yield from _class_member(value)
    elif operator in (sre.NOT_LITERAL, sre.ANY):
        yield "a"
    elif operator is sre.BRANCH:
        for branch in value[1]:
            yield from _literals(branch)
    elif operator is sre.SUBPATTERN:
        yield from _literals(value[-1])
    elif operator in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        yield from _literals(value[2])
    elif operator in (sre.ASSERT, sre.ASSERT_NOT):
        yield from _literals(value[1])


_SAMPLES = {
    sre.CATEGORY_DIGIT: "1", sre.CATEGORY_SPACE: " ", sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_DIGIT: "a", sre.CATEGORY_NOT_SPACE: "a", sre.CATEGORY_NOT_WORD: "-",
}  # fmt: skip


def _class_member(members):
    if members[0][0] is sre.NEGATE:
        yield "a"
        return
    for operator, value in members[:4]:
        if operator is sre.LITERAL:
            yield chr(value)
        elif operator is sre.RANGE:
            yield chr(value[0])
        elif operator is sre.CATEGORY:
            yield _SAMPLES[value]


def growth(use, make):
    """
    How much longer `use` takes for a text of twice the size; 0 if it is too short to measure.

    `make(size)` makes the text.
    """
    if seconds(use, make(TINY), enough=FLOOR) > FLOOR:
        return math.inf
    for size in SIZES:
        if seconds(use, make(size), enough=FLOOR) > FLOOR:
            break
    else:
        return 0.0
    # the lowest of several ratios: another process can only make one of them larger
    ratios = []
    for _ in range(3):
        once, twice = (seconds(use, make(n), times=2) for n in (size, 2 * size))
        ratios.append(twice / once)
        if ratios[-1] < LINEAR:
            break
    return min(ratios)


LINEAR = 3.0
"""A ratio below this is linear (2), one above it is quadratic (4) or worse."""


def seconds(use, *arguments, times=5, enough=0.0):
    """
    The least CPU time that `use` takes of several times; the first that is `enough` is the last.

    The first time also loads modules, and a loaded machine makes single times longer. What other
    threads do is not counted, and no garbage is collected: other tests may have left much of it.
    """
    least = math.inf
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(times):
            began = time.thread_time()
            use(*arguments)
            least = min(least, time.thread_time() - began)
            if least <= enough:
                break
    finally:
        if was_enabled:
            gc.enable()
    return least
