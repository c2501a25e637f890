"""`interlingua explain`: the request that a question would become."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from interlingua.cli.output import (
    Output,
    dollars,
    fold,
    json_text,
    paint,
    printable,
    with_output,
)
from interlingua.cli.prompts import Question, prompt_options, read_question
from interlingua.cli.tables import BOLD, DIM, RED, YELLOW

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
        out.line("\n".join(_lines(explanation)))


def _dry_run(out: Output, question: Question) -> Explanation:
    from interlingua.cli.clients import at_server, choose_model, chosen_settings, open_client
    from interlingua.errors import ConfigurationError

    model = question.model
    if model is None:
        model, why = choose_model()
        out.note(f"Model: {model} ({why})")
    request = _request(question, model, **chosen_settings(question, model))
    client = at_server(open_client(), model, question.access)
    try:
        return client.explain(request, stream=True)
    except ConfigurationError as error:
        if error.error_code != "not_configured":
            raise
    return client.with_access(model, api_key="").explain(request, stream=True)


def _request(question: Question, model: str, **chosen: Any) -> Request:
    from interlingua import Message, Request, ResponseFormat, Tool, ToolDefinition

    settings: dict[str, Any] = {
        **{name: value for name, value in question.options.items() if name not in _OF_RUNS},
        **chosen,
    }
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


def _fields(explanation: Explanation) -> dict[str, object]:
    names = (
        *("provider", "model", "dialect", "method", "url", "headers", "body", "fetches"),
        *("warnings", "refused", "cache_marks", "estimated_input_tokens", "estimated_cost"),
    )
    return {name: getattr(explanation, name) for name in names}


def _lines(explanation: Explanation) -> Iterator[str]:
    from interlingua.tokens.fitted import SLACK

    screen = sys.stdout
    yield paint(screen, f"{explanation.method} {printable(explanation.url)}", BOLD)
    for name, value in explanation.headers.items():
        yield paint(screen, printable(f"{name}: {value}"), DIM)
    yield from ("", printable(json_text(explanation.body)), "")
    for word, color, warnings in (
        ("warning", YELLOW, explanation.warnings),
        ("would be refused", RED, explanation.refused),
    ):
        for warning in warnings:
            text = fold(screen, printable(f"{word}: {warning.message}"))
            yield paint(screen, word, color) + text.removeprefix(word)
    for path in explanation.fetches:
        yield f"fetched first: {printable(path)}"
    lower, upper = explanation.input_token_bounds
    most = "no upper bound is known" if upper is None else f"at most {upper:,}"
    if upper is None and explanation.estimated_input_tokens >= SLACK:  # else as many
        most += ": budgets and rate limits reserve twice as many"
    yield f"input: about {explanation.estimated_input_tokens:,} tokens (at least {lower:,}, {most})"
    cost = explanation.estimated_cost
    yield "cost: unknown" if cost is None else f"cost: {dollars(cost.low)} to {dollars(cost.high)}"
