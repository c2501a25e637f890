"""Turns that end early or badly: the session stays usable, and no tool is run twice."""

import asyncio

import pytest

from interlingua.api.session.session import Session
from interlingua.api.tools.tool import tool
from interlingua.simulator import error, stall, text, tool_call
from interlingua.spec.content import Document, Text, ToolCall
from interlingua.spec.errors import AbortError, ConfigurationError, ServerError
from interlingua.spec.messages import Message
from interlingua.spec.response import Response
from support.runs import named
from support.sessions import results_in, session_of
from support.simulated import run, settled, simulated

PDF = b"%PDF-1.4 and more"
both_ways = pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])


async def turn(session, prompt="?", whole=True, **options):
    if whole:
        await session.send(prompt, **options)
    else:
        async for _ in session.stream(prompt, **options):
            pass


def test_interrupt_while_the_files_of_a_prompt_are_read(tmp_path):
    """The turn leaves nothing behind, in particular no system prompt."""
    path = tmp_path / "plan.pdf"
    path.write_bytes(PDF)
    with simulated() as peer:

        async def work(client):
            session = session_of(client, "anthropic", system="Be brief.")
            task = asyncio.ensure_future(session.send([Message.user([Document(path=path)])]))
            await asyncio.sleep(0)
            assert session.interrupt()
            with pytest.raises(AbortError):
                await task
            return session

        assert run(peer, work).messages == ()


@tool
def open_plan(name: str) -> Document:
    """Open a plan."""
    return Document(path=name)


@both_ways
def test_a_file_of_a_tool_that_cannot_be_read(tmp_path, whole):
    """The model gets the error of the tool, and the turn goes on."""
    missing = str(tmp_path / "missing.pdf")
    with simulated(tool_call("open_plan", name=missing), text("A pity."), text("Yes.")) as peer:

        async def work(client):
            session = session_of(client, "anthropic", tools=[open_plan])
            await turn(session, whole=whole)
            assert not session.is_active
            await turn(session, whole=whole)
            return session

        (result,) = results_in(run(peer, work).messages)
    assert result.is_error
    assert "No such file" in result.content


@both_ways
def test_a_file_of_a_tool_that_is_removed_later(tmp_path, whole):
    """Its bytes are in the history as soon as the tool has returned it."""
    path = tmp_path / "plan.pdf"
    path.write_bytes(PDF)

    @tool
    async def remove() -> None:
        """Remove the plan."""
        path.unlink()
        session.interrupt()

    calls = tool_call("open_plan", name=str(path)), tool_call("remove")
    with simulated(*calls, text("Yes.")) as peer:
        session = session_of(peer.client, "anthropic", tools=[open_plan, remove])

        async def work(_):
            if whole:
                with pytest.raises(AbortError):
                    await session.send("?")
            else:
                await turn(session, whole=False)
            await session.send("Go on.")

        run(peer, work)
    plan, removal = results_in(session.messages)
    assert plan.content[0].data == PDF
    assert removal.is_error


def test_a_file_of_a_middleware_that_cannot_be_read():
    """The turn fails, and the next one is free."""

    async def answer(_request, _call_next):
        file = Document(path="/nowhere/plan.pdf")
        return Response(message=Message(role="assistant", content=(Text("Here."), file)))

    with simulated(text("Yes.")) as peer:

        async def work(client):
            session = session_of(client.with_middleware(answer), "anthropic")
            with pytest.raises(ConfigurationError, match="cannot read"):
                await session.send("?")
            assert not session.is_active
            session.client = client
            await session.send("?")
            return session

        assert len(run(peer, work).messages) == 2


@both_ways
def test_an_adapter_that_reads_no_files(tmp_path, whole):
    """Neither the files of a prompt nor those of tools are read for it."""
    path = tmp_path / "plan.pdf"
    path.write_bytes(PDF)
    calls = tool_call("open_plan", name=str(path)), text("A pity.")
    with simulated(*calls, read_files=False) as peer:

        async def work(client):
            session = session_of(client, "anthropic", tools=[open_plan])
            with pytest.raises(ConfigurationError, match="read_files=False"):
                await turn(session, [Message.user([Document(path=path)])], whole)
            assert session.messages == ()
            await turn(session, whole=whole)
            return session

        (result,) = results_in(run(peer, work).messages)
    assert result.is_error
    assert "read_files=False" in result.content


