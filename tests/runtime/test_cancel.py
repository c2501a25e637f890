"""Cancelling what waits, and only that."""

import asyncio
import contextlib
import threading

import pytest

from interlingua.runtime.cancel import AbortController, CancelScope, Scopes, call_in_loop
from interlingua.spec.errors import AbortError, RequestTimeoutError
from interlingua.spec.response import Response
from support import virtual_time
from support.patience import PATIENCE


class Reply:
    """A reply that notes whether its connection was closed."""

    def __init__(self):
        self.aborted = False

    def abort(self):
        self.aborted = True


def test_what_is_awaited_comes_through():
    """Without a cancellation it is as if it were not there."""

    async def run():
        return await CancelScope().wait(asyncio.sleep(0, "answer"))

    assert asyncio.run(run()) == "answer"


def test_cancel_wakes_the_wait():
    """Once; asked again it says that it was before."""

    async def run():
        scope = CancelScope()
        waiting = asyncio.ensure_future(scope.wait(asyncio.sleep(60)))
        await asyncio.sleep(0)
        told = scope.cancel(), scope.cancel()
        with pytest.raises(AbortError):
            await waiting
        return told

    assert asyncio.run(run()) == (True, False)


def test_a_cancelled_scope_waits_no_more():
    """The next wait ends before it begins."""

    async def run():
        scope = CancelScope()
        scope.cancel()
        with pytest.raises(AbortError):
            await scope.wait(asyncio.sleep(60))

    asyncio.run(run())


def test_a_busy_task_is_not_touched():
    """It does its own work to the end; only the connection is closed."""

    async def run():
        scope = CancelScope()
        reply = Reply()
        scope.replies = (reply,)

        async def stop():
            return scope.cancel()

        stopping = asyncio.ensure_future(stop())
        await asyncio.sleep(0.01)  # not through the scope
        assert reply.aborted
        return await stopping

    assert asyncio.run(run()) is True


def test_the_callers_own_cancellation_goes_first():
    """A task that is cancelled from outside at the same time ends as cancelled."""

    async def run():
        scope = CancelScope()
        task = asyncio.ensure_future(scope.wait(asyncio.sleep(60)))
        await asyncio.sleep(0)
        scope.cancel()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


@pytest.mark.parametrize("caught_before", [1, 2])
def test_a_cancellation_that_was_caught_before(caught_before):
    """A task that has outlived one is no less its own: the call's is still told apart."""

    async def outlive():
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.current_task().cancel()
            await asyncio.sleep(60)

    async def run():
        for _ in range(caught_before):
            await outlive()
        scope = CancelScope()
        asyncio.get_running_loop().call_soon(scope.cancel)
        with pytest.raises(AbortError):
            await scope.wait(asyncio.sleep(60))
        assert asyncio.current_task().cancelling() == caught_before
        other = CancelScope()
        asyncio.get_running_loop().call_soon(other.cancel)
        asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)
        with pytest.raises(asyncio.CancelledError):
            await other.wait(asyncio.sleep(60))

    asyncio.run(run())


def test_cancel_from_another_thread():
    """The loop that waits is woken."""

    async def run():
        scope = CancelScope()
        waiting = asyncio.ensure_future(scope.wait(asyncio.sleep(60)))
        await asyncio.sleep(0)
        thread = threading.Thread(target=scope.cancel)
        thread.start()
        with pytest.raises(AbortError):
            await waiting
        thread.join()

    asyncio.run(run())


def test_a_task_that_ends_its_own_scope():
    """What it waits for next ends; what comes after the scope is not touched."""

    async def end(scope, seconds):
        scope.cancel("enough")
        await asyncio.sleep(seconds)
        return "done"

    async def at_once(scope):
        scope.cancel()
        return "done"

    async def run():
        scope = CancelScope()
        with pytest.raises(AbortError, match="enough"):
            await asyncio.wait_for(scope.wait(end(scope, 60)), PATIENCE)
        scope = CancelScope()
        answer = await scope.wait(at_once(scope))
        await asyncio.sleep(0.01)  # not cancelled
        return answer, asyncio.current_task().cancelling()

    assert asyncio.run(run()) == ("done", 0)


# Found by an id.


def test_an_id_may_have_several_scopes():
    """All of them are ended; an id without any, or with ended ones only, says so."""

    async def run():
        scopes, first, second = Scopes(), CancelScope(), CancelScope()
        scopes.add("r", first)
        scopes.add("r", second)
        answers = scopes.cancel("r"), scopes.cancel("r"), scopes.cancel("other")
        assert first.is_cancelled
        assert second.is_cancelled
        scopes.remove("r", first)
        assert len(scopes) == 1
        scopes.remove("r", second)
        scopes.remove("r", second)
        return answers, len(scopes)

    assert asyncio.run(run()) == ((True, False, False), 0)


def test_everything_at_once():
    """As when a client is closed."""

    async def run():
        scopes, known = Scopes(), [CancelScope() for _ in range(3)]
        for number, scope in enumerate(known):
            scopes.add(str(number % 2), scope)
        scopes.cancel_all()
        return [scope.is_cancelled for scope in known]

    assert asyncio.run(run()) == [True, True, True]


