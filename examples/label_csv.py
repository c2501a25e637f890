"""
Labels: each row of a CSV file gets a label, and is paid for once.

    python examples/label_csv.py

labels a few reviews; the model is scripted, so this needs no key. For a real model set its key in
the environment (such as `OPENAI_API_KEY`), and give a file with a column `review`:

    python examples/label_csv.py --model openai:gpt-5.2 --max-usd 5 reviews.csv labels.csv

The same command goes on after a crash, and pays only for what is left.
"""

import argparse
import csv
import tempfile
from collections import Counter
from pathlib import Path

from interlingua import Request, bulk
from interlingua.simulator import Turn, error, scripted, text

REVIEWS = """id,review
1,The best paint that I have used.
2,"It took three weeks, and the tin was open."
3,Is it safe for children?
4,It took three weeks; the tin was open!
5,The best paint that I have used.
"""
PROMPT = "Is this review praise, a complaint or a question? Answer with one word.\n\n{review}"


def label(request: Request) -> Turn:
    """The scripted model."""
    review = request.messages[-1].text.rpartition("\n")[2]
    if review.startswith("It took three weeks;"):
        return error(400, "It is not polite.")
    return text("question" if "?" in review else "praise" if "best" in review else "complaint")


def main(folder: Path) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("file", nargs="?", type=Path, help="a CSV file with a column `review`")
    parser.add_argument("output", nargs="?", type=Path, default=folder / "labels.csv")
    parser.add_argument("--model", help="a real model; without it, a scripted one answers")
    parser.add_argument("--max-usd", type=float, help="what the job may cost in all of its runs")
    arguments = parser.parse_args()
    reviews = arguments.file or folder / "reviews.csv"
    if arguments.file is None:
        reviews.write_text(REVIEWS, encoding="utf-8")

    report = bulk.sync.run(
        reviews,
        arguments.output,
        model=arguments.model or "openai:gpt-5.2",
        prompt=PROMPT,
        max_tokens=200,
        max_usd=arguments.max_usd,
        client=None if arguments.model else scripted(label),
    )
    with arguments.output.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for name, count in Counter(row["answer"] for row in rows if row["answer"]).most_common():
        print(f"{count:5} {name}")
    for row in rows:
        if row["status"] == "failed":
            print(f"{row['row_key']} has no label: {row['error']}")
    print(f"{report.done} of {report.rows} rows, ${report.cost:.4f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
