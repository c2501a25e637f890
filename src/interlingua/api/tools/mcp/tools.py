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
from urllib.parse import unquote, urlsplit

import msgspec

from interlingua.api.tools.mcp.servers import MCPServer, check_server
from interlingua.api.tools.mcp.session import MOST_LISTED, Session
from interlingua.api.tools.tool import TOOL_NAME, Tool, ToolAnnotations
from interlingua.runtime.cancel import running_loop
from interlingua.spec.check import refuse
from interlingua.spec.content import (
    Audio,
    Document,
    Extra,
    Image,
    Part,
    Text,
    ToolResult,
    UncheckedJson,
)
from interlingua.spec.errors import ConfigurationError, DecodeError
from interlingua.spec.response import Warning
from interlingua.spec.warnings import make_warning
from interlingua.wire.json_text import dump_text, loads
from interlingua.wire.media import decode_base64, media_type_for, sniff
from interlingua.wire.secrets import Redactor

Source: TypeAlias = tuple[str, str]
"""The prefix of a server (empty for none) and the server's name for a tool."""

_LOG = logging.getLogger("interlingua")
MAX_TOOLS = 256
"""Tools of one server by default: a model gets the description of each with every request."""


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
    max_tools: int = MAX_TOOLS,
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
    `only` selects it, it is a `ConfigurationError`. Of a server with more than `max_tools` tools,
    the first ones are provided, with a log line and a warning, too; `only` selects among the first
    10,000.

    Trust the `annotations` of a tool only as far as its server. An error of a tool is a result with
    `is_error`. A server that does not answer within `timeout` seconds, or whose connection is lost,
    raises a typed error, which `generate` and the other functions pass to the model. The next call
    reconnects to a server that has a URL. A stdio server that has exited is not restarted: its
    tools fail until the block is entered again.

    The stderr of stdio servers goes to `errlog`, by default to the stderr of this process, which
    gets a limited amount in a minute.
    """
    running_loop()
    if type(max_tools) is not int or max_tools < 1:
        refuse("max_tools", "a positive integer", max_tools)
    servers = server if isinstance(server, Mapping) else {"": server}
    for each in servers.values():
        check_server(each)
    sessions = {
        "_".join(filter(None, (prefix, name))): Session(
            each,
            connect_timeout=connect_timeout,
            timeout=timeout,
            max_tools=max_tools if only is None else MOST_LISTED,
            errlog=errlog,
        )
        for name, each in servers.items()
    }
    try:
        listed, warnings = _limit(_select(await _open(sessions), only), sessions, max_tools)
        tools = _make_tools(sessions, listed, is_strict=only is not None)
        tools.warnings = (*warnings, *tools.warnings)
        yield tools
    finally:
        await asyncio.gather(*(session.close() for session in sessions.values()))


async def _open(sessions: Mapping[str, Session]) -> dict[Source, UncheckedJson]:
    """The wire form of each tool, by prefix and name."""
    listings = await asyncio.gather(
        *(session.open() for session in sessions.values()), return_exceptions=True
    )
    listed: dict[Source, UncheckedJson] = {}
    for prefix, listing in zip(sessions, listings, strict=True):
        if isinstance(listing, BaseException):
            raise listing
        for tool in listing:
            listed.setdefault((prefix, tool["name"]), tool)
    return listed


def _select(
    listed: dict[Source, UncheckedJson], only: Collection[str] | None
) -> dict[Source, UncheckedJson]:
    if only is None:
        return listed
    selected = {source: tool for source, tool in listed.items() if source[1] in only}
    missing = set(only) - {name for _, name in selected}
    if missing:
        raise ConfigurationError(f"No MCP server has the tools {', '.join(sorted(missing))}.")
    return selected


def _limit(
    listed: dict[Source, UncheckedJson], sessions: Mapping[str, Session], most: int
) -> tuple[dict[Source, UncheckedJson], list[Warning]]:
    """The first tools of each server, and a warning for each server that has more."""
    counts: dict[str, int] = {}
    limited: dict[Source, UncheckedJson] = {}
    for source, tool in listed.items():
        counts[source[0]] = counts.get(source[0], 0) + 1
        if counts[source[0]] <= most:
            limited[source] = tool
    names = [sessions[prefix].name for prefix, count in counts.items() if count > most]
    return limited, [_warn("tools_limited", name, count=most) for name in names]


def _make_tools(
    sessions: Mapping[str, Session], listed: Mapping[Source, UncheckedJson], *, is_strict: bool
) -> MCPTools:
    names = safe_names(listed)
    tools: list[Tool] = []
    warnings: list[Warning] = []
    for source, wire in listed.items():
        session = sessions[source[0]]
        try:
            tool = _make_tool(session, wire, names[source])
            _ = tool.validator  # compiles the schema, so that an error in it shows now
        except ConfigurationError as error:
            if is_strict:
                raise
            name = wire["name"]
            warnings.append(_warn("tool_left_out", session.name, tool=name, reason=error.message))
        else:
            tools.append(tool)
    return MCPTools(tools, warnings)


def _warn(code: str, server: str, **fields: object) -> Warning:
    warning = make_warning(code, None, server=server, **fields)
    extra = {"adapter": server, "reason": code}
    if "tool" in fields:
        extra["tool"] = str(fields["tool"])
    _LOG.warning("%s: %s", code, warning.message, extra=extra)
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


def _redact(value: object, redactor: Redactor) -> Any:
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


_INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]+")
_DIGEST_LENGTH = 8
_MAX_LENGTH = 64


def safe_names(sources: Iterable[Source]) -> dict[Source, str]:
    """
    A unique, valid name for each tool.

    A name that is valid and unique is used as it is. Any other is cleaned and ends in a digest of
    the prefix and the original name, so that it does not depend on the other tools.
    """
    originals = {source: _full_name(*source) for source in sources}
    counts = Counter(originals.values())
    unchanged = {name for name, count in counts.items() if count == 1 and TOOL_NAME.fullmatch(name)}
    names = {source: name for source, name in originals.items() if name in unchanged}
    taken = set(unchanged)
    for source in sorted(originals.keys() - names.keys()):
        names[source] = _name_with_digest(source, taken)
        taken.add(names[source])
    return {source: names[source] for source in originals}


def _full_name(prefix: str, name: str) -> str:
    return f"{prefix}_{name}" if prefix else name


def _name_with_digest(source: Source, taken: set[str]) -> str:
    stem = _INVALID_CHARACTERS.sub("_", _full_name(*source))
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


# Results of MCP tools as tool results.

_KEY = "mcp"
"""The key in `extra` for the fields of a block beside its content, such as URI and annotations."""


def decode_result(result: Mapping[str, Any], name: str) -> ToolResult:
    """
    Decode the result of a tool to text, JSON or parts; `isError` becomes `is_error`.

    Structured content becomes JSON, and text that only repeats it is dropped. Servers wrap a
    value that is not an object as `{"result": …}`; it is unwrapped if the text repeats the value.
    """
    parts = tuple(_decode_block(block) for block in result.get("content") or ())
    content = _combine(parts, result.get("structuredContent"))
    is_error = bool(result.get("isError"))
    if is_error and content in ((), ""):
        content = "the tool failed without an error message"
    return ToolResult(tool_call_id="", name=name, content=content, is_error=is_error)


def _combine(
    parts: tuple[Part, ...], structured: UncheckedJson
) -> UncheckedJson | tuple[Part, ...]:
    texts = [part.text for part in parts if isinstance(part, Text) and not part.extra]
    is_text = len(texts) == len(parts)
    if structured is None:
        return texts[0] if is_text and len(texts) == 1 else parts
    if not parts:
        return structured
    if _repeats(texts, structured):
        return structured if is_text else parts
    match structured:
        case {"result": value} if len(structured) == 1 and _repeats(texts, value):
            return value if is_text else parts
    return (*parts, Text(text=dump_text(structured)))


def _repeats(texts: list[str], value: UncheckedJson) -> bool:
    if len(texts) == 1 and (texts[0] == value or _parse(texts[0]) == value):
        return True
    # Servers often send one text block for each item of a list.
    return isinstance(value, list) and len(texts) == len(value) and [*map(_parse, texts)] == value


def _parse(text: str) -> UncheckedJson:
    try:
        return loads(text)
    except DecodeError:
        return text


def _decode_block(block: UncheckedJson) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return Text(text=text, extra=_extra(block, "text"))
        case {"type": "image", "data": str(base64)}:
            return _decode_media(block, block, base64, "image/")
        case {"type": "audio", "data": str(base64)}:
            return _decode_media(block, block, base64, "audio/")
        case {"type": "resource", "resource": {"text": str(text)}}:
            # Not a document: most providers accept few document types, but all accept text.
            return Text(text=text, extra=_extra(block, "text"))
        case {"type": "resource", "resource": {"blob": str(base64)}}:
            return _decode_media(block, block["resource"], base64, "")
        case {"type": "resource_link", "uri": str()}:
            return Text(text=_describe_link(block), extra={_KEY: block})
        case _:
            return Text(text=dump_text(block), extra={_KEY: block})


def _decode_media(
    block: UncheckedJson, fields: Mapping[str, Any], base64: str, family: str
) -> Part:
    """`family` is the media type that the block implies: `image/`, `audio/`, or any if empty."""
    declared = fields.get("mimeType")
    data = decode_base64(base64)
    if data is None:
        return Text(text=f"[{declared or 'data'}: invalid base64]", extra={_KEY: block})
    file_name = _file_name(fields.get("uri"))
    media_type = _media_type(data, declared, file_name, family)
    extra = _extra(block, "data", "blob")
    family = family or f"{(media_type or '').partition('/')[0]}/"
    if family == "image/":
        return Image(data=data, media_type=media_type, extra=extra)
    if family == "audio/":
        return Audio(data=data, media_type=media_type, extra=extra)
    return Document(data=data, media_type=media_type, file_name=file_name, extra=extra)


def _media_type(
    data: bytes, declared: str | None, file_name: str | None, family: str
) -> str | None:
    # The bytes win over the declared type: providers reject an image whose type is wrong.
    sniffed = sniff(data)
    if sniffed is not None and sniffed.startswith(family or ("image/", "audio/")):
        return sniffed
    if declared and declared != "application/octet-stream":
        return declared
    return media_type_for(data, file_name, declared)


def _extra(block: Mapping[str, object], *content: str) -> Extra:
    """The fields of the block except its content, as `extra`; empty if there are none."""
    decoded = {"type", "mimeType", *content}
    fields = {key: value for key, value in block.items() if key not in decoded}
    resource = fields.get("resource")
    if isinstance(resource, dict):
        fields["resource"] = {key: value for key, value in resource.items() if key not in content}
    return {_KEY: fields} if fields else {}


def _describe_link(block: Mapping[str, object]) -> str:
    title = block.get("title") or block.get("name") or "resource"
    details = [str(block[key]) for key in ("mimeType", "description") if block.get(key)]
    return f"[{title}]({block['uri']})" + (f": {', '.join(details)}" if details else "")


def _file_name(uri: object) -> str | None:
    if not isinstance(uri, str):
        return None
    try:
        path = urlsplit(uri).path
    except ValueError:
        return None
    return unquote(path).rpartition("/")[2] or None
