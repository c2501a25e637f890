"""
What a call costs a client over real HTTP on loopback, beside the least possible and the vendors.

    .venv/bin/python benchmarks/client.py [--quick] [--peers] [--save FILE] [section ...]

Everything is CPU time of the client's process; the server is another process. Contenders take turns
batch by batch, and a ratio is the median of the rounds' own ratios: it repeats to about 3 % on a
machine that is not quiet. Absolute figures (the best of all rounds) are this machine's.
*Raw* is aiohttp and msgspec and nothing else (`contenders.py` says exactly what); *codec* is raw
that also reads canonical events and writes canonical messages; *bare* is our own transport and
msgspec. *Vendor* is the dialect's own asynchronous SDK; *fastest* is the cheapest of all vendors'
SDKs in that row's table.
Beside each ratio stands its limit, and PASS or FAIL. `--save benchmarks/figures.json` keeps the
figures, from which `scripts/docs_tables.py` writes the page about performance.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from array import array
from base64 import b64encode
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Hashable,
    Iterable,
    Mapping,
    Sequence,
)
from functools import partial
from logging import DEBUG, INFO, Logger, NullHandler, getLogger
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import msgspec
from blocking import compare_blocking
from canned import Reply, serving
from codec import EVENTS, argument_events, history, text_events, text_of_fragments, to_bytes
from contenders import (
    CONTENDERS,
    MODELS,
    VENDORS,
    Bare,
    Codec,
    Exchange,
    OurEmbeddings,
    Ours,
    Raw,
    RawEmbeddings,
    VendorEmbeddings,
    plain_body,
)
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from report import Measure, compare, judge, judge_costs, ratio, save, verdict

from interlingua import Client, Message, Request, Response, Text, Usage, dialects
from interlingua.events import StreamEvent
from interlingua.middleware import (
    Balance,
    Budget,
    Cache,
    CircuitBreaker,
    CompleteNext,
    Fallback,
    Hedge,
    Logging,
    RateLimit,
    Redact,
    Telemetry,
)
from interlingua.spec.response import FinishReason

HERE = Path(__file__).parent
PACKET = 4  # events in one write of the server
PACE = 0.001
BURST = "read as fast as can be"
# Each packet costs a turn of the event loop, whoever reads: a good part of raw's own cost, so ours
# looks better beside raw here and worse beside the vendors.
PACED = f"{PACKET} in a packet, {PACE * 1e3:.0f} ms apart"
# How many times the cost of raw, and of the bare exchange, a call may cost: alone, and with others.
CALL = {
    "anthropic_messages": 1.2,
    "openai_chat": 1.2,
    "openai_responses": 1.3,
    "gemini_generate": 1.25,
}
CALL_OF_MANY = {
    "anthropic_messages": 1.4,
    "openai_chat": 1.4,
    "openai_responses": 1.55,
    "gemini_generate": 1.5,
}
BARE_CALL = 2.5
BARE_CALL_OF_MANY = 3.2
OBJECT = 4.2
"""How many times the cost of its events an object of 100 kB may be."""
CONCURRENT = 100
BATCH = 50
MESSAGES = 1_000
TEXTS = 1_000
DIMENSIONS = 1_536
PEOPLE = 1_250  # of an object of 100 kB
ARGUED = ("anthropic_messages", "openai_chat", "openai_responses")  # Gemini's calls come whole

IMPORTED = ("interlingua", "openai", "anthropic", "google.genai", "aiohttp, msgspec")

Work = Callable[[], Awaitable[object]]
Key = TypeVar("Key", bound=Hashable)


# The replies.


def person(number: int) -> dict[str, Any]:
    return {"name": f"Person {number}", "age": number, "note": "Some words.", "tags": ["a", "b"]}


def whole_reply(name: str, text: str = "It rains in Oslo today, and will tomorrow. " * 10) -> Reply:
    response = Response(
        id="r_1",
        model="model-1",
        message=Message.assistant([Text(text=text)]),
        finish_reason=FinishReason(reason="stop"),
        usage=Usage(input_tokens=12, output_tokens=100),
    )
    body = dialects.get(name).encode_response(response)
    return Reply([msgspec.json.encode(body).decode()])


def embeddings_reply() -> Reply:
    """As OpenAI sends vectors when it is asked for base64."""
    vector = b64encode(array("f", [0.01 * (i % 97) for i in range(DIMENSIONS)])).decode()
    data = [{"object": "embedding", "index": i, "embedding": vector} for i in range(TEXTS)]
    usage = {"prompt_tokens": 8 * TEXTS, "total_tokens": 8 * TEXTS}
    body = {"object": "list", "data": data, "model": "text-embedding-3-small", "usage": usage}
    return Reply([json.dumps(body)])


def packets_of(body: bytes) -> list[str]:
    """A stream's events, a few in each packet."""
    events = [event + "\n\n" for event in body.decode().split("\n\n") if event]
    return ["".join(events[i : i + PACKET]) for i in range(0, len(events), PACKET)]


