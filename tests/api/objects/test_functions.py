"""An object of a schema or a type: every dialect, every way of asking, over real HTTP."""

import asyncio
import json
import sys
from dataclasses import dataclass, field

import pytest

from interlingua.api.objects import schema as object_schemas
from interlingua.api.objects.functions import generate_object, stream_object
from interlingua.api.tools.tool import tool
from interlingua.client.client import Client
from interlingua.providers.adapter import LocalAdapter
from interlingua.runtime.cancel import AbortController
from interlingua.simulator import (
    error,
    finish,
    latency,
    pieces,
    raw_tool_call,
    refusal,
    results,
    text,
    tool_call,
)
from interlingua.spec.errors import (
    AbortError,
    ConfigurationError,
    NoObjectGeneratedError,
    RequestTimeoutError,
    UnsupportedError,
)
from interlingua.spec.request import ResponseFormat
from interlingua.spec.warnings import is_loss
from support.simulated import DIALECTS, MODELS, in_virtual_time, run, simulated
from support.warning_codes import codes


@dataclass
class Address:
    city: str
    zip: str = ""


@dataclass
class Person:
    name: str
    age: int
    address: Address | None = None
    tags: list[str] = field(default_factory=list)


ADA = {"name": "Ada", "age": 36, "address": {"city": "London"}}
MODES = ("native", "tool", "prompt")
every_dialect = pytest.mark.parametrize("provider", DIALECTS)
every_mode = pytest.mark.parametrize("mode", MODES)


def by(mode):
    """A profile that leaves only this way."""
    return {"structured_output": (mode,), "structured_output_with_tools": True}


def give(value, *, size=3):
    """A model that answers with this, in the way it is asked to."""

    def answer(request):
        asked = [made.name for made in request.tools or () if made.name == "answer"]
        said = tool_call("answer", value) if asked else text(json.dumps(value))
        return said + pieces(size)

    return answer


def ask(client, provider, schema=Person, **options):
    return generate_object(
        MODELS[provider], "Invent.", schema=schema, provider=provider, client=client, **options
    )


def asked(peer, provider, schema=Person, **options):
    return run(peer, lambda client: ask(client, provider, schema, **options))


def streamed(peer, provider, schema=Person, **options):
    async def work(client):
        found = stream_object(
            MODELS[provider], "Invent.", schema=schema, provider=provider, client=client, **options
        )
        return [partial async for partial in found], found

    return run(peer, work)


@every_mode
@every_dialect
def test_whole_and_streamed(provider, mode):
    """The object is of the caller's type, and no warning tells of a loss."""
    with simulated(give(ADA), profile=by(mode), strict=True) as peer:
        result = asked(peer, provider)
        partials, stream = streamed(peer, provider)

    person = Person("Ada", 36, Address("London"))
    assert result.output == stream.object() == person
    assert partials[-1] == ADA
    assert not any(is_loss(warning) for warning in result.warnings)
    # Gemini sends the arguments of a call whole
    assert len(partials) > 3 or (provider, mode) == ("gemini", "tool")
    assert stream.result().output == person
    first, second = peer.app.script.requests
    assert first.messages == second.messages
    assert bool(first.response_format) == (mode == "native")
    assert bool(first.tools) == (mode == "tool")
    assert ("JSON Schema" in first.messages[0].text) == (mode == "prompt")


@every_dialect
def test_a_schema_is_narrowed_once_and_not_explained(provider, monkeypatch):
    """Where nothing is lost, the dialect's rules say so, and the request is encoded once."""
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, provider: {"type": "string"}},
        "required": ["name", provider],
        "additionalProperties": False,
    }
    narrowings = []
    original = object_schemas.narrow

    def narrow(given, rules):
        narrowings.append(rules)
        return original(given, rules)

    explained = []
    monkeypatch.setattr(Client, "explain", lambda *_, **__: explained.append(1))
    monkeypatch.setattr(sys.modules["interlingua.prepare.schema.narrow"], "narrow", narrow)
    monkeypatch.setattr(object_schemas, "narrow", narrow)
    with simulated(give({"name": "Ada", provider: "x"}), profile=by("native")) as peer:
        for _ in range(2):
            assert asked(peer, provider, schema).output == {"name": "Ada", provider: "x"}

    assert explained == []
    assert len(narrowings) == 1


@every_mode
@every_dialect
def test_what_is_no_object_at_its_root(provider, mode):
    """A list travels in an object, and comes out of it."""
    with simulated(give({"value": [ADA]}), profile=by(mode)) as peer:
        result = asked(peer, provider, list[Person])
        partials, stream = streamed(peer, provider, list[Person])

    assert result.output == stream.object() == [Person("Ada", 36, Address("London"))]
    assert partials[0] in ([], [{}]) or provider == "gemini"
    assert partials[-1] == [ADA]


