"""
ProviderError <-> error body.

The name of the exception is in the header `x-amzn-errortype`; the body has the message.
https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html
"""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.spec.content import Json
from interlingua.spec.errors import ContextLengthError, ProviderError, ServerError
from interlingua.wire.classify import (
    MODEL_FAILED,
    error_text,
    make_error,
    overflow_text,
    read_body,
    read_fault,
    retry_headers,
    status_of,
)

_TOO_LONG = "Input is too long for requested model: {used} tokens > {limit} maximum"
TYPE_HEADER = "x-amzn-errortype"
# The statuses of the exceptions in the service model, and of those that all services of AWS have.
NAMES = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    402: "ServiceQuotaExceededException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    409: "ConflictException",
    MODEL_FAILED: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
_OTHER_STATUSES = {402: 400}  # the service model has 400 for `ServiceQuotaExceededException`
_STREAMED = {
    # `ConverseStreamOutput` has these exceptions.
    400: "validationException",
    MODEL_FAILED: "modelStreamErrorException",
    429: "throttlingException",
    503: "serviceUnavailableException",
}


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """Return the error of a reply; an unreadable body still gives an error with its status."""
    value, text = read_body(body)
    fault = read_fault(value)
    if isinstance(value, dict):
        message = value.get("Message")
        if not fault.message and isinstance(message, str):
            fault = fault._replace(message=message)
        kind = value.get("__type")
        if isinstance(kind, str):
            fault = fault._replace(code=kind.rpartition("#")[2])
    for header, name in headers.items():
        if str(header).lower() == TYPE_HEADER:  # an address may follow the name
            fault = fault._replace(code=str(name).partition(":")[0])
    return make_error(status, headers, fault, raw=value, text=text)


def encode_error(error: Exception) -> tuple[int, dict[str, str], Json]:
    """Return the status, headers and body of an error."""
    status = _status_of(error)
    headers = {TYPE_HEADER: name_of(status), **retry_headers(error)}
    return _OTHER_STATUSES.get(status, status), headers, {"message": _message(error)}


def _status_of(error: Exception) -> int:
    is_failed_model = isinstance(error, ServerError) and error.status_code == MODEL_FAILED
    return MODEL_FAILED if is_failed_model else status_of(error)


def _message(error: Exception) -> str:
    if isinstance(error, ContextLengthError):  # clients look for these words
        return overflow_text(error, "Input is too long", _TOO_LONG)
    return error_text(error)


def name_of(status: int) -> str:
    """The name of the exception with which AWS sends a status."""
    return NAMES.get(status, NAMES[500] if status >= 500 else NAMES[400])


def exception_of(error: Exception) -> tuple[str, dict[str, Json]]:
    """The name and the body of the exception that ends a stream."""
    status = _status_of(error)
    default = "validationException" if status < 500 else "internalServerException"
    return _STREAMED.get(status, default), {"message": _message(error)}
