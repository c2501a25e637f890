"""What a gateway is made of; each process makes its own gateway from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from interlingua.client.config import read_text
from interlingua.gateway.config import FILES, Gateway, gateway_from_env, gateway_from_file
from interlingua.gateway.keys import Key
from interlingua.gateway.stores import Stores
from interlingua.serving.client_application import Caller


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """
    The content of the file and of the environment.

    A worker gets it as JSON, so that all workers serve the same, also if the file is changed
    before one of them is replaced.
    """

    secret: bytes
    """What authenticates the state that travels through clients."""
    environ: Mapping[str, str]
    """The variables with the keys of the providers."""
    path: str | None = None
    """The registry file; None: every provider of the environment is served."""
    folder: str | None = None
    """Where a gateway without a file has the files of callers; None for in the process."""
    text: str | None = None
    """What the file contains."""
    hash: str | None = None
    """The hash of the key for a file without keys."""
    workers: int = 1
    """How many processes serve it."""

    def __repr__(self) -> str:
        return f"Source({self.path!r})"  # the rest is secret

    def stores(self) -> Stores:
        """The stores of the gateway; files are beside the registry file."""
        folder = Path(self.folder or ".")
        if self.path is not None:
            folder = Path(self.path).expanduser().parent
        return Stores(folder, is_shared=self.workers > 1)

    def read(self, stores: Stores | None = None) -> Gateway:
        """The gateway; `ConfigurationError` with the line if something in the file is wrong."""
        stores = self.stores() if stores is None else stores
        if self.path is None:
            gateway = gateway_from_env(self.environ)
            if self.folder is not None:
                gateway = gateway._replace(store=stores.open(FILES))
        else:
            gateway = gateway_from_file(self.path, self.environ, text=self.text, stores=stores)
        if not gateway.keys and self.hash is not None:
            gateway = gateway._replace(keys=(Key(self.hash, Caller("local")),))
        return gateway

    def renew(self, environ: Mapping[str, str]) -> Source:
        """The same file as it is now."""
        text = None if self.path is None else read_text(Path(self.path).expanduser())
        return msgspec.structs.replace(self, environ=dict(environ), text=text)
