"""Pages of other origins: what the file allows, and nothing else."""

import pytest

from interlingua import OpenAIAdapter
from interlingua.simulator import Script, Simulator, echo, serve_in_thread
from support.gateways import gateway
from support.wire_requests import ask

CHAT = "/v1/chat/completions"
HELLO = {"model": "openai:x", "messages": [{"role": "user", "content": "Hi"}]}
PREFLIGHT = {
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type",
}
PAGE = "https://page.example"


@pytest.fixture(scope="module")
def upstream():
    with serve_in_thread(Simulator(Script(echo))) as server:
        yield {"openai": OpenAIAdapter(api_key="k", base_url=f"{server.url}/v1")}


@pytest.mark.parametrize("origins", [("*",), (PAGE,), (f"{PAGE}/", "https://b.example")])
def test_a_page_may_call(upstream, origins):
    """The preflight needs no key; the reply can be read, with its headers, also an error."""
    with gateway(upstream, cors=origins) as front:
        first = ask(front, CHAT, method="OPTIONS", key="", origin=PAGE, **PREFLIGHT)
        second = ask(front, CHAT, HELLO, origin=PAGE)
        refused = ask(front, CHAT, HELLO, key="wrong", origin=PAGE)

    assert first.status == 204
    assert first.headers["access-control-allow-methods"] == "POST"
    assert first.headers["access-control-allow-headers"] == "authorization,content-type"
    assert (second.status, refused.status) == (200, 401)
    for reply in (first, second, refused):
        assert reply.headers["access-control-allow-origin"] in ("*", PAGE)
        assert reply.headers["access-control-expose-headers"] == "*"


@pytest.mark.parametrize("origins", [(), ("https://other.example",)])
def test_other_pages_may_not(upstream, origins):
    """Nothing is allowed that the file does not name; programs without an origin go on."""
    with gateway(upstream, cors=origins) as front:
        first = ask(front, CHAT, method="OPTIONS", key="", origin=PAGE, **PREFLIGHT)
        second = ask(front, CHAT, HELLO, origin=PAGE)
        plain = ask(front, CHAT, HELLO)

    for reply in (first, second, plain):
        assert not [name for name in reply.headers if name.startswith("access-control")]
    assert plain.status == 200