@every_mode
@every_dialect
def test_tools_beside_it(provider, mode):
    """The loop runs, and its last step gives the object."""

    @tool
    def find_age(name: str) -> int:
        """Find out how old somebody is."""
        return {"Ada": 36}[name]

    def answer(request):
        found = results(request) or request.messages[-1].text.startswith("find_age returned: 36")
        if not found:
            return text("Let me see.") + tool_call("find_age", name="Ada")
        return give({"name": "Ada", "age": 36})(request)

    # Not strict: some models do not accept the mode that is chosen here.
    with simulated(answer, strict=False, profile=by(mode)) as peer:
        result = asked(peer, provider, tools=[find_age])
        partials, stream = streamed(peer, provider, tools=[find_age])

    assert result.output == stream.object() == Person("Ada", 36)
    assert len(result.steps) == len(stream.result().steps) == 2
    assert partials[-1] == {"name": "Ada", "age": 36}
    last = peer.app.script.requests[1]
    if provider == "bedrock_converse" and mode != "tool":  # it has no choice `none`
        assert (last.tools, last.tool_choice, results(last)) == ((), None, ())
        assert "tools_withheld" in codes(result)
    else:
        assert last.tool_choice.mode == ("named" if mode == "tool" else "none")
        assert [int(each.content) for each in results(last)] == [36]


@every_mode
@every_dialect
def test_asked_again(provider, mode):
    """The model is told what is wrong; nothing is lost of what it said before."""
    wrong = give({"name": "Ada", "age": "old"})
    with simulated(wrong, give(ADA), profile=by(mode)) as peer:
        result = asked(peer, provider, max_validation_retries=1)

    assert result.output == Person("Ada", 36, Address("London"))
    assert len(result.steps) == 2
    assert result.total_usage.output_tokens > result.usage.output_tokens
    again = peer.app.script.requests[1]
    told = results(again)[0].content if mode == "tool" else again.messages[-1].text
    assert "age" in str(told)
    assert [message.role for message in again.messages if message.role != "system"] == (
        ["user", "assistant", "tool" if mode == "tool" else "user"]
    )


@every_mode
@every_dialect
def test_an_invalid_answer_raises(provider, mode):
    """The error has the text, the response and the problems; nobody asks again unasked."""
    with (
        simulated(give({"name": "Ada", "age": "old"}), profile=by(mode)) as peer,
        pytest.raises(NoObjectGeneratedError, match="does not match the schema") as caught,
    ):
        asked(peer, provider)

    assert json.loads(caught.value.text) == {"name": "Ada", "age": "old"}
    assert caught.value.response.message.content
    assert [problem.split(":")[0] for problem in caught.value.problems] == ["age"]
    assert len(peer.app.script.received) == 1


@every_dialect
def test_a_refusal(provider):
    """It says so."""
    with (
        simulated(refusal("I will not.")) as peer,
        pytest.raises(NoObjectGeneratedError, match="refused"),
    ):
        asked(peer, provider, max_validation_retries=2)

    assert len(peer.app.script.received) == 1


@every_dialect
@pytest.mark.parametrize(
    ("mode", "answer"),
    [
        ("native", text('{"name": "Ada"')),
        ("tool", raw_tool_call("answer", '{"name": "Ada"')),
    ],
)
def test_an_object_cut_off_by_the_length_limit_is_an_error(provider, mode, answer):
    """Half an object is none, and the error says what to do (field bug 88)."""
    with (
        simulated(answer + finish("length"), profile=by(mode)) as peer,
        pytest.raises(NoObjectGeneratedError, match="max_tokens"),
    ):
        asked(
            peer, provider, {"properties": {"name": {"type": "string"}}}, max_validation_retries=2
        )

    assert len(peer.app.script.received) == 1


@every_dialect
def test_by_the_profile_of_the_model(provider):
    """The usual models are asked natively, by nobody's order."""
    with simulated(give(ADA)) as peer:
        assert asked(peer, provider).output.name == "Ada"

    (request,) = peer.app.script.requests
    assert request.response_format is not None
    assert request.tools == ()


def test_a_conversation_goes_on_after_it():
    """Its calls have results, and its instructions were not the caller's."""
    for mode in MODES:
        with simulated(give(ADA), profile=by(mode)) as peer:
            result = asked(peer, "anthropic", system="Be terse.")

        *said, last = result.messages
        assert said[0].text == "Be terse."
        called = [call.id for message in said for call in message.tool_calls]
        assert called == [part.tool_call_id for part in last.content if mode == "tool"]


