"""
Small programs that use the whole library, against every provider whose key is in the environment.

It says what it will try and what that may cost, and asks before it spends. The exit code is 0 if
all checks passed, 1 if one failed, 2 if nothing was tried.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from time import perf_counter
from typing import NamedTuple

from interlingua import (
    Client,
    GenerateOptions,
    Image,
    Message,
    Request,
    ToolCall,
    generate,
    generate_object,
    stream,
    tool,
)
from interlingua.catalog import ModelInfo, get_latest_model, list_models
from interlingua.client.environment_adapters import adapters_from_env
from interlingua.errors import AuthenticationError, NotFoundError
from interlingua.providers.rows import providers
from interlingua.simulator import Simulator, Turn, latency, results, serve, text, tool_call

MAX_TOKENS = 2000  # enough for a model that thinks first
SECONDS = 120.0  # for one check
CALLS = 11  # of all checks together
INPUT = "x" * 2000  # characters that no check sends more of, with tools and schema
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
PNG = base64.b64decode(  # 8 x 8 red points
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP4z8CAFWEXHbQSACj/P8Fu7N9hAAAAAElF"
    "TkSuQmCC"
)


@tool
def get_weather(location: str) -> str:
    """The weather in a city."""
    return f"72F and sunny in {location}"


class Target(NamedTuple):
    """A model to try, and the client that has its key."""

    client: Client
    provider: str
    model: str


class SkippedError(Exception):
    """The model cannot do what the check needs."""


class FailedError(Exception):
    """A check found something wrong."""


def expect(condition: object, what: str) -> None:
    if not condition:
        raise FailedError(what)


def settings(target: Target) -> GenerateOptions:
    """The options of every call."""
    return {
        "client": target.client,
        "max_tokens": MAX_TOKENS,
        "provider": target.provider,
        "max_retries": 4,  # a rate limit is no failure
    }


# The checks. Each raises if it fails, and returns a note.


async def check_answer(target: Target) -> str:
    """Text, tokens, a finish reason and a cost."""
    result = await generate(
        target.model,
        "Say hello in one sentence.",
        **settings(target),
    )
    expect(result.text, "the text is empty")
    expect(result.usage.input_tokens > 0, "there are no input tokens")
    expect(result.usage.output_tokens > 0, "there are no output tokens")
    expect(result.finish_reason.reason == "stop", f"it finished with {result.finish_reason.reason}")
    return "cost unknown" if result.cost is None else f"${result.cost.total:.5f}"


async def check_stream(target: Target) -> str:
    """The pieces are the whole."""
    answer = stream(
        target.model,
        "Write a haiku.",
        **settings(target),
    )
    pieces = [event.delta async for event in answer if event.type == "text_delta"]
    expect(pieces, "there was no piece of text")
    expect("".join(pieces) == answer.response().text, "the pieces are not the text")
    return f"{len(pieces)} pieces"


async def check_tools(target: Target) -> str:
    """Both cities are looked up and answered."""
    result = await generate(
        target.model,
        "What is the weather in San Francisco and New York?",
        tools=[get_weather],
        max_tool_rounds=3,
        **settings(target),
    )
    expect(len(result.steps) >= 2, "the model called no tool")
    for city in ("San Francisco", "New York"):
        expect(city in result.text, f"the answer does not name {city}")
    return f"{len(result.steps)} steps"


async def check_image(target: Target) -> str:
    """A picture is understood."""
    profile = target.client.profile_for(Request(model=target.model, provider=target.provider))
    if profile.image_types == ():
        raise SkippedError("no vision")
    result = await generate(
        target.model,
        ["Which colour is this?", Image(data=PNG, media_type="image/png")],
        **settings(target),
    )
    expect("red" in result.text.lower(), f"it is red, not {result.text[:60]!r}")
    return ""


async def check_object(target: Target) -> str:
    """An object of the schema."""
    result = await generate_object(
        target.model,
        "Extract: Alice is 30 years old",
        schema=PERSON,
        **settings(target),
    )
    expect(result.output == {"name": "Alice", "age": 30}, f"it is {result.output}")
    return ""


async def check_history(target: Target) -> str:
    """A conversation that another provider had, with a tool call, goes on."""
    call = ToolCall(id="call_of-another", name="get_weather", arguments={"location": "Oslo"})
    result = await generate(
        target.model,
        messages=[
            Message.user("What is the weather in Oslo?"),
            Message.assistant([call]),
            Message.tool_result(call.id, "4 C and rain in Oslo"),
            Message.assistant("It is 4 C and rains."),
            Message.user("How many degrees did you say? Answer with the number."),
        ],
        tools=[get_weather],
        **settings(target),
    )
    expect("4" in result.text, f"it is 4, not {result.text[:60]!r}")
    return ""


async def check_cancel(target: Target) -> str:
    """After a cancellation, nothing more is delivered."""
    request = Request(
        model=target.model,
        provider=target.provider,
        messages="Count from 1 to 500 in words.",
        max_tokens=MAX_TOKENS,
        request_id=f"smoke-cancel-{target.provider}",
    )
    after: list[str] = []
    is_cancelled = False
    async for event in target.client.stream(request):
        if is_cancelled:
            after.append(event.type)
        elif event.type == "text_delta":
            is_cancelled = await target.client.cancel(request.request_id or "")
            expect(is_cancelled, "there was nothing to cancel")
    expect(is_cancelled, "there was no piece of text")
    expect(after[-1] == "finish", "the stream did not finish")
    expect("text_delta" not in after, "text was delivered after the cancellation")
    return ""


async def check_unknown_model(target: Target) -> str:
    """A model that does not exist is `NotFoundError`."""
    try:
        await generate(
            "nonexistent-model-xyz",
            "test",
            **settings(target),
        )
    except NotFoundError as error:
        return f"HTTP {error.status_code}"
    raise FailedError("an unknown model answered")


async def check_bad_key(target: Target) -> str:
    """A wrong key is `AuthenticationError`, and is not shown."""
    wrong = "sk-wrong-key-of-the-smoke-test"
    try:
        await generate(
            target.model,
            "test",
            api_key=wrong,
            **settings(target),
        )
    except AuthenticationError as error:
        expect(wrong not in f"{error} {error.raw}", "the key is in the error")
        return f"HTTP {error.status_code}"
    raise FailedError("a wrong key was accepted")


Check = Callable[[Target], Awaitable[str]]
CHECKS: dict[str, Check] = {
    "answer": check_answer,
    "stream": check_stream,
    "tools": check_tools,
    "image": check_image,
    "object": check_object,
    "history": check_history,
    "cancel": check_cancel,
    "unknown model": check_unknown_model,
    "bad key": check_bad_key,
}


class Outcome(NamedTuple):
    """What became of a check."""

    mark: str
    note: str = ""


async def run_check(check: Check, target: Target) -> Outcome:
    """The outcome; whatever is raised is a failure of this check alone."""
    began = perf_counter()
    try:
        async with asyncio.timeout(SECONDS):
            note = await check(target)
    except SkippedError as reason:
        return Outcome("skip", str(reason))
    except FailedError as what:
        return Outcome("FAIL", str(what))
    except Exception as error:  # noqa: BLE001 -- the other checks go on
        return Outcome("FAIL", f"{type(error).__name__}: {error}")
    return Outcome("pass", f"{perf_counter() - began:.1f} s {note}".strip())


async def run_checks(target: Target, chosen: Mapping[str, Check]) -> dict[str, Outcome]:
    """One after another, so that a provider is not asked too much at once."""
    return {name: await run_check(check, target) for name, check in chosen.items()}


# What is tried.


def choose_model(provider: str, *, is_cheap: bool) -> str | None:
    """The latest model with tools and vision, or the cheapest; None if none is known."""
    for abilities in (("tools", "vision"), ("tools",), ()):
        if not is_cheap:
            latest = get_latest_model(provider, abilities or None)
            if latest is not None:
                return latest.id
            continue
        models = list_models(provider, kind="chat", capability=abilities or None, available=True)
        priced = [model for model in models if _price(model)]
        if priced:
            return min(priced, key=_price).id
    return None


def _price(model: ModelInfo) -> float:
    return (model.input_cost_per_million or 0) + (model.output_cost_per_million or 0)


def find_targets(
    client: Client, environ: Mapping[str, str], options: argparse.Namespace
) -> tuple[list[Target], dict[str, str]]:
    """The models to try, and why other providers are not tried."""
    named = dict(model.split(":", 1) for model in options.model)
    configured = {*adapters_from_env(environ)}
    for name in options.provider:  # some are used only when they are named
        configured |= {*adapters_from_env(environ, named=name)}
    targets: list[Target] = []
    reasons: dict[str, str] = {}
    for name, row in providers().items():
        if (options.provider and name not in options.provider) or row.is_local:
            continue
        if name not in configured:
            missing = [each[0] for each in (row.key_env, *row.address_env) if each]
            reasons[name] = f"set {' and '.join(missing)}" if missing else "name it in a program"
            continue
        model = named.get(name) or choose_model(name, is_cheap=options.cheap)
        if model is None:
            reasons[name] = f"no model is known; pass --model {name}:MODEL"
        else:
            targets.append(Target(client, name, model))
    return targets, reasons


def estimate(target: Target) -> float | None:
    """The most that the checks may cost in dollars; None if it is not known."""
    request = Request(
        model=target.model, provider=target.provider, messages=INPUT, max_tokens=MAX_TOKENS
    )
    cost = target.client.estimate_cost(request)
    return None if cost is None else cost.high * CALLS


def is_allowed(targets: list[Target], *, is_yes: bool) -> bool:
    """Show what it may cost, and ask, unless the caller has said yes."""
    print("This will call, and may cost at most:")
    known = 0.0
    for target in targets:
        cost = estimate(target)
        known += cost or 0.0
        shown = "unknown" if cost is None else f"${cost:.2f}"
        print(f"  {f'{target.provider}:{target.model}':60} {shown:>8}")
    if is_yes:
        return True
    if not sys.stdin.isatty():
        print("Pass --yes to allow it; there is no terminal to ask.")
        return False
    return input(f"Spend up to ${known:.2f}? [y/N] ").strip().lower() == "y"


# What is printed.


def print_table(outcomes: Mapping[str, Mapping[str, Outcome]], chosen: list[str]) -> None:
    """A row for each model and a column for each check; then the failures."""
    width = max(map(len, outcomes))
    print("\n" + " " * width + "  " + "  ".join(chosen))
    for name, row in outcomes.items():
        marks = "  ".join(f"{row[check].mark:{len(check)}}" for check in chosen)
        print(f"{name:{width}}  {marks}")
    for name, row in outcomes.items():
        for check, outcome in row.items():
            if outcome.mark != "pass":
                print(f"\n{outcome.mark} {name} {check}: {outcome.note}")


def print_reasons(reasons: Mapping[str, str]) -> None:
    if reasons:
        print("\nNot tried:")
        for name, reason in reasons.items():
            print(f"  {name:20} {reason}")


# Simulated providers.

KEY = "simulated-key"
SIMULATED = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ""),
    "gemini": ("GEMINI_API_KEY", "GEMINI_BASE_URL", ""),
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL", ""),
    "openrouter": ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "/v1"),
}
"""Of each dialect one provider: the variables of its key and address, and where its paths begin."""


def answer(request: Request) -> Turn:
    """The answer of a model that reads, but knows only what is in the request."""
    question = request.messages[-1]
    tools = {each.name for each in request.tools}
    person = re.search(r"(\w+) is (\d+) years", question.text)
    if person is not None:
        found = {"name": person[1], "age": int(person[2])}
        return tool_call("answer", found) if "answer" in tools else text(json.dumps(found))
    if results(request):
        return text(" and ".join(str(result.content) for result in results(request)))
    if "degrees" in question.text:
        said = " ".join(message.text for message in request.messages[:-1])
        return text(re.findall(r"(\d+) C", said)[-1])
    if "get_weather" in tools:
        cities = re.findall(r"San Francisco|New York", question.text)
        return sum((tool_call("get_weather", location=city) for city in cities), start=Turn())
    if any(isinstance(part, Image) and part.data == PNG for part in question.content):
        return text("It is red.")
    if "500" in question.text:
        return text("one two three four five " * 100) + latency(between=0.002)
    return text("Old pond, a frog jumps in, water's sound." if "haiku" in question.text else "Hi.")


@asynccontextmanager
async def simulated(options: argparse.Namespace) -> AsyncIterator[dict[str, str]]:
    """The environment of a user whose providers are all simulated."""
    models = [choose_model(name, is_cheap=options.cheap) or "" for name in SIMULATED]
    models += [model.partition(":")[2] for model in options.model]
    async with serve(Simulator(answer, key=KEY, models=models)) as server:
        environ: dict[str, str] = {}
        for key, address, path in SIMULATED.values():
            environ |= {key: KEY, address: server.url + path}
        yield environ


# The program.


def read_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/smoke", description=__doc__)
    add = parser.add_argument
    add("--yes", action="store_true", help="spend without asking")
    add("--simulate", action="store_true", help="try simulated providers; nothing is spent")
    add("--provider", action="append", default=[], help="only this one; may be repeated")
    add("--model", action="append", default=[], metavar="PROVIDER:MODEL", help="not the latest one")
    add("--cheap", action="store_true", help="the cheapest models, not the latest")
    add("--check", action="append", default=[], choices=CHECKS, help="only this; may be repeated")
    options = parser.parse_args(arguments)
    for model in options.model:
        if ":" not in model:
            parser.error(f"--model {model}: write PROVIDER:MODEL")
    for name in options.provider:
        if name not in providers():
            parser.error(f"--provider {name}: there is no such provider")
    return options


async def try_all(environ: Mapping[str, str], options: argparse.Namespace) -> int:
    """Run the checks at all providers at once; returns the exit code."""
    async with Client.from_env(environ) as client:
        targets, reasons = find_targets(client, environ, options)
        if not targets:
            print("No provider was tried: no key is set that belongs to a known model.")
            print_reasons(reasons)
            return 2
        if not (options.simulate or is_allowed(targets, is_yes=options.yes)):
            print("Nothing was sent.")
            return 2
        chosen = {name: CHECKS[name] for name in options.check or CHECKS}
        rows = await asyncio.gather(*(run_checks(target, chosen) for target in targets))
    outcomes = {
        f"{target.provider}:{target.model}": row for target, row in zip(targets, rows, strict=True)
    }
    print_table(outcomes, list(chosen))
    if not options.simulate:
        print_reasons(reasons)
    failures = sum(each.mark == "FAIL" for row in rows for each in row.values())
    print(f"\n{failures} failed" if failures else "\nAll checks passed.")
    return 1 if failures else 0


async def main(arguments: list[str] | None = None) -> int:
    options = read_options(arguments)
    if not options.simulate:
        return await try_all(os.environ, options)
    async with simulated(options) as environ:
        return await try_all(environ, options)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
