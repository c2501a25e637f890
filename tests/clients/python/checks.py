"""
What every client goes through, with every upstream; runs in the environment of the clients.

A client is a class with one method for each feature; a method raises an error if something is
wrong, and may return a note. `NotApplicable` says that a client or upstream has no such feature.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import traceback
import zlib
from collections.abc import Awaitable, Callable, Iterable
from importlib.metadata import version

STAND = json.loads(os.environ["INTERLINGUA_STAND"])
KEY = STAND["key"]
GATEWAYS: dict[str, str] = STAND["gateways"]

GREETING = "Hello from the upstream."
SAY = f"Say: {GREETING}"
CITIES = ("Oslo", "Rome", "Lima", "Cairo", "Delhi", "Tokyo", "Quito", "Paris")
LOOK = "What is the weather in {}?"
KEPT = "State: kept."
"""What the model says if it got back all state that it had sent."""
PHOTO = "Take a photo."
JOKE = "Tell me a joke."
RETRY_AFTER = 1.1
"""Seconds until a rate limit of the model has passed."""


class NotApplicableError(Exception):
    """A client or an upstream does not have this."""


def weather(city: str) -> str:
    """What the tool says."""
    return f"{city}: 4 C, rain"


def png() -> bytes:
    """A picture of one pixel."""

    def chunk(name: bytes, data: bytes) -> bytes:
        body = name + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\0\xff\0\0")
    start = b"\x89PNG\r\n\x1a\n"
    return start + chunk(b"IHDR", head) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


PICTURE = f"[image image/png {len(png())} bytes]"


def has(wanted: str, answer: str) -> None:
    """The answer contains this."""
    assert wanted in answer, f"no {wanted!r} in {answer!r}"


Feature = Callable[[], Awaitable[str | None]]
Client = tuple[str, str, dict[str, Feature]]
"""The name of a client, its package, and its features."""


def report(make: Callable[[str], Iterable[Client]]) -> None:
    """Try the clients that `make` gives for each upstream, and print a line for each feature."""

    async def run_all() -> None:
        # The upstreams beside each other, in one loop: the clients keep their connections.
        await asyncio.gather(*(_report(upstream, make(upstream)) for upstream in GATEWAYS))

    asyncio.run(run_all())


async def _report(upstream: str, clients: Iterable[Client]) -> None:
    for client, package, features in clients:
        line = {"client": client, "version": version(package), "upstream": upstream}
        for name, feature in features.items():
            result, note = await _try(feature)
            print(json.dumps({**line, "feature": name, "result": result, "note": note}), flush=True)


async def _try(feature: Feature) -> tuple[str, str]:
    try:
        return "pass", await feature() or ""
    except NotApplicableError as reason:
        return "not applicable", str(reason)
    except Exception as error:  # noqa: BLE001 -- whatever a client raises is a result
        traceback.print_exc()
        return "fail", f"{type(error).__name__}: {error}"
