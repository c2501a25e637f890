"""What is submitted as a batch: items of every form, refusals before anything is sent, and once."""

import asyncio
import tempfile

import pytest

from interlingua import Client, Message, Request, batch
from interlingua.errors import (
    ConfigurationError,
    InvalidRequestError,
    NetworkError,
    ServerError,
    UnsupportedError,
)
from interlingua.providers.adapter import HttpAdapter
from support.batches import BATCH, FILE, MODELS, collect, faulty, finish, reply, with_client

# What is submitted.


def test_items_of_every_form():
    """Prompts, messages, dicts of arguments and requests, from any iterable, with their ids."""

    async def stream():
        yield "plain"
        yield {"role": "user", "content": "a message"}
        yield {"id": "mine", "prompt": "a dict", "max_tokens": 7}
        yield {"messages": [Message.user("history")]}
        yield Request(model="gpt-5.2", messages="a request", request_id="own")

    async def work(client, app):
        items = [item async for item in stream()][:4]
        await finish(await batch.submit(stream(), "openai:gpt-5.2", client=client), client)
        await finish(await batch.submit(iter(items), "openai:gpt-5.2", client=client), client)
        lines = [each for each in app.script.received if each.request]
        return [(each.request.messages[-1].text, each.request.max_tokens) for each in lines]

    seen = with_client("openai", work)
    first = [("plain", None), ("a message", None), ("a dict", 7), ("history", None)]
    assert seen == [*first, ("a request", None), *first]


def test_ids():
    """Generated ids are the places; given ones are kept."""

    async def work(client, _):
        items = ["a", {"id": "x", "prompt": "b"}, Request(messages="c", request_id="y"), "d"]
        job = await finish(await batch.submit(items, "openai:gpt-5.2", client=client), client)
        return sorted(await collect(job, client))

    assert with_client("openai", work) == ["request-0", "request-3", "x", "y"]


def test_options_apply_to_all_prompts():
    """Options are those of each request; an item's own replace them."""

    async def work(client, app):
        items = ["a", {"prompt": "b", "max_tokens": 9}]
        await finish(
            await batch.submit(
                items, "openai:gpt-5.2", client=client, system="Brief.", max_tokens=5
            ),
            client,
        )
        return app.script.requests

    first, second = with_client("openai", work)
    assert (first.max_tokens, second.max_tokens) == (5, 9)
    assert first.messages[0].text == second.messages[0].text == "Brief."


def test_fields_of_the_batch_itself():
    """`batch_options` go into the call that creates the batch, `provider_options` into each."""

    async def work(client, app):
        job = await batch.submit(
            ["a"],
            "openai:gpt-5.2",
            client=client,
            batch_options={"openai": {"metadata": {"team": "x"}}},
            provider_options={"openai": {"store": True}},
        )
        await finish(job, client)
        creation = next(each for each in app.script.received if each.call.path == "/v1/batches")
        return job, creation.call.body, app.script.received

    job, body, received = with_client("openai", work)
    assert body["metadata"] == {"team": "x"}
    assert job.extra["openai"]["metadata"] == {"team": "x"}
    assert next(each for each in received if each.request).call.body["store"] is True


def refused(items, match, *, provider="openai", kind=ConfigurationError, model=None, **options):
    """Nothing is sent for these items."""

    async def work(client, app):
        with pytest.raises(kind, match=match):
            await batch.submit(items, model, client=client, **options)
        return app.script.received

    assert with_client(provider, work) == ()


