"""Requests to a gateway as they are on the wire, without a vendor's client."""

import json
import urllib.error
import urllib.request
from typing import NamedTuple


class Received(NamedTuple):
    """A reply."""

    status: int
    headers: dict
    text: str

    @property
    def json(self):
        return json.loads(self.text)


def ask(front, path, body=None, *, key=None, method="POST", **headers):
    """Send a request with the key of the gateway, or another; an empty key is not sent."""
    sent = {"anthropic-version": "2023-06-01"} if path.endswith("/messages") else {}
    key = front.key if key is None else key
    if key:
        sent["authorization"] = f"Bearer {key}"
        if "/v1beta/" in path:
            sent["x-goog-api-key"] = key
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310 -- on loopback
        f"{front.url}{path}", data, {**sent, **headers}, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310 -- on loopback
            return _read(reply)
    except urllib.error.HTTPError as error:
        with error:
            return _read(error)


def _read(reply):
    headers = {name.lower(): value for name, value in reply.headers.items()}
    return Received(reply.status, headers, reply.read().decode())
