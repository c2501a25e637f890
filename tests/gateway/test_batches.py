"""Batches: the vendors' clients submit them, any provider that has batches answers."""

import io
import json

import anthropic
import openai
import pytest

from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, error, serve_in_thread, text
from support.gateways import gateway
from support.simulated import adapters

MODELS = {
    "openai": "openai:gpt-5.2",
    "anthropic": "anthropic:claude-haiku-4-5",
    "gemini": "gemini:gemini-2.5-flash",
}
ROUTES = {**MODELS, "plain": "cohere:command-a-03-2025"}


def answer(request):
    asked = request.messages[-1].text
    return error(400, "No.") if "bad" in asked else text(f"Answer to {asked}")


@pytest.fixture(scope="module")
def stage():
    with serve_in_thread(Simulator(answer, strict=True)) as upstream:
        plain = {"cohere": HttpAdapter("cohere", "k", base_url=upstream.url)}
        with gateway({**adapters(upstream.url), **plain}, ROUTES) as front:
            yield front


def lines_of(endpoint, model, prompts):
    field = "input" if "responses" in endpoint else "messages"
    lines = [
        {
            "custom_id": key,
            "method": "POST",
            "url": endpoint,
            "body": {"model": model, field: [{"role": "user", "content": prompt}]},
        }
        for key, prompt in prompts.items()
    ]
    return "\n".join(map(json.dumps, lines)).encode()


def upload(client, endpoint, model, prompts):
    data = lines_of(endpoint, model, prompts)
    return client.files.create(file=("b.jsonl", io.BytesIO(data)), purpose="batch")


def submit(client, endpoint, file):
    return client.batches.create(
        input_file_id=file.id, endpoint=endpoint, completion_window="24h", metadata={"team": "x"}
    )


def read_lines(client, file_id):
    lines = map(json.loads, client.files.content(file_id).text.splitlines())
    return {line["custom_id"]: line for line in lines}


@pytest.mark.parametrize("endpoint", ["/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize("model", MODELS)
def test_openai(stage, model, endpoint):
    """A file whose lines have a public name, a batch, its end, both files of results, the list."""
    client = stage.openai()
    file = upload(client, endpoint, model, {"a": "one", "b": "bad"})
    job = made = submit(client, endpoint, file)
    while job.status != "completed":
        job = client.batches.retrieve(job.id)
    good = read_lines(client, job.output_file_id)
    bad = read_lines(client, job.error_file_id)

    assert (made.metadata, made.input_file_id) == ({"team": "x"}, file.id)
    assert (job.endpoint, job.completion_window) == (endpoint, "24h")
    assert (job.request_counts.total, job.request_counts.failed) == (2, 1)
    body = good["a"]["response"]["body"]
    assert "Answer to one" in json.dumps(body)
    assert body["object"] == ("response" if "responses" in endpoint else "chat.completion")
    assert bad["b"]["response"]["status_code"] == 400
    assert "No." in bad["b"]["response"]["body"]["error"]["message"]
    assert job.id in [each.id for each in client.batches.list(limit=1)]


@pytest.mark.parametrize("model", MODELS)
def test_anthropic(stage, model):
    """Create, retrieve, results, list, cancel, delete."""
    api = stage.anthropic().messages.batches

    def params(prompt):
        message = {"role": "user", "content": prompt}
        return {"model": model, "max_tokens": 10, "messages": [message]}

    prompts = {"a": "one", "b": "bad"}
    requests = [{"custom_id": key, "params": params(each)} for key, each in prompts.items()]
    job, other = (api.create(requests=requests) for _ in range(2))
    with pytest.raises(anthropic.NotFoundError, match="has not ended"):
        stage.anthropic().get(f"/v1/messages/batches/{other.id}/results", cast_to=object)
    assert api.cancel(other.id).processing_status in ("canceling", "in_progress", "ended")
    while job.processing_status != "ended":
        job = api.retrieve(job.id)
    results = {each.custom_id: each.result for each in api.results(job.id)}

    assert results["a"].message.content[0].text == "Answer to one"
    assert results["a"].message.type == "message"
    assert results["b"].error.error.type == "invalid_request_error"
    assert job.request_counts.succeeded == job.request_counts.errored == 1
    assert [each.id for each in api.list(limit=2)][:2] == [other.id, job.id]
    assert api.delete(job.id).id == job.id
    with pytest.raises(anthropic.NotFoundError):
        api.retrieve(job.id)


@pytest.mark.parametrize("model", MODELS)
def test_gemini(stage, model):
    """Requests in the call: create, get, list, cancel, delete."""
    client = stage.gemini()

    def asked(prompt):
        return {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}

    job = client.batches.create(
        model=model, src=[asked("one"), asked("bad")], config={"display_name": "mine"}
    )
    name = job.name
    while job.state.name != "JOB_STATE_SUCCEEDED":
        job = client.batches.get(name=name)
    replies = job.dest.inlined_responses
    other = client.batches.create(model=model, src=[asked("one")])
    client.batches.cancel(name=other.name)

    assert job.display_name == "mine"
    assert [each.response.text for each in replies if each.response] == ["Answer to one"]
    assert [each.error.message for each in replies if each.error] == ["No."]
    listed = [each.name for each in client.batches.list(config={"page_size": 1})]
    assert listed[:2] == [other.name, name]
    client.batches.delete(name=name)
    assert name not in [each.name for each in client.batches.list()]


def test_gemini_with_a_file(stage, tmp_path):
    """An uploaded file of requests, and a file of results."""
    client = stage.gemini()
    path = tmp_path / "requests.jsonl"
    contents = [{"role": "user", "parts": [{"text": "one"}]}]
    path.write_text(json.dumps({"key": "a", "request": {"contents": contents}}) + "\n")
    file = client.files.upload(file=path, config={"mime_type": "application/jsonl"})
    job = client.batches.create(model="anthropic", src=file.name)
    while job.state.name != "JOB_STATE_SUCCEEDED":
        job = client.batches.get(name=job.name)
    (line,) = map(json.loads, client.files.download(file=job.dest.file_name).splitlines())

    assert line["key"] == "a"
    assert line["response"]["candidates"][0]["content"]["parts"][0]["text"] == "Answer to one"


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("unknown", "does not exist, or this key may not use it"),
        ("plain", "submit_batch"),
    ],
)
def test_models_that_cannot(stage, model, words):
    """An unknown name, and a provider without batches, are told in the client's form."""
    client = stage.openai()
    file = upload(client, "/v1/chat/completions", model, {"a": "one"})
    with pytest.raises(openai.APIStatusError, match=words) as caught:
        submit(client, "/v1/chat/completions", file)
    assert caught.value.status_code in (400, 404)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "has no requests"),
        (b"{oops\n", "JSON"),
        (lines_of("/v1/embeddings", "openai", {"a": "one"}), "no batch can contain"),
        (
            lines_of("/v1/chat/completions", "openai", {"a": "one"})
            + b"\n"
            + lines_of("/v1/chat/completions", "gemini", {"b": "two"}),
            "Send a batch for each provider",
        ),
        (
            lines_of("/v1/chat/completions", "openai", {"a": "one"})
            + b"\n"
            + lines_of("/v1/chat/completions", "openai", {"a": "two"}),
            "have the id 'a'",
        ),
    ],
)
def test_files_that_cannot_be_submitted(stage, data, words):
    """They are refused with 400 before anything is sent to a provider."""
    client = stage.openai()
    file = client.files.create(file=("b.jsonl", io.BytesIO(data)), purpose="batch")
    with pytest.raises(openai.BadRequestError, match=words):
        submit(client, "/v1/chat/completions", file)


