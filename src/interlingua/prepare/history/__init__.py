"""Any history, as a target accepts it. `rules` names each repair, and says which apply."""

from interlingua.prepare.history.edit import DEFAULT_POLICY, RepairPolicy
from interlingua.prepare.history.rules import (
    HistoryRepair,
    apply_rules,
    kinds_without_urls,
    rules_for,
)

__all__ = [
    "DEFAULT_POLICY",
    "HistoryRepair",
    "RepairPolicy",
    "apply_rules",
    "kinds_without_urls",
    "rules_for",
]
