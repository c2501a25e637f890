"""What a profile decides about a whole request: its mode, its kind of model, its length."""

from __future__ import annotations

from interlingua.spec.contracts import Profile
from interlingua.spec.errors import ContextLengthError, UnsupportedError
from interlingua.spec.request import Request
from interlingua.tokens.estimate import ESTIMATE_ERROR, estimate_request

_FUNCTIONS = {
    "embedding": "embed",
    "image": "generate_image",
    "speech": "generate_speech",
    "transcription": "transcribe",
    "video": "generate_video",
}


def can_stream(request: Request, profile: Profile, *, asked: bool) -> bool:
    """
    Whether the reply will be a stream.

    A stream that the model does not support is read as a whole answer and delivered as events;
    a whole answer that it does not support, because it has tools, is streamed and joined.
    """
    if not asked:
        return profile.whole_tool_calls is False and bool(request.tools)
    if profile.streaming is False:
        return False
    return profile.streaming_tool_calls is not False or not request.tools


def wrong_kind(request: Request, profile: Profile) -> UnsupportedError:
    """The error for a chat request to a model that does not chat."""
    function = _FUNCTIONS[profile.kind]
    return UnsupportedError(
        f"{request.model} is a model of kind {profile.kind!r} and does not answer chat requests. "
        f"Use {function}(...), or another model; on_loss='warn' sends the request anyway."
    )


def check_window(request: Request, window: int, family: str) -> None:
    """Raise `ContextLengthError` if the estimate exceeds the window by more than its error."""
    tokens = estimate_request(request, family, only_known=True)
    if tokens > window * (1 + ESTIMATE_ERROR):
        raise ContextLengthError(
            f"the request has about {tokens} tokens, and the context window is {window}: "
            "shorten the history, use on_overflow='truncate', or use a model with a larger "
            "window; on_loss='warn' sends the request anyway"
        )
