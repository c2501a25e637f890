"""The walk of a call as an SVG picture: a column for each room, a box for each visit."""

from __future__ import annotations

from typing import NamedTuple
from xml.sax.saxutils import escape

COLUMNS = ("api", "client", "providers", "prepare", "dialects", "transport")
"""The rooms from left to right; what they all use (`wire`, `spec`) is left out."""
COLOURS = {
    "api": "#dbeafe",
    "client": "#dcfce7",
    "providers": "#fef9c3",
    "prepare": "#fde2e2",
    "dialects": "#ede9fe",
    "transport": "#ffe8d6",
}
WIDTH, LINE, GAP, TOP, PAD = 158, 17, 12, 44, 6


class Visit(NamedTuple):
    """A stay of the call in one room, and the files whose functions it enters there."""

    room: str
    files: list[str]


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
    return _FRAME.format(width=width, height=y, body=body)


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
    colour = COLOURS[visit.room]
    rect = f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{height}" rx="4" fill="{colour}"/>'
    return "\n".join((rect, *lines))


def _link(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = start, end
    return f'<path d="M{x1:g} {y1:g} L{x2:g} {y2:g}" marker-end="url(#end)"/>'


_FRAME = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>The walk of a call through the rooms of the library</title>
<style>
text {{ font: 13px ui-monospace, monospace; fill: #1f2937 }}
.room {{ font: bold 15px sans-serif; text-anchor: middle }}
rect {{ stroke: #9ca3af }}
path {{ stroke: #6b7280; fill: none }}
</style>
<defs><marker id="end" markerWidth="7" markerHeight="7" refX="6" refY="3" orient="auto">
<polygon points="0 0, 6 3, 0 6" fill="#6b7280"/></marker></defs>
<rect width="{width}" height="{height}" fill="#ffffff" stroke="none"/>
{body}
</svg>
"""
