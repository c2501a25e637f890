"""`interlingua embed`: vectors of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from interlingua.cli.output import Output, with_output

if TYPE_CHECKING:
    from interlingua.media import EmbedProgress


@click.command("embed")
@click.argument("texts", nargs=-1)
@click.option(
    "-m", "--model", required=True, help="The model, such as `openai:text-embedding-3-small`."
)
@click.option("-d", "--dimensions", type=click.IntRange(min=1), help="The length of each vector.")
@click.option("--task", help="What the vectors are for, such as `query` or `document`.")
@with_output
def command(out: Output, texts: tuple[str, ...], model: str, **settings: Any) -> None:
    r"""
    Print a vector for each of TEXTS, one JSON array on each line.

    Without TEXTS, each line of stdin is one. With --json, usage and cost are printed too.

    \b
    interlingua embed -m openai:text-embedding-3-small "A red bicycle"
    interlingua embed -m openai:text-embedding-3-small < lines.txt > vectors.jsonl
    """
    from interlingua.cli.clients import open_client
    from interlingua.cli.conversation import show_warnings
    from interlingua.cli.prompts import read_stdin
    from interlingua.sync import embed_many
    from interlingua.wire.json_text import dump_text

    given = texts or tuple(line.strip() for line in read_stdin().splitlines() if line.strip())
    if not given:
        raise click.UsageError("There is no text.")
    with open_client() as client, out.progress("Embedding", len(given)) as progress:

        def show(state: EmbedProgress) -> None:
            progress(state.done)

        result = embed_many(model, given, client=client, on_progress=show, **settings)
    show_warnings(out, result.warnings)
    vectors = [list(vector) for vector in result.embeddings]
    if out.json:
        out.data({"embeddings": vectors, "usage": result.usage, "cost": result.cost})
    else:
        out.line("\n".join(map(dump_text, vectors)))
