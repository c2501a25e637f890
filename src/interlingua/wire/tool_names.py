"""Tools that not every dialect has, and their names for dialects without namespaces."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeGuard

from interlingua.spec.request import ToolDefinition, ToolSpec, tool_key

_LONGEST = 64
"""Characters of a name that every dialect accepts."""
_DIGEST = 8
_unusual = re.compile(r"[^A-Za-z0-9_-]+").sub


def may_change_form(tool: ToolSpec) -> TypeGuard[ToolDefinition]:
    """Whether some dialects get this tool as a function, or by another name."""
    return type(tool) is ToolDefinition and (tool.type != "function" or tool.namespace is not None)


def sent_names(tools: Iterable[ToolSpec]) -> dict[tuple[str | None, str], str]:
    """
    A name for each tool, by its namespace and name.

    The names are valid in every dialect, and no two are equal. A tool without a namespace keeps
    its own.
    """
    keys = [tool_key(tool) for tool in tools if isinstance(tool, ToolDefinition)]
    names: dict[tuple[str | None, str], str] = {key: key[1] for key in keys if key[0] is None}
    used = set(names.values())
    for key in keys:
        if key not in names:
            names[key] = flat_name(*key, used)
            used.add(names[key])
    return names


def flat_name(namespace: str | None, name: str, used: Iterable[str] = ()) -> str:
    """A name for a tool of a namespace that is not among the used ones."""
    # OpenAI puts each deferred tool into a namespace of the same name.
    plain = name if namespace in (None, name) else f"{namespace}__{name}"
    clean = _unusual("_", plain).strip("_") or "tool"
    taken = used if isinstance(used, (set, frozenset)) else set(used)
    number = 0
    candidate = clean
    while len(candidate) > _LONGEST or candidate in taken:
        from hashlib import sha256  # loads OpenSSL

        digest = sha256(f"{namespace}\0{name}\0{number}".encode("utf-8", "replace"))
        candidate = f"{clean[: _LONGEST - _DIGEST - 1]}_{digest.hexdigest()[:_DIGEST]}"
        number += 1
    return candidate
