"""Repairs of results."""

import msgspec
import pytest

from interlingua.history import repair
from interlingua.prepare.history.edit import Edits
from interlingua.prepare.history.results import join
from interlingua.spec.content import Document, Image, Text, ToolCall, ToolResult
from interlingua.spec.messages import Message
from support.facts import HISTORY

CHAT, CLAUDE, GEMINI, RESPONSES = (
    HISTORY[name]
    for name in ("openai_chat", "anthropic_messages", "gemini_generate", "openai_responses")
)
CAT = Image(data=b"\x89PNG", media_type="image/png")


def calls(*names):
    return Message.assistant([ToolCall(id=name, name="look") for name in names])


def result(call_id, content="ok", **fields):
    return ToolResult(tool_call_id=call_id, content=content, **fields)


def tool(*results):
    return Message(role="tool", content=results)


def codes(found):
    return [change.code for change in found.changes]


def test_a_result_is_moved_up_to_its_call():
    """What stood between comes after; a message left empty goes."""
    history = (calls("a"), Message.user("wait"), Message.assistant("well"), tool(result("a")))

    found = repair(history, CLAUDE)

    assert found.messages == (history[0], history[3], *history[1:3])
    assert [(change.code, change.path) for change in found.changes] == [
        ("result_moved", "messages[3].content[0]")
    ]
    assert repair(history, RESPONSES).messages is history


def test_results_stand_together():
    """Text between two results of a turn comes after both."""
    mixed = Message.user([result("a"), Text(text="and")])
    history = (calls("a", "b"), mixed, tool(result("b")), Message.user("so"))

    found = repair(history, CHAT)

    assert found.messages == (calls("a", "b"), tool(result("b")), mixed, history[3])
    assert codes(found) == ["result_moved"]


def test_grouped_calls_are_paired_again_where_adjacency_is_needed():
    """Two messages of calls, then their results: each gets its own, unless the server joins.

    Field bug 17.
    """
    history = (calls("a"), calls("b"), tool(result("a"), result("b")))

    found = repair(history, CHAT)

    assert found.messages == (calls("a"), tool(result("a")), calls("b"), tool(result("b")))
    assert repair(history, CLAUDE).messages is history
    assert repair(history, RESPONSES).messages is history


def test_results_in_the_models_own_message_are_moved_out():
    """As a hand-made history may have them."""
    parts = (*calls("a").content, result("a"), Text(text="so"))
    found = repair([Message(role="assistant", content=parts)], CLAUDE)

    assert found.messages == (
        Message.assistant([parts[0], parts[2]]),
        tool(result("a")),
    )


def test_results_in_a_system_message_are_moved_out():
    """Only the user, or the tool, says them."""
    found = repair([calls("a"), Message(role="system", content=(result("a"),))], CLAUDE)

    assert found.messages == (calls("a"), tool(result("a")))
    assert codes(found) == ["result_moved"]


def test_results_are_put_in_the_order_of_their_calls():
    """Where results may have no id, their order tells which calls they answer (field bug 18)."""
    one = (calls("a", "b", "c"), tool(result("a"), result("b"), result("c")))
    other = (calls("a", "b", "c"), tool(result("c"), result("a"), result("b")))

    found = repair(other, GEMINI)

    assert found.messages == one
    assert codes(found) == ["results_reordered"]


def test_results_are_ordered_across_messages():
    """The results change places before their messages become one."""
    history = (calls("a", "b"), tool(result("b")), tool(result("a")))

    found = repair(history, GEMINI)

    assert found.messages == (calls("a", "b"), tool(result("a"), result("b")))


@pytest.mark.parametrize("target", [CHAT, CLAUDE, RESPONSES], ids=lambda rules: rules.dialect)
def test_results_by_id_keep_their_order(target):
    """Where a result names its call, any order is accepted and stays."""
    history = (calls("a", "b", "c"), tool(result("c"), result("a"), result("b")))

    assert repair(history, target).messages is history


def test_the_order_that_the_target_saw_stays():
    """Results that came from its own dialect were accepted as they stand."""
    own = {"gemini_generate": {"absent": ["id"]}}
    history = (calls("a", "b"), tool(result("b", extra=own)), tool(result("a", extra=own)))

    assert repair(history, GEMINI).messages is history


