"""A server that claims a dialect is checked over HTTP; each check can fail."""

import asyncio
import json

import pytest

from interlingua import Request, dialects
from interlingua.conformance.endpoint import CHECKS, check_endpoint
from interlingua.conformance.report import as_text
from interlingua.simulator import (
    Simulator,
    Turn,
    cut,
    error,
    finish,
    raw_tool_call,
    reset,
    serve_in_thread,
    text,
    tool_call,
    usage,
    use_tools,
    within_limits,
)
from interlingua.spec.errors import ConfigurationError, NetworkError
from interlingua.wire.json_text import dumps

KEY = "sk-planted-key-of-a-test"
MODEL = "simulated-model"


def checked(app, dialect="openai_chat", key=KEY, **options):
    """The report on a server with this application."""
    with serve_in_thread(app) as server:
        return asyncio.run(check_endpoint(server.url, dialect, MODEL, key, **options))


def simulator(*answers, key=KEY, models=(MODEL,), strict=True):
    answers = answers or (within_limits(use_tools),)
    return Simulator(*answers, key=key, models=models, strict=strict)


def failed(report):
    return {violation.law for violation in report.violations}


@pytest.mark.parametrize("dialect", dialects.names())
def test_the_simulator_passes_every_check(dialect):
    """Every check passes, except those for what the dialect does not have."""
    report = checked(simulator(), dialect)

    assert report.violations == (), as_text(report)
    assert report.percent == 100
    assert [score.law for score in report.scores] == list(CHECKS)
    missing = {score.law for score in report.scores if score.status == "not applicable"}
    assert missing <= {"limit: stop sequence"}


CALL = tool_call("weather", {"city": "Oslo"})
SAME_ID = tool_call("weather", {"city": "a"}, id="x")
BROKEN = {
    "text": (text(""),),
    "stream": (text("Hello.") + cut(300),),
    "usage": (text("Hello.") + usage(0, 0),),
    "usage of a stream": (text("Hello.") + usage(0, 0),),
    "tool call": (text("I call no tool."),),
    "tool call in a stream": (raw_tool_call("weather", '{"city": '),),
    "parallel calls": (SAME_ID + SAME_ID,),
    "parallel calls in a stream": (tool_call("other", {"city": "a"}),),
    "tool results": (CALL,),
    "limit: max_tokens": (use_tools,),
    "limit: stop sequence": (text("alpha beta gamma"),),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_answer_is_found(name):
    """A server that answers so fails the check, and the finding says what to fix."""
    report = checked(simulator(*BROKEN[name]), checks=[name])

    assert failed(report) == {name}
    (finding,) = report.violations
    assert finding.required
    assert finding.details[0]
    assert report.percent == 0


def without_tools(request):
    """The answer of a server whose model has no tools, in the words of Ollama."""
    if request.tools:
        return error(400, message="simulated-model does not support tools")
    return within_limits(use_tools)(request)


@pytest.mark.parametrize("dialect", dialects.names())
def test_what_a_model_lacks_is_not_applicable(dialect):
    """A server that refuses tools, and says that its model has none, passes everything else."""
    report = checked(simulator(without_tools), dialect)

    assert report.violations == (), as_text(report)
    assert report.percent == 100
    about_tools = [score for score in report.scores if "tool" in score.law]
    # Converse has no form for the tool choice `none`, so that results are sent without tools.
    lacking = {score.law: score.reason for score in about_tools if not score.passed}
    assert all("does not support tools" in reason for reason in lacking.values())


def test_a_server_that_refuses_tools_without_saying_so_fails():
    """A refusal for another reason is a finding."""
    app = simulator(lambda request: error(400, message="Bad request.") if request.tools else "hi")
    report = checked(app, checks=["tool call"])

    assert failed(report) == {"tool call"}


@pytest.mark.parametrize(
    ("name", "app"),
    [
        ("error: unknown model", simulator(models=None)),
        ("error: unknown model in a stream", simulator(models=None)),
        ("error: wrong key", simulator(key=None)),
    ],
)
def test_a_server_that_refuses_nothing_is_found(name, app):
    """A server that takes every key and every model fails."""
    report = checked(app, checks=[name])

    assert failed(report) == {name}
    assert "with an error status" in report.violations[0].required


class Plain:
    """A server that answers everything in one way."""

    def __init__(self, status, body, content_type="application/json"):
        self.status, self.body, self.content_type = status, body, content_type

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-type", self.content_type.encode())]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def test_a_server_of_something_else_fails_every_check():
    """A web page in place of an API fails all checks that apply."""
    report = checked(Plain(200, b"<html>Welcome</html>", "text/html"))

    assert failed(report) == {*CHECKS}
    assert report.percent == 0


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"busy", "send errors as JSON"),
        (dumps({"error": "no"}), "error. is not an object"),
        (dumps({"error": {"message": "no", "type": 5, "code": None, "param": None}}), "type"),
        (dumps({"error": {"message": "no", "type": "x", "code": None}}), "error.param is missing"),
    ],
)
def test_errors_must_have_the_form_of_the_dialect(body, found):
    """What is missing in the body of an error is named."""
    report = checked(Plain(400, body), checks=["error: no JSON", "error: wrong type"])

    assert failed(report) == {"error: no JSON", "error: wrong type"}
    assert found in as_text(report)


