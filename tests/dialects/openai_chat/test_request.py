"""Requests."""

import pytest

from interlingua.dialects.openai_chat import decode_request, encode_request
from interlingua.dialects.openai_chat.facts import ChatQuirks
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat

NAME = "openai_chat"
SCHEMA = {"type": "object", "properties": {}}


def decode(path="", **fields):
    return decode_request(WireCall(path=path, body={"messages": [], **fields}))


def encode(quirks=None, *, stream=False, **fields):
    return encode_request(Request(**fields), Profile(quirks=quirks), stream=stream)


def codes(call):
    return [warning.code for warning in call.warnings]


def test_settings_both_ways():
    """Each field has its place; zero, empty and false are values."""
    wire = {
        "model": "m",
        "messages": [{"role": "user", "content": "u"}],
        "temperature": 0,
        "top_p": 0.5,
        "max_completion_tokens": 10,
        "stop": ["a", ""],
        "seed": 0,
        "frequency_penalty": -1.5,
        "presence_penalty": 0,
        "n": 2,
        "reasoning_effort": "low",
        "verbosity": "high",
        "user": "",
        "metadata": {"a": "b"},
    }
    request = decode(**wire)

    assert request == Request(
        model="m",
        messages=(Message.user("u"),),
        temperature=0,
        top_p=0.5,
        max_tokens=10,
        stop_sequences=("a", ""),
        seed=0,
        frequency_penalty=-1.5,
        presence_penalty=0,
        reasoning_effort="low",
        verbosity="high",
        user="",
        metadata={"a": "b"},
        provider_options={"openai_chat": {"n": 2}},
    )
    assert encode_request(request).body == wire


@pytest.mark.parametrize(
    "wire",
    [
        {"max_tokens": 5},
        {"max_tokens": 5, "max_completion_tokens": 6},
        {"max_completion_tokens": None, "max_tokens": 5},
        {"random_seed": 7},
        {"top_k": 40},
        {"reasoning_effort": 1024},
        {"reasoning": {"effort": "low"}},
        {"logit_bias": {"5": -1}, "store": True, "provider": {"order": ["a"]}},
        {"stream_options": {"include_usage": True}},
        {"response_format": {"type": "grammar", "grammar": "x"}},
        {"response_format": {"schema": {}}},
        {"temperature": None, "tools": None, "tool_choice": None, "response_format": None},
    ],
)
def test_every_form_comes_back(wire):
    """Other names of a setting, and what is not known, are written back as they were."""
    call = encode_request(decode(**wire))

    assert call.body == {"messages": [], **wire}
    assert call.warnings == ()


def test_names_of_settings_are_read():
    """Whatever its name, the setting is the same."""
    request = decode(max_tokens=5, random_seed=7, top_k=40)

    assert (request.max_tokens, request.seed, request.top_k) == (5, 7, 40)


def test_quirks_name_settings():
    """The profile says which names a server knows."""
    quirks = ChatQuirks(max_tokens_field="max_tokens", seed_field="random_seed", top_k=True)
    call = encode(quirks, max_tokens=5, seed=7, top_k=40)

    assert call.body == {"messages": [], "max_tokens": 5, "random_seed": 7, "top_k": 40}


def test_what_has_no_field_is_warned_of():
    """OpenAI has no top_k and no thinking budget."""
    call = encode(top_k=40, thinking_budget=1024)

    assert call.body == {"messages": []}
    assert codes(call) == ["top_k_dropped", "thinking_budget_dropped"]


def test_reasoning_object():
    """With the quirk, effort and budget go into one object."""
    quirks = ChatQuirks(reasoning_object=True)

    assert encode(quirks, reasoning_effort="low", thinking_budget=5).body["reasoning"] == {
        "effort": "low",
        "max_tokens": 5,
    }
    assert "reasoning" not in encode(quirks).body


def test_effort_none_as_a_switch():
    """Where effort `none` is not known, a quirk says what is; other efforts stay."""
    switch = {"thinking": {"type": "disabled"}}
    quirks = ChatQuirks(thinking_off=switch)

    body = encode(quirks, reasoning_effort="none").body
    body["thinking"]["type"] = "changed"

    assert encode(quirks, reasoning_effort="none").body == {"messages": [], **switch}
    assert encode(quirks, reasoning_effort="low").body["reasoning_effort"] == "low"
    assert encode(reasoning_effort="none").body["reasoning_effort"] == "none"


def test_one_stop_sequence_may_be_text():
    """A string is a list of one."""
    assert decode(stop="END").stop_sequences == ("END",)


FORMATS = [
    ({"type": "text"}, ResponseFormat(type="text")),
    ({"type": "json_object"}, ResponseFormat(type="json")),
    (
        {"type": "json_object", "schema": SCHEMA},
        ResponseFormat(type="json", extra={NAME: {"schema": SCHEMA}}),
    ),
    (
        {
            "type": "json_schema",
            "json_schema": {
                "name": "n",
                "description": "d",
                "schema": SCHEMA,
                "strict": False,
            },
        },
        ResponseFormat(
            type="json_schema", name="n", description="d", json_schema=SCHEMA, strict=False
        ),
    ),
    (
        {"type": "json_schema", "json_schema": {"schema": SCHEMA, "strict": None}},
        ResponseFormat(
            type="json_schema",
            json_schema=SCHEMA,
            extra={NAME: {"json_schema": {"strict": None}, "~without": ["json_schema.name"]}},
        ),
    ),
]


