"""`interlingua plugins`: what other packages add by entry points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from interlingua.cli.output import FAILED, Column, Output, with_output
from interlingua.cli.tables import GREEN, RED
from interlingua.runtime.installed import (
    COMMANDS,
    DIALECTS,
    PROVIDERS,
    TEMPLATES,
    TOOLS,
    entry_points_of,
)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_KINDS: Mapping[str, str] = {
    COMMANDS: "command",
    TOOLS: "tool",
    TEMPLATES: "template",
    PROVIDERS: "provider",
    DIALECTS: "dialect",
}
_COLUMNS = (
    Column("package", "package"),
    Column("version", "version", rank=1),
    Column("kind", "adds"),
    Column("name", "name"),
    Column("state", "state", colors={"ok": GREEN, "broken": RED}),
    Column("detail", "detail", wraps=True, rank=2),
)


class Plugin(NamedTuple):
    """An entry point of another package."""

    point: EntryPoint

    @property
    def name(self) -> str:
        """Its name, which users type."""
        return self.point.name

    @property
    def package(self) -> str:
        """The package that has it."""
        return "" if self.point.dist is None else self.point.dist.name

    @property
    def version(self) -> str:
        """The version of the package."""
        return "" if self.point.dist is None else self.point.dist.version

    def load(self) -> Any:
        """What it names; an error says which package is broken."""
        from interlingua.cli import collect_as_usual

        collect_as_usual()
        try:
            return self.point.load()
        except Exception as error:
            text = f"The {_KINDS[self.point.group]} {self.name} of the package {self.package} "
            text += f"cannot be loaded: {type(error).__name__}: {error}"
            raise click.ClickException(text) from error


def find_plugins(group: str) -> Iterator[Plugin]:
    """The entry points of a group; nothing is loaded."""
    return map(Plugin, entry_points_of(group))


def find_plugin(group: str, name: str) -> Plugin | None:
    """The entry point with this name; nothing is loaded."""
    return next((each for each in find_plugins(group) if each.name == name), None)


def load_command(plugin: Plugin) -> click.Command:
    """The command of a plugin."""
    command = plugin.load()
    if not isinstance(command, click.Command):
        kind = type(command).__name__
        text = f"The command {plugin.name} of the package {plugin.package} is a {kind}; "
        raise click.ClickException(f"{text}it must be a click.Command")
    return command


@click.command("plugins")
@with_output
def command(out: Output) -> int:
    r"""
    List what other packages add: commands, tools, templates, providers and dialects.

    `pip install` adds a plugin. Each is loaded here, and the exit code is 1 if one is broken.

    \b
    interlingua plugins
    """
    rows = [_row(plugin) for group in _KINDS for plugin in find_plugins(group)]
    rows.sort(key=lambda row: (row["package"], row["kind"], row["name"]))
    out.table(_COLUMNS, rows, empty="No plugin is installed; `pip install` adds them.")
    return FAILED if any(row["state"] == "broken" for row in rows) else 0


def _row(plugin: Plugin) -> dict[str, str]:
    row = {
        "package": plugin.package,
        "version": plugin.version,
        "kind": _KINDS[plugin.point.group],
        "name": plugin.name,
    }
    try:
        state, detail = "ok", _check(plugin)
    except Exception as error:  # noqa: BLE001 -- code of another package may raise anything
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        state, detail = "broken", message
    return {**row, "state": state, "detail": detail}


def _check(plugin: Plugin) -> str:
    """What a plugin adds; an error if it cannot be used."""
    group = plugin.point.group
    if group == COMMANDS:
        from interlingua.cli.commands import COMMANDS as BUILT_IN

        text = load_command(plugin).get_short_help_str(60)
        return f"not used: `{plugin.name}` is built in" if plugin.name in BUILT_IN else text
    value = plugin.load()
    if group == TOOLS:
        from interlingua.cli.tool_sources import tools_in

        return ", ".join(tool.name for tool in tools_in(value, plugin.name))
    if group == TEMPLATES:
        from interlingua.cli.templates import read_values

        return ", ".join(read_values(value, plugin.name))
    if group == PROVIDERS:
        from interlingua.providers.rows import rows_of

        return ", ".join(row.name for row in rows_of(value, plugin.name))
    return str(value.NAME)
