"""
Another provider answers while the first is down, and the spending ends at a limit.

    python examples/fallback_with_budget.py

needs no key: the first scripted model is overloaded, and the second one answers until the budget
is spent. For real models set their keys in the environment (such as `ANTHROPIC_API_KEY`):

    python examples/fallback_with_budget.py --model anthropic:claude-haiku-4-5 --then openai:gpt-5.2
"""

import argparse
import asyncio

from interlingua import generate, get_default_client
from interlingua.errors import BudgetExceededError
from interlingua.middleware import Budget, Fallback
from interlingua.simulator import by_model, error, scripted, text, usage

FIRST, SECOND = "anthropic:claude-haiku-4-5", "openai:gpt-5.2"
SCRIPT = by_model(
    {
        "claude-haiku-4-5": error(529, "Overloaded."),
        "gpt-5.2": text("Oslo.") + usage(input_tokens=2000, output_tokens=100),
    }
)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--model", help="a real model; without it, scripted ones answer")
    parser.add_argument("--then", default=SECOND, help="the model to ask if the first one fails")
    parser.add_argument("--dollars", type=float, default=0.03, help="the budget of this program")
    arguments = parser.parse_args()

    client = get_default_client() if arguments.model else scripted(SCRIPT)
    client = client.with_middleware(
        Budget(usd=arguments.dollars, key="this program"), Fallback(arguments.then)
    )
    model = arguments.model or FIRST
    for number in range(1, 100):
        try:
            result = await generate(
                model,
                f"Question {number}: what is the capital of Norway?",
                client=client,
                max_retries=0,
                max_tokens=1000,
            )
        except BudgetExceededError as refused:  # raised before the request is sent
            print(f"stopped: {refused}")
            break
        cost = result.cost.total if result.cost else 0.0
        print(f"{number}: {result.text} ({result.response.provider}, ${cost:.4f})")
        for attempt in result.response.attempts:
            print(f"   {attempt.provider}:{attempt.model} {attempt.error_class or 'answered'}")


if __name__ == "__main__":
    asyncio.run(main())
