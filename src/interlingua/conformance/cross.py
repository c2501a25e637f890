"""
Law 9: A -> canonical -> B -> canonical keeps texts, calls, results, their links, and tools.

What warnings name may differ in the way that each of them stands for (see `changes`), and
nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interlingua.conformance.allowed import Expected, tools_of
from interlingua.conformance.canonical import settings_survive
from interlingua.conformance.cases import Case
from interlingua.conformance.equality import differences, same_schema
from interlingua.conformance.laws import Law
from interlingua.conformance.transcript import UNLINKED, Utterance, spoken
from interlingua.spec.contracts import NEUTRAL_PROFILE, Dialect, Profile
from interlingua.spec.request import Request
from interlingua.spec.response import Warning

_NOT_COMPARED = ("path", "said", "is_moved")


def crossing(source: Dialect, target: Dialect, case: Case) -> list[str]:
    """Law 9: what is said in one dialect is said in the other, or a warning names what is not."""
    if case.call is None:
        return []
    return crosses(target, source.decode_request(case.call))


def crossings(targets: Iterable[Dialect]) -> dict[str, Law]:
    """Law 9 to each of these dialects, in the form that `report.check` takes."""
    return {f"9 crossing to {target.NAME}": _to(target) for target in targets}


def _to(target: Dialect) -> Law:
    return lambda source, case: [] if source.NAME == target.NAME else crossing(source, target, case)


def crosses(target: Dialect, request: Request, profile: Profile = NEUTRAL_PROFILE) -> list[str]:
    """What a request loses on the way to a dialect and back that no warning accounts for."""
    call = target.encode_request(request, profile, stream=False)
    return compare(request, target.decode_request(call), call.warnings)


def compare(request: Request, back: Request, warnings: tuple[Warning, ...]) -> list[str]:
    """How what came back differs from what must come back after these warnings."""
    expected = Expected(request)
    for warning in warnings:
        expected.apply(warning)
    said = _plain(expected.utterances, free=expected.free)
    found = _plain(spoken(back.messages), free=expected.free)
    warned = tuple(warning.path for warning in warnings if warning.path)
    return [
        *differences(said, found, "$.said"),
        *_same_tools(expected.tools(), tools_of(back)),
        *settings_survive(request, back, warned),
    ]


def _plain(utterances: list[Utterance], *, free: bool) -> list[Any]:
    """To compare: without places; with results at the end, by call, if they may have moved."""
    if free:
        results = [one for one in utterances if one.kind == "result"]
        others = [one for one in utterances if one.kind != "result"]
        utterances = others + sorted(results, key=lambda one: one.call or 0)
    return [_fields(one) for one in utterances]


def _fields(one: Utterance) -> dict[str, Any]:
    names = (name for name in one.__struct_fields__ if name not in _NOT_COMPARED)
    fields = {name: getattr(one, name) for name in names}
    fields["shown"] = [_fields(inner) for inner in one.shown]
    if one.kind == "result":
        # a dialect without the flag need not say twice that it failed
        says_so = isinstance(one.text, str) and one.text[:5].lower() == "error"
        fields["is_failure"] = one.is_failure or says_so
        if one.call == UNLINKED:
            fields["call"] = None
    return fields


def _same_tools(expected: list[dict[str, Any]], found: list[dict[str, Any]]) -> list[str]:
    for one, other in zip(expected, found, strict=False):
        if same_schema(one.get("parameters"), other.get("parameters")):
            one["parameters"] = other.get("parameters")
    return differences(expected, found, "$.tools")
