"""Profiles as data."""

import json
import re
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import dialects
from interlingua.dialects.bedrock_converse.facts import ConverseQuirks
from interlingua.dialects.openai_chat.facts import ChatQuirks
from interlingua.prepare.media import drop_media
from interlingua.prepare.settings import adjust_settings
from interlingua.prepare.thinking import thinking_mode
from interlingua.providers.catalog import profiles
from interlingua.providers.catalog.profiles import profile_for
from interlingua.spec.contracts import Profile
from interlingua.spec.errors import ConfigurationError, InvalidRequestError
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList, is_loss
from support import corpus, hosts
from support.facts import NAMES


def checked(data):
    """Every row, by name."""
    rows = {f"models.{prefix}": row for prefix, row in data.models.items()}
    for kind in ("dialects", "providers"):
        for owner, section in getattr(data, kind).items():
            rows[f"{kind}.{owner}"] = section.profile
            for dialect, row in section.dialects.items():
                rows[f"{kind}.{owner}.dialects.{dialect}"] = row
            for prefix, row in section.models.items():
                rows[f"{kind}.{owner}.models.{prefix}"] = row
    return {name: profiles.check_row(row, name) for name, row in rows.items()}


DATA = profiles._load()
PROVIDERS = sorted(DATA.providers)
MODELS = sorted(DATA.models)
ROWS = checked(DATA)


# Laws.


@given(st.sampled_from(NAMES), st.text(max_size=40), st.none() | st.text(max_size=10))
def test_every_model_has_a_profile(dialect, model, provider):
    """An id nobody has heard of has at least its dialect's profile."""
    assert isinstance(profile_for(dialect, model, provider), Profile)


@given(
    st.sampled_from(NAMES),
    st.sampled_from(MODELS),
    st.none() | st.sampled_from(PROVIDERS),
    st.dictionaries(st.sampled_from(["sampling", "tools", "thinking"]), st.booleans()),
)
def test_overrides_win(dialect, model, provider, overrides):
    """What the caller says holds, and nothing else changes."""
    base = profile_for(dialect, model, provider)

    found = profile_for(dialect, model, provider, overrides)

    assert found == msgspec.structs.replace(base, **overrides)


@given(st.sampled_from(NAMES), st.sampled_from(MODELS))
def test_the_longest_prefix_wins(dialect, model):
    """Every field of a model's own row holds, unless its dialect has a row for it too."""
    found = profile_for(dialect, model)
    own = ROWS[f"models.{model}"]
    said = {
        key
        for prefix in DATA.dialects[dialect].models
        for key in DATA.dialects[dialect].models[prefix]
    }

    assert all(getattr(found, key) == value for key, value in own.items() if key not in said)


@pytest.mark.parametrize("name", ROWS)
def test_rows_make_sense(name):
    """A row says something, in words that mean something."""
    row = ROWS[name]
    model = name.rpartition(".models.")[2].removeprefix("models.")

    assert row
    assert model == model.lower()
    assert "dialect" not in row
    efforts = row.get("reasoning_efforts")
    for asked, sent in row.get("effort_map", {}).items():
        assert asked not in efforts
        assert sent in efforts
    if "tool_call_id_pattern" in row:
        re.compile(row["tool_call_id_pattern"])
    if "tool_choice_modes" in row and not {"required", "named"} & set(row["tool_choice_modes"]):
        assert "tool" not in row["structured_output"]  # it is got by a forced choice
    if efforts == () and "enabled" not in row.get("thinking_modes", ()):
        assert "thinking_modes" not in row


@pytest.mark.parametrize("model", MODELS)
def test_efforts_and_modes_agree(model):
    """A model of efforts that knows `none` can be told not to think, and the other way."""
    found = profile_for("openai_responses", model)

    if found.reasoning_efforts and found.thinking_modes and not model.startswith("claude"):
        assert ("none" in found.reasoning_efforts) == ("disabled" in found.thinking_modes)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_quirks_are_quirks(provider):
    """Each provider's quirks are fields of `ChatQuirks`, and belong to Chat alone."""
    quirks = profile_for("openai_chat", "", provider).quirks

    assert quirks is None or isinstance(quirks, ChatQuirks)
    assert profile_for("openai_responses", "", provider).quirks is None


