"""Parts <-> the parts of a content."""

from typing import get_args

import pytest

from interlingua.dialects.gemini_generate.content import decode_part, encode_part, read_part
from interlingua.dialects.gemini_generate.tool_calls import request_links
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.errors import DecodeError
from interlingua.spec.warnings import WarningList

NAME = "gemini_generate"

PAIRS = [
    ({"text": " hi\n"}, Text(text=" hi\n")),
    ({"text": "hi", "thought": False}, Text(text="hi", extra={NAME: {"thought": False}})),
    (
        {"text": "", "thoughtSignature": "U0lH"},
        Text(text="", extra={NAME: {"thoughtSignature": "U0lH"}}),
    ),
    ({"text": "hm", "thought": True}, Thinking(text="hm", extra={NAME: {}})),
    (
        {"text": "hm", "thought": True, "thoughtSignature": "U0lH", "new": 1},
        Thinking(text="hm", signature="U0lH", extra={NAME: {"new": 1}}),
    ),
    (
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}},
        Image(data=b"\x89PNG", media_type="image/png"),
    ),
    (
        {"fileData": {"mimeType": "audio/mpeg", "fileUri": "gs://b/a.mp3"}},
        Audio(url="gs://b/a.mp3", media_type="audio/mpeg"),
    ),
    (
        {"functionCall": {"id": "c", "name": "f", "args": {"a": None}}},
        ToolCall(id="c", name="f", arguments={"a": None}),
    ),
    (
        {"functionResponse": {"id": "c", "name": "f", "response": {"output": "x"}}},
        ToolResult(tool_call_id="c", name="f", content="x"),
    ),
    (
        {"text": "hi", "inlineData": None},
        Text(text="hi", extra={NAME: {"inlineData": None}}),
    ),
]

OPAQUE = [
    {},
    {"thoughtSignature": "U0lH"},
    {"videoMetadata": {"fps": 1}},
    {"executableCode": {"code": "1", "language": "PYTHON"}, "thoughtSignature": "U0lH"},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
    {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH"}},
    {"toolResponse": {"id": "t"}},
    {"text": "a", "functionCall": {"name": "f"}},
    {"inventedNextYear": {"x": 1}},
]


def decode(part):
    return decode_part(part, request_links(), "contents[0].parts[0]")


@pytest.mark.parametrize(("wire", "part"), PAIRS)
def test_known_parts(wire, part):
    """Each part we know has one form here and one on the wire."""
    assert decode(wire) == part
    assert encode_part(part, WarningList()) == wire


@pytest.mark.parametrize("wire", OPAQUE)
def test_other_parts_are_carried(wire):
    """A part with no data field we know, or with two, comes back as it was."""
    part = decode(wire)

    assert isinstance(part, Opaque)
    assert (part.dialect, part.data) == (NAME, wire)
    assert encode_part(part, WarningList()) == wire


@pytest.mark.parametrize(
    ("wire", "path"),
    [
        ("x", "contents[0].parts[0]"),
        ({"text": 5}, "contents[0].parts[0].text"),
        ({"text": "x", "thought": "yes"}, "contents[0].parts[0].thought"),
        ({"functionCall": {"name": 5}}, "contents[0].parts[0].functionCall.name"),
        ({"functionCall": {"name": "f", "args": [1]}}, "contents[0].parts[0].functionCall.args"),
        (
            {"functionResponse": {"name": "f", "response": "x"}},
            "contents[0].parts[0].functionResponse.response",
        ),
    ],
)
def test_wrong_types_name_their_path(wire, path):
    """What cannot be read says where it is; in an answer it is carried instead."""
    with pytest.raises(DecodeError) as caught:
        decode(wire)

    assert caught.value.path == path
    assert read_part(wire, request_links()) == Opaque(dialect=NAME, data=wire)


@pytest.mark.parametrize(
    ("part", "wire", "code"),
    [
        (Refusal(text="no"), {"text": "no"}, "refusal_as_text"),
        (Opaque(dialect="openai_chat", data={}), None, "foreign_block_dropped"),
        (Thinking(data="secret"), None, "foreign_thinking_dropped"),
        (Document(file_id="file-1"), None, "document_dropped"),
        (Image(), None, "image_dropped"),
    ],
)
def test_foreign_parts_warn(part, wire, code):
    """What this API cannot say is said otherwise or left out, with a warning."""
    losses = WarningList()
    losses.message, losses.part = 2, 1

    assert encode_part(part, losses) == wire
    assert [(w.code, w.path) for w in losses.warnings] == [(code, "messages[2].content[1]")]


def test_a_signature_stays_on_its_part():
    """A signature is kept with the part it came on, and goes back on that part, once.

    Field bug 36.
    """
    wires = [
        {"text": "a"},
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "U0lH"},
        {"functionCall": {"name": "f", "args": {}}},
        {"text": "b", "thoughtSignature": "U0lHMg=="},
    ]
    links = request_links()

    parts = [decode_part(wire, links) for wire in wires]

    assert [encode_part(part, WarningList()) for part in parts] == wires


SAMPLES = (
    Text(text="hi"),
    Image(url="https://host/a.png"),
    Audio(data=b"RIFF"),
    Document(text="hi"),
    ToolCall(id="c", name="f"),
    ToolResult(tool_call_id="c", content="x"),
    Thinking(text="hm"),
    Refusal(text="no"),
    Opaque(dialect=NAME, data={"new": 1}),
)


def test_every_kind_of_part_is_encoded():
    """A new kind of part needs a case in `encode_part`."""
    assert {type(part) for part in SAMPLES} == set(get_args(Part))
    assert None not in [encode_part(part, WarningList()) for part in SAMPLES]
