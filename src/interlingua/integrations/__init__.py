"""
What other libraries need to use the models of a `Client`.

Import from its modules: `sdk` has HTTP clients for the vendors' own SDKs, in the same process.
"""

__all__ = ["sdk"]
