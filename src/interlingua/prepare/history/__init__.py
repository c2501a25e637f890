"""Any history, as a target accepts it. `rules` lists the repairs and says which apply."""

from interlingua.prepare.history.edit import DEFAULT_POLICY, RepairPolicy
from interlingua.prepare.history.messages import droppable_units
from interlingua.prepare.history.rules import (
    HistoryRepair,
    apply_rules,
    kinds_without_urls,
    rules_for,
)
from interlingua.prepare.history.scan import PROMPTS, HistoryScan

__all__ = [
    "DEFAULT_POLICY",
    "PROMPTS",
    "HistoryRepair",
    "HistoryScan",
    "RepairPolicy",
    "apply_rules",
    "droppable_units",
    "kinds_without_urls",
    "rules_for",
]
