"""`interlingua speak`: a text as an audio file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from interlingua.cli.files import check_writable, output_option, write_result
from interlingua.cli.output import Output, with_output
from interlingua.cli.prompts import loss_option


@click.command("speak")
@click.argument("text", nargs=-1)
@click.option("-m", "--model", required=True, help="The model, such as `openai:gpt-4o-mini-tts`.")
@click.option("-v", "--voice", help="The name of the voice.")
@click.option("--instructions", help="How to speak.")
@click.option(
    "--format", help="The format, such as `mp3` or `wav`; by default, the ending of the file."
)
@click.option("--speed", type=float, help="1 is normal, 2 is twice as fast.")
@loss_option
@output_option
@with_output
def command(
    out: Output, text: tuple[str, ...], *, model: str, output: Path, **settings: Any
) -> None:
    r"""
    Speak TEXT, or stdin, and write the audio to a file.

    \b
    interlingua speak -m openai:gpt-4o-mini-tts -v alloy -o hello.mp3 "Hello there"
    """
    from interlingua.cli.clients import open_client
    from interlingua.cli.conversation import show_warnings
    from interlingua.cli.prompts import read_stdin
    from interlingua.sync import speak

    check_writable(output)
    spoken = " ".join(text) or read_stdin().strip()
    if not spoken:
        raise click.UsageError("There is no text.")
    settings["format"] = settings["format"] or _format_of(output)
    with open_client() as client, out.progress("Speaking"):
        result = speak(model, spoken, client=client, **settings)
    show_warnings(out, result.warnings)
    write_result(output, result.data)
    row = {"path": str(output), "media_type": result.media_type, "bytes": len(result.data)}
    if out.json:
        out.data({**row, "usage": result.usage, "cost": result.cost})
    else:
        out.line(str(output))


def _format_of(path: Path) -> str | None:
    """The format that the name of the file asks for, if it does."""
    from interlingua.spec.modalities.speech import AUDIO_TYPES

    ending = path.suffix.removeprefix(".").lower()
    return ending if ending in AUDIO_TYPES else None
