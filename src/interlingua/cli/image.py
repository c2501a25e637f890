"""`interlingua image`: a picture from a prompt, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from interlingua.cli.output import Output, with_output


@click.command("image")
@click.argument("prompt", nargs=-1, required=True)
@click.option("-m", "--model", required=True, help="Such as `openai:gpt-image-1`.")
@click.option("-n", "--count", type=click.IntRange(min=1), help="How many images to make.")
@click.option("--size", help="Such as `1024x1024`.")
@click.option("--quality", help="Such as `low` or `high`; the model decides what there is.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; with several images, a number is added to its name.",
)
@with_output
def command(
    out: Output, prompt: tuple[str, ...], *, model: str, output: Path, **settings: Any
) -> None:
    r"""
    Make an image of PROMPT and write it to a file.

    \b
    interlingua image -m openai:gpt-image-1 -o fox.png "A fox in the snow"
    """
    from interlingua.cli.clients import open_client
    from interlingua.sync import generate_image

    given = {name: value for name, value in settings.items() if value is not None}
    with open_client() as client, out.progress("Drawing"):
        result = generate_image(model, " ".join(prompt), download=True, client=client, **given)
    files = [_path(output, number) for number in range(len(result.items))]
    for item, path in zip(result.items, files, strict=True):
        path.write_bytes(item.data)
    rows = [
        {"path": str(path), "width": item.width, "height": item.height}
        for item, path in zip(result.items, files, strict=True)
    ]
    if out.json:
        out.data({"images": rows, "usage": result.usage, "cost": result.cost})
    else:
        out.line("\n".join(map(str, files)))


def _path(output: Path, number: int) -> Path:
    return output.with_stem(f"{output.stem}-{number + 1}") if number else output
