"""The end of a run by its number of tool rounds, which is 1 unless the caller says otherwise."""

import asyncio
import logging

import pytest

from interlingua import sync
from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import tool
from interlingua.simulator import scripted, text, tool_call
from support.runs import MODES, run_in
from support.simulated import simulated

CALL = tool_call("look", at="cat")


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"{at}: asleep"


@pytest.mark.parametrize("mode", MODES)
def test_the_end_by_the_number_of_rounds_is_logged_with_what_to_pass(mode, caplog):
    """Once, in every way of running; the answer has the same warning."""
    rounds = {"max_tool_rounds": 1} if mode == "execute" else {}  # whose default is 20
    with caplog.at_level(logging.WARNING, logger="interlingua"), simulated(CALL) as peer:
        result = run_in(mode, peer, "anthropic", "Cat?", tools=[look], **rounds)
    (record,) = [each for each in caplog.records if each.reason == "tool_rounds_exhausted"]

    assert "after 1 tool round, and calls of look were not run" in record.getMessage()
    assert "`max_tool_rounds`" in record.getMessage()
    assert (record.adapter, record.model) == ("anthropic", "claude-haiku-4-5")
    assert record.request_id
    assert [each.code for each in result.warnings].count("tool_rounds_exhausted") == 1


def test_a_run_that_its_model_ended_logs_nothing(caplog):
    """One round was enough."""
    client = scripted(CALL, text("It sleeps."))
    with caplog.at_level(logging.WARNING, logger="interlingua"):
        result = asyncio.run(
            generate("anthropic:claude-haiku-4-5", "Cat?", tools=[look], client=client)
        )

    assert (result.text, caplog.records) == ("It sleeps.", [])


@pytest.mark.parametrize("function", [generate, stream, sync.generate, sync.stream])
def test_the_docstrings_say_the_default(function):
    """Where a reader looks first, not only among the options."""
    before_options = function.__doc__.partition("Options:")[0]

    assert "`max_tool_rounds`" in before_options
