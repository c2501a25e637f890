"""Tokens, counted: four characters each, and those of a prompt seen before as cached."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

import msgspec

from interlingua.spec.content import Part, Refusal, Text, Thinking, ToolCall
from interlingua.spec.request import Request
from interlingua.spec.response import Usage
from interlingua.wire.json_text import dump_text

CHARACTERS = 4
_MOST_PREFIXES = 1_000_000


class PrefixCache:
    """
    Knows every prompt it has counted.

    `read(prompt)` is how many tokens of it, from the start, some earlier prompt began with.
    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._seen: dict[int, None] = {}
        self._lock = Lock()

    def read(self, prompt: str) -> int:
        """The tokens of the longest prefix seen before; from now on the whole prompt is seen."""
        prefixes = list(_prefixes(prompt))
        with self._lock:
            known = 0
            for prefix in prefixes:
                if prefix not in self._seen:
                    break
                known += 1
            if len(self._seen) > _MOST_PREFIXES:
                self._seen.clear()  # a cache forgets
            self._seen.update(dict.fromkeys(prefixes))
        return known


def prompt_text(request: Request) -> str:
    """What a model would read, in the order caches have it: tools, then messages."""
    said = [request.model, *(dump_text(msgspec.to_builtins(tool)) for tool in request.tools or ())]
    for message in request.messages:
        said.append(message.role)
        said += (_part_text(part) for part in message.content)
    return "\n".join(said)


def count_text(text: str) -> int:
    """The tokens of a text."""
    return -(-len(text) // CHARACTERS)


def count_usage(request: Request, parts: tuple[Part, ...], cache: PrefixCache) -> Usage:
    """The usage of an answer."""
    prompt = prompt_text(request)
    thought = sum(count_text(part.text) for part in parts if isinstance(part, Thinking))
    said = sum(count_text(_part_text(part)) for part in parts if not isinstance(part, Thinking))
    return Usage(
        input_tokens=count_text(prompt),
        output_tokens=thought + said,
        reasoning_tokens=thought or None,
        cache_read_tokens=cache.read(prompt),
    )


def _part_text(part: Part) -> str:
    if isinstance(part, (Text, Thinking, Refusal)):
        return part.text
    if isinstance(part, ToolCall):
        raw = part.raw_arguments
        return f"{part.name}({dump_text(part.arguments) if raw is None else raw})"
    said = msgspec.to_builtins(part)
    said.pop("extra", None)  # marks for a cache move from turn to turn; the prompt stays
    return dump_text(said)


def _prefixes(prompt: str) -> Iterator[int]:
    """One number for each prefix of whole tokens, shortest first."""
    prefix = 0
    for start in range(0, len(prompt) - CHARACTERS + 1, CHARACTERS):
        prefix = hash((prefix, prompt[start : start + CHARACTERS]))
        yield prefix
