"""`interlingua image`: a picture from a prompt, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from interlingua.cli.files import check_writable, numbered, output_option, write_result
from interlingua.cli.output import Output, with_output
from interlingua.cli.prompts import loss_option


@click.command("image")
@click.argument("prompt", nargs=-1, required=True)
@click.option("-m", "--model", required=True, help="The model, such as `openai:gpt-image-1`.")
@click.option(
    "-a", "--attachment", "images", multiple=True, metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An image to change. Repeatable.",
)  # fmt: skip
@click.option(
    "--mask", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An image that is transparent where the first -a is to be changed.",
)  # fmt: skip
@click.option("-n", "--count", type=click.IntRange(min=1), help="How many images to make.")
@click.option("--size", help="The size in pixels, such as `1024x1024`.")
@click.option("--aspect-ratio", metavar="W:H", help="The shape, such as `16:9`.")
@click.option("--quality", help="Such as `low` or `high`; each model has its own values.")
@click.option("--background", help="`transparent`, `opaque` or `auto`.")
@click.option("--format", help="The format of the file, such as `png`, `jpeg` or `webp`.")
@loss_option
@output_option
@with_output
def command(
    out: Output,
    prompt: tuple[str, ...],
    *,
    model: str,
    images: tuple[Path, ...],
    mask: Path | None,
    output: Path,
    **settings: Any,
) -> None:
    r"""
    Make an image of PROMPT and write it to a file; with -a, change an image.

    With -n, the second and further files have a number in their names.

    \b
    interlingua image -m openai:gpt-image-1 -o fox.png "A fox in the snow"
    interlingua image -m openai:gpt-image-1 -a fox.png -o night.png "At night"
    """
    from interlingua.cli.clients import open_client
    from interlingua.cli.conversation import show_warnings
    from interlingua.sync import edit_image, generate_image

    if mask is not None and not images:
        raise click.UsageError("--mask needs -a.")
    check_writable(output)
    given: Any = {name: value for name, value in settings.items() if value is not None}
    text = " ".join(prompt)
    with open_client() as client, out.progress("Drawing"):
        given |= {"client": client, "download": True}
        if images:
            result = edit_image(model, text, images, mask=mask, **given)
        else:
            result = generate_image(model, text, **given)
    show_warnings(out, result.warnings)
    rows = []
    for number, item in enumerate(result.items):
        path = numbered(output, number)
        write_result(path, item.data)
        rows.append({"path": str(path), "width": item.width, "height": item.height})
    if out.json:
        out.data({"images": rows, "usage": result.usage, "cost": result.cost})
    else:
        out.line("\n".join(str(row["path"]) for row in rows))
