"""Redaction: removes keys from text, URLs, headers and bodies."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.errors import SDKError
from interlingua.spec.response import RateLimitInfo

REDACTED = "[redacted]"

# The form of a key: at the start of a word, or after a `\n` of JSON text. Whether a `token` is a
# JWT is decided after the match: a pattern that looks for its dot takes time that grows with the
# square of the text. Every class is ASCII, so that bytes can be searched as Latin-1.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:"
KEY_FORMS: Mapping[str, str] = {
    "key of a provider": (
        r"(?:sk|pk|rk|gsk|xai|csk|fw|tgp|pplx|nvapi|hf|r8)[-_][A-Za-z0-9_\-]{12,}"
        r"|AIza[0-9A-Za-z_\-]{30,}|ya29\.[0-9A-Za-z_\-.]{20,}"
    ),
    # docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
    "AWS access key": r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    # github.blog/changelog/2021-03-31-authentication-token-format-updates-are-generally-available
    "GitHub token": r"gh[pousr]_[A-Za-z0-9_]{36,}|github_pat_[A-Za-z0-9_]{22,}",
    "GitLab token": r"glpat-[A-Za-z0-9_\-]{20,}",
    "Slack token": r"xox[abeoprs]-[A-Za-z0-9\-]{10,}|xapp-[A-Za-z0-9\-]{10,}",
    "npm token": r"npm_[A-Za-z0-9]{36,}",
    "PyPI token": r"pypi-[A-Za-z0-9_\-]{16,}",
    "Bearer": r"(?P<bearer>(?i:bearer\s++)[A-Za-z0-9._~+/=\-]{8,})",
}
"""The forms of keys and tokens, by kind."""
_FORMS = "|".join(KEY_FORMS.values())
_find_secrets = re.compile(rf"{_START}{_FORMS}|(?P<token>eyJ[A-Za-z0-9_\-.]{{31,}}))").finditer
_find_forms = re.compile(rf"{_START}{_FORMS})").finditer
# What follows is text of a person, not of a provider: `find_secrets` finds it, `redact` does not.
# `Basic`, and a name and a password in base64.
_find_basic = re.compile(r"(?<![A-Za-z0-9])(?i:basic) {1,2}([A-Za-z0-9+/]{8,}+={0,2}+)").finditer
# A name that ends in such a word, `=` or `:`, and what follows, also in quotes.
_find_named = re.compile(
    r"(?<![A-Za-z0-9_.\-])[A-Za-z0-9_.\-]{0,40}?"
    r"(?i:password|passwd|passphrase|pwd|secret|api[_\-]?key|(?:access|account|secret)[_\-]?key"
    r"|(?:access|auth)[_\-]?token)"
    r"[\"'\\]{0,2} ?[=:] ?[\"'\\]{0,2}(?P<value>[!#$%&*+./0-9:?@A-Z^_a-z|~\-]{4,}+=*+)"
).finditer
# A URL with a password, as of databases: `postgres://ada:secret@host/db`.
_find_urls = re.compile(
    r"(?<![A-Za-z0-9+.\-])[A-Za-z][A-Za-z0-9+.\-]{1,30}+://[!$%&*+,.0-9;=?A-Z^_a-z|~\-]*+"
    r":[!#$%&*+,.0-9:;=?A-Z^_a-z|~\-]++@[!#$%&*+,./0-9:;=?@A-Z\[\]^_a-z|~\-]++"
).finditer
# A private key in PEM: RFC 7468, section 10; OpenSSH and PGP use the same lines.
_find_pem_headers = re.compile(r"-----BEGIN [A-Z0-9 ]{0,20}PRIVATE KEY(?: BLOCK)?-----").finditer
_match_pem_lines = re.compile(r"(?:\s|\\[nr])*(?:[A-Za-z0-9+/=]{16,}(?:\s|\\[nr])*)*").match
_PEM_END = "-----END "
_LONGEST_PEM_LINE = 60
_LONGEST_PEM = 20_000
"""Characters in which the end of a private key is looked for."""
# A header or parameter whose name contains one of these words may hold a key.
_SECRET_WORDS = (
    "auth", "key", "token", "secret", "cookie", "credential", "password", "signature", "session",
)  # fmt: skip
_HARMLESS = frozenset(("idempotency-key", "x-stainless-retry-count"))
_SECRET_PARAMETERS = frozenset(("key", "api_key", "apikey", "api-key", "access_token", "sig"))
_MIN_LENGTH = 8  # a shorter key would match other text of a body by chance


def redact(text: str) -> str:
    """The text without anything that looks like a key."""
    pieces, end = [], 0
    for match in _matches(text):
        pieces += [text[end : match.start()], REDACTED]
        end = match.end()
    return "".join((*pieces, text[end:])) if end else text


SECRET_KINDS = (*KEY_FORMS, "JSON Web Token", "Basic", "password", "URL", "private key")
"""What `find_secrets` finds."""


def find_secrets(text: str) -> list[tuple[int, int]]:
    """Where the text has a secret: start and end; places may overlap."""
    places = [match.span() for match in _matches(text)]
    if "=" in text or ":" in text:
        places += [match.span("value") for match in _find_named(text)]
        places += [match.span() for match in _find_urls(text)] if "://" in text else []
    places += [match.span() for match in _find_basic(text) if _is_basic(match[1])]
    places += list(_find_pem(text))
    return sorted(places)


def find_uncut(text: str) -> Iterator[tuple[int, int]]:
    """
    Where a text that goes on must not be cut, besides in its secrets.

    A name belongs to its password, and a private key that has begun to what follows.
    """
    for match in _find_named(text):
        yield match.span()
    after = max(text.rfind(_PEM_END) + 1, len(text) - _LONGEST_PEM)
    begun = next(_find_pem_headers(text, after), None)
    if begun is not None:
        yield begun.start(), len(text)


def _find_pem(text: str) -> Iterator[tuple[int, int]]:
    """Private keys, to their ends; without an end, their lines of base64."""
    done, end = 0, text.find(_PEM_END)
    for match in _find_pem_headers(text):
        start = match.start()
        if start < done:
            continue
        if 0 <= end < start:
            end = text.find(_PEM_END, start)
        if 0 <= end - start <= _LONGEST_PEM:
            closing = text.find("-----", end + len(_PEM_END), end + _LONGEST_PEM_LINE)
            done = end + len(_PEM_END) if closing < 0 else closing + 5
        else:
            lines = _match_pem_lines(text, match.end())
            done = match.end() if lines is None else lines.end()
        yield start, done


def _is_basic(code: str) -> bool:
    """Whether base64 has a name, a colon and a password; any word may follow "basic"."""
    try:
        decoded = b64decode(code[: len(code) // 4 * 4])
    except ValueError:
        return False
    return b":" in decoded[1:] and decoded.isascii() and decoded.decode("ascii").isprintable()


def _matches(text: str) -> Iterator[re.Match[str]]:
    """Each part of the text that looks like a key."""
    for match in _find_secrets(text):
        token = match["token"]
        if token is None or "." in token[13:-20]:  # the parts of a JWT are separated by dots
            yield match
        else:
            yield from _find_forms(text, match.start(), match.end())


_KEPT_NAME = 64  # characters


def is_secret_header(name: str) -> bool:
    """Whether a header of this name may hold a key."""
    # The same names come with every request; a stranger's long ones are not remembered.
    return (
        _is_secret_header(name) if len(name) <= _KEPT_NAME else _is_secret_header.__wrapped__(name)
    )


@lru_cache(maxsize=1024)
def _is_secret_header(name: str) -> bool:
    name = name.lower()
    if name in _HARMLESS or name.startswith(("x-ratelimit-", "anthropic-ratelimit-")):
        return False
    return any(word in name for word in _SECRET_WORDS)


def redact_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers, names in lower case, without the values of keys."""
    return {
        name.lower(): REDACTED if is_secret_header(name) else value
        for name, value in headers.items()
    }


