"""The bodies of embeddings, rankings and moderations, as each host wants them."""

import contextlib
import json
from typing import get_args

import pydantic
import pytest
from google.genai import types as genai_types
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openai.types import (
    CreateEmbeddingResponse,
    ModerationCreateResponse,
    embedding_create_params,
    moderation_create_params,
)

from interlingua import dialects
from interlingua.dialects import WireCall
from interlingua.errors import DecodeError, InvalidRequestError, UnsupportedError
from interlingua.serving.application import find_route
from interlingua.simulator.operations import modalities
from interlingua.spec.content import Audio, Image, Text
from interlingua.spec.contracts import NEUTRAL_PROFILE
from interlingua.spec.modalities.embeddings import EmbedInput, TaskType
from interlingua.spec.modalities.judgements import ModerateInput, RerankInput

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
TASKS = get_args(TaskType)
SIMULATED = {
    "embed": modalities.embed,
    "moderate": modalities.moderate,
    "rerank": modalities.rerank,
}
HOSTS = {
    "openai": ("openai_chat", "embed", "text-embedding-3-small"),
    "responses": ("openai_responses", "embed", "text-embedding-3-small"),
    "float": ("openai_chat", "embed.float", "m"),
    "mistral": ("openai_chat", "embed.mistral", "mistral-embed"),
    "voyage": ("openai_chat", "embed.voyage", "voyage-3.5"),
    "jina": ("openai_chat", "embed.jina", "jina-embeddings-v3"),
    "perplexity": ("openai_chat", "embed.perplexity", "pplx-embed-v1"),
    "cohere": ("openai_chat", "embed.cohere", "embed-v4.0"),
    "gemini": ("gemini_generate", "embed", "gemini-embedding-001"),
    "gemini 2": ("gemini_generate", "embed", "gemini-embedding-2"),
    "vertex": ("gemini_generate", "embed.vertex", "text-embedding-005"),
    "vertex 2": ("gemini_generate", "embed.vertex", "gemini-embedding-2"),
}


def operation(host):
    dialect, name, model = HOSTS[host]
    return dialects.get(dialect).OPERATIONS[name], model


def encode(host, *inputs, **fields):
    found, model = operation(host)
    return found.encode(EmbedInput(model=model, inputs=inputs, **fields), NEUTRAL_PROFILE)


def answer(call):
    """What the simulator answers to a call."""
    path = f"/v1/{call.path.lstrip('./')}" if "../" in call.path else call.path
    route = find_route("POST", path.replace("/v1/v2/", "/v2/"), {})
    value = route.operation.decode(call, route.params)
    result = SIMULATED[route.operation.name](value)
    return value, route.operation.encode(result, value).body


BODIES = [
    ("openai", {"input": ["a"], "dimensions": 3, "encoding_format": "base64", "user": "u"}),
    ("responses", {"input": ["a"], "dimensions": 3, "encoding_format": "base64", "user": "u"}),
    ("float", {"input": ["a"], "dimensions": 3, "user": "u"}),
    ("mistral", {"input": ["a"], "output_dimension": 3, "encoding_format": "base64"}),
    (
        "voyage",
        {
            "input": ["a"],
            "output_dimension": 3,
            "encoding_format": "base64",
            "input_type": "query",
        },
    ),
    (
        "jina",
        {"input": ["a"], "dimensions": 3, "embedding_type": "base64", "task": "retrieval.query"},
    ),
    ("perplexity", {"input": ["a"], "dimensions": 3}),
    (
        "cohere",
        {
            "texts": ["a"],
            "output_dimension": 3,
            "embedding_types": ["base64"],
            "input_type": "search_query",
        },
    ),
    (
        "gemini",
        {
            "content": {"parts": [{"text": "a"}]},
            "taskType": "RETRIEVAL_QUERY",
            "outputDimensionality": 3,
        },
    ),
    (
        "gemini 2",
        {
            "content": {"parts": [{"text": "task: search result | query: a"}]},
            "outputDimensionality": 3,
        },
    ),
    (
        "vertex",
        {
            "instances": [{"content": "a", "task_type": "RETRIEVAL_QUERY"}],
            "parameters": {"outputDimensionality": 3},
        },
    ),
    (
        "vertex 2",
        {
            "content": {"parts": [{"text": "task: search result | query: a"}]},
            "embedContentConfig": {"outputDimensionality": 3},
        },
    ),
]


