"""Safe 9: what a model cannot be told is refused before a byte is sent, in every mode."""

import asyncio

import pytest
from msgspec.structs import replace

import interlingua
from interlingua import sync, tool
from interlingua.dialects import get
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.catalog.profiles import profile_for
from interlingua.simulator import text, tool_call
from interlingua.spec.content import Audio, Image, Text, Thinking, ToolCall, ToolResult
from interlingua.spec.errors import UnsupportedError, UnsupportedToolChoiceError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat, ToolChoice, ToolDefinition
from support.simulated import DIALECTS, MODELS, adapters, complete, simulated, stream

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
PNG = b"\x89PNG\r\n\x1a\n"
PICTURE = Message.user(["What is it?", Image(data=PNG, media_type="image/png")])
TOOL = ToolDefinition(name="look", parameters={"type": "object", "properties": {}})
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
REFUSED = [
    ({"image_types": ()}, {"messages": (PICTURE,)}, UnsupportedError),
    ({"tools": False}, {"tools": (TOOL,)}, UnsupportedError),
    (
        {"tool_choice_modes": ("auto",)},
        {"tools": (TOOL,), "tool_choice": ToolChoice(mode="required")},
        UnsupportedToolChoiceError,
    ),
    (
        {"structured_output": ()},
        {"response_format": ResponseFormat(type="json_schema", json_schema=SCHEMA)},
        UnsupportedError,
    ),
]


@every_provider
@pytest.mark.parametrize("mode", ["whole", "stream"])
@pytest.mark.parametrize(("profile", "asked", "kind"), REFUSED)
def test_what_the_turn_asks_for_is_refused(provider, mode, profile, asked, kind):
    """Images, tools, a forced choice, a schema: no answer comes that never saw them."""
    with simulated(text("hi"), profile=profile) as peer:
        request = peer.ask(provider, **asked)
        if mode == "whole":
            with pytest.raises(kind, match="on_loss='warn'"):
                complete(peer, request)
        else:
            events, failure = stream(peer, request)
            assert type(failure) is kind
            assert events == []
        assert peer.app.script.received == ()

        assert complete(peer, replace(request, on_loss="warn")).warnings


@tool
def look() -> list:
    """Take a screenshot."""
    return [Text(text="the screen:"), Image(data=PNG, media_type="image/png")]


def _generate(peer, model, prompt, **options):
    return asyncio.run(interlingua.generate(model, prompt, client=peer.client, **options))


def _execute(peer, model, prompt, **options):
    async def run():
        return await interlingua.execute(model, prompt, client=peer.client, **options)

    raise UnsupportedError(asyncio.run(run()).error.message)


def _sync(peer, model, prompt, **options):
    with sync.Client(adapters(peer.server.url, profile={"tools": False})) as client:
        return sync.generate(model, prompt, client=client, **options)


@every_provider
@pytest.mark.parametrize("front", [_generate, _execute, _sync])
def test_the_functions_refuse_too(provider, front):
    """Through `generate`, `execute` and `sync`: nothing is sent."""
    with simulated(text("hi"), profile={"tools": False}) as peer:
        with pytest.raises(UnsupportedError, match="does not support tools"):
            front(peer, f"{provider}:{MODELS[provider]}", "Look.", tools=[look])
        assert peer.app.script.received == ()


@every_provider
def test_a_screenshot_does_not_kill_a_run(provider):
    """Media that a tool returned becomes a note to the model, and a warning."""
    with simulated(tool_call("look"), text("a cat"), profile={"image_types": ()}) as peer:
        model = f"{provider}:{MODELS[provider]}"
        result = _generate(peer, model, "Look.", tools=[look])
        sent = str(peer.app.script.received[1].call.body)

    assert result.text == "a cat"
    assert "result_media_as_text" in {warning.code for warning in result.warnings}
    assert "media that this model cannot read" in sent
    assert "iVBOR" not in sent


# Responses rows store nothing.


def body(model="gpt-6-sol", messages="hi", **options):
    adapter = HttpAdapter("openai", "k")
    options = {"openai": options} if options else {}
    return adapter.dry_run(Request(model=model, messages=messages, provider_options=options)).body


ENCRYPTED = "reasoning.encrypted_content"


def test_responses_are_not_stored():
    """By default; thinking comes back with the answer, where the model thinks."""
    assert (body()["store"], body()["include"]) == (False, [ENCRYPTED])
    assert body("gpt-4o")["store"] is False
    assert "include" not in body("gpt-4o")


def test_the_caller_switches_storing_on():
    """With `store`, or by what only a stored answer makes possible; includes are added to."""
    assert "include" not in body(store=True)
    assert body(store=True)["store"] is True
    for option in ({"previous_response_id": "resp_1"}, {"background": True}):
        assert "store" not in body(**option)
    assert body(include=["web_search_call.results"])["include"] == [
        "web_search_call.results",
        ENCRYPTED,
    ]
    assert body(store=False)["include"] == [ENCRYPTED]


def test_a_neutral_profile_adds_nothing():
    """The codec alone encodes what it is given."""
    call = get("openai_responses").encode_request(Request(model="gpt-6-sol", messages="hi"))

    assert "store" not in call.body


def thought(**fields):
    own = {"openai_responses": {"id": "rs_1", **fields.pop("extra", {})}}
    call = ToolCall(id="c", name="f", arguments={}, extra={"openai_responses": {"id": "fc_1"}})
    return (
        Message.user("hi"),
        Message(role="assistant", content=(Thinking(extra=own, **fields), call)),
        Message(role="tool", content=(ToolResult(tool_call_id="c", content="1"),)),
    )


BARE = thought(text="a summary")
WHOLE = [
    thought(text="a summary", data="E"),
    thought(text="raw", extra={"content": [{"type": "reasoning_text", "text": "raw"}]}),
]


def test_no_bare_reasoning_id_is_replayed():
    """Its content is not stored, so the provider could not find it."""
    sent = str(body(messages=BARE)["input"])

    assert "rs_1" not in sent
    assert "fc_1" not in sent  # the call was bound to it
    profile = profile_for("openai_responses", "gpt-6-sol", "openai")
    request = Request(model="gpt-6-sol", messages=BARE)
    (warning,) = get("openai_responses").encode_request(request, profile).warnings
    assert (warning.code, warning.path) == (
        "unsigned_thinking_dropped",
        "messages[1].content[0]",
    )


@pytest.mark.parametrize("history", WHOLE)
def test_reasoning_with_its_content_is_replayed(history):
    """Encrypted, or in the open."""
    assert "rs_1" in str(body(messages=history)["input"])


def test_a_stored_reasoning_id_is_replayed():
    """The caller has stored it."""
    assert "rs_1" in str(body(messages=BARE, store=True)["input"])


def test_the_error_names_models_that_can():
    """Audio for a model that cannot hear fails before the network, and says who can."""
    adapter = HttpAdapter("anthropic", "k", base_url="http://127.0.0.1:9")
    hearing = Message.user([Audio(data=b"RIFF0000WAVE")])
    request = Request(model="claude-haiku-4-5", messages=[hearing])
    with pytest.raises(UnsupportedError, match=r"models with audio: openai:.*, gemini:"):
        adapter.dry_run(request)
