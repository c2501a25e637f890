"""Behaviours in registry files: their own keys, and the camel-case keys of other tools."""

import asyncio

import pytest

from interlingua.client.behaviour_section import OTHER_KEYS
from interlingua.client.client import Client
from interlingua.simulator import error, text
from interlingua.spec.behaviour import Behaviour, RetrySettings
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.request import Request, ToolDefinition
from support.patience import PATIENCE
from support.simulated import simulated

TOOLS = [
    ToolDefinition(
        name=name, parameters={"type": "object", "properties": {"a": {"type": "string"}}}
    )
    for name in ("Read", "Edit", "Draw")
]
ASK = Request(messages="?", tools=TOOLS)


def read(tmp_path, document, environ=None):
    path = tmp_path / "models.yaml"
    path.write_text(document, encoding="utf-8")
    return Client.from_file(path, environ or {})


# Camel-case keys.

CAMEL_CASE = """
default_provider: openai
adapters:
  claude:
    providerId: claude
    apiKey: sk-ant-of-claude
    apiBaseUrl: https://api.anthropic.com/v1
    defaultModel: sonnet
    modelMap: {sonnet: claude-sonnet-4-5-20250929, opus: claude-opus-4-5-20251101}
    maxTokens: 8192
    temperature: 0.7
    streaming: true
    toolBehaviour:
      strictMode: false
      maxTools: 60
      parallelCalls: true
      forceToolUseOnFirstTurn: false
    retry:
      maxRetries: 3
      baseDelayMs: 1000
      maxDelayMs: 30000
      retryableErrors: [rate_limit, server_error, timeout]
    promptAddendum: ""
  openai:
    providerId: openai
    apiKey: sk-of-openai
    apiBaseUrl: https://api.openai.com/v1
    defaultModel: sonnet
    modelMap: {sonnet: gpt-4o, opus: gpt-4o, haiku: gpt-4o-mini}
    maxTokens: 8192
    temperature: 0.7
    streaming: true
    toolBehaviour:
      strictMode: true
      maxTools: 20
      parallelCalls: true
      forceToolUseOnFirstTurn: true
    retry:
      maxRetries: 5
      baseDelayMs: 2000
      maxDelayMs: 60000
      retryableErrors: [rate_limit, server_error, timeout, tool_error]
    promptAddendum: |
      Call tools.
  gemini:
    providerId: gemini
    apiKey: of-gemini
    apiBaseUrl: https://generativelanguage.googleapis.com/v1
    defaultModel: sonnet
    modelMap: {sonnet: gemini-2.0-flash}
    maxTokens: 8192
    streaming: true
    toolBehaviour: {strictMode: false, maxTools: 30, parallelCalls: true}
    retry: {maxRetries: 3, baseDelayMs: 1000, maxDelayMs: 30000, retryableErrors: [rate_limit]}
"""


def test_the_default_configurations_load(tmp_path):
    """Each of three adapters, with camel-case keys; what is read back is what was set."""
    client = read(tmp_path, CAMEL_CASE)

    config = client.config("openai")
    assert config.behaviour == Behaviour(
        prompt_addendum="Call tools.\n",
        max_tools=20,
        force_first_turn=True,
        strict_tools=True,
        parallel_tool_calls=True,
        max_tokens=8192,
        temperature=0.7,
        streaming=True,
        default_model="sonnet",
        model_map={"sonnet": "gpt-4o", "opus": "gpt-4o", "haiku": "gpt-4o-mini"},
        retry=RetrySettings(
            max_retries=5,
            base_delay=2.0,
            max_delay=60.0,
            errors=["rate_limit", "server_error", "timeout", "tool_error"],
        ),
    )
    assert client.config("claude").provider == "anthropic"
    assert client.config("claude").base_url == "https://api.anthropic.com/v1"
    for name in ("claude", "openai", "gemini"):
        assert "of-" not in repr(client.config(name))


