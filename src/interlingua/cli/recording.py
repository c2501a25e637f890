"""What `record` and `replay` share: addresses, the server, and the program that is run."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import click

from interlingua.cli.output import Output, printable

if TYPE_CHECKING:
    from interlingua.providers.provider import Provider
    from interlingua.serving.forward import Forwarded
    from interlingua.serving.server import Server
    from interlingua.spec.contracts import Transport

F = TypeVar("F", bound=Callable[..., Any])
PORT = 8900
_SECONDS_TO_END = 5.0  # for a program that was interrupted
_SIGNALS = 128  # the exit code of a program that a signal has ended, as shells count


class Target(NamedTuple):
    """A provider behind the server: where its requests go, and the path of its base URL."""

    name: str
    origin: str
    path: str
    variables: tuple[str, ...] = ()
    """The variables from which programs read the base URL."""
    key_variables: tuple[str, ...] = ()


def server_options(function: F) -> F:
    """The options of a server, and the command to run."""
    options = (
        click.argument("command", nargs=-1, type=click.UNPROCESSED),
        click.option(
            "--host", default="127.0.0.1", show_default=True, help="The address to listen on."
        ),
        click.option(
            "--port", type=click.IntRange(0, 65535),
            help=f"The port; {PORT} by default, and a free one if a command is run.",
        ),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def announce(out: Output, url: str, file: Path, line: str, variables: Mapping[str, str]) -> None:
    """Say where the server is, and the variables that lead programs there."""
    if out.json:
        out.data({"url": url, "file": str(file), "variables": variables})
        return
    out.line(line)
    for variable, value in variables.items():
        out.line(f"  {variable}={value}")


def known_targets(environ: Mapping[str, str]) -> dict[str, Target]:
    """Every provider with a base URL: that of the environment, else its own."""
    from interlingua.providers.rows import providers

    found = {row.name: _target(row, environ) for row in providers().values()}
    return {name: target for name, target in found.items() if target is not None}


def _target(row: Provider, environ: Mapping[str, str]) -> Target | None:
    from interlingua.providers.environment import add_environment

    is_signed = row.signing == "sigv4"  # a signature covers the host
    if row.is_embedded or is_signed or not row.base_url_env:
        return None
    url = add_environment(row, {}, environ)["base_url"] or row.base_url
    if not url or "{" in url:
        return None
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    path = parts.path.rstrip("/")
    return Target(row.name, origin, path, row.base_url_env, row.key_env)


def used_names(environ: Mapping[str, str], origins: Iterable[str] = ()) -> set[str]:
    """
    The providers whose variables are set for a program.

    They are the three whose SDKs read such a variable, those with a key or an address in the
    environment, and those of a recording.
    """
    from interlingua.providers.rows import providers
    from interlingua.simulator.__main__ import BASES

    hosts = {urlsplit(origin).netloc for origin in origins}
    return {name for name, _, _ in BASES} | {
        row.name
        for row in providers().values()
        if any(environ.get(name) for name in (*row.key_env, *row.token_env, *row.base_url_env))
        or urlsplit(row.base_url).netloc in hosts - {""}
    }


def variables_of(targets: Iterable[Target], prefix: Callable[[Target], str]) -> dict[str, str]:
    """The variables that send programs to the server."""
    return {
        variable: f"{prefix(target)}{target.path}"
        for target in targets
        for variable in target.variables
    }


@asynccontextmanager
async def served(
    transport: Transport,
    locate: Callable[[str], str],
    on_exchange: Callable[[Forwarded], object],
    *,
    host: str,
    port: int,
) -> AsyncIterator[Server]:
    """A server that answers through the transport, which is closed at the end."""
    from interlingua.serving.forward import Forwarder
    from interlingua.serving.server import serve

    try:
        async with serve(Forwarder(transport, locate, on_exchange), host=host, port=port) as server:
            yield server
    finally:
        await transport.close()


def exchange_line(exchange: Forwarded) -> str:
    """An exchange in one line."""
    status = exchange.status or "the client has disconnected"
    line = f"{exchange.method} {exchange.path} · {status} · {exchange.seconds:.1f} s"
    return printable(line)


def show_problem(exchange: Forwarded) -> None:
    """Print what went wrong in an exchange; that of a missing recording has several lines."""
    if exchange.error is not None:
        sys.stderr.write(f"error: {printable(exchange.error.message)}\n")
        sys.stderr.flush()


async def run_command(out: Output, command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a program with these variables; returns its exit code."""
    local = ",".join(filter(None, (os.environ.get("NO_PROXY"), "127.0.0.1,localhost")))
    environ = {**os.environ, **variables, "NO_PROXY": local, "no_proxy": local}
    stdout = sys.stderr.fileno() if out.json else None  # stdout is for the JSON
    try:
        process = await asyncio.create_subprocess_exec(*command, env=environ, stdout=stdout)
    except OSError as error:
        raise click.ClickException(f"Cannot run {command[0]}: {error.strerror}") from None
    try:
        code = await process.wait()
    except asyncio.CancelledError:  # Ctrl-C, which the program has received too
        try:
            await asyncio.wait_for(process.wait(), _SECONDS_TO_END)
        except TimeoutError:
            process.terminate()
            await process.wait()
        raise
    return code if code >= 0 else _SIGNALS - code
