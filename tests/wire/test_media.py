from __future__ import annotations

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlingua.wire.media import (
    decode_base64,
    encode_base64,
    local_path,
    make_data_url,
    media_type_for,
    parse_data_url,
    sniff,
)

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
ZIP = b"PK\x03\x04" + b"\0" * 8
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
media_types = st.sampled_from(["image/png", "application/vnd.a+json", "text/plain"])


@given(st.binary(max_size=200))
def test_base64_decodes_to_what_was_encoded(data):
    """What is encoded decodes to itself."""
    assert decode_base64(encode_base64(data)) == data


@given(st.binary(max_size=200), st.integers(1, 80))
def test_other_spellings_of_base64_are_read(data, width):
    """The URL-safe alphabet, missing padding and line breaks change nothing."""
    text = base64.urlsafe_b64encode(data).decode().rstrip("=")
    lines = "\r\n".join(text[at : at + width] for at in range(0, len(text), width))
    assert decode_base64(text) == data
    assert decode_base64(f" {lines}\n") == data


@given(st.text() | st.text("AQ=-_+/ \n"))
@example("\ud83d")
def test_base64_never_raises(text):
    """Any text is bytes or None, and bytes mean the text."""
    data = decode_base64(text)
    if data is not None:
        assert len(data) == len("".join(text.split()).rstrip("=")) * 3 // 4


@pytest.mark.parametrize("text", ["A", "AAAAA", "QQ===", "QUJD=", "Q=Q=", "QUJD!", "é", "=", "a.b"])
def test_what_is_not_base64_is_refused(text):
    """Wrong lengths, letters and padding are refused, not repaired."""
    assert decode_base64(text) is None


@given(st.binary(max_size=100), st.none() | media_types)
def test_data_url_round_trip(data, media_type):
    """A data URL gives back its bytes and type."""
    assert parse_data_url(make_data_url(data, media_type)) == (data, media_type)


@given(st.text() | st.text("data:;base64,/%A=").map(lambda text: f"data:{text}"))
@example("data:,\ud83d")
def test_parsing_a_data_url_never_raises(url):
    """Any text is a data URL or None."""
    parse_data_url(url)


@pytest.mark.parametrize(
    ("url", "parsed"),
    [
        ("data:image/png;base64,QUJD", (b"ABC", "image/png")),
        ("DATA:Image/PNG;BASE64,QUJD", (b"ABC", "image/png")),
        ("data:text/plain;charset=utf-8;base64,QUJD", (b"ABC", "text/plain")),
        ("data:text/plain;charset=utf-8,a%20b+c", (b"a b+c", "text/plain")),
        ("data:;base64,QUI%3D", (b"AB", None)),
        ("data:,a,b", (b"a,b", None)),
        ("data:,é", ("é".encode(), None)),
        ("data:image/png;base64,***", None),
        ("data:image/png;base64", None),
        ("data:base64,QUJD", None),
        ("https://example.org/data:,a", None),
    ],
)
def test_data_urls(url, parsed):
    """Base64 and percent forms are read; parameters are left aside."""
    assert parse_data_url(url) == parsed


@given(st.binary(max_size=40))
def test_sniffing_never_raises(data):
    """Any bytes, however short, have a type or None."""
    sniff(data)
    sniff(b"\0\0\0\x18ftyp" + data)
    sniff(b"\xff\xfb" + data)


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"GIF89a\1\0", "image/gif"),
        (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
        (b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0", "image/bmp"),
        (b"II*\0\x08\0", "image/tiff"),
        (b"MM\0*\0\0", "image/tiff"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "image/heic"),
        (b"\0\0\0\x14ftypmif1\0\0\0\0mif1", "image/heif"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", "image/heic"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1avif", "image/avif"),
        (b"\0\0\0\x18ftypavif\0\0\0\0avifmif1", "image/avif"),
        (b"\0\0\0\x18ftypM4A \0\0\0\0M4A mp42", "audio/mp4"),
        (b"\0\0\0\x18ftypisom\0\0\0\0isommp41", "video/mp4"),
        (b"\0\0\0\x14ftypqt  \0\0\0\0qt  ", "video/quicktime"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav"),
        (b"ID3\x04\0\0", "audio/mpeg"),
        (b"\xff\xfb\x90\x64", "audio/mpeg"),
        (b"\xff\xf3\x18\xc4", "audio/mpeg"),
        (b"fLaC\0\0\0\x22", "audio/flac"),
        (b"OggS\0\x02", "audio/ogg"),
        (b"\x1aE\xdf\xa3\x9fB\x86\x81\1B\xf7\x81\1B\x82\x84webm", "video/webm"),
        (b"\x1aE\xdf\xa3\xa3B\x86\x81\1B\x82\x88matroska", "video/x-matroska"),
        (ZIP, "application/zip"),
        (b"", None),
        (b"BMW is a car", None),
        (b"RIFF\x24\0\0\0AVI ", None),
        ("hello".encode("utf-16"), None),
        (b"\xff\xf1\x50\x80", None),
    ],
)
def test_signatures(data, media_type):
    """The first bytes tell the usual kinds of media apart."""
    assert sniff(data) == media_type


@pytest.mark.parametrize(
    ("data", "name", "media_type"),
    [
        (PNG, "photo.jpg", "image/png"),
        (b"a,b", "table.CSV", "text/csv"),
        (b"a,b", "dir.csv/table", "x/default"),
        (b"a,b", ".csv", "x/default"),
        (b"a,b", None, "x/default"),
        (ZIP, "report.docx", DOCX),
        (ZIP, "report.pdf", "application/zip"),
        (b"\0\0\0\x18ftypisom\0\0\0\0isommp41", "song.m4a", "audio/mp4"),
    ],
)
def test_media_type_for(data, name, media_type):
    """Bytes come before the suffix, except that a suffix may say what a container holds."""
    assert media_type_for(data, name, "x/default") == media_type


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("/a.png", "/a.png"),
        ("./a.png", "./a.png"),
        ("../a.png", "../a.png"),
        ("~/a.png", "~/a.png"),
        ("~me/a.png", "~me/a.png"),
        ("C:\\a.png", "C:\\a.png"),
        ("c:/a.png", "c:/a.png"),
        (".\\a.png", ".\\a.png"),
        ("..\\a.png", "..\\a.png"),
        ("\\\\server\\share\\a.png", "\\\\server\\share\\a.png"),
        ("file:///a%20b.png", "/a b.png"),
        ("FILE://localhost/a.png", "/a.png"),
        ("file:/a.png", "/a.png"),
        ("file:a.png", "a.png"),
        ("a.png", "a.png"),
        (".a", ".a"),
        ("my images/a.png", "my images/a.png"),
    ],
)
def test_urls_that_look_like_paths_are_paths(url, path):
    """Absolute, relative, home, drive and `file:` forms are paths."""
    assert local_path(url) == path


@pytest.mark.parametrize(
    "url", ["", "//host/a.png", "https://a/b", "data:,a", "gs://a/b", "c:a", "x:", "host:80/a.png"]
)
def test_what_is_no_local_path(url):
    """URLs and network paths are not."""
    assert local_path(url) is None
