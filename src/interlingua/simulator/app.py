"""
The simulator: an ASGI application that answers as each of the vendors would.

    app = Simulator(error(429, retry_after=1), text("Hello."))

Requests are read and answers are written by the server side of the dialects; `app.script`
knows what was received.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from interlingua import dialects
from interlingua.simulator.answer import array_chunks, make_frames, make_response, sse_chunks
from interlingua.simulator.counting import PrefixCache
from interlingua.simulator.delivery import Delivery, Receive, Scope, Send
from interlingua.simulator.dsl import Failure, Malformed, Turn
from interlingua.simulator.errors import body_bytes, retry_headers, vendor_body, wrong_key
from interlingua.simulator.listings import count_tokens, describe_model, embed, list_models
from interlingua.simulator.routes import Route, find_route, headers_of, read_call
from interlingua.simulator.rows import ROWS, limit_headers, read_key, request_id
from interlingua.simulator.script import Answer, Exchange, Script
from interlingua.spec.content import Json
from interlingua.spec.contracts import Dialect, WireCall
from interlingua.spec.errors import ConfigurationError, SDKError, ServerError
from interlingua.spec.request import Request

MARK = "x-simulated"
"""The header that every reply has."""

_MODELS = ("simulated-model",)
_SSE = "text/event-stream; charset=utf-8"


class _Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    chunks: Iterable[bytes]
    is_stream: bool = False


class _RefusedError(Exception):
    """The request is refused before the script is asked."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.status)
        self.failure = failure


