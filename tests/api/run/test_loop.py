"""The state machine of the tool loop."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlingua.api.run.loop import MAX_CONTINUATIONS, ToolLoop, join_answers
from interlingua.api.tools.tool import Tool, tool
from interlingua.spec.content import Text, ToolCall, ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolChoice
from interlingua.spec.response import FinishReason, Response, Usage, Warning

REQUEST = Request(model="m", messages="Weather?", request_id="r")
CALL = ToolCall(id="a", name="look", arguments={})


@tool
def look() -> str:
    """Look outside."""
    return "rain"


TOOLS = {"look": look}


def answer(*parts, reason="stop", raw=None, extra=None):
    if any(isinstance(part, ToolCall) for part in parts) and reason == "stop":
        reason = "tool_calls"
    return Response(
        message=Message.assistant(list(parts)),
        finish_reason=FinishReason(reason=reason, raw=raw),
        extra=extra or {},
    )


def result(call=CALL):
    return ToolResult(tool_call_id=call.id, content="rain")


def play(loop, answers):
    """Feed the answers one after another, every call answered; the requests that were made."""
    asked = []
    answers = iter(answers)
    while (request := loop.request) is not None:
        asked.append(request)
        calls = loop.feed(next(answers))
        loop.finish_step([result(call) for call in calls])
    return asked


@given(st.integers(0, 5), st.integers(0, 8))
def test_at_most_that_many_rounds(rounds, calls):
    """N rounds are at most N + 1 requests, and every call that was run has its result."""
    loop = ToolLoop(REQUEST, TOOLS, max_tool_rounds=rounds)
    asked = play(loop, [*[answer(CALL)] * calls, answer(Text(text="done")), answer(CALL)])

    assert len(asked) == min(rounds, calls) + 1
    assert sum(bool(step.tool_results) for step in loop.steps) == min(rounds, calls)
    assert len(loop.steps) == len(asked)


def test_the_conversation_grows():
    """Question, call, result, answer; each request has what was said before it."""
    loop = ToolLoop(REQUEST, TOOLS)
    first, second = play(loop, [answer(CALL), answer(Text(text="It rains."))])

    assert first is REQUEST
    assert [message.role for message in second.messages] == ["user", "assistant", "tool"]
    assert [message.role for message in loop.messages][3:] == ["assistant"]
    assert second.request_id == "r"
    assert loop.steps[0].tool_results == (result(),)
    assert loop.steps[-1].text == "It rains."


@pytest.mark.parametrize("reason", ["length", "content_filter", "cancelled", "error"])
def test_cut_answers_are_not_acted_upon(reason):
    """Their calls may be half, or not meant to be run (field bug 22)."""
    loop = ToolLoop(REQUEST, TOOLS)

    assert loop.feed(answer(CALL, reason=reason)) == ()
    loop.finish_step()
    assert loop.request is None


def test_calls_for_passive_tools_are_the_callers():
    """None of the answer's calls is run then: their results belong together."""
    passive = Tool(name="ask_user")
    tools = {**TOOLS, "ask_user": passive}
    loop = ToolLoop(REQUEST, tools)

    assert loop.feed(answer(CALL, ToolCall(id="b", name="ask_user", arguments={}))) == ()
    assert loop.finish_step().tool_calls[1].name == "ask_user"
    assert loop.request is None
    assert ToolLoop(REQUEST, {"ask_user": passive}).feed(answer(CALL)) == ()


def test_unknown_tools_go_to_the_runner():
    """It tells the model that there are none of that name."""
    unknown = ToolCall(id="b", name="lok", arguments={})

    assert ToolLoop(REQUEST, TOOLS).feed(answer(unknown)) == (unknown,)


def test_stop_when():
    """After the tools have run, before the model is asked again."""
    seen = []

    def stop(steps):
        seen.append(len(steps))
        return len(steps) == 2

    loop = ToolLoop(REQUEST, TOOLS, max_tool_rounds=9, stop_when=stop)
    play(loop, [answer(CALL)] * 9)

    assert seen == [1, 2]
    assert loop.steps[-1].tool_results


@pytest.mark.parametrize("mode", ["required", "named"])
def test_a_forced_tool_is_forced_once(mode):
    """Else the model could never answer."""
    forced = Request(model="m", messages="?", tool_choice=ToolChoice(mode=mode, tool_name="look"))
    _, second = play(ToolLoop(forced, TOOLS), [answer(CALL), answer(Text(text="x"))])

    assert second.tool_choice is None


