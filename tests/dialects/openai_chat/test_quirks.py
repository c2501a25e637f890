"""Quirks of servers."""

import msgspec

from interlingua.dialects.openai_chat import encode_request
from interlingua.dialects.openai_chat.facts import (
    DEFAULT_QUIRKS,
    ChatQuirks,
    history_quirks,
    quirks_of,
)
from interlingua.providers.catalog.profiles import profile_for
from interlingua.spec.content import Document, Image, ToolCall
from interlingua.spec.contracts import Profile
from interlingua.spec.messages import Message
from interlingua.spec.request import Request


def test_defaults_say_nothing():
    """The neutral record is empty as a document."""
    assert msgspec.to_builtins(DEFAULT_QUIRKS) == {}


def test_quirks_of_a_profile():
    """A profile's quirks count only if they are this dialect's."""
    quirks = ChatQuirks(max_tokens_field="max_tokens")

    assert quirks_of(Profile(quirks=quirks)) is quirks
    assert quirks_of(Profile()) is DEFAULT_QUIRKS
    assert quirks_of(Profile(quirks={"top_k": True})) is DEFAULT_QUIRKS


def test_quirks_that_concern_histories():
    """Media in results stay there, and documents go by address, where the server takes them."""
    page = Document(url="https://x/a.pdf")
    picture = Image(url="https://x/a.png")
    request = Request(
        messages=(
            Message.user([page]),
            Message.assistant([ToolCall(id="a", name="f")]),
            Message.tool_result("a", (picture,)),
        )
    )

    def said(**quirks):
        call = encode_request(request, profile_for("openai_chat", overrides={"quirks": quirks}))
        return call.body["messages"], [warning.code for warning in call.warnings]

    assert said()[1] == ["document_dropped", "empty_message_dropped", "result_media_moved"]
    messages, told = said(tool_result_media=True, document_url=True)
    assert told == []
    assert messages[0]["content"][0]["document_url"] == "https://x/a.pdf"
    assert messages[2]["content"][0]["image_url"] == {"url": "https://x/a.png"}
    assert history_quirks(DEFAULT_QUIRKS) == {}
