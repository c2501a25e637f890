"""What a history says."""

from interlingua.conformance.allowed import UNLINKED, items_of
from interlingua.spec.content import Document, Image, Opaque, Text, ToolCall, ToolResult
from interlingua.spec.messages import Message


def test_cuts_and_marks_do_not_matter():
    """The same words in other messages, with other marks, say the same."""
    messages = (Message.user([Text(text="a", extra={"x": {"y": 1}}), Text(text="b")]),)
    other = (Message.user("a"), Message.user("b"))

    assert [(item.role, item.text) for item in items_of(messages)] == [("user", "a"), ("user", "b")]
    assert [item.text for item in items_of(other)] == ["a", "b"]
    assert [item.path for item in items_of(other)] == [
        "messages[0].content[0]",
        "messages[1].content[0]",
    ]


def test_links_are_by_number():
    """An id that is used again means the nearest call; one that no call used means none."""
    call = ToolCall(id="a", name="f", arguments={"n": 1})
    history = (
        Message.assistant([call, call]),
        Message.tool_result("a", "1"),
        Message.assistant([call]),
        Message.tool_result("a", {"x": 2}),
        Message.tool_result("a", "3", is_error=True),
        Message.tool_result("b", "4"),
    )

    found = [(item.kind, item.call, item.text, item.is_error) for item in items_of(history)]

    assert found == [
        ("call", 0, None, False),
        ("call", 1, None, False),
        ("result", 0, "1", False),
        ("call", 2, None, False),
        ("result", 2, '{"x":2}', False),
        ("result", 1, "3", True),
        ("result", UNLINKED, "4", False),
    ]


def test_arguments():
    """An object, the text that is none, or what a free-text tool is given."""
    calls = [
        ToolCall(id="a", name="f", arguments={"n": 1}, raw_arguments='{"n": 1}'),
        ToolCall(id="b", name="f", raw_arguments="{"),
        ToolCall(id="c", name="f", raw_arguments="print(1)", type="custom"),
    ]

    assert [item.arguments for item in items_of((Message.assistant(calls),))] == [
        {"n": 1},
        "{",
        {"input": "print(1)"},
    ]


def test_media():
    """Bytes are the same bytes however they are written; a file is of its type's kind."""
    parts = [
        Image(data=b"hi"),
        Image(url="data:image/png;base64,aGk="),
        Document(text="hi"),
        Document(data=b"hi", media_type="audio/mpeg"),
        Image(url="https://x/a.png"),
        Image(file_id="f1"),
        Opaque(dialect="x"),
    ]
    media = items_of((Message.user(parts),))
    result = items_of(
        (Message(role="tool", content=(ToolResult(tool_call_id="a", content=parts),)),)
    )

    assert len({item.source for item in media[:4]}) == 1
    assert [item.kind for item in media] == [
        "image",
        "image",
        "document",
        "audio",
        "image",
        "image",
        "opaque",
    ]
    assert [item.source for item in media[4:]] == ["https://x/a.png", "f1", None]
    assert [item.kind for item in result[0].media] == [item.kind for item in media]
    assert media[2].document_text == "hi"
