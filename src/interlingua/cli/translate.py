"""`interlingua translate`: a request, response or stream from one dialect to another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import click
from msgspec.structs import fields

from interlingua.cli.output import BadInput, Output, json_text, shown_json, with_output
from interlingua.cli.tables import shorten
from interlingua.events import ProviderEvent, StreamEvent
from interlingua.spec.content import Json, Part, UncheckedJson
from interlingua.spec.response import Response, Usage

if TYPE_CHECKING:
    from interlingua.dialects import Dialect


_KINDS = ("auto", "request", "response", "stream")
LOST, CHANGED = "lost", "changed"
_LONGEST = 60  # columns of a value that are shown
_NOT_COMPARED = frozenset(("extra", "raw_arguments"))
"""Fields of parts that are compared in another way; arguments are compared parsed."""
_NOT_COUNTS = frozenset(("raw", "estimated", "extra"))


class _Translation(NamedTuple):
    kind: str
    body: Json
    """A JSON value, or the text of a stream."""
    losses: Sequence[Mapping[str, str | None]]


@click.command("translate")
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--from", "source", required=True, help="The dialect of the file.")
@click.option("--to", "target", required=True, help="The dialect to translate to.")
@click.option(
    "--kind",
    type=click.Choice(_KINDS),
    default="auto",
    show_default=True,
    help="What the file holds; `auto` finds out.",
)
@click.option("--strict", is_flag=True, help="End with exit code 1 if anything was lost.")
@with_output
def command(
    out: Output, file: BinaryIO, *, source: str, target: str, kind: str, strict: bool
) -> int:
    r"""
    Translate a request, a response or a stream from one dialect to another.

    FILE holds JSON, or the server-sent events of a stream; `-` is stdin. The translation goes to
    stdout, and what was lost or changed to stderr. With --json, both are in one object.

    \b
    interlingua translate request.json --from DIALECT --to DIALECT
    """
    from interlingua.errors import SDKError
    from interlingua.providers.provider import find_dialect

    data = file.read()
    ours, theirs = find_dialect(source), find_dialect(target)
    try:
        made = _translate(data, ours, theirs, kind)
    except SDKError as error:
        raise BadInput(f"{file.name} cannot be translated: {error}") from error
    if out.json:
        out.data({"kind": made.kind, "body": made.body, "losses": made.losses})
    else:
        text = made.body.rstrip() if isinstance(made.body, str) else json_text(made.body)
        out.line(shown_json(text))
        show_losses(out, made.losses)
    return 1 if strict and made.losses else 0


def show_losses(out: Output, losses: Sequence[Mapping[str, str | None]]) -> None:
    """Say what was lost or changed, in a line for each thing."""
    for loss in losses:
        path = f"{loss['path']}: " if loss["path"] else ""
        code = "" if loss["code"] in (LOST, CHANGED) else f" [{loss['code']}]"
        out.warn(f"{path}{loss['message']}{code}")


def _translate(data: bytes, source: Dialect, target: Dialect, kind: str) -> _Translation:
    is_stream = data.lstrip().startswith((b"data:", b"event:", b"id:", b":"))
    if kind == "stream" or (kind == "auto" and is_stream):
        return _stream(data, source, target)
    from interlingua.wire.json_text import loads

    body = loads(data)
    if kind == "auto":
        kind = "response" if _is_response(body, source) else "request"
    return _response(body, source, target) if kind == "response" else _request(body, source, target)


def _is_response(body: UncheckedJson, source: Dialect) -> bool:
    """Whether the dialect finds an answer in it; a request has none."""
    from interlingua.errors import SDKError

    try:
        response = source.decode_response(body)
    except SDKError:
        return False
    reason = response.finish_reason
    return bool(reason.raw) or (bool(response.message.content) and reason.reason != "other")


def _request(body: UncheckedJson, source: Dialect, target: Dialect) -> _Translation:
    from interlingua.dialects import WireCall

    is_stream = bool(isinstance(body, dict) and body.get("stream"))
    request = source.decode_request(WireCall(body=body, stream=is_stream))
    call = target.encode_request(request, stream=is_stream)
    losses = [
        {"path": each.path, "code": each.code, "message": each.message} for each in call.warnings
    ]
    return _Translation("request", call.body, losses)


def _response(body: UncheckedJson, source: Dialect, target: Dialect) -> _Translation:
    response = source.decode_response(body)
    translated = target.encode_response(response)
    losses = response_losses(response, target.decode_response(translated), target.NAME)
    return _Translation("response", translated, losses)


def _stream(data: bytes, source: Dialect, target: Dialect) -> _Translation:
    from interlingua.conformance.laws import cut_frames, decode_frames, encode_events, fold
    from interlingua.dialects import encode_sse

    events = decode_frames(source, cut_frames([data]))
    translated = b"".join(map(encode_sse, encode_events(target, events)))
    again = fold(decode_frames(target, cut_frames([translated])))
    losses = response_losses(fold(events), again, target.NAME)
    return _Translation("stream", translated.decode(), losses + event_losses(events, target.NAME))


def response_losses(before: Response, after: Response, target: str) -> list[dict[str, str]]:
    """Each difference with its path, `lost` or `changed` as its code, and a sentence."""
    return [
        *_values({name: getattr(before, name) for name in ("id", "model")}, after, ""),
        *_finish(before, after),
        *_parts(before, after, target),
        *_values(_counts(before.usage), after.usage, "usage."),
        *_unknown(before.extra, after.extra, "", target),
    ]


def event_losses(events: Iterable[StreamEvent], target: str) -> list[dict[str, str]]:
    """The events of the source that only its own dialect has."""
    names: dict[str, int] = {}
    for event in events:
        if isinstance(event, ProviderEvent) and event.dialect != target:
            name = event.name or str(_mapping(event.data).get("type") or event.dialect)
            names[name] = names.get(name, 0) + 1
    return [
        _loss(LOST, "events", f"{count} event{'s' * (count > 1)} {name!r}: {target} has no such")
        for name, count in names.items()
    ]


def _loss(code: str, path: str, message: str) -> dict[str, str]:
    return {"path": path, "code": code, "message": message}


def _values(before: Mapping[str, object], after: object, prefix: str) -> Iterator[dict[str, str]]:
    for name, value in before.items():
        other = getattr(after, name)
        if value != other and value:
            yield _difference(f"{prefix}{name}", value, other)
        elif value != other and other:
            yield _loss(CHANGED, f"{prefix}{name}", f"is {_short(other)}, which was not given")


def _difference(path: str, value: object, other: object) -> dict[str, str]:
    if other in (None, "", (), {}, 0):
        return _loss(LOST, path, f"{_short(value)} is lost")
    return _loss(CHANGED, path, f"{_short(value)} becomes {_short(other)}")


def _finish(before: Response, after: Response) -> Iterator[dict[str, str]]:
    reason, other = before.finish_reason.reason, after.finish_reason.reason
    if reason != other:
        raw = before.finish_reason.raw
        note = f" (it was {raw!r})" if raw and raw != reason else ""
        yield _loss(CHANGED, "finish_reason", f"{reason!r} becomes {other!r}{note}")


def _counts(usage: Usage) -> dict[str, object]:
    names = (field.name for field in fields(usage) if field.name not in _NOT_COUNTS)
    return {name: getattr(usage, name) for name in names}


# Parts.


def _parts(before: Response, after: Response, target: str) -> Iterator[dict[str, str]]:
    """Parts of each kind are compared in their order."""
    left: dict[str, list[Part]] = {}
    for part in after.message.content:
        left.setdefault(part.kind, []).append(part)
    texts = ["".join(map(_text, each.message.content)) for each in (before, after)]
    for index, part in enumerate(before.message.content):
        path = f"content[{index}]"
        others = left.get(part.kind)
        if others:
            yield from _fields(part, others.pop(0), path, is_same_text=texts[0] == texts[1])
        elif part.kind != "text" or texts[0] != texts[1]:
            place = "becomes text" if _text(part) and _text(part) in texts[1] else "is lost"
            yield _loss(CHANGED if "text" in place else LOST, path, f"{part.kind} {place}")
        extra = _without(part.extra, {field.name for field in fields(part)})
        yield from _unknown(extra, _extra_of(after, part.kind), f"{path}.", target)


def _text(part: Part) -> str:
    return getattr(part, "text", None) or "" if part.kind == "text" else ""


def _fields(part: Part, other: Part, path: str, *, is_same_text: bool) -> Iterator[dict[str, str]]:
    skipped = {*_NOT_COMPARED, *(("text",) if part.kind == "text" and is_same_text else ())}
    names = [field.name for field in fields(part) if field.name not in skipped]
    yield from _values({name: getattr(part, name) for name in names}, other, f"{path}.")


def _without(extra: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    """The unknown fields, without the dialect's own form of a field that is compared."""
    return {
        dialect: {name: value for name, value in _mapping(values).items() if name not in names}
        for dialect, values in extra.items()
    }


def _extra_of(after: Response, kind: str) -> dict[str, Any]:
    """The unknown fields that any part of this kind still has."""
    merged: dict[str, Any] = {}
    for part in after.message.content:
        if part.kind == kind:
            for dialect, values in part.extra.items():
                merged[dialect] = {**merged.get(dialect, {}), **_mapping(values)}
    return merged


def _unknown(
    before: Mapping[str, object], after: Mapping[str, object], prefix: str, target: str
) -> Iterator[dict[str, str]]:
    for dialect, values in before.items():
        rest = _mapping(after.get(dialect))
        for name, value in _mapping(values).items():
            if name not in rest and value not in (None, [], {}, ""):
                text = f"{_short(value)} is lost: {target} has no place for it"
                yield _loss(LOST, f"{prefix}{name}", text)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _short(value: object) -> str:
    return shorten(repr(value), _LONGEST)
