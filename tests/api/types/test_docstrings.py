"""Docstrings taken apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.api.types.records import parse_docstring

GOOGLE = """Look up the weather.

    Uses the public service.

    Args:
        city: The city, as
            people call it.
        unit (str, optional): Celsius: or not.
        **options: More.

    Note:
        It may rain.

    Returns:
        Words.

    Raises:
        ValueError: When it cannot.
    """
REST = """Look up the weather.

    Uses the public service.

    :param city: The city, as
        people call it.
    :param str unit: Celsius: or not.
    :type unit: str
    :returns: Words.
    :raises ValueError: When it cannot.
    """
NUMPY = """Look up the weather.

    Uses the public service.

    Parameters
    ----------
    city : str
        The city, as
        people call it.
    unit : {"c", "f"}, optional
        Celsius: or not.

    Returns
    -------
    str
        Words.
    """
BOTH = {"city": "The city, as people call it.", "unit": "Celsius: or not."}


@pytest.mark.parametrize("text", [GOOGLE, REST, NUMPY], ids=["google", "rest", "numpy"])
def test_the_three_styles_are_equivalent(text):
    """Each style gives the same parameters and description."""
    read = parse_docstring(text)

    assert {name: read.parameters[name] for name in BOTH} == BOTH
    assert read.parameters.keys() - BOTH.keys() <= {"options"}
    assert read.description.startswith("Look up the weather.\n\nUses the public service.")
    assert "Words" not in read.description
    assert "cannot" not in read.description


def test_other_sections_stay_in_the_description():
    """Only parameters, results and errors are removed."""
    assert parse_docstring(GOOGLE).description.endswith("Note:\n    It may rain.")


def test_numpy_names_may_share_a_line():
    """`x, y : int` is about both."""
    read = parse_docstring("Move.\n\nAttributes\n----------\nx, y : int\n    Where.\n")

    assert read.parameters == {"x": "Where.", "y": "Where."}


def test_text_that_only_looks_like_a_section_is_description():
    """A heading without items, and a colon in a sentence, are text."""
    text = "Do it.\n\nReturns: nothing much.\nParameters are free."

    assert parse_docstring(text).description == text
    assert parse_docstring(text).parameters == {}


def test_no_docstring_is_an_empty_docstring():
    """Neither has a description or parameters."""
    assert parse_docstring(None) == parse_docstring("")


names = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)
sentences = st.from_regex(r"[A-Z][a-z:() ]{0,20}[a-z.]", fullmatch=True).map(
    lambda text: " ".join(text.split())
)


def google(parameters):
    return "Args:\n" + "\n".join(f"    {name} (int): {text}" for name, text in parameters.items())


def rest(parameters):
    return "\n".join(f":param {name}: {text}" for name, text in parameters.items())


def numpy(parameters):
    items = (f"{name} : int\n    {text}" for name, text in parameters.items())
    return "Parameters\n----------\n" + "\n".join(items)


@pytest.mark.parametrize("form", [google, rest, numpy])
@given(parameters=st.dictionaries(names, sentences, min_size=1))
def test_written_parameters_are_read_back(form, parameters):
    """Each style gives back any names and texts."""
    read = parse_docstring(f"Do it.\n\n{form(parameters)}\n")

    assert read.description == "Do it."
    assert read.parameters == parameters


LINES = ["Args:", "Parameters", "----------", ":param x: y", "  x: y", "x : int", "", "words", "  "]


@given(st.lists(st.sampled_from(LINES) | st.text(max_size=20), max_size=12))
def test_any_text_can_be_parsed(lines):
    """No parameter has an empty name or an empty text."""
    read = parse_docstring("\n".join(lines))

    assert read.description == read.description.strip()
    assert all(name and text for name, text in read.parameters.items())
