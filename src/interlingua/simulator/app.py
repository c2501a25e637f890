"""
The simulator: an ASGI application that answers as each of the vendors would.

    app = Simulator(error(429, retry_after=1), text("Hello."))

Requests are read and answers are written by the server side of the dialects; `app.script`
knows what was received.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, Iterable, Mapping

from interlingua import dialects
from interlingua.serving.application import (
    SSE,
    Application,
    Incoming,
    RefusedError,
    check_form,
    check_key,
    count_body,
    error_reply,
    json_reply,
    refusal,
)
from interlingua.serving.asgi import Receive, Send
from interlingua.serving.delivery import Reply
from interlingua.serving.routes import serve_of
from interlingua.simulator.answer import array_chunks, make_frames, make_response, sse_chunks
from interlingua.simulator.counting import PrefixCache, count_text, prompt_text
from interlingua.simulator.delivery import FaultyDelivery
from interlingua.simulator.dsl import Malformed, Turn
from interlingua.simulator.listings import embed, simulated_model
from interlingua.simulator.reply_headers import limit_headers, request_id
from interlingua.simulator.script import Answer, Exchange, Script
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError, SDKError, ServerError
from interlingua.spec.request import Request
from interlingua.spec.serve import Failure

MARK = "x-simulated"
"""The header that every reply has."""

_MODELS = ("simulated-model",)


class Simulator(Application):
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
        self.script: Script = _script_of(answers)
        self._key = key
        self._models = None if models is None else tuple(models)
        self._cache = PrefixCache()

    async def handle(self, incoming: Incoming, receive: Receive, send: Send) -> None:
        """Record the request, and send what the script answers."""
        call = incoming.call
        exchange = self.script.record(incoming.dialect, call.method, call)
        exchange.started = time.monotonic()
        turn, reply = self._respond(exchange, incoming)
        exchange.turn = turn
        headers = {**reply.headers, **_headers(exchange, turn), **turn.headers}
        reply = reply._replace(headers=headers)
        await FaultyDelivery(exchange, turn, receive, send).send(reply)

    def _respond(self, exchange: Exchange, incoming: Incoming) -> tuple[Turn, Reply]:
        try:
            if self._key is not None:
                check_key(incoming, self._key)
            check_form(incoming)
            if incoming.route.kind == "answer":
                return self._answer(exchange, incoming)
            return Turn(), json_reply(incoming, self._describe(incoming))
        except RefusedError as refused:
            return Turn(), _refusal(exchange, incoming, refused.failure)
        except SDKError as error:
            exchange.error = exchange.error or error
            return Turn(), error_reply(incoming, error)

    def _answer(self, exchange: Exchange, incoming: Incoming) -> tuple[Turn, Reply]:
        dialect, is_stream = dialects.get(incoming.dialect), incoming.call.stream
        request = exchange.request = dialect.decode_request(incoming.call)
        self._check_model(request.model)
        turn = self._ask(exchange, request)
        failure = turn.failure or (None if is_stream else turn.late_failure)
        if failure is not None:
            return turn, _spoiled(_refusal(exchange, incoming, failure), turn)
        response = make_response(turn, request, incoming.dialect, exchange.number, self._cache)
        if not is_stream:
            reply = json_reply(incoming, dialect.encode_response(response))
            return turn, _spoiled(reply, turn)
        frames = make_frames(turn, response, request, incoming.dialect, exchange.number)
        if incoming.wants_array:
            headers = {"content-type": serve_of(incoming.dialect).SERVER.content_type}
            return turn, Reply(200, headers, array_chunks(frames), is_stream=True)
        headers = {"content-type": SSE, "cache-control": "no-cache"}
        return turn, Reply(200, headers, sse_chunks(frames), is_stream=True)

    def _ask(self, exchange: Exchange, request: Request) -> Turn:
        try:
            return self.script.answer(request)
        except Exception as error:
            exchange.error = error
            raise ServerError(f"the script failed: {error!r}") from error

    def _describe(self, incoming: Incoming) -> Json:
        """The body for a request about models, tokens or vectors."""
        route, serve = incoming.route, serve_of(incoming.dialect)
        if route.kind == "models":
            models = [simulated_model(model) for model in self._models or _MODELS]
            return serve.list_models(models, incoming.query)
        if route.kind == "model":
            self._check_model(route.model or "")
            return serve.describe_model(simulated_model(route.model or ""))
        if route.kind == "embed":
            return embed(incoming.call.body)
        return count_body(incoming, lambda request: count_text(prompt_text(request)))

    def _check_model(self, model: str) -> None:
        if self._models is not None and model not in self._models:
            raise RefusedError(Failure(status=404, model=model))


def _refusal(exchange: Exchange, incoming: Incoming, failure: Failure) -> Reply:
    model = exchange.request.model if exchange.request else ""
    return refusal(incoming, failure, model=model, request_id=request_id(exchange.number))


def _spoiled(reply: Reply, turn: Turn) -> Reply:
    """The reply with half of its body, if the turn has it malformed."""
    if not any(isinstance(fault, Malformed) for fault in turn.faults):
        return reply
    body = b"".join(reply.chunks) if not isinstance(reply.chunks, AsyncIterable) else b""
    return reply._replace(chunks=(body[: len(body) // 2],))


def _headers(exchange: Exchange, turn: Turn) -> Mapping[str, str]:
    """What every reply of the vendor's has, and the mark."""
    facts = serve_of(exchange.dialect).SERVER
    headers = {MARK: "true"}
    if facts.request_id_header is not None:
        headers[facts.request_id_header] = request_id(exchange.number)
    if turn.rate_limit is not None:
        headers.update(limit_headers(facts, turn.rate_limit))
    return headers


def _script_of(answers: tuple[Answer | Script, ...]) -> Script:
    scripts = [answer for answer in answers if isinstance(answer, Script)]
    if not scripts:
        return Script(*(answer for answer in answers if not isinstance(answer, Script)))
    if len(answers) > 1:
        raise ConfigurationError("a Script holds every answer; give it alone, or give the turns")
    return scripts[0]
