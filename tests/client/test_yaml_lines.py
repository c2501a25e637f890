"""YAML with lines."""

import pytest

from interlingua.client.config import read_document
from interlingua.spec.check import row_for
from interlingua.spec.errors import ConfigurationError

TYPES = {"name": str, "count": int, "share": float, "on": bool, "parts": list, "more": dict}
KNOWN = {name: row_for(name, kind) for name, kind in TYPES.items()}


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        path = tmp_path / "f.yaml"
        path.write_text(text, encoding="utf-8")
        return read_document(path)

    return read_text


def test_values_as_yaml_has_them(read):
    """A null is as good as nothing."""
    section = read("name: a\ncount: 2\nshare: 1\non: true\nparts: [1]\nmore: {a: 1}\n").check(KNOWN)

    assert [section.get(key) for key in KNOWN] == ["a", 2, 1, True, [1], {"a": 1}]
    assert read("name:\n").check(KNOWN).get("name", "none") == "none"
    assert read("").get("name") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "name: a\nnmae: b\n",
            r"f.yaml:2: Unknown key 'nmae' in the file. Known keys: name, count",
        ),
        ("count: two\n", r"f.yaml:1: 'count' in the file must be an integer"),
        ("count: true\n", r"f.yaml:1: 'count' in the file must be an integer"),
        ("\nshare: x\n", r"f.yaml:2: 'share' in the file must be a number"),
        ("on: 1\n", r"f.yaml:1: 'on' in the file must be true or false"),
        ("name: a\n\nname: b\n", r"f.yaml:3: Duplicate key 'name'"),
        ("more:\n  x: {a: 1,\n   a: 2}\n", r"f.yaml:3: Duplicate key 'a'"),
        ("name: a\n? [a, b]\n: c\n", r"f.yaml:2: A key must be a string"),
        ("more:\n  ? {a: b}\n  : c\n", r"f.yaml:2: A key must be a string"),
        ("parts: [1, {? [a] : c}]\n", r"f.yaml:1: A key must be a string"),
        ("name: [\n", r"f.yaml:2: "),
        ("- a\n", r"f.yaml:1: A registry file must be a mapping"),
        ("name: !!python/object:os.system {}\n", r"f.yaml:1: Could not determine a constructor"),
        ("\0", r"f.yaml: This is not valid YAML"),
    ],
)
def test_a_mistake_has_its_line(read, text, message):
    """And says what would be right."""
    with pytest.raises(ConfigurationError, match=message):
        read(text).check(KNOWN)


def test_nesting_without_end(read):
    """It is an error like another."""
    with pytest.raises(ConfigurationError, match=r"f.yaml: The values are nested too deeply"):
        read("parts: " + "[" * 50_000)


def test_what_is_merged_lies_below(read):
    """Of several, the first goes over the others; a key of one's own over all of them."""
    file = read(
        "all:\n  a: &a {name: x, count: 1}\n  b: &b {count: 2, share: 2}\n"
        "  c: {<<: [*a, *b], name: z}\n  d:\n    name: w\n    <<: *b\n"
    )
    found = file.sections("all", KNOWN)

    assert [found["c"].get(key) for key in ("name", "count", "share")] == ["z", 1, 2]
    assert [found["d"].get(key) for key in ("name", "count", "share")] == ["w", 2, 2]
    assert list(found["a"]) == ["name", "count"]
    assert "share" not in found["a"]


def test_a_key_that_is_not_there_has_its_sections_line(read):
    """What is missing is told where it would be."""
    section = read("all:\n  a: {}\n  b:\n    count: 1\n").sections("all", KNOWN)["b"]

    assert str(section.error("name", "no name")).endswith("f.yaml:3: no name")
    assert str(section.error("count", "bad")).endswith("f.yaml:4: bad")


def test_sections_within(read):
    """Each is checked by its own name."""
    file = read("all:\n  a: {name: x}\n  b:\n    nmae: y\n")

    with pytest.raises(ConfigurationError, match=r"f.yaml:4: Unknown key 'nmae' in all.b"):
        file.sections("all", KNOWN)
    with pytest.raises(ConfigurationError, match=r"f.yaml:2: 'all.a' must be a mapping"):
        read("all:\n  a: 1\n").sections("all", KNOWN)
    with pytest.raises(ConfigurationError, match=r"f.yaml:1: 'all' must be a mapping"):
        read("all: 1\n").sections("all", KNOWN)
    assert read("all:\n").sections("all", KNOWN) == {}
    assert read("all: {a: {name: x}}\n").sections("all", KNOWN)["a"].get("name") == "x"


def test_a_file_that_cannot_be_read(tmp_path):
    """It is named."""
    with pytest.raises(ConfigurationError, match=r"Cannot read .*missing.yaml"):
        read_document(tmp_path / "missing.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"name: \xff\n")
    with pytest.raises(ConfigurationError, match=r"Cannot read .*latin.yaml"):
        read_document(tmp_path / "latin.yaml")
