"""`interlingua.batch`, async and blocking, over HTTP against the simulator."""

import asyncio
import subprocess
import sys
import textwrap

import pytest

from interlingua import Client, Image, Message, Request, Tool, batch, from_json, sync, to_json
from interlingua.errors import (
    AbortError,
    ConfigurationError,
    InvalidRequestError,
    ProviderTimeoutError,
    RateLimitError,
)
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.spec.modalities.files import ListFilesInput
from interlingua.transport import AsgiTransport
from support.batches import (
    MODELS,
    VERSIONED,
    answer,
    client_for,
    collect,
    finish,
    with_client,
)
from support.simulated import DIALECTS

every_provider = pytest.mark.parametrize("provider", MODELS)
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c636060"
    "60f80f0001040100e15f1b5a0000000049454e44ae426082"
)


# From submission to results.


@every_provider
def test_results_match_their_requests_by_id(provider):
    """Each result has the id of its request, in whatever order it comes, and its own answer."""
    prompts = {f"id-{number}": f"number {number}" for number in range(7)}

    async def work(client, _):
        job = await batch.submit(prompts, f"{provider}:{MODELS[provider]}", client=client)
        ended = await finish(job, client)
        items = [item async for item in batch.results(ended, client=client)]
        return job, ended, items

    job, ended, items = with_client(provider, work)
    assert not job.is_ended
    assert ended.state == "completed"
    assert ended.counts.total == ended.counts.succeeded == 7
    assert {item.id: item.unwrap().text for item in items} == {
        item_id: f"Answer to {prompt}" for item_id, prompt in prompts.items()
    }
    if provider != "gemini":  # the only one that promises an order
        assert [item.id for item in items] != list(prompts)


@every_provider
def test_failures_are_errors_of_their_requests(provider):
    """A refused, a limited and an expired request have the errors that calls would have."""
    prompts = {"good": "fine", "bad": "bad", "busy": "busy", "late": "late"}

    async def work(client, _):
        job = await batch.submit(prompts, f"{provider}:{MODELS[provider]}", client=client)
        ended = await finish(job, client)
        return ended, await collect(ended, client)

    ended, items = with_client(provider, work)
    # xAI has no state for it: a request that has expired is one that failed.
    assert ended.state == ("completed" if provider == "xai" else "expired")
    assert items["good"].response.text == "Answer to fine"
    kinds = {item_id: type(item.error) for item_id, item in items.items()}
    assert kinds == {
        "good": type(None),
        "bad": InvalidRequestError,
        "busy": RateLimitError,
        "late": ProviderTimeoutError,
    }
    assert items["bad"].error.provider == provider
    assert items["bad"].error.request_id == "bad"
    assert "No such thing." in str(items["bad"].error)
    with pytest.raises(InvalidRequestError):
        items["bad"].unwrap()


@every_provider
def test_cancelled(provider):
    """What was answered before has its answer, the rest is cancelled."""
    prompts = {f"id-{number}": "hello" for number in range(4)}

    async def work(client, _):
        job = await batch.submit(prompts, f"{provider}:{MODELS[provider]}", client=client)
        half = await batch.status(job, client=client)
        asked = await batch.cancel(job, client=client)
        ended = await finish(asked, client)
        return half, ended, await collect(ended, client)

    half, ended, items = with_client(provider, work)
    assert (half.state, half.counts.succeeded) == ("in_progress", 2)
    assert ended.state == "cancelled"
    errors = [type(item.error) for item in items.values() if item.error]
    assert errors == [AbortError, AbortError]
    assert sum(item.response is not None for item in items.values()) == 2


@every_provider
def test_each_answer_has_the_price_of_batches(provider):
    """The tier is `batch`, and its prices are below the standard ones, where they are known."""

    async def work(client, _):
        target = f"{provider}:{MODELS[provider]}"
        job = await finish(await batch.submit(["hello"], target, client=client), client)
        (item,) = (await collect(job, client)).values()
        request = Request(model=target, messages="hello", provider_options={})
        return item.response, await client.complete(request)

    batched, called = with_client(provider, work, text("Hello to you."))
    assert batched.usage.service_tier == "batch"
    assert batched.usage.output_tokens == called.usage.output_tokens
    if provider == "openai_compatible":
        assert batched.cost is None
        assert [warning.code for warning in batched.warnings] == ["price_unknown"]
    else:
        share = 0.8 if provider == "xai" else 0.5  # as the catalog has it for these models
        assert batched.cost.output == pytest.approx(called.cost.output * share)


