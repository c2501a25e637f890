"""
Joins the pieces of a turn, as the API of the client does.

Google's SDK keeps each piece of a stream as a message of its own, so that the calls of one answer
come back in several messages. Its API reads consecutive messages of the model as one turn; other
APIs do not, and would see calls without the thinking before them.
"""

from __future__ import annotations

from itertools import groupby

from msgspec.structs import replace

from interlingua.spec.facts import Facts
from interlingua.spec.messages import Message
from interlingua.spec.request import Request


def join_turns(request: Request, client: Facts) -> Request:
    """Return the request with one message for each turn of the model, if the client's API does."""
    if not client.history.joins_roles:
        return request
    messages: list[Message] = []
    for role, group in groupby(request.messages, lambda message: message.role):
        run = list(group)
        messages += [_joined(run)] if role == "assistant" else run
    if len(messages) == len(request.messages):
        return request
    return replace(request, messages=tuple(messages))


def _joined(pieces: list[Message]) -> Message:
    if len(pieces) == 1:
        return pieces[0]
    return replace(pieces[0], content=tuple(part for piece in pieces for part in piece.content))
