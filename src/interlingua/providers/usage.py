"""Usage that a provider did not report is estimated, and a warning says so."""

from __future__ import annotations

from msgspec.structs import replace

from interlingua.spec.content import Part
from interlingua.spec.events import Finish
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.spec.warnings import make_warning, target_name
from interlingua.tokens.estimate import estimate_usage


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
    return replace(finish, usage=estimated.usage, warnings=estimated.warnings)
