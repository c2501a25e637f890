"""Compression with Brotli and zstd, for replies that a transport unpacks."""

import sys
from importlib import import_module

import brotli

zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
"""The module of Python 3.14, or its backport."""
PACK = {"br": brotli.compress, "zstd": zstd.compress}
"""By the name of the coding."""
