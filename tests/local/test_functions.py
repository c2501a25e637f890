"""The functions people call, on a real model, through the dialects its server speaks."""

from dataclasses import dataclass

import pytest

from interlingua import sync
from interlingua.api.execute.execution import execute
from interlingua.api.objects.functions import generate_object, stream_object
from interlingua.api.run.generate import generate, stream
from interlingua.providers.adapter import LocalAdapter
from interlingua.runtime.cancel import AbortController
from interlingua.spec.errors import AbortError, NoObjectGeneratedError, RequestTimeoutError
from interlingua.spec.messages import Message
from interlingua.streams.grammar import Grammar
from support.llama import SERVED, ask_local

MODEL = "local:smollm2"
PROMPT = "What is the capital of Norway? Answer in one word."
SHORT = {"max_tokens": 12, "temperature": 0.0}
STORY = "Tell me a long story about the sea."  # at temperature 0 it fills `max_tokens`
LONG = {"max_tokens": 1500, "temperature": 0.0}
every_dialect = pytest.mark.parametrize("dialect", SERVED)


@dataclass
class Name:
    first: str
    age: int


@every_dialect
def test_the_same_answer_in_every_way(local, dialect):
    """Whole, streamed, as text alone, by callbacks and blocking."""

    async def work(client):
        options = {"client": client, **SHORT}
        whole = await generate(MODEL, PROMPT, **options)
        grammar, events = Grammar(), stream(MODEL, PROMPT, **options)
        async for event in events:
            grammar.feed(event)
        grammar.finish()
        words = [piece async for piece in stream(MODEL, PROMPT, **options).text_stream]
        told = []
        executed = await execute(MODEL, PROMPT, on_chunk=told.append, **options)
        return whole, events.response(), words, executed, told

    whole, streamed, words, executed, told = ask_local(local, dialect, work)
    with sync.Client({"local": LocalAdapter(server=local, dialect=dialect)}) as client:
        blocking = sync.generate(MODEL, PROMPT, client=client, **SHORT)
        pieces = list(sync.stream(MODEL, PROMPT, client=client, **SHORT).text_stream)

    assert whole.text
    assert len(words) > 1
    assert {streamed.text, "".join(words), executed.text, blocking.text, "".join(pieces)} == {
        whole.text
    }
    assert "".join(chunk["text"] for chunk in told) == whole.text
    assert whole.usage.output_tokens == streamed.usage.output_tokens > 0
    assert executed.usage.total_tokens == whole.total_usage.total_tokens
    assert executed.error is None


@every_dialect
def test_a_conversation_goes_on(local, dialect):
    """With the messages of the result, in whichever dialect comes next."""

    async def work(client):
        first = await generate(MODEL, "My name is Ada.", system="Be brief.", client=client, **SHORT)
        history = [*first.messages, Message.user("Who am I?")]
        return first, await generate(MODEL, messages=history, client=client, **SHORT)

    first, second = ask_local(local, dialect, work)

    assert second.text
    assert second.usage.input_tokens > first.usage.input_tokens
    assert [message.role for message in second.messages][:4] == [
        "system",
        "user",
        "assistant",
        "user",
    ]


@every_dialect
def test_given_up_in_the_middle(local, dialect):
    """By signal, by leaving, by the clock: the next question is answered at once."""

    async def abort(client):
        controller = AbortController()
        events = stream(MODEL, STORY, client=client, abort_signal=controller.signal, **LONG)
        try:
            async for event in events:
                if event.type == "text_delta":
                    controller.abort("enough")
        except AbortError as error:
            return error, event

    async def work(client):
        failure, last = await abort(client)
        async with stream(MODEL, STORY, client=client, **LONG) as events:
            async for event in events:
                if event.type == "text_delta":
                    break
        with pytest.raises(RequestTimeoutError):
            async for _ in stream(MODEL, STORY, client=client, timeout=0.2, **LONG):
                pass
        execution = execute(
            MODEL, STORY, client=client, on_chunk=lambda _: execution.cancel(), **LONG
        )
        cancelled = await execution
        return failure, last, cancelled, await generate(MODEL, PROMPT, client=client, **SHORT)

    failure, last, cancelled, after = ask_local(local, dialect, work)

    assert failure.message == "enough"
    assert last.finish_reason.reason == "cancelled"
    assert failure.partial.text
    assert failure.total_usage.input_tokens > 0
    assert (cancelled.error.code, bool(cancelled.text)) == ("cancelled", True)
    assert after.text


def test_objects_blocking(local):
    """Chat is the dialect in which this server holds a model to a schema."""
    with sync.Client({"local": LocalAdapter(server=local)}) as client:
        options = {"schema": Name, "client": client, "max_tokens": 100, "temperature": 0.0}
        whole = sync.generate_object(MODEL, "Invent a person.", **options)
        growing = sync.stream_object(MODEL, "Invent a person.", **options)
        partials = list(growing)

    assert isinstance(whole.output, Name)
    assert growing.object() == whole.output
    assert len(partials) > 3


@pytest.mark.parametrize("dialect", ["openai_responses", "anthropic_messages"])
def test_objects_where_the_server_does_not_hold_to_a_schema(local, dialect):
    """They are checked all the same: either one comes, or an error that has the text."""

    async def work(client):
        options = {"schema": {"type": "string"}, "client": client, **SHORT}
        found = []
        for way in (generate_object, read_object):
            try:
                found.append(await way(MODEL, "Say hello.", **options))
            except NoObjectGeneratedError as error:
                found.append(error)
        return found

    for outcome in ask_local(local, dialect, work):
        if isinstance(outcome, NoObjectGeneratedError):
            assert outcome.problems
            assert outcome.text == outcome.partial.text
            assert outcome.total_usage.output_tokens > 0
        else:
            assert isinstance(outcome.output, str)


async def read_object(model, prompt, **options):
    growing = stream_object(model, prompt, **options)
    async for _ in growing:
        pass
    return growing.result()
