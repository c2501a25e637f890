"""The messages of errors, in OpenAI's words."""

from __future__ import annotations

from interlingua.spec.errors import ContextLengthError
from interlingua.wire.classify import error_text, overflow_text

_TOO_LONG = (
    "This model's maximum context length is {limit} tokens. However, your messages resulted in "
    "{used} tokens. Please reduce the length of the messages."
)


def openai_error_text(error: Exception) -> str:
    """The message of an error; for a prompt that is too long, in OpenAI's words."""
    if isinstance(error, ContextLengthError):
        return overflow_text(error, "maximum context length", _TOO_LONG)
    return error_text(error)
