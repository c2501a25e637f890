"""Keys that a cloud gives to a program: those of AWS in variables and files, those of Google."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from interlingua.providers.environment import GOOGLE_FILE, first_value
from interlingua.providers.keys import ApiKey
from interlingua.spec.errors import ConfigurationError
from interlingua.wire.aws_credentials import AwsCredentials

# The keys of AWS.

_FIELDS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")


class AwsSource:
    """Reads the keys of an environment; files are read only when it is called."""

    def __init__(self, environ: Mapping[str, str], key_env: tuple[str, ...] = ()) -> None:
        self._environ = environ
        self._key_env = key_env

    def __call__(self) -> AwsCredentials:
        """Return the keys; the error that there are none also names the variables `key_env`."""
        return read_aws_credentials(self._environ, self._key_env)


def read_aws_credentials(
    environ: Mapping[str, str], key_env: tuple[str, ...] = ()
) -> AwsCredentials:
    """The keys in the variables, unless they name a profile; else those of the profile."""
    access, secret, token = (first_value(environ, (name.upper(),)) for name in _FIELDS)
    profile = first_value(environ, ("AWS_PROFILE",))
    if access and secret and profile is None:
        return AwsCredentials(access_key_id=access, secret_access_key=secret, session_token=token)
    return _read_profile(environ, profile or "default", key_env)


def _read_profile(
    environ: Mapping[str, str], profile: str, key_env: tuple[str, ...]
) -> AwsCredentials:
    import configparser  # only for those who have such a file

    name = first_value(environ, ("AWS_SHARED_CREDENTIALS_FILE",))
    path = Path(name or "~/.aws/credentials").expanduser()
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        parser.clear()
    except configparser.Error:  # its message quotes the line, which may hold a key
        raise _no_aws_keys(f"{path} is not a credentials file", key_env) from None
    section = parser[profile] if parser.has_section(profile) else {}
    access, secret, token = (section.get(field, "").strip() for field in _FIELDS)
    if not access or not secret:
        raise _no_aws_keys(f"the profile {profile!r} in {path} has none", key_env)
    return AwsCredentials(
        access_key_id=access, secret_access_key=secret, session_token=token or None
    )


def _no_aws_keys(where: str, key_env: tuple[str, ...]) -> ConfigurationError:
    others = "".join(f"{name}, or " for name in key_env)
    return ConfigurationError(
        f"No AWS keys: {where}. Set {others}AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
        "AWS_PROFILE, or pass api_key= as AwsCredentials or a callable that makes them.",
        error_code="not_configured",
        setting="api_key",
    )


# The access tokens of Google Cloud.

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


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
            raise _no_google_access(f"no access token was made ({problem})")
        return ApiKey(credentials.token, credentials.expiry)

    return make


def _find_credentials() -> Any:
    try:
        import google.auth
        from google.auth.exceptions import DefaultCredentialsError
    except ImportError:
        raise _no_google_access("google-auth is not installed") from None
    try:
        return google.auth.default(scopes=_SCOPES)[0]
    except (DefaultCredentialsError, OSError, ValueError):
        raise _no_google_access("google-auth found no credentials") from None


def _no_google_access(what: str) -> ConfigurationError:
    return ConfigurationError(
        f"No access to Google Cloud: {what}. Install interlingua[vertex] and run `gcloud auth "
        f"application-default login`, or set {GOOGLE_FILE}, or pass api_key= as a callable that "
        "makes access tokens.",
        error_code="not_configured",
        setting="api_key",
    )