def test_the_provider_is_chosen_at_run_time(tmp_path):
    """The same request, with the canonical name of a model, goes where the program says."""
    client = read(tmp_path, CAMEL_CASE)
    models = {}
    for name in ("openai", "claude", "gemini"):
        client.default_provider = name
        shown = client.explain(ASK)
        models[name] = shown.model
        assert client.explain(Request(model="sonnet", messages="?")).model == shown.model
        assert "model_map" in shown.chosen_because

    assert models == {
        "openai": "gpt-4o",
        "claude": "claude-sonnet-4-5-20250929",
        "gemini": "gemini-2.0-flash",
    }
    shown = client.explain(Request(model="openai:haiku", messages="?"))
    assert shown.model == "gpt-4o-mini"
    assert client.explain(Request(model="openai:o3", messages="?")).model == "o3"  # as it is


BASE = "adapters: {openai: {api_key: k%s}}"
EFFECTS = {
    "maxTokens": ("maxTokens: 77", lambda sent: sent["max_output_tokens"] == 77),
    "temperature": ("temperature: 0.2", lambda sent: sent["temperature"] == 0.2),
    "promptAddendum": ("promptAddendum: More.", lambda sent: sent["instructions"] == "More."),
    "toolBehaviour.strictMode": (
        "toolBehaviour: {strictMode: true}",
        lambda sent: sent["tools"][0]["strict"] is True,
    ),
    "toolBehaviour.maxTools": (
        "toolBehaviour: {maxTools: 2}",
        lambda sent: len(sent["tools"]) == 2,
    ),
    "toolBehaviour.coreTools": (
        "toolBehaviour: {maxTools: 1, coreTools: [Draw]}",
        lambda sent: sent["tools"][0]["name"] == "Draw",
    ),
    "toolBehaviour.parallelCalls": (
        "toolBehaviour: {parallelCalls: false}",
        lambda sent: sent["parallel_tool_calls"] is False,
    ),
    "toolBehaviour.forceToolUseOnFirstTurn": (
        "toolBehaviour: {forceToolUseOnFirstTurn: true}",
        lambda sent: sent["tool_choice"] == "required",
    ),
    "modelMap": ("modelMap: {gpt-4o: gpt-5.2}", lambda sent: sent["model"] == "gpt-5.2"),
}


@pytest.mark.parametrize("field", EFFECTS)
def test_every_field_changes_what_is_sent(field, tmp_path):
    """Each one alone; without it, the request is another."""
    line, is_there = EFFECTS[field]
    sent = read(tmp_path, BASE % f", {line}").explain(
        Request(model="gpt-4o", messages="?", tools=TOOLS)
    )
    bare = read(tmp_path, BASE % "").explain(Request(model="gpt-4o", messages="?", tools=TOOLS))

    assert is_there(sent.body)
    assert sent.body != bare.body


OF_CALLS = {
    "providerId": lambda client: client.config("x").provider == "anthropic",
    "apiKey": lambda client: client.config("x").api_key,
    "apiBaseUrl": lambda client: client.config("x").base_url.startswith("http://127.0.0.1"),
    "defaultModel": lambda client: client.explain(Request(messages="?")).model == "m",
    "streaming": lambda client: (
        client.profile_for(Request(model="m", messages="?")).streaming is False
    ),
}


def test_the_fields_of_adapters_and_calls(tmp_path):
    """Type, key, address, default model and streaming."""
    client = read(
        tmp_path,
        "adapters: {x: {providerId: claude, apiKey: k, apiBaseUrl: 'http://127.0.0.1:9', "
        "defaultModel: m, streaming: false}}",
    )
    for field, is_there in OF_CALLS.items():
        assert is_there(client), field


RETRIES = {
    "retry.maxRetries": ("{maxRetries: 2, baseDelayMs: 0}", 3),
    "retry.retryableErrors": (
        "{maxRetries: 2, baseDelayMs: 0, retryableErrors: [rate_limit]}",
        1,
    ),
    "retry.baseDelayMs": ("{maxRetries: 1, baseDelayMs: 1}", 2),
    "retry.maxDelayMs": ("{maxRetries: 1, baseDelayMs: 9000, maxDelayMs: 1}", 2),
}