@pytest.mark.parametrize(("wire", "form"), FORMATS)
def test_formats_both_ways(wire, form):
    """The schema is nested here."""
    assert decode(response_format=wire).response_format == form
    assert encode(response_format=form).body["response_format"] == wire


def test_schema_must_have_a_name():
    """One is made up if there is none."""
    body = encode(response_format=ResponseFormat(type="json_schema", json_schema=SCHEMA)).body

    assert body["response_format"]["json_schema"]["name"] == "response"


def test_strict_formats_are_narrowed():
    """What can be strict is made so; what cannot is sent as it is, with a warning."""
    optional = {"type": "object", "properties": {"a": {"type": "string"}}}
    narrowed, loose = (
        encode(
            messages="x",
            response_format=ResponseFormat(type="json_schema", json_schema=schema, strict=True),
        )
        for schema in (optional, {"type": "object"})
    )

    assert narrowed.body["response_format"]["json_schema"] == {
        "name": "response",
        "schema": {
            "type": "object",
            "properties": {"a": {"type": ["string", "null"]}},
            "required": ["a"],
            "additionalProperties": False,
        },
        "strict": True,
    }
    assert narrowed.warnings == ()
    assert loose.body["response_format"]["json_schema"] == {
        "name": "response",
        "schema": {"type": "object"},
        "strict": False,
    }
    assert [(w.code, w.path) for w in loose.warnings] == [
        ("schema_not_strict", "response_format.json_schema")
    ]


def test_stream_is_an_argument():
    """It is not a setting of the request; false and null are the default."""
    assert decode(stream=True) == decode(stream=False) == decode(stream=None) == decode()
    assert encode(stream=True).body == {"messages": [], "stream": True}
    assert "stream" not in encode().body


def test_usage_of_streams_is_asked_for_with_a_quirk():
    """The neutral profile adds nothing."""
    quirks = ChatQuirks(stream_usage=True)

    assert encode(quirks, stream=True).body["stream_options"] == {"include_usage": True}
    assert "stream_options" not in encode(quirks).body


def test_model_in_the_path():
    """A deployment's address names the model; the address is kept as a template."""
    path = "/openai/deployments/my%20model/chat/completions?api-version=1"
    request = decode(path)

    assert request.model == "my model"
    call = encode_request(request)
    assert call.path == path
    assert "model" not in call.body


def test_model_in_the_body_wins():
    """A path that names one too is the server's business."""
    request = decode("/openai/deployments/d/chat/completions", model="m")

    assert request.model == "m"
    assert encode_request(request).path == "/chat/completions"


def test_options_are_merged_last():
    """Objects are merged, anything else replaces; options of other dialects are warned of."""
    call = encode(
        model="m",
        user="u",
        metadata={"a": "1"},
        provider="groq",
        provider_options={
            NAME: {"user": "v", "metadata": {"b": "2"}},
            "groq": {"service_tier": "flex"},
            "gemini_generate": {"x": 1},
        },
    )

    assert call.body["user"] == "v"
    assert call.body["metadata"] == {"a": "1", "b": "2"}
    assert call.body["service_tier"] == "flex"
    assert codes(call) == ["options_dropped"]


def test_unknown_fields_are_options():
    """They are carried under the dialect's name."""
    assert decode(service_tier="flex").provider_options == {NAME: {"service_tier": "flex"}}


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ([], "body"),
        ({}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [], "model": 5}, "model"),
        ({"messages": [], "temperature": "hot"}, "temperature"),
        ({"messages": [], "max_tokens": 1.5}, "max_tokens"),
        ({"messages": [], "stop": [5]}, "stop"),
        ({"messages": [], "metadata": []}, "metadata"),
        ({"messages": [], "stream": "yes"}, "stream"),
        ({"messages": [], "response_format": "json"}, "response_format"),
        (
            {"messages": [], "response_format": {"type": "json_schema", "json_schema": []}},
            "response_format.json_schema",
        ),
        ({"messages": [{"role": "user", "content": 5}]}, r"messages\[0\].content"),
    ],
)
def test_wrong_types_name_their_path(body, path):
    """What cannot be read is a 400 that says where."""
    with pytest.raises(InvalidRequestError, match=f"^{path}: expected") as caught:
        decode_request(WireCall(body=body))

    assert caught.value.status_code == 400


def test_nothing_is_changed():
    """Encoding leaves the request as it was, and gives the same bytes again."""
    options = {NAME: {"metadata": {"b": 1}, "field_names": {"seed": "random_seed"}}}
    request = Request(model="m", metadata={"a": 1}, seed=1, provider_options=options)
    first = encode_request(request)

    assert encode_request(request) == first
    assert options == {NAME: {"metadata": {"b": 1}, "field_names": {"seed": "random_seed"}}}
