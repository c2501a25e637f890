"""The functions of `interlingua.batch`, blocking."""

from __future__ import annotations

from typing import Final

from interlingua.api.modalities import batch
from interlingua.api.modalities.batch import SubmitOptions
from interlingua.sync.blocking import blocking, blocking_iterator

__all__ = [
    "SubmitOptions",
    "cancel",
    "delete",
    "list",
    "results",
    "status",
    "submit",
    "wait",
]

submit: Final = blocking(batch.submit, __name__)
status: Final = blocking(batch.status, __name__)
wait: Final = blocking(batch.wait, __name__)
results: Final = blocking_iterator(batch.results, __name__)
cancel: Final = blocking(batch.cancel, __name__)
list: Final = blocking(batch.list_batches, __name__, "list")
delete: Final = blocking(batch.delete, __name__)
