"""What each dialect writes and reads about batches: states, codes, and the vendors' own types."""

import asyncio
import json

import pydantic
import pytest
from anthropic.types.messages.batch_create_params import BatchCreateParams as AnthropicParams
from google.genai import types as genai_types
from openai.types.batch_create_params import BatchCreateParams as OpenAIParams

from interlingua import Client, batch
from interlingua.dialects.anthropic_messages import batches as anthropic_batches
from interlingua.dialects.gemini_generate import batches as gemini_batches
from interlingua.dialects.openai_chat import mistral_batches
from interlingua.dialects.openai_shared import batches as openai_batches
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, text
from interlingua.spec.modalities.batch import ENDED, Batch, ServedBatch
from interlingua.transport import AsgiTransport
from interlingua.wire.rpc_codes import status_of_code


def sent(provider, model, **options):
    """The calls of a submission, as a server receives them."""
    app = Simulator(text("Hi."))
    client = Client({provider: HttpAdapter(provider, "k", transport=AsgiTransport(app))})
    items = {"a": "one", "b": {"prompt": "two", "max_tokens": 5, "system": "Brief."}}
    asyncio.run(batch.submit(items, f"{provider}:{model}", client=client, **options))
    return [each.call for each in app.script.received]


def test_anthropic_accepts_what_we_send():
    """The body has the vendor's type, each request included."""
    (call,) = sent("anthropic", "claude-haiku-4-5")
    adapter = pydantic.TypeAdapter(AnthropicParams)
    checked = adapter.validate_python(call.body)
    assert [each["custom_id"] for each in checked["requests"]] == ["a", "b"]
    assert list(call.body) == ["requests"]


def test_openai_accepts_what_we_send():
    """The file has the documented lines, and the call the vendor's type."""
    upload, create = sent(
        "openai", "gpt-5.2", batch_options={"openai": {"metadata": {"team": "x"}}}
    )
    checked = pydantic.TypeAdapter(OpenAIParams).validate_python(create.body)
    assert checked == {
        "input_file_id": "file-000000000001",
        "endpoint": "/v1/responses",
        "completion_window": "24h",
        "metadata": {"team": "x"},
    }
    fields = {part.name: part.content for part in upload.form}
    assert fields["purpose"] == "batch"
    lines = [json.loads(line) for line in fields["file"].splitlines()]
    assert [list(line) for line in lines] == [["custom_id", "method", "url", "body"]] * 2
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/responses")}


def test_gemini_fields_of_a_batch():
    """Settings stand beside the requests, and each request has its id as key."""
    (call,) = sent("gemini", "gemini-2.5-flash", batch_options={"gemini": {"displayName": "mine"}})
    given = call.body["batch"]
    assert given["displayName"] == "mine"
    rows = given["inputConfig"]["requests"]["requests"]
    assert [row["metadata"] for row in rows] == [{"key": "a"}, {"key": "b"}]
    assert all(row["request"]["contents"] for row in rows)


def test_mistral_has_the_model_in_the_job():
    """Its lines have no URL."""
    upload, create = sent("mistral", "mistral-small-latest")
    assert create.body["model"] == "mistral-small-latest"
    assert create.body["input_files"] == ["file-000000000001"]
    line = json.loads(upload.form[-1].content.splitlines()[0])
    assert list(line) == ["custom_id", "body"]


STATES = ("queued", "in_progress", "finalizing", "cancelling", *sorted(ENDED))


@pytest.mark.parametrize("state", STATES)
def test_states_are_written_and_read(state):
    """Each state of a batch arrives as itself, or as the nearest that the vendor has."""
    served = ServedBatch(batch=Batch(id="batches/x", state=state, created_at=1, ended_at=2))
    assert openai_batches.read_batch(openai_batches.write_batch(served)).state == state
    seen = {
        mistral_batches.read_job(mistral_batches.write_job(served)).is_ended,
        anthropic_batches.read_batch(anthropic_batches.write_batch(served)).is_ended,
        gemini_batches.read_batch(gemini_batches.write_batch(served)).is_ended,
    }
    assert seen == {state in ENDED}


@pytest.mark.parametrize("state", [each.name for each in genai_types.JobState])
def test_every_state_of_gemini_is_known(state):
    """Also by the names of the other API; only the unspecified one is read as under way."""
    for name in (state, state.replace("JOB_STATE", "BATCH_STATE")):
        read = gemini_batches.read_batch({"name": "batches/x", "metadata": {"state": name}})
        word = state.removeprefix("JOB_STATE_")
        assert (word in gemini_batches._STATES) is (word != "UNSPECIFIED")
        assert read.raw_state == name


@pytest.mark.parametrize(
    ("code", "status"), [(3, 400), (8, 429), (14, 503), (429, 429), ("NOT_FOUND", 404), (None, 500)]
)
def test_codes_of_gemini(code, status):
    """Numbers of google.rpc.Code, words, and HTTP statuses."""
    assert status_of_code(code) == status


def test_a_failed_operation_is_a_failed_batch():
    """Its error is a fault of the batch, not of the call that asks."""
    value = {
        "name": "batches/x",
        "done": True,
        "metadata": {"state": "BATCH_STATE_FAILED"},
        "error": {"code": 3, "message": "No such file."},
    }
    read = gemini_batches.read_batch(value)
    assert read.state == "failed"
    assert read.faults[0].message == "No such file."
    assert gemini_batches.write_batch(ServedBatch(batch=read)) == value
    assert gemini_batches.OPERATIONS["retrieve_batch"].error_is_data


def test_results_in_an_operation_are_not_part_of_the_batch():
    """A batch stays small; its results are read from where it says."""
    rows = {"inlinedResponses": [{"response": {}, "metadata": {"key": "a"}}]}
    value = {
        "name": "batches/x",
        "metadata": {"state": "BATCH_STATE_SUCCEEDED", "output": {"inlinedResponses": rows}},
        "response": {"inlinedResponses": rows},
    }
    read = gemini_batches.read_batch(value)
    assert read.outputs == ("batches/x",)
    assert "inlinedResponses" not in json.dumps([read.raw, read.extra])
