"""Repairs of messages and their texts."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.history import repair
from interlingua.prepare.history.messages import PLACEHOLDER
from interlingua.spec.content import Document, Image, Opaque, Refusal, Text, ToolCall, ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message
from interlingua.spec.plain_dicts import to_messages
from support.facts import HISTORY

CHAT, CLAUDE, GEMINI, RESPONSES = (
    HISTORY[name]
    for name in ("openai_chat", "anthropic_messages", "gemini_generate", "openai_responses")
)
CAT = Image(data=b"\x89PNG", media_type="image/png")


def codes(found):
    return [change.code for change in found.changes]


def rounds(call, result):
    return (Message.assistant(call), Message(role="tool", content=(result,)))


# Surrogates.


@given(st.text(st.characters()))
def test_any_text_can_be_sent_after_the_repair(text):
    """Whatever the text, it is UTF-8 after; and untouched if it was before (field bug 32)."""
    (message,) = repair([Message.user([text, "x"])], CHAT).messages

    clean = message.content[0].text
    clean.encode()
    try:
        text.encode()
    except UnicodeEncodeError:
        pass
    else:
        assert clean == text


def test_lone_surrogates_become_the_replacement_character():
    """In texts, arguments and results; two halves that met are a character again (field bug 32)."""
    call = ToolCall(id="a", name="look", arguments={"\ud800": ["\udc00", 1]})
    result = ToolResult(tool_call_id="a", content={"text": "x\ud83d\ude00\ud83d"})
    history = (Message.user("a\ud83db"), *rounds(call, result))

    found = repair(history, CHAT)

    assert found.messages[0].text == "a\ufffdb"
    assert found.messages[1].tool_calls[0].arguments == {"\ufffd": ["\ufffd", 1]}
    assert found.messages[2].content[0].content == {"text": "x\U0001f600\ufffd"}
    assert [(change.code, change.path) for change in found.changes] == [
        ("surrogates_replaced", f"messages[{i}].content[0]") for i in range(3)
    ]


def test_argument_text_follows_the_arguments():
    """An escaped half in the text is found through what it parses to."""
    escaped = ToolCall(
        id="a", name="look", arguments={"x": "\ud800"}, raw_arguments='{"x": "\\ud800"}'
    )
    free = ToolCall(id="a", name="run", raw_arguments="x\ud800", type="custom")
    for call, raw in ((escaped, '{"x":"\ufffd"}'), (free, "x\ufffd")):
        result = ToolResult(tool_call_id="a", content="ok")
        found = repair(rounds(call, result), RESPONSES)
        assert found.messages[0].tool_calls[0].raw_arguments == raw


def test_surrogates_within_the_parts_of_a_result():
    """And in documents and refusals."""
    inner = (Text(text="\ud800"), CAT, Document(text="\ud800"), Text(text="ok"))
    result = ToolResult(tool_call_id="a", content=inner)
    refusal = Message.assistant(Refusal(text="no\udfff"))

    found = repair((*rounds(ToolCall(id="a", name="look"), result), refusal), RESPONSES)

    content = found.messages[1].content[0].content
    assert content == (Text(text="\ufffd"), CAT, Document(text="\ufffd"), Text(text="ok"))
    assert found.messages[2].content == (Refusal(text="no\ufffd"),)


def test_what_is_no_json_is_left_to_the_encoder():
    """It tells what is wrong with it."""
    result = ToolResult(tool_call_id="a", content={"x": object()})
    history = rounds(ToolCall(id="a", name="look"), result)

    assert repair(history, RESPONSES).messages is history


# Blanks.


def test_blank_texts_are_left_out():
    """Where the target rejects them; a message left empty goes too (field bug 27)."""
    history = (
        Message.user(["hi", " \n", CAT]),
        Message.assistant(""),
        Message.user("so?"),
    )

    found = repair(history, CLAUDE)

    assert found.messages == (Message.user(["hi", CAT]), history[2])
    assert codes(found) == ["blank_text_dropped"] * 2 + ["empty_message_dropped"]
    assert repair(history, CHAT).messages is history


def test_an_all_blank_last_turn_gets_a_placeholder():
    """The last word stays the user's (field bug 27)."""
    for blank in (Message.user(" "), Message(role="user"), Message.user(["", "\t"])):
        found = repair([Message.user("hi"), Message.assistant("yes?"), blank], CLAUDE)
        assert found.messages[2] == Message.user(PLACEHOLDER)
        assert codes(found)[-1] == "placeholder_added"
    assert repair([Message.user("")], CLAUDE).messages == (Message.user(PLACEHOLDER),)
    assert repair([Message.user("hi"), Message.user("")], CLAUDE).messages == (Message.user("hi"),)
    silence = [Message.system("x"), Message.user(""), Message.assistant("")]
    assert repair(silence, CLAUDE).messages == (silence[0], Message.user(PLACEHOLDER))


