"""The blocking client, in every dialect, over real HTTP."""

import asyncio
import inspect
import threading

import pytest

import interlingua
from interlingua import sync
from interlingua.simulator import error, text
from interlingua.spec.errors import AbortError, AuthenticationError, ConfigurationError
from interlingua.spec.request import Request
from interlingua.streams.grammar import Grammar
from support.blocking import NEVER, WORDS, blocking, left, until
from support.simulated import DIALECTS, SLOW

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))


def test_the_same_methods():
    """It has every public method of the async client, with the same parameters."""
    theirs = dict(inspect.getmembers(interlingua.Client, callable))
    ours = dict(inspect.getmembers(sync.Client, callable))
    names = {name for name in theirs if not name.startswith("_")}

    assert names <= ours.keys()
    for name in {*names, "__init__"}:
        asked, given = (inspect.signature(found[name]).parameters for found in (theirs, ours))
        assert list(asked.values()) == list(given.values()), name


@every_provider
def test_whole_and_streamed(provider):
    """Both ways give the same answer; the events keep the grammar."""
    with blocking(WORDS) as (peer, client):
        whole = client.complete(peer.ask(provider))
        events = list(client.stream(peer.ask(provider)))

    grammar = Grammar()
    for event in events:
        grammar.feed(event)
    grammar.finish()
    assert events[-1].response.text == whole.text == "word " * 40


@every_provider
def test_errors(provider):
    """They are raised as the async client raises them."""
    with blocking(error(401)) as (peer, client):
        with pytest.raises(AuthenticationError):
            client.complete(peer.ask(provider))
        with pytest.raises(AuthenticationError):
            list(client.stream(peer.ask(provider)))


@every_provider
def test_a_stream_left_early(provider):
    """Closing it, or dropping it, closes the connection."""
    with blocking(SLOW) as (peer, client):
        with client.stream(peer.ask(provider)) as events:
            assert next(events).type == "stream_start"
        until(lambda: left(peer))

        for event in client.stream(peer.ask(provider)):
            if event.type == "text_delta":
                break
        until(lambda: left(peer))
        assert len(peer.app.script.received) == 2


@every_provider
def test_cancel(provider):
    """From another thread: a whole call raises, a stream says that it was cancelled."""
    ended = []

    def whole():
        try:
            client.complete(peer.ask(provider, request_id="whole"))
        except AbortError as gone:
            ended.append(gone)

    def streamed():
        ended.append(list(client.stream(peer.ask(provider, request_id="streamed"))))

    with blocking(NEVER) as (peer, client):
        for count, (work, name) in enumerate([(whole, "whole"), (streamed, "streamed")]):
            thread = threading.Thread(target=work)
            thread.start()
            until(lambda count=count: len(peer.app.script.received) > count)
            assert client.cancel(name)
            thread.join()
            until(lambda: left(peer))
            assert not client.cancel(name)

    assert isinstance(ended[0], AbortError)
    assert ended[1][-1].finish_reason.reason == "cancelled"


def test_what_needs_no_loop():
    """Explaining, estimating and subscribing are as they were."""
    seen = []
    with blocking(WORDS) as (peer, client):
        asked = peer.ask("anthropic")
        unsubscribe = client.subscribe(seen.append)
        assert client.explain(asked).dialect == "anthropic_messages"
        assert client.estimate_input_tokens(asked) > 0
        client.complete(asked)
        unsubscribe()
        client.complete(asked)
        assert repr(client) == f"sync.{peer.client!r}"

    assert [event.type for event in seen] == ["call_started", "call_completed"]


def test_models_and_counts():
    """Asked live, waited for."""
    with blocking(WORDS) as (peer, client):
        assert client.list_models("anthropic")
        assert client.count_tokens(peer.ask("anthropic")) > 0


def test_from_env_and_file(tmp_path):
    """Built as the async client is."""
    file = tmp_path / "models.yaml"
    file.write_text(
        "adapters:\n  house:\n    type: openai_compatible\n    base_url: http://127.0.0.1:9/v1\n"
        "    api_key: planted\ndefault_provider: house\n"
    )

    with sync.Client.from_env({"ANTHROPIC_API_KEY": "planted"}) as client:
        assert client.explain(Request(model="m", messages="x")).provider == "anthropic"
    with sync.Client.from_file(file, {}) as client:
        assert client.explain(Request(model="m", messages="x")).provider == "house"
    with pytest.raises(ConfigurationError):
        sync.Client({}, default_provider="nobody")


def test_one_client_serves_threads_loops_and_blocking_calls():
    """Threads, loops one after another and blocking calls share it; connections are kept.

    Field bug 83.
    """
    with blocking(text("hello")) as (peer, client):

        async def main():
            assert (await peer.client.complete(peer.ask("openai"))).text == "hello"
            assert client.complete(peer.ask("openai")).text == "hello"

        def work():
            for _ in range(5):
                assert client.complete(peer.ask("openai")).text == "hello"
            asyncio.run(main())

        for _ in range(3):
            asyncio.run(main())
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.close()
        until(lambda: peer.server.open_connections == 0)

        assert len(peer.app.script.received) == 3 * 2 + 4 * 7
        # one for each asyncio.run, and at most as many as called at once from threads
        assert peer.server.accepted <= 7 + 4