@pytest.mark.parametrize(("host", "body"), BODIES, ids=[host for host, _ in BODIES])
def test_the_body_of_each_host(host, body):
    """With all settings; the ones that a host does not have are named in warnings."""
    call = encode(host, "a", dimensions=3, task="query", user="u")
    model = {} if host.startswith(("gemini", "vertex")) else {"model": HOSTS[host][2]}
    lost = {warning.path for warning in call.warnings}

    assert call.body == {**model, **body}
    assert lost == {
        name
        for name, is_there in (
            ("user", "user" in body),
            ("task", "query" in json.dumps(body).lower()),
        )
        if not is_there
    }


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("task", [None, *TASKS])
def test_a_server_reads_what_a_client_writes(host, task):
    """The same value, and vectors in the same order; a task that a host lacks has a warning."""
    found, model = operation(host)
    inputs = ("one", "two") if host != "vertex 2" else ("one",)
    value = EmbedInput(model=model, inputs=inputs, dimensions=5, task=task, encoding="base64")
    call = found.encode(value, NEUTRAL_PROFILE)
    read, body = answer(call)
    result = found.decode(200, {}, json.dumps(body).encode())

    is_in_text = model == "gemini-embedding-2" and task is not None
    is_lost = any(warning.path == "task" for warning in call.warnings)
    assert (read.task == (task or read.task)) is not is_lost or is_in_text
    assert read.dimensions == 5
    assert len(result.embeddings) == len(inputs)
    assert all(len(vector) == 5 for vector in result.embeddings)
    assert result.usage.input_tokens > 0
    if is_in_text:
        assert read.inputs[0].endswith("one")
        assert read.inputs[0] != "one"
    else:
        assert read.inputs == inputs


@pytest.mark.parametrize("host", ["cohere", "gemini 2", "jina", "voyage", "vertex 2"])
def test_a_server_reads_images(host):
    """As bytes, and by URL where they are sent so."""
    found, model = operation(host)
    for image in (
        Image(data=PNG, media_type="image/png"),
        Image(url="https://example.com/a.png", media_type="image/png"),
    ):
        value = EmbedInput(model=model, inputs=((image,),))
        read, _ = answer(found.encode(value, NEUTRAL_PROFILE))
        ((part,),) = read.inputs
        assert (part.data, part.url) == (image.data, image.url)


@pytest.mark.parametrize("host", [host for host in HOSTS if host not in ("gemini 2", "vertex 2")])
def test_audio_is_refused(host):
    """Before anything is sent."""
    with pytest.raises(UnsupportedError):
        encode(host, (Audio(data=b"abc", media_type="audio/wav"),))


@pytest.mark.parametrize("host", HOSTS)
def test_provider_options_come_last(host):
    """They replace what was encoded, in every request of a batch."""
    dialect = HOSTS[host][0]
    call = encode(host, "a", provider_options={dialect: {"truncation": False}})

    assert call.body["truncation"] is False


def test_options_are_in_each_request_of_a_batch():
    """As a title is."""
    call = encode("gemini", "a", "b", provider_options={"gemini_generate": {"title": "t"}})

    assert [request["title"] for request in call.body["requests"]] == ["t", "t"]


def test_settings_that_differ_in_a_batch_survive():
    """They are kept with each input."""
    body = {
        "requests": [
            {"content": {"parts": [{"text": "a"}]}, "taskType": "CLUSTERING", "title": "t"},
            {"content": {"parts": [{"text": "b"}]}, "taskType": "TASK_OF_NEXT_YEAR"},
        ]
    }
    route = find_route("POST", "/v1beta/models/gemini-embedding-001:batchEmbedContents", {})
    value = route.operation.decode(WireCall(body=body), route.params)
    call = operation("gemini")[0].encode(value, NEUTRAL_PROFILE)

    expected = [{"model": "models/gemini-embedding-001", **each} for each in body["requests"]]
    assert call.body == {"requests": expected}