def redact_url(url: str) -> str:
    """The URL without user, password and fragment, and with keys in its query redacted."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, _redact_query(parts.query), ""))


def target_of(url: str) -> str:
    """The path and the sorted query without keys, to compare requests."""
    parts = urlsplit(url)
    pairs = [(name, value) for name, value in _pairs(parts.query) if not _is_secret(name)]
    return f"{parts.path}?{urlencode(sorted(pairs))}" if pairs else parts.path


class Redactor:
    """
    Replaces known keys, and text that looks like a key, in any bytes.

    A key is replaced by as many stars, so that lengths and chunk boundaries do not change.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known = {secret for secret in secrets if secret}

    def learn(self, request: HttpRequest) -> None:
        """Add the keys of this request to the known keys."""
        self.learn_headers(request.headers)
        parts = urlsplit(request.url)
        self._known.update(value for name, value in _pairs(parts.query) if _is_secret(name))
        self._known.update(filter(None, (parts.password,)))

    def add(self, secret: str) -> None:
        """Add a key to the known keys."""
        if secret not in self._known:
            self._known = {*self._known, secret}  # another thread may be reading the old one

    def learn_headers(self, headers: Mapping[str, str]) -> None:
        """Add the keys in these headers, with and without a scheme such as `Bearer`."""
        for name, value in headers.items():
            if is_secret_header(name):
                self._known.update((value, value.rpartition(" ")[2]))

    def redact(self, data: bytes) -> bytes:
        """The bytes with stars for keys."""
        found = bytearray(data)
        for match in _matches(data.decode("latin-1")):
            if match["bearer"] is None:  # any word may follow "bearer"
                found[match.start() : match.end()] = b"*" * len(match.group())
        data = bytes(found)
        for secret in sorted(self._known, key=len, reverse=True):
            if len(secret) < _MIN_LENGTH:
                continue
            for form in {secret, quote(secret, safe="", errors="replace")}:
                coded = form.encode("utf-8", "replace")
                data = data.replace(coded, b"*" * len(coded))
        return data

    def redact_chunks(self, chunks: list[bytes]) -> list[bytes]:
        """The chunks with stars for keys, also for a key that is split between chunks."""
        whole = self.redact(b"".join(chunks))
        redacted: list[bytes] = []
        start = 0
        for chunk in chunks:
            redacted.append(whole[start : start + len(chunk)])
            start += len(chunk)
        return redacted

    def redact_message(self, text: str) -> str:
        """
        Replace known keys, and text that looks like a key, by `[redacted]`.

        For messages, where the length does not matter: known keys of any length are replaced.
        """
        for secret in sorted(self._known, key=len, reverse=True):
            text = text.replace(secret, REDACTED)
        return redact(text)

    def redact_text(self, text: str) -> str:
        """The text with stars for keys."""
        return self.redact(text.encode("utf-8", "replace")).decode("utf-8", "replace")

    def redact_error(self, error: SDKError) -> None:
        """
        Replace known keys by `[redacted]` in an error and in all exceptions that led to it.

        Providers echo what they were sent. What looks like a key is redacted where an error body
        is decoded; the caller's own keys may look like anything. The conversation is not changed.
        """
        forms = {secret for secret in self._known if len(secret) >= _MIN_LENGTH}
        forms |= {quote(secret, safe="", errors="replace") for secret in forms}
        if not forms:
            return
        longest_first = sorted(forms, key=len, reverse=True)
        for exception in _chain(error):
            args = _redact_deep(exception.args, longest_first)
            if args != exception.args:  # else keep the object: it may be the caller's own
                exception.args = args
            fields = vars(exception)
            for name in fields.keys() - _CONVERSATION:
                redacted = _redact_deep(fields[name], longest_first)
                if redacted != fields[name]:
                    fields[name] = redacted


