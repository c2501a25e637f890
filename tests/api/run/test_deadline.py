"""Runs that end early."""

import asyncio
import threading

import pytest

from interlingua.providers.cancel import AbortController
from interlingua.api.run.deadline import Stopper
from interlingua.api.run.options import TimeoutConfig
from interlingua.spec.errors import AbortError, RequestTimeoutError
from interlingua.spec.response import Response


def run(work, signal=None, **clocks):
    async def whole():
        with Stopper(signal, TimeoutConfig(**clocks)) as stopper:
            return await work(stopper)

    return asyncio.run(whole())


def test_nothing_happens_in_time():
    """What is awaited comes through, and no clock is left."""
    signal = AbortController().signal

    async def work(stopper):
        stopper.start_step()
        answer = await stopper.wait(asyncio.sleep(0, "answer"))
        stopper.end_step()
        return answer

    assert run(work, signal, total=60, per_step=60) == "answer"
    assert signal._callbacks == []


@pytest.mark.parametrize("clock", ["total", "per_step"])
def test_clocks(clock):
    """Of everything, or of one step."""

    async def work(stopper):
        stopper.start_step()
        await stopper.wait(asyncio.sleep(60))

    with pytest.raises(RequestTimeoutError, match=r"longer than 0\.02 s") as caught:
        run(work, **{clock: 0.02})

    assert not caught.value.retryable


def test_a_step_that_ended_has_no_clock():
    """The next thing may take longer."""

    async def work(stopper):
        stopper.start_step()
        stopper.end_step()
        return await stopper.wait(asyncio.sleep(0.05, "answer"))

    assert run(work, per_step=0.01) == "answer"


@pytest.mark.parametrize("clock", ["total", "per_step"])
def test_a_clock_that_is_held(clock):
    """Whoever reads what has come may take any time; what is waited for afterwards may not."""

    async def work(stopper):
        stopper.start_step()
        for _ in range(2):
            stopper.hold()
            await asyncio.sleep(0.3)  # longer than it has
            assert stopper.release()
        assert await stopper.wait(asyncio.sleep(0, "in time")) == "in time"
        await stopper.wait(asyncio.sleep(60))

    with pytest.raises(RequestTimeoutError):
        run(work, **{clock: 0.25})


def test_a_clock_that_was_held_and_stopped():
    """It does not start again."""

    async def work(stopper):
        stopper.start_step()
        stopper.hold()
        stopper.end_step()
        stopper.release()
        return await stopper.wait(asyncio.sleep(0.05, "answer"))

    assert run(work, per_step=0.01) == "answer"


@pytest.mark.parametrize("how", ["abort", "total", "per_step"])
def test_the_run_has_a_signal_of_its_own(how):
    """It fires at once with the caller's, and with a clock; and it is there without either."""
    controller = AbortController()

    async def work(stopper):
        stopper.start_step()
        assert not stopper.signal.aborted
        if how == "abort":
            controller.abort("enough")
            assert stopper.signal.aborted
            assert stopper.is_stopped
            assert not stopper.release()
        with pytest.raises((AbortError, RequestTimeoutError)) as caught:
            await stopper.wait(asyncio.sleep(60))
        assert stopper.signal.aborted
        return caught.value.message == stopper.signal.reason

    clocks = {} if how == "abort" else {how: 0.02}
    assert run(work, controller.signal if how == "abort" else None, **clocks)


def test_a_signal_from_another_thread():
    """It wakes whoever waits, and calls what was asked to be called, once."""
    controller, told = AbortController(), []

    async def work(stopper):
        stopper.on_stop = lambda: told.append(1)
        thread = threading.Timer(0.02, controller.abort, ["enough"])
        thread.start()
        try:
            await stopper.wait(asyncio.sleep(60))
        finally:
            thread.join()
            controller.abort()
            told.append(stopper.is_stopped)

    with pytest.raises(AbortError, match="enough"):
        run(work, controller.signal)

    assert told == [1, True]


def test_given_up_before_it_began():
    """Nothing is done at all."""
    controller = AbortController()
    controller.abort()

    with pytest.raises(AbortError):
        run(lambda _: None, controller.signal)


def test_the_error_has_what_had_come():
    """For whoever wants to keep it."""

    async def work(stopper):
        return stopper.error(Response(model="m"))

    assert run(work).partial.model == "m"
