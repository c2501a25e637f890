"""Giving up."""

import threading

import pytest

from interlingua.api.abort import AbortController
from interlingua.spec.errors import AbortError


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
