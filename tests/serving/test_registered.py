"""A dialect of another package is served, and has operations, like one of ours."""

import asyncio

import pytest

from interlingua import Client, HttpAdapter, Request, dialects
from interlingua.providers.provider import Provider
from interlingua.serving.application import find_route, read_key
from interlingua.simulator import Simulator, error, serve_in_thread, text, tool_call
from interlingua.spec.errors import AuthenticationError, ServerError, UnsupportedError
from support import postcard


@pytest.fixture
def row(monkeypatch):
    """A provider of the dialect, which has a server side and operations."""
    monkeypatch.setattr(dialects, "_registered", {})
    postcard.register()
    return Provider(
        name="post", dialect="postcard", base_url="https://post.example", key_required=False
    )


def client_of(row, url, key="a-stamp"):
    adapter = HttpAdapter(row, base_url=url, default_headers={"stamp": key} if key else {})
    return Client({"post": adapter}, default_provider="post")


def test_it_is_simulated(row):
    """Answers whole and streamed, calls, errors, keys, lists."""
    request = Request(model="oslo", messages="Hi.")
    turn = text("Greetings.") + tool_call("look", at="sea")
    app = Simulator(turn, turn, error(500, "the post is closed"), key="a-stamp", models=["oslo"])

    async def work(url):
        async with client_of(row, url) as client:
            whole = await client.complete(request)
            *_, last = [event async for event in client.stream(request)]
            models = await client.list_models("post")
            with pytest.raises(ServerError):
                await client.complete(request)
            with pytest.raises(UnsupportedError, match="post has no operation 'count_tokens'"):
                await client.count_tokens(request)
        async with client_of(row, url, "another") as client:
            with pytest.raises(AuthenticationError):
                await client.complete(request)
        return whole, last.response, models

    with serve_in_thread(app) as server:
        whole, streamed, models = asyncio.run(work(server.url))

    assert whole.text == streamed.text == "Greetings."
    assert whole.tool_calls[0].arguments == streamed.tool_calls[0].arguments == {"at": "sea"}
    assert [model.id for model in models] == ["oslo"]
    assert [exchange.dialect for exchange in app.script.received] == ["postcard"] * 5
    assert [exchange.call.stream for exchange in app.script.received[:2]] == [False, True]


@pytest.mark.usefixtures("row")
def test_its_routes_are_among_ours():
    """They are found; nobody else's are taken."""
    assert find_route("POST", "/v1/postcard", {})[:3] == ("answer", "postcard", None)
    assert find_route("GET", "/post/unknown", {}).dialect == "postcard"
    assert find_route("POST", "/v1/messages", {}).dialect == "anthropic_messages"
    assert read_key({"stamp": "k"}, "") == "k"
