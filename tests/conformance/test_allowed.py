"""A warning excuses what it names, in the way it says, and no more."""

import pytest

from interlingua import dialects
from interlingua.conformance.allowed import ANYTHING, Expected
from interlingua.conformance.canonical import compare
from interlingua.spec.content import (
    Audio,
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
from interlingua.spec.request import Request
from interlingua.spec.response import Warning

CHAT = dialects.get("openai_chat")


def called(call_id, name="f", **fields):
    return Message.assistant([ToolCall(id=call_id, name=name, **fields)])


def answered(call_id, content="1", **fields):
    return Message.tool_result(call_id, content, **fields)


def back_after(request, *warnings):
    """What is found if exactly these warnings are told of a way through Chat."""
    back = CHAT.decode_request(CHAT.encode_request(request))
    return compare(request, back, tuple(Warning(code=c, message="", path=p) for c, p in warnings))


THOUGHT = Message.assistant([Thinking(text="hm", signature="s"), Text(text="hi")])
FOREIGN = Message.assistant([Opaque(dialect="gemini_generate", data={}), Text(text="hi")])
FAILED = Message(role="tool", content=(ToolResult(tool_call_id="a", content="no", is_error=True),))
CALL, OTHER = ToolCall(id="a", name="f"), ToolCall(id="b", name="f")
CALLED = Message.assistant([CALL])
PICTURE = Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")
SHOWN = Message(role="tool", content=(ToolResult(tool_call_id="a", content=(PICTURE,)),))


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ((Message.user("x"), THOUGHT), [("foreign_thinking_dropped", "messages[1].content[0]")]),
        ((Message.user("x"), FOREIGN), [("foreign_block_dropped", "messages[1].content[0]")]),
        ((CALLED, FAILED), [("tool_error_as_text", "messages[1].content[0]")]),
        ((CALLED, SHOWN), [("result_media_moved", "messages[1].content[0]")]),
        (
            (CALLED,),
            [("missing_result_added", "messages[0].content[0]"), ("tool_error_as_text", None)],
        ),
        ((Message.user("x"), FAILED), [("orphan_result_dropped", "messages[1].content[0]")]),
        (
            (
                Message.assistant([ToolCall(id="a", name="f"), Text(text="so")]),
                Message.tool_result("a", "1"),
            ),
            [("calls_put_last", "messages[0]")],
        ),
    ],
)
def test_a_warning_excuses_what_it_names_and_no_more(messages, told):
    """With the true warnings all is well; without them, or about another place, it is not."""
    request = Request(messages=messages)
    call = CHAT.encode_request(request)
    elsewhere = [
        (code, path and path.replace("[0]", "[9]").replace("[1]", "[9]")) for code, path in told
    ]

    assert [(warning.code, warning.path) for warning in call.warnings] == told
    assert back_after(request, *told) == []
    assert back_after(request) != []
    assert back_after(request, *elsewhere) != []
    assert back_after(request, *((f"{code}_or_so", path) for code, path in told)) != []


@pytest.mark.parametrize(
    ("target", "messages", "code"),
    [
        ("anthropic_messages", (called("a:b"), answered("a:b")), "call_id_mapped"),
        ("anthropic_messages", (called("a", "see!"), answered("a")), "tool_name_mapped"),
        (
            "anthropic_messages",
            (called("a", raw_arguments="["), answered("a")),
            "arguments_wrapped",
        ),
        ("anthropic_messages", (Message.user(["a", " "]),), "blank_text_dropped"),
        (
            "anthropic_messages",
            (called("a"), answered("a", "", is_error=True)),
            "placeholder_added",
        ),
        ("anthropic_messages", (Message.user([Audio(data=b"x"), "a"]),), "audio_dropped"),
        ("anthropic_messages", (Message.assistant([Refusal(text="no")]),), "refusal_as_text"),
        ("anthropic_messages", (Message.user("x", name="ann"),), "name_dropped"),
        ("anthropic_messages", (Message.developer("x"), Message.user("a")), "developer_as_system"),
        ("anthropic_messages", (Message.system("x"),), "placeholder_added"),
        ("gemini_generate", (Message.user("a"), Message.system("x")), "system_folded"),
        ("gemini_generate", (Message.user([Image(url="https://x/a.svg")]),), "media_type_guessed"),
        ("openai_chat", (Message.user([Document(text="a")]),), "document_as_text"),
        ("openai_chat", (Message.user("\ud800 x"),), "surrogates_replaced"),
        (
            "gemini_generate",
            (Message.assistant([CALL, OTHER]), answered("b"), answered("a")),
            "results_reordered",
        ),
        (
            "openai_chat",
            (Message.assistant([CALL]), Message.user("x"), answered("a")),
            "result_moved",
        ),
    ],
)
def test_each_way_of_changing(target, messages, code):
    """All is well with the warnings that are told; without this one it is not, if it matters."""
    request = Request(messages=messages)
    items_of = dialects.get(target)
    call = items_of.encode_request(request)
    back = items_of.decode_request(call)
    others = tuple(warning for warning in call.warnings if warning.code != code)

    assert code in [warning.code for warning in call.warnings]
    assert compare(request, back, call.warnings) == []
    assert (compare(request, back, others) == []) == (code == "media_type_guessed")


def test_a_warning_does_not_excuse_a_loss_elsewhere():
    """A dropped thought is no reason to lose a text, nor is a whole message's."""
    request = Request(messages=(Message.user("x"), THOUGHT))
    empty = Request(messages=(Message.user("x"),))
    told = Warning(code="foreign_thinking_dropped", message="", path="messages[1].content[0]")
    vague = Warning(code="foreign_thinking_dropped", message="", path="messages[1]")

    assert (
        compare(request, Request(messages=(*empty.messages, Message.assistant("hi"))), (told,))
        == []
    )
    assert compare(request, empty, (told,)) != []
    assert compare(request, empty, (vague,)) != []
    assert compare(request, empty, (told, Warning(code="empty_message_dropped", message=""))) != []


def test_what_may_be_anything():
    """Only what a warning leaves open."""
    expected = Expected(Request(messages=(called("a:b"), answered("a:b"))))
    path = "messages[0].content[0]"

    expected.apply(Warning(code="call_id_mapped", message="", path=path))

    assert [item.id is ANYTHING for item in expected.items] == [True, True]
    assert ANYTHING == "x"
    assert repr(ANYTHING) == "anything"
