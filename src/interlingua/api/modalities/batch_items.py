"""The items of a batch: what the caller gives becomes requests with ids, one at a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from msgspec.structs import replace

from interlingua.api.run.options import (
    RequestOptions,
    check_options,
    make_messages,
    make_request,
)
from interlingua.client.client import Client
from interlingua.spec.check import describe
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.names import advice
from interlingua.spec.request import Request, list_tools
from interlingua.spec.request_check import check_request

BatchItem: TypeAlias = Any
"""A `Request`, a prompt, or a dict: `{"id": …, "prompt": …, "temperature": …}`."""
BatchItems: TypeAlias = Mapping[str, BatchItem] | Iterable[BatchItem] | AsyncIterable[BatchItem]
"""Items in their order, or by their ids."""

_OWN = frozenset(("id", "prompt", "model"))


class ItemReader:
    """
    Reads items as they are needed, and makes a request of each.

    All requests must be for one provider: `provider`, once the first item was read. With
    `needs_model=False`, a request without a model is left as it is.
    """

    def __init__(
        self,
        items: BatchItems,
        client: Client,
        model: str | None = None,
        defaults: Mapping[str, Any] = MappingProxyType({}),
        *,
        needs_model: bool = True,
    ) -> None:
        given: object = items  # a caller without a type checker may pass anything
        is_text = isinstance(given, (str, bytes, Request))
        if is_text or not isinstance(given, (Iterable, AsyncIterable)):
            raise ConfigurationError(
                f"The items of a batch must be a list, a dict by id, or another iterable, not "
                f"{describe(items)}."
            )
        _check_names(defaults)
        check_options(defaults)
        self.provider: str | None = None
        self._client = client
        self._model = model
        self._defaults = dict(defaults)
        self._items = items
        self._needs_model = needs_model

    async def read(self) -> AsyncGenerator[tuple[str, Request], None]:
        """The ids and requests; an error names its request."""
        number = 0
        async for item_id, item in _pairs(self._items):
            name = item_id or _id_of(item) or f"request-{number}"
            try:
                request = self._address(self._make(name, item))
            except SDKError as error:
                error.prefix(f"Request {name!r} of the batch")
                raise
            number += 1
            yield name, request

    def _make(self, item_id: str, item: Any) -> Request:
        if isinstance(item, Request):
            others = self._defaults.keys() - {"provider", "on_loss"}
            if others:
                raise ConfigurationError(
                    f"{', '.join(sorted(others))} cannot be set for a Request, which has its own "
                    "fields. Set it there, or pass prompts."
                )
            check_request(item)
            provider = item.provider or self._defaults.get("provider")
            model = item.model or self._model or ""
            on_loss = item.on_loss or self._defaults.get("on_loss")
            return replace(
                item, request_id=item_id, model=model, provider=provider, on_loss=on_loss
            )
        arguments = self._defaults
        prompt = item
        if isinstance(item, Mapping) and "role" not in item:  # a dict with a role is a message
            _check_names(item)
            arguments = {**self._defaults, **item}
            arguments.pop("id", None)
            prompt = arguments.pop("prompt", None)
            check_options({key: each for key, each in arguments.items() if key not in _OWN})
        system = arguments.get("system")
        if callable(system):
            raise ConfigurationError("`system` must be a text: a batch has no run that calls it.")
        tools = list_tools(arguments["tools"]) if "tools" in arguments else ()
        messages = make_messages(prompt, arguments.get("messages"), system)
        fields = {key: each for key, each in arguments.items() if key not in _OWN}
        fields["request_id"] = item_id
        return make_request(arguments.get("model", self._model), messages, tools, fields)

    def _address(self, request: Request) -> Request:
        if not request.model and not self._needs_model:
            return request
        request = self._client.address(request)
        if self.provider is None:
            self.provider = request.provider
        if request.provider != self.provider:
            raise ConfigurationError(
                f"It is for {request.provider}, and the first request for {self.provider}. A batch "
                "is at one provider: submit one for each."
            )
        return request


def _check_names(arguments: Mapping[str, object]) -> None:
    known = RequestOptions.__annotations__.keys() | _OWN
    for name in arguments:
        if name not in known:
            raise ConfigurationError(f"Unknown option {name!r}. {advice(name, known)}")


def _id_of(item: object) -> str | None:
    given: object = item.request_id if isinstance(item, Request) else None
    if isinstance(item, Mapping) and "role" not in item:
        given = item.get("id")
    if given is not None and (not isinstance(given, str) or not given):
        raise ConfigurationError(f"The id of a request must be a text, not {describe(given)}.")
    return None if given is None else str(given)


async def _pairs(items: BatchItems) -> AsyncGenerator[tuple[str | None, Any], None]:
    """The items with their ids, where they are given by id."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield None, item
        return
    pairs: Iterator[tuple[Any, Any]] = (
        iter(items.items()) if isinstance(items, Mapping) else ((None, item) for item in items)
    )
    for item_id, item in pairs:
        if item_id is not None and (not isinstance(item_id, str) or not item_id):
            raise ConfigurationError(
                f"The id of a request must be a text, not {describe(item_id)}."
            )
        yield item_id, item
