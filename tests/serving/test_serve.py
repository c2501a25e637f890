"""The server side of each dialect and the operations of its client are inverse."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua import dialects
from interlingua.providers.operation_requests import operation_request
from interlingua.providers.operations import name_models
from interlingua.serving.application import find_route, serve_of
from interlingua.spec.contracts import NEUTRAL_PROFILE
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.operations import OperationInput, ServedModel
from interlingua.spec.request import Request
from interlingua.wire.json_text import dumps
from support.run_profile import examples

DIALECTS = dialects.names()
# Models of Bedrock are listed by another service.
LISTING = [name for name in DIALECTS if "list_models" in dialects.get(name).OPERATIONS]
ids = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=12)
limits = st.none() | st.integers(1, 10**7)
models = st.lists(
    st.builds(ServedModel, id=ids, name=ids, context_window=limits, max_output_tokens=limits),
    max_size=70,
    unique_by=lambda model: model.id,
)
REQUEST = Request(model="m", messages="Hello?")


def listed(dialect, served, size=None):
    """What a client lists that follows the pages, and how many those are."""
    operation, serve = dialects.get(dialect).OPERATIONS["list_models"], serve_of(dialect)
    call = operation.encode(None, NEUTRAL_PROFILE)
    query = {"limit": str(size), "pageSize": str(size)} if size else {}
    found, count = [], 0
    while call is not None:
        body = dumps(serve.list_models(served, {**query, **call.query}))
        found += operation.decode(200, {}, body)
        count += 1
        call = operation.next_page and operation.next_page(call, {}, body)
    return found, count


@pytest.mark.parametrize("dialect", LISTING)
@settings(max_examples=examples(60))
@given(served=models, size=st.none() | st.integers(1, 20))
def test_what_is_listed_is_read(dialect, served, size):
    """Every model once and in order, over all pages, with what the list can say of it."""
    found, _ = listed(dialect, served, size)

    assert [model.id for model in found] == [model.id for model in served]
    for told, model in zip(found, served, strict=True):
        for name in ("name", "context_window", "max_output_tokens"):
            assert getattr(told, name) in (getattr(model, name), None)
        assert serve_of(dialect).describe_model(model) == told.raw


@pytest.mark.parametrize("dialect", LISTING)
@settings(max_examples=examples(30))
@given(served=models)
def test_one_model_is_read_as_in_the_list(dialect, served):
    """The description of a model alone says what that in the list says."""
    operation, serve = dialects.get(dialect).OPERATIONS["retrieve_model"], serve_of(dialect)
    alone = [operation.decode(200, {}, dumps(serve.describe_model(each))) for each in served]

    assert alone == listed(dialect, served)[0]


@pytest.mark.parametrize(("dialect", "size"), [("anthropic_messages", 20), ("gemini_generate", 50)])
def test_pages_are_as_long_as_the_vendors(dialect, size):
    """Unless the query asks for others, up to a limit; what it cannot mean is refused."""
    served = [ServedModel(id=f"m{number}") for number in range(2500)]
    name = "limit" if dialect == "anthropic_messages" else "pageSize"
    token = "after_id" if dialect == "anthropic_messages" else "pageToken"
    serve = serve_of(dialect)

    assert listed(dialect, served)[1] == 2500 / size
    for number in (size - 1, size, size + 1):
        found, pages = listed(dialect, served[:number])
        assert (len(found), pages) == (number, 1 if number <= size else 2)
    assert listed(dialect, served, 5000)[1] == 3
    for query in ({name: "0"}, {name: "x"}, {name: "-1"}, {token: "nobody"}):
        with pytest.raises(InvalidRequestError):
            serve.list_models(served, query)


@pytest.mark.parametrize("dialect", LISTING)
def test_what_one_model_is_told(dialect):
    """What is known, and no invention where nothing is."""
    known = serve_of(dialect).describe_model(ServedModel(id="a", context_window=9))
    unknown = serve_of(dialect).describe_model(ServedModel(id="a"))

    assert 9 not in unknown.values()
    if "openai" not in dialect:  # it describes no limits
        assert 9 in known.values()


def test_lists_of_no_models():
    """Each vendor's empty form."""
    assert serve_of("anthropic_messages").list_models([], {})["first_id"] is None
    assert serve_of("gemini_generate").list_models([], {}) == {"models": []}
    assert serve_of("openai_chat").list_models([], {}) == {"object": "list", "data": []}


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "openai_chat"])
@given(tokens=st.integers(0, 10**9))
def test_a_count_is_read(dialect, tokens):
    """The number that was counted, of the request that was meant."""
    operation, serve = dialects.get(dialect).OPERATIONS["count_tokens"], serve_of(dialect)
    call = serve.counted_call(operation.encode(REQUEST, NEUTRAL_PROFILE))

    assert operation.decode(200, {}, dumps(serve.count_tokens(tokens))) == tokens
    assert dialects.get(dialect).decode_request(call).messages == REQUEST.messages


KINDS = {"list_models": "models", "retrieve_model": "model", "count_tokens": "count"}
VALUES = {"retrieve_model": OperationInput(model="maker/m"), "count_tokens": REQUEST}
BASES = {"openai_chat": "http://a.example/v1"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_operations_find_their_routes(dialect):
    """The request of a client is for the dialect that wrote it; that of an answer too."""
    signing = serve_of(dialect).SERVER.key_headers[0]
    for name in KINDS.keys() & dialects.get(dialect).OPERATIONS.keys():
        operation = dialects.get(dialect).OPERATIONS[name]
        call = operation.encode(VALUES.get(name), NEUTRAL_PROFILE)
        base = BASES.get(dialect, "http://a.example")
        request = operation_request(call, base, {}, {signing: "k"}, None)
        path = request.url.removeprefix("http://a.example").partition("?")[0]
        route = find_route(request.method, path, request.headers)

        assert route.kind == KINDS[name]
        in_path = "m" if path.endswith("/m:countTokens") else None
        assert route.model == ("maker/m" if name == "retrieve_model" else in_path)
        if dialect != "openai_responses" or name == "count_tokens":  # its models are chat's too
            assert route.dialect == dialect


def test_models_are_named_once():
    """A model that two pages list is one."""
    found = name_models([ServedModel(id="a"), ServedModel(id="b"), ServedModel(id="a")], "p")

    assert [(model.id, model.provider) for model in found] == [("a", "p"), ("b", "p")]
