"""`interlingua transcribe`: the text of an audio file."""

from __future__ import annotations

from pathlib import Path

import click

from interlingua.cli.output import Output, printable, with_output


@click.command("transcribe")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-m", "--model", required=True, help="Such as `openai:gpt-4o-transcribe`.")
@click.option("--language", help="The language of the audio, such as `en`.")
@with_output
def command(out: Output, file: Path, *, model: str, language: str | None) -> None:
    r"""
    Print the text of an audio FILE.

    \b
    interlingua transcribe -m openai:gpt-4o-transcribe meeting.mp3
    """
    from interlingua.cli.clients import open_client
    from interlingua.sync import transcribe

    with open_client() as client, out.progress("Transcribing"):
        result = transcribe(model, file, language=language, client=client)
    if out.json:
        out.data({"text": result.text, "usage": result.usage, "cost": result.cost})
    else:
        out.line(printable(result.text))
