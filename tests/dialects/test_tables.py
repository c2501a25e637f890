"""The tables of the dialects in the docs are those that the script writes."""

import sys
from pathlib import Path
from typing import get_args

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import dialect_tables  # noqa: E402

from interlingua import Refusal, Text, Usage, dialects  # noqa: E402
from interlingua.spec.request import HOSTED_NAMES  # noqa: E402
from interlingua.spec.response import Reason  # noqa: E402


def test_the_tables_are_not_stale():
    """Run scripts/dialect_tables.py after a change of a dialect."""
    assert dialect_tables.PAGE.read_text(encoding="utf-8") == dialect_tables.page_text()


def test_every_hosted_tool_is_in_the_tables():
    """A new tool needs an example."""
    assert set(HOSTED_NAMES) <= set(dialect_tables.TOOLS)


def test_every_kind_of_answer_is_in_the_tables():
    """A new finish reason or field of a text needs a row too."""
    titles = [*dialect_tables.ANSWERS]
    for kind in (Text, Refusal):
        fields = set(kind.__struct_fields__) - {"extra", "text", "citations"}
        assert {f"{kind.__name__}.{field}" for field in fields} <= set(titles)
    for name in dialects.names()[:4]:
        rows = [*dialect_tables._answers(name)]
        assert len(rows) == len(titles) + len(get_args(Reason)) + len(dialect_tables.USAGE)
        assert set(dialect_tables.USAGE) <= set(Usage.__struct_fields__)
