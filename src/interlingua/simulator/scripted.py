"""`scripted`: a client in one line whose models answer by a script, for tests and examples."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType

from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.provider import Provider
from interlingua.providers.rows import find_provider, providers
from interlingua.serving.application import Incoming
from interlingua.serving.asgi import Reply
from interlingua.simulator.app import Simulator
from interlingua.simulator.dsl import Turn
from interlingua.simulator.script import Answer, Exchange, Script, ScriptError
from interlingua.spec.contracts import HttpReply, HttpRequest
from interlingua.spec.errors import NetworkError
from interlingua.spec.request import Request
from interlingua.transport.asgi import AsgiTransport

NAME = "scripted"
"""The provider of models that belong to no other."""
_ADDRESS = f"https://{NAME}.example/v1"  # of providers that have none of their own
_KEY = "scripted-key"


class ScriptedClient(Client):
    """
    A client of every provider, whose models answer by a script; made by `scripted`.

    Everything is as with real providers (the dialect, the address, the middleware, the retries),
    but the transport is in memory: nothing leaves the process.
    """

    def __init__(
        self, script: Script, *, dialect: str | None = None, default_provider: str = NAME
    ) -> None:
        transport = _ScriptedTransport(_ScriptedSimulator(script))
        row = Provider(
            name=NAME,
            dialect=dialect or find_provider("openai_compatible").dialect,
            base_url=_ADDRESS,
        )
        rows = {**providers(), NAME: row}
        adapters = {name: _make_adapter(each, transport) for name, each in rows.items()}
        super().__init__(adapters, default_provider=default_provider)
        self.script: Script = script
        """The script; its `received` has every exchange in the form of the wire too."""

    @property
    def requests(self) -> tuple[Request, ...]:
        """What the models were asked so far, as their providers read it."""
        return self.script.requests


def scripted(
    *turns: Answer, dialect: str | None = None, default_provider: str = NAME
) -> ScriptedClient:
    """
    Make a client whose models give these answers, in this order; pass it as `client=`.

        client = scripted(tool_call("get_weather", city="Oslo"), "It rains.")
        result = await generate("openai:gpt-5.2", "Weather?", tools=[get_weather], client=client)
        assert client.requests[0].tools

    A turn is a string, a turn of the simulator, an error, or a function of the request that makes
    one of them. A request after the last turn is a `ScriptError`, unless the last turn is a
    function: it answers all requests that follow. Without turns, `use_tools` answers. A model may
    be of any provider, and is called in the dialect of that provider. A name without a provider is
    a model of `default_provider`; `dialect` is the dialect of the provider `scripted`.
    """
    script = Script(*turns, repeat_last=not turns or callable(turns[-1]))
    return ScriptedClient(script, dialect=dialect, default_provider=default_provider)


def _make_adapter(row: Provider, transport: AsgiTransport) -> HttpAdapter:
    if row.address_env or row.is_embedded:
        return HttpAdapter(row, _KEY, transport=transport, base_url=_ADDRESS)
    return HttpAdapter(row, _KEY, transport=transport)


class _ScriptedSimulator(Simulator):
    """A simulator in whose process the caller is: what the script raises is for the caller."""

    def _respond(self, exchange: Exchange, incoming: Incoming) -> tuple[Turn, Reply]:
        turn, reply = super()._respond(exchange, incoming)
        if turn.raised is not None and isinstance(turn.raised.cause, ScriptError):
            raise turn.raised.cause
        return turn, reply


class _ScriptedTransport(AsgiTransport):
    """Raises a `ScriptError` unchanged: no caller should retry it."""

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        return _ScriptedExchange(super().send(request))


class _ScriptedExchange(AbstractAsyncContextManager[HttpReply]):
    def __init__(self, exchange: AbstractAsyncContextManager[HttpReply]) -> None:
        self._exchange = exchange

    async def __aenter__(self) -> HttpReply:
        try:
            return await self._exchange.__aenter__()
        except NetworkError as error:
            if isinstance(error.cause, ScriptError):
                raise error.cause from error.cause.cause
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._exchange.__aexit__(kind, error, traceback)