@pytest.mark.parametrize(
    ("items", "match"),
    [
        pytest.param([], "has no requests", id="none"),
        pytest.param("one text", "must be a list", id="a text"),
        pytest.param(5, "must be a list", id="a number"),
        pytest.param(Request(messages="x"), "must be a list", id="one request"),
        pytest.param(["a", {"prompt": "b", "tempratur": 1}], "'request-1'.*tempratur", id="typo"),
        pytest.param(["a", {"prompt": "b", "max_tool_rounds": 2}], "max_tool_rounds", id="run"),
        pytest.param([{"id": "x", "prompt": "b"}, {"id": "x", "prompt": "c"}], "'x'", id="twice"),
        pytest.param(["a", {"id": 7, "prompt": "b"}], "must be a text, not", id="number as id"),
        pytest.param({3: "a"}, "must be a text, not", id="number as key"),
        pytest.param(["a", 5], "Request 'request-1' of the batch", id="no prompt"),
        pytest.param([{"prompt": "b", "system": lambda _: ""}], "'request-0'.*system", id="system"),
    ],
)  # fmt: skip
def test_refused_before_anything_is_sent(items, match):
    """An item that cannot be sent is an error that names it, and nothing is sent."""
    refused(items, match, model="openai:gpt-5.2")


def test_one_provider():
    """A request for another provider than that of the first one is an error that names it."""
    client, transport = faulty("openai")
    other = HttpAdapter("anthropic", "k", transport=transport)
    both = Client({"openai": client.adapter("openai"), "anthropic": other})
    items = {"a": "x", "b": {"prompt": "y", "model": "anthropic:claude-haiku-4-5"}}
    with pytest.raises(ConfigurationError, match=r"'b'.*is for anthropic.*one for each"):
        asyncio.run(batch.submit(items, "openai:gpt-5.2", client=both))
    assert transport.requests == []


def test_options_do_not_change_requests():
    """A `Request` has its own fields, so options besides it are an error."""
    refused([Request(messages="x")], "max_tokens", model="openai:gpt-5.2", max_tokens=5)
    refused(["x"], "Unknown option", model="openai:gpt-5.2", max_tool_rounds=3)


def test_other_endpoints_are_refused():
    """A request for another endpoint cannot be in a batch."""
    other = {"id": "odd", "prompt": "x", "provider_options": {"openai": {"path": "/v1/other"}}}
    refused(["a", other], "'odd'.*another endpoint", kind=UnsupportedError, model="openai:gpt-5.2")


def test_streams_are_refused():
    """A batch has whole answers only."""
    other = {"id": "odd", "prompt": "x", "provider_options": {"openai": {"stream": True}}}
    refused(["a", other], "'odd'.*for a stream", kind=UnsupportedError, model="openai:gpt-5.2")


def test_losses_are_refused_by_name():
    """The loss policy holds for each request; with `warn` the losses are warnings of the batch."""
    item = {"id": "odd", "prompt": "x", "seed": 3}
    refused(
        ["a", item],
        "'odd'",
        provider="anthropic",
        kind=UnsupportedError,
        model="anthropic:claude-haiku-4-5",
        on_loss="strict",
    )

    async def work(client, _):
        return await batch.submit(["a", item], "anthropic:claude-haiku-4-5", client=client)

    (warning,) = with_client("anthropic", work).warnings
    assert (warning.code, warning.path) == ("seed_dropped", "requests['odd'].seed")


def test_one_header_for_all():
    """Requests that need different versions of an API cannot be in one batch."""
    items = [{"prompt": "a"}, {"prompt": "b", "temperature": 0.5}]
    refused(
        items,
        "'request-1'.*anthropic-version.*two batches",
        provider="anthropic",
        kind=UnsupportedError,
        model="anthropic:claude-haiku-4-5",
    )


def test_ids_that_a_provider_refuses():
    """Anthropic takes only some characters."""
    refused(
        {"a b": "x"}, "'a b'.*must match", provider="anthropic", model="anthropic:claude-haiku-4-5"
    )


def test_one_model_where_the_provider_has_one_model():
    """Gemini and Mistral answer a batch with one model; others with several."""
    for provider in ("gemini", "mistral"):
        items = ["a", {"id": "b", "prompt": "b", "model": f"{provider}:other"}]
        model = f"{provider}:{MODELS[provider]}"
        refused(items, "'b'.*one model", provider=provider, kind=UnsupportedError, model=model)


