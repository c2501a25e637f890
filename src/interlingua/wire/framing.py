"""What the readers of all stream formats share: media types, byte order marks, limits."""

AWS_EVENT_STREAM = "application/vnd.amazon.eventstream"
"""The media type of AWS's binary messages."""
_BOM = b"\xef\xbb\xbf"


def allow(limit: str) -> str:
    """The sentence that says how to raise a limit."""
    return f"To allow it, pass limits=Limits({limit}=…) to the adapter."


def too_many(events: int) -> str:
    """The message for a stream with too many events."""
    return f"The stream has more than {events} events. {allow('events')}"


def drop_bom(buffer: bytearray) -> bool:
    """Removes a byte order mark; False while more bytes are needed to recognise one."""
    if buffer.startswith(_BOM):
        del buffer[:3]
        return True
    return not _BOM.startswith(buffer)