@every_provider
def test_requests_are_prepared_as_calls_are(provider):
    """The same bodies arrive as from calls: settings, tools, system prompts, files."""
    tool = Tool(name="look", description="d", parameters={"type": "object", "properties": {}})
    requests = [
        Request(model=MODELS[provider], messages="one", max_tokens=50),
        Request(model=MODELS[provider], messages="two", max_tokens=50, tools=(tool.definition,)),
        Request(model=MODELS[provider], messages=(Message.system("Brief."), Message.user("three"))),
        Request(
            model=MODELS[provider],
            messages=(Message.user(["four", Image(data=PNG, media_type="image/png")]),),
        ),
    ]

    async def work(client, app):
        for request in requests:
            await client.complete(request)
        called = [each.call for each in app.script.received]
        await finish(await batch.submit(requests, client=client), client)
        return called, [each for each in app.script.received if each.request][len(requests) :]

    called, batched = with_client(provider, work, text("Fine."))
    bodies = [{**each.call.body, "stream": None} for each in batched]
    assert bodies == [{**each.body, "stream": None} for each in called]


@every_provider
def test_another_process_goes_on_after_a_crash(provider):
    """A process that is killed after it has submitted leaves a reference, which is enough."""
    with serve_in_thread(Simulator(answer)) as server:
        base = f"{server.url}/v1" if provider in VERSIONED else server.url
        program = f"""
            import asyncio, os
            from interlingua import batch, Client
            from interlingua.providers.adapter import HttpAdapter
            client = Client({{{provider!r}: HttpAdapter({provider!r}, "k", base_url={base!r})}})
            async def main():
                job = await batch.submit(
                    {{"a": "first", "b": "bad"}}, "{provider}:{MODELS[provider]}", client=client
                )
                print(job.reference, flush=True)
                os.kill(os.getpid(), 9)
            asyncio.run(main())
        """
        killed = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert killed.returncode == -9, killed.stderr

        async def go_on():
            async with Client({provider: HttpAdapter(provider, "k", base_url=base)}) as client:
                job = await batch.wait(killed.stdout.strip(), poll_interval=0.01, client=client)
                return await collect(job, client)

        items = asyncio.run(go_on())

    assert items["a"].response.text == "Answer to first"
    assert isinstance(items["b"].error, InvalidRequestError)
    assert items.keys() == {"a", "b"}


@every_provider
def test_json(provider):
    """A batch survives JSON, and goes on from there."""

    async def work(client, _):
        job = await batch.submit(["hello"], f"{provider}:{MODELS[provider]}", client=client)
        again = from_json(to_json(job), batch.Batch)
        ended = await finish(again, client)
        stored = from_json(to_json(ended), batch.Batch)
        return job, again, ended, stored, await collect(stored, client)

    job, again, ended, stored, items = with_client(provider, work)
    assert (again, stored) == (job, ended)
    assert items["request-0"].response.text == "Answer to hello"


@every_provider
def test_listed_newest_first(provider):
    """All pages are read, up to a limit."""

    async def work(client, _):
        model = f"{provider}:{MODELS[provider]}"
        jobs = [await batch.submit(["hello"], model, client=client) for _ in range(3)]
        listed = await batch.list(provider, client=client)
        return jobs, listed, await batch.list(provider, limit=2, client=client)

    jobs, listed, two = with_client(provider, work)
    assert [job.reference for job in listed] == [job.reference for job in reversed(jobs)]
    assert [job.id for job in two] == [job.id for job in listed[:2]]


@every_provider
def test_named(provider):
    """A batch is found in the list by its name; a provider without names is a warning."""

    async def work(client, _):
        job = await batch.submit(["one"], MODELS[provider], client=client, name="nightly-7")
        (listed,) = await batch.list(provider, client=client)
        return job, listed

    job, listed = with_client(provider, work)
    codes = [(warning.code, warning.path) for warning in job.warnings]
    if provider == "anthropic":
        assert (listed.name, codes) == ("", [("setting_dropped", "name")])
    else:
        assert (job.name, listed.name, codes) == ("nightly-7", "nightly-7", [])


@every_provider
def test_deleted(provider):
    """Nothing of an ended batch is left; before its end it cannot be deleted."""

    async def work(client, app):
        model = f"{provider}:{MODELS[provider]}"
        job = await batch.submit(["hello", "bad"], model, client=client)
        with pytest.raises(ConfigurationError, match="has not ended"):
            await batch.delete(job, client=client)
        ended = await finish(job, client)
        await batch.delete(ended, client=client)
        await batch.delete(ended, client=client) if ended.input_file else None
        return app._operations.files.list_files(ListFilesInput())

    assert with_client(provider, work) == []


