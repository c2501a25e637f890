"""Probabilities of tokens <-> the `logprobs` of a choice: a list for each kind of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from interlingua.dialects.openai_shared.logprobs import read_tokens, write_tokens
from interlingua.spec.content import Json, Part, Refusal, Text, Thinking, TokenLogprob

LOGPROBS = "logprobs"
_LISTS: dict[str, type[Text | Refusal | Thinking]] = {
    "content": Text,
    "refusal": Refusal,
    "reasoning_content": Thinking,  # DeepSeek's
}


def read_logprobs(
    choice: Mapping[str, Json], places: Mapping[type[Part], int]
) -> dict[int, tuple[TokenLogprob, ...]]:
    """The tokens of each part, by its place; `places` has the last part of each kind."""
    lists = choice.get(LOGPROBS)
    if not isinstance(lists, dict):
        return {}
    found = {places.get(kind): read_tokens(lists.get(name)) for name, kind in _LISTS.items()}
    return {place: tokens for place, tokens in found.items() if place is not None and tokens}


def with_logprobs(parts: tuple[Part, ...], choice: Mapping[str, Json]) -> tuple[Part, ...]:
    """The parts, with the tokens on the last one of each kind."""
    found = read_logprobs(choice, {type(part): place for place, part in enumerate(parts)})
    if not found:
        return parts
    return tuple(
        replace(part, logprobs=found[place]) if place in found else part
        for place, part in enumerate(parts)
    )


def set_logprobs(choice: dict[str, Json], parts: Sequence[Part]) -> None:
    """Give a choice the tokens of its parts; the server's own lists stay if they are the same."""
    tokens = {place: each for place, part in enumerate(parts) if (each := _tokens(part))}
    places = {type(part): place for place, part in enumerate(parts)}
    if (tokens or choice.get(LOGPROBS)) and read_logprobs(choice, places) != tokens:
        choice[LOGPROBS] = _write_lists(parts)


def _tokens(part: Part) -> tuple[TokenLogprob, ...]:
    return part.logprobs if isinstance(part, (Text, Refusal, Thinking)) else ()


def _write_lists(parts: Sequence[Part]) -> dict[str, Json] | None:
    """The lists for the tokens of these parts; None if they have none."""
    tokens: dict[type[Part], list[TokenLogprob]] = {}
    for part in parts:
        if each := _tokens(part):
            tokens.setdefault(type(part), []).extend(each)
    if not tokens:
        return None
    lists: dict[str, Json] = {
        name: write_tokens(tokens[kind], with_bytes=False)
        for name, kind in _LISTS.items()
        if kind in tokens
    }
    return {"content": None, "refusal": None, **lists}
