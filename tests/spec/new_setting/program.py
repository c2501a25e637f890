"""Uses the setting `novelty` of a library that was patched to have it."""

import asyncio
import tempfile
from pathlib import Path

from interlingua import Client, Message, Response, Session, dialects, generate
from interlingua.conformance import strategies
from interlingua.errors import ConfigurationError
from interlingua.middleware import OtherModel
from interlingua.spec.contracts import Profile
from interlingua.spec.request import Request


class Recorder:
    """An adapter that keeps the last request."""

    name = "recorder"

    async def complete(self, request):
        self.request = request
        return Response(model=request.model, message=Message.assistant("hello"))

    def stream(self, request):
        raise NotImplementedError


async def ask(**options):
    """The request that `generate` makes of these options."""
    adapter = Recorder()
    await generate("recorder:m", "?", client=Client({"recorder": adapter}), **options)
    return adapter.request


assert asyncio.run(ask(novelty=0.5)).novelty == 0.5

try:
    asyncio.run(ask(novelty="much"))
except ConfigurationError as error:
    assert error.message == "novelty must be a number, not 'much'.", error.message
else:
    raise AssertionError("a wrong value was accepted")

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "session.json"
    Session("recorder:m", novelty=0.5).save(path)
    assert Session.load(path).saved().options == {"novelty": 0.5}

assert OtherModel("openai:m", novelty=0.5).apply(Request()).novelty == 0.5
assert "novelty" in strategies._settings

sent = Request(model="m", messages="?", max_tokens=9, novelty=0.5)
for name in dialects.names():
    dialect = dialects.get(name)
    call = dialect.encode_request(sent)
    assert "novelty" in repr(call.body), name
    assert dialect.decode_request(call).novelty == 0.5, name
    dropped = dialect.encode_request(sent, Profile(dialect=name, novelty=False))
    assert "novelty" not in repr(dropped.body), name
    assert [warning.code for warning in dropped.warnings] == ["novelty_dropped"], name
