"""
Files that providers store, for requests that refer to them.

    from interlingua import files

    file = await files.upload("anthropic", Path("report.pdf"))
    result = await generate("anthropic:claude-haiku-4-5", [file.part(), "Summarise it."])
    await files.delete(file)
"""

from interlingua.api.modalities.files import delete, download, get, read, upload, wait
from interlingua.api.modalities.files import list_files as list
from interlingua.spec.modalities.files import DeletedFile, StoredFile

__all__ = [
    "DeletedFile",
    "StoredFile",
    "delete",
    "download",
    "get",
    "list",
    "read",
    "upload",
    "wait",
]
