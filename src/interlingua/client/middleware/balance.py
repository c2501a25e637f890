"""
`Balance`: several keys or endpoints of one provider as one adapter.

A conversation stays with one of them, because providers cache prompts per account and per region.
Which one is decided by rendezvous hashing: each member gets a score from the conversation and its
own name, and the highest score wins. When a member is out, only its conversations move.
"""

from __future__ import annotations

import random
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from contextlib import suppress
from copy import copy
from hashlib import blake2b
from inspect import isawaitable
from math import isfinite, log
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from interlingua.client.custom_adapter import perform_custom
from interlingua.client.middleware.circuit_breaker import CircuitBreaker, Passage
from interlingua.client.middleware.circuits import judge
from interlingua.client.stores.contract import Store
from interlingua.lazy import Remade
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.keys import Key
from interlingua.providers.operations import model_of, name_models
from interlingua.providers.tariffs import Tariffs
from interlingua.runtime.callbacks import settle
from interlingua.runtime.fold import close_stream
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.contracts import Adapter
from interlingua.spec.errors import (
    CircuitOpenError,
    ConfigurationError,
    SDKError,
    StreamError,
)
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.operations import Operation, ServedModel
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.streams.grammar import is_content

_SOON = 0.01  # seconds before the retry at another member
_CALLS = 1024  # how many calls are remembered with the members that failed for them

Value = TypeVar("Value")


class _Member(NamedTuple):
    name: str
    adapter: Adapter
    weight: float


class _Unchecked:
    """A call to an adapter that is out, because all are."""

    is_open: bool = True

    async def succeed(self) -> None:
        self.is_open = False

    async def fail(self, error: BaseException) -> None:
        pass


def rank(key: str, weights: Mapping[str, float]) -> list[str]:
    """
    The names in the order in which they are tried for a key.

    Over many keys, a name is first in proportion to its weight. Names of weight 0 are last.
    """
    return sorted(weights, key=lambda name: _score(key, name, weights[name]), reverse=True)


