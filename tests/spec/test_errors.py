"""The error tree."""

import copy
import inspect
import pickle
import re

import pytest

from interlingua.spec import errors
from interlingua.spec.errors import (
    DecodeError,
    ErrorClass,
    NoObjectGeneratedError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    RequestTimeoutError,
    SDKError,
)
from interlingua.spec.response import Response

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, SDKError)
}

# seed 002 §6.3 for what it lists; whatever else is not transient is not retried
RETRYABLE = {
    "RateLimitError",
    "ServerError",
    "RequestTimeoutError",
    "ProviderTimeoutError",
    "NetworkError",
    "StreamError",
}
# seed 000 §6.1
ERROR_CLASSES = {
    "SDKError": "other",
    "ProviderError": "other",
    "AuthenticationError": "auth",
    "AccessDeniedError": "auth",
    "NotFoundError": "invalid_request",
    "InvalidRequestError": "invalid_request",
    "RateLimitError": "rate_limit",
    "ServerError": "server_error",
    "ContentFilterError": "invalid_request",
    "ContextLengthError": "context_overflow",
    "QuotaExceededError": "rate_limit",
    "ProviderTimeoutError": "network",
    "RequestTimeoutError": "network",
    "AbortError": "cancelled",
    "NetworkError": "network",
    "StreamError": "server_error",
    "DecodeError": "server_error",
    "InvalidToolCallError": "other",
    "NoObjectGeneratedError": "other",
    "ConfigurationError": "invalid_request",
    "UnsupportedError": "invalid_request",
    "UnsupportedToolChoiceError": "invalid_request",
}


def drawn_parents() -> dict[str, set[str]]:
    """Each class of the drawing with its parents."""
    parents: dict[str, set[str]] = {}
    above: dict[int, str] = {}
    for line in inspect.cleandoc(errors.__doc__ or "").splitlines():
        found = re.match(r"(?P<lines>[\s│├└─]*)(?P<name>[A-Z][A-Za-z]+Error)\b(?P<rest>.*)", line)
        if found is None:
            continue
        column = found.start("name")
        parent = next((above[at] for at in sorted(above, reverse=True) if at < column), None)
        above = {at: name for at, name in above.items() if at < column} | {column: found["name"]}
        parents[found["name"]] = {parent} if parent else set()
        parents[found["name"]] |= set(re.findall(r"also an? (\w+)", found["rest"]))
    return parents


def test_drawing_is_the_tree():
    """The drawing at the top of the file has each class, under its true parents."""
    real = {
        name: {base.__name__ for base in cls.__bases__ if base is not Exception}
        for name, cls in CLASSES.items()
    }

    assert drawn_parents() == real
    assert len(real) == 22


@pytest.mark.parametrize("name", CLASSES)
def test_error_class(name):
    """Each class has its one place in the closed list."""
    assert CLASSES[name]("x").error_class == ErrorClass(ERROR_CLASSES[name])


@pytest.mark.parametrize("name", CLASSES)
def test_retryable(name):
    """Transient errors are retryable, the others are not."""
    assert CLASSES[name]("x").retryable is (name in RETRYABLE)


def test_closed_list():
    """The list for metrics is seed 000's."""
    assert [member.value for member in ErrorClass] == [
        "rate_limit", "auth", "server_error", "network", "context_overflow", "invalid_request",
        "cancelled", "other",
    ]  # fmt: skip


@pytest.mark.parametrize("cls", CLASSES.values())
def test_fields_every_error_has(cls):
    """Message, retryable, request id and partial are set on every class."""
    partial = Response(id="r")

    error = cls("what happened", retryable=True, request_id="req_1", partial=partial)

    assert str(error) == error.message == "what happened"
    assert (error.retryable, error.request_id, error.partial) == (True, "req_1", partial)


@pytest.mark.parametrize("cls", CLASSES.values())
def test_retryable_can_be_said(cls):
    """A `retryable` that is given, false too, wins over the class."""
    assert cls("x", retryable=False).retryable is False
    assert cls("x", retryable=True).retryable is True


@pytest.mark.parametrize("cls", [cls for cls in CLASSES.values() if issubclass(cls, ProviderError)])
def test_fields_of_provider_errors(cls):
    """Provider errors also say who, with which status and code, and how long to wait."""
    error = cls(
        "x", provider="groq", status_code=429, error_code="slow", retry_after=0.0, raw={"a": 0}
    )

    assert (error.provider, error.status_code, error.error_code) == ("groq", 429, "slow")
    assert (error.retry_after, error.raw) == (0.0, {"a": 0})


@pytest.mark.parametrize("cls", CLASSES.values())
def test_errors_can_be_copied_and_pickled(cls):
    """An error crosses a process boundary with its fields."""
    error = cls("x", retryable=True, request_id="req_1")

    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301 -- our own bytes
        assert type(other) is cls
        assert vars(other) == vars(error)


def test_a_provider_s_timeout_is_both():
    """Whoever catches timeouts or provider errors catches a provider's timeout."""
    error = ProviderTimeoutError("x", status_code=504)

    assert isinstance(error, ProviderError)
    assert isinstance(error, RequestTimeoutError)
    assert error.status_code == 504


def test_decode_error_has_a_path():
    """A decode error may say where in the JSON."""
    assert DecodeError("x", path="messages[2].role").path == "messages[2].role"
    assert DecodeError("x").path is None


def test_no_object_has_what_came_instead():
    """The text, the whole answer, and what is wrong with it."""
    response = Response(id="r")
    error = NoObjectGeneratedError("x", text="{", response=response, problems=["a: b"])

    assert (error.text, error.response, error.problems) == ("{", response, ("a: b",))
    assert NoObjectGeneratedError("x").problems == ()


def test_repr_is_short():
    """The repr shows the class and the message, not the body."""
    error = RateLimitError("slow down", raw={"secret": "x"})

    assert repr(error) == "RateLimitError('slow down')"


def test_timeouts_say_which_clock():
    """A retry policy can tell a connection that did not come about from a slow reply."""
    assert RequestTimeoutError("x", phase="connect").phase == "connect"
    assert RequestTimeoutError("x").phase is None
    assert ProviderTimeoutError("x", status_code=504).phase is None
