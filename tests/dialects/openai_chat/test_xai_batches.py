"""Batches at xAI: states that follow from counts, and results that are pages of JSON."""

import asyncio
import json
from urllib.parse import parse_qsl, urlsplit

import openai
import pytest
from msgspec.structs import replace

from interlingua import Client, batch
from interlingua.dialects import Operation, WireCall
from interlingua.dialects.openai_shared.xai_batches import (
    read_batch,
    read_reply,
    write_batch,
    write_reply,
)
from interlingua.errors import (
    AbortError,
    AuthenticationError,
    DecodeError,
    InvalidRequestError,
    ProviderTimeoutError,
    ServerError,
    UnsupportedError,
)
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, serve_in_thread
from interlingua.spec.modalities.batch import (
    Batch,
    BatchCounts,
    BatchFault,
    BatchQuery,
    BatchReply,
    ServedBatch,
)
from interlingua.spec.modalities.files import UploadInput
from interlingua.transport import CannedReply, CannedTransport
from support.batches import answer, client_for, collect, faulty, finish, reply, with_client
from support.forms import read_form

MODEL = "xai:grok-4.3"

# https://docs.x.ai/developers/rest-api-reference/inference/batches
BATCH = {
    "batch_id": "batch_1934e8b5",
    "name": "My New Batch",
    "create_time": "2026-11-11",
    "expire_time": "2026-11-12T10:00:00.250000Z",
    "create_api_key_id": "key-1",
    "cancel_time": None,
    "cancel_by_xai_message": None,
    "state": {
        "num_requests": 3,
        "num_pending": 0,
        "num_success": 2,
        "num_error": 1,
        "num_cancelled": 0,
    },
    "cost_breakdown": {"total_cost_usd_ticks": 1234},
}
FILE = {"id": "file_1", "object": "file", "filename": "batch.jsonl", "bytes": 1}
COMPLETION = {
    "id": "c-1",
    "object": "chat.completion",
    "created": 1762801725,
    "model": "grok-4.3",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "303", "refusal": None},
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 10,
        "completion_tokens": 3,
        "total_tokens": 14,
        "completion_tokens_details": {"reasoning_tokens": 1},
        "cost_in_usd_ticks": 123_000_000,
    },
}


def counted(requests=0, pending=0, success=0, error=0, cancelled=0, **fields):
    names = ("requests", "pending", "success", "error", "cancelled")
    figures = zip(names, (requests, pending, success, error, cancelled), strict=True)
    return {**BATCH, "state": {f"num_{name}": figure for name, figure in figures}, **fields}


def answered(item_id, **result):
    response = {"response": {"chat_get_completion": COMPLETION}}
    return {"batch_request_id": item_id, "batch_result": {**response, **result}}


def failed(item_id, error=None, **fields):
    return {"batch_request_id": item_id, "batch_result": {"error": error}, **fields}


# Batches.


@pytest.mark.parametrize(
    ("value", "state"),
    [
        (counted(), "queued"),
        ({**BATCH, "state": {}}, "queued"),
        ({**BATCH, "state": None}, "queued"),
        (counted(3, 3), "in_progress"),
        (counted(3, 1, 2), "in_progress"),
        ({**BATCH, "state": {"num_requests": 3}}, "in_progress"),
        (counted(3, 0, 2, 1), "completed"),
        (counted(3, 0, 0, 3), "completed"),
        (counted(3, 2, 1, cancel_time="2026-11-11"), "cancelling"),
        (counted(3, 0, 1, 0, 2, cancel_time="2026-11-11"), "cancelled"),
        (counted(3, 0, 0, 0, 3), "cancelled"),
        (counted(cancel_time="2026-11-11"), "cancelled"),
        (counted(cancel_time="2026-11-11", cancel_by_xai_message="No such model."), "failed"),
    ],
)
def test_the_state_follows_from_counts_and_times(value, state):
    """xAI has no word for it; a batch whose file it has not read yet has only zeros."""
    read = read_batch(value)

    assert read.state == state
    assert write_batch(ServedBatch(batch=read)) == value
    assert read_batch(write_batch(ServedBatch(batch=read))) == read


