"""`interlingua speak`: a text as an audio file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from interlingua.cli.output import Output, with_output


@click.command("speak")
@click.argument("text", nargs=-1)
@click.option("-m", "--model", required=True, help="Such as `openai:gpt-4o-mini-tts`.")
@click.option("-v", "--voice", help="The name of the voice.")
@click.option("--instructions", help="How to speak.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write.",
)
@with_output
def command(
    out: Output,
    text: tuple[str, ...],
    *,
    model: str,
    voice: str | None,
    instructions: str | None,
    output: Path,
) -> None:
    r"""
    Speak TEXT, or stdin, and write the audio to a file.

    \b
    interlingua speak -m openai:gpt-4o-mini-tts -o hello.mp3 "Hello there"
    """
    from interlingua.cli.clients import open_client
    from interlingua.sync import speak

    spoken = " ".join(text) or sys.stdin.read()
    with open_client() as client, out.progress("Speaking"):
        result = speak(model, spoken, voice=voice, instructions=instructions, client=client)
    output.write_bytes(result.data)
    row = {"path": str(output), "media_type": result.media_type, "bytes": len(result.data)}
    if out.json:
        out.data({**row, "usage": result.usage, "cost": result.cost})
    else:
        out.line(str(output))
