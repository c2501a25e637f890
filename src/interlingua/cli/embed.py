"""`interlingua embed`: vectors of texts and images."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlingua.cli.output import Output, is_terminal, read_text, with_output
from interlingua.cli.prompts import loss_option

if TYPE_CHECKING:
    from array import array

    from interlingua.media import EmbedProgress

_BLOB = "blob"


def _as_json(vector: array[float]) -> str:
    from interlingua.wire.json_text import dump_text

    return dump_text(list(vector))


def _as_base64(vector: array[float]) -> str:
    import base64

    return base64.b64encode(_as_bytes(vector)).decode()


def _as_bytes(vector: array[float]) -> bytes:
    """The numbers with four bytes each, the lowest first on every machine."""
    from array import array

    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


_FORMS: dict[str, Callable[[array[float]], str]] = {
    "json": _as_json, "base64": _as_base64, "hex": lambda vector: _as_bytes(vector).hex(),
}  # fmt: skip


@click.command("embed")
@click.argument("texts", nargs=-1)
@click.option(
    "-m", "--model",
    help="The model, such as `openai:text-embedding-3-small`; `default --embedding` sets one.",
)  # fmt: skip
@click.option("-i", "--input", "files", multiple=True, metavar="FILE|-", help="A file as one text.")
@click.option(
    "-a", "--attachment", multiple=True, metavar="FILE|URL",
    help="An image, for models that embed images. Repeatable.",
)  # fmt: skip
@click.option("-d", "--dimensions", type=click.IntRange(min=1), help="The length of each vector.")
@click.option("--task", help="What the vectors are for, such as `query` or `document`.")
@click.option(
    "-f", "--format", "form", type=click.Choice([*_FORMS, _BLOB]), default="json",
    help="How a vector is written: json, or four bytes a number as base64, hex or blob.",
)  # fmt: skip
@loss_option
@with_output
def command(out: Output, model: str | None, *, form: str, **options: Any) -> None:
    r"""
    Print a vector for each of TEXTS, for each file of -i and for each image of -a, one on a line.

    Without any of them, each line of stdin is a text. With --json, usage and cost are printed too.

    \b
    interlingua embed -m openai:text-embedding-3-small "A red bicycle"
    interlingua embed -m openai:text-embedding-3-small < lines.txt > vectors.jsonl
    interlingua embed -m gemini:gemini-embedding-2 -a photo.jpg -f base64
    """
    from interlingua.cli.clients import embedding_model, open_client
    from interlingua.cli.conversation import show_warnings
    from interlingua.sync import embed_many

    if form == _BLOB and is_terminal(sys.stdout):
        raise click.UsageError("A blob is not text. Write it to a file: > vector.bin")
    given = _contents(**{name: options.pop(name) for name in ("texts", "files", "attachment")})
    chosen = model or embedding_model()
    with open_client() as client, out.progress("Embedding", len(given)) as progress:

        def show(state: EmbedProgress) -> None:
            progress(state.done)

        result = embed_many(chosen, given, client=client, on_progress=show, **options)
    show_warnings(out, result.warnings)
    if out.json:
        vectors = [list(vector) for vector in result.embeddings]
        out.data({"embeddings": vectors, "usage": result.usage, "cost": result.cost})
    elif form == _BLOB:
        sys.stdout.buffer.write(b"".join(map(_as_bytes, result.embeddings)))
    else:
        out.line("\n".join(map(_FORMS[form], result.embeddings)))


def _contents(texts: Sequence[str], files: Sequence[str], attachment: Sequence[str]) -> list[Any]:
    """What is embedded: texts, files, images, or the lines of stdin."""
    from interlingua.cli.prompts import read_attachment, read_stdin

    given: list[Any] = [*texts]
    given += [read_stdin() if name == "-" else read_text(Path(name), "-i") for name in files]
    given += [read_attachment(name) for name in attachment]
    if not given:
        given = [line.strip() for line in read_stdin().splitlines() if line.strip()]
    if not given:
        raise click.UsageError("There is no text.")
    return given
