"""The tables of the dialects in the docs are those that the script writes."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import dialect_tables  # noqa: E402

from interlingua.spec.request import HOSTED_NAMES  # noqa: E402


def test_the_tables_are_not_stale():
    """Run scripts/dialect_tables.py after a change of a dialect."""
    assert dialect_tables.PAGE.read_text(encoding="utf-8") == dialect_tables.page_text()


def test_every_hosted_tool_is_in_the_tables():
    """A new tool needs an example."""
    assert set(HOSTED_NAMES) <= set(dialect_tables.TOOLS)
