"""The first call of a process: what it loads does not hold up the event loop, nor a timeout."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua import Client, HttpAdapter, embed, execute, generate, stream
from interlingua.spec.errors import RequestTimeoutError
from interlingua.transport import CannedReply, CannedTransport
from support.servers import Server, answering, reply

ANSWER = {
    "id": "c",
    "object": "chat.completion",
    "model": "m",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
WHOLE = reply(json.dumps(ANSWER).encode(), headers=("content-type: application/json",))

PROGRAM = """
import asyncio, sys, threading
threads = {}
class Finder:
    def find_spec(self, name, path=None, target=None):
        threads[name] = threading.current_thread() is threading.main_thread()
sys.meta_path.insert(0, Finder())
import ssl
load = ssl.SSLContext.load_default_certs
def load_default_certs(self, *arguments):
    threads["certificates"] = threading.current_thread() is threading.main_thread()
    return load(self, *arguments)
ssl.SSLContext.load_default_certs = load_default_certs
import interlingua as il
async def main():
    adapter = il.HttpAdapter("openai_compatible", base_url=sys.argv[1])
    client = il.Client({"it": adapter}, default_provider="it")
    try:
        print((await il.generate("m", "Hi", client=client, max_retries=0)).text)
    except il.errors.NetworkError as error:
        print(type(error).__name__)
asyncio.run(main())
print(threads.get("httptools"), threads.get("certificates"))
"""


def said_by(program, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parents[1],
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_parser_and_the_certificates_are_loaded_in_a_thread(scheme):
    """The event loop runs on meanwhile; certificates are not loaded where nothing needs them."""

    async def no_tls(connection):
        await connection.reader.read(1)
        await connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with Server(no_tls if scheme == "https" else answering(WHOLE)) as server:
        url = server.url.replace("http:", f"{scheme}:")
        said = said_by(PROGRAM, url)

    assert said == (
        ["Hi", "False", "None"] if scheme == "http" else ["NetworkError", "False", "False"]
    )


class Slow(CannedTransport):
    """A transport that takes long to load, and answers at once."""

    LOADING = 0.3
    is_loaded = False

    async def get_ready(self, _url):
        """Take longer than the timeout of the call, once."""
        if not self.is_loaded:
            await asyncio.sleep(self.LOADING)
            self.is_loaded = True


async def by_generate(client, seconds):
    return (await generate("m", "Hi", client=client, timeout=seconds)).text


async def by_stream(client, seconds):
    async with stream("m", "Hi", client=client, timeout=seconds) as events:
        return "".join([event.delta async for event in events if event.type == "text_delta"])


async def by_execute(client, seconds):
    result = await execute("m", "Hi", client=client, timeout=seconds)
    if result.error is not None:
        raise RequestTimeoutError(str(result.error))
    return result.text


async def by_embed(client, seconds):
    vectors = await embed("m", "Hi", client=client, timeout=seconds)
    return "Hi" if len(vectors.embeddings[0]) == 2 else ""


VECTORS = {"object": "list", "data": [{"index": 0, "embedding": [0.1, 0.2]}], "model": "m"}


@pytest.mark.parametrize("way", [by_generate, by_stream, by_execute, by_embed])
def test_the_clock_of_a_timeout_starts_after_loading(way):
    """What only a first call loads does not count, in every function with a timeout."""
    body = json.dumps(VECTORS if way is by_embed else ANSWER).encode()
    transport = Slow([CannedReply(headers={"content-type": "application/json"}, body=body)])
    adapter = HttpAdapter("openai_compatible", base_url="http://h.example/v1", transport=transport)
    client = Client({"it": adapter}, default_provider="it")

    assert asyncio.run(way(client, Slow.LOADING / 2)) == "Hi"
