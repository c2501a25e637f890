"""`on_overflow="truncate"`: until it fits, aimed at the limit, also within one long turn."""

from math import ceil, log2

import pytest

from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import tool
from interlingua.history import repair
from interlingua.simulator import error, error_event, text, tool_call
from interlingua.spec.errors import ContextLengthError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.streams.grammar import Grammar
from interlingua.tokens.estimate import estimate_request
from interlingua.wire.classify import overflow_figures
from support.runs import MODES, named, run_in
from support.simulated import DIALECTS, in_virtual_time, simulated
from support.warning_codes import codes

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
every_mode = pytest.mark.parametrize("mode", MODES)

WORDINGS = {
    "anthropic": "prompt is too long: {used} tokens > {limit} maximum",
    "openai": "This model's maximum context length is {limit} tokens. However, your messages "
    "resulted in {used} tokens. Please reduce the length of the messages.",
    "openai_compatible": "the request ({used} tokens) exceeds the available context size "
    "({limit} tokens)",
    "gemini": "The input token count ({used}) exceeds the maximum number of tokens allowed "
    "({limit}).",
    "bedrock_converse": "The model returned the following errors: prompt is too long: {used} "
    "tokens > {limit} maximum",
}
SILENT = "Your input exceeds the context window of this model."


def refusing(limit, answer, wording, fail=error):
    """A server that accepts this many of its tokens, which are a quarter more than ours."""

    def respond(request):
        used = int(estimate_request(request) * 1.25)
        if used > limit:
            return fail(400, wording.format(used=used, limit=limit))
        return answer(request)

    return respond


@every_provider
@every_mode
def test_a_history_is_shortened_to_the_limit(provider, mode):
    """Once, to what the error says fits: not to half, not more than needed."""
    history = [
        message
        for number in range(30)
        for message in (Message.user(f"{number} " + "word " * 100), Message.assistant("Fine."))
    ]
    history = [*history, Message.user("And now?")]
    server = refusing(2000, lambda _: text("Done."), WORDINGS[provider])
    with simulated(server) as peer:
        options = {"on_overflow": "truncate", "system": "Be brief."}
        result = run_in(mode, peer, provider, None, messages=history, **options)
        requests = peer.app.script.requests

    assert result.text == "Done."
    assert len(requests) == 2
    sent = requests[1].messages
    assert (sent[0].text, sent[-1].text) == ("Be brief.", "And now?")
    assert 2000 * 0.75 < estimate_request(requests[1]) * 1.25 <= 2000
    assert len(result.messages) == len(history) + 2


@every_provider
@pytest.mark.parametrize("mode", ["whole", "stream"])
def test_a_history_is_shortened_again_until_it_fits(provider, mode):
    """If the error has no figure, more is left out each time."""
    history = [Message.user(f"{number} " + "word " * 100) for number in range(33)]
    server = refusing(500, lambda _: text("Done."), SILENT)
    with simulated(server, profile={"context_window": None}) as peer:
        result = run_in(mode, peer, provider, None, messages=history, on_overflow="truncate")
        counts = [_parts(request) for request in peer.app.script.requests]

    assert result.text == "Done."
    assert len(counts) > 3
    assert counts == sorted(counts, reverse=True)
    # Converse has no two messages of one role in a row.
    merged = {"messages_merged"} if provider == "bedrock_converse" else set()
    assert {*codes(result)} == {"history_truncated", *merged}
    assert codes(result).count("history_truncated") == 1


def _parts(request):
    return sum(len(message.content) for message in request.messages)


FIGURES = {
    "no figures": SILENT,
    "a limit that is not kept": "This model's maximum context length is 900000 tokens.",
    "the limit alone": "This model's maximum context length is {limit} tokens.",
    "all figures": WORDINGS["openai"],
}


def turns(count):
    """A conversation of so many turns; the last one waits for its answer."""
    pairs = ((f"{number} " + "word " * 20, "Fine.") for number in range(count - 1))
    earlier = [each for user, answer in pairs for each in (user, Message.assistant(answer))]
    return [*earlier, "And now?"]


