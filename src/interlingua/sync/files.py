"""The functions of `interlingua.files`, blocking."""

from __future__ import annotations

from typing import Final

from interlingua.api.modalities import files
from interlingua.sync.blocking import blocking

__all__ = ["delete", "download", "get", "list", "read", "upload", "wait"]

upload: Final = blocking(files.upload, __name__)
get: Final = blocking(files.get, __name__)
list: Final = blocking(files.list_files, __name__, "list")
delete: Final = blocking(files.delete, __name__)
download: Final = blocking(files.download, __name__)
read: Final = blocking(files.read, __name__)
wait: Final = blocking(files.wait, __name__)
