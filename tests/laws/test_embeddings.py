"""The recorded embeddings and lists of models keep the laws of dialects."""

import json

import pytest
from msgspec.structs import replace

from interlingua import dialects
from interlingua.dialects import WireCall
from interlingua.providers.provider import find_dialect
from interlingua.providers.rows import find_provider
from interlingua.serving.application import find_route
from interlingua.spec.contracts import NEUTRAL_PROFILE
from interlingua.spec.errors import ProviderError
from interlingua.spec.operations import OperationInput
from support import corpus

pytestmark = pytest.mark.skipif(not corpus.is_here(), reason="no recordings")

ROWS = {"llamacpp": "llamacpp", "google": "gemini"}
"""The rows of hosts that have another name there."""


def recorded(name, *features):
    return [each for each in corpus.file_records(name) if {*features} <= {*each["features"]}]


def names(record):
    return record["id"]


EMBEDDED = [*recorded("openai-embeddings"), *recorded("gemini", "embeddings")]
ANSWERED = [record for record in EMBEDDED if record["status"] < 300]
LISTED = [record for record in recorded("models") if record["status"] < 300]
REFUSED = [each for each in (*EMBEDDED, *recorded("models")) if each["status"] >= 300]


def test_there_are_recordings_of_each_kind():
    """So that no law holds only because there is nothing that could break it."""
    assert len(ANSWERED) > 160
    assert len(LISTED) == 18
    assert len(REFUSED) > 15


def operation_of(record):
    """The operation with which a client would make this call."""
    if record["dialect"] == "gemini":
        variant = "embed.vertex" if record["host_provider"] == "vertex" else "embed"
        return dialects.get("gemini_generate").OPERATIONS[variant]
    row = find_provider(ROWS.get(record["host_provider"], record["host_provider"]))
    variant = (row.operations or {}).get("embed", "")
    return dialects.get("openai_chat").OPERATIONS[f"embed.{variant}".rstrip(".")]


def served(record):
    """The server side of the call, and its value."""
    path = record["path"].partition("?")[0]
    route = find_route("POST", path, {})
    value = route.operation.decode(WireCall(body=record["request_body"]), route.params)
    return route.operation, value


def meaning(body):
    """The body without differences in form: a text for a list of one, what is sent by default."""
    if "requests" in body or "instances" in body or "content" in body:
        return json.loads(
            json.dumps(body).replace('"output_dimensionality"', '"outputDimensionality"')
        )
    body = {name: value for name, value in body.items() if value is not None}
    given = body["input"]
    is_one = isinstance(given, str) or all(type(item) is int for item in given)
    body["input"] = [given] if is_one else given
    if body.get("encoding_format") == "float":
        del body["encoding_format"]
    return body


def without_defaults(body):
    """A Gemini body without the role, which is always that of a user, and models in it."""
    for item in body.get("requests", [body]):
        item.pop("model", None)
        if isinstance(item.get("content"), dict):
            item["content"].pop("role", None)
    return body["requests"][0] if len(body.get("requests", ())) == 1 else body


@pytest.mark.parametrize("record", EMBEDDED, ids=names)
def test_a_request_is_read_and_written_again(record):
    """What a server reads, a client writes; and a server reads the same from that."""
    if record["request_body"] in (None, {}):
        pytest.skip("no request was recorded")
    side, value = served(record)
    call = operation_of(record).encode(value, NEUTRAL_PROFILE)
    again = find_route("POST", call.path, {})

    sent, original = meaning(call.body), meaning(record["request_body"])
    if record["dialect"] == "gemini":
        sent, original = without_defaults(sent), without_defaults(original)
        assert call.path.partition(":")[2] in record["path"] or len(value.inputs) == 1
    else:
        assert again.operation is side
    assert sent == original
    assert again.operation.decode(call, again.params) == value


@pytest.mark.parametrize("record", ANSWERED, ids=names)
def test_a_reply_is_read_and_written_again(record):
    """Every number, every count and every other field survives."""
    operation = operation_of(record)
    body = json.dumps(record["response_body"]).encode()
    result = operation.decode(200, {}, body)
    side, value = served(record)
    if "data" in record["response_body"]:
        is_text = isinstance(record["response_body"]["data"][0]["embedding"], str)
        is_text = is_text and record["host_provider"] != "perplexity"
        value = type(value)(encoding="base64" if is_text else "float")
    written = side.encode(result, value).body

    assert len(result.embeddings) == len(vectors(record["response_body"]))
    again = operation.decode(200, {}, json.dumps(written).encode())
    assert replace(again, raw=None) == replace(result, raw=None)
    if record["host_provider"] == "perplexity":  # 8-bit integers, which the server does not write
        assert {*map(len, result.embeddings)} == {1024}
        return
    expected = record["response_body"]
    assert written == (
        {"model": "", "object": "list", **expected} if "data" in expected else expected
    )


def vectors(body):
    if "embedding" in body:
        return [body["embedding"]]
    return body.get("data") or body.get("embeddings") or body["predictions"]


