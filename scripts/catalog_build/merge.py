"""The catalog from what the sources say, and where they disagree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

import msgspec

from catalog_build.entries import Entry, Source, dollars
from catalog_build.short_names import with_short_names
from interlingua.providers.catalog.models import ModelInfo, ids_of
from interlingua.providers.catalog.prices import LongContext, Price, Rates, price_at
from interlingua.providers.catalog.search import mixed_price
from interlingua.providers.row_tables import makers
from interlingua.providers.rows import find_provider, maker_of

TOLERANCE = 0.01
"""Prices that differ by more are a disagreement."""
COMPARED = ("input", "output", "cache_read", "cache_write")
HAND = "by hand"
HISTORIAN = "genai-prices"
RANKS = {
    "": (HAND, "litellm", "models.dev", "genai-prices"),
    # The first of these means input and output together, as we do.
    "context_window": (HAND, "models.dev", "genai-prices", "litellm"),
    "display_name": (HAND, "models.dev", "genai-prices", "litellm"),
}
"""Who is trusted first, by field. For prices it is the order of the sources, and then our own."""
NO_PRICE = "No source states a price."
NO_PUBLIC_PRICE = "The provider publishes no price; it approves each customer."

EXCLUDED = re.compile(
    "realtime|[-.]live|native-audio|voice-[0-9tl]"  # not by HTTP requests
    "|guard|ocr|lyria|deep-research|robotics|leanstral|computer-use|learnlm"
    "|distilbert|indictrans|m2m100"
    "|^gemini-(gemma|exp|live|pro$|1.0|flash-1.5|pro-1.5)|exp-image-generation"
)
"""Ids that are not listed: other interfaces, other tasks, experiments that ended, old spellings."""
HISTORIES = {"groq", "together", "xai"}
"""Providers of which the first source keeps old prices: what no other lists is served no longer."""
HOSTS = {"bedrock", "bedrock_invoke", "cloudflare", "databricks", "snowflake", "venice"}
"""Providers with a family of their own that also serve the models of others."""
GATED = re.compile("cyber|daybreak|rosalind|mythos")
"""Ids of models for customers whom the provider has approved."""
_DATED = re.compile(r"(.+?)[-@](20[0-9]{2}-[0-9]{2}-[0-9]{2}|20[0-9]{6})")
_PAST = date.min
_KINDS = (
    *("chat", "image", "video", "speech", "transcription", "embedding", "rerank", "moderation"),
)
_KIND_WORDS = {
    "rerank": re.compile("rerank"),
    "embedding": re.compile("[-/]embed|^voyage-|/bge-", re.IGNORECASE),
    "image": re.compile("grok-imagine-image"),
    "transcription": re.compile("grok-stt|-asr-"),
}
_OUTPUTS = {
    "image": ("image",),
    "video": ("video",),
    "speech": ("audio",),
    "transcription": ("text",),
}
"""What a model of a kind returns, unless a source says more."""
_NUMBERS = re.compile("([0-9]+)")
_PREFIX = re.compile("^(?:[a-z-]+[.](?=[a-z]))+|^databricks-|^openai-")
_REVISION = re.compile(
    "(?:[-@](?:20[0-9]{2}-[0-9]{2}-[0-9]{2}|20[0-9]{6}))?(?:-v[0-9](?::[0-9])?)?$"
)
UNRANKED = (10**6, 10**6)
"""The place of a model that is in no hand-made list."""
_PREFERRED = {"bedrock_invoke": "global."}
"""Ids that work in every region: `InvokeModel` takes the newer models only by such an id."""
MAKERS = [row.name for row in makers.ROWS if row.families]

_SMALL = (
    "nano(?!-banana)|mini|tiny|small|luna|haiku|lite|instant|ministral|e?[1-9]b|[12][0-9]b|3[0-2]b"
)
_MEDIUM = "sonnet|sol|terra|medium"
_LARGE = "opus|fable|mythos|astra|argon|pro|large|ultra|max"
_TIERS = {
    tier: re.compile(f"(?<![a-z0-9])({words})(?![a-z0-9])")
    for tier, words in (("small", _SMALL), ("medium", _MEDIUM), ("large", _LARGE))
}
_MIX = {"small": 0.8, "medium": 6.0}
"""The highest price per million tokens, three of four of them input, of these tiers."""


class Disagreement(NamedTuple):
    """Two sources that say different things of one model."""

    provider: str
    model: str
    field: str
    said: Mapping[str, Any]
    """The values, by the name of the source."""


class Merged(NamedTuple):
    """The models in their order, and the disagreements about prices."""

    models: list[ModelInfo]
    disagreements: list[Disagreement]


def merge(
    hand: Mapping[str, Mapping[str, Entry]],
    sources: Sequence[Source],
    today: date,
    *,
    families: Mapping[str, Mapping[str, Any]] | None = None,
    before: Iterable[ModelInfo] = (),
) -> Merged:
    """
    One model for every id of a provider.

    Earlier sources go before later ones; `hand` goes before all of them, except in prices.
    `families` has fields of image, video and speech models, by prefix of their id. A model of the
    catalog as it was `before` that no source lists any more stays, because old calls are priced.
    """
    models: list[ModelInfo] = []
    disagreements: list[Disagreement] = []
    old, best = list(before), _best(hand)
    listing = (name for one in sources for name in one.listed)
    for provider in dict.fromkeys([*hand, *listing, *(one.provider for one in old)]):
        own = hand.get(provider, {})
        merged: dict[str, ModelInfo] = {}
        for model_id in _ids(provider, own, sources):
            said = {HAND: _with_family(own.get(model_id, Entry()), model_id, families or {})}
            for one in sources:
                said[one.name] = one.lookup(provider, model_id) or Entry()
            found = list(_price_disagreements(provider, model_id, sources))
            disagreements += found
            merged[model_id] = model(provider, model_id, said, is_disputed=bool(found), today=today)
        listed = with_aliases(merged, own)
        listed |= _retired((one for one in old if one.provider == provider), listed)
        ranks = {model_id: _rank(model_id, own, best) for model_id in listed}
        ranked = None if provider in MAKERS else {one for one in ranks if ranks[one] < UNRANKED}
        models += with_short_names(_ordered(listed, ranks, today), today, among=ranked)
    return Merged(models, disagreements)


def _with_family(entry: Entry, model_id: str, families: Mapping[str, Mapping[str, Any]]) -> Entry:
    """What we know ourselves of a model, over what we know of its family."""
    name = model_id.rpartition("/")[2]
    prefixes = sorted((prefix for prefix in families if name.startswith(prefix)), key=len)
    fields = {field: value for prefix in prefixes for field, value in families[prefix].items()}
    return replace(entry, fields={**fields, **entry.fields})


def _retired(before: Iterable[ModelInfo], models: Mapping[str, ModelInfo]) -> dict[str, ModelInfo]:
    """The models that were listed before, and by no source any more."""
    names = {name for one in models.values() for name in (one.id, *one.aliases)}
    return {
        one.id: msgspec.structs.replace(
            one,
            deprecated=True,
            aliases=tuple(name for name in ids_of(one)[1:] if name not in names),
            short_names=(),
        )
        for one in before
        if one.id not in names and _is_listed(one.provider, one.id)
    }


def _ids(provider: str, own: Mapping[str, Entry], sources: Sequence[Source]) -> Iterator[str]:
    taken = {alias for entry in own.values() for alias in entry.fields.get("aliases", ())}
    ids = dict.fromkeys([*own, *(i for one in sources for i in one.listed.get(provider, ()))])
    for model_id in ids:
        if model_id in own or (model_id not in taken and _is_listed(provider, model_id)):
            yield model_id


def _is_listed(provider: str, model_id: str) -> bool:
    return not (EXCLUDED.search(model_id) or _is_foreign(provider, model_id))


def _is_foreign(provider: str, model_id: str) -> bool:
    """Whether it is written without its maker, or as the maker itself would write it."""
    if provider == "openrouter":
        return "/" not in model_id
    if provider in HOSTS or not find_provider(provider).families:
        return False
    return maker_of(model_id) not in (None, provider)


def model(
    provider: str, model_id: str, said: Mapping[str, Entry], *, is_disputed: bool, today: date
) -> ModelInfo:
    """One model, from what is said about it, by the name of the source."""
    fields = _fields(said)
    fields.setdefault("display_name", _name(model_id))
    if GATED.search(model_id):
        fields["is_gated"] = True
    if provider in HISTORIES and [name for name in said if said[name] != Entry()] == [HISTORIAN]:
        fields["deprecated"] = True
    ranked = [entry.prices for name, entry in said.items() if name != HAND]
    prices = merged_prices([*ranked, said[HAND].prices], today, model_id)
    if fields.get("context_window") and fields.get("max_output", 0) > fields["context_window"]:
        del fields["max_output"]
    kind = fields["kind"] = _kind(provider, model_id, fields.get("kind", "chat"))
    if kind != "chat":
        fields = {name: value for name, value in fields.items() if not name.startswith("supports_")}
        if kind in _OUTPUTS:
            fields.setdefault("output_modalities", _OUTPUTS[kind])
    else:
        fields |= _modalities(model_id, fields)
        if any(price.rates.input and price.rates.output == 0 for price in prices):
            prices = ()  # of a router, whose models cost what they cost
        fields.setdefault("tier", tier(model_id, prices, today))
        if not prices:
            gated = fields.get("is_gated", False)
            fields.setdefault("price_note", NO_PUBLIC_PRICE if gated else NO_PRICE)
    if prices:
        fields.pop("price_note", None)
    return ModelInfo(
        id=model_id, provider=provider, prices=prices, price_disputed=is_disputed, **fields
    )


def _modalities(model_id: str, fields: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The modalities of a chat model; those that no source states follow from what it supports."""
    if "-tts" in model_id:
        return {"input_modalities": ("text",), "output_modalities": ("audio",)}
    if fields.get("input_modalities") or fields.get("supports_vision") is None:
        return {}
    also = [
        name
        for name, flag in (("image", "vision"), ("audio", "audio"))
        if fields.get(f"supports_{flag}")
    ]
    return {
        "input_modalities": ("text", *also),
        "output_modalities": fields.get("output_modalities", ("text",)),
    }


