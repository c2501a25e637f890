"""Event loops whose tasks begin at once (`asyncio.eager_task_factory`, Python 3.12)."""

import asyncio
import sys

import pytest

from interlingua.simulator import text
from interlingua.transport import HttpTransport, HttpxTransport
from support.simulated import simulated

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are of 3.12")


def run(work):
    async def whole():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        return await work

    return asyncio.run(whole())


@pytest.mark.parametrize("transport", [HttpTransport, HttpxTransport])
def test_calls_and_streams(transport):
    """Both transports connect, and use a connection again."""
    with simulated(text("one"), text("two"), text("three"), transport=transport()) as peer:

        async def work():
            answers = [(await peer.client.complete(peer.ask("openai"))).text for _ in range(2)]
            return answers, [event async for event in peer.client.stream(peer.ask("openai"))]

        answers, events = run(work())

    assert answers == ["one", "two"]
    assert events[-1].response.text == "three"
