"""The gateway's own limits, and several adapters as one."""

import asyncio
import concurrent.futures
import signal
import sys

import pytest

from interlingua.gateway.config import gateway_from_file
from interlingua.gateway.keys import hash_key
from interlingua.gateway.stores import Stores
from interlingua.simulator import (
    Script,
    Simulator,
    echo,
    latency,
    serve_in_thread,
    text,
)
from interlingua.spec.errors import ConfigurationError
from support.gateways import Program, file_text, gateway_of_file
from support.postgres_server import new_database
from support.wire_requests import ask

TURN = [{"role": "user", "content": "Hi"}]
PATHS = {
    "chat": ("/v1/chat/completions", {"model": "m", "messages": TURN}),
    "responses": ("/v1/responses", {"model": "m", "input": "Hi"}),
    "messages": ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": TURN}),
    "gemini": (
        "/v1beta/models/m:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
    ),
}
LIMITED = {
    "chat": ("x-ratelimit-limit-requests", "x-ratelimit-remaining-requests"),
    "responses": ("x-ratelimit-limit-requests", "x-ratelimit-remaining-requests"),
    "messages": ("anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining"),
}


@pytest.fixture(scope="module")
def upstream():
    with serve_in_thread(Simulator(Script(echo))) as server:
        yield server.url


def limited(upstream, limits, route="openai:gpt-5.2", more=""):
    """A file whose key has limits; there is a second key without."""
    base = file_text(upstream, more, routes=f"default: {route}")
    keys = f'{{hash: "{hash_key(Program.key)}", limits: {limits}}}'
    other = f'{{hash: "{hash_key("il_other")}"}}'
    return base.replace(
        f'keys: {{tests: {{hash: "{hash_key(Program.key)}"}}}}',
        f"keys: {{tests: {keys}, other: {other}}}",
    )


def send(front, name, *, stream=False, key=None):
    """A request in one of the dialects."""
    path, body = PATHS[name]
    if stream and name == "gemini":
        path = path.replace(":generate", ":streamGenerate") + "?alt=sse"
    elif stream:
        body = {**body, "stream": True}
    return ask(front, path, body, key=key)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", PATHS)
def test_requests_above_the_limit_of_a_key_are_refused(upstream, tmp_path, name, stream):
    """With the dialect's 429 and when to come back; the headers tell what is left."""
    with gateway_of_file(tmp_path, limited(upstream, "{requests_per_minute: 2}")) as front:
        replies = [send(front, name, stream=stream) for _ in range(3)]
        other = send(front, name, stream=stream, key="il_other")

    assert [reply.status for reply in replies] == [200, 200, 429]
    assert other.status == 200
    assert "key tests" in replies[2].text
    assert "2 requests per minute" in replies[2].text
    assert float(replies[2].headers["retry-after"]) > 0
    assert "x-should-retry" not in replies[2].headers
    if name in LIMITED:
        limit, left = LIMITED[name]
        assert [reply.headers[limit] for reply in replies] == ["2", "2", "2"]
        assert [reply.headers[left] for reply in replies] == ["1", "0", "0"]
        assert limit not in other.headers


def test_tokens_are_told_too(upstream, tmp_path):
    """The estimate counts at first, what the provider reports later."""
    limits = "{input_tokens_per_minute: 100000}"
    with gateway_of_file(tmp_path, limited(upstream, limits)) as front:
        reply = send(front, "chat")

    assert reply.headers["x-ratelimit-limit-tokens"] == "100000"
    assert 0 < int(reply.headers["x-ratelimit-remaining-tokens"]) < 100000
    assert reply.headers["x-ratelimit-reset-tokens"].endswith("s")


def test_the_limit_of_a_route_is_for_all_keys(upstream, tmp_path):
    """Other routes are not limited."""
    route = "{model: openai:x, limits: {requests_per_minute: 1}}"
    given = file_text(upstream, routes=f"m: {route}, free: openai:x")
    with gateway_of_file(tmp_path, given) as front:
        first, second = send(front, "chat"), send(front, "chat")
        free = ask(front, "/v1/chat/completions", {"model": "free", "messages": TURN})

    assert (first.status, second.status, free.status) == (200, 429, 200)
    assert first.headers["x-ratelimit-remaining-requests"] == "0"
    assert "route m" in second.text


def test_cached_answers_count_too(upstream, tmp_path):
    """The limit is of requests to the gateway."""
    route = "{model: openai:x, cache: 60}"
    given = limited(upstream, "{requests_per_minute: 1}", route)
    with gateway_of_file(tmp_path, given) as front:
        assert [send(front, "chat").status for _ in range(2)] == [200, 429]


def test_requests_at_once_are_limited(tmp_path):
    """Another one is admitted when the first has ended."""
    slow = Simulator(Script(lambda _: text("Hi") + latency(first=0.5)))
    with (
        serve_in_thread(slow) as server,
        gateway_of_file(tmp_path, limited(server.url, "{concurrency: 1}")) as front,
        concurrent.futures.ThreadPoolExecutor(4) as pool,
    ):
        replies = [*pool.map(lambda _: send(front, "chat"), range(4))]
        statuses = sorted(reply.status for reply in replies)

        assert statuses.count(200) >= 1
        assert send(front, "chat").status == 200
    assert set(statuses) <= {200, 429}


