"""Which exception each vendor's client raises for a status."""

from __future__ import annotations

import anthropic
import openai
from google.genai import errors as gemini

VENDORS = (anthropic.APIError, openai.APIError, gemini.APIError)

_OPENAI: dict[int, type[Exception]] = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    409: openai.ConflictError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
}
_ANTHROPIC: dict[int, type[Exception]] = {
    400: anthropic.BadRequestError,
    401: anthropic.AuthenticationError,
    403: anthropic.PermissionDeniedError,
    404: anthropic.NotFoundError,
    408: anthropic.RequestTimeoutError,
    409: anthropic.ConflictError,
    413: anthropic.RequestTooLargeError,
    422: anthropic.UnprocessableEntityError,
    429: anthropic.RateLimitError,
    503: anthropic.ServiceUnavailableError,
    504: anthropic.DeadlineExceededError,
    529: anthropic.OverloadedError,
}


def raised_for(dialect: str, status: int) -> type[Exception]:
    """The exception of a dialect's client."""
    failed = status >= 500
    if dialect == "gemini_generate":
        return gemini.ServerError if failed else gemini.ClientError
    if dialect == "anthropic_messages":
        usual = anthropic.InternalServerError if failed else anthropic.APIStatusError
        return _ANTHROPIC.get(status, usual)
    return _OPENAI.get(status, openai.InternalServerError if failed else openai.APIStatusError)
