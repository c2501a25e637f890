"""Any history, made speakable to any target. `rules` names each repair; `target` says for whom."""

from interlingua.prepare.history.rules import HistoryRepair, doctor, repair
from interlingua.prepare.history.target import RepairPolicy, Target, find_target, target_for

__all__ = [
    "HistoryRepair",
    "RepairPolicy",
    "Target",
    "doctor",
    "find_target",
    "repair",
    "target_for",
]
