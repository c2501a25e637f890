"""A model on this machine: a llama.cpp server on loopback, and a small default model."""

from interlingua.local.model import SMOLLM2, find_model
from interlingua.local.server import LocalServer, local_server, server_for

__all__ = ["SMOLLM2", "LocalServer", "find_model", "local_server", "server_for"]
