"""Each trigger is found where it is, and a sound history shows none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.prepare.history.edit import Edits, scan_of
from interlingua.prepare.history.scan import HistoryScan, scan_history
from interlingua.spec.content import (
    Document,
    Image,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.messages import Message

ASK = Message.user("how cold is it?")
CALL = ToolCall(id="a", name="look", arguments={"city": "Köln"})
OTHER = ToolCall(id="b", name="look")
RESULT = ToolResult(tool_call_id="a", content="4 °C")
ANSWERED = Message(role="tool", content=(RESULT,))
UNSOUND = {"unpaired_calls", "split_results", "calls_not_last"}


def says(*parts):
    return Message(role="assistant", content=parts)


def results(*ids, role="tool"):
    return Message(role=role, content=tuple(ToolResult(tool_call_id=i, content="ok") for i in ids))


def conditions(*messages):
    """The triggers that are no kinds of parts."""
    return {trigger for trigger in HistoryScan(messages).triggers if isinstance(trigger, str)}


def test_a_sound_history_shows_only_its_kinds():
    """Calls answered at once, in their order, give no cause for anything."""
    history = (
        Message.system("be brief"),
        ASK,
        says(Text(text="I look"), CALL, OTHER),
        results("a", "b"),
        says(Text(text="cold")),
        Message.user([Text(text="thanks"), Image(url="https://example.com/a.png")]),
    )

    assert HistoryScan(history).triggers == {Text, ToolCall, ToolResult, Image}
    assert HistoryScan(history).calls == [CALL, OTHER]


def test_what_follows_the_results_is_no_sign():
    """A user may go on speaking in the message that holds the results."""
    more = Message(role="user", content=(RESULT, Text(text="well?")))

    assert conditions(ASK, says(CALL), more) == set()


@pytest.mark.parametrize(
    ("trigger", "messages"),
    [
        ("split_results", [says(CALL, OTHER), results("a"), results("b")]),
        ("calls_not_last", [says(CALL, Text(text="so")), ANSWERED]),
        ("repeated_id", [says(CALL), ANSWERED, says(CALL), ANSWERED]),
        ("repeated_id", [says(ToolCall(id="", name="f")), results("")]),
        ("raw_arguments", [says(ToolCall(id="a", name="f", raw_arguments="{}")), ANSWERED]),
        ("blank_text", [Message.user("")]),
        ("blank_text", [says(Refusal(text=" \n"))]),
        ("blank_text", [says(CALL), Message.tool_result("a", (Text(text=""),))]),
        ("blank_text", [says(CALL), Message.tool_result("a", "", is_error=True)]),
        ("invalid_unicode", [Message.user("half \ud83d")]),
        ("invalid_unicode", [Message.user([Document(text="half \ud83d")])]),
        (
            "invalid_unicode",
            [says(ToolCall(id="a", name="f", arguments={"x": "\ud83d"})), ANSWERED],
        ),
        ("invalid_unicode", [says(CALL), Message.tool_result("a", {"x": ["\ud83d"]})]),
        ("invalid_unicode", [says(CALL), Message.tool_result("a", [Text(text="\ud83d")])]),
        ("empty_message", [Message(role="user")]),
        (
            "has_metadata",
            [Message(role="assistant", metadata={"model": "m"}, content=(Thinking(text="hm"),))],
        ),
        ("late_system", [ASK, Message.developer("be brief")]),
        ("no_turn", [Message.system("be brief")]),
        ("no_turn", []),
        ("adjacent_roles", [ASK, ASK]),
        ("adjacent_roles", [says(CALL), ANSWERED, ASK]),
    ],
)
def test_each_condition_alone(trigger, messages):
    """A history with one thing amiss shows that one."""
    assert conditions(*messages) - ({"adjacent_roles"} - {trigger}) == {trigger}


@pytest.mark.parametrize(
    "messages",
    [
        [says(CALL)],
        [ANSWERED],
        [says(CALL), ASK, ANSWERED],
        [says(CALL), ANSWERED, ANSWERED],
        [says(CALL), says(Text(text="so")), ANSWERED],
        [says(CALL, OTHER), results("b", "a")],
        [says(CALL, OTHER), results("a"), ASK, results("b")],
        [says(CALL), Message(role="user", content=(Text(text="so"), RESULT))],
        [says(CALL), results("a", role="system")],
        [says(CALL, RESULT)],
        [Message(role="user", content=(CALL,)), ANSWERED],
    ],
)
def test_what_is_not_each_others(messages):
    """Calls and results in any other order are looked at by every rule about them."""
    assert conditions(*messages) - {"late_system", "adjacent_roles"} == UNSOUND


def test_opaque_blocks_may_be_calls():
    """Only the target can tell, so the pairs must be looked at."""
    assert conditions(ASK, says(Opaque(dialect="x", data={}), CALL), ANSWERED) == {"unpaired_calls"}
    assert conditions(ASK, says(Opaque(dialect="x", data={}))) == set()


def test_what_is_inside_results_is_seen():
    """The kinds of parts that results hold are triggers too."""
    image = Image(url="https://example.com/a.png")

    assert Image in HistoryScan((says(CALL), Message.tool_result("a", [image]))).triggers


def test_it_is_made_once():
    """Rules that ask about the same history share what was seen."""
    history = (ASK,)
    edits = Edits(history)

    assert scan_of(history, edits) is scan_of(history, edits)
    assert scan_of((ASK, ASK), edits) is not scan_of(history, edits)


def test_a_scan_is_of_one_history():
    """A scan that was made before is used for the very same tuple of messages, and no other."""
    scan = HistoryScan((ASK,))

    assert scan_history(scan.messages, scan) is scan
    assert scan_history((ASK, ASK), scan).parts == [*ASK.content, *ASK.content]
    assert scan_history((ASK,), None).texts == ["how cold is it?"]


def test_media_and_size():
    """Media are found in messages and inside results; the size is that of texts and bytes."""
    image = Image(data=b"12345")
    inside = Message.tool_result("a", (Text(text="123"), image))

    assert not HistoryScan((ASK, says(CALL), ANSWERED)).holds_media
    assert not HistoryScan((Message.tool_result("a", (Text(text="123"),)),)).holds_media
    assert HistoryScan((Message.user(["?", image]),)).holds_media
    assert HistoryScan((inside,)).holds_media
    assert HistoryScan((inside,)).rough_size == 8
    assert HistoryScan((ASK, says(Thinking(text="hm"), CALL), ANSWERED)).rough_size == 15 + 2 + 4
    assert HistoryScan((Message.tool_result("a", {"x": 1}),)).rough_size == 0


texts = st.sampled_from(["hi", "", " ", "naïve", "half \ud83d"])
talk = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(["user", "assistant", "system", "tool"]),
        content=texts.map(lambda text: (Text(text=text),)) | st.just(()) | st.just((CALL,)),
        metadata=st.sampled_from([{}, {"model": "m", "finish_reason": "error"}]),
    ),
    max_size=4,
).map(tuple)


@given(talk)
def test_plain_talk_is_sound(history):
    """What is seen at once shows no trigger at the second look either."""
    if HistoryScan(history).is_plain():
        assert HistoryScan(history).triggers == {Text}


def test_most_talk_is_plain():
    """The user and the model by turns, after a prompt or without one."""
    said = says(Text(text="so"))

    assert HistoryScan((ASK,)).is_plain()
    assert HistoryScan((Message.system("be brief"), ASK, said, ASK)).is_plain()
    assert not HistoryScan((Message.system("be brief"),)).is_plain()
    assert not HistoryScan((ASK, ASK)).is_plain()
    assert not HistoryScan((ASK, said, Message.system("be brief"), ASK)).is_plain()
