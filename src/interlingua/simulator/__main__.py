"""`python -m interlingua.simulator --port 8080`: the simulator on loopback."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence

from interlingua.serving.server import serve
from interlingua.simulator.app import Simulator
from interlingua.simulator.dsl import latency
from interlingua.simulator.script import Script, echo, use_tools, within_limits
from interlingua.spec.errors import ConfigurationError

_SCRIPTS = {"tools": use_tools, "echo": echo}
BASES = (
    ("openai", "OPENAI_BASE_URL", "/v1"),
    ("anthropic", "ANTHROPIC_BASE_URL", ""),
    ("gemini", "GEMINI_BASE_URL", ""),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted."""
    options = _parser().parse_args(arguments)
    answer = within_limits(_SCRIPTS[options.script])
    pace = latency(first=options.first, between=options.between)
    key = os.environ.get(options.key_env) if options.key_env else None
    if options.key_env and not key:
        sys.stderr.write(f"{options.key_env} is not set; set it to the key clients must send\n")
        return 2
    models = options.model or None
    script = Script(lambda request: answer(request) + pace)
    app = Simulator(script, key=key, models=models, strict=options.strict)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_serve(app, options.host, options.port))
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"cannot listen on {options.host}:{options.port}: {error.strerror}\n")
        return 1
    return 0


async def _serve(app: Simulator, host: str, port: int) -> None:
    async with serve(app, host=host, port=port) as server:
        lines = [f"Simulating on {server.url} (simulated answers, no model)"]
        lines += [f"  {name:10} {variable}={server.url}{path}" for name, variable, path in BASES]
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m interlingua.simulator",
        description="Answer as OpenAI, Anthropic and Gemini would, without a model.",
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    add("--port", type=int, default=8899, help="port to listen on, 0 for a free one (%(default)s)")
    add("--script", choices=sorted(_SCRIPTS), default="tools", help="how to answer (%(default)s)")
    add("--model", action="append", help="know only this model; may be repeated")
    add("--strict", action="store_true", help="refuse bodies that the vendors would refuse")
    add("--key-env", metavar="NAME", help="require the key that this variable holds")
    add("--first", type=float, default=0.0, help="seconds before each reply")
    add("--between", type=float, default=0.0, help="seconds between the events of a stream")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
