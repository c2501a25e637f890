"""Histories that are too long: what may be left out."""

from hypothesis import given

from interlingua.conformance.strategies import conversations
from interlingua.history import repair
from interlingua.prepare.history.messages import droppable_units
from interlingua.spec.content import ToolCall, ToolResult
from interlingua.spec.messages import Message

SYSTEM = Message.system("Be brief.")


def tool_round(*ids):
    calls = [ToolCall(id=id_, name="f", arguments={}) for id_ in ids]
    results = tuple(ToolResult(tool_call_id=id_, content="1") for id_ in ids)
    return (Message.assistant(calls), Message(role="tool", content=results))


def turn(number):
    return (
        Message.user(f"question {number}"),
        *tool_round("a"),
        Message.assistant(f"answer {number}"),
    )


def without(history, units):
    dropped = {at for unit in units for at in unit}
    return tuple(message for at, message in enumerate(history) if at not in dropped)


@given(conversations())
def test_units_are_apart_and_never_the_last_of_it(history):
    """They are in order, do not overlap, and leave the instructions and the last message."""
    history = tuple(history)
    units = droppable_units(history)
    places = [at for unit in units for at in unit]

    assert places == sorted(set(places))
    assert len(history) - 1 not in places
    assert all(unit for unit in units)
    assert not any(history[at].role in ("system", "developer") for at in places[:1])


def test_calls_and_results_stay_together():
    """Whole turns go first; what remains needs no repair after any number of them."""
    history = (SYSTEM, *turn(1), *turn(2), *turn(3))
    units = droppable_units(history)

    assert units[:2] == [range(1, 5), range(5, 9)]
    for count in range(len(units) + 1):
        rest = without(history, units[:count])
        assert repair(rest, "anthropic_messages").changes == ()
    assert without(history, units[:1]) == (SYSTEM, *turn(2), *turn(3))


def test_one_long_turn_loses_its_oldest_rounds():
    """Those that are complete, but not the last one, nor what was asked."""
    rounds = [*tool_round("a"), *tool_round("b", "c"), *tool_round("d")]
    history = (SYSTEM, Message.user("?"), *rounds)
    units = droppable_units(history)

    assert units == [range(2, 4), range(4, 6)]
    assert without(history, units) == (SYSTEM, Message.user("?"), *tool_round("d"))
    half = (*rounds[:2], Message.assistant([ToolCall(id="x", name="f", arguments={})]), *rounds[2:])
    assert droppable_units((Message.user("?"), *half)) == [range(1, 3), range(4, 6)]


def test_what_is_asked_is_never_left_out():
    """One turn without rounds before its last is all there is."""
    assert droppable_units((SYSTEM, Message.user("?"), *tool_round("a"))) == []
    assert droppable_units((*turn(1), Message.user("and?"))) == [range(4)]
    assert droppable_units(()) == []
