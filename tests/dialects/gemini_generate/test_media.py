"""Images, sounds and documents <-> `inlineData` and `fileData`."""

import pytest

from interlingua.dialects.gemini_generate.content import decode_media, encode_media
from interlingua.spec.content import Audio, Document, Image, Opaque
from interlingua.spec.warnings import WarningList

NAME = "gemini_generate"


def encode(part):
    losses = WarningList()
    return encode_media(part, losses), [warning.code for warning in losses.warnings]


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("image/webp", Image),
        ("IMAGE/PNG", Image),
        ("audio/x-wav", Audio),
        ("video/mp4", Document),
        ("application/pdf", Document),
    ],
)
def test_kind_follows_the_media_type(media_type, kind):
    """What is neither image nor sound is a document, video too."""
    wire = {"inlineData": {"mimeType": media_type, "data": "AAE="}}
    part = decode_media(wire)

    assert part == kind(data=b"\0\1", media_type=media_type)
    assert encode(part) == (wire, [])


def test_plain_text_is_a_text_document():
    """Inline plain text is a document one can read."""
    wire = {"inlineData": {"mimeType": "text/plain", "data": "bm90ZXM="}}

    assert decode_media(wire) == Document(text="notes", media_type="text/plain")
    assert encode(Document(text="notes")) == (wire, [])


@pytest.mark.parametrize("data", ["_9j_", "AAE", "AA E=", "_9j_4AAQ\n"])
def test_other_spellings_of_base64_are_kept(data):
    """The URL-safe alphabet, missing padding and blanks are read, and sent again as they were."""
    wire = {"inlineData": {"mimeType": "image/jpeg", "data": data}}
    part = decode_media(wire)

    assert isinstance(part, Image)
    assert encode(part) == (wire, [])


def test_new_bytes_win_over_the_kept_text():
    """Replaced bytes are sent, not the base64 of the old ones."""
    part = decode_media({"inlineData": {"mimeType": "image/jpeg", "data": "_9j_"}})
    changed = Image(data=b"\0\1", media_type="image/jpeg", extra=part.extra)

    assert encode(changed)[0]["inlineData"]["data"] == "AAE="


@pytest.mark.parametrize(
    "wire",
    [
        {"inlineData": {"mimeType": "image/png", "data": "?"}},
        {"inlineData": {"data": "AAE="}},
        {"inlineData": {"mimeType": "image/png"}},
        {"fileData": {"mimeType": "image/png"}},
        {"fileData": {"fileUri": "data:image/png;base64,AAE="}},
        {"inlineData": {"mimeType": "image/png", "data": "AAE="}, "thought": True},
    ],
)
def test_what_cannot_be_rebuilt_is_carried(wire):
    """No base64, no type, no address, or a draft among the thoughts: kept as it is."""
    assert decode_media(wire) == Opaque(dialect=NAME, data=wire)


@pytest.mark.parametrize(
    "wire",
    [
        {"fileData": {"fileUri": "https://youtu.be/x"}, "videoMetadata": {"fps": 2}},
        {"fileData": {"fileUri": "https://example.com/a.png"}},
        {"fileData": {"fileUri": "https://example.com/a.png", "mimeType": ""}},
        {"fileData": {"fileUri": "gs://b/a", "mimeType": "image/png", "displayName": "a"}},
        {
            "inlineData": {"mimeType": "image/png", "data": "AAE=", "displayName": "a"},
            "mediaResolution": {"level": "MEDIA_RESOLUTION_HIGH"},
        },
    ],
)
def test_fields_beside_the_source_are_kept(wire):
    """Names, resolutions and cuts stay, and a missing type is not guessed."""
    assert encode(decode_media(wire)) == (wire, [])


def test_data_urls_become_inline_data():
    """A data URL, base64 or not, is sent as bytes (field bug 31)."""
    coded = Image(url="data:image/png;base64,AAE=")
    plain = Document(url="data:text/csv,a%2Cb")

    assert encode(coded)[0] == {"inlineData": {"mimeType": "image/png", "data": "AAE="}}
    assert encode(plain)[0] == {"inlineData": {"mimeType": "text/csv", "data": "YSxi"}}


@pytest.mark.parametrize(
    ("part", "media_type"),
    [
        (Image(url="https://example.com/a.webp?x=1#y"), "image/webp"),
        (Image(url="https://example.com/a"), "image/png"),
        (Audio(url="https://example.com/a.mp3"), "audio/mpeg"),
        (Document(url="https://example.com/a.pdf"), "application/pdf"),
    ],
)
def test_type_behind_a_url_is_guessed_aloud(part, media_type):
    """A URL goes with a media type; one that was not given is guessed, with a warning."""
    wire, warnings = encode(part)

    assert wire == {"fileData": {"fileUri": part.url, "mimeType": media_type}}
    assert warnings == ["media_type_guessed"]


def test_document_of_unknown_type_goes_without_one():
    """A page, or a video of a host, needs no type."""
    assert encode(Document(url="https://youtu.be/x")) == (
        {"fileData": {"fileUri": "https://youtu.be/x"}},
        [],
    )


def test_uploaded_files():
    """A file of this provider is an address; one of another cannot be said."""
    ours = Document(file_id="files/abc", media_type="application/pdf")

    wire = {"fileData": {"fileUri": "files/abc", "mimeType": "application/pdf"}}
    assert encode(ours) == (wire, [])
    assert encode(Document(file_id="file-1")) == (None, ["document_dropped"])


def test_hints_that_cannot_be_said_warn():
    """File names and image detail are left out with a warning."""
    assert encode(Document(data=b"%PDF-", file_name="a.pdf")) == (
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}},
        ["file_name_dropped"],
    )
    assert encode(Image(data=b"\x89PNG\r\n\x1a\n", detail="high"))[1] == ["detail_dropped"]
    assert encode(Image(data=b"\x89PNG\r\n\x1a\n", detail="auto"))[1] == []
