"""What a streamed run keeps of the wire, and how often it begins."""

import pytest

from interlingua.api.run.generate import stream
from interlingua.client.retry_policy import RetryPolicy
from interlingua.simulator import cut, text, tool_call
from interlingua.spec.errors import SDKError
from support.runs import MODES, named, run_in
from support.simulated import DIALECTS, run, simulated

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))


@every_provider
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "execute"])
@pytest.mark.parametrize("kept", [True, False])
def test_raw_is_kept_where_asked(provider, mode, kept):
    """The wire events of a stream, or nothing; the body of a whole answer as ever."""
    with simulated(text("It rains.")) as peer:
        response = run_in(mode, peer, provider, keep_raw=kept).response

    if mode != "stream":
        assert isinstance(response.raw, dict)
    elif not kept:  # some streams end with the whole body
        assert response.raw is None or (provider == "openai" and isinstance(response.raw, dict))
    else:
        assert len(response.raw) > 1
        assert all(isinstance(event, dict) for event in response.raw[:-1])
        assert "rains" in str(response.raw)


@every_provider
@pytest.mark.parametrize(
    "first",
    [text("Hello there."), tool_call("look", place="Oslo") + tool_call("look", place="Rome")],
)
def test_a_stream_is_retried_until_its_first_content(provider, first):
    """Cut anywhere: before content it begins anew, unseen; after content it fails."""
    outcomes = set()

    async def work(client):
        policy = RetryPolicy(max_retries=1, base_delay=0)
        seen = []
        events = stream(named(provider), "?", client=client, retry_policy=policy)
        try:
            async for event in events:
                seen.append(event)  # noqa: PERF401 -- what came before an error is kept
        except SDKError as error:
            return seen, error
        return seen, None

    size = 3000 if provider == "openai" else 900  # its events are long
    for place in range(0, size, size // 20):
        with simulated(first + cut(place), text("Again.")) as peer:
            seen, error = run(peer, work)
            attempts = len(peer.app.script.received)
        kinds = [event.type for event in seen]
        assert kinds.count("stream_start") == 1
        has_content = "text_delta" in kinds or "tool_call_start" in kinds
        assert has_content
        if attempts == 2:
            assert error is None
            assert seen[-1].response.text == "Again."
        elif error is not None:
            assert error.partial.message.content
        outcomes.add((attempts, error is None))

    assert {(2, True), (1, False)} <= outcomes
