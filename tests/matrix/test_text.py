"""Text and media, by every dialect."""

import base64
from contextlib import nullcontext

import pytest

from interlingua.simulator import text, usage
from interlingua.spec.content import Audio, Document, Image, Text, ToolCall
from interlingua.spec.errors import ConfigurationError, UnsupportedError
from interlingua.spec.messages import Message
from interlingua.transport import media
from interlingua.transport.media import Fetched
from support.requests import ask, every_provider, get_weather, given, listen
from support.simulated import simulated

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@every_provider
def test_simple_text(provider):
    """Text, usage and a reason."""
    with simulated(text("Hello there.") + usage(7, 3)) as peer:
        result = ask(peer, provider)

    assert (result.text, result.finish_reason.reason) == ("Hello there.", "stop")
    assert (result.usage.input_tokens, result.usage.output_tokens) == (7, 3)
    assert result.usage.total_tokens == 10


@every_provider
def test_streaming_text(provider):
    """Start, deltas that join to the text, end, finish."""
    with simulated(text("one two three four")) as peer:
        events, result = listen(peer, provider)

    kinds = [event.type for event in events]
    assert (*kinds[:3], *kinds[-2:]) == (
        "stream_start",
        "step_start",
        "text_start",
        "text_end",
        "finish",
    )
    assert "".join(e.delta for e in events if e.type == "text_delta") == "one two three four"
    assert result.response().text == "one two three four"


@every_provider
def test_all_roles_arrive(provider):
    """System, developer, user, assistant and tool."""
    call = ToolCall(id="call_1", name="get_weather", arguments={"city": "Oslo"})
    history = [
        Message.system("Be brief."),
        Message.developer("In English."),
        Message.user("Weather?"),
        Message.assistant([call]),
        Message.tool_result("call_1", "rain"),
    ]
    with simulated(text("It rains.")) as peer:
        result = ask(peer, provider, None, messages=history, tools=[get_weather])
        (request,) = peer.app.script.requests

    said = [message.text for message in request.messages]
    assert result.text == "It rains."
    assert "Be brief." in "\n".join(said)
    assert "In English." in "\n".join(said)
    assert given(request)[0].content == "rain"


@every_provider
@pytest.mark.parametrize("form", ["bytes", "url", "file"])
def test_images(provider, form, tmp_path, monkeypatch):
    """As bytes, by address, from a file on this machine."""

    async def fetch(url, **_):
        assert url == "https://example.com/dot.png"
        return Fetched(PNG, "image/png", "dot.png")

    monkeypatch.setattr(media, "fetch", fetch)
    path = tmp_path / "dot.png"
    path.write_bytes(PNG)
    image = {
        "bytes": Image(data=PNG, media_type="image/png"),
        "url": Image(url="https://example.com/dot.png", media_type="image/png"),
        "file": Image(path=path),
    }[form]
    question = Message(role="user", content=(Text(text="What is it?"), image))
    with simulated(text("A dot.")) as peer:
        result = ask(peer, provider, None, messages=[question])
        (request,) = peer.app.script.requests

    (received,) = [p for m in request.messages for p in m.content if isinstance(p, Image)]
    assert result.text == "A dot."
    if form == "url" and provider != "bedrock_converse":  # whose `ImageSource` has no URL
        assert received.url == "https://example.com/dot.png"
    else:
        assert (received.data, received.media_type) == (PNG, "image/png")


@every_provider
@pytest.mark.parametrize(
    "part",
    [
        Audio(data=b"RIFF\x24\x00\x00\x00WAVEfmt ", media_type="audio/wav"),
        Document(data=b"%PDF-1.7 ", media_type="application/pdf", file_name="a.pdf"),
    ],
    ids=["audio", "document"],
)
def test_other_media_arrive_or_are_reported(provider, part):
    """Never lost in silence: an error by default, a warning with `on_loss="warn"`."""
    question = Message(role="user", content=(Text(text="What is it?"), part))
    with simulated(text("Something.")) as peer:
        result = ask(peer, provider, None, messages=[question], on_loss="warn")
        (request,) = peer.app.script.requests
        arrived = any(isinstance(p, type(part)) for m in request.messages for p in m.content)
        with nullcontext() if arrived else pytest.raises(UnsupportedError):
            ask(peer, provider, None, messages=[question])
        assert len(peer.app.script.requests) == (2 if arrived else 1)

    assert arrived or result.warnings


@every_provider
def test_prompt_or_messages(provider):
    """Either will do; both, or none, is refused before anything is sent."""
    with simulated(text("ok")) as peer:
        for way in (ask, listen):
            with pytest.raises(ConfigurationError, match="messages"):
                way(peer, provider, "hi", messages=[Message.user("hi")])
            with pytest.raises(ConfigurationError, match="messages"):
                way(peer, provider, None)
        assert peer.app.script.received == ()
        ask(peer, provider, "hi")
        ask(peer, provider, None, messages=[Message.user("hi")])
        first, second = peer.app.script.requests

    assert first.messages == second.messages
