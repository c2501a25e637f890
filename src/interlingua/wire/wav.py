"""WAV files: a header around 16-bit samples."""

from __future__ import annotations

import struct

_PCM = 1
_SAMPLE = 2  # bytes
_MAX_HEADER = 4096  # bytes


def wrap_samples(samples: bytes, rate: int, channels: int = 1) -> bytes:
    """A WAV file of these 16-bit samples."""
    return wav_header(len(samples), rate, channels) + samples


def wav_header(size: int, rate: int, channels: int = 1) -> bytes:
    """The header of a WAV file with so many bytes of 16-bit samples."""
    frame = channels * _SAMPLE
    form = struct.pack("<HHIIHH", _PCM, channels, rate, rate * frame, frame, 8 * _SAMPLE)
    whole = min(size + 36, 0xFFFFFFFF)
    return (
        struct.pack("<4sI4s4sI", b"RIFF", whole, b"WAVE", b"fmt ", len(form))
        + form
        + struct.pack("<4sI", b"data", min(size, 0xFFFFFFFF))
    )


def unsized(head: bytes, size: int) -> dict[int, bytes]:
    """
    The bytes to write over the header of a WAV file whose length was not known when it began.

    `head` is its beginning and `size` the length of the whole file; the keys are positions. Empty
    if it is not a WAV file, or if its header is right.
    """
    place = _find_data(head)
    if place is None or int.from_bytes(head[place - 4 : place], "little") <= size - place:
        return {}
    changes = {4: size - 8, place - 4: size - place}
    return {at: struct.pack("<I", min(number, 0xFFFFFFFF)) for at, number in changes.items()}


def with_sizes(data: bytes) -> bytes:
    """The file with the right sizes in its header, if it is a WAV file."""
    changes = unsized(data[:_MAX_HEADER], len(data))
    if not changes:
        return data
    fixed = bytearray(data)
    for at, number in changes.items():
        fixed[at : at + 4] = number
    return bytes(fixed)


def _find_data(head: bytes) -> int | None:
    """Where the samples of a WAV file begin; None if it is not one."""
    if head[:4] != b"RIFF" or head[8:12] != b"WAVE":
        return None
    position = 12
    while position + 8 <= len(head):
        if head[position : position + 4] == b"data":
            return position + 8
        size = int.from_bytes(head[position + 4 : position + 8], "little")
        position += 8 + size + size % 2
    return None


def wav_seconds(data: bytes) -> float | None:
    """The length of a WAV file; None if it is not one."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return None
    position, rate = 12, 0
    while position + 8 <= len(data):
        name, size = (
            data[position : position + 4],
            int.from_bytes(data[position + 4 : position + 8], "little"),
        )
        if name == b"fmt " and position + 20 <= len(data):
            rate = int.from_bytes(data[position + 16 : position + 20], "little")
        if name == b"data":
            return min(size, len(data) - position - 8) / rate if rate else None
        position += 8 + size + size % 2
    return None
