"""What is read and fetched before a request is encoded."""

import asyncio

import pytest

from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.media import bytes_only, gather_media, load_files
from interlingua.spec.content import Audio, Document, Image
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request

PAGE = Document(url="http://127.0.0.1:9/a.pdf", media_type="application/pdf")


def profile(row, **settings):
    return HttpAdapter(row, "k", **settings).profile_for("m")


def test_who_takes_addresses():
    """By dialect, and by what one server of it does otherwise."""
    assert bytes_only(profile("groq")) == (Audio, Document)
    assert bytes_only(profile("mistral")) == (Audio,)
    assert bytes_only(profile("openai")) == ()  # it takes no sound at all: nothing to fetch
    assert bytes_only(profile("anthropic")) == ()


def test_only_what_has_to_be_is_fetched():
    """Mistral takes a document's address as it is; for another it is fetched, and refused here."""
    request = Request(messages=[Message.user([PAGE])])

    assert asyncio.run(gather_media(request, profile("mistral"))) is request
    with pytest.raises(ConfigurationError, match="is not a public address"):
        asyncio.run(gather_media(request, profile("groq")))


def test_files_are_loaded_and_addresses_told(tmp_path):
    """Without a network."""
    path = tmp_path / "a.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n")
    request = Request(messages=[Message.user([Image(path=path), PAGE])])

    loaded, fetches = load_files(request, profile("groq"))

    assert loaded.messages[0].content[0].data == path.read_bytes()
    assert fetches == ("messages[0].content[1]",)
    assert load_files(request, profile("mistral"))[1] == ()
