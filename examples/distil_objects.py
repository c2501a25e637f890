"""
Distillation: a large model writes questions and answers about texts, to train a small one.

    python examples/distil_objects.py

prints a table that was written as Parquet (`pip install pyarrow`); the model is scripted, so this
needs no key. For a real model set its key in the environment (such as `OPENAI_API_KEY`), and give a
folder with texts:

    python examples/distil_objects.py --model openai:gpt-5.2 texts pairs.parquet
"""

import argparse
import asyncio
import json
import tempfile
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

from pyarrow import parquet

from interlingua import Request, bulk
from interlingua.simulator import Turn, scripted, text

TEXTS = {
    "owls.txt": "Owls hunt at night. They hear a mouse under snow.",
    "bees.txt": "A bee visits fifty flowers on one flight.",
}
NUMBERS = count(1)


@dataclass
class Pair:
    """A question about a text, and its answer."""

    question: str
    answer: Annotated[str, "What the text says, in one sentence."]
    difficulty: Literal["easy", "hard"]


def teach(request: Request) -> Turn:
    """The scripted model."""
    number, asked = next(NUMBERS), request.messages[-1].text
    subject = "owls" if "Owls" in asked else "bees"
    level = "hard" if number % 2 else "easy"
    return text(json.dumps({"question": f"What do {subject} do?", "answer": "See the text.",
                            "difficulty": level if number < 4 else "absurd"}))  # fmt: skip


async def main(folder: Path) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("texts", nargs="?", type=Path, help="a folder with texts")
    parser.add_argument("output", nargs="?", type=Path, default=folder / "pairs.parquet")
    parser.add_argument("--model", help="a real model; without it, a scripted one answers")
    arguments = parser.parse_args()
    texts = arguments.texts or folder / "texts"
    if arguments.texts is None:
        texts.mkdir()
        for name, content in TEXTS.items():
            (texts / name).write_text(content, encoding="utf-8")

    report = await bulk.run(
        texts,
        arguments.output,
        model=arguments.model or "openai:gpt-5.2",
        prompt="Write a question that this text answers, and the answer.\n\n{text}",
        schema=Pair,
        samples=2,  # independent answers to each text
        concurrency=8 if arguments.model else 1,
        attempts=1,
        client=None if arguments.model else scripted(teach),
    )
    table: Any = parquet.read_table(arguments.output)
    for row in table.select(["file", "status", "object", "error"]).to_pylist():
        if row["status"] == "done":
            pair = Pair(**json.loads(row["object"]))
            print(f"{row['file']} ({pair.difficulty}): {pair.question} {pair.answer}")
        else:
            print(f"{row['file']} failed: {row['error']}")
    print(f"{report.done} of {report.rows} pairs, ${report.cost:.4f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(main(Path(place)))