def _kind(provider: str, model_id: str, said: str) -> str:
    """The kind of a model. What answers chat requests is a chat model, whatever it makes."""
    if provider in ("gemini", "vertex") and said in ("image", "speech", "transcription"):
        return "image" if model_id.startswith("imagen-") else "chat"
    if model_id.startswith("voxtral-mini") and "tts" not in model_id:
        return "chat"
    if said == "chat":  # also where a source has no kinds
        return next((kind for kind, words in _KIND_WORDS.items() if words.search(model_id)), said)
    return said


def _fields(said: Mapping[str, Entry]) -> dict[str, Any]:
    """Each field as the most trusted source that knows it says."""
    fields: dict[str, Any] = {}
    for field in sorted({name for entry in said.values() for name in entry.fields}):
        order = RANKS.get(field, RANKS[""])
        ranked = sorted(said, key=lambda name: order.index(name) if name in order else len(order))
        values = [said[name].fields.get(field) for name in ranked]
        stated = [value for value in values if value not in (None, ())]
        fields[field] = (
            None if _is_doubtful(field, stated, said[HAND]) else next(iter(stated), None)
        )
    return {name: value for name, value in fields.items() if value is not None}


def _is_doubtful(field: str, stated: Sequence[Any], own: Entry) -> bool:
    """Whether a "no", which would be enforced, is a "yes" of another source."""
    is_no = field.startswith("supports_") and stated[:1] == [False]
    return is_no and field not in own.fields and True in stated


