"""What an adapter puts on the errors it raises, and what it keeps out of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from interlingua.spec.errors import SDKError

REDACTED = "[redacted]"
_SHORTEST = 8  # anything shorter would be found by chance
_KEPT = frozenset(("partial", "messages", "steps", "total_usage"))  # the conversation


class Stamp:
    """
    Says whose call it was, and nothing of its key.

    Providers echo what they were sent. Keys of a known form are covered where an error body is
    read; the adapter's own key, and what its headers hold, may look like anything, and are
    known only here.
    """

    def __init__(self, name: str, key: str | None, headers: Mapping[str, str]) -> None:
        self._name = name
        self._key = key or ""
        self._headers = headers

    def stamp(
        self, error: SDKError, request_id: str | None = None, model: str | None = None
    ) -> None:
        """Add the provider, the model and the id of the request; cover secrets."""
        error.add_facts(provider=self._name, model=model or None, request_id=request_id)
        self.hide_in(error)

    def hide_in(self, error: SDKError) -> None:
        """Cover the secrets in all that the error, and what it came from, holds."""
        secrets = self._secrets()
        if not secrets:
            return
        for one in _chain(error):
            args = _hide_deep(one.args, secrets)
            if args != one.args:  # else left as it is: it may be the caller's own
                one.args = args
            held = vars(one)
            for name in held.keys() - _KEPT:
                covered = _hide_deep(held[name], secrets)
                if covered != held[name]:
                    held[name] = covered

    def _secrets(self) -> list[str]:
        """In every form in which they may be echoed, the longest first."""
        from interlingua.wire.secrets import is_secret_header

        found = {self._key}
        for name, value in self._headers.items():
            if is_secret_header(name):
                found.update((value, value.rpartition(" ")[2]))
        found |= {quote(secret, safe="") for secret in found}
        return sorted((form for form in found if len(form) >= _SHORTEST), key=len, reverse=True)


def _chain(error: BaseException) -> Iterator[BaseException]:
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__]


def _hide_deep(value: Any, secrets: list[str]) -> Any:
    try:
        return _hide(value, secrets)
    except RecursionError:
        return REDACTED


def _hide(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, REDACTED)
        return value
    if isinstance(value, bytes):
        for secret in secrets:
            value = value.replace(secret.encode("utf-8", "replace"), REDACTED.encode())
        return value
    if isinstance(value, dict):
        return {_hide(key, secrets): _hide(item, secrets) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_hide(item, secrets) for item in value)
    return value
