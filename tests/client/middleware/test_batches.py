"""Middleware around batches: budgets, redaction, usage reports, rate limits, logs, guards."""

import asyncio
import logging

import pytest

from interlingua import Client, Request, batch
from interlingua.errors import (
    BudgetExceededError,
    ConfigurationError,
    InvalidRequestError,
    NetworkError,
)
from interlingua.middleware import Budget, Logging, RateLimit, Redact
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.cost import price_usage
from interlingua.providers.tariffs import Seller, Tariffs
from interlingua.simulator import Simulator, echo, text
from interlingua.spec.response import Usage
from interlingua.transport import AsgiTransport, CannedReply, CannedTransport
from support.batches import BATCH, FILE, reply

MODEL = "openai:gpt-5.2"
ITEMS = {f"id-{number}": {"prompt": "hello", "max_tokens": 1000} for number in range(10)}


def made(*middleware, script=echo):
    app = Simulator(script)
    adapter = HttpAdapter("openai", "k", transport=AsgiTransport(app))
    return Client({"openai": adapter}, middleware=middleware), app


async def ended(client, items=ITEMS, **options):
    job = await batch.submit(items, MODEL, client=client, **options)
    return await batch.wait(job, client=client, poll_interval=0.001)


def output_price(tokens, tier):
    tariff = Tariffs()[Seller("openai"), "gpt-5.2", "gpt-5.2"]
    return price_usage(Usage(output_tokens=tokens, service_tier=tier), tariff, 2e9).total


# Budgets.


def test_a_budget_counts_a_batch_when_it_is_submitted():
    """The most that it should cost, at the prices of batches; results change nothing."""
    budget = Budget(usd=1)

    async def main():
        client, _ = made(budget)
        job = await batch.submit(ITEMS, MODEL, client=client)
        submitted = await budget.used()
        job = await batch.wait(job, client=client, poll_interval=0.001)
        assert len([item async for item in batch.results(job, client=client)]) == 10
        await batch.list("openai", client=client)
        await batch.delete(job, client=client)
        return submitted, await budget.used()

    submitted, later = asyncio.run(main())
    most = output_price(10_000, "batch")
    assert most < submitted < most * 1.05
    assert most == pytest.approx(output_price(10_000, None) / 2)
    assert later == submitted


def test_a_batch_above_the_budget_is_not_sent():
    """It is refused before anything is sent, and nothing stays reserved."""
    budget = Budget(usd=output_price(10_000, "batch") * 0.9)

    async def main():
        client, app = made(budget)
        with pytest.raises(BudgetExceededError, match="was not sent"):
            await batch.submit(ITEMS, MODEL, client=client)
        return app.script.received, await budget.used()

    assert asyncio.run(main()) == ((), 0)


def test_budgets_of_users():
    """Each request counts for its own user."""
    budget = Budget(usd=1, key="user")
    items = [
        Request(model="gpt-5.2", messages="a", user="ann", max_tokens=1000),
        Request(model="gpt-5.2", messages="b", user="ann", max_tokens=1000),
        Request(model="gpt-5.2", messages="c", user="bob", max_tokens=1000),
        Request(model="gpt-5.2", messages="d", max_tokens=1000),
    ]

    async def main():
        client, _ = made(budget)
        await batch.submit(items, client=client)
        return await budget.used("ann"), await budget.used("bob")

    ann, bob = asyncio.run(main())
    assert ann == pytest.approx(2 * bob)
    assert bob > 0


@pytest.mark.parametrize(
    ("outcome", "is_counted"),
    [(reply({"error": {"message": "no"}}, 400), False), (NetworkError("lost"), True)],
)
def test_a_batch_that_failed(outcome, is_counted):
    """A refused batch is not counted; one that may exist is."""
    budget = Budget(usd=1)
    replies = [reply(FILE), outcome, reply({"id": "file-1"})]
    adapter = HttpAdapter("openai", "k", transport=CannedTransport(replies))
    client = Client({"openai": adapter}, middleware=[budget])

    async def main():
        with pytest.raises((InvalidRequestError, NetworkError)):
            await batch.submit(ITEMS, MODEL, client=client)
        return await budget.used()

    assert (asyncio.run(main()) > 0) is is_counted


def test_unknown_prices_are_refused():
    """A budget that cannot count a request of a batch refuses the batch, and names the request."""

    async def main():
        client, app = made(Budget(usd=1))
        with pytest.raises(ConfigurationError, match="price of openai:house is unknown"):
            await batch.submit(["a"], "openai:house", client=client)
        own = client.with_prices({"house": {"input": 1, "output": 1}})
        await batch.submit(["a"], "openai:house", client=own)
        return len(app.script.received)

    assert asyncio.run(main()) == 2


