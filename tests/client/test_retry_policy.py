"""When to try again, and how long to wait."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import sync
from interlingua.client.retry_policy import RetryPolicy, retry
from interlingua.spec.errors import (
    AuthenticationError,
    ConfigurationError,
    NetworkError,
    QuotaExceededError,
    RateLimitError,
    RequestTimeoutError,
    ServerError,
    StreamError,
)

FAST = RetryPolicy(base_delay=0.0)


class Flaky:
    """Fails with each of its errors in turn, then answers."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


def run(flaky, policy):
    """The answer (or error), how often it was called, how long was slept."""
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("interlingua.client.attempts.asyncio.sleep", sleep)
        try:
            return asyncio.run(retry(flaky, policy)), flaky.calls, slept
        except Exception as error:  # noqa: BLE001 -- it is what we look at
            return error, flaky.calls, slept


@given(st.integers(0, 6))
def test_n_retries_are_n_plus_one_attempts(n):
    """Exactly, if nothing helps (field bug 74)."""
    answer, calls, slept = run(
        Flaky(*[ServerError("down") for _ in range(20)]), RetryPolicy(max_retries=n)
    )

    assert isinstance(answer, ServerError)
    assert (calls, len(slept)) == (n + 1, n)


@given(st.integers(0, 80), st.floats(0, 1))
def test_delays_grow_up_to_a_limit(attempt, chance):
    """Doubled each time, by up to a half more or less, never above the limit and a half."""
    plain = RetryPolicy(max_retries=100, jitter=False)
    delay = plain.delay(ServerError("x"), attempt)
    shaken = RetryPolicy(max_retries=100).delay(ServerError("x"), attempt, lambda: chance)

    assert delay == min(2.0**attempt, 60.0)
    assert delay * 0.5 <= shaken <= delay * 1.5


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (RateLimitError("slow down"), True),
        (ServerError("down"), True),
        (NetworkError("refused"), True),
        (StreamError("cut"), True),
        (RequestTimeoutError("connect"), True),
        (AuthenticationError("who?"), False),
        (QuotaExceededError("pay", status_code=429), False),
        (ConfigurationError("wrong"), False),
        (ServerError("down", retryable=False), False),
        (ValueError("ours"), False),
    ],
)
def test_only_what_may_pass_is_tried_again(error, again):
    """Every error knows whether it may."""
    assert FAST.is_retryable(error) is again


def test_each_wait_is_that_of_the_current_answer():
    """Escalating hints are followed one by one; a hint goes before the backoff (field bug 73)."""
    errors = [RateLimitError("x", retry_after=after) for after in (1.5, 7.0)]

    assert run(Flaky(*errors), RetryPolicy()) == ("answer", 3, [1.5, 7.0])


def test_a_wait_that_is_too_long_is_not_waited():
    """The error comes at once with its hint, or the wait is capped if that is asked for.

    Field bug 73.
    """
    patient = RetryPolicy(on_long_wait="cap")
    error, calls, slept = run(Flaky(RateLimitError("x", retry_after=61.0)), RetryPolicy())

    assert (error.retry_after, calls, slept) == (61.0, 1, [])
    assert run(Flaky(RateLimitError("x", retry_after=61.0)), patient) == ("answer", 2, [60.0])


@pytest.mark.parametrize("after", [0, 0.0, -5.0])
def test_no_wait_at_all_is_the_backoff(after):
    """A hint of 0, or a moment that has passed, does not make a client hammer the provider."""
    policy = RetryPolicy(jitter=False)

    assert policy.delay(RateLimitError("x", retry_after=after), 1) == 2.0


def test_a_wait_that_is_too_long_is_explained():
    """Only if that is why there is no other attempt."""
    policy = RetryPolicy(max_retries=1)
    error = RateLimitError("x", retry_after=61.0)

    assert "asked to wait 61 s, more than max_delay 60 s" in policy.explain(error, 0)
    assert policy.explain(error, 1) is None
    assert policy.explain(RateLimitError("x", retry_after=1.0), 0) is None
    assert policy.explain(RateLimitError("x", retry_after=61.0, retryable=False), 0) is None


def test_a_read_timeout_is_repeated_only_if_asked():
    """The provider may be at work on the answer, and bill it."""
    error = RequestTimeoutError("no reply", phase="first_byte", retryable=False)

    assert not RetryPolicy().is_retryable(error)
    assert RetryPolicy(retry_read_timeouts=True).is_retryable(error)


def test_whoever_wants_to_know_is_told():
    """Before each retry: the error, the attempt that failed, the delay."""
    told = []
    policy = RetryPolicy(jitter=False, on_retry=lambda *about: told.append(about))
    error = ServerError("down")
    run(Flaky(error, error), policy)

    assert told == [(error, 0, 1.0), (error, 1, 2.0)]


def test_no_retries():
    """The first error is the last."""
    assert run(Flaky(ServerError("down")), RetryPolicy(max_retries=0))[1:] == (1, [])


@pytest.mark.parametrize("name", ["max_retries", "base_delay", "max_delay", "backoff_multiplier"])
@pytest.mark.parametrize("number", [-1, float("nan")])
def test_numbers_that_cannot_be(name, number):
    """They are told when the policy is made."""
    with pytest.raises(ConfigurationError, match="must be 0 or more"):
        RetryPolicy(**{name: number})


@pytest.mark.parametrize(
    "module", [lambda call: asyncio.run(retry(call)), sync.retry], ids=["async", "sync"]
)
def test_a_call_that_was_made_already_is_refused(module):
    """A coroutine can be awaited once, so each attempt needs the function; nothing is left open."""

    async def fetch():
        raise AssertionError("unreachable")

    with pytest.raises(ConfigurationError, match=r"retry\(lambda: fetch\(url\)\)"):
        module(fetch())
    with pytest.raises(ConfigurationError, match="not a int"):
        module(5)
