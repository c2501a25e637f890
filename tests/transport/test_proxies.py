"""Proxies from the environment."""

import asyncio

import pytest

from interlingua.spec.errors import ConfigurationError, NetworkError
from interlingua.transport.proxies import Proxies
from support.http_calls import call, read
from support.servers import Server, answering, reply

NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    ("variables", "url", "proxy"),
    [
        ({}, "https://a.example/", None),
        ({"HTTPS_PROXY": "http://p:1"}, "https://a.example/", "http://p:1"),
        ({"https_proxy": "p:1"}, "https://a.example/", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1"}, "http://a.example/", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://a.example/", "http://p:1"),
        ({"ALL_PROXY": "http://p:1"}, "https://a.example/", "http://p:1"),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "a.example"}, "https://a.example/", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": ".example"}, "https://a.example/", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "*"}, "https://a.example/", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "b.example"}, "https://a.example/", "http://p:1"),
        ({"ALL_PROXY": "http://p:1"}, "http://localhost:11434/", None),
        ({"ALL_PROXY": "http://p:1"}, "http://127.0.0.1:8080/", None),
        ({"ALL_PROXY": "http://p:1"}, "http://[::1]:8080/", None),
        ({"ALL_PROXY": "socks5://p:1"}, "http://127.0.0.1/", None),
    ],
)
def test_proxy_for_a_url(environment, variables, url, proxy):
    """The scheme chooses the proxy; NO_PROXY hosts and loopback have none."""
    for name, value in variables.items():
        environment.setenv(name, value)

    proxies = Proxies()

    assert bool(proxies) is bool(variables)
    assert proxies.find(url) == proxy
    assert proxies.find(url) == proxy


def test_unsupported_proxy(environment):
    """A SOCKS proxy is an error that names the other transport, not a direct connection."""
    environment.setenv("ALL_PROXY", "socks5://user:secret@p:1")

    with pytest.raises(ConfigurationError, match="socks5") as caught:
        Proxies().find("https://a.example/")
    assert "secret" not in str(caught.value)


def test_request_through_a_proxy(run, environment):
    """The proxy gets the full URL and its own password; the host gets its key."""
    with Server(answering(reply(b"proxied"))) as proxy:
        environment.setenv("HTTP_PROXY", f"http://user:pass@127.0.0.1:{proxy.port}")
        body = run(lambda transport: read(transport, call("http://provider.test/v1")))[2]

    assert body == b"proxied"
    (request,) = proxy.requests
    assert request.target.startswith("http://provider.test/v1?")
    assert request.headers["proxy-authorization"] == "basic dxnlcjpwyxnz"  # lowered by the server


def test_a_proxy_that_refuses_a_tunnel(run, environment):
    """A refused tunnel is a NetworkError; with a wrong password it is not retryable."""
    for status, retryable in (("407 Proxy Authentication Required", False), ("502 Bad", True)):
        with Server(answering(reply(status=status))) as proxy:
            environment.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")

            async def work(transport):
                with pytest.raises(
                    NetworkError,
                    match=r"The proxy 127\.0\.0\.1:\d+ refused a connection to provider\.test:443",
                ) as caught:
                    await read(transport, call("https://provider.test/v1"))
                return caught.value

            assert run(work).retryable is retryable
        assert proxy.requests[0].method == "CONNECT"
        assert "authorization" not in proxy.requests[0].headers


def test_trust_env_false(run, environment):
    """With trust_env=False the environment is ignored."""
    environment.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    async def work(transport):
        with pytest.raises(NetworkError, match=r"Cannot find the address of provider\.invalid"):
            await read(transport, call("http://provider.invalid/v1"))
        await asyncio.sleep(0)

    run(work, trust_env=False)
