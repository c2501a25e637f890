"""What is printed: results that fit on a screen, and log lines that say what was lost."""

import logging

import pytest

from interlingua.api.execute.execution import ExecuteError, ExecuteResult, execute
from interlingua.api.run.generate import generate, stream
from interlingua.api.run.results import GenerateResult, StepResult
from interlingua.api.tools.tool import Tool
from interlingua.client.retry_policy import RetryPolicy
from interlingua.simulator import error, text, tool_call
from interlingua.spec.content import Image, Text, Thinking, ToolCall, ToolResult
from interlingua.spec.messages import Message
from interlingua.spec.response import Response, Usage, Warning
from interlingua.spec.warning_table import WARNINGS
from support.runs import collect, named
from support.simulated import run, simulated

SCREEN = 24 * 80  # characters
LONG = "word " * 100_000
MESSAGE = Message.assistant(
    [
        Thinking(text=LONG),
        Text(text=LONG),
        Image(data=b"x" * 1_000_000),
        *(ToolCall(id=f"c{n}", name="look" * 20, arguments={"a": LONG}) for n in range(100)),
    ]
)
RESPONSE = Response(
    message=MESSAGE,
    model="m" * 1000,
    provider="openai",
    raw={"body": LONG},
    usage=Usage(input_tokens=10**9, raw={"a": LONG}),
    warnings=[Warning(code=f"code_{n}", message=LONG) for n in range(100)],
)
STEP = StepResult(response=RESPONSE, tool_results=(ToolResult(tool_call_id="c", content=LONG),) * 9)
RESULTS = {
    "response": RESPONSE,
    "step": STEP,
    "generate": GenerateResult(
        steps=(STEP,) * 50,
        messages=(MESSAGE,) * 100,
        output={"a": [LONG] * 100},
        pending_approvals=MESSAGE.tool_calls,
    ),
    "no step": GenerateResult(steps=()),
    "execute": ExecuteResult(
        text=LONG,
        reasoning=LONG,
        messages=(MESSAGE,) * 100,
        error=ExecuteError(message=LONG, code="x"),
        warnings=RESPONSE.warnings,
        pending_approvals=MESSAGE.tool_calls,
    ),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_fits_on_a_screen(kind):
    """However large it is; only the text of a run's result is its whole answer."""
    shown = repr(RESULTS[kind])

    assert len(shown) < SCREEN
    if not isinstance(RESULTS[kind], GenerateResult):
        assert str(RESULTS[kind]) == shown


def test_a_result_shows_its_text_reason_tokens_model_and_warnings():
    """The text, why it ended, the tokens, the model, the codes of warnings."""
    response = Response(
        message=Message.assistant(
            [Text(text="Rain."), ToolCall(id="1", name="look", arguments={})]
        ),
        model="gpt-5.2",
        provider="openai",
        usage=Usage(input_tokens=3, output_tokens=4),
        warnings=[Warning(code="seed_dropped", message="no seed")],
    )

    assert repr(response) == (
        "Response(text='Rain.', tool_calls=['look'], finish_reason='other', "
        "model='openai:gpt-5.2', input_tokens=3, output_tokens=4, warnings=['seed_dropped'])"
    )
    assert repr(GenerateResult(steps=(StepResult(response=response),))) == (
        "GenerateResult(text='Rain.', tool_calls=['look'], finish_reason='other', steps=1, "
        "input_tokens=3, output_tokens=4, warnings=['seed_dropped'])"
    )


@pytest.mark.usefixtures("no_backoff")
@pytest.mark.parametrize("way", ["complete", "client.stream", "generate", "stream", "execute"])
def test_a_warning_is_logged_once_per_request_and_code(way, caplog):
    """Not per attempt and not per step; it names the setting, provider and model."""
    look = Tool(name="look", execute=lambda: "x")
    policy = RetryPolicy(base_delay=0.0)
    answers = [error(503), error(503), tool_call("look"), text("done")]

    async def work(client):
        model = named("anthropic")
        request = peer.ask("anthropic", seed=7, request_id="r", metadata={"session_id": "s"})
        options = {"client": client, "tools": [look], "request_id": "r"}
        if way == "complete":
            await client.complete(request, retry=policy)
        elif way == "client.stream":
            await collect(client.stream(request, retry=policy))
        elif way == "generate":
            await generate(model, "?", seed=7, retry_policy=policy, **options)
        elif way == "stream":
            await collect(stream(model, "?", seed=7, retry_policy=policy, **options))
        else:
            await execute(model, "?", temperature=9.0, **options)

    with simulated(*answers) as peer, caplog.at_level(logging.WARNING, logger="interlingua"):
        run(peer, work)

    records = [record for record in caplog.records if hasattr(record, "reason")]
    codes = [record.reason for record in records]
    assert codes
    assert len(codes) == len(set(codes))
    for record in records:
        assert record.request_id == "r"
        assert (record.adapter, record.model) == ("anthropic", "claude-haiku-4-5")
        assert {"session_id", "message_id", "part_kind"} <= vars(record).keys()
        assert "anthropic:claude-haiku-4-5" in record.getMessage()
    if "seed_dropped" in codes:
        assert any("`seed`" in record.getMessage() for record in records)
    if way in ("complete", "client.stream"):
        assert {record.session_id for record in records} == {"s"}


def test_every_warning_in_the_log_names_its_target():
    """A warning whose sentence does not name the target gets it in the log line."""
    from interlingua.runtime.log import log_warnings
    from interlingua.spec.request import Request

    caught = []

    class Handler(logging.Handler):
        def emit(self, record):
            caught.append(record.getMessage())

    logger, handler = logging.getLogger("interlingua"), Handler()
    logger.addHandler(handler)
    try:
        warnings = tuple(
            Warning(code=code, message=row.sentence, path="messages[0].content[0]")
            for code, row in WARNINGS.items()
        )
        request = Request(model="m", messages="hi", request_id="r")
        log_warnings(warnings, request, "house", set())
    finally:
        logger.removeHandler(handler)

    assert len(caught) == len(WARNINGS)
    assert all("house:m" in line and "messages[0].content[0]" in line for line in caught)
