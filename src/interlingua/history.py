"""
Reads conversations of other libraries, and repairs them so that another model accepts them.

A client repairs the history of every request. Use this module to do it without a client, to see
what would change, or to check that a request extends a cached prefix.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interlingua.api.run.messages import read_messages
from interlingua.prepare.cache import cache_prefix_diff
from interlingua.prepare.history.edit import DEFAULT_POLICY, RepairPolicy
from interlingua.prepare.history.rules import HistoryRepair, apply_rules
from interlingua.providers.provider import find_dialect
from interlingua.spec.check import refuse
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import AnyMessage
from interlingua.spec.warnings import WarningList

__all__ = [
    "HistoryRepair",
    "HistoryRules",
    "RepairPolicy",
    "cache_prefix_diff",
    "read_messages",
    "repair",
]


def repair(
    messages: Iterable[AnyMessage],
    target: HistoryRules | str,
    policy: RepairPolicy = DEFAULT_POLICY,
) -> HistoryRepair:
    """
    Return a history as a target accepts it, and the changes that were made.

    `target` is the name of a dialect, or rules of your own. Nothing is sent. A history that the
    target accepts is returned unchanged. Messages have the forms that `read_messages` takes.
    """
    given: tuple[Any, Any] = (target, policy)  # a caller without a type checker may pass anything
    if not isinstance(given[0], (str, HistoryRules)):
        refuse("target", "the name of a dialect, or HistoryRules", target)
    if not isinstance(given[1], RepairPolicy):
        refuse("policy", "a RepairPolicy", policy)
    rules = find_dialect(target).FACTS.history if isinstance(target, str) else target
    warnings = WarningList(rules.model or rules.dialect)
    repaired = apply_rules(read_messages(messages), rules, policy, warnings)
    return HistoryRepair(messages=repaired, changes=tuple(warnings.warnings))