def object_fragments() -> list[str]:
    """An object of 100 kB, in fragments of 50 characters."""
    whole = json.dumps({"people": [person(number) for number in range(PEOPLE)]})
    return [whole[at : at + 50] for at in range(0, len(whole), 50)]


def replies() -> dict[str, Reply]:
    found: dict[str, Reply] = {"embeddings": embeddings_reply()}
    for name in dialects.names():
        text = packets_of(to_bytes(name, text_events()))
        found[f"{name}.whole"] = whole_reply(name)
        found[f"{name}.object"] = whole_reply(name, json.dumps(person(1)))
        people = packets_of(to_bytes(name, text_of_fragments(object_fragments())))
        found[f"{name}.people"] = Reply(people, is_stream=True)
        # with some text: what comes before it is withheld while the call may be retried
        found[f"{name}.held"] = Reply(text[:2], is_stream=True, is_held=True)
        found[f"{name}.burst"] = Reply(text, is_stream=True)
        found[f"{name}.text"] = Reply(text, is_stream=True, pace=PACE)
        if name in ARGUED:
            arguments = packets_of(to_bytes(name, argument_events()))
            found[f"{name}.arguments_burst"] = Reply(arguments, is_stream=True)
            found[f"{name}.arguments"] = Reply(arguments, is_stream=True, pace=PACE)
    return found


# Middleware.

INSTANT = Request(model="gpt-5.2", messages="Say hello in ten words, please.", max_tokens=100)
MIDDLEWARE: dict[str, Callable[[], list[Any]]] = {
    "a layer that does nothing": lambda: [pass_on],
    "Budget": lambda: [Budget(usd=1e9)],
    "RateLimit (requests)": lambda: [RateLimit(requests_per_minute=1e9)],
    "RateLimit (all limits)": lambda: [rate_limit()],
    "RateLimit and Budget": lambda: [rate_limit(), Budget(usd=1e9)],
    "Fallback": lambda: [Fallback("anthropic:claude-haiku-4-5")],
    "CircuitBreaker": lambda: [CircuitBreaker()],
    "Hedge": lambda: [Hedge(after="p95")],
    "Logging, at a level that is off": lambda: [Logging(level=DEBUG)],
    "Logging, to a handler that drops it": lambda: [Logging(dropping_logger())],
    "Cache, found": lambda: [Cache()],
    "Cache, not found": lambda: [Cache(max_entry=0)],
    "Redact, all kinds": lambda: [Redact("email", "phone", "card", "iban")],
    "Redact, all kinds, answers too": lambda: [
        Redact("email", "phone", "card", "iban", answers=True, restore=True)
    ],
    "Telemetry, without an SDK": lambda: [Telemetry()],
    "Telemetry, with an SDK": lambda: [telemetry()],
}
"""The layers of each row of the table."""
MIDDLEWARE_LIMITS = {"RateLimit and Budget": 2.9}
"""How many times the cost of a call without middleware one with a row may be."""


def dropping_logger() -> Logger:
    logger = getLogger("benchmark")
    logger.setLevel(INFO)
    logger.propagate = False
    logger.addHandler(NullHandler())
    return logger


def telemetry() -> Telemetry:
    meters = MeterProvider([InMemoryMetricReader()])
    return Telemetry(tracer_provider=TracerProvider(), meter_provider=meters)


class Instant:
    """An adapter that answers at once."""

    name = "openai"
    answer = Response(
        message=Message.assistant("Hello."),
        finish_reason=FinishReason(reason="stop"),
        usage=Usage(input_tokens=12, output_tokens=100),
    )

    async def complete(self, _: Request) -> Response:
        return self.answer

    async def stream(self, _: Request) -> AsyncIterator[StreamEvent]:
        for event in dialects.events_from_response(self.answer):
            yield event


async def pass_on(request: Request, call_next: CompleteNext) -> Response:
    return await call_next(request)


