"""A request as its target takes it: clamped by the profile, its history repaired."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from interlingua.prepare.history import repair, target_for
from interlingua.prepare.options import options_for
from interlingua.prepare.settings import clamp
from interlingua.spec.contracts import Profile
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList


def prepare(
    request: Request,
    dialect: str,
    profile: Profile,
    warnings: WarningList,
    quirks: Mapping[str, Any] | None = None,
) -> tuple[Request, dict[str, Any]]:
    """
    The request that can be said, and the options that go over it.

    Every encoder begins here. A request the target accepts comes back as the same object.
    `quirks` are fields of the target in which one server differs from its dialect.
    """
    history = request.messages
    request = clamp(request, profile, warnings)
    options = options_for(request, dialect)
    target = target_for(dialect, request, profile, options, quirks)
    messages = repair(request.messages, target, warnings=warnings, history=history)
    if messages is not request.messages:
        request = replace(request, messages=messages)
    return request, options
