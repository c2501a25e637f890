"""Problems and their places."""

import pytest

from interlingua.api.types.schema import (
    Findings,
    describe,
    format_path,
    list_problems,
    path_steps,
)
from interlingua.spec.errors import DecodeError, MismatchError, Problem


def test_a_path_is_formatted_like_code():
    """Names follow a dot, indexes are in brackets, and the root is empty."""
    path = (((None, "people"), 2), "name")

    assert format_path(path_steps(path)) == "people[2].name"
    assert format_path(path_steps((None, 0))) == "[0]"
    assert format_path(path_steps(None)) == ""


def test_findings_are_problems_with_paths():
    """They are in the order in which they were added."""
    findings = Findings()
    findings.add((None, "a"), "is missing")
    findings.add(None, "is odd")

    assert [str(problem) for problem in findings.problems] == ["a: is missing", "is odd"]


def test_a_long_list_is_shortened():
    """Ten problems are listed and the others counted."""
    problems = [Problem(f"[{at}]", "no") for at in range(25)]

    assert list_problems(problems).endswith("[9]: no; and 15 more")
    assert list_problems(problems[:10]).endswith("[9]: no")


def test_a_mismatch_is_a_decode_error():
    """It has the first path, and all problems."""
    findings = Findings()
    findings.raise_if_any()
    findings.add((None, "a"), "x")
    findings.add((None, "b"), "y")
    with pytest.raises(MismatchError) as caught:
        findings.raise_if_any()
    error = caught.value

    assert isinstance(error, DecodeError)
    assert (error.path, len(error.problems)) == ("a", 2)


def test_values_are_described_briefly():
    """By JSON type, and a string by its beginning; a boolean is not a number."""
    values = [None, True, 1, 1.5, "x" * 99, [], {}]
    words = ["null", "a boolean", "a number", "a number", f"'{'x' * 40}…'", "an array", "an object"]

    assert [describe(value) for value in values] == words
