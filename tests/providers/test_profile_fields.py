"""Safe 22: every field of a profile is enforced, before a byte is sent."""

import asyncio
import json

import msgspec
import pytest

import interlingua
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.catalog.profiles import check_row, make_profile
from interlingua.simulator import text, tool_call
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.contracts import AdapterCapabilities, Profile, ToolCallCapabilities
from interlingua.spec.errors import (
    ConfigurationError,
    ContextLengthError,
    SDKError,
    ServerError,
    UnsupportedError,
)
from interlingua.spec.events import TextDelta, ToolCallEnd
from interlingua.spec.messages import Message
from interlingua.spec.modalities.images import ImageInput
from interlingua.spec.request import (
    BuiltinTool,
    Request,
    ResponseFormat,
    ToolChoice,
    ToolDefinition,
)
from interlingua.streams.grammar import Grammar
from interlingua.transport.canned import CannedReply, CannedTransport
from support.simulated import DIALECTS, MODELS, complete, simulated, stream

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
TOOL = ToolDefinition(name="look", parameters=SCHEMA, strict=True)
FREE_TEXT = ToolDefinition(name="patch", type="custom")
FORM = ResponseFormat(type="json_schema", json_schema=SCHEMA, strict=True)
PNG = Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")
USER, MODEL = Message.user("hi"), Message.assistant("hello")
CALL = ToolCall(id="call.1", name="look", arguments={"a": "b"})


def loop(*content):
    """A history with one finished call."""
    result = ToolResult(tool_call_id=CALL.id, content=content or "1")
    return (
        USER,
        Message(role="assistant", content=(CALL,)),
        Message(role="tool", content=(result,)),
    )


def thought(**metadata):
    own = {"anthropic_messages": {}}
    parts = (Thinking(text="hm", signature="s", extra=own), Text(text="so"))
    return (USER, Message(role="assistant", content=parts, metadata=metadata), USER)


UNSIGNED = (Thinking(text="hm", extra={"anthropic_messages": {}}), Text(text="so"))
CHAT, CLAUDE, GPT, GEMINI = "openai_compatible", "anthropic", "openai", "gemini"
THINKS = {"thinks_by_default": True}
ADAPTIVE = {"thinking_modes": ("adaptive",)}
BUDGETS = {"thinking_modes": ("enabled",), "reasoning_efforts": ()}
FORCED = {"tools": (TOOL,), "tool_choice": ToolChoice(mode="required")}
LONG = "x " * 2000

