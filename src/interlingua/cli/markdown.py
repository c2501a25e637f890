"""Markdown as lines for a terminal, in colours that can be read on dark and on light grounds."""

from __future__ import annotations

import io
import sys
from typing import Any, ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments.token import (  # type: ignore[import-untyped]
    Comment,
    Keyword,
    Name,
    Number,
    String,
)
from pygments.token import Token as AnyToken
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, TableElement
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.theme import Theme

from interlingua.cli.output import has_colors
from interlingua.cli.tables import printable

_STYLES = Theme(
    {
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "italic",
        "markdown.h5": "italic",
        "markdown.h6": "italic",
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.block_quote": "italic",
        "markdown.item.bullet": "cyan",
        "markdown.item.number": "cyan",
        "markdown.link": "underline",
        "markdown.link_url": "dim",
        "markdown.hr": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)
# Colours of the terminal's own palette, which fits its background.
_CODE = ANSISyntaxTheme(
    {
        AnyToken: Style(),
        Comment: Style(dim=True, italic=True),
        Keyword: Style(color="magenta"),
        Name.Function: Style(bold=True),
        Name.Class: Style(bold=True),
        Number: Style(color="cyan"),
        String: Style(color="green"),
    }
)
_PARSER = (
    MarkdownIt().enable("strikethrough").enable("table").disable(["html_block", "html_inline"])
)


class _Code(CodeBlock):
    """Code with an indentation and no background, so that it can be continued and copied."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.padding import Padding

        code = str(self.text).rstrip("\n")
        syntax = Syntax(
            code, self.lexer_name, theme=_CODE, word_wrap=True, background_color="default"
        )
        yield Padding(syntax, (0, 0, 0, 2))


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar[dict[str, Any]] = {}  # all to the left


class _Table(TableElement):
    """A table with the alignment of its columns, and without empty lines around it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, border_style="dim")
        head = self.header.row.cells if self.header and self.header.row else []
        for cell in head:
            table.add_column(
                cell.content, justify=cell.justify, header_style="bold", overflow="fold"
            )
        for row in self.body.rows if self.body else []:
            table.add_row(*(cell.content for cell in row.cells))
        yield table


class _Document(Markdown):
    """Markdown that loses nothing: it shows tags, addresses of links and images, and line ends."""

    elements: ClassVar[dict[str, Any]] = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
        "table_open": _Table,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.markup = text
        self.parsed = _PARSER.parse(text)
        for token in self.parsed:
            token.children = token.children and list(map(_show_all, token.children))


def _show_all(token: Token) -> Token:
    if token.type == "softbreak":  # poems and addresses have lines
        token.type = "hardbreak"
    elif token.type == "image":
        address = token.attrs.get("src", "")
        return Token("text", "", 0, content=f"{token.content} ({address})".lstrip())
    return token


class MarkdownRenderer:
    """Renders Markdown for the terminal that stdout is."""

    def __init__(self) -> None:
        self._console = Console(
            file=io.StringIO(),
            force_terminal=True,
            color_system="standard" if has_colors(sys.stdout) else None,
            theme=_STYLES,
            highlight=False,
        )

    def lines(self, text: str, width: int) -> list[str]:
        """The lines of a text, without empty lines around them."""
        with self._console.capture() as capture:
            self._console.print(_Document(printable(text)), width=width, crop=False)
        lines = [line.rstrip(" ") for line in capture.get().split("\n")]
        while lines and not lines[-1]:
            lines.pop()
        while lines and not lines[0]:
            lines.pop(0)
        return lines
