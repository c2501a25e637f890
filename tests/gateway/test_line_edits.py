"""Values are set in TOML, YAML and files of variables, and comments stay."""

import tomllib

import pytest
import yaml

from interlingua.gateway.line_edits import add_yaml_item, set_env, set_toml, set_yaml
from interlingua.spec.errors import ConfigurationError

ROOT = {"model": "m:1", "model_provider": "own"}
TABLE = {"base_url": "http://x/v1", "wire_api": "responses"}
ITEM = {"model_id": "own", "model_name": "m:1", "supports_tools": True}


def edit_toml(text):
    return set_toml(text, ROOT, "providers.own", TABLE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# mine\n",
        'model = "old" # the old one\nother = 1',
        '[providers.other]\nbase_url = "y"\n\n[tools]\nweb = true\n',
        '# top\nmodel = "a"\n\n[providers.own] # before\nbase_url = "old"\nextra = 1\n[z]\nb = 2\n',
        "[providers]\n[providers.own]\n",
    ],
)
def test_toml(text):
    """Keys before the tables and keys of a table; all else and all comments stay."""
    written = edit_toml(text)
    before, after = tomllib.loads(text), tomllib.loads(written)
    own = {**before.get("providers", {}).get("own", {}), **TABLE}

    assert after == {**before, **ROOT, "providers": {**before.get("providers", {}), "own": own}}
    assert all(comment in written for comment in text.split("\n") if comment.startswith("#"))
    assert ("# the old one" in text) == ("# the old one" in written)
    assert ("# before" in text) == ("# before" in written)
    assert edit_toml(written) == written


@pytest.mark.parametrize(
    "text",
    [
        'providers = {own = {base_url = "y"}}\n',
        'providers.own.base_url = "y"\n',
        'model = """\nold\n"""\n',
        "model = ",
    ],
)
def test_toml_that_is_not_touched(text):
    """A form that lines cannot change is an error that says what to write, or what is wrong."""
    with pytest.raises(ConfigurationError, match=r"yourself|not valid TOML"):
        edit_toml(text)


@pytest.mark.parametrize("text", ["", "# mine\ndark: true\n", "model: old\ndark: true", "---\n"])
def test_yaml(text):
    """The keys of a mapping."""
    values = {"model": "m:1", "api-base": "http://x"}
    written = set_yaml(text, values)

    assert yaml.safe_load(written) == {**(yaml.safe_load(text) or {}), **values}
    assert ("# mine" in text) == ("# mine" in written)
    assert set_yaml(written, values) == written


@pytest.mark.parametrize("text", ["model: >\n  old\n  one\n", "{model: old}\n", "a: b: c"])
def test_yaml_that_is_not_touched(text):
    """As with TOML."""
    with pytest.raises(ConfigurationError):
        set_yaml(text, {"model": "m:1"})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# mine\n- model_id: other\n  model_name: x",
        "- model_id: own\n  model_name: old\n  vision: true\n- model_id: other\n",
        "[]\n",
    ],
)
def test_an_item_of_a_yaml_list(text):
    """It replaces the one of the same name, or is added."""
    if text == "[]\n":
        with pytest.raises(ConfigurationError):
            add_yaml_item(text, "model_id", ITEM)
        return
    written = add_yaml_item(text, "model_id", ITEM)
    others = [item for item in yaml.safe_load(text) or [] if item["model_id"] != "own"]

    assert [item for item in yaml.safe_load(written) if item["model_id"] != "own"] == others
    assert ITEM in yaml.safe_load(written)
    assert add_yaml_item(written, "model_id", ITEM) == written


def test_variables():
    """A variable is replaced or added; other lines stay."""
    text = '# mine\nexport A=1\nB="2"\nA_B=3'

    assert set_env(text, {"A": "x", "C": "y"}) == '# mine\nA="x"\nB="2"\nA_B=3\nC="y"\n'
    assert set_env("", {"A": "x"}) == 'A="x"\n'
