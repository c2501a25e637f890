"""Streamed bodies, and forms read back by the standard library."""

from email.parser import BytesParser
from email.policy import HTTP


class Streamed:
    """Bytes that come one by one; they can be read again."""

    def __init__(self, data, size=None):
        self.data = data
        self.size = size

    async def __aiter__(self):
        for byte in self.data:
            yield bytes([byte])


def read_form(content_type, body):
    """Name, file name, media type and content of each part."""
    message = BytesParser(policy=HTTP).parsebytes(
        b"content-type: " + content_type.encode() + b"\r\n\r\n" + body
    )
    return [
        (
            part.get_param("name", header="content-disposition"),
            part.get_filename(),
            part.get_content_type(),
            part.get_payload(decode=True),
        )
        for part in message.iter_parts()
    ]
