"""What becomes of a row: an answer or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec

from interlingua.api.run.results import costs_of
from interlingua.spec.content import Record, UncheckedJson
from interlingua.spec.errors import SDKError
from interlingua.spec.response import Response, sum_costs

Status: TypeAlias = Literal["done", "failed", "pending"]


class Answer(Record, frozen=True, kw_only=True):
    """The answer to a request, as the ledger keeps it."""

    status: Status
    """`done`, `failed`, or `pending`: it was not sent, or its result is not known."""
    key: str = ""
    """The row whose request was sent. Rows with the same request share the answer."""
    text: str | None = None
    """The text of the answer; also of one that does not fit the schema."""
    object: UncheckedJson = None
    """The object, if the job has a schema."""
    finish_reason: str | None = None
    """Why generation ended."""
    input_tokens: int = 0
    """The tokens of the request."""
    output_tokens: int = 0
    """The tokens of the answer."""
    cost: float | None = None
    """What was paid, in dollars, with failed attempts; None if the price is unknown."""
    model: str = ""
    """Who answered: the provider and the model."""
    seconds: float = 0.0
    """How long the call took."""
    attempts: int = 1
    """How often the row was tried."""
    error_type: str | None = None
    """The class of the error, such as `InvalidRequestError`."""
    error_class: str | None = None
    """Its group, such as `invalid_request`; see `ErrorClass`."""
    error: str | None = None
    """What happened, and what to do about it."""
    retryable: bool = False
    """Whether the same request may succeed if it is repeated."""


RESULT_COLUMNS: tuple[tuple[str, str], ...] = (
    ("row_key", "string"),
    ("status", "string"),
    ("answer", "string"),
    ("object", "json"),
    ("finish_reason", "string"),
    ("input_tokens", "int64"),
    ("output_tokens", "int64"),
    ("cost", "float64"),
    ("cost_source", "string"),
    ("model", "string"),
    ("seconds", "float64"),
    ("attempts", "int64"),
    ("error_type", "string"),
    ("error_class", "string"),
    ("error", "string"),
    ("request_hash", "string"),
)
"""The columns that an output has beside those of the input, with their types."""

encode_answer: Callable[[Answer], bytes] = msgspec.json.Encoder().encode
decode_answer: Callable[[bytes], Answer] = msgspec.json.Decoder(Answer).decode


def result_columns(key: str, request_hash: bytes | None, answer: Answer) -> dict[str, Any]:
    """The columns of one row of the output."""
    source = None
    if answer.cost is not None:
        # A sum of costs must count each answer once.
        source = "call" if answer.key == key else "ledger"
    return {
        "row_key": key,
        "status": answer.status,
        "answer": answer.text,
        "object": answer.object,
        "finish_reason": answer.finish_reason,
        "input_tokens": answer.input_tokens,
        "output_tokens": answer.output_tokens,
        "cost": answer.cost,
        "cost_source": source,
        "model": answer.model or None,
        "seconds": answer.seconds,
        "attempts": answer.attempts,
        "error_type": answer.error_type,
        "error_class": answer.error_class,
        "error": answer.error,
        "request_hash": None if request_hash is None else request_hash.hex(),
    }


def answer_of(response: Response, key: str, *, value: UncheckedJson = None) -> Answer:
    """The answer of a call that succeeded."""
    cost = sum_costs(costs_of(response))
    return Answer(
        status="done",
        key=key,
        text=response.text,
        object=value,
        finish_reason=response.finish_reason.reason,
        input_tokens=response.usage.input_tokens,
        output_tokens=response.usage.output_tokens,
        cost=None if cost is None else cost.total,
        model=f"{response.provider}:{response.model}",
        seconds=round((response.latency_ms or 0.0) / 1000, 4),
    )


def failure_of(error: BaseException, key: str) -> Answer:
    """The failure of a row, with the text that the model wrote, if it wrote one."""
    if not isinstance(error, SDKError):
        kind = type(error).__name__
        return Answer(
            status="failed", key=key, error_type=kind, error_class="other", error=f"{kind}: {error}"
        )
    response = error.partial
    usage = error.total_usage if error.total_usage is not None else response and response.usage
    cost = error.total_cost
    return Answer(
        status="failed",
        key=key,
        text=getattr(error, "text", None) or (response.text if response else None),
        finish_reason=response.finish_reason.reason if response else None,
        input_tokens=usage.input_tokens if usage else 0,
        output_tokens=usage.output_tokens if usage else 0,
        cost=None if cost is None else cost.total,
        model=f"{error.provider}:{error.model}" if error.provider else "",
        error_type=type(error).__name__,
        error_class=str(error.error_class),
        error=str(error),
        retryable=error.retryable,
    )


def refused(key: str, problem: str) -> Answer:
    """The failure of a row of which no request could be made; nothing was sent."""
    return Answer(
        status="failed",
        key=key,
        attempts=0,
        error_type="RowProblem",
        error_class="invalid_request",
        error=problem,
    )
