"""Request <-> path and body."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, unquote

from interlingua.dialects.gemini_generate.messages import decode_messages, encode_messages
from interlingua.dialects.gemini_generate.settings import decode_settings, encode_settings
from interlingua.dialects.gemini_generate.tools import decode_tools, encode_tools
from interlingua.dialects.gemini_generate.wire import NAME, PATH, REQUEST, to_camel
from interlingua.spec.contracts import DEFAULT, Profile, WireCall
from interlingua.spec.request import Request
from interlingua.wire.carry import Losses
from interlingua.wire.options import foreign_options, merge, options_for
from interlingua.wire.shape import Fields, request_errors

_find_address = re.compile(r"(.*/models/)([^/:]+)(:\w+)").fullmatch
_generate = re.compile(r":(?:g|streamG)enerateContent$")
_SECRETS = ("key=", "access_token=")


def encode_request(
    request: Request,
    profile: Profile = DEFAULT,  # noqa: ARG001 -- the neutral mapping needs nothing of it
    *,
    stream: bool = False,
) -> WireCall:
    """What a client sends."""
    losses = Losses()
    options = options_for(request, NAME)
    path = _encode_path(str(options.pop("path", PATH)), request.model, stream=stream)
    body: dict[str, Any] = {}
    encode_messages(request, body, losses)
    encode_tools(request, body, losses)
    encode_settings(request, body, losses)
    return WireCall(
        path=path,
        body=merge(body, options),
        stream=stream,
        warnings=(*losses.warnings, *foreign_options(request, NAME)),
    )


def decode_request(call: WireCall) -> Request:
    """What a server received."""
    with request_errors():
        fields = Fields(to_camel(call.body, REQUEST))
        model, options = _decode_path(call.path)
        settings = decode_settings(fields)
        tools = decode_tools(fields)
        messages = decode_messages(fields)
        options.update(fields.left)
        return Request(
            model=model,
            messages=messages,
            provider_options={NAME: options} if options else {},
            **settings,
            **tools,
        )


# The path names the model and the method. Another prefix, operation or query is kept as a
# template; whether the method streams is said by `stream` each time.


def _encode_path(template: str, model: str, *, stream: bool) -> str:
    path, _, query = template.partition("?")
    method = ":streamGenerateContent" if stream else ":generateContent"
    generates = _generate.search(path) is not None
    path = _generate.sub(method, path)
    path = path.replace("{model}", quote(model.removeprefix("models/"), safe="@"))
    if stream and generates and "alt=" not in query:
        query = f"{query}&alt=sse" if query else "alt=sse"
    return f"{path}?{query}" if query else path


def _decode_path(given: str) -> tuple[str, dict[str, Any]]:
    path, _, query = given.partition("?")
    kept = [item for item in query.split("&") if item and item != "alt=sse"]
    query = "&".join(item for item in kept if not item.startswith(_SECRETS))
    found = _find_address(path)
    model = unquote(found[2]) if found else ""
    template = f"{found[1]}{{model}}{found[3]}" if found else path
    template = _generate.sub(":generateContent", template)
    if query:
        template = f"{template}?{query}"
    return model, {} if template in ("", PATH) else {"path": template}
