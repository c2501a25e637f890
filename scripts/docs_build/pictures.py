"""Pictures: the rooms, a swap with what is repaired, and budget reservations over time."""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from docs_build import pages
from interlingua import Client, HttpAdapter, Message, Request, sync, tool
from interlingua.simulator import scripted, thinking, tool_call

ARCHITECTURE = pages.DOCS / "explanation" / "architecture.svg"
SWAP = pages.DOCS / "howto" / "swap.svg"
BUDGET = pages.DOCS / "howto" / "budget.svg"

FRAME = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>{title}</title>
<style>
text {{ font: 14px system-ui, sans-serif; fill: #1f2937 }}
.head {{ font-weight: bold }}
.code {{ font: 13px ui-monospace, monospace }}
.faint {{ fill: #6b7280 }}
.ground {{ fill: #ffffff; stroke: none }}
rect {{ stroke: #9ca3af }}
.a {{ fill: #dbeafe }} .b {{ fill: #dcfce7 }} .c {{ fill: #ede9fe }} .d {{ fill: #fde2e2 }}
path {{ stroke: #6b7280; fill: none }}
.limit {{ stroke: #b91c1c; stroke-dasharray: 6 4 }}
.bad {{ fill: #b91c1c }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #e5e7eb }}
.faint {{ fill: #9ca3af }}
.ground {{ fill: #0e1013 }}
rect {{ stroke: #6b7280 }}
.a {{ fill: #1e3a5f }} .b {{ fill: #14432a }} .c {{ fill: #372a63 }} .d {{ fill: #4f2325 }}
path {{ stroke: #9ca3af }}
.limit {{ stroke: #f87171 }}
.bad {{ fill: #f87171 }}
}}
</style>
<rect class="ground" width="{width}" height="{height}"/>
{body}
</svg>
"""


def texts() -> dict[Path, str]:
    """The pictures."""
    return {ARCHITECTURE: architecture(), SWAP: swap(), BUDGET: budget()}


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(words)}</text>'


def _box(x: float, y: float, width: float, height: float, kind: str) -> str:
    size = f'width="{width:g}" height="{height:g}"'
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" {size} rx="4"/>'


def _line(points: list[tuple[float, float]], kind: str = "") -> str:
    return f'<path class="{kind}" d="M{" L".join(f"{x:g} {y:g}" for x, y in points)}"/>'


# The rooms, from the contract that a test checks.

BANDS = (
    ("programs on top", "a", ("cli", "simulator", "gateway", "bulk", "conformance", "serving")),
    ("what a program calls", "a", ("sync", "api")),
    ("the shell: I/O", "b", ("client", "providers", "runtime", "transport", "local")),
    ("the pure core: no I/O", "c", ("dialects", "streams", "prepare", "tokens", "wire", "spec")),
)
"""What rooms of the contract are together; public modules, which only list names, are left out."""


def architecture() -> str:
    """The rooms in the order of the import contract: each imports only from those below it."""
    shown = {room: (about, kind) for about, kind, rooms in BANDS for room in rooms}
    body, y, before = [], 16.0, ""
    for rooms in layers():
        named = [room for room in rooms if room in shown]
        if not named:
            continue
        about, kind = shown[named[0]]
        if about != before:
            body.append(_text(16, y + 22, about, "head"))
            before = about
        width = (620 - 8 * (len(named) - 1)) / len(named)
        for index, room in enumerate(named):
            x = 220 + index * (width + 8)
            body += [_box(x, y, width, 34, kind), _text(x + 10, y + 22, room, "code")]
        y += 42
    body.append(_text(220, y + 14, "A package imports only from packages below it.", "faint"))
    return FRAME.format(
        width=856, height=y + 28, title="The packages of the library", body="\n".join(body)
    )


def layers() -> list[list[str]]:
    """The rooms of the import contract, from high to low."""
    settings = tomllib.loads((pages.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    return [re.findall(r"interlingua\.(\w+)", layer) for layer in contract["layers"]]


# A swap, from what the library really sends.


@tool
def get_weather(city: str) -> str:
    """The weather in a city now."""
    return f"{city}: 4 C, rain"


def history() -> list[Message]:
    """A conversation with a simulated model of Anthropic, and the next question."""
    answers = (thinking("I look it up.") + tool_call("get_weather", city="Oslo"), "Rain.")
    model = f"{TARGETS[0][0]}:{TARGETS[0][1]}"
    result = sync.generate(
        model,
        "Weather in Oslo?",
        system="Be brief.",
        tools=[get_weather],
        client=scripted(*answers),
    )
    return [*result.messages, Message.user("And in Rome?")]


TARGETS = (("anthropic", "claude-haiku-4-5"), ("openai", "gpt-5.2"), ("gemini", "gemini-2.5-flash"))


def swap() -> str:
    """One history, and what each provider is sent of it, with the warnings."""
    client = Client({name: HttpAdapter(name, "key") for name, _ in TARGETS})
    messages = history()
    body, width = [], 300
    for column, (name, model) in enumerate(TARGETS):
        request = Request(provider=name, model=model, messages=messages, max_tokens=100)
        explanation = client.explain(request)
        x = 16 + column * (width + 12)
        body.append(_text(x, 30, f"{name}:{model}", "head"))
        lines = wire_lines(explanation.body)
        for index, line in enumerate(lines):
            y = 44 + index * 34
            body += [_box(x, y, width, 28, "abc"[column]), _text(x + 8, y + 19, line, "code")]
        codes = [warning.code for warning in explanation.warnings]
        for index, code in enumerate(codes or ["nothing is lost: its own thinking goes back"]):
            kind = "bad" if codes else "faint"
            body.append(_text(x, 66 + len(lines) * 34 + index * 20, code, kind))
    title = "One history, as three providers are sent it"
    return FRAME.format(width=16 + 3 * (width + 12), height=350, title=title, body="\n".join(body))


def wire_lines(body: dict[str, object]) -> list[str]:
    """The parts of a request as its API has them, one line each."""
    found: list[str] = []

    def visit(value: object, role: str) -> None:
        if isinstance(value, list):
            for each in value:
                visit(each, role)
        elif isinstance(value, dict):
            role = str(value.get("role") or role)
            inner = [value[key] for key in ("content", "parts") if isinstance(value.get(key), list)]
            if inner and value.get("type") != "tool_result":
                visit(inner, role)
            else:
                is_text = isinstance(value.get("content"), str) and "role" in value
                kind = "text" if is_text else str(value.get("type") or next(iter(value)))
                found.append(f"{role}: {kind}" if role else kind)

    system = next(name for name in ("system", "instructions", "systemInstruction") if name in body)
    found.append(system)
    visit(body.get("messages") or body.get("input") or body.get("contents"), "")
    return found


# Reservations.


class Call(NamedTuple):
    """A call: when it starts and ends, what is reserved for it, and what it costs in the end."""

    start: int
    end: int
    reserved: float
    cost: float


LIMIT = 1.0
CALLS = (
    Call(5, 40, 0.4, 0.1),
    Call(15, 60, 0.4, 0.25),
    Call(25, 25, 0.4, 0),
    Call(65, 90, 0.4, 0.2),
)
"""Dollars; the third does not fit when it starts, and is refused."""


def budget() -> str:
    """What is spent, and what is reserved on top of it, over time."""

    def at(x: float, dollars: float) -> tuple[float, float]:
        return 90 + x * 7, 270 - dollars * 200

    accepted = [call for call in CALLS if call.end > call.start]
    times = sorted({0, 100, *(call.start for call in accepted), *(call.end for call in accepted)})
    body = []
    for left, right in itertools.pairwise(times):
        spent = sum(call.cost for call in accepted if call.end <= left)
        held = sum(call.reserved for call in accepted if call.start <= left < call.end)
        (x, top), (end, _) = at(left, spent), at(right, spent)
        body.append(_box(x, top, end - x, spent * 200, "b"))
        body.append(_box(x, top - held * 200, end - x, held * 200, "a"))
    body += [
        _line([at(0, LIMIT), at(100, LIMIT)], "limit"),
        _line([at(0, 1.1), at(0, 0), at(100, 0)]),
    ]
    body += [
        _text(16, 76, "1.00 USD"),
        _text(16, 274, "0.00 USD"),
        _text(730, 292, "time", "faint"),
    ]
    for number, call in enumerate(CALLS, 1):
        refused = call not in accepted
        x, _ = at(call.start, 0)
        words = f"call {number} is refused: 0.80 + 0.40 > 1.00" if refused else f"call {number}"
        body.append(_text(x + 4, 60 if refused else 262, words, "bad" if refused else ""))
    body += [_box(96, 16, 14, 14, "b"), _text(116, 28, "spent: the real cost of finished calls")]
    body += [
        _box(400, 16, 14, 14, "a"),
        _text(420, 28, "reserved: the most that running calls may cost"),
    ]
    title = "A budget of one dollar: what is spent and what is reserved"
    return FRAME.format(width=810, height=304, title=title, body="\n".join(body))
