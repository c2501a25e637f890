"""Contracts between the layers."""

import inspect

import pytest

from interlingua.spec.contracts import (
    NEUTRAL_PROFILE,
    Dialect,
    Frame,
    HttpRequest,
    Profile,
    WireCall,
)
from interlingua.spec.defaults import Timeouts


@pytest.mark.parametrize(
    "field",
    [
        "context_window", "max_output_tokens", "image_types", "audio_types", "document_types",
        "tool_choice_modes", "reasoning_efforts", "thinking_modes", "stop_sequences", "quirks",
    ],
)  # fmt: skip
def test_default_profile_knows_no_limit(field):
    """The neutral profile limits nothing."""
    assert getattr(NEUTRAL_PROFILE, field) is None


@pytest.mark.parametrize(
    "field",
    [
        "tools", "parallel_tool_calls", "strict_tools", "streaming", "streaming_tool_calls",
        "sampling", "structured_output",
    ],
)  # fmt: skip
def test_the_default_profile_knows_nothing(field):
    """Unknown is neither supported nor forbidden."""
    assert getattr(NEUTRAL_PROFILE, field) is None


def test_default_profile_adds_nothing():
    """The neutral profile marks no cache."""
    assert Profile() == NEUTRAL_PROFILE
    added = (
        NEUTRAL_PROFILE.caching,
        NEUTRAL_PROFILE.automatic_cache_mark,
        NEUTRAL_PROFILE.cache_key,
    )
    assert not any(added)
    assert repr(NEUTRAL_PROFILE) == "Profile()"


def test_falsy_limits_are_limits():
    """A limit of zero is not the same as no limit."""
    assert Profile(stop_sequences=0) != NEUTRAL_PROFILE
    assert Profile(image_types=()).image_types == ()


@pytest.mark.parametrize(
    "value",
    [NEUTRAL_PROFILE, Frame(data=""), WireCall(), HttpRequest(url="https://example.com")],
    ids=lambda value: type(value).__name__,
)
def test_frozen(value):
    """No field of what passes between layers can be set."""
    for field in type(value).__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(value, field, None)


def test_wire_call_defaults():
    """An empty call has no body, headers or warnings, and does not stream."""
    call = WireCall()

    assert (call.path, call.body, call.headers) == ("", None, {})
    assert (call.stream, call.warnings) == (False, ())


def test_frame_defaults():
    """A frame is its data; the rest of SSE is optional."""
    frame = Frame(data="x")

    assert (frame.event, frame.id, frame.retry) == (None, None, None)


def test_the_grid():
    """A dialect is eight functions: both directions of four things."""
    functions = {name for name, _ in inspect.getmembers(Dialect, inspect.isfunction)}

    assert {name for name in functions if not name.startswith("_")} == {
        "encode_request", "decode_request", "encode_response", "decode_response",
        "stream_encoder", "stream_decoder", "encode_error", "decode_error",
    }  # fmt: skip


def test_a_request_does_not_show_its_key():
    """The repr has neither headers nor query nor body."""
    request = HttpRequest(
        url="https://a.example/v1?key=secret", headers={"x-api-key": "secret"}, body=b"secret"
    )

    assert repr(request) == str(request) == "HttpRequest(POST https://a.example/v1, 6 bytes)"


def test_default_timeouts():
    """Ten seconds to connect, ten minutes for a reply, five of silence in a stream."""
    assert Timeouts() == Timeouts(
        connect=10, request=600, first_byte=None, stream_read=300, stream_content=900, total=None
    )
