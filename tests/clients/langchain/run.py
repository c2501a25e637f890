"""Run LangChain's own tests of chat models through the gateway: four classes, four upstreams."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree as ET

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import group  # noqa: E402
from environments import python_environment  # noqa: E402
from results import UPSTREAMS, Result  # noqa: E402
from stand import Stand  # noqa: E402

AT_ONCE = 2
"""How many upstreams are tried beside each other."""
CLASSES = {
    "Chat": ("ChatOpenAI (Chat)", "langchain-openai"),
    "Responses": ("ChatOpenAI (Responses)", "langchain-openai"),
    "Messages": ("ChatAnthropic", "langchain-anthropic"),
    "Gemini": ("ChatGoogleGenerativeAI", "langchain-google-genai"),
}
"""The classes of `suite.py`: the client's name and its package."""


def run(stand: Stand) -> Iterable[Result]:
    """One result for each class and upstream."""
    python = str(python_environment(HERE))
    versions = _versions(HERE / "requirements.txt")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as pool:

        def tried(upstream: str) -> list[Result]:
            report = Path(folder) / f"{upstream}.xml"
            command = [python, "-m", "pytest", "-q", "--tb=short", "suite.py", "-k", f"_{upstream}"]
            done = subprocess.run(
                [*command, f"--junitxml={report}"],
                cwd=HERE,
                env=group.client_environment(stand),
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                print(done.stdout[-group.SHOWN :], done.stderr, flush=True)
            return list(_results(report, upstream, versions))

        for found in pool.map(tried, UPSTREAMS):
            yield from found


def _results(report: Path, upstream: str, versions: dict[str, str]) -> Iterable[Result]:
    cases = ET.parse(report).getroot().iter("testcase")  # noqa: S314 -- pytest wrote it just now
    outcomes: dict[str, list[str]] = {}
    for case in cases:
        kinds = {child.tag for child in case}
        outcome = next((kind for kind in ("failure", "error", "skipped") if kind in kinds), "pass")
        outcomes.setdefault(case.get("classname", ""), []).append(outcome)
    for kind, (client, package) in CLASSES.items():
        found = outcomes.get(f"suite.Test{kind}_{upstream}", ["error"])
        passed, skipped = found.count("pass"), found.count("skipped")
        failed = len(found) - passed - skipped
        note = f"{passed} passed, {skipped} skipped" + (f", {failed} failed" if failed else "")
        yield Result(
            client=client,
            version=versions[package],
            upstream=upstream,
            feature="ChatModelIntegrationTests",
            result="fail" if failed else "pass",
            note=note,
        )


def _versions(pins: Path) -> dict[str, str]:
    lines = (line.partition("==") for line in pins.read_text("utf-8").splitlines())
    return {name: number for name, _, number in lines}


if __name__ == "__main__":
    sys.exit(group.main(run, lambda: python_environment(HERE)))