def test_the_quirks_of_dialects_have_different_names():
    """So that the row of a provider of several dialects, or a caller, can have those of each."""
    records = [kind for name in NAMES if (kind := dialects.get(name).FACTS.quirks)]
    names = [field for kind in records for field in kind.__struct_fields__]

    assert len(records) > 1
    assert len(names) == len(set(names))


def test_each_dialect_takes_its_own_quirks():
    """Those of another are no error, and change nothing; those of none are."""
    row = {"quirks": {"think_tags": True, "top_k_field": "k"}}

    assert profile_for("openai_chat", "", None, row).quirks.think_tags
    assert profile_for("bedrock_converse", "", None, row).quirks == ConverseQuirks(top_k_field="k")
    for dialect in ("openai_chat", "bedrock_converse"):
        with pytest.raises(ConfigurationError, match=r"unknown key 'quirks\.colour'"):
            profile_for(dialect, "", None, {"quirks": {"colour": 1}})


# The loader.


def test_profiles_are_cached():
    """The same question gets the same object."""
    assert profile_for("openai_chat", "gpt-5") is profile_for("openai_chat", "gpt-5")


def test_profiles_know_their_dialect():
    """So that a request's options of that dialect count."""
    assert profile_for("gemini_generate").dialect == "gemini_generate"


def test_unknown_dialect():
    """A dialect that is not there is an error that names those that are."""
    with pytest.raises(ConfigurationError, match="openai_responses"):
        profile_for("smoke_signals")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"colour": "red"}, "Profile row 'overrides': unknown key 'colour'"),
        ({"sampling": "no"}, "Profile row 'overrides': key 'sampling': Expected `bool | null`"),
        ({"stop_sequences": True}, "Profile row 'overrides': key 'stop_sequences'"),
        ({"tool_choice_modes": ["maybe"]}, "Profile row 'overrides': key 'tool_choice_modes'"),
        ({"rejected_while_thinking": ["x"]}, "key 'rejected_while_thinking'"),
        ({"quirks": {"loud": True}}, "Profile row 'overrides': unknown key 'quirks.loud'"),
        ({"quirks": {"top_k": 1}}, "Profile row 'overrides': key 'quirks.top_k'"),
        ({"quirks": "many"}, "Profile row 'overrides': key 'quirks': expected an object"),
    ],
)
def test_wrong_overrides(overrides, message):
    """What is no field, or not its type, is an error that names row and key."""
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        profile_for("openai_chat", overrides=overrides)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"models": {"x-1": {"colour": 1}}}, "Profile row 'models.x-1': unknown key 'colour'"),
        (
            {"providers": {"acme": {"profile": {"seed": 0}}}},
            "Profile row 'providers.acme': key 'seed'",
        ),
        (
            {"dialects": {"openai_chat": {"models": {"x": {"seed": 2}}}}},
            "Profile row 'dialects.openai_chat.models.x': key 'seed'",
        ),
        ({"shapes": {}}, "shapes"),
    ],
)
def test_wrong_data(data, message):
    """Wrong data is an error that names row and key."""
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        checked(profiles._read(json.dumps(data).encode()))


def test_data_that_is_no_json():
    """Data that cannot be read at all is a configuration error too."""
    with pytest.raises(ConfigurationError, match="cannot be read"):
        profiles._read(b"{")


def test_quirks_are_laid_over_each_other():
    """Quirks add up field by field; a whole record from code replaces them."""
    more = profile_for("openai_chat", "", "mistral", {"quirks": {"top_k": True}}).quirks
    whole = profile_for(
        "openai_chat", "", "mistral", {"quirks": ChatQuirks(think_tags=True)}
    ).quirks

    assert (more.seed_field, more.top_k) == ("random_seed", True)
    assert whole == ChatQuirks(think_tags=True)