# Redaction.


def test_each_request_is_redacted():
    """What arrives has marks; the answers are as they came."""
    prompts = {"a": "Write to ann@example.com", "b": "Write to bob@example.com"}

    async def main():
        client, app = made(Redact("email"))
        job = await ended(client, prompts)
        items = {item.id: item async for item in batch.results(job, client=client)}
        return [request.messages[-1].text for request in app.script.requests], items

    seen, items = asyncio.run(main())
    assert seen == ["Write to [EMAIL_1]"] * 2
    assert "[EMAIL_1]" in items["a"].response.text


def test_marks_are_restored_with_the_requests():
    """Another process that has the requests can tell what the marks stand for."""
    prompts = {"a": "Write to ann@example.com", "b": "Write to bob@example.com"}

    async def main():
        client, app = made(Redact("email", restore=True))
        job = await ended(client, prompts)
        transport = client.adapter("openai")
        other = Client({"openai": transport}, middleware=[Redact("email", restore=True)])
        found = batch.results(job, client=other, requests=prompts)
        restored = {item.id: item.response.text async for item in found}
        plain = {i.id: i.response.text async for i in batch.results(job, client=other)}
        return app.script.requests, restored, plain

    sent, restored, plain = asyncio.run(main())
    assert not any("example.com" in request.messages[-1].text for request in sent)
    assert "ann@example.com" in restored["a"]
    assert "bob@example.com" in restored["b"]
    assert "[EMAIL_1]" in plain["a"]


def test_answers_are_redacted():
    """With `answers`, also those of batches, and their raw form is left out."""

    async def main():
        client, _ = made(Redact("email", answers=True), script=text("Ask zoe@example.com."))
        job = await ended(client, ["hello"])
        return [item async for item in batch.results(job, client=client)]

    (item,) = asyncio.run(main())
    assert item.response.text == "Ask [EMAIL_1]."
    assert item.raw is None


# Others.


def test_usage_of_each_answer_is_reported():
    """With `on_usage`, once for each answer, with its cost."""
    reports = []

    async def main():
        client, _ = made()
        job = await ended(client)
        found = batch.results(job, client=client, on_usage=reports.append, caller_id="me")
        return [item async for item in found]

    items = asyncio.run(main())
    assert sorted(report.request_id for report in reports) == sorted(ITEMS)
    costs = {item.id: item.response.cost.total for item in items}
    assert {report.request_id: report.cost.total for report in reports} == costs


def test_a_batch_is_one_request_for_a_rate_limit():
    """It passes where each of its requests would have to wait."""

    async def main():
        client, _ = made(RateLimit(requests_per_minute=6))
        async with asyncio.timeout(5):
            return await ended(client)

    assert asyncio.run(main()).counts.succeeded == 10


def test_batches_are_logged(caplog):
    """Each operation has a line, without what is in the requests."""

    async def main():
        client, _ = made(Logging())
        await ended(client, ["a secret prompt"])

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    names = {getattr(each, "operation", None) for each in caplog.records}
    assert {"submit_batch", "retrieve_batch"} <= names
    assert "a secret prompt" not in caplog.text


def test_a_guard_that_cannot_see_batches_refuses_them():
    """A guard of one's own without `perform` is not bypassed."""

    class Guard:
        guard = True

        async def complete(self, request, call_next):
            return await call_next(request)

    async def main():
        client, app = made(Guard())
        with pytest.raises(ConfigurationError, match="refused"):
            await batch.submit(["a"], MODEL, client=client)
        return app.script.received

    assert asyncio.run(main()) == ()


@pytest.mark.usefixtures("no_backoff")
def test_retries_are_counted_once():
    """A creation that is retried reserves nothing twice."""
    budget = Budget(usd=1)
    busy = CannedReply(status=429, body=b'{"error": {"message": "busy"}}')
    replies = [reply(FILE), busy, reply({"id": "file-1"}), reply(FILE), reply(BATCH)]
    adapter = HttpAdapter("openai", "k", transport=CannedTransport(replies))
    client = Client({"openai": adapter}, middleware=[budget])

    async def main():
        await batch.submit(ITEMS, MODEL, client=client, max_retries=1)
        return await budget.used()

    assert asyncio.run(main()) == pytest.approx(output_price(10_000, "batch"), rel=0.05)
