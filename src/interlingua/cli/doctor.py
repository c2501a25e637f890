"""`interlingua doctor`: what is installed and configured, and what a target would refuse."""

from __future__ import annotations

import asyncio
import difflib
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click
from msgspec.structs import replace

from interlingua.cli.output import (
    BadInput,
    Column,
    Output,
    in_options,
    json_text,
    paint,
    printable,
    with_output,
)
from interlingua.cli.tables import BOLD, DIM, GREEN, RED
from interlingua.version import __version__

if TYPE_CHECKING:
    from interlingua import Client, Request
    from interlingua.dialects import Dialect
    from interlingua.spec.contracts import Profile

_PACKAGES = (
    *("httptools", "msgspec", "jsonschema-rs", "pyyaml", "click", "rich", "httpx2", "xllamacpp"),
    *("mcp", "opentelemetry-api", "redis", "asyncpg", "google-auth"),
)
_COLUMNS = (
    Column("check", "check"),
    Column("state", "state", colors={"ok": GREEN, "key is set": GREEN, "failed": RED}),
    Column("detail", "detail", wraps=True),
)


@click.command("doctor")
@click.argument("history", type=click.File("rb"), required=False)
@click.option("--online", is_flag=True, help="Ask each configured provider for its models.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="Seconds that --online waits for each provider.",
)
@click.option(
    "--from", "source", help="The dialect of HISTORY; without it, the library's own form."
)
@click.option(
    "--to", "target", help="The model or dialect that HISTORY would be sent to, for a diff."
)
@with_output
def command(
    out: Output,
    history: BinaryIO | None,
    *,
    online: bool,
    timeout: float,
    source: str | None,
    target: str | None,
) -> int:
    r"""
    Say what is installed and configured; with HISTORY, what a model would refuse.

    HISTORY is a file of messages, a conversation that /save of `chat` wrote, or a request in the
    dialect of --from. What would be changed for the model or dialect of --to is shown as a diff,
    and nothing is sent. With --online, each configured provider is asked for its models. Keys are
    never printed.

    \b
    interlingua doctor --online
    interlingua doctor talk.json --to anthropic:claude-haiku-4-5
    interlingua doctor request.json --from DIALECT --to DIALECT
    """
    if history is None:
        rows = [*_versions(), *_places(), *_configuration()]
        if not any(row["state"] == "failed" for row in rows):  # the keys depend on all of it
            rows += _keys()
        rows += _reach(out, rows, timeout) if online else []
        out.table(_COLUMNS, rows)
        return 1 if any(row["state"] == "failed" for row in rows) else 0
    if target is None:
        raise click.UsageError("A history needs --to: the model or dialect it would be sent to.")
    return _examine(out, history, source, target)


def _row(check: str, state: str, detail: str = "") -> dict[str, str]:
    return {"check": check, "state": state, "detail": detail}


def _versions() -> list[dict[str, str]]:
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


def _places() -> list[dict[str, str]]:
    import os

    from interlingua.local.model import SMOLLM2, cache_folder, installed, is_whole
    from interlingua.runtime.files import config_folder, data_folder

    rows = []
    for name, folder in (("configuration", config_folder()), ("data", data_folder())):
        place = next(each for each in (folder, *folder.parents) if each.exists())
        is_writable = os.access(place, os.W_OK)
        rows.append(_row(f"folder: {name}", "ok" if is_writable else "failed", str(folder)))
    cached = cache_folder() / SMOLLM2.file
    path: Path | None = installed() or (cached if is_whole(cached, SMOLLM2) else None)
    state = "ok" if path else "not downloaded"
    return [*rows, _row("local model", state, str(path) if path else "`interlingua local pull`")]


def _configuration() -> list[dict[str, str]]:
    """The configuration files in the order in which they win, and what holds."""
    from interlingua.cli.clients import choose_model
    from interlingua.cli.config import check_file, describe_log
    from interlingua.cli.configuration import edited_file, find_files
    from interlingua.errors import ConfigurationError

    rows = []
    for file in find_files():
        try:
            check_file(file.path, file.text)
        except ConfigurationError as error:
            rows.append(_row("configuration file", "failed", str(error)))
            continue
        state = "ok" if file.is_trusted else "not trusted"
        rows.append(_row("configuration file", state, f"{file.path} ({file.origin})"))
    if any(row["state"] == "failed" for row in rows):
        return rows
    if not rows:
        hint = f"`interlingua default` makes {edited_file()}"
        rows.append(_row("configuration file", "none", hint))
    model, why = choose_model()
    is_logged, reason = describe_log()
    rows.append(_row("default model", "ok", f"{model} ({why})"))
    return [*rows, _row("log", "on" if is_logged else "off", reason)]


def _keys() -> list[dict[str, str]]:
    """The providers with a key: the names of the variables, never the keys."""
    from interlingua.cli.clients import environment, usable_adapters

    environ = environment()
    rows = []
    for name, adapter in usable_adapters().items():
        variable = next((each for each in adapter.provider.key_env if environ.get(each)), "")
        if variable:
            rows.append(_row(f"provider: {name}", "key is set", f"{variable}, {adapter.base_url}"))
    return rows or [_row("providers", "no key is set", "`interlingua keys set NAME` stores one")]


