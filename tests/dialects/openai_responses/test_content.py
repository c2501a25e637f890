"""Parts <-> content parts."""

import pytest

from interlingua.dialects.openai_responses.content import (
    INPUT_TEXT,
    OUTPUT_TEXT,
    decode_content,
    decode_part,
    encode_part,
)
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Opaque,
    Refusal,
    Text,
    Thinking,
)
from interlingua.spec.errors import DecodeError
from interlingua.wire.carry import Losses

NAME = "openai_responses"
PNG = b"\x89PNG\r\n\x1a\n"
PNG_URL = "data:image/png;base64,iVBORw0KGgo="


def say(part, kind=INPUT_TEXT):
    losses = Losses()
    return encode_part(part, kind, losses, "here"), [warning.code for warning in losses.warnings]


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "input_text", "text": " a\n"}, Text(text=" a\n")),
        (
            {"type": "output_text", "text": "a", "annotations": []},
            Text(text="a", extra={NAME: {"annotations": [], "type": "output_text"}}),
        ),
        (
            {"type": "input_image", "image_url": PNG_URL, "detail": "low"},
            Image(data=PNG, media_type="image/png", detail="low"),
        ),
        (
            {"type": "input_image", "image_url": "https://e.com/a.png", "detail": "auto"},
            Image(url="https://e.com/a.png", detail="auto"),
        ),
        (
            {"type": "input_image", "file_id": "file-1", "detail": "high"},
            Image(file_id="file-1", detail="high"),
        ),
        (
            {
                "type": "input_file",
                "file_data": "data:application/pdf;base64,JVBERg==",
                "filename": "a",
            },
            Document(data=b"%PDF", media_type="application/pdf", file_name="a"),
        ),
        (
            {"type": "input_file", "file_url": "https://e.com/a.pdf", "filename": "a.pdf"},
            Document(url="https://e.com/a.pdf", file_name="a.pdf"),
        ),
        (
            {"type": "input_file", "file_id": "file-1", "filename": "a.pdf", "detail": "low"},
            Document(file_id="file-1", file_name="a.pdf", extra={NAME: {"detail": "low"}}),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
            Audio(data=b"RIFF", media_type="audio/wav"),
        ),
        (
            {"type": "hologram", "x": [1]},
            Opaque(dialect=NAME, data={"type": "hologram", "x": [1]}),
        ),
    ],
)
def test_both_ways(block, part):
    """Each kind of content part has its canonical part, and back."""
    assert part == decode_part(block, "", INPUT_TEXT)
    assert (block, []) == say(part)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo", "detail": "auto"},
        {"type": "input_image", "image_url": "data:;base64,iVBORw0KGgo=", "detail": "auto"},
        {"type": "input_image", "image_url": "data:text/plain,hi%20there", "detail": "auto"},
        {"type": "input_image", "image_url": None, "file_id": None, "detail": "auto"},
        {"type": "input_image", "image_url": PNG_URL, "file_id": None, "detail": "auto"},
        {"type": "input_file", "file_data": "JVBERi0xLjQK"},
        {"type": "input_file", "file_data": "not base64 at all!", "filename": "a"},
        {"type": "input_file", "file_url": "https://e.com/a.pdf"},
        {"type": "input_file"},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "ogg"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg", "format": "wav"}},
        {"type": "text", "text": "not a kind of this API"},
        {"type": "input_text", "text": "", "prompt_cache_breakpoint": {"mode": "explicit"}},
    ],
)
def test_odd_forms_come_back_as_they_were(block):
    """What writing the bytes would change is kept as it came."""
    assert (block, []) == say(decode_part(block, "", INPUT_TEXT))


def test_field_bug_31_data_url_without_base64():
    """A percent-coded data URL is decoded, not refused."""
    block = {"type": "input_image", "image_url": "data:text/plain,hi%20there"}

    part = decode_part(block, "", INPUT_TEXT)

    assert (part.data, part.media_type) == (b"hi there", "text/plain")


def test_string_is_one_text():
    """Content may be a string."""
    assert (Text(text="a"),) == decode_content("a", "", OUTPUT_TEXT)


def test_refusal():
    """The model's refusal is a part of its own; anyone else's is text, with a warning."""
    block = {"type": "refusal", "refusal": "No."}

    assert Refusal(text="No.") == decode_part(block, "", OUTPUT_TEXT)
    assert (block, []) == say(Refusal(text="No."), OUTPUT_TEXT)
    assert say(Refusal(text="No.")) == ({"type": "input_text", "text": "No."}, ["refusal_as_text"])


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (
            Image(data=PNG),
            {"type": "input_image", "image_url": PNG_URL, "detail": "auto"},
        ),
        (
            Document(data=b"%PDF-1"),
            {
                "type": "input_file",
                "file_data": "data:application/pdf;base64,JVBERi0x",
                "filename": "document.pdf",
            },
        ),
        (
            Document(text="hi"),
            {
                "type": "input_file",
                "file_data": "data:text/plain;base64,aGk=",
                "filename": "document.txt",
            },
        ),
        (
            Document(url="data:application/pdf;base64,JVBERi0x", file_name="a.pdf"),
            {
                "type": "input_file",
                "file_data": "data:application/pdf;base64,JVBERi0x",
                "filename": "a.pdf",
            },
        ),
        (
            Audio(url="data:audio/mpeg;base64,SUQz"),
            {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
        ),
    ],
)
def test_parts_made_by_hand(part, block):
    """What the API requires is added: media types, a file name, the detail of an image."""
    assert (block, []) == say(part)


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (Audio(data=b"fLaC", media_type="audio/flac"), "audio_of_this_kind_dropped"),
        (Audio(url="https://e.com/a.mp3"), "audio_of_this_kind_dropped"),
        (Image(), "image_of_this_kind_dropped"),
        (Document(), "document_of_this_kind_dropped"),
        (Opaque(dialect="gemini_generate", data={}), "block_of_gemini_generate_dropped"),
        (Thinking(text="x"), "thinking_inside_a_message_dropped"),
    ],
)
def test_what_cannot_be_said(part, code):
    """It is left out with a warning."""
    assert (None, [code]) == say(part)


def test_media_of_the_model():
    """A message of the model holds text only."""
    assert say(Image(data=PNG), OUTPUT_TEXT) == (None, ["image_of_the_model_dropped"])


@pytest.mark.parametrize(
    ("block", "path"),
    [
        (5, "c[0]"),
        ({"type": "input_text"}, "c[0].text"),
        ({"type": "input_text", "text": 5}, "c[0].text"),
        ({"type": "input_image", "image_url": {"url": "x"}}, "c[0].image_url"),
        ({"type": "input_file", "file_data": 5}, "c[0].file_data"),
    ],
)
def test_wrong_types(block, path):
    """A wrong type is an error that names the place."""
    with pytest.raises(DecodeError) as caught:
        decode_content([block], "c", INPUT_TEXT)

    assert path == caught.value.path
