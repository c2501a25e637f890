"""Which names of a source are ids of requests at which of our rows."""

from __future__ import annotations

import re

_SERVED = {
    # A maker, or a region and a maker, and then the model.
    "bedrock": re.compile(r"(?:[a-z-]+\.)?[a-z0-9]+\.[a-z][^/]*"),
    # The row has the models of Anthropic alone.
    "bedrock_invoke": re.compile(r"(?:[a-z-]+\.)?anthropic\.claude-[^/]+"),
    "cloudflare": re.compile("@.+"),
    # What has a slash is of another API, which answers with models of others.
    "perplexity": re.compile("[^/]+"),
    # The row has the models of Google alone, and only the functions of generating content.
    "vertex": re.compile(
        "(?:gemini|imagen|veo|gemma|text-embedding|text-multilingual-embedding)-[^/]+"
    ),
    "vertex_anthropic": re.compile("claude-[^/]+"),
}
_DEFAULT = "@default"
"""Vertex: the version that is served without one."""


def request_id(row: str, name: str) -> str | None:
    """The id in requests to a row; None if the row does not serve it."""
    served = _SERVED.get(row)
    if served is not None and served.fullmatch(name) is None:
        return None
    return name.removesuffix(_DEFAULT)
