"""The rows."""

import asyncio
from importlib.metadata import EntryPoint
from string import Formatter

import pytest

from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.provider import Provider, check_base_url, find_dialect
from interlingua.providers.rows import (
    OTHERS,
    ROWS,
    find_provider,
    providers,
    rows_of,
    with_installed,
)
from interlingua.runtime.installed import PROVIDERS
from interlingua.spec.errors import ConfigurationError, UnsupportedError
from interlingua.spec.modalities.embeddings import EmbedInput
from interlingua.transport.canned import CannedTransport
from support.rows import address_of, variables_of

ROW = Provider(name="mine", dialect="openai_chat", base_url="https://mine.example/v1")
NAMED = (
    "openai anthropic gemini openrouter xai fireworks groq mistral deepseek together cerebras "
    "ollama vllm llamacpp lmstudio azure local huggingface perplexity databricks cloudflare "
    "snowflake github zai moonshot nvidia sambanova novita deepinfra hyperbolic nebius cohere ai21 "
    "alibaba minimax stepfun baseten voyage jina litellm venice doubleword crusoe vercel "
    "github_copilot ollama_cloud mistralrs gpustack avian portkey bedrock bedrock_invoke vertex "
    "vertex_anthropic"
)
every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def test_every_provider_has_its_row():
    """Each name once, and each variable by one row only, besides rows that must be named."""
    names = [name for row in ROWS for name in (row.name, *row.aliases)]
    keys = [name for row in ROWS if not row.only_named for name in row.key_env]

    assert set(NAMED.split()) <= {row.name for row in ROWS}
    assert len(ROWS) >= 40
    assert sorted(names) == sorted(set(names))
    assert sorted(keys) == sorted(set(keys))
    assert not set(names) & OTHERS.keys()


@every_row
def test_a_row_is_whole(row):
    """It can be addressed and signed, says where its facts come from, and has no odd family."""
    places = (*row.url_env, *row.derived_places)
    address = row.base_url.format_map(dict.fromkeys(places, "acme"))

    assert not address or check_base_url(address) == address
    assert row.key_env or not row.key_required
    assert (row.identity is not None) <= (row.only_named or bool(row.key_env))
    assert (row.signing == "sigv4") == bool(row.aws_service)
    assert row.base_url or row.base_url_env or row.is_embedded or row.name == "openai_compatible"
    used = {place for _, place, _, _ in Formatter().parse(row.base_url) if place}
    assert used == (set(row.url_env) if not row.derived_places else used & set(places))
    assert set(row.url_env) <= used | {place.of for place in row.derived_places.values()}
    assert {*row.endpoints, *row.versioned_endpoints} <= {row.dialect, *row.other_dialects}
    assert row.sources
    assert all(len(source) <= 40 for source in row.sources)
    assert row.dialect not in row.other_dialects
    assert all(family == family.lower() for family in row.families)


@every_row
def test_the_operations_of_a_row_exist(row):
    """Where a dialect has an operation at all, it has the variant that the row names."""
    tables = [find_dialect(name).OPERATIONS for name in (row.dialect, *row.other_dialects)]
    for name, variant in (row.operations or {}).items():
        wanted = f"{name}.{variant}".rstrip(".")
        known = {key for table in tables for key in table if key.partition(".")[0] == name}
        if variant and known == {name}:
            continue  # the variant is not written yet
        assert not known or wanted in known


@every_row
def test_an_operation_that_a_row_does_not_have_is_refused(row):
    """Before anything is sent, with those who have it."""
    if row.operations is None or "embed" in row.operations:
        return
    adapter = HttpAdapter(row, "k", base_url=address_of(row), transport=CannedTransport([]))
    with pytest.raises(UnsupportedError, match=r"These providers have it: .*openai.*voyage"):
        asyncio.run(adapter.perform("embed", EmbedInput(model="m", inputs=("hi",))))


@every_row
def test_the_variables_of_a_row_configure_it(row):
    """
    With all of them it is there; without one it is not, and the error names that one.

    A row that may use the login of a cloud instead of a key is there when it is named.
    """
    if not row.key_required:
        return
    variables = variables_of(row)
    client = Client.from_env(variables)
    assert client.adapter(row.name).base_url.startswith("http")
    assert "{" not in client.adapter(row.name).base_url
    for missing in variables:
        others = {name: value for name, value in variables.items() if name != missing}
        if row.identity is not None and missing in row.key_env:
            assert row.name not in repr(Client.from_env(others))
            continue
        with pytest.raises(ConfigurationError) as caught:
            Client.from_env(others).adapter(row.name)
        assert missing in caught.value.message


