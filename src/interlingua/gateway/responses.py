"""The part `responses` of the section `gateway`: what is kept, for how long, and where."""

from __future__ import annotations

import re
from typing import TypedDict

from interlingua.client.config import Section
from interlingua.client.stores.contract import LONGEST
from interlingua.gateway.stores import Stores
from interlingua.serving.kept_responses import KeptResponses
from interlingua.spec.check import rows_of_options

FILE = "responses.db"
"""The usual store: a file beside the registry file, which all workers share."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_read_duration = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smhd])").fullmatch


class _Responses(TypedDict, total=False):
    """The keys of `responses`."""

    keep: str
    store: str


class _KeyResponses(TypedDict, total=False):
    """The keys of `responses` of a key."""

    keep: str


def read_kept(section: Section, stores: Stores) -> KeptResponses | None:
    """What the section `gateway` of the file says about responses; None if none are kept."""
    if section.get("responses") in (None, False):
        return None
    responses = section.section("responses", "gateway.responses")
    responses = responses.check(rows_of_options(_Responses))
    seconds = _seconds(responses, "gateway.responses")
    store = stores.open_for(responses, responses.get("store", FILE))
    return KeptResponses(store, seconds=seconds)


def read_keep(section: Section, name: str) -> float | None:
    """The seconds that responses are kept for a key; None for the usual time, 0 for none."""
    value = section.get("responses")
    if value in (None, True):
        return None
    if value is False:
        return 0.0
    where = f"gateway.keys.{name}.responses"
    responses = section.section("responses", where).check(rows_of_options(_KeyResponses))
    return _seconds(responses, where)


def _seconds(section: Section, where: str) -> float:
    match = _read_duration(section.get("keep", ""))
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not 0 < seconds <= LONGEST:
        raise section.error(
            "keep",
            f"{where}: `keep` must be a number with s, m, h or d (seconds, minutes, hours, days), "
            "such as 30d.",
        )
    return seconds
