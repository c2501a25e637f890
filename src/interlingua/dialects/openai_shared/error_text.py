"""The messages of errors, in OpenAI's words."""

from __future__ import annotations

from interlingua.spec.errors import ContextLengthError, NotFoundError
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


def names_no_model(error: Exception) -> bool:
    """
    Tell whether an error is about something else that does not exist, such as a file.

    OpenAI gives it no code: «{"message": "No such File object: file-1", "type":
    "invalid_request_error", "param": "id", "code": null}».
    """
    if not isinstance(error, NotFoundError) or error.model is not None:
        return False
    return error.status_code is not None  # else it was made here, for a model that nobody has
