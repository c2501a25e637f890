"""Batches of an adapter: requests are encoded into a temporary file, replies are decoded."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from interlingua.providers.http_requests import Encoded, join_headers
from interlingua.spec.contracts import Content
from interlingua.spec.errors import ConfigurationError, SDKError, UnsupportedError
from interlingua.spec.modalities.batch import BatchInput
from interlingua.spec.operations import ItemFormat
from interlingua.spec.request import Request
from interlingua.spec.response import Warning
from interlingua.transport.uploads import SpoolFile

Encode: TypeAlias = Callable[[Request], Awaitable[Encoded]]
"""The stations of a call before it is addressed: files and URLs, behaviour, prepare, encode."""
Edit: TypeAlias = Callable[[Request], Awaitable[Request]]
_USUAL = frozenset(("accept", "accept-encoding", "content-type"))
TURN = 32
"""Requests or replies after which other tasks run."""
_MAX_WARNINGS = 1000
"""Different warnings of one batch; equal ones are listed once, for the first request."""


class Spooled(NamedTuple):
    """The encoded requests of a batch."""

    format: str
    content: Content
    model: str
    """The model of all requests; empty if there are several."""
    headers: Mapping[str, str]
    warnings: tuple[Warning, ...]


class _State:
    """What the copies of one `BatchRequests` share."""

    def __init__(self) -> None:
        self.spooled: Spooled | None = None
        self.formats: Sequence[ItemFormat] = ()
        self.files: list[SpoolFile] = []
        self.is_begun = False


class BatchRequests:
    """
    The requests of a batch with their ids, which are read and encoded once.

    A retry sends the encoded requests again. `close` removes the temporary files.
    """

    def __init__(
        self,
        items: AsyncIterator[tuple[str, Request]],
        edits: tuple[Edit, ...] = (),
        admissions: tuple[Callable[[], Awaitable[object]], ...] = (),
        state: _State | None = None,
    ) -> None:
        self._items = items
        self._edits = edits
        self._admissions = admissions
        self._state = state or _State()

    def edited(self, edit: Edit) -> BatchRequests:
        """The same requests, each changed by `edit` before it is encoded."""
        return BatchRequests(self._items, (*self._edits, edit), self._admissions, self._state)

    def admitted(
        self, see: Callable[[Request], object], admit: Callable[[], Awaitable[object]]
    ) -> BatchRequests:
        """
        The same requests: `see` is called with each one, as it is sent so far.

        `admit` is awaited when all are encoded, before anything is sent; it may raise.
        """

        async def edit(request: Request) -> Request:
            see(request)
            return request

        edits, admissions = (*self._edits, edit), (*self._admissions, admit)
        return BatchRequests(self._items, edits, admissions, self._state)

    def close(self) -> None:
        """Remove the temporary files."""
        for file in self._state.files:
            file.discard()

    async def spool(
        self,
        encode: Encode,
        formats: Sequence[ItemFormat],
        value: BatchInput,
        own_headers: Container[str] = (),
    ) -> Spooled:
        """
        Encode all requests, in the first format whose limits they do not exceed.

        Nothing is sent before all of them are encoded. An error names the request. `own_headers`
        are the headers of the adapter, which every call has anyway.
        """
        state = self._state
        if state.spooled is None:
            if state.is_begun:
                raise ConfigurationError("The requests of a batch can be read only once.")
            state.is_begun, state.formats = True, formats
            writer = _Writer(formats, value, state.files, own_headers)
            async for item_id, request in self._items:
                changed = request
                for edit in self._edits:
                    changed = await edit(changed)
                await writer.add(item_id, changed, encode)
            spooled = await writer.finish()
            for admit in self._admissions:
                await admit()
            state.spooled = spooled
        if state.formats != formats:
            raise ConfigurationError(
                "The requests of a batch are encoded for one provider. Submit another batch for "
                "the other provider."
            )
        return state.spooled


class _Writer:
    """Writes items in all formats that are still possible."""

    def __init__(
        self,
        formats: Sequence[ItemFormat],
        value: BatchInput,
        files: list[SpoolFile],
        own_headers: Container[str],
    ) -> None:
        self._value = value
        self._own_headers = own_headers
        self._files = files
        self._drafts = [_Draft(each, SpoolFile(), each.envelope(value)) for each in formats]
        files += [draft.file for draft in self._drafts]
        self._ids: set[str] = set()
        self._models: dict[str, None] = {}
        self._headers: dict[str, str] = {}
        self._warnings: dict[tuple[str, str], Warning] = {}

    async def add(self, item_id: str, request: Request, encode: Encode) -> None:
        self._check_id(item_id)
        if len(self._ids) % TURN == 0:
            await asyncio.sleep(0)
        try:
            encoded = await encode(request)
            self._check_call(encoded)
        except SDKError as error:
            error.prefix(f"Request {item_id!r} of the batch")
            raise
        for warning in encoded.warnings:
            path = f"requests[{item_id!r}]" + (f".{warning.path}" if warning.path else "")
            key = (warning.code, warning.message)
            if len(self._warnings) < _MAX_WARNINGS:
                self._warnings.setdefault(key, replace(warning, path=path))
        for draft in tuple(self._drafts):
            limit = await draft.add(item_id, encoded.body, len(self._ids))
            if limit:
                self._drop(draft, limit)

    async def finish(self) -> Spooled:
        if not self._ids:
            raise ConfigurationError("The batch has no requests.")
        draft, *others = self._drafts
        for other in others:
            other.file.discard()
        await draft.file.write(draft.tail)
        return Spooled(
            format=draft.format.name,
            content=await draft.file.body(),
            model=next(iter(self._models)) if len(self._models) == 1 else "",
            headers=self._headers,
            warnings=tuple(self._warnings.values()),
        )

    def _check_id(self, item_id: str) -> None:
        pattern = self._drafts[0].format.id_pattern
        if pattern is not None and re.fullmatch(pattern, item_id) is None:
            raise ConfigurationError(
                f"The id {item_id!r} of a request of the batch is not accepted by "
                f"{self._value.provider}: it must match {pattern}."
            )
        if item_id in self._ids:
            raise ConfigurationError(
                f"Two requests of the batch have the id {item_id!r}. Results are matched by id, so "
                "each must be different."
            )
        self._ids.add(item_id)

    def _check_call(self, encoded: Encoded) -> None:
        """Refuse a call that a batch cannot contain; collect what the whole batch needs."""
        form = self._drafts[0].format
        is_stream = encoded.stream or _asks_for_stream(encoded.request)
        if not encoded.path.partition("?")[0].endswith(form.endpoint) or is_stream:
            raise UnsupportedError(
                f"A batch contains only whole answers of {form.endpoint}, and this request is for "
                f"another endpoint or for a stream."
            )
        self._models[encoded.request.model] = None
        if form.single_model and len(self._models) > 1:
            first, second = self._models
            raise UnsupportedError(
                f"{self._value.provider} answers a batch with one model, and this one names "
                f"{first!r} and {second!r}. Submit one batch for each model."
            )
        self._share_headers(encoded)

    def _share_headers(self, encoded: Encoded) -> None:
        """Add the headers that a request needs to those that are sent with the whole batch."""
        for name, given in join_headers(encoded.headers).items():
            known = self._headers.get(name)
            is_list = name.endswith("-beta")  # flags are joined, also with those of the adapter
            is_own = name in _USUAL or (name in self._own_headers and not is_list)
            if is_own or given == known:
                continue
            if known is not None and not is_list:
                raise UnsupportedError(
                    f"The batch is sent with one header {name}, and requests need both {known!r} "
                    f"and {given!r}. Submit them in two batches."
                )
            self._headers = join_headers(self._headers, {name: given})

    def _drop(self, draft: _Draft, limit: str) -> None:
        draft.file.discard()
        self._drafts.remove(draft)
        if not self._drafts:
            raise ConfigurationError(
                f"{self._value.provider} accepts {limit} in one batch, and this batch has more. "
                "Submit the requests in several batches."
            )


def _asks_for_stream(request: Request) -> bool:
    """Whether an option of the body asks for a stream."""
    options = request.provider_options.values()
    return any(isinstance(each, Mapping) and bool(each.get("stream")) for each in options)


class _Draft:
    """The items in one format."""

    def __init__(self, form: ItemFormat, file: SpoolFile, envelope: tuple[bytes, bytes]) -> None:
        self.format = form
        self.file = file
        self._head, self.tail = envelope

    async def add(self, item_id: str, body: bytes, count: int) -> str:
        """Write one item; the limit that is exceeded then, if one is."""
        form = self.format
        start = self._head if count == 1 else form.separator
        before, after = form.wrap(item_id)
        if form.max_items is not None and count > form.max_items:
            return f"at most {form.max_items:,} requests"
        await self.file.write(b"".join((start, before, body, after)))
        size = self.file.size + len(self.tail)
        if form.max_bytes is not None and size > form.max_bytes:
            return f"at most {form.max_bytes:,} bytes of requests"
        return ""
