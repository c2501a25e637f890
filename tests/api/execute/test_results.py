"""What `execute` gives back."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.api.execute.execution import ExecuteError, ExecuteResult, ExecuteUsage
from interlingua.spec.errors import (
    AbortError,
    ConfigurationError,
    NetworkError,
    ProviderTimeoutError,
    RateLimitError,
    RequestTimeoutError,
)
from interlingua.spec.response import Usage

counts = st.integers(0, 10**6)


@given(counts, counts, counts | st.none(), counts | st.none())
def test_each_token_counts_once(prompt, completion, cached, reasoning):
    """The four add up to the total, whatever the provider told."""
    usage = ExecuteUsage.of(
        Usage(
            input_tokens=prompt + (cached or 0),
            output_tokens=completion + (reasoning or 0),
            cache_read_tokens=cached,
            reasoning_tokens=reasoning,
        )
    )

    assert (usage.prompt_tokens, usage.completion_tokens) == (prompt, completion)
    assert (usage.cached_tokens, usage.reasoning_tokens) == (cached or 0, reasoning or 0)
    assert usage.total_tokens == prompt + completion + (cached or 0) + (reasoning or 0)


def test_a_provider_that_cannot_count():
    """No count is below zero."""
    usage = ExecuteUsage.of(
        Usage(input_tokens=1, output_tokens=1, cache_read_tokens=5, reasoning_tokens=5)
    )

    assert (usage.prompt_tokens, usage.completion_tokens) == (0, 0)


def test_names_of_counts():
    """Camel case in JSON, snake case in Python and where it is asked for."""
    usage = ExecuteUsage(
        prompt_tokens=1, completion_tokens=2, total_tokens=10, cached_tokens=3, reasoning_tokens=4
    )
    camel = {
        "promptTokens": 1,
        "completionTokens": 2,
        "totalTokens": 10,
        "cachedTokens": 3,
        "reasoningTokens": 4,
    }

    assert usage.to_dict() == camel
    assert msgspec.json.decode(msgspec.json.encode(usage)) == {**camel, "estimated": False}
    assert msgspec.json.decode(msgspec.json.encode(usage), type=ExecuteUsage) == usage
    assert usage.to_dict(camel=False)["prompt_tokens"] == 1


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (RateLimitError("x", status_code=429, error_code="slow_down"), "slow_down", 429),
        (RateLimitError("x", status_code=429), "rate_limit", 429),
        (ProviderTimeoutError("x", status_code=504), "timeout", 504),
        (RequestTimeoutError("x", phase="request"), "timeout", None),
        (AbortError("x"), "cancelled", None),
        (NetworkError("x"), "network", None),
        (ConfigurationError("x"), "invalid_request", None),
        (KeyError("x"), "unexpected", None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors(error, code, status):
    """The provider's own code where there is one, else ours; the error itself is there too."""
    found = ExecuteError.of(error)

    assert (found.code, found.status_code, found.exception) == (code, status, error)
    assert found.debug["type"] == type(error).__name__
    assert ("statusCode" in found.to_dict()) == (status is not None)


def test_debug_data():
    """What is known of it is told, what is not is left out; all of it is JSON."""
    raw = {"error": {"code": 5}}
    error = RateLimitError(
        "too fast", provider="openai", status_code=429, retry_after=2.0, raw=raw, request_id="r"
    )
    found = ExecuteError.of(error).to_dict(camel=False)

    assert found == {
        "message": "openai: too fast",
        "code": "rate_limit",
        "status_code": 429,
        "debug": {
            "type": "RateLimitError",
            "error_class": "rate_limit",
            "retryable": True,
            "provider": "openai",
            "request_id": "r",
            "retry_after": 2.0,
            "raw": raw,
        },
    }
    assert ExecuteError.of(KeyError()).message == "KeyError"
    odd = ExecuteError.of(RateLimitError("x", raw=object()))
    assert msgspec.json.encode(odd.to_dict())


def test_the_whole_as_json():
    """Absent is left out."""
    usage = ExecuteUsage().to_dict()

    assert ExecuteResult(text="a").to_dict() == {"text": "a", "usage": usage}
    failed = ExecuteResult(reasoning="hm", error=ExecuteError.of(AbortError("x")))
    assert failed.to_dict().keys() == {"text", "usage", "reasoning", "error"}
