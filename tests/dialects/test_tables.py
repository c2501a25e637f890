"""The tables of the dialects in the docs have every field, part, tool and error."""

import sys
from pathlib import Path
from typing import get_args

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from docs_build import dialects as tables  # noqa: E402
from docs_build import pages  # noqa: E402

from interlingua import Refusal, Text, Usage, dialects  # noqa: E402
from interlingua.spec.request import HOSTED_NAMES  # noqa: E402
from interlingua.spec.response import Reason  # noqa: E402


def test_every_dialect_has_its_tables():
    """The page has a region for each."""
    assert tuple(pages.marks(tables.PAGE)) == dialects.names()


def test_every_hosted_tool_is_in_the_tables():
    """A new tool needs an example."""
    assert set(HOSTED_NAMES) <= set(tables.TOOLS)


def test_every_kind_of_answer_is_in_the_tables():
    """A new finish reason or field of a text needs a row too."""
    titles = [*tables.ANSWERS]
    for kind in (Text, Refusal):
        fields = set(kind.__struct_fields__) - {"extra", "text", "citations"}
        assert {f"{kind.__name__}.{field}" for field in fields} <= set(titles)
    for name in dialects.names():
        rows = [*tables._answers(name)]
        assert len(rows) == len(titles) + len(get_args(Reason)) + len(tables.USAGE)
        assert set(tables.USAGE) <= set(Usage.__struct_fields__)
