"""
What all commands print, and how they end: tables, JSON, progress, errors, exit codes.

The answer goes to stdout and everything else to stderr. On a terminal tables are drawn; elsewhere
they are lines with tabs. `rich` honours `NO_COLOR`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TextIO, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

R = TypeVar("R")

EXIT_CODES: Mapping[str, int] = {
    "AuthenticationError": 3,
    "AccessDeniedError": 3,
    "NotFoundError": 4,
    "InvalidRequestError": 4,
    "ContentFilterError": 4,
    "ContextLengthError": 4,
    "QuotaExceededError": 5,
    "RateLimitError": 5,
    "BudgetExceededError": 5,
    "RunLimitError": 5,
    "NetworkError": 6,
    "RequestTimeoutError": 6,
    "ServerError": 7,
    "CircuitOpenError": 7,
    "StreamError": 7,
    "DecodeError": 7,
    "NoObjectGeneratedError": 8,
    "InvalidToolCallError": 8,
    "ConfigurationError": 2,
    "AbortError": 130,
}
"""The exit code of each class of errors and of its subclasses; the nearest base decides."""
FAILED = 1
"""Anything else that fails, such as a file that cannot be written."""
USAGE = 2
"""Wrong arguments or settings."""
UNEXPECTED = 70
"""An error in this program."""
INTERRUPTED = 130
CLOSED_PIPE = 141
_NAME = "interlingua"
_WHOLE_NAME = 44  # characters; the first column is not folded below that
_COMPLETION = "_INTERLINGUA_COMPLETE"  # the variable with which shells ask for completions


class Column(NamedTuple):
    """A column of a table: the key of its values, its title, and how it is aligned."""

    key: str
    title: str
    right: bool = False


class Output:
    """Where a command prints. The options `--json` and `--debug` set its two fields."""

    def __init__(self) -> None:
        self.json = False
        self.debug = False

    def write(self, text: str) -> None:
        """Write a piece of the answer at once."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def line(self, text: str = "") -> None:
        """Write a line of the answer."""
        self.write(f"{text}\n")

    def note(self, text: str) -> None:
        """Write a remark on stderr, dimmed on a terminal."""
        self.dim(f"{text}\n")

    def dim(self, text: str) -> None:
        """Write a piece of text on stderr, dimmed on a terminal."""
        write_dim(sys.stderr, text)

    def data(self, value: Any) -> None:
        """Print a value as JSON."""
        self.line(json_text(value))

    def table(
        self, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], *, empty: str = ""
    ) -> None:
        """
        Print rows: as JSON, as a table on a terminal, or as lines with tabs.

        JSON has every key of the rows; the others have the columns. `empty` is noted if there are
        no rows.
        """
        if self.json:
            self.data(list(rows))
        elif not rows:
            self.note(empty or "Nothing found.")
        elif is_terminal(sys.stdout):
            draw_table(columns, rows)
        else:
            lines = ["\t".join(column.title for column in columns)]
            lines += ["\t".join(_cell(row.get(column.key)) for column in columns) for row in rows]
            self.line("\n".join(lines))

    @contextmanager
    def progress(self, title: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """
        A progress bar on stderr, or a spinner without a total; silent where it is no terminal.

        Yields a function that takes how much is done.
        """
        if not is_terminal(sys.stderr):
            yield lambda _done: None
            return
        from rich.progress import Progress

        with Progress(console=console(sys.stderr), transient=True) as display:
            task = display.add_task(title, total=total)
            yield lambda done: display.update(task, completed=done)


def with_output(function: Callable[..., R]) -> Callable[..., R]:
    """Give a command the options `--json` and `--debug`, and an `Output` as its first argument."""

    def set_field(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value:
            setattr(context.ensure_object(Output), parameter.name or "", True)

    function_with_output = click.make_pass_decorator(Output, ensure=True)(function)
    for name, text in (("debug", "Show the traceback of an error."), ("json", "Print JSON.")):
        option = click.option(
            f"--{name}", is_flag=True, expose_value=False, is_eager=True, callback=set_field,
            help=text,
        )  # fmt: skip
        function_with_output = option(function_with_output)
    return function_with_output


def is_terminal(stream: TextIO) -> bool:
    """Whether somebody watches this stream."""
    try:
        return stream.isatty()
    except ValueError:  # it is closed
        return False


def has_colors(stream: TextIO) -> bool:
    """Whether to use colours: on a terminal, unless `NO_COLOR` is set."""
    return (
        is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def write_dim(stream: TextIO, text: str) -> None:
    """Write a text, dimmed where colours are shown."""
    stream.write(f"\x1b[2m{text}\x1b[0m" if text and has_colors(stream) else text)
    stream.flush()


def console(stream: TextIO) -> Console:
    """The console of `rich` on a stream."""
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        missing_extra("cli", "rich")
    return Console(file=stream, highlight=False, soft_wrap=False)


def missing_extra(extra: str, package: str) -> NoReturn:
    """Say how to install what a command needs."""
    raise click.ClickException(f"this needs {package}: pip install 'interlingua[{extra}]'")


def draw_table(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw a table on the terminal, as wide as it is; there is at least one row."""
    screen = console(sys.stdout)
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    cells = [[_cell(row.get(column.key), separator=",") for column in columns] for row in rows]
    longest = max(len(row[0]) for row in cells)
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            overflow="fold",
            min_width=min(longest, _WHOLE_NAME) if column is columns[0] else None,
        )
    for row in cells:
        table.add_row(*map(Text, row))
    screen.print(table)


def json_text(value: Any) -> str:
    """A value as indented JSON; records and dates are written too."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _cell(value: Any, separator: str = "") -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int):
        return f"{value:{separator}}"
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """The text without control characters, which could command a terminal."""
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)


# How a command ends.


def run(program: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code. Every error is one line on stderr."""
    output = Output()
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        if _COMPLETION in os.environ:
            program.main(given, prog_name=_NAME)
        # Not `main`, which handles closed pipes and Ctrl-C in its own way.
        with program.make_context(_NAME, given, obj=output) as context:
            value = program.invoke(context)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 -- the only place where errors end
        return report(error, output)
    return value if isinstance(value, int) else 0


def report(error: BaseException, output: Output) -> int:
    """Print an error in one line, and return its exit code."""
    code = exit_code(error)
    if isinstance(error, BrokenPipeError) and not hasattr(error, "error_class"):
        _detach_stdout()
        return code
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        sys.stderr.write(f"{error.format_message()}\n")
    elif output.debug:
        import traceback

        traceback.print_exception(error)
    elif line := describe(error):
        sys.stderr.write(f"{line}\n")
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        _detach_stdout()
    return code


def exit_code(error: BaseException) -> int:
    """The exit code for an error."""
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return INTERRUPTED
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FAILED
    if isinstance(error, click.UsageError):
        return USAGE
    for base in type(error).__mro__:
        if base.__name__ in EXIT_CODES and hasattr(error, "error_class"):
            return EXIT_CODES[base.__name__]
    if isinstance(error, BrokenPipeError):
        return CLOSED_PIPE
    is_foreseen = hasattr(error, "error_class") or isinstance(
        error, (click.ClickException, OSError)
    )
    return FAILED if is_foreseen else UNEXPECTED


def describe(error: BaseException) -> str:
    """An error in one line; empty if there is nothing to say."""
    if isinstance(error, (click.exceptions.Exit, SystemExit)):
        return ""
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return "interrupted"
    text = error.format_message() if isinstance(error, click.ClickException) else str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    text = printable(" ".join(text.split()))
    if exit_code(error) == UNEXPECTED:
        return f"error: unexpected {type(error).__name__}: {text} (--debug shows where)"
    hint = ""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        hint = f" (see `{error.ctx.command_path} --help`)"
    return f"error: {text}{hint}"


def _detach_stdout() -> None:
    """Nobody reads any more: the interpreter must not fail when it flushes at its end."""
    with open(os.devnull, "w", encoding="utf-8") as nothing:  # noqa: PTH123 -- a device
        try:
            os.dup2(nothing.fileno(), sys.stdout.fileno())
        except (OSError, ValueError, AttributeError):
            return