# The field: its value, the other fields of the profile, the provider, and the request.
CASES = {
    "kind": ("image", {}, GPT, {}),
    "context_window": (100, {}, GPT, {"messages": LONG}),
    "max_output_tokens": (10, {}, GPT, {"max_tokens": 100}),
    "image_types": ((), {}, CHAT, {"messages": (Message.user([PNG]),)}),
    "max_image_bytes": (4, {}, CHAT, {"messages": (Message.user([PNG]),)}),
    "audio_types": (
        (),
        {},
        CHAT,
        {"messages": (Message.user([Audio(data=b"RIFF", media_type="audio/wav")]),)},
    ),
    "document_types": (
        (),
        {},
        CHAT,
        {"messages": (Message.user([Document(data=b"%PDF", media_type="application/pdf")]),)},
    ),
    "tool_result_types": ((), {}, CLAUDE, {"messages": loop(PNG)}),
    "tools": (False, {}, CHAT, {"tools": (TOOL,)}),
    "tools_while_thinking": (
        False,
        ADAPTIVE,
        CHAT,
        {"tools": (TOOL,), "reasoning_effort": "high"},
    ),
    "tool_choice_modes": (("auto",), {}, CHAT, FORCED),
    "thinking_tool_choice": (
        {"adaptive": ("auto",)},
        ADAPTIVE,
        CHAT,
        {**FORCED, "reasoning_effort": "high"},
    ),
    "tool_choice_without_tools": (None, {}, CHAT, {"tool_choice": ToolChoice()}),
    "parallel_tool_calls": (False, {}, CHAT, {"tools": (TOOL,), "parallel_tool_calls": False}),
    "custom_tools": (False, {}, "openai", {"tools": (FREE_TEXT,)}),
    "strict_tools": (False, {}, CHAT, {"tools": (TOOL,)}),
    "max_strict_tools": (0, {}, CHAT, {"tools": (TOOL,)}),
    "streaming": (False, {}, CHAT, {"stream": True}),
    "whole_tool_calls": (False, {}, CHAT, {"tools": (TOOL,)}),
    "max_whole_tokens": (500, {}, CHAT, {"max_tokens": 501}),
    "streaming_tool_calls": (False, {}, CHAT, {"tools": (TOOL,), "stream": True}),
    "structured_output": ((), {}, CHAT, {"response_format": FORM}),
    "structured_output_with_tools": (
        False,
        {"structured_output": ("native",)},
        CHAT,
        {"response_format": FORM, "tools": (TOOL,)},
    ),
    "sampling": (False, {}, CHAT, {"temperature": 0.5}),
    "sampling_versions": (("2023-06-01",), {"sampling_versions": None}, CLAUDE, {"top_k": 3}),
    "api_version": ("2023-06-01", {}, CLAUDE, {}),
    "max_temperature": (0.1, {}, CHAT, {"temperature": 0.5}),
    "rejected_while_thinking": (("temperature",), THINKS, CHAT, {"temperature": 0.5}),
    "penalties": (False, {}, CHAT, {"frequency_penalty": 0.5}),
    "seed": (False, {}, CHAT, {"seed": 5}),
    "logprobs": (False, {}, CHAT, {"provider_options": {"openai_chat": {"logprobs": True}}}),
    "verbosity": (False, {}, CHAT, {"verbosity": "low"}),
    "stop_sequences": (0, {}, CHAT, {"stop_sequences": ("a",)}),
    "thinking": (False, {}, CHAT, {"reasoning_effort": "low"}),
    "thinks_by_default": (
        True,
        {"rejected_while_thinking": ("temperature",)},
        CHAT,
        {"temperature": 0.5},
    ),
    "thinking_modes": (("adaptive",), {}, CLAUDE, {"thinking_budget": 5000}),
    "thinking_shown": (
        "if_asked",
        {"thinking_shown": None},
        GEMINI,
        {"reasoning_effort": "low"},
    ),
    "reasoning_efforts": (("low",), {}, CHAT, {"reasoning_effort": "high"}),
    "effort_map": (
        {"xhigh": "low"},
        {"reasoning_efforts": ("low", "high")},
        CHAT,
        {"reasoning_effort": "xhigh"},
    ),
    "effort_budgets": ({"low": 2222}, BUDGETS, CLAUDE, {"reasoning_effort": "low"}),
    "min_thinking_budget": (3000, {}, CLAUDE, {"thinking_budget": 2000}),
    "max_thinking_budget": (1500, {}, CLAUDE, {"thinking_budget": 2000}),
    "dynamic_budget": (True, BUDGETS, GEMINI, {"thinking_budget": 0}),
    "budget_below_max_tokens": (
        True,
        {"budget_below_max_tokens": False},
        CLAUDE,
        {"thinking_budget": 2000, "max_tokens": 1500},
    ),
    "thinking_bound_to_model": (True, {}, CLAUDE, {"messages": thought(model="other")}),
    "thinking_dialects": (("anthropic_messages",), {}, GEMINI, {"messages": thought()}),
    "signed_thinking": (
        True,
        {"signed_thinking": False},
        CLAUDE,
        {"messages": (USER, Message(role="assistant", content=UNSIGNED), USER)},
    ),
    "signed_calls": (True, {}, GEMINI, {"messages": loop()}),
    "stateless": (False, {}, GPT, {}),
    "caching": (False, {}, CLAUDE, {}),
    "cache_breakpoints": (0, {}, CLAUDE, {}),
    "automatic_cache_mark": (False, {}, CLAUDE, {}),
    "cache_key": (False, {}, GPT, {}),
    "min_cache_tokens": (9000, {}, CLAUDE, {}),
    "system_prompt": (False, {}, CHAT, {"messages": (Message.system("be kind"), USER)}),
    "system_mid_conversation": (
        False,
        {},
        CHAT,
        {"messages": (USER, MODEL, Message.system("be kind"), USER)},
    ),
    "single_system_prompt": (
        True,
        {},
        CHAT,
        {"messages": (Message.system("be kind"), Message.system("be brief"), USER)},
    ),
    "media_urls": (
        False,
        {},
        "anthropic",
        {"messages": (Message.user([Image(url="https://host.test/a.png")]),)},
    ),
    "moves_media": (
        False,
        {},
        CHAT,
        {"messages": (Message(role="system", content=(Text(text="see"), PNG)), USER)},
    ),
    "prefill": (False, {}, CHAT, {"messages": (USER, MODEL)}),
    "tool_call_id_pattern": ("[a-z]+", {}, CHAT, {"messages": loop()}),
    "quirks": ({"max_tokens_field": "max_tokens"}, {}, CHAT, {"max_tokens": 9}),
}
EXEMPT = {
    "dialect",  # the name under which options are looked up; it is not a capability
    "compaction",  # about what a gateway asks for: `gateway/test_compaction.py`
    "hosted_call_types",  # about answers: `dialects/openai_responses/test_own_calls.py`
    "output_modalities",  # of operations: see below
    "hosted_tools",  # only together with `tools`: see below
}


