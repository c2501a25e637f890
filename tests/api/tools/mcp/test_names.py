"""Names of MCP tools."""

import re

from hypothesis import given
from hypothesis import strategies as st

from interlingua.api.tools.mcp.tools import safe_names

VALID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
TEXTS = st.one_of(
    st.text(max_size=90),
    st.text("aA1_-./ é", max_size=90),
    st.sampled_from(["a.b", "a/b", "a_b", "1a", "", "a" * 64, "a" * 65]),
)
SOURCES = st.lists(st.tuples(st.sampled_from(["", "x", "x_a", "é"]), TEXTS), unique=True)


def wanted(source):
    return "_".join(source) if source[0] else source[1]


@given(SOURCES)
def test_every_name_is_valid_and_unique(sources):
    """Every provider accepts the names."""
    names = safe_names(sources)

    assert list(names) == sources
    assert all(VALID.fullmatch(name) for name in names.values())
    assert len(set(names.values())) == len(sources)


@given(SOURCES)
def test_a_valid_unique_name_is_unchanged(sources):
    """A name changes only if it must."""
    all_wanted = [wanted(source) for source in sources]

    for source, name in safe_names(sources).items():
        if VALID.fullmatch(wanted(source)) and all_wanted.count(wanted(source)) == 1:
            assert name == wanted(source)


@given(SOURCES, st.randoms())
def test_names_do_not_depend_on_the_order(sources, random):
    """A server may list its tools in another order the next time."""
    shuffled = random.sample(sources, len(sources))

    assert safe_names(shuffled) == safe_names(sources)


@given(SOURCES.filter(bool))
def test_a_cleaned_name_does_not_depend_on_other_tools(sources):
    """Adding or removing a tool does not rename the others."""
    names = safe_names(sources)

    for source in sources:
        if not VALID.fullmatch(wanted(source)):
            assert safe_names([source])[source] == names[source]


def test_cleaned_names_stay_readable():
    """Valid characters stay; names that differ only in others have different digests."""
    names = safe_names([("", "files.read"), ("", "files/read"), ("", "1st"), ("git", "log")])

    assert names == {
        ("", "files.read"): "files_read_ba20ec16",
        ("", "files/read"): "files_read_00b0e825",
        ("", "1st"): "t_1st_a4b16c4b",
        ("git", "log"): "git_log",
    }


def test_two_servers_with_the_same_full_name():
    """`a` + `b_c` and `a_b` + `c` are not confused."""
    names = safe_names([("a", "b_c"), ("a_b", "c")])

    assert all(name.startswith("a_b_c_") for name in names.values())
    assert len(set(names.values())) == 2


def test_a_tool_with_the_digest_name_of_another():
    """A name that is taken is not used again."""
    taken = safe_names([("", "a.b")])["", "a.b"]
    names = safe_names([("", "a.b"), ("", taken)])

    assert names["", taken] == taken
    assert names["", "a.b"] != taken
