"""The results of a batch: damaged files, cuts, requests without a result, failed batches."""

import asyncio
import json

import pytest
from msgspec.structs import replace

from interlingua import batch
from interlingua.errors import (
    ConfigurationError,
    DecodeError,
    InvalidRequestError,
    ServerError,
    StreamError,
)
from interlingua.transport import CannedReply
from support.batches import BATCH, collect, faulty, finish, reply, with_client

# Results.


def test_requests_that_never_came_back():
    """With the requests at hand, each that has no result has an error; others are as they were."""

    async def work(client, _):
        job = await batch.submit({"a": "x", "b": "y"}, "openai:gpt-5.2", client=client)
        ended = await finish(job, client)
        return await collect(ended, client, requests={"a": "x", "b": "y", "lost": "z"})

    items = with_client("openai", work)
    assert isinstance(items["lost"].error, ServerError)
    assert items["lost"].error.request_id == "lost"
    assert items["a"].response.text == "Answer to x"


def test_results_before_the_end():
    """They are an error that says what to do."""

    async def work(client, _):
        job = await batch.submit(["a"] * 10, "openai:gpt-5.2", client=client)
        with pytest.raises(ConfigurationError, match=r"has not ended.*wait"):
            await collect(job, client)

    with_client("openai", work)


def test_a_whole_batch_that_failed():
    """The provider's reasons are in the error and in the batch."""
    faults = [{"code": "invalid", "message": "Not JSON.", "param": None, "line": 3}]
    failed = {**BATCH, "status": "failed", "errors": {"object": "list", "data": faults}}
    client, _ = faulty("openai", reply(failed))

    async def main():
        job = await batch.status("openai:batch_1", client=client)
        with pytest.raises(InvalidRequestError, match=r"line 3: Not JSON\."):
            await collect(job, client)
        return job

    job = asyncio.run(main())
    assert job.faults == (batch.BatchFault(message="Not JSON.", code="invalid", line=3),)


def ended_batch():
    return batch.Batch(id="batch_1", provider="openai", state="completed", outputs=("file-9",))


def download(body, **options):
    client, _ = faulty("openai", CannedReply(body=body))

    async def main():
        items = []
        try:
            async for item in batch.results(ended_batch(), client=client, **options):
                items.append(item)  # noqa: PERF401 -- what came before an error is kept
        except StreamError as failure:
            return items, failure
        return items, None

    return asyncio.run(main())


LINE = {
    "id": "r",
    "custom_id": "a",
    "response": {
        "status_code": 200,
        "request_id": "req_7",
        "body": {
            "id": "resp_1",
            "object": "response",
            "status": "completed",
            "model": "gpt-5.2-2025-12-11",
            "output": [
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
                }
            ],
            "usage": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12},
        },
    },
    "error": None,
}


def test_a_damaged_line_does_not_end_the_others():
    """A line that is no result has an error; a line that is cut ends the download."""
    good = json.dumps(LINE).encode()
    items, failure = download(b"\n".join((good, b'{"odd": 1}', b"5", good, b"")))
    assert failure is None
    assert [type(item.error) for item in items] == [
        *(type(None), DecodeError, DecodeError, type(None))
    ]
    items, failure = download(good + b"\n" + good[:50])
    assert len(items) == 1
    assert isinstance(failure, StreamError)
    assert "Line 2" in str(failure)


def test_every_cut_is_noticed():
    """Wherever a download ends early, the complete lines before are there, and an error follows."""
    good = json.dumps(LINE).encode() + b"\n"
    for end in range(1, len(good) - 2, 37):
        items, failure = download(good + good[:end])
        assert len(items) == 1
        assert failure is not None


def line(name):
    return json.dumps({**LINE, "custom_id": name}).encode() + b"\n"


def counted(succeeded, failed=0, outputs=("file-9",)):
    counts = batch.BatchCounts(total=9, succeeded=succeeded, failed=failed)
    return replace(ended_batch(), counts=counts, outputs=outputs)


@pytest.mark.parametrize("outputs", [("file-9",), ()], ids=["an empty file", "no file"])
def test_no_results_of_a_batch_that_has_some_is_an_error(outputs):
    """The counts say that there are results, so an empty list of them would be a false success."""
    client, _ = faulty("openai", CannedReply(body=b""))
    job = counted(2, 1, outputs)

    async def main():
        with pytest.raises(ServerError, match="3 results by its counts, but 0 came"):
            await collect(job, client)

    asyncio.run(main())


def test_no_results_of_requests_at_hand_are_errors_of_their_own():
    """Then each request has its error, and the caller sees which."""
    client, _ = faulty("openai", CannedReply(body=b""))
    items = asyncio.run(collect(counted(1), client, requests={"a": "x"}))

    assert [type(item.error) for item in items.values()] == [ServerError]


def test_fewer_results_than_the_batch_counts_are_logged(caplog):
    """What came is given."""
    client, _ = faulty("openai", CannedReply(body=line("a")))
    items = asyncio.run(collect(counted(2), client))

    assert list(items) == ["a"]
    assert "has 2 results by its counts, but 1 came" in caplog.text


@pytest.mark.parametrize("files", [1, 2], ids=["in one file", "in two files"])
def test_a_result_that_is_repeated_has_a_warning(files, caplog):
    """Both are given, because both may be paid; the first has none, and one log record says so."""
    bodies = [line("a") + line("b"), line("a")]
    bodies = bodies if files == 2 else [b"".join(bodies)]
    client, _ = faulty("openai", *(CannedReply(body=body) for body in bodies))
    job = counted(2, outputs=("file-8", "file-9")[:files])

    async def main():
        return [item async for item in batch.results(job, client=client)]

    items = asyncio.run(main())
    codes = [(item.id, [warning.code for warning in item.response.warnings]) for item in items]
    assert codes == [("a", []), ("b", []), ("a", ["batch_result_repeated"])]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "several results for 1 of its requests: 'a'" in caplog.text


def test_lines_that_cannot_be_read_are_not_repeated_results(caplog):
    """They have no id; each has its own error."""
    client, _ = faulty("openai", CannedReply(body=b'{"x": 1}\n{"x": 2}\n'))

    async def main():
        return [item async for item in batch.results(counted(2), client=client)]

    assert [type(item.error) for item in asyncio.run(main())] == [DecodeError, DecodeError]
    assert caplog.text == ""


def test_an_answer_has_its_facts():
    """As that of a call: provider, ids, cost, and a message that says who made it."""
    items, _ = download(json.dumps(LINE).encode())
    response = items[0].response
    assert (response.provider, response.request_id) == ("openai", "a")
    assert response.message.metadata["provider"] == "openai"
    assert response.cost.total > 0
    assert items[0].raw == LINE


def test_results_only_from_the_own_host():
    """Anthropic's address of the results is used only if it is at the provider's host."""
    known = {
        "id": "msgbatch_1",
        "type": "message_batch",
        "processing_status": "ended",
        "request_counts": {"succeeded": 1},
        "results_url": "https://elsewhere.example/v1/messages/batches/msgbatch_1/results",
    }
    client, transport = faulty("anthropic", reply(known))

    async def main():
        with pytest.raises(DecodeError, match="Nothing was sent"):
            await collect("anthropic:msgbatch_1", client)

    asyncio.run(main())
    assert len(transport.requests) == 1