# Deadlines and signals.


def limited(work, signal=None, *, total=None, per_step=None, pauses=True, run=virtual_time.run):
    async def whole():
        scope = CancelScope(pauses=pauses)
        if signal is not None:
            scope.link(signal)
        if total is not None:
            scope.limit_total(total)
        if per_step is not None:
            scope.limit_step(per_step)
        try:
            return await work(scope)
        finally:
            scope.close()

    return run(whole())


def test_nothing_happens_in_time():
    """What is awaited comes through, and no clock or callback is left."""
    signal = AbortController().signal

    async def work(scope):
        answer = await scope.wait(asyncio.sleep(0, "answer"))
        scope.end_step()
        return answer

    assert limited(work, signal, total=60, per_step=60) == "answer"
    assert signal._callbacks == []


@pytest.mark.parametrize("clock", ["total", "per_step"])
def test_clocks(clock):
    """Of everything, or of one step."""

    async def work(scope):
        await scope.wait(asyncio.sleep(60))

    with pytest.raises(RequestTimeoutError, match=r"Timed out after 0\.02 s") as caught:
        limited(work, **{clock: 0.02})

    assert not caught.value.retryable


def test_a_step_that_ended_has_no_clock():
    """The next thing may take longer."""

    async def work(scope):
        scope.end_step()
        return await scope.wait(asyncio.sleep(0.05, "answer"))

    assert limited(work, per_step=0.01) == "answer"


@pytest.mark.parametrize("clock", ["total", "per_step"])
def test_a_clock_that_is_paused(clock):
    """Whoever reads what has come may take any time; what is waited for afterwards may not."""

    async def work(scope):
        for _ in range(2):
            scope.pause()
            await asyncio.sleep(0.3)  # longer than it has
            scope.resume()
            assert not scope.is_cancelled
        assert await scope.wait(asyncio.sleep(0, "in time")) == "in time"
        await scope.wait(asyncio.sleep(60))

    with pytest.raises(RequestTimeoutError):
        limited(work, **{clock: 0.25})


def test_a_clock_that_does_not_pause():
    """Where callbacks count, too."""

    async def work(scope):
        scope.pause()
        await asyncio.sleep(0.05)
        scope.resume()
        return scope.cause

    assert limited(work, total=0.01, pauses=False) == "timeout"


def test_a_clock_that_was_paused_and_stopped():
    """It does not start again."""

    async def work(scope):
        scope.pause()
        scope.end_step()
        scope.resume()
        return await scope.wait(asyncio.sleep(0.05, "answer"))

    assert limited(work, per_step=0.01) == "answer"


@pytest.mark.parametrize("how", ["abort", "cancel", "total", "per_step"])
def test_a_scope_has_a_signal_of_its_own(how):
    """It fires at once with the caller's, and with a clock; and also if it is asked for late."""
    controller = AbortController()

    async def work(scope):
        assert not scope.signal.aborted
        if how == "abort":
            controller.abort("enough")
        if how == "cancel":
            scope.cancel("enough")
        if how in ("abort", "cancel"):
            assert scope.signal.aborted
        with pytest.raises((AbortError, RequestTimeoutError)) as caught:
            await scope.wait(asyncio.sleep(60))
        assert scope.signal.aborted
        assert scope.is_quiet == (how == "cancel")
        return caught.value.message == scope.signal.reason

    clocks = {how: 0.02} if how in ("total", "per_step") else {}
    assert limited(work, controller.signal if how == "abort" else None, **clocks)


def test_a_signal_of_an_ended_scope():
    """A tool that starts after it knows at once."""

    async def work(scope):
        scope.cancel("enough")
        return scope.signal.reason

    assert limited(work) == "enough"


def test_a_signal_from_another_thread():
    """It wakes whoever waits."""
    controller = AbortController()

    async def work(scope):
        thread = threading.Timer(0.02, controller.abort, ["enough"])
        thread.start()
        try:
            await scope.wait(asyncio.sleep(60))
        finally:
            thread.join()

    with pytest.raises(AbortError, match="enough"):
        limited(work, controller.signal, run=asyncio.run)


def test_given_up_before_it_began():
    """Nothing is done at all."""
    controller = AbortController()
    controller.abort()

    with pytest.raises(AbortError):
        limited(lambda _: None, controller.signal)


def test_the_first_reason_stands():
    """A clock that runs out later changes nothing."""

    async def work(scope):
        scope.cancel("enough")
        await asyncio.sleep(0.05)
        return scope.error().message, scope.error(Response(model="m")).partial.model

    assert limited(work, total=0.01) == ("enough", "m")


def test_an_event_loop_that_was_closed_meanwhile():
    """Another thread cancels while the loop comes to its end: that is no error."""
    loop = asyncio.new_event_loop()
    called = []
    call_in_loop(loop, lambda: called.append(1))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()

    call_in_loop(loop, lambda: called.append(2))

    assert called == [1]
