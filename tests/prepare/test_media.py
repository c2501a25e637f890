"""Media the model does not read."""

import pytest
from msgspec.structs import replace

from interlingua.prepare.media import drop_media
from interlingua.spec.content import Audio, Document, Image, Text, ToolResult
from interlingua.spec.contracts import Profile
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList


def told_by(request, profile):
    """What is left of a request, and the warnings as code and path."""
    losses = WarningList()
    left = drop_media(request, profile, losses)
    return left, [(warning.code, warning.path) for warning in losses.warnings]


PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("part", "fields", "kept"),
    [
        (Image(data=PNG), {"image_types": ("image/png",)}, True),
        (Image(data=PNG), {"image_types": ("image/*",)}, True),
        (Image(data=PNG), {"image_types": ("image/webp",)}, False),
        (Image(data=PNG), {"image_types": ()}, False),
        (Image(data=PNG), {"audio_types": ()}, True),
        (Image(data=b"?", media_type="image/jpg"), {"image_types": ("image/jpeg",)}, True),
        (Image(url="data:image/bmp;base64,AA=="), {"image_types": ("image/png",)}, False),
        (Image(url="https://example.com/a"), {"image_types": ("image/png",)}, True),
        (Image(file_id="f"), {"image_types": ()}, False),
        (Audio(data=b"?", media_type="audio/mp3"), {"audio_types": ("audio/mpeg",)}, True),
        (Audio(data=b"?", media_type="audio/ogg"), {"audio_types": ("audio/wav",)}, False),
        (
            Document(data=b"?", media_type="Text/Plain; charset=utf-8"),
            {"document_types": ("text/plain",)},
            True,
        ),
        (
            Document(text="# hi", media_type="text/markdown"),
            {"document_types": ("text/plain",)},
            True,
        ),
        (Document(text="hi"), {"document_types": ()}, False),
        (
            Document(data=b"?", media_type="video/mp4"),
            {"document_types": ("application/pdf",)},
            False,
        ),
    ],
)
def test_media(part, fields, kept):
    """Media are kept if the model reads their type, or if nobody can tell."""
    request = Request(messages=[Message.user(["see", part])])

    clamped, told = told_by(request, Profile(**fields))

    assert (clamped is request) == kept
    if not kept:
        assert clamped.messages[0].content == (Text(text="see"),)
        assert told == [(f"{part.kind}_dropped", "messages[0].content[1]")]


def test_media_in_tool_results():
    """A result has a note for what cannot be read; other parts and messages are the same."""
    result = ToolResult(tool_call_id="1", content=(Text(text="here"), Image(data=PNG)))
    plain = ToolResult(tool_call_id="2", content="text")
    request = Request(messages=[Message.user("hi"), Message(role="tool", content=(result, plain))])

    clamped, told = told_by(request, Profile(image_types=()))

    assert clamped.messages[0] is request.messages[0]
    note = Text(text="[The tool returned media that this model cannot read: image (image/png).]")
    assert clamped.messages[1].content == (
        replace(result, content=(Text(text="here"), note)),
        plain,
    )
    assert told == [("result_media_as_text", "messages[1].content[0].content[1]")]