def half_answered(client, *tools, **options):
    """A session with two calls, of which one has a result."""
    calls = [ToolCall(id=name, name="visit", arguments={"city": name}) for name in ("A", "B")]
    history = [Message.user("?"), Message.assistant(calls), Message.tool_result("A", "Nice.")]
    return Session(named("anthropic"), client=client, tools=tools, messages=history, **options)


def test_a_call_that_was_open_is_run_once():
    """If the model fails after it, its result stays next to those that were there before."""
    cities = []

    @tool
    def visit(city: str) -> str:
        """Visit a city."""
        cities.append(city)
        return f"{city}!"

    with simulated(error(500), text("Done.")) as peer:

        async def work(client):
            session = half_answered(client, visit, max_retries=0)
            with pytest.raises(ServerError):
                await session.send()
            await session.send()
            return session

        session = run(peer, work)
    assert cities == ["B"]
    assert [result.content for result in results_in(session.messages)] == ["Nice.", "B!"]


def test_an_open_call_that_is_interrupted_is_not_run_again():
    """It gets an error result next to those that were there before."""
    cities = []

    @tool
    async def visit(city: str) -> str:
        """Visit a city."""
        cities.append(city)
        session.interrupt()
        await asyncio.sleep(60)
        return city

    with simulated(text("Done.")) as peer:
        session = half_answered(peer.client, visit)

        async def work(_):
            with pytest.raises(AbortError):
                await session.send()
            await session.send()

        run(peer, work)
    assert cities == ["B"]
    assert [result.is_error for result in results_in(session.messages)] == [False, True]


def test_results_for_no_calls():
    """A history that is nothing but a result takes more of them; the model gets none of them."""
    with simulated(text("Hello.")) as peer:

        async def work(client):
            history = [Message.tool_result("a", "A")]
            session = Session(named("anthropic"), client=client, messages=history)
            return await session.send([Message.tool_result("b", "B")])

        result = run(peer, work)
    assert "orphan_result_dropped" in [warning.code for warning in result.warnings]


@pytest.mark.parametrize("after", range(10))
def test_the_cost_of_a_turn_that_is_interrupted(after):
    """It is known wherever that happens, also between the tools and the next request."""
    answers = (tool_call("look", city="Oslo"), text("Rain."))
    with simulated(*answers) as peer:

        async def work(client):
            session = session_of(client, "anthropic")
            number = 0  # of the event
            async for _ in session.stream("?"):
                if number == after:
                    session.interrupt()
                number += 1
            return session

        session = run(peer, work)

    assert session.usage.input_tokens > 0
    assert session.cost is not None
    assert session.cost.total > 0


@both_ways
def test_a_swap_during_a_turn(whole):
    """The summary that this turn was sent with does not replace messages for the next model."""
    talk = ["One?", Message.assistant("1"), "Two?", Message.assistant("2")]
    with simulated(tool_call("swap"), text("Yes.")) as peer:

        async def work(client):
            @tool
            def swap() -> str:
                """Swap the model."""
                session.swap(named("openai"))
                return "Done."

            session = session_of(client, "anthropic", tools=[swap], messages=talk)
            session.omitted, session.summary = 2, "One is 1."
            await turn(session, whole=whole)
            assert (session.omitted, session.summary) == (0, None)
            await session.send("?")

        run(peer, work)
        sent = [len(exchange.request.messages) for exchange in peer.app.script.received]

    assert sent == [3, 5, 9]


@both_ways
def test_a_turn_that_is_interrupted_before_its_answer(whole):
    """It has used nothing, so that the cost of the session stays known."""
    with simulated(text("Never.") + stall(0), text("Yes.")) as peer:

        async def work(client):
            session = session_of(client, "anthropic")
            first = asyncio.ensure_future(turn(session, whole=whole))
            await settled(lambda: peer.app.script.received)
            session.interrupt()
            await asyncio.wait([first])
            assert session.cost is None
            assert isinstance(first.exception(), AbortError if whole else type(None))
            await session.send("?")
            return session

        session = run(peer, work)

    assert session.cost.total > 0
