"""Repairs of calls."""

from hypothesis import given
from hypothesis import strategies as st

from interlingua.history import repair
from interlingua.prepare.history.calls import NO_RESULT, is_aborted, is_genuine
from interlingua.prepare.history.edit import RepairPolicy
from interlingua.spec.content import Opaque, Text, Thinking, ToolCall, ToolResult
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message
from support.facts import HISTORY

CHAT, CLAUDE, RESPONSES = (
    HISTORY[name] for name in ("openai_chat", "anthropic_messages", "openai_responses")
)
PAIRED = HistoryRules(dialect="any", paired_calls=True)


def call(call_id, name="look", **fields):
    return ToolCall(id=call_id, name=name, **fields)


def result(call_id, content="ok", **fields):
    return ToolResult(tool_call_id=call_id, content=content, **fields)


def tool(*results):
    return Message(role="tool", content=results)


def codes(found):
    return [change.code for change in found.changes]


def test_an_unanswered_call_gets_an_error_result():
    """The result says that there is none, and stands right after the turn (field bug 14)."""
    history = (Message.user("go"), Message.assistant([call("a"), call("b")]), Message.user("so?"))

    found = repair(history, CLAUDE)

    made = found.messages[2]
    assert [message.role for message in found.messages] == ["user", "assistant", "tool", "user"]
    assert [part.tool_call_id for part in made.content] == ["a", "b"]
    assert all(part.is_error and part.content == NO_RESULT for part in made.content)
    assert [part.name for part in made.content] == ["look", "look"]
    assert codes(found) == ["missing_result_added"] * 2
    assert found.changes[1].path == "messages[1].content[1]"


def test_an_unanswered_call_is_dropped_by_policy():
    """With what is left of the message, or the message whole (field bug 14)."""
    history = (
        Message.assistant([Text(text="let me see"), call("a")]),
        Message.user("so?"),
        Message.assistant(call("b")),
    )

    found = repair(history, CLAUDE, RepairPolicy(unanswered="drop"))

    assert found.messages == (Message.assistant("let me see"), Message.user("so?"))
    assert codes(found) == ["unanswered_call_dropped"] * 2


def test_a_history_that_ends_in_calls_is_answered_too():
    """No provider was seen to accept it otherwise."""
    for target in HISTORY.values():
        found = repair([Message.user("go"), Message.assistant(call("a"))], target)
        assert found.messages[-1].content[0].content == NO_RESULT


def test_a_missing_result_joins_those_that_are_there():
    """It comes after the results of its turn, before what the user says."""
    history = (
        Message.assistant([call("a"), call("b")]),
        tool(result("a")),
        Message.user("so?"),
    )

    found = repair(history, CHAT)

    answered = [part.tool_call_id for message in found.messages[1:3] for part in message.content]
    assert answered == ["a", "b"]
    assert found.messages[3] == history[2]


def test_an_opaque_result_answers():
    """A block that only its own dialect can read may be the result."""
    history = (
        Message.assistant(call("a")),
        tool(Opaque(dialect="openai_responses", data={"type": "x_output", "call_id": "a"})),
    )

    assert repair(history, RESPONSES).changes == ()
    assert codes(repair(history, CHAT)) == ["foreign_block_dropped", "missing_result_added"]


def test_an_orphan_result_is_dropped():
    """A result whose call is gone goes too, and is told (field bug 15)."""
    found = repair([tool(result("gone")), Message.user("hi")], RESPONSES)

    assert found.messages == (Message.user("hi"),)
    assert [(change.code, change.path) for change in found.changes] == [
        ("orphan_result_dropped", "messages[0].content[0]")
    ]


def test_a_result_may_answer_a_call_that_the_server_keeps():
    """With a previous response on the server, what looks like an orphan is none."""
    history = (tool(result("kept")),)
    stored = HistoryRules(dialect="openai_responses", paired_calls=True, stored=True)

    assert repair(history, stored).messages is history


def test_a_second_result_of_a_call_is_dropped():
    """A call takes one."""
    history = (Message.assistant(call("a")), tool(result("a"), result("a", "again")))

    found = repair(history, PAIRED)

    assert found.messages[1] == tool(result("a"))
    assert codes(found) == ["orphan_result_dropped"]


