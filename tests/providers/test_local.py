"""A real model behind our adapters: llama.cpp, through the three dialects it serves."""

import asyncio
import json

import jsonschema_rs
import pytest
from msgspec.structs import replace

from interlingua.api.modalities.embeddings import embed, embed_many, similarity
from interlingua.api.modalities.models import count_tokens
from interlingua.client.client import Client
from interlingua.local import LocalServer, local_server, server_for
from interlingua.providers.adapter import HttpAdapter
from interlingua.spec.content import Image, Text
from interlingua.spec.errors import ConfigurationError, ContextLengthError, UnsupportedError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat, ToolChoice, ToolDefinition
from support.llama import ask_local
from support.simulated import settled

DIALECTS = ("openai_chat", "openai_responses", "anthropic_messages")
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


def ask(messages="What is the capital of Norway? Answer in one word.", **fields):
    fields = {"max_tokens": 24, "temperature": 0.0, **fields}
    return Request(model="local:smollm2", messages=messages, **fields)


@every_dialect
def test_whole_and_streamed(local, dialect):
    """It is started by the first call, and says the same in both ways."""

    async def work(client):
        whole = await client.complete(ask())
        events = [event async for event in client.stream(ask())]
        return whole, events

    whole, events = ask_local(local, dialect, work)

    streamed = events[-1].response
    assert whole.text == streamed.text != ""
    assert whole.usage.output_tokens == streamed.usage.output_tokens > 0
    assert whole.usage.input_tokens == streamed.usage.input_tokens > 10
    assert (whole.provider, streamed.provider) == ("local", "local")
    assert sum(event.type == "text_delta" for event in events) > 1


@every_dialect
def test_cancelled_in_the_middle(local, dialect):
    """The server goes on to the next question at once."""

    async def work(client):
        events = []
        request = ask("Count from 1 to 500.", max_tokens=1000, request_id="r")
        async for event in client.stream(request):
            events.append(event)
            if event.type == "text_delta" and len(events) == 6:
                assert await client.cancel("r")
        return events, await client.complete(ask())

    events, after = ask_local(local, dialect, work)

    assert events[-1].finish_reason.reason == "cancelled"
    assert events[-1].response.text
    assert after.text


@every_dialect
def test_a_conversation(local, dialect):
    """Several turns, with instructions."""
    history = (
        Message.system("You are terse."),
        Message.user("My name is Ada."),
        Message.assistant("Hello, Ada."),
        Message.user("Say hello again."),
    )

    response = ask_local(local, dialect, lambda client: client.complete(ask(history)))

    assert response.text
    assert response.finish_reason.reason in ("stop", "length")


def test_output_that_fits_a_schema(local):
    """Chat Completions is where this server holds the model to it."""
    form = ResponseFormat(type="json_schema", name="person", json_schema=PERSON, strict=True)
    request = ask("Invent a person.", response_format=form, max_tokens=60)
    response = ask_local(local, "openai_chat", lambda client: client.complete(request))

    jsonschema_rs.validate(PERSON, json.loads(response.text))


@pytest.mark.parametrize("dialect", ["openai_responses", "anthropic_messages"])
def test_a_schema_that_would_be_ignored(local, dialect):
    """In the other dialects the server does not look at it, and the answer says so."""
    form = ResponseFormat(type="json_schema", name="person", json_schema=PERSON, strict=True)
    request = ask("Invent a person.", response_format=form)
    response = ask_local(local, dialect, lambda client: client.complete(request))

    assert "structured_output_fallback" in [warning.code for warning in response.warnings]


@every_dialect
@pytest.mark.parametrize(("model", "code"), [("smollm2", "tools"), ("own", "tool_choice")])
def test_tools_that_would_be_ignored(local, dialect, model, code):
    """The shipped model's template leaves them out; no model here is held to a choice.

    By default that is an error; with `on_loss="warn"` the answer says so.
    """
    look = ToolDefinition(name="look", parameters={"type": "object", "properties": {}})
    request = ask(tools=(look,), tool_choice=ToolChoice(mode="required"))
    request = replace(request, model=f"local:{model}")
    with pytest.raises(UnsupportedError):
        ask_local(local, dialect, lambda client: client.complete(request))
    request = replace(request, on_loss="warn")
    response = ask_local(local, dialect, lambda client: client.complete(request))

    codes = {"tools": "tools_dropped", "tool_choice": "tool_choice_relaxed"}
    assert codes[code] in [warning.code for warning in response.warnings]


@every_dialect
def test_an_image_is_not_sent(local, dialect):
    """The server would answer with a fault that looks as if it might pass."""
    image = Image(data=b"\x89PNG\r\n\x1a\n" + b"0" * 30, media_type="image/png")
    message = Message.user([Text(text="What is this?"), image])
    with pytest.raises(UnsupportedError, match="image/png"):
        ask_local(local, dialect, lambda client: client.complete(ask((message,))))
    request = ask((message,), on_loss="warn")
    response = ask_local(local, dialect, lambda client: client.complete(request))

    assert response.text
    assert "image_dropped" in [warning.code for warning in response.warnings]


