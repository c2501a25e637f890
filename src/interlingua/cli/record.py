"""`interlingua record`: the exchanges of a program with providers, as a file."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from interlingua.cli.output import FAILED, Output, with_output
from interlingua.cli.recording import (
    PORT,
    Target,
    announce,
    exchange_line,
    known_targets,
    run_command,
    served,
    server_options,
    show_problem,
    used_names,
    variables_of,
)

if TYPE_CHECKING:
    from interlingua.serving.forward import Forwarded


@click.command("record")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@server_options
@click.option(
    "--to", multiple=True, metavar="[NAME=]URL",
    help="Send everything to this server, or what comes under /NAME. Repeatable.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@with_output
def command(
    out: Output,
    file: Path,
    command: tuple[str, ...],
    *,
    host: str,
    port: int | None,
    to: tuple[str, ...],
    overwrite: bool,
) -> int:
    r"""
    Record what a program sends to providers, and their replies, in FILE.

    A server on this machine passes each request on, with its key, and stores the exchange;
    `interlingua replay FILE` answers from the file. COMMAND is run with the variables that lead
    its requests there (OPENAI_BASE_URL and the like). Without COMMAND the server runs until
    Ctrl-C: give your program one of the base URLs that are printed, or http://HOST:PORT/NAME with
    the name of any provider.

    Keys are never stored; prompts and answers are. Only you can read FILE.

    \b
    interlingua record calls.json -- python my_program.py
    interlingua record calls.json --to http://127.0.0.1:8080
    """
    recorder = _Recorder(out, file, to)
    create_private(file, overwrite=overwrite)
    port = port if port is not None else (0 if command else PORT)
    try:
        recorder.code = asyncio.run(recorder.run(command, host, port))
    except KeyboardInterrupt:
        recorder.end(has_command=bool(command))
        if command:
            raise
    except BaseException:
        recorder.discard()
        raise
    else:
        recorder.end(has_command=True)
    return recorder.code


class _Recorder:
    """The server that records, and what it has seen."""

    def __init__(self, out: Output, file: Path, to: tuple[str, ...]) -> None:
        from interlingua.cli.clients import environment
        from interlingua.transport import RecordingTransport, default_transport

        self.code = 0
        self._out = out
        self._file = file
        self._environ = environment()
        self._targets, self._rest = _targets(to, known_targets(self._environ))
        self._transport = RecordingTransport(default_transport(), file, secrets=self._secrets())
        self._failed = 0
        self._is_quiet = out.json

    async def run(self, command: tuple[str, ...], host: str, port: int) -> int:
        self._is_quiet = self._is_quiet or bool(command)
        async with served(
            self._transport, self._locate, self._note, host=host, port=port
        ) as server:
            variables = self._variables(server.url)
            if command:
                code = await run_command(self._out, command, variables)
                return code or (FAILED if self._failed else 0)
            line = f"Recording on {server.url} into {self._file}. Ctrl-C ends it."
            announce(self._out, server.url, self._file, line, variables)
            await asyncio.Event().wait()
        return 0

    def discard(self) -> None:
        """Remove a file without exchanges."""
        with contextlib.suppress(OSError):
            if not self._transport.count and not self._file.stat().st_size:
                self._file.unlink()

    def end(self, *, has_command: bool) -> None:
        """Say what was recorded."""
        self.discard()
        count = self._transport.count
        if self._out.json and has_command:
            row = {"file": str(self._file), "exchanges": count, "code": self.code}
            self._out.data({**row, "failed": self._failed})
        elif count:
            number = f"{count} exchange" + ("s" if count > 1 else "")
            self._out.note(f"Recorded {number} in {self._file}.")
        else:
            self._out.note("Nothing was recorded.")

    def _locate(self, target: str) -> str:
        from interlingua.errors import ConfigurationError

        name, _, rest = target.removeprefix("/").partition("/")
        if name in self._targets:
            return f"{self._targets[name].origin}/{rest}"
        if self._rest is not None:
            return f"{self._rest.origin}{target}"
        raise ConfigurationError(
            f"The path {target.partition('?')[0]} does not begin with the name of a provider, "
            "such as /openai. `interlingua providers` lists them."
        )

    def _variables(self, server: str) -> dict[str, str]:
        rest = self._rest
        if rest is None:
            names = used_names(self._environ)
            used = [target for name, target in self._targets.items() if name in names]
            return variables_of(used, lambda target: f"{server}/{target.name}")
        named = variables_of(self._targets.values(), lambda target: f"{server}/{target.name}")
        known = known_targets({})
        used = [known[name] for name in known if name in used_names({})]
        used = [target._replace(path=rest.path or target.path) for target in used]
        return {**variables_of(used, lambda _: server), **named}

    def _note(self, exchange: Forwarded) -> None:
        self._failed += exchange.error is not None
        show_problem(exchange)
        if not self._is_quiet:
            self._out.note(exchange_line(exchange))

    def _secrets(self) -> set[str]:
        """The keys that are configured, wherever they appear in an exchange."""
        from interlingua.providers.rows import providers

        names = {name for row in providers().values() for name in (*row.key_env, *row.token_env)}
        return {self._environ[name] for name in names if self._environ.get(name)}


def _targets(
    to: tuple[str, ...], known: dict[str, Target]
) -> tuple[dict[str, Target], Target | None]:
    """The targets by their names, and the one for everything else."""
    named: dict[str, Target] = {}
    rest: Target | None = None
    for given in to:
        name, equals, url = given.partition("=")
        is_named = bool(equals) and "/" not in name
        parts = urlsplit(url if is_named else given)
        if parts.scheme not in {"http", "https"} or not parts.netloc or parts.query:
            raise click.BadParameter(f"{given} is no http or https URL", param_hint="--to")
        origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        if is_named:
            row: Any = known.get(name) or Target(name, origin, path)
            named[name] = row._replace(origin=origin, path=path or row.path)
        elif rest is None:
            rest = Target("", origin, path)
        else:
            raise click.BadParameter("only one URL can be without a NAME", param_hint="--to")
    return (named if rest is not None else {**known, **named}), rest


def create_private(path: Path, *, overwrite: bool) -> None:
    """Make the file, or empty it if it may be overwritten, so that only its owner can read it."""
    flags = os.O_CREAT | os.O_WRONLY | (os.O_TRUNC if overwrite else os.O_EXCL)
    try:
        file = os.open(path, flags, 0o600)
    except FileExistsError:
        raise click.UsageError(f"{path} exists. --overwrite replaces it.") from None
    try:
        if hasattr(os, "fchmod"):  # not on Windows before 3.13
            os.fchmod(file, 0o600)
    finally:
        os.close(file)
