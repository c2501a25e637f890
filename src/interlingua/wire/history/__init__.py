"""Any history, made speakable to any target. `rules` names each repair; `target` says for whom."""

from interlingua.wire.history.rules import Diagnosis, doctor, repair
from interlingua.wire.history.target import Policy, Target, find_target, target_for

__all__ = ["Diagnosis", "Policy", "Target", "doctor", "find_target", "repair", "target_for"]
