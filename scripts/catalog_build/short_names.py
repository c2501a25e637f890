"""Short names such as `sonnet`: the words in the id of the best model that has them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from datetime import date

import msgspec

from interlingua.providers.catalog.models import ModelInfo
from interlingua.providers.catalog.search import ends_soon, writes_text

_WORD = re.compile("[a-z]+|[0-9.]+")
_SHORTEST = 3
"""Letters of a word; shorter ones are names of sizes and versions."""
_MOST_WORDS = 3
_SIZES = {
    *("fast", "large", "lite", "max", "medium", "micro", "mini", "nano", "plus", "premier", "pro"),
    *("small", "super", "tiny", "turbo", "ultra"),
}
"""Words that name a model only together with another word."""
_VARIANTS = {
    *("audio", "awq", "base", "beta", "chat", "default", "distill", "experimental", "free"),
    *("highspeed", "instant", "instruct", "latest", "long", "non", "online", "preview"),
    *("reasoner", "reasoning", "search", "safeguard", "thinking", "versatile", "vision"),
}
"""Words that name no model, but a variant of one."""


def with_short_names(
    models: Iterable[ModelInfo], today: date, *, among: Container[str] | None = None
) -> list[ModelInfo]:
    """
    The models of a provider, best first; each short name belongs to the first that has it.

    `among` are the ids that may have one, where the order of the others is no choice of ours.
    """
    listed = list(models)
    taken = {name for model in listed for name in (model.id, *model.aliases)}
    named = []
    for model in listed:
        is_ranked = among is None or model.id in among
        names = [name for name in _names(model, today) if is_ranked and name not in taken]
        taken |= {*names}
        aliases = (*model.aliases, *names)
        named.append(msgspec.structs.replace(model, aliases=aliases, short_names=tuple(names)))
    return named


def _names(model: ModelInfo, today: date) -> Iterator[str]:
    """The short names that a model may have; only one that anyone can build on has any."""
    if model.kind != "chat" or not writes_text(model) or model.is_gated or ends_soon(model, today):
        return
    words = _WORD.findall(model.id.lower().rpartition("/")[2])
    words = [word for word in words if word.isalpha()]
    for count in range(1, _MOST_WORDS + 1):
        for place in range(len(words) - count + 1):
            name = words[place : place + count]
            if _is_name(name):
                yield "-".join(name)


def _is_name(words: list[str]) -> bool:
    if not _VARIANTS.isdisjoint(words) or min(map(len, words)) < _SHORTEST:
        return False
    return any(word not in _SIZES for word in words)
