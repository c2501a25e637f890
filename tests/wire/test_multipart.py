"""Forms as multipart/form-data, read back by the standard library."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.spec.contracts import FormPart
from interlingua.spec.errors import ConfigurationError
from interlingua.wire.multipart import FormBody, decode_form, encode_form, is_repeatable
from support.forms import Streamed, read_form

names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
forms = st.lists(st.tuples(names, st.binary(max_size=200)), min_size=1, max_size=4)


async def whole(body):
    return b"".join([piece async for piece in body])


@given(forms)
def test_a_form_is_read_as_it_was_written(form):
    """Whatever bytes the files hold."""
    parts = tuple(FormPart(name=n, content=c, file_name=f"{n}.bin") for n, c in form)
    content_type, body = encode_form(parts, lambda: "unused")

    assert read_form(content_type, body) == [
        (name, f"{name}.bin", "application/octet-stream", content) for name, content in form
    ]
    assert encode_form(parts, lambda: "unused") == (content_type, body)


@given(forms)
def test_a_streamed_form_is_the_same_form(form):
    """Its size is known if that of each file is."""
    parts = tuple(FormPart(name=n, content=Streamed(c, len(c)), file_name="f") for n, c in form)
    content_type, body = encode_form(parts, lambda: "a-boundary")
    sent = asyncio.run(whole(body))

    assert isinstance(body, FormBody)
    assert len(sent) == body.size
    assert [part[3] for part in read_form(content_type, sent)] == [content for _, content in form]


def test_fields_and_files():
    """A field has no media type of its own; a file may have one."""
    parts = (
        FormPart(name="purpose", content="zweck für alle"),
        FormPart(name="file", content=b"{}", file_name="a.jsonl", media_type="application/jsonl"),
    )
    _, body = encode_form(parts, lambda: "unused")

    assert b'form-data; name="purpose"\r\n\r\nzweck f\xc3\xbcr alle\r\n' in body
    assert b'name="file"; filename="a.jsonl"\r\ncontent-type: application/jsonl\r\n\r\n{}' in body


@pytest.mark.parametrize("name", ['a"b', "a\r\nx-evil: 1", "a\nb", "a\rb"])
def test_a_name_cannot_end_its_header(name):
    """A file's name may come from anywhere."""
    _, body = encode_form((FormPart(name="f", content=b"", file_name=name),), lambda: "unused")
    head = body.split(b"\r\n\r\n")[0]

    assert head.count(b"\r") == head.count(b"\n") == 2  # boundary, disposition, media type
    assert head.count(b'"') == 4


def test_a_size_that_one_file_does_not_tell_is_unknown():
    """Then the body is sent in chunks."""
    parts = tuple(FormPart(name="f", content=Streamed(b"x", size)) for size in (1, None))

    assert encode_form(parts, lambda: "b")[1].size is None


def test_what_can_be_sent_again():
    """Bytes and iterables can; an iterator is used up."""

    async def generate():
        yield b"x"

    once = generate()
    assert is_repeatable(b"x")
    assert is_repeatable(Streamed(b"x"))
    assert not is_repeatable(once)
    assert is_repeatable(FormBody([b"a", Streamed(b"x")]))
    assert not is_repeatable(FormBody([b"a", once]))


@pytest.mark.parametrize("media_type", ["text/plain\r\nx-evil: 1", "text/plain\n", "a\ud800"])
def test_a_media_type_cannot_end_its_header(media_type):
    """It is refused: it may come from anywhere, too."""
    part = FormPart(name="f", content=b"", file_name="f", media_type=media_type)
    with pytest.raises(ConfigurationError, match="not a media type"):
        encode_form((part,), lambda: "unused")


def test_lone_surrogates():
    """A name that is not valid Unicode, as some files have, is sent with U+FFFD; so is a text."""
    file = FormPart(name="f", content=b"", file_name="caf\udce9.txt")
    parts = (file, FormPart(name="prompt", content="a\ud800b \ud83d\ude00"))
    content_type, body = encode_form(parts, lambda: "unused")

    named, text = decode_form(content_type, body)
    assert named.file_name == "caf\N{REPLACEMENT CHARACTER}.txt"
    assert text.content == "a\N{REPLACEMENT CHARACTER}b \N{GRINNING FACE}"
