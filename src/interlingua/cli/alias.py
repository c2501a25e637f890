"""`interlingua alias`: short names for models."""

from __future__ import annotations

import click

from interlingua.cli.config import change_config
from interlingua.cli.configuration import edited_file, read_settings
from interlingua.cli.default import check_model
from interlingua.cli.output import Column, Output, with_output

_COLUMNS = (
    Column("alias", "alias"),
    Column("model", "model"),
    Column("place", "from", wraps=True, rank=1),
)


@click.group("alias")
def command() -> None:
    r"""
    Set, list and remove short names for models.

    They are kept in the configuration file, which programs read too.

    \b
    interlingua alias set sonnet anthropic:claude-sonnet-5-5
    interlingua ask -m sonnet "Hello"
    """


@command.command("set")
@click.argument("name")
@click.argument("model")
@with_output
def set_alias(out: Output, name: str, model: str) -> None:
    r"""
    Let NAME stand for MODEL.

    \b
    interlingua alias set sonnet anthropic:claude-sonnet-5-5
    """
    if not name.strip() or ":" in name:
        raise click.UsageError("NAME must be a word without a colon.")
    target = read_settings().aliases.get(model, model)  # an alias of an alias is the model's
    check_model(out, target)
    path = change_config(out, ("aliases", name), target)
    if out.json:
        out.data({"alias": name, "model": target, "path": str(path)})
    else:
        out.note(f"{name} is now {target}.")


@command.command("list")
@with_output
def list_aliases(out: Output) -> None:
    r"""
    List the aliases of the configuration.

    \b
    interlingua alias list
    """
    settings = read_settings()
    rows = [
        {"alias": name, "model": model, "place": settings.places[f"aliases.{name}"]}
        for name, model in settings.aliases.items()
    ]
    empty = "There is no alias; `interlingua alias set NAME MODEL` sets one."
    out.table(_COLUMNS, rows, empty=empty)


@command.command("remove")
@click.argument("name")
@with_output
def remove(out: Output, name: str) -> None:
    r"""
    Remove the alias NAME.

    \b
    interlingua alias remove sonnet
    """
    settings = read_settings()
    if name not in settings.aliases:
        raise click.UsageError(f"There is no alias {name!r}; `interlingua alias list` lists them.")
    place = settings.places[f"aliases.{name}"]
    if not place.startswith(f"{edited_file()}:"):
        raise click.UsageError(f"{name} is in {place}; remove it there.")
    change_config(out, ("aliases", name), None)
    if out.json:
        out.data({"alias": name, "removed": True})
    else:
        out.note(f"Removed {name}.")