def test_ids_of_others_are_not_found():
    """A key finds its own files and batches only, and a batch only models that it may use."""
    with serve_in_thread(Simulator(answer, strict=True)) as upstream:
        keys = {"alice": ["openai"], "bob": None}
        routes = {**MODELS}
        with gateway(adapters(upstream.url), routes, callers=keys) as front:
            alice, bob = (front.openai(api_key=front.keys[name]) for name in keys)
            endpoint = "/v1/chat/completions"
            file = upload(alice, endpoint, "openai", {"a": "one"})
            job = submit(alice, endpoint, file)
            for work in (
                lambda: bob.files.retrieve(file.id),
                lambda: bob.files.content(file.id),
                lambda: bob.files.delete(file.id),
                lambda: bob.batches.retrieve(job.id),
                lambda: bob.batches.cancel(job.id),
                lambda: submit(bob, endpoint, file),
                lambda: submit(alice, endpoint, upload(alice, endpoint, "gemini", {"a": "x"})),
            ):
                with pytest.raises(openai.NotFoundError):
                    work()
            assert list(bob.batches.list()) == list(bob.files.list()) == []
            assert [each.id for each in alice.batches.list()] == [job.id]


def test_a_batch_of_the_provider_itself(stage):
    """A key for all models may name the provider and an id of its own."""
    client = stage.openai()
    with pytest.raises(openai.NotFoundError, match="batch_none"):
        client.batches.retrieve("batch_none", extra_headers={"x-interlingua-provider": "openai"})


def test_each_vendor_lists_its_own():
    """A batch of one API is not in the list of another, whose form it does not have."""
    message = {"role": "user", "content": "one"}
    params = {"model": "openai", "max_tokens": 10, "messages": [message]}
    with (
        serve_in_thread(Simulator(answer)) as upstream,
        gateway(adapters(upstream.url), MODELS) as front,
    ):
        batches = front.anthropic().messages.batches
        made = batches.create(requests=[{"custom_id": "a", "params": params}])

        assert list(front.openai().batches.list()) == []
        assert list(front.gemini().batches.list()) == []
        assert [each.id for each in batches.list()] == [made.id]
