"""What `api_key=` may be: a text, or what makes one. `credentials` makes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple, TypeAlias

from interlingua.spec.errors import ConfigurationError
from interlingua.wire.aws_credentials import AwsCredentials


class ApiKey(NamedTuple):
    """A key, and when it ends: a `datetime`, or seconds since 1970; None if that is not known."""

    key: str
    """The key."""
    expires_at: datetime | float | None = None
    """When it ends: a `datetime`, or seconds since 1970."""

    def __repr__(self) -> str:
        return f"ApiKey(expires_at={self.expires_at!r})"


MadeKey: TypeAlias = str | ApiKey | tuple[str, datetime | float | None] | AwsCredentials
KeySource: TypeAlias = Callable[[], MadeKey | Awaitable[MadeKey]]
"""Makes a key. One that is not async runs in a thread."""
Key: TypeAlias = str | KeySource | AwsCredentials
"""What `api_key=` may be."""


def check_source(source: object) -> KeySource | AwsCredentials:
    """The source of a key; `ConfigurationError` if it is something else."""
    if isinstance(source, AwsCredentials):
        return source
    if callable(source):
        make: KeySource = source
        return make
    raise ConfigurationError(
        "`api_key` must be a text, a callable that makes one, or AwsCredentials.",
        setting="api_key",
    )