class Simulator:
    """
    Answers by a script: turns, functions, or a `Script`.

    Without `key` every key is good, and none is needed. With `models` no other model is known.
    """

    def __init__(
        self,
        *answers: Answer | Script,
        key: str | None = None,
        models: Iterable[str] | None = None,
    ) -> None:
        self.script = _script_of(answers)
        self._key = key
        self._models = None if models is None else tuple(models)
        self._cache = PrefixCache()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, as ASGI has it."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            raise NotImplementedError(f"the simulator does not speak {scope['type']}")
        body = await _read_body(receive)
        if body is None:
            return  # the client left before it had said all
        call, headers = read_call(scope, body), headers_of(scope)
        route = find_route(scope["method"], call.path.partition("?")[0], headers)
        exchange = self.script.record(route.dialect, scope["method"], call)
        exchange.started = time.monotonic()
        key = read_key(headers, scope.get("query_string", b"").decode("latin-1"))
        exchange.turn, reply = self._respond(exchange, route, key)
        delivery = Delivery(exchange, exchange.turn, receive, send)
        await delivery.send(reply.status, reply.headers, reply.chunks, whole=not reply.is_stream)

    def _respond(self, exchange: Exchange, route: Route, key: str | None) -> tuple[Turn, _Reply]:
        try:
            self._admit(exchange, route, key)
            if route.operation == "answer":
                return self._answer(exchange)
            return Turn(), self._reply(exchange, Turn(), self._list(exchange, route))
        except _RefusedError as refused:
            return Turn(), self._fail(exchange, Turn(), refused.failure)
        except SDKError as error:
            exchange.error = exchange.error or error
            status, headers, body = dialects.get(exchange.dialect).encode_error(error)
            return Turn(), self._reply(exchange, Turn(), body, status=status, more=headers)

    def _admit(self, exchange: Exchange, route: Route, key: str | None) -> None:
        call, dialect = exchange.call, exchange.dialect
        if self._key is not None and not hmac.compare_digest(
            (key or "").encode(), self._key.encode()
        ):
            raise _RefusedError(wrong_key(dialect, is_missing=key is None))
        if route.operation == "unknown":
            url = f"{exchange.method} {call.path}"
            raise _RefusedError(Failure(status=404, message=f"Unknown request URL: {url}"))
        if dialect == "anthropic_messages" and "anthropic-version" not in call.headers:
            why = "anthropic-version: header is required"
            raise _RefusedError(Failure(status=400, message=why))
        if exchange.method == "POST" and not isinstance(call.body, dict):
            why = "We could not parse the JSON body of your request."
            raise _RefusedError(Failure(status=400, message=why))

    def _answer(self, exchange: Exchange) -> tuple[Turn, _Reply]:
        dialect, call = dialects.get(exchange.dialect), exchange.call
        request = exchange.request = dialect.decode_request(call)
        self._know(request.model)
        turn = self._ask(exchange, request)
        failure = turn.failure or (None if call.stream else turn.late_failure)
        if failure is not None:
            return turn, self._fail(exchange, turn, failure)
        response = make_response(turn, request, exchange.dialect, exchange.number, self._cache)
        if not call.stream:
            return turn, self._reply(exchange, turn, dialect.encode_response(response))
        frames = make_frames(turn, response, request, exchange.dialect, exchange.number)
        if _wants_array(exchange):
            headers = self._headers(exchange, turn)
            return turn, _Reply(200, headers, array_chunks(frames), is_stream=True)
        headers = {**self._headers(exchange, turn, _SSE), "cache-control": "no-cache"}
        return turn, _Reply(200, headers, sse_chunks(frames), is_stream=True)

    def _ask(self, exchange: Exchange, request: Request) -> Turn:
        try:
            return self.script.answer(request)
        except Exception as error:
            exchange.error = error
            raise ServerError(f"the script failed: {error!r}") from error

    def _list(self, exchange: Exchange, route: Route) -> Json:
        models = self._models or _MODELS
        if route.operation == "models":
            return list_models(exchange.dialect, models)
        if route.operation == "model":
            self._know(route.model or "")
            return describe_model(exchange.dialect, route.model or "")
        if route.operation == "embed":
            return embed(exchange.call.body)
        return count_tokens(
            exchange.dialect, _counted(dialects.get(exchange.dialect), exchange.call)
        )

    def _know(self, model: str) -> None:
        if self._models is not None and model not in self._models:
            raise _RefusedError(Failure(status=404, model=model))

    def _fail(self, exchange: Exchange, turn: Turn, failure: Failure) -> _Reply:
        model = failure.model or (exchange.request.model if exchange.request else "")
        body = vendor_body(
            exchange.dialect, failure, model=model, request_id=request_id(exchange.number)
        )
        if _wants_array(exchange) and isinstance(body, dict):
            body = [body]
        more = retry_headers(exchange.dialect, failure)
        return self._reply(exchange, turn, body, status=failure.status, more=more)

    def _reply(
        self,
        exchange: Exchange,
        turn: Turn,
        body: Json,
        *,
        status: int = 200,
        more: Mapping[str, str] | None = None,
    ) -> _Reply:
        content_type, said = body_bytes(body)
        if any(isinstance(fault, Malformed) for fault in turn.faults):
            said = said[: len(said) // 2]
        headers = self._headers(exchange, turn, content_type, more or {})
        return _Reply(status, headers, (said,))

    def _headers(
        self,
        exchange: Exchange,
        turn: Turn,
        content_type: str = "",
        more: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        row = ROWS[exchange.dialect]
        headers = {"content-type": content_type or row.content_type, MARK: "true"}
        if row.request_id_header is not None:
            headers[row.request_id_header] = request_id(exchange.number)
        if turn.rate_limit is not None:
            headers.update(limit_headers(row, turn.rate_limit))
        return {**headers, **(more or {}), **turn.headers}


def _script_of(answers: tuple[Answer | Script, ...]) -> Script:
    scripts = [answer for answer in answers if isinstance(answer, Script)]
    if not scripts:
        return Script(*(answer for answer in answers if not isinstance(answer, Script)))
    if len(answers) > 1:
        raise ConfigurationError("a Script holds every answer; give it alone, or give the turns")
    return scripts[0]


def _wants_array(exchange: Exchange) -> bool:
    call = exchange.call
    is_gemini = exchange.dialect == "gemini_generate"
    return is_gemini and call.stream and "alt=sse" not in call.path.partition("?")[2]


def _counted(dialect: Dialect, call: WireCall) -> Request:
    """The request whose tokens are asked for; Gemini may wrap it in another object."""
    inner = call.body.get("generateContentRequest")
    body = inner if isinstance(inner, dict) else call.body
    return dialect.decode_request(WireCall(path=call.path, body=body, headers=call.headers))


async def _read_body(receive: Receive) -> bytes | None:
    chunks: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return
