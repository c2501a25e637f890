"""
A demo without keys: a local model in three dialects, then one conversation in four.

    scripts/demo

That script installs what is needed and runs this one. The first part starts llama.cpp with a model
of 135 million parameters on this machine; the second is simulated, and no provider is called.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time

from interlingua import Client, HttpAdapter, Message, Request, Response, ToolDefinition, ToolResult
from interlingua.providers.adapter import LocalAdapter
from interlingua.simulator import Simulator, serve, text, thinking, tool_call
from interlingua.simulator.dsl import Turn
from interlingua.spec.content import Text, Thinking, ToolCall

BOLD, DIM, YELLOW, PLAIN = (
    ("\x1b[1m", "\x1b[2m", "\x1b[33m", "\x1b[0m") if sys.stdout.isatty() else ("", "", "", "")
)
LOCAL = ("openai_chat", "openai_responses", "anthropic_messages")
WEATHER = ToolDefinition(
    name="get_weather",
    description="The weather in a city now.",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
)
TURNS = (
    ("anthropic", "claude-haiku-4-5", "What is the weather in Oslo and in Rome?"),
    ("openai", "gpt-5.2", "And in Lima?"),
    ("gemini", "gemini-2.5-flash", "Which of them is the warmest?"),
    ("openai_compatible", "house-model", "Thank you. Which of them is the coldest?"),
)


def title(heading: str) -> None:
    print(f"\n{BOLD}{heading}{PLAIN}")


def show_end(response: Response) -> None:
    usage = response.usage
    print(
        f"  {DIM}[{response.finish_reason.reason}; {usage.input_tokens} tokens in, "
        f"{usage.output_tokens} out; {response.latency_ms} ms]{PLAIN}"
    )
    for warning in response.warnings:
        where = f" at {warning.path}" if warning.path else ""
        print(f"  {YELLOW}warning {warning.code}{where}: {warning.message}{PLAIN}")


async def stream(client: Client, request: Request) -> Response:
    """Print an answer as it arrives, then the number of events of each type."""
    seen: dict[str, int] = {}
    print("  ", end="")
    async for event in client.stream(request):
        seen[event.type] = seen.get(event.type, 0) + 1
        if event.type in ("text_delta", "reasoning_delta"):
            print(event.delta.replace("\n", "\n  "), end="", flush=True)
        elif event.type in ("text_end", "reasoning_end"):
            print("\n  ", end="")
        elif event.type == "tool_call_end":
            call = event.tool_call
            print(
                f"-> {call.name}({json.dumps(call.arguments)})  {DIM}{call.id}{PLAIN}\n  ", end=""
            )
        elif event.type == "finish":
            response = event.response
    counts = ", ".join(f"{count} {name}" for name, count in seen.items())
    print(f"{DIM}events: {counts}{PLAIN}")
    show_end(response)
    return response


async def ask_local_model() -> None:
    title("A real model on this machine (SmolLM2-135M on llama.cpp), called in three dialects")
    adapters = {name: LocalAdapter(dialect=name, name=name) for name in LOCAL}
    async with Client(adapters) as client:
        for name in LOCAL:
            title(name)
            request = Request(
                provider=name,
                model="smollm2",
                messages=(
                    Message.system("You answer in one short sentence."),
                    Message.user("What is the capital of Norway?"),
                ),
                max_tokens=40,
                temperature=0.0,
            )
            await stream(client, request)


def play(request: Request) -> Turn:
    """The answers of the simulated models: they call the tool if the user asks for the weather."""
    last = request.messages[-1]
    if any(isinstance(part, ToolResult) for part in last.content):
        return text("[simulated] The weather: " + "; ".join(results(last)) + ".")
    question = last.text
    if "Oslo" in question:
        return (
            thinking("Two cities. I will look up both at once.")
            + tool_call("get_weather", city="Oslo")
            + tool_call("get_weather", city="Rome")
        )
    if "Lima" in question:
        return tool_call("get_weather", city="Lima")
    count = sum(isinstance(part, ToolResult) for m in request.messages for part in m.content)
    return text(f"[simulated] This history contains {count} tool results.")


def results(message: Message) -> list[str]:
    return [str(part.content) for part in message.content if isinstance(part, ToolResult)]


def run_tool(call: ToolCall) -> ToolResult:
    weather = {"Oslo": "4 C, rain", "Rome": "19 C, sun"}.get(call.arguments["city"])
    if weather is None:
        return ToolResult(tool_call_id=call.id, content="no weather station there", is_error=True)
    return ToolResult(tool_call_id=call.id, content=f"{call.arguments['city']}: {weather}")


async def carry_conversation() -> None:
    title("One conversation across four dialects (simulated: no model is called here)")
    async with serve(Simulator(play)) as server:
        base = {"openai_compatible": f"{server.url}/v1"}
        adapters = {
            name: HttpAdapter(name, "no-key", base_url=base.get(name, server.url))
            for name, _, _ in TURNS
        }
        async with Client(adapters) as client:
            history: list[Message] = [Message.system("Be brief.")]
            for provider, model, question in TURNS:
                title(f"{provider} ({adapters[provider].dialect})")
                print(f"  user: {question}")
                history.append(Message.user(question))
                while True:
                    request = Request(
                        provider=provider, model=model, messages=history, tools=[WEATHER]
                    )
                    response = await stream(client, request)
                    history.append(response.message)
                    if not response.tool_calls:
                        break
                    answers = tuple(run_tool(call) for call in response.tool_calls)
                    history.append(Message(role="tool", content=answers))
        title("The history, which can be sent to any of these providers")
        for message in history:
            show_message(message)


def show_message(message: Message) -> None:
    for part in message.content:
        match part:
            case Text():
                shown = repr(part.text)
            case Thinking():
                shown = f"thinking {part.text!r}"
            case ToolCall():
                shown = f"call {part.name}({json.dumps(part.arguments)})"
            case ToolResult():
                shown = f"{'error' if part.is_error else 'result'} {part.content!r}"
            case _:
                shown = part.kind
        print(f"  {message.role:>10}  {shown}")


NEXT = (
    ("interlingua ask -m local:smollm2 'Hello!'", "ask the model on this machine"),
    ("interlingua chat -m local:smollm2", "talk to it"),
    ("interlingua providers", "which variable each provider needs"),
    ("export ANTHROPIC_API_KEY=...", "then -m anthropic:claude-haiku-4-5"),
    ("python examples/coding_agent.py", "a whole program; examples/README.md lists the others"),
    ("scripts/smoke", "try the providers whose keys are set; it asks before it spends"),
)
PAGES = (
    ("docs/tutorial.md", "from the first call to the first tool, without a key"),
    ("docs/howto/test-your-program.md", "scripted models for your own tests"),
    ("docs/howto/command-line.md", "all commands"),
    ("docs/reference.md", "every name and option"),
)


def show_next() -> None:
    """Where to go from here; the commands work in this folder."""
    title("Where to go next")
    print(f"  {DIM}source .venv/bin/activate  # the environment of this demo{PLAIN}")
    for command, what in NEXT:
        print(f"  {command:44} {DIM}{what}{PLAIN}")
    print()
    for page, what in PAGES:
        print(f"  {page:44} {DIM}{what}{PLAIN}")


async def main() -> None:
    began = time.perf_counter()
    await ask_local_model()
    await carry_conversation()
    print(f"\n{DIM}finished in {time.perf_counter() - began:.1f} s{PLAIN}")
    show_next()


if __name__ == "__main__":
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    ).parse_args()
    asyncio.run(main())
