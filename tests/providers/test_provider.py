"""Addresses and signatures."""

import pytest

from interlingua.providers.provider import Provider, add_scheme, check_base_url, join_url, sign
from interlingua.spec.errors import ConfigurationError


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("https://a.example", "/v1/messages", "https://a.example/v1/messages"),
        ("https://a.example/v1", "/v1/messages", "https://a.example/v1/messages"),
        ("https://a.example/v1", "/v1/responses", "https://a.example/v1/responses"),
        ("https://a.example/proxy", "/v1/responses", "https://a.example/proxy/v1/responses"),
        ("https://a.example/v1", "/chat/completions", "https://a.example/v1/chat/completions"),
        ("https://a.example/api/paas/v4", "/chat/completions", None),
        ("https://a.example/v1alpha", "/v1beta/models/m:x", "https://a.example/v1alpha/models/m:x"),
        ("https://a.example/voice", "/v1/models", "https://a.example/voice/v1/models"),
        ("https://a.example/compatibility/v1", "../../v2/embed", "https://a.example/v2/embed"),
        ("https://a.example/x/compatibility/v1", "../../v2/embed", "https://a.example/x/v2/embed"),
        ("https://a.example/v1", "../../v2/embed", "https://a.example/v2/embed"),
        ("http://127.0.0.1:80", "../../v2/embed", "http://127.0.0.1:80/v2/embed"),
    ],
)
def test_a_version_is_named_once(base, path, url):
    """Base URLs come with and without it; the base's own counts, unless the path leaves it."""
    assert join_url(base, path) == (url or base + path)


@pytest.mark.parametrize(
    ("given", "base_path", "url"),
    [
        ("https://a.example/", "", "https://a.example"),
        (" http://localhost:11434 ", "/v1", "http://localhost:11434/v1"),
        ("http://localhost:11434/", "/v1", "http://localhost:11434/v1"),
        ("https://r.openai.azure.com/openai/v1/", "/x", "https://r.openai.azure.com/openai/v1"),
    ],
)
def test_base_urls_are_trimmed(given, base_path, url):
    """A bare host gets the path its server is known for."""
    assert check_base_url(given, base_path) == url


@pytest.mark.parametrize(
    "given",
    ["", "api.example.com", "ftp://a", "https://", "https://a/?k=v", "https://user:pw@a/", "a b"],
)
def test_what_is_no_address_is_refused(given):
    """And what it held is not repeated: it may be a secret."""
    with pytest.raises(ConfigurationError, match="must look like https") as caught:
        check_base_url(given)

    assert "pw" not in caught.value.message


OLLAMA = Provider(name="o", dialect="openai_chat", is_local=True, default_port=11434)
REMOTE = Provider(name="r", dialect="openai_chat")


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("127.0.0.1:8080", "http://127.0.0.1:8080"),
        (":8080", "http://127.0.0.1:8080"),
        (":", "http://127.0.0.1:11434"),
        (" gpu.example ", "http://gpu.example:11434"),
        ('"gpu.example:1"', "http://gpu.example:1"),
        ("gpu.example/ollama", "http://gpu.example:11434/ollama"),
        ("[::1]", "http://[::1]:11434"),
        ("[::1]:9", "http://[::1]:9"),
        ("::1", "http://[::1]:11434"),
        ("http://gpu.example", "http://gpu.example"),
        ("https://gpu.example", "https://gpu.example"),
        ("", ""),
    ],
)
def test_hosts_of_local_servers(given, address):
    """As ollama reads them: host, port, either or both; a scheme is left as it is."""
    assert add_scheme(given, OLLAMA) == address


@pytest.mark.parametrize("given", ["localhost", "127.0.0.1:80", "[::1]:80", "a.localhost/v1"])
def test_a_key_may_be_sent_in_the_clear_within_this_machine(given):
    """To any row."""
    assert add_scheme(given, REMOTE) == f"http://{given}"


@pytest.mark.parametrize(
    "given",
    ["api.example.com", "127.0.0.1.example.com", "127.evil.example:80", "localhost.example"],
)
def test_a_key_is_not_sent_in_the_clear_by_a_scheme_that_nobody_named(given):
    """An address elsewhere needs its scheme."""
    assert add_scheme(given, REMOTE) == given
    with pytest.raises(ConfigurationError, match="must look like https"):
        check_base_url(add_scheme(given, REMOTE))


def test_keys_are_shown_as_the_row_says():
    """In the header the provider looks at, and only there."""
    assert sign("bearer", "k") == {"authorization": "Bearer k"}
    assert sign("x-api-key", "k") == {"x-api-key": "k"}
    assert sign("api-key", None) == {}
    assert sign("bearer", "") == {}


def test_a_row_speaks_a_known_dialect():
    """A typing error is told at once."""
    with pytest.raises(ConfigurationError, match="no dialect 'openai_chatt'"):
        Provider(name="x", dialect="openai_chatt")
