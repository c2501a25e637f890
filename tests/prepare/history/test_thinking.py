"""Repairs of thinking."""

import base64

import msgspec
import pytest

from interlingua.dialects.gemini_generate.facts import UNCHECKED_SIGNATURE
from interlingua.history import repair
from interlingua.prepare.history.edit import RepairPolicy
from interlingua.prepare.history.thinking import is_native
from interlingua.spec.content import Image, Text, Thinking, ToolCall, ToolResult
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message
from support.facts import HISTORY

CHAT, CLAUDE, GEMINI, RESPONSES = (
    HISTORY[name]
    for name in ("openai_chat", "anthropic_messages", "gemini_generate", "openai_responses")
)
GEMINI_3 = msgspec.structs.replace(GEMINI, signed_calls=True)
OF_CLAUDE = Thinking(text="hm", signature="sig", extra={"anthropic_messages": {}})
OF_OPENAI = Thinking(text="hm", data="enc", extra={"openai_responses": {"id": "rs_1"}})
OF_GEMINI = Thinking(text="hm", extra={"gemini_generate": {}})
OF_DEEPSEEK = Thinking(text="hm", extra={"openai_chat": {"fields": ["reasoning_content"]}})
CALL = ToolCall(id="a", name="look")
ANSWER = Message.tool_result("a", "ok")


def codes(found):
    return [change.code for change in found.changes]


def rounds(*parts):
    return (Message.user("go"), Message.assistant([*parts, CALL]), ANSWER)


def test_a_signed_thought_goes_back_as_it_came():
    """Byte for byte, and first (field bug 34)."""
    history = rounds(OF_CLAUDE, Text(text="so"))

    assert repair(history, CLAUDE).messages is history


def test_a_redacted_thought_goes_back_as_it_came():
    """With its mark, or made by hand (field bug 35)."""
    marked = Thinking(redacted=True, data="x", extra={"anthropic_messages": {}})
    history = rounds(marked, Thinking(redacted=True, data="y"))

    assert repair(history, CLAUDE).messages is history


def test_signatures_stay_on_their_parts():
    """On calls and on texts, once (field bug 36)."""
    signed = {"gemini_generate": {"thoughtSignature": "c2ln"}}
    call = ToolCall(id="a", name="look", extra=signed)
    history = (
        Message.assistant([OF_GEMINI, Text(text="", extra=signed), call]),
        ANSWER,
    )

    assert repair(history, GEMINI_3).messages is history


@pytest.mark.parametrize("thought", [OF_CLAUDE, OF_OPENAI, OF_GEMINI, OF_DEEPSEEK])
@pytest.mark.parametrize("name", sorted(HISTORY))
def test_a_thought_of_another_is_dropped_with_a_warning(thought, name):
    """It goes back to its maker's dialect, and to no other (field bug 38)."""
    history = rounds(thought)

    found = repair(history, name)

    if name in thought.extra:
        assert found.messages is history
    else:
        assert found.messages == rounds()
        assert [(change.code, change.path) for change in found.changes] == [
            ("foreign_thinking_dropped", "messages[1].content[0]")
        ]


def test_a_thought_of_another_may_be_said_as_text():
    """By policy; what cannot be read is dropped all the same."""
    hidden = Thinking(redacted=True, data="x", extra={"anthropic_messages": {}})

    found = repair(rounds(OF_CLAUDE, hidden), CHAT, RepairPolicy(foreign_thinking="text"))

    assert found.messages == rounds(Text(text="hm"))
    assert codes(found) == ["foreign_thinking_as_text", "foreign_thinking_dropped"]


def test_a_model_that_does_not_think_takes_no_thoughts():
    """Not even those of its own dialect; what was bound to them is freed."""
    target = msgspec.structs.replace(RESPONSES, thinking="none", model="gpt-4o")
    call = ToolCall(id="a", name="look", extra={"openai_responses": {"id": "fc_1"}})
    history = (Message.assistant([OF_OPENAI, call]), ANSWER)

    found = repair(history, target)

    assert found.messages == (Message.assistant(CALL), ANSWER)
    assert found.changes[0].message.startswith("gpt-4o accepts no thinking")