def test_many_gemini_requests_are_a_file():
    """Above the limit of a call, requests and results are files; the results are the same."""
    long = "x" * 5_000_000

    async def work(client, _):
        prompts = {f"id-{number}": f"{number} {long}" for number in range(5)}
        job = await batch.submit(prompts, "gemini:gemini-2.5-flash", client=client)
        ended = await finish(job, client)
        items = await collect(ended, client)
        return job, ended, items

    job, ended, items = with_client("gemini", work, text("Long."))
    assert job.input_file.startswith("files/")
    assert ended.outputs[0].startswith("files/")
    assert {item.response.text for item in items.values()} == {"Long."}
    assert len(items) == 5


# Waiting and cancelling.


def test_progress():
    """Each answer about a batch is shown, also to an async callback."""
    seen = []

    async def note(job):
        seen.append((job.state, job.counts.ended))

    async def work(client, _):
        job = await batch.submit(["a"] * 6, "openai:gpt-5.2", client=client)
        await batch.wait(job, client=client, poll_interval=0.001, on_progress=note)

    with_client("openai", work, batch_polls=3)
    assert seen == [("in_progress", 2), ("in_progress", 4), ("completed", 6)]


def test_a_wait_ends_by_its_timeout_or_by_its_id():
    """`timeout` and `client.cancel` end the wait, not the batch."""

    async def work(client, _):
        job = await batch.submit(["a"] * 10, "openai:gpt-5.2", client=client)
        with pytest.raises(TimeoutError):
            await batch.wait(job, client=client, timeout=0.05, poll_interval=60)
        waiting = asyncio.ensure_future(
            batch.wait(job, client=client, request_id="w", poll_interval=60)
        )
        await asyncio.sleep(0.05)
        assert await client.cancel("w")
        with pytest.raises(AbortError):
            await waiting
        return await batch.status(job, client=client)

    assert not with_client("openai", work, batch_polls=10).is_ended


@pytest.mark.parametrize("interval", [0, -1, "soon", True])
def test_wrong_intervals(interval):
    """An interval is a number of seconds above 0."""

    async def main():
        await batch.wait("openai:batch_1", poll_interval=interval)

    with pytest.raises(ConfigurationError, match="poll_interval"):
        asyncio.run(main())


def test_closing_stops_the_download():
    """Leaving the loop closes the connection."""

    async def work(client, app):
        job = await batch.submit(["a"] * 50, "openai:gpt-5.2", client=client)
        ended = await finish(job, client)
        async with batch.results(ended, client=client) as items:
            first = await anext(aiter(items))
        with pytest.raises(StopAsyncIteration):
            await anext(aiter(items))
        return first.id, app.script.received[-1].call.path

    first, path = with_client("openai", work)
    assert first.startswith("request-")
    assert path.endswith("/content")


# Blocking.


@every_provider
def test_blocking(provider):
    """The same functions without async."""
    with serve_in_thread(Simulator(answer)) as server:
        client = client_for(server.url, provider)
        model = f"{provider}:{MODELS[provider]}"
        job = sync.batch.submit({"a": "one", "b": "bad"}, model, client=client)
        assert not sync.batch.status(job, client=client).is_ended
        ended = sync.batch.wait(job.reference, client=client, poll_interval=0.001)
        items = {item.id: item for item in sync.batch.results(ended, client=client)}
        listed = sync.batch.list(provider, client=client)
        sync.batch.cancel(ended, client=client)
        sync.batch.delete(ended, client=client)
    assert items["a"].response.text == "Answer to one"
    assert isinstance(items["b"].error, InvalidRequestError)
    assert [each.id for each in listed] == [job.id]


def test_the_dialect_of_the_adapter_decides_the_endpoint():
    """The same provider by its other dialect has batches of the other endpoint."""
    app = Simulator(answer)
    adapter = HttpAdapter(
        "openai", "k", dialect=DIALECTS["openai_compatible"], transport=AsgiTransport(app)
    )
    client = Client({"openai": adapter})

    async def main():
        job = await batch.submit(["a"], "openai:gpt-5.2", client=client)
        ended = await finish(job, client)
        return job, await collect(ended, client)

    job, items = asyncio.run(main())
    assert job.endpoint == "/v1/chat/completions"
    assert items["request-0"].response.text == "Answer to a"
