"""What goes wrong with MCP servers."""

import pytest
from mcp import MCPError

from interlingua.api.tools.mcp.session import call_failure, connect_failure
from interlingua.spec.errors import (
    AuthenticationError,
    ConfigurationError,
    DecodeError,
    InvalidToolCallError,
    NetworkError,
    RequestTimeoutError,
    SDKError,
    ServerError,
)
from interlingua.wire.secrets import Redactor

KEY = "key-very-secret"
ERRORS = [
    MCPError(-32000, f"closed {KEY}"),
    MCPError(-32001, f"timed out {KEY}"),
    MCPError(-32602, f"no such tool {KEY}"),
    MCPError(-32603, f"internal {KEY}"),
    FileNotFoundError(2, f"no {KEY}"),
    RuntimeError(f"bad {KEY}"),
    ValueError(f"bad {KEY}"),
    TimeoutError(KEY),
    ExceptionGroup("a", [ExceptionGroup("b", [ConnectionError(KEY)])]),
    Exception(KEY),
]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("status", [None, 200, 401, 500])
def test_no_secret_in_any_message(error, status):
    """Every exception becomes a typed error that names the server and has no key."""
    for failure in (
        connect_failure(error, "srv", status=status, redactor=Redactor([KEY])),
        call_failure(error, "srv", timeout=1, redactor=Redactor([KEY])),
    ):
        assert isinstance(failure, SDKError)
        assert "srv" in str(failure)
        assert KEY not in f"{failure} {failure!r} {failure.__dict__}"
        assert failure.__cause__ is None


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (FileNotFoundError(2, "No such file"), None, ConfigurationError),
        (PermissionError(13, "denied"), None, ConfigurationError),
        (MCPError(-32000, "closed"), None, NetworkError),
        (ExceptionGroup("", [ConnectionError()]), None, NetworkError),
        (MCPError(-32603, "error"), 401, AuthenticationError),
        (MCPError(-32603, "error"), 503, ServerError),
        (MCPError(-32603, "error"), 200, NetworkError),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), None, DecodeError),
        (ConfigurationError("install srv"), None, ConfigurationError),
    ],
)
def test_kinds_of_connect_failures(error, status, kind):
    """A server that cannot be started is a configuration error; a rejection has its status."""
    assert type(connect_failure(error, "srv", status=status)) is kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError(), RequestTimeoutError),
        (MCPError(-32001, "late"), RequestTimeoutError),
        (MCPError(-32000, "closed"), NetworkError),
        (ExceptionGroup("", [ConnectionError()]), NetworkError),
        (MCPError(-32602, "Unknown tool"), InvalidToolCallError),
        (MCPError(-32601, "Unknown method"), InvalidToolCallError),
        (MCPError(-32603, "error"), SDKError),
        (RuntimeError("structured content does not fit"), DecodeError),
    ],
)
def test_kinds_of_call_failures(error, kind):
    """A model can correct a call, but not a lost connection."""
    assert type(call_failure(error, "srv")) is kind


def test_messages_are_bounded():
    """A server cannot fill the context of a model with an error."""
    assert len(str(call_failure(MCPError(-32603, "x" * 10**6), "srv"))) < 3_000


def test_a_call_that_timed_out_is_not_retryable():
    """The tool may have run."""
    assert not call_failure(TimeoutError(), "srv", timeout=2.5).retryable
    assert "within 2.5 s" in str(call_failure(TimeoutError(), "srv", timeout=2.5))


def test_an_error_of_ours_passes_as_it_is():
    """A timeout of ours is a TimeoutError to Python, but it says more."""
    own = RequestTimeoutError("late", phase="connect")

    assert call_failure(own, "srv", timeout=1) is own
