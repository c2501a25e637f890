"""`interlingua replay`: answers from a recording, without network and keys."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from interlingua.cli.output import FAILED, Output, with_output
from interlingua.cli.recording import (
    PORT,
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

_KEY = "none-needed-for-a-replay"


@click.command("replay")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@server_options
@click.option(
    "--speed", type=click.FloatRange(min=0), default=0.0,
    help="1 keeps the recorded pauses, 2 halves them; without it there are none.",
)  # fmt: skip
@click.option(
    "--ignore", multiple=True, metavar="FIELD",
    help="Do not compare this field at the top of JSON bodies. Repeatable.",
)  # fmt: skip
@click.option("--repeat", is_flag=True, help="Answer equal requests again and again.")
@with_output
def command(
    out: Output, file: Path, command: tuple[str, ...], *, host: str, port: int | None, **more: Any
) -> int:
    r"""
    Answer from the recording in FILE, without network and keys.

    COMMAND is run with the variables that lead its requests here, and with a placeholder where the
    program needs a key. Without COMMAND, the server runs until Ctrl-C, at the same base URLs as
    `interlingua record`.

    Requests match by method, path, query and body. A request without a recording is answered with
    400 and a message that says what differs from the closest recording; the exit code is then 1.

    \b
    interlingua replay calls.json -- python my_program.py
    interlingua replay calls.json --port 8900 --repeat
    """
    player = _Player(out, file, **more)
    port = port if port is not None else (0 if command else PORT)
    try:
        player.code = asyncio.run(player.run(command, host, port))
    except KeyboardInterrupt:
        player.end(has_command=bool(command))
        if command:
            raise
    else:
        player.end(has_command=True)
    return player.code or (FAILED if player.missing else 0)


class _Player:
    """The server that replays, and what it has answered."""

    def __init__(self, out: Output, file: Path, **options: Any) -> None:
        from interlingua.transport import ReplayTransport
        from interlingua.transport.cassette import load_exchanges

        self.code = 0
        self.missing = 0
        self._out = out
        self._file = file
        self._transport = ReplayTransport(file, **options)
        self._urls = [exchange["request"]["url"] for exchange in load_exchanges(file)]
        self._paths = {urlsplit(url).path for url in self._urls}
        self._targets = known_targets(os.environ)
        self._is_quiet = out.json

    async def run(self, command: tuple[str, ...], host: str, port: int) -> int:
        self._is_quiet = self._is_quiet or bool(command)
        async with served(
            self._transport, self._locate, self._note, host=host, port=port
        ) as server:
            variables = self._variables(server.url)
            if command:
                return await run_command(self._out, command, variables)
            number = f"{len(self._urls)} exchange" + ("s" if len(self._urls) != 1 else "")
            line = f"Replaying {number} on {server.url}. Ctrl-C ends it."
            announce(self._out, server.url, self._file, line, variables)
            await asyncio.Event().wait()
        return 0

    def end(self, *, has_command: bool) -> None:
        """Say how much of the recording was used."""
        used = len(self._urls) - self._transport.unused
        if self._out.json and has_command:
            row = {"file": str(self._file), "exchanges": len(self._urls), "replayed": used}
            self._out.data({**row, "missing": self.missing, "code": self.code})
            return
        lost = f"; requests without a recording: {self.missing}" if self.missing else ""
        self._out.note(f"Replayed {used} of {len(self._urls)} exchanges of {self._file}{lost}.")

    def _locate(self, target: str) -> str:
        """The recorded path: as it is, or without the name of a provider before it."""
        path = target.partition("?")[0]
        name, _, rest = target.removeprefix("/").partition("/")
        is_prefixed = name in self._targets or f"/{rest.partition('?')[0]}" in self._paths
        if path not in self._paths and is_prefixed:
            target = f"/{rest}"
        return f"http://recorded{target}"  # hosts are not compared

    def _variables(self, server: str) -> dict[str, str]:
        names = used_names(os.environ, self._urls)
        used = [target for name, target in self._targets.items() if name in names]
        keys = {
            target.key_variables[0]: _KEY
            for target in used
            if target.key_variables and not any(map(os.environ.get, target.key_variables))
        }
        return {**variables_of(used, lambda target: f"{server}/{target.name}"), **keys}

    def _note(self, exchange: Forwarded) -> None:
        from interlingua.errors import ConfigurationError

        if isinstance(exchange.error, ConfigurationError):
            self.missing += 1
            show_problem(exchange)
        if not self._is_quiet:
            self._out.note(exchange_line(exchange))