# The vendors' types.


def test_the_vendors_types_accept_what_is_sent():
    """Strictly: each field has the type that the SDK says."""
    strict = pydantic.ConfigDict(strict=True, extra="forbid")
    openai_body = pydantic.TypeAdapter(embedding_create_params.EmbeddingCreateParams)
    for inputs in (("a", "b"), ((1, 2), (3,))):
        body = encode("openai", *inputs, dimensions=3, user="u").body
        openai_body.validate_json(json.dumps(body), strict=True)
        assert body.keys() <= embedding_create_params.EmbeddingCreateParams.__annotations__.keys()

    class Body(genai_types.EmbedContentConfig):
        model_config = strict
        content: genai_types.Content

    single = encode("gemini", "a", dimensions=3, task="document").body
    Body.model_validate_json(json.dumps(single))
    batch = encode("gemini 2", "a", (Text(text="b"), Image(data=PNG)), dimensions=3).body
    for request in batch["requests"]:
        assert request.pop("model") == "models/gemini-embedding-2"
        Body.model_validate_json(json.dumps(request))


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_the_vendors_types_accept_what_a_server_sends(encoding):
    """The reply has every field that the SDK needs."""
    _, body = answer(encode("openai", "a", "b", encoding=encoding))
    if encoding == "float":  # the SDK unpacks base64 before it checks
        CreateEmbeddingResponse.model_validate(body, strict=True)
    _, single = answer(encode("gemini", "a"))
    genai_types.ContentEmbedding.model_validate(single["embedding"], strict=True)
    assert {*body} == {"object", "data", "model", "usage"}


def test_moderation_and_the_vendors_types():
    """Texts, and one input of text and image."""
    found = dialects.get("openai_responses").OPERATIONS["moderate"]
    judge = pydantic.TypeAdapter(moderation_create_params.ModerationCreateParams)
    for inputs in (
        ("a",),
        ("a", "b"),
        ((Text(text="a"), Image(data=PNG, media_type="image/png")),),
    ):
        value = ModerateInput(model="omni-moderation-latest", inputs=inputs)
        call = found.encode(value, NEUTRAL_PROFILE)
        judge.validate_json(json.dumps(call.body), strict=True)
        read, body = answer(call)
        assert read.inputs == inputs
        ModerationCreateResponse.model_construct(**body)
        assert len(found.decode(200, {}, json.dumps(body).encode()).results) == len(inputs)


@pytest.mark.parametrize(
    ("variant", "path", "limit"),
    [
        ("rerank", "/rerank", "top_n"),
        ("rerank.jina", "/rerank", "top_n"),
        ("rerank.voyage", "/rerank", "top_k"),
        ("rerank.cohere", "../../v2/rerank", "top_n"),
    ],
)
def test_the_body_of_a_ranking(variant, path, limit):
    """And its reply, whichever form that has."""
    found = dialects.get("openai_chat").OPERATIONS[variant]
    value = RerankInput(model="m", query="red car", documents=("a", "a red car"), top_n=1)
    call = found.encode(value, NEUTRAL_PROFILE)
    read, body = answer(call)
    result = found.decode(200, {}, json.dumps(body).encode())

    assert call.path == path
    assert call.body == {
        "model": "m",
        "query": "red car",
        "documents": ["a", "a red car"],
        limit: 1,
    }
    assert (read.query, read.documents, read.top_n) == ("red car", value.documents, 1)
    assert [(each.index, each.score) for each in result.documents] == [(1, 1.0)]


HOSTILE = [
    b"",
    b"null",
    b"[]",
    b"3",
    b'"a"',
    b"{}",
    b'{"data": 3}',
    b'{"data": [3]}',
    b'{"data":[{}]}',
]
HOSTILE += [b'{"embeddings": [null]}', b'{"embedding": {"values": ["a"]}}', b'{"predictions": [1]}']
HOSTILE += [
    b'{"results": [{"index": true}]}',
    b'{"results": [null]}',
    b'{"embeddings": {"float": 1}}',
]


