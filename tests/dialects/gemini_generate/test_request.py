"""Request <-> path and body."""

import pytest
from google.genai import types

from interlingua.dialects import gemini_generate
from interlingua.spec.content import Image, Text, ToolCall
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat, ToolChoice, ToolDefinition

NAME = "gemini_generate"
VERTEX = "/v1beta1/projects/p/locations/global/publishers/google/models/"
PLAIN = "/v1beta/models/"
SCHEMA = {"type": "object", "properties": {"first_name": {"type": "string"}}}


@pytest.mark.parametrize(
    ("path", "model", "options"),
    [
        (f"{PLAIN}gemini-4-argon:generateContent", "gemini-4-argon", {}),
        (f"{PLAIN}gemini-4-argon:streamGenerateContent?alt=sse", "gemini-4-argon", {}),
        (f"{PLAIN}a%2Fb:generateContent", "a/b", {}),
        ("", "", {}),
        (
            f"{VERTEX}m:generateContent",
            "m",
            {"path": f"{VERTEX}{{model}}:generateContent"},
        ),
        (f"{PLAIN}m:countTokens", "m", {"path": f"{PLAIN}{{model}}:countTokens"}),
        ("/v1beta/cachedContents", "", {"path": "/v1beta/cachedContents"}),
        (
            f"{PLAIN}m:generateContent?key=secret&%24alt=json%3Benum-encoding%3Dint",
            "m",
            {"path": f"{PLAIN}{{model}}:generateContent?%24alt=json%3Benum-encoding%3Dint"},
        ),
    ],
)
def test_the_path_names_the_model(path, model, options):
    """The model is read from the path; an unusual path is kept as a template, keys are not."""
    request = gemini_generate.decode_request(WireCall(path=path, body={}))

    assert request.model == model
    assert request.provider_options == ({NAME: options} if options else {})


@pytest.mark.parametrize("prefix", [PLAIN, VERTEX])
@pytest.mark.parametrize("method", ["generateContent", "streamGenerateContent?alt=sse"])
def test_the_method_follows_stream(prefix, method):
    """Whether it streams is said each time, on whatever host."""
    call = WireCall(path=f"{prefix}m:generateContent", body={})
    request = gemini_generate.decode_request(call)

    encoded = gemini_generate.encode_request(request, stream=method.startswith("stream"))

    assert encoded.path == f"{prefix}m:{method}"
    assert encoded.body == {}


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini-4-argon", f"{PLAIN}gemini-4-argon:generateContent"),
        ("models/gemini-4-argon", f"{PLAIN}gemini-4-argon:generateContent"),
        ("a/b?c", f"{PLAIN}a%2Fb%3Fc:generateContent"),
    ],
)
def test_the_model_is_quoted(model, path):
    """A model's name cannot write more than its place in the path."""
    assert gemini_generate.encode_request(Request(model=model)).path == path


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{PLAIN}m:batchEmbedContents", {"requests": [{"content": {"parts": [{"text": "a"}]}}]}),
        (f"{PLAIN}m:predict", {"instances": [{"content": "a"}], "parameters": {}}),
        (f"{PLAIN}m:countTokens", {"generateContentRequest": {"contents": []}}),
        (
            "/v1beta/cachedContents",
            {"model": "models/m", "contents": [{"parts": [{"text": "a"}]}], "ttl": "300s"},
        ),
    ],
)
def test_other_operations_are_carried(path, body):
    """Embeddings, counts and caches come back as they were, to where they went."""
    request = gemini_generate.decode_request(WireCall(path=path, body=body))

    call = gemini_generate.encode_request(request)

    assert (call.path, call.body) == (path, body)


def test_unknown_fields_are_carried():
    """What this version does not know is sent on, empty and null included."""
    body = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "safetySettings": None,
        "cachedContent": "cachedContents/x",
        "labels": {"a_b": "c"},
        "new_next_year": [{}],
    }

    request = gemini_generate.decode_request(WireCall(body=body))

    assert gemini_generate.encode_request(request).body == body


def test_provider_options_win():
    """Options for this dialect are merged over the body; those of others are warned of."""
    request = Request(
        model="m",
        messages="hi",
        temperature=1.0,
        provider_options={
            NAME: {"generationConfig": {"temperature": 0.5, "imageConfig": {}}},
            "openai_chat": {"logit_bias": {}},
        },
    )

    call = gemini_generate.encode_request(request)

    assert call.body["generationConfig"] == {"temperature": 0.5, "imageConfig": {}}
    assert [warning.code for warning in call.warnings] == ["options_dropped"]


