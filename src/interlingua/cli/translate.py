"""`interlingua translate`: a request, response or stream from one dialect to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import click

from interlingua.cli.output import Output, json_text, with_output

if TYPE_CHECKING:
    from interlingua.dialects import Dialect

_KINDS = ("auto", "request", "response", "stream")


class _Translation(NamedTuple):
    kind: str
    body: Any
    """A JSON value, or the text of a stream."""
    losses: list[dict[str, Any]]


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
    from interlingua.providers.provider import find_dialect

    data = file.read()
    made = _translate(data, find_dialect(source), find_dialect(target), kind)
    if out.json:
        out.data({"kind": made.kind, "body": made.body, "losses": made.losses})
    else:
        out.line(made.body.rstrip() if made.kind == "stream" else json_text(made.body))
        for loss in made.losses:
            out.note(" ".join(str(value) for value in loss.values() if value))
    return 1 if strict and made.losses else 0


def _translate(data: bytes, source: Dialect, target: Dialect, kind: str) -> _Translation:
    is_stream = data.lstrip().startswith((b"data:", b"event:", b"id:", b":"))
    if kind == "stream" or (kind == "auto" and is_stream):
        return _stream(data, source, target)
    from interlingua.wire.json_text import loads

    body = loads(data)
    if kind == "auto":
        kind = "response" if _is_response(body, source) else "request"
    return _response(body, source, target) if kind == "response" else _request(body, source, target)


def _is_response(body: Any, source: Dialect) -> bool:
    """Whether the dialect finds an answer in it; a request has none."""
    from interlingua.errors import SDKError

    try:
        response = source.decode_response(body)
    except SDKError:
        return False
    return bool(response.message.content) and response.finish_reason.reason != "other"


def _request(body: Any, source: Dialect, target: Dialect) -> _Translation:
    from interlingua.dialects import WireCall

    is_stream = bool(isinstance(body, dict) and body.get("stream"))
    request = source.decode_request(WireCall(body=body, stream=is_stream))
    call = target.encode_request(request, stream=is_stream)
    losses = [
        {"path": each.path, "code": each.code, "message": each.message} for each in call.warnings
    ]
    return _Translation("request", call.body, losses)


def _response(body: Any, source: Dialect, target: Dialect) -> _Translation:
    from interlingua.conformance.canonical import response_survives

    response = source.decode_response(body)
    losses = [{"message": each} for each in response_survives(target, response)]
    return _Translation("response", target.encode_response(response), losses)


def _stream(data: bytes, source: Dialect, target: Dialect) -> _Translation:
    from interlingua.conformance.canonical import response_survives
    from interlingua.conformance.laws import cut_frames, decode_frames, encode_events, fold
    from interlingua.dialects import encode_sse

    events = decode_frames(source, cut_frames([data]))
    losses = [{"message": each} for each in response_survives(target, fold(events))]
    text = b"".join(map(encode_sse, encode_events(target, events))).decode()
    return _Translation("stream", text, losses)
