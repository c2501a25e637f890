"""Repairs of media."""

import pytest

from interlingua.history import repair
from interlingua.prepare.media import media_note
from interlingua.spec.content import Audio, Document, Image, Text, ToolCall, ToolResult
from interlingua.spec.messages import Message
from support.facts import HISTORY

CHAT, CLAUDE, GEMINI, RESPONSES = (
    HISTORY[name]
    for name in ("openai_chat", "anthropic_messages", "gemini_generate", "openai_responses")
)
SOUND = Audio(data=b"RIFF", media_type="audio/wav")
PAGE = Document(url="https://x/a.pdf")


@pytest.mark.parametrize(
    ("part", "target"),
    [
        (SOUND, CLAUDE),
        (SOUND, RESPONSES),
        (Audio(url="https://x/a.wav"), CHAT),
        (Image(file_id="file-1"), CHAT),
        (PAGE, CHAT),
    ],
)
def test_a_form_that_the_target_has_not(part, target):
    """It is left out, with a warning at its place."""
    found = repair([Message.user([part, "hi"])], target)

    assert found.messages == (Message.user("hi"),)
    assert [(change.code, change.path) for change in found.changes] == [
        (f"{part.kind}_dropped", "messages[0].content[0]")
    ]


@pytest.mark.parametrize(
    ("part", "target"),
    [
        (SOUND, CHAT),
        (SOUND, GEMINI),
        (Audio(url="data:audio/wav;base64,UklGRg=="), CHAT),
        (Document(text="x"), CHAT),
        (PAGE, CLAUDE),
        (Image(), CHAT),
        (Audio(data=b"x", extra={"openai_responses": {}}), RESPONSES),
    ],
)
def test_what_can_be_said_stays(part, target):
    """A data URL is bytes; what came from the target itself it takes; what is empty it tells."""
    history = (Message.user([part, "hi"]),)

    assert repair(history, target).messages is history


def test_it_goes_before_others_are_moved():
    """A result has a note for what is not there; a message of nothing else goes."""
    result = ToolResult(tool_call_id="a", content=(PAGE, Text(text="page one")))
    history = (
        Message.user([Document(url="https://x/b.pdf")]),
        Message.assistant([ToolCall(id="a", name="f")]),
        Message(role="tool", content=(result,)),
    )

    found = repair(history, CHAT)

    assert found.messages[1:] == (
        Message.tool_result("a", (media_note(PAGE), Text(text="page one"))),
    )
    assert [(change.code, change.path) for change in found.changes] == [
        ("document_dropped", "messages[0].content[0]"),
        ("result_media_as_text", "messages[2].content[0].content[0]"),
        ("empty_message_dropped", "messages[0]"),
    ]
