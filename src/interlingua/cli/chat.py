"""`interlingua chat`: a conversation in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlingua.cli.line_editor import LineEditor
from interlingua.cli.output import (
    BadInput,
    Output,
    dollars,
    exit_code,
    is_terminal,
    printable,
    with_output,
)
from interlingua.cli.prompts import (
    Fragment,
    add_tools,
    complete,
    context_options,
    fill_form,
    read_attachments,
    read_fragment,
    reasoning_option,
    takes_stdin,
    with_fragments,
)
from interlingua.cli.tables import one_line, shorten
from interlingua.runtime.files import data_folder

if TYPE_CHECKING:
    from interlingua import Explanation
    from interlingua.sync import Client, Session

_HELP = (
    ("/model NAME", "change the model, and say what that changes"),
    ("/tools [FILE.py]", "list the tools, or add those of a file"),
    ("/multi", "write a prompt of several lines; /end sends it"),
    ("/edit [TEXT]", "write a prompt in your editor ($VISUAL or $EDITOR)"),
    ("/cost", "tokens and cost of this conversation"),
    ("/name NAME", "name the conversation, for `chat --resume NAME`"),
    ("/save FILE", "write the conversation to a JSON file"),
    ("/undo", "remove the last turn"),
    ("/retry", "ask the last question again"),
    ("/fork", "go on in a copy; the conversation so far stays as it is"),
    ("/help", "this list"),
    ("/quit", "leave; so does Ctrl-D"),
)
_END = "/end"  # of a prompt of several lines
_SHORT = 60  # columns of a prompt that are repeated
_LAST = "last"
_NOTHING = "nothing had arrived, and /retry asks again"


@click.command("chat")
@context_options
@click.option(
    "--resume", is_flag=False, flag_value=_LAST, metavar="[NAME|ID]",
    help="Go on with the last conversation, or with the one that has this name or id.",
)  # fmt: skip
@click.option("--name", help="The name of the conversation, for --resume and `chats`.")
@reasoning_option
@click.option("-u", "--usage", is_flag=True, help="Print tokens, cost and time of each turn.")
@click.option("--plain", is_flag=True, help="Print answers as they are, not rendered as Markdown.")
@click.option("-n", "--no-log", is_flag=True, help="Keep neither the calls nor the conversation.")
@with_output
def command(out: Output, **options: Any) -> int:
    r"""
    Talk with a model. Ctrl-C interrupts an answer and keeps what has arrived.

    Answers are rendered as Markdown on a terminal. A line that ends with \ goes on in the next
    line, and several pasted lines are one prompt. /help lists what can be typed besides prompts:
    change the model, undo, retry, fork, save, costs. If prompts are piped in, each line is one, and
    the exit code is that of the last one.

    \b
    interlingua chat -m anthropic:claude-haiku-4-5
    interlingua chat --resume
    """
    from interlingua.cli.calls_log import start_log
    from interlingua.cli.clients import at_server, open_client

    if takes_stdin(options):
        raise click.UsageError("stdin has the prompts, so `-` has nothing. Name a file.")
    options = complete(options)
    options["fragment"] = [Fragment(each, read_fragment(each)) for each in options["fragment"]]
    options["attachment"] = read_attachments(options)
    is_logged = start_log(out, wanted=not options["no_log"])
    with open_client() as opened:
        client = at_server(opened, options["model"], options["access"])
        session = _open_session(out, client, is_logged=is_logged, **options)
        if options["name"]:
            session.asynchronous.title = options["name"]
        if session.model is not None:
            _dry_run(client, session, session.model)  # an unknown model is refused at once
        return Chat(out, client, session, is_logged=is_logged, **options).run()


def _dry_run(client: Client, session: Session, model: str) -> Explanation:
    """What the conversation would become for a model; raises its error."""
    from interlingua import Request

    tools = [getattr(tool, "definition", tool) for tool in session.asynchronous.tools]
    messages = session.messages or "Hello"
    return client.explain(Request(model=model, messages=messages, tools=tools))


def _open_session(out: Output, client: Client, *, is_logged: bool, **options: Any) -> Session:
    from interlingua.cli.clients import choose_model
    from interlingua.cli.conversation import last_session, open_store, resume
    from interlingua.sync import Session

    given: dict[str, Any] = add_tools(options["settings"], options)
    if options["shows_reasoning"]:
        given["include_thinking"] = True
    if options["system"] is not None:
        given["system"] = options["system"]
    model = options["model"]
    if options["resume"] is None:
        if model is None:
            model, why = choose_model()
            out.note(f"Model: {model} ({why})")
        return Session(model, store=open_store() if is_logged else None, client=client, **given)
    store = open_store()
    session_id = last_session(store) if options["resume"] == _LAST else options["resume"]
    if session_id is None:
        raise click.UsageError("There is no conversation to resume.")
    session = resume(session_id, store, client, **given)
    if model is not None:
        session.swap(model)
    title = session.asynchronous.title or session_id
    out.note(f"Resumed “{printable(title)}” with {session.model}: {len(session.messages)} messages")
    return session


class Chat:
    """A conversation: prompts and commands, until the end of the input."""

    def __init__(
        self, out: Output, client: Client, session: Session, *, is_logged: bool, **options: Any
    ) -> None:
        self._out = out
        self._client = client
        self._session = session
        self._is_logged = is_logged
        self._options = options
        self._failure: BaseException | None = None  # of the last prompt
        self._unanswered: tuple[Any, str] | None = None  # the last prompt, if nothing came of it
        self._is_interactive = is_terminal(sys.stdin)

    def run(self) -> int:
        """Read and answer until the input ends; returns the exit code."""
        history = data_folder() / "chat-history" if self._is_logged else None
        editor = LineEditor(history, self._complete, self._out.warn)
        if self._is_interactive:
            self._out.note(f"{self._session.model} · /help lists commands · Ctrl-D leaves")
        for line in self._lines(editor):
            self._handle(line, editor)
        self._leave()
        if self._failure is None or self._is_interactive:
            return 0
        return exit_code(self._failure)

    def _lines(self, editor: LineEditor) -> Iterator[str]:
        """The prompts and commands, until the end of the input or of the conversation."""
        while True:
            try:
                line = editor.read()
            except EOFError:
                if self._is_interactive:
                    self._out.note("")
                return
            except (KeyboardInterrupt, BadInput) as error:
                if not self._is_interactive:
                    raise
                if isinstance(error, BadInput):
                    self._out.error(error)
                else:
                    self._out.note("\nCtrl-D leaves.")
                continue
            if line in ("/quit", "/exit"):
                return
            if line:
                yield line

    def _handle(self, line: str, editor: LineEditor) -> None:
        """Do what a line says. An error ends the turn, not the conversation."""
        from interlingua import SDKError

        self._failure = None
        try:
            name, _, argument = line.partition(" ")
            if name == "/multi":
                self._ask(self._read_lines(editor))
            elif name == "/edit":
                self._ask(self._write_prompt(argument))
            elif line.startswith("/") and "\n" not in line:  # a pasted text may begin with a path
                self._command(line)
            else:
                self._ask(line)
        except KeyboardInterrupt:
            if not self._is_interactive:
                raise
            is_kept = self._unanswered is None
            what = "what has arrived is part of the conversation" if is_kept else _NOTHING
            self._out.note(f"\ninterrupted; {what}")
        except (SDKError, click.ClickException, OSError) as error:
            is_pipe = isinstance(error, BrokenPipeError) and not isinstance(error, SDKError)
            if self._out.debug or is_pipe:
                raise
            self._out.error(error)
            self._failure = error

    def _read_lines(self, editor: LineEditor) -> str:
        if self._is_interactive:
            self._out.note(f"Write the prompt; a line with {_END} sends it, Ctrl-C drops it.")
        try:
            return editor.read_until(_END)
        except EOFError:
            raise BadInput(f"the prompt of /multi has no {_END}; nothing was sent") from None
        except KeyboardInterrupt:
            if not self._is_interactive:
                raise
            self._out.note("\nNothing was sent.")
            return ""

    def _write_prompt(self, text: str) -> str:
        """What the user writes in an editor; empty if nothing was saved."""
        if not self._is_interactive:
            raise click.UsageError("/edit needs a terminal.")
        written = (click.edit(text, extension=".md") or "").strip()
        self._out.note(printable(written) or "Nothing was saved; nothing was sent.")
        return written

    def _ask(self, text: str) -> None:
        """Send a prompt, unless it is empty."""
        if text.strip():
            text = fill_form(text, self._options)
            prompt: Any = with_fragments(self._options["fragment"], text)
            if self._options["attachment"]:
                from interlingua import Text

                prompt = [*self._options["attachment"], Text(text=prompt)]
            self._turn(prompt, text)

    def _turn(self, prompt: Any, text: str) -> None:
        from interlingua.cli.ask import describe_result
        from interlingua.cli.conversation import Turn, model_name, show_warnings, usage_line

        out, session = self._out, self._session
        is_plain = self._options["plain"]
        turn = Turn(
            out, session, "chat", is_logged=self._is_logged, is_quiet=out.json, is_plain=is_plain
        )
        turn.hides_reasoning = self._options["shows_reasoning"] is False
        turn.fragments = self._options["fragment"]
        before = len(session.messages)
        try:
            result = turn.run(prompt, text)
        finally:
            if len(session.messages) > before:
                self._unanswered = None
                self._options |= {"fragment": [], "attachment": []}  # the conversation has them now
            else:
                self._unanswered = prompt, text
        if out.json:
            out.data(describe_result(result, session, turn.seconds))
        show_warnings(out, result.warnings)
        if self._options["usage"]:
            usage, cost = result.total_usage, result.total_cost
            out.note(usage_line(model_name(result), usage, cost, turn.seconds))
        if is_terminal(sys.stdin) and is_terminal(sys.stdout):
            out.line()

    def _leave(self) -> None:
        if self._is_logged and self._session.messages:
            session_id = self._session.session_id
            self._out.note(f"`interlingua chat --resume {session_id}` goes on from here.")

    # Commands.

    def _command(self, line: str) -> None:
        name, _, argument = line.partition(" ")
        known = [usage.partition(" ")[0] for usage, _ in _HELP]
        if name not in known:
            raise click.UsageError(f"There is no {printable(name)}. There are {', '.join(known)}.")
        getattr(self, f"_{name[1:]}")(argument.strip())

    def _complete(self, line: str) -> list[str]:
        name, space, argument = line.partition(" ")
        if name == "/model" and space:
            from interlingua.cli.completion import model_names

            return [f"/model {each}" for each in model_names(argument)]
        if name in ("/save", "/tools") and space:
            return [f"{name} {path}" for path in _paths(argument)]
        if not line.startswith("/"):
            return []
        return [usage.partition(" ")[0] for usage, _ in _HELP if usage.startswith(line)]

    def _help(self, _argument: str) -> None:
        for usage, text in _HELP:
            self._out.note(f"  {usage:18}{text}")

    def _model(self, name: str) -> None:
        """Change the model, if the conversation can be sent to it."""
        from interlingua.cli.conversation import show_warnings

        if not name:
            self._out.note(f"The model is {self._session.model}. /model NAME changes it.")
            return
        explanation = _dry_run(self._client, self._session, name)
        self._session.swap(name)
        is_unchanged = self._session.messages and not explanation.warnings
        same = " It gets the conversation unchanged." if is_unchanged else ""
        self._out.note(f"The model is now {explanation.provider}:{explanation.model}.{same}")
        show_warnings(self._out, explanation.warnings)

    def _tools(self, path: str) -> None:
        session = self._session.asynchronous
        if path:
            from interlingua.cli.tool_sources import read_tools

            tools = read_tools([str(Path(path).expanduser())], approve=self._options["yes"])
            session.tools = (*session.tools, *tools)
        for tool in session.tools:
            about = (getattr(tool, "description", None) or "").partition("\n")[0]
            self._out.note(f"  {getattr(tool, 'name', tool)}: {about}")
        if not session.tools:
            self._out.note("There are no tools; /tools FILE.py adds those of a file.")

    def _cost(self, _argument: str) -> None:
        usage, cost = self._session.usage, self._session.cost
        price = "cost unknown" if cost is None else dollars(cost.total)
        tokens = f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
        self._out.note(f"{tokens} · {price}")

    def _name(self, name: str) -> None:
        session = self._session.asynchronous
        if name:
            session.title = name
            if self._is_logged and session.messages:
                from interlingua.cli.conversation import open_store, rename_session

                rename_session(open_store(), session.session_id, name)
        self._out.note(f"This is “{printable(session.title or session.session_id)}”.")

    def _save(self, path: str) -> None:
        if not path:
            raise click.UsageError("Write /save FILE.")
        self._session.save(Path(path).expanduser())
        self._out.note(f"Saved to {path}.")

    def _undo(self, _argument: str) -> None:
        self._unanswered = None
        removed = self._session.undo()
        self._out.note(
            f"Removed: {_first_line(removed[0].text)}" if removed else "There is no turn."
        )

    def _retry(self, _argument: str) -> None:
        if self._unanswered is None:
            removed = self._session.undo()
            if not removed:
                raise click.UsageError("There is nothing to ask again.")
            self._unanswered = list(removed[0].content), removed[0].text
        prompt, text = self._unanswered
        self._out.note(f"Again: {_first_line(text)}")
        self._turn(prompt, text)

    def _fork(self, _argument: str) -> None:
        self._session = self._session.fork()
        self._out.note(f"This is now the copy {self._session.session_id}.")


def _paths(start: str) -> list[str]:
    """The files and folders whose paths begin so."""
    folder, slash, name = start.rpartition("/")
    place = Path(folder + slash or ".").expanduser()
    try:
        found = sorted(each for each in place.iterdir() if each.name.startswith(name))
    except OSError:  # it is no folder, or one that may not be read
        return []
    return [f"{folder}{slash}{each.name}{'/' * each.is_dir()}" for each in found]


def _first_line(text: str) -> str:
    return shorten(printable(one_line(text)), _SHORT)
