"""`interlingua compare`: one prompt to several models, side by side."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from interlingua.cli.output import FAILED, Column, Output, is_terminal, printable, with_output

if TYPE_CHECKING:
    from interlingua.cli.progress import Progress

_COLUMNS = (
    Column("model", "model"),
    Column("seconds", "seconds", right=True),
    Column("input_tokens", "in", right=True),
    Column("output_tokens", "out", right=True),
    Column("cost", "$", right=True),
    Column("answer", "answer"),
)


@click.command("compare")
@click.argument("prompt", nargs=-1)
@click.option("-m", "--model", "models", multiple=True, required=True, help="A model; repeatable.")
@click.option("-s", "--system", help="The system prompt.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="The limit of each answer.")
@with_output
def command(
    out: Output,
    prompt: tuple[str, ...],
    models: tuple[str, ...],
    system: str | None,
    max_tokens: int | None,
) -> int:
    r"""
    Ask several models the same, at once, and print their answers side by side.

    The exit code is 1 if a model failed. Without PROMPT, stdin is read.

    \b
    interlingua compare -m openai:gpt-5.2 -m anthropic:claude-haiku-4-5 "Why is the sky blue?"
    """
    question = " ".join(prompt) or ("" if is_terminal(sys.stdin) else sys.stdin.read())
    if not question.strip():
        raise click.UsageError("there is no prompt")
    with out.progress("Asking", len(models)) as progress:
        rows = asyncio.run(_ask_all(question, models, system, max_tokens, progress))
    if is_terminal(sys.stdout) and not out.json:
        out.table(_COLUMNS, rows)
    elif out.json:
        out.data(rows)
    else:
        _print_plain(out, rows)
    return FAILED if any(row["error"] for row in rows) else 0


def _print_plain(out: Output, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        cost = "unknown" if row["cost"] is None else f"{row['cost']:.6f}"
        counts = f"{row['input_tokens']} in, {row['output_tokens']} out"
        out.line(f"## {row['model']} ({row['seconds']:.2f} s, {counts}, $ {cost})")
        out.line(printable(row["answer"]) + "\n")


async def _ask_all(
    prompt: str,
    models: tuple[str, ...],
    system: str | None,
    max_tokens: int | None,
    progress: Progress,
) -> list[dict[str, Any]]:
    from interlingua import Client
    from interlingua.cli.clients import environment

    async with Client.from_env(environment()) as client:

        async def ask(model: str) -> dict[str, Any]:
            row = await _ask(client, model, prompt, system, max_tokens)
            progress.step()
            return row

        return await asyncio.gather(*map(ask, models))


async def _ask(
    client: Any, model: str, prompt: str, system: str | None, max_tokens: int | None
) -> dict[str, Any]:
    from interlingua import generate
    from interlingua.errors import SDKError

    row: dict[str, Any] = {"model": model, "answer": "", "error": None, "cost": None}
    row |= {"input_tokens": None, "output_tokens": None}
    given = {"system": system, "max_tokens": max_tokens}
    options: Any = {name: value for name, value in given.items() if value is not None}
    began = time.perf_counter()
    try:
        result = await generate(model, prompt, client=client, **options)
    except SDKError as error:
        row |= {"answer": f"error: {error}", "error": type(error).__name__}
    else:
        usage, cost = result.total_usage, result.total_cost
        row |= {"answer": result.text, "cost": None if cost is None else cost.total}
        row |= {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return {**row, "seconds": round(time.perf_counter() - began, 3)}
