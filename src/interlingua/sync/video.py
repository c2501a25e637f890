"""The functions of `interlingua.video`, blocking."""

from __future__ import annotations

from typing import Final

from interlingua.api.modalities import video
from interlingua.sync.blocking import blocking

__all__ = ["cancel", "create", "delete", "download", "list", "remix", "retrieve", "wait"]

create: Final = blocking(video.create, __name__)
remix: Final = blocking(video.remix, __name__)
retrieve: Final = blocking(video.retrieve, __name__)
wait: Final = blocking(video.wait, __name__)
download: Final = blocking(video.download, __name__)
cancel: Final = blocking(video.cancel, __name__)
delete: Final = blocking(video.delete, __name__)
list: Final = blocking(video.list_jobs, __name__, "list")
