"""The source files of the package, parsed."""

import ast
import re
from pathlib import Path

import interlingua

SOURCE = Path(interlingua.__file__).parent


def parsed(pattern=""):
    """
    Each source file whose text matches the pattern, with its tree.

    To parse all of them takes a second, so a test names what it looks for. One tree is held at a
    time: all of them together keep the garbage collector busy for longer than the parser.
    """
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if re.search(pattern, text):
            yield path, ast.parse(text)


def statements(tree):
    """Every statement of a tree, without the expressions, which are most of it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield node
            yield from statements(node)