@pytest.mark.parametrize("record", ANSWERED, ids=names)
def test_tokens_and_costs_are_those_of_the_host(record):
    """Where the host reports them."""
    body = record["response_body"]
    result = operation_of(record).decode(200, {}, json.dumps(body).encode())
    usage = body.get("usage") or body.get("usageMetadata") or {}
    tokens = [usage.get(name) for name in ("prompt_tokens", "total_tokens", "promptTokenCount")]
    known = [count for count in tokens if count is not None]
    if known:
        assert result.usage.input_tokens == known[0]
    if record["host_provider"] in ("openrouter", "perplexity"):
        assert result.usage.reported_cost > 0


@pytest.mark.parametrize("record", REFUSED, ids=names)
def test_an_error_is_typed(record):
    """With the status of the host, and its words."""
    host = ROWS.get(record["host_provider"], record["host_provider"])
    row = {"vertex": "gemini"}.get(host, host)
    dialect = find_dialect(find_provider(row).dialect)
    body = json.dumps(record["response_body"]).encode()
    error = dialect.decode_error(record["status"], record["response_headers"] or {}, body)

    assert isinstance(error, ProviderError)
    assert type(error) is not ProviderError
    assert error.status_code == record["status"]
    assert error.message


# Lists of models.


def models_of(record):
    row = find_provider(ROWS.get(record["host_provider"], record["host_provider"]))
    dialect = dialects.get(row.dialect)
    operation = dialect.OPERATIONS["list_models"]
    body = record["response_body"]
    models = operation.decode(200, {}, json.dumps(body).encode())
    entries = body.get("data") or body.get("models") or [body]
    return dialect, operation, models, entries


@pytest.mark.parametrize("record", LISTED, ids=names)
def test_a_list_of_models_is_read_and_written_again(record):
    """Every field of every entry survives, and the list reads the same again."""
    dialect, operation, models, entries = models_of(record)
    written = [dialect.serve.describe_model(model) for model in models]
    again = operation.decode(200, {}, json.dumps({"data": written}).encode())

    assert len(models) == len(entries)
    for entry, model, body, other in zip(entries, models, written, again, strict=True):
        assert entry.items() <= body.items()
        same = {name: getattr(model, name) for name in model.__struct_fields__}
        for name in ("raw", "extra"):
            del same[name]
        assert {name: getattr(other, name) for name in same} == same


ALONE = [record for record in LISTED if not record["path"].partition("?")[0].endswith("/models")]


def test_there_are_recordings_of_one_model():
    """So that the law below is not empty."""
    assert len(ALONE) == 2


@pytest.mark.parametrize("record", ALONE, ids=names)
def test_one_model_is_asked_for_and_read_as_recorded(record):
    """The call is the recorded one, and the reply says what a list with it would say."""
    dialect, _, (expected,), (entry,) = models_of(record)
    operation = dialect.OPERATIONS["retrieve_model"]
    call = operation.encode(OperationInput(model=entry["id"]), NEUTRAL_PROFILE)

    assert (call.method, call.path) == (record["method"], record["path"])
    assert operation.decode(200, {}, json.dumps(entry).encode()) == expected
    route = find_route(call.method, call.path, {})
    assert (route.kind, route.model) == ("model", entry["id"])


LIVE = {
    "anthropic": {
        *("context_window", "max_output_tokens", "input_modalities"),
        *("supports_reasoning", "supports_structured_output"),
    },
    "google": {"context_window", "max_output_tokens", "supports_reasoning"},
    "groq": {
        *("context_window", "max_output_tokens", "input_modalities", "output_modalities"),
        *("supports_tools", "supports_reasoning", "supports_structured_output"),
        *("input_cost_per_million", "output_cost_per_million"),
    },
    "llamacpp": {"context_window"},
    "mistral": {"context_window", "input_modalities", "supports_tools"},
    "openrouter": {
        *("context_window", "max_output_tokens", "input_modalities", "output_modalities"),
        *("supports_tools", "supports_reasoning", "supports_structured_output"),
        *("input_cost_per_million", "output_cost_per_million"),
    },
}
FACTS = frozenset().union(*LIVE.values())


@pytest.mark.parametrize("host", [*LIVE, "openai", "deepseek", "cerebras"])
def test_what_hosts_say_about_their_models_is_read(host):
    """Each fact that a host has in its list; the others stay unknown."""
    models = [
        model
        for record in LISTED
        if record["host_provider"] == host
        for model in models_of(record)[2]
    ]
    known = {name for name in FACTS for model in models if getattr(model, name) is not None}

    assert known == LIVE.get(host, set())
    assert all(model.id and not model.id.startswith("models/") for model in models)


def test_prices_and_limits_of_a_recorded_model():
    """In dollars per million tokens."""
    (record,) = [each for each in LISTED if each["host_provider"] == "groq"]
    (model,) = [each for each in models_of(record)[2] if each.id == "openai/gpt-oss-20b"]

    assert (model.input_cost_per_million, model.output_cost_per_million) == (0.075, 0.3)
    assert (model.context_window, model.max_output_tokens) == (131072, 65536)
    assert model.supports_tools
    assert model.input_modalities == ("text",)
    assert model.created_at is None