# Prices.


def merged_prices(
    said: Sequence[tuple[Price, ...]], today: date, model_id: str = ""
) -> tuple[Price, ...]:
    """
    The prices of the first source that has any.

    A later source whose standard price is the same adds the tiers and rates that the first lacks.
    """
    usable = [
        tuple(map(_without_gaps, prices))
        for prices in said
        if prices and not _is_placeholder(prices, model_id)
    ]
    if not usable:
        return ()
    first, *others = usable
    standard = current(first, today)
    for more in others:
        other = current(more, today)
        if (
            standard is None
            or other is None
            or _differs(standard.rates, other.rates, ("input", "output"))
        ):
            continue
        first = _with_days(_with_rates(first, other), more)
        tiers = {price.tier for price in first}
        for price in more:
            if price.tier not in tiers and not _lacks_media(price.rates, standard.rates):
                first += tuple(_kept_in_step(price, standard, first))
    return first


def _kept_in_step(price: Price, standard: Price, prices: Iterable[Price]) -> Iterator[Price]:
    """The price of a tier from the current standard price on; it changes as the standard does."""
    yield msgspec.structs.replace(price, starts=standard.starts)
    for later in prices:
        if later.tier == "standard" and later.starts and later.starts > (standard.starts or _PAST):
            factors = {
                name: getattr(later.rates, name) / rate
                for name, rate in msgspec.structs.asdict(standard.rates).items()
                if rate and getattr(later.rates, name) is not None
            }
            yield msgspec.structs.replace(
                price,
                rates=_scaled(price.rates, factors),
                long_context=tuple(
                    LongContext(above=step.above, rates=_scaled(step.rates, factors))
                    for step in price.long_context
                ),
                starts=later.starts,
            )