def test_a_turn_that_the_provider_paused():
    """It is asked to go on with what it has said, a bounded number of times."""
    paused = answer(Text(text="…"), reason="other", raw="pause_turn")
    loop = ToolLoop(REQUEST, {})
    asked = play(loop, [paused, answer(Text(text="done"))])

    assert [message.role for message in asked[1].messages] == ["user", "assistant"]
    assert len(play(ToolLoop(REQUEST, {}), [paused] * 99)) == MAX_CONTINUATIONS + 1


def test_an_answer_to_be_continued():
    """Gemini wants the same request again, with its token; the pieces are one answer."""
    extra = {"gemini_generate": {"candidate": {"continuationToken": "dG9r"}}}
    half = answer(Text(text="one "), reason="length", raw="CONTINUATION", extra=extra)
    loop = ToolLoop(REQUEST, {})
    _, second, third = play(loop, [half, half, answer(Text(text="two"), CALL)])

    assert second.messages == third.messages == REQUEST.messages
    assert second.provider_options == {"gemini_generate": {"continuationToken": "dG9r"}}
    (step,) = loop.steps
    assert step.text == "one one two"
    assert [message.text for message in loop.messages] == ["Weather?", "one one two"]
    lost = answer(Text(text="one "), reason="length", raw="CONTINUATION")
    assert len(play(ToolLoop(REQUEST, {}), [lost])) == 1


@given(st.lists(st.sampled_from(["call", "half", "paused"]), max_size=6))
def test_every_token_counts_once(kinds):
    """At every moment: after an answer, while its tools run, between its pieces."""
    extra = {"gemini_generate": {"candidate": {"continuationToken": "dG9r"}}}
    answers = {
        "call": answer(CALL),
        "half": answer(Text(text="a"), reason="length", raw="CONTINUATION", extra=extra),
        "paused": answer(Text(text="b"), reason="other", raw="pause_turn"),
    }
    loop = ToolLoop(REQUEST, TOOLS, max_tool_rounds=9)
    assert (loop.last_response, loop.total_usage()) == (None, None)
    for number, kind in enumerate([*kinds, "done"], start=1):
        given = answers.get(kind) or answer(Text(text="done"))
        calls = loop.feed(replace(given, usage=Usage(input_tokens=number)))
        so_far = number * (number + 1) // 2
        assert loop.total_usage().input_tokens == so_far
        assert loop.total_usage(loop.last_response).input_tokens == so_far
        loop.finish_step([result(call) for call in calls])
        assert loop.total_usage().input_tokens == so_far
        assert loop.total_usage(Response(usage=Usage(input_tokens=7))).input_tokens == so_far + 7
    assert loop.request is None
    assert loop.last_response is loop.steps[-1].response


def test_a_pause():
    """Nothing is run; the conversation has the calls as they will be, and goes on from there."""
    other = ToolCall(id="b", name="look", arguments={})
    mended = ToolCall(id="a", name="look", arguments={"far": True})
    loop = ToolLoop(REQUEST, TOOLS)
    said = answer(Text(text="Well."), CALL, other)

    assert loop.feed(said) == (CALL, other)
    loop.pause((mended, other), (True, False))
    step = loop.finish_step()
    assert (loop.request, loop.pending_approvals, step.response) == (None, (mended,), said)
    assert loop.messages[-1].content == (Text(text="Well."), mended, other)
    again = ToolLoop(Request(model="m", messages=loop.messages), TOOLS)
    assert again.open_calls() == (mended, other)
    again.resume([result(), result(other)])
    assert [message.role for message in again.request.messages] == ["user", "assistant", "tool"]


@given(st.lists(st.sampled_from(["a", "a_2", "a_3", "b"]), min_size=1, max_size=8))
def test_no_id_stands_for_two_calls_that_wait(ids):
    """A decision about one is none about another; the first keeps its id."""
    calls = [ToolCall(id=name, name="look", arguments={}) for name in ids]
    loop = ToolLoop(REQUEST, TOOLS)
    loop.feed(answer(*calls))
    loop.pause(calls, [True] * len(calls))

    names = [call.id for call in loop.pending_approvals]
    assert len({*names}) == len(names)
    for place, name in enumerate(ids):
        assert (names[place] == name) == (ids.index(name) == place)
    assert loop.messages[-1].tool_calls == loop.pending_approvals


