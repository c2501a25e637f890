"""
Conversations as another model accepts them.

A client repairs the history of every request by itself. Import from here to do it without a
client, to see what would change, or to check that a conversation extends a cached prefix.
"""

from interlingua.prepare.cache_diff import cache_prefix_diff
from interlingua.prepare.history import HistoryRepair, RepairPolicy, Target, doctor

__all__ = ["HistoryRepair", "RepairPolicy", "Target", "cache_prefix_diff", "doctor"]
