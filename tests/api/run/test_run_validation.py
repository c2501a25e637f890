"""Output validators, system prompts from a function, and the context that all of them get."""

import asyncio
from dataclasses import dataclass

import pytest

from interlingua import Retry
from interlingua.api.objects.functions import generate_object, stream_object
from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.context import ToolContext
from interlingua.api.tools.tool import tool
from interlingua.simulator import text, tool_call
from interlingua.spec.errors import ConfigurationError, NoObjectGeneratedError
from support.runs import collect, named, run_in
from support.simulated import run, simulated

both = pytest.mark.parametrize("mode", ["whole", "stream", "sync"])


@dataclass
class House:
    number: int


@both
@pytest.mark.parametrize("is_async", [False, True])
def test_a_text_is_sent_back(mode, is_async):
    """With the reason, once by default; what the validator returns is the output."""
    seen = []

    def check(output: str) -> str:
        seen.append(output)
        if "Oslo" not in output:
            raise Retry("Name the city.")
        return output.upper()

    async def check_later(output: str) -> str:
        await asyncio.sleep(0)
        return check(output)

    with simulated(text("A city."), text("Oslo.")) as peer:
        validator = check_later if is_async else check
        result = run_in(mode, peer, "anthropic", output_validator=validator)

    assert seen == ["A city.", "Oslo."]
    assert (result.text, result.output) == ("Oslo.", "OSLO.")
    assert [message.text for message in result.messages] == [
        "?",
        "A city.",
        "Name the city.",
        "Oslo.",
    ]


@both
def test_an_answer_that_stays_wrong(mode):
    """The error has the reason, the answer, the steps and the messages."""

    def never(_: str) -> None:
        raise Retry("No.")

    with (
        simulated(text("A"), text("B"), text("C")) as peer,
        pytest.raises(NoObjectGeneratedError, match="after 2 retries: No") as error,
    ):
        run_in(mode, peer, "openai", output_validator=never, max_validation_retries=2)

    assert (error.value.text, len(error.value.steps)) == ("C", 3)
    assert error.value.messages[-1].text == "C"


@pytest.mark.parametrize("provider", ["openai", "openai_compatible", "anthropic", "gemini"])
def test_objects(provider):
    """The validator gets the object; it is asked again in the way that the model was asked."""
    wanted = []

    def check(house: House) -> House:
        wanted.append(house.number)
        if house.number < 5:
            raise Retry("Too small.")
        return House(number=house.number * 10)

    def answer(number):
        def reply(request):
            if request.response_format is None and request.tools:
                return tool_call(request.tools[-1].name, {"number": number})
            return text(f'{{"number": {number}}}')

        return reply

    async def work(client):
        options = {"schema": House, "client": client, "output_validator": check}
        whole = await generate_object(named(provider), "?", **options)
        growing = stream_object(named(provider), "?", **options)
        await collect(growing)
        return whole, growing

    with simulated(answer(1), answer(7), answer(2), answer(8)) as peer:
        whole, growing = run(peer, work)

    assert wanted == [1, 7, 2, 8]
    assert (whole.output, growing.object()) == (House(number=70), House(number=80))
    assert growing.result().output == House(number=80)


def test_an_object_that_waits_for_approval():
    """While calls wait there is no output to check; the resumed run has one."""

    @tool(needs_approval=True)
    def build() -> str:
        """Build."""
        return "Built."

    checked = []
    answer = text('{"number": 7}')
    with simulated(tool_call("build"), tool_call("build"), answer) as peer:

        async def work(client):
            options = {"tools": [build], "client": client, "output_validator": checked.append}
            growing = stream_object(named("openai"), "?", schema=House, **options)
            await collect(growing)
            assert growing.result().output is None
            waiting = await generate_object(named("openai"), "?", schema=House, **options)
            assert waiting.output is None
            approvals = {call.id: True for call in waiting.pending_approvals}
            options |= {"resume": waiting, "approvals": approvals}
            return await generate_object(named("openai"), schema=House, **options)

        assert run(peer, work).output == House(number=7)
    assert checked == [House(number=7)]