def test_the_vendors_types_take_what_we_encode():
    """A full request validates against the vendor's own models."""
    call = gemini_generate.encode_request(
        Request(
            model="gemini-4-argon",
            messages=(
                Message.system("Be brief."),
                Message.user([Text(text="hi"), Image(data=b"\x89PNG", media_type="image/png")]),
                Message.assistant([ToolCall(id="c", name="f", arguments={"a": 1})]),
                Message.tool_result("c", (Text(text="x"), Image(data=b"\xff\xd8\xff"))),
            ),
            tools=(ToolDefinition(name="f", parameters={"type": "object", "properties": {}}),),
            tool_choice=ToolChoice(mode="named", tool_name="f"),
            temperature=0.0,
            max_tokens=100,
            stop_sequences=("END",),
            reasoning_effort="low",
        )
    )

    body = call.body
    for content in [body["systemInstruction"], *body["contents"]]:
        types.Content.model_validate(content)
    types.Tool.model_validate(body["tools"][0])
    types.ToolConfig.model_validate(body["toolConfig"])
    types.GenerationConfig.model_validate(body["generationConfig"])
    assert call.warnings == ()


@pytest.mark.parametrize("body", [None, [], "x", 5])
def test_a_body_that_is_no_object(body):
    """It is refused with a 400."""
    with pytest.raises(InvalidRequestError, match="body: expected an object"):
        gemini_generate.decode_request(WireCall(body=body))


def test_nothing_is_changed():
    """Reading a request changes nothing of it; equal requests give equal bodies."""
    body = {"contents": {"parts": {"inline_data": {"mime_type": "image/png", "data": "AAE"}}}}
    call = WireCall(body=body)

    first = gemini_generate.encode_request(gemini_generate.decode_request(call))
    second = gemini_generate.encode_request(gemini_generate.decode_request(call))

    assert body == {
        "contents": {"parts": {"inline_data": {"mime_type": "image/png", "data": "AAE"}}}
    }
    assert first == second


# Settings.


def decode(config):
    return gemini_generate.decode_request(WireCall(body={"generationConfig": config}))


def encode(**fields):
    return gemini_generate.encode_request(Request(model="m", **fields))


def test_zero_is_sent_as_a_value():
    """Every sampling setting has its place, and 0 is sent (field bug 76)."""
    fields = {
        "temperature": 0,
        "top_p": 0.0,
        "top_k": 1,
        "max_tokens": 0,
        "stop_sequences": (),
        "seed": 0,
        "presence_penalty": 0.0,
        "frequency_penalty": -0.5,
    }

    config = encode(**fields).body["generationConfig"]

    assert config == {
        "temperature": 0,
        "topP": 0.0,
        "topK": 1,
        "maxOutputTokens": 0,
        "stopSequences": [],
        "seed": 0,
        "presencePenalty": 0.0,
        "frequencyPenalty": -0.5,
    }
    request = decode(config)
    assert {name: getattr(request, name) for name in fields} == fields
    assert request.provider_options == {}