def outcome(provider, row, *, stream=False, **fields):
    """The body, the headers and the warnings; or the error, if nothing is sent."""
    adapter = HttpAdapter(provider, "k", base_url="https://host.test/v1", profile=row)
    request = Request(**{"model": "house-model", "messages": (USER,), **fields})
    try:
        call = adapter.dry_run(request, stream=stream)
    except SDKError as error:
        return error
    codes = [warning.code for warning in call.warnings]
    return json.dumps(call.body, sort_keys=True), call.headers, codes


@pytest.mark.parametrize("field", Profile.__struct_fields__)
def test_every_field_is_enforced(field):
    """A request that meets the limit is sent otherwise, or not at all."""
    if field in EXEMPT:
        return
    value, others, provider, asked = CASES[field]
    before = outcome(provider, others, **asked)
    after = outcome(provider, {**others, field: value}, **asked)

    assert not isinstance(before, SDKError)
    if isinstance(after, SDKError):
        assert isinstance(after, (UnsupportedError, ContextLengthError))
        after = outcome(provider, {**others, field: value}, on_loss="warn", **asked)
    assert not isinstance(after, SDKError)
    assert after != before or field in ("kind", "context_window")


# Streams.


@every_provider
@pytest.mark.parametrize("row", [{"streaming": False}, {"streaming_tool_calls": False}])
def test_a_stream_that_is_not_supported_is_replayed(provider, row):
    """The whole answer is read, and delivered as events by the same grammar."""
    answer = text("Let me look.") + tool_call("look", a="b")
    with simulated(answer, profile=row) as peer:
        events, failure = stream(peer, peer.ask(provider, tools=(TOOL,)))
        (exchange,) = peer.app.script.received

    assert failure is None
    assert not exchange.call.stream
    grammar = Grammar()
    for event in events:
        grammar.feed(event)
    grammar.finish()
    assert "".join(e.delta for e in events if type(e) is TextDelta) == "Let me look."
    assert [e.tool_call.arguments for e in events if type(e) is ToolCallEnd] == [{"a": "b"}]
    assert events[-1].response.text == "Let me look."


@every_provider
def test_text_is_streamed_where_only_calls_are_not(provider):
    """Without tools, a stream is a stream."""
    with simulated(text("hi"), profile={"streaming_tool_calls": False}) as peer:
        assert stream(peer, peer.ask(provider))[0][-1].response.text == "hi"
        (exchange,) = peer.app.script.received

    assert exchange.call.stream


@every_provider
def test_a_whole_answer_is_joined_from_a_stream_where_calls_only_come_in_streams(provider):
    """The whole answer is joined from a stream."""
    row = {"tool_calls": {"non_streaming": False, "streaming_mode": "deltas", "parallel": True}}
    answer = text("Let me look.") + tool_call("look", a="b")
    with simulated(answer, profile=row) as peer:
        response = complete(peer, peer.ask(provider, tools=(TOOL,), request_id="r1"))
        (exchange,) = peer.app.script.received

    assert exchange.call.stream
    assert (response.text, response.request_id) == ("Let me look.", "r1")
    assert [call.arguments for call in response.tool_calls] == [{"a": "b"}]
    assert response.finish_reason.reason == "tool_calls"


