"""Which exception each vendor's client raises for a status."""

from __future__ import annotations

import anthropic
import openai
from botocore.exceptions import ClientError
from google.genai import errors as gemini

from support.oracles_converse import client

VENDORS = (anthropic.APIError, openai.APIError, gemini.APIError, ClientError)

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
_CONVERSE = {
    400: "ValidationException",
    402: "ServiceQuotaExceededException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    409: "ConflictException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}


def _raised_by_botocore(status: int) -> type[Exception]:
    if status == 401:
        return ClientError  # the service model has no exception for it
    usual = "InternalServerException" if status >= 500 else "ValidationException"
    found: type[Exception] = getattr(client().exceptions, _CONVERSE.get(status, usual))
    return found


def raised_for(dialect: str, status: int) -> type[Exception]:
    """The exception of a dialect's client."""
    failed = status >= 500
    if dialect == "bedrock_converse":
        return _raised_by_botocore(status)
    if dialect == "gemini_generate":
        return gemini.ServerError if failed else gemini.ClientError
    if dialect == "anthropic_messages":
        usual = anthropic.InternalServerError if failed else anthropic.APIStatusError
        return _ANTHROPIC.get(status, usual)
    return _OPENAI.get(status, openai.InternalServerError if failed else openai.APIStatusError)
