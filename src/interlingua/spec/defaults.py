"""The default timeouts of a call and the default size limits of a reply."""

import msgspec

from interlingua.spec.check import Seconds


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """The maximum duration of each step of a call, in seconds; None for no limit."""

    connect: Seconds | None = 10.0
    """DNS, TCP and TLS together."""
    request: Seconds | None = 600.0
    """The whole exchange; for a stream, until its headers arrive."""
    first_byte: Seconds | None = None
    """From the start until the headers of the reply arrive."""
    stream_read: Seconds | None = 300.0
    """The time between two chunks of a stream; any bytes restart it."""
    stream_content: Seconds | None = 900.0
    """The time between two content events of a stream; pings do not restart it."""
    total: Seconds | None = None
    """The whole exchange, also of a stream. An adapter's `timeout=` as a number sets it."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The maximum sizes of a reply; a larger one is an error."""

    body: int = 128 * 1024 * 1024
    """Bytes of a whole body, after decompression; a stream of events has no such limit."""
    inflated: int = 256 * 1024 * 1024
    """Bytes that a compressed reply may have after decompression, also a stream."""
    event: int = 16 * 1024 * 1024
    """Bytes of one event of a stream."""
    events: int = 1_000_000
    """Events of one stream; lines that add nothing to one (comments, blank lines) count too."""


MANY_PARTS = 1_000
"""With more parts, what is done for each of them is too much for one step of an event loop."""
