"""Images and documents <-> their blocks."""

from interlingua.dialects.anthropic_messages.content import encode_part
from interlingua.spec.content import (
    Image,
)
from interlingua.spec.warnings import WarningList

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
