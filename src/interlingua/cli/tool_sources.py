"""The tools that `-T` and `--mcp` name: of Python files, of plugins and of MCP servers."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from interlingua.cli import collect_as_usual
from interlingua.cli.output import BadInput

if TYPE_CHECKING:
    from interlingua import Tool
    from interlingua.mcp import MCPHttpServer, MCPStdioServer

_MCP = "--mcp"


def read_tools(
    names: Sequence[str], servers: Sequence[str] = (), *, approve: bool = False
) -> list[Tool]:
    """
    The tools of Python files, of plugins, and of MCP servers, which are left when the command ends.

    Every tool needs approval, unless the user has approved all of them.
    """
    from msgspec.structs import replace

    found = [each for name in names for each in _tools_of(name)]
    found += [each for name in servers for each in _served(name)]
    return [replace(each, needs_approval=not approve) for each in found]


def _tools_of(name: str) -> list[Tool]:
    """The tools of a file, or of the plugin with this name."""
    if name.endswith(".py") or "/" in name or Path(name).exists():
        return tools_in(_load(Path(name)), name)
    from interlingua.cli.plugins import find_plugin
    from interlingua.runtime.installed import TOOLS

    plugin = find_plugin(TOOLS, name)
    if plugin is None:
        text = f"there is no file {name} and no tool {name} of a plugin"
        raise click.BadParameter(text, param_hint="-T")
    return tools_in(plugin.load(), name)


def tools_in(value: Any, name: str) -> list[Tool]:
    """The tools that a module, a function, a `Tool` or a list of them has."""
    from interlingua import Tool, tool

    if isinstance(value, ModuleType):
        value = [
            each
            for key, each in vars(value).items()
            if not key.startswith("_")
            and (isinstance(each, Tool) or _is_own_function(each, value.__name__))
        ]
    items = value if isinstance(value, list | tuple) else [value]
    found: list[Tool] = []
    for each in items:
        if not isinstance(each, Tool) and not inspect.isfunction(each):
            raise BadInput(f"-T: {name} has a {type(each).__name__}, which is not a tool")
        found.append(each if isinstance(each, Tool) else tool(each))
    if not found:
        raise click.BadParameter(f"{name} has no public function and no Tool", param_hint="-T")
    return found


def _is_own_function(value: Any, module: str) -> bool:
    return inspect.isfunction(value) and value.__module__ == module


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise click.BadParameter(f"there is no file {path}", param_hint="-T")
    spec = importlib.util.spec_from_file_location(f"interlingua_tools_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise click.BadParameter(f"{path} is not a Python file (.py)", param_hint="-T")
    module = importlib.util.module_from_spec(spec)
    collect_as_usual()
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        text = f"{path} cannot be loaded: {type(error).__name__}: {error}"
        raise click.BadParameter(text, param_hint="-T") from error
    return module


# MCP servers.


def _served(name: str) -> Iterable[Tool]:
    """The tools of a server, which is left when the command ends."""
    from interlingua.sync import mcp_tools

    collect_as_usual()
    server = _find_server(name)
    tools: Iterable[Tool] = click.get_current_context().with_resource(mcp_tools(server))
    return tools


def _find_server(name: str) -> MCPStdioServer | MCPHttpServer | str:
    """The server of the configuration with this name, or the one at this address."""
    from interlingua.cli.configuration import read_settings
    from interlingua.cli.prompts import is_web_address

    if is_web_address(name):
        return name
    settings = read_settings()
    value = settings.mcp_servers.get(name)
    if value is None:
        known = ", ".join(settings.mcp_servers) or "none"
        raise click.BadParameter(
            f"mcp_servers of the configuration has no {name!r} (it has: {known}).",
            param_hint=_MCP,
        )
    return _read_server(value, settings.places[f"mcp_servers.{name}"])


def _read_server(value: Any, place: str) -> MCPStdioServer | MCPHttpServer:
    import msgspec

    from interlingua.errors import ConfigurationError
    from interlingua.mcp import MCPHttpServer, MCPStdioServer

    is_http = isinstance(value, Mapping) and "url" in value
    kind: Any = MCPHttpServer if is_http else MCPStdioServer
    known = kind.__struct_fields__
    if not isinstance(value, Mapping) or not {*value} <= {*known}:
        raise BadInput(f"{place}: an MCP server has the keys {', '.join(known)}")
    try:
        server: MCPStdioServer | MCPHttpServer = msgspec.convert(value, kind)
    except (msgspec.ValidationError, ConfigurationError) as error:
        raise BadInput(f"{place}: {error}") from None
    return server
