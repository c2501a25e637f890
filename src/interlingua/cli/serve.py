"""`interlingua serve`: the gateway, until it is interrupted."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlingua.cli.clients import environment
from interlingua.cli.files import data_folder, private_file
from interlingua.cli.output import Output, with_output

if TYPE_CHECKING:
    from interlingua.gateway.config import Gateway

_VARIABLES = (
    ("OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY"),
    ("ANTHROPIC_BASE_URL", "", "ANTHROPIC_AUTH_TOKEN"),
    ("GOOGLE_GEMINI_BASE_URL", "", "GEMINI_API_KEY"),
)


@click.command("serve")
@click.option("--config", type=click.Path(dir_okay=False), help="A registry file; see the docs.")
@click.option("--host", help="The address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=int, help="The port; 0 for a free one.  [default: 4000]")
@click.option("--new-key", is_flag=True, help="Make a new key; the one before ends.")
@click.option("--check", is_flag=True, help="Check the file, list its routes, and end.")
@with_output
def command(
    out: Output,
    *,
    config: str | None,
    host: str | None,
    port: int | None,
    new_key: bool,
    check: bool,
) -> None:
    r"""
    Answer the APIs of OpenAI, Anthropic and Gemini with any model, until Ctrl-C.

    Without a file, every provider with a key and the local model are served, under names such as
    `anthropic:claude-haiku-4-5`.

    \b
    interlingua serve
    interlingua serve --config interlingua.yaml --check
    """
    from interlingua.client.stores.sqlite import SQLiteStore
    from interlingua.gateway.config import FILES, gateway_from_env, gateway_from_file
    from interlingua.gateway.server import listen, make_application, run

    if config is None:
        gateway = gateway_from_env(environment())
        gateway = gateway._replace(store=SQLiteStore(data_folder() / FILES))
    else:
        gateway = gateway_from_file(config, environment())
    if check:
        _show_routes(out, gateway)
        return
    gateway = gateway._replace(
        host=gateway.host if host is None else host, port=gateway.port if port is None else port
    )
    state = _State(data_folder() / "gateway.json")
    key = None
    if not gateway.keys:
        key = state.make_key() if new_key or not state.has_key else None
        gateway = gateway._replace(keys=state.keys())
    elif new_key:
        key = state.print_key()
        out.line(f"Add the hash of this key to the file: {state.hash_of(key)}")
    app = make_application(gateway, state.secret)
    server = listen(gateway.host, gateway.port)
    url = f"http://{gateway.host}:{server.getsockname()[1]}"
    run(app, server, lambda: _tell(out, url, key))


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


def _show_routes(out: Output, gateway: Gateway) -> None:
    rows: list[dict[str, Any]] = [
        {"name": name, "model": route.model} for name, route in gateway.routes.items()
    ]
    if out.json:
        out.data({"routes": rows, "keys": [key.caller.name for key in gateway.keys]})
        return
    for row in rows:
        out.line(f"{row['name']} -> {row['model']}")
    out.line(f"{len(rows)} routes, {len(gateway.keys)} keys. The file is valid.")


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

    def make_key(self) -> str:
        """Make a key and keep its hash in place of the one before."""
        key = self.print_key()
        self._values["hash"] = self.hash_of(key)
        self._write()
        return key

    def keys(self) -> Any:
        """The key that was made."""
        from interlingua.gateway.keys import Key
        from interlingua.serving.client_application import Caller

        return (Key(self._values["hash"], Caller("local")),)

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
        private_file(self._path).write_text(json.dumps(self._values), "utf-8")
