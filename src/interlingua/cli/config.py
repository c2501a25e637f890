"""`interlingua config`: the configuration file."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import click

from interlingua.cli.calls_log import OFF
from interlingua.cli.clients import choose_model
from interlingua.cli.configuration import (
    ConfigFile,
    distrust,
    edited_file,
    file_here,
    find_files,
    read_settings,
    trust,
)
from interlingua.cli.files import edit_file
from interlingua.cli.output import Column, Output, is_terminal, printable, with_output
from interlingua.client.config_files import FILE

_COLUMNS = (
    Column("setting", "setting"),
    Column("value", "value", wraps=True),
    Column("place", "from", wraps=True, rank=1),
)
_FIRST = """\
# The configuration of interlingua: docs/howto/configuration.md says what else may be here.
# default_model: anthropic:claude-haiku-4-5
# aliases:
#   sonnet: anthropic:claude-sonnet-5-5
"""
_names_secret = re.compile(
    "key(?!s)|token(?!s)|secret|password|authorization|cookie|credential", re.IGNORECASE
).search
_STRING = "tag:yaml.org,2002:str"


@click.group("config")
def command() -> None:
    r"""
    Show, edit and accept the configuration file, which programs and this command line share.

    The first of these that is there wins: --config FILE; the file that INTERLINGUA_CONFIG names;
    interlingua.yaml of this folder, once it is trusted, over the one of your configuration folder.

    \b
    interlingua config show
    interlingua config edit
    interlingua config trust
    """


@command.command("show")
@with_output
def show(out: Output) -> None:
    r"""
    List the files and the settings that hold, and where each comes from; keys are not printed.

    \b
    interlingua config show
    """
    files = find_files()
    rows: list[dict[str, Any]] = [
        {
            "setting": "file",
            "value": str(file.path),
            "place": file.origin if file.is_trusted else f"{file.origin}; not trusted, not used",
        }
        for file in files
    ]
    for file in files:
        if file.is_trusted:
            check_file(file.path, file.text)
    settings = read_settings()
    model, why = choose_model()
    is_logged, reason = describe_log()
    rows.append({"setting": "default_model", "value": model, "place": why})
    if settings.default_embedding_model:
        key = "default_embedding_model"
        value = settings.default_embedding_model
        rows.append({"setting": key, "value": value, "place": settings.places[key]})
    rows.append({"setting": "log", "value": "on" if is_logged else "off", "place": reason})
    for section in ("aliases", "templates", "mcp_servers"):
        for name, value in getattr(settings, section).items():
            setting = f"{section}.{name}"
            text = value if section == "aliases" else _summary(value)
            rows.append({"setting": setting, "value": text, "place": settings.places[setting]})
    out.table(_COLUMNS, rows)


def _summary(value: Any) -> str:
    """What a template or a server has, without its values: one may be a key."""
    return ", ".join(value) if isinstance(value, dict) else "text"


def describe_log() -> tuple[bool, str]:
    """Whether calls are logged, and what says so."""
    if os.environ.get(OFF):
        return False, f"{OFF} is set"
    settings = read_settings()
    return settings.log, settings.places.get("log", "unless --no-log is given")


@command.command("path")
@with_output
def path(out: Output) -> None:
    r"""
    Print the path of the file that `default`, `alias` and `config edit` change.

    \b
    cat "$(interlingua config path)"
    """
    place = str(edited_file())
    out.data({"path": place, "exists": Path(place).is_file()}) if out.json else out.line(place)


@command.command("edit")
@with_output
def edit(out: Output) -> None:
    r"""
    Open the file in your editor ($VISUAL or $EDITOR), and save it if it is valid.

    \b
    interlingua config edit
    """
    target = edited_file()
    text = edit_file(out, target, _FIRST, lambda text: check_file(target, text))
    if text is None:
        return
    write_config(target, text)
    out.note(f"Saved {target}.")


@command.command("trust")
@click.option("-y", "--yes", is_flag=True, help="Accept without asking.")
@click.option("--remove", is_flag=True, help="Use the file of this folder no longer.")
@with_output
def accept(out: Output, *, yes: bool, remove: bool) -> None:
    r"""
    Show interlingua.yaml of this folder, and use it from now on, until it changes.

    It may have come with somebody else's repository, and can send your prompts and keys to any
    address and start programs. So it counts only after you have seen and accepted it.

    \b
    interlingua config trust
    interlingua config trust --remove
    """
    if remove:
        _remove(out)
        return
    here = file_here()
    file = next((each for each in find_files() if each.path == here), None)
    if here is None or file is None:
        raise click.UsageError(f"There is no {FILE} in this folder that needs it.")
    check_file(file.path, file.text)
    if not out.json:
        _show_file(out, file)
    if not yes and not _confirm():
        out.note("It is not used.")
        return
    trust(file)
    out.data({"path": str(here), "trusted": True}) if out.json else out.note(f"{here} is used now.")


def _remove(out: Output) -> None:
    """Use the file of this folder no longer; it may have been deleted since."""
    path = Path(FILE).absolute()
    if not distrust(path):
        raise click.UsageError(f"{path} was not accepted; there is nothing to remove.")
    if out.json:
        out.data({"path": str(path), "trusted": False})
    else:
        out.note(f"{path} is not used any more.")


def _show_file(out: Output, file: ConfigFile) -> None:
    out.line(printable(_mask(file)).rstrip("\n"))
    facts = _powers(file)
    if facts:
        out.warn(f"It sets {', '.join(facts)}.")


def _mask(file: ConfigFile) -> str:
    """The text of a file with `…` for each value that may be a secret: keys, and all headers."""
    import yaml

    text, places = file.text, []
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    waiting = [] if root is None else [(root, False)]
    while waiting:
        node, is_secret = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            waiting += [(value, is_secret or _hides(key)) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += [(each, is_secret) for each in node.value]
        elif is_secret and node.tag == _STRING:
            places.append((node.start_mark.index, node.end_mark.index))
    pieces, end = [], 0
    for start, stop in sorted(set(places)):  # an alias is where its anchor is
        pieces += [text[end:start], "…"]
        end = stop
    return "".join([*pieces, text[end:]])


def _hides(key: Any) -> bool:
    """Whether what a key of a file has may be a secret."""
    name = str(key.value)
    if name == "env" or "headers" in name.lower():
        return True
    return not name.endswith("_env") and _names_secret(name) is not None


def _powers(file: ConfigFile) -> list[str]:
    """What in a file can send prompts or keys elsewhere, or start programs."""
    from interlingua.client.config import read_file

    document = read_file(file.path, file.text)
    adapters = document.get("adapters", {}).items()
    facts = [
        f"the address of {name} ({each['base_url']})"
        for name, each in adapters
        if isinstance(each, dict) and each.get("base_url")
    ]
    names = {
        "default_provider": "the default provider", "default_model": "the default model",
        "aliases": "aliases", "models": "models", "templates": "templates",
        "mcp_servers": "MCP servers, which are programs or addresses",
    }  # fmt: skip
    return [*facts, *(text for key, text in names.items() if document.get(key))]


def _confirm() -> bool:
    if not is_terminal(sys.stdin):
        raise click.UsageError("There is no terminal to ask. --yes accepts the file.")
    return click.confirm("Use this file?", err=True)


def check_file(target: Path, text: str) -> None:
    """Raise an error with the line if something in a configuration file is wrong."""
    from interlingua.client.config_files import read_config

    read_config({target: text}, {})


def write_config(target: Path, text: str) -> None:
    """Replace the file; a link to it stays a link."""
    from interlingua.runtime.files import replace_file

    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(target.resolve(), text.encode())


def change_config(out: Output, setting: tuple[str, ...], value: str | None) -> Path:
    """Set or remove a setting in the file that commands change; a warning says if another wins."""
    from interlingua.gateway.line_edits import edit_yaml

    target = edited_file()
    before = target.read_text(encoding="utf-8") if target.is_file() else ""
    text = edit_yaml(before, setting, value)
    check_file(target, text)
    if text != before:
        write_config(target, text)
    place = read_settings().places.get(".".join(setting), "")
    if value is not None and not place.startswith(f"{target}:"):
        out.warn(f"Another file wins: {place}.")
    return target
