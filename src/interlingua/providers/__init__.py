"""Providers, and the profiles of their models."""

from interlingua.providers.catalog.profiles import profile_for

__all__ = ["profile_for"]
