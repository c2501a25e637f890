"""Images and documents <-> their blocks."""

import pytest

from interlingua import dialects
from interlingua.dialects.anthropic_messages.content import encode_part
from interlingua.providers.catalog.profiles import profile_for
from interlingua.spec.content import Document, Image, Text, ToolCall
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList
from interlingua.wire.media import make_data_url
from support.oracles_requests import problems

NAME = "anthropic_messages"


def test_data_urls_become_base64():
    """An image given as a data URL is sent as bytes, which is all this API takes."""
    block = encode_part(Image(url="data:image/gif;base64,R0lGODlh"), WarningList())

    assert block == {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/gif", "data": "R0lGODlh"},
    }


def test_media_type_is_sniffed():
    """Bytes without a type are looked at."""
    block = encode_part(Image(data=b"\xff\xd8\xff\xe0"), WarningList())

    assert block["source"]["media_type"] == "image/jpeg"


TEXTS = {
    "notes.txt": "text/plain",
    "table.csv": "text/csv",
    "notes.md": "text/markdown",
    "data.json": "application/json",
    "page.html": "text/html",
    "feed.xml": "text/xml",
}
LINES = "name,größe\nÅsa,1\n"


def forms(name, media_type):
    """A text file in every form that a caller may give."""
    data = LINES.encode()
    return {
        "bytes with a type": Document(data=data, media_type=media_type, file_name=name),
        "bytes with a name": Document(data=data, file_name=name),
        "a byte order mark": Document(data=b"\xef\xbb\xbf" + data, media_type=media_type),
        "UTF-16": Document(data=LINES.encode("utf-16"), media_type=media_type),
        "a parameter": Document(data=data, media_type=f"{media_type}; charset=utf-8"),
        "a data URL": Document(url=make_data_url(data, media_type)),
        "text": Document(text=LINES, media_type=media_type, file_name=name),
    }


@pytest.mark.parametrize(("name", "media_type"), TEXTS.items())
@pytest.mark.parametrize("form", forms("", ""))
@pytest.mark.parametrize("in_result", [False, True])
def test_text_documents_become_text_sources(name, media_type, form, in_result):
    """A text file reaches Claude as a text source that Anthropic's types accept."""
    document = forms(name, media_type)[form]
    question = Text(text="What is it?")
    messages = [Message.user([document, question])]
    if in_result:
        messages = [
            Message.user("Look."),
            Message.assistant([ToolCall(id="call_1", name="look")]),
            Message.tool_result("call_1", [document, question]),
        ]
    request = Request(model="claude-sonnet-5-5", max_tokens=10, messages=messages)
    profile = profile_for(NAME, request.model, "anthropic")

    call = dialects.get(NAME).encode_request(request, profile, stream=False)

    content = call.body["messages"][-1]["content"]
    block = (content[0]["content"] if in_result else content)[0]
    assert block["source"] == {"type": "text", "media_type": "text/plain", "data": LINES}
    assert block.get("title") == document.file_name
    assert problems(NAME, call.body) == []
    assert {warning.code for warning in call.warnings} <= {"document_as_plain_text"}


def test_bytes_that_are_no_text_are_not_sent():
    """A text file in an unknown encoding is not sent wrongly; a warning names it."""
    warnings = WarningList()

    assert encode_part(Document(data=b"\xff\xe9", media_type="text/csv"), warnings) is None
    assert [warning.code for warning in warnings.warnings] == ["document_dropped"]


@pytest.mark.parametrize(
    ("document", "is_sent"),
    [
        (Document(url="https://example.com/a.csv?x=1"), False),
        (Document(url="https://example.com/a", media_type="text/plain"), False),
        (Document(url="https://example.com/a.pdf"), True),
        (Document(url="https://example.com/a"), True),
    ],
)
def test_a_text_file_by_url_is_a_loss_that_is_told(document, is_sent):
    """Claude fetches no text files, so that a URL of one is a loss, which is told."""
    warnings = WarningList()

    block = encode_part(document, warnings)

    assert (block is not None) is is_sent
    assert [warning.code for warning in warnings.warnings] == ["document_dropped"] * (not is_sent)
