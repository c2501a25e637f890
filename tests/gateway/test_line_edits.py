"""Values are set in TOML, YAML and files of variables, and comments stay."""

import tomllib

import pytest
import yaml

from interlingua.gateway.line_edits import add_yaml_item, edit_yaml, set_env, set_toml, set_yaml
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


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# mine\ndark: true\n",
        "model: old\ndark: true",
        "---\n",
        "model: >\n  old\n  one\n",
        "{model: old}\n",
        "model:  # mine\ndark: true\n",
    ],
)
def test_yaml(text):
    """The keys of a mapping."""
    values = {"model": "m:1", "api-base": "http://x"}
    written = set_yaml(text, values)

    assert yaml.safe_load(written) == {**(yaml.safe_load(text) or {}), **values}
    assert ("# mine" in text) == ("# mine" in written)
    assert set_yaml(written, values) == written


@pytest.mark.parametrize("text", ["a: b: c", "- model\n"])
def test_yaml_that_is_not_touched(text):
    """As with TOML."""
    with pytest.raises(ConfigurationError):
        set_yaml(text, {"model": "m:1"})


ALIASES = """\
# mine
aliases:  # short
  # favourites
  sonnet: anthropic:claude-sonnet-4-5  # best

  big: "openai:gpt-5.2"
# the end
log: false
"""


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("sonnet", "  sonnet: x:y  # best"),
        ("big", "  big: x:y"),
        ("new", "  new: x:y"),
        ("two words", '  "two words": x:y'),
        ("yes", '  "yes": x:y'),
    ],
)
def test_a_key_of_a_mapping_in_yaml(name, line):
    """Only its line changes; comments and order stay, also when it is removed again."""
    written = edit_yaml(ALIASES, ("aliases", name), "x:y")
    removed = edit_yaml(written, ("aliases", name), None)
    before = yaml.safe_load(ALIASES)["aliases"]

    assert yaml.safe_load(written)["aliases"] == {**before, name: "x:y"}
    assert [each for each in written.splitlines() if each not in ALIASES.splitlines()] == [line]
    kept = [line for line in ALIASES.splitlines() if not line.startswith(f"  {name}:")]
    assert removed.splitlines() == kept


@pytest.mark.parametrize(
    "text",
    ["", "aliases:\n", "aliases:\nlog: true", "aliases: {}", "aliases: {a: 'b:c', d: e}  # mine"],
)
def test_a_first_key_of_a_mapping_in_yaml(text):
    """The mapping is made if it is missing."""
    written = edit_yaml(text, ("aliases", "new"), "x:y")

    assert yaml.safe_load(written)["aliases"]["new"] == "x:y"
    assert ("# mine" in text) == ("# mine" in written)
    assert "new" not in edit_yaml(written, ("aliases", "new"), None)


@pytest.mark.parametrize("text", ["a: &x {b: c}\naliases: *x\n", "aliases: text", "aliases: [a]"])
def test_a_mapping_in_yaml_that_is_not_touched(text):
    """Nothing but the key may change."""
    with pytest.raises(ConfigurationError, match="yourself"):
        edit_yaml(text, ("aliases", "new"), "x:y")


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
