"""The tables of docs/clients.md, from what `scripts/test-clients --save` has found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

from docs_build import pages

PAGE = pages.DOCS / "clients.md"
RESULTS = pages.ROOT / "tests" / "clients" / "results.json"
UPSTREAMS = 4
MOST = 4  # clients that a note lists

Outcomes: TypeAlias = dict[str, list[str]]
"""`pass`, `fail: why` or `not applicable: why`, and the upstreams with which that was found."""


def texts() -> dict[Path, str]:
    """The page with the tables of the saved results."""
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {PAGE: pages.fill(PAGE, lambda group: table(found.get(group, [])))}


def table(clients: list[dict[str, Any]]) -> str:
    """A column for each client, a row for each feature; then the notes."""
    if not clients:
        return "They have not been run for this page."
    heads = [f"{client['client']} {client['version']}" for client in clients]
    features = dict.fromkeys(name for client in clients for name in client["features"])
    lines = [f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for feature in features:
        cells = [_cell(client["features"].get(feature, {})) for client in clients]
        lines.append(f"| {feature} | {' | '.join(cells)} |")
    return "\n".join([*lines, *_notes(clients)])


def _cell(outcomes: Outcomes) -> str:
    """With which upstreams it works; what a pass counted, such as tests, is said."""
    by_kind: dict[str, list[str]] = {}
    counts: list[str] = []
    for outcome, upstreams in outcomes.items():
        kind, _, note = outcome.partition(": ")
        by_kind.setdefault(kind, []).extend(upstreams)
        counts += [note] if kind == "pass" and note else []
    if failed := by_kind.get("fail"):
        return f"**fails**: {', '.join(failed)}"
    if "pass" not in by_kind:
        return ""
    works, others = by_kind["pass"], by_kind.get("not applicable", [])
    if not counts and len(works) + len(others) < UPSTREAMS:  # the others were not tried
        return f"with {_and(works)}"
    return f"{'; '.join(counts) or 'yes'}{f', not {_and(others)}' if others else ''}"


def _and(names: list[str]) -> str:
    return " and ".join(names)


def _notes(clients: list[dict[str, Any]]) -> list[str]:
    """Why something is not applicable, and how something fails."""
    places: dict[tuple[str, str], list[str]] = {}
    for client in clients:
        for feature, outcomes in client["features"].items():
            for outcome, upstreams in outcomes.items():
                kind, _, note = outcome.partition(": ")
                if kind == "pass" or not note:
                    continue
                where = "" if len(upstreams) == UPSTREAMS else f" with {_and(upstreams)}"
                found = places.setdefault((f"{feature}{where}", note), [])
                found.append(client["client"])
    return ["", *(_note(*key, names) for key, names in places.items())] if places else []


def _note(what: str, why: str, clients: list[str]) -> str:
    who = "" if len(clients) > MOST else f" ({', '.join(clients)})"
    return f"- {what}{who}: {why}."