def test_a_batch_is_read():
    """Its counts, its times, and where its results are; what is left is preserved."""
    read = read_batch(BATCH)

    assert read.counts == BatchCounts(total=3, succeeded=2, failed=1, cancelled=0)
    assert (read.created_at, read.expires_at) == (1794355200.0, 1794477600.25)
    assert read.outputs == ("batch_1934e8b5",)
    assert read.extra["xai"]["cost_breakdown"] == {"total_cost_usd_ticks": 1234}
    assert read_batch(counted(3, 3)).outputs == ()


def test_a_batch_that_xai_has_cancelled():
    """Its message is the fault, and reading its results raises it."""
    text = "JSONL file validation failed: Model grok-4.6 is not supported for batch processing."
    client, _ = faulty("xai", reply(counted(cancel_time="2026-11-11", cancel_by_xai_message=text)))

    async def main():
        job = await batch.status("xai:batch_1", client=client)
        with pytest.raises(InvalidRequestError, match=r"grok-4\.6 is not supported for batch"):
            await collect(job, client)
        return job

    job = asyncio.run(main())
    assert (job.state, job.faults) == ("failed", (BatchFault(message=text),))
    assert job.ended_at == 1794355200.0


@pytest.mark.parametrize("state", ["queued", "in_progress", "completed", "cancelling", "cancelled"])
def test_states_are_written(state):
    """As counts and times from which the same state is read."""
    ended = {"completed": 2, "cancelled": 1, "cancelling": 1}.get(state, 0)
    lost = 1 if state == "cancelled" else 0
    counts = BatchCounts(total=2, succeeded=ended, failed=0, cancelled=lost)
    served = Batch(id="b", state=state, counts=counts, created_at=1, ended_at=2)
    read = read_batch(write_batch(ServedBatch(batch=served)))

    assert read.state == state
    if state != "queued":
        assert read.counts == counts


@pytest.mark.parametrize("value", [None, [], {}, {"id": "batch_1"}, {"batch_id": 3}])
def test_a_reply_that_is_no_batch(value):
    """It is a typed error."""
    with pytest.raises(DecodeError):
        read_batch(value)


# Results.


def test_an_answer():
    """It is the body of a call; an error with the code 0 beside it is none."""
    for row in (answered("a"), answered("a", error={"code": 0, "message": ""})):
        read = read_reply(row, 0)
        assert (read.id, read.status, read.body, read.error) == ("a", 200, COMPLETION, None)
    assert write_reply(read_reply(answered("a"), 0)) == answered("a")


@pytest.mark.parametrize(
    ("row", "status", "message"),
    [
        (failed("a", {"code": 3, "message": "Invalid."}), 400, "Invalid."),
        (failed("a", {"code": "3", "message": "Invalid."}), 400, "Invalid."),
        (failed("a", {"code": 8, "message": "Slow down."}), 429, "Slow down."),
        (failed("a", {"code": 16, "message": "Who?"}), 401, "Who?"),
        (failed("a", {"code": 99, "message": "Odd."}), 500, "Odd."),
        (failed("a", {"message": "No code."}), 500, "No code."),
        (failed("a", "Only a text."), 500, "Only a text."),
        (failed("a", error_message="Beside it."), 500, "Beside it."),
        (failed("a", {"code": 3}, error_message="Beside it."), 400, "Beside it."),
        (failed("a", {"code": 0, "message": ""}, error_message="Both."), 500, "Both."),
        ({"batch_request_id": "a", "error_message": "No result."}, 500, "No result."),
    ],
)
def test_a_failure(row, status, message):
    """Its code is one of google.rpc.Code; the message may be in three places."""
    read = read_reply(row, 0)

    assert (read.id, read.status) == ("a", status)
    assert read.body["error"]["message"] == message


