"""The walk of a call: the files that it enters, as a table and as an SVG picture."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from docs_build import pages

PAGE = pages.DOCS / "explanation" / "architecture.md"
PICTURE = pages.DOCS / "explanation" / "walk.svg"
COLUMNS = ("api", "client", "providers", "prepare", "dialects", "transport")
"""The rooms from left to right; what they all use (`wire`, `spec`) is left out."""
COLOURS = {
    "api": ("#dbeafe", "#1e3a5f"),
    "client": ("#dcfce7", "#14432a"),
    "providers": ("#fef9c3", "#453c10"),
    "prepare": ("#fde2e2", "#4f2325"),
    "dialects": ("#ede9fe", "#372a63"),
    "transport": ("#ffe8d6", "#52300f"),
}
"""The colours of the boxes, on a light and on a dark ground."""
WIDTH, LINE, GAP, TOP, PAD = 138, 17, 10, 44, 6


class Visit(NamedTuple):
    """A stay of the call in one room, and the files whose functions it enters there."""

    room: str
    files: list[str]


def texts() -> dict[Path, str]:
    """The picture, and the page with the table."""
    found = visits()
    return {PICTURE: picture(found), PAGE: pages.fill(PAGE, lambda _: walk_table(found))}


def visits() -> list[Visit]:
    """The rooms that a `generate` enters, in order, each with the files of that visit."""
    command = [sys.executable, str(pages.ROOT / "scripts" / "walk")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 -- ours
    first, *_ = re.split(r"\n(?=\S)", done.stdout)  # the walk of `generate`; others follow
    found: list[Visit] = []
    for path in re.findall(r"^ +([\w/]+\.py):", first, re.MULTILINE):
        room, _, file = path.partition("/")
        if not found or found[-1].room != room:
            found.append(Visit(room, []))
        if file not in found[-1].files:
            found[-1].files.append(file)
    return found


def walk_table(found: list[Visit]) -> str:
    """The rooms in the order in which a call first enters them, with all files it enters there."""
    files: dict[str, dict[str, None]] = {}
    for visit in found:
        files.setdefault(visit.room, {}).update(dict.fromkeys(visit.files))
    rows = [
        f"| `{room}/` | {', '.join(f'`{name}`' for name in names)} |"
        for room, names in files.items()
    ]
    return "\n".join(("| package | files that a `generate` enters |", "|---|---|", *rows))


def picture(visits: list[Visit]) -> str:
    """The picture; time goes down."""
    boxes, links, y = [], [], TOP
    before: tuple[float, float] | None = None
    for visit in _shown(visits):
        x = COLUMNS.index(visit.room) * (WIDTH + GAP) + GAP
        height = len(visit.files) * LINE + 2 * PAD
        boxes.append(_box(x, y, height, visit))
        if before is not None:
            links.append(_link(before, (x + WIDTH / 2, y)))
        before = (x + WIDTH / 2, y + height)
        y += height + GAP
    width = len(COLUMNS) * (WIDTH + GAP) + GAP
    heads = [
        f'<text class="room" x="{i * (WIDTH + GAP) + GAP + WIDTH // 2}" y="26">{room}/</text>'
        for i, room in enumerate(COLUMNS)
    ]
    body = "\n".join((*heads, *links, *boxes))
    light, dark = ("\n".join(_fill(room, shade) for room in COLUMNS) for shade in (0, 1))
    return _FRAME.format(width=width, height=y, body=body, light=light, dark=dark)


def _fill(room: str, shade: int) -> str:
    return f".{room} {{ fill: {COLOURS[room][shade]} }}"


def _shown(visits: list[Visit]) -> list[Visit]:
    """The visits of rooms that have a column; two that are neighbours then become one."""
    shown: list[Visit] = []
    for visit in visits:
        if visit.room not in COLUMNS:
            continue
        if not shown or shown[-1].room != visit.room:
            shown.append(Visit(visit.room, []))
        names = [path.rpartition("/")[2] for path in visit.files]
        shown[-1].files.extend(name for name in names if name not in shown[-1].files)
    return shown


def _box(x: float, y: float, height: float, visit: Visit) -> str:
    lines = [
        f'<text x="{x + PAD}" y="{y + PAD + LINE * (i + 1) - 4}">{escape(name)}</text>'
        for i, name in enumerate(visit.files)
    ]
    place = f'x="{x}" y="{y}" width="{WIDTH}" height="{height}"'
    return "\n".join((f'<rect class="{visit.room}" {place} rx="4"/>', *lines))


def _link(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = start, end
    return f'<path d="M{x1:g} {y1:g} L{x2:g} {y2:g}" marker-end="url(#end)"/>'


_FRAME = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>The path of a call through the packages of the library</title>
<style>
text {{ font: 13px ui-monospace, monospace; fill: #1f2937 }}
.room {{ font: bold 15px sans-serif; text-anchor: middle }}
.ground {{ fill: #ffffff; stroke: none }}
rect {{ stroke: #9ca3af }}
path {{ stroke: #6b7280; fill: none }}
polygon {{ fill: #6b7280 }}
{light}
@media (prefers-color-scheme: dark) {{
text {{ fill: #e5e7eb }}
.ground {{ fill: #0e1013 }}
rect {{ stroke: #6b7280 }}
path {{ stroke: #9ca3af }}
polygon {{ fill: #9ca3af }}
{dark}
}}
</style>
<defs><marker id="end" markerWidth="7" markerHeight="7" refX="6" refY="3" orient="auto">
<polygon points="0 0, 6 3, 0 6"/></marker></defs>
<rect class="ground" width="{width}" height="{height}"/>
{body}
</svg>
"""
