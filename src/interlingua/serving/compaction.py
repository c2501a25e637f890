"""
Compaction on every model: a summary by the model itself, sealed for the client.

Where the provider makes such summaries itself, it is asked. Otherwise the model that would have
answered is asked for a summary in plain words, which the client gets as a sealed item. In a later
request the text takes the place of the item. It is bound to no model: any can read it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator

from msgspec.structs import replace

from interlingua.client.client import Client
from interlingua.runtime.ulid import new_ulid
from interlingua.serving.application import Incoming, RefusedError, serve_of
from interlingua.spec.compaction import CompactionForm, Summary
from interlingua.spec.errors import SDKError, ServerError
from interlingua.spec.events import ErrorEvent, StreamEvent, StreamStart
from interlingua.spec.messages import Message
from interlingua.spec.operations import Failure
from interlingua.spec.request import Request, ToolChoice
from interlingua.spec.response import Response
from interlingua.streams.accumulate import events_from_response
from interlingua.wire.seal import Origin, seal, unseal
from interlingua.wire.seal_marks import is_seal

_ORIGIN = Origin(dialect="compaction")
_QUESTION = (
    "Write a summary of our conversation so far. It will take the place of the conversation: what "
    "it leaves out is lost. Say what I have asked for and what I want, with my exact words where "
    "they matter; what was done, found and decided, and why; names, paths, numbers, commands and "
    "errors as they are; what is not finished, and what is the next step. Call no tool. Write only "
    "the summary."
)
_OTHERS = (
    "A compaction item in the request cannot be read: it was made by another server, or damaged. "
    "Remove it, and send the items that it stands for."
)
_NO_SUMMARY = "The model made no summary of the conversation."


def compaction_form(dialect: str) -> CompactionForm | None:
    """How a dialect asks for summaries; None if it does not."""
    form: CompactionForm | None = getattr(serve_of(dialect), "COMPACTION", None)
    return form


def open_summaries(incoming: Incoming, secret: bytes) -> Incoming:
    """
    The request, in which our summaries are texts.

    `RefusedError` for a seal that cannot be opened; items of a provider stay.
    """
    form = compaction_form(incoming.dialect)
    if form is None or not form.values(incoming.call.body):
        return incoming

    def open_value(value: str) -> str | None:
        if not is_seal(value):
            return None
        opened = unseal(value, secret, _ORIGIN)
        if opened.problem or not isinstance(opened.state, str):
            raise RefusedError(Failure(status=400, message=_OTHERS))
        return opened.state

    return incoming._replace(call=form.replace_items(incoming.call, open_value))


def check_summaries(incoming: Incoming) -> None:
    """Raise `RefusedError` if there are items of a provider, which no other one can read."""
    form = compaction_form(incoming.dialect)
    if form is not None and form.values(incoming.call.body):
        raise RefusedError(Failure(status=400, message=_OTHERS))


class Compaction:
    """Answers one request for a summary."""

    def __init__(
        self,
        client: Client,
        request: Request,
        incoming: Incoming,
        form: CompactionForm,
        secret: bytes,
        *,
        is_native: bool,
    ) -> None:
        self._client = client
        self._request = request
        self._call = incoming.call
        self._form = form
        self._secret = secret
        self._is_native = is_native and client.profile_for(request).compaction

    async def complete(self) -> Response:
        """The answer: that of the provider, if it makes summaries, else a summary of the model."""
        if self._is_native:
            request = self._form.native(self._call, self._request)
            response = await self._client.complete(request)
            if self._form.is_answered(response):  # a fallback may be of another provider
                return response
        response = await self._client.complete(self._question())
        text = response.message.text.strip()
        sealed = seal(text, self._secret, _ORIGIN) if text else None
        if sealed is None:
            raise ServerError(_NO_SUMMARY, status_code=502)
        made = Summary(response, sealed, new_ulid().lower(), int(time.time()))
        return self._form.answer(self._call, made)

    async def stream(self) -> AsyncGenerator[StreamEvent, None]:
        """The same as events."""
        try:
            response = await self.complete()
        except SDKError as error:
            yield StreamStart(model=self._request.model)
            yield ErrorEvent(error=error)
            raise
        for event in events_from_response(response):
            yield event

    def _question(self) -> Request:
        asked = self._form.conversation(self._request)
        if not any(message.role != "system" for message in asked.messages):
            message = "There is no conversation to summarise. Send its items in `input`."
            raise RefusedError(Failure(status=400, message=message))
        return replace(
            asked,
            messages=(*asked.messages, Message.user(_QUESTION)),
            tool_choice=ToolChoice(mode="none") if asked.tools else None,
            response_format=None,
            provider_options={},
        )


def find_compaction(
    client: Client, request: Request, incoming: Incoming, secret: bytes, *, is_native: bool
) -> Compaction | None:
    """What answers a request that asks for a summary; None if it asks for something else."""
    form = compaction_form(incoming.dialect)
    if form is None or not form.is_asked(incoming.call):
        return None
    return Compaction(client, request, incoming, form, secret, is_native=is_native)
