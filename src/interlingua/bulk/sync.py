"""The functions of `interlingua.bulk`, blocking. They are here because `sync` is below `bulk`."""

from __future__ import annotations

from typing import Final

from interlingua.bulk import loop, state, vectors
from interlingua.sync.blocking import blocking, blocking_iterator

__all__ = ["embed", "export", "read_rows", "run", "status"]

run: Final = blocking(loop.run, __name__)
embed: Final = blocking(vectors.embed, __name__)
status: Final = blocking(state.status, __name__)
export: Final = blocking(state.export, __name__)
read_rows: Final = blocking_iterator(state.read_rows, __name__)
