"""The keys of an AWS identity."""

from __future__ import annotations

from interlingua.spec.content import Record


class AwsCredentials(Record, frozen=True, kw_only=True):
    """The keys of an AWS identity, with which requests are signed."""

    access_key_id: str
    """The id of the key."""
    secret_access_key: str
    """The secret, with which requests are signed."""
    session_token: str | None = None
    """The token of a role."""
    expires_at: float | None = None
    """When the keys of a role end, in seconds since 1970; None if that is not known."""

    def __repr__(self) -> str:
        return f"AwsCredentials(access_key_id={self.access_key_id[:4]!r}…)"
