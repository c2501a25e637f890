"""A 200 that is no answer, and an error whose body cannot be read."""

import asyncio
import time
from email.utils import formatdate

import pytest

from interlingua import dialects
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.replies import reported_error
from interlingua.spec.errors import (
    AuthenticationError,
    DecodeError,
    InvalidRequestError,
    NetworkError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    RequestTimeoutError,
    ServerError,
)
from interlingua.spec.request import Request
from interlingua.transport.canned import CannedReply, CannedTransport
from interlingua.wire.json_text import dumps
from support.simulated import DIALECTS

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
JSON = {"content-type": "application/json"}


def ask(provider, reply, *, stream=False, **fields):
    """The response or the events that the reply gives."""
    transport = CannedTransport([reply])
    adapter = HttpAdapter(provider, "k", base_url="https://a.example/v1", transport=transport)
    request = Request(model="m", messages="hi", request_id="r", **fields)

    async def work():
        if not stream:
            return await adapter.complete(request)
        return [event async for event in adapter.stream(request)]

    return asyncio.run(work())


@every_provider
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("error", "kind", "retryable", "status"),
    [
        ({"code": 429, "message": "Provider returned error"}, RateLimitError, True, 429),
        ({"code": "503", "message": "busy"}, ServerError, True, 503),
        ({"status": "RESOURCE_EXHAUSTED", "message": "x"}, RateLimitError, True, 200),
        ({"type": "insufficient_quota", "message": "x"}, QuotaExceededError, False, 200),
        ({"type": "invalid_request_error", "message": "x"}, InvalidRequestError, False, 200),
        ({"type": "authentication_error", "message": "x"}, AuthenticationError, False, 200),
        ("something broke", ServerError, True, 200),
    ],
)
def test_an_error_told_with_a_200_has_its_own_class(
    provider, stream, error, kind, retryable, status
):
    """It is the error it would have been with its own status."""
    reply = CannedReply(headers=JSON, body=dumps({"error": error}))
    with pytest.raises(ProviderError) as caught:
        ask(provider, reply, stream=stream)

    failure = caught.value
    assert type(failure) is kind
    assert (failure.retryable, failure.request_id, failure.provider) == (retryable, "r", provider)
    assert stream or failure.status_code == status  # a frame has only the one it tells


@every_provider
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("body", [{}, {"foo": 1}, {"input_tokens": 3}, {"error": None}])
def test_a_body_without_an_answer_is_no_success(provider, stream, body):
    """Nor is it a model's silence: whoever asked for an answer is told."""
    with pytest.raises(DecodeError, match="The reply is not an answer of") as caught:
        ask(provider, CannedReply(headers=JSON, body=dumps(body)), stream=stream)

    assert (caught.value.request_id, caught.value.retryable) == ("r", False)


def test_a_path_of_ones_own_may_bring_anything():
    """Who asks another endpoint gets its body."""
    options = {"anthropic_messages": {"path": "/v1/messages/count_tokens"}}
    reply = CannedReply(headers=JSON, body=b'{"input_tokens": 3}')

    assert ask("anthropic", reply, provider_options=options).raw == {"input_tokens": 3}


def test_an_answer_that_broke_is_kept_beside_its_error():
    """As it is when it streams; the error's words are not in it again."""
    body = {
        "id": "1",
        "error": {"code": 502, "message": "upstream went away"},
        "choices": [{"finish_reason": "error", "message": {"role": "assistant", "content": "Os"}}],
    }
    with pytest.raises(ServerError, match="upstream went away") as caught:
        ask("openai_compatible", CannedReply(headers=JSON, body=dumps(body)))

    assert caught.value.partial.text == "Os"
    assert "upstream" not in repr(caught.value.partial)


@every_provider
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "failure",
    [
        NetworkError("the reply ended in the middle"),
        DecodeError("the reply is larger than the limit"),
        RequestTimeoutError("no more came", phase="request"),
    ],
)
def test_a_status_outlives_its_body(provider, stream, failure):
    """Cut, too large, packed wrongly or never sent: the status says what it was."""
    for status, kind in ((401, AuthenticationError), (429, RateLimitError), (503, ServerError)):
        with pytest.raises(kind) as caught:
            ask(provider, CannedReply(status=status, body=(b'{"error', failure)), stream=stream)
        assert (caught.value.status_code, caught.value.request_id) == (status, "r")


@pytest.mark.parametrize("body", [None, [], {}, {"error": None}, {"error": {}}, {"data": []}])
def test_no_error_is_told(body):
    """By a body that has none."""
    assert reported_error(body, {}, dialects.get("openai_chat")) is None


@every_provider
def test_a_date_to_wait_for_is_counted_from_our_clock(provider):
    """Where the server does not tell its own."""
    soon = formatdate(time.time() + 3600, usegmt=True)
    reply = CannedReply(status=429, headers={**JSON, "retry-after": soon}, body=b"{}")
    with pytest.raises(RateLimitError) as caught:
        ask(provider, reply)

    assert 3000 < caught.value.retry_after <= 3600
