"""`interlingua translate`: a request, response or stream from one dialect to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import click

from interlingua.cli.output import BadInput, Output, json_text, with_output

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
        out.line(made.body.rstrip() if made.kind == "stream" else json_text(made.body))
        show_losses(out, made.losses)
    return 1 if strict and made.losses else 0


def show_losses(out: Output, losses: list[dict[str, Any]]) -> None:
    """Say what was lost or changed, in a line for each thing."""
    from interlingua.cli.response_losses import CHANGED, LOST

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


def _is_response(body: Any, source: Dialect) -> bool:
    """Whether the dialect finds an answer in it; a request has none."""
    from interlingua.errors import SDKError

    try:
        response = source.decode_response(body)
    except SDKError:
        return False
    reason = response.finish_reason
    return bool(reason.raw) or (bool(response.message.content) and reason.reason != "other")


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
    from interlingua.cli.response_losses import response_losses

    response = source.decode_response(body)
    translated = target.encode_response(response)
    losses = response_losses(response, target.decode_response(translated), target.NAME)
    return _Translation("response", translated, losses)


def _stream(data: bytes, source: Dialect, target: Dialect) -> _Translation:
    from interlingua.cli.response_losses import event_losses, response_losses
    from interlingua.conformance.laws import cut_frames, decode_frames, encode_events, fold
    from interlingua.dialects import encode_sse

    events = decode_frames(source, cut_frames([data]))
    translated = b"".join(map(encode_sse, encode_events(target, events)))
    again = fold(decode_frames(target, cut_frames([translated])))
    losses = response_losses(fold(events), again, target.NAME)
    return _Translation("stream", translated.decode(), losses + event_losses(events, target.NAME))