def _redact_query(query: str) -> str:
    pieces = []
    for piece in query.split("&") if query else ():
        name, equals, _ = piece.partition("=")
        pieces.append(f"{name}={REDACTED}" if equals and _is_secret(name) else piece)
    return "&".join(pieces)


def _pairs(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, keep_blank_values=True)


def _is_secret(name: str) -> bool:
    return name.lower() in _SECRET_PARAMETERS or is_secret_header(name)


_CONVERSATION = frozenset(("partial", "messages", "steps", "total_usage", "total_cost"))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and every exception that it was raised from or during."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        exception = waiting.pop()
        if exception is None or id(exception) in seen:
            continue
        seen.add(id(exception))
        yield exception
        waiting += [exception.__cause__, exception.__context__]


def _redact_deep(value: Any, secrets: list[str]) -> Any:
    try:
        return _redact_value(value, secrets)
    except RecursionError:
        return REDACTED


def _redact_value(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, REDACTED)
        return value
    if isinstance(value, bytes):
        for secret in secrets:
            value = value.replace(secret.encode("utf-8", "replace"), REDACTED.encode())
        return value
    if isinstance(value, dict):
        items = value.items()
        return {_redact_value(key, secrets): _redact_value(item, secrets) for key, item in items}
    if type(value) in (list, tuple):
        return type(value)(_redact_value(item, secrets) for item in value)
    if isinstance(value, RateLimitInfo):
        return replace(value, raw=_redact_value(value.raw, secrets))
    return value