def rate_limit() -> RateLimit:
    return RateLimit(
        requests_per_minute=1e9,
        input_tokens_per_minute=1e12,
        output_tokens_per_minute=1e12,
        concurrency=100,
    )


# Measuring.


async def measure(works: Mapping[Key, Work], runs: int) -> dict[Key, list[float]]:
    """Seconds of CPU of each in each of several rounds through all of them."""
    for work in works.values():
        await work()
    samples: dict[Key, list[float]] = {key: [] for key in works}
    gc.collect()
    gc.freeze()
    for number in range(runs):
        # every other round backwards, so that none is always measured after the same one
        for key in [*works][:: -1 if number % 2 else 1]:
            gc.collect()
            gc.disable()
            start = time.process_time()
            await works[key]()
            samples[key].append(time.process_time() - start)
            gc.enable()
    gc.unfreeze()
    return samples


def times(work: Work, count: int) -> Work:
    async def run() -> None:
        for _ in range(count):
            await work()

    return run


def at_once(work: Work, count: int) -> Work:
    async def run() -> None:
        await asyncio.gather(*(work() for _ in range(count)))

    return run


def checked(work: Work, least: int) -> Work:
    """A stream of fewer events than were sent is no contender."""

    async def run() -> None:
        count = await work()
        if not isinstance(count, int) or count < least:
            raise SystemExit(f"a stream of {least} events had only {count}")

    return run