def test_partial_calls_of_an_aborted_turn_are_not_replayed():
    """Nor the results that were made up for them; what did run stays (field bug 16)."""
    aborted = Message(
        role="assistant",
        content=(
            Text(text="let me see"),
            call("ran"),
            call("cut", raw_arguments='{"city": "Bo'),
            call("waits"),
            call("told"),
        ),
        metadata={"finish_reason": "cancelled"},
    )
    made_up = result("told", NO_RESULT, extra={"interlingua": {"synthetic": True}})
    history = (aborted, tool(result("ran"), result("cut"), made_up), Message.user("go on"))

    found = repair(history, CLAUDE)

    assert found.messages[0].content == (Text(text="let me see"), call("ran"))
    assert found.messages[1] == tool(result("ran"))
    assert codes(found) == [
        "aborted_call_dropped",
        "aborted_result_dropped",
        "aborted_call_dropped",
        "aborted_call_dropped",
        "aborted_result_dropped",
    ]


def test_a_made_up_result_is_known_again():
    """A turn that was repaired and then found to be aborted loses call and result."""
    history = (Message.user("go"), Message.assistant(call("a")))
    repaired = repair(history, PAIRED).messages
    assert not is_genuine(repaired[2].content[0])
    cut_short = Message(role="assistant", content=(call("a"),), metadata={"finish_reason": "error"})

    found = repair((repaired[0], cut_short, repaired[2]), PAIRED)

    assert found.messages == history[:1]


def test_a_message_is_aborted_by_its_finish_reason():
    """Of the model's messages only; `length` is an end like others."""
    assert is_aborted(Message(role="assistant", metadata={"finish_reason": "error"}))
    assert not is_aborted(Message(role="assistant", metadata={"finish_reason": "length"}))
    assert not is_aborted(Message(role="user", metadata={"finish_reason": "error"}))


def test_only_the_model_calls():
    """A call in a user's message has no place anywhere."""
    found = repair([Message.user([Text(text="hi"), call("a")])], CHAT)

    assert found.messages == (Message.user("hi"),)
    assert codes(found) == ["misplaced_call_dropped"]


def test_an_empty_id_is_made_and_reused_in_the_result():
    """Each call has one of its own (field bug 7)."""
    for target in HISTORY.values():
        history = (
            Message.user("Look."),
            Message.assistant([call(""), call("")]),
            tool(result("", "1"), result("", "2")),
            Message.assistant(call("")),
            tool(result("", "3")),
        )

        found = repair(history, target)

        made = [part.id for message in found.messages for part in message.tool_calls]
        assert made == ["call_1", "call_2", "call_3"]
        assert [part.tool_call_id for i in (2, 4) for part in found.messages[i].content] == made
        assert codes(found) == ["call_id_made"] * 3


def test_ids_are_mapped_in_call_and_result():
    """The link holds, and other ids stay (field bug 8)."""
    odd = "call_1|fc_" + "x" * 450
    history = (
        Message.assistant([call(odd), call("fine")]),
        tool(result(odd, "1"), result("fine", "2")),
    )

    found = repair(history, CLAUDE)

    first, second = found.messages[0].tool_calls
    assert [part.tool_call_id for part in found.messages[1].content] == [first.id, second.id]
    assert (second.id, len(first.id) <= 64) == ("fine", True)
    assert codes(found) == ["call_id_mapped"]
    assert found.messages[1].content[1] is history[1].content[1]


def test_the_same_id_in_two_steps_keeps_both():
    """Where a result finds its call by id alone, the second pair gets another id (field bug 9)."""
    history = (
        Message.assistant(call("a", "first")),
        tool(result("a", "1")),
        Message.assistant(call("a", "second")),
        tool(result("a", "2")),
    )

    assert repair(history, CLAUDE).messages is history
    found = repair(history, RESPONSES)
    assert [part.id for message in found.messages for part in message.tool_calls] == ["a", "a_2"]
    assert found.messages[3] == tool(result("a_2", "2"))
    assert codes(found) == ["call_id_made"]