@pytest.mark.parametrize(
    "config",
    [
        None,
        {},
        {"responseModalities": ["TEXT"], "temperature": None},
        {"topK": 40.0},
        {"topK": 2.5},
        {"thinkingConfig": {}},
        {"thinkingConfig": {"includeThoughts": True}},
        {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": -1}},
        {"thinkingConfig": {"thinkingLevel": "low"}},
        {"thinkingConfig": {"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}},
        {"thinkingConfig": {"thinkingLevel": 2}},
        {"thinkingConfig": {"thinkingLevel": "HIGH", "thinkingBudget": 5}},
        {"responseMimeType": "text/x.enum", "responseSchema": {"enum": ["a"]}},
        {"responseSchema": SCHEMA},
        {"responseMimeType": "application/json", "responseSchema": SCHEMA, "topP": 1},
        {
            "responseMimeType": "application/json",
            "responseSchema": SCHEMA,
            "responseJsonSchema": SCHEMA,
        },
        {"responseMimeType": "application/json", "responseJsonSchema": True},
        {"responseMimeType": "application/json"},
        {"responseMimeType": "text/plain"},
        {"imageConfig": {"aspectRatio": "1:1"}, "newNextYear": {"a": None}},
    ],
)
def test_configs_come_back_exactly(config):
    """What has no canonical form stays where it was; an empty config stays empty."""
    assert gemini_generate.encode_request(decode(config)).body == {"generationConfig": config}


@pytest.mark.parametrize(
    ("config", "form"),
    [
        ({"responseMimeType": "application/json"}, ResponseFormat(type="json")),
        ({"responseMimeType": "text/plain"}, ResponseFormat(type="text")),
        (
            {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA},
            ResponseFormat(type="json_schema", json_schema=SCHEMA),
        ),
        (
            {"responseMimeType": "application/json", "responseSchema": SCHEMA},
            ResponseFormat(
                type="json_schema", json_schema=SCHEMA, extra={NAME: {"~schema": SCHEMA}}
            ),
        ),
        (
            {"responseMimeType": "application/json", "responseSchema": {"type": "STRING"}},
            ResponseFormat(
                type="json_schema",
                json_schema={"type": "string"},
                extra={NAME: {"~schema": {"type": "STRING"}}},
            ),
        ),
    ],
)
def test_formats(config, form):
    """JSON by schema or without; a schema of ours goes out as JSON Schema."""
    assert decode(config).response_format == form
    assert encode(response_format=form).body["generationConfig"] == config


def test_schemas_of_formats_are_narrowed():
    """A constant is said as the one value there is; what cannot be checked is a warning."""
    schema = {"type": "object", "properties": {"a": {"const": "x"}, "b": {"not": {}}}}
    form = ResponseFormat(
        type="json_schema", json_schema=schema, extra={NAME: {"~schema": {"type": "OBJECT"}}}
    )
    call = encode(response_format=form)

    assert call.body["generationConfig"]["responseJsonSchema"]["properties"] == {
        "a": {"enum": ["x"]},
        "b": {"description": "(not: {})"},
    }
    assert ("schema_narrowed", "response_format.json_schema") in [
        (warning.code, warning.path) for warning in call.warnings
    ]


@pytest.mark.parametrize(
    ("fields", "thinking", "codes"),
    [
        ({"reasoning_effort": "low"}, {"thinkingLevel": "LOW"}, []),
        ({"reasoning_effort": "minimal"}, {"thinkingLevel": "MINIMAL"}, []),
        ({"reasoning_effort": "none"}, {"thinkingBudget": 0}, []),
        ({"reasoning_effort": "xhigh"}, {"thinkingLevel": "HIGH"}, ["effort_lowered"]),
        ({"thinking_budget": 0}, {"thinkingBudget": 0}, []),
    ],
)
def test_thinking(fields, thinking, codes):
    """Effort is a level, a budget is a budget; what is above the highest is lowered aloud."""
    call = encode(**fields)

    assert call.body["generationConfig"]["thinkingConfig"] == thinking
    assert [warning.code for warning in call.warnings] == codes


def test_level_wins_over_budget():
    """The API refuses both together: the level is sent, and the budget warned of."""
    call = encode(reasoning_effort="low", thinking_budget=100)

    assert call.body["generationConfig"]["thinkingConfig"] == {"thinkingLevel": "LOW"}
    assert [warning.path for warning in call.warnings] == ["thinking_budget"]


def test_levels_are_read_in_any_case():
    """The word is ours in lower case, and the wire's exact one is kept."""
    assert decode({"thinkingConfig": {"thinkingLevel": "LOW"}}).reasoning_effort == "low"
    assert decode({"thinkingConfig": {"thinkingLevel": "low"}}).reasoning_effort == "low"
    assert decode({"thinkingConfig": {"thinkingBudget": 512}}).thinking_budget == 512


def test_settings_without_a_place_warn():
    """Verbosity, user and metadata cannot be said."""
    call = encode(verbosity="low", user="u", metadata={"a": "b"})

    assert [w.code for w in call.warnings] == [
        "verbosity_dropped",
        "user_dropped",
        "metadata_dropped",
    ]


@pytest.mark.parametrize(
    ("config", "path"),
    [
        (5, "generationConfig:"),
        ({"temperature": "hot"}, "generationConfig.temperature:"),
        ({"maxOutputTokens": "5"}, "generationConfig.maxOutputTokens:"),
        ({"stopSequences": "END"}, "generationConfig.stopSequences:"),
        ({"responseMimeType": 5}, "generationConfig.responseMimeType:"),
        ({"thinkingConfig": 5}, "generationConfig.thinkingConfig:"),
        (
            {"thinkingConfig": {"thinkingBudget": "5"}},
            "generationConfig.thinkingConfig.thinkingBudget:",
        ),
    ],
)
def test_wrong_types_of_settings_name_their_path(config, path):
    """A setting that cannot be read is a 400 that says where."""
    with pytest.raises(InvalidRequestError) as caught:
        decode(config)

    assert caught.value.message.startswith(path)
