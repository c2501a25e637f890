"""Editing keeps what does not change, and knows where things were."""

from interlingua.prepare.history.edit import (
    Edits,
    cut,
    edit,
    edit_parts,
    is_unchanged,
    unbind,
    with_fields,
    with_parts,
    without,
)
from interlingua.spec.content import Image, Text, Thinking, ToolCall, ToolResult
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message

HISTORY = (Message.user("one"), Message(role="user", content=(Text(text="a"), Text(text="b"))))
RESPONSES = HistoryRules(dialect="openai_responses", paired_thinking=True, bound=("id", "status"))


def test_places_are_those_of_the_beginning():
    """However often a part is edited and moved, it is told by where it was."""
    edits = Edits(HISTORY)
    part = with_fields(HISTORY[1].content[1], edits, text="c")
    part = with_fields(part, edits, text="d")

    edits.change("surrogates_replaced", part)

    assert edits.place(HISTORY[0]) == "messages[0]"
    assert [warning.path for warning in edits.warnings] == ["messages[1].content[1]"]


def test_what_was_not_there_has_no_place():
    """A part that a repair added points nowhere."""
    edits = Edits(HISTORY)

    assert edits.place(Text(text="new")) is None
    assert edits.place(with_fields(Text(text="new"), edits, text="newer")) is None


def test_edit_gives_the_same_tuple_for_no_change():
    """Identity says that nothing was done."""
    edits = Edits(HISTORY)

    assert edit(HISTORY, lambda message: message) is HISTORY
    assert edit_parts(HISTORY, lambda part, _: part, edits) is HISTORY
    assert cut(HISTORY, {}, RESPONSES, edits) is HISTORY


def test_edit_leaves_out():
    """None leaves a message or part out; a message without parts goes too."""
    edits = Edits(HISTORY)

    assert edit(HISTORY, lambda message: message if message.text != "one" else None) == HISTORY[1:]
    kept = edit_parts(HISTORY, lambda part, _: part if part.text == "b" else None, edits)
    assert kept == (Message.user("b"),)
    assert edits.place(kept[0]) == "messages[1]"


def test_is_unchanged_asks_for_the_same_objects():
    """Equal is not the same, and a prefix is not the whole."""
    parts = [Text(text="a"), Text(text="b")]

    assert is_unchanged(tuple(parts), parts)
    assert not is_unchanged(parts[:1], parts)
    assert not is_unchanged([Text(text="a"), parts[1]], parts)


def test_a_thought_goes_with_what_it_led_to():
    """Where they are paired, the thoughts right before a part go with it; the rest is freed."""
    thought = Thinking(data="x", extra={"openai_responses": {"id": "rs_1"}})
    other = Thinking(text="of another", extra={"elsewhere": {}})
    first, second = (
        ToolCall(id=name, name="look", extra={"openai_responses": {"id": f"fc_{name}"}})
        for name in "ab"
    )
    message = Message.assistant([Text(text="so"), other, thought, thought, first, second])
    edits = Edits((message,))

    kept = without(message, {4}, RESPONSES, edits)

    assert kept.content == (Text(text="so"), other, ToolCall(id="b", name="look"))
    assert {warning.code for warning in edits.warnings} == {"unpaired_thinking_dropped"}
    assert without(message, {5}, RESPONSES, edits).content == message.content[:5]


def test_a_message_without_parts_is_none():
    """Whoever takes out the last part takes out the message."""
    edits = Edits(HISTORY)

    assert without(HISTORY[0], {0}, RESPONSES, edits) is None


def test_unbind_takes_off_what_ties():
    """At the part and at its item; what else is kept stays, and so do other dialects' marks."""
    extra = {
        "openai_responses": {"id": "x", "item": {"id": "msg_1", "phase": "p"}, "logprobs": []},
        "elsewhere": {"id": "y"},
    }
    part = Text(text="so", extra=extra)

    free = unbind(part, RESPONSES, Edits(()))

    assert free.extra == {
        "openai_responses": {"item": {"phase": "p"}, "logprobs": []},
        "elsewhere": {"id": "y"},
    }
    assert unbind(free, RESPONSES, Edits(())) is free


def test_with_parts_keeps_the_rest():
    """Only the content is another."""
    message = Message(role="user", content=(Text(text="a"),), name="Ann", metadata={"k": 1})

    edited = with_parts(message, [Text(text="b")], Edits((message,)))

    assert (edited.text, edited.name, edited.metadata) == ("b", "Ann", {"k": 1})


def test_a_path_in_what_became_of_it():
    """Told by the place in the history as it came; what was not there has none."""
    edits = Edits(HISTORY)
    edited = (Message.user("new"), with_parts(HISTORY[1], HISTORY[1].content[1:], edits))

    assert edits.original_path("messages[1]", edited) == "messages[1]"
    assert edits.original_path("messages[1].content[0]", edited) == "messages[1].content[1]"
    assert edits.original_path("messages[1].name", edited) == "messages[1].name"
    assert edits.original_path("messages[0].content[0]", edited) is None
    assert edits.original_path("temperature", edited) == "temperature"


def test_what_was_narrowed_before_is_known():
    """Parts left out before the repair do not shift the places of the others."""
    picture = Image(url="https://x/a.png")
    shown = ToolResult(tool_call_id="a", content=(picture, Text(text="x")))
    came = (
        Message.user([picture, Text(text="a")]),
        Message(role="tool", content=(shown, ToolResult(tool_call_id="b", content="1"))),
    )
    fewer = ToolResult(tool_call_id="a", content=(Text(text="x"),))
    narrowed = (
        Message(role="user", content=came[0].content[1:]),
        Message(role="tool", content=(fewer, came[1].content[1])),
    )

    edits = Edits(narrowed, came)

    assert edits.place(narrowed[0]) == "messages[0]"
    assert edits.place(narrowed[0].content[0]) == "messages[0].content[1]"
    assert edits.place(fewer) == "messages[1].content[0]"
    assert edits.place(narrowed[1].content[1]) == "messages[1].content[1]"
    assert edits.place(shown.content[1]) == "messages[1].content[0].content[1]"
