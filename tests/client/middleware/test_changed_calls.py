"""Coroutine middleware that changes the tool calls of a stream: what is shown is what runs."""

import asyncio

import pytest
from msgspec.structs import replace

from interlingua import execute
from interlingua.api.run.generate import stream
from interlingua.api.tools.tool import tool
from interlingua.errors import ConfigurationError
from interlingua.simulator import text, tool_call, tool_loop
from interlingua.spec.content import Text, ToolCall
from interlingua.streams.grammar import Grammar
from support.runs import named
from support.simulated import DIALECTS, run, simulated

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
CALLS = (
    tool_call("pay", to="Ann", amount=900) + text("Done?") + tool_call("pay", to="Bob", amount=5)
)


def edited(change):
    """A coroutine middleware that changes the parts of answers with tool calls."""

    async def layer(request, call_next):
        response = await call_next(request)
        if not response.tool_calls:
            return response
        content = tuple(new for part in response.message.content for new in change(part))
        return replace(response, message=replace(response.message, content=content))

    return layer


def limited(part):
    """The part; of a payment, at most ten."""
    if not isinstance(part, ToolCall):
        return [part]
    amount = min(part.arguments["amount"], 10)
    return [replace(part, arguments={**part.arguments, "amount": amount}, raw_arguments=None)]


def payments(provider, layer, calls=CALLS):
    """The events of a run, its result or error, and what the tool was called with."""
    paid, events = [], []

    @tool
    def pay(to: str, amount: int) -> str:
        """Pay someone."""
        paid.append((to, amount))
        return "paid"

    async def work(client):
        result = stream(named(provider), "Pay.", tools=[pay], client=client.with_middleware(layer))
        try:
            async for event in result:
                events.append(event)  # noqa: PERF401 -- what came before an error is kept
        except ConfigurationError as error:
            return error
        return result.result()

    with simulated(tool_loop(calls, text("Paid."))) as peer:
        return events, run(peer, work), paid


def shown_calls(events):
    return [
        (event.tool_call.arguments["to"], event.tool_call.arguments["amount"])
        for event in events
        if event.type == "tool_call_end"
    ]


@every_provider
def test_changed_arguments_are_shown_as_they_run(provider):
    """The end of a call waits for the middleware; the rest of the answer does not."""
    events, result, paid = payments(provider, edited(limited))
    grammar = Grammar()
    for event in events:
        grammar.feed(event)
    kinds = [event.type for event in events]

    assert paid == [("Ann", 10), ("Bob", 5)]
    assert shown_calls(events) == paid
    assert [call.arguments["amount"] for call in result.steps[0].tool_calls] == [10, 5]
    assert [call.arguments["amount"] for call in result.messages[1].tool_calls] == [10, 5]
    assert not [each for each in result.warnings if each.code == "answer_replaced"]
    assert kinds.index("text_delta") < kinds.index("tool_call_end") < kinds.index("tool_result")


def test_the_callbacks_of_an_execution_agree():
    """The call that is announced is the one that is made."""
    told = []

    @tool
    def pay(to: str, amount: int) -> str:
        """Pay someone."""
        return f"{to} has {amount}"

    async def work(client):
        return await execute(
            named("anthropic"),
            "Pay.",
            tools=[pay],
            client=client.with_middleware(edited(limited)),
            on_chunk=lambda chunk: chunk["type"] == "tool-call" and told.append(chunk["args"]),
            on_tool_start=lambda _, arguments: told.append(arguments),
        )

    with simulated(tool_loop(CALLS, text("Paid."))) as peer:
        run(peer, work)

    assert [each["amount"] for each in told] == [10, 5, 10, 5]


@pytest.mark.parametrize(
    "change",
    [
        lambda part: [replace(part, name="pay_all")] if isinstance(part, ToolCall) else [part],
        lambda part: [part, replace(part, id="new")] if isinstance(part, ToolCall) else [part],
    ],
    ids=["renamed", "added"],
)
def test_a_call_that_was_not_shown_is_refused(change):
    """Nothing runs that the caller has not seen; the error says how to do it."""
    events, error, paid = payments("anthropic", edited(change))

    assert paid == []
    assert isinstance(error, ConfigurationError)
    assert "hold = True" in str(error)
    assert events[-1].type == "finish"


def test_a_call_that_was_removed_does_not_run():
    """The answer says that it differs from what was shown."""
    events, result, paid = payments(
        "anthropic",
        edited(lambda part: [Text(text="No.")] if isinstance(part, ToolCall) else [part]),
    )

    assert paid == []
    assert "answer_replaced" in [warning.code for warning in result.warnings]
    assert events[-1].response.text == "No.Done?No."


@pytest.mark.parametrize("count", [1, 2])
def test_calls_that_nobody_changed_are_shown_and_run(count):
    """Through several layers."""

    async def watch(request, call_next):
        await asyncio.sleep(0)
        return await call_next(request)

    calls = tool_call("pay", to="Ann", amount=1)
    events, result, paid = payments("openai", edited(limited) if count == 2 else watch, calls)

    assert shown_calls(events) == paid == [("Ann", 1)]
    assert result.text == "Paid."
