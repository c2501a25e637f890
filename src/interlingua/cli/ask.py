"""`interlingua ask`: one question."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from interlingua.cli.output import Output, shown, with_output
from interlingua.cli.prompts import Question, prompt_options, read_question, reasoning_option

if TYPE_CHECKING:
    from interlingua import GenerateResult
    from interlingua.sync import Client, Session

_match_fence = re.compile(r"(`{3,}+|~{3,}+)").match


@click.command("ask")
@prompt_options
@click.option("--save", metavar="NAME", help="Keep all this as a template; send nothing.")
@click.option("-c", "--continue", "goes_on", is_flag=True, help="Continue the last conversation.")
@click.option("--cid", metavar="ID", help="Continue the conversation with this id or name.")
@click.option("-x", "--extract", is_flag=True, help="Print only the first code block.")
@click.option(
    "--xl", "--extract-last", "extract_last", is_flag=True, help="Print only the last code block."
)
@click.option(
    "-e", "--execute", is_flag=True,
    help="Ask for a shell command. It is shown, and runs only after you say yes.",
)  # fmt: skip
@click.option("--plain", is_flag=True, help="Print the answer as it is, not rendered as Markdown.")
@click.option("--no-stream", is_flag=True, help="Print the answer when it is whole.")
@reasoning_option
@click.option("-u", "--usage", is_flag=True, help="Print tokens, cost and time on stderr.")
@click.option("-n", "--no-log", is_flag=True, help="Keep neither the call nor the conversation.")
@click.option("--explain", "explains", is_flag=True, help="Print the request; send nothing.")
@with_output
def command(out: Output, *, explains: bool, execute: bool, **options: Any) -> int:
    r"""
    Ask a model one question. The answer goes to stdout, everything else to stderr.

    On a terminal the answer is rendered as Markdown; elsewhere it is printed as it is. What is
    piped in comes before PROMPT. Without -m, the model of INTERLINGUA_MODEL answers, or one of the
    first provider with a key, or a small model on this machine.

    \b
    interlingua ask "Ten names for a pet pelican"
    git diff | interlingua ask -s "Write a commit message"
    interlingua ask -a photo.jpg "What is this?"
    interlingua ask --schema 'name, age int' "Invent a dog"
    interlingua ask -c "And now in French"
    interlingua ask -e "Find the ten largest files here"
    """
    if options["save"] is not None:
        from interlingua.cli.templates import save_template

        save_template(out, options["save"], options)
        return 0
    if execute:
        from interlingua.cli import shell_command

        if not explains:
            shell_command.check_terminal(out)
        options["system"] = shell_command.system_prompt(options["system"])
    question = read_question(**options)
    if options["shows_reasoning"]:
        question.options["include_thinking"] = True
    if explains:
        from interlingua.cli.explain import explain

        explain(out, question)
        return 0
    result = _ask(out, question, is_command=execute, **options)
    return shell_command.offer(out, code_block(result.text)) if execute else 0


def _ask(
    out: Output, question: Question, *, is_command: bool, **options: Any
) -> GenerateResult[Any]:
    from interlingua.cli.calls_log import start_log
    from interlingua.cli.clients import at_server, chosen_settings, open_client
    from interlingua.cli.conversation import Turn, model_name, show_warnings, usage_line

    is_logged = start_log(out, wanted=not options["no_log"])
    with open_client() as opened:
        client = at_server(opened, question.model, question.access)
        session = _open_session(out, question, client, is_logged=is_logged, **options)
        extracts = options["extract"] or options["extract_last"]
        is_quiet = out.json or extracts or is_command
        is_plain = options["plain"] or question.schema is not None
        turn = Turn(out, session, "ask", is_logged=is_logged, is_quiet=is_quiet, is_plain=is_plain)
        turn.fragments, turn.schema = question.fragments, question.schema
        turn.hides_reasoning = options["shows_reasoning"] is False
        shape = {} if question.schema is None else {"schema": question.schema}
        streams = not options["no_stream"]
        choices = chosen_settings(question, session.model)
        if question.model:
            choices["model"] = question.model
        result = turn.run(question.content, question.text, streams=streams, **choices, **shape)
    if out.json:
        out.data(describe_result(result, session, turn.seconds))
    elif extracts and not is_command:
        out.line(shown(code_block(result.text, is_last=options["extract_last"])))
    show_warnings(out, result.warnings)
    if result.finish_reason.reason == "length":
        out.note("The answer was cut off at its limit; -o max_tokens N allows a longer one.")
    if options["usage"]:
        out.note(
            usage_line(model_name(result), result.total_usage, result.total_cost, turn.seconds)
        )
    return result


def _open_session(
    out: Output, question: Question, client: Client, *, is_logged: bool, **options: Any
) -> Session:
    from interlingua.cli.clients import choose_model
    from interlingua.cli.conversation import last_session, open_store, resume
    from interlingua.sync import Session

    given: dict[str, Any] = dict(question.options)
    if question.system is not None:
        given["system"] = question.system
    if options["goes_on"] or options["cid"]:
        store = open_store()
        session_id = options["cid"] or last_session(store)
        if session_id is None:
            raise click.UsageError("There is no conversation to continue.")
        return resume(session_id, store, client, **given)
    model = question.model
    if model is None:
        model, why = choose_model()
        out.note(f"Model: {model} ({why})")
    return Session(model, store=open_store() if is_logged else None, client=client, **given)


def describe_result(
    result: GenerateResult[Any], session: Session, seconds: float
) -> dict[str, object]:
    """What `--json` prints of an answer."""
    from interlingua.cli.conversation import model_name

    return {
        "model": model_name(result),
        "text": result.text,
        "object": result.output,
        "reasoning": result.reasoning or None,
        "finish_reason": result.finish_reason.reason,
        "usage": {
            "input_tokens": result.total_usage.input_tokens,
            "output_tokens": result.total_usage.output_tokens,
        },
        "cost": None if result.total_cost is None else result.total_cost.total,
        "seconds": round(seconds, 3),
        "warnings": [
            {"code": warning.code, "message": warning.message} for warning in result.warnings
        ],
        "conversation": session.session_id,
    }


def code_block(text: str, *, is_last: bool = False) -> str:
    """The first fenced code block of a text, or the last; the whole text if it has none."""
    found: list[str] = []
    fence = ""
    block: list[str] = []
    for line in text.split("\n"):
        match = _match_fence(line)
        if not fence:
            fence = match[1] if match else ""
        elif match and match[1].startswith(fence) and not line.strip("`~ \t"):
            found.append("\n".join(block).rstrip("\n"))
            if not is_last:
                break
            fence, block = "", []
        else:
            block.append(line)
    return found[-1] if found else text.rstrip("\n")  # a block without an end is none
