"""Attempts, and what is told of them: see also test_client.py, which has them on the wire."""

import asyncio

import pytest
from msgspec.structs import replace

from interlingua.client.attempts import Calls, policy_of
from interlingua.client.call_events import CallCompleted, CallFailed, CallStarted
from interlingua.spec.errors import AbortError, ConfigurationError, RateLimitError
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Usage

REQUEST = Request(model="m", request_id="r")


class Adapter:
    """Fails as often as told, then answers."""

    name = "here"

    def __init__(self, failures, max_retries):
        self.failures = failures
        self.max_retries = max_retries

    async def complete(self, request):
        if self.failures:
            self.failures -= 1
            raise RateLimitError("slow down", retry_after=self.wait)
        return Response(
            model=request.model,
            finish_reason=FinishReason(reason="stop"),
            usage=Usage(input_tokens=1, output_tokens=2),
        )

    wait = 0.0


def test_each_attempt_is_told():
    """With its number, and how it ended."""
    calls, told = Calls(), []
    calls.subscribers = (told.append,)

    answer = asyncio.run(calls.complete(Adapter(1, 2), REQUEST))

    assert answer.usage.total_tokens == 3
    assert [(type(event), event.attempt) for event in told] == [
        (CallStarted, 0),
        (CallFailed, 0),
        (CallStarted, 1),
        (CallCompleted, 1),
    ]
    assert (told[-1].finish_reason, told[-1].usage) == ("stop", answer.usage)


def test_a_wait_can_be_cancelled():
    """The call ends as aborted, and its id is free again."""

    async def run():
        calls, adapter = Calls(), Adapter(5, 5)
        adapter.wait = 30.0
        waiting = asyncio.ensure_future(calls.complete(adapter, REQUEST))
        await asyncio.sleep(0.01)
        told = calls.cancel("r"), calls.cancel("r")
        with pytest.raises(AbortError) as caught:
            await waiting
        return told, caught.value.request_id, calls.cancel("r")

    assert asyncio.run(run()) == ((True, False), "r", False)


def test_all_waits_end_when_it_is_closed():
    """Nobody is left waiting for an attempt that cannot be made."""

    async def run():
        calls, adapter = Calls(), Adapter(5, 5)
        adapter.wait = 30.0
        waiting = [
            asyncio.ensure_future(calls.complete(adapter, replace(REQUEST, request_id=name)))
            for name in "ab"
        ]
        await asyncio.sleep(0.01)
        calls.close()
        done = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 10)
        return [type(error) for error in done]

    assert asyncio.run(run()) == [AbortError, AbortError]


def test_an_id_is_one_calls():
    """The second is refused, and the first can still be cancelled."""

    async def run():
        calls, adapter = Calls(), Adapter(5, 5)
        adapter.wait = 30.0
        first = asyncio.ensure_future(calls.complete(adapter, REQUEST))
        await asyncio.sleep(0.01)
        with pytest.raises(ConfigurationError, match="request id 'r' is under way"):
            await calls.complete(adapter, REQUEST)
        assert calls.cancel("r")
        await asyncio.gather(first, return_exceptions=True)

    asyncio.run(run())


def test_one_request_if_asked():
    """Whatever is set: who calls tries again by itself."""
    adapter = Adapter(1, 3)
    with pytest.raises(RateLimitError):
        asyncio.run(Calls().complete(adapter, REQUEST, retries=False))

    assert adapter.failures == 0


def test_a_listener_that_fails_ends_nothing(caplog):
    """It is logged; the others hear, and the call is answered."""
    calls, told = Calls(), []

    def broken(event):
        raise ValueError(event)

    calls.subscribers = (broken, told.append)
    answer = asyncio.run(calls.complete(Adapter(0, 0), REQUEST))

    assert answer.finish_reason.reason == "stop"
    assert [event.type for event in told] == ["call_started", "call_completed"]
    assert "a subscriber failed on call_started" in caplog.text


def test_an_error_that_is_not_ours_is_an_end_too():
    """An adapter may be anybody's."""

    class Broken(Adapter):
        async def complete(self, request):
            raise KeyError(request.model)

    calls, told = Calls(), []
    calls.subscribers = (told.append,)
    with pytest.raises(KeyError):
        asyncio.run(calls.complete(Broken(0, 0), REQUEST))

    assert [type(event) for event in told] == [CallStarted, CallFailed]
    assert told[-1].message == "KeyError"


def test_only_a_setting_makes_it_try_again():
    """Layer 3 never retries by itself."""
    assert policy_of(Adapter(0, 0)) is None
    assert policy_of(object()) is None
    assert policy_of(Adapter(0, 3)).max_retries == 3
