"""Known models and their profiles, as data."""

import os


def read_data(name: str) -> bytes:
    """
    The bytes of a file in this folder, whose name has slashes.

    As `pkgutil.get_data` does it, which would take longer to import than to run.
    """
    folder = os.path.dirname(__file__)  # noqa: PTH120 -- `pathlib` would be loaded for it
    path = os.path.join(folder, *name.split("/"))  # noqa: PTH118
    data: bytes = __spec__.loader.get_data(path)  # type: ignore[union-attr]
    return data
