"""Every recorded exchange about batches decodes, and encodes to the same meaning, on both sides."""

import json
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import dialects
from interlingua.dialects.anthropic_messages import batches as anthropic_batches
from interlingua.dialects.gemini_generate import batches as gemini_batches
from interlingua.dialects.openai_chat import mistral_batches
from interlingua.dialects.openai_shared import batches as openai_batches
from interlingua.dialects.openai_shared import xai_batches
from interlingua.errors import SDKError, StreamError
from interlingua.serving.application import find_route
from interlingua.spec.contracts import NEUTRAL_PROFILE, WireCall
from interlingua.spec.errors import AbortError, ProviderTimeoutError
from interlingua.spec.modalities.batch import (
    Batch,
    BatchInput,
    BatchQuery,
    BatchReply,
    BatchSubmission,
    ServedBatch,
)
from interlingua.spec.operations import OperationReply
from interlingua.wire.batches import cancelled, expired
from support.corpus import DIALECT_OF_HOST, KEY_OF_HOST, file_records

with_corpus = pytest.mark.skipif(not file_records("batches"), reason="no corpus")
# In the other dialect of OpenAI, base URLs have the version.
CLIENTS = {**DIALECT_OF_HOST, "openai": "openai_responses"}
MODULES = {"openai": openai_batches, "anthropic": anthropic_batches, "google": gemini_batches}


RECORDS = file_records("batches")
REPLIES = [each for each in RECORDS if each["response_body"] is not None]
RESULTS = [each for each in RECORDS if each["response_text"] is not None]
SUBMISSIONS = [each for each in RECORDS if each["request_body"]]


def every(found):
    return pytest.mark.parametrize("record", found, ids=lambda record: record["id"][-44:])


def operation_of(record):
    path = record["path"].partition("?")[0]
    if record["method"] == "POST":
        return "cancel_batch" if path.endswith("cancel") else "submit_batch"
    if path.endswith("/results"):
        return "batch_results"
    return "list_batches" if path.endswith("batches") else "retrieve_batch"


def test_the_corpus_is_covered():
    """Each record is an exchange of one of these laws."""
    if not RECORDS:
        pytest.skip("no corpus")
    assert len(RECORDS) == len(REPLIES) + len(RESULTS) == 19
    assert {operation_of(each) for each in RECORDS} == {
        *("submit_batch", "cancel_batch", "list_batches", "retrieve_batch", "batch_results")
    }


@with_corpus
@every(REPLIES)
def test_a_batch_round_trips(record):
    """What is decoded of a batch encodes to the same object, with every field."""
    module, body = MODULES[record["host_provider"]], record["response_body"]
    rows = body["data"] if operation_of(record) == "list_batches" else [body]
    for row in rows:
        batch = module.read_batch(row)
        assert batch.id
        assert module.write_batch(ServedBatch(batch=batch)) == row
        assert module.read_batch(module.write_batch(ServedBatch(batch=batch))) == batch


@with_corpus
@every(RECORDS)
def test_the_route_is_found(record):
    """The server side knows every recorded request, and decodes it."""
    host, path = record["host_provider"], urlsplit(record["path"])
    body = record["request_body"]
    route = find_route(record["method"], path.path, KEY_OF_HOST[host])
    assert (route.dialect, route.operation.name) == (DIALECT_OF_HOST[host], operation_of(record))
    call = WireCall(
        method=record["method"], path=path.path, query=dict(parse_qsl(path.query)), body=body
    )
    value = route.operation.decode(call, route.params)
    assert isinstance(
        value, BatchSubmission if operation_of(record) == "submit_batch" else BatchQuery
    )


def our_call(record, value):
    """The calls of our client for this operation; the replies are those of the recording."""
    dialect = dialects.get(CLIENTS[record["host_provider"]])
    operation = dialect.OPERATIONS[operation_of(record)]
    if operation.encode is not None:
        return [operation.encode(value, NEUTRAL_PROFILE)]
    calls, script = [], operation.script(value, NEUTRAL_PROFILE)
    replies = [b'{"id": "FILE", "name": "FILE"}', json.dumps(record["response_body"]).encode()]
    try:
        calls.append(next(script))
        while True:
            is_upload = bool(calls[-1].form)
            reply = OperationReply(200, {}, replies[0 if is_upload else 1])
            calls.append(script.send(reply))
    except StopIteration as end:
        assert isinstance(end.value, Batch)
    return calls


@with_corpus
@every([each for each in RECORDS if each["request_body"] is None])
def test_our_client_asks_as_recorded(record):
    """The method and the path are those of the recording."""
    path = urlsplit(record["path"])
    batch_id = path.path.removesuffix("/cancel").removesuffix("/results").rpartition("/")[2]
    value = BatchQuery(id=batch_id, output=path.path)
    (call,) = our_call(record, value)
    assert (call.method, call.path) == (record["method"], path.path)


def content_of(record, module):
    """The recorded requests as our client writes them, from the bytes of each body."""
    body = record["request_body"]
    if record["host_provider"] == "anthropic":
        operation = module.OPERATIONS["submit_batch"]
        items = [(each["custom_id"], each["params"]) for each in body["requests"]]
    else:
        operation = module.OPERATIONS["submit_batch"]
        rows = body["batch"]["inputConfig"]["requests"]["requests"]
        items = [(str(index), each["request"]) for index, each in enumerate(rows)]
    form = operation.formats[0]
    head, tail = form.envelope(BatchInput())
    pieces = []
    for item_id, params in items:
        before, after = form.wrap(item_id)
        pieces.append(before + json.dumps(params).encode() + after)
    return head + form.separator.join(pieces) + tail


