"""What a provider is told of a client: flags and the conversation, and nothing of its identity."""

import asyncio

import pytest

from interlingua.client.client import Client
from interlingua.client.middleware.balance import Balance
from interlingua.providers.adapter import HttpAdapter
from interlingua.serving.asgi import headers_of
from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request
from support.clouds import Guard
from support.gateways import gateway
from support.simulated import MODELS, adapters
from support.wire_requests import ask

CHAT = {"messages": [{"role": "user", "content": "Hi"}]}
MESSAGES = {**CHAT, "max_tokens": 9}
SECRETS = {
    "cookie": "session=secret",
    "x-forwarded-for": "10.0.0.1",
    "forwarded": "for=10.0.0.1",
    "proxy-authorization": "Basic c2VjcmV0",
    "x-unknown": "secret",
}


class Watched:
    """A simulator that remembers the headers and paths of its requests."""

    def __init__(self):
        self.seen = []
        self.paths = []
        self._app = Simulator(lambda _: text("Hello."))

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            self.seen.append(headers_of(scope))
            self.paths.append(scope["path"])
        await self._app(scope, receive, send)


@pytest.fixture(scope="module")
def running():
    watched = Watched()
    with serve_in_thread(watched) as peer, gateway(adapters(peer.url)) as front:
        yield watched, front


def sent(running, path, body, upstream, **headers):
    """The headers that the provider gets."""
    watched, front = running
    reply = ask(front, path, {**body, "model": f"{upstream}:{MODELS[upstream]}"}, **headers)

    assert reply.status == 200
    return watched.seen[-1]


def test_flags_and_session_of_claude_code(running):
    """To a provider of the same dialect; flags that we do not know too."""
    headers = {"anthropic-beta": "new-2031-01-01,b", "x-claude-code-session-id": "s-1"}
    seen = sent(running, "/v1/messages", MESSAGES, "anthropic", **headers)

    assert seen["anthropic-beta"] == "new-2031-01-01,b"
    assert seen["x-claude-code-session-id"] == "s-1"


@pytest.mark.parametrize("provider", ["bedrock", "bedrock_invoke", "vertex_anthropic"])
def test_flags_that_a_cloud_refuses(provider):
    """They are left out, with a warning: one of them would fail every request of Claude Code."""
    guard = Guard(Simulator(lambda _: text("Hello.")), lambda _: True)
    flags = "claude-code-20250219,interleaved-thinking-2025-05-14,new-2031-01-01"
    with serve_in_thread(guard) as peer:
        adapter = HttpAdapter(provider, "token", base_url=peer.url)
        with gateway({provider: adapter}) as front:
            body = {**MESSAGES, "model": f"{provider}:anthropic.claude-haiku-4-5"}
            reply = ask(front, "/v1/messages", body, **{"anthropic-beta": flags})
    (seen,) = guard.received
    sent = seen.body.get("anthropic_beta") or seen.headers["anthropic-beta"].split(",")

    assert reply.status == 200
    assert "setting_dropped" in reply.headers["x-interlingua-warnings"]
    assert sent == ["interleaved-thinking-2025-05-14"]


def test_session_of_codex(running):
    """In the headers and in the field of the body."""
    body = {"input": "Hi", "prompt_cache_key": "s-2"}
    headers = {"session-id": "s-2", "thread-id": "t-1", "x-codex-turn-state": "x"}
    seen = sent(running, "/v1/responses", body, "openai", **headers)

    assert {name: seen[name] for name in headers} == headers


@pytest.mark.parametrize("upstream", ["openai", "openai_compatible", "gemini"])
def test_not_to_other_dialects(running, upstream):
    """They would not know them."""
    headers = {"anthropic-beta": "b", "x-claude-code-session-id": "s-1"}
    seen = sent(running, "/v1/messages", MESSAGES, upstream, **headers)

    assert headers.keys().isdisjoint(seen)


@pytest.mark.parametrize("upstream", ["anthropic", "openai"])
def test_nothing_of_the_identity(running, upstream):
    """No cookie, no address, no key of the client, and no header that we do not know."""
    seen = sent(running, "/v1/messages", MESSAGES, upstream, **SECRETS)

    assert SECRETS.keys().isdisjoint(seen)
    assert not any("il_" in value for value in seen.values())


@pytest.mark.parametrize("way", ["chat", "responses", "messages"])
def test_a_body_chooses_no_path_and_no_header(running, way):
    """The key of the provider is the operator's: a client may not use it elsewhere."""
    watched, _ = running
    upstream, path, body = {
        "chat": ("openai_compatible", "/v1/chat/completions", CHAT),
        "responses": ("openai", "/v1/responses", {"input": "Hi"}),
        "messages": ("anthropic", "/v1/messages", MESSAGES),
    }[way]
    body |= {
        "path": "/v1/files",
        "extra_headers": {"x-evil": "1", "authorization": "Bearer other"},
        "organization": "org-other",
        "project": "proj-other",
    }
    seen = sent(running, path, body, upstream)

    assert "/files" not in watched.paths[-1]
    assert {"x-evil", "openai-organization", "openai-project"}.isdisjoint(seen)
    assert "other" not in seen.get("authorization", "")


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/v1/messages", MESSAGES, {"x-claude-code-session-id": "{}"}),
        ("/v1/responses", {"input": "Hi"}, {"session-id": "{}"}),
        ("/v1/responses", {"input": "Hi", "prompt_cache_key": "{}"}, {}),
        ("/v1/chat/completions", CHAT, {"x-session-affinity": "{}"}),
    ],
)
def test_a_conversation_stays_at_one_place(path, body, headers):
    """Whatever dialect the provider speaks; other conversations go elsewhere."""
    places = [Watched(), Watched()]
    with serve_in_thread(places[0]) as first, serve_in_thread(places[1]) as second:
        members = [
            HttpAdapter("gemini", api_key=f"k{number}", base_url=peer.url)
            for number, peer in enumerate((first, second))
        ]
        with gateway({"gemini": Balance(*members)}) as front:
            used = set()
            for session in map(str, range(12)):
                before = [len(place.seen) for place in places]
                for _ in range(2):
                    filled = {k: v.format(session) if v == "{}" else v for k, v in body.items()}
                    named = {name: value.format(session) for name, value in headers.items()}
                    model = f"gemini:{MODELS['gemini']}"
                    assert ask(front, path, {**filled, "model": model}, **named).status == 200
                added = [len(place.seen) - n for place, n in zip(places, before, strict=True)]
                assert sorted(added) == [0, 2]
                used.add(tuple(added))

    assert len(used) == 2


def test_extra_headers_of_a_request():
    """A program sets headers of one request; that of the key stays."""
    watched = Watched()

    async def work(url, headers):
        options = {"anthropic": {"extra_headers": headers}}
        place = {"provider": "anthropic", "model": MODELS["anthropic"]}
        async with Client(adapters(url)) as client:
            await client.complete(Request(messages="Hi", provider_options=options, **place))

    with serve_in_thread(watched) as peer:
        asyncio.run(work(peer.url, {"X-Mine": "1", "x-api-key": "other"}))
        for bad in ({"x-mine": "a\r\nb"}, "x-mine: 1"):
            with pytest.raises(ConfigurationError):
                asyncio.run(work(peer.url, bad))

    assert watched.seen[0]["x-mine"] == "1"
    assert watched.seen[0]["x-api-key"] != "other"