# The fine record of tool calls.


@pytest.mark.parametrize("non_streaming", [True, False])
@pytest.mark.parametrize("mode", ["none", "deltas"])
@pytest.mark.parametrize("parallel", [True, False])
def test_tool_calls_read_back_equal(non_streaming, mode, parallel):
    """What a file says about tool calls is what the capabilities say."""
    has_tools = non_streaming or mode == "deltas"
    calls = {
        "non_streaming": non_streaming,
        "streaming_mode": mode,
        "parallel": parallel and has_tools,
    }
    row = check_row({"tool_calls": calls, "streaming": True}, "file")
    profile = make_profile({"file": row}, "openai_chat")

    assert AdapterCapabilities(profile).tool_calls == ToolCallCapabilities(**calls)
    assert profile.tools is has_tools


@pytest.mark.parametrize("value", [True, False])
def test_a_bool_stands_for_all_of_tool_calls(value):
    """A bool stands for all of it or nothing."""
    profile = make_profile({"file": check_row({"tool_calls": value}, "file")}, "openai_chat")

    assert profile.tools is profile.whole_tool_calls is profile.parallel_tool_calls is value


def test_wrong_tool_calls_are_refused_by_row_and_key():
    """The error names the row and the key."""
    with pytest.raises(ConfigurationError, match=r"'mine': key 'tool_calls'.*streaming_mode"):
        check_row({"tool_calls": {"streaming_mode": "chunks"}}, "mine")


@every_provider
def test_an_unknown_mode_is_refused(provider):
    """A typo is not a mode that the model lacks."""
    adapter = HttpAdapter(provider, "k", base_url="https://host.test")
    with pytest.raises(
        ConfigurationError, match=r"'bogus'\. Use one of auto, none, required, named"
    ):
        adapter.supports_tool_choice("bogus")


# Kinds of models.


@pytest.mark.parametrize(
    ("provider", "model", "function"),
    [
        ("openai", "text-embedding-3-large", "embed"),
        ("openai", "gpt-image-2", "generate_image"),
        ("openai", "gpt-4o-mini-tts", "speak"),
        ("gemini", "gemini-embedding-001", "embed"),
        ("mistral", "mistral-embed", "embed"),
    ],
)
@pytest.mark.parametrize("mode", ["whole", "stream"])
def test_a_model_that_does_not_chat_names_the_function_to_use(provider, model, function, mode):
    """The error names the function to use."""
    request = Request(provider=provider, model=model, messages="hi")

    async def ask():
        adapter = HttpAdapter(provider, "k", base_url="http://127.0.0.1:9")
        async with Client({provider: adapter}) as client:
            if mode == "whole":
                await client.complete(request)
            async for _ in client.stream(request):
                pass

    with pytest.raises(UnsupportedError, match=rf"{model} .*Use {function}\(") as caught:
        asyncio.run(ask())
    assert caught.value.provider == provider


# The context window.


@every_provider
@pytest.mark.parametrize("mode", ["whole", "stream"])
def test_a_request_too_long_for_the_window_is_not_sent(provider, mode):
    """Nothing is sent, and the error says how long it is; `on_loss="warn"` sends it."""
    with simulated(text("hi"), profile={"context_window": 1000}) as peer:
        request = peer.ask(provider, messages="word " * 2000)
        if mode == "whole":
            with pytest.raises(ContextLengthError, match=r"about 2\d{3} tokens.*1000"):
                complete(peer, request)
        else:
            assert isinstance(stream(peer, request)[1], ContextLengthError)
        assert peer.app.script.received == ()
        assert complete(peer, msgspec.structs.replace(request, on_loss="warn")).text == "hi"


def test_the_window_is_not_guessed():
    """Within the error of the estimate, and with media of unknown size, the provider decides."""
    row = {"context_window": 1000}
    url = Message.user([Document(url="https://host.test/a.pdf", media_type="application/pdf")] * 99)

    assert not isinstance(outcome(GPT, row, messages="word " * 1050), SDKError)
    assert not isinstance(outcome(GPT, row, messages=(url,)), SDKError)


# History.


