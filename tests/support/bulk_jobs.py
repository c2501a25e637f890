"""Bulk jobs on scripted clients."""

import asyncio
import json

from interlingua import bulk
from interlingua.simulator import scripted, text

MODEL = "openai:gpt-5.2"
PROMPT = "Genre of {title}?"


def answer(request):
    """The answer to any prompt: the prompt again."""
    return text(f"About: {request.messages[-1].text}")


class Bench:
    """A folder, a scripted client, and jobs on them."""

    def __init__(self, folder, *turns):
        self.folder = folder
        self.output = folder / "out.jsonl"
        self.client = scripted(*(turns or (answer,)))

    def write(self, rows, name="in.jsonl"):
        path = self.folder / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    def run(self, rows, **options):
        """Run a job to its end; returns the report."""
        return asyncio.run(self.start(rows, **options))

    def start(self, rows, **options):
        given = {"model": MODEL, "prompt": PROMPT, "client": self.client, "output": self.output}
        given |= options
        return bulk.run(rows, given.pop("output"), **given)

    def written(self, path=None):
        """The rows of an output in JSON lines."""
        lines = (path or self.output).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    @property
    def prompts(self):
        """What was sent, in its order."""
        return [request.messages[-1].text for request in self.client.requests]


def books(count):
    """Rows with an id and a title."""
    return [{"id": f"b{number}", "title": f"Book {number}"} for number in range(count)]
