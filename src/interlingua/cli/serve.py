"""`interlingua serve`: the gateway, until it is interrupted."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from interlingua.cli import collect_as_usual
from interlingua.cli.clients import environment
from interlingua.cli.configuration import HERE, ConfigFile, find_files, is_trusted, used_files
from interlingua.cli.output import Output, with_output
from interlingua.runtime.files import data_folder, write_private
from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from interlingua.gateway.config import Gateway
    from interlingua.gateway.source import Source

_VARIABLES = (
    ("OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY"),
    ("ANTHROPIC_BASE_URL", "", "ANTHROPIC_AUTH_TOKEN"),
    ("GOOGLE_GEMINI_BASE_URL", "", "GEMINI_API_KEY"),
)


@click.command("serve")
@click.option("--host", help="The address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=int, help="The port; 0 for a free one.  [default: 4000]")
@click.option("--workers", type=click.IntRange(1), help="How many processes serve.  [default: 1]")
@click.option("--new-key", is_flag=True, help="Make a new key; the one before ends.")
@click.option(
    "--check", is_flag=True, help="Check the file, list its routes and what they lose, and end."
)
@with_output
def command(
    out: Output,
    *,
    host: str | None,
    port: int | None,
    workers: int | None,
    new_key: bool,
    check: bool,
) -> None:
    r"""
    Answer the APIs of OpenAI, Anthropic and Gemini with any model, until Ctrl-C.

    The first configuration file with a section `gateway` is used: that of --config, of
    INTERLINGUA_CONFIG, interlingua.yaml of this folder once it is trusted, or that of your
    configuration folder. If none has one, every provider with a key and the local model are served,
    under names such as `anthropic:claude-haiku-4-5`. SIGHUP reads the file again.

    \b
    interlingua serve
    interlingua serve --config interlingua.yaml --check
    """
    from interlingua.gateway.source import Source

    file = _find_file(out)
    path = out.config or (None if file is None else str(file.path))
    source = Source(secret=b"", environ=environment(), path=path, folder=str(data_folder()))
    source = _renew(source, file)
    gateway = source.read()
    out.note(f"Configuration: {path or 'the keys of the environment, without a file'}")
    if check:
        _show_routes(out, gateway)
        return
    gateway = gateway._replace(
        host=gateway.host if host is None else host,
        port=gateway.port if port is None else port,
        workers=workers or gateway.workers,
    )
    state = _State(data_folder() / "gateway.json")
    key = None
    if not gateway.keys:
        key = state.make_key() if new_key or not state.has_key else None
    elif new_key:
        key = state.print_key()
        out.line(f"Add the hash of this key to the file: {state.hash_of(key)}")
    source = replace(source, secret=state.secret, hash=state.hash, workers=gateway.workers)
    _serve(source, file, gateway, lambda url: _tell(out, url, key))


def _find_file(out: Output) -> ConfigFile | None:
    """The file with the gateway: the first one that has such a section, unless one is named."""
    from interlingua.client.config import read_file

    if out.config:
        return None
    used = used_files()
    files = (file for file in find_files() if file.path in used)
    return next((each for each in files if "gateway" in [*read_file(each.path, each.text)]), None)


def _renew(source: Source, file: ConfigFile | None) -> Source:
    """The same file as it is now; one of the working folder must have been accepted as it is."""
    new = source.renew(environment())
    if file is None or file.origin != HERE or is_trusted(file._replace(text=new.text or "")):
        return new
    raise ConfigurationError(
        f"{file.path} was changed. `interlingua config trust` shows it and accepts it."
    )


def _serve(
    source: Source, file: ConfigFile | None, gateway: Gateway, tell: Callable[[str], None]
) -> None:
    """Serve in this process, or in several."""
    collect_as_usual()
    from interlingua.gateway.server import listen, url_of

    def renew() -> Source:
        return _renew(source, file)

    if gateway.workers == 1:
        from interlingua.gateway.reload import run_alone

        server = listen(gateway.host, gateway.port)
        run_alone(source, server, renew, lambda: tell(url_of(server)))
        return
    from interlingua.gateway.workers import Address, Workers

    address = Address(gateway.host, gateway.port, gateway.workers)
    url = url_of(address.first)
    Workers(source, address, renew).run(gateway.workers, lambda: tell(url))


def _tell(out: Output, url: str, key: str | None) -> None:
    if out.json:
        out.data({"url": url, "key": key})
        return
    out.line(f"Serving on {url}. Ctrl-C ends it.")
    if key is None:
        out.line("The key is the one that was printed when it was made; --new-key makes another.")
    else:
        out.line(f"The key, which is shown only now: {key}")
    out.line("Connect a program with:")
    for base, path, variable in _VARIABLES:
        out.line(f"  {base}={url}{path} {variable}={key or '<the key>'}")
    out.line("or let `interlingua connect` write its settings: claude, codex, gemini, opencode, …")


def _show_routes(out: Output, gateway: Gateway) -> None:
    """Print the routes, and what each loses of the requests of each dialect."""
    from interlingua.gateway.losses import find_losses, models_of, served_dialects

    rows: list[dict[str, Any]] = []
    for name, route in gateway.routes.items():
        losses = [*find_losses(gateway.client, route)]
        models = models_of(gateway.client, route)
        rows.append({"name": name, "models": models, "losses": losses})
    if out.json:
        shown = [{**row, "losses": [each._asdict() for each in row["losses"]]} for row in rows]
        out.data({"routes": shown, "keys": [key.caller.name for key in gateway.keys]})
        return
    for row in rows:
        for number, model in enumerate(row["models"]):
            out.line(f"{row['name']} -> {model}" if number == 0 else f"  then {model}")
            for dialect in served_dialects():
                codes = [
                    code
                    for loss in row["losses"]
                    if (loss.model, loss.dialect) == (model, dialect)
                    for code in loss.codes
                ]
                out.line(f"  {dialect}: {', '.join(dict.fromkeys(codes)) or 'nothing is lost'}")
    out.line(f"{len(rows)} routes, {len(gateway.keys)} keys. The configuration is valid.")


class _State:
    """The hash of the key and the secret of the seals, in a file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._values: dict[str, str] = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            self._values = {}
        if "secret" not in self._values:
            self._values["secret"] = secrets.token_hex(32)
            self._write()

    @property
    def secret(self) -> bytes:
        """What authenticates the state that travels through the clients."""
        return bytes.fromhex(self._values["secret"])

    @property
    def has_key(self) -> bool:
        """Whether a key was made."""
        return "hash" in self._values

    @property
    def hash(self) -> str | None:
        """The hash of the key that was made."""
        return self._values.get("hash")

    def make_key(self) -> str:
        """Make a key and keep its hash in place of the one before."""
        key = self.print_key()
        self._values["hash"] = self.hash_of(key)
        self._write()
        return key

    @staticmethod
    def print_key() -> str:
        """Make a key that is kept nowhere."""
        from interlingua.gateway.keys import make_key

        return make_key()

    @staticmethod
    def hash_of(key: str) -> str:
        """The hash of a key."""
        from interlingua.gateway.keys import hash_key

        return hash_key(key)

    def _write(self) -> None:
        write_private(self._path, json.dumps(self._values))
