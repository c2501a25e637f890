"""
The laws of a dialect, and the recorded exchanges (cases) on which they are checked.

A law takes a dialect and a case and returns what breaks it. An empty list means that the law holds,
also if the case has nothing that the law is about. An exception that is not one of the library
is a violation too.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from interlingua.conformance.equality import Kind, differences, same, same_response
from interlingua.conformance.report import Report, Score, Violation
from interlingua.spec.content import Json, UncheckedJson
from interlingua.spec.contracts import Dialect, Frame, WireCall
from interlingua.spec.errors import SDKError
from interlingua.spec.events import ProviderEvent, StreamEvent
from interlingua.spec.facts import Framing
from interlingua.spec.json_form import to_document
from interlingua.spec.response import Response
from interlingua.streams.accumulate import StreamAccumulator, events_from_response
from interlingua.streams.grammar import Grammar
from interlingua.wire.aws_event_stream import EventDecoder
from interlingua.wire.fields import carried_body
from interlingua.wire.json_array import JSONArrayDecoder
from interlingua.wire.json_text import dumps
from interlingua.wire.sse import SSEDecoder


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange in a dialect: a request, a whole response, a stream, or several of them."""

    name: str
    """Its name in reports."""
    call: WireCall | None = None
    """The request."""
    response: UncheckedJson = None
    """The body of the whole response."""
    stream: bytes | None = None
    """The body of the stream."""
    framing: Framing = "sse"
    """How the stream is framed."""
    status: int = 200
    """The HTTP status of the response."""
    headers: Mapping[str, str] = {}
    """The headers of the response."""


def read_cases(folder: Path) -> Iterator[Case]:
    """
    Read a case from each subfolder: `request.json`, `response.json` and `stream.sse`.

    `meta.json` may set `path`, `headers` and `stream` of the request, and the `status`.
    """
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        meta = _read(place / "meta.json") or {}
        body = _read(place / "request.json")
        stream = place / "stream.sse"
        call = None
        if body is not None:
            call = WireCall(
                path=meta.get("path", ""),
                body=body,
                headers=meta.get("headers", {}),
                stream=meta.get("stream", bool(isinstance(body, dict) and body.get("stream"))),
            )
        yield Case(
            name=place.name,
            call=call,
            response=_read(place / "response.json"),
            stream=stream.read_bytes() if stream.exists() else None,
            status=meta.get("status", 200),
        )


def _read(path: Path) -> UncheckedJson:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


_FRAME_DECODERS: Mapping[Framing, type[SSEDecoder | JSONArrayDecoder | EventDecoder]] = {
    "sse": SSEDecoder,
    "json-array": JSONArrayDecoder,
    "aws-event-stream": EventDecoder,
}


def cut_frames(chunks: Iterable[bytes], framing: Framing = "sse") -> list[Frame]:
    """Cut a body into its frames."""
    decoder = _FRAME_DECODERS[framing]()
    frames = [frame for chunk in chunks for frame in decoder.feed(chunk)]
    return frames + decoder.finish()


def decode_frames(dialect: Dialect, frames: Iterable[Frame]) -> list[StreamEvent]:
    """Decode the events of a complete stream."""
    decoder = dialect.stream_decoder()
    events = [event for frame in frames for event in decoder.feed(frame)]
    return events + decoder.finish()


def encode_events(dialect: Dialect, events: Iterable[StreamEvent]) -> list[Frame]:
    """Encode events as frames."""
    encoder = dialect.stream_encoder(None)
    frames = [frame for event in events for frame in encoder.feed(event)]
    return frames + encoder.finish()


def fold(events: Iterable[StreamEvent]) -> Response:
    """Join events into a response; they must obey the grammar."""
    grammar, accumulator = Grammar(), StreamAccumulator()
    for event in events:
        grammar.feed(event)
        accumulator.feed(event)
    grammar.finish()
    return accumulator.response()


Law: TypeAlias = Callable[[Dialect, Case], list[str]]
"""A law: a function of a dialect and a case that returns what is wrong."""

_UNKNOWN = "x_not_yet_invented"


def chunking_never_shows(
    dialect: Dialect, case: Case, cuts: Iterable[int] | None = None
) -> list[str]:
    """Law 1: chunk boundaries, line ends, a BOM and comments change nothing."""
    if case.stream is None:
        return []
    whole = cut_frames([case.stream], case.framing)
    events = _shown(decode_frames(dialect, whole))
    places = range(1, len(case.stream)) if cuts is None else sorted(cuts)
    edges = itertools.pairwise([0, *places, len(case.stream)])
    chunked = cut_frames((case.stream[start:end] for start, end in edges), case.framing)
    broken: list[str] = []
    if chunked != whole or _shown(decode_frames(dialect, chunked)) != events:
        how = "one byte at a time" if cuts is None else f"split at {places}"
        broken.append(f"{how} differs")
    if case.framing == "sse" and b"\r" not in case.stream:
        for name, ending in (("CRLF", b"\r\n"), ("CR", b"\r")):
            dressed = b"\xef\xbb\xbf: comment\n\n" + case.stream
            if cut_frames([dressed.replace(b"\n", ending)]) != whole:
                broken.append(f"{name} line ends differ")
    return broken


