"""A model on this machine: llama.cpp's own server on loopback, and a small model for it."""

from interlingua.local.model import SMOLLM2, find_model
from interlingua.local.server import LocalServer, local_server

__all__ = ["SMOLLM2", "LocalServer", "find_model", "local_server"]