def test_an_id_that_is_made_is_free():
    """It is unlike any other in the history."""
    history = (
        Message.assistant([call("a"), call("a"), call("a_2")]),
        tool(result("a", "1"), result("a", "2"), result("a_2", "3")),
    )

    found = repair(history, CLAUDE)

    assert [part.id for part in found.messages[0].tool_calls] == ["a", "a_2_", "a_2"]
    assert [part.tool_call_id for part in found.messages[1].content] == ["a", "a_2_", "a_2"]


def test_invalid_input_is_wrapped_in_an_object():
    """The text is kept, under `input`, where arguments must be an object (field bug 12)."""
    broken = call("a", raw_arguments='{"city": "Bo')
    history = (Message.assistant(broken), tool(result("a", "bad arguments", is_error=True)))

    found = repair(history, CLAUDE)

    assert found.messages[0] == Message.assistant(call("a", arguments={"input": '{"city": "Bo'}))
    assert codes(found) == ["arguments_wrapped"]
    assert repair(history, RESPONSES).messages is history


def test_a_made_up_tool_name_is_made_acceptable():
    """What the model imagined can be replayed (field bug 13)."""
    history = (
        Message.assistant([call("a", "multi tool.use!"), call("b", "")]),
        tool(result("a"), result("b")),
    )

    found = repair(history, CLAUDE)

    assert [part.name for part in found.messages[0].tool_calls] == [
        "multi_tool_use",
        "unnamed_tool",
    ]
    assert codes(found) == ["tool_name_mapped"] * 2


def test_a_name_that_nothing_can_be_made_of_stays():
    """The server will say what it wants."""
    history = (Message.assistant(call("a", "x")),)

    assert repair(history, HistoryRules(dialect="any", call_name="tool-[0-9]+")).messages is history


def test_a_thought_goes_with_its_call():
    """A reasoning item is not replayed without the item that followed it; the rest is freed.

    Field bug 39.
    """
    thought = Thinking(data="enc", extra={"openai_responses": {"id": "rs_1"}})
    marked = {"openai_responses": {"id": "fc_1", "status": "completed"}}
    history = (
        Message.assistant([thought, call("a", extra=marked), call("b", extra=marked)]),
        tool(result("b")),
    )

    found = repair(history, RESPONSES, RepairPolicy(unanswered="drop"))

    assert found.messages == (Message.assistant(call("b")), tool(result("b")))
    assert codes(found) == ["unanswered_call_dropped", "unpaired_thinking_dropped"]


def test_a_result_in_the_message_of_its_tool_call_stays_behind_it():
    """A target that takes results anywhere would find no tool call before it."""
    parts = (ToolCall(id="a", name="look"), ToolResult(tool_call_id="a", content="1"), Text("So."))
    target = HistoryRules(dialect="x", calls_last=True)

    found = repair((Message(role="assistant", content=parts),), target)

    assert [part.kind for part in found.messages[0].content] == ["text", "tool_call", "tool_result"]


def test_calls_stand_last():
    """Where calls are a field beside the content, what was said after them is said before."""
    mixed = Message.assistant([call("a"), Text(text="so"), call("b"), Text(text="then")])
    history = (mixed, tool(result("a"), result("b")))

    found = repair(history, CHAT)

    assert [part.kind for part in found.messages[0].content] == ["text"] * 2 + ["tool_call"] * 2
    assert [(change.code, change.path) for change in found.changes] == [
        ("calls_put_last", "messages[0]")
    ]
    assert repair(found.messages, CHAT).messages is found.messages
    assert repair(history, CLAUDE).messages is history


@given(
    st.text('{}[]"a:1e9,.- \n\\ud8', max_size=12)
    | st.sampled_from(["null", '{"a": NaN}', '{"a": 1e999}', '{"a": "\\ud83d"}', "[" * 5000])
)
def test_argument_text_is_wrapped_just_where_it_is_not_valid(raw):
    """However the text is read, the word of `is_valid` stands."""
    made = call("a", raw_arguments=raw)
    history = (Message.assistant([made]), tool(result("a")))

    found = repair(history, HistoryRules(dialect="any", valid_arguments=True))

    assert (codes(found) == []) is made.is_valid
