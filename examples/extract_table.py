"""
Extraction: free texts become rows of a table, checked against a schema.

    python examples/extract_table.py

prints CSV; the model is scripted, so this needs no key. For a real model set its key in the
environment (such as `OPENAI_API_KEY`), and give a file with one text per line:

    python examples/extract_table.py --model openai:gpt-5.2 letters.txt > invoices.csv
"""

import argparse
import asyncio
import csv
import sys
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from interlingua import Request, generate_many, get_default_client
from interlingua.simulator import scripted

TEXTS = (
    "Invoice 17 of 3 March 2026: Nordlys AS owes us 1200.50 euros for paint.",
    "Please pay $80 for the repair by Hansen & Sons (no. 18, 5 March 2026).",
    "The weather was fine, thank you.",
)


@dataclass
class Invoice:
    """An invoice in a letter."""

    number: int
    customer: str
    day: Annotated[date, "The day of the invoice, as YYYY-MM-DD."]
    amount: float
    currency: Literal["EUR", "USD"]


def read(request: Request) -> str:
    """The scripted model."""
    if "Nordlys" in request.messages[-1].text:
        answer = '"number": 17, "customer": "Nordlys AS", "day": "2026-03-03", "amount": 1200.5'
        return f'{{{answer}, "currency": "EUR"}}'
    if "Hansen" in request.messages[-1].text:
        answer = '"number": 18, "customer": "Hansen & Sons", "day": "2026-03-05", "amount": 80'
        return f'{{{answer}, "currency": "USD"}}'
    return "There is no invoice in this letter."


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("file", nargs="?", type=Path, help="one text per line")
    parser.add_argument("--model", help="a real model; without it, a scripted one answers")
    arguments = parser.parse_args()
    texts = TEXTS if arguments.file is None else arguments.file.read_text("utf-8").splitlines()
    client = get_default_client() if arguments.model else scripted(read)

    items = await generate_many(
        texts,
        arguments.model or "scripted:reader",
        schema=Invoice,
        concurrency=8,
        max_validation_retries=1,  # the model is told once what is wrong
        client=client,
    )
    table = csv.DictWriter(sys.stdout, [field.name for field in fields(Invoice)])
    table.writeheader()
    for item in items:
        if item.error is None:
            table.writerow(asdict(item.unwrap().output))
        else:  # a row that is not certain is left out, and said
            print(f"no row for {item.item!r}: {item.error}", file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main())
