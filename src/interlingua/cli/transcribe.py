"""`interlingua transcribe`: the text of an audio file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from interlingua.cli.output import Output, printable, with_output
from interlingua.cli.prompts import loss_option


@click.command("transcribe")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-m", "--model", required=True, help="The model, such as `openai:gpt-4o-transcribe`.")
@click.option("--language", help="The language of the audio, such as `en`.")
@click.option("--prompt", help="Names and words that appear in the audio.")
@click.option("--speakers", is_flag=True, help="Say who speaks.")
@click.option("--translate", is_flag=True, help="Print the text in English.")
@click.option(
    "--subtitles", type=click.Choice(["srt", "vtt"]), help="Print subtitles with their times."
)
@loss_option
@with_output
def command(out: Output, file: Path, *, model: str, subtitles: str | None, **settings: Any) -> None:
    r"""
    Print the text of an audio FILE.

    With --json, times and speakers are printed too, as far as the model gives them.

    \b
    interlingua transcribe -m openai:gpt-4o-transcribe meeting.mp3
    interlingua transcribe -m openai:whisper-1 --subtitles srt talk.mp3 > talk.srt
    """
    from interlingua.cli.clients import open_client
    from interlingua.cli.conversation import show_warnings
    from interlingua.sync import transcribe

    if subtitles:
        settings["timestamps"] = "segment"
    with open_client() as client, out.progress("Transcribing"):
        result = transcribe(model, file, client=client, **settings)
    show_warnings(out, result.warnings)
    if out.json:
        out.data(
            {
                "text": result.text,
                "language": result.language,
                "seconds": result.seconds,
                "segments": result.segments,
                "words": result.words,
                "usage": result.usage,
                "cost": result.cost,
            }
        )
    elif subtitles:
        text = result.to_srt() if subtitles == "srt" else result.to_vtt()
        out.line(printable(text).rstrip("\n"))
    elif settings["speakers"] and result.segments:
        for segment in result.segments:
            out.line(printable(f"{segment.speaker or '?'}: {segment.text.strip()}"))
    else:
        out.line(printable(result.text))
