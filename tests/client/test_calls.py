"""Attempts, and what is told of them: see also test_client.py, which has them on the wire."""

import asyncio

import pytest

from interlingua.client.calls import Calls, policy_of
from interlingua.client.events import CallCompleted, CallFailed, CallStarted
from interlingua.spec.errors import AbortError, RateLimitError
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


def test_only_a_setting_makes_it_try_again():
    """Layer 3 never retries by itself."""
    assert policy_of(Adapter(0, 0)) is None
    assert policy_of(object()) is None
    assert policy_of(Adapter(0, 3)).max_retries == 3