def test_tokens_are_counted(local):
    """By the server itself where the dialect has a way to ask; the estimate is near."""

    async def work(client):
        counted = await client.count_tokens(ask())
        return counted, (await client.complete(ask())).usage.input_tokens

    for dialect in ("openai_responses", "anthropic_messages"):
        counted, used = ask_local(local, dialect, work)
        assert counted == used
    with pytest.raises(UnsupportedError):
        ask_local(local, "openai_chat", lambda client: client.count_tokens(ask()))


@every_dialect
def test_too_long(local, dialect):
    """The window is told as what it is, whole and streamed."""

    async def work(client):
        long = ask("word " * 4000)
        with pytest.raises(ContextLengthError) as whole:
            await client.complete(long)
        with pytest.raises(ContextLengthError):
            await anext(client.stream(long))
        return whole.value

    error = ask_local(local, dialect, work)

    assert (error.provider, error.status_code, error.retryable) == ("local", 400, False)


def test_by_its_row(local):
    """The row starts its server as the named adapter does, or is told where one runs."""
    by_row = HttpAdapter("local", server=local)
    told = HttpAdapter("local", base_url=local.start())

    async def work():
        async with Client({"a": by_row, "b": told}) as client:
            return [await client.complete(replace(ask(), model=f"{name}:m")) for name in "ab"]

    one, other = asyncio.run(work())
    assert one.text == other.text != ""
    assert told.server is None
    assert HttpAdapter("local").server is local_server()
    assert HttpAdapter("local", gguf="m.gguf").server.gguf == "m.gguf"


def test_models_are_listed(local):
    """The one that is loaded."""
    (model,) = ask_local(local, "openai_chat", lambda client: client.list_models())

    assert model.provider == "local"
    assert model.id


def test_embeddings_of_the_real_model(gguf):
    """They have a server of their own, which speaks base64 and lists alike."""

    async def work():
        async with Client({"local": HttpAdapter("local", gguf=str(gguf))}) as client:
            texts = ["A red bicycle.", "A red bike.", "The stock market fell."]
            many = await embed_many("local:smollm2", texts, client=client)
            one = await embed("local:smollm2", texts[0], encoding="float", client=client)
            return many, one

    try:
        many, one = asyncio.run(work())
    finally:
        local_server(str(gguf), embeddings=True).stop()

    first, second, other = many.embeddings
    assert [len(vector) for vector in many.embeddings] == [576] * 3
    assert similarity(first, one.embedding) > 0.999
    assert similarity(first, second) > similarity(first, other)
    assert many.usage.input_tokens > 10
    assert many.cost.total == 0
    assert (first.typecode, one.embedding.typecode) == ("f", "d")


def test_a_server_without_embeddings_says_how_to_have_them(local):
    """A server that the caller made is used as it is."""
    with pytest.raises(UnsupportedError, match="embeddings=True"):
        ask_local(local, "openai_chat", lambda client: embed("local:smollm2", "a", client=client))


def test_tokens_are_counted_by_the_real_server(local):
    """In the dialect that has a count."""

    async def work(client):
        tokens = await count_tokens("local:smollm2", "What is the capital?", client=client)
        request = ask("What is the capital?")
        return tokens, (await client.complete(request)).usage.input_tokens

    tokens, used = ask_local(local, "anthropic_messages", work)

    assert tokens == used > 3


def test_a_server_that_died_is_started_again(local):
    """Somebody stopped it between two calls."""

    async def work(client):
        first = await client.complete(ask())
        local.stop()
        await settled(lambda: True)
        return first.text, (await client.complete(ask())).text

    first, second = ask_local(local, "openai_chat", work)

    assert first == second


# Which model answers.


def answer_from(client, model):
    request = Request(model=model, messages="hi", max_tokens=2)

    async def work():
        async with client:
            return await client.complete(request)

    return asyncio.run(work())


@pytest.mark.parametrize("model", ["local:llama3", "local:gpt-5.2", "local:smol", "local:no.gguf"])
def test_no_other_model_answers_for_the_named_one(model):
    """A name that is not the local model's, or a file that is not there, is an error."""
    with pytest.raises(ConfigurationError, match=r"The local model is|does not exist"):
        answer_from(Client.from_env({}), model)


@pytest.mark.parametrize("name", ["smollm2", "smollm2-135m", "SmolLM2-135M-Instruct", ""])
def test_the_local_model_answers_to_its_name(name):
    """Or to the beginning of it."""
    shared = local_server()

    assert server_for(name, shared) is shared


def test_a_file_is_loaded_by_its_path(gguf, tmp_path):
    """An existing GGUF file after `local:` has a server of its own."""
    path = tmp_path / "Other-1B.gguf"
    path.symlink_to(gguf)
    response = answer_from(Client.from_env({}), f"local:{path}")
    local_server(path).stop()

    assert response.model == "Other-1B"
    own = LocalServer(str(path))
    assert [server_for(name, own) for name in (str(path), "other-1b", "other")] == [own] * 3
