"""
What the codec costs, beside a floor and beside the vendors' own clients.

    .venv/bin/python benchmarks/codec.py [--quick] [dialect ...]

Everything is CPU time of one process, best of several runs. The floor is the least any
Python client could do: cut the same bytes at line ends and let `msgspec` make dicts of
them. The vendors' clients get the same bytes from a transport in memory, and stop at
their own parsed events or objects; ours goes on to canonical events and the folded
response. Ratios count; absolute figures are this machine's. Beside a ratio that has a limit stand
the limit, and PASS or FAIL.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable

import msgspec
from msgspec.structs import replace
from peers import PEERS
from report import judge, ratio, verdict

from interlingua import (
    Image,
    Message,
    Request,
    Response,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    Usage,
    dialects,
)
from interlingua.dialects import SSEDecoder, StreamAccumulator, encode_sse
from interlingua.history import repair
from interlingua.prepare.history.rules import apply_rules
from interlingua.spec.events import (
    Finish,
    StreamEvent,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.spec.response import FinishReason
from interlingua.wire.json_text import dump_text, dumps, loads

EVENTS = 2_000
FRAGMENT = 50  # 2,000 of these are 100 kB
CHUNK = 16_384
LINEAR = 13.0  # times the cost of a tenth of the messages, at most
decode_json = msgspec.json.Decoder().decode


def best(work: Callable[[], object], runs: int) -> float:
    """Seconds of CPU, the best of several runs."""
    found = float("inf")
    work()
    gc.disable()
    try:
        for _ in range(runs):
            start = time.process_time()
            work()
            found = min(found, time.process_time() - start)
    finally:
        gc.enable()
    return found


def paired(work: Callable[[], object], other: Callable[[], object], runs: int) -> float:
    """How many times the CPU of the other a work takes: they take turns, and the median counts."""
    costs: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        for each, cost in zip((work, other), costs, strict=True):
            gc.collect()
            gc.disable()
            start = time.process_time()
            each()
            cost.append(time.process_time() - start)
            gc.enable()
    return ratio(*costs)


# The same streams in every dialect, made by its own encoder.


def text_events(count: int = EVENTS, size: int = 12) -> list[StreamEvent]:
    word = "wordy token "[:size].ljust(size, "x")
    return text_of_fragments([word] * count)


def text_of_fragments(fragments: list[str]) -> list[StreamEvent]:
    deltas = [TextDelta(id="t", index=0, delta=fragment) for fragment in fragments]
    return [
        StreamStart(id="r_1", model="model-1"),
        TextStart(id="t", index=0),
        *deltas,
        TextEnd(id="t", index=0, part=Text(text="".join(fragments))),
        Finish(
            finish_reason=FinishReason(reason="stop"),
            usage=Usage(input_tokens=12, output_tokens=len(fragments)),
        ),
    ]


def argument_events() -> list[StreamEvent]:
    """A call whose arguments are 100 kB of JSON in 2,000 fragments."""
    inner = "x" * (EVENTS * FRAGMENT - len('{"body":""}'))
    text = '{"body":"' + inner + '"}'
    pieces = [text[i : i + FRAGMENT] for i in range(0, len(text), FRAGMENT)]
    call = ToolCall(id="call_1", name="write", arguments={"body": inner}, raw_arguments=text)
    return [
        StreamStart(id="r_1", model="model-1"),
        ToolCallStart(id="c", index=0, tool_call_id="call_1", name="write"),
        *(ToolCallDelta(id="c", index=0, delta=piece) for piece in pieces),
        ToolCallEnd(id="c", index=0, tool_call=call),
        Finish(finish_reason=FinishReason(reason="tool_calls"), usage=Usage(output_tokens=9)),
    ]


def to_bytes(name: str, events: list[StreamEvent]) -> bytes:
    encoder = dialects.get(name).stream_encoder(None)
    frames = [frame for event in events for frame in encoder.feed(event)] + encoder.finish()
    return b"".join(map(encode_sse, frames))


def chunks_of(body: bytes) -> list[bytes]:
    return [body[i : i + CHUNK] for i in range(0, len(body), CHUNK)]


def floor(chunks: list[bytes]) -> int:
    """Lines that hold JSON -> dicts, and no more."""
    count, rest = 0, b""
    for chunk in chunks:
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        for line in lines:
            if line.startswith(b"data: {"):
                decode_json(line[6:])
                count += 1
    return count


def ours(name: str, chunks: list[bytes]) -> Response:
    frames, decoder = SSEDecoder(), dialects.get(name).stream_decoder()
    accumulator = StreamAccumulator()
    feed = accumulator.feed
    for chunk in chunks:
        for frame in frames.feed(chunk):
            for event in decoder.feed(frame):
                feed(event)
    for frame in frames.finish():
        for event in decoder.feed(frame):
            feed(event)
    for event in decoder.finish():
        feed(event)
    return accumulator.response()


def streams(name: str, runs: int) -> None:
    print(f"\n{name}: SSE + decode + accumulate, microseconds an event")
    print(
        f"  {'stream':26}{'floor':>8}{'ours':>8}{'x floor':>9}{'vendor':>9}{'x vendor':>10} limit"
    )
    rows = {"2,000 text deltas": text_events()}
    if name != "gemini_generate":  # its calls come whole
        rows["2,000 fragments, 100 kB"] = argument_events()
        rows["the same bytes as text"] = text_events(size=FRAGMENT)
    for title, events in rows.items():
        body = to_bytes(name, events)
        chunks = chunks_of(body)
        count = floor(chunks)
        low, mine = (
            best(lambda c=chunks: floor(c), runs),
            best(lambda c=chunks: ours(name, c), runs),
        )
        peer = PEERS[name].stream(body)
        theirs = best(peer, max(2, runs // 4))
        judged = judge(f"{name}, {title}, x vendor", mine / theirs, 0.2)
        print(
            f"  {title:26}{low / count * 1e6:8.2f}{mine / count * 1e6:8.2f}{mine / low:9.1f}"
            f"{theirs / count * 1e6:9.1f}{mine / theirs:10.3f} {judged}"
        )
    if len(rows) > 1:
        arguments, text = (
            chunks_of(to_bytes(name, rows[title]))
            for title in ("2,000 fragments, 100 kB", "the same bytes as text")
        )
        times = paired(lambda: ours(name, arguments), lambda: ours(name, text), runs)
        judged = judge(f"{name}, arguments x text", times, 2)
        print(f"  100 kB of arguments cost {times:.2f} x the same bytes as text, {judged}")


def history(count: int) -> Request:
    """A tool conversation of that many messages."""
    messages = [Message.system("Be brief.")]
    for i in range((count - 1) // 4 + 1):
        call = ToolCall(id=f"call_{i}", name="f", arguments={"city": "Oslo", "day": i})
        messages += [
            Message.user(f"What about day {i}? " + "Tell me more. " * 5),
            Message.assistant([Text(text="Let me look."), call]),
            Message.tool_result(call.id, "4 C, rain, " * 5, name="f"),
            Message.assistant("It rains. " * 8),
        ]
    tool = ToolDefinition(name="f", parameters={"type": "object", "properties": {}})
    return Request(model="m", messages=messages[:count], tools=[tool], max_tokens=100)


def answered_history(count: int, name: str) -> Request:
    """The same with thinking, raw arguments, and what a client notes about each answer."""
    messages: list[Message] = []
    for message in history(count).messages:
        if message.role != "assistant":
            messages.append(message)
            continue
        parts = [
            replace(part, raw_arguments=dump_text(part.arguments))
            if isinstance(part, ToolCall)
            else part
            for part in message.content
        ]
        thinking = Thinking(text="Let me think.", signature="c2lnbmVk" * 5, extra={name: {}})
        metadata = {"model": "model-1", "provider": "it", "finish_reason": "stop"}
        messages.append(Message(role="assistant", content=(thinking, *parts), metadata=metadata))
    return replace(history(count), messages=tuple(messages))


def image_history(count: int, _: str) -> Request:
    """A conversation about images, every other message with one."""
    messages: list[Message] = []
    for i in range(count // 2):
        image = Image(url=f"https://example.com/{i}.png")
        messages += [Message.user(["What is this?", image]), Message.assistant("It is a cat.")]
    return Request(model="m", messages=[*messages, Message.user("Why?")], max_tokens=100)


HISTORIES: dict[str, Callable[[int, str], Request]] = {
    "tools": lambda count, _: history(count),
    "answers": answered_history,
    "images": image_history,
}


def histories(name: str, runs: int) -> None:
    for kind in HISTORIES:
        compare_history(name, kind, runs)


def compare_history(name: str, kind: str, runs: int) -> None:
    print(f"\n{name}: encode a history ({kind}) to bytes, and decode it, milliseconds")
    print(
        f"  {'messages':>10}{'floor':>9}{'encode':>9}{'x floor':>9}{'decode':>9}{'vendor':>9}"
        f"{'x vendor':>10} limit"
    )
    dialect = dialects.get(name)

    def encode(request: Request, times: int = 1) -> Callable[[], None]:
        def run() -> None:
            for _ in range(times):
                dumps(dialect.encode_request(request).body)

        return run

    for count in (10, 100, 1_000):
        request = HISTORIES[kind](count, name)
        call = dialect.encode_request(request)
        again = max(1, 1_000 // count)

        def repeat(work: Callable[[], object], times: int = again) -> Callable[[], None]:
            def run() -> None:
                for _ in range(times):
                    work()

            return run

        low = best(repeat(lambda c=call: dumps(c.body)), runs) / again
        mine = best(encode(request, again), runs) / again
        back = best(repeat(lambda c=call: dialect.decode_request(c)), runs) / again
        peer = PEERS[name].send(call.body)
        theirs = best(peer, max(2, runs // 4))
        times = paired(encode(request), peer, max(5, runs // 2))
        judged = judge(f"{name}, {count} messages ({kind}), x vendor", times, 0.6)
        print(
            f"  {count:10}{low * 1e3:9.3f}{mine * 1e3:9.3f}{mine / low:9.1f}"
            f"{back * 1e3:9.3f}{theirs * 1e3:9.2f}{times:10.3f} {judged}"
        )
    small, large = (encode(HISTORIES[kind](count, name), 1_000 // count) for count in (100, 1_000))
    growth = 10 * paired(large, small, runs)
    judged = judge(f"{name}, 1,000 messages ({kind}) x 100", growth, LINEAR)
    print(f"  1,000 messages cost {growth:.1f} x 100 messages, {judged}")


def broken(request: Request) -> Request:
    """The same, as an interrupted program and another provider may have left it."""
    messages: list[Message] = []
    for i, message in enumerate(request.messages):
        if message.role == "assistant" and message.tool_calls:
            content = [Thinking(text="Hm.", extra={"elsewhere": {}}), *message.content]
            messages.append(Message.assistant(content))
        elif message.role != "tool" or i % 3:  # every third result was lost
            messages.append(message)
        if i % 10 == 0:
            messages.append(Message.user(" "))
    return replace(request, messages=tuple(messages[: len(request.messages)]))


def repairs(name: str, runs: int) -> None:
    print(f"\n{name}: repair a history, milliseconds")
    print(f"  {'messages':>10}{'sound':>9}{'broken':>9}{'changes':>9}")
    target = dialects.get(name).FACTS.history
    works: dict[tuple[str, int], Callable[[], None]] = {}
    for count in (10, 100, 1_000):
        again = max(1, 1_000 // count)
        for kind, request in (("sound", history(count)), ("broken", broken(history(count)))):
            messages = request.messages

            def work(m: tuple[Message, ...] = messages, times: int = again) -> None:
                for _ in range(times):
                    apply_rules(m, target)

            works[kind, count] = work
        changes = len(repair(messages, target).changes)
        sound, bad = (best(works[kind, count], runs) / again for kind in ("sound", "broken"))
        print(f"  {count:10}{sound * 1e3:9.3f}{bad * 1e3:9.3f}{changes:9}")
    for kind in ("sound", "broken"):
        growth = 10 * paired(works[kind, 1_000], works[kind, 100], runs)
        judged = judge(f"{name}, repair of 1,000 messages ({kind}) x 100", growth, LINEAR)
        print(f"  1,000 messages ({kind}) cost {growth:.1f} x 100 messages, {judged}")


def wholes(name: str, runs: int) -> None:
    text = "It rains in Oslo today, and will tomorrow. " * 105
    response = Response(
        id="r_1",
        model="model-1",
        message=Message.assistant([Text(text=text)]),
        finish_reason=FinishReason(reason="stop"),
        usage=Usage(input_tokens=12, output_tokens=1_000),
    )
    dialect = dialects.get(name)
    body = dumps(dialect.encode_response(response))
    low = best(lambda: [decode_json(body) for _ in range(500)], runs) / 500
    mine = best(lambda: [dialect.decode_response(loads(body)) for _ in range(500)], runs) / 500
    theirs = best(PEERS[name].receive(body), max(2, runs // 4))
    print(
        f"\n{name}: decode a response of {len(body):,} bytes, microseconds\n"
        f"  floor {low * 1e6:.1f}, ours {mine * 1e6:.1f} ({mine / low:.1f} x), "
        f"vendor's client {theirs * 1e6:.0f}; ours is {mine / theirs:.3f} x the vendor's, "
        f"{judge(f'{name}, a response, x vendor', mine / theirs, 0.1)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("dialects", nargs="*", default=dialects.names())
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    options = parser.parse_args()
    runs = 3 if options.quick else 15
    for name in options.dialects:
        streams(name, runs)
        histories(name, runs)
        repairs(name, runs)
        wholes(name, runs)
    print(verdict())


if __name__ == "__main__":
    main()
