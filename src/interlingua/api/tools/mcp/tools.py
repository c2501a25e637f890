"""`mcp_tools`: the tools of MCP servers, for any model."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TextIO, TypeAlias

import msgspec

from interlingua.api.tools.mcp.content import decode_result
from interlingua.api.tools.mcp.servers import MCPServer
from interlingua.api.tools.mcp.session import Session
from interlingua.api.tools.tool import Tool, ToolAnnotations
from interlingua.spec.content import Json, Text, ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.response import Warning
from interlingua.spec.warnings import make_warning
from interlingua.wire.secrets import Redactor

logger: logging.Logger = logging.getLogger("interlingua")


class MCPTools(list[Tool]):
    """The tools, with warnings about those that were left out."""

    def __init__(self, tools: Iterable[Tool] = (), warnings: Iterable[Warning] = ()) -> None:
        super().__init__(tools)
        self.warnings: tuple[Warning, ...] = tuple(warnings)


@asynccontextmanager
async def mcp_tools(
    server: MCPServer | Mapping[str, MCPServer],
    *,
    prefix: str = "",
    only: Collection[str] | None = None,
    connect_timeout: float | None = 30.0,
    timeout: float | None = 60.0,  # noqa: ASYNC109 -- of each call, not of this function
    errlog: TextIO | None = None,
) -> AsyncIterator[MCPTools]:
    """
    Connect to an MCP server, or to several by name, and provide their tools.

        async with mcp_tools(MCPStdioServer(command="uvx", args=["mcp-server-git"])) as tools:
            result = await generate(model, prompt, tools=tools)

    Leaving the block always ends the sessions, and the processes of stdio servers. Several
    servers are connected concurrently; if one connection fails, all are closed.

    A tool is named `<prefix>_<name>`, or with several servers `<prefix>_<server>_<name>`. A name
    that providers would reject, or that two tools would share, ends in a digest that is the same in
    every run. `only` selects tools by the names that the servers use. The tools are listed once:
    later changes are ignored, and a call of a tool that no longer exists is an error for the model.
    A tool with an unusable schema is left out, with a log line and an item in `tools.warnings`; if
    `only` selects it, it is a `ConfigurationError`.

    Trust the `annotations` of a tool only as far as its server. An error of a tool is a result with
    `is_error`. A server that does not answer within `timeout` seconds, or whose connection is lost,
    raises a typed error, which `generate` and the other functions pass to the model. The next call
    reconnects to a server that has a URL. A stdio server that has exited is not restarted: its
    tools fail until the block is entered again.

    The stderr of stdio servers goes to `errlog`, by default to the stderr of this process.
    """
    servers = server if isinstance(server, Mapping) else {"": server}
    sessions = {
        _join(prefix, name): Session(
            each, connect_timeout=connect_timeout, timeout=timeout, errlog=errlog
        )
        for name, each in servers.items()
    }
    try:
        listed = _select(await _open(sessions), only)
        yield _make_tools(sessions, listed, is_strict=only is not None)
    finally:
        await asyncio.gather(*(session.close() for session in sessions.values()))


def _join(*words: str) -> str:
    return "_".join(word for word in words if word)


async def _open(sessions: Mapping[str, Session]) -> dict[tuple[str, str], Json]:
    """The wire form of each tool, by prefix and name."""
    listings = await asyncio.gather(
        *(session.open() for session in sessions.values()), return_exceptions=True
    )
    listed: dict[tuple[str, str], Json] = {}
    for prefix, listing in zip(sessions, listings, strict=True):
        if isinstance(listing, BaseException):
            raise listing
        for tool in listing:
            listed.setdefault((prefix, tool["name"]), tool)
    return listed


def _select(
    listed: dict[tuple[str, str], Json], only: Collection[str] | None
) -> dict[tuple[str, str], Json]:
    if only is None:
        return listed
    selected = {source: tool for source, tool in listed.items() if source[1] in only}
    missing = set(only) - {name for _, name in selected}
    if missing:
        raise ConfigurationError(f"no MCP server has the tools {', '.join(sorted(missing))}")
    return selected


def _make_tools(
    sessions: Mapping[str, Session], listed: Mapping[tuple[str, str], Json], *, is_strict: bool
) -> MCPTools:
    names = safe_names(listed)
    tools: list[Tool] = []
    warnings: list[Warning] = []
    for source, wire in listed.items():
        session = sessions[source[0]]
        try:
            tool = _make_tool(session, wire, names[source])
            tool.validator()  # compiles the schema, so that an error in it shows now
        except ConfigurationError as error:
            if is_strict:
                raise
            warnings.append(_warn_left_out(session.name, wire["name"], error))
        else:
            tools.append(tool)
    return MCPTools(tools, warnings)


def _warn_left_out(server: str, tool: str, error: ConfigurationError) -> Warning:
    warning = make_warning("tool_left_out", tool=tool, server=server, reason=error.message)
    fields = {"adapter": server, "tool": tool, "reason": warning.code}
    logger.warning("%s: %s", warning.code, warning.message, extra=fields)
    return warning


def _make_tool(session: Session, wire: Mapping[str, Any], name: str) -> Tool:
    async def execute(arguments: dict[str, Any], /) -> ToolResult:
        result = decode_result(await session.call(wire["name"], arguments), name)
        if not result.is_error:
            return result
        # An error message may quote a wrong key.
        return msgspec.structs.replace(result, content=_redact(result.content, session.redactor))

    hints = wire.get("annotations") or {}
    return Tool(
        name=name,
        description=wire.get("description") or wire.get("title") or hints.get("title"),
        parameters=wire["inputSchema"],
        execute=execute,
        annotations=ToolAnnotations(
            read_only=hints.get("readOnlyHint"),
            destructive=hints.get("destructiveHint"),
            idempotent=hints.get("idempotentHint"),
            open_world=hints.get("openWorldHint"),
        ),
    )


def _redact(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str):
        return redactor.redact_message(value)
    if isinstance(value, Text):
        return msgspec.structs.replace(value, text=redactor.redact_message(value.text))
    if isinstance(value, (list, tuple)):
        return type(value)(_redact(item, redactor) for item in value)
    if isinstance(value, dict):
        return {key: _redact(item, redactor) for key, item in value.items()}
    return value


# Names of MCP tools -> names that every provider accepts.


Source: TypeAlias = tuple[str, str]
"""The prefix of a server (empty for none) and the server's name for a tool."""

