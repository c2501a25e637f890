"""Error replies in the words of each vendor; what a load balancer answers is HTML."""

from __future__ import annotations

from interlingua.serving.routes import serve_of
from interlingua.spec.content import Json
from interlingua.spec.errors import ProviderError
from interlingua.spec.serve import Failure
from interlingua.wire.classify import classify, read_fault
from interlingua.wire.json_text import dumps

_HTML = (
    "<html>\r\n<head><title>{0} {1}</title></head>\r\n<body>\r\n<center><h1>{0} {1}</h1></center>"
    "\r\n</body>\r\n</html>\r\n"
)
_PHRASES = {502: "Bad Gateway", 503: "Service Temporarily Unavailable", 504: "Gateway Time-out"}


def vendor_body(dialect: str, failure: Failure, *, model: str, request_id: str) -> Json:
    """The body this vendor sends with the failure's status: JSON, or text that is not."""
    if failure.body is not None:
        return failure.body
    body = serve_of(dialect).error_body(failure, model=model, request_id=request_id)
    if body is None:
        return _HTML.format(failure.status, _PHRASES.get(failure.status, "Error"))
    return body


def body_bytes(body: Json) -> tuple[str, bytes]:
    """The content type (empty for JSON) and bytes of a body as it was given."""
    if isinstance(body, str):
        body = body.encode()
    if isinstance(body, bytes):
        return "text/html" if body.lstrip().startswith(b"<") else "text/plain", body
    return "", dumps(body)


def retry_headers(dialect: str, failure: Failure) -> dict[str, str]:
    """`retry-after`, except where the vendor says it in the body."""
    if failure.retry_after is None or not serve_of(dialect).SERVER.retry_after_header:
        return {}
    return {"retry-after": f"{failure.retry_after:g}"}


def as_error(dialect: str, failure: Failure, *, model: str, request_id: str) -> ProviderError:
    """The failure as an error of ours, for a stream's error event."""
    body = vendor_body(dialect, failure, model=model, request_id=request_id)
    fault = read_fault(body)
    return classify(failure.status, fault)(
        failure.message or fault.message or "no message",
        status_code=failure.status,
        error_code=fault.code or fault.kind,
        retry_after=failure.retry_after,
        raw=body,
    )