def test_a_request_that_was_cancelled_or_has_expired():
    """Both have an error of their own, which is written again."""
    for code, kind in ((1, AbortError), (4, ProviderTimeoutError)):
        read = read_reply(failed("a", {"code": code, "message": "Over."}), 0)
        assert isinstance(read.error, kind)
        assert write_reply(read)["batch_result"]["error"] == {"code": code, "message": "Over."}


@pytest.mark.parametrize(
    "row", [{"batch_request_id": "a"}, failed("a"), failed("a", {"code": 0}), {"batch_result": {}}]
)
def test_a_result_without_an_answer_and_without_an_error(row):
    """It is not taken for an answer."""
    with pytest.raises(DecodeError):
        read_reply(row, 0)


def test_failures_of_the_server_side():
    """The status of an answer in OpenAI's form becomes a code."""
    body = {"error": {"message": "m", "type": "t", "code": "rate_limit_exceeded"}}
    written = write_reply(BatchReply(id="a", status=429, body=body))

    assert written["batch_result"]["error"] == {"message": "m", "type": "t", "code": 8}
    odd = write_reply(BatchReply(id="a", status=418, body="teapot"))
    assert odd["batch_result"]["error"] == {"message": "", "code": 3}


ENDED = Batch(id="batch_1", provider="xai", state="completed", outputs=("batch_1",))


def read_results(*replies, job=ENDED):
    """The results of a batch whose pages are these, and the calls."""
    client, transport = faulty("xai", *replies)

    async def main():
        return [item async for item in batch.results(job, client=client)]

    return asyncio.run(main()), transport.requests


def page(*rows, **fields):
    return reply({"results": list(rows), **fields})


def test_results_are_read_page_by_page():
    """Until a page has no token; each answer has the facts of a call."""
    items, sent = read_results(
        page(answered("a"), failed("b", {"code": 3, "message": "No."}), pagination_token="x/y"),
        page(failed("c", {"code": 1, "message": "Cancelled."}), pagination_token=None),
    )

    assert [item.id for item in items] == ["a", "b", "c"]
    assert [type(item.error) for item in items] == [type(None), InvalidRequestError, AbortError]
    response = items[0].response
    assert (response.text, response.provider, response.request_id) == ("303", "xai", "a")
    assert response.cost.total == pytest.approx(0.0123)
    assert (response.usage.output_tokens, response.usage.service_tier) == (4, "batch")
    assert items[1].error.request_id == "b"
    assert [urlsplit(each.url).path for each in sent] == ["/v1/batches/batch_1/results"] * 2
    queries = [dict(parse_qsl(urlsplit(each.url).query)) for each in sent]
    assert queries == [{"limit": "100"}, {"limit": "100", "pagination_token": "x/y"}]


def test_pages_that_do_not_end():
    """An empty page ends the results, and so does a page that was read before."""
    items, sent = read_results(
        page(answered("a"), pagination_token="a"), page(pagination_token="a")
    )
    assert ([item.id for item in items], len(sent)) == (["a"], 2)

    endless = [page(answered("a"), pagination_token="a") for _ in range(9)]
    items, sent = read_results(*endless)
    assert len(sent) == 2
    codes = [[warning.code for warning in item.response.warnings] for item in items]
    assert codes == [[], ["batch_result_repeated"]]


def test_a_page_that_cannot_be_read():
    """What came before is given, then the error is raised; a damaged row has its own error."""
    client, _ = faulty(
        "xai",
        page(answered("a"), {"odd": 1}, 5, pagination_token="a"),
        CannedReply(body=b'{"results": [{"batch_'),
    )
    seen = []

    async def main():
        async for item in batch.results(ENDED, client=client):
            seen.append(item)  # noqa: PERF401 -- what came before the error is kept

    with pytest.raises(DecodeError):
        asyncio.run(main())
    assert [type(item.error) for item in seen] == [type(None), DecodeError, DecodeError]
    with pytest.raises(DecodeError, match="no list of results"):
        read_results(reply({"data": []}))


