"""
Who is measured: the least that a program can do, this library, and the vendors' own clients.

Each makes the same exchange with the same server. Their libraries are loaded when they are
made, so that a process which measures one of them has not paid for another.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

PATIENCE = 600.0
"""Seconds; the vendors' clients give up a connection after 5, which a loaded machine may need."""
PROMPT = "Tell me of the weather in Oslo."
MODELS = {
    "anthropic_messages": "claude-opus-5",
    "openai_chat": "some-model",
    "openai_responses": "gpt-5.2",
    "gemini_generate": "gemini-2.5-flash",
}
VENDORS = {
    "anthropic_messages": "anthropic",
    "openai_chat": "openai",
    "openai_responses": "openai",
    "gemini_generate": "google-genai",
}
_PATHS = {
    "anthropic_messages": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "gemini_generate": "/v1beta/models/{model}:generateContent",
}

PERSON: dict[str, Any] = {
    "type": "object",
    "title": "Person",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "note": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
PEOPLE: dict[str, Any] = {
    "type": "object",
    "properties": {"people": {"type": "array", "items": PERSON}},
    "required": ["people"],
    "additionalProperties": False,
}


class Exchange(NamedTuple):
    """What is asked, and where."""

    dialect: str
    base: str
    """The server and the name of its reply."""
    body: dict[str, Any]
    """What goes over the wire, whoever sends it."""
    request: Any = None
    """The same for this library, if it is not the plain prompt."""


def path_of(dialect: str) -> str:
    """Where a request goes."""
    return _PATHS[dialect].format(model=MODELS[dialect])


def plain_body(dialect: str) -> dict[str, Any]:
    """The plain prompt, in the words of a dialect."""
    message = {"role": "user", "content": PROMPT}
    if dialect == "anthropic_messages":
        return {"model": MODELS[dialect], "max_tokens": 100, "messages": [message]}
    if dialect == "openai_chat":
        return {"model": MODELS[dialect], "max_tokens": 100, "messages": [message]}
    if dialect == "openai_responses":
        return {"model": MODELS[dialect], "max_output_tokens": 100, "input": [message]}
    part = {"role": "user", "parts": [{"text": PROMPT}]}
    return {"contents": [part], "generationConfig": {"maxOutputTokens": 100}}


class Raw:
    """
    The least a Python program can do.

    Whole: a dict to bytes, a POST, the reply's bytes to a dict. Stream: chunks as aiohttp has
    them, split at blank lines, each `data` line to a dict.
    """

    def __init__(self, exchange: Exchange) -> None:
        import aiohttp
        import msgspec

        # By default idle connections end after 15 s, which may pass between two rounds.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=PATIENCE)
        self._session = aiohttp.ClientSession(connector=connector)
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder().decode
        self._url = exchange.base + path_of(exchange.dialect)
        self._body = exchange.body
        self._bytes = self._encode(exchange.body)
        self._headers = {"content-type": "application/json", "authorization": "Bearer none"}

    async def complete(self) -> object:
        body = self._encode(self._body)
        async with self._session.post(self._url, data=body, headers=self._headers) as reply:
            return self._decode(await reply.read())

    async def send(self) -> object:
        """The same with bytes that are there already."""
        async with self._session.post(self._url, data=self._bytes, headers=self._headers) as reply:
            return self._decode(await reply.read())

    async def stream(self) -> int:
        decode = self._decode
        count, rest = 0, b""
        body = self._encode(self._body)
        async with self._session.post(self._url, data=body, headers=self._headers) as reply:
            async for chunk in reply.content.iter_any():
                events = (rest + chunk).split(b"\n\n")
                rest = events.pop()
                for event in events:
                    data = event[event.index(b"data: ") + 6 :]
                    if data != b"[DONE]":
                        decode(data)
                        count += 1
        return count

    async def open_stream(self) -> object:
        """A stream whose first bytes have come."""
        reply = await self._session.post(self._url, json=self._body, headers=self._headers)
        return reply, await reply.content.readany()

    async def close(self) -> None:
        await self._session.close()


class Codec(Raw):
    """
    Raw with the same values as this library: canonical messages go in, canonical events come out.

    `codecs_raw.py` has the shortest code that reads and writes what is measured here.
    """

    def __init__(self, exchange: Exchange) -> None:
        from codecs_raw import READERS, WRITERS

        super().__init__(exchange)
        self._read, self._write = READERS[exchange.dialect], WRITERS[exchange.dialect]
        self._request = exchange.request

    async def send(self) -> object:
        self._body = self._write(self._request)
        return await self.complete()

    async def stream(self) -> int:
        count = 0
        pieces: list[str] = []
        async for event in self._events():
            pieces.append(event.delta)
            count += 1
        "".join(pieces)
        return count

    async def _events(self) -> AsyncIterator[Any]:
        decode, read = self._decode, self._read
        rest, body = b"", self._encode(self._body)
        async with self._session.post(self._url, data=body, headers=self._headers) as reply:
            async for chunk in reply.content.iter_any():
                events = (rest + chunk).split(b"\n\n")
                rest = events.pop()
                for event in events:
                    data = event[event.index(b"data: ") + 6 :]
                    if data != b"[DONE]" and (delta := read(decode(data))) is not None:
                        yield delta


class Bare:
    """The exchange alone: this library's transport and msgspec, as `Raw` is aiohttp and msgspec."""

    def __init__(self, exchange: Exchange) -> None:
        import msgspec

        from interlingua.spec.contracts import HttpRequest
        from interlingua.transport import HttpTransport

        self._transport = HttpTransport()
        self._make = HttpRequest
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder().decode
        self._url = exchange.base + path_of(exchange.dialect)
        self._body = exchange.body
        self._headers = {"content-type": "application/json", "authorization": "Bearer none"}

    def _send(self) -> Any:
        body = self._encode(self._body)
        return self._transport.send(self._make(url=self._url, body=body, headers=self._headers))

    async def complete(self) -> object:
        async with self._send() as reply:
            return self._decode(await reply.read())

    async def stream(self) -> int:
        decode = self._decode
        count, rest = 0, b""
        async with self._send() as reply:
            async for chunk in reply.chunks():
                events = (rest + chunk).split(b"\n\n")
                rest = events.pop()
                for event in events:
                    data = event[event.index(b"data: ") + 6 :]
                    if data != b"[DONE]":
                        decode(data)
                        count += 1
        return count

    async def close(self) -> None:
        await self._transport.close()


class Ours:
    """This library's client."""

    def __init__(self, exchange: Exchange) -> None:
        import interlingua as il

        if exchange.dialect == "anthropic_messages":
            adapter: Any = il.AnthropicAdapter("none", base_url=exchange.base)
        elif exchange.dialect == "gemini_generate":
            adapter = il.GeminiAdapter("none", base_url=exchange.base)
        elif exchange.dialect == "openai_chat":
            adapter = il.OpenAICompatibleAdapter("none", base_url=f"{exchange.base}/v1")
        else:
            adapter = il.OpenAIAdapter("none", base_url=f"{exchange.base}/v1")
        self.client = il.Client({"it": adapter}, default_provider="it")
        model = MODELS[exchange.dialect]
        self.request = exchange.request or il.Request(model=model, messages=PROMPT, max_tokens=100)

    async def complete(self) -> object:
        return await self.client.complete(self.request)

    send = complete

    async def stream(self) -> int:
        count = 0
        async for _ in self.client.stream(self.request):
            count += 1
        return count

    async def open_stream(self) -> object:
        stream = self.client.stream(self.request)
        return stream, await anext(stream)

    async def generate(self) -> object:
        from interlingua import generate

        return await generate(self.request.model, PROMPT, max_tokens=100, client=self.client)

    async def generate_object(self) -> object:
        from interlingua import generate_object

        return await generate_object(
            self.request.model, PROMPT, schema=PERSON, max_tokens=100, client=self.client
        )

    async def stream_object(self) -> int:
        """How many items the object has in the end."""
        from interlingua import stream_object

        stream = stream_object(self.request.model, PROMPT, schema=PEOPLE, client=self.client)
        async for _ in stream:
            pass
        return len(stream.object()["people"])

    async def close(self) -> None:
        await self.client.close()


class OurFunctions(Ours):
    """This library's functions above the client."""

    async def open_stream(self) -> object:
        from interlingua import stream

        events = stream(self.request.model, PROMPT, max_tokens=100, client=self.client)
        return events, await anext(aiter(events))


class Vendor:
    """The vendor's own asynchronous client."""

    def __init__(self, exchange: Exchange) -> None:
        self._client, self._create, self._stream = _VENDORS[exchange.dialect](exchange)

    async def complete(self) -> object:
        return await self._create()

    send = complete

    async def stream(self) -> int:
        count = 0
        async for _ in await self._stream():
            count += 1
        return count

    async def open_stream(self) -> object:
        stream = aiter(await self._stream())
        return stream, await anext(stream)

    async def close(self) -> None:
        await (self._client.aio.aclose() if hasattr(self._client, "aio") else self._client.close())


def _openai(exchange: Exchange) -> tuple[Any, Any, Any]:
    import openai

    base = f"{exchange.base}/v1"
    client = openai.AsyncOpenAI(api_key="none", base_url=base, max_retries=0, timeout=PATIENCE)
    is_chat = exchange.dialect == "openai_chat"
    create = client.chat.completions.create if is_chat else client.responses.create
    body = exchange.body
    return client, lambda: create(**body), lambda: create(**body, stream=True)


def _anthropic(exchange: Exchange) -> tuple[Any, Any, Any]:
    """With its plain events, which are cheaper than those of its helper."""
    import anthropic

    client = anthropic.AsyncAnthropic(
        api_key="none", base_url=exchange.base, max_retries=0, timeout=PATIENCE
    )
    create, body = client.messages.create, exchange.body
    return client, lambda: create(**body), lambda: create(**body, stream=True)


def _google(exchange: Exchange) -> tuple[Any, Any, Any]:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=exchange.base)
    client = genai.Client(api_key="none", http_options=options)
    body = exchange.body
    asked: dict[str, Any] = {
        "model": MODELS[exchange.dialect],
        "contents": [types.Content.model_validate(content) for content in body["contents"]],
        "config": types.GenerateContentConfig(
            system_instruction=body.get("systemInstruction"),
            tools=body.get("tools"),
            **body.get("generationConfig", {}),
        ),
    }
    models = client.aio.models
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
"""Those of every table."""


