"""What the runs of clients found: one line of JSON for each client, upstream and feature."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypedDict

UPSTREAMS = ("Chat", "Responses", "Messages", "Gemini")
"""The APIs of the models behind the gateways."""

KINDS = ("pass", "fail", "not applicable")


class Result(TypedDict):
    """One thing that a client does, with one upstream."""

    client: str
    version: str
    upstream: str
    feature: str
    result: str
    """One of `KINDS`."""
    note: str


def append(path: Path, results: Iterable[Result]) -> None:
    """Add results to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in results)


def read(path: Path) -> list[Result]:
    """The results in a file; none if there is no file."""
    return parse(path.read_text("utf-8").splitlines()) if path.exists() else []


def parse(lines: Iterable[str]) -> list[Result]:
    """The results among lines of output."""
    return [json.loads(line) for line in lines if line.startswith('{"client"')]


def packed(results: Iterable[Result]) -> list[dict[str, Any]]:
    """The results by client and feature, for the file from which the documentation is made."""
    clients: dict[tuple[str, str], dict[str, dict[str, list[str]]]] = {}
    for each in results:
        features = clients.setdefault((each["client"], each["version"]), {})
        outcomes = features.setdefault(each["feature"], {})
        outcome = f"{each['result']}: {each['note']}" if each["note"] else each["result"]
        outcomes.setdefault(outcome, []).append(each["upstream"])
    return [
        {"client": client, "version": version, "features": features}
        for (client, version), features in clients.items()
    ]
