"""How calls end: errors, retries, aborts and timeouts, by every dialect."""

import asyncio

import pytest

from interlingua.api.run.generate import generate, stream
from interlingua.api.run.options import TimeoutConfig
from interlingua.api.tools.tool import tool
from interlingua.client.retry_policy import RetryPolicy
from interlingua.runtime.cancel import AbortController
from interlingua.simulator import cut, error, pieces, text, tool_call
from interlingua.spec.errors import (
    AbortError,
    AccessDeniedError,
    AuthenticationError,
    ContextLengthError,
    InvalidRequestError,
    NotFoundError,
    RateLimitError,
    RequestTimeoutError,
    SDKError,
    ServerError,
)
from support.blocking import until
from support.requests import ask, every_provider, given, listen, named
from support.simulated import KEY, SLOW, in_virtual_time, run, settled, simulated


@every_provider
def test_errors(provider):
    """A wrong key, a limit, a model that is not there."""
    for status, kind in ((401, AuthenticationError), (429, RateLimitError), (404, NotFoundError)):
        with simulated(error(status)) as peer, pytest.raises(kind):
            ask(peer, provider, max_retries=0)


@every_provider
@pytest.mark.usefixtures("no_backoff")
def test_rate_limits_pass_unseen(provider):
    """One that goes away is waited for."""
    with simulated(error(429, retry_after=0), text("at last")) as peer:
        assert ask(peer, provider).text == "at last"


STATUSES = {
    400: (InvalidRequestError, False),
    401: (AuthenticationError, False),
    403: (AccessDeniedError, False),
    404: (NotFoundError, False),
    413: (ContextLengthError, False),
    429: (RateLimitError, True),
    500: (ServerError, True),
    503: (ServerError, True),
}


@every_provider
@pytest.mark.parametrize("status", STATUSES)
def test_statuses(provider, status):
    """Each is its own error; only those that may pass are tried again, and none with 0 retries."""
    kind, passes = STATUSES[status]
    quick = RetryPolicy(max_retries=2, base_delay=0)
    for way in (ask, listen):
        for options, tries in (({"max_retries": 0}, 1), ({"retry_policy": quick}, 3)):
            with simulated(error(status, "no")) as peer, pytest.raises(kind) as caught:
                way(peer, provider, **options)
            assert caught.value.retryable == passes
            assert len(peer.app.script.received) == (tries if passes else 1)


@every_provider
@pytest.mark.parametrize("jitter", [False, True])
def test_waits_grow(provider, jitter):
    """Each is twice as long as the one before; with chance in it, within a half of that."""
    waits = []
    policy = RetryPolicy(
        max_retries=3,
        base_delay=0.004,
        jitter=jitter,
        on_retry=lambda _, attempt, delay: waits.append((attempt, delay)),
    )
    with simulated(error(503)) as peer, pytest.raises(ServerError):
        ask(peer, provider, retry_policy=policy)

    assert [attempt for attempt, _ in waits] == [0, 1, 2]
    for attempt, wait in waits:
        usual = 0.004 * 2**attempt
        assert 0.5 * usual <= wait <= 1.5 * usual if jitter else wait == usual


@every_provider
def test_a_wrong_key(provider):
    """It is refused, once; the right one is not."""
    with simulated(text("hi"), key="sk-another") as peer:
        with pytest.raises(AuthenticationError):
            ask(peer, provider)
        assert len(peer.app.script.received) == 1
    with simulated(text("hi"), key=KEY) as peer:
        assert ask(peer, provider).text == "hi"


@every_provider
def test_when_to_come_back(provider):
    """What the provider says is on the error; longer than one waits is told at once."""
    with simulated(error(429, retry_after=300)) as peer:
        with pytest.raises(RateLimitError) as caught:
            ask(peer, provider)
        assert len(peer.app.script.received) == 1

    assert caught.value.retry_after == 300


@every_provider
def test_retries_are_of_a_step(provider):
    """A step that fails is made again, not those before it."""
    ran = []

    @tool
    def look() -> str:
        """Look."""
        ran.append(1)
        return "seen"

    quick = RetryPolicy(max_retries=1, base_delay=0)
    answers = (error(500), tool_call("look"), error(500), text("Done."))
    with simulated(*answers) as peer:
        result = ask(peer, provider, tools=[look], retry_policy=quick)
        assert len(peer.app.script.received) == 4

    assert (result.text, ran) == ("Done.", [1])


@every_provider
def test_a_stream_that_breaks_is_not_begun_again(provider):
    """What was told cannot be taken back: the error has it."""
    with simulated(text("word " * 50) + pieces(5) + cut(at=2000)) as peer:
        with pytest.raises(SDKError) as caught:
            listen(peer, provider)
        assert len(peer.app.script.received) == 1

    assert caught.value.partial.text.startswith("wor")


@every_provider
def test_giving_up(provider):
    """An abort signal ends both ways at once, and closes the connection; the partial is kept."""

    async def whole(client, controller):
        asyncio.get_running_loop().call_later(0.1, controller.abort, "enough")
        await generate(named(provider), "hi", client=client, abort_signal=controller.signal)

    async def streamed(client, controller):
        signal = controller.signal
        async for event in stream(named(provider), "hi", client=client, abort_signal=signal):
            if event.type == "text_delta":
                controller.abort("enough")

    async def work(client):
        for way in (whole, streamed):
            with pytest.raises(AbortError, match="enough") as caught:
                await way(client, AbortController())
        for exchange in peer.app.script.received:
            await settled(lambda exchange=exchange: exchange.disconnected is not None)
        return caught.value

    with simulated(SLOW) as peer:
        assert run(peer, work).partial.text.startswith("wor")


@every_provider
@pytest.mark.parametrize("timeout", [TimeoutConfig(total=0.05), TimeoutConfig(per_step=0.05), 0.05])
def test_time_is_over(provider, timeout):
    """The time for everything, and that for one call of the model, in both ways."""
    with simulated(SLOW) as peer:
        for way in (ask, listen):
            with pytest.raises(RequestTimeoutError, match=r"0\.05 s"):
                way(peer, provider, timeout=timeout)
        until(lambda: all(seen.disconnected is not None for seen in peer.app.script.received))


@every_provider
def test_time_covers_tools(provider):
    """That for everything does; that for a call of the model does not."""

    @tool
    async def rest(seconds: float) -> str:
        """Take a while."""
        await asyncio.sleep(seconds)
        return "rested"

    def play(seconds):
        return lambda request: text("ok") if given(request) else tool_call("rest", seconds=seconds)

    with pytest.raises(RequestTimeoutError):
        ask(in_virtual_time(play(60)), provider, tools=[rest], timeout=50)
    peer = in_virtual_time(play(60))
    result = ask(peer, provider, tools=[rest], timeout=TimeoutConfig(per_step=50))

    assert result.text == "ok"
