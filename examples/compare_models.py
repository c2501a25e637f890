"""
Compare models: one question to several at once, with time, tokens and cost.

    python examples/compare_models.py

asks three scripted models, so it needs no key; nor does the model on this machine (extra `local`).
For others set their keys in the environment (such as `OPENAI_API_KEY`):

    python examples/compare_models.py -m local:smollm2 -m openai:gpt-5.2 "Why is snow white?"
"""

import argparse
import asyncio
import time

from interlingua import Client, SDKError, generate, get_default_client
from interlingua.simulator import by_model, latency, scripted, text

SCRIPTED = ("openai:gpt-5.2", "anthropic:claude-haiku-4-5", "gemini:gemini-2.5-flash")
SCRIPT = by_model(
    {
        "gpt-5.2": text("Its crystals scatter all colours alike.") + latency(first=0.1),
        "claude-haiku-4-5": text("Because it reflects every wavelength.") + latency(first=0.05),
        "gemini-2.5-flash": text("All light is scattered.") + latency(first=0.02),
    }
)


async def ask(model: str, question: str, client: Client) -> str:
    """A row of the table."""
    began = time.perf_counter()
    try:
        result = await generate(model, question, client=client, max_tokens=60)
    except SDKError as error:
        return f"{model:28} {type(error).__name__}: {error.message}"
    seconds = time.perf_counter() - began
    cost = f"${result.cost.total:.5f}" if result.cost else "unknown"
    tokens = result.usage.output_tokens
    return (
        f"{model:28} {seconds:6.2f} s {tokens:5} tokens {cost:>9}  {' '.join(result.text.split())}"
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("question", nargs="?", default="Why is snow white?")
    parser.add_argument("-m", "--model", action="append", help="a real model; may be repeated")
    arguments = parser.parse_args()
    client = get_default_client() if arguments.model else scripted(SCRIPT)
    rows = [ask(model, arguments.question, client) for model in arguments.model or SCRIPTED]
    for row in asyncio.as_completed(rows):  # the fastest first
        print(await row)


if __name__ == "__main__":
    asyncio.run(main())