@pytest.mark.parametrize("body", HOSTILE)
@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "gemini_generate"])
def test_a_reply_that_is_none_is_a_typed_error(name, body):
    """Of every operation of this file."""
    table = dialects.get(name).OPERATIONS
    for key, found in table.items():
        if key.startswith(("embed", "rerank", "moderate")):
            with pytest.raises(DecodeError):
                found.decode(200, {}, body)


@pytest.mark.parametrize("body", [None, [], {}, {"input": 3}, {"inputs": [3]}, {"requests": [3]}])
@pytest.mark.parametrize(
    "path",
    [
        *("/v1/embeddings", "/v1/multimodalembeddings", "/v2/embed", "/v1/rerank", "/v2/rerank"),
        *(
            "/v1/moderations",
            "/v1beta/models/m:embedContent",
            "/v1beta/models/m:batchEmbedContents",
        ),
        "/v1/models/text-embedding-5:predict",
    ],
)
def test_a_request_that_is_none_is_refused(path, body):
    """With 400."""
    route = find_route("POST", path, {})
    with pytest.raises(InvalidRequestError) as caught:
        route.operation.decode(WireCall(body=body), route.params)
    assert caught.value.status_code == 400


@pytest.mark.parametrize(
    ("indexes", "order"),
    [((2, 0, 1), [2, 3, 1]), ((0, 0, 0), [1, 2, 3]), ((None, None, None), [1, 2, 3])],
)
def test_vectors_have_the_order_of_their_indexes(indexes, order):
    """A host may send them in any order; one that does not number them sends them in order."""
    rows = [
        {"index": index, "embedding": [value]}
        for index, value in zip(indexes, (1.0, 2.0, 3.0), strict=True)
    ]
    result = operation("openai")[0].decode(200, {}, json.dumps({"data": rows}).encode())

    assert [vector[0] for vector in result.embeddings] == order


KEYS = [
    *("data", "embedding", "embeddings", "index", "values", "predictions", "statistics", "usage"),
    *("results", "relevance_score", "document", "meta", "billed_units", "categories", "flagged"),
    *("input", "inputs", "requests", "instances", "content", "parts", "text", "texts", "image"),
    *("type", "image_url", "documents", "query", "taskType", "dimensions", "parameters", "model"),
    *("id", "name", "created", "created_at", "pricing", "prompt", "capabilities", "thinking"),
    *(
        "usageMetadata",
        "promptTokenDetails",
        "token_count",
        "float",
        "base64",
        "input_type",
        "cost",
    ),
]
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
)
bodies = st.recursive(
    leaves | st.sampled_from(["text", "image_url", "AAAA", "https://a.example", "1e999"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)
PATHS = [
    *("/v1/embeddings", "/v1/multimodalembeddings", "/v2/embed", "/v1/rerank", "/v2/rerank"),
    *("/v1/moderations", "/v1beta/models/m:embedContent", "/v1beta/models/m:batchEmbedContents"),
    "/v1/models/text-embedding-5:predict",
]


@given(bodies)
@example([{"content": {"parts": [{"text": "a"}]}, "taskType": []}])
@example({"content": {"parts": [{"text": "a"}]}, "taskType": [], "outputDimensionality": {}})
@example({"results": [{"index": 0, "relevance_score": 10**400}]})
@example({"results": [{"flagged": True, "category_scores": {"a": 10**400}}]})
@example({"data": [{"id": "m", "created": 10**400, "pricing": {"prompt": 10**400}}]})
@example({"input": ["a"], "dimensions": 10**9})
@settings(max_examples=300)
def test_only_typed_errors_escape(body):
    """From any reply on the client's side, and from any request on the server's."""
    data = json.dumps(body).encode()
    for name in ("openai_chat", "gemini_generate", "anthropic_messages"):
        for key, found in dialects.get(name).OPERATIONS.items():
            if key.startswith(("embed", "rerank", "moderate", "list_models")):
                with contextlib.suppress(DecodeError):
                    found.decode(200, {}, data)
    for path in PATHS:
        route = find_route("POST", path, {})
        with contextlib.suppress(InvalidRequestError):
            route.operation.decode(WireCall(body=body), route.params)
