"""
A voice round trip: a recording is transcribed, a model answers, and the answer is spoken.

    python examples/voice_round_trip.py

needs no key: the models are simulated, and the question is a sound that they make first. With
`OPENAI_API_KEY` in the environment, real models hear and speak:

    python examples/voice_round_trip.py --real question.wav --output answer.wav
"""

import argparse
import asyncio
import tempfile
from pathlib import Path

from interlingua import generate, get_default_client, speak, transcribe
from interlingua.simulator import echo, scripted

HEARS, THINKS, SPEAKS = "openai:whisper-1", "openai:gpt-5.2", "openai:tts-1"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("recording", nargs="?", type=Path, help="a sound file with a question")
    parser.add_argument("--real", action="store_true", help="use real models")
    parser.add_argument("--output", type=Path, help="where the spoken answer is written")
    arguments = parser.parse_args()

    client = get_default_client() if arguments.real else scripted(echo)
    folder = Path(tempfile.mkdtemp())
    question = arguments.recording
    if question is None:
        question = folder / "question.wav"
        await speak(SPEAKS, "What is a fjord?", format="wav", output_path=question, client=client)

    transcript = await transcribe(HEARS, question, client=client)
    print(f"heard: {transcript.text}")
    result = await generate(
        THINKS, transcript.text, system="Answer in one spoken sentence.", client=client
    )
    print(f"answered: {result.text}")
    answer = arguments.output or folder / "answer.wav"
    await speak(SPEAKS, result.text, format="wav", output_path=answer, client=client)
    print(f"spoke: {answer} ({answer.stat().st_size} bytes)")


if __name__ == "__main__":
    asyncio.run(main())
