#!/usr/bin/env python
"""
Write the tables of providers in the docs: from the rows, and from the recordings.

    scripts/provider_tables.py           writes docs/providers.md, and docs/provider-quirks.md if
                                         there are recordings at hand
    scripts/provider_tables.py --check   writes nothing; the exit status is 1 if a page is stale
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / part) for part in ("src", "scripts", "tests")]

import generated_pages  # noqa: E402

from interlingua.providers.catalog.profiles import profile_for  # noqa: E402
from interlingua.providers.provider import Provider  # noqa: E402
from interlingua.providers.row_tables import clouds, gateways, hosts, makers, servers  # noqa: E402
from interlingua.providers.row_tables.builders import RECORDED  # noqa: E402

PROVIDERS = ROOT / "docs" / "providers.md"
QUIRKS = ROOT / "docs" / "provider-quirks.md"

KINDS = {
    "Makers of models": makers.ROWS,
    "Hosts": hosts.ROWS,
    "Clouds": clouds.ROWS,
    "Gateways": gateways.ROWS,
    "Servers that you run": servers.ROWS,
}
DIALECTS = {
    "openai_responses": "Responses",
    "openai_chat": "Chat",
    "anthropic_messages": "Messages",
    "gemini_generate": "Gemini",
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

_HEAD = """# Providers

<!-- Written by scripts/provider_tables.py from the rows. -->

All providers with their dialects, operations, variables and addresses. Each is a row of data:
`HttpAdapter("groq")`, or `groq:model` in any function. The name in the first column comes before
the colon; other names for it are in brackets. *Dialects*: the first one is the default, `dialect=`
chooses another. *Variables*: the key first, then those of the address; `|` separates names of
which the first that is set is used. *Operations*: what it has besides chat; "not listed" means
that each operation of its dialect is tried. The clouds are explained in
[Azure, Bedrock, Vertex](howto/clouds.md).

*Tested*: every row is used over HTTP against the simulator, whole and streamed, with a tool call,
its key and its path. Further: **recordings** of the service are decoded with the profile of the
row ([Quirks of Chat Completions hosts](provider-quirks.md)); the **vendor's client** uses the
simulator and sends the same; the **real server** runs in the tests. Rows with neither are written
from the vendor's documentation alone; "unverified" facts have one source.
"""


def providers_text() -> str:
    """The page of all rows."""
    parts = [_HEAD]
    for title, rows in KINDS.items():
        lines = [_line(row) for row in sorted(rows, key=lambda row: row.name)]
        head = "| provider | dialects | operations | variables | address | tested | facts from |"
        parts.append("\n".join((f"## {title}\n", head, "|---|---|---|---|---|---|---|", *lines)))
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


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
    if profile_for(row.dialect, "", row.name).kind != "chat":
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


_QUIRKS_HEAD = """# Quirks of Chat Completions hosts

<!-- Written by scripts/provider_tables.py from the recordings. -->

How often recordings of each host show a quirk. `tests/laws/test_hosts.py` decodes every recording
with the profile of the host's row, compares the text, the calls, the reasoning, the usage and the
finish reason with a plain reading of the JSON, and encodes it again. What a profile says about a
host is in `src/interlingua/providers/catalog/profiles.json`.
"""


def quirks_text() -> str:
    """The page of quirks; it needs the recordings."""
    from support.hosts import quirk_table

    counts, totals = quirk_table()
    lines = [
        f"| {quirk} | {', '.join(f'{row} {count}' for row, count in _sorted(counts[quirk]))} |"
        for quirk in sorted(counts, key=lambda quirk: quirk.replace("`", "").lower())
    ]
    recorded = ", ".join(f"{row} {count}" for row, count in _sorted(totals))
    table = "\n".join(("| quirk | host and number of recordings |", "|---|---|", *lines))
    return f"{_QUIRKS_HEAD}\n{table}\n\nRecordings of each host: {recorded}.\n"


def _sorted(counts: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def pages() -> dict[Path, str]:
    """The text of each page that can be written here."""
    from support import corpus

    texts = {PROVIDERS: providers_text()}
    if corpus.is_here():
        texts[QUIRKS] = quirks_text()
    return texts


def main() -> int:
    """Write the pages, or compare them."""
    return generated_pages.write(pages())


if __name__ == "__main__":
    sys.exit(main())
