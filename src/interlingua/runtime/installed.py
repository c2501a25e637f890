"""
What other packages add through entry points.

Hardly any package has entry points of ours, and `importlib.metadata` needs 30 ms to find that out.
So it is asked only if a file that lists entry points mentions our group.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = "interlingua.commands"
"""The group of commands of the command line: each entry point is a `click.Command`."""
DIALECTS = "interlingua.dialects"
"""The group of dialects: each entry point names a module."""
PROVIDERS = "interlingua.providers"
"""The group of providers: rows, or functions that return them."""
TEMPLATES = "interlingua.templates"
"""The group of templates for `-t`: texts, or mappings as in a template's file."""
TOOLS = "interlingua.tools"
"""The group of tools for `-T`: functions, `Tool` objects, lists of them, or modules."""

_FOLDERS = (".dist-info", ".egg-info")
"""How the names of folders end that describe an installed package."""
_LIST = "entry_points.txt"


def entry_points_of(group: str) -> Iterable[EntryPoint]:
    """The entry points of all installed packages in this group."""
    if not may_have(group):
        return ()
    from importlib.metadata import entry_points

    return entry_points(group=group)


def use_entry_points(points: Iterable[EntryPoint], use: Callable[[EntryPoint], object]) -> None:
    """Call `use` with each entry point; one that fails gives a warning and is ignored."""
    for point in points:
        try:
            use(point)
        except Exception as error:  # noqa: BLE001 -- code of another package may raise anything
            message = f"entry point {point.name!r} of {point.group} was ignored: {error!r}"
            warnings.warn(message, RuntimeWarning, stacklevel=3)


def may_have(group: str) -> bool:
    """Whether a package may have entry points in this group; True if the files do not tell."""
    others = (finder for finder in sys.meta_path if finder is not PathFinder)
    if any(hasattr(finder, "find_distributions") for finder in others):
        return True
    return any(_mentions(path or os.curdir, group.encode()) for path in sys.path)


def _mentions(path: str, group: bytes) -> bool:
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries if _describes_package(entry.name)]
    except NotADirectoryError:  # an archive
        return True
    except OSError:
        return False
    return any(group in _read(os.path.join(path, name, _LIST)) for name in names)  # noqa: PTH118


def _describes_package(name: str) -> bool:
    lowered = name.lower()
    return lowered.endswith(_FOLDERS) or lowered == "egg-info"


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 -- `pathlib` would be loaded for it
            return file.read()
    except OSError:  # most packages have no entry points
        return b""
