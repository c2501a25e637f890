"""Images, files and audio <-> their content parts."""

import pytest
from msgspec.structs import replace

from interlingua.dialects.openai_responses.content import decode_content, decode_part, encode_part
from interlingua.dialects.openai_responses.facts import INPUT_TEXT, OUTPUT_TEXT
from interlingua.spec.content import Audio, Document, Image
from interlingua.spec.errors import DecodeError
from interlingua.spec.warnings import WarningList

NAME = "openai_responses"
PNG = b"\x89PNG\r\n\x1a\n"
PNG_URL = "data:image/png;base64,iVBORw0KGgo="


def say(part, kind=INPUT_TEXT):
    losses = WarningList()
    return encode_part(part, kind, losses), [warning.code for warning in losses.warnings]


@pytest.mark.parametrize(
    ("block", "part"),
    [
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
            Audio(data=b"RIFF", media_type="audio/wav", extra={NAME: {}}),
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
    ],
)
def test_odd_forms_come_back_as_they_were(block):
    """What writing the bytes would change is kept as it came."""
    assert (block, []) == say(decode_part(block, "", INPUT_TEXT))


def test_a_data_url_without_base64_is_decoded():
    """A percent-coded data URL is decoded, not refused (field bug 31)."""
    block = {"type": "input_image", "image_url": "data:text/plain,hi%20there"}

    part = decode_part(block, "", INPUT_TEXT)

    assert (part.data, part.media_type) == (b"hi there", "text/plain")


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
    ],
)
def test_parts_made_by_hand(part, block):
    """What the API requires is added: media types, a file name, the detail of an image."""
    assert (block, []) == say(part)


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (Audio(data=b"RIFF", media_type="audio/wav"), "audio_dropped"),
        (Audio(url="data:audio/mpeg;base64,SUQz"), "audio_dropped"),
        (Audio(url="https://e.com/a.mp3"), "audio_dropped"),
        (
            Audio(data=b"fLaC", media_type="audio/flac", extra={NAME: {}}),
            "audio_dropped",
        ),
        (Image(), "image_dropped"),
        (Document(), "document_dropped"),
    ],
)
def test_what_cannot_be_said(part, code):
    """It is left out with a warning."""
    assert (None, [code]) == say(part)


def test_media_of_the_model():
    """A message of the model holds text only."""
    assert say(Image(data=PNG), OUTPUT_TEXT) == (None, ["image_dropped"])


@pytest.mark.parametrize(
    ("block", "path"),
    [
        ({"type": "input_image", "image_url": {"url": "x"}}, "c[0].image_url"),
        ({"type": "input_file", "file_data": 5}, "c[0].file_data"),
    ],
)
def test_wrong_types(block, path):
    """A wrong type is an error that names the place."""
    with pytest.raises(DecodeError) as caught:
        decode_content([block], "c", INPUT_TEXT)

    assert path == caught.value.path


def test_detail_is_given_only_to_images_of_others():
    """An image that came without `detail` goes back without; ours get the default."""
    block = {"type": "input_image", "image_url": "https://example.com/a.png"}

    for came in (block, {**block, "detail": "low"}, {**block, "image_url": None, "file_id": "f"}):
        assert say(decode_part(came, "p", INPUT_TEXT)) == (came, [])
    assert say(Image(url="u"))[0] == {"type": "input_image", "image_url": "u", "detail": "auto"}


def test_changed_media_are_encoded_anew():
    """The content part kept in `extra` is used only while it still has the same meaning."""
    block = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo"}
    part = decode_part(block, "p", INPUT_TEXT)

    new = {"type": "input_image", "image_url": "data:image/png;base64,bmV3", "detail": "auto"}

    assert (new, []) == say(replace(part, data=b"new"))


@pytest.mark.parametrize("kept", [5, {}, {"type": "input_image", "image_url": 5}])
def test_a_kept_part_that_cannot_be_decoded_is_ignored(kept):
    """`extra` may come from stored JSON."""
    part = Image(url="u", extra={NAME: {"~wire": kept}})

    assert say(part) == ({"type": "input_image", "image_url": "u", "detail": "auto"}, [])