def _scaled(rates: Rates, factors: Mapping[str, float]) -> Rates:
    return Rates(
        **{
            name: None if rate is None else dollars(rate * factors.get(name, 1))
            for name, rate in msgspec.structs.asdict(rates).items()
        }
    )


def _lacks_media(rates: Rates, standard: Rates) -> bool:
    """Whether media, which have their own price, would cost as much as text."""
    names = ("output_image", "output_audio", "input_audio", "input_image")
    return any(getattr(rates, name) is None and getattr(standard, name) for name in names)


def _is_placeholder(prices: tuple[Price, ...], model_id: str) -> bool:
    """Whether all prices are 0 though the model is not free: the source did not know them."""
    amounts = [
        amount for price in prices for amount in msgspec.structs.astuple(price.rates) if amount
    ]
    return not amounts and not model_id.endswith((":free", "-free")) and "gemma" not in model_id


def _without_gaps(price: Price) -> Price:
    """The price without a cache rate of 0 beside a price of input: the source did not know it."""
    rates = price.rates
    gaps = [name for name in rates.__struct_fields__ if name.startswith("cache_")]
    gaps = [name for name in gaps if getattr(rates, name) == 0]
    if not rates.input or not gaps:
        return price
    known = msgspec.structs.replace(rates, **dict.fromkeys(gaps))
    return msgspec.structs.replace(price, rates=known)


def _with_rates(prices: tuple[Price, ...], other: Price) -> tuple[Price, ...]:
    """The prices, with the rates that only `other` has, if there is one standard price."""
    standard = [price for price in prices if price.tier == "standard"]
    if len(standard) != 1 or standard[0].long_context != () or other.long_context != ():
        return prices
    rates = {
        name: value
        for name, value in msgspec.structs.asdict(other.rates).items()
        if value is not None and getattr(standard[0].rates, name) is None
    }
    full = msgspec.structs.replace(
        standard[0], rates=msgspec.structs.replace(standard[0].rates, **rates)
    )
    return tuple(full if price is standard[0] else price for price in prices)


def _with_days(prices: tuple[Price, ...], more: tuple[Price, ...]) -> tuple[Price, ...]:
    """The prices of some hours, on the days that another source states for them."""
    days = next((price.days for price in more if price.days and price.hours), ())
    return tuple(
        msgspec.structs.replace(price, days=days) if price.hours and days else price
        for price in prices
    )


def current(prices: Iterable[Price], day: date) -> Price | None:
    """The standard price on a day, outside of special hours."""
    plain = [price for price in prices if price.hours is None]
    return price_at(plain, datetime.combine(day, time(12), UTC))


def _differs(one: Rates, other: Rates, names: Sequence[str] = COMPARED) -> list[str]:
    """The rates that both have, and that differ by more than the tolerance."""
    differing = []
    for name in names:
        a, b = getattr(one, name), getattr(other, name)
        if a is not None and b is not None and abs(a - b) > TOLERANCE * max(a, b):
            differing.append(name)
    return differing


def _price_disagreements(
    provider: str, model_id: str, sources: Sequence[Source]
) -> Iterator[Disagreement]:
    """
    The rates about which two sources disagree.

    A source is compared with the first one that has prices, as they were when it was written:
    an old price is no disagreement.
    """
    said = [
        (one, entry.prices)
        for one in sources
        if (entry := one.lookup(provider, model_id))
        and entry.prices
        and not _is_placeholder(entry.prices, model_id)
    ]
    for (first, prices), (other, others) in zip(said[:1] * len(said[1:]), said[1:], strict=True):
        old, new = current(prices, other.written), current(others, other.written)
        if old is None or new is None or _is_older(new, prices, other.written):
            continue
        for name in _differs(old.rates, new.rates):
            if name == "output" and new.rates.output == old.rates.output_image:
                continue  # it states the price of images as that of output
            values = {first.name: getattr(old.rates, name), other.name: getattr(new.rates, name)}
            yield Disagreement(provider, model_id, name, values)