@pytest.mark.parametrize(("status", "kind"), [(401, AuthenticationError), (500, ServerError)])
def test_a_page_that_is_refused(status, kind):
    """The second page fails as the first would; it is not taken for the end."""
    refused = reply({"code": "x", "error": "No."}, status)
    for replies in ([refused] * 3, [page(answered("a"), pagination_token="a"), refused]):
        client, _ = faulty("xai", *replies)

        async def main(client=client):
            options = {"client": client, "max_retries": 0}
            return [item async for item in batch.results(ENDED, **options)]

        with pytest.raises(kind) as caught:
            asyncio.run(main())
        assert caught.value.provider == "xai"


@pytest.mark.usefixtures("no_backoff")
def test_the_first_page_is_retried():
    """As long as no result was given."""
    items, sent = read_results(reply({"error": "busy"}, 503), page(answered("a")))

    assert ([item.id for item in items], len(sent)) == (["a"], 2)


# Calls.


def submitted(*replies, **options):
    client, transport = faulty("xai", *replies)
    items = {"a": "one", "b": {"prompt": "two", "max_tokens": 5}}
    job = asyncio.run(batch.submit(items, MODEL, client=client, **options))
    return job, transport.requests


def test_a_submission():
    """The requests are a file of lines, which expires; the batch has a name and that file."""
    job, (upload, create) = submitted(reply(FILE), reply(counted()), request_id="r-1")

    parts = {part[0]: part[3] for part in read_form(upload.headers["content-type"], upload.body)}
    assert list(parts) == ["purpose", "expires_after", "file"]  # xAI refuses an expiry at the end
    assert parts["expires_after"] == b"2592000"
    lines = [json.loads(line) for line in parts["file"].splitlines()]
    assert [line["custom_id"] for line in lines] == ["a", "b"]
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}
    assert lines[0]["body"]["model"] == "grok-4.3"
    assert create.url == "https://api.x.ai/v1/batches"
    assert json.loads(create.body) == {"name": "r-1", "input_file_id": "file_1"}
    assert (job.reference, job.state, job.input_file) == ("xai:batch_1934e8b5", "queued", "file_1")


def test_the_name_of_a_batch():
    """It is an option of the batch."""
    options = {"xai": {"name": "nightly"}}
    _, (_, create) = submitted(reply(FILE), reply(counted()), batch_options=options)

    assert json.loads(create.body) == {"name": "nightly", "input_file_id": "file_1"}


def test_a_submission_that_is_refused_leaves_no_file():
    """The file that was uploaded for it is deleted."""
    client, transport = faulty(
        "xai", reply(FILE), reply({"code": "x", "error": "No."}, 400), reply({"id": "file_1"})
    )
    with pytest.raises(InvalidRequestError):
        asyncio.run(batch.submit(["one"], MODEL, client=client))
    last = transport.requests[-1]
    assert (last.method, last.url) == ("DELETE", "https://api.x.ai/v1/files/file_1")


def test_cancel_and_delete():
    """A batch is cancelled by a verb; only the file with its requests can be deleted."""
    cancelled = counted(2, 0, 0, 0, 2, cancel_time="2026-11-11")
    client, transport = faulty("xai", reply(cancelled), reply({"id": "file_1"}))

    async def main():
        job = await batch.cancel("xai:a/b", client=client)
        await batch.delete(job, client=client)  # nothing is known of its file
        await batch.delete(replace(job, input_file="file_1"), client=client)
        return job

    job = asyncio.run(main())
    assert job.state == "cancelled"
    assert [(each.method, urlsplit(each.url).path) for each in transport.requests] == [
        ("POST", "/v1/batches/a%2Fb:cancel"),
        ("DELETE", "/v1/files/file_1"),
    ]


def test_lists_have_pages_with_tokens():
    """All pages are read, or as many as are asked for."""
    pages = [
        reply({"batches": [counted(batch_id="a"), counted(batch_id="b")], "pagination_token": "b"}),
        reply({"batches": [counted(batch_id="c")], "pagination_token": None}),
    ]
    client, transport = faulty("xai", *pages)
    listed = asyncio.run(batch.list("xai", client=client))
    assert [each.id for each in listed] == ["a", "b", "c"]
    assert "pagination_token=b" in transport.requests[1].url

    client, transport = faulty("xai", *pages)
    assert len(asyncio.run(batch.list("xai", limit=2, client=client))) == 2
    (sent,) = transport.requests
    assert sent.url.endswith("/v1/batches?limit=2")