def test_a_spent_budget_refuses(upstream, tmp_path):
    """Before anything is sent; what was spent is kept in a file."""
    given = limited(upstream, "{usd: 0.0000001, period: day}")
    with gateway_of_file(tmp_path, given) as front:
        reply = send(front, "chat")

    assert reply.status in {402, 429}
    assert (tmp_path / "limits.db").exists()


def test_limits_outlive_a_reload(upstream, tmp_path):
    """Nobody gets new requests by changing the file."""
    given = limited(upstream, "{requests_per_minute: 1}")
    with gateway_of_file(tmp_path, given) as front:
        first = send(front, "chat").status
        before = front.app.gateway
        path = tmp_path / "interlingua.yaml"
        read = gateway_from_file(path, {}, stores=front.app.stores)
        second = asyncio.run(read.limits.report(read.keys[0].caller, read.client))

    assert first == 200
    assert second.requests_remaining == 0
    assert read is not before


@pytest.mark.skipif(sys.platform != "linux", reason="several workers")
def test_workers_share_the_limits(upstream, tmp_path):
    """In a file beside the registry file."""
    given = limited(upstream, "{requests_per_minute: 5}")
    with Program(tmp_path, given, "--workers", "2") as front:
        statuses = [send(front, "chat").status for _ in range(12)]
        front.send(signal.SIGTERM)
        front.wait()

    assert statuses == [200] * 5 + [429] * 7
    assert (tmp_path / "limits.db").exists()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ("{requests: 5}", r"Unknown key 'requests' in key tests.limits"),
        ("{requests_per_minute: 0}", r"requests_per_minute"),
        ("{period: day}", r"`period` is that of `usd`"),
        ("{usd: -1}", r"key tests.limits: "),
    ],
)
def test_wrong_limits_are_told(upstream, tmp_path, limits, message):
    """With their line."""
    path = tmp_path / "interlingua.yaml"
    path.write_text(limited(upstream, limits), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=rf"interlingua.yaml:5: .*{message}"):
        gateway_from_file(path, {})


def test_workers_do_not_share_memory(upstream, tmp_path):
    """It is refused, not ignored."""
    path = tmp_path / "interlingua.yaml"
    path.write_text(
        limited(upstream, "{requests_per_minute: 5}", more="  store: memory\n"), encoding="utf-8"
    )
    with pytest.raises(ConfigurationError, match="cannot share a store in memory"):
        gateway_from_file(path, {}, stores=Stores(tmp_path, is_shared=True))
    assert gateway_from_file(path, {}).limits is not None


BALANCED = """
adapters:
  one: {{type: openai, api_key: k, base_url: "{0}/v1"}}
  two: {{type: openai, api_key: k, base_url: "{1}/v1"}}
gateway:
  keys:
    tests: {{hash: "{2}"}}
    other: {{hash: "{3}"}}
  routes:
    m: {{model: one:gpt-5.2, balance: {4}, affinity: {5}}}
"""


@pytest.mark.parametrize(
    ("balance", "affinity", "fields", "spread"),
    [
        ("[one, two]", "session", {}, True),
        ("{one: 1, two: 0}", "session", {}, False),
        ("[one, two]", "session", {"user": "u1"}, False),
        ("[one, two]", "key", {}, False),
    ],
)
def test_adapters_are_balanced(tmp_path, balance, affinity, fields, spread):
    """By weight; requests that belong together go to one of them."""
    scripts = [Script(echo), Script(echo)]
    with (
        serve_in_thread(Simulator(scripts[0])) as one,
        serve_in_thread(Simulator(scripts[1])) as two,
    ):
        hashes = hash_key(Program.key), hash_key("il_other")
        given = BALANCED.format(one.url, two.url, *hashes, balance, affinity)
        with gateway_of_file(tmp_path, given) as front:
            body = {"model": "m", "messages": TURN, **fields}
            replies = [ask(front, "/v1/chat/completions", body) for _ in range(24)]

    assert {reply.status for reply in replies} == {200}
    assert replies[0].headers["x-interlingua-provider"] == "one+two"
    assert replies[0].headers["x-interlingua-model"] == "gpt-5.2"
    assert all(script.received for script in scripts) is spread


@pytest.mark.parametrize("balance", ["[one, three]", "{one: 0}", "[]"])
def test_a_wrong_balance_is_told(tmp_path, balance):
    """With its line."""
    path = tmp_path / "interlingua.yaml"
    hashes = hash_key("a"), hash_key("b")
    path.write_text(BALANCED.format("http://a", "http://b", *hashes, balance, "key"), "utf-8")
    with pytest.raises(ConfigurationError, match=r"interlingua.yaml:10: .*gateway.routes.m"):
        gateway_from_file(path, {})


def test_limits_and_responses_in_postgresql(upstream, tmp_path):
    """Two gateways with one database share what is spent, and what is kept."""
    url = new_database()
    more = f"  store: {url}\n  responses: {{keep: 1h, store: '{url}'}}\n"
    content = limited(upstream, "{requests_per_minute: 2}", more=more)
    with gateway_of_file(tmp_path, content) as first:
        made = ask(first, *PATHS["responses"])
        with gateway_of_file(tmp_path, content) as second:
            kept = ask(second, f"/v1/responses/{made.json['id']}", None, method="GET")
            again = ask(second, *PATHS["chat"])
            refused = ask(second, *PATHS["chat"])
            last = ask(first, *PATHS["chat"])

    assert kept.json == made.json
    assert [made.status, again.status, refused.status, last.status] == [200, 200, 429, 429]
