#!/usr/bin/env python
"""Write docs/conformance-report.md: the scores of the simulator and of llama.cpp."""

from __future__ import annotations

import argparse
import asyncio
import re
from pathlib import Path

from interlingua import dialects
from interlingua.conformance.endpoint import check_endpoint
from interlingua.conformance.report import Report, as_markdown
from interlingua.simulator import Simulator, serve_in_thread, use_tools, within_limits

PAGE = Path(__file__).resolve().parents[1] / "docs" / "conformance-report.md"
LOCAL_DIALECTS = ("openai_chat", "openai_responses", "anthropic_messages")
KEY, MODEL = "sk-simulated", "simulated-model"

START = """# Conformance of the simulator and of llama.cpp

Written by `scripts/conformance_report.py`. Each table is the output of `check_endpoint`
([reference](reference/conformance.md)): every check sends requests as a client of the dialect
would. A finding is about the server in this configuration. What only the model decides, such as
whether it makes two calls, is not scored.

"""
SIMULATOR = "## The simulator\n\n"
LLAMA = """## llama.cpp with SmolLM2-135M-Instruct

The server that `LocalAdapter` starts, in the dialects that it speaks.

"""


def simulator_part() -> str:
    """The reports on the simulator, which needs no model."""
    app = Simulator(within_limits(use_tools), key=KEY, models=[MODEL], strict=True)
    with serve_in_thread(app) as server:
        reports = [
            asyncio.run(check_endpoint(server.url, name, MODEL, KEY)) for name in dialects.names()
        ]
    return SIMULATOR + _tables(reports)


def llama_part() -> str:
    """The reports on the local server."""
    from interlingua.local import local_server

    async def run() -> list[Report]:
        url = local_server().start()
        return [await check_endpoint(url, name, "smollm2", timeout=120) for name in LOCAL_DIALECTS]

    return LLAMA + _tables(asyncio.run(run()))


def _tables(reports: list[Report]) -> str:
    text = "\n\n".join(map(as_markdown, reports)) + "\n\n"
    return re.sub(r"127\.0\.0\.1:[0-9]+", "127.0.0.1", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulator-only", action="store_true", help="keep the part on llama.cpp")
    options = parser.parse_args()
    if options.simulator_only:
        last = LLAMA + PAGE.read_text(encoding="utf-8").partition(LLAMA)[2]
    else:
        last = llama_part()
    PAGE.write_text(START + simulator_part() + last.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