def test_a_thought_without_a_mark_is_judged_by_its_form():
    """Signed is Anthropic's or Gemini's, encrypted OpenAI's; a plain one says nothing of itself."""
    forms = {
        "signed": Thinking(text="hm", signature="s"),
        "redacted": Thinking(redacted=True, data="d"),
        "encrypted": Thinking(data="d"),
        "plain": Thinking(text="hm"),
    }
    natives = {
        name: {form for form, part in forms.items() if is_native(part, target)}
        for name, target in HISTORY.items()
    }

    assert natives == {
        "openai_responses": {"encrypted"},
        "openai_chat": set(),
        "anthropic_messages": {"signed", "redacted"},
        "gemini_generate": {"signed", "plain"},
        "bedrock_converse": {"signed", "redacted"},
    }


def test_a_thought_whose_signature_never_came_is_dropped():
    """As a broken stream leaves it."""
    for signature in (None, ""):
        partial = Thinking(text="hm", signature=signature, extra={"anthropic_messages": {}})

        found = repair(rounds(partial), msgspec.structs.replace(CLAUDE, signed_thinking=True))

        assert found.messages == rounds()
        assert codes(found) == ["unsigned_thinking_dropped"]
        assert repair(rounds(partial), CLAUDE).messages == rounds(partial)


def per_model(target, model):
    return msgspec.structs.replace(target, model=model, thinking_per_model=True)


def test_a_thought_of_another_model_is_stale():
    """Where thoughts are bound to their model; a date or a host makes no other model."""
    message = Message(
        role="assistant",
        content=(OF_CLAUDE, Text(text="so")),
        metadata={"model": "claude-sonnet-5-5-20261001"},
    )

    found = repair([message], per_model(CLAUDE, "claude-opus-5-5"))

    assert found.messages[0].content == (Text(text="so"),)
    assert codes(found) == ["stale_thinking_dropped"]
    for same in ("claude-sonnet-5-5", "anthropic/claude-sonnet-5-5", "claude-sonnet-5-5-latest"):
        assert repair([message], per_model(CLAUDE, same)).changes == ()
    assert repair([message], CLAUDE).changes == ()


def test_on_a_model_change_items_go_back_without_ids():
    """The reasoning item is dropped, and what followed it no longer asks for it (field bug 39)."""
    mark = {"openai_responses": {"item": {"id": "msg_1", "status": "completed"}}}
    call = ToolCall(id="a", name="look", extra={"openai_responses": {"id": "fc_1"}})
    message = Message(
        role="assistant",
        content=(OF_OPENAI, Text(text="so", extra=mark), call),
        metadata={"model": "gpt-5"},
    )

    found = repair([message, ANSWER], per_model(RESPONSES, "gpt-5-mini"))

    item = {"openai_responses": {"item": {}}}
    assert found.messages[0].content == (Text(text="so", extra=item), CALL)
    assert repair([message, ANSWER], per_model(RESPONSES, "gpt-5")).changes == ()


def test_stale_signatures_go_though_no_thought_is_shown():
    """The call gets the stand-in instead, once."""
    call = ToolCall(id="a", name="look", extra={"gemini_generate": {"thoughtSignature": "old"}})
    message = Message(role="assistant", content=(call,), metadata={"model": "gemini-2.5-pro"})
    target = per_model(GEMINI_3, "gemini-3-pro")

    found = repair([message, ANSWER], target)

    assert codes(found) == ["stale_signatures_dropped", "unsigned_call_marked"]
    assert repair(found.messages, target).messages is found.messages


