"""Callbacks, sync and async."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.api.execute.callbacks import Notifier
from interlingua.spec.content import Text, ToolCall, ToolResult
from interlingua.spec.events import (
    ReasoningDelta,
    StreamStart,
    TextDelta,
    ToolCallEnd,
)

CALL = ToolCall(id="c", name="look", arguments={"at": ["it"]})
NAMES = ("on_chunk", "on_reasoning", "on_tool_start", "on_tool_end", "on_tool_error")


def told_by(work, *, pauses=None, **callbacks):
    """What the callbacks were told, each with its name, and the notifier after that."""
    told = []
    pauses = pauses or {}

    def make(name):
        if name not in pauses:
            return lambda *given: told.append((name, *given))

        async def callback(*given):
            for _ in range(pauses[name]):
                await asyncio.sleep(0)
            told.append((name, *given))

        return callback

    async def main():
        failed = []
        made = {name: make(name) for name in NAMES} | callbacks
        notifier = Notifier(made, lambda: failed.append(True))
        work(notifier)
        await notifier.settle()
        assert notifier.is_settled
        assert bool(failed) == (notifier.error is not None)
        return notifier

    notifier = asyncio.run(main())
    return told, notifier


def everything(notifier):
    notifier.notify(StreamStart())
    notifier.notify(ReasoningDelta(id="r", index=0, delta="hm"))
    notifier.notify(TextDelta(id="t", index=1, delta="so"))
    notifier.notify(ToolCallEnd(id="c", index=2, tool_call=CALL))
    notifier.on_tool_start(CALL)
    notifier.on_tool_end(CALL, ToolResult(tool_call_id="c", content={"n": 1}))
    notifier.on_tool_error(CALL, ERROR)


ERROR = KeyError("no")
EVERYTHING = [
    ("on_reasoning", "hm"),
    ("on_chunk", {"type": "text-delta", "text": "so"}),
    ("on_chunk", {"type": "tool-call", "name": "look", "args": {"at": ["it"]}}),
    ("on_tool_start", "look", {"at": ["it"]}),
    ("on_tool_end", "look", {"n": 1}),
    ("on_chunk", {"type": "tool-result", "name": "look", "result": {"n": 1}}),
    ("on_tool_error", "look", ERROR),
    ("on_chunk", {"type": "tool-error", "name": "look", "error": ERROR}),
]


@given(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5)))
def test_in_order(pauses):
    """Whichever callbacks are async, and however slow, all are told one after another."""
    told, _ = told_by(everything, pauses=pauses)

    assert told == EVERYTHING


def test_nobody_listens():
    """Callbacks that are not there are not called."""
    _, notifier = told_by(everything, **dict.fromkeys(NAMES))

    assert notifier.error is None


@pytest.mark.parametrize("content", ["it broke", (Text(text="it broke"),)])
def test_a_result_that_is_an_error(content):
    """It is told as an error."""
    result = ToolResult(tool_call_id="c", content=content, is_error=True)
    told, _ = told_by(lambda notifier: notifier.on_tool_end(CALL, result))

    assert [name for name, *_ in told] == ["on_tool_error", "on_chunk"]
    assert "it broke" in str(told[0][2])


def test_arguments_are_the_callbacks_own():
    """What a callback does to them is not seen in the conversation."""

    def on_tool_start(_, arguments):
        arguments["at"].append("changed")

    told_by(everything, on_tool_start=on_tool_start)

    assert CALL.arguments == {"at": ["it"]}


def fails(*_):
    raise ERROR


async def fails_later(*_):
    await asyncio.sleep(0)
    raise ERROR


@pytest.mark.parametrize("callback", [fails, fails_later])
@pytest.mark.parametrize("pauses", [{}, {"on_chunk": 2}], ids=["at once", "in line"])
def test_one_that_fails(callback, pauses):
    """Its error is kept, and after it nobody is told."""
    told, notifier = told_by(everything, pauses=pauses, on_tool_start=callback)

    assert notifier.error is ERROR
    assert told == EVERYTHING[:3]


def test_stopping():
    """A callback that hangs is not waited for any more, nor are those behind it."""
    told = []

    async def main():
        async def hang(_):
            await asyncio.sleep(60)

        notifier = Notifier({"on_chunk": hang, "on_reasoning": told.append}, lambda: None)
        notifier.notify(TextDelta(id="t", index=0, delta="a"))
        notifier.notify(ReasoningDelta(id="r", index=1, delta="b"))
        await asyncio.sleep(0)
        assert not notifier.is_settled
        notifier.stop()
        await notifier.settle()
        return notifier

    notifier = asyncio.run(main())

    assert told == []
    assert notifier.error is None
