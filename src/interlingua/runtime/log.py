"""The library's logger, and the log records for what a request loses."""

from __future__ import annotations

import logging
import re

from interlingua.spec.request import Request
from interlingua.spec.response import Warning

logger: logging.Logger = logging.getLogger("interlingua")
logger.addHandler(logging.NullHandler())  # nothing is printed unless the program sets up logging

_MESSAGE_PATH = re.compile(r"messages\[(\d+)\](?:\.content\[(\d+)\])?")


def log_warnings(
    warnings: tuple[Warning, ...], request: Request, adapter: str, logged: set[str]
) -> None:
    """
    Log one record per warning code; each names the provider, the model and the setting or part.

    `logged` holds the codes that were already logged for this request; it is updated. In a session
    there is one record per code and message, as `code:message id`, because each turn sends all of
    them again.
    """
    for warning in warnings:
        message_id, part_kind = _find_part(warning.path or "", request)
        in_session = request.session_id is not None and message_id is not None
        key = f"{warning.code}:{message_id}" if in_session else warning.code
        if key in logged:
            continue
        logged.add(key)
        target = f"{adapter}:{request.model}"
        place = [part for part in (target, warning.path) if part and part not in warning.message]
        logger.warning(
            "%s: %s%s",
            warning.code,
            warning.message,
            f" ({', '.join(place)})" if place else "",
            extra={
                "request_id": request.request_id,
                "session_id": request.session_id or (request.metadata or {}).get("session_id"),
                "message_id": message_id,
                "part_kind": part_kind,
                "adapter": adapter,
                "model": request.model,
                "reason": warning.code,
            },
        )


def _find_part(path: str, request: Request) -> tuple[str | None, str | None]:
    """The id of the message and the kind of the part at a warning's path."""
    match = _MESSAGE_PATH.match(path)
    if match is None or int(match[1]) >= len(request.messages):
        return None, None
    message = request.messages[int(match[1])]
    if match[2] is None or int(match[2]) >= len(message.content):
        return message.id, None
    return message.id, message.content[int(match[2])].kind
