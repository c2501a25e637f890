"""`Logging`: one record per call, with facts and without content."""

import asyncio
import json
import logging

import pytest

from interlingua import Client, RetryPolicy, generate, sync, tool
from interlingua.client.middleware.cache import Cache
from interlingua.client.middleware.logging import CALLS, Logging
from interlingua.simulator import error, text, tool_call
from interlingua.spec.errors import ServerError
from interlingua.spec.events import TextDelta
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from support.scripted_adapter import ScriptedAdapter
from support.simulated import KEY, simulated

PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "taskName"}


def fields_of(record):
    """The fields that the library added."""
    return {name: value for name, value in vars(record).items() if name not in PLAIN}


async def whole(client, request, **options):
    return await client.complete(request, **options)


async def streamed(client, request, **options):
    return [event async for event in client.stream(request, **options)][-1].response


both = pytest.mark.parametrize("ask", [whole, streamed])


def log_of(caplog, work, *answers, **settings):
    """The records of what `work` does with a client and a request."""
    caplog.set_level(logging.INFO, CALLS)
    with simulated(*answers) as peer:
        client = peer.client.with_middleware(Logging(**settings))

        async def main():
            try:
                await work(client, peer)
            finally:
                await client.close()

        asyncio.run(main())
    return [record for record in caplog.records if record.name == CALLS]


@both
def test_a_call_is_one_record_with_its_facts(ask, caplog):
    """The same whole and streamed; nothing of what was said."""

    async def work(client, peer):
        await ask(client, peer.ask("anthropic", "My secret", request_id="r1", session_id="s1"))

    (record,) = log_of(caplog, work, text("The answer"))
    fields = fields_of(record)

    assert record.levelno == logging.INFO
    assert fields["latency_ms"] > 0
    assert fields["input_tokens"] > 0
    assert (
        fields.items()
        >= {
            "request_id": "r1",
            "session_id": "s1",
            "step": 0,
            "provider": "anthropic",
            "model": "claude-haiku-4-5",
            "stream": ask is streamed,
            "finish_reason": "stop",
            "attempts": 1,
            "is_cached": False,
        }.items()
    )
    shown = json.dumps(fields) + record.getMessage()
    assert "anthropic:claude-haiku-4-5" in record.getMessage()
    for secret in (KEY, "My secret", "The answer"):
        assert secret not in shown


@both
def test_a_failure_is_a_warning(ask, caplog):
    """With the class of the error, its status and the number of attempts."""

    async def work(client, peer):
        policy = RetryPolicy(max_retries=1, base_delay=0)
        with pytest.raises(ServerError):
            await ask(client, peer.ask("openai", "My secret"), retry=policy)

    (record,) = log_of(caplog, work, error(500))
    fields = fields_of(record)

    assert record.levelno == logging.WARNING
    assert (
        fields.items()
        >= {
            "error": "ServerError",
            "error_class": "server_error",
            "status_code": 500,
            "retryable": True,
            "attempts": 2,
        }.items()
    )
    assert "My secret" not in json.dumps(fields)


@both
def test_retries_are_counted(ask, caplog):
    """A call that succeeded in the end is no failure."""

    async def work(client, peer):
        await ask(client, peer.ask("gemini"), retry=RetryPolicy(max_retries=2, base_delay=0))

    (record,) = log_of(caplog, work, error(503), text("ok"))

    assert (record.levelno, record.attempts) == (logging.INFO, 2)


def test_a_stream_that_was_left_is_logged(caplog):
    """As cancelled, which is no failure."""

    async def work(client, peer):
        stream = client.stream(peer.ask("anthropic"))
        async for event in stream:
            if type(event) is TextDelta:
                break
        await stream.aclose()

    (record,) = log_of(caplog, work, text("a long answer"))

    assert (record.levelno, record.error_class, record.attempts) == (logging.INFO, "cancelled", 1)


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


def test_the_steps_of_a_run_are_numbered(caplog):
    """They have one request id, and the names of the tools that were called."""

    async def work(client, _):
        await generate("anthropic:claude-haiku-4-5", "Hi.", tools=[weather], client=client)

    first, second = log_of(caplog, work, tool_call("weather", {"city": "Oslo"}), text("Rain."))

    assert (first.step, second.step) == (0, 1)
    assert first.request_id == second.request_id
    assert first.tool_calls == ["weather"]


@both
def test_content_is_logged_on_request(ask, caplog):
    """Cut, without keys, and without what `redact` removes."""

    async def work(client, peer):
        await ask(client, peer.ask("anthropic", f"I am Ada, key sk-{'a' * 40} and more words"))

    settings = {"content": True, "max_content": 30, "redact": lambda each: each.replace("Ada", "X")}
    (record,) = log_of(caplog, work, text("Hello Ada"), **settings)

    assert record.input == "I am X, key [redacted] and mor…"
    assert record.output == "Hello X"


def test_operations_are_logged(caplog):
    """With their names."""

    async def work(client, peer):
        await client.count_tokens(peer.ask("anthropic", session_id="s1"))
        await client.list_models("anthropic")

    first, second = log_of(caplog, work)

    assert (first.operation, first.session_id, first.model) == (
        "count_tokens",
        "s1",
        "claude-haiku-4-5",
    )
    assert second.operation == "list_models"


def test_a_failed_operation_is_a_warning(caplog):
    """With the class of its error."""
    caplog.set_level(logging.INFO, CALLS)

    class Refusing(ScriptedAdapter):
        name = "here"

        async def perform(self, *_, **__):
            raise ServerError("down", provider="here")

    client = Client({"here": Refusing()}, middleware=[Logging()])
    with pytest.raises(ServerError):
        asyncio.run(client.perform("here", "list_models"))
    (record,) = caplog.records

    assert (record.levelno, record.operation) == (logging.WARNING, "list_models")
    assert record.error_class == "server_error"


def test_an_answer_from_the_cache_is_told(caplog):
    """It has no attempts and costs nothing."""
    caplog.set_level(logging.INFO, CALLS)
    with simulated(text("ok")) as peer:
        client = peer.client.with_middleware(Logging(), Cache())

        async def main():
            for ask in (whole, whole, streamed):
                await ask(client, peer.ask("openai"))
            await client.close()

        asyncio.run(main())
    found = [(record.is_cached, record.attempts) for record in caplog.records]

    assert found == [(False, 1), (True, 0), (True, 0)]
    assert [record.cost for record in caplog.records[1:]] == [0.0, 0.0]


def test_blocking_calls_are_logged(caplog):
    """The same middleware serves them, with a logger of the program."""
    logger = logging.getLogger("mine")
    caplog.set_level(logging.INFO, "mine")
    with simulated(text("ok")) as peer:
        blocking = sync.Client.wrap(peer.client.with_middleware(Logging(logger)))
        blocking.complete(peer.ask("openai"))
        blocking.close()

    assert [record.name for record in caplog.records] == ["mine"]


def test_nothing_is_done_if_nobody_listens(caplog):
    """The level of the logger counts."""
    caplog.set_level(logging.ERROR, CALLS)

    class Refusing:
        name = "here"

        async def complete(self, _):
            raise ServerError("down", provider="here")

        def stream(self, _):
            raise NotImplementedError

    client = Client({"here": Refusing()}, middleware=[Logging(content=True)])
    with pytest.raises(ServerError):
        asyncio.run(client.complete(Request(model="m", messages=[Message.user("Hi.")])))

    assert caplog.records == []
