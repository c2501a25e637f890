"""An adapter whose answers and failures a test writes down."""

import asyncio

from interlingua.spec.errors import StreamError
from interlingua.spec.events import Finish
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import events_from_response


def says(text, reason="stop", **fields):
    """A whole answer."""
    fields.setdefault("usage", Usage(input_tokens=3, output_tokens=len(text)))
    finish = FinishReason(reason=reason)
    return Response(message=Message.assistant(text), finish_reason=finish, **fields)


class Cut:
    """An answer that fails before its end, after this many of its events."""

    def __init__(self, response, events, error=None):
        self.response = response
        self.events = events
        self.error = error


class Slow:
    """An answer, or a failure, that comes after some seconds."""

    def __init__(self, seconds, answer):
        self.seconds = seconds
        self.answer = answer


class ScriptedAdapter:
    """Gives the answers in turn; the last one is repeated. An exception is raised."""

    def __init__(self, *answers, name="scripted"):
        self.name = name
        self.answers = list(answers)
        self.asked = []
        self.cancelled = 0

    async def _next(self, request):
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Slow):
            try:
                await asyncio.sleep(answer.seconds)
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
            answer = answer.answer
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def complete(self, request):
        answer = await self._next(request)
        if isinstance(answer, Cut):
            raise answer.error or StreamError("cut")
        return answer

    async def stream(self, request):
        answer = await self._next(request)
        if not isinstance(answer, Cut):
            for event in events_from_response(answer):
                yield event
            return
        for event in events_from_response(answer.response)[: answer.events]:
            assert not isinstance(event, Finish)
            yield event
        raise answer.error or StreamError("cut")