@every_provider
def test_earlier_calls_are_text_for_a_model_without_tools_and_thinking_goes(provider):
    """A model without tools reads the earlier calls as text; one without thinking reads none."""
    row = {"tools": False, "thinking": False}
    own = {DIALECTS[provider]: {}}
    _, asked, answered = loop()
    thinking = Thinking(text="deep thought", signature="s", data="E", extra=own)
    history = (USER, Message(role="assistant", content=(thinking, CALL)), answered)
    body, _, codes = outcome(provider, row, messages=history)

    assert asked.tool_calls
    assert "deep thought" not in body
    for word in ("tool_calls", "tool_use", "function_call", "functionCall", "tool_result"):
        assert word not in body
    assert "Called look with" in body
    assert "look returned: 1" in body
    assert {"call_as_text", "foreign_thinking_dropped"} <= {*codes}


@every_provider
def test_an_instruction_is_user_text_for_a_model_without_system_prompts(provider):
    """The instruction is sent as user text, in the first place."""
    history = (Message.system("be kind"), USER)
    body, _, codes = outcome(provider, {"system_prompt": False}, messages=history)

    assert "be kind" in body
    assert not {"system", "instructions", "systemInstruction"} & json.loads(body).keys()
    assert '"system"' not in body
    assert codes == ["system_folded"]


@every_provider
def test_a_prefill_is_refused_for_a_model_without_prefill(provider):
    """It is refused; who accepts the loss gets a user message that asks to continue."""
    error = outcome(provider, {"prefill": False}, messages=(USER, MODEL))
    assert isinstance(error, UnsupportedError)
    assert "does not continue" in str(error)

    body, _, codes = outcome(provider, {"prefill": False}, messages=(USER, MODEL), on_loss="warn")
    assert codes == ["prefill_replaced"]
    assert "Continue your last message" in body


def test_a_paused_turn_is_no_prefill():
    """The provider asked to get its own blocks back."""
    block = Opaque(dialect="anthropic_messages", data={"type": "server_tool_use", "id": "s"})
    history = (USER, Message(role="assistant", content=(block, Text(text="so"))))
    _, _, codes = outcome(CLAUDE, {"prefill": False}, messages=history)

    assert codes == []


def test_a_model_without_functions_may_have_hosted_tools():
    """They are sent where the profile says so; functions are refused all the same."""
    search = BuiltinTool.web_search()
    row = {"tools": False, "hosted_tools": True}
    sent, _, codes = outcome("gemini", row, tools=(search,))
    refused = outcome("gemini", row, tools=(search, TOOL))

    assert "googleSearch" in sent
    assert codes == []
    assert isinstance(refused, UnsupportedError)
    assert isinstance(outcome("gemini", {"tools": False}, tools=(search,)), UnsupportedError)


def test_what_a_chat_model_returns_is_enforced_by_operations():
    """A chat model that returns only text is not asked for an image."""
    value = ImageInput(model="house-model", prompt="a cat")
    row = {"kind": "chat", "output_modalities": ("text",)}
    transport = CannedTransport([CannedReply(status=500, body=b"{}")])
    asked = HttpAdapter("gemini", "k", transport=transport, profile={"kind": "chat"})
    refused = HttpAdapter("gemini", "k", transport=transport, profile=row)

    with pytest.raises(ServerError):
        asyncio.run(asked.perform("generate_image", value))
    with pytest.raises(UnsupportedError, match="kind 'chat'"):
        asyncio.run(refused.perform("generate_image", value))


def test_every_case_is_of_a_field_that_exists():
    """The table above has no fields that are gone."""
    assert CASES.keys() | EXEMPT == {*Profile.__struct_fields__}


@every_provider
def test_an_overflow_that_was_not_sent_is_truncated(provider):
    """`on_overflow` applies to it as to the provider's own error."""
    history = []
    for number in range(8):
        history += [Message.user(f"{number} " + "word " * 200), Message.assistant("ok")]
    model = f"{provider}:{MODELS[provider]}"
    with simulated(text("hi"), profile={"context_window": 1000}) as peer:
        run = interlingua.generate(
            model,
            messages=[*history, USER],
            client=peer.client,
            on_overflow="truncate",
        )
        result = asyncio.run(run)
        (sent,) = peer.app.script.requests

    assert result.text == "hi"
    assert "history_truncated" in [warning.code for warning in result.warnings]
    assert len(sent.messages) < len(history)
