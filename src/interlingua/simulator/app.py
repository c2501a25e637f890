"""
The simulator: an ASGI application that answers as each of the vendors would.

    app = Simulator(error(429, retry_after=1), text("Hello."))

The server side of each dialect reads requests and writes answers; `app.script` records what was
received.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, Iterable, Mapping

from interlingua import dialects
from interlingua.providers.catalog.profiles import profile_for
from interlingua.serving.application import (
    Application,
    Incoming,
    RefusedError,
    check_form,
    check_key,
    count_body,
    error_reply,
    failure_reply,
    find_route,
    frames_reply,
    json_reply,
    limit_headers,
    operation_reply,
    serve_of,
)
from interlingua.serving.asgi import (
    CutConnectionError,
    Delivery,
    Receive,
    Reply,
    ResetConnectionError,
    Send,
)
from interlingua.simulator.answer import (
    PrefixCache,
    count_text,
    make_frames,
    make_response,
    prompt_text,
    request_id,
    simulated_model,
)
from interlingua.simulator.dsl import Fault, Turn, fail
from interlingua.simulator.operations import SimulatedOperations
from interlingua.simulator.operations.files import POLLS
from interlingua.simulator.operations.videos import VideoScript
from interlingua.simulator.script import KEEP, Answer, Exchange, Script, ScriptError
from interlingua.simulator.stored import (
    StoredResponses,
    compacted,
    conversation_of,
    not_stored,
    open_summaries,
)
from interlingua.spec.content import Json, UncheckedJson
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import ConfigurationError, DecodeError, SDKError, ServerError
from interlingua.spec.modalities.batch import BatchReply
from interlingua.spec.operations import Failure
from interlingua.spec.request import Request
from interlingua.wire.batches import expired
from interlingua.wire.json_text import loads

_EXPIRED = 408
_OF_CONNECTIONS = {"cut", "clean_cut", "reset", "stall"}


class SimulatedResetError(ResetConnectionError):
    """Raised to reset the connection."""


class SimulatedCutError(CutConnectionError):
    """Raised to close the connection in the middle of the reply."""


class FaultyDelivery(Delivery):
    """
    Sends one reply with the pace and the faults of its turn, and records the outcome.

    ASGI has no message for a broken connection, so `SimulatedResetError` and `SimulatedCutError`
    are raised. Our own server performs them on the socket; any other server closes the connection
    when its application fails, which is nearly the same.
    """

    def __init__(self, exchange: Exchange, turn: Turn, receive: Receive, send: Send) -> None:
        super().__init__(receive, send)
        self._exchange = exchange
        self._pace = turn.pace
        faults = [fault for fault in turn.faults if fault.kind in _OF_CONNECTIONS]
        self._before = [fault for fault in faults if fault.at is None]
        self._within = sorted((each for each in faults if each.at is not None), key=_offset)
        self._is_first = True
        self._is_over = False

    async def before_head(self, reply: Reply) -> None:
        """Wait, and apply the faults that come before the headers."""
        await self.sleep(self._pace.first)
        for fault in self._before:
            await self._apply(fault)
        self._exchange.status = reply.status

    def whole_body(self, body: bytes) -> bytes:
        """The body, shortened by a clean cut, so that its content-length is right."""
        ends = [fault.at for fault in self._within if fault.kind == "clean_cut"]
        return body[: ends[0]] if ends else body

    async def write(self, chunk: bytes) -> None:
        """Send the chunk in pieces, with the pace and the faults of the turn."""
        size = self._pace.write_bytes or len(chunk) or 1
        for start in range(0, 0 if self._is_over else len(chunk), size):
            await self.sleep(0 if self._is_first else self._pace.between)
            self._is_first = False
            await self._write_piece(chunk[start : start + size])

    def ended(self) -> None:
        """Record the end."""
        exchange = self._exchange
        exchange.ended = time.monotonic()
        exchange.disconnected = self.disconnected
        exchange.over.set()

    async def _write_piece(self, piece: bytes) -> None:
        while self._within and _offset(self._within[0]) <= self._exchange.sent_bytes + len(piece):
            fault = self._within.pop(0)
            room = max(_offset(fault) - self._exchange.sent_bytes, 0)
            await self._count_and_put(piece[:room])
            piece = piece[room:]
            await self._apply(fault)
        await self._count_and_put(piece)

    async def _count_and_put(self, piece: bytes) -> None:
        if not self._is_over:
            await self.put_body(piece)
            self._exchange.sent_bytes += len(piece)

    async def _apply(self, fault: Fault) -> None:
        if fault.kind == "stall":
            await self.sleep(fault.seconds)
        elif fault.kind == "reset":
            raise SimulatedResetError("A simulated reset.")
        elif fault.kind == "clean_cut":
            self._is_over = True  # the rest of the body is not sent
        else:
            raise SimulatedCutError("A simulated cut.")


def _offset(fault: Fault) -> int:
    return fault.at or 0


MARK = "x-simulated"
"""A header of every reply."""

_MODELS = ("simulated-model",)


class Simulator(Application):
    """
    Answers requests from a script: turns, functions, or a `Script`.

    With `key`, requests need that key; by default none is needed. With `models`, any other model
    is unknown (404). With `strict`, a body is refused (400) if a required field is missing, or if
    the client side of its dialect would have to change the request for the model, or if it refers
    to a response that was not stored. `videos` say how video jobs go on, one after another.

    `script.received` has the last `keep` exchanges.

    The requests of a batch are answered by the script too, a share each time that the batch is
    asked for; it ends when it was asked for `batch_polls` times. Let a function choose the answers
    of requests that fail: an error in the list may be the reply to another call. A request that
    the script answers with `error(408)` expires.
    """

    def __init__(
        self,
        *answers: Answer | Script,
        key: str | None = None,
        models: Iterable[str] | None = None,
        strict: bool = False,
        videos: Iterable[VideoScript] = (),
        batch_polls: int = POLLS,
        keep: int | None = KEEP,
    ) -> None:
        self.script: Script = _script_of(answers, keep)
        self._key = key
        self._models = None if models is None else tuple(models)
        self._strict = strict
        self._stored = StoredResponses()
        self._cache = PrefixCache()
        self._operations = SimulatedOperations(
            self._check_model, self._answer_item, videos=videos, batch_polls=batch_polls
        )

    async def handle(self, incoming: Incoming, receive: Receive, send: Send) -> None:
        """Record the request and send the answer of the script."""
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
            if incoming.route.kind == "operation":
                return self._perform(exchange, incoming)
            return Turn(), json_reply(incoming, self._describe(incoming))
        except RefusedError as refused:
            return Turn(), _refusal(exchange, incoming, refused.failure)
        except SDKError as error:
            exchange.error = exchange.error or error
            return Turn(), error_reply(incoming, error)

    def _answer_item(self, item_id: str, call: WireCall) -> BatchReply:
        """The reply to one request of a batch; the request is recorded as any other request."""
        route = find_route(call.method, call.path, call.headers)
        exchange = self.script.record(route.dialect, call.method, call)
        incoming = Incoming(call=call, route=route, query={}, key=self._key)
        exchange.turn, reply = self._respond(exchange, incoming)
        exchange.status = reply.status
        exchange.over.set()
        if reply.status == _EXPIRED:
            return BatchReply(id=item_id, error=expired())
        return BatchReply(
            id=item_id,
            status=reply.status,
            body=reply_json(reply),
            provider_request_id=request_id(exchange.number),
        )

    def _answer(self, exchange: Exchange, incoming: Incoming) -> tuple[Turn, Reply]:
        dialect, is_stream = dialects.get(incoming.dialect), incoming.call.stream
        incoming, items = self._stored.resolve(incoming) if self._strict else (incoming, ())
        incoming = open_summaries(incoming)
        request = exchange.request = dialect.decode_request(incoming.call)
        self._check_model(request.model)
        address = serve_of(incoming.dialect).SERVER.file_address
        self._operations.files.check_messages(request.messages, address)
        if self._strict:
            check_body(incoming, request)
        turn = self._ask(exchange, conversation_of(incoming, request))
        if turn.raised is not None:
            return turn, error_reply(incoming, turn.raised)
        failure = turn.failure or (None if is_stream else turn.late_failure)
        if failure is not None:
            return turn, _spoiled(_refusal(exchange, incoming, failure), turn)
        response = make_response(turn, request, incoming.dialect, exchange.number, self._cache)
        response = compacted(incoming, response, exchange.number)
        if self._strict or not is_stream:
            body = dialect.encode_response(response, request)
            if self._strict:
                self._stored.keep(exchange.call, incoming.dialect, items, body)
            if not is_stream:
                return turn, _spoiled(json_reply(incoming, body), turn)
        frames = make_frames(turn, response, request, incoming.dialect, exchange.number)
        return turn, frames_reply(incoming, frames)

    def _perform(self, exchange: Exchange, incoming: Incoming) -> tuple[Turn, Reply]:
        """The reply to an operation, with the failure or the delays that the script has for it."""
        if (missing := not_stored(incoming)) is not None:
            raise missing
        turn = self.script.for_operation()
        if turn.raised is not None:
            return turn, error_reply(incoming, turn.raised)
        if turn.failure is not None:
            return turn, _refusal(exchange, incoming, turn.failure)
        return turn, operation_reply(incoming, self._operations.perform)

    def _ask(self, exchange: Exchange, request: Request) -> Turn:
        try:
            return self.script.answer(request)
        except ScriptError as error:
            exchange.error = error.cause or error
            return fail(ServerError(error.message, cause=error))

    def _describe(self, incoming: Incoming) -> Json:
        """The reply to a request for models or token counts."""
        route, serve = incoming.route, serve_of(incoming.dialect)
        if route.kind == "models":
            models = [simulated_model(model) for model in self._models or _MODELS]
            return serve.list_models(models, incoming.query)
        if route.kind == "model":
            self._check_model(route.model or "")
            return serve.describe_model(simulated_model(route.model or ""))
        return count_body(incoming, lambda request: count_text(prompt_text(request)))

    def _check_model(self, model: str) -> None:
        if self._models is not None and model not in self._models:
            raise RefusedError(Failure(status=404, model=model))


def check_body(incoming: Incoming, request: Request) -> None:
    """Raise `RefusedError` for a body that the vendor would refuse."""
    call, facts = incoming.call, serve_of(incoming.dialect).SERVER
    given = {*call.body, "model"} if request.model else {*call.body}  # a path may name the model
    for name in facts.required_fields:
        if name not in given:
            raise RefusedError(Failure(status=400, message=f"{name}: Field required"))
    problem = None if facts.body_problem is None else facts.body_problem(call.body)
    if problem is not None:
        raise RefusedError(Failure(status=400, message=problem))
    roles = (message.role for message in request.messages)
    prompts = {f"messages[{i}]" for i, role in enumerate(roles) if role == "system"}
    version = call.headers.get(facts.version_header)
    # A client's profile asks the vendor not to store; a vendor stores unless it is asked.
    overrides: dict[str, bool | str] = {"stateless": False}
    if version is not None:
        overrides["api_version"] = version
    profile = profile_for(incoming.dialect, request.model, overrides=overrides)
    for warning in dialects.get(incoming.dialect).encode_request(request, profile).warnings:
        path = warning.path or "body"
        is_empty_prompt = warning.code == "empty_message_dropped" and path in prompts
        if is_empty_prompt or warning.code.endswith("_implied"):  # vendors accept both
            continue
        field = path.removeprefix(f"provider_options.{incoming.dialect}.")
        message = f"{path}: {warning.message}" if field == path else f"{field}: Unknown parameter"
        raise RefusedError(Failure(status=400, message=message))


def _refusal(exchange: Exchange, incoming: Incoming, failure: Failure) -> Reply:
    model = exchange.request.model if exchange.request else ""
    return failure_reply(incoming, failure, model=model, request_id=request_id(exchange.number))


def _spoiled(reply: Reply, turn: Turn) -> Reply:
    """The reply, with only half of its body if the turn has the fault `malformed`."""
    if not any(fault.kind == "malformed" for fault in turn.faults):
        return reply
    body = b"".join(reply.chunks) if not isinstance(reply.chunks, AsyncIterable) else b""
    return reply._replace(chunks=(body[: len(body) // 2],))


def reply_json(reply: Reply) -> UncheckedJson:
    """The JSON of a reply; its text if it is not JSON."""
    body = b"".join(reply.chunks) if not isinstance(reply.chunks, AsyncIterable) else b""
    try:
        return loads(body)
    except DecodeError:
        return body.decode("utf-8", "replace")


def _headers(exchange: Exchange, turn: Turn) -> Mapping[str, str]:
    """The headers of every reply of the vendor, and `x-simulated`."""
    facts = serve_of(exchange.dialect).SERVER
    headers = {MARK: "true"}
    if facts.request_id_header is not None:
        headers[facts.request_id_header] = request_id(exchange.number)
    if turn.rate_limit is not None:
        headers.update(limit_headers(facts, turn.rate_limit))
    return headers


def _script_of(answers: tuple[Answer | Script, ...], keep: int | None) -> Script:
    scripts = [answer for answer in answers if isinstance(answer, Script)]
    if not scripts:
        return Script(*(answer for answer in answers if not isinstance(answer, Script)), keep=keep)
    if len(answers) > 1:
        raise ConfigurationError("Pass either one Script or turns and functions, not both.")
    return scripts[0]
