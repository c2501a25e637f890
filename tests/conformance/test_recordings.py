"""The laws over recordings that anyone can make with `interlingua record`."""

import asyncio
import json

import pytest

from interlingua import HttpAdapter, Request, dialects, tool
from interlingua.conformance.laws import check
from interlingua.conformance.recordings import RECORDED_LAWS, read_recordings
from interlingua.errors import ConfigurationError, SDKError
from interlingua.simulator import Simulator, cut, error, text, use_tools
from interlingua.transport import AsgiTransport, RecordingTransport

PROVIDERS = {
    "openai_responses": "openai",
    "openai_chat": "groq",
    "anthropic_messages": "anthropic",
    "gemini_generate": "gemini",
}
LONG = "A word and another word. " * 100


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: 4 C"


async def ask(adapter, request):
    """Ask for a whole answer, and for a stream; failures are recorded too."""
    for events in (adapter.complete, adapter.stream):
        try:
            if events == adapter.complete:
                await events(request)
            else:
                [_ async for _ in events(request)]
        except SDKError:
            continue


def record(path, *answers, tools=()):
    """Record exchanges with the simulator in every dialect; returns the file."""

    async def run():
        transport = RecordingTransport(AsgiTransport(Simulator(*answers)), path)
        for provider in PROVIDERS.values():
            adapter = HttpAdapter(provider, "sk-a-key-of-this-test", transport=transport)
            await ask(adapter, Request(model="some-model", messages="Weather?", tools=tools))
            await adapter.close()

    asyncio.run(run())
    return path


def scores(cases):
    return {
        name: check(dialects.get(name), cases[name], RECORDED_LAWS).violations for name in cases
    }


@pytest.mark.parametrize("answer", [text("It rains."), text(LONG), use_tools])
def test_the_laws_hold_on_recorded_exchanges(tmp_path, answer):
    """Whole answers, streams, long streams and tool calls of every dialect are cases."""
    cases, skipped = read_recordings(record(tmp_path / "a.json", answer, tools=[get_weather]))

    assert skipped == ()
    assert {*cases} == {*PROVIDERS}
    for each in cases.values():
        assert [case.stream is None for case in each] == [True, False]
        assert each[0].response is not None
        assert all(case.call.body for case in each)
    assert scores(cases) == dict.fromkeys(cases, ())


def test_errors_are_cases_too(tmp_path):
    """A refused request keeps its status and its body, also if it asked for a stream."""
    cases, _ = read_recordings(record(tmp_path / "a.json", error(429, "Too fast.")))

    for each in cases.values():
        assert [(case.status, case.stream) for case in each] == [(429, None)] * 2
        assert all("Too fast." in json.dumps(case.response) for case in each)
    assert scores(cases) == dict.fromkeys(cases, ())


def test_of_a_cut_stream_only_the_request_is_used(tmp_path):
    """What did not arrive whole says nothing about the decoder."""
    cases, _ = read_recordings(record(tmp_path / "a.json", text("It rains.") + cut(at=1)))

    for each in cases.values():
        assert [(case.stream, case.response) for case in each][1] == (None, None)
        assert each[1].call.stream
    assert scores(cases) == dict.fromkeys(cases, ())


def test_a_violation_is_found(tmp_path):
    """A stream without its end, which no error explains, breaks a law."""
    path = record(tmp_path / "a.json", text("It rains."))
    tape = json.loads(path.read_text(encoding="utf-8"))
    for exchange in tape["exchanges"]:
        exchange["reply"]["chunks"] = exchange["reply"]["chunks"][:1]
    path.write_text(json.dumps(tape), encoding="utf-8")

    found = scores(read_recordings(path).cases)

    assert any(
        violation.case.startswith("a.json 2: POST ") for violation in found["openai_responses"]
    )


def test_a_folder_of_recordings(tmp_path):
    """All files count, in the order of their names; a folder without one says what to do."""
    with pytest.raises(ConfigurationError, match="interlingua record"):
        read_recordings(tmp_path)
    record(tmp_path / "b.json", text("One."))
    record(tmp_path / "a.json", text("Two."))

    names = [case.name for case in read_recordings(tmp_path).cases["openai_chat"]]

    assert [name.partition(" ")[0] for name in names] == ["a.json"] * 2 + ["b.json"] * 2


def test_other_endpoints_are_skipped(tmp_path):
    """A list of models has no law; it is named, so that nobody believes that it was checked."""

    async def run():
        transport = RecordingTransport(AsgiTransport(Simulator()), tmp_path / "a.json")
        adapter = HttpAdapter("openai", "sk-a-key-of-this-test", transport=transport)
        await adapter.perform("list_models", None)
        await adapter.close()

    asyncio.run(run())

    assert read_recordings(tmp_path / "a.json") == ({}, ("a.json 1: GET /v1/models",))
