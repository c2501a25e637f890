"""Giving up."""

import asyncio
import threading

import pytest

from interlingua.api.run.generate import generate
from interlingua.runtime.cancel import AbortController
from interlingua.spec.errors import AbortError
from support.blocking import NEVER
from support.simulated import run, simulated


def test_once_and_for_all():
    """It is told once, to those who asked before and to those who ask after."""
    controller, told = AbortController(), []
    controller.signal.add_callback(lambda: told.append("before"))
    remove = controller.signal.add_callback(lambda: told.append("taken back"))
    remove()
    remove()
    controller.signal.raise_if_aborted()

    controller.abort("enough")
    controller.abort("again")
    controller.signal.add_callback(lambda: told.append("after"))

    assert told == ["before", "after"]
    assert controller.signal.aborted
    assert controller.signal.reason == "enough"
    with pytest.raises(AbortError, match="enough"):
        controller.signal.raise_if_aborted()


def test_a_callback_that_fails():
    """The others are told all the same, in order; then what was raised is raised."""
    controller, told = AbortController(), []

    def fail():
        told.append("failed")
        raise KeyError("no")

    controller.signal.add_callback(fail)
    controller.signal.add_callback(lambda: told.append("told"))
    with pytest.raises(KeyError, match="no"):
        controller.abort()
    controller.abort()

    assert told == ["failed", "told"]
    assert controller.signal.aborted


def test_callbacks_that_fail():
    """All that was raised comes in one group."""
    controller = AbortController()
    for error in (KeyError("one"), ValueError("two")):

        def fail(error=error):
            raise error

        controller.signal.add_callback(fail)
    with pytest.raises(ExceptionGroup) as caught:
        controller.abort()

    assert [str(error) for error in caught.value.exceptions] == ["'one'", "two"]


def test_a_run_is_stopped_whatever_callbacks_raise():
    """One that was added before the run does not keep it going."""
    controller = AbortController()

    def fail():
        raise KeyError("no")

    async def work(client):
        controller.signal.add_callback(fail)
        call = asyncio.ensure_future(
            generate(
                "openai:gpt-5.2", "Hello", client=client, abort_signal=controller.signal, timeout=5
            )
        )
        await asyncio.sleep(0.1)
        with pytest.raises(KeyError):
            controller.abort("enough")
        with pytest.raises(AbortError, match="enough"):
            await call

    with simulated(NEVER) as peer:
        run(peer, work)


def test_from_many_threads():
    """However many ask and give up at once, each is told exactly once."""
    controller, told = AbortController(), []
    start = threading.Barrier(8)

    def work(number):
        start.wait()
        if number % 2:
            controller.abort()
        controller.signal.add_callback(lambda: told.append(number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(told) == list(range(8))
