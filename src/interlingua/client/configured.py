"""The adapters of a client, as routing sees them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, TypeAlias

from interlingua.client.registry import Registry
from interlingua.providers.provider import Provider
from interlingua.providers.rows import OTHERS, row_name
from interlingua.spec.behaviour import Behaviour

BehaviourOf: TypeAlias = Callable[[str], Behaviour | None]
"""The behaviour at the adapter with this key."""


class Configured(NamedTuple):
    """What a client has, and what its caller has chosen."""

    adapters: Mapping[str, Any]
    """The adapters by key."""
    registry: Registry
    """The models of the registry file."""
    chosen: str | None = None
    """The adapter that the caller chose for all models."""
    behaviour_of: BehaviourOf = lambda _: None
    removed: Collection[str] = ()
    """The keys of the adapters that were unregistered."""
    lost_default: str | None = None
    """The chosen adapter, if it was unregistered and no other was chosen since."""
    only_named: Collection[str] = ()
    """The keys of adapters that were added because they were named, and serve nothing else."""
    had_several: bool = False
    """Whether the client ever had several remote adapters, of which none is the only one."""
    environ: Mapping[str, str] | None = None
    """The variables that the client was made from, if it was."""

    @property
    def remote(self) -> list[str]:
        """The keys of the adapters that take models without a prefix."""
        return [
            key
            for key, adapter in self.adapters.items()
            if is_remote(adapter) and key not in self.only_named
        ]

    @property
    def only_remote(self) -> str | None:
        """The key of the only adapter that takes models without a prefix, if there is one."""
        remote = self.remote
        return remote[0] if len(remote) == 1 and not self.had_several else None

    def row(self, key: str) -> Provider | None:
        """The row of an adapter."""
        return row_of(self.adapters.get(key))

    def names(self, key: str) -> set[str]:
        """The names of an adapter: its key, and that of its row."""
        row = self.row(key)
        return {key} if row is None else {key, row.name}

    def is_at_vendor(self, key: str) -> bool:
        """Whether it calls the vendor's own address, where a name has the vendor's meaning."""
        row = self.row(key)
        if row is None or row.is_local or not row.base_url:
            return False
        return bool(getattr(self.adapters[key], "base_url", None) == row.base_url)

    def is_removed(self, name: str) -> bool:
        """Whether the adapter of this name was unregistered."""
        return find_adapter(name, self.adapters) is None and (
            name in self.removed or row_name(name) in self.removed
        )

    def knows(self, name: str) -> bool:
        """Whether this is the name of a provider: of the client, of a row, or a well-known one."""
        return (
            name in self.adapters
            or name in self.removed
            or row_name(name) is not None
            or name.lower() in OTHERS
        )


def find_adapter(name: str, adapters: Mapping[str, Any]) -> str | None:
    """The key of the adapter with this name, or with the row of this alias."""
    if name in adapters:
        return name
    row = row_name(name)
    return row if row in adapters else None


def adapter_for(adapter: Any, model: str) -> Any:
    """The adapter that calls a model: one of ours may have branches."""
    return adapter.for_model(model) if getattr(adapter, "has_branches", False) else adapter


def row_of(adapter: Any) -> Provider | None:
    """The row of an adapter."""
    row = getattr(adapter, "provider", None)  # a custom adapter has none, or something else
    return row if isinstance(row, Provider) else None


def is_remote(adapter: Any) -> bool:
    """Whether it is not a server on the user's machine, which is used only if it is named."""
    row = row_of(adapter)
    return row is None or not row.is_local
