"""The client of the command line: keys from the environment, then those that `keys set` stored."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlingua.sync import Client


def environment() -> Mapping[str, str]:
    """The variables of the environment over the stored keys."""
    return os.environ


def open_client() -> Client:
    """A blocking client for every provider with a key."""
    from interlingua.sync import Client

    return Client.from_env(environment())
