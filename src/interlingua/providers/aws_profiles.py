"""The AWS keys of the environment: variables, else the profile in the credentials file."""

from __future__ import annotations

import configparser
from collections.abc import Callable, Mapping
from pathlib import Path

from interlingua.providers.environment import first_value
from interlingua.spec.errors import ConfigurationError
from interlingua.wire.sigv4 import AwsCredentials

_FIELDS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")


def aws_source(environ: Mapping[str, str]) -> Callable[[], AwsCredentials]:
    """A callable that reads the keys; files are read only when it is called."""
    return lambda: read_aws_credentials(environ)


def read_aws_credentials(environ: Mapping[str, str]) -> AwsCredentials:
    """The keys in the variables, unless they name a profile; else those of the profile."""
    access, secret, token = (first_value(environ, (name.upper(),)) for name in _FIELDS)
    profile = first_value(environ, ("AWS_PROFILE",))
    if access and secret and profile is None:
        return AwsCredentials(access_key_id=access, secret_access_key=secret, session_token=token)
    return _read_profile(environ, profile or "default")


def _read_profile(environ: Mapping[str, str], profile: str) -> AwsCredentials:
    name = first_value(environ, ("AWS_SHARED_CREDENTIALS_FILE",))
    path = Path(name or "~/.aws/credentials").expanduser()
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        parser.clear()
    except configparser.Error:  # its message quotes the line, which may hold a key
        raise _missing(f"{path} is not a credentials file") from None
    section = parser[profile] if parser.has_section(profile) else {}
    access, secret, token = (section.get(field, "").strip() for field in _FIELDS)
    if not access or not secret:
        raise _missing(f"the profile {profile!r} in {path} has none")
    return AwsCredentials(
        access_key_id=access, secret_access_key=secret, session_token=token or None
    )


def _missing(where: str) -> ConfigurationError:
    return ConfigurationError(
        f"No AWS keys: {where}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, "
        "or pass api_key= as AwsCredentials or a callable that makes them.",
        error_code="not_configured",
        setting="api_key",
    )
