"""The name of a model in the path of a URL."""

from __future__ import annotations

from urllib.parse import quote

from interlingua.spec.errors import ConfigurationError

# The characters that HTTP libraries leave as they are in a path. A signature covers the path, so
# it must be sent as it was signed.
_SAFE = ":@!$&'()*,;="


def quote_model(model: str) -> str:
    """The name of a model as one segment of a path; `ConfigurationError` if it cannot be one."""
    if model.partition(";")[0] in ("", ".", ".."):  # a server may drop `;` and what follows it
        raise ConfigurationError(f"{model!r} cannot be the name of a model in a URL.")
    return quote(model, safe=_SAFE, errors="replace")