def test_results_come_first_in_their_message():
    """The rest keeps its order."""
    history = (calls("a"), Message.user([Text(text="x"), result("a"), CAT]))

    found = repair(history, CLAUDE)

    assert found.messages[1].content == (result("a"), Text(text="x"), CAT)
    assert codes(found) == ["results_put_first"]


def test_consecutive_tool_messages_become_one():
    """For those that want the results of a turn in one message (field bug 19)."""
    history = (calls("a", "b"), tool(result("a")), tool(result("b")), Message.user("so"))
    for target in (CLAUDE, GEMINI):
        found = repair(history, target)
        assert found.messages == (history[0], tool(result("a"), result("b")), history[3])
        assert codes(found) == ["results_gathered"]
    for target in (CHAT, RESPONSES):
        assert repair(history, target).messages is history


def test_an_image_in_a_result_follows_in_a_user_message():
    """Where a result holds only text: after all the results of the turn (field bug 25)."""
    history = (
        calls("a", "b"),
        tool(result("a", (Text(text="a cat"), CAT))),
        tool(result("b", (CAT,))),
        Message.assistant("cats"),
    )

    found = repair(history, CHAT)

    assert found.messages == (
        history[0],
        tool(result("a", (Text(text="a cat"),))),
        tool(result("b", (Text(text="The output is in the next user message."),))),
        Message.user(
            [Text(text="Output of tool call a:"), CAT, Text(text="Output of tool call b:"), CAT]
        ),
        history[3],
    )
    assert [(change.code, change.path) for change in found.changes] == [
        ("result_media_moved", "messages[1].content[0]"),
        ("result_media_moved", "messages[2].content[0]"),
    ]
    for target in (CLAUDE, GEMINI, RESPONSES):
        assert target.result_media


def test_media_at_the_end_are_moved_too():
    """The last results need no message after them."""
    found = repair([calls("a"), tool(result("a", (Document(data=b"%PDF"),)))], CHAT)

    assert found.messages[2].content[1] == Document(data=b"%PDF")


def test_media_that_the_server_takes_there_stay():
    """They came from it in that place."""
    seen = msgspec.structs.replace(CAT, extra={"openai_chat": {"in_place": True}})
    history = (calls("a"), tool(result("a", (seen,))))

    assert repair(history, CHAT).messages is history


def test_a_list_of_texts_is_a_result_like_text():
    """The form does not matter to any rule (field bug 26)."""
    texts = (Text(text="1"), Text(text="2"))
    history = (Message.user("Look."), calls("a"), tool(result("a", texts)))
    for target in HISTORY.values():
        assert repair(history, target).messages is history


def test_join_keeps_what_is_said_of_all():
    """Names, marks and metadata that differ would lie about the other half."""
    left = Message(role="tool", content=(result("a"),), metadata={"k": 1, "m": 1}, id="1")
    right = Message(role="user", content=(result("b"), Text(text="x")), metadata={"k": 1, "m": 2})

    joined = join([left, right], Edits((left, right)))

    assert joined == Message(
        role="user", content=(result("a"), result("b"), Text(text="x")), metadata={"k": 1}, id="1"
    )


@pytest.mark.parametrize("target", [CHAT, CLAUDE, GEMINI])
@pytest.mark.parametrize("silent", [Message.assistant([Text("")]), Message.assistant([])])
def test_an_empty_turn_between_a_call_and_its_result_goes(target, silent):
    """Google's SDK keeps the empty end of a stream: it must not look like an answer."""
    history = (Message.user("hi"), calls("a"), silent, tool(result("a")), Message.user("so"))

    found = repair(history, target)

    roles = [message.role for message in found.messages if message.role == "assistant"]
    assert roles == ["assistant"]
    assert "empty_message_dropped" in codes(found)
    assert "result_moved" not in codes(found)


def test_an_empty_turn_elsewhere_is_left_alone():
    """Only one that waits for a result is no turn of its own."""
    history = (Message.user("hi"), Message.assistant([Text("")]), calls("a"), tool(result("a")))

    assert repair(history, CHAT).messages == history
