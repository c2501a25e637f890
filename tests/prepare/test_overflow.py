"""Histories that were too long."""

from hypothesis import given
from hypothesis import strategies as st

from interlingua.conformance.strategies import conversations
from interlingua.history import repair
from interlingua.prepare.history.messages import drop_oldest_turns
from interlingua.spec.content import ToolCall, ToolResult
from interlingua.spec.messages import Message

CALL = ToolCall(id="a", name="f", arguments={})


def turn(number):
    return (
        Message.user(f"question {number}"),
        Message.assistant([CALL]),
        Message(role="tool", content=(ToolResult(tool_call_id="a", content="1"),)),
        Message.assistant(f"answer {number}"),
    )


@given(conversations(), st.floats(0, 1))
def test_what_is_left_is_an_end_of_it(history, keep):
    """The instructions at the start, then the last messages, unchanged and in order."""
    history = tuple(history)
    left = drop_oldest_turns(history, keep)
    prompts = [message for message in left if message.role in ("system", "developer")]
    rest = left[len([m for m in prompts if m in history[: len(prompts)]]) :]

    assert rest == history[len(history) - len(rest) :]
    assert all(any(message is known for known in history) for message in left)
    assert len(left) <= len(history)


def test_calls_and_results_stay_together():
    """Half of four turns is two whole ones."""
    history = (Message.system("Be brief."), *turn(1), *turn(2), *turn(3), *turn(4))
    left = drop_oldest_turns(history)

    assert left == (Message.system("Be brief."), *turn(3), *turn(4))
    assert repair(left, "anthropic_messages").changes == ()


def test_what_is_asked_is_never_left_out():
    """One turn is all there is, and repeated dropping ends there."""
    history = (Message.system("Be brief."), *turn(1))

    assert drop_oldest_turns(history) is history
    assert drop_oldest_turns((*turn(1), Message.user("and?"))) == (Message.user("and?"),)
    assert drop_oldest_turns(()) == ()