def test_the_context_reaches_all():
    """Tools, validators, a system function and middleware see the same `deps`."""
    seen = {}

    @tool
    def look(context: ToolContext[dict]) -> str:
        """Look."""
        seen["tool"] = context.deps
        return "seen"

    def check(context: ToolContext[dict], output: str) -> None:
        seen["validator"] = (context.deps, output, context.messages[-1].text)

    async def system(context: ToolContext[dict]) -> str:
        seen["system"] = context.deps
        return f"You serve {context.deps['user']}."

    async def layer(request, call_next):
        seen["middleware"] = request.context.deps
        return await call_next(request)

    deps = {"user": "Ada"}
    with simulated(tool_call("look", {}), text("Hello.")) as peer:
        peer.client = peer.client.with_middleware(layer)
        result = run_in(
            "whole",
            peer,
            "gemini",
            tools=[look],
            deps=deps,
            output_validator=check,
            system=system,
        )

    assert seen == {
        "tool": deps,
        "validator": (deps, "Hello.", "Hello."),
        "system": deps,
        "middleware": deps,
    }
    assert result.messages[0].text == "You serve Ada."


@both
def test_a_system_prompt_from_a_function(mode):
    """It is made once per run, and replaces the one of an earlier run."""
    made = []

    def system(_: ToolContext[None]) -> str:
        made.append(1)
        return f"Version {len(made)}."

    with simulated(text("One."), text("Two.")) as peer:
        first = run_in(mode, peer, "anthropic", system=system)
        history = [*first.messages, "And?"]
        second = run_in(mode, peer, "anthropic", prompt=None, messages=history, system=system)

    assert [message.text for message in second.messages] == [
        "Version 2.",
        "?",
        "One.",
        "And?",
        "Two.",
    ]


@pytest.mark.parametrize("made", [5, b"x"])
def test_a_system_function_that_returns_something_else(made):
    """Is told so, and nothing is sent."""
    with simulated() as peer, pytest.raises(ConfigurationError, match="system= returned a"):
        run_in("whole", peer, "openai", system=lambda _: made)

    assert peer.app.script.received == ()


def test_none_is_no_system_prompt():
    """So that a function may decide."""
    with simulated(text("Yes.")) as peer:
        result = run_in("whole", peer, "openai", system=lambda _: None)

    assert [message.role for message in result.messages] == ["user", "assistant"]


def test_a_validator_needs_a_parameter():
    """For what it checks."""

    def check(context: ToolContext[None]) -> None:
        """Not a validator."""

    what = "no parameter for the value"
    with simulated(text("Yes.")) as peer, pytest.raises(ConfigurationError, match=what):
        run_in("whole", peer, "openai", output_validator=check)


def test_calls_left_open_are_not_validated():
    """The answer is not an output yet."""

    async def work(client):
        return await generate(
            named("openai"), "?", client=client, tools=[look], output_validator=refuse
        )

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    def refuse(_: str) -> None:
        raise Retry("No.")

    with simulated(tool_call("look", {}), tool_call("look", {})) as peer:
        result = run(peer, work)

    assert [call.name for call in result.tool_calls] == ["look"]


def test_a_cancelled_validator():
    """The run ends while it waits."""

    async def slow(_: str) -> None:
        await asyncio.sleep(60)

    async def work(client):
        events = stream(named("openai"), "?", client=client, output_validator=slow, timeout=0.2)
        with pytest.raises(TimeoutError):
            await collect(events)

    with simulated(text("Yes.")) as peer:
        run(peer, work)


def test_a_tool_may_ask_for_another_try():
    """The model is sent the reason alone."""

    @tool
    def look(city: str) -> str:
        """Look."""
        if city == "Olso":
            raise Retry("Write the city as Oslo.")
        return "seen"

    with simulated(tool_call("look", city="Olso"), text("Done.")) as peer:
        result = run_in("whole", peer, "openai", tools=[look])

    (outcome,) = result.steps[0].tool_results
    assert (outcome.content, outcome.is_error) == ("Write the city as Oslo.", True)