@pytest.mark.parametrize("late", [False, True], ids=["before the stream", "in the stream"])
@pytest.mark.parametrize("figures", sorted(FIGURES))
@pytest.mark.parametrize(("count", "kept"), [(2, 1), (9, 1), (64, 1), (200, 1), (200, 60)])
@every_provider
def test_a_history_fits_after_a_few_requests(provider, count, kept, figures, late):
    """As many as it takes to halve it, and three: whatever the error says, and where it says so."""
    history = turns(count)
    limit = int(estimate_request(Request(model="m", messages=turns(kept))) * 1.25) + 10
    fail = error_event if late else error
    server = refusing(limit, lambda _: text("Done."), FIGURES[figures], fail)
    seen, peer = [], in_virtual_time(server, profile={"context_window": None})

    async def work():
        options = {"messages": history, "on_overflow": "truncate", "client": peer.client}
        async for event in stream(named(provider), **options):
            seen.append(event)  # noqa: PERF401 -- as far as they came
        if not late:
            assert (await generate(named(provider), **options)).text == "Done."

    peer.run(work())

    requests = peer.app.script.received
    assert len(requests) <= (ceil(log2(count)) + 3) * (1 if late else 2)
    assert seen[-1].response.text == "Done."
    grammar = Grammar()
    for event in seen:
        grammar.feed(event)
    assert [event.type for event in seen].count("stream_start") == 1
    assert "error" not in {event.type for event in seen}


@every_provider
def test_an_overflow_in_a_stream_that_cannot_be_shortened_is_told_in_order(provider):
    """The beginning that was withheld, the error and the end; then the error is raised."""
    server = refusing(5, lambda _: text("Done."), WORDINGS[provider], error_event)
    seen, peer = [], in_virtual_time(server, profile={"context_window": None})

    async def work():
        events = stream(named(provider), "word " * 50, client=peer.client, on_overflow="truncate")
        async for event in events:
            seen.append(event)  # noqa: PERF401 -- as far as they came

    with pytest.raises(ContextLengthError):
        peer.run(work())

    # The first frame of Gemini is the error: there is no beginning.
    told = [] if provider == "gemini" else ["stream_start", "step_start", "error", "finish"]
    assert [event.type for event in seen] == told
    assert len(peer.app.script.received) == 1


def test_an_overflow_after_the_answer_has_begun_is_raised():
    """What was shown cannot be taken back."""
    server = text("Some words.") + error_event(400, WORDINGS["anthropic"].format(used=9, limit=5))
    seen, peer = [], in_virtual_time(server)

    async def work():
        options = {"messages": turns(9), "client": peer.client, "on_overflow": "truncate"}
        async for event in stream(named("anthropic"), **options):
            seen.append(event)  # noqa: PERF401 -- as far as they came

    with pytest.raises(ContextLengthError):
        peer.run(work())

    assert len(peer.app.script.received) == 1
    assert "text_delta" in {event.type for event in seen}


@every_provider
@every_mode
def test_one_long_turn_loses_its_oldest_tool_rounds(provider, mode):
    """In the middle of a run; what was asked stays, and no result is without its call."""
    pages = []

    @tool
    def read(page: int) -> str:
        """Read a page."""
        pages.append(page)
        return "word " * 200

    def answer(_):
        return text("Done.") if len(pages) == 12 else tool_call("read", page=len(pages))

    server = refusing(1500, answer, WORDINGS[provider])
    with simulated(server) as peer:
        result = run_in(
            mode, peer, provider, tools=[read], max_tool_rounds=20, on_overflow="truncate"
        )
        requests = [each for each in peer.app.script.received if each.status == 200]

    assert result.text == "Done."
    assert pages == list(range(12))
    assert len(result.messages) == 26
    for exchange in requests:
        messages = exchange.request.messages
        assert messages[0].text == "?"
        assert repair(messages, DIALECTS[provider]).changes == ()


@every_provider
@every_mode
def test_what_cannot_be_shortened_raises(provider, mode):
    """The last turn alone is too long."""
    server = refusing(100, lambda _: text("Done."), WORDINGS[provider])
    with simulated(server) as peer, pytest.raises(ContextLengthError):
        run_in(mode, peer, provider, "word " * 500, on_overflow="truncate")


@pytest.mark.parametrize("wording", WORDINGS.values())
def test_the_figures_of_an_error(wording):
    """What the prompt had, and what fits, in each vendor's words."""
    assert overflow_figures(wording.format(used=9001, limit=8192)) == (9001, 8192)
    assert overflow_figures(SILENT) == (None, None)
    assert overflow_figures("9" * 100_000 + " tokens > " + "9" * 5000) is not None
