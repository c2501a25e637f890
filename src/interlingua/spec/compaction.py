"""
Compaction: a summary that takes the place of a conversation, in a form that only its maker reads.

A dialect says how requests ask for it, and how its items are written (`CompactionForm`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from interlingua.spec.content import Json
from interlingua.spec.contracts import WireCall
from interlingua.spec.request import Request
from interlingua.spec.response import Response


class Summary(NamedTuple):
    """A summary that a model has made."""

    response: Response
    """The answer of the model: its usage, its cost, its ids."""
    value: str
    """The content of the item, which its maker can open."""
    id: str
    """What the ids of the answer are made of."""
    now: int
    """Seconds since 1970."""


class CompactionForm(msgspec.Struct, frozen=True, kw_only=True):
    """How the requests and answers of a dialect do it."""

    is_asked: Callable[[WireCall], bool]
    """Whether a call asks for a summary of its conversation."""
    values: Callable[[Json], tuple[str, ...]]
    """The contents of the items in a body that have a summary."""
    replace_items: Callable[[WireCall, Callable[[str], str | None]], WireCall]
    """The call, in which the texts of summaries take the place of their items; None leaves one."""
    native: Callable[[WireCall, Request], Request]
    """The request to a provider that makes summaries itself."""
    conversation: Callable[[Request], Request]
    """The request without the question for a summary."""
    answer: Callable[[WireCall, Summary], Response]
    """The answer to such a call, in the vendor's form."""
    is_answered: Callable[[Response], bool]
    """Whether a response has a summary."""
