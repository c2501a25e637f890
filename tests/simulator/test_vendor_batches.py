"""The vendors' own clients submit batches to the simulator, over HTTP on loopback."""

import io
import json

import anthropic
import openai
import pytest
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
from google import genai
from google.genai import types as genai_types
from openai.types import Batch as OpenAIBatch

from interlingua.simulator import Simulator, error, serve_in_thread, text


def answer(request):
    asked = request.messages[-1].text
    if "bad" in asked:
        return error(400, "No.")
    return error(408) if "late" in asked else text(f"Answer to {asked}")


@pytest.fixture
def url():
    with serve_in_thread(Simulator(answer, strict=True)) as server:
        yield server.url


@pytest.mark.parametrize(
    ("endpoint", "field"), [("/v1/chat/completions", "messages"), ("/v1/responses", "input")]
)
def test_openai(url, endpoint, field, closed):
    """A file, a batch, its end, both files of results, the list, and a cancelled one."""
    client = closed(openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0))
    prompts = {"a": "one", "b": "bad", "c": "late"}
    lines = [
        {
            "custom_id": item_id,
            "method": "POST",
            "url": endpoint,
            "body": {"model": "gpt-5.2", field: [{"role": "user", "content": prompt}]},
        }
        for item_id, prompt in prompts.items()
    ]
    data = "\n".join(map(json.dumps, lines)).encode()
    file = client.files.create(file=("b.jsonl", io.BytesIO(data)), purpose="batch")
    made = [
        client.batches.create(
            input_file_id=file.id,
            endpoint=endpoint,
            completion_window="24h",
            metadata={"team": "x"},
        )
        for _ in range(3)
    ]
    job = made[0]
    OpenAIBatch.model_validate(job.model_dump(), strict=True)
    assert job.metadata == {"team": "x"}
    while job.status not in ("completed", "expired"):
        job = client.batches.retrieve(job.id)
    good = [json.loads(line) for line in client.files.content(job.output_file_id).text.splitlines()]
    bad = [json.loads(line) for line in client.files.content(job.error_file_id).text.splitlines()]
    asked = client.batches.cancel(made[1].id)
    listed = list(client.batches.list(limit=2))

    assert (job.request_counts.total, job.request_counts.completed) == (3, 1)
    assert good[0]["custom_id"] == "a"
    assert good[0]["response"]["status_code"] == 200
    assert {each["custom_id"]: each["error"] and each["error"]["code"] for each in bad} == {
        "b": None,
        "c": "batch_expired",
    }
    assert asked.status == "cancelling"
    assert client.batches.retrieve(made[1].id).status == "cancelled"
    assert [each.id for each in listed] == [each.id for each in reversed(made)]
    with pytest.raises(openai.NotFoundError):
        client.batches.retrieve("batch_none")


def test_openai_refuses_a_file_that_it_cannot_read(url, closed):
    """A batch whose file is not JSON fails, with its errors."""
    client = closed(openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0))
    file = client.files.create(file=("b.jsonl", io.BytesIO(b"{oops\n")), purpose="batch")
    job = client.batches.create(
        input_file_id=file.id, endpoint="/v1/responses", completion_window="24h"
    )
    job = client.batches.retrieve(job.id)
    assert job.status == "failed"
    assert job.errors.data[0].code == "invalid_json_line"


def line(item_id, model="gpt-5.2", url="/v1/responses"):
    body = {"model": model, "input": "one"}
    return {"custom_id": item_id, "method": "POST", "url": url, "body": body}


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([line("a"), line("a")], "duplicate_custom_id"),
        ([line("a"), line("b", model="gpt-5.2-mini")], "mismatched_model"),
        ([line("a", url="/v1/chat/completions")], "invalid_url"),
        ([], "empty_file"),
        ([line(str(number)) for number in range(50_001)], "too_many_requests"),
    ],
)
def test_openai_refuses_whole_batches(url, lines, code, closed):
    """Ids that are not unique, several models, another endpoint, no requests, or too many."""
    client = closed(openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0))
    data = "\n".join(map(json.dumps, lines)).encode()
    file = client.files.create(file=("b.jsonl", io.BytesIO(data)), purpose="batch")
    job = client.batches.create(
        input_file_id=file.id, endpoint="/v1/responses", completion_window="24h"
    )
    job = client.batches.retrieve(job.id)
    assert (job.status, job.errors.data[0].code) == ("failed", code)
    assert job.output_file_id is None


