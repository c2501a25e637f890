"""Request <-> body."""

import pytest

from interlingua.dialects.openai_responses import decode_request, encode_request
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
    return {"role": "user", "content": text}


def test_plain():
    """The smallest request, both ways; the default profile adds nothing."""
    body = {"model": "m", "input": [user("hi")]}

    assert Request(model="m", messages=(Message.user("hi"),)) == read(**body)
    assert (body, []) == say(Message.user("hi"), model="m")


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


CLOSED = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
FORMAT = {"type": "json_schema", "name": "n", "schema": CLOSED}


@pytest.mark.parametrize(
    ("wire", "form"),
    [
        ({"type": "text"}, ResponseFormat(type="text")),
        ({"type": "json_object"}, ResponseFormat(type="json")),
        (FORMAT, ResponseFormat(type="json_schema", name="n", json_schema=CLOSED)),
        (
            {**FORMAT, "strict": True, "description": "d"},
            ResponseFormat(
                type="json_schema",
                name="n",
                json_schema=CLOSED,
                strict=True,
                description="d",
            ),
        ),
        (
            {**FORMAT, "strict": None},
            ResponseFormat(
                type="json_schema",
                name="n",
                json_schema=CLOSED,
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


@pytest.mark.parametrize(
    ("schema", "strict", "sent", "codes"),
    [
        ({"type": "object", "properties": {}}, True, (CLOSED, True), []),
        ({"type": "object"}, True, ({"type": "object"}, False), ["schema_not_strict"]),
        ({"type": "object"}, False, ({"type": "object"}, False), []),
    ],
)
def test_strict_formats_are_narrowed(schema, strict, sent, codes):
    """What can be strict is made so; what cannot is sent as it is, with a warning."""
    form = ResponseFormat(type="json_schema", json_schema=schema, strict=strict)
    body, found = say(Message.user("x"), response_format=form)
    wire = body["text"]["format"]

    assert (wire["schema"], wire["strict"]) == sent
    assert found == codes


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
        "options_dropped",
    } == set(codes)


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


def test_encoding_does_not_change_the_request():
    """Encoding twice gives the same, and the request stays as it was (field bug 79)."""
    request = read(input=[user("a")], reasoning={"effort": "low", "summary": "auto"})

    assert encode_request(request) == encode_request(request)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"model": 5, "input": "a"}, "model"),
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


def test_unknown_fields_of_items_go_through_unchanged():
    """Codex adds a field to each item, which goes through unchanged (field bug 104)."""
    more = {"internal_chat_message_metadata_passthrough": {"turn_id": "t1"}}
    items = [
        {"type": "message", "role": "user", "content": "hi", **more},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", **more},
        {"type": "function_call_output", "call_id": "c", "output": "x", **more},
    ]
    body = {"model": "m", "input": items}
    request = decode_request(WireCall(path="/v1/responses", body=body))

    assert encode_request(request).body == body