def _is_older(price: Price, prices: Iterable[Price], day: date) -> bool:
    """Whether it is a standard price that held before."""
    earlier = [one for one in prices if one.tier == "standard" and (one.starts or day) <= day]
    return any(not _differs(price.rates, one.rates) for one in earlier)


# Names, tiers, order.


def tier(model_id: str, prices: Iterable[Price], today: date) -> str | None:
    """The tier of a chat model by a word in its name, else by its price; None if unknown."""
    name = model_id.lower().rpartition("/")[2]
    for found, words in _TIERS.items():
        if words.search(name):
            return found
    price = current(prices, today)
    if price is None or price.rates.input is None or price.rates.output is None:
        return None
    mix = (3 * price.rates.input + price.rates.output) / 4
    return next((found for found, most in _MIX.items() if mix <= most), "large")


def with_aliases(models: Mapping[str, ModelInfo], own: Mapping[str, Entry]) -> dict[str, ModelInfo]:
    """The models; a dated id that differs only by its name is an alias of the plain one."""
    kept = dict(models)
    for model_id, dated in models.items():
        match = _DATED.fullmatch(model_id)
        if match is None:
            continue
        day = date.fromisoformat(match[2])
        plain = kept.get(match[1])
        if plain is None or model_id in own or not _is_same(plain, dated, own):
            kept[model_id] = msgspec.structs.replace(dated, released=dated.released or day)
            continue
        del kept[model_id]
        kept[plain.id] = msgspec.structs.replace(
            plain,
            aliases=(*plain.aliases, model_id),
            retires=plain.retires or dated.retires,
            released=min(plain.released or day, day),
        )
    return kept


def _is_same(plain: ModelInfo, dated: ModelInfo, own: Mapping[str, Entry]) -> bool:
    if plain.retires and dated.retires and plain.retires != dated.retires:
        return False
    limits = () if plain.id in own else ("context_window", "max_output")  # ours are corrected
    return all(
        getattr(plain, name) == getattr(dated, name) or not getattr(dated, name)
        for name in ("kind", "prices", *limits)
    )


def _name(model_id: str) -> str:
    words = re.split("[-_]", model_id.rpartition("/")[2])
    return " ".join(word if word[:1].isdigit() else word[:1].upper() + word[1:] for word in words)


def _ordered(
    models: Mapping[str, ModelInfo], ranks: Mapping[str, tuple[int, int]], today: date
) -> list[ModelInfo]:
    """Best first: by kind, as we ranked them, in service, able, expensive, newest name."""
    noon = datetime.combine(today, time(12), UTC)
    newest = sorted(models.values(), key=lambda one: _version(one.id), reverse=True)
    return sorted(
        newest,
        key=lambda one: (
            _KINDS.index(one.kind),
            ranks[one.id][0],
            one.deprecated,
            ranks[one.id][1],
            not one.id.startswith(_PREFERRED.get(one.provider, "")),
            len(one.id) if ranks[one.id] < UNRANKED else 0,  # the id without a region
            one.retires is not None,
            not one.supports_tools,
            not one.supports_reasoning,
            -(mixed_price(one, noon) or 0),
        ),
    )


def _best(hand: Mapping[str, Mapping[str, Entry]]) -> dict[str, int]:
    """The places of the makers' own models in the hand-made lists, by name."""
    names = [
        _plain(model_id)
        for provider in MAKERS
        for model_id, entry in hand.get(provider, {}).items()
        if not entry.is_retired
    ]
    return {name: place for place, name in enumerate(names)}


def _rank(model_id: str, own: Mapping[str, Entry], best: Mapping[str, int]) -> tuple[int, int]:
    """The place of a model in the list of its provider, and in that of its maker."""
    last = UNRANKED[0]
    ranked = [one for one in own if not own[one].is_retired]
    place = ranked.index(model_id) if model_id in ranked else last
    return place, best.get(_plain(model_id), last)


def _plain(model_id: str) -> str:
    """The maker's name of a model: without region, maker, date and revision, with dashes alone."""
    name = model_id.lower().rpartition("/")[2]
    name = _PREFIX.sub("", name).replace(".", "-")
    return _REVISION.sub("", name)


def _version(model_id: str) -> list[tuple[int, int, str]]:
    parts = _NUMBERS.split(model_id.lower())
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]
