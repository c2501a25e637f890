"""What a simulated vendor stores between requests: responses by their ids, and summaries."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress

from msgspec.structs import replace

from interlingua.serving.application import Incoming, RefusedError, serve_of
from interlingua.serving.compaction import compaction_form
from interlingua.serving.kept_responses import kept_form
from interlingua.spec.compaction import Summary
from interlingua.spec.content import Json
from interlingua.spec.contracts import WireCall
from interlingua.spec.kept import Items, KeptForm, References
from interlingua.spec.operations import Failure
from interlingua.spec.request import Request
from interlingua.spec.response import Response

_MADE = "gAAAAABsimulated"
"""How the content of a simulated summary begins; the text follows, so that nothing is stored."""
_UNREADABLE = (
    "The encrypted content {} could not be verified. Reason: Encrypted content could not be "
    "decrypted or parsed."
)
_NOW = 1_700_000_000  # the simulator gives the same answer at any time


def open_summaries(incoming: Incoming) -> Incoming:
    """The request, in which the texts of simulated summaries take the place of their items."""
    form = compaction_form(incoming.dialect)
    if form is None or not form.values(incoming.call.body):
        return incoming
    return incoming._replace(call=form.replace_items(incoming.call, _open))


def _open(value: str) -> str:
    if value.startswith(_MADE):
        with suppress(ValueError):
            return urlsafe_b64decode(value.removeprefix(_MADE)).decode()
    message = _UNREADABLE.format(f"{value[:4]}...{value[-4:]}")
    raise RefusedError(Failure(status=400, message=message))


def conversation_of(incoming: Incoming, request: Request) -> Request:
    """The request that a model is given: without the question for a summary."""
    form = compaction_form(incoming.dialect)
    return request if form is None else form.conversation(request)


def compacted(incoming: Incoming, response: Response, number: int) -> Response:
    """The response as a summary, if the request asks for one."""
    form = compaction_form(incoming.dialect)
    if form is None or not form.is_asked(incoming.call):
        return response
    value = _MADE + urlsafe_b64encode(response.message.text.encode()).decode()
    return form.answer(incoming.call, Summary(response, value, f"simulated{number:06d}", _NOW))


class StoredResponses:
    """The responses of a vendor that stores them, for requests that refer to them."""

    def __init__(self) -> None:
        self._histories: dict[str, Items] = {}
        self._items: dict[str, Json] = {}
        self._number = 0

    def resolve(self, incoming: Incoming) -> tuple[Incoming, Items]:
        """The request with what it refers to in its place, and all of its items."""
        form, call = kept_form(incoming.dialect), incoming.call
        if form is None or not isinstance(call.body, dict):
            return incoming, ()
        references = form.read(call)
        self._check(form, references)
        before = self._histories.get(references.previous or "", ())
        items = (*before, *form.own_items(call.body, self._items, self._new_id))
        body = form.resolve(call.body, [item for _, item in items], references)
        return incoming._replace(call=replace(call, body=body)), items

    def _check(self, form: KeptForm, references: References) -> None:
        previous = references.previous
        if previous is not None and previous not in self._histories:
            raise RefusedError(form.not_found("previous", previous))
        if references.conversation is not None:  # the simulator makes none
            raise RefusedError(form.not_found("conversation", references.conversation))
        for id in references.items:
            if id not in self._items:
                raise RefusedError(form.not_found("item", id))

    def keep(self, call: WireCall, dialect: str, items: Items, body: dict[str, Json]) -> None:
        """Store a response, unless the request asks not to."""
        form = kept_form(dialect)
        if form is None or not form.read(call).is_kept:
            return
        output = form.output(body)
        self._histories[str(body.get("id"))] = (*items, *output)
        self._items.update((*items, *output))

    def _new_id(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}simulated{self._number:06d}"


def not_stored(incoming: Incoming) -> RefusedError | None:
    """The vendor's 404 for an operation on what is stored: the simulator has no such paths."""
    form, operation = kept_form(incoming.dialect), incoming.route.operation
    if form is None or operation is None or operation not in serve_of(incoming.dialect).SERVED:
        return None
    return RefusedError(form.not_found("response", incoming.route.params.get("id", "")))
