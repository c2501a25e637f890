"""The key, address, headers and provider of a session are for the provider of its model."""

import asyncio
import json

import pytest

from interlingua.api.session.session import Session
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.spec.errors import ConfigurationError, DecodeError
from support.runs import named
from support.simulated import KEY, run
from support.warning_codes import codes

OWN = "sk-key-of-the-session"
OPENAI, ANTHROPIC = named("openai"), named("anthropic")
MARK = "x-mark"


@pytest.fixture
def two():
    """The client has no good key of OpenAI: the session must bring it."""
    two = Peer()
    two.openai, two.anthropic = Simulator(text("O"), key=OWN), Simulator(text("A"), key=KEY)
    with serve_in_thread(two.openai) as first, serve_in_thread(two.anthropic) as second:
        two.url = first.url
        two.client = Client(
            {
                "openai": HttpAdapter("openai", KEY, base_url=first.url),
                "anthropic": HttpAdapter("anthropic", KEY, base_url=second.url),
            }
        )
        yield two


class Peer:
    """Two providers and a client."""

    run = staticmethod(asyncio.run)

    def answers(self, work):
        """The texts of all answers of a session that the work returns."""
        session = run(self, work)
        return [message.text for message in session.messages if message.role == "assistant"]


def marked(app):
    return [MARK in exchange.call.headers for exchange in app.script.received]


def models(app):
    return [exchange.request.model for exchange in app.script.received]


@pytest.mark.parametrize("way", ["swap", "attribute", "turn", "fork"])
def test_a_key_is_not_sent_to_another_provider(two, way):
    """Nor are the headers. Back at the first provider they are used again."""

    async def work(client):
        session = Session(OPENAI, client=client, api_key=OWN, headers={MARK: "1"})
        await session.send("?")
        if way == "attribute":
            session.model = ANTHROPIC
        elif way != "turn":
            session.swap(ANTHROPIC)
        session = session.fork() if way == "fork" else session
        await session.send("?", **({"model": ANTHROPIC} if way == "turn" else {}))
        session.swap("openai:gpt-5-mini")
        await session.send("?")
        return session

    assert two.answers(work) == ["O", "A", "O"]
    assert marked(two.openai) == [True, True]
    assert marked(two.anthropic) == [False]


def test_a_key_of_a_turn_is_for_that_turn(two):
    """It goes to the provider of the turn, whatever the session was made with."""

    async def work(client):
        session = Session(ANTHROPIC, client=client, headers={MARK: "1"})
        await session.send("?")
        await session.send("?", model=OPENAI, api_key=OWN)
        await session.send("?", provider="openai", model="gpt-5.2", api_key=OWN)
        return session

    assert two.answers(work) == ["A", "O", "O"]
    assert marked(two.anthropic) == [True]
    assert marked(two.openai) == [False, False]


def test_a_provider_that_is_not_configured(two):
    """The key of the session makes it usable, for all of its models and for no other's."""

    async def work(client):
        await client.unregister("openai")
        session = Session(OPENAI, client=client, api_key=OWN, base_url=two.url)
        await session.send("?")
        session.swap("openai:gpt-5-mini")
        await session.send("?")
        session.swap("gemini:gemini-2.5-flash")
        with pytest.raises(ConfigurationError, match="'gemini' is not configured"):
            await session.send("?")
        return session

    assert two.answers(work) == ["O", "O"]
    assert models(two.openai) == ["gpt-5.2", "gpt-5-mini"]


def test_a_model_that_names_its_provider(two, tmp_path):
    """It goes there, although the session has a `provider=`, also after it was loaded."""
    path = tmp_path / "s.json"

    async def work(client):
        session = Session("claude-haiku-4-5", client=client, provider="anthropic")
        await session.send("?")
        session.swap("claude-sonnet-4-5")
        session.save(path)
        session = Session.load(path, client=client)
        await session.send("?")
        session.swap(OPENAI)
        await session.send("?", api_key=OWN)
        session.save(path)
        session = Session.load(path, client=client, api_key=OWN)
        await session.send("?")
        return session

    assert two.answers(work) == ["A", "A", "O", "O"]
    assert models(two.anthropic) == ["claude-haiku-4-5", "claude-sonnet-4-5"]
    assert models(two.openai) == ["gpt-5.2", "gpt-5.2"]


@pytest.mark.parametrize("name", ["base_url", "api_key", "headers", "client", "model", "tools"])
def test_a_file_cannot_say_where_a_key_goes(two, tmp_path, name):
    """A session of a stranger's that names an address is refused, and nothing is sent."""
    path = tmp_path / "s.json"
    Session(OPENAI).save(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    document["options"] = {name: two.url}
    path.write_text(json.dumps(document), encoding="utf-8")

    with pytest.raises(DecodeError, match=rf"s\.json.*no option '{name}'"):
        Session.load(path, client=two.client)


def test_an_address_that_is_not_given_again(two, tmp_path):
    """The conversation is not sent to another address than before, unless the caller says so."""
    path = tmp_path / "s.json"

    async def work(client):
        Session(OPENAI, client=client, api_key=OWN, base_url=two.url).save(path)
        session = Session.load(path, client=client, api_key=OWN)
        with pytest.raises(ConfigurationError, match="base_url"):
            await session.send("?")
        await session.send("?", base_url=two.url)
        session = Session.load(path, client=client, api_key=OWN, base_url=None)
        result = await session.send("?")
        assert "options_not_restored" not in codes(result)
        return session

    assert two.answers(work) == ["O"]
    assert len(two.openai.script.received) == 2