@pytest.mark.parametrize("field", RETRIES)
def test_the_fields_of_retries(field, tmp_path):
    """How often, how long, and after which errors; a delay that is not read would take seconds."""
    line, attempts = RETRIES[field]
    with simulated(error(503), error(503), error(503), text("Fine.")) as peer:
        client = read(
            tmp_path,
            f"adapters: {{openai: {{api_key: k, base_url: '{peer.server.url}', retry: {line}}}}}",
        )

        async def work():
            async with client:
                await client.complete(Request(model="gpt-4o", messages="?"))

        with pytest.raises(SDKError):
            asyncio.run(asyncio.wait_for(work(), PATIENCE))
        assert len(peer.app.script.received) == attempts


def test_no_field_is_forgotten():
    """Every key that a file may have has a test above, and every field of the records is a key."""
    tested = {*EFFECTS, *OF_CALLS, *RETRIES}
    nested = {"toolBehaviour", "retry"}

    assert {*OTHER_KEYS} - nested == {field for field in tested if "." not in field}
    assert nested == {field.partition(".")[0] for field in tested if "." in field}
    assert len(tested) + 1 == len(Behaviour.__struct_fields__) + len(
        RetrySettings.__struct_fields__
    ) + len(("providerId", "apiKey", "apiBaseUrl"))


# The keys of this library.

OWN = """
adapters:
  openai:
    api_key: k
    behaviour:
      prompt_addendum: More.
      max_tools: 2
      core_tools: [Read]
      force_first_turn: true
      strict_tools: true
      parallel_tool_calls: false
      max_tokens: 10
      temperature: 0
      streaming: false
      default_model: gpt-4o
      model_map: {best: gpt-5.2}
      retry: {max_retries: 1, base_delay: 0.5, max_delay: 2, errors: [network]}
"""


def test_every_field_has_a_key(tmp_path):
    """With the same name; what a file sets is the record that a program would make."""
    behaviour = read(tmp_path, OWN).config("openai").behaviour

    assert behaviour == Behaviour(
        prompt_addendum="More.",
        max_tools=2,
        core_tools=["Read"],
        force_first_turn=True,
        strict_tools=True,
        parallel_tool_calls=False,
        max_tokens=10,
        temperature=0,
        streaming=False,
        default_model="gpt-4o",
        model_map={"best": "gpt-5.2"},
        retry=RetrySettings(max_retries=1, base_delay=0.5, max_delay=2, errors=["network"]),
    )
    defaults = Behaviour()
    same = [
        name
        for name in Behaviour.__struct_fields__
        if getattr(behaviour, name) == getattr(defaults, name)
    ]
    assert same == []


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("behaviour: {max_tool: 2}", "models.yaml:3: Unknown key 'max_tool'"),
        ("behaviour:\n      max_tools: x", "models.yaml:4: 'max_tools'"),
        ("behaviour: {max_tools: 0}", "models.yaml:3: .*1 or more"),
        ("behaviour: 5", "models.yaml:3: .*must be a mapping"),
        ("behaviour: {core_tools: [1]}", "models.yaml:3: .*core_tools"),
        ("behaviour: {retry: {errors: [x]}}", "no error class 'x'"),
        ("behaviour: {retry: {maxRetries: 1}}", "Unknown key 'maxRetries'"),
        ("toolBehaviour: {max_tools: 1}", "models.yaml:3: Unknown key"),
        (
            "behaviour: {max_tokens: 1}\n    maxTokens: 2",
            "models.yaml:3: .*max_tokens of `behaviour` is set twice",
        ),
    ],
)
def test_a_wrong_key_is_told_with_its_line(document, message, tmp_path):
    """As everywhere in the file."""
    with pytest.raises(ConfigurationError, match=message):
        read(tmp_path, f"adapters:\n  openai:\n    {document}")


def test_an_empty_behaviour_is_none(tmp_path):
    """It changes nothing."""
    client = read(tmp_path, "adapters: {openai: {api_key: k, behaviour: {}}}")

    assert client.adapter("openai").behaviour is None