@pytest.mark.parametrize("mode", ["required", "named"])
def test_what_was_resumed_is_a_round(mode):
    """It uses one up, and a tool that had to be called has been."""
    asked = Request(
        model="m",
        messages=[Message.user("?"), Message.assistant([CALL])],
        tool_choice=ToolChoice(mode=mode, tool_name="look"),
    )
    loop = ToolLoop(asked, TOOLS, max_tool_rounds=1)
    loop.resume([result()])

    assert loop.request.tool_choice is None
    assert loop.is_out_of_rounds
    assert loop.feed(answer(CALL)) == ()


def test_calls_that_are_not_open():
    """Only those that the conversation ends with."""
    asked = [Message.user("?"), Message.assistant([CALL]), Message.user("No.")]

    assert ToolLoop(Request(model="m", messages=asked), TOOLS).open_calls() == ()
    assert ToolLoop(Request(model="m"), TOOLS).open_calls() == ()


def test_what_does_not_fit_is_only_not_sent():
    """Neither in this step nor the next; it is still said, and there is a warning, once."""
    said = [Message.system("s"), *(Message.user(f"{n}") for n in range(8))]
    loop = ToolLoop(Request(model="m", messages=said), TOOLS)
    assert loop.shorten()
    assert loop.shorten()
    first, second = play(loop, [answer(CALL), answer(Text(text="done"))])

    assert [message.text for message in first.messages] == ["s", "6", "7"]
    assert [message.text for message in second.messages] == ["s", "6", "7", "", ""]
    assert loop.messages[:9] == tuple(said)
    assert len(loop.messages) == 12
    (warning,), none = [step.warnings for step in loop.steps]
    assert (warning.code, none) == ("history_truncated", ())
    assert "6 oldest messages" in warning.message
    assert not ToolLoop(REQUEST, {}).shorten()


def test_pieces_of_an_answer_keep_what_they_have():
    """The warnings of both, and what a provider wants echoed on either text."""
    one, two = Warning(code="a", message="x"), Warning(code="b", message="y")
    first = replace(answer(Text(text="one ", extra={"d": {"p": 1}})), warnings=(one,))
    then = replace(answer(Text(text="two", extra={"d": {"q": 2}})), warnings=(one, two))
    whole = join_answers(first, then)

    assert whole.warnings == (one, two)
    assert whole.message.content == (Text(text="one two", extra={"d": {"p": 1, "q": 2}}),)


def test_wrong_use():
    """Told, not guessed."""
    with pytest.raises(ConfigurationError, match="max_tool_rounds"):
        ToolLoop(REQUEST, {}, max_tool_rounds=-1)
    with pytest.raises(ConfigurationError, match="feed before finish_step"):
        ToolLoop(REQUEST, {}).finish_step()


def test_asked_again_after_the_end():
    """The conversation goes on with what is said, the answer before it included."""
    loop = ToolLoop(REQUEST, TOOLS)
    play(loop, [answer(Text(text="wrong"))])
    loop.ask_again([Message.user("Again.")])

    assert [message.text for message in loop.request.messages] == ["Weather?", "wrong", "Again."]
    assert loop.request.request_id == "r"


def test_out_of_rounds():
    """Only where tools have run: with none to run, nothing was ever used up."""
    for rounds, was_run in ((0, False), (1, True), (2, False)):
        loop = ToolLoop(REQUEST, TOOLS, max_tool_rounds=rounds)
        assert not loop.is_out_of_rounds
        play(loop, [answer(CALL), answer(Text(text="done"))])
        assert loop.is_out_of_rounds is was_run


CHOICES = [
    (ToolChoice(), ToolChoice()),
    (ToolChoice(allowed="look"), ToolChoice(allowed="look")),
    (ToolChoice(mode="required"), None),
    (ToolChoice(mode="required", allowed="look"), ToolChoice(allowed="look")),
    (ToolChoice(mode="named", tool_name="look"), None),
]


@pytest.mark.parametrize(("choice", "later"), CHOICES)
def test_a_resumed_run_asks_with_the_results_and_requires_no_tool_again(choice, later):
    """The request after a resume has the results of the open calls, and the caller's settings."""
    history = (*REQUEST.messages, Message.assistant([CALL]))
    request = replace(REQUEST, messages=history, tool_choice=choice, temperature=0.5, max_tokens=77)
    loop = ToolLoop(request, TOOLS, max_tool_rounds=2)

    loop.resume([result()])

    assert loop.request.messages[: len(history)] == history
    (message,) = loop.request.messages[len(history) :]
    assert message.role == "tool"
    assert message.content == (result(),)
    assert loop.messages == loop.request.messages
    assert (loop.request.temperature, loop.request.max_tokens) == (0.5, 77)
    assert loop.request.tool_choice == later
