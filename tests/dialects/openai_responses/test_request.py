"""Request <-> body."""

import pytest

from interlingua.conformance.meaning import same
from interlingua.dialects.openai_responses import decode_request, encode_request
from interlingua.spec.content import Image, Opaque, Text, Thinking, ToolCall, ToolResult
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat

NAME = "openai_responses"


def read(path="/v1/responses", **body):
    return decode_request(WireCall(path=path, body=body))


def say(*messages, **fields):
    call = encode_request(Request(messages=messages, **fields))
    return call.body, [warning.code for warning in call.warnings]


def again(body):
    return encode_request(read(**body)).body


def user(text):
    return {"type": "message", "role": "user", "content": text}


def test_plain():
    """The smallest request, both ways; the default profile adds nothing."""
    body = {"model": "m", "input": [user("hi")]}

    assert Request(model="m", messages=(Message.user("hi"),)) == read(**body)
    assert (body, []) == say(Message.user("hi"), model="m")


def test_input_as_a_string():
    """It is one message of the user."""
    assert (Message.user("hi"),) == read(input="hi").messages


def test_instructions():
    """They are the leading system message."""
    body = {"input": [user("hi")], "instructions": "Be brief."}

    request = read(**body)

    assert (Message.system("Be brief."), Message.user("hi")) == request.messages
    assert body == again(body)


def test_system_items_stay_items():
    """A leading system item is not taken for instructions, with or without them."""
    system = {"type": "message", "role": "system", "content": "a"}
    developer = {"type": "message", "role": "developer", "content": "b"}
    for body in (
        {"input": [system, developer, user("hi")]},
        {"input": [developer, system]},
        {"input": [system], "instructions": "c"},
        {"input": [system, system]},
    ):
        assert body == again(body)


def test_system_that_a_string_cannot_say():
    """Two texts, or marks of this API, keep the message an item."""
    two = Message(role="system", content=("a", "b"))
    marked = Message.system(Text(text="a", extra={NAME: {"prompt_cache_breakpoint": {}}}))

    for message in (two, marked):
        body, codes = say(message)

        assert "instructions" not in body
        assert body["input"][0]["role"] == "system"
        assert codes == []


def test_field_bug_30_system_in_the_middle():
    """A later system message is not hoisted."""
    body, _ = say(Message.user("a"), Message.system("b"), Message.user("c"))

    assert [item["role"] for item in body["input"]] == ["user", "system", "user"]


def test_turns_are_grouped():
    """What the model made between two messages is one message; results stand alone."""
    items = [
        user("hi"),
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "E"},
        {"type": "message", "role": "assistant", "content": "Wait.", "phase": "commentary"},
        {"type": "web_search_call", "id": "ws"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "d", "name": "g", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "1"},
        {"type": "function_call_output", "call_id": "d", "output": "2"},
        {"type": "message", "role": "assistant", "content": "Done."},
    ]

    messages = read(input=items).messages

    assert [m.role for m in messages] == ["user", "assistant", "tool", "tool", "assistant"]
    kinds = [part.kind for part in messages[1].content]
    assert kinds == ["thinking", "text", "opaque", "tool_call", "tool_call"]
    assert ToolResult(tool_call_id="c", content="1") == messages[2].content[0]
    assert items == again({"input": items})["input"]


def test_short_and_long_messages():
    """A message with an id keeps its long form; a plain one is short."""
    items = [
        {"role": "assistant", "content": "a"},
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "content": [{"type": "output_text", "text": "b"}],
        },
        {"role": "user", "content": [{"type": "input_text", "text": "c"}]},
    ]

    said = again({"input": items})["input"]

    assert ["a", items[1]["content"], "c"] == [item["content"] for item in said]
    assert same(NAME, "request", {"input": items}, {"input": said}) == []


@pytest.mark.parametrize(
    ("item", "role"),
    [
        ({"type": "item_reference", "id": "x"}, "assistant"),
        ({"type": "compaction", "encrypted_content": "C"}, "assistant"),
        ({"type": "compaction_trigger"}, "developer"),
        ({"type": "additional_tools", "role": "developer", "tools": []}, "developer"),
        ({"type": "configuration_update", "reasoning": {"effort": "low"}}, "developer"),
        ({"type": "mcp_approval_response", "approve": True}, "tool"),
        ({"type": "computer_call_output", "call_id": "c", "output": {}}, "tool"),
        ({"type": "tool_search_output", "execution": "server", "tools": []}, "assistant"),
        ({"type": "brand_new", "x": 1}, "assistant"),
        ({"type": "message", "role": "critic", "content": "x"}, "user"),
        ({"type": 7, "x": 1}, "user"),
        ("a bare string", "user"),
    ],
)
def test_field_bug_56_unknown_items(item, role):
    """Items without a canonical form are carried, in a message of who would say them."""
    body = {"input": [user("a"), item, user("b")]}

    message = read(**body).messages[1]

    assert role == message.role
    assert (Opaque(dialect=NAME, data=item),) == message.content
    assert body == again(body)


