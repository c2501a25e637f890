"""Images, audio and documents."""

import base64

import pytest

from interlingua.dialects.openai_chat.content import decode_part, encode_part
from interlingua.dialects.openai_chat.facts import ChatQuirks
from interlingua.spec.content import Audio, Document, Image, Opaque
from interlingua.spec.warnings import WarningList

NAME = "openai_chat"
PNG = b"\x89PNG\r\n\x1a\n"
PDF = b"%PDF-1.4"
WAV = b"RIFF\0\0\0\0WAVE"


def coded(data):
    return base64.b64encode(data).decode()


def encode(part, **quirks):
    losses = WarningList()
    block = encode_part(part, losses, ChatQuirks(**quirks))
    return block, [warning.code for warning in losses.warnings]


BOTH_WAYS = [
    (
        {"type": "image_url", "image_url": {"url": "https://x/a.png", "detail": "low"}},
        Image(url="https://x/a.png", detail="low"),
    ),
    (
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{coded(PNG)}"}},
        Image(data=PNG, media_type="image/png"),
    ),
    (
        {"type": "image_url", "image_url": {"url": "https://x", "format": "png"}},
        Image(url="https://x", extra={NAME: {"image_url": {"format": "png"}}}),
    ),
    (
        {"type": "image_url", "image_url": "https://x"},
        Image(url="https://x", extra={NAME: {"~sent_as": "text"}}),
    ),
    (
        {"type": "input_audio", "input_audio": {"data": coded(WAV), "format": "wav"}},
        Audio(data=WAV, media_type="audio/wav"),
    ),
    (
        {"type": "input_audio", "input_audio": {"data": coded(WAV), "format": "mp3"}},
        Audio(data=WAV, media_type="audio/mpeg"),
    ),
    (
        {"type": "input_audio", "input_audio": {"data": coded(WAV), "format": "flac"}},
        Audio(data=WAV, media_type="audio/flac", extra={NAME: {"~in_place": True}}),
    ),
    (
        {"type": "input_audio", "input_audio": coded(WAV)},
        Audio(data=WAV, extra={NAME: {"~sent_as": "text"}}),
    ),
    ({"type": "file", "file": {"file_id": "f1"}}, Document(file_id="f1")),
    (
        {
            "type": "file",
            "file": {
                "file_data": f"data:application/pdf;base64,{coded(PDF)}",
                "filename": "a.pdf",
            },
        },
        Document(data=PDF, media_type="application/pdf", file_name="a.pdf"),
    ),
    (
        {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{coded(PDF)}"}},
        Document(
            data=PDF,
            media_type="application/pdf",
            extra={NAME: {"~without": ["file.filename"]}},
        ),
    ),
    (
        {"type": "file", "file": {"file_data": "https://x/a.pdf", "filename": "a.pdf"}},
        Document(url="https://x/a.pdf", file_name="a.pdf", extra={NAME: {"~sent_as": "file_data"}}),
    ),
    (
        {"type": "video_url", "video_url": {"url": "https://x/a.webm"}},
        Document(
            url="https://x/a.webm",
            media_type="video/webm",
            extra={NAME: {"~sent_as": "video_url"}},
        ),
    ),
    (
        {"type": "document_url", "document_url": "https://x/a.pdf", "document_name": "a"},
        Document(url="https://x/a.pdf", file_name="a", extra={NAME: {"~sent_as": "document_url"}}),
    ),
]


@pytest.mark.parametrize(("wire", "part"), BOTH_WAYS)
def test_both_ways(wire, part):
    """Each kind of part is read and written back the same."""
    assert decode_part(wire) == part
    assert encode(part) == (wire, [])


@pytest.mark.parametrize(
    "wire",
    [
        {"type": "image_url", "image_url": 5},
        {"type": "input_audio", "input_audio": {"data": "%%%", "format": "wav"}},
        {"type": "file", "file": {"file_data": "JVBERi0", "filename": "a.pdf"}},
        {"type": "file", "file": {}},
    ],
)
def test_what_has_no_part_is_kept(wire):
    """Media of a shape we could not rebuild stay as they are."""
    part = decode_part(wire)

    assert part == Opaque(dialect=NAME, data=wire)
    assert encode(part) == (wire, [])


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (Image(file_id="f"), "image_dropped"),
        (Image(), "image_dropped"),
        (Audio(url="https://x/a.wav"), "audio_dropped"),
        (Audio(data=b"OggS", media_type="audio/ogg"), "audio_dropped"),
        (Document(url="https://x/a.pdf"), "document_dropped"),
        (Document(), "document_dropped"),
    ],
)
def test_what_cannot_be_said_is_warned_of(part, code):
    """Left out, with a warning that says what."""
    assert encode(part) == (None, [code])


def test_data_url_that_cannot_be_rebuilt_stays_an_address():
    """Bytes are taken out of an address only if they give it back to the letter."""
    url = "data:image/png;charset=x;base64,iVBO"

    assert decode_part({"type": "image_url", "image_url": {"url": url}}) == Image(url=url)


def test_foreign_image_bytes_get_a_media_type():
    """A data URL needs one: what the bytes show, else PNG."""
    assert encode(Image(data=PNG))[0]["image_url"]["url"].startswith("data:image/png;")
    assert encode(Image(data=b"?"))[0]["image_url"]["url"].startswith("data:image/png;")


def test_foreign_document_gets_a_name():
    """A file that is sent inline must have one."""
    block, codes = encode(Document(data=PDF, media_type="application/pdf"))

    assert block["file"]["filename"] == "document.pdf"
    assert codes == []


def test_text_document_is_sent_as_text():
    """There are no text documents here."""
    assert encode(Document(text="hi", media_type="text/plain")) == (
        {"type": "text", "text": "hi"},
        ["document_as_text"],
    )


def test_audio_in_a_data_url_is_sent():
    """An address that holds the bytes is as good as the bytes."""
    part = Audio(url=f"data:audio/x-wav;base64,{coded(WAV)}")

    assert encode(part)[0]["input_audio"] == {"data": coded(WAV), "format": "wav"}


def test_quirks_of_parts():
    """Servers that take more formats, or documents by address."""
    ogg = Audio(data=b"OggS", media_type="audio/ogg")
    address = Document(url="https://x/a.pdf", file_name="a")

    assert encode(ogg, audio_formats=("ogg",))[0]["input_audio"]["format"] == "ogg"
    assert encode(address, document_url=True) == (
        {"type": "document_url", "document_url": "https://x/a.pdf", "document_name": "a"},
        [],
    )
