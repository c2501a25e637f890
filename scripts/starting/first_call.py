"""
One first call in a fresh process, for `scripts/start` and `tests/test_imports.py`.

    python first_call.py WAY MODEL BASE_URL [--imports]

Prints JSON: milliseconds of CPU for each stage, and with `--imports` every module that was
imported, in the order of their ends. This file imports nothing at its top but what every
interpreter has, so that the list has all that a call needs.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from time import process_time, thread_time

KEY = "sk-start-0123456789"
PROMPT = "Hello"
STAGES = ("import", "client", "call")
_IMPORTERS = ("importlib", "_frozen_importlib")
"""How the names of modules begin that import others for everybody."""


class Imports:
    """Notes each module that is imported: its stage, its own time, and who imported it."""

    def __init__(self) -> None:
        self.stage = ""
        self.found: list[dict[str, object]] = []
        self._inner: dict[int, list[float]] = {}
        """By thread: the seconds of the imports inside of each that has begun."""

    def find_spec(self, name, path=None, target=None):  # noqa: ANN001, ANN201 -- of a finder
        """Of a finder in `sys.meta_path`; the others do the work."""
        begun = thread_time()
        others = (each for each in sys.meta_path if each is not self)
        specs = (each.find_spec(name, path, target) for each in others)
        spec = next((each for each in specs if each is not None), None)
        searched = thread_time() - begun
        if spec is not None:
            self._watch(spec, searched, _importer())
        self._add(searched)
        return spec

    def _watch(self, spec, searched, importer) -> None:  # noqa: ANN001
        loader, found = spec.loader, {"name": spec.name, "stage": self.stage, "by": importer}
        if loader is None or isinstance(loader, type):  # built in: there is nothing to run
            self.found.append(found | {"ms": searched * 1e3})
            return
        execute = loader.exec_module

        def exec_module(module: object) -> None:
            begun, inner = thread_time(), self._inner.setdefault(get_ident(), [])
            inner.append(0.0)
            try:
                execute(module)
            finally:
                spent = thread_time() - begun
                own = searched + spent - inner.pop()
                self.found.append(found | {"ms": own * 1e3})
                self._add(spent)

        loader.exec_module = exec_module

    def _add(self, seconds: float) -> None:
        inner = self._inner.get(get_ident())
        if inner:
            inner[-1] += seconds


def _importer() -> str:
    """The module and line that the import is in."""
    frame = sys._getframe(2)  # noqa: SLF001 -- documented for this
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_IMPORTERS):
        frame = frame.f_back
    return f"{frame.f_globals.get('__name__')}:{frame.f_lineno}" if frame else ""


# The ways of a call: what makes the client, and the call.


def make_nothing(_: str, __: str) -> None:
    """The client is made by the call."""


def make_client(model: str, base_url: str) -> object:
    from interlingua import Client, HttpAdapter

    provider = model.partition(":")[0]
    return Client({provider: HttpAdapter(provider, KEY, base_url=base_url)})


def make_blocking_client(model: str, base_url: str) -> object:
    from interlingua import HttpAdapter, sync

    provider = model.partition(":")[0]
    return sync.Client({provider: HttpAdapter(provider, KEY, base_url=base_url)})


def generate(model: str, client) -> None:  # noqa: ANN001 -- of several types
    import asyncio

    from interlingua import generate

    asyncio.run(generate(model, PROMPT, client=client))


def stream(model: str, client) -> None:  # noqa: ANN001
    import asyncio

    from interlingua import stream

    async def read() -> None:
        async for _ in stream(model, PROMPT, client=client):
            pass

    asyncio.run(read())


def blocking(model: str, client) -> None:  # noqa: ANN001
    from interlingua import sync

    sync.generate(model, PROMPT, client=client)


def ask(model: str, _: None) -> None:
    from interlingua.cli import main

    assert main(["ask", "--no-log", "-m", model, PROMPT]) == 0  # noqa: S101 -- a check of ours


WAYS = {
    "generate": (make_client, generate),
    "environment": (make_nothing, generate),
    "stream": (make_client, stream),
    "blocking": (make_blocking_client, blocking),
    "ask": (make_nothing, ask),
}


def main() -> None:
    way, model, base_url = sys.argv[1:4]
    make, call = WAYS[way]
    imports, times = Imports(), [process_time()]
    if "--imports" in sys.argv:
        sys.meta_path.insert(0, imports)
    imports.stage = "import"
    import interlingua  # noqa: F401 -- it is what is measured

    times.append(process_time())
    imports.stage = "client"
    client = make(model, base_url)
    times.append(process_time())
    imports.stage = "call"
    call(model, client)
    times.append(process_time())
    found = [*imports.found]

    import json
    from itertools import pairwise

    spent = [(after - before) * 1e3 for before, after in pairwise(times)]
    cpu = dict(zip(STAGES, spent, strict=True))
    print(json.dumps({"cpu": cpu, "modules": found}))


if __name__ == "__main__":
    main()