def stream_equals_whole(dialect: Dialect, case: Case) -> list[str]:
    """Law 2: a stream gives the same response as the whole body."""
    broken: list[str] = []
    if case.stream is not None:
        response = fold(decode_frames(dialect, cut_frames([case.stream], case.framing)))
        if all(call.is_valid for call in response.tool_calls):
            whole = dialect.decode_response(dialect.encode_response(response))
            broken += same_response(response, whole)
    if case.response is not None and case.status < 400:
        whole = dialect.decode_response(case.response)
        if carried_body(whole, dialect.NAME) is None:
            events = decode_frames(dialect, encode_events(dialect, events_from_response(whole)))
            broken += same_response(whole, fold(events), marks=False)
    return broken


def round_trip(dialect: Dialect, case: Case) -> list[str]:
    """Law 3: encoding what was decoded gives an equivalent body."""
    broken: list[str] = []
    if case.call is not None:
        broken += _differ(dialect, "request", case.call.body, _again(dialect, case.call).body)
    if case.response is not None and case.status < 400:
        decoded = dialect.decode_response(case.response, headers=case.headers)
        encoded = dialect.encode_response(decoded)
        broken += _differ(dialect, "response", case.response, encoded)
    return broken


def stream_round_trip(dialect: Dialect, case: Case) -> list[str]:
    """Law 3 for streams: decode, encode, decode gives the same response."""
    if case.stream is None:
        return []
    events = decode_frames(dialect, cut_frames([case.stream], case.framing))
    again = decode_frames(dialect, encode_events(dialect, events))
    return same_response(fold(events), fold(again))


def cut_is_an_error(dialect: Dialect, case: Case, cuts: Iterable[int] | None = None) -> list[str]:
    """Law 5: a truncated body gives an error, or all of the events; never fewer."""
    if case.stream is None:
        return []
    whole = _shown(decode_frames(dialect, cut_frames([case.stream], case.framing)))
    broken: list[str] = []
    for cut in range(len(case.stream)) if cuts is None else cuts:
        try:
            events = decode_frames(dialect, cut_frames([case.stream[:cut]], case.framing))
        except SDKError:
            continue
        if _shown(events) != whole:
            broken.append(f"cut at byte {cut} of {len(case.stream)}: a short success")
    return broken


def unknown_survives(dialect: Dialect, case: Case) -> list[str]:
    """Law 6: an unknown field, added to every object, comes back in its place."""
    broken: list[str] = []
    if case.call is not None:
        body = _add_unknown_fields(case.call.body)
        call = WireCall(path=case.call.path, body=body, stream=case.call.stream)
        broken += _differ(dialect, "request", body, _again(dialect, call).body)
    if case.response is not None and case.status < 400:
        body = _add_unknown_fields(case.response)
        encoded = dialect.encode_response(dialect.decode_response(body))
        broken += _differ(dialect, "response", body, encoded)
    if case.stream is not None:
        broken += _unknown_event(dialect, case)
    return broken


def errors_always_decode(
    dialect: Dialect, case: Case, statuses: Iterable[int] | None = None
) -> list[str]:
    """
    Law 7: any body gives an error with its status, which can be encoded again.

    `statuses`: the statuses to try; without them, that of the case, 429 and 500.
    """
    bodies = [b"", b"\xff\xfe", b"[]", b"null", b'{"error": 5}', b"<html>busy</html>"]
    if case.response is not None:
        bodies.append(dumps(case.response))
    tried = {max(400, case.status), 429, 500} if statuses is None else {*statuses}
    broken: list[str] = []
    for body in bodies:
        for status in tried:
            error = dialect.decode_error(status, case.headers, body)
            if error.status_code != status:
                broken.append(f"{body[:40]!r} with {status} gave {error!r}")
            if dialect.encode_error(error)[0] != status:
                broken.append(f"{error!r} is not encoded with status {status}")
    return broken


def grammar_holds(dialect: Dialect, case: Case) -> list[str]:
    """Law 8: events are in a valid order."""
    if case.stream is None:
        return []
    try:
        fold(decode_frames(dialect, cut_frames([case.stream], case.framing)))
    except SDKError as error:
        return [repr(error)]
    return []


def encoding_is_pure(dialect: Dialect, case: Case) -> list[str]:
    """Law 10: decoding and encoding do not change their input and are deterministic."""
    if case.call is None:
        return []
    body = copy.deepcopy(case.call.body)
    request = dialect.decode_request(case.call)
    before = to_document(request)
    first = dialect.encode_request(request, stream=case.call.stream)
    second = dialect.encode_request(request, stream=case.call.stream)
    broken = [] if dumps(first.body) == dumps(second.body) else ["two encodings differ"]
    broken += [f"input changed: {change}" for change in differences(body, case.call.body)]
    broken += [f"request changed: {one}" for one in differences(before, to_document(request))]
    return broken


