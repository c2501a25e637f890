"""One turn of a conversation, as `ask` and `chat` make it: printed, approved, logged."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlingua.cli.answer_screen import MarkdownAnswer, PlainAnswer, WaitingLine
from interlingua.cli.calls_log import add_call
from interlingua.cli.output import (
    BadInput,
    Output,
    can_redraw,
    dollars,
    printable,
    without_arguments,
)
from interlingua.cli.tables import one_line
from interlingua.runtime.files import data_folder, private_folder

if TYPE_CHECKING:
    from interlingua import Cost, GenerateResult, SessionStore, ToolCall, Usage, Warning
    from interlingua.cli.prompts import Fragment
    from interlingua.events import StreamEvent
    from interlingua.sync import Client, Session

_NOT_LOGGED = ("StoreError", "ConfigurationError", "NotFoundError")
"""A full disk, which the session tells already; settings and names of models that are wrong."""
_MOST = 1_000_000  # conversations that are looked through for a name
_RESULT_LENGTH = 200  # characters of a tool's result that are shown


def open_store() -> SessionStore:
    """The conversations of `ask` and `chat`, closed at the end of the command."""
    from interlingua import SessionStore
    from interlingua.sync.loop_thread import background

    store = SessionStore(private_folder(data_folder() / "sessions") / "sessions.db")
    # Else the next command has to read what all commands before it have left in the log.
    click.get_current_context().call_on_close(lambda: background.run(store.close()))
    return store


def last_session(store: SessionStore) -> str | None:
    """The id of the conversation that was changed last."""
    from interlingua.sync.loop_thread import background

    found = background.run(store.list(1))
    return found[0].session_id if found else None


def find_session(store: SessionStore, name: str) -> str:
    """The id of the conversation with this id or name; of several with one name, the last."""
    from interlingua.sync.loop_thread import background

    infos = background.run(store.list(_MOST))
    if all(info.session_id != name for info in infos):
        named = [info.session_id for info in infos if info.title == name]
        if not named:
            text = f"there is no conversation {name!r}; `interlingua chats list` lists them"
            raise BadInput(text)
        return named[0]
    return name


def rename_session(store: SessionStore, session_id: str, name: str) -> None:
    """Give a stored conversation another name."""
    from interlingua.sync.loop_thread import background

    header, _ = background.run(store.load(session_id))
    background.run(store.update(session_id, {**header, "title": name}))


def resume(session_id: str, store: SessionStore, client: Client, **options: Any) -> Session:
    """The stored conversation with this id or name."""
    from interlingua.sync import Session

    found = find_session(store, session_id)
    return Session.resume(found, store=store, client=client, **options)


class Turn:
    """A turn: it prints the answer as it arrives, asks about tools, and writes the log."""

    def __init__(
        self,
        out: Output,
        session: Session,
        command: str,
        *,
        is_logged: bool,
        is_quiet: bool = False,
        is_plain: bool = True,
    ) -> None:
        """
        `is_quiet`: the answer is not printed here, because it is printed in another form.

        Where it is not plain, it is rendered as Markdown on a terminal.
        """
        self._out = out
        self._session = session
        self._command = command
        self._is_logged = is_logged
        self._is_quiet = is_quiet
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._answer = _open_answer(out, is_plain=is_plain)
        self._waiting = WaitingLine(is_wanted=not out.json)
        self._began = time.monotonic()
        self.hides_reasoning = False
        self.fragments: Sequence[Fragment] = ()
        """The texts before the prompt, which the log has once."""
        self.schema: Mapping[str, Any] | None = None
        """The schema of the answer."""

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.monotonic() - self._began

    def run(
        self, prompt: Any, text: str, *, streams: bool = True, **options: Any
    ) -> GenerateResult[Any]:
        """
        Make the turn; returns its result.

        With `schema` the answer is an object. What has arrived is logged if it fails or is
        interrupted, too.
        """
        result: GenerateResult[Any] | None = None
        problem: BaseException | None = None
        try:
            result = self._send(prompt, streams=streams, **options)
            while result.pending_approvals:
                self._end_line()
                approvals = ask_approvals(result.pending_approvals)
                result = self._send(None, streams=streams, **{**options, "approvals": approvals})
        except BaseException as error:
            problem = error
            raise
        finally:
            self._end_line()
            if self._is_logged and type(problem).__name__ not in _NOT_LOGGED:
                self._log(text, result, problem)
        return result

    def _send(self, prompt: Any, *, streams: bool, **options: Any) -> GenerateResult[Any]:
        self._wait(options.get("model"))
        if "schema" in options:
            schema = options.pop("schema")
            result = self._session.send_object(prompt, schema=schema, **options)
            self._show_whole(result)
            return result
        if not streams:
            plain = self._session.send(prompt, **options)
            self._show_whole(plain)
            return plain
        with self._session.stream(prompt, **options) as events:
            self._show(events, options.get("model"))
            return events.result()

    def _wait(self, model: str | None) -> None:
        name = model or self._session.model or "the model"
        self._waiting.show(f"Waiting for {name} …")

    def _show(self, events: Iterable[StreamEvent], model: str | None) -> None:
        for event in events:
            if event.type == "text_delta":
                self._add_text(event.delta)
            elif event.type == "reasoning_delta":
                self._add_reasoning(event.delta)
            elif event.type == "tool_call_end":
                self._note(f"→ {describe_call(event.tool_call)}")
            elif event.type == "tool_result":
                content = one_line(str(event.result.content))
                self._note(f"← {printable(content)[:_RESULT_LENGTH]}")
            elif event.type == "step_finish":
                self._end_line()
                self._wait(model)

    def _show_whole(self, result: GenerateResult[Any]) -> None:
        if result.reasoning:
            self._add_reasoning(result.reasoning)
        self._add_text(result.text)

    def _add_text(self, piece: str) -> None:
        if not self._text:
            self._end_line(only_dim=True)
        self._text.append(piece)
        if not self._is_quiet:
            self._waiting.erase()
            self._answer.add(piece)

    def _add_reasoning(self, piece: str) -> None:
        self._reasoning.append(piece)
        if not self.hides_reasoning and piece:
            self._waiting.erase()
            self._answer.end()
            self._out.dim(printable(piece))
            self._dim_open = not piece.endswith("\n")

    _dim_open = False

    def _note(self, text: str) -> None:
        self._end_line()
        self._out.note(text)

    def _end_line(self, *, only_dim: bool = False) -> None:
        """End lines that were begun, also the one that says what is waited for."""
        if self._dim_open:
            self._out.dim("\n")
            self._dim_open = False
        if not only_dim:
            self._waiting.erase()
            self._answer.end()

    def _log(
        self, prompt: str, result: GenerateResult[Any] | None, problem: BaseException | None
    ) -> None:
        usage = None if result is None else result.total_usage
        cost = None if result is None else result.total_cost
        add_call(
            self._out,
            {
                "command": self._command,
                "session": self._session.session_id,
                "model": model_name(result) or self._session.model,
                "system": system_text(self._session),
                "prompt": prompt,
                "answer": "".join(self._text),
                "reasoning": "".join(self._reasoning) or None,
                "input_tokens": None if usage is None else usage.input_tokens,
                "output_tokens": None if usage is None else usage.output_tokens,
                "cost": None if cost is None else cost.total,
                "seconds": round(self.seconds, 3),
                "error": None if problem is None else str(problem) or type(problem).__name__,
            },
            self.fragments,
            self.schema,
        )


def _open_answer(out: Output, *, is_plain: bool) -> PlainAnswer | MarkdownAnswer:
    if is_plain or not can_redraw(sys.stdout):
        return PlainAnswer(out.write)
    try:
        from interlingua.cli.markdown import MarkdownRenderer
    except ModuleNotFoundError:  # without rich
        return PlainAnswer(out.write)
    return MarkdownAnswer(out.write, MarkdownRenderer())


def system_text(session: Session) -> str | None:
    """The system prompt, if it is a text."""
    system = session.asynchronous.system
    return system if isinstance(system, str) else None


def model_name(result: GenerateResult[Any] | None) -> str | None:
    """The provider and the model that answered."""
    if result is None:
        return None
    response = result.response
    return ":".join(filter(None, (response.provider, response.model)))


def show_warnings(out: Output, warnings: Iterable[Warning]) -> None:
    """Say what was changed or dropped, each thing once."""
    for message in dict.fromkeys(without_arguments(each.message, out.flags) for each in warnings):
        out.warn(message)


def usage_line(name: str | None, usage: Usage, cost: Cost | None, seconds: float) -> str:
    """Tokens, cost and time in one line."""
    price = "cost unknown" if cost is None else dollars(cost.total)
    tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    return " · ".join(filter(None, (name, tokens, price, f"{seconds:.1f} s")))


def describe_call(call: ToolCall) -> str:
    """A call as code: `add(a=1, b=2)`."""
    inner = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return printable(f"{call.name}({inner})")


def ask_approvals(calls: Sequence[ToolCall]) -> dict[str, bool]:
    """Ask on the terminal which calls may run; without a terminal none may."""
    try:
        terminal = Path("/dev/tty").open("r+b", buffering=0)  # noqa: SIM115 -- closed below
    except OSError:
        names = ", ".join(sorted({call.name for call in calls}))
        raise click.ClickException(
            f"the model wants to run {names}, and there is no terminal to ask; "
            "--yes approves all tools"
        ) from None
    with terminal:
        return {call.id: _ask(terminal, call) for call in calls}


def _ask(terminal: Any, call: ToolCall) -> bool:
    terminal.write(f"Run {describe_call(call)}? [y/N] ".encode())
    answer = terminal.readline(1000).decode(errors="replace").strip().lower()
    return answer in ("y", "yes")