class Bench:
    """One run of all sections against one server."""

    def __init__(self, server: str, runs: int) -> None:
        self._server = server
        self._runs = runs
        self._fewer = max(3, runs // 4)

    async def whole(self) -> None:
        """One call after another."""
        costs = await self._costs("whole", lambda made: times(made.complete, BATCH), bare=Bare)
        least = {"raw": CALL, "bare": BARE_CALL}
        compare(Measure("A call", "us", 1e6 / BATCH, least, fastest=0.2), costs, VENDORS)

    async def concurrent(self) -> None:
        """Many calls at once."""
        costs = await self._costs(
            "whole", lambda made: at_once(made.complete, CONCURRENT), bare=Bare
        )
        title = f"A call, {CONCURRENT} at once"
        least = {"raw": CALL_OF_MANY, "bare": BARE_CALL_OF_MANY}
        compare(Measure(title, "us", 1e6 / CONCURRENT, least), costs, VENDORS)

    async def functions(self) -> None:
        """`generate` beside raw, `generate_object` beside a call of the client."""
        ways = {"generate": ("raw", 1.65), "generate_object": ("call", 2.0)}
        made = self._make("object", {"raw": Raw, "ours": Ours})
        works: dict[tuple[str, str], Work] = {}
        for name in MODELS:
            raw, ours = made["raw", name], made["ours", name]
            works["raw", name] = times(raw.complete, BATCH)
            works["call", name] = times(ours.complete, BATCH)
            works["generate", name] = times(ours.generate, BATCH)
            works["generate_object", name] = times(ours.generate_object, BATCH)
        samples = await measure(works, self._runs)
        await close_all(made)
        for way, (base, limit) in ways.items():
            print(f"\n{way} (us), beside {base}")
            for name in MODELS:
                costs, others = samples[way, name], samples[base, name]
                shown = [f"{min(each) * 1e6 / BATCH:9.1f}" for each in (others, costs)]
                amount = ratio(costs, others)
                verdict = judge(f"{way}, {name}, x {base}", amount, limit)
                print(f"  {name:20}{''.join(shown)}{amount:8.2f} {verdict}")

    async def objects(self) -> None:
        """A large object as it comes, beside the events of the same stream."""
        made = self._make("people", {"ours": Ours})
        works: dict[tuple[str, str], Work] = {}
        for (_, name), one in made.items():
            works["events", name] = one.stream
            works["object", name] = checked(one.stream_object, PEOPLE)
        samples = await measure(works, self._fewer)
        await close_all(made)
        print("\nstream_object of 100 kB (ms), beside the events of its stream")
        for name in MODELS:
            events, objects = samples["events", name], samples["object", name]
            shown = [f"{min(each) * 1e3:9.1f}" for each in (events, objects)]
            amount = ratio(objects, events)
            verdict = judge(f"stream_object of 100 kB, {name}, x stream", amount, OBJECT)
            print(f"  {name:20}{''.join(shown)}{amount:8.2f} {verdict}")

    async def stream(self) -> None:
        """The events of a long text."""
        for reply, how, limit, fastest in (("burst", BURST, 1.75, 0.2), ("text", PACED, 1.3, 0.45)):
            costs = await self._costs(
                reply, lambda made: checked(made.stream, EVENTS), runs=self._fewer, codec=Codec
            )
            title, least = f"A stream event of {EVENTS:,}, {how}", {"raw": None, "codec": limit}
            compare(Measure(title, "us", 1e6 / EVENTS, least, fastest), costs, VENDORS)

    async def arguments(self) -> None:
        """A large tool call, in fragments."""
        for reply, how, limit in (("arguments_burst", BURST, 1.9), ("arguments", PACED, 1.5)):
            costs = await self._costs(
                reply,
                lambda made: checked(made.stream, EVENTS),
                plain_exchanges(ARGUED),
                runs=self._fewer,
                codec=Codec,
            )
            title = f"{EVENTS:,} fragments of arguments, 100 kB, {how}"
            compare(Measure(title, "ms", 1e3, {"raw": None, "codec": limit}), costs, VENDORS)

    async def history(self) -> None:
        """A long conversation; raw sends bytes that are there already, codec writes them."""
        exchanges: dict[str, Exchange] = {}
        for name in dialects.names():
            request = msgspec.structs.replace(history(MESSAGES), model=MODELS[name])
            explained = Ours(Exchange(name, self._server, {}, request)).client.explain(request)
            exchanges[name] = Exchange(name, "", explained.body, request)
        costs = await self._costs(
            "whole", lambda made: made.send, exchanges, runs=self._fewer, codec=Codec
        )
        title, least = f"A call with {MESSAGES:,} messages", {"raw": None, "codec": 3.4}
        compare(Measure(title, "ms", 1e3, least, fastest=0.7), costs, VENDORS)

    async def embeddings(self) -> None:
        """The vectors of many texts, beside OpenAI's own client."""
        texts = [f"Text number {i} about the weather in Oslo." for i in range(TEXTS)]
        base = f"{self._server}/embeddings/v1"
        contenders = {
            "raw": RawEmbeddings(base, texts),
            "ours": OurEmbeddings(base, texts),
            "vendor": VendorEmbeddings(base, texts),
        }
        works = {name: checked(one.embed, TEXTS) for name, one in contenders.items()}
        samples = await measure(works, self._fewer)
        await close_all(contenders)
        print(f"\nembed_many of {TEXTS:,} texts, {DIMENSIONS:,} dimensions (ms), beside openai")
        shown = "".join(f"{name:>8}{min(each) * 1e3:8.1f}" for name, each in samples.items())
        by_vendor, by_raw = (ratio(samples["ours"], samples[who]) for who in ("vendor", "raw"))
        verdict = judge("embed_many, x openai", by_vendor, 0.45)
        print(f"  {shown}   x raw {by_raw:.2f}   x openai {by_vendor:.2f} {verdict}")

    async def blocking(self) -> None:
        """Programs without an event loop, beside the vendors' blocking clients."""
        await asyncio.to_thread(compare_blocking, self._server, self._runs)

    async def middleware(self) -> None:
        """What each middleware adds to a call that is answered at once, without a network."""
        layers: dict[str, Callable[[], list[Any]]] = {"none": list, **MIDDLEWARE}
        clients = {
            name: Client({"openai": Instant()}, middleware=make()) for name, make in layers.items()
        }
        clients["Balance"] = Client({"openai": Balance(Instant(), Instant())})
        works = {
            name: times(partial(client.complete, INSTANT), BATCH * 10)
            for name, client in clients.items()
        }
        samples = await measure(works, self._runs)
        print("\nMiddleware: what it adds to a call (us), and a call beside one without any")
        for name in sorted({*clients} - {"none"}):
            pairs = zip(samples[name], samples["none"], strict=True)
            amount = median(one - other for one, other in pairs) * 1e6 / (BATCH * 10)
            times_none = ratio(samples[name], samples["none"])
            beside = judge(f"middleware {name}, x none", times_none, MIDDLEWARE_LIMITS.get(name))
            print(f"  {name:40}{amount:9.1f}{times_none:9.2f} {beside}")

    async def start(self) -> None:
        """Loading, and the first call of a process; each in processes of its own."""
        asked = {
            "bare interpreter": ["import"],
            **{f"import {name}": ["import", *name.split(", ")] for name in IMPORTED},
            "first call, raw": self._first("raw", "openai_chat"),
            **{f"first call, ours, {name}": self._first("ours", name) for name in MODELS},
            **{f"first call, vendor, {name}": self._first("vendor", name) for name in MODELS},
        }
        results: dict[str, list[dict[str, float]]] = {what: [] for what in asked}
        for arguments in asked.values():  # once before, so that all modules are compiled
            await single(*arguments)
        for _ in range(self._fewer):
            for what, arguments in asked.items():
                results[what].append(await single(*arguments))
        bare = [one["cpu"] for one in results.pop("bare interpreter")]
        print("\nBeginning, the bare interpreter taken off (ms), and memory then (MB)")
        samples: dict[str, list[float]] = {}
        for what, each in results.items():
            spent = [one["cpu"] - least for one, least in zip(each, bare, strict=True)]
            samples[what] = spent
            print(f"  {what:40}{min(spent) * 1e3:9.1f}{each[-1]['resident'] / 1e6:9.1f}")
        self._judge_start(samples)

    async def memory(self) -> None:
        """What an open stream keeps."""
        costs = {
            (who, name): [await self._held(who, name)] for name in MODELS for who in CONTENDERS
        }
        compare(Measure("Memory of an open stream, one of 300", "kB", 1e-3), costs, VENDORS)
        above = {name: await self._held("functions", name) for name in MODELS}
        judge_costs("Memory of an open stream(), one of 300", "kB", 1e-3, above, 24)

    async def _held(self, who: str, name: str) -> float:
        return (await single("memory", who, name, f"{self._server}/{name}.held"))["stream"]

    def _first(self, who: str, name: str) -> list[str]:
        return ["first", who, name, f"{self._server}/{name}.whole"]

    def _judge_start(self, samples: Mapping[str, Sequence[float]]) -> None:
        against = {
            "import interlingua": ("import openai", 0.02),
            **{
                f"first call, ours, {name}": ("first call, vendor, openai_chat", 0.25)
                for name in MODELS
            },
        }
        for what, (other, limit) in against.items():
            amount = ratio(samples[what], samples[other])
            print(f"  {what:40}{amount:9.2f} x {other}, {judge(what, amount, limit)}")

    async def _costs(
        self,
        reply: str,
        call: Callable[[Any], Work],
        exchanges: Mapping[str, Exchange] | None = None,
        runs: int | None = None,
        **others: Any,
    ) -> dict[tuple[str, str], list[float]]:
        """Of every contender in every dialect, and of these others."""
        made = self._make(reply, {**CONTENDERS, **others}, exchanges)
        samples = await measure({key: call(one) for key, one in made.items()}, runs or self._runs)
        await close_all(made)
        return samples

    def _make(
        self,
        reply: str,
        contenders: Mapping[str, Any],
        exchanges: Mapping[str, Exchange] | None = None,
    ) -> dict[tuple[str, str], Any]:
        made: dict[tuple[str, str], Any] = {}
        for name, exchange in (exchanges or plain_exchanges(MODELS)).items():
            placed = exchange._replace(base=f"{self._server}/{name}.{reply}")
            made |= {(who, name): make(placed) for who, make in contenders.items()}
        return made


async def close_all(made: Mapping[Any, Any]) -> None:
    for one in made.values():
        await one.close()


def plain_exchanges(names: Iterable[str]) -> dict[str, Exchange]:
    return {name: Exchange(name, "", plain_body(name)) for name in names}


async def single(*arguments: str) -> dict[str, float]:
    """What `single.py` tells."""
    # an installed package is compiled, and so is ours after its first use
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(HERE / "single.py"),
        *arguments,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    told, complaint = await process.communicate()
    if process.returncode:
        raise SystemExit(f"single.py {' '.join(arguments)}: {complaint.decode()[-500:]}")
    result: dict[str, float] = json.loads(told)
    return result


SECTIONS = (
    *("whole", "concurrent", "functions", "objects", "stream", "arguments", "history"),
    *("embeddings", "blocking", "middleware", "start", "memory"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("sections", nargs="*", default=SECTIONS, metavar="section")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--peers", action="store_true", help="other libraries too, installed")
    parser.add_argument("--save", type=Path, help="write the figures to this file, as JSON")
    options = parser.parse_args()

    async def run() -> None:
        for section in options.sections:
            await getattr(bench, section)()

    with serving(replies()) as server:
        bench = Bench(server, 7 if options.quick else 40)
        asyncio.run(run())
        if options.save is not None:
            save(options.save, is_quick=options.quick)
        if options.peers:
            import libraries

            libraries.compare(server, MESSAGES)
    print(verdict())


if __name__ == "__main__":
    main()
