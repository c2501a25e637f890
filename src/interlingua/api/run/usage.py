"""The tokens of an answer that broke off."""

from __future__ import annotations

from msgspec.structs import replace

from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.tokens.estimate import estimate_request


def fill_usage(partial: Response, request: Request) -> Response:
    """
    The answer with tokens for what had come of it.

    Many providers tell them only at the end, and bill what was broken off all the same. What
    they have not told is estimated, and says so; nothing is, if nothing had come.
    """
    usage, message = partial.usage, partial.message
    if partial.finish_reason.reason not in ("cancelled", "error") or not message.content:
        return partial
    came = _estimate(request, message, partial) - _estimate(
        request, replace(message, content=()), partial
    )
    known = replace(
        usage,
        input_tokens=usage.input_tokens or estimate_request(request, partial.provider),
        output_tokens=max(usage.output_tokens, came),
    )
    return partial if known == usage else replace(partial, usage=replace(known, estimated=True))


def _estimate(request: Request, message: Message, partial: Response) -> int:
    return estimate_request(Request(model=request.model, messages=(message,)), partial.provider)
