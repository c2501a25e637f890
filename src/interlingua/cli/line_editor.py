"""Reads the prompts of `chat`: lines of a pipe, or of a terminal with history and completion."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from interlingua.cli.output import BadInput, can_redraw, has_colors, is_terminal
from interlingua.runtime.files import private_file

_HISTORY_LENGTH = 1000  # prompts that are remembered
PROMPT = "> "
_CONTINUATION = "… "
_LINE_END = "\u2028"
"""Stands for the end of a line within a prompt in the file, where each line is a prompt."""


_BOLD = "\x1b[1m{}\x1b[0m"


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
        self._warn = warn
        self._editor = _choose(complete)
        self._use_history(self._load)

    def read(self) -> str:
        """The next prompt; a line that ends with a backslash goes on. `EOFError` at the end."""
        lines = [self._line(PROMPT, is_bold=True)]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            try:
                lines.append(self._line(_CONTINUATION))
            except EOFError:
                if is_terminal(sys.stdin):
                    raise
                break
        self._use_history(self._store)
        return "\n".join(lines).strip()

    def read_until(self, end: str) -> str:
        """The lines before a line that is `end`, as they are; `EOFError` if it never comes."""
        lines: list[str] = []
        while (line := self._line(_CONTINUATION)).rstrip() != end:
            lines.append(line)
        self._use_history(self._store)
        return "\n".join(lines)

    def _line(self, prompt: str, *, is_bold: bool = False) -> str:
        try:
            return self._editor.read(prompt, _BOLD if is_bold and has_colors(sys.stdout) else "{}")
        except UnicodeDecodeError:
            raise BadInput("the prompt is not text in UTF-8") from None

    def _use_history(self, use: Callable[[Path], None]) -> None:
        """Read or write the history, if it is kept; a failure is no reason to end."""
        if self._history is None or not is_terminal(sys.stdin):
            return
        try:
            use(self._history)
        except OSError as error:
            self._warn(f"prompts are not remembered: {self._history}: {error.strerror}")
            self._history = None

    def _load(self, path: Path) -> None:
        """Remember the prompts of a file."""
        text = private_file(path).read_text(encoding="utf-8", errors="replace")
        prompts = filter(None, text.split("\n")[-_HISTORY_LENGTH - 1 :])
        self._editor.history = [prompt.replace(_LINE_END, "\n") for prompt in prompts]

    def _store(self, path: Path) -> None:
        """Write the last prompts to a file, each on one line."""
        prompts = self._editor.history[-_HISTORY_LENGTH:]
        lines = [f"{prompt.replace(chr(10), _LINE_END)}\n" for prompt in prompts]
        private_file(path).write_text("".join(lines), encoding="utf-8", errors="replace")


class _Editor(Protocol):
    """Reads lines, and remembers them."""

    history: list[str]

    def read(self, prompt: str, style: str = "{}") -> str: ...


def _choose(complete: Callable[[str], Sequence[str]]) -> _Editor:
    """
    The editor of this terminal.

    Readline serves users who have set its keys (in ~/.inputrc), and terminals that cannot redraw or
    are not in UTF-8.
    """
    if not is_terminal(sys.stdin):
        return _Pipe()
    inputrc = Path(os.environ.get("INPUTRC") or "~/.inputrc").expanduser()
    is_unicode = (sys.stdin.encoding or "").lower().startswith("utf")
    if can_redraw(sys.stdout) and is_unicode and not inputrc.is_file():
        try:
            from interlingua.cli.terminal_editor import TerminalEditor
        except ImportError:  # on Windows
            return _Pipe()
        return TerminalEditor(complete)
    try:
        return _Readline(complete)
    except ImportError:
        return _Pipe()


class _Pipe:
    """Reads lines without editing."""

    def __init__(self) -> None:
        self.history: list[str] = []

    def read(self, prompt: str, style: str = "{}") -> str:
        return input(style.format(prompt) if is_terminal(sys.stdin) else "")


class _Readline:
    """The editor of Python."""

    def __init__(self, complete: Callable[[str], Sequence[str]]) -> None:
        import readline

        self._readline: Any = readline
        self._complete = complete
        readline.set_completer(self._candidate)
        readline.set_completer_delims("")
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
        if not is_libedit:  # which has no such mode
            # Several pasted lines are then one line of the editor. Python switches it off.
            readline.parse_and_bind("set enable-bracketed-paste on")

    def read(self, prompt: str, style: str = "{}") -> str:
        """The next line; marks enclose the characters of the prompt that take no space."""
        start, _, end = style.partition("{}")
        return input(f"\001{start}\002{prompt}\001{end}\002" if start else prompt)

    @property
    def history(self) -> list[str]:
        count = self._readline.get_current_history_length()
        items = map(self._readline.get_history_item, range(1, count + 1))
        return [item or "" for item in items]

    @history.setter
    def history(self, prompts: list[str]) -> None:
        for prompt in prompts:
            self._readline.add_history(prompt)

    def _candidate(self, text: str, state: int) -> str | None:
        found = self._complete(text)
        return found[state] if state < len(found) else None
