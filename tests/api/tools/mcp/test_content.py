"""Results of MCP tools."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.api.tools.mcp.tools import decode_result
from interlingua.spec.content import PART_TYPES, Audio, Document, Image, Text

PNG = b"\x89PNG\r\n\x1a\n rest"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
BLOCKS = st.one_of(
    JSON,
    st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "image", "audio", "resource", "resource_link", "new"])},
        optional={
            "text": JSON,
            "data": st.sampled_from(["", "AAAA", "A", "é"]),
            "mimeType": st.sampled_from(["image/png", "audio/wav", "", "x"]),
            "uri": st.sampled_from(["file:///a.png", "http://[", "", "x"]),
            "resource": JSON
            | st.fixed_dictionaries(
                {"uri": st.just("a:b")}, optional={"text": st.text(), "blob": st.text()}
            ),
        },
    ),
)


def coded(data):
    return base64.b64encode(data).decode()


def decode(*blocks, **fields):
    return decode_result({"content": list(blocks), **fields}, "t").content


def text(said):
    return {"type": "text", "text": said}


@given(st.lists(BLOCKS, max_size=4), JSON, st.booleans())
def test_any_result_is_decoded(blocks, structured, is_error):
    """Nothing that a server sends raises an error."""
    wire = {"content": blocks, "structuredContent": structured, "isError": is_error}
    result = decode_result(wire, "t")

    assert result.is_error is is_error
    assert result.name == "t"


@given(st.lists(BLOCKS, min_size=1, max_size=4))
def test_each_block_becomes_a_part(blocks):
    """Without structured content no block is lost; a single text block becomes text."""
    content = decode(*blocks)

    if isinstance(content, str):
        assert [block.get("text") for block in blocks] == [content]
    else:
        assert len(content) == len(blocks)
        assert all(isinstance(part, PART_TYPES) for part in content)


# objects and numbers only: a list that reads as parts is parts, by the rule of ToolResult
@given(st.dictionaries(st.text(max_size=5), JSON).filter(lambda value: "result" not in value))
def test_structured_content_becomes_json(value):
    """With or without its text."""
    assert decode(structuredContent=value) == value
    assert decode(text(json.dumps(value)), structuredContent=value) == value
    assert decode(text(json.dumps(value, indent=2)), structuredContent=value) == value


@pytest.mark.parametrize(
    ("said", "value"), [("3", 3), ("a\nb", "a\nb"), ("7", "7"), ("true", True), ("[1]", [1])]
)
def test_a_wrapped_value_is_unwrapped_if_the_text_repeats_it(said, value):
    """Servers wrap a value that is not an object in `result`."""
    assert decode(text(said), structuredContent={"result": value}) == value


def test_a_wrapped_list_with_one_text_for_each_item():
    """The texts repeat the list."""
    content = decode(text("a"), text("2"), structuredContent={"result": ["a", 2]})

    assert content == ["a", 2]


def test_an_object_with_a_result_stays_if_the_text_differs():
    """It is unwrapped only if the text repeats the value."""
    assert decode(structuredContent={"result": 3}) == {"result": 3}
    assert decode(text('{"result":3}'), structuredContent={"result": 3}) == {"result": 3}


def test_text_that_differs_from_structured_content_stays():
    """Text is dropped only if it repeats the structured content."""
    content = decode(text("four in all"), structuredContent={"n": 4})

    assert content == (Text(text="four in all"), Text(text='{"n":4}'))


def test_media_beside_structured_content_stays():
    """An image is not replaced by the JSON."""
    picture = {"type": "image", "data": coded(PNG), "mimeType": "image/png"}
    image = Image(data=PNG, media_type="image/png")

    assert decode(picture, structuredContent={"n": 1}) == (image, Text(text='{"n":1}'))
    assert decode(text('{"n": 1}'), picture, structuredContent={"n": 1}) == (
        Text(text='{"n": 1}'),
        image,
    )


def test_a_wrong_image_type_is_corrected_from_the_bytes():
    """Providers reject images with a wrong media type."""
    (image,) = decode({"type": "image", "data": coded(PNG), "mimeType": "image/jpeg"})

    assert image == Image(data=PNG, media_type="image/png")


def test_the_declared_type_is_used_for_unknown_bytes():
    """An SVG is not recognised by its bytes, and still is an image."""
    (image,) = decode({"type": "image", "data": coded(b"%PDF-"), "mimeType": "image/svg+xml"})

    assert image == Image(data=b"%PDF-", media_type="image/svg+xml")


def test_audio():
    """An audio block becomes an audio part."""
    (audio,) = decode({"type": "audio", "data": "AAAA", "mimeType": "audio/x"})

    assert audio == Audio(data=b"\0\0\0", media_type="audio/x")


def test_invalid_base64_becomes_a_text_part_with_the_block():
    """The block is in `extra`."""
    block = {"type": "image", "data": "é", "mimeType": "image/png"}
    (part,) = decode(block)

    assert part == Text(text="[image/png: invalid base64]", extra={"mcp": block})


def test_embedded_resources():
    """Text is text, an image an image, and anything else a document; their URIs are kept."""
    uri = {"uri": "file:///a/b%20c.pdf"}
    blocks = [
        {"type": "resource", "resource": uri | {"text": "x", "mimeType": "text/x"}},
        {"type": "resource", "resource": uri | {"blob": coded(PNG)}},
        {"type": "resource", "resource": uri | {"blob": "AAAA", "mimeType": "audio/wav"}},
        {"type": "resource", "resource": uri | {"blob": "AAAA"}, "annotations": {"priority": 1}},
    ]

    written, image, audio, document = decode(*blocks)

    kept = {"resource": uri}
    assert written.text == "x"
    assert written.extra == {"mcp": {"resource": uri | {"mimeType": "text/x"}}}
    assert image == Image(data=PNG, media_type="image/png", extra={"mcp": kept})
    assert audio.kind == "audio"
    assert audio.media_type == "audio/wav"
    assert document == Document(
        data=b"\0\0\0",
        media_type="application/pdf",
        file_name="b c.pdf",
        extra={"mcp": kept | {"annotations": {"priority": 1}}},
    )


def test_a_link_becomes_text():
    """Only the server can read the link; the model sees its address."""
    block = {"type": "resource_link", "uri": "x:y", "name": "n", "description": "d"}
    (part,) = decode(block)

    assert part == Text(text="[n](x:y): d", extra={"mcp": block})


def test_an_unknown_block_becomes_json_text():
    """A future version of the protocol loses nothing."""
    (part,) = decode({"type": "hologram", "x": 1})

    assert part == Text(
        text='{"type":"hologram","x":1}', extra={"mcp": {"type": "hologram", "x": 1}}
    )


def test_an_error_without_content_has_a_message():
    """The model needs some text."""
    result = decode_result({"content": [], "isError": True}, "t")

    assert result.is_error
    assert result.content == "the tool failed without an error message"
