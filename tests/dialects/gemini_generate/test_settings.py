"""Sampling, format and thinking <-> `generationConfig`."""

import pytest

from interlingua.dialects import gemini_generate
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.request import Request, ResponseFormat

NAME = "gemini_generate"
SCHEMA = {"type": "object", "properties": {"first_name": {"type": "string"}}}


def decode(config):
    return gemini_generate.decode_request(WireCall(body={"generationConfig": config}))


def encode(**fields):
    return gemini_generate.encode_request(Request(model="m", **fields))


def test_field_bug_76_zero_is_a_value():
    """Every sampling setting has its place, and 0 is sent."""
    fields = {
        "temperature": 0,
        "top_p": 0.0,
        "top_k": 1,
        "n": 2,
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
        "candidateCount": 2,
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
                type="json_schema", json_schema=SCHEMA, extra={NAME: {"schema": "responseSchema"}}
            ),
        ),
    ],
)
def test_formats(config, form):
    """JSON by schema or without; a schema of ours goes out as JSON Schema."""
    assert decode(config).response_format == form
    assert encode(response_format=form).body == {"generationConfig": config}


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
def test_wrong_types_name_their_path(config, path):
    """A setting that cannot be read is a 400 that says where."""
    with pytest.raises(InvalidRequestError) as caught:
        decode(config)

    assert caught.value.message.startswith(path)
