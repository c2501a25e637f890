"""
What one contender costs in a process that has loaded nothing else.

    python benchmarks/single.py import [MODULE ...]
    python benchmarks/single.py first|memory CONTENDER DIALECT BASE_URL

Prints JSON: seconds of CPU since the process began, bytes resident, bytes an open stream.
"""

from __future__ import annotations

import sys
import time

STREAMS = 300


def load(*modules: str) -> dict[str, float]:
    """What it costs to load modules, the interpreter's own start included."""
    for module in modules:
        __import__(module)
    return {"cpu": time.process_time()}


async def first(name: str, dialect: str, base: str) -> dict[str, float]:
    """What the first call costs, all that is loaded for it included."""
    from contenders import CONTENDERS, Exchange, plain_body

    await CONTENDERS[name](Exchange(dialect, base, plain_body(dialect))).complete()
    return {"cpu": time.process_time()}


async def memory(name: str, dialect: str, base: str) -> dict[str, float]:
    """What each of many open streams keeps."""
    import gc

    from contenders import CONTENDERS, Exchange, OurFunctions, plain_body

    make = {**CONTENDERS, "functions": OurFunctions}[name]
    contender = make(Exchange(dialect, base, plain_body(dialect)))
    held = [await contender.open_stream() for _ in range(20)]  # what is paid once
    gc.collect()
    before = resident()
    held += [await contender.open_stream() for _ in range(STREAMS)]
    gc.collect()
    return {"stream": (resident() - before) / STREAMS}


def resident() -> int:
    """Bytes of memory in use; where that cannot be asked, the most there ever were."""
    import resource
    from pathlib import Path

    asked = Path("/proc/self/statm")
    if asked.exists():
        return int(asked.read_text().split()[1]) * resource.getpagesize()
    unit = 1 if sys.platform == "darwin" else 1_024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main() -> None:
    what, *rest = sys.argv[1:]
    if what == "import":
        report(load(*rest))
    else:
        import asyncio

        work = {"first": first, "memory": memory}[what]

        async def run() -> None:
            report(await work(*rest))

        asyncio.run(run())


def report(result: dict[str, float]) -> None:
    import json
    import os

    print(json.dumps({**result, "resident": resident()}), flush=True)
    os._exit(0)  # how open streams are cleared away is not asked here


if __name__ == "__main__":
    main()
