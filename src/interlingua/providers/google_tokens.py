"""The access tokens of Google Cloud, from `google-auth` (extra `vertex`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlingua.providers.credentials import ApiKey
from interlingua.spec.errors import ConfigurationError

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_FILE = "GOOGLE_APPLICATION_CREDENTIALS"


def google_source() -> Callable[[], ApiKey]:
    """
    A callable that makes access tokens; it does I/O, so it runs in a thread.

    `google-auth` finds the credentials: in the file that the environment of the process names, in
    that of `gcloud`, or at the metadata server of Google's machines.
    """
    found: list[Any] = []

    def make() -> ApiKey:
        if not found:
            found.append(_find_credentials())
        credentials = found[0]
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request

        problem = ""
        try:
            credentials.refresh(Request())
        except GoogleAuthError as error:  # its text may quote the reply of the token server
            problem = type(error).__name__
        if problem:
            raise _missing(f"no access token was made ({problem})")
        return ApiKey(credentials.token, credentials.expiry)

    return make


def _find_credentials() -> Any:
    try:
        import google.auth
        from google.auth.exceptions import DefaultCredentialsError
    except ImportError:
        raise _missing("google-auth is not installed") from None
    try:
        return google.auth.default(scopes=_SCOPES)[0]
    except (DefaultCredentialsError, OSError, ValueError):
        raise _missing("google-auth found no credentials") from None


def _missing(what: str) -> ConfigurationError:
    return ConfigurationError(
        f"No access to Google Cloud: {what}. Install interlingua[vertex] and run `gcloud auth "
        f"application-default login`, or set {_FILE}, or pass api_key= as a callable that makes "
        "access tokens.",
        error_code="not_configured",
        setting="api_key",
    )
