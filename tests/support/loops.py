"""Every event loop that a program may run on."""

import asyncio
from importlib.util import find_spec

import pytest

every_loop = pytest.mark.parametrize(
    "loop",
    [
        "asyncio",
        pytest.param(
            "uvloop", marks=pytest.mark.skipif(not find_spec("uvloop"), reason="needs uvloop")
        ),
    ],
)
"""For a test with an argument `loop`, which it hands to `run_on`."""


def run_on(loop, work):
    """Run a coroutine to its end on this event loop, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=_factory(loop)) as runner:
        return runner.run(work)


def _factory(loop):
    if loop == "uvloop":
        import uvloop

        return uvloop.new_event_loop
    return asyncio.new_event_loop
