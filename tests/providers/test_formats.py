"""Safe 24: formats that a model does not have fall back; visible thoughts are asked for."""

import json

import pytest
from msgspec.structs import replace

from interlingua import dialects
from interlingua.prepare.instructions import JSON_INSTRUCTION, SCHEMA_INSTRUCTION
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import text
from interlingua.spec.contracts import Profile
from interlingua.spec.errors import UnsupportedError
from interlingua.spec.request import Request, ResponseFormat
from support.simulated import DIALECTS, complete, simulated, stream
from support.warning_codes import codes

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
FORM = ResponseFormat(type="json_schema", json_schema=SCHEMA)
INSTRUCTION = SCHEMA_INSTRUCTION.partition("{schema}")[0]


@every_provider
@pytest.mark.parametrize("ways", [("prompt",), ("tool", "prompt")])
@pytest.mark.parametrize("mode", ["whole", "stream"])
def test_a_schema_becomes_an_instruction(provider, ways, mode):
    """Through `Client` too; a warning says so, and `strict` refuses."""
    with simulated(text('{"a": "b"}'), profile={"structured_output": ways}) as peer:
        request = peer.ask(provider, response_format=FORM)
        if mode == "whole":
            response = complete(peer, request)
        else:
            response = stream(peer, request)[0][-1].response
        (sent,) = peer.app.script.requests
        with pytest.raises(UnsupportedError, match="structured_output_fallback"):
            complete(peer, replace(request, on_loss="strict"))

    assert sent.response_format is None
    assert sent.messages[0].role == "system"
    assert INSTRUCTION in sent.messages[0].text
    assert json.loads(sent.messages[0].text.partition("Schema:")[2]) == SCHEMA
    assert codes(response) == ["structured_output_fallback"]


@every_provider
def test_without_a_system_prompt_the_instruction_is_in_the_users_message(provider):
    """It is part of the user's message."""
    row = {"structured_output": ("prompt",), "system_prompt": False}
    adapter = HttpAdapter(provider, "k", base_url="https://host.test/v1", profile=row)
    call = adapter.dry_run(Request(model="m", messages="hi", response_format=FORM))

    assert "Answer only with JSON" in json.dumps(call.body)
    assert not {"system", "instructions", "systemInstruction"} & call.body.keys()
    assert '"system"' not in json.dumps(call.body)


def test_a_schema_that_cannot_be_strict_becomes_an_instruction():
    """Anthropic has only strict formats: such a schema becomes an instruction too."""
    free = {"type": "object", "additionalProperties": {"type": "string"}}
    adapter = HttpAdapter("anthropic", "k")
    form = ResponseFormat(type="json_schema", json_schema=free)
    call = adapter.dry_run(Request(model="claude-opus-5", messages="hi", response_format=form))

    assert "output_config" not in call.body
    assert INSTRUCTION in call.body["system"]
    assert [warning.code for warning in call.warnings] == ["structured_output_fallback"]


def test_json_mode_becomes_an_instruction_where_a_dialect_has_none():
    """Where a dialect has none, it becomes an instruction; `strict` refuses."""
    with simulated(text("{}")) as peer:
        request = peer.ask("anthropic", response_format=ResponseFormat(type="json"))
        response = complete(peer, request)
        with pytest.raises(UnsupportedError, match="json_mode_as_instruction"):
            complete(peer, replace(request, on_loss="strict"))
        (sent,) = peer.app.script.requests

    assert sent.messages[0].text == JSON_INSTRUCTION
    assert [warning.code for warning in response.warnings] == ["json_mode_as_instruction"]


# Visible thoughts.


def body(provider, model, **fields):
    adapter = HttpAdapter(provider, "k", base_url="https://host.test/v1")
    call = adapter.dry_run(Request(model=model, messages="hi", **fields))
    return call.body, [warning.code for warning in call.warnings]


@pytest.mark.parametrize("effort", [None, "low"])
def test_openai_is_asked_for_a_summary(effort):
    """With or without an effort."""
    sent, codes = body("openai", "gpt-6-sol", include_thinking=True, reasoning_effort=effort)

    assert sent["reasoning"]["summary"] == "auto"
    assert sent["reasoning"].get("effort") == effort
    assert codes == []
    assert "reasoning" not in body("openai", "gpt-6-sol", include_thinking=False)[0]


@pytest.mark.parametrize("asked", [True, False])
def test_gemini_is_asked_for_thoughts(asked):
    """By its own switch."""
    sent, codes = body("gemini", "gemini-3-pro", include_thinking=asked)

    assert sent["generationConfig"]["thinkingConfig"] == {"includeThoughts": asked}
    assert codes == []


@pytest.mark.parametrize(("asked", "display"), [(True, "summarized"), (False, "omitted")])
def test_claude_is_asked_for_thoughts(asked, display):
    """Newer models hide them by default; older ones always show them."""
    sent, codes = body("anthropic", "claude-opus-5-5", include_thinking=asked)

    assert sent["thinking"] == {"type": "adaptive", "display": display}
    assert codes == []
    old, codes = body("anthropic", "claude-haiku-4-5", include_thinking=asked)
    assert "thinking" not in old
    assert codes == ([] if asked else ["include_thinking_dropped"])


