"""The tables of docs/providers.md, from the rows of providers."""

from __future__ import annotations

from pathlib import Path

from docs_build import pages
from interlingua.providers.catalog.profiles import profile_for
from interlingua.providers.provider import Provider
from interlingua.providers.row_tables import clouds, hosts, makers, servers
from interlingua.providers.row_tables.builders import RECORDED

PAGE = pages.DOCS / "providers.md"
KINDS = {
    "makers": makers.ROWS,
    "hosts": hosts.ROWS,
    "clouds": clouds.ROWS,
    "gateways": hosts.GATEWAYS,
    "servers": servers.ROWS,
}
DIALECTS = {
    "openai_responses": "Responses",
    "openai_chat": "Chat",
    "anthropic_messages": "Messages",
    "gemini_generate": "Gemini",
    "bedrock_converse": "Converse",
}
VENDOR_CLIENTS = {
    *("openai", "anthropic", "gemini", "azure"),
    *("bedrock", "bedrock_invoke", "vertex", "vertex_anthropic"),
}
"""Rows whose vendor's own client uses the simulator in the tests, as we do."""
REAL_SERVERS = {"local", "llamacpp"}
"""Rows whose real server runs in the tests."""
GROUPS = {
    "list_models": "models",
    "count_tokens": "count tokens",
    "embed": "embeddings",
    "generate_image": "images",
    "transcribe": "transcription",
    "speak": "speech",
    "create_video": "video",
    "rerank": "rerank",
    "moderate": "moderation",
    "upload_file": "files",
    "submit_batch": "batches",
}
"""The operation that stands for each group of operations."""


def texts() -> dict[Path, str]:
    """The page with its tables."""
    return {PAGE: pages.fill(PAGE, table)}


def table(kind: str) -> str:
    """The table of one kind of providers."""
    lines = [_line(row) for row in sorted(KINDS[kind], key=lambda row: row.name)]
    head = "| provider | dialects | operations | variables | address | tested | facts from |"
    return "\n".join((head, "|---|---|---|---|---|---|---|", *lines))


def _line(row: Provider) -> str:
    cells = (
        _name(row),
        ", ".join(_dialects(row)),
        _operations(row),
        _variables(row),
        _address(row),
        _tested(row),
        ", ".join(row.sources),
    )
    return f"| {' | '.join(cells)} |"


def _name(row: Provider) -> str:
    aliases = ", ".join(f"`{alias}`" for alias in row.aliases)
    return f"`{row.name}`" + (f" ({aliases})" if aliases else "")


def _dialects(row: Provider) -> list[str]:
    if profile_for(row.dialect, "", row.name).kind not in (None, "chat"):
        return ["none: no chat"]
    return [DIALECTS[name] for name in (row.dialect, *row.other_dialects)]


def _operations(row: Provider) -> str:
    if row.operations is None:
        return "not listed"
    return ", ".join(word for name, word in GROUPS.items() if name in row.operations) or "none"


def _variables(row: Provider) -> str:
    groups = [(*row.key_env, *row.token_env), *row.url_env.values(), row.version_env]
    groups += [(name,) for name in row.headers_env.values()]
    if not row.url_env:
        groups.append(row.base_url_env)
    if row.identity == "aws":
        groups.insert(0, ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"))
    if row.identity == "google":
        groups.insert(0, ("GOOGLE_APPLICATION_CREDENTIALS",))
    return ", ".join(r" \| ".join(f"`{name}`" for name in names) for names in groups if names)


def _address(row: Provider) -> str:
    if row.is_embedded:
        return "started by the library"
    return (
        f"`{row.base_url}`"
        if row.base_url
        else "yours" + (f", with `{row.base_path}`" if row.base_path else "")
    )


def _tested(row: Provider) -> str:
    ways = ["simulator"]
    if RECORDED in row.sources:
        ways.append("recordings")
    if row.name in VENDOR_CLIENTS:
        ways.append("vendor's client")
    if row.name in REAL_SERVERS:
        ways.append("real server")
    return ", ".join(ways)