def test_data_is_read_on_first_use():
    """Importing the loader reads nothing, and a profile loads no dialect but its own."""
    code = (
        "import sys; from interlingua.providers.catalog.profiles import profile_for;"
        "from interlingua.providers.catalog import profiles;"
        "print(profiles._load.cache_info().currsize);"
        "profile_for('anthropic_messages', 'claude-opus-5-5', 'anthropic');"
        "print('interlingua.dialects.openai_chat' in sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert printed.stdout.split() == [b"0", b"False"]


@pytest.mark.parametrize(
    ("model", "prefixes"),
    [
        ("gpt-5", ["gpt-", "gpt-5"]),
        ("gpt-5.1-codex-max", ["gpt-", "gpt-5", "gpt-5.1", "gpt-5.1-codex", "gpt-5.1-codex-max"]),
        ("gpt-5-2025-08-07", ["gpt-", "gpt-5"]),  # not gpt-5.2
        ("gpt-50", ["gpt-"]),
        ("openai/gpt-oss-120b", ["gpt-", "gpt-oss"]),
        ("claude-opus-5-5", ["claude-", "claude-opus-5", "claude-opus-5-5"]),
        ("anthropic/claude-opus-5.5", ["claude-", "claude-opus-5", "claude-opus-5-5"]),
        ("claude-opus-4-20250514", ["claude-", "claude-opus-4"]),
        ("models/gemini-3.5-flash-lite", ["gemini-", "gemini-3", "gemini-3.5-flash-lite"]),
        ("accounts/fireworks/models/glm-5p3", ["glm-5"]),
        ("GLM-5.3-Flash", ["glm-5"]),
        ("qwen3-8b", ["qwen3"]),
        ("o3-mini", ["o3", "o3-mini"]),
        ("olmo-2", []),
    ],
)
def test_prefixes(model, prefixes):
    """Ids are matched as providers write them, and never inside a number."""
    assert profiles.matching(DATA.models, model) == prefixes


# Facts, one example for each family.


@pytest.mark.parametrize(
    ("model", "efforts"),
    [
        ("o4-mini", "low medium high"),
        ("gpt-5-mini", "minimal low medium high"),
        ("gpt-5.1", "none low medium high"),
        ("gpt-5.4", "none low medium high xhigh"),
        ("gpt-5.6-sol", "none low medium high xhigh max"),
        ("gpt-6-luna", "none low medium high xhigh max"),
        ("gpt-6-astra", "low medium high xhigh max"),
        ("gpt-6.1-sol", "low medium high xhigh max"),
        ("gpt-oss-20b", "low medium high"),
        ("claude-haiku-4-5-20251001", ""),
        ("claude-opus-4-5", "low medium high"),
        ("claude-opus-4-6", "low medium high max"),
        ("claude-sonnet-5-5", "low medium high xhigh max"),
        ("gemini-2.5-flash", ""),
        ("gemini-3-flash-preview", "minimal low medium high"),
        ("gemini-3.7-flash", "low medium high"),
        ("gemini-3-pro-preview", "low high"),
        ("gemini-4-argon", "low medium high"),
        ("grok-4.7", "low medium high"),
        ("grok-4.3", "none low medium high"),
    ],
)
def test_efforts(model, efforts):
    """Each family has its efforts."""
    assert profile_for("openai_responses", model).reasoning_efforts == tuple(efforts.split())


@pytest.mark.parametrize(
    ("model", "effort", "sent", "mode"),
    [
        ("claude-opus-4-6", "none", "none", "disabled"),
        ("claude-opus-4-6", "xhigh", "max", "adaptive"),
        ("claude-opus-4-8", "xhigh", "xhigh", "adaptive"),
        ("claude-opus-5", "none", "none", "disabled"),
        ("claude-sonnet-5-5", "none", "none", "between_tools"),
        ("claude-haiku-5-5", "none", "low", "adaptive"),
        ("claude-opus-5-5", "none", "low", "adaptive"),
        ("claude-fable-5-2", "minimal", "low", "adaptive"),
        ("claude-sonnet-4-5", "high", None, "enabled"),
    ],
)
def test_how_claude_is_told_to_think(model, effort, sent, mode):
    """Effort and mode follow the table of what each model accepts."""
    profile = profile_for("anthropic_messages", model)

    clamped = adjust_settings(Request(reasoning_effort=effort), profile, WarningList())

    assert clamped.reasoning_effort == sent
    assert thinking_mode(clamped, profile) == mode


@pytest.mark.parametrize(
    ("model", "forced"),
    [
        ("claude-haiku-4-5", True),
        ("claude-opus-5", True),
        ("claude-haiku-5-5", True),
        ("claude-sonnet-5-5", False),
        ("claude-opus-5-5", False),
        ("claude-fable-5", False),
        ("claude-mythos-preview", False),
    ],
)
def test_who_can_be_forced(model, forced):
    """The newest Claude models refuse a forced tool choice."""
    modes = profile_for("anthropic_messages", model).tool_choice_modes

    assert (modes is None or "required" in modes) == forced


@pytest.mark.parametrize(
    ("model", "version", "kept"),
    [
        ("claude-haiku-4-5", "2023-06-01", True),
        ("claude-haiku-4-5", "2026-10-21", False),
        ("claude-opus-4-7", "2023-06-01", False),
        ("claude-sonnet-5", "2023-06-01", False),
    ],
)
def test_claude_and_temperature(model, version, kept):
    """Sampling is left to old models in the old version of the API."""
    request = Request(temperature=0, provider_options={"anthropic_messages": {"version": version}})

    clamped = adjust_settings(request, profile_for("anthropic_messages", model), WarningList())

    assert (clamped is request) == kept


@pytest.mark.parametrize(
    ("model", "effort", "kept"),
    [
        ("gpt-4o", None, True),
        ("gpt-5.4", None, True),
        ("gpt-5.4", "low", False),
        ("gpt-5.6", None, False),
        ("gpt-5.6", "none", True),
        ("gpt-5", "none", False),  # it cannot stop thinking
        ("gpt-6.1-sol", None, False),
    ],
)
def test_gpt_and_temperature(model, effort, kept):
    """Sampling is taken by GPT models that do not think just now."""
    request = Request(temperature=0.0, reasoning_effort=effort)

    clamped = adjust_settings(request, profile_for("openai_responses", model), WarningList())

    assert (clamped.temperature == 0.0) == kept


@pytest.mark.parametrize(
    ("model", "budget", "sent"),
    [
        ("gemini-2.5-flash", {"reasoning_effort": "low"}, {"thinking_budget": 1024}),
        ("gemini-2.5-flash", {"reasoning_effort": "none"}, {"reasoning_effort": "none"}),
        ("gemini-2.5-flash", {"thinking_budget": 0}, {"thinking_budget": 0}),
        ("gemini-2.5-pro", {"reasoning_effort": "none"}, {"thinking_budget": 128}),
        ("gemini-2.5-pro", {"thinking_budget": 0}, {"thinking_budget": 128}),
        ("gemini-2.5-pro", {"thinking_budget": -1}, {"thinking_budget": -1}),
        ("gemini-3.7-flash", {"reasoning_effort": "minimal"}, {"reasoning_effort": "low"}),
        ("gemini-3.6-flash", {"reasoning_effort": "minimal"}, {"reasoning_effort": "minimal"}),
        ("gemini-3.8-flash", {"reasoning_effort": "max"}, {"reasoning_effort": "high"}),
        ("gemini-3-pro-preview", {"thinking_budget": 6400}, {"thinking_budget": 6400}),
        ("gemini-4-argon", {"thinking_budget": 8192}, {"reasoning_effort": "medium"}),
    ],
)
def test_how_gemini_is_told_to_think(model, budget, sent):
    """Gemini 2.5 takes budgets, 3 takes levels and still budgets, 4 takes levels alone."""
    profile = profile_for("gemini_generate", model)
    is_asked = True if set(budget.values()).isdisjoint({"none", 0}) else None  # for its thoughts

    expected = Request(**sent, include_thinking=is_asked)
    assert adjust_settings(Request(**budget), profile, WarningList()) == expected


def test_the_newest_models_call_tools_on_responses():
    """The newest models call tools on Responses; on Chat not at all, or without thinking."""
    assert not profile_for("openai_chat", "gpt-6-astra").tools
    assert not profile_for("openai_chat", "gpt-6.1-sol").tools
    assert not profile_for("openai_chat", "gpt-6-luna").tools_while_thinking
    assert profile_for("openai_responses", "gpt-6-astra").tools


def test_a_provider_of_several_dialects():
    """Its row for one of them is laid over its own; the model on this machine has one."""
    ways = {dialect: profile_for(dialect, "", "local").structured_output for dialect in NAMES}

    assert ways.pop("openai_chat") == ("native", "prompt")
    assert set(ways.values()) == {("prompt",)}


def test_one_model_at_two_hosts():
    """A host may take less of a model than its maker."""
    assert profile_for("openai_chat", "qwen/qwen3-32b", "groq").reasoning_efforts == (
        "none",
        "default",
    )
    assert profile_for("openai_chat", "qwen/qwen3-32b", "together").reasoning_efforts == (
        "low",
        "medium",
        "high",
    )
    assert profile_for("openai_chat", "openai/gpt-oss-120b", "groq").penalties is False
    assert profile_for("openai_chat", "openai/gpt-oss-120b").penalties is None


@pytest.mark.parametrize(
    ("provider", "model", "sent"),
    [
        ("deepseek", "deepseek-v4-flash", {"thinking": {"type": "disabled"}}),
        ("zai", "glm-5.3", {"thinking": {"type": "disabled"}}),
        ("together", "Qwen/Qwen3-235B", {"reasoning": {"enabled": False}}),
        ("vllm", "Qwen/Qwen3-8B", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("openrouter", "z-ai/glm-5.3", {"reasoning": {"effort": "none"}}),
        ("groq", "qwen/qwen3-32b", {"reasoning_effort": "none"}),
        ("cerebras", "zai-glm-4.7", {"reasoning_effort": "none"}),
        ("fireworks", "accounts/fireworks/models/kimi-k3", {"reasoning_effort": "none"}),
        ("mistral", "mistral-small-latest", {"reasoning_effort": "none"}),
        ("ollama", "qwen3:8b", {"reasoning_effort": "none"}),
        ("xai", "grok-4.3", {"reasoning_effort": "none"}),
        ("groq", "openai/gpt-oss-20b", {"reasoning_effort": "low"}),  # it always thinks
        ("together", "openai/gpt-oss-20b", {"reasoning_effort": "low"}),
        ("xai", "grok-4.7", {"reasoning_effort": "low"}),
    ],
)
def test_how_servers_are_told_not_to_think(provider, model, sent):
    """Each in its own words; where thinking cannot stop, the least is asked for."""
    request = Request(model=model, provider=provider, messages="Hi.", reasoning_effort="none")
    profile = profile_for("openai_chat", model, provider)
    body = dialects.get("openai_chat").encode_request(request, profile).body
    switches = ("thinking", "reasoning", "reasoning_effort", "chat_template_kwargs")

    assert {name: body[name] for name in switches if name in body} == sent


@pytest.mark.parametrize(
    ("provider", "model", "effort", "sent"),
    [
        ("deepseek", "deepseek-v4-pro", "minimal", "low"),
        ("deepseek", "deepseek-v4-pro", "medium", "high"),
        ("deepseek", "deepseek-v4-pro", "xhigh", "high"),
        ("groq", "qwen/qwen3-32b", "high", "default"),
        ("groq", "qwen/qwen3.8-27b", "minimal", "low"),
        ("mistral", "mistral-medium-3-5", "low", "high"),
        ("cerebras", "qwen-3.8-27b", "max", "high"),
    ],
)
def test_efforts_of_hosts(provider, model, effort, sent):
    """A host's words for an effort are its own."""
    profile = profile_for("openai_chat", model, provider)

    assert (
        adjust_settings(Request(reasoning_effort=effort), profile, WarningList()).reasoning_effort
        == sent
    )


@pytest.mark.parametrize(
    ("model", "ways"),
    [
        ("claude-3-7-sonnet-20250219", "tool prompt"),
        ("claude-opus-4-1", "tool prompt"),
        ("claude-sonnet-4-20250514", "tool prompt"),
        ("claude-sonnet-4-5", "native tool prompt"),
        ("claude-opus-4-8", "native tool prompt"),
        ("claude-opus-5", "native tool prompt"),
        ("claude-sonnet-5-5", "native prompt"),
        ("claude-fable-5-2", "native prompt"),
    ],
)
def test_how_claude_keeps_to_a_schema(model, ways):
    """Natively since 4.5; a forced tool is no way where a choice cannot be forced."""
    profile = profile_for("anthropic_messages", model)

    assert profile.structured_output == tuple(ways.split())
    assert profile.strict_tools == ("native" in ways)


def test_gemini_has_no_strict_tools():
    """Its declarations have no word for it."""
    assert not profile_for("gemini_generate", "gemini-3-pro").strict_tools


@pytest.mark.parametrize(
    ("model", "least"),
    [
        ("claude-opus-5-5", 512),
        ("claude-opus-4-8", 1024),
        ("claude-sonnet-4-5", 1024),
        ("claude-opus-4-7", 2048),
        ("claude-haiku-4-5", 4096),
        ("gpt-6.1-sol", 1024),
        ("o3", 1024),
        ("gpt-oss-120b", None),
        ("gemini-4-argon", 6144),
    ],
)
def test_the_shortest_prefix_that_is_kept(model, least):
    """Shorter prompts are not cached, whatever is marked."""
    assert profile_for("openai_responses", model).min_cache_tokens == least


def test_caching():
    """Who takes marks, who places one itself, and who takes a key."""
    claude = profile_for("anthropic_messages", "claude-opus-5-5", "anthropic")
    assert (claude.cache_breakpoints, claude.automatic_cache_mark) == (4, True)
    for provider in ("vertex", "bedrock"):
        hosted = profile_for("anthropic_messages", "claude-opus-5-5", provider)
        assert (hosted.cache_breakpoints, hosted.automatic_cache_mark) == (4, False)
    takers = [name for name in PROVIDERS if profile_for("openai_chat", "", name).cache_key]
    assert takers == ["fireworks", "mistral", "openai", "openrouter", "venice"]


def test_media_in_results():
    """Gemini reads media in results since 3; Chat never does."""
    for model in ("gemini-3-flash-preview", "gemini-3.8-flash", "gemini-4-argon"):
        assert "image/png" in profile_for("gemini_generate", model).tool_result_types
    assert profile_for("gemini_generate", "gemini-2.5-pro").tool_result_types == ()
    assert profile_for("openai_chat", "gpt-5.6").tool_result_types == ()
    assert "application/pdf" in profile_for("openai_responses", "gpt-5.6").tool_result_types


def test_who_must_be_asked_for_usage():
    """Every host is asked for the usage of a stream, except those that report it by themselves."""
    asked = [
        name
        for name in PROVIDERS
        if (quirks := profile_for("openai_chat", "", name).quirks) and quirks.stream_usage
    ]

    unasked = {"mistral", "perplexity", "cohere", "ai21", "databricks"}
    assert set(PROVIDERS) - set(asked) == unasked


# What was recorded.

HARMLESS = {"ollama": "tool_choice_relaxed"}  # it takes a forced choice, and does not heed it


@pytest.mark.skipif(not corpus.is_here(), reason="the recordings are not at hand")
@pytest.mark.parametrize("dialect", NAMES)
def test_what_was_accepted_is_not_clamped(dialect):
    """No profile takes away from a request that its provider answered."""
    lost = {}
    for record in corpus.records(dialect):
        call = corpus.to_case(record).call
        if call is None or record["status"] >= 400:
            continue
        try:
            request = dialects.get(dialect).decode_request(call)
        except InvalidRequestError:
            continue
        host = record["host_provider"]
        provider = hosts.row_of(dialect, host) or host
        old = {} if dialect != "anthropic_messages" else {"api_version": "2023-06-01"}
        losses = WarningList()
        profile = profile_for(dialect, request.model, provider, old)
        drop_media(adjust_settings(request, profile, losses), profile, losses)
        codes = {found.code for found in losses.warnings if is_loss(found)}
        if codes - {HARMLESS.get(provider)}:
            lost[record["id"]] = codes

    assert lost == {}


REFUSALS = re.compile(
    "'stop' is not supported|Supported values are|Too many strict tools|Logprobs are not enabled"
    "|unknown variant `(image_url|input_audio|file)`|expected to be either text or image_url"
)


@pytest.mark.skipif(not corpus.is_here(), reason="the recordings are not at hand")
@pytest.mark.parametrize("dialect", ["openai_responses", "openai_chat", "anthropic_messages"])
def test_what_was_refused_is_clamped(dialect):
    """Requests that a provider refused for what a profile knows are changed beforehand."""
    refused = [
        record
        for record in corpus.records(dialect)
        if record["status"] == 400 and REFUSALS.search(json.dumps(record["response_body"]))
    ]

    assert refused
    for record in refused:
        request = dialects.get(dialect).decode_request(corpus.to_case(record).call)
        profile = profile_for(dialect, request.model, record["host_provider"])
        adjusted = adjust_settings(request, profile, WarningList())
        assert drop_media(adjusted, profile, WarningList()) is not request, record["id"]


def test_quirks_of_a_callers_row_are_looked_at():
    """Whatever the dialect: a typing error is one in all of them."""
    row = {"tools": False, "quirks": {"top_k": True}}
    assert profiles.check_overrides(row, "mine") == row
    assert profiles.check_overrides({"quirks": ChatQuirks()}, "mine")
    with pytest.raises(ConfigurationError, match=r"'mine': unknown key 'quirks\.topk'"):
        profiles.check_overrides({"quirks": {"topk": True}}, "mine")