def test_a_model_without_thoughts_is_not_asked_for_them():
    """There is nothing to ask for."""
    for provider, model in (("openai", "gpt-4o"), ("gemini", "gemini-2.0-flash")):
        wire, codes = body(provider, model, include_thinking=True)
        assert asked_for_thoughts(wire) is None
        assert not [code for code in codes if code.startswith("include_thinking")]


@pytest.mark.parametrize(
    ("provider", "shows"), [("mistral", True), ("deepseek", True), ("anthropic", False)]
)
def test_servers_of_the_chat_format_show_thoughts_or_never_do(provider, shows):
    """There is no field to ask: what the server does not do by default is a loss."""
    adapter = HttpAdapter(provider, "k", dialect="openai_chat", base_url="https://host.test/v1")
    codes = [
        [warning.code for warning in adapter.dry_run(request).warnings]
        for asked in (shows, not shows)
        if (request := Request(model="m", messages="hi", include_thinking=asked))
    ]

    assert codes == [[], ["include_thinking_dropped"]]


THINKING = [
    ("gemini", "gemini-3-pro", {"reasoning_effort": "low"}),
    ("gemini", "gemini-2.5-flash", {"reasoning_effort": "high"}),
    ("gemini", "gemini-2.5-flash", {"thinking_budget": 2048}),
    ("gemini", "gemini-2.5-flash", {"thinking_budget": -1}),
    ("vertex", "gemini-3-pro", {"reasoning_effort": "low"}),
    ("anthropic", "claude-opus-5-5", {"reasoning_effort": "low"}),
    ("anthropic", "claude-opus-4-7", {"thinking_budget": 2048}),
    ("bedrock_invoke", "us.anthropic.claude-sonnet-5-v1:0", {"reasoning_effort": "low"}),
]


def asked_for_thoughts(wire):
    """Whether a body asks for visible thoughts; None if it does not say."""
    config = wire.get("generationConfig", {}).get("thinkingConfig", {})
    displays = {"summarized": True, "omitted": False}
    display = displays.get(wire.get("thinking", {}).get("display"))
    summary = wire.get("reasoning", {}).get("summary")
    return config.get("includeThoughts", True if summary else display)


@pytest.mark.parametrize(("provider", "model", "settings"), THINKING)
def test_an_effort_or_a_budget_asks_for_thoughts_where_that_is_free(provider, model, settings):
    """Gemini, and Claude since Opus 4.7, hide thoughts that nobody asks for."""
    wire, codes = body(provider, model, **settings)

    assert asked_for_thoughts(wire) is True
    assert not [code for code in codes if code.startswith("include_thinking")]
    assert asked_for_thoughts(body(provider, model, include_thinking=False, **settings)[0]) is False


@pytest.mark.parametrize(
    ("provider", "model", "settings"),
    [
        ("gemini", "gemini-3-pro", {}),  # nobody asks for thinking
        ("anthropic", "claude-opus-5-5", {}),
        ("gemini", "gemini-2.5-flash", {"reasoning_effort": "none"}),
        ("gemini", "gemini-2.5-flash", {"thinking_budget": 0}),
        (
            "gemini",
            "gemini-2.5-pro",
            {"reasoning_effort": "none"},
        ),  # it thinks a little all the same
        ("anthropic", "claude-sonnet-5", {"reasoning_effort": "none"}),
        ("anthropic", "claude-haiku-4-5", {"reasoning_effort": "low"}),  # it shows them anyway
        ("openai", "gpt-5.2", {"reasoning_effort": "high"}),  # needs a verified organization
        ("azure", "gpt-5.2", {"reasoning_effort": "high"}),
        ("xai", "grok-4", {"reasoning_effort": "high"}),
    ],
)
def test_thoughts_are_not_asked_for_otherwise(provider, model, settings):
    """Without thinking there are none; where asking needs a permission, the caller must ask."""
    wire, codes = body(provider, model, **settings)

    assert asked_for_thoughts(wire) is None
    assert not [code for code in codes if code.startswith("include_thinking")]


@pytest.mark.parametrize("asked", [None, True, False])
@pytest.mark.parametrize("dialect", ["openai_responses", "gemini_generate", "anthropic_messages"])
def test_a_server_reads_that_thoughts_were_asked_for(dialect, asked):
    """What a server receives says it too."""
    codec = dialects.get(dialect)
    budget = 2048 if dialect == "anthropic_messages" else None  # `display` needs a mode beside it
    request = Request(
        model="m", messages="hi", include_thinking=asked, thinking_budget=budget, max_tokens=4096
    )
    call = codec.encode_request(request, Profile())

    expected = None if asked is False and dialect == "openai_responses" else asked
    assert codec.decode_request(call).include_thinking is expected
