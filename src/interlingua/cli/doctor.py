"""`interlingua doctor`: what is installed and configured, and what a target would refuse."""

from __future__ import annotations

import asyncio
import difflib
import platform
import time
from pathlib import Path
from typing import Any, BinaryIO

import click

from interlingua.cli.output import Column, Output, json_text, with_output
from interlingua.cli.tables import GREEN, RED
from interlingua.version import __version__

_PACKAGES = (
    *("aiohttp", "msgspec", "jsonschema-rs", "pyyaml", "click", "rich", "httpx2", "xllamacpp"),
    *("mcp", "opentelemetry-api", "redis", "google-auth"),
)
_COLUMNS = (
    Column("check", "check"),
    Column("state", "state", colors={"ok": GREEN, "key is set": GREEN, "failed": RED}),
    Column("detail", "detail", wraps=True),
)
_TIMEOUT = 10.0


@click.command("doctor")
@click.argument("history", type=click.File("rb"), required=False)
@click.option("--online", is_flag=True, help="Ask each configured provider for its models.")
@click.option(
    "--from", "source", help="The dialect of HISTORY; without it, the library's own form."
)
@click.option("--to", "target", help="The dialect that HISTORY would be sent to.")
@with_output
def command(
    out: Output, history: BinaryIO | None, *, online: bool, source: str | None, target: str | None
) -> int:
    r"""
    Say what is installed and configured; with HISTORY, what a target would refuse.

    HISTORY is a file of messages, as `to_json` writes them, or a request in the dialect of --from.
    What would be changed for the target of --to is shown as a diff. Keys are never printed.

    \b
    interlingua doctor --online
    interlingua doctor history.json --to DIALECT
    interlingua doctor request.json --from DIALECT --to DIALECT
    """
    if history is None:
        rows = [*_versions(), *_places(), *_keys()]
        rows += _reach(out, rows) if online else []
        out.table(_COLUMNS, rows)
        return 1 if any(row["state"] == "failed" for row in rows) else 0
    if target is None:
        raise click.UsageError("a history needs --to, the dialect that it would be sent to")
    return _examine(out, history.read(), source, target)


def _row(check: str, state: str, detail: str = "") -> dict[str, Any]:
    return {"check": check, "state": state, "detail": detail}


def _versions() -> list[dict[str, Any]]:
    from importlib.metadata import PackageNotFoundError, version

    system = f"{platform.system()} {platform.machine()}"
    rows = [
        _row("interlingua", "ok", __version__),
        _row("python", "ok", f"{platform.python_version()} on {system}"),
    ]
    for name in _PACKAGES:
        try:
            rows.append(_row(name, "ok", version(name)))
        except PackageNotFoundError:
            rows.append(_row(name, "not installed"))
    return rows


def _places() -> list[dict[str, Any]]:
    import os

    from interlingua.cli.places import config_folder, data_folder
    from interlingua.local.model import SMOLLM2, cache_folder, installed, is_whole

    rows = []
    for name, folder in (("configuration", config_folder()), ("data", data_folder())):
        place = next(each for each in (folder, *folder.parents) if each.exists())
        is_writable = os.access(place, os.W_OK)
        rows.append(_row(f"folder: {name}", "ok" if is_writable else "failed", str(folder)))
    cached = cache_folder() / SMOLLM2.file
    path: Path | None = installed() or (cached if is_whole(cached, SMOLLM2) else None)
    state = "ok" if path else "not downloaded"
    return [*rows, _row("local model", state, str(path) if path else "`interlingua local pull`")]


def _keys() -> list[dict[str, Any]]:
    """The providers with a key: the names of the variables, never the keys."""
    from interlingua.cli.clients import environment
    from interlingua.client.config import adapters_from_env

    environ = environment()
    rows = []
    for name, adapter in adapters_from_env(environ).items():
        variable = next((each for each in adapter.provider.key_env if environ.get(each)), "")
        if variable:
            rows.append(_row(f"provider: {name}", "key is set", f"{variable}, {adapter.base_url}"))
    return rows or [_row("providers", "no key is set", "`interlingua keys set NAME` stores one")]


def _reach(out: Output, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    prefix = "provider: "
    names = [row["check"].removeprefix(prefix) for row in rows if row["check"].startswith(prefix)]
    with out.progress("Asking the providers"):
        return asyncio.run(_reach_all(names))


async def _reach_all(names: list[str]) -> list[dict[str, Any]]:
    from interlingua import Client
    from interlingua.cli.clients import environment
    from interlingua.errors import SDKError, UnsupportedError

    async def ask(client: Client, name: str) -> dict[str, Any]:
        began = time.perf_counter()
        try:
            models = await asyncio.wait_for(client.list_models(name), _TIMEOUT)
        except UnsupportedError:
            return _row(f"reach: {name}", "not tried", "it has no list of models")
        except (SDKError, TimeoutError) as error:
            return _row(f"reach: {name}", "failed", str(error) or f"no reply in {_TIMEOUT:.0f} s")
        seconds = time.perf_counter() - began
        return _row(f"reach: {name}", "ok", f"{len(models)} models in {seconds:.2f} s")

    async with Client.from_env(environment()) as client:
        return await asyncio.gather(*(ask(client, name) for name in names))


def _examine(out: Output, data: bytes, source: str | None, target: str) -> int:
    from interlingua import to_json
    from interlingua.history import repair
    from interlingua.wire.json_text import loads

    messages = _read_history(data, source)
    repaired = repair(messages, target)
    before, after = (
        json_text(loads(to_json(list(each)))).splitlines() for each in (messages, repaired.messages)
    )
    diff = list(difflib.unified_diff(before, after, "history", target, lineterm=""))
    changes = [
        {"path": each.path, "code": each.code, "message": each.message} for each in repaired.changes
    ]
    if out.json:
        out.data({"target": target, "accepted": not changes, "changes": changes, "diff": diff})
    else:
        for change in changes:
            out.note(f"{change['path'] or 'history'}: {change['message']} ({change['code']})")
        out.line("\n".join(diff) if diff else f"{target} accepts this history as it is.")
    return 1 if changes else 0


def _read_history(data: bytes, source: str | None) -> tuple[Any, ...]:
    from interlingua import Message, Request, from_json
    from interlingua.dialects import WireCall
    from interlingua.providers.provider import find_dialect
    from interlingua.wire.json_text import loads

    document = loads(data)
    if source is not None:
        return find_dialect(source).decode_request(WireCall(body=document)).messages
    if isinstance(document, list):
        return tuple(from_json(document, list[Message]))
    return from_json(document, Request).messages
