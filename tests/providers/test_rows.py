"""The rows."""

from importlib.metadata import EntryPoint

import pytest

from interlingua.providers.provider import Provider, check_base_url
from interlingua.providers.rows import (
    ENTRY_POINTS,
    ROWS,
    find_provider,
    providers,
    rows_of,
    with_installed,
)
from interlingua.spec.errors import ConfigurationError

ROW = Provider(name="mine", dialect="openai_chat", base_url="https://mine.example/v1")
NAMED = (
    "openai anthropic gemini openrouter xai fireworks groq mistral deepseek together cerebras "
    "ollama vllm llamacpp azure local"
)


def test_every_provider_has_its_row():
    """Each name once, each address one that can be used, each key by a name of its own."""
    names = [row.name for row in ROWS]
    keys = [name for row in ROWS for name in row.key_env]

    assert set(NAMED.split()) <= set(names)
    assert len(names) == len(set(names))
    assert len(keys) == len(set(keys))
    assert all(check_base_url(row.base_url) == row.base_url for row in ROWS if row.base_url)
    assert all(row.key_env for row in ROWS if row.key_required)


def test_rows_are_found_by_name():
    """An unknown name lists those there are."""
    assert find_provider("groq").base_url == "https://api.groq.com/openai/v1"
    assert set(providers()) >= {row.name for row in ROWS}
    with pytest.raises(ConfigurationError, match=r"no provider 'grok'; there are .*groq"):
        find_provider("grok")


@pytest.mark.parametrize("loaded", [ROW, [ROW], (ROW,), lambda: ROW, lambda: [ROW]])
def test_other_packages_add_rows(loaded):
    """An entry point gives a row, several, or a function that does."""
    assert rows_of(loaded, "mine") == (ROW,)


def test_an_entry_point_that_gives_something_else_is_named():
    """Whoever installed it can find it."""
    with pytest.raises(ConfigurationError, match=r"entry point 'odd' .* gave a str"):
        rows_of(["no row"], "odd")


@pytest.fixture
def points(tmp_path, monkeypatch):
    """Entry points of a package that is there, and of one that is not."""
    module = "from interlingua.providers.provider import Provider\n"
    module += "ROW = Provider(name='mine', dialect='openai_chat')\n"
    module += "TAKEN = Provider(name='openai', dialect='openai_chat')\nODD = 'no row'\n"
    (tmp_path / "a_package_of_rows.py").write_text(module, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def point(value):
        return EntryPoint(name="theirs", value=value, group=ENTRY_POINTS)

    return point


def test_rows_of_others_come_after_ours(points):
    """So that none becomes the default before them, and none takes a name of ours."""
    found = with_installed([points("a_package_of_rows:TAKEN"), points("a_package_of_rows:ROW")])

    assert list(found) == [*(row.name for row in ROWS), "mine"]
    assert found["openai"].base_url == "https://api.openai.com/v1"


@pytest.mark.parametrize("broken", ["no_such_package:ROW", "a_package_of_rows:ODD"])
def test_a_broken_entry_point_is_told_and_left_out(points, broken):
    """The rest goes on."""
    with pytest.warns(RuntimeWarning, match="entry point 'theirs' of .* was ignored"):
        found = with_installed([points(broken), points("a_package_of_rows:ROW")])

    assert "mine" in found
    assert "openai" in found
