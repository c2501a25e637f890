"""`interlingua explain`: the request that a question would become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from interlingua.cli.output import Output, json_text, printable, with_output
from interlingua.cli.prompts import Question, prompt_options, read_question

if TYPE_CHECKING:
    from interlingua import Explanation, Request

_OF_RUNS = frozenset(("max_tool_rounds", "tool_timeout", "max_retries", "timeout", "limits"))
"""Options of a run, which are not part of its requests."""


@click.command("explain")
@prompt_options
@with_output
def command(out: Output, **options: Any) -> None:
    r"""
    Show the request that `ask` would send, without a key and without sending it.

    It shows the URL, the headers (the key is never shown), the body, what was changed for this
    model, and an estimate of tokens and cost.

    \b
    interlingua explain -m anthropic:claude-haiku-4-5 "Hello"
    interlingua explain -m openai:gpt-5.2 -a photo.jpg -o temperature 0.2 "What is this?"
    """
    explain(out, read_question(**options))


def explain(out: Output, question: Question) -> None:
    """Print what a question would become."""
    explanation = _dry_run(out, question)
    if out.json:
        out.data(_fields(explanation))
    else:
        out.line(printable("\n".join(_lines(explanation))))


def _dry_run(out: Output, question: Question) -> Explanation:
    from interlingua.cli.clients import choose_model, open_client
    from interlingua.errors import ConfigurationError

    model = question.model
    if model is None:
        model, why = choose_model()
        out.note(f"Model: {model} ({why})")
    request = _request(question, model)
    client = open_client()
    try:
        return client.explain(request, stream=True)
    except ConfigurationError as error:
        if error.error_code != "not_configured":
            raise
    return client.with_access(model, api_key="missing").explain(request, stream=True)


def _request(question: Question, model: str) -> Request:
    from interlingua import Message, Request, ResponseFormat, Tool, ToolDefinition

    settings = {name: value for name, value in question.options.items() if name not in _OF_RUNS}
    tools = [
        each.definition if isinstance(each, Tool) else each for each in settings.pop("tools", ())
    ]
    messages = [Message(role="user", content=tuple(question.content))]
    if question.system is not None:
        messages.insert(0, Message.system(question.system))
    if question.schema is not None:
        settings["response_format"] = ResponseFormat(
            type="json_schema", json_schema=question.schema
        )
    definitions: list[ToolDefinition] = tools
    try:
        return Request(model=model, messages=messages, tools=definitions, **settings)
    except TypeError as error:
        raise click.UsageError(f"-o: {error}") from None


def _fields(explanation: Explanation) -> dict[str, Any]:
    names = (
        *("provider", "model", "dialect", "method", "url", "headers", "body", "fetches"),
        *("warnings", "refused", "cache_marks", "estimated_input_tokens", "estimated_cost"),
    )
    return {name: getattr(explanation, name) for name in names}


def _lines(explanation: Explanation) -> list[str]:
    lines = [f"{explanation.method} {explanation.url}"]
    lines += [f"{name}: {value}" for name, value in explanation.headers.items()]
    lines += ["", json_text(explanation.body), ""]
    lines += [f"warning: {warning.message}" for warning in explanation.warnings]
    lines += [f"would be refused: {warning.message}" for warning in explanation.refused]
    lines += [f"fetched first: {path}" for path in explanation.fetches]
    lines.append(f"input: about {explanation.estimated_input_tokens:,} tokens")
    cost = explanation.estimated_cost
    lines.append("cost: unknown" if cost is None else f"cost: ${cost.low:.6f} to ${cost.high:.6f}")
    return lines
