"""Any history, as a target accepts it. `rules` names each repair; `target` says which apply."""

from interlingua.prepare.history.rules import HistoryRepair, apply_rules
from interlingua.prepare.history.target import DEFAULT_POLICY, RepairPolicy, rules_for

__all__ = ["DEFAULT_POLICY", "HistoryRepair", "RepairPolicy", "apply_rules", "rules_for"]