def test_an_empty_system_prompt_stays():
    """It is sent as an empty string, which is accepted; as one block of several it is not."""
    history = (Message.system(""), Message.user("hi"))

    assert repair(history, CLAUDE).messages is history
    assert repair((Message.system("x"), *history), CLAUDE).messages == (
        Message.system("x"),
        Message.user("hi"),
    )


def test_empty_messages_are_left_out():
    """Unless the target's own marks say what is in them."""
    marked = Message(role="assistant", extra={"openai_chat": {"audio": {"id": "audio_1"}}})
    history = (Message.user("hi"), Message(role="assistant"), marked, Message.user("so?"))

    assert repair(history, CHAT).messages == (history[0], marked, history[3])
    assert repair(history, GEMINI).messages == (history[0], history[3])


def test_blank_texts_in_results():
    """They are left out; a failure must say something."""
    call = ToolCall(id="a", name="look")
    blank = ToolResult(tool_call_id="a", content=(Text(text=""), CAT))
    silent = ToolResult(tool_call_id="a", content=(Text(text=" "),), is_error=True)

    found = repair(rounds(call, blank), CLAUDE)
    assert found.messages[1].content[0].content == (CAT,)
    found = repair(rounds(call, silent), CLAUDE)
    assert found.messages[1].content[0].content == PLACEHOLDER
    assert codes(found) == ["blank_text_dropped", "placeholder_added"]


def test_a_lone_document_gets_text_beside_it():
    """Where the target wants that, as Bedrock does (field bug 28)."""
    history = (Message.user([Document(data=b"%PDF")]), Message.user(["read", Document(text="x")]))
    target = msgspec.structs.replace(CLAUDE, lone_documents=False)

    found = repair(history, target)

    assert found.messages[0].content == (Document(data=b"%PDF"), Text(text=PLACEHOLDER))
    assert found.messages[1] is history[1]
    assert codes(found) == ["placeholder_added"]
    assert repair(history, CLAUDE).messages is history


# Blocks and roles.


def test_blocks_of_other_dialects_are_left_out():
    """With their message, if they are all of it."""
    block = Opaque(dialect="openai_responses", data={"type": "web_search_call"})
    history = (Message.assistant([block, Text(text="so")]), Message.assistant([block]))

    found = repair(history, CLAUDE)

    assert found.messages == (Message.assistant("so"),)
    assert codes(found) == ["foreign_block_dropped"] * 2
    assert repair(history, RESPONSES).messages is history


def test_a_later_system_message_keeps_its_place():
    """Where it may stay, it does; else the user says it there. It is never hoisted.

    Field bug 30.
    """
    history = (
        Message.system("be kind"),
        Message.user("hi"),
        Message.assistant("hello"),
        Message.system("be brief"),
        Message.user("why?"),
        Message.developer("now"),
    )

    for target in (CHAT, CLAUDE, RESPONSES):
        assert repair(history, target).messages is history
    found = repair(history, GEMINI)
    assert found.messages == (*history[:3], Message.user(["be brief", "why?", "now"]))
    assert [(change.code, change.path) for change in found.changes] == [
        ("system_folded", "messages[3]"),
        ("system_folded", "messages[5]"),
    ]