@pytest.mark.usefixtures("no_backoff")
def test_calls_are_retried_and_answers_are_not():
    """A failure of the wire is another matter than a wrong answer."""
    with (
        simulated(error(500, retry_after=0), give({"name": 1})) as peer,
        pytest.raises(NoObjectGeneratedError),
    ):
        asked(peer, "openai", max_retries=1)

    assert len(peer.app.script.received) == 2


def test_calls_that_wait():
    """There is no output while somebody has to decide, and it comes when they have."""

    @tool(needs_approval=True)
    def pay() -> str:
        return "paid"

    def answer(request):
        return give(ADA)(request) if results(request) else tool_call("pay")

    with simulated(answer) as peer:
        waiting = asked(peer, "openai", tools=[pay])

        async def work(client):
            return await generate_object(
                MODELS["openai"],
                messages=waiting.messages,
                approvals={call.id: True for call in waiting.pending_approvals},
                schema=Person,
                provider="openai",
                client=client,
                tools=[pay],
            )

        result = run(peer, work)

    assert [call.name for call in waiting.pending_approvals] == ["pay"]
    assert waiting.output is None
    assert result.output.name == "Ada"


def test_a_call_that_nobody_runs():
    """A tool without a handler is the caller's, and there is no object."""
    definition = tool(print_nothing).definition
    with (
        simulated(tool_call("print_nothing")) as peer,
        pytest.raises(NoObjectGeneratedError, match="called print_nothing"),
    ):
        asked(peer, "openai", tools=[definition], max_validation_retries=3)


def print_nothing() -> None:
    pass


def test_time_counts_for_all():
    """Asking again does not begin a new clock."""
    peer = in_virtual_time(text("no") + latency(first=10))
    with pytest.raises(RequestTimeoutError):
        asked(peer, "openai", max_validation_retries=20, timeout=50)


def test_given_up_before_it_began():
    """As with every call."""
    controller = AbortController()
    controller.abort()
    with simulated(give(ADA)) as peer, pytest.raises(AbortError):
        asked(peer, "openai", abort_signal=controller.signal)

    assert peer.app.script.received == ()


def test_called_wrongly():
    """It is told before anything is sent."""
    with simulated(give(ADA), profile={"structured_output": ()}) as peer:
        for wrong, kind in (
            ({"temperatur": 1}, ConfigurationError),
            ({"response_format": ResponseFormat()}, ConfigurationError),
            ({"max_validation_retries": -1}, ConfigurationError),
            ({"schema": {"type": "nothing"}}, ConfigurationError),
            ({}, UnsupportedError),
        ):
            with pytest.raises(kind):
                asked(peer, "openai", **wrong)

    assert peer.app.script.received == ()


def test_one_hundred_thousand_characters():
    """2,000 fragments, of which few are worth a partial."""
    people = [{"name": "x" * 20, "age": n} for n in range(2500)]
    with simulated(give({"value": people}, size=50)) as peer:
        partials, stream = streamed(peer, "openai_compatible", list[Person])

    assert len(stream.object()) == 2500
    assert partials[-1] == people
    assert 40 < len(partials) < 200


# The real model.


@dataclass
class Name:
    first: str
    age: int


def test_the_local_model(local):
    """It is held to the schema, whole and streamed, and says the same both times."""

    async def work():
        async with Client({"local": LocalAdapter(server=local)}) as client:
            options = {"schema": Name, "client": client, "max_tokens": 100, "temperature": 0.0}
            whole = await generate_object("local:smollm2", "Invent a person.", **options)
            stream = stream_object("local:smollm2", "Invent a person.", **options)
            return whole, [partial async for partial in stream], stream.object()

    whole, partials, streamed_object = asyncio.run(work())

    assert isinstance(whole.output, Name)
    assert whole.output == streamed_object
    assert len(partials) > 3


OPTIONS = {"max_validation_retries": (-1, 1.5, "2", True), "tools": (5, "look", {"a": 1})}


@pytest.mark.parametrize("start", [generate_object, stream_object])
def test_bad_options(start):
    """Each is told at once, as an error of the configuration."""
    client = Client({})

    async def work(**options):
        started = start("m", "x", **{"schema": dict, "client": client} | options)
        await (started if start is generate_object else anext(started))

    for name, values in OPTIONS.items():
        for value in values:
            with pytest.raises(ConfigurationError, match=name):
                asyncio.run(work(**{name: value}))
    with pytest.raises(ConfigurationError, match="client"):
        asyncio.run(work(client="openai"))
