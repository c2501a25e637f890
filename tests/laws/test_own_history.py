"""A history that its own provider made or accepted stays as it is."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from interlingua import dialects
from interlingua.conformance.equality import differences
from interlingua.conformance.laws import cut_frames, decode_frames, encode_events, fold
from interlingua.providers.catalog.profiles import profile_for
from interlingua.spec.content import Text, Thinking, ToolCall, ToolResult
from interlingua.spec.contracts import NEUTRAL_PROFILE, WireCall
from interlingua.spec.errors import InvalidRequestError, ProviderError, StreamError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, label_message
from interlingua.streams.accumulate import events_from_response
from support import corpus
from support.exceptions import REPAIRED
from support.hosts import row_of

CHAT, RESPONSES, CLAUDE, GEMINI = (
    "openai_chat",
    "openai_responses",
    "anthropic_messages",
    "gemini_generate",
)
HISTORY = ("messages", "system", "input", "instructions", "contents", "systemInstruction")
SCHEMAS = ("tools", "response_format")
REPLACED_IDS = "call_REDACTED"  # of the recorder; the provider saw ids of its own
PLACED = ("cache_control", "strict")  # cache marks are added; `strict: false` is the default
NO_PROMPT = ("", [], [{"type": "text", "text": ""}], {"parts": [{"text": ""}]})  # is left out


def prompt_of(dialect, body, fields=(*HISTORY, *SCHEMAS)):
    """The fields of a body that hold the history and the schemas, without what is placed there."""
    normal = dialect.FACTS.normal_request(body)
    names = [name for name in fields if normal.get(name, "") not in NO_PROMPT]
    return _bare({name: normal[name] for name in names})


def _bare(value):
    if isinstance(value, Mapping):
        return {name: _bare(inner) for name, inner in value.items() if name not in PLACED}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value


def changes(name, body, profile, *, path="", stream=False, fields=(*HISTORY, *SCHEMAS)):
    """What preparing and encoding changes in the history and schemas of a body."""
    dialect = dialects.get(name)
    request = dialect.decode_request(WireCall(path=path, body=body, stream=stream))
    wire = dialect.encode_request(request, profile, stream=stream).body
    return differences(prompt_of(dialect, body, fields), prompt_of(dialect, wire, fields))


@pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")
@pytest.mark.parametrize("name", dialects.names())
def test_an_accepted_history_stays_as_it_is(name):
    """For its own host and model, no accepted history or schema is changed."""
    changed = {}
    for record, case in zip(corpus.records(name), corpus.cases(name), strict=True):
        if case.call is None or case.status >= 400 or REPLACED_IDS in str(case.call.body):
            continue
        try:
            model = dialects.get(name).decode_request(case.call).model
        except InvalidRequestError:
            continue
        # The recorded calls let the provider store answers, so a reference to one was valid.
        host = replace(profile_for(name, model, record["host_provider"]), stateless=False)
        # Without a profile, a Chat request is OpenAI's, whose rules of schemas not all hosts have.
        is_guest = name == CHAT and record["host_provider"] not in ("openai", "azure")
        for profile in (NEUTRAL_PROFILE, host):
            is_bare = profile is NEUTRAL_PROFILE and is_guest
            found = changes(
                name,
                case.call.body,
                profile,
                path=case.call.path,
                stream=case.call.stream,
                fields=HISTORY if is_bare else (*HISTORY, *SCHEMAS),
            )
            if found and case.name not in REPAIRED:
                changed[case.name] = found[:2]

    assert changed == {}


NOT_ACCEPTED = {
    "arguments_wrapped": "a call that the token limit cut",
    "thinking_only_dropped": "thinking that the token limit cut",
    "trailing_thinking_dropped": "the same, where a text came first",
    "blank_text_dropped": "an empty text, which the provider sends and refuses",
    "empty_message_dropped": "the same, where it is all that was sent",
}
"""The changes of answers that their own provider would not accept -> why."""


def answer_of(dialect, case):
    """The message of a recorded answer; None if there is none."""
    try:
        if case.stream is not None:
            frames = cut_frames([case.stream], case.framing)
            return fold(decode_frames(dialect, frames))
        is_answer = case.response is not None and case.status < 400
        return dialect.decode_response(case.response) if is_answer else None
    except (ProviderError, StreamError):
        return None


@pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")
@pytest.mark.parametrize("name", dialects.names())
def test_an_answer_is_sent_back_to_its_host_unchanged(name):
    """An answer is sent back to its own host and model without a change."""
    dialect = dialects.get(name)
    changed = {}
    for record, case in zip(corpus.records(name), corpus.cases(name), strict=True):
        answer = answer_of(dialect, case)
        if answer is None:
            continue
        calls = [ToolResult(tool_call_id=call.id, content="ok") for call in answer.tool_calls]
        follow = Message(role="tool", content=calls) if calls else Message.user("Go on.")
        row = row_of(name, record["host_provider"]) or record["host_provider"]
        made = label_message(answer, "m1", row, answer.model)  # as a client returns it
        history = (Message.user("Look."), made, follow)
        profile = profile_for(name, answer.model, row)
        wire = dialect.encode_request(
            Request(model=answer.model or "m", provider=row, messages=history),
            replace(profile, stateless=False),
            stream=False,
        )
        codes = {w.code for w in wire.warnings if (w.path or "").startswith("messages[1]")}
        if codes - NOT_ACCEPTED.keys() and answer.message.content:
            changed[case.name] = codes

    assert changed == {}


def made_by(provider, model, *parts):
    """An answer of a model, as a client returns it."""
    message = Message(role="assistant", content=parts)
    bare = Response(message=message, finish_reason=FinishReason(reason="tool_calls"))
    return label_message(bare, "m1", provider, model)


OWN_ID = "chatcmpl-tool-9f2c41"
THOUGHT = Thinking(text="Hm.", extra={CHAT: {}})


@pytest.mark.parametrize(
    ("maker", "is_kept"),
    [
        (("mistral", "mistral-large-latest"), True),
        (("mistral", "mistral-large-2512"), False),
        (("openai", "mistral-large-latest"), False),
    ],
)
def test_a_host_gets_its_own_ids_of_calls_back(maker, is_kept):
    """Mistral refuses ids of others, and some of its models make longer ones than it documents."""
    turn = made_by(*maker, ToolCall(id=OWN_ID, name="look"))
    history = (Message.user("Look."), turn, Message.tool_result(OWN_ID, "ok"))
    request = Request(model="mistral-large-latest", provider="mistral", messages=history)
    profile = profile_for(CHAT, request.model, "mistral")
    wire = dialects.get(CHAT).encode_request(request, profile)

    assert (wire.body["messages"][1]["tool_calls"][0]["id"] == OWN_ID) is is_kept
    assert ("call_id_mapped" in [w.code for w in wire.warnings]) is not is_kept


@pytest.mark.parametrize(
    ("maker", "is_kept"),
    [(("vllm", "llama-3-r1"), True), (("vllm", "qwen3"), False), (("groq", "llama-3-r1"), False)],
)
def test_a_model_gets_its_own_thinking_back(maker, is_kept):
    """Also a model of a family that is not known to think; that of others is dropped."""
    turn = made_by(*maker, THOUGHT, Text(text="Yes."))
    history = (Message.user("Look."), turn, Message.user("Go on."))
    request = Request(model="llama-3-r1", provider="vllm", messages=history)
    profile = profile_for(CHAT, request.model, "vllm")
    assert profile.thinking is False
    wire = dialects.get(CHAT).encode_request(request, profile)

    assert ("reasoning_content" in wire.body["messages"][1]) is is_kept
    assert ("foreign_thinking_dropped" in [w.code for w in wire.warnings]) is not is_kept


# Each kind of history that was changed and need not be.


def chat_calls(*arguments, results=None):
    """A Chat history with a call for each text of arguments, and a result for each call."""
    calls = [
        {"id": f"call_{i}", "type": "function", "function": {"name": "look", "arguments": text}}
        for i, text in enumerate(arguments)
    ]
    order = range(len(calls)) if results is None else results
    return {
        "model": "gpt-5.2",
        "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": None, "tool_calls": calls},
            *({"role": "tool", "tool_call_id": f"call_{i}", "content": "ok"} for i in order),
        ],
    }


def claude_turn(*blocks, model="claude-sonnet-5-5"):
    """A Messages history with this answer of the model."""
    return {
        "model": model,
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": list(blocks)},
            {"role": "user", "content": "Go on."},
        ],
    }


def text(value):
    return {"type": "text", "text": value}


DEFINED = {
    "type": "object",
    "properties": {"place": {"$ref": "#/definitions/Place"}},
    "required": ["place"],
    "additionalProperties": False,
    "definitions": {
        "Place": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        }
    },
}
REFERRED = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "$ref": "#/definitions/Place",
    "definitions": DEFINED["definitions"],
}
OPEN = {
    "type": "object",
    "properties": {"city": {"type": "string", "nullable": True}},
    "required": ["city"],
}


def chat_format(schema, model="gpt-5.2"):
    inner = {"name": "place", "schema": schema, "strict": True}
    return {
        "model": model,
        "messages": [{"role": "user", "content": "Where?"}],
        "response_format": {"type": "json_schema", "json_schema": inner},
    }


def chat_tool(schema, model="gpt-5.2"):
    function = {"name": "find", "parameters": schema, "strict": True}
    return {
        "model": model,
        "messages": [{"role": "user", "content": "Where?"}],
        "tools": [{"type": "function", "function": function}],
    }


def gemini_tool(schema):
    declaration = {"name": "find", "parametersJsonSchema": schema}
    return {
        "model": "gemini-3-flash",
        "contents": [{"role": "user", "parts": [{"text": "Where?"}]}],
        "tools": [{"functionDeclarations": [declaration]}],
    }


def claude_tool(schema):
    return {
        "model": "claude-sonnet-5-5",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Where?"}],
        "tools": [{"name": "find", "input_schema": schema, "strict": True}],
    }


ROOTED = {
    "$ref": "#/$defs/Place",
    "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
LENIENT = ("mistral", "xai", "vllm", "llamacpp", "huggingface", "together", "openai_compatible")
UNSIGNED = {"type": "thinking", "thinking": "Hm."}
ACCEPTED = [
    (CLAUDE, "anthropic", claude_turn(text("\n\n"), text("Yes."))),
    (CLAUDE, "anthropic", claude_tool(DEFINED)),
    (CLAUDE, "ollama", claude_turn(UNSIGNED, text("Yes."), model="qwen3:8b")),
    (CLAUDE, "local", claude_turn({**UNSIGNED, "signature": ""}, text("Yes."), model="glm-5.3")),
    (CHAT, "openai", chat_calls("{}", "{}", "{}", results=(2, 0, 1))),
    (CHAT, "openai", chat_calls("two plus two")),
    (CHAT, "azure", chat_calls('{"a": ')),
    (CHAT, "openai", chat_calls("[]")),
    (CHAT, "groq", chat_calls("[]", "null")),
    (CHAT, "openai", chat_tool(DEFINED)),
    (CHAT, "openai", chat_format(DEFINED)),
    (CHAT, "openai", chat_format(REFERRED)),
    (CHAT, "openrouter", chat_tool(OPEN, "google/gemini-2.5-flash")),
    (CHAT, "openrouter", chat_tool(REFERRED, "google/gemini-2.5-flash")),
    (CHAT, "openrouter", chat_format(OPEN, "google/gemini-2.5-flash")),
    (CHAT, "openrouter", chat_format(OPEN, "qwen/qwen3-32b")),
    (CHAT, "openrouter", chat_format(OPEN, "openai/gpt-oss-120b")),
    *((CHAT, host, chat_tool(OPEN, "m")) for host in LENIENT),
    *((CHAT, host, chat_tool(REFERRED, "m")) for host in LENIENT),
    *((CHAT, host, chat_format(OPEN, "m")) for host in LENIENT),
    (GEMINI, "gemini", gemini_tool(ROOTED)),
    (GEMINI, "vertex", gemini_tool(ROOTED)),
]


@pytest.mark.parametrize(("name", "host", "body"), ACCEPTED)
def test_accepted_forms_are_sent_as_they_came(name, host, body):
    """Forms that these hosts accept are sent as they came."""
    assert changes(name, body, profile_for(name, body["model"], host)) == []


REFUSED = [
    (CLAUDE, "anthropic", claude_turn(UNSIGNED, text("Yes."))),
    (CHAT, "vllm", chat_calls("two plus two")),
    (CHAT, "openai", chat_format(OPEN)),
    (CHAT, "openrouter", chat_format(OPEN, "openai/gpt-5.2")),
    (CHAT, "vercel", chat_tool(OPEN, "openai/gpt-5.2")),
    (CHAT, "github_copilot", chat_tool(OPEN, "gpt-5.2")),
    *((CHAT, host, chat_tool(OPEN, "m")) for host in ("openai", "azure", "groq", "cerebras")),
]


@pytest.mark.parametrize(("name", "host", "body"), REFUSED)
def test_refused_forms_are_sent_in_another_form(name, host, body):
    """Hosts that refuse a form still get another."""
    assert changes(name, body, profile_for(name, body["model"], host)) != []


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_claude_gets_no_blank_text_of_others(role):
    """Claude gets no blank text that it did not write itself."""
    parts = (Text(text="\n\n"), Text(text="Yes."))
    history = [Message.user("Look."), Message(role=role, content=parts), Message.user("Go on.")]
    request = Request(model="claude-sonnet-5-5", messages=history)

    wire = dialects.get(CLAUDE).encode_request(request, stream=False)

    assert "\n\n" not in str([message["content"] for message in wire.body["messages"]])
    assert "blank_text_dropped" in [warning.code for warning in wire.warnings]


@pytest.mark.parametrize("stream", [False, True])
def test_a_blank_answer_is_sent_back(stream):
    """A blank text that Claude returned is sent back, after a stream too."""
    dialect = dialects.get(CLAUDE)
    body = {"type": "message", "role": "assistant", "content": [text("\n\n"), text("Yes.")]}
    answer = dialect.decode_response(body)
    if stream:
        frames = encode_events(dialect, events_from_response(answer))
        answer = fold(decode_frames(dialect, frames))
    history = (Message.user("Look."), answer.message, Message.user("Go on."))
    request = Request(model="claude-sonnet-5-5", messages=history)

    wire = dialect.encode_request(request, stream=False)

    assert wire.body["messages"][1]["content"] == body["content"]
    assert wire.warnings == ()


@pytest.mark.parametrize("name", dialects.names())
def test_an_empty_array_means_no_arguments(name):
    """`[]` as arguments is an empty object, in whichever dialect it is sent on."""
    call = ToolCall(id="call_1", name="look", raw_arguments="[]")
    assert call.is_valid
    history = (
        Message.user("Look."),
        Message.assistant([call]),
        Message.tool_result("call_1", "ok"),
    )
    dialect = dialects.get(name)

    wire = dialect.encode_request(Request(model="m", messages=history), stream=False)
    back = dialect.decode_request(wire)

    [sent] = [part for message in back.messages for part in message.tool_calls]
    assert sent.arguments == {}
    assert sent.is_valid
    assert "arguments_wrapped" not in [warning.code for warning in wire.warnings]


def test_unsigned_thinking_of_claude_itself_is_dropped():
    """What a broken stream of Claude left unsigned is dropped, by its profile."""
    thought = Thinking(text="Hm.", extra={CLAUDE: {}})
    turn = Message.assistant([thought, Text(text="Yes.")])
    history = [Message.user("Look."), turn, Message.user("Go on.")]
    request = Request(model="claude-sonnet-5-5", messages=history)
    profile = profile_for(CLAUDE, request.model, "anthropic")

    def codes(changed):
        wire = dialects.get(CLAUDE).encode_request(request, changed, stream=False)
        return [warning.code for warning in wire.warnings]

    assert codes(profile) == ["unsigned_thinking_dropped"]
    assert codes(replace(profile, signed_thinking=False)) == []


ARRAYS = {
    CLAUDE: claude_turn({"type": "tool_use", "id": "call_1", "name": "look", "input": []}),
    GEMINI: {
        "contents": [
            {"role": "user", "parts": [{"text": "Look."}]},
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": []}}]},
        ]
    },
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_empty_array_in_the_place_of_an_object_is_understood(name):
    """A client that writes `[]` for no arguments is understood."""
    path = "/v1beta/models/m:generateContent"

    request = dialects.get(name).decode_request(WireCall(path=path, body=ARRAYS[name]))

    [call] = request.messages[1].tool_calls
    assert (call.name, call.arguments) == ("look", {})


# Gemini: which call a result answers.


def gemini_history(calls, results):
    """A Gemini history; the names of the calls and of the results."""
    return {
        "contents": [
            {"role": "user", "parts": [{"text": "Look."}]},
            {"role": "model", "parts": [{"functionCall": {"name": n, "args": {}}} for n in calls]},
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": n, "response": {"output": n}}} for n in results
                ],
            },
        ]
    }


@pytest.mark.parametrize(
    ("calls", "results", "links"),
    [
        (["look"], ["seen"], [0]),
        (["look", "hear"], ["look", "heard"], [0, 1]),
        (["look", "hear"], ["seen", "hear"], [0, 1]),
        (["look", "look", "hear"], ["look", "look", "heard"], [0, 1, 2]),
        (["look", "hear"], ["hear", "look"], [1, 0]),
    ],
)
def test_a_result_with_an_unknown_name_answers_the_one_call_that_waits(calls, results, links):
    """A result with a name that no call has answers the one call that still waits."""
    body = gemini_history(calls, results)
    dialect = dialects.get(GEMINI)

    request = dialect.decode_request(WireCall(path="/v1beta/models/m:generateContent", body=body))
    ids = [call.id for call in request.messages[1].tool_calls]
    wire = dialect.encode_request(request, stream=False)

    assert [part.tool_call_id for part in request.messages[2].content] == [ids[i] for i in links]
    assert wire.warnings == ()
    assert differences(prompt_of(dialect, body), prompt_of(dialect, wire.body)) == []


@pytest.mark.parametrize("results", [["seen"], ["look", "look"]])
def test_no_call_is_guessed_where_two_wait(results):
    """Where two calls wait, or the name is of another call, a warning says so."""
    body = gemini_history(["look", "hear"], results)
    dialect = dialects.get(GEMINI)

    request = dialect.decode_request(WireCall(path="/v1beta/models/m:generateContent", body=body))
    codes = [w.code for w in dialect.encode_request(request, stream=False).warnings]

    assert "orphan_result_dropped" in codes
