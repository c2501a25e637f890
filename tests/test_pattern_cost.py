"""Every regular expression of the library takes time in proportion to its input."""

import re
import time
from functools import partial
from itertools import product

import pytest

from interlingua import dialects
from support.patterns import FLOOR, LINEAR, SOURCE, growth, hard_text, hard_units, held, written

WRITTEN = list(written())


def use_of(pattern, name):
    """The method as a function of the text alone; every match is made."""
    if name == "sub":
        return lambda text: pattern.sub("" if isinstance(text, str) else b"", text)
    if name == "finditer":
        return lambda text: sum(1 for _ in pattern.finditer(text))
    return getattr(pattern, name)


def slow_text(pattern, name):
    """A text for which this use of the pattern is not linear; None if there is none."""
    use, units = use_of(pattern, name), hard_units(pattern)
    for head, unit in product(("", units[0], units[-1]), units):
        if growth(use, partial(hard_text, pattern, head, unit)) >= LINEAR:
            return hard_text(pattern, head, unit, 60)
    return None


@pytest.mark.parametrize(
    ("where", "pattern", "name"),
    [
        pytest.param(where, pattern, name, id=f"{where}-{name}")
        for where, pattern, names in WRITTEN
        if pattern is not None
        for name in sorted(names)
    ],
)
def test_every_pattern_is_linear(where, pattern, name):
    """A text of twice the size takes twice the time, whatever repeats in it."""
    assert slow_text(pattern, name) is None, where


def test_no_pattern_is_missed():
    """Each pattern that a module holds is written in its source, or is a linear path."""
    known = {(pattern.pattern, pattern.flags) for _, pattern, _ in WRITTEN if pattern is not None}
    made = {found for found in held() if (found.pattern, found.flags) not in known}

    assert len(known) > 60
    for pattern in made:  # of endpoints, made by functions
        assert "*/" in pattern.pattern
        assert slow_text(pattern, "fullmatch") is None, pattern


def test_patterns_that_are_data_are_linear():
    """The patterns of ids and names, in profiles and facts."""
    profiles = (SOURCE / "providers/catalog/profiles.json").read_text(encoding="utf-8")
    patterns = set(re.findall(r'"tool_call_id_pattern": "(.*)"', profiles))
    for name in dialects.names():
        history = dialects.get(name).FACTS.history
        patterns |= {getattr(history, field, None) for field in ("call_id", "call_name")}
    patterns -= {None}

    assert patterns
    for pattern in patterns:
        assert slow_text(re.compile(pattern), "fullmatch") is None


@pytest.mark.parametrize(
    ("pattern", "name"),
    [(r"(?:a+)+b", "match"), (r"a.*b.*c", "search"), (r"eyJ[\w-]*\.", "search"), (r"\s+$", "sub")],
)
def test_a_slow_pattern_is_found(pattern, name):
    """The measure can fail."""
    assert slow_text(re.compile(pattern), name)


@pytest.mark.parametrize("slow", [{1}, {1, 2}, {2, 4}])
def test_a_single_slow_time_is_no_growth(slow):
    """The first use loads modules, and a loaded machine makes single times longer."""
    times = []

    def use(text):
        times.append(len(text))
        if len(times) in slow:
            began = time.thread_time()
            while time.thread_time() < began + 2 * FLOOR:
                pass

    assert growth(use, "x".__mul__) < LINEAR
