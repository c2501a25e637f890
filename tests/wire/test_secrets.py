"""Keys out of recordings."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.errors import ServerError
from interlingua.wire.secrets import (
    REDACTED,
    Redactor,
    find_secrets,
    is_secret_header,
    redact,
    redact_headers,
    redact_url,
    target_of,
)
from support.patterns import LINEAR, growth

KEY = "very-own-key-42/+="


@pytest.mark.parametrize(
    "name",
    [
        "Authorization", "authorization", "x-api-key", "X-Goog-Api-Key", "api-key", "Cookie",
        "Set-Cookie", "Proxy-Authorization", "x-amz-security-token", "x-portkey-api-key",
        "helicone-auth", "x-session-token", "ocp-apim-subscription-key",
    ],
)  # fmt: skip
def test_headers_that_hold_keys(name):
    """Those of today, and those that sound like one."""
    assert is_secret_header(name)
    assert redact_headers({name: KEY}) == {name.lower(): REDACTED}


@pytest.mark.parametrize(
    "name",
    [
        "content-type", "anthropic-version", "anthropic-beta", "x-ratelimit-remaining-tokens",
        "anthropic-ratelimit-tokens-reset", "x-request-id", "retry-after", "idempotency-key",
    ],
)  # fmt: skip
def test_headers_that_do_not(name):
    """What a replay needs stays."""
    assert redact_headers({name: "1"}) == {name: "1"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://u:p@a.b/c?key=K&alt=sse", f"https://a.b/c?key={REDACTED}&alt=sse"),
        ("https://a.b/c?alt=sse&API_KEY=K#f", f"https://a.b/c?alt=sse&API_KEY={REDACTED}"),
        ("https://a.b/c", "https://a.b/c"),
        ("https://a.b/c?x", "https://a.b/c?x"),
    ],
)
def test_urls(url, shown):
    """User, password and key go; the rest stays as it was."""
    assert redact_url(url) == shown


def test_targets_are_compared_without_host_and_key():
    """Order of parameters, host and key do not count; the rest does."""
    assert target_of("https://a/p?b=2&a=1&key=x") == target_of("http://b:1/p?a=1&b=2&key=y")
    assert target_of("https://a/p?a=1") != target_of("https://a/p?a=2")
    assert target_of("https://a/p?key=x") == "/p"


@given(
    before=st.binary(max_size=50),
    after=st.binary(max_size=50),
    cuts=st.lists(st.integers(min_value=0, max_value=120), max_size=5),
)
def test_no_cut_hides_a_key(before, after, cuts):
    """A key cut in two by chunks is found; lengths and cuts stay."""
    redactor = Redactor([KEY])
    whole = before + KEY.encode() + after
    edges = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    chunks = [whole[a:b] for a, b in pairwise(edges)]

    redacted = redactor.redact_chunks(chunks)

    assert [len(chunk) for chunk in redacted] == [len(chunk) for chunk in chunks]
    assert KEY.encode() not in b"".join(redacted)


def test_it_learns_from_requests():
    """The keys a request carries are then known wherever they stand."""
    redactor = Redactor()
    redactor.learn(
        HttpRequest(
            url="https://u:url-password@a.b/c?key=query-key-1",
            headers={"Authorization": "Bearer header-key-1", "x-api-key": KEY},
        )
    )

    said = f"url-password query-key-1 header-key-1 {KEY} very-own-key-42%2F%2B%3D harmless"
    assert redactor.redact_text(said).replace("*", "").split() == ["harmless"]


def test_a_key_that_is_not_unicode():
    """It is redacted like any other; it has no form in a URL."""
    key = "not-a-key-\ud800-of-anyone"
    redactor = Redactor()
    redactor.learn_headers({"x-api-key": key})
    failure = ServerError(f"wrong key {key}")
    redactor.redact_error(failure)

    assert redactor.redact_text(f"{key} harmless").replace("*", "").split() == ["harmless"]
    assert key not in failure.message


def test_what_looks_like_a_key():
    """An unknown key of a known form is found; words are not."""
    unknown = "sk-unknown-0123456789"
    said = f"{unknown} and a bearer instrument and short"

    assert Redactor(["short"]).redact_text(said) == said.replace(unknown, "*" * len(unknown))


@given(st.text(), st.lists(st.text(min_size=6)))
def test_a_redacted_message_has_no_secret(text, secrets):
    """Known keys of any length are replaced, also where one contains another."""
    message = Redactor(secrets).redact_message(text.join([*secrets, ""]))

    assert not any(secret in message.replace(REDACTED, "\0") for secret in secrets)


def test_a_redacted_message_has_no_unknown_key():
    """In a message, an unknown bearer token is redacted as well."""
    message = Redactor().redact_message("sent Bearer abcdefgh1234 and sk-unknown-0123456789")

    assert message == f"sent {REDACTED} and {REDACTED}"


def test_secrets_are_covered():
    """In whatever case they are written."""
    shown = redact_headers(
        {"Authorization": "Bearer k", "x-api-key": "k", "X-Goog-Api-Key": "k", "a": "b"}
    )

    assert "k" not in [*shown.values()]
    assert shown["a"] == "b"


JWT = f"eyJ{'a' * 20}.{'b' * 20}.{'c' * 20}"


@pytest.mark.parametrize(
    "text",
    [
        JWT, f"token-{JWT}", f"\\n{JWT}", f"eyJ-eyJ-{JWT}", f"eyJ.{JWT}",
        f"eyJ{'a' * 40}-sk-abcdefghijklmnop", f"{'-eyJ' * 50}-AIza{'a' * 35}",
    ],
)  # fmt: skip
def test_tokens_are_found(text):
    """Three parts with dots between them, and any key behind something that begins like one."""
    redacted = redact(text)

    assert REDACTED in redacted
    assert not any(secret in redacted for secret in (JWT[10:], "abcdefghijklmnop", "AIza"))
    assert len(Redactor().redact(text.encode())) == len(text)
    assert b"*" * 19 in Redactor().redact(text.encode())


@pytest.mark.parametrize("text", [f"eyJ{'a' * 100}", f"eyJ{'a' * 100}.", "eyJ" * 30, "eyJab.c"])
def test_other_base64_is_not_redacted(text):
    """JSON in base64 begins like a token; without a dot inside it is none."""
    assert redact(text) == text


@pytest.mark.parametrize(
    "unit",
    [
        "-eyJ",
        "eyJ",
        "-eyJ.",
        "sk-",
        "sk-0123456789ab ",
        "bearer ",
        "bearer  a",
        "ya29.",
        "-AIza",
        "=&",
    ],
)
@pytest.mark.parametrize(
    "use",
    [redact, Redactor().redact_text, Redactor().redact_message, redact_url, target_of],
    ids=["redact", "text", "message", "url", "target"],
)
def test_redaction_is_linear(unit, use):
    """A text of twice the size takes twice the time."""
    assert growth(use, lambda size: unit * (size // len(unit))) < LINEAR


def test_many_different_keys_are_redacted_in_linear_time():
    """The time does not grow with the number of keys times the size."""

    def make(size):
        return "".join(f"sk-{number:016} " for number in range(size // 20))

    assert growth(Redactor().redact_text, make) < LINEAR


PEM = "-----BEGIN {0}PRIVATE KEY-----\n{1}\n-----END {0}PRIVATE KEY-----"
LINES = "\n".join(["MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg"] * 3) + "\nab=="


ESCAPED = PEM.format("EC ", LINES).replace("\n", "\\n")
OPEN = f"-----BEGIN RSA PRIVATE KEY-----\n{LINES[:48]} "
MONGO = "mongodb+srv://ada:p%40ss@cluster0.example.net/x?y=1"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"a {PEM.format('', LINES)} b", PEM.format("", LINES)),
        (f"a {PEM.format('OPENSSH ', LINES)} b", PEM.format("OPENSSH ", LINES)),
        (f'"{ESCAPED}"', ESCAPED),
        (f"{OPEN}and so on", OPEN),
        ("export DB_PASSWORD='correct-horse'", "correct-horse"),
        ('{"client_secret": "a1b2c3d4"}', "a1b2c3d4"),
        ("Authorization: Basic YWRhOmh1bnRlcjI=", "Basic YWRhOmh1bnRlcjI="),
        (f"<{MONGO}>", MONGO),
        ("redis://:hunter2@localhost:6379/0", "redis://:hunter2@localhost:6379/0"),
    ],
)
def test_common_secrets_are_found(text, secret):
    """To their ends, and no further."""
    assert [text[start:end] for start, end in find_secrets(text)] == [secret]


@pytest.mark.parametrize(
    "text",
    [
        "Basic understanding of basic instruments",
        "Basic YWRh",
        "Passwords are long. The password is secret.",
        "password: no",
        "https://example.com:8080/a@b",
        "https://ada@example.com",
        "See https://example.com/a:b",
        "-----BEGIN PUBLIC KEY-----",
        "AKIA and ASIA",
        "ghp_short",
    ],
)
def test_other_text_is_no_secret(text):
    """Words that stand near secrets."""
    assert find_secrets(text) == []


def test_a_private_key_without_an_end_takes_no_other_text():
    """Only its lines of base64 are removed."""
    text = f"-----BEGIN PRIVATE KEY-----\n{LINES[:48]}\nThese are words of a person."
    ((start, end),) = find_secrets(text)
    assert text[end:] == "These are words of a person."
    assert start == 0


def test_the_end_of_a_private_key_is_not_looked_for_without_a_limit():
    """What stands far behind is not removed with it."""
    text = "-----BEGIN PRIVATE KEY-----" + " word" * 10_000 + "-----END PRIVATE KEY-----"
    assert find_secrets(text) == [(0, len("-----BEGIN PRIVATE KEY----- "))]
