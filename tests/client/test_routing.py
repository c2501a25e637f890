"""Where a prompt goes: to the provider that the caller named or configured, or nowhere."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter, OpenAIAdapter, OpenAICompatibleAdapter
from interlingua.providers.catalog.models import providers_of
from interlingua.providers.catalog.profiles import _load
from interlingua.providers.catalog.search import find_short_name, list_models
from interlingua.providers.row_tables import makers
from interlingua.providers.rows import (
    OPEN_MODELS,
    OTHERS,
    ROWS,
    find_own_id,
    maker_of,
    providers,
    row_name,
)
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request
from support.rows import variables_of

KEYED = {row.name: row for row in ROWS if row.key_required}
KEYLESS = ["ollama", "vllm", "llamacpp", "lmstudio"]
THREE = "openai anthropic gemini"
SHORT = {name: find_short_name("sonnet", name).id for name in ("anthropic", "openrouter")}


def environment(names):
    return {
        key: value for name in names.split() for key, value in variables_of(KEYED[name]).items()
    }


def route(client, model, provider=None):
    """The provider and model of a call, as every mode of the client finds them."""
    plan = client.explain(Request(model=model, provider=provider, messages="hi"))
    return plan.provider, plan.model


@pytest.mark.parametrize(
    ("configured", "model", "expected"),
    [
        # A prefix is a key of the client, a row or an alias.
        (THREE, "openai:gpt-5.2", "openai gpt-5.2"),
        (THREE, "google:gemini-2.5-flash", "gemini gemini-2.5-flash"),
        (THREE, "Google:gemini-2.5-flash", "gemini gemini-2.5-flash"),
        (THREE, "openai:ft:gpt-4.1:acme::x", "openai ft:gpt-4.1:acme::x"),
        (THREE, "gemini:anthropic/claude", "gemini anthropic/claude"),
        ("groq", "groq:openai/gpt-oss-120b", "groq openai/gpt-oss-120b"),
        # Rows without a key work when they are named.
        (THREE, "ollama:llama3.2:1b", "ollama llama3.2:1b"),
        ("", "lmstudio:qwen3", "lmstudio qwen3"),
        ("", "llama.cpp:m", "llamacpp m"),
        # An exact id of the catalog.
        (THREE, "claude-haiku-4-5", "anthropic claude-haiku-4-5"),
        (THREE, "gpt-5.2", "openai gpt-5.2"),
        ("groq openai", "llama-3.3-70b-versatile", "groq llama-3.3-70b-versatile"),
        # A short name of a model of the provider.
        (THREE, "sonnet", f"anthropic {SHORT['anthropic']}"),
        ("anthropic", "Sonnet", f"anthropic {SHORT['anthropic']}"),
        (THREE, "anthropic:sonnet", f"anthropic {SHORT['anthropic']}"),
        ("openrouter", "openrouter:sonnet", f"openrouter {SHORT['openrouter']}"),
        ("openai", "openai:sonnet", "openai sonnet"),  # named, and no short name there
        ("azure", "azure:mini", "azure mini"),  # customers name the models
        # A bare name goes to the only remote provider, if nothing points elsewhere.
        ("openai", "my-finetune", "openai my-finetune"),
        ("openai", "gpt-7-new", "openai gpt-7-new"),
        ("openai", "ft:gpt-4.1:acme::x", "openai ft:gpt-4.1:acme::x"),
        ("groq", "llama-9-instant", "groq llama-9-instant"),
        ("gemini", "models/gemini-9", "gemini models/gemini-9"),
        ("fireworks", "accounts/fireworks/models/deepseek-v9", None),
        ("together", "meta-llama/Llama-9", "together meta-llama/Llama-9"),
        # Forms that only the ids of this provider have.
        ("openrouter", "meta-llama/llama-9:free", "openrouter meta-llama/llama-9:free"),
        ("ollama_cloud", "gpt-oss:20b", "ollama_cloud gpt-oss:20b"),
        ("bedrock", "anthropic.claude-opus-9", "bedrock anthropic.claude-opus-9"),
    ],
)
def test_a_prompt_goes_to_the_provider_of_its_model(configured, model, expected):
    """The keys that are set, the model, and who gets the prompt (field bug 107)."""
    expected = expected or f"{configured} {model}"
    assert route(Client.from_env(environment(configured)), model) == tuple(expected.split())


@pytest.mark.parametrize(
    ("configured", "model", "hint"),
    [
        (THREE, "watsonx:granite", "'watsonx' is not configured. Add an openai_compatible adapter"),
        (THREE, "bedrock:claude", "Set AWS_BEARER_TOKEN_BEDROCK and AWS_REGION or AWS_DEFAULT"),
        (THREE, "vertex:gemini-3-pro", "Set GOOGLE_CLOUD_PROJECT.*GOOGLE_CLOUD_LOCATION"),
        (THREE, "cohere:command-r", "'cohere' is not configured. Set COHERE_API_KEY"),
        (THREE, "llama3", "openai:llama3 or anthropic:llama3 or gemini:llama3"),
        (THREE, "openai:", "Write it after the provider: openai:model"),
        (THREE, "unheard-of", "Unknown provider for 'unheard-of'.*openai:unheard-of"),
        (THREE, "groq:m", "'groq' is not configured. Set GROQ_API_KEY"),
        (THREE, "azure:m", "Set AZURE_OPENAI_API_KEY and AZURE_OPENAI_ENDPOINT"),
        (THREE, "antropic:claude-haiku-4-5", "Did you mean anthropic:claude-haiku-4-5"),
        ("anthropic", "gpt-5.2", "a model of openai, which is not configured. Set OPENAI_API_KEY"),
        ("anthropic", "gpt-7-new", "Write openai:gpt-7-new and set OPENAI_API_KEY"),
        ("anthropic", "ft:gpt-4.1:acme::x", "Write openai:ft:gpt-4.1:acme::x and set OPENAI_API"),
        ("anthropic", "o3-mini-new", "set OPENAI_API_KEY"),
        ("anthropic", "llama3", "open model"),
        ("openai", "command-r-plus", "a model of cohere"),
        ("openai", "CLAUDE-9", "a model of anthropic"),
        ("azure", "gpt-4o", "Set OPENAI_API_KEY"),
        ("", "gpt-5.2", "Set OPENAI_API_KEY"),
        ("", "gpt-5.2x-made-up", "Write openai:gpt-5.2x-made-up and set OPENAI_API_KEY"),
        ("", "antropic:claude-haiku-4-5", "Did you mean anthropic:.* set ANTHROPIC_API_KEY"),
        ("", "gtp-5.2", "Did you mean openai:gpt-5.2.* set OPENAI_API_KEY"),
        ("openai anthropic", "gtp-5.2", "Did you mean openai:gpt-5.2"),
        ("", "unheard-of", "such as OPENAI_API_KEY for openai"),
        ("openai", "", "No model is given"),
    ],
)
def test_a_prompt_whose_provider_is_not_configured_is_an_error(configured, model, hint):
    """An error that says what to write or to set; never the local model instead."""
    with pytest.raises(ConfigurationError) as caught:
        route(Client.from_env(environment(configured)), model)

    assert re.search(hint, caught.value.message), caught.value.message
    assert "local:" not in caught.value.message


PROXY = OpenAICompatibleAdapter(base_url="http://proxy.example/v1")
NATIVE = [
    *("ft:gpt-4.1:acme::x", "openai/gpt-oss-120b", "llama3.2:1b", "gpt-4o", "claude-opus-4-6"),
    *("mistral:7b", "bedrock:x", "accounts/a/models/b", "a:b/c"),
]


@pytest.mark.parametrize("model", NATIVE)
def test_what_the_caller_chose_takes_any_id(model):
    """A default, the only adapter, or `provider=`: the id is sent as it is written."""
    both = {"house": PROXY, "anthropic": HttpAdapter("anthropic", "k")}

    assert route(Client({"house": PROXY}), model) == ("house", model)
    assert route(Client(both, default_provider="house"), model) == ("house", model)
    assert route(Client(both), model, provider="house") == ("house", model)
    assert route(Client(both), f"house:{model}") == ("house", model)


def test_an_adapter_of_the_client_goes_before_the_choice():
    """`name:model` names it, also by an alias; the catalog does not overrule a choice."""
    both = {"openai": OpenAIAdapter("k"), "gemini": HttpAdapter("gemini", "k")}
    client = Client(both, default_provider="openai")

    assert route(client, "google:gemini-2.5-flash") == ("gemini", "gemini-2.5-flash")
    assert route(client, "gemini-2.5-flash") == ("openai", "gemini-2.5-flash")
    assert route(Client(both, default_provider="google"), "gpt-5.2") == ("gemini", "gpt-5.2")
    house = Client({"google": PROXY, "gemini": HttpAdapter("gemini", "k")})
    assert route(house, "google:m") == ("google", "m")  # a key goes before an alias


@pytest.mark.parametrize("model", ["anthropic:claude", "antropic:claude", "cohere:command-r"])
def test_at_a_vendors_own_address_another_providers_prefix_is_refused(model):
    """No model of OpenAI has such a name, so the prompt was meant for another."""
    for client in (
        Client({"openai": OpenAIAdapter("k")}),
        Client.from_env({"OPENAI_API_KEY": "k"}, default_provider="openai"),
    ):
        with pytest.raises(ConfigurationError, match=r"not configured|Did you mean"):
            route(client, model)
        assert route(client, model, provider="openai") == ("openai", model)


def test_a_provider_under_another_key_is_named_in_the_error():
    """The error says under which."""
    client = Client({"eu": OpenAIAdapter("k"), "groq": HttpAdapter("groq", "k")})
    with pytest.raises(ConfigurationError, match=r"knows 'openai' as 'eu'\. Write eu:model"):
        route(client, "openai:gpt-5.2")
    assert route(client, "gpt-5.2") == ("eu", "gpt-5.2")  # the catalog knows the row


@pytest.mark.parametrize("model", ["x" * 10**6, "a/" * 10**5, "antropic:" + "x" * 10**6, "\udc80"])
def test_an_error_about_a_long_name_is_short(model):
    """An error of a stranger's name is short, and made at once."""
    client = Client.from_env({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"})
    with pytest.raises(ConfigurationError) as caught:
        route(client, model)

    assert len(caught.value.message) < 5000


def test_servers_on_this_machine_are_used_only_when_named():
    """Neither is the provider of a bare name, also beside a remote one."""
    environ = {"OLLAMA_HOST": "localhost", "VLLM_BASE_URL": "http://localhost:8000/v1"}
    with pytest.raises(ConfigurationError, match="as in ollama:my-model or vllm:my-model"):
        route(Client.from_env(environ), "my-model")
    beside = Client.from_env({**environ, "OPENAI_API_KEY": "k"})
    assert route(beside, "my-model") == ("openai", "my-model")


def test_a_client_by_hand_gets_no_other_provider():
    """A model name from a stranger does not make a program call its own machine."""
    client = Client({"openai": OpenAIAdapter("k"), "groq": HttpAdapter("groq", "k")})
    with pytest.raises(ConfigurationError, match=r"Add HttpAdapter\('ollama'\) to the client"):
        route(client, "ollama:llama3")


def test_no_model_is_chosen_for_the_caller(tmp_path):
    """An empty model needs the default of the registry file."""
    path = tmp_path / "models.yaml"
    path.write_text(
        "default_model: best\nadapters: {openai: {api_key: k}}\nmodels:\n"
        "  openai:gpt-5.2: {aliases: [best]}\n"
    )

    assert route(Client.from_file(path, {}), "") == ("openai", "gpt-5.2")
    for client in (Client({"openai": OpenAIAdapter("k")}), Client.from_env({})):
        with pytest.raises(ConfigurationError, match="No model is given"):
            route(client, "")


# The law.

WORDS = [
    *(row.name for row in ROWS), *(alias for row in ROWS for alias in row.aliases), *OTHERS,
    *(model.id for model in list_models()), *(family for row in ROWS for family in row.families),
    *("gpt-", "llama3", "x", "", "ft", "us", "models", "1b"),
]  # fmt: skip
MODELS = st.lists(st.sampled_from(WORDS) | st.text(max_size=8), min_size=1, max_size=3).flatmap(
    lambda words: st.sampled_from("/:.-").map(lambda mark: mark.join(words))
)


@given(model=MODELS | st.text(), keys=st.sets(st.sampled_from(sorted(KEYED))))
def test_what_is_used_was_named_or_is_the_only_one_allowed(model, keys):
    """What is used was named, or is the only one that the catalog or the name allows."""
    client = Client.from_env(environment(" ".join(sorted(keys))))
    try:
        provider, sent = client._routing.route(None, model)[:2]
    except ConfigurationError as error:
        assert "local:" not in error.message or "local" in model.lower()
        return
    prefix, colon, rest = model.partition(":")
    if colon and row_name(prefix) is not None:
        assert (provider, sent) == (row_name(prefix), rest.removeprefix(f"{prefix}:"))
        return
    assert prefix.lower() not in OTHERS or not colon
    serving = keys.intersection(providers_of(model))
    assert provider in keys
    if sent != model:
        assert sent == find_short_name(model, provider).id
        return
    assert {provider} == (serving or keys)
    row = providers()[provider]
    assert serving or not colon or find_own_id(row, model) == model
    owner, slash, rest = model.partition("/")
    assert not (slash and rest) or row_name(owner) is None
    if not serving and find_own_id(row, model) is None:
        own = row.families
        assert maker_of(model) in (None, provider) or (maker_of(model) == OPEN_MODELS and not own)


@given(model=MODELS | st.text(), key=st.sampled_from(["house", *sorted(KEYED)]))
def test_one_adapter_by_hand_gets_the_prompt_or_nobody_does(model, key):
    """One adapter by hand gets the prompt, or nobody does."""
    try:
        assert Client({key: PROXY})._routing.route(None, model).provider == key
    except ConfigurationError as error:
        assert "No model is given" in error.message


@pytest.mark.parametrize("prefix", _load().models)
def test_every_family_of_the_profiles_has_a_maker(prefix):
    """A family that is known for its profile is known for its maker too."""
    assert maker_of(prefix) is not None


@pytest.mark.parametrize("maker", [row.name for row in makers.ROWS if row.families])
def test_the_catalog_agrees_with_the_families(maker):
    """The name of a maker's model never points to another provider."""
    named = {model.id: maker_of(model.id) for model in list_models(maker)}
    assert {name: other for name, other in named.items() if other not in (None, maker)} == {}
