"""
Recorded exchanges that break a law, each with the reason.

A record that no longer breaks its law must leave this list: a test says so.
"""

EXCEPTIONS: dict[tuple[str, str], str] = {}
"""(law, record id) -> why."""
