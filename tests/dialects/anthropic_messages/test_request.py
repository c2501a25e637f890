"""Request <-> body."""

import pytest

from interlingua.dialects.anthropic_messages import decode_request, encode_request
from interlingua.spec.content import Image, Text, ToolCall
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat

NAME = "anthropic_messages"


def decode(path="/v1/messages", headers=None, **body):
    body = {"messages": [{"role": "user", "content": "Hi."}], **body}
    return decode_request(WireCall(path=path, body=body, headers=headers or {}))


def encode(**fields):
    return encode_request(Request(**{"model": "m", "max_tokens": 9, "messages": "Hi.", **fields}))


def test_smallest_request():
    """One user message; the output limit, which the API requires, has a default."""
    call = encode_request(Request(model="claude-haiku-5-5", messages="Hi."))

    assert call.path == "/v1/messages"
    assert call.headers == {"anthropic-version": "2026-10-21"}
    assert call.body == {
        "model": "claude-haiku-5-5",
        "max_tokens": 16384,
        "messages": [{"role": "user", "content": "Hi."}],
    }
    assert call.warnings == ()


def test_profile_gives_the_output_limit():
    """A model's own limit is the default where it is known."""
    call = encode_request(Request(model="m", messages="x"), Profile(max_output_tokens=64_000))

    assert call.body["max_tokens"] == 64_000


def test_stream_flag():
    """The body asks for a stream only when told to."""
    assert encode_request(Request(model="m"), stream=True).body["stream"] is True
    assert "stream" not in encode_request(Request(model="m")).body


def test_settings_both_ways():
    """Each setting of this API has its canonical field; zero and empty are values."""
    wire = {
        "model": "m",
        "max_tokens": 9,
        "temperature": 0.0,
        "top_p": 0,
        "top_k": 0,
        "stop_sequences": [],
        "metadata": {"user_id": ""},
        "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "omitted"},
        "output_config": {"effort": "high", "task_budget": {"type": "tokens", "total": 5}},
        "service_tier": "auto",
    }
    request = decode(**wire)

    assert (request.temperature, request.top_p, request.top_k) == (0.0, 0, 0)
    assert (request.stop_sequences, request.user) == ((), "")
    assert (request.thinking_budget, request.reasoning_effort) == (1024, "high")
    assert request.provider_options[NAME] == {
        "thinking": {"display": "omitted"},
        "output_config": {"task_budget": {"type": "tokens", "total": 5}},
        "service_tier": "auto",
    }
    body = encode_request(request).body
    assert {name: body[name] for name in wire} == wire


def test_effort_none_turns_thinking_off():
    """`none` is not an effort here but a switch."""
    assert encode(reasoning_effort="none").body["thinking"] == {"type": "disabled"}
    assert decode(thinking={"type": "disabled"}).reasoning_effort == "none"


def test_structured_output_in_its_new_and_old_place():
    """`output_config.format`, and `output_format` before it."""
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    form = {"type": "json_schema", "schema": schema}

    new, old = decode(output_config={"format": form}), decode(output_format=form)

    assert new.response_format == ResponseFormat(type="json_schema", json_schema=schema)
    assert encode_request(new).body["output_config"] == {"format": form}
    assert old.response_format.json_schema == schema
    assert encode_request(old).body["output_format"] == form


def test_formats_are_always_strict():
    """A schema is narrowed whether it asks for that or not; else it becomes an instruction."""
    bounded = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}}
    narrowed, dropped = (
        encode(response_format=ResponseFormat(type="json_schema", json_schema=schema))
        for schema in (bounded, {"type": "object"})
    )

    assert narrowed.body["output_config"]["format"]["schema"] == {
        "type": "object",
        "properties": {"n": {"type": "integer", "description": "(maximum: 9)"}},
        "additionalProperties": False,
    }
    assert [(w.code, w.path) for w in narrowed.warnings] == [
        ("schema_narrowed", "response_format.json_schema")
    ]
    assert "output_config" not in dropped.body
    assert [(w.code, w.path) for w in dropped.warnings] == [
        ("structured_output_fallback", "response_format"),
    ]


def test_what_this_api_has_no_words_for():
    """Each setting it lacks is a warning that names it."""
    call = encode(
        seed=1,
        frequency_penalty=0.0,
        presence_penalty=0.0,
        verbosity="low",
        metadata={"a": "b"},
        response_format=ResponseFormat(type="json"),
    )

    assert sorted(warning.path for warning in call.warnings) == [
        "frequency_penalty",
        "metadata",
        "presence_penalty",
        "response_format",
        "seed",
        "verbosity",
    ]


@pytest.mark.parametrize(
    ("user", "metadata", "sent", "losses"),
    [
        (None, {"user_id": "u1"}, {"user_id": "u1"}, []),
        ("u1", {"user_id": "u1"}, {"user_id": "u1"}, []),
        ("u1", None, {"user_id": "u1"}, []),
        ("", {}, {"user_id": ""}, []),
        (None, {"user_id": "u1", "team": "a"}, {"user_id": "u1"}, ["metadata"]),
        ("u1", {"user_id": "u2"}, {"user_id": "u1"}, ["metadata"]),
        (None, {"user_id": 5}, None, ["metadata"]),
        (None, {"team": "a"}, None, ["metadata"]),
        (None, {}, None, []),
    ],
)
def test_the_user_in_the_metadata_is_sent(user, metadata, sent, losses):
    """`user_id` is the only label of this API; `user` counts first, and any other is a loss."""
    call = encode(user=user, metadata=metadata)

    assert call.body.get("metadata") == sent
    assert [warning.path for warning in call.warnings] == losses


