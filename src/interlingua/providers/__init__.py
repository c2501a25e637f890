"""Who serves a dialect, and what their models take."""

from interlingua.providers.catalog.profiles import profile_for

__all__ = ["profile_for"]
