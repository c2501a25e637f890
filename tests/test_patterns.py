"""The regular expressions of the library work on every Python that it promises."""

import ast
import re

import pytest

from support.sources import parsed

REPEAT = r"(?:[*+?]|\{[0-9]*,?[0-9]*\})\+"
# Before CPython 3.11.5 these keep the position of a failed last try. A repeat of a single
# character or class is right everywhere.
POSSESSIVE_GROUP = re.compile(rf"(?<!\\)(?:\\\\)*\){REPEAT}|\(\?>")
REPEATED_FIELD = re.compile(REPEAT)


def find_possessive_groups(tree):
    """The string literals with a possessive or atomic group, or with one around a `{field}`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if POSSESSIVE_GROUP.search(text):
                yield text
        if isinstance(node, ast.JoinedStr):
            for before, after in zip(node.values, node.values[1:], strict=False):
                is_field = isinstance(before, ast.FormattedValue)
                if is_field and isinstance(after, ast.Constant):
                    yield from [after.value] if REPEATED_FIELD.match(after.value) else []


def test_no_possessive_groups():
    """Not in any file."""
    for path, tree in parsed(rf"{REPEAT}|\(\?>"):
        assert list(find_possessive_groups(tree)) == [], path


@pytest.mark.parametrize(
    "literal",
    [
        'r"(?:a,)*+"', 'r"(a)++"', 'r"(?:a|b)?+"', 'rb"(?:ab){2,3}+"', 'r"(?>ab)"',
        'r"(\\\\)*+"', 'rf"(?:{x},)*+b"', 'rf"{x}*+"',
    ],
)  # fmt: skip
def test_a_possessive_group_is_found(literal):
    """In each form."""
    assert list(find_possessive_groups(ast.parse(f"pattern = {literal}")))


@pytest.mark.parametrize(
    "literal", ['r"[a-z]*+"', 'r"a++(?:b)*"', 'r"\\)*+"', 'rb"(?:ab){2,3}"', 'rf"{x}[a]?+"']
)
def test_a_possessive_character_is_not(literal):
    """Single characters and classes may be possessive."""
    assert not list(find_possessive_groups(ast.parse(f"pattern = {literal}")))
