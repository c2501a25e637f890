"""
The same for programs without an event loop: `interlingua.sync` beside the vendors' own clients.

    .venv/bin/python benchmarks/blocking.py [--quick]

`client.py` shows it as its section `blocking`. *Raw* is `http.client` and msgspec. CPU time is of
the whole process: of ours, the thread of the background loop is in it.
"""

from __future__ import annotations

import argparse
import gc
import http.client
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from canned import serving
from codec import EVENTS
from contenders import MODELS, PROMPT, VENDORS, Exchange, path_of, plain_body
from report import Measure, compare, verdict

BATCH = 20

Work = Callable[[], object]


class Raw:
    """The least a blocking Python program can do."""

    def __init__(self, exchange: Exchange) -> None:
        import msgspec

        base = urlsplit(exchange.base)
        self._connection = http.client.HTTPConnection(base.hostname or "", base.port)
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder().decode
        self._path = base.path + path_of(exchange.dialect)
        self._body = exchange.body
        self._headers = {"content-type": "application/json", "authorization": "Bearer none"}

    def complete(self) -> object:
        return self._decode(self._reply().read())

    def stream(self) -> int:
        decode = self._decode
        reply, count, rest = self._reply(), 0, b""
        while chunk := reply.read1():
            events = (rest + chunk).split(b"\n\n")
            rest = events.pop()
            for event in events:
                data = event[event.index(b"data: ") + 6 :]
                if data != b"[DONE]":
                    decode(data)
                    count += 1
        return count

    def close(self) -> None:
        self._connection.close()

    def _reply(self) -> http.client.HTTPResponse:
        self._connection.request("POST", self._path, self._encode(self._body), self._headers)
        return self._connection.getresponse()


class Ours:
    """`interlingua.sync`."""

    def __init__(self, exchange: Exchange) -> None:
        import contenders

        import interlingua as il
        from interlingua import sync

        self._client = sync.Client.wrap(contenders.Ours(exchange).client)
        model = MODELS[exchange.dialect]
        self._request = il.Request(model=model, messages=PROMPT, max_tokens=100)

    def complete(self) -> object:
        return self._client.complete(self._request)

    def stream(self) -> int:
        return sum(1 for _ in self._client.stream(self._request))

    def close(self) -> None:
        self._client.close()


class Vendor:
    """The vendor's own blocking client."""

    def __init__(self, exchange: Exchange) -> None:
        self._client, self._create, self._stream = _VENDORS[exchange.dialect](exchange)

    def complete(self) -> object:
        return self._create()

    def stream(self) -> int:
        return sum(1 for _ in self._stream())

    def close(self) -> None:
        self._client.close()


def _openai(exchange: Exchange) -> tuple[Any, Work, Any]:
    import openai

    client = openai.OpenAI(api_key="none", base_url=f"{exchange.base}/v1", max_retries=0)
    is_chat = exchange.dialect == "openai_chat"
    create: Any = client.chat.completions.create if is_chat else client.responses.create
    body = exchange.body
    return client, lambda: create(**body), lambda: create(**body, stream=True)


def _anthropic(exchange: Exchange) -> tuple[Any, Work, Any]:
    import anthropic

    client = anthropic.Anthropic(api_key="none", base_url=exchange.base, max_retries=0)
    create: Any = client.messages.create
    body = exchange.body
    return client, lambda: create(**body), lambda: create(**body, stream=True)


def _google(exchange: Exchange) -> tuple[Any, Work, Any]:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=exchange.base)
    client = genai.Client(api_key="none", http_options=options)
    body = exchange.body
    asked: dict[str, Any] = {
        "model": MODELS[exchange.dialect],
        "contents": [types.Content.model_validate(content) for content in body["contents"]],
        "config": types.GenerateContentConfig(**body.get("generationConfig", {})),
    }
    models = client.models
    return (
        client,
        lambda: models.generate_content(**asked),
        lambda: models.generate_content_stream(**asked),
    )


_VENDORS = {
    "anthropic_messages": _anthropic,
    "openai_chat": _openai,
    "openai_responses": _openai,
    "gemini_generate": _google,
}
CONTENDERS: dict[str, Any] = {"raw": Raw, "ours": Ours, "vendor": Vendor}


def compare_blocking(server: str, runs: int) -> None:
    """A call, and an event of a stream: read as fast as can be, and as a network brings it."""
    costs = _costs(server, "whole", lambda made: _times(made.complete, BATCH), runs)
    compare(Measure("A blocking call", "us", 1e6 / BATCH, fastest=0.38), costs, VENDORS)
    fewer = max(3, runs // 4)
    ways = (("burst", "read as fast as can be", 0.35), ("text", "as a network brings it", 0.75))
    for reply, how, limit in ways:
        costs = _costs(server, reply, lambda made: _whole(made.stream), fewer)
        title = f"A stream event of {EVENTS:,}, blocking, {how}"
        compare(Measure(title, "us", 1e6 / EVENTS, fastest=limit), costs, VENDORS)


def _costs(
    server: str, reply: str, call: Callable[[Any], Work], runs: int
) -> dict[tuple[str, str], list[float]]:
    made: dict[tuple[str, str], Any] = {}
    for name in MODELS:
        exchange = Exchange(name, f"{server}/{name}.{reply}", plain_body(name))
        made |= {(who, name): make(exchange) for who, make in CONTENDERS.items()}
    costs = _measure({key: call(one) for key, one in made.items()}, runs)
    for one in made.values():
        one.close()
    return costs


def _measure(
    works: Mapping[tuple[str, str], Work], runs: int
) -> dict[tuple[str, str], list[float]]:
    """Seconds of CPU of each in each of several rounds through all of them."""
    for work in works.values():
        work()
    samples: dict[tuple[str, str], list[float]] = {key: [] for key in works}
    for number in range(runs):
        # every other round backwards, so that none is always measured after the same one
        for key in [*works][:: -1 if number % 2 else 1]:
            gc.collect()
            gc.disable()
            start = time.process_time()
            works[key]()
            samples[key].append(time.process_time() - start)
            gc.enable()
    return samples


def _times(work: Work, count: int) -> Work:
    def run() -> None:
        for _ in range(count):
            work()

    return run


def _whole(work: Callable[[], int]) -> Work:
    def run() -> None:
        count = work()
        if count < EVENTS:
            raise SystemExit(f"a stream of {EVENTS} events had only {count}")

    return run


def main() -> None:
    from client import replies

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    runs = 7 if parser.parse_args().quick else 30
    with serving(replies()) as server:
        compare_blocking(server, runs)
    print(verdict())


if __name__ == "__main__":
    main()
