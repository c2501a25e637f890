"""
Recordings as cases for the laws: what `interlingua record` and `RecordingTransport` write.

`interlingua check --recordings PATH` does the same in a terminal. Where nothing was recorded,
`sample_cases` makes cases that the dialect writes itself.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from interlingua.conformance.laws import LAWS, Case, Law, cut_is_an_error, encode_events
from interlingua.conformance.probes import HELLO, ONE_TOOL, RESULTS
from interlingua.serving.application import Incoming, read_request
from interlingua.spec.content import Text, ToolCall, UncheckedJson
from interlingua.spec.contracts import Dialect
from interlingua.spec.errors import ConfigurationError, DecodeError
from interlingua.spec.facts import Framing
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import events_from_response
from interlingua.transport.cassette import decode_data, load_exchanges
from interlingua.wire.json_text import loads
from interlingua.wire.sse import encode_sse

__all__ = ["RECORDED_LAWS", "Recordings", "read_recordings"]

_CUTS = 50
_SAMPLE_USAGE = Usage(input_tokens=12, output_tokens=5)
_SAMPLE_TEXT = Response(
    id="r1",
    model="m",
    message=Message.assistant("Hello, \N{EARTH GLOBE EUROPE-AFRICA}."),
    finish_reason=FinishReason(reason="stop"),
    usage=_SAMPLE_USAGE,
)
_SAMPLE_CALL = Response(
    id="r2",
    model="m",
    message=Message(
        role="assistant",
        content=(
            Text(text="I look."),
            ToolCall(id="call_1", name="weather", arguments={"city": "Oslo"}),
        ),
    ),
    finish_reason=FinishReason(reason="tool_calls"),
    usage=_SAMPLE_USAGE,
)
_SAMPLES = {
    "text": (HELLO, _SAMPLE_TEXT),
    "tool call": (ONE_TOOL, _SAMPLE_CALL),
    "tool results": (RESULTS, _SAMPLE_TEXT),
}


class Recordings(NamedTuple):
    """The exchanges of a recording, by the dialect that each of them is in."""

    cases: dict[str, list[Case]]
    """The cases, by the name of their dialect."""
    skipped: tuple[str, ...]
    """The exchanges that no law is about: other endpoints, and exchanges without a reply."""


def read_recordings(path: str | PathLike[str]) -> Recordings:
    """
    Return the exchanges of a recording, or of all recordings (`*.json`) in a folder, as cases.

    The path of a request says its dialect. Of a reply that was cut off, only the request is used.
    `path` is the file or the folder.
    """
    cases: dict[str, list[Case]] = {}
    skipped: list[str] = []
    for file in _files(Path(path)):
        for number, exchange in enumerate(load_exchanges(file), 1):
            incoming = _incoming(exchange["request"])
            name = f"{file.name} {number}: {incoming.call.method} {incoming.call.path}"
            case = _case(name, incoming, exchange)
            if case is None:
                skipped.append(name)
            else:
                cases.setdefault(incoming.dialect, []).append(case)
    return Recordings(cases, tuple(skipped))


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    files = sorted(path.glob("*.json"))
    if not files:
        raise ConfigurationError(
            f"The folder {str(path)!r} has no recording. Make one: "
            "`interlingua record calls.json -- COMMAND`."
        )
    yield from files


def _incoming(request: Mapping[str, Any]) -> Incoming:
    """The request as the server of its dialect would read it."""
    parts = urlsplit(request["url"])
    headers = request.get("headers", {})
    scope = {
        "method": request["method"],
        "path": parts.path,
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    return read_request(scope, decode_data(dict(request)))


def _case(name: str, incoming: Incoming, exchange: Mapping[str, Any]) -> Case | None:
    """The case of an exchange; None if no law is about it."""
    reply = exchange.get("reply")
    framing = _framing(incoming)
    is_answer = incoming.route.kind == "answer" and isinstance(incoming.call.body, dict)
    if reply is None or framing is None or not is_answer:
        return None
    headers = {field.lower(): value for field, value in reply["headers"].items()}
    is_whole = exchange.get("error") is None
    body = b"".join(map(decode_data, reply["chunks"])) if is_whole else b""
    is_stream = incoming.call.stream and reply["status"] < 400 and is_whole
    return Case(
        name=name,
        call=incoming.call,
        response=None if is_stream else _json(body),
        stream=body if is_stream else None,
        framing=framing,
        status=reply["status"],
        headers=headers,
    )


def _framing(incoming: Incoming) -> Framing | None:
    """How the stream is framed; None for a binary framing, which the laws do not cut."""
    facts = incoming.route.facts
    if facts is not None and facts.framing != "sse":
        return None
    return "json-array" if incoming.wants_array else "sse"


def _json(body: bytes) -> UncheckedJson:
    try:
        return loads(body)
    except DecodeError:
        return None


@functools.wraps(cut_is_an_error)
def _cut_in_some_places(dialect: Dialect, case: Case) -> list[str]:
    size = len(case.stream or b"")
    return cut_is_an_error(dialect, case, range(0, size, size // _CUTS + 1))


RECORDED_LAWS: dict[str, Law] = {
    name: _cut_in_some_places if law is cut_is_an_error else law for name, law in LAWS.items()
}
"""The laws for recordings: a stream, which may be long, is cut in at most 50 places."""


def sample_cases(dialect: Dialect) -> list[Case]:
    """
    Return a text, a tool call and its results, as the dialect encodes them.

    Such cases show whether a dialect agrees with itself. Whether it agrees with a server is shown
    by recorded exchanges (`read_cases`).
    """
    cases: list[Case] = []
    for name, (request, response) in _SAMPLES.items():
        frames = encode_events(dialect, events_from_response(response))
        cases.append(
            Case(
                name=name,
                call=dialect.encode_request(request),
                response=dialect.encode_response(response),
                stream=b"".join(map(encode_sse, frames)),
            )
        )
    return cases
