"""An adapter of set usage, for the tests of budgets and rate limits."""

import asyncio

from interlingua.client.client import Client
from interlingua.spec.errors import SDKError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import events_from_response

USAGE = Usage(input_tokens=10, output_tokens=5)
ANSWER = Response(
    id="1",
    message=Message.assistant("one two three"),
    finish_reason=FinishReason(reason="stop"),
    usage=USAGE,
)


def cent_per_token(_, usage):
    """A price function: each token is a cent."""
    return usage.total_tokens / 100


class Metered:
    """Answers by a script: a response, an error, or a function of the request; the last repeats."""

    name = "metered"

    def __init__(self, *script, delay=0.0, hold=None):
        self.script = list(script) or [ANSWER]
        self.delay = delay
        self.hold = hold
        """An event for which streams wait before their end."""
        self.sent = []
        self.at_once = 0
        self.most_at_once = 0

    async def answer(self, request):
        self.sent.append(request)
        step = self.script[min(len(self.sent), len(self.script)) - 1]
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.delay)
        finally:
            self.at_once -= 1
        step = step(request) if callable(step) else step
        if isinstance(step, SDKError):
            raise step
        return step

    async def complete(self, request):
        return await self.answer(request)

    async def stream(self, request):
        *events, finish = events_from_response(await self.answer(request))
        for event in events:
            yield event
        if self.hold is not None:
            await self.hold.wait()
        yield finish

    async def perform(self, operation, value, *, request_id=None):  # noqa: ARG002
        self.sent.append((operation, value))
        return self.script[0]


def client_of(adapter, *layers, **options):
    return Client({"metered": adapter}, middleware=layers, **options)


def ask(text="hello", **fields):
    return Request(model=fields.pop("model", "m"), messages=text, **fields)


async def call(client, way, request=None, **options):
    """One call, whole or streamed; its response."""
    request = ask() if request is None else request
    if way == "complete":
        return await client.complete(request, **options)
    response = None
    async for event in client.stream(request, **options):
        response = getattr(event, "response", None) or response
    return response


async def calls(client, way, count, **fields):
    """Many calls at once; their responses and errors."""
    many = (call(client, way, ask(**fields)) for _ in range(count))
    return await asyncio.gather(*many, return_exceptions=True)
