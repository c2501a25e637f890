"""`HttpAdapter`, and the three parts that it is made of: configuration, generation, operations."""

from interlingua.providers.adapter.http_adapter import HttpAdapter

__all__ = ["HttpAdapter"]