def test_carried_items_are_not_shortened():
    """An item that is carried comes back to the letter, also if it looks like a message."""
    content = [{"type": "input_text", "text": "x"}]
    body = {"input": [{"type": "message", "role": "critic", "content": content}]}

    assert again(body) == body


def test_unknown_content_part():
    """An unknown part of a message stays inside the message."""
    body = {"input": [{"type": "message", "role": "user", "content": [{"type": "hologram"}]}]}

    assert body == again(body)


def test_own_fields_of_messages():
    """The fields of a message item that we do not know come back."""
    body = {"input": [{**user("a"), "id": "msg_1", "status": "completed"}]}
    content = [{"type": "input_text", "text": "a"}]

    assert {"input": [{**body["input"][0], "content": content}]} == again(body)


def test_settings():
    """Each field has its place, falsy values too (field bug 76)."""
    body = {
        "model": "m",
        "input": [user("a")],
        "max_output_tokens": 9,
        "temperature": 0,
        "top_p": 0.0,
        "metadata": {},
        "user": "",
        "reasoning": {"effort": "none"},
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
    }

    request = read(**body)

    assert (request.max_tokens, request.temperature, request.top_p) == (9, 0, 0.0)
    assert (
        request.metadata,
        request.user,
        request.reasoning_effort,
        request.verbosity,
    ) == ({}, "", "none", "low")
    assert request.provider_options == {}
    assert body == encode_request(request).body


@pytest.mark.parametrize(
    "body",
    [
        {"reasoning": {"effort": "low", "summary": "auto", "context": "all_turns"}},
        {"reasoning": {"effort": None, "summary": "auto"}},
        {"reasoning": {}},
        {"reasoning": None},
        {"text": {}},
        {"text": {"format": {"type": "grammar", "x": 1}, "verbosity": "high", "new": 1}},
        {"text": {"format": {"type": "json_schema", "schema": {}}}},
        {"store": False, "include": ["reasoning.encrypted_content"], "background": True},
        {"previous_response_id": None, "conversation": {"id": "c"}, "truncation": "auto"},
        {"prompt_cache_options": {"mode": "explicit"}, "service_tier": "flex"},
        {"instructions": None},
        {"metadata": None, "user": None, "temperature": None, "tools": None},
    ],
)
def test_other_fields_are_carried(body):
    """What has no canonical place comes back where it was."""
    body = {"model": "m", "input": [user("a")], **body}

    assert body == again(body)


def test_stored_prompt():
    """A stored prompt may be all the input there is."""
    body = {"prompt": {"id": "p", "variables": {"x": "y"}}}

    assert body == again(body)


FORMAT = {"type": "json_schema", "name": "n", "schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("wire", "form"),
    [
        ({"type": "text"}, ResponseFormat(type="text")),
        ({"type": "json_object"}, ResponseFormat(type="json")),
        (FORMAT, ResponseFormat(type="json_schema", name="n", json_schema={"type": "object"})),
        (
            {**FORMAT, "strict": True, "description": "d"},
            ResponseFormat(
                type="json_schema",
                name="n",
                json_schema={"type": "object"},
                strict=True,
                description="d",
            ),
        ),
        (
            {**FORMAT, "strict": None},
            ResponseFormat(
                type="json_schema",
                name="n",
                json_schema={"type": "object"},
                extra={NAME: {"strict": None}},
            ),
        ),
    ],
)
def test_formats(wire, form):
    """The format is flat here: no nested `json_schema`."""
    body = {"input": [], "text": {"format": wire}}

    assert form == read(**body).response_format
    assert body == again(body)


def test_format_without_a_name():
    """The API wants one."""
    body, _ = say(response_format=ResponseFormat(type="json_schema", json_schema={}))

    assert body["text"]["format"]["name"] == "response"