# Embeddings: the texts of one call, and the number of vectors that came back.


class RawEmbeddings:
    """A POST, JSON, and base64 to arrays."""

    def __init__(self, base: str, texts: list[str]) -> None:
        import aiohttp
        import msgspec

        self._session = aiohttp.ClientSession()
        self._encode, self._decode = msgspec.json.encode, msgspec.json.decode
        self._url = f"{base}/embeddings"
        self._texts = texts

    async def embed(self) -> int:
        from array import array
        from binascii import a2b_base64

        body = {"model": "m", "input": self._texts, "encoding_format": "base64"}
        async with self._session.post(self._url, data=self._encode(body)) as reply:
            rows = self._decode(await reply.read())["data"]
        return len([array("f", a2b_base64(row["embedding"])) for row in rows])

    async def close(self) -> None:
        await self._session.close()


class OurEmbeddings:
    """`embed_many`."""

    def __init__(self, base: str, texts: list[str]) -> None:
        import interlingua as il

        self._client = il.Client({"openai": il.OpenAIAdapter("none", base_url=base)})
        self._texts = texts

    async def embed(self) -> int:
        from interlingua import embed_many

        model = "openai:text-embedding-3-small"
        return len((await embed_many(model, self._texts, client=self._client)).embeddings)

    async def close(self) -> None:
        await self._client.close()


class VendorEmbeddings:
    """OpenAI's own client, which asks for base64 and makes lists."""

    def __init__(self, base: str, texts: list[str]) -> None:
        import openai

        self._client = openai.AsyncOpenAI(api_key="none", base_url=base)
        self._texts = texts

    async def embed(self) -> int:
        reply = await self._client.embeddings.create(
            model="text-embedding-3-small", input=self._texts
        )
        return len(reply.data)

    async def close(self) -> None:
        await self._client.close()
