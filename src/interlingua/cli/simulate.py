"""`interlingua simulate`: the simulator of all vendors' APIs, until it is interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

import click

from interlingua.cli.output import Output, with_output

if TYPE_CHECKING:
    from interlingua.simulator import Simulator


@click.command("simulate")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8899, show_default=True, help="The port; 0 for a free one.")
@click.option(
    "--script",
    type=click.Choice(["tools", "echo"]),
    default="tools",
    show_default=True,
    help="How to answer: call the tools of the request first, or repeat the question.",
)
@click.option("-m", "--model", "models", multiple=True, help="Know only this model; repeatable.")
@click.option("--strict", is_flag=True, help="Refuse bodies that the vendors would refuse.")
@click.option("--key-env", metavar="NAME", help="Require the key that this variable holds.")
@click.option("--first", default=0.0, help="Seconds before each reply.")
@click.option("--between", default=0.0, help="Seconds between the events of a stream.")
@with_output
def command(
    out: Output,
    *,
    host: str,
    port: int,
    script: str,
    models: tuple[str, ...],
    strict: bool,
    key_env: str | None,
    first: float,
    between: float,
) -> None:
    r"""
    Answer as OpenAI, Anthropic and Gemini would, without a model, until Ctrl-C.

    \b
    interlingua simulate --port 8899 &
    OPENAI_API_KEY=x OPENAI_BASE_URL=http://127.0.0.1:8899/v1 python my_program.py
    """
    from interlingua.simulator import Script, Simulator, echo, latency, use_tools, within_limits

    key = os.environ.get(key_env) if key_env else None
    if key_env and not key:
        raise click.UsageError(f"{key_env} is not set. Set it to the key that clients must send.")
    answer = within_limits(echo if script == "echo" else use_tools)
    pace = latency(first=first, between=between)
    rules = Script(lambda request: answer(request) + pace)
    app = Simulator(rules, key=key, models=models or None, strict=strict)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(out, app, host, port))


async def _serve(out: Output, app: Simulator, host: str, port: int) -> None:
    from interlingua.simulator import serve
    from interlingua.simulator.__main__ import BASES

    async with serve(app, host=host, port=port) as server:
        bases = {variable: f"{server.url}{path}" for _, variable, path in BASES}
        if out.json:
            out.data({"url": server.url, "variables": bases})
        else:
            out.line(f"Simulating on {server.url} (simulated answers, no model). Ctrl-C ends it.")
            for variable, base in bases.items():
                out.line(f"  {variable}={base}")
        await asyncio.Event().wait()
