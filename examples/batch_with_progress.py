"""
A batch of 1,000 requests at half the price, with progress; it can be taken up after a break.

    python examples/batch_with_progress.py

needs no key: the batch runs on a simulated provider. For a real one set its key in the environment
(such as `OPENAI_API_KEY`). The batch is named when it was sent, so that this program may end:

    python examples/batch_with_progress.py --model openai:gpt-5.2 --count 100
    python examples/batch_with_progress.py --model openai:gpt-5.2 --resume openai:batch_68f1
"""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator

from interlingua import Request, batch, get_default_client
from interlingua.simulator import Turn, error, scripted, text


def answer(request: Request) -> Turn:
    """The scripted model."""
    number = int(request.messages[-1].text.split()[1])
    return error(400, "That is no number.") if number == 13 else text(str(number % 2 == 0))


def questions(count: int) -> Iterator[dict[str, object]]:
    """Read one at a time, as from a file or a database."""
    for number in range(count):
        yield {"id": f"row-{number}", "prompt": f"Is {number} even?", "max_tokens": 10}


def show(job: batch.Batch) -> None:
    counts = job.counts  # what a provider does not report is None
    failed = counts.failed or 0
    done = (counts.succeeded or 0) + failed
    line = f"{job.state}: {done} of {counts.total or '?'} ({failed} failed)"
    print(line, file=sys.stderr)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--model", help="a real model; without it, a simulated one answers")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--resume", metavar="REFERENCE", help="a batch that was sent before")
    arguments = parser.parse_args()
    client = get_default_client() if arguments.model else scripted(answer)
    model = arguments.model or "openai:gpt-5.2"

    reference = arguments.resume
    if reference is None:
        job = await batch.submit(questions(arguments.count), model, client=client)
        reference = job.reference
        print(f"sent; to take it up later: --resume {reference}", file=sys.stderr)
    interval = 10.0 if arguments.model else 0.05
    job = await batch.wait(reference, poll_interval=interval, on_progress=show, client=client)

    answers: Counter[str] = Counter()
    cost = 0.0
    async with batch.results(job, client=client) as items:
        async for item in items:  # in any order: `item.id` says whose it is
            answers[type(item.error).__name__ if item.error else item.unwrap().text] += 1
            if item.response is not None and item.response.cost is not None:
                cost += item.response.cost.total
    for text_, number in answers.most_common():
        print(f"{number:5} {text_}")
    print(f"cost: ${cost:.4f}")


if __name__ == "__main__":
    asyncio.run(main())