def _score(key: str, name: str, weight: float) -> tuple[float, float]:
    digest = blake2b(f"{key}\0{name}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    chance = (int.from_bytes(digest) + 0.5) / 2**64  # in (0, 1)
    return (-weight / log(chance), chance)


class Balance(Remade):
    """
    Several keys or endpoints of one provider, used as one adapter.

        Client({"openai": Balance(OpenAIAdapter(key_a), OpenAIAdapter(key_b), weights=(3, 1))})

    The calls of one session (`session_id`, else `user`) go to one adapter; others are spread by
    `weights`. An adapter that fails is left out for a while, as by a `CircuitBreaker`, and a retry
    goes to another one. If all have failed, the one that may be tried first is used. An adapter of
    weight 0 is used only if no other is left.

    Whatever else an adapter is asked for, such as its profile, is that of the first one.
    """

    has_members: ClassVar[bool] = True

    def __init__(
        self,
        *adapters: Adapter,
        weights: Sequence[float] | None = None,
        failures: int = 3,
        window: float = 60.0,
        cooldown: float = 10.0,
        store: Store | None = None,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        _check(adapters, weights)
        self.name: str = adapters[0].name
        self._group = self.name  # of its circuits; stays if it gets another name
        names = _names_of(adapters)
        weights = [1.0] * len(adapters) if weights is None else weights
        self.members: tuple[_Member, ...] = tuple(map(_Member, names, adapters, weights))
        self.max_retries: int = max(getattr(adapter, "max_retries", 0) for adapter in adapters)
        self._weights = {member.name: member.weight for member in self.members}
        self._chance = chance
        self._failed: dict[str, tuple[str, ...]] = {}  # names of members by request id
        self._breaker = CircuitBreaker(
            failures=failures,
            window=window,
            cooldown=cooldown,
            store=store,
            clock=clock,
            chance=chance,
        )

    def __repr__(self) -> str:
        return f"Balance({', '.join(self._weights)})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "members":
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        return getattr(self.first, name)

    @property
    def first(self) -> Adapter:
        """The first adapter, which stands for all where only one can."""
        return self.members[0].adapter

    def rebind(
        self,
        name: str,
        *,
        api_key: Key | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        behaviour: Behaviour | None = None,
    ) -> Self | HttpAdapter:
        """
        Return a copy with another name, behaviour or more headers, and the same health.

        With a key or an address of the caller's there is nothing to balance: it is the first
        adapter with these.
        """
        if api_key is not None or base_url is not None:
            if not isinstance(self.first, HttpAdapter):
                what = "is not an HttpAdapter: it takes no api_key or base_url"
                raise ConfigurationError(f"The first adapter of {self!r} {what}.")
            return self.first.rebind(
                name, api_key=api_key, base_url=base_url, headers=headers, behaviour=behaviour
            )
        twin = copy(self)
        twin.name = name
        twin.members = tuple(
            member._replace(
                adapter=member.adapter.rebind(name, headers=headers, behaviour=behaviour)
            )
            if isinstance(member.adapter, HttpAdapter)
            else member
            for member in self.members
        )
        return twin

    async def state(self, member: str, model: str | None = None) -> str:
        """Tell whether the adapter of this name is used: `closed` (it is), `open`, `half_open`."""
        return await self._breaker.state(self._circuit(member), model, key="balance")

    # Calls.

    async def complete(self, request: Request, *, strict: bool = False) -> Response:
        """Return the whole answer, of one of the adapters."""
        settings = {"strict": True} if strict else {}
        return await self.send_by_member(request, lambda each: each.complete(request, **settings))

    def stream(
        self, request: Request, *, strict: bool = False
    ) -> AsyncGenerator[StreamEvent, None]:
        """Return the events of the answer, of one of the adapters."""
        settings = {"strict": True} if strict else {}
        return self.stream_by_member(request, lambda each: each.stream(request, **settings))

    async def send_by_member(
        self,
        request: Request,
        send: Callable[[Adapter], Awaitable[Value]],
        on_member: Callable[[str], object] | None = None,
    ) -> Value:
        """
        Return what `send` gets from the adapter that is chosen.

        A client calls this, because it has its own way to call an adapter.
        """
        member, passage = await self._choose(request, on_member)
        try:
            response = await send(member.adapter)
        except BaseException as error:
            await self._fail(member, passage, request, error)
            raise
        await self._succeed(passage, request)
        return response

    async def stream_by_member(
        self,
        request: Request,
        send: Callable[[Adapter], AsyncIterator[StreamEvent]],
        on_member: Callable[[str], object] | None = None,
    ) -> AsyncGenerator[StreamEvent, None]:
        """Return the events that `send` gets from the adapter that is chosen."""
        member, passage = await self._choose(request, on_member)
        events = send(member.adapter)
        try:
            async for event in events:
                if passage.is_open and (is_content(event) or type(event) is Finish):
                    await self._succeed(passage, request)
                yield event
            if passage.is_open:  # a probe that ends so is over
                raise StreamError("The stream ended without a finish event.")  # noqa: TRY301
        except BaseException as error:
            await self._fail(member, passage, request, error)
            raise
        finally:
            await close_stream(events)

    async def perform(
        self,
        operation: str | Operation,
        value: Any = None,
        *,
        request_id: str | None = None,
        tariffs: Tariffs | None = None,
    ) -> Any:
        """
        Perform an operation.

        Without a session it goes to the same adapter each time, because files and batches belong
        to one account.
        """
        own_id = request_id or getattr(value, "request_id", None) or new_ulid()

        def perform(adapter: Adapter) -> Awaitable[Any]:
            if isinstance(adapter, HttpAdapter):
                return adapter.perform(operation, value, request_id=own_id, tariffs=tariffs)
            return perform_custom(adapter, operation, value, own_id)

        return await self.perform_by_member(value, own_id, perform)

    async def perform_by_member(
        self,
        value: Any,
        request_id: str,
        perform: Callable[[Adapter], Awaitable[Any]],
        on_member: Callable[[str], object] | None = None,
    ) -> Any:
        """Return the result that `perform` gets from the adapter that is chosen."""
        request = Request(
            model=model_of(value),
            request_id=request_id,
            session_id=getattr(value, "session_id", None) or "operations",
        )
        return await self.send_by_member(request, perform, on_member)

    async def list_models(self) -> list[ServedModel]:
        """List the models that the provider serves now (a request is sent)."""
        return name_models(await self.perform("list_models"), self.name)

    async def retrieve_model(self, model: str) -> ServedModel:
        """Return what the provider says about one of its models (a request is sent)."""
        from interlingua.spec.operations import OperationInput

        found: ServedModel = await self.perform("retrieve_model", OperationInput(model=model))
        return found

    async def count_tokens(self, request: Request) -> int:
        """Count the input tokens as the provider counts them (a request is sent)."""
        tokens: int = await self.perform("count_tokens", request)
        return tokens

    async def initialize(self) -> None:
        """Initialize all adapters."""
        await self._each("initialize")

    async def get_ready(self) -> None:
        """Do in all adapters what takes time before the first request."""
        for member in self.members:
            get_ready = getattr(member.adapter, "get_ready", None)
            with suppress(SDKError):  # if it is chosen, its call fails, and another is chosen
                await settle(None if get_ready is None else get_ready())

    async def cancel(self, request_id: str) -> bool:
        """Cancel a call; False if no adapter has one with this id."""
        return any(await self._each("cancel", request_id))

    async def close(self) -> None:
        """Close all adapters."""
        await self._each("close")

    async def _each(self, method: str, *arguments: Any) -> list[Any]:
        results = []
        for member in self.members:
            function = getattr(member.adapter, method, None)
            result = None if function is None else function(*arguments)
            results.append(await result if isawaitable(result) else result)
        return results

    # The choice.

    async def _choose(
        self, request: Request, on_member: Callable[[str], object] | None
    ) -> tuple[_Member, Passage | _Unchecked]:
        """An adapter that is not out; if all are, the one that may be tried first."""
        key = request.session_id or request.user or repr(self._chance())
        failed = self._failed.get(request.request_id or "", ())
        names = rank(key, self._weights)
        if failed:
            names.sort(key=lambda name: name in failed)
        name, passage = await self._enter_first(names, failed, request)
        if on_member is not None:
            on_member(name)
        return next(member for member in self.members if member.name == name), passage

    async def _enter_first(
        self, names: list[str], failed: Collection[str], request: Request
    ) -> tuple[str, Passage | _Unchecked]:
        waits: dict[str, float] = {}
        for name in names:
            try:
                circuit = self._circuit(name)
                return name, await self._breaker.enter(circuit, request.model, key="balance")
            except CircuitOpenError as closed:
                waits[name] = closed.retry_after or 0.0
        return min(names, key=lambda name: (name in failed, waits[name])), _Unchecked()

    def _circuit(self, member: str) -> str:
        return f"{self._group}/{member}"

    async def _succeed(self, passage: Passage | _Unchecked, request: Request) -> None:
        self._failed.pop(request.request_id or "", None)
        await passage.succeed()

    async def _fail(
        self,
        member: _Member,
        passage: Passage | _Unchecked,
        request: Request,
        error: BaseException,
    ) -> None:
        vars(error).pop("has_alternative", None)  # an adapter may raise one object again
        await passage.fail(error)
        if not isinstance(error, SDKError) or judge(error) is None:
            return
        request_id = request.request_id or ""
        failed = dict.fromkeys((*self._failed.pop(request_id, ()), member.name))
        self._failed[request_id] = tuple(failed)
        if len(self._failed) > _CALLS:  # of calls that have failed for good
            del self._failed[next(iter(self._failed))]
        if len(failed) < len(self.members):
            error.offer_retry(_SOON)


def _names_of(adapters: Sequence[Adapter]) -> list[str]:
    """The names of the adapters; with a number where several have the same name."""
    names = [adapter.name for adapter in adapters]
    return [
        name if names.count(name) == 1 else f"{name}#{number}"
        for number, name in enumerate(names, 1)
    ]


def _check(adapters: Sequence[Any], weights: Collection[float] | None) -> None:
    if not adapters:
        raise ConfigurationError("Balance needs one adapter at least.")
    for adapter in adapters:
        if not hasattr(adapter, "complete") or isinstance(adapter, type):
            raise ConfigurationError(
                f"Balance takes adapters, such as OpenAIAdapter(key), not {adapter!r}."
            )
    dialects = {each.dialect for each in adapters if isinstance(each, HttpAdapter)}
    if len(dialects) > 1:
        raise ConfigurationError(
            f"The adapters of a Balance are of one provider, but these have several formats: "
            f"{', '.join(sorted(dialects))}. Use Fallback for models of several providers."
        )
    if weights is None:
        return
    if len(weights) != len(adapters):
        raise ConfigurationError(f"Balance has {len(adapters)} adapters, {len(weights)} weights.")
    if not all(isfinite(weight) and weight >= 0 for weight in weights) or not any(weights):
        raise ConfigurationError("Balance: weights are numbers from 0, and not all 0.")