def test_a_later_system_message_without_neighbours_is_a_message_of_the_user():
    """After results and before the model's next turn."""
    call = ToolCall(id="a", name="look")
    turn = rounds(call, ToolResult(tool_call_id="a", content="ok"))
    history = (*turn, Message.system("be brief"), Message.assistant("ok"))

    found = repair(history, GEMINI)

    assert found.messages == (*turn, Message.user("be brief"), history[3])


def test_a_system_message_between_a_call_and_its_result():
    """The result comes first, wherever the instruction goes."""
    call, result = rounds(ToolCall(id="a", name="look"), ToolResult(tool_call_id="a", content="ok"))

    found = repair((call, Message.system("be brief"), result), CLAUDE)

    assert found.messages == (call, result, Message.system("be brief"))
    assert repair((call, Message.system("be brief"), result), GEMINI).messages == (
        call,
        result,
        Message.user("be brief"),
    )


def test_consecutive_roles_are_merged_where_they_must_be():
    """Results and what the user says are one role to some."""
    call, result = rounds(ToolCall(id="a", name="look"), ToolResult(tool_call_id="a", content="ok"))
    history = (
        Message.system("one"),
        Message.developer("two"),
        Message.user("hi"),
        Message.assistant("let me see"),
        call,
        result,
        Message.user("so?"),
    )

    joined = msgspec.structs.replace(CLAUDE, merge_roles=True)
    found = repair(history, joined)
    assert found.messages == (
        *history[:3],
        Message.assistant(["let me see", *call.content]),
        Message.user([*result.content, "so?"]),
    )
    assert codes(found) == ["messages_merged"]  # the model's two; results and text lose nothing
    apart = repair(history, msgspec.structs.replace(CHAT, merge_roles=True))
    assert [m.role for m in apart.messages] == [
        *("system", "developer", "user", "assistant", "tool", "user")
    ]
    assert repair(history, CLAUDE).messages is history


def test_a_neutral_target_merges_nothing():
    """Consecutive messages of one role are common, and accepted by every dialect."""
    history = (Message.user("a"), Message.user("b"))

    assert repair(history, HistoryRules(dialect="any")).messages is history


def test_something_is_left_to_answer():
    """If nothing but prompts is left of a history, the user says so; of nothing, nothing comes."""
    orphan = Message.tool_result("gone", "1")
    prompt = Message.system("be brief")

    for target in (CLAUDE, GEMINI):
        found = repair((prompt, orphan), target)
        assert found.messages == (prompt, Message.user(PLACEHOLDER))
        assert [change.path for change in found.changes] == ["messages[1].content[0]", None]
        assert codes(found) == ["orphan_result_dropped", "placeholder_added"]
    assert repair((prompt, orphan), CHAT).messages == (prompt,)
    assert repair((orphan,), CHAT).messages == (Message.user(PLACEHOLDER),)
    assert all(repair((), target).messages == () for target in (CLAUDE, GEMINI, CHAT, RESPONSES))
    stored = msgspec.structs.replace(CLAUDE, stored=True)
    assert repair((prompt,), stored).messages == (prompt,)


def test_a_prompt_of_nothing_is_left_out():
    """Only where it came from may it say something; elsewhere it would be blank text."""
    history = (Message(role="system"), Message.user("hi"))

    for target in (CHAT, GEMINI, RESPONSES):
        found = repair(history, target)
        assert found.messages == history[1:]
        assert codes(found) == ["empty_message_dropped"]
    assert repair(history, CLAUDE).messages is history


def test_messages_as_dicts_and_strings():
    """They are repaired as those that they stand for."""
    history = ["Hello.", {"role": "assistant", "content": ""}, {"role": "user", "content": "Well?"}]
    repaired = repair(history, "anthropic_messages").messages
    assert repaired == repair(to_messages(history), "anthropic_messages").messages


@pytest.mark.parametrize(
    "arguments",
    [
        (None, "openai_chat"),
        ([1], "openai_chat"),
        (["?"], None),
        (["?"], "no dialect"),
        (["?"], "openai_chat", "drop"),
    ],
)
def test_what_cannot_be_repaired(arguments):
    """A wrong argument is named."""
    with pytest.raises(ConfigurationError, match=r"messages|target|policy|dialect"):
        repair(*arguments)
