"""Runs with limits: they end with a typed error that has what was done, and can be resumed."""

import pytest
from msgspec.structs import replace

from interlingua.api.run.limits import RunLimits
from interlingua.api.session.session import Session
from interlingua.api.tools.tool import Tool
from interlingua.simulator import text, tool_call
from interlingua.spec.errors import ConfigurationError, RunLimitError
from interlingua.spec.response import Cost
from support.runs import MODES, run_in
from support.simulated import run, simulated

every_mode = pytest.mark.parametrize("mode", MODES)
CALL = tool_call("look", {})


def looking(ran):
    return Tool(name="look", description="Looks.", execute=lambda: ran.append(1) or "seen")


@every_mode
def test_requests(mode):
    """The request that would be one too many is not sent; `resume=` goes on."""
    ran = []
    with simulated(CALL, CALL, text("Done.")) as peer:
        with pytest.raises(RunLimitError, match="max_requests=2: 2 model calls were made") as error:
            run_in(
                mode,
                peer,
                "openai",
                tools=[looking(ran)],
                max_tool_rounds=9,
                limits=RunLimits(max_requests=2),
            )
        sent = len(peer.app.script.received)
        result = run_in(
            "whole",
            peer,
            "openai",
            prompt=None,
            resume=error.value,
            tools=[looking(ran)],
            limits=RunLimits(max_requests=3),
        )

    assert (sent, len(ran)) == (2, 2)
    assert len(error.value.steps) == 2
    assert [message.role for message in error.value.messages] == [
        "user",
        *("assistant", "tool") * 2,
    ]
    assert result.text == "Done."
    assert len(result.steps) == 3


@every_mode
def test_tool_calls(mode):
    """A round that would pass the limit is not run at all; the calls stay open."""
    ran = []
    twice = CALL + CALL
    options = {"max_tool_rounds": 9, "limits": RunLimits(max_tool_calls=2)}
    what = "1 tools were called, and the model calls 2 more"
    with simulated(CALL, twice) as peer, pytest.raises(RunLimitError, match=what):
        run_in(mode, peer, "anthropic", tools=[looking(ran)], **options)

    assert len(ran) == 1


@every_mode
def test_tokens(mode):
    """An answer that passes the limit ends the run, and is in the error."""
    with (
        simulated(text("word " * 500)) as peer,
        pytest.raises(RunLimitError, match="max_tokens=50") as error,
    ):
        run_in(mode, peer, "gemini", limits=RunLimits(max_tokens=50))

    assert error.value.partial.text.startswith("wor")
    assert error.value.total_usage.total_tokens > 50
    assert len(error.value.steps) == 1


async def price(request, call_next):
    return replace(await call_next(request), cost=Cost(total=0.4, output=0.4))


@every_mode
def test_cost(mode):
    """Dollars of all answers are added; an unknown price ends the run rather than count as 0."""
    with simulated(CALL, CALL, text("Done.")) as peer:
        peer.client = peer.client.with_middleware(price)
        options = {"tools": [looking([])], "max_tool_rounds": 9}
        with pytest.raises(RunLimitError, match=r"max_cost=0.7: \$0.800000 was spent") as error:
            run_in(mode, peer, "openai", limits=RunLimits(max_cost=0.7), **options)

    assert len(error.value.steps) == 2

    unknown = r"the price of openai_compatible:.* is unknown"
    with simulated(text("Done.")) as peer, pytest.raises(RunLimitError, match=unknown):
        run_in(mode, peer, "openai_compatible", limits=RunLimits(max_cost=0.7))


@every_mode
def test_within_the_limits(mode):
    """Nothing changes."""
    limits = RunLimits(max_requests=2, max_tokens=100_000, max_tool_calls=1)
    with simulated(CALL, text("Done.")) as peer:
        result = run_in(mode, peer, "openai", tools=[looking([])], limits=limits)

    assert result.text.endswith("Done.")


@pytest.mark.parametrize("name", RunLimits.__struct_fields__)
@pytest.mark.parametrize("value", [-1, True, "5", float("nan")])
def test_wrong_limits(name, value):
    """They are refused when they are made."""
    with pytest.raises(ConfigurationError, match=name):
        RunLimits(**{name: value})


@pytest.mark.parametrize(
    "limits",
    [RunLimits(max_tool_calls=1), RunLimits(max_tokens=1), RunLimits(max_requests=1)],
    ids=["tool_calls", "tokens", "requests"],
)
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
def test_a_limit_that_was_reached(whole, limits):
    """Resumed with the same limits, a run ends at once: nothing is sent and no tool is run."""
    ran, mode = [], "whole" if whole else "stream"
    twice = CALL + CALL
    options = {"tools": [looking(ran)], "max_tool_rounds": 9}
    with simulated(twice, text("Done.")) as peer:
        with pytest.raises(RunLimitError) as first:
            run_in(mode, peer, "openai", limits=limits, **options)
        sent, before = len(peer.app.script.received), len(ran)
        options["prompt"] = None
        with pytest.raises(RunLimitError) as second:
            run_in(mode, peer, "openai", resume=first.value, limits=limits, **options)
        assert (len(peer.app.script.received), len(ran)) == (sent, before)
        result = run_in(mode, peer, "openai", resume=second.value, **options)

    assert second.value.messages == first.value.messages
    assert second.value.total_usage == first.value.total_usage
    assert result.text == "Done."
    assert len(ran) == 2


def test_calls_that_a_resumed_run_makes_first():
    """They count, also in a run that is resumed after that, and their results are in their step."""
    ran = []
    options = {"tools": [looking(ran)], "max_tool_rounds": 9}
    with simulated(CALL, CALL, CALL, text("Done.")) as peer:
        with pytest.raises(RunLimitError) as error:
            run_in("whole", peer, "openai", limits=RunLimits(max_tool_calls=0), **options)
        failure = error.value
        for count in (1, 2):
            limits = RunLimits(max_tool_calls=count)
            with pytest.raises(RunLimitError, match=f"{count} tools were called") as error:
                run_in(
                    "whole",
                    peer,
                    "openai",
                    prompt=None,
                    resume=failure,
                    limits=limits,
                    **options,
                )
            failure = error.value
            assert len(ran) == count

    assert [len(step.tool_results) for step in failure.steps] == [1, 1, 0]


def test_an_open_turn_of_a_session():
    """Its calls are bound by the limits; an unknown price is no error before an answer."""
    ran = []
    gated = Tool(
        name="look", description="Looks.", execute=lambda: ran.append(1) or "seen",
        needs_approval=True,
    )  # fmt: skip
    twice = CALL + CALL
    with simulated(twice, text("Done.")) as peer:

        async def work(client):
            session = Session("openai:gpt-5.2", client=client, tools=[gated])
            await session.send("?")
            approvals = {call.id: True for call in session.open_calls}
            with pytest.raises(RunLimitError, match="max_tool_calls=1"):
                await session.send(approvals=approvals, limits=RunLimits(max_tool_calls=1))
            assert len(session.open_calls) == 2
            return await session.send(approvals=approvals, limits=RunLimits(max_cost=1.0))

        assert run(peer, work).text == "Done."
    assert len(ran) == 2
