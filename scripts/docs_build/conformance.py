"""
The report build/conformance-report.md: the scores of the simulator and of llama.cpp.

It is the output of one run on one machine, and not a page of the manual.
"""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path

from docs_build import pages
from interlingua import dialects
from interlingua.conformance.endpoint import check_endpoint
from interlingua.conformance.report import Report, as_markdown
from interlingua.local import local_server
from interlingua.simulator import Simulator, serve_in_thread, use_tools, within_limits

REPORT = pages.ROOT / "build" / "conformance-report.md"
LOCAL_DIALECTS = ("openai_chat", "openai_responses", "anthropic_messages")
KEY, MODEL = "sk-simulated", "simulated-model"
HEAD = """# Conformance of the simulator and of llama.cpp

Written by `scripts/docs_tables.py conformance`. Each table is the output of `check_endpoint`: every
check sends requests as a client of the dialect would. A finding is about the server in this
configuration. What only the model decides, such as whether it makes two calls, is not scored."""


def texts() -> dict[Path, str]:
    """The report; without the extra `local` only on the simulator."""
    parts = [HEAD, "## The simulator", *map(as_markdown, simulator_reports())]
    if find_spec("xllamacpp"):
        parts += ["## llama.cpp with SmolLM2-135M-Instruct", *map(as_markdown, llama_reports())]
    return {REPORT: "\n\n".join(parts) + "\n"}


def simulator_reports() -> list[Report]:
    """The reports on the simulator, in every dialect; they need no model."""
    app = Simulator(within_limits(use_tools), key=KEY, models=[MODEL], strict=True)
    with serve_in_thread(app) as server:
        return [
            asyncio.run(check_endpoint(server.url, name, MODEL, KEY)) for name in dialects.names()
        ]


def llama_reports() -> list[Report]:
    """The reports on the server that `LocalAdapter` starts, in the dialects that it speaks."""

    async def run() -> list[Report]:
        url = local_server().start()
        return [await check_endpoint(url, name, "smollm2", timeout=120) for name in LOCAL_DIALECTS]

    return asyncio.run(run())
