"""How much a run tries: `fast` is the default, `INTERLINGUA_TESTS=full` tries everything."""

import os

PROFILE = "full" if os.environ.get("INTERLINGUA_TESTS") == "full" else "fast"
FULL = PROFILE == "full"


def examples(count):
    """The examples that `hypothesis` tries in this run, where a full run tries `count`."""
    return count if FULL else max(10, count // 4)
