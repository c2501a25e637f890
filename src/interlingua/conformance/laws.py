"""
The laws of a dialect.

Each takes a dialect and a case and returns what breaks it; an empty list means it holds,
also when the case has nothing the law is about. Anything but the library's own errors
escaping from a dialect is a failure too.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from interlingua.conformance.cases import (
    Case,
    cut_frames,
    decode_frames,
    encode_events,
    fold,
)
from interlingua.conformance.equality import Kind, differences, normal_form, same_response
from interlingua.spec.content import Json
from interlingua.spec.contracts import Dialect, Frame, WireCall
from interlingua.spec.errors import SDKError
from interlingua.spec.events import ProviderEvent, StreamEvent
from interlingua.spec.json_form import to_document
from interlingua.streams.accumulate import events_from_response
from interlingua.wire.envelope import carried_body
from interlingua.wire.json_text import dumps

Law: TypeAlias = Callable[[Dialect, Case], list[str]]

_UNKNOWN = "x_not_yet_invented"


def chunking_never_shows(
    dialect: Dialect, case: Case, cuts: Iterable[int] | None = None
) -> list[str]:
    """Law 1: chunks (of one byte by default), line ends, a BOM and comments change nothing."""
    if case.stream is None:
        return []
    whole = cut_frames([case.stream], case.framing)
    events = _shown(decode_frames(dialect, whole))
    places = range(1, len(case.stream)) if cuts is None else sorted(cuts)
    edges = itertools.pairwise([0, *places, len(case.stream)])
    chunked = cut_frames((case.stream[start:end] for start, end in edges), case.framing)
    broken: list[str] = []
    if chunked != whole or _shown(decode_frames(dialect, chunked)) != events:
        how = "one byte at a time" if cuts is None else f"cut at {places}"
        broken.append(f"{how} differs")
    if case.framing == "sse" and b"\r" not in case.stream:
        for name, ending in (("CRLF", b"\r\n"), ("CR", b"\r")):
            dressed = b"\xef\xbb\xbf: comment\n\n" + case.stream
            if cut_frames([dressed.replace(b"\n", ending)]) != whole:
                broken.append(f"{name} line ends differ")
    return broken


def stream_equals_whole(dialect: Dialect, case: Case) -> list[str]:
    """Law 2: a stream adds up to what the whole response decodes to."""
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
            broken += same_response(whole, fold(events))
    return broken


def round_trip(dialect: Dialect, case: Case) -> list[str]:
    """Law 3: what is decoded is encoded again to the same meaning."""
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
    """Law 5: a body cut anywhere gives an error, or all of its events; never fewer."""
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
    """Law 6: a field nobody knows yet, in every object, comes back where it was."""
    broken: list[str] = []
    if case.call is not None:
        strange = _sprinkle(case.call.body)
        call = WireCall(path=case.call.path, body=strange, stream=case.call.stream)
        broken += _differ(dialect, "request", strange, _again(dialect, call).body)
    if case.response is not None and case.status < 400:
        strange = _sprinkle(case.response)
        encoded = dialect.encode_response(dialect.decode_response(strange))
        broken += _differ(dialect, "response", strange, encoded)
    if case.stream is not None:
        broken += _strange_event(dialect, case)
    return broken


def errors_always_decode(dialect: Dialect, case: Case) -> list[str]:
    """Law 7: any body becomes an error of its status, and can be said again."""
    bodies = [b"", b"\xff\xfe", b"[]", b"null", b'{"error": 5}', b"<html>busy</html>"]
    if case.response is not None:
        bodies.append(dumps(case.response))
    broken: list[str] = []
    for body in bodies:
        for status in {max(400, case.status), 429, 500}:
            error = dialect.decode_error(status, case.headers, body)
            if error.status_code != status:
                broken.append(f"{body[:40]!r} with {status} gave {error!r}")
            if dialect.encode_error(error)[0] != status:
                broken.append(f"{error!r} is not said with status {status}")
    return broken


def grammar_holds(dialect: Dialect, case: Case) -> list[str]:
    """Law 8: events come in legal order."""
    if case.stream is None:
        return []
    try:
        fold(decode_frames(dialect, cut_frames([case.stream], case.framing)))
    except SDKError as error:
        return [repr(error)]
    return []


def encoding_is_pure(dialect: Dialect, case: Case) -> list[str]:
    """Law 10: decoding and encoding change none of their input; equal in, equal bytes out."""
    if case.call is None:
        return []
    body = copy.deepcopy(case.call.body)
    request = dialect.decode_request(case.call)
    before = to_document(request)
    first = dialect.encode_request(request, stream=case.call.stream)
    second = dialect.encode_request(request, stream=case.call.stream)
    broken = [] if dumps(first.body) == dumps(second.body) else ["two encodings differ"]
    broken += [f"input changed: {found}" for found in differences(body, case.call.body)]
    broken += [f"request changed: {found}" for found in differences(before, to_document(request))]
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


def _again(dialect: Dialect, call: WireCall) -> WireCall:
    return dialect.encode_request(dialect.decode_request(call), stream=call.stream)


def _differ(dialect: Dialect, kind: Kind, left: Json, right: Json) -> list[str]:
    normal = normal_form(dialect, kind)
    return [f"{kind}: {found}" for found in differences(normal(left), normal(right))]


def _shown(events: list[StreamEvent]) -> list[Any]:
    return [to_document(event) for event in events]


def _sprinkle(value: Any) -> Any:
    if isinstance(value, dict):
        return {**{key: _sprinkle(item) for key, item in value.items()}, _UNKNOWN: [1, None]}
    if isinstance(value, list):
        return [_sprinkle(item) for item in value]
    return value


def _strange_event(dialect: Dialect, case: Case) -> list[str]:
    """An event of an unknown type breaks nothing, and is passed on if it can be seen as one."""
    frames = cut_frames([case.stream or b""], case.framing)
    strange = {"type": _UNKNOWN, "value": 1}
    frame = Frame(event=_UNKNOWN, data=dumps(strange).decode())
    plain = fold(decode_frames(dialect, frames))
    events = decode_frames(dialect, [frames[0], frame, *frames[1:]])
    broken = [f"stream: {found}" for found in same_response(plain, fold(events))]
    seen = [event for event in events if isinstance(event, ProviderEvent) and event.data == strange]
    if seen:
        again = decode_frames(dialect, encode_events(dialect, events))
        if not any(isinstance(e, ProviderEvent) and e.data == strange for e in again):
            broken.append("stream: an unknown event was not passed on")
    return broken
