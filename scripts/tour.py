"""
A demo without keys: one story, from a first answer to the gateway.

    scripts/demo

That script installs what is needed and runs this one. The first two parts ask a model of 135
million parameters on this machine; the others are simulated, and no provider is called.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import openai

from interlingua import (
    Client,
    HttpAdapter,
    Request,
    Response,
    Session,
    StreamResult,
    generate,
    stream,
    tool,
)
from interlingua.events import TextDelta, ToolCallEnd, ToolResultEvent
from interlingua.simulator import Simulator, Turn, serve, text, thinking, tool_call

BOLD, DIM, YELLOW, PLAIN = (
    ("\x1b[1m", "\x1b[2m", "\x1b[33m", "\x1b[0m") if sys.stdout.isatty() else ("", "", "", "")
)
LOCAL = "local:smollm2"
FIRST = "anthropic:claude-haiku-4-5"
TURNS = (
    (FIRST, "What is the weather in Oslo and in Rome?"),
    ("openai:gpt-5.2", "And in Lima?"),
    ("gemini:gemini-2.5-flash", "Which of them is the warmest?"),
    ("groq:openai/gpt-oss-120b", "And the coldest?"),
    (FIRST, "Thank you. Where should I go?"),
)
WEATHER = {"Oslo": "4 C, rain", "Rome": "19 C, sun"}


def title(number: int, heading: str) -> None:
    print(f"\n{BOLD}{number}. {heading}{PLAIN}")


def note(sentence: str) -> None:
    print(f"   {DIM}{sentence}{PLAIN}")


# A real model.


async def ask_local_model() -> None:
    title(1, f"An answer without a key: {LOCAL}, on this machine")
    result = await generate(LOCAL, "What is the capital of Norway?", temperature=0, max_tokens=30)
    print(f"   {result.text.strip()}")
    usage = result.usage
    note(f"{usage.input_tokens} tokens in, {usage.output_tokens} out")


async def stream_local_model() -> None:
    title(2, "A stream, as it arrives")
    print("   ", end="")
    answer = stream(LOCAL, "Write one sentence about the sea.", temperature=0, max_tokens=40)
    async for piece in answer.text_stream:
        print(piece.replace("\n", " "), end="", flush=True)
    print()
    note(f"ended with {answer.response().finish_reason.reason!r}; a cut stream would be an error")


# Simulated models.


@tool
def get_weather(city: str) -> str:
    """The weather in a city now."""
    if city not in WEATHER:
        raise LookupError("no weather station there")
    return f"{city}: {WEATHER[city]}"


def play(request: Request) -> Turn:
    """The answers of the simulated models: they call the tool if the user asks for the weather."""
    last = request.messages[-1]
    if last.role == "tool":
        results = [str(part.content) for part in last.content if part.kind == "tool_result"]
        return text("[simulated] The weather: " + "; ".join(results) + ".")
    if "Oslo" in last.text:
        return (
            thinking("Two cities. I will look up both at once.")
            + tool_call("get_weather", city="Oslo")
            + tool_call("get_weather", city="Rome")
        )
    if "Lima" in last.text:
        return tool_call("get_weather", city="Lima")
    if "Who" in last.text:
        return text(f"[simulated] I am {request.model}.")
    kinds = [part.kind for message in request.messages for part in message.content]
    return text(
        f"[simulated] I see {kinds.count('tool_result')} tool results in this conversation."
    )


async def carry_conversation(url: str) -> None:
    title(3, "A tool, and one conversation across four dialects (simulated)")
    models = dict.fromkeys(model.partition(":")[0] for model, _ in TURNS)
    base = {"groq": f"{url}/v1"}  # addresses of Chat Completions include the version
    adapters = {name: HttpAdapter(name, "no-key", base_url=base.get(name, url)) for name in models}
    repairs: list[str] = []
    async with Client(adapters) as client:
        session = Session(FIRST, system="Be brief.", tools=[get_weather], client=client)
        for model, question in TURNS:
            session.swap(model)
            dialect = adapters[model.partition(":")[0]].dialect
            print(f"   {BOLD}{model}{PLAIN} {DIM}({dialect}){PLAIN}  {question}")
            answer = session.stream(question)
            await show(answer)
            repairs += [f"{model}: {line}" for line in repairs_of(answer.response())]
        show_repairs(repairs, client.explain(Request(model=FIRST, messages=session.messages)).body)
        title(5, "What it cost")
        cost, usage = session.cost, session.usage
        print(
            f"   {usage.input_tokens} tokens in, {usage.output_tokens} out, in {len(TURNS)} turns"
        )
        print(f"   {cost.total:.6f} {cost.currency}" if cost else "   unknown")
        note("at the catalog's prices of the four models; no real money was spent")


async def show(answer: StreamResult) -> None:
    """Print what a turn does."""
    print("     ", end="")
    async for event in answer:
        match event:
            case TextDelta():
                print(event.delta, end="", flush=True)
            case ToolCallEnd():
                call = event.tool_call
                print(f"{call.name}({json.dumps(call.arguments)}) ", end="")
            case ToolResultEvent():
                print(f"{DIM}-> {event.result.content}{PLAIN}  ", end="")
    print()


def repairs_of(response: Response) -> list[str]:
    return [f"{warning.code} at {warning.path}" for warning in response.warnings]


def show_repairs(repairs: list[str], body: object) -> None:
    title(4, "What was repaired, so that each provider accepts the history of the others")
    for line in repairs:
        print(f"   {YELLOW}{line}{PLAIN}")
    signed = json.dumps(body).count('"type": "thinking"')
    note(f"back at {FIRST}, its own signed thinking is sent again as it was ({signed} block)")


# The gateway.


async def use_gateway(url: str) -> None:
    title(6, "The gateway: OpenAI's own SDK, a model of Anthropic (simulated)")
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "INTERLINGUA_HOME": home}
        env |= {"ANTHROPIC_API_KEY": "no-key", "ANTHROPIC_BASE_URL": url}
        command = [sys.executable, "-m", "interlingua", "serve", "--port", "0"]
        gateway = subprocess.Popen(  # noqa: ASYNC220, S603 -- ours
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            address, key = await asyncio.to_thread(read_start, gateway)
            note(f"interlingua serve -> {address}")
            async with openai.AsyncOpenAI(base_url=address, api_key=key) as llm:
                answer = await llm.chat.completions.create(
                    model=FIRST, messages=[{"role": "user", "content": "Who are you?"}]
                )
            print(f"   openai {openai.__version__}: {answer.choices[0].message.content}")
        finally:
            gateway.terminate()
            gateway.communicate()


def read_start(gateway: subprocess.Popen[str]) -> tuple[str, str]:
    """The address and the key that the gateway prints."""
    printed = ""
    for line in gateway.stdout or ():
        printed += line
        found = re.search(r"OPENAI_BASE_URL=(\S+) OPENAI_API_KEY=(\S+)", printed)
        if found:
            return found[1], found[2]
    sys.exit(f"The gateway did not start:\n{printed}")


NEXT = (
    ("interlingua ask 'Why is the sky blue?'", "the model on this machine; -m for any other"),
    ("interlingua chat -m local:smollm2", "/model changes the provider in the middle"),
    ("interlingua doctor", "which providers are configured, and what is missing"),
)


def show_next() -> None:
    """Where to go from here; the commands work in this folder."""
    print(f"\n{BOLD}Where to go next{PLAIN}  {DIM}(docs/tutorial.md leads on){PLAIN}")
    print(f"  {DIM}source .venv/bin/activate  # the environment of this demo{PLAIN}")
    for command, what in NEXT:
        print(f"  {command:44} {DIM}{what}{PLAIN}")


async def main() -> None:
    began = time.perf_counter()
    await ask_local_model()
    await stream_local_model()
    async with serve(Simulator(play)) as server:
        await carry_conversation(server.url)
        await use_gateway(server.url)
    print(f"\n{DIM}finished in {time.perf_counter() - began:.1f} s{PLAIN}")
    show_next()


if __name__ == "__main__":
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    ).parse_args()
    asyncio.run(main())