@with_corpus
@every([each for each in SUBMISSIONS if each["host_provider"] != "openai"])
def test_our_client_submits_as_recorded(record):
    """The body that our client writes item by item is the recorded one, in meaning."""
    module = MODULES[record["host_provider"]]
    written = json.loads(content_of(record, module))
    expected = record["request_body"]
    if record["host_provider"] == "google":  # the recorded client gave no keys, ours always does
        rows = expected["batch"]["inputConfig"]["requests"]["requests"]
        for index, row in enumerate(rows):
            row["metadata"] = {"key": str(index)}
    assert written == expected


@with_corpus
@every([each for each in SUBMISSIONS if each["host_provider"] == "openai"])
def test_our_client_creates_as_recorded(record):
    """The call after the upload is the recorded one, but for the id and the endpoint."""
    upload, create = our_call(record, BatchInput(content=b"{}\n"))
    assert upload.path == "/v1/files"
    assert (create.method, create.path) == (record["method"], record["path"])
    known = {"input_file_id": "FILE", "endpoint": "/v1/responses"}
    assert create.body == {**record["request_body"], **known}


@with_corpus
@every(RESULTS)
def test_results_decode_wherever_they_are_cut(record):
    """Any chunks give the same replies, which are written again with the same meaning."""
    data, module = record["response_text"].encode(), MODULES[record["host_provider"]]
    whole = decode(module, [data])
    assert [reply.id for reply in whole] == ["0", "1"]
    for size in (1, 2, 7, 64, 1000):
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        assert decode(module, pieces) == whole
    lines = [json.loads(line) for line in data.splitlines() if line.strip()]
    assert [module.write_reply(reply) for reply in whole] == lines
    for end in range(1, data.index(b"\n"), 13):
        with pytest.raises(StreamError):
            decode(module, [data[:end]])


def decode(module, chunks):
    decoder = module.OPERATIONS["batch_results"].stream_decoder(BatchQuery())
    replies = [reply for chunk in chunks for reply in decoder.feed(chunk)]
    return replies + decoder.finish()


# Replies of every kind, in every format.

REPLY_FORMS = {
    "openai": (openai_batches.write_reply, openai_batches.read_reply),
    "anthropic": (anthropic_batches.write_reply, anthropic_batches.read_reply),
    "gemini": (
        lambda reply: {"key": reply.id, **gemini_batches._write_reply(reply)},
        gemini_batches.read_reply,
    ),
    "xai": (xai_batches.write_reply, xai_batches.read_reply),
}
ERRORS = {
    "openai": {"error": {"message": "m", "type": "t", "code": None}},
    "anthropic": {"type": "error", "error": {"type": "rate_limit_error", "message": "m"}},
    "gemini": {"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED"}},
    "xai": {"error": {"code": 8, "message": "m"}},
}


@pytest.mark.parametrize("form", REPLY_FORMS)
@given(item_id=st.text(min_size=1, max_size=30), kind=st.sampled_from(("ok", "429", "late", "end")))
def test_replies_round_trip(form, item_id, kind):
    """Answers, failures, expired and cancelled requests are read as they were written."""
    write, read = REPLY_FORMS[form]
    reply = {
        "ok": BatchReply(id=item_id, body={"answer": 1}),
        "429": BatchReply(id=item_id, status=429, body=ERRORS[form]),
        "late": BatchReply(id=item_id, error=expired()),
        "end": BatchReply(id=item_id, error=cancelled()),
    }[kind]
    again = read(json.loads(json.dumps(write(reply))), 0)
    assert (again.id, again.status, again.body) == (reply.id, reply.status, reply.body)
    assert type(again.error) is type(reply.error)


@pytest.mark.parametrize("form", REPLY_FORMS)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    (
                        *("custom_id", "key", "response", "error", "result", "type", "code"),
                        *("metadata", "batch_request_id", "batch_result", "error_message"),
                        *("chat_get_completion", "message"),
                    )
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_only_our_errors_escape(form, value):
    """Whatever a line is, it is a reply or one of our errors."""
    try:
        reply = REPLY_FORMS[form][1](value, 0)
    except SDKError:
        return
    assert isinstance(reply, BatchReply)
    assert reply.error is None or isinstance(reply.error, (AbortError, ProviderTimeoutError))


MISTRAL = {
    "id": "b9c2",
    "object": "batch",
    "input_files": ["f1"],
    "metadata": {"a": "b"},
    "endpoint": "/v1/chat/completions",
    "model": "mistral-small-latest",
    "output_file": "f2",
    "error_file": "f3",
    "errors": [{"message": "m", "count": 2}],
    "status": "SUCCESS",
    "created_at": 1,
    "total_requests": 5,
    "completed_requests": 5,
    "succeeded_requests": 3,
    "failed_requests": 2,
    "started_at": 2,
    "completed_at": 3,
}


def test_a_job_of_mistral_round_trips():
    """As documented; there is no recording."""
    batch = mistral_batches.read_job(MISTRAL)
    assert (batch.state, batch.outputs, batch.counts.succeeded) == ("completed", ("f2", "f3"), 3)
    assert batch.faults[0].message == "m"
    assert mistral_batches.write_job(ServedBatch(batch=batch)) == MISTRAL