def _reach(out: Output, rows: list[dict[str, str]], timeout: float) -> list[dict[str, str]]:
    prefix = "provider: "
    names = [row["check"].removeprefix(prefix) for row in rows if row["check"].startswith(prefix)]
    with out.progress("Asking the providers"):
        return asyncio.run(_reach_all(names, timeout))


async def _reach_all(names: list[str], timeout: float) -> list[dict[str, str]]:  # noqa: ASYNC109
    from interlingua.cli.clients import open_async_client
    from interlingua.errors import SDKError, UnsupportedError

    async def ask(client: Client, name: str) -> dict[str, str]:
        began = time.perf_counter()
        try:
            models = await asyncio.wait_for(client.list_models(name), timeout)
        except UnsupportedError:
            return _row(f"reach: {name}", "not tried", "it has no list of models")
        except (SDKError, TimeoutError) as error:
            return _row(f"reach: {name}", "failed", str(error) or f"no reply in {timeout:g} s")
        seconds = time.perf_counter() - began
        return _row(f"reach: {name}", "ok", f"{len(models)} models in {seconds:.2f} s")

    async with open_async_client() as client:
        return await asyncio.gather(*(ask(client, name) for name in names))


# Histories.


def _examine(out: Output, file: BinaryIO, source: str | None, target: str) -> int:
    """Say what the target would refuse or change in the history of a file."""
    from interlingua import to_json
    from interlingua.errors import SDKError
    from interlingua.prepare.prepare import prepare
    from interlingua.spec.warnings import raising_losses
    from interlingua.wire.json_text import loads

    try:
        request = _read_history(file.read(), source)
    except SDKError as error:
        raise BadInput(f"{file.name} is not a history: {in_options(str(error), error)}") from error
    dialect, profile, model = _find_target(target)
    request = replace(request, model=model)
    prepared = prepare(request, profile, dialect.FACTS)
    changes = dialect.encode_request(prepared, profile, stream=False).warnings
    refused = raising_losses(changes, request)
    before, after = (
        json_text(loads(to_json(list(each.messages)))).splitlines()
        for each in (request, prepared.request)
    )
    diff = list(difflib.unified_diff(before, after, file.name, target, lineterm=""))
    rows = [
        {"path": each.path, "code": each.code, "message": each.message, "refused": each in refused}
        for each in changes
    ]
    if out.json:
        out.data({"target": target, "accepted": not rows, "changes": rows, "diff": diff})
    else:
        _show_changes(out, target, rows, diff)
    return 1 if rows else 0


def _show_changes(
    out: Output, target: str, rows: Sequence[Mapping[str, object]], diff: list[str]
) -> None:
    for row in rows:
        state = "would be refused" if row["refused"] else "would be changed"
        out.warn(f"{state}: {row['path'] or 'history'}: {row['message']} [{row['code']}]")
    if not rows:
        out.line(f"{target} accepts this history as it is.")
    colors = {"-": RED, "+": GREEN, "@": DIM}
    for line in diff:
        text = printable(line)
        color = colors.get(line[:1], "") if not line.startswith(("---", "+++")) else BOLD
        out.line(paint(sys.stdout, text, color))


def _find_target(target: str) -> tuple[Dialect, Profile, str]:
    """The dialect, the profile and the model that a target means: a dialect, or a model."""
    from interlingua import HttpAdapter, dialects
    from interlingua.providers.provider import find_dialect
    from interlingua.spec.contracts import NEUTRAL_PROFILE

    provider, colon, model = target.partition(":")
    if not colon:
        if target not in dialects.names():
            names = ", ".join(dialects.names())
            raise BadInput(
                f"--to: {target!r} is neither a model, as in anthropic:claude-haiku-4-5, nor a "
                f"dialect: {names}"
            )
        return find_dialect(target), NEUTRAL_PROFILE, ""
    adapter = HttpAdapter(provider, "not-needed").for_model(model)
    return find_dialect(adapter.dialect), adapter.profile_for(model), model


def _read_history(data: bytes, source: str | None) -> Request:
    """A request in a dialect, or in our form; messages; or a session that was saved."""
    from interlingua import Request, from_json
    from interlingua.dialects import WireCall
    from interlingua.history import read_messages
    from interlingua.providers.provider import find_dialect
    from interlingua.wire.json_text import loads

    document = loads(data)
    if source is not None:
        return find_dialect(source).decode_request(WireCall(body=document))
    if isinstance(document, list):
        return Request(messages=read_messages(document))
    if isinstance(document, dict) and "turns" in document:
        turns = [message for turn in document["turns"] for message in turn]
        return Request(messages=read_messages(turns))
    if isinstance(document, dict) and "messages" in document and "model" not in document:
        return Request(messages=read_messages(document["messages"]))
    return from_json(document, Request)