def test_an_error_of_the_server_is_not_one_of_the_client():
    """A 500 for a bad body fails."""
    report = checked(Plain(500, b"{}"), checks=["error: no JSON", "error: wrong type"])

    assert failed(report) == {"error: no JSON", "error: wrong type"}
    assert "not with a 5xx" in report.violations[0].required


def test_a_server_that_does_not_survive_a_cancel_is_found():
    """The next request after a closed stream must be answered."""
    report = checked(simulator(text("Hello."), reset()), checks=["cancel"])

    assert failed(report) == {"cancel"}


def test_a_wrong_finish_reason_is_found():
    """A text that ends with `tool_calls` fails."""
    report = checked(simulator(text("Hello.") + finish("tool_calls")), checks=["text"])

    assert "finish reason" in report.violations[0].required


def test_one_call_where_two_were_asked_for_does_not_count():
    """What only the model decides is neither passed nor failed."""
    report = checked(simulator(CALL), checks=["parallel calls"])

    assert [score.status for score in report.scores] == ["not applicable"]
    assert "one call" in report.scores[0].reason


def test_no_key_no_check_of_keys():
    """Without a key there is nothing to be wrong."""
    report = checked(simulator(key=None), key=None, checks=["error: wrong key"])

    assert report.scores[0].reason == "No key was given."


def test_the_key_is_in_no_finding():
    """A server that repeats the key does not bring it into the report."""
    app = Plain(401, dumps({"error": {"message": f"bad key {KEY}"}}))
    report = checked(app)

    assert KEY not in as_text(report)
    assert KEY not in json.dumps([violation.details for violation in report.violations])


def test_no_server_is_an_error():
    """Nothing is scored where nothing answers."""
    with serve_in_thread(simulator()) as server:
        url = server.url
    with pytest.raises(NetworkError):
        asyncio.run(check_endpoint(url, "openai_chat", MODEL))


@pytest.mark.parametrize(
    "arguments",
    [
        ("127.0.0.1:80", "openai_chat", MODEL),
        ("http://127.0.0.1", "no_dialect", MODEL),
    ],
)
def test_wrong_arguments_are_refused(arguments):
    """Nothing is sent."""
    with pytest.raises(ConfigurationError):
        asyncio.run(check_endpoint(*arguments))
    with pytest.raises(ConfigurationError, match="No check 'x'"):
        asyncio.run(check_endpoint("http://127.0.0.1:1", "openai_chat", MODEL, checks=["x"]))


def test_limits_end_only_texts():
    """An answer within the limits is as it was; so is a tool call."""
    request = Request(messages="x", max_tokens=2, stop_sequences=("b",))

    assert within_limits(text("a"))(request) == text("a")
    assert within_limits(CALL)(request) == CALL
    assert within_limits(text("a b"))(request).parts == text("a ").parts
    assert within_limits(text("x" * 9))(request).parts == text("x" * 8).parts
    assert within_limits(Turn())(request) == Turn()
