"""`interlingua schemas`: the schemas of answers that were asked for."""

from __future__ import annotations

import json
from typing import Any

import click

from interlingua.cli.calls_log import find_schemas
from interlingua.cli.output import Column, Output, printable, with_output
from interlingua.cli.prompts import is_hash, read_schema, several

_COLUMNS = (
    Column("hash", "id"),
    Column("calls", "calls", right=True, rank=1),
    Column("fields", "fields", wraps=True),
)
_LENGTH = 12  # characters of a hash in the list


@click.group("schemas")
def command() -> None:
    r"""
    List and show the schemas that `--schema` has used, and write short ones in full.

    The log has each schema once. `--schema ID` uses one again, and `--save NAME` of `ask` keeps
    one as a template, for `--schema t:NAME`.

    \b
    interlingua ask --schema 'name, age int' "Invent a dog"
    interlingua schemas list
    """


@command.command("list")
@with_output
def list_schemas(out: Output) -> None:
    r"""
    List the schemas of the log, the last used first.

    \b
    interlingua schemas list
    """
    rows = find_schemas()
    for row in rows:
        row["fields"] = _fields(row["schema"])
        if not out.json:
            row["hash"] = row["hash"][:_LENGTH]
    out.table(_COLUMNS, rows, empty="No schema is in the log; `--schema` of `ask` uses one.")


@command.command("show")
@click.argument("schema", metavar="ID|t:NAME")
@with_output
def show(out: Output, schema: str) -> None:
    r"""
    Print the schema with this id or its beginning, or that of a template.

    \b
    interlingua schemas show t:dog
    """
    out.data(read_schema(schema) if schema.startswith("t:") else find_schema(schema))


@command.command("expand")
@click.argument("fields")
@click.option("--multi", is_flag=True, help="For a list of such objects, as --schema-multi.")
@with_output
def expand(out: Output, fields: str, *, multi: bool) -> None:
    r"""
    Print the JSON Schema that FIELDS mean, which `--schema` would use.

    \b
    interlingua schemas expand 'name, age int, bio: one sentence'
    """
    schema = read_schema(fields)
    out.data(several(schema) if multi else schema)


def find_schema(start: str) -> dict[str, Any]:
    """The schema of the log whose hash begins so."""
    found = find_schemas("hash GLOB ?", (f"{start}*",)) if is_hash(start) else []
    if len(found) != 1:
        problem = "several schemas have" if found else "no schema has"
        raise click.UsageError(
            f"{problem} the id {printable(start)}; `interlingua schemas list` lists them"
        )
    schema: dict[str, Any] = found[0]["schema"]
    return schema


def _fields(schema: dict[str, Any]) -> str:
    """The fields of a schema in short, as `--schema` takes them where it can."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return json.dumps(schema)
    items = properties.get("items")
    if len(properties) == 1 and isinstance(items, dict) and isinstance(items.get("items"), dict):
        return f"several of: {_fields(items['items'])}"
    kinds = {"string": "", "integer": " int", "number": " float", "boolean": " bool"}
    return ", ".join(
        f"{name}{kinds.get(str(about.get('type')), ' …') if isinstance(about, dict) else ''}"
        for name, about in properties.items()
    )
