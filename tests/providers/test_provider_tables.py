"""The tables of providers in the docs have every row, and what the rows claim is so."""

import sys
from pathlib import Path

import pytest

from interlingua.providers.row_tables.builders import RECORDED
from interlingua.providers.rows import ROWS
from support import corpus, hosts

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from docs_build import pages, providers  # noqa: E402


def test_every_row_is_in_the_table():
    """Once, with its variables and its address."""
    text = pages.fill(providers.PAGE, providers.table)
    for row in ROWS:
        (line,) = (line for line in text.splitlines() if line.startswith(f"| `{row.name}`"))
        for names in (row.key_env, row.version_env, *row.url_env.values()):
            assert all(f"`{name}`" in line for name in names)
        assert row.base_url in line


@pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")
def test_rows_that_say_recordings_have_some():
    """And those with recordings say so."""
    recorded = {hosts.row_of(dialect, host) for dialect, host in hosts.hosts()}
    for file in ("openai-embeddings", "images", "models"):
        recorded |= {hosts.row_of("", record["host_provider"]) for record in corpus.read(file)}
    claimed = {row.name for row in ROWS if RECORDED in row.sources}
    assert claimed - recorded == set()
    assert recorded - claimed == {"local"}  # its own server runs in the tests
