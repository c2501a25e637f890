"""The tools of MCP servers, as tools for any model."""

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

logger = logging.getLogger("interlingua")


class MCPTools(list[Tool]):
    """The tools, and what is to be said of those that are not among them."""

    def __init__(self, tools: Iterable[Tool] = (), warnings: Iterable[Warning] = ()) -> None:
        super().__init__(tools)
        self.warnings = tuple(warnings)


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
    The tools of a server, or of several by name, for as long as the block is open.

        async with mcp_tools(MCPStdioServer(command="uvx", args=["mcp-server-git"])) as tools:
            result = await generate(model, prompt, tools=tools)

    Leaving it ends the sessions, and the processes of stdio servers, whatever happened inside.
    Several servers are connected at once; if one cannot be, none is.

    A tool is called `<prefix>_<name>`; of several servers, the name of its server is (or
    follows) the prefix. A name that a provider would refuse, or that two tools want, ends in a
    digest, the same in every run. With `only`, the others, by the names their servers give
    them, are left out. The list is what the servers offer at the start: later changes are not
    followed, and a call of a tool that is gone is an error for the model. A tool whose schema
    cannot be used is left out, which is logged and in `warnings` of the list; with `only`, it is
    a `ConfigurationError`.

    What a tool says of itself (`annotations`) is as trustworthy as its server. Errors of a
    tool are results with `is_error`; a server that does not answer within `timeout` seconds,
    or is gone, is a typed error, of which `generate` and the others tell the model. The next call
    connects again to a server that is reached by its URL; a process that has ended stays so, and
    its tools fail until the block is entered again.

    What a stdio server writes to its stderr goes to `errlog`, or to ours.
    """
    servers = server if isinstance(server, Mapping) else {"": server}
    sessions = {
        _join(prefix, name): Session(
            each, connect_timeout=connect_timeout, timeout=timeout, errlog=errlog
        )
        for name, each in servers.items()
    }
    try:
        listed = _choose(await _open(sessions), only)
        yield _make_tools(sessions, listed, must_all=only is not None)
    finally:
        await asyncio.gather(*(session.close() for session in sessions.values()))


def _join(*words: str) -> str:
    return "_".join(word for word in words if word)


async def _open(sessions: Mapping[str, Session]) -> dict[tuple[str, str], Json]:
    """Each tool as it is on the wire, by prefix and name."""
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


def _choose(
    listed: dict[tuple[str, str], Json], only: Collection[str] | None
) -> dict[tuple[str, str], Json]:
    if only is None:
        return listed
    chosen = {source: tool for source, tool in listed.items() if source[1] in only}
    missing = set(only) - {name for _, name in chosen}
    if missing:
        raise ConfigurationError(f"no MCP server has the tools {', '.join(sorted(missing))}")
    return chosen


def _make_tools(
    sessions: Mapping[str, Session], listed: Mapping[tuple[str, str], Json], *, must_all: bool
) -> MCPTools:
    names = safe_names(listed)
    tools: list[Tool] = []
    warnings: list[Warning] = []
    for source, wire in listed.items():
        session = sessions[source[0]]
        try:
            tool = _make_tool(session, wire, names[source])
            tool.validator()  # what only shows when it is compiled would else fail each call
        except ConfigurationError as error:
            if must_all:
                raise
            warnings.append(_left_out(session.name, wire["name"], error))
        else:
            tools.append(tool)
    return MCPTools(tools, warnings)


def _left_out(server: str, tool: str, error: ConfigurationError) -> Warning:
    code = "tool_left_out"
    message = f"the tool {tool!r} of the MCP server {server} is left out: {error.message}"
    told = {"adapter": server, "tool": tool, "reason": code}
    logger.warning("%s: %s", code, message, extra=told)
    return Warning(code=code, message=message)


def _make_tool(session: Session, wire: Mapping[str, Any], name: str) -> Tool:
    async def execute(arguments: dict[str, Any], /) -> ToolResult:
        result = decode_result(await session.call(wire["name"], arguments), name)
        if not result.is_error:
            return result
        return msgspec.structs.replace(result, content=_scrub(result.content, session))

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


def _scrub(value: Any, session: Session) -> Any:
    """An error may quote the key that was wrong."""
    if isinstance(value, str):
        return session.scrub(value)
    if isinstance(value, Text):
        return msgspec.structs.replace(value, text=session.scrub(value.text))
    if isinstance(value, (list, tuple)):
        return type(value)(_scrub(item, session) for item in value)
    if isinstance(value, dict):
        return {key: _scrub(item, session) for key, item in value.items()}
    return value


# Names of MCP tools -> names every provider takes.


Source: TypeAlias = tuple[str, str]
"""The prefix of a server (empty for none) and the name it gives a tool."""

_VALID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_OTHERS = re.compile(r"[^A-Za-z0-9_-]+")
_DIGITS = 8
_LONGEST = 64


def safe_names(sources: Iterable[Source]) -> dict[Source, str]:
    """
    A name for each tool, no two alike.

    A name that is valid and wanted once stays as it is. Any other keeps what it can and ends in
    a digest of the tool's prefix and name, so that it is the same in every run, whatever other
    tools there are.
    """
    wanted = {source: _join_source(source) for source in sources}
    asked = Counter(wanted.values())
    plain = {name for name, times in asked.items() if times == 1 and _VALID.fullmatch(name)}
    named = {source: name for source, name in wanted.items() if name in plain}
    taken = set(plain)
    for source in sorted(wanted.keys() - named.keys()):
        named[source] = _digested(source, taken)
        taken.add(named[source])
    return {source: named[source] for source in wanted}


def _join_source(source: Source) -> str:
    prefix, name = source
    return f"{prefix}_{name}" if prefix else name


def _digested(source: Source, taken: set[str]) -> str:
    stem = _OTHERS.sub("_", _join_source(source))
    if not stem[:1].isalpha():
        stem = f"t{stem}" if stem[:1] in ("_", "-") else f"t_{stem}"
    stem = stem[: _LONGEST - _DIGITS - 1].rstrip("_-")
    seed = "\0".join(source)
    while True:
        digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
        name = f"{stem}_{digest}"
        if name not in taken:
            return name
        seed += "\0"  # somebody really calls a tool by the digest of another
