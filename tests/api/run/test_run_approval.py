"""Approval in a run: what is allowed is what is executed, and nothing else."""

import asyncio

import pytest

from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import tool
from interlingua.client.client import Client
from interlingua.spec.content import Text, ToolCall
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.accumulate import events_from_response
from support.runs import collect


class Scripted:
    """An adapter that gives these answers, one after another, and keeps what it was asked."""

    name = "openai"

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    async def complete(self, request):
        self.asked.append(request)
        return self.answers.pop(0)

    async def stream(self, request):
        for event in events_from_response(await self.complete(request)):
            yield event


def pay(euros, id="call_0"):  # noqa: A002 -- the part's word
    return ToolCall(id=id, name="pay", arguments={"euros": euros})


def says(*parts):
    is_call = any(isinstance(part, ToolCall) for part in parts)
    reason = FinishReason(reason="tool_calls" if is_call else "stop")
    return Response(message=Message.assistant(list(parts)), finish_reason=reason)


DONE = says(Text(text="done"))


class Till:
    """A tool that pays, and what it paid."""

    def __init__(self, needs_approval=True):
        self.paid = []

        @tool(needs_approval=needs_approval)
        def pay(euros: int) -> str:
            """Pay."""
            self.paid.append(euros)
            return f"paid {euros}"

        self.tools = [pay]


async def ask(adapter, till, whole=True, prompt="?", **options):
    options = {"tools": till.tools, "client": Client({"openai": adapter}), **options}
    if whole:
        return await generate("openai:m", prompt, **options)
    events = stream("openai:m", prompt, **options)
    await collect(events)
    return events.result()


async def resume(paused, adapter, till, whole=True, **options):
    return await ask(adapter, till, whole, None, messages=paused.messages, **options)


both = pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])


@both
def test_a_decision_is_about_the_calls_that_waited(whole):
    """Providers that number calls anew in each answer use an id twice: it is asked again."""
    till = Till()

    async def work():
        paused = await ask(Scripted(says(pay(5))), till, whole)
        later = Scripted(says(pay(1_000_000)), DONE)
        options = {"approvals": {"call_0": True}, "max_tool_rounds": 9}
        return await resume(paused, later, till, whole, **options)

    result = asyncio.run(work())

    assert till.paid == [5]
    assert [call.arguments for call in result.pending_approvals] == [{"euros": 1_000_000}]


@both
def test_a_decision_before_there_is_a_call(whole):
    """It is about nothing."""
    till = Till()
    result = asyncio.run(ask(Scripted(says(pay(5))), till, whole, approvals={"call_0": True}))

    assert (till.paid, len(result.pending_approvals)) == ([], 1)


@both
def test_two_calls_of_one_id(whole):
    """They are told apart, and one may be allowed without the other."""
    till = Till()

    async def work():
        paused = await ask(Scripted(says(pay(5), pay(1_000_000))), till, whole)
        small, large = paused.pending_approvals
        adapter = Scripted(DONE)
        decisions = {small.id: True, large.id: False}
        result = await resume(paused, adapter, till, whole, approvals=decisions)
        return result, adapter.asked[0].messages[-1].content

    result, (first, second) = asyncio.run(work())

    assert till.paid == [5]
    assert result.text == "done"
    assert (first.content, second.is_error) == ("paid 5", True)
    assert first.tool_call_id != second.tool_call_id


@both
def test_what_was_mended_is_what_is_asked_about(whole):
    """The model's own arguments needed no approval; and it is not mended again afterwards."""
    till, mended = Till(lambda arguments: arguments["euros"] > 100), []

    def mend(call, _):
        mended.append(1)
        return ToolCall(id=call.id, name=call.name, arguments={"euros": 999 + len(mended)})

    async def work():
        broken = ToolCall(id="a", name="pay", raw_arguments='{"euros": "all"}')
        paused = await ask(Scripted(says(broken)), till, whole, repair_tool_call=mend)
        assert till.paid == []
        (waiting,) = paused.pending_approvals
        assert waiting.arguments == {"euros": 1_000}
        options = {"approvals": {"a": True}, "repair_tool_call": mend}
        return await resume(paused, Scripted(DONE), till, whole, **options)

    assert asyncio.run(work()).text == "done"
    assert till.paid == [1_000]


@both
def test_bad_arguments_do_not_end_the_run(whole):
    """Whoever decides by them is not even asked."""
    till = Till(lambda arguments: arguments["euros"] > 100)
    adapter = Scripted(says(ToolCall(id="a", name="pay")), DONE)
    result = asyncio.run(ask(adapter, till, whole))

    assert (result.text, till.paid) == ("done", [])
    (told,) = result.steps[0].tool_results
    assert told.is_error
    assert "euros" in told.content


@both
def test_going_on_without_a_decision(whole):
    """It is told which calls wait; to say something else instead is a decision too."""
    till = Till()

    async def work():
        paused = await ask(Scripted(says(pay(5, "x"), pay(6, "y"))), till, whole)
        for options in ({}, {"approvals": None}, {"approvals": {}}, {"approvals": {"z": True}}):
            with pytest.raises(ConfigurationError, match="No approval was given for x, y"):
                await resume(paused, Scripted(), till, whole, **options)
        messages = [*paused.messages, Message.user("Never mind.")]
        return await ask(Scripted(DONE), till, whole, None, messages=messages)

    assert asyncio.run(work()).text == "done"
    assert till.paid == []


def test_going_on_where_nothing_waits():
    """Calls that need no approval are left as they are, unless decisions come with them."""
    till = Till(needs_approval=False)
    messages = [Message.user("?"), Message.assistant([pay(5)])]
    for options, paid in (({}, []), ({"approvals": {}}, [5])):
        adapter = Scripted(DONE)
        asyncio.run(ask(adapter, till, True, None, messages=messages, **options))
        assert till.paid == paid


@both
def test_what_was_resumed_counts(whole):
    """As a round, and as the call that was required."""
    till = Till(lambda arguments: arguments["euros"] > 100)

    async def work():
        paused = await ask(Scripted(says(pay(500))), till, whole, tool_choice="required")
        adapter = Scripted(says(pay(1)), DONE)
        options = {"approvals": {"call_0": True}, "tool_choice": "required"}
        result = await resume(paused, adapter, till, whole, **options)
        return result, adapter

    result, adapter = asyncio.run(work())

    assert adapter.asked[0].tool_choice is None
    assert till.paid == [500]
    assert len(result.tool_calls) == 1