@pytest.mark.parametrize(
    ("environ", "name", "address"),
    [
        (
            {"SNOWFLAKE_TOKEN": "k", "SNOWFLAKE_ACCOUNT": "my_org-x1"},
            "snowflake",
            "https://my_org-x1.snowflakecomputing.com/api/v2/cortex/v1",
        ),
        (
            {"CLOUDFLARE_API_TOKEN": "k", "CLOUDFLARE_ACCOUNT_ID": " a1 "},
            "cloudflare",
            "https://api.cloudflare.com/client/v4/accounts/a1/ai/v1",
        ),
        (
            {"SNOWFLAKE_TOKEN": "k", "SNOWFLAKE_BASE_URL": "https://proxy.example/v1"},
            "snowflake",
            "https://proxy.example/v1",
        ),
        (
            {"DATABRICKS_TOKEN": "k", "DATABRICKS_HOST": "https://adb-1.net/"},
            "databricks",
            "https://adb-1.net/serving-endpoints",
        ),
    ],
)
def test_addresses_with_an_account(environ, name, address):
    """The account comes from its variable; a whole address goes before it."""
    assert Client.from_env(environ).adapter(name).base_url == address


@pytest.mark.parametrize("account", ["evil.example/x", "a@evil.example", "a?b", "a b", "{account}"])
def test_an_account_cannot_name_another_host(account):
    """A slash or an @ in it is an error that names the variable, without the value."""
    environ = {"SNOWFLAKE_TOKEN": "k", "SNOWFLAKE_ACCOUNT": account}
    with pytest.raises(ConfigurationError, match="Check SNOWFLAKE_ACCOUNT") as caught:
        Client.from_env(environ)
    assert account not in caught.value.message


def test_an_adapter_without_its_account_says_what_to_set(monkeypatch):
    """Also with a key given, and in a registry file."""
    monkeypatch.delenv("SNOWFLAKE_ACCOUNT", raising=False)
    with pytest.raises(ConfigurationError, match=r"Set SNOWFLAKE_ACCOUNT.*or pass base_url='https"):
        HttpAdapter("snowflake", "k")
    with pytest.raises(ConfigurationError, match="Set DATABRICKS_BASE_URL or DATABRICKS_HOST"):
        HttpAdapter("databricks", "k")


@pytest.mark.parametrize(
    ("name", "near"),
    [("grok", "'groq'"), ("huggingfaces", "'huggingface'"), ("togehter", "'together'")],
)
def test_an_unknown_name_has_near_names(name, near):
    """Not all names there are."""
    with pytest.raises(ConfigurationError) as caught:
        find_provider(name)

    assert f"no provider {name!r}. Did you mean {near}" in caught.value.message
    assert len(caught.value.message) < 120


@pytest.mark.parametrize("name", ["qqqq", "", "x" * 10**6, "\udc80"])
def test_an_unknown_name_that_is_near_to_none(name):
    """It says where the names are, in a short message."""
    with pytest.raises(ConfigurationError, match=r"provider table.*'openai_compatible'") as caught:
        find_provider(name)
    assert len(caught.value.message) < 400


def test_rows_are_found_by_name():
    """Or by an alias."""
    assert find_provider("groq").base_url == "https://api.groq.com/openai/v1"
    assert find_provider("DashScope").name == "alibaba"
    assert set(providers()) >= {row.name for row in ROWS}


@pytest.mark.parametrize("loaded", [ROW, [ROW], (ROW,), lambda: ROW, lambda: [ROW]])
def test_other_packages_add_rows(loaded):
    """An entry point gives a row, several, or a function that does."""
    assert rows_of(loaded, "mine") == (ROW,)


def test_an_entry_point_that_gives_something_else_is_named():
    """Whoever installed it can find it."""
    with pytest.raises(ConfigurationError, match=r"Entry point 'odd' .* gave a str"):
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
        return EntryPoint(name="theirs", value=value, group=PROVIDERS)

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