def test_only_chat_has_them():
    """Answers are Chat Completions, so an adapter of the other dialect says which one to use."""
    adapter = HttpAdapter("xai", "k", dialect="openai_responses", transport=CannedTransport([]))
    client = Client({"xai": adapter})
    with pytest.raises(UnsupportedError, match="dialect='openai_chat'"):
        asyncio.run(batch.submit(["one"], MODEL, client=client))
    with pytest.raises(UnsupportedError, match="dialect='openai_chat'"):
        asyncio.run(batch.status("xai:batch_1", client=client))


# The simulator.


def test_many_results_over_http():
    """More than a page of them, each with its own answer."""
    prompts = {f"id-{number}": f"number {number}" for number in range(250)}

    async def work(client, app):
        job = await finish(await batch.submit(prompts, MODEL, client=client), client)
        items = await collect(job, client)
        return items, [each for each in app.script.received if "/results" in each.call.path]

    items, pages = with_client("xai", work)
    assert {key: item.unwrap().text for key, item in items.items()} == {
        key: f"Answer to {prompt}" for key, prompt in prompts.items()
    }
    assert len(pages) == 3


CREATE = Operation(
    name="create",
    encode=lambda file_id, _profile: WireCall(
        path="/batches", body={"name": "mine", "input_file_id": file_id}
    ),
    decode=lambda _status, _headers, body: read_batch(json.loads(body)),
)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"custom_id": "a"}', "method"),
        ('{"custom_id": "a", "method": "POST", "url": "/v1/responses", "body": {}}', "url"),
        ("{oops", "Line 1"),
    ],
)
def test_a_file_that_the_simulator_cannot_read(line, reason):
    """The batch is cancelled with a message, as xAI does it."""

    async def work(client, _):
        value = UploadInput(content=line.encode(), file_name="batch.jsonl")
        file = await client.perform("xai", "upload_file", value)
        job = await client.perform("xai", CREATE, file.id)
        return await batch.wait(job.reference, client=client, poll_interval=0.001)

    job = with_client("xai", work)
    assert (job.state, job.counts.total) == ("failed", 0)
    assert reason in job.faults[0].message


def test_one_list_for_two_vendors():
    """The simulator has both at one path; each client reads its own, and its own pages."""

    async def submit(url, provider, model, count):
        async with client_for(url, provider) as client:
            target = f"{provider}:{model}"
            jobs = [await batch.submit(["x"], target, client=client) for _ in range(count)]
            return [job.id for job in jobs]

    async def listed(url, provider):
        async with client_for(url, provider) as client:
            value = BatchQuery(limit=2)
            return [each.id for each in await client.perform(provider, "list_batches", value)]

    with serve_in_thread(Simulator(answer)) as server:
        for provider in ("xai", "openai_compatible"):
            assert asyncio.run(listed(server.url, provider)) == []
        ours = asyncio.run(submit(server.url, "openai_compatible", "gpt-5.2", 3))
        assert asyncio.run(listed(server.url, "xai")) == []
        theirs = asyncio.run(submit(server.url, "xai", "grok-4.3", 3))
        assert asyncio.run(listed(server.url, "xai")) == theirs[:0:-1]
        assert asyncio.run(listed(server.url, "openai_compatible")) == ours[:0:-1]
        with openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0) as client:
            assert [each.id for each in client.batches.list(limit=1)] == ours[::-1]
            path, read = "/batches?limit=2", []
            while path:
                page = client.get(path, cast_to=object)
                read += [each["batch_id"] for each in page["batches"]]
                token = page["pagination_token"]
                path = f"/batches?limit=2&pagination_token={token}" if token else ""
            assert read == theirs[::-1]
            with pytest.raises(openai.NotFoundError):
                client.get(f"/batches/{ours[0]}/results", cast_to=object)
