"""The page with the scores is what the script writes."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "conformance_report.py"


def test_the_part_about_the_simulator_is_up_to_date():
    """`scripts/conformance_report.py --simulator-only` would change nothing."""
    script = runpy.run_path(str(SCRIPT))
    page = script["PAGE"].read_text(encoding="utf-8")

    assert page.startswith(script["START"] + script["simulator_part"]())
    assert script["LLAMA"] in page
