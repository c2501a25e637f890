"""The version of this library, as in `pyproject.toml`."""

__version__ = "0.1.0"

USER_AGENT = f"interlingua/{__version__}"
"""What our HTTP requests say they come from."""
