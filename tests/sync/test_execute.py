"""`execute`, blocking; what it tells is tested where it is written."""

import threading

import pytest

from interlingua import sync
from interlingua.runtime.cancel import AbortController
from interlingua.simulator import error, text
from support.blocking import NEVER, blocking, left, named, until
from support.simulated import DIALECTS


@pytest.mark.parametrize("provider", sorted(DIALECTS))
def test_execute(provider):
    """The result is returned, errors in it; callbacks are told, in the loop's thread."""
    told = []

    async def on_chunk(chunk):
        told.append((chunk["text"], threading.current_thread().name))

    with blocking(text("It rains."), error(401)) as (peer, client):
        result = sync.execute(named(provider), "Hi", client=client, on_chunk=on_chunk)
        failed = sync.execute(named(provider), "Hi", client=peer.client)

    assert result.text == "It rains."
    assert "".join(text for text, _ in told) == "It rains."
    assert {thread for _, thread in told} == {"interlingua"}
    assert failed.error.status_code == 401


def test_ending_it_early():
    """By an abort signal, from another thread."""
    controller = AbortController()
    found = []
    with blocking(NEVER) as (peer, client):
        thread = threading.Thread(
            target=lambda: found.append(
                sync.execute(named("openai"), "Hi", client=client, abort_signal=controller.signal)
            )
        )
        thread.start()
        until(lambda: peer.app.script.received)
        controller.abort()
        thread.join()
        until(lambda: left(peer))

    assert found[0].error.code == "cancelled"