def test_options_are_merged_last():
    """`provider_options` reach into nested objects and win."""
    call = encode(
        reasoning_effort="low",
        provider_options={NAME: {"output_config": {"effort": "max", "x": 1}, "speed": "fast"}},
    )

    assert call.body["output_config"] == {"effort": "max", "x": 1}
    assert call.body["speed"] == "fast"


def test_options_by_provider_name():
    """Options may be keyed by the provider that serves the call."""
    call = encode(provider="anthropic", provider_options={"anthropic": {"speed": "fast"}})

    assert call.body["speed"] == "fast"


def test_options_of_another_dialect_are_warned_of():
    """What another dialect carried cannot be said here."""
    call = encode(provider_options={"openai_chat": {"logit_bias": {}}})

    assert [(w.code, w.path) for w in call.warnings] == [
        ("options_dropped", "provider_options.openai_chat")
    ]


def test_betas_are_joined():
    """Betas travel as one header, each once, and come back as options (field bug 59)."""
    call = encode(provider_options={NAME: {"betas": ["a", "b", "a"]}})
    request = decode(headers={"Anthropic-Beta": "a, b", "anthropic-version": "2023-06-01"})

    assert call.headers["anthropic-beta"] == "a,b"
    assert request.provider_options[NAME] == {"betas": ["a", "b"], "version": "2023-06-01"}
    assert encode_request(request).headers == {
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "a,b",
    }


def test_token_counting_has_no_output_limit():
    """A count request is the same body at another path, without `max_tokens`."""
    request = decode(path="/v1/messages/count_tokens", model="m")
    call = encode_request(request)

    assert call.path == "/v1/messages/count_tokens"
    assert "max_tokens" not in call.body


def test_model_in_the_path():
    """On Vertex the model is in the path, and not in the body."""
    path = "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@1:rawPredict"
    request = decode(path=path, anthropic_version="vertex-2023-10-16", max_tokens=5)
    call = encode_request(request)

    assert request.model == "claude-x@1"
    assert call.path == path
    assert "model" not in call.body


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ([], "body"),
        ({}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": [5]}, "messages[0]"),
        ({"messages": [{"role": "robot", "content": ""}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "messages[0].content[0].text",
        ),
        ({"messages": [], "model": 5}, "model"),
        ({"messages": [], "max_tokens": "many"}, "max_tokens"),
        ({"messages": [], "temperature": True}, "temperature"),
        ({"messages": [], "stop_sequences": ["a", 1]}, "stop_sequences"),
        ({"messages": [], "system": 5}, "system"),
        ({"messages": [], "metadata": {"user_id": 5}}, "metadata.user_id"),
    ],
)
def test_wrong_types_name_their_path(body, path):
    """What cannot be read is a 400 that says where."""
    with pytest.raises(InvalidRequestError) as caught:
        decode_request(WireCall(body=body))

    assert str(caught.value).startswith(f"{path}:")
    assert caught.value.status_code == 400


def test_input_is_not_changed():
    """Encoding leaves the caller's own objects as they were."""
    arguments = {"a": [1]}
    call = ToolCall(id="t", name="f", arguments=arguments)
    request = Request(
        model="m",
        messages=[Message.assistant([Text(text="x"), call]), Message.user(Image(url="u"))],
    )

    body = encode_request(request).body
    body["messages"][0]["content"][0]["text"] = "changed"

    assert request.messages[0].text == "x"
    assert arguments == {"a": [1]}


def test_profile_chooses_how_to_think():
    """A model that takes only adaptive thinking gets that mode with the effort."""
    profile = Profile(
        thinking=True, thinking_modes=("adaptive",), reasoning_efforts=("low", "high")
    )
    call = encode_request(Request(model="m", messages="x", reasoning_effort="medium"), profile)

    assert call.body["thinking"] == {"type": "adaptive"}
    assert call.body["output_config"] == {"effort": "high"}
    assert [warning.path for warning in call.warnings] == ["reasoning_effort"]


def test_minimal_effort_is_said_as_low():
    """The one word of ours that this API lacks is changed, with a warning."""
    call = encode(reasoning_effort="minimal")

    assert call.body["output_config"] == {"effort": "low"}
    assert [(w.code, w.path) for w in call.warnings] == [("effort_raised", "reasoning_effort")]


def test_profile_forbids_sampling():
    """What the model rejects is left out, with a warning each; zero is no exception."""
    request = Request(model="m", messages="x", temperature=0.0, top_k=0)
    call = encode_request(request, Profile(sampling=False))

    assert "temperature" not in call.body
    assert sorted(warning.path for warning in call.warnings) == ["temperature", "top_k"]


def test_what_coding_agents_add_is_kept():
    """A billing header as a system block, a system message in the middle, unknown beta flags.

    Field bug 104.
    """
    body = {
        "model": "m",
        "max_tokens": 5,
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cch=abc;"},
            {"type": "text", "text": "You are an agent."},
        ],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "go"},
        ],
    }
    headers = {"anthropic-beta": "known-2025-02-19,unknown-2099", "anthropic-version": "2023-06-01"}
    request = decode_request(WireCall(path="/v1/messages", body=body, headers=headers))
    call = encode_request(request)

    assert (call.body, call.headers, call.warnings) == (body, headers, ())
    assert [message.role for message in request.messages[-3:]] == ["user", "system", "user"]
