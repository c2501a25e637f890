"""What is generated in the documentation is what `scripts/docs_tables.py` would write now."""

import importlib.util
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "docs_tables.py"
sys.path.insert(0, str(ROOT / "scripts"))

from docs_build import conformance, pages  # noqa: E402

specification = importlib.util.spec_from_file_location("docs_tables", SCRIPT)
docs_tables = importlib.util.module_from_spec(specification)
specification.loader.exec_module(docs_tables)

DEFAULT = [name for name, output in docs_tables.OUTPUTS.items() if output.is_default]
MARKED = """Before.

<!-- generated: one -->

Old.

<!-- end of generated -->

After.
"""


@pytest.mark.parametrize("name", DEFAULT)
def test_it_is_up_to_date(name):
    """Run `scripts/docs_tables.py NAME` after a change of what the files are made from."""
    stale = pages.write(import_module(f"docs_build.{name}").texts(), check=True)

    assert [str(path.relative_to(ROOT)) for path in stale] == []


def test_every_marked_page_is_written_by_a_name():
    """A mark that nothing fills would look generated and grow old."""
    modules = [import_module(f"docs_build.{name}") for name in DEFAULT]
    written = {module.PAGE for module in modules if hasattr(module, "PAGE")}
    reference = import_module("docs_build.reference")
    written |= {reference.INDEX, *reference.FOLDER.glob("*.md")}

    assert {path for path in pages.DOCS.rglob("*.md") if pages.marks(path)} <= written


def test_only_what_is_marked_is_filled(tmp_path):
    """The text around a region stays; what the mark names says what belongs there."""
    page = tmp_path / "page.md"
    page.write_text(MARKED, encoding="utf-8")

    assert pages.fill(page, lambda name: f"New: {name}.") == MARKED.replace("Old.", "New: one.")


def test_stale_files_are_written_or_only_named(tmp_path):
    """A check names a stale file and leaves it; without one it is written, and then not stale."""
    page = tmp_path / "folder" / "page.md"

    assert pages.write({page: "new"}, check=True) == [page]
    assert not page.exists()
    assert pages.write({page: "new"}, check=False) == [page]
    assert page.read_text(encoding="utf-8") == "new"
    assert pages.write({page: "new"}, check=True) == []


def test_the_help_names_everything():
    """Also what is written only if it is named; an unknown name is refused with all that exist."""
    command = [sys.executable, str(SCRIPT)]
    shown = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True)
    wrong = subprocess.run([*command, "tabels"], capture_output=True, text=True, check=False)

    for name, output in docs_tables.OUTPUTS.items():
        assert f"  {name} " in shown.stdout
        assert output.about in shown.stdout
        assert name in wrong.stderr
    assert wrong.returncode == 2


def test_the_report_is_not_in_the_manual():
    """It is the output of one run on one machine."""
    assert conformance.REPORT.parent == ROOT / "build"


def test_the_simulator_passes_every_check():
    """In every dialect: the report on it has no finding."""
    reports = conformance.simulator_reports()

    assert [(report.percent, report.violations) for report in reports] == [(100, ())] * len(reports)
    assert len(reports) >= 4
