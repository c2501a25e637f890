"""Reads the prompts of `chat`: lines of a pipe, or of a terminal with history and completion."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from interlingua.cli.output import BadInput, has_colors, is_terminal
from interlingua.runtime.files import private_file

_HISTORY_LENGTH = 1000  # prompts that are remembered
PROMPT = "> "
_CONTINUATION = "… "
_LINE_END = "\u2028"
"""Stands for the end of a line within a prompt in the file, where each line is a prompt."""


def _bold(prompt: str) -> str:
    """The prompt in bold, for readline: its marks enclose characters that take no space."""
    return f"\001\x1b[1m\002{prompt}\001\x1b[0m\002" if has_colors(sys.stdout) else prompt


class LineEditor:
    """Reads prompts from the terminal, or lines from a pipe."""

    def __init__(
        self,
        history: Path | None,
        complete: Callable[[str], Sequence[str]],
        warn: Callable[[str], None],
    ) -> None:
        """
        `complete` takes the line so far, and returns what it may become.

        `warn` is called with a text if the history cannot be stored.
        """
        self._history = history
        self._complete = complete
        self._warn = warn
        self._readline: Any = self._start() if is_terminal(sys.stdin) else None

    def read(self) -> str:
        """The next prompt; a line that ends with a backslash goes on. `EOFError` at the end."""
        lines = [self._line(_bold(PROMPT))]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            try:
                lines.append(self._line(_CONTINUATION))
            except EOFError:
                if is_terminal(sys.stdin):
                    raise
                break
        self._save()
        return "\n".join(lines).strip()

    def read_until(self, end: str) -> str:
        """The lines before a line that is `end`, as they are; `EOFError` if it never comes."""
        lines: list[str] = []
        while (line := self._line(_CONTINUATION)).rstrip() != end:
            lines.append(line)
        self._save()
        return "\n".join(lines)

    def _line(self, prompt: str) -> str:
        try:
            return input(prompt if is_terminal(sys.stdin) else "")
        except UnicodeDecodeError:
            raise BadInput("the prompt is not text in UTF-8") from None

    def _start(self) -> Any:
        try:
            import readline
        except ImportError:  # on Windows
            return None
        self._use_history(lambda path: _load(readline, path))
        readline.set_completer(self._candidate)
        readline.set_completer_delims("")
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
        if not is_libedit:  # which has no such mode
            # Several pasted lines are then one line of the editor. Python switches it off.
            readline.parse_and_bind("set enable-bracketed-paste on")
        return readline

    def _candidate(self, text: str, state: int) -> str | None:
        found = self._complete(text)
        return found[state] if state < len(found) else None

    def _save(self) -> None:
        if self._readline is not None:
            self._use_history(lambda path: _store(self._readline, path))

    def _use_history(self, use: Callable[[Path], None]) -> None:
        """Read or write the history, if it is kept; a failure is no reason to end."""
        if self._history is None:
            return
        try:
            use(self._history)
        except OSError as error:
            self._warn(f"prompts are not remembered: {self._history}: {error.strerror}")
            self._history = None


def _load(readline: Any, path: Path) -> None:
    """Remember the prompts of a file."""
    text = private_file(path).read_text(encoding="utf-8", errors="replace")
    for prompt in text.split("\n")[-_HISTORY_LENGTH - 1 :]:
        if prompt:
            readline.add_history(prompt.replace(_LINE_END, "\n"))


def _store(readline: Any, path: Path) -> None:
    """Write the last prompts to a file, each on one line."""
    last = readline.get_current_history_length()
    numbers = range(max(0, last - _HISTORY_LENGTH) + 1, last + 1)
    prompts = [readline.get_history_item(number) or "" for number in numbers]
    lines = [f"{prompt.replace(chr(10), _LINE_END)}\n" for prompt in prompts]
    private_file(path).write_text("".join(lines), encoding="utf-8", errors="replace")