_VALID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]+")
_DIGEST_LENGTH = 8
_MAX_LENGTH = 64


def safe_names(sources: Iterable[Source]) -> dict[Source, str]:
    """
    A unique, valid name for each tool.

    A name that is valid and unique is used as it is. Any other is cleaned and ends in a digest of
    the prefix and the original name, so that it does not depend on the other tools.
    """
    originals = {source: _full_name(source) for source in sources}
    counts = Counter(originals.values())
    unchanged = {name for name, count in counts.items() if count == 1 and _VALID.fullmatch(name)}
    names = {source: name for source, name in originals.items() if name in unchanged}
    taken = set(unchanged)
    for source in sorted(originals.keys() - names.keys()):
        names[source] = _name_with_digest(source, taken)
        taken.add(names[source])
    return {source: names[source] for source in originals}


def _full_name(source: Source) -> str:
    prefix, name = source
    return f"{prefix}_{name}" if prefix else name


def _name_with_digest(source: Source, taken: set[str]) -> str:
    stem = _INVALID_CHARACTERS.sub("_", _full_name(source))
    if not stem[:1].isalpha():
        stem = f"t{stem}" if stem[:1] in ("_", "-") else f"t_{stem}"
    stem = stem[: _MAX_LENGTH - _DIGEST_LENGTH - 1].rstrip("_-")
    seed = "\0".join(source)
    while True:
        digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
        name = f"{stem}_{digest}"
        if name not in taken:
            return name
        seed += "\0"  # another tool has exactly this name
