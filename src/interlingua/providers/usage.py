"""Usage that a provider did not report is estimated, and a warning says so."""

from __future__ import annotations

from msgspec.structs import replace

from interlingua.spec.content import Part, Text
from interlingua.spec.events import Finish
from interlingua.spec.messages import Message
from interlingua.spec.modalities.embeddings import EmbedContent, EmbedInput, EmbedResult
from interlingua.spec.request import Request
from interlingua.spec.response import Response, Usage
from interlingua.spec.warnings import make_warning, target_name
from interlingua.tokens.estimate import estimate_tokens, estimate_usage


def estimate_response(response: Response, request: Request, family: str) -> Response:
    """The response with estimated usage; `family` is that of `estimate_request`."""
    usage = estimate_usage(response.usage, request, response.message, family)
    warning = make_warning("usage_estimated", target=target_name(request, family))
    return replace(response, usage=usage, warnings=(*response.warnings, warning))


def estimate_finish(
    finish: Finish, parts: tuple[Part, ...], request: Request, family: str
) -> Finish:
    """The end of a stream of these parts, with estimated usage."""
    message = Message(role="assistant", content=parts)
    response = finish.response or Response(message=message)
    estimated = estimate_response(response, request, family)
    if finish.response is not None:
        return replace(finish, usage=estimated.usage, response=estimated)
    warnings = (*finish.warnings, *estimated.warnings)
    return replace(finish, usage=estimated.usage, warnings=warnings)


def estimate_embedding(result: EmbedResult, value: EmbedInput, family: str) -> EmbedResult:
    """The result with estimated usage; the same if there is media, of which nothing is known."""
    tokens = [estimate_content(content, family) for content in value.inputs]
    known = [count for count in tokens if count is not None]
    if len(known) < len(tokens):
        return result
    target = f"{value.provider}:{value.model}" if value.provider else value.model
    warning = make_warning("usage_estimated", target=target)
    usage = Usage(input_tokens=sum(known), estimated=True)
    return replace(result, usage=usage, warnings=(*result.warnings, warning))


def estimate_content(content: EmbedContent, family: str) -> int | None:
    """The tokens of one content; None if it has media."""
    if isinstance(content, str):
        return estimate_tokens(content, family)
    tokens = 0
    for part in content:
        if not isinstance(part, (int, Text)):
            return None
        tokens += 1 if isinstance(part, int) else estimate_tokens(part.text, family)
    return tokens