def test_unsigned_calls_get_the_stand_in():
    """The first call of each message; where signatures are not wanted, nothing happens.

    Field bug 37.
    """
    other = ToolCall(id="b", name="look")
    history = (Message.assistant([CALL, other]), Message(role="tool", content=answers("a", "b")))

    found = repair(history, GEMINI_3)

    first, second = found.messages[0].content
    assert first.extra == {"gemini_generate": {"thoughtSignature": UNCHECKED_SIGNATURE}}
    assert base64.b64decode(UNCHECKED_SIGNATURE) == b"skip_thought_signature_validator"
    assert second is other
    assert [(change.code, change.path) for change in found.changes] == [
        ("unsigned_call_marked", "messages[0].content[0]")
    ]
    assert repair(history, GEMINI).messages is history


def answers(*names):
    return tuple(ToolResult(tool_call_id=name, content="ok") for name in names)


def test_unsigned_calls_are_told_as_text_by_policy():
    """Call and result alike, in the roles of who said them; media stay media (field bug 37)."""
    cat = Image(data=b"\x89PNG", media_type="image/png")
    call = ToolCall(id="a", name="look", arguments={"at": "cat"})
    results = (
        ToolResult(tool_call_id="a", content=(Text(text="a cat"), cat)),
        ToolResult(tool_call_id="b", content={"code": 1}, is_error=True),
    )
    history = (Message.assistant([call, ToolCall(id="b", name="run", raw_arguments="{}")]),)

    found = repair(
        (*history, Message(role="tool", content=results)),
        GEMINI_3,
        RepairPolicy(unsigned_calls="text"),
    )

    assert found.messages == (
        Message.assistant(['Called look with {"at":"cat"}', "Called run with {}"]),
        Message.user([Text(text="look returned: a cat"), cat, 'run failed: {"code":1}']),
    )
    assert codes(found) == ["unsigned_call_as_text"] * 2


def test_a_thought_that_nothing_follows_is_dropped():
    """«Provided without its required following item»; Anthropic wants no thought last either.

    Field bug 39.
    """
    for target, thought in ((RESPONSES, OF_OPENAI), (CLAUDE, OF_CLAUDE)):
        history = (
            Message.assistant([Text(text="so"), thought, thought]),
            Message.user("go on"),
            Message.assistant([thought]),
        )

        found = repair(history, target)

        assert found.messages == (Message.assistant("so"), Message.user("go on"))
        assert codes(found) == ["trailing_thinking_dropped"] * 3


def test_a_thought_may_be_followed_in_the_next_message_of_the_turn():
    """Consecutive messages of the model are one turn."""
    history = (Message.assistant([OF_CLAUDE]), Message.assistant("so"), Message.user("ok"))

    assert repair(history, CLAUDE).messages is history


def test_reasoning_content_goes_back_in_a_tool_loop():
    """To the dialect that showed it (field bug 40)."""
    history = rounds(OF_DEEPSEEK)

    assert repair(history, CHAT).messages is history


def test_a_message_of_thoughts_alone_is_skipped():
    """Chat Completions would have to send it empty (field bug 42)."""
    history = (Message.user("go"), Message.assistant([OF_DEEPSEEK]), Message.user("so?"))

    found = repair(history, CHAT)

    assert found.messages == (history[0], history[2])
    assert codes(found) == ["thinking_only_dropped"]


def test_only_the_model_thinks():
    """A thought in another's message can be sent to nobody."""
    found = repair([Message.user([OF_CLAUDE, Text(text="hi")])], CLAUDE)

    assert found.messages == (Message.user("hi"),)
    assert codes(found) == ["foreign_thinking_dropped"]


def test_a_target_may_read_every_thought():
    """As a server side does."""
    history = rounds(OF_CLAUDE, OF_OPENAI)

    assert repair(history, HistoryRules(dialect="any")).messages is history


def test_a_thought_of_another_dialect_is_foreign_not_stale():
    """Whose it is comes before which model's."""
    target = msgspec.structs.replace(CLAUDE, thinking_per_model=True, model="claude-opus-5-5")
    thought = Thinking(text="hm", extra={"openai_chat": {}})
    said = Message(
        role="assistant", content=(thought, Text(text="so")), metadata={"model": "kimi-k3"}
    )

    assert codes(repair((Message.user("x"), said), target)) == ["foreign_thinking_dropped"]
