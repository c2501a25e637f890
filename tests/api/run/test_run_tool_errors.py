"""Tools that fail, and what a tool is told of its run, in every mode."""

import dataclasses
import logging

import pytest

from interlingua.api.run.generate import stream
from interlingua.api.run.results import StepResult
from interlingua.api.tools.context import ToolContext
from interlingua.api.tools.tool import tool
from interlingua.runtime.cancel import AbortSignal
from interlingua.simulator import text, tool_call, tool_loop
from interlingua.spec.content import ToolResult
from interlingua.spec.errors import InvalidToolCallError
from interlingua.spec.json_form import from_json, to_json
from interlingua.spec.messages import Message
from support.runs import MODES, collect, named, run_in
from support.simulated import DIALECTS, run, simulated

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
every_mode = pytest.mark.parametrize("mode", MODES)
SECRET = "postgres://user:password@host"


@tool
def fetch(row: int) -> str:
    """Fetch a row."""
    if row:
        raise ConnectionError(SECRET)
    return "nothing"


def results_of(result):
    parts = (part for message in result.messages for part in message.content)
    return [part for part in parts if isinstance(part, ToolResult)]


@every_provider
@every_mode
def test_a_tools_exception_is_logged_with_its_traceback(provider, mode, caplog):
    """The model gets its class and message; the log has the line that raised it."""
    with simulated(tool_loop(tool_call("fetch", row=1), text("Sorry."))) as peer:
        result = run_in(mode, peer, provider, tools=[fetch])

    (answer,) = results_of(result)
    assert answer.is_error
    assert answer.content == f"ConnectionError: {SECRET}"
    (record,) = [entry for entry in caplog.records if entry.exc_info]
    assert record.levelno == logging.WARNING
    assert "fetch" in record.getMessage()
    assert record.exc_info[0] is ConnectionError
    assert "raise ConnectionError(SECRET)" in caplog.text


@every_provider
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "execute"])
def test_the_exceptions_are_kept_on_the_step(provider, mode):
    """By call id, those of invalid calls too; the calls that succeeded have none."""

    @tool
    def add(a: int) -> int:
        """Add."""
        return a + 1

    asked = [
        tool_call("fetch", row=1, id="c1"),
        tool_call("add", a="many", id="c2"),
        tool_call("add", a=1, id="c3"),
    ]
    with simulated(tool_loop(sum(asked[1:], asked[0]), text("Sorry."))) as peer:
        result = run_in(mode, peer, provider, tools=[fetch, add])

    step, last = result.steps
    kinds = [type(step.tool_errors.get(call.id)) for call in step.tool_calls]
    assert kinds == [ConnectionError, InvalidToolCallError, type(None)]
    assert [entry.is_error for entry in step.tool_results] == [True, True, False]
    assert last.tool_errors == {}
    read = from_json(to_json(step), StepResult)
    assert read.tool_results == step.tool_results
    texts = [str(read.tool_errors[call.id]) for call in step.tool_calls[:2]]
    assert texts[0] == f"ConnectionError: {SECRET}"


@every_provider
@every_mode
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_tool_error_says_what_the_model_is_told(provider, mode, is_async):
    """Nothing of the exception reaches the model unless the function passes it on."""
    seen = []

    def explain(call, error):
        seen.append((call.name, type(error)))
        return f"{call.name} is not available now."

    async def explain_later(call, error):
        return explain(call, error)

    with simulated(tool_loop(tool_call("fetch", row=1), text("Sorry."))) as peer:
        formatter = explain_later if is_async else explain
        result = run_in(mode, peer, provider, tools=[fetch], tool_error=formatter)
        sent = str(peer.app.script.received[1].call.body)

    assert seen == [("fetch", ConnectionError)]
    assert [(each.content, each.is_error) for each in results_of(result)] == [
        ("fetch is not available now.", True)
    ]
    assert "password" not in sent
    assert "fetch is not available now." in sent


def test_a_tool_error_that_fails_is_logged(caplog):
    """The model then gets the class and message."""

    def explain(call, error):
        raise KeyError(call.name, error)

    with simulated(tool_loop(tool_call("fetch", row=1), text("Sorry."))) as peer:
        result = run_in("whole", peer, "openai", tools=[fetch], tool_error=explain)

    assert results_of(result)[0].content == f"ConnectionError: {SECRET}"
    assert "tool_error failed for a call of 'fetch'" in caplog.text


@dataclasses.dataclass
class Shop:
    name: str


@every_provider
@every_mode
def test_a_tool_gets_its_context_by_annotation(provider, mode):
    """The run's messages, call id, signal and deps; the model's own `messages` are arguments."""
    contexts, given = [], []

    @tool
    def send(
        messages: list[str], tool_call_id: str, abort_signal: bool, run: ToolContext[Shop]
    ) -> str:
        """Send messages."""
        given.append((messages, tool_call_id, abort_signal))
        contexts.append(run)
        return "sent"

    @tool
    async def count(
        history: list[Message], past: tuple[Message, ...], stop: AbortSignal
    ) -> list[bool]:
        """Count."""
        return [history == list(past), len(past) == 2, stop.aborted]

    names = ["messages", "tool_call_id", "abort_signal"]
    assert [*send.parameters["properties"]] == names
    assert [*count.parameters["properties"]] == []
    arguments = {"messages": ["a"], "tool_call_id": "mine", "abort_signal": True}
    calls = tool_call("send", **arguments) + tool_call("count")
    with simulated(tool_loop(calls, text("Done."))) as peer:
        result = run_in(mode, peer, provider, tools=[send, count], deps=Shop("corner"))

    assert given == [(["a"], "mine", True)]
    (context,) = contexts
    first, second = results_of(result)
    assert context.tool_call_id == first.tool_call_id
    assert context.tool_name == "send"
    assert context.deps == Shop("corner")
    assert [message.role for message in context.messages] == ["user", "assistant"]
    assert not context.abort_signal.aborted
    assert context.retry_count == 0
    assert second.content == [True, True, False]


@every_mode
def test_the_context_counts_retries(mode):
    """How often the tool has failed one call after another; another tool does not count."""
    counts = []

    @tool
    def fetch(run: ToolContext) -> str:
        """Fetch."""
        counts.append(run.retry_count)
        if len(counts) < 3:
            raise OSError("busy")
        return "fetched"

    @tool
    def other() -> str:
        """Other."""
        raise OSError("other")

    both = tool_call("fetch") + tool_call("other")
    with simulated(both, both, both, tool_call("fetch"), text("Done.")) as peer:
        run_in(mode, peer, "openai", tools=[fetch, other], max_tool_rounds=9)

    assert counts == [0, 1, 2, 0]


@every_provider
def test_a_streamed_run_has_an_event_per_tool_result(provider):
    """As each tool ends, before the step does, failed ones included."""

    @tool
    async def add(a: int) -> int:
        """Add."""
        return a + 1

    async def work(client):
        calls = stream(named(provider), "?", tools=[fetch, add], client=client)
        return await collect(calls)

    asked = tool_call("fetch", row=1) + tool_call("add", a=1)
    with simulated(tool_loop(asked, text("Done."))) as peer:
        events = run(peer, work)

    kinds = [event.type for event in events]
    results = [event.result for event in events if event.type == "tool_result"]
    assert sorted((each.name, each.is_error) for each in results) == [
        ("add", False), ("fetch", True),
    ]  # fmt: skip
    at = kinds.index("tool_result")
    assert kinds[at : at + 3] == ["tool_result", "tool_result", "step_finish"]
    assert kinds[at - 1] == "tool_call_end"
