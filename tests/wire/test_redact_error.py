"""Redaction of the caller's own keys in errors."""

import pickle
import traceback

import pytest

from interlingua.spec.errors import (
    DecodeError,
    NetworkError,
    RateLimitError,
    RequestTimeoutError,
)
from interlingua.wire.secrets import Redactor

KEY = "planted/key+QQ77-of-no-known-form"


@pytest.mark.parametrize("kind", [RateLimitError, RequestTimeoutError, NetworkError])
@pytest.mark.parametrize("header", [None, "Proxy-Authorization", "X-Proxy-Token"])
def test_secrets_are_covered_in_all_it_holds(header, kind):
    """Whatever they look like, also percent-encoded, in what it came from too."""
    redactor = Redactor(() if header else (KEY,))
    redactor.learn_headers({header: f"Bearer {KEY}"} if header else {})
    error = kind(
        f"bad {KEY}!",
        raw={"error": {f"k {KEY}": [KEY, 1, None, {"deep": f"?key={KEY}"}]}},
        error_code=KEY,
        request_id=f"req {KEY}",
    )
    cause = DecodeError(f"Not JSON: {KEY}", path=KEY)
    cause.doc = KEY.encode()
    error.__cause__ = cause
    redactor.redact_error(error)

    held = "".join(traceback.format_exception(error))
    held += repr(error) + repr(vars(error)) + repr(vars(cause))
    assert "QQ77" not in held
    assert b"QQ77" not in pickle.dumps(error)
    assert error.message == "bad [redacted]!"


def test_what_is_no_secret_stays():
    """A word as short as a test's key would be found anywhere."""
    error = RateLimitError("a key is a test of keys", raw="test")
    redactor = Redactor(("test",))
    redactor.learn_headers({"x-team": "a key is"})
    redactor.redact_error(error)

    assert (error.message, error.raw) == ("a key is a test of keys", "test")
    assert error.args == ("a key is a test of keys",)


def test_what_holds_no_secret_is_the_same_object():
    """A caller may be handling an error of its own, which is then a part of the chain."""
    own = LookupError(["a"])
    own.notes = notes = ["b"]
    args = own.args
    error = RateLimitError("x")
    error.__context__ = own
    Redactor((KEY,)).redact_error(error)

    assert own.args is args
    assert own.notes is notes


def test_a_body_nested_without_end():
    """It is covered whole."""
    raw = KEY
    for _ in range(100_000):
        raw = [raw]
    error = RateLimitError("x", raw=raw)
    Redactor((KEY,)).redact_error(error)

    assert error.raw == "[redacted]"