def test_providers_without_batches():
    """The error names the providers that have them, before anything is read or sent."""

    async def main():
        client = Client({"deepseek": HttpAdapter("deepseek", "k")})
        with pytest.raises(UnsupportedError, match="openai, anthropic, gemini"):
            await batch.submit(["a"], "deepseek:deepseek-chat", client=client)
        with pytest.raises(UnsupportedError, match="openai, anthropic, gemini"):
            await batch.status("deepseek:batch_1", client=client)
        with pytest.raises(ConfigurationError, match="does not name a provider"):
            await batch.status("batch_1", client=client)
        with pytest.raises(ConfigurationError, match="Name a batch"):
            await batch.status(5, client=client)

    asyncio.run(main())


def test_limits_of_a_provider():
    """Too many requests are an error before anything is sent."""

    async def many():
        for _ in range(50_001):
            yield Request(messages="x")

    refused(many(), "at most 50,000 requests", model="openai:gpt-5.2")


def test_the_temporary_file_is_removed(tmp_path, monkeypatch):
    """After success and after failure no file is left on the disk."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen = []

    async def work(client, _):
        items = ["x" * 100_000 for _ in range(20)]

        def watched():
            for item in items:
                seen.extend(path.stat().st_mode & 0o777 for path in tmp_path.iterdir())
                yield item

        await batch.submit(watched(), "openai:gpt-5.2", client=client)
        with pytest.raises(ConfigurationError):
            await batch.submit([*items, 5], "openai:gpt-5.2", client=client)

    with_client("openai", work)
    assert set(seen) == {0o600}
    assert list(tmp_path.iterdir()) == []


# Once.


def submit_to(client, **options):
    return asyncio.run(batch.submit(["a"], "openai:gpt-5.2", client=client, **options))


@pytest.mark.parametrize("failure", [NetworkError("lost"), reply({}, 500), reply({}, 504)])
def test_no_second_batch(failure):
    """A creation whose outcome is unknown is not repeated, and its file stays."""
    client, transport = faulty("openai", reply(FILE), failure, reply(FILE), reply(BATCH))
    with pytest.raises((NetworkError, ServerError), match="look at what is there") as caught:
        submit_to(client, max_retries=3)
    assert not caught.value.retryable
    assert [each.method for each in transport.requests] == ["POST", "POST"]


@pytest.mark.usefixtures("no_backoff")
def test_a_refused_creation_is_retried():
    """The file of a refused creation is deleted, and a busy provider is asked again."""
    busy = reply({"error": {"message": "busy"}}, 429)
    client, transport = faulty(
        "openai", reply(FILE), busy, reply({"id": "file-1"}), reply(FILE), reply(BATCH)
    )
    job = submit_to(client, max_retries=1)
    assert job.id == "batch_1"
    sent = [(each.method, each.url.rpartition("/v1/")[2]) for each in transport.requests]
    assert sent == [
        ("POST", "files"),
        ("POST", "batches"),
        ("DELETE", "files/file-1"),
        ("POST", "files"),
        ("POST", "batches"),
    ]


@pytest.mark.usefixtures("no_backoff")
def test_an_upload_is_retried():
    """A file that was not stored is sent again: it creates no batch."""
    client, transport = faulty("openai", reply({}, 500), reply(FILE), reply(BATCH))
    assert submit_to(client, max_retries=1).id == "batch_1"
    assert len(transport.requests) == 3


def test_the_file_that_cannot_be_deleted_is_named():
    """An error says what is left at the provider."""
    client, _ = faulty(
        "openai", reply(FILE), reply({"error": {"message": "no"}}, 400), reply({}, 500)
    )
    with pytest.raises(InvalidRequestError, match="file-1, which was uploaded for it"):
        submit_to(client)
