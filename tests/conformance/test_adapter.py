"""An adapter is checked by asking it; a broken one fails each check."""

import asyncio

import pytest

from interlingua import HttpAdapter, Request
from interlingua.conformance.adapter import CHECKS, check_adapter
from interlingua.conformance.report import as_text
from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.spec.errors import NetworkError
from interlingua.spec.events import TextDelta
from interlingua.spec.response import Response

MODEL = "simulated-model"


def check(adapter, **options):
    return asyncio.run(check_adapter(adapter, MODEL, **options))


def test_a_good_adapter_passes_every_check():
    """The adapter of the library, over HTTP."""
    with serve_in_thread(Simulator(models=[MODEL])) as server:
        report = check(HttpAdapter("openai", "sk-k", base_url=server.url))

    assert report.violations == (), as_text(report)
    assert [score.passed for score in report.scores] == [1] * len(CHECKS)


TOOL_CHECKS = {
    *("tool call", "tool call in a stream", "parallel calls", "parallel calls in a stream"),
    "tool results",
}


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "groq"])
def test_what_a_model_lacks_is_not_applicable(provider):
    """A model without tools passes everything else, and the reason names what it lacks."""
    with serve_in_thread(Simulator(models=[MODEL])) as server:
        adapter = HttpAdapter(provider, "sk-k", base_url=server.url, profile={"tools": False})
        report = check(adapter)

    lacking = {score.law: score.reason for score in report.scores if score.not_applicable}
    assert report.violations == (), as_text(report)
    assert report.percent == 100
    assert lacking.keys() == TOOL_CHECKS
    assert all("tools" in reason for reason in lacking.values())


def test_a_model_that_does_not_chat_has_nothing_to_check():
    """Every check of answers says of what kind the model is."""
    adapter = HttpAdapter(
        "openai", "sk-k", base_url="http://127.0.0.1:9", profile={"kind": "image"}
    )
    report = check(adapter, checks=["text", "stream", "usage", "tool call"])

    assert [score.status for score in report.scores] == ["not applicable"] * 4
    assert all("kind 'image'" in score.reason for score in report.scores)


class Broken:
    """An adapter that does nothing as it should."""

    name = "broken"

    def __init__(self):
        self.count = 0

    async def complete(self, request):
        self.count += 1
        if request.model != MODEL:
            raise KeyError(request.model)
        if request.tools:  # a frozen record can still be damaged
            request.tools[0].parameters["properties"]["extra"] = {}
        return Response(model=MODEL)

    async def stream(self, request: Request):
        yield TextDelta(index=0, delta=request.model)


@pytest.mark.parametrize("name", CHECKS)
def test_a_broken_adapter_fails_each_check(name):
    """Each finding says what is required and what was found."""
    report = check(Broken(), checks=[name])

    assert [violation.law for violation in report.violations] == [name]
    assert report.violations[0].required
    assert report.violations[0].details[0]


def test_an_adapter_without_a_server_is_an_error():
    """The first check that cannot connect ends the run."""
    with serve_in_thread(Simulator(text("x"))) as server:
        url = server.url
    with pytest.raises(NetworkError):
        check(HttpAdapter("openai", "sk-k", base_url=url))


def test_an_adapter_that_takes_every_model():
    """That is neither right nor wrong."""
    with serve_in_thread(Simulator()) as server:
        report = check(HttpAdapter("openai", "sk-k", base_url=server.url), checks=["errors"])

    assert report.scores[0].status == "not applicable"
