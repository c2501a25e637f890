"""A tour of the language: read a transcript in each dialect, write it in the other three."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from interlingua import Message, Request, Response, dialects
from interlingua.conformance.cases import Case, cut_frames, decode_frames, fold, read_cases
from interlingua.spec.content import Part, Text, Thinking, ToolCall, ToolResult

FIXTURES = Path(__file__).resolve().parents[1] / "tests" / "fixtures"
CASE = "tool_result"
BOLD, DIM, YELLOW, PLAIN = (
    ("\x1b[1m", "\x1b[2m", "\x1b[33m", "\x1b[0m") if sys.stdout.isatty() else ("", "", "", "")
)


def show_part(part: Part) -> str:
    match part:
        case Text():
            return f"text {part.text!r}"
        case Thinking():
            kept = "signed" if part.signature else "opaque" if part.data else "plain"
            return f"thinking {part.text!r} ({kept})"
        case ToolCall():
            return f"call {part.name}({json.dumps(part.arguments)})  id {part.id}"
        case ToolResult():
            mark = "error " if part.is_error else ""
            content = part.content if part.parts is None else [show_part(p) for p in part.parts]
            return f"{mark}result {content!r}  of {part.tool_call_id}"
        case _:
            return part.kind


def show_message(message: Message) -> None:
    for i, part in enumerate(message.content):
        print(f"  {message.role if i == 0 else '':>10}  {show_part(part)}")


def show_request(request: Request) -> None:
    tools = ", ".join(getattr(tool, "name", "built-in") for tool in request.tools or ())
    print(f"  {DIM}model {request.model}; tools {tools or 'none'}{PLAIN}")
    for message in request.messages:
        show_message(message)


def show_response(response: Response) -> None:
    show_message(response.message)
    usage = response.usage
    print(
        f"  {DIM}finish {response.finish_reason.reason} (their word: "
        f"{response.finish_reason.raw}); {usage.input_tokens} tokens in, "
        f"{usage.output_tokens} out{PLAIN}"
    )


def show_wire(name: str, request: Request) -> None:
    call = dialects.get(name).encode_request(request)
    text = json.dumps(call.body, ensure_ascii=False)
    print(f"\n  {BOLD}in {name}{PLAIN}: POST {call.path}, {len(text)} characters")
    print(f"  {DIM}{text[:240]}{'…' if len(text) > 240 else ''}{PLAIN}")
    for warning in call.warnings:
        print(f"  {YELLOW}! {warning.code}{PLAIN} at {warning.path}: {warning.message}")


def read_answer(name: str, case: Case) -> Response:
    dialect = dialects.get(name)
    if case.stream is not None:
        return fold(decode_frames(dialect, cut_frames([case.stream], case.framing)))
    return dialect.decode_response(case.response)


def main() -> None:
    for name in dialects.names():
        cases = {case.name: case for case in read_cases(FIXTURES / name)}
        case = cases[CASE]
        if case.call is None:
            sys.exit(f"the transcript of {name} has no request")
        request = dialects.get(name).decode_request(case.call)
        print(f"\n{BOLD}━━ read from {name}{PLAIN}")
        show_request(request)
        print(f"\n  {BOLD}the answer{PLAIN}")
        show_response(read_answer(name, case))
        for other in dialects.names():
            if other != name:
                show_wire(other, request)
    print(
        "\nNothing was sent anywhere. Each body above is what a client would send; each "
        "warning says what that provider has no words for."
    )


if __name__ == "__main__":
    main()
