"""Cancelling what waits, and only that."""

import asyncio
import contextlib
import threading

import pytest

from interlingua.providers.cancel import CancelledCallError, Flight, Watched


class Reply:
    """A reply that notes whether its connection was closed."""

    def __init__(self):
        self.aborted = False

    def abort(self):
        self.aborted = True


def test_what_is_awaited_comes_through():
    """Without a cancellation it is as if it were not there."""

    async def run():
        return await Flight().wait(asyncio.sleep(0, "answer"))

    assert asyncio.run(run()) == "answer"


def test_cancel_wakes_the_wait():
    """Once; asked again it says that it was before."""

    async def run():
        flight = Flight()
        waiting = asyncio.ensure_future(flight.wait(asyncio.sleep(60)))
        await asyncio.sleep(0)
        told = flight.cancel(), flight.cancel()
        with pytest.raises(CancelledCallError):
            await waiting
        return told

    assert asyncio.run(run()) == (True, False)


def test_a_cancelled_flight_waits_no_more():
    """The next wait ends before it begins."""

    async def run():
        flight = Flight()
        flight.cancel()
        with pytest.raises(CancelledCallError):
            await flight.wait(asyncio.sleep(60))

    asyncio.run(run())


def test_a_busy_task_is_not_touched():
    """It does its own work to the end; only the connection is closed."""

    async def run():
        flight = Flight()
        reply = Reply()
        async with Watched(contextlib.nullcontext(reply), flight) as held:
            assert held is reply

            async def stop():
                return flight.cancel()

            stopping = asyncio.ensure_future(stop())
            await asyncio.sleep(0.01)  # not through the flight
            assert reply.aborted
            return await stopping

    assert asyncio.run(run()) is True


def test_the_callers_own_cancellation_goes_first():
    """A task that is cancelled from outside at the same time ends as cancelled."""

    async def run():
        flight = Flight()
        task = asyncio.ensure_future(flight.wait(asyncio.sleep(60)))
        await asyncio.sleep(0)
        flight.cancel()
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
        flight = Flight()
        asyncio.get_running_loop().call_soon(flight.cancel)
        with pytest.raises(CancelledCallError):
            await flight.wait(asyncio.sleep(60))
        assert asyncio.current_task().cancelling() == caught_before
        other = Flight()
        asyncio.get_running_loop().call_soon(other.cancel)
        asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)
        with pytest.raises(asyncio.CancelledError):
            await other.wait(asyncio.sleep(60))

    asyncio.run(run())


def test_cancel_from_another_thread():
    """The loop that waits is woken."""

    async def run():
        flight = Flight()
        waiting = asyncio.ensure_future(flight.wait(asyncio.sleep(60)))
        await asyncio.sleep(0)
        thread = threading.Thread(target=flight.cancel)
        thread.start()
        with pytest.raises(CancelledCallError):
            await waiting
        thread.join()

    asyncio.run(run())


def test_chunks_end_with_none():
    """The end of a body is told without an exception."""

    async def run():
        async def body():
            yield b"a"

        flight, chunks = Flight(), aiter(body())
        return [await flight.next_chunk(chunks), await flight.next_chunk(chunks)]

    assert asyncio.run(run()) == [b"a", None]