def test_what_cannot_be_said():
    """Settings that this API does not have are left out with a warning each."""
    body, codes = say(
        Message.user("a", name="Ann"),
        stop_sequences=("x",),
        seed=1,
        frequency_penalty=0.0,
        presence_penalty=0.0,
        top_k=0,
        thinking_budget=100,
        n=2,
        provider_options={"anthropic_messages": {"service_tier": "auto"}},
    )

    assert {"input": [user("a")]} == body
    assert {
        "name_dropped",
        "stop_sequences_dropped",
        "seed_dropped",
        "frequency_penalty_dropped",
        "presence_penalty_dropped",
        "top_k_dropped",
        "thinking_budget_dropped",
        "n_dropped",
        "options_dropped",
    } == set(codes)


def test_one_answer_is_the_default():
    """`n=1` loses nothing."""
    assert say(n=1)[1] == []


def test_foreign_history():
    """Parts of another dialect: what can be said is, the rest has a warning with its path."""
    call = encode_request(
        Request(
            messages=(
                Message.user(["Look", Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")]),
                Message.assistant(
                    [
                        Thinking(text="hm", signature="S", extra={"anthropic_messages": {}}),
                        Text(text="A cat"),
                        ToolCall(id="t", name="f", arguments={"a": 1}),
                    ]
                ),
                Message.tool_result("t", {"ok": True}, name="f"),
            )
        )
    )

    assert [item["type"] for item in call.body["input"]] == [
        "message",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert [warning.path for warning in call.warnings] == ["messages[1].content[0]"]


def test_result_of_custom_call():
    """The kind of the result follows from the call it answers."""
    body, _ = say(
        Message.assistant(ToolCall(id="c", name="f", raw_arguments="ls", type="custom")),
        Message.tool_result("c", "ok"),
    )

    assert [i["type"] for i in body["input"]] == ["custom_tool_call", "custom_tool_call_output"]


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/v1/responses", None),
        ("/openai/v1/responses?api-version=1", None),
        ("/backend-api/codex/responses", None),
        ("", None),
        ("/v1/responses/input_tokens", "/v1/responses/input_tokens"),
        ("/openai/responses/compact", "/v1/responses/compact"),
    ],
)
def test_paths(path, kept):
    """Whatever stands before the endpoint is the provider's; what follows is an operation."""
    request = read(path=path, model="m", input="a")

    assert ({} if kept is None else {NAME: {"path": kept}}) == request.provider_options
    assert (kept or "/v1/responses") == encode_request(request).path


def test_stream():
    """Streaming is asked for in the body."""
    call = encode_request(read(input="a", stream=True), stream=True)

    assert call.stream
    assert call.body["stream"] is True


def test_options_win():
    """What the caller says in the dialect's own words is merged last."""
    body, _ = say(
        temperature=0.5,
        reasoning_effort="low",
        provider_options={NAME: {"temperature": 1, "reasoning": {"summary": "auto"}}},
    )

    assert body["temperature"] == 1
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}


def test_field_bug_79_input_is_not_changed():
    """Encoding twice gives the same, and the request stays as it was."""
    request = read(input=[user("a")], reasoning={"effort": "low", "summary": "auto"})

    assert encode_request(request) == encode_request(request)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"model": 5, "input": "a"}, "model"),
        ({"input": 5}, "input"),
        ({"input": [5]}, "input[0]"),
        ({"input": [{}]}, "input[0].role"),
        ({"input": [{"role": 5, "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
            "input[0].content[0].text",
        ),
        ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
        (
            {"input": [{"type": "function_call_output", "call_id": "c", "output": 5}]},
            "input[0].output",
        ),
        ({"instructions": 5}, "instructions"),
        ({"max_output_tokens": 1.5}, "max_output_tokens"),
        ({"temperature": "hot"}, "temperature"),
        ({"metadata": []}, "metadata"),
        ({"text": []}, "text"),
        ({"text": {"format": "json"}}, "text.format"),
        ({"reasoning": {"effort": 5}}, "reasoning.effort"),
    ],
)
def test_wrong_types(body, path):
    """A wrong type is a 400 that names the place."""
    with pytest.raises(InvalidRequestError) as caught:
        read(**body)

    assert caught.value.status_code == 400
    assert caught.value.message.startswith(f"{path}: ")


@pytest.mark.parametrize("body", [None, [], "x", 5])
def test_body_that_is_no_object(body):
    """It is a 400 too."""
    with pytest.raises(InvalidRequestError, match="expected an object"):
        decode_request(WireCall(body=body))