LAWS: dict[str, Law] = {
    "1 chunking never shows": chunking_never_shows,
    "2 a stream equals the whole": stream_equals_whole,
    "3 round trip": round_trip,
    "3 round trip of streams": stream_round_trip,
    "5 a cut is an error": cut_is_an_error,
    "6 the unknown survives": unknown_survives,
    "7 errors always decode": errors_always_decode,
    "8 the grammar holds": grammar_holds,
    "10 encoding is pure": encoding_is_pure,
}
"""The laws that are checked on cases, by name."""


def _again(dialect: Dialect, call: WireCall) -> WireCall:
    return dialect.encode_request(dialect.decode_request(call), stream=call.stream)


def _differ(dialect: Dialect, kind: Kind, left: UncheckedJson, right: UncheckedJson) -> list[str]:
    return [f"{kind}: {difference}" for difference in same(dialect, kind, left, right)]


def _shown(events: list[StreamEvent]) -> list[object]:
    return [to_document(event) for event in events]


def _add_unknown_fields(value: UncheckedJson) -> Json:
    if isinstance(value, dict):
        return {
            **{key: _add_unknown_fields(item) for key, item in value.items()},
            _UNKNOWN: [1, None],
        }
    if isinstance(value, list):
        return [_add_unknown_fields(item) for item in value]
    scalar: Json = value
    return scalar


def _unknown_event(dialect: Dialect, case: Case) -> list[str]:
    """An unknown event changes nothing; a `ProviderEvent` for it is encoded again."""
    frames = cut_frames([case.stream or b""], case.framing)
    unknown = {"type": _UNKNOWN, "value": 1}
    frame = Frame(event=_UNKNOWN, data=dumps(unknown).decode())
    plain = fold(decode_frames(dialect, frames))
    events = decode_frames(dialect, [frames[0], frame, *frames[1:]])
    broken = [f"stream: {difference}" for difference in same_response(plain, fold(events))]
    if _has_event(events, unknown):
        again = decode_frames(dialect, encode_events(dialect, events))
        if not _has_event(again, unknown):
            broken.append("stream: an unknown event was not passed on")
    return broken


def _has_event(events: list[StreamEvent], data: UncheckedJson) -> bool:
    return any(isinstance(event, ProviderEvent) and event.data == data for event in events)


def _has_stream(case: Case) -> bool:
    """Whether the case has a stream."""
    return case.stream is not None


def _has_call(case: Case) -> bool:
    """Whether the case has a request."""
    return case.call is not None


def _has_answer(case: Case) -> bool:
    return _has_stream(case) or (case.response is not None and case.status < 400)


def _has_body(case: Case) -> bool:
    return _has_call(case) or (case.response is not None and case.status < 400)


_APPLIES: dict[Law, Callable[[Case], bool]] = {
    chunking_never_shows: _has_stream,
    stream_equals_whole: _has_answer,
    round_trip: _has_body,
    stream_round_trip: _has_stream,
    cut_is_an_error: _has_stream,
    unknown_survives: lambda case: _has_body(case) or _has_stream(case),
    grammar_holds: _has_stream,
    encoding_is_pure: _has_call,
}
"""Which cases have something that a law is about; a law that is not named here has all."""


def check(dialect: Dialect, cases: Iterable[Case], laws: Mapping[str, Law] | None = None) -> Report:
    """Check every law on every case. An exception is a violation too."""
    laws = LAWS if laws is None else laws
    every_case = list(cases)
    violations: list[Violation] = []
    counts = {name: [0, 0, 0] for name in laws}
    for case in every_case:
        for name, law in laws.items():
            found = _check_case(dialect, case, name, law)
            violations += found or ()
            counts[name][2 if found is None else 1 if found else 0] += 1
    return Report(
        dialect=dialect.NAME,
        cases=len(every_case),
        checks=len(every_case) * len(laws),
        violations=tuple(violations),
        scores=tuple(
            Score(law=name, passed=passed, failed=failed, not_applicable=neither)
            for name, (passed, failed, neither) in counts.items()
        ),
    )


def _check_case(dialect: Dialect, case: Case, name: str, law: Law) -> list[Violation] | None:
    """What breaks one law in one case; None if the case has nothing that the law is about."""
    applies = _APPLIES.get(inspect.unwrap(law))
    if applies is not None and not applies(case):
        return None
    details = _run(law, dialect, case)
    required = (law.__doc__ or "").strip().partition("\n")[0].partition(": ")
    found = Violation(
        law=name, case=case.name, details=tuple(details), required=required[2] or required[0]
    )
    return [found] if details else []


def _run(law: Law, dialect: Dialect, case: Case) -> list[str]:
    try:
        return law(dialect, case)
    except Exception as error:  # noqa: BLE001 -- any exception is a violation
        return [f"raised {type(error).__name__}: {error}"]