def test_openai_has_no_output_file_if_all_requests_failed(url, closed):
    """The answers are in the other file only."""
    client = closed(openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0))
    bad = line("a")
    bad["body"]["input"] = "bad"
    file = client.files.create(
        file=("b.jsonl", io.BytesIO(json.dumps(bad).encode())), purpose="batch"
    )
    job = client.batches.create(
        input_file_id=file.id, endpoint="/v1/responses", completion_window="24h"
    )
    while job.status != "completed":
        job = client.batches.retrieve(job.id)
    assert job.output_file_id is None
    assert json.loads(client.files.content(job.error_file_id).text)["custom_id"] == "a"


@pytest.mark.parametrize("item_id", ["a b", "x" * 65, ""])
def test_anthropic_refuses_ids(url, item_id, closed):
    """An id has up to 64 letters, digits, hyphens and underscores."""
    client = closed(anthropic.Anthropic(api_key="k", base_url=url, max_retries=0))
    message = {"role": "user", "content": "one"}
    params = {"model": "claude-haiku-4-5", "max_tokens": 10, "messages": [message]}
    with pytest.raises(anthropic.BadRequestError, match="custom_id"):
        client.messages.batches.create(requests=[{"custom_id": item_id, "params": params}])


@pytest.mark.parametrize("is_beta", [False, True])
def test_anthropic(url, is_beta, closed):
    """Create, retrieve, results, list, cancel, delete; both the API and its beta."""
    client = closed(anthropic.Anthropic(api_key="k", base_url=url, max_retries=0))
    api = client.beta.messages.batches if is_beta else client.messages.batches

    def params(prompt):
        message = {"role": "user", "content": prompt}
        return {"model": "claude-haiku-4-5", "max_tokens": 10, "messages": [message]}

    prompts = {"a": "one", "b": "bad", "c": "late"}
    requests = [{"custom_id": key, "params": params(each)} for key, each in prompts.items()]
    made = [api.create(requests=requests) for _ in range(3)]
    job = made[0]
    while job.processing_status != "ended":
        job = api.retrieve(job.id)
    if not is_beta:
        MessageBatch.model_validate(job.model_dump())
    results = {each.custom_id: each for each in api.results(job.id)}
    if not is_beta:
        for each in results.values():
            MessageBatchIndividualResponse.model_validate(each.model_dump())

    assert results["a"].result.message.content[0].text == "Answer to one"
    assert results["b"].result.error.error.type == "invalid_request_error"
    assert results["c"].result.type == "expired"
    assert job.request_counts.succeeded == job.request_counts.errored == 1
    assert api.cancel(made[1].id).processing_status == "canceling"
    assert api.retrieve(made[1].id).request_counts.canceled == 3
    assert [each.id for each in api.list(limit=2)] == [each.id for each in reversed(made)]
    assert api.delete(job.id).id == job.id
    with pytest.raises(anthropic.NotFoundError):
        api.retrieve(job.id)


def test_gemini(url, closed):
    """Inline requests: create, get, list, cancel, delete."""
    client = closed(genai.Client(api_key="k", http_options=genai_types.HttpOptions(base_url=url)))

    def asked(prompt):
        return {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}

    job = client.batches.create(
        model="gemini-2.5-flash",
        src=[asked("one"), asked("bad")],
        config={"display_name": "mine"},
    )
    name = job.name
    while job.state.name != "JOB_STATE_SUCCEEDED":
        job = client.batches.get(name=name)
    good, bad = job.dest.inlined_responses
    other = client.batches.create(model="gemini-2.5-flash", src=[asked("one")])
    client.batches.cancel(name=other.name)

    assert job.display_name == "mine"
    assert good.response.text == "Answer to one"
    assert (bad.error.code, bad.error.message) == (400, "No.")
    assert client.batches.get(name=other.name).state.name == "JOB_STATE_CANCELLED"
    assert [each.name for each in client.batches.list(config={"page_size": 1})] == [
        other.name,
        name,
    ]
    client.batches.delete(name=name)
    assert [each.name for each in client.batches.list()] == [other.name]


def test_gemini_with_a_file(url, tmp_path, closed):
    """An uploaded file of requests, and a file of results."""
    client = closed(genai.Client(api_key="k", http_options=genai_types.HttpOptions(base_url=url)))
    path = tmp_path / "requests.jsonl"
    contents = [{"role": "user", "parts": [{"text": "one"}]}]
    path.write_text(json.dumps({"key": "a", "request": {"contents": contents}}) + "\n")
    file = client.files.upload(file=path, config={"mime_type": "application/jsonl"})
    job = client.batches.create(model="gemini-2.5-flash", src=file.name)
    while job.state.name != "JOB_STATE_SUCCEEDED":
        job = client.batches.get(name=job.name)
    data = client.files.download(file=job.dest.file_name)
    (line,) = map(json.loads, data.splitlines())
    assert line["key"] == "a"
    assert line["response"]["candidates"][0]["content"]["parts"][0]["text"] == "Answer to one"
