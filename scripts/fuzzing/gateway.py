"""
Requests for a gateway, damaged, and what every reply to them must be.

A request is written as bytes: a line with the method and the path, headers, an empty line, the
body. The gateway, and the simulator behind it, run in one event loop, without sockets.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from interlingua import dialects
from interlingua.client.client import Client
from interlingua.client.stores.memory import MemoryStore
from interlingua.gateway.config import Gateway
from interlingua.gateway.keys import Key, hash_key
from interlingua.gateway.server import make_application
from interlingua.providers.adapter import HttpAdapter
from interlingua.serving.application import find_route, serve_of
from interlingua.serving.client_application import Caller, Routes
from interlingua.serving.kept_responses import KeptResponses
from interlingua.simulator import Simulator
from interlingua.spec.errors import DecodeError
from interlingua.spec.operations import Failure
from interlingua.transport import AsgiTransport
from interlingua.wire.json_text import dumps, loads

KEY = "il_a-key-of-the-fuzzer"
_UPSTREAM_KEY = "sk-upstream-key-of-the-fuzzer"
_HOST = "upstream.invalid"
_SECRET = b"a secret of the fuzzer"
_LAST_TURNS = 5
_SECRETS = tuple(each.encode() for each in (KEY, _UPSTREAM_KEY, _HOST, "Traceback", _SECRET.hex()))
_PROVIDERS = {
    "openai": "",
    "openai_compatible": "/v1",
    "anthropic": "",
    "gemini": "",
    "cohere": "",
    "bedrock_converse": "",
}
_ROUTES = {
    "chat": "openai_compatible:house-model",
    "responses": "openai:gpt-5.2",
    "messages": "anthropic:claude-haiku-4-5",
    "gemini": "gemini:gemini-2.5-flash",
    "converse": "bedrock_converse:amazon.nova-pro-v1:0",
}
_TURN = {"role": "user", "content": "Hi"}
_TURNS = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
_TOOL = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # noqa: E501
_BOUNDARY = "b0undary"


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    """With the query."""
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    def write(self) -> bytes:
        """The request as the bytes of a seed."""
        lines = [f"{self.method} {self.path}".encode()]
        lines += [name + b": " + value for name, value in self.headers]
        return b"\n".join((*lines, b"", self.body))


def read_asked(data: bytes) -> Asked:
    """The request in these bytes, whatever they are."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, path = first.decode("latin-1").partition(" ")
    headers = [line.partition(b": ") for line in lines]
    return Asked(
        method if method.isalpha() and method.isascii() else "POST",
        "".join(each for each in path if each.isprintable() and each.isascii()) or "/",
        tuple((name.lower(), value) for name, _, value in headers if name),
        body,
    )


class Answered(NamedTuple):
    """The reply to a request."""

    status: int
    headers: dict[str, str]
    body: bytes


class FuzzedGateway:
    """A gateway before a simulator."""

    def __init__(self) -> None:
        transport = AsgiTransport(Simulator(batch_polls=1, strict=True))
        adapters = {
            name: HttpAdapter(
                name, _UPSTREAM_KEY, base_url=f"http://{_HOST}{end}", transport=transport
            )
            for name, end in _PROVIDERS.items()
        }
        keys = (Key(hash_key(KEY), Caller("fuzzer")),)
        kept = KeptResponses(MemoryStore())
        gateway = Gateway(Client(adapters), Routes(_ROUTES, direct=True), keys, kept=kept)
        self._app = make_application(gateway, _SECRET)

    async def ask(self, asked: Asked) -> Answered:
        """The reply, of which everything was sent."""
        messages = iter([{"type": "http.request", "body": asked.body, "more_body": False}])
        sent: list[Any] = []

        async def receive() -> Any:
            message = next(messages, None)
            return message or await asyncio.get_running_loop().create_future()

        async def send(message: Any) -> None:
            sent.append(message)

        path, _, query = asked.path.partition("?")
        scope = {
            "type": "http",
            "method": asked.method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "headers": list(asked.headers),
        }
        await self._app(scope, receive, send)
        start, *bodies = sent
        _demand(start["type"] == "http.response.start", "a reply begins with its head")
        _demand(bool(bodies) and not bodies[-1].get("more_body"), "a reply has an end")
        headers = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
        body = b"".join(message.get("body", b"") for message in bodies)
        return Answered(start["status"], headers, body)

    async def check(self, asked: Asked) -> Answered:
        """Ask, and raise `AssertionError` unless the reply is as it must be."""
        answered = await self.ask(asked)
        for secret in _SECRETS:
            mine = secret in asked.write() and secret != _UPSTREAM_KEY.encode()
            _demand(mine or secret not in answered.body, f"the body has {secret!r}")
        _demand(200 <= answered.status < 500, f"the status is {answered.status}: {answered.body!r}")
        if answered.status >= 400 and asked.method != "HEAD":
            check_error(asked, answered)
        return answered

    async def check_rest(self) -> None:
        """It still serves, and has left nothing open."""
        answered = await self.ask(seeds()[0])
        _demand(answered.status == 200, f"it no longer serves: {answered.body!r}")
        for _ in range(_LAST_TURNS):  # a task that was cancelled ends in the next turns of the loop
            await asyncio.sleep(0)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        _demand(not others, f"tasks are left: {others}")


def check_error(asked: Asked, answered: Answered) -> None:
    """Raise `AssertionError` unless the body has the form of an error of the client's dialect."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in asked.headers}
    name = find_route(asked.method, asked.path.partition("?")[0], headers).dialect
    try:
        body: Any = loads(answered.body)
    except DecodeError:
        body = None
    body = body[0] if isinstance(body, list) and len(body) == 1 else body
    failure = Failure(status=answered.status, message="x")
    usual: Any = serve_of(name).error_body(failure, model="", request_id="")
    is_inside = "error" in usual  # else the body itself is the error, as of Converse
    fault = body.get("error") if isinstance(body, dict) and is_inside else body
    is_error = isinstance(fault, dict) and isinstance(fault.get("message"), str)
    _demand(is_error and bool(fault["message"]), f"no error of {name}: {answered.body!r}")
    keys = set(usual["error"] if is_inside else usual) - {"details", "param", "code", "status"}
    _demand(keys <= set(fault), f"no error of {name}: {answered.body!r}")
    _demand("type" not in usual or body.get("type") == usual["type"], f"no error of {name}")


def _demand(condition: object, text: str) -> None:
    if not condition:
        raise AssertionError(text)


# The requests.


def seeds() -> list[Asked]:
    """A valid request for every path."""
    return [*_answers(), *_openai(), *_anthropic(), *_gemini(), *_converse(), *_kept()]


def is_asked(pattern: str) -> bool:
    """Whether a request is for a path of this pattern."""
    matches = re.compile(pattern).fullmatch
    return any(matches(each.path.partition("?")[0]) for each in seeds())


def uncovered() -> list[str]:
    """The paths of dialects that no seed is for."""
    asked = [(each.method, each.path.partition("?")[0]) for each in seeds()]
    missing: list[str] = []
    for name in dialects.names():
        serve = serve_of(name)
        for each in (*serve.SERVER.routes, *getattr(serve, "SERVED", ())):
            is_tried = any(
                method == each.method and each.pattern.fullmatch(path) for method, path in asked
            )
            if not is_tried:
                missing.append(f"{each.method} {each.pattern.pattern}")
    return missing


_JSON = ((b"content-type", b"application/json"),)
_BEARER = ((b"authorization", f"Bearer {KEY}".encode()),)
_CLAUDE = ((b"x-api-key", KEY.encode()), (b"anthropic-version", b"2023-06-01"))
_GOOGLE = ((b"x-goog-api-key", KEY.encode()),)


def _post(path: str, body: object, key: Any = _BEARER) -> Asked:
    return Asked("POST", path, (*key, *_JSON), dumps(body))


def _get(path: str, key: Any = _BEARER, method: str = "GET") -> Asked:
    return Asked(method, path, key, b"")


def _form(path: str, fields: dict[str, str], file: bytes = b"abc", key: Any = _BEARER) -> Asked:
    parts = [
        f'--{_BOUNDARY}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'
        for name, text in fields.items()
    ]
    head = f'--{_BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n'
    kind = "content-type: audio/wav\r\n\r\n"
    body = "".join((*parts, head, kind)).encode() + file + f"\r\n--{_BOUNDARY}--\r\n".encode()
    form = (b"content-type", f"multipart/form-data; boundary={_BOUNDARY}".encode())
    return Asked("POST", path, (*key, form), body)


def _answers() -> Iterator[Asked]:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PNG}"}}
    tool = {"type": "function", "function": {"name": "look", "parameters": _TOOL}}
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, image]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    ]
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": _TOOL}}
    settings = {"temperature": 0.5, "max_tokens": 50, "stop": ["x"], "seed": 1, "n": 1}
    chat = {"model": "chat", "messages": turns, "tools": [tool], "tool_choice": "auto", **settings}
    for model in _ROUTES:
        yield _post("/v1/chat/completions", {"model": model, "messages": [_TURN]})
    yield _post("/v1/chat/completions", {**chat, "response_format": form})
    yield _post("/v1/chat/completions", {"model": "chat", "messages": [_TURN], "stream": True})
    item = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "rain"}
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    body = {
        "model": "responses",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "Hi"}, reasoning, item, output],
        "tools": [{"type": "function", "name": "look", "parameters": _TOOL, "strict": False}],
        "text": {"format": {"type": "json_schema", "name": "a", "schema": _TOOL}},
        "reasoning": {"effort": "low", "summary": "auto"},
        "max_output_tokens": 50,
    }
    yield _post("/v1/responses", body)
    yield _post("/v1/responses", {"model": "messages", "input": "Hi", "stream": True})
    yield _post("/v1/responses/input_tokens", {"model": "responses", "input": "Hi"})
    yield _post("/v1/responses/compact", {"model": "responses", "input": [_TURN]})


def _openai() -> Iterator[Asked]:
    line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions"}
    line["body"] = {"model": "responses", "messages": [_TURN]}  # type: ignore[assignment]
    yield _form("/v1/files", {"purpose": "batch"}, dumps(line))
    window = {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
    yield _post("/v1/batches", {"input_file_id": "file-1", **window})
    jobs = {"input_files": ["file-1"], "endpoint": "/v1/chat/completions", "model": "responses"}
    yield _post("/v1/batch/jobs", jobs)
    yield _post("/v1/embeddings", {"model": "openai:text-embedding-3-small", "input": ["a"]})
    yield _post("/v2/embed", {"model": "cohere:embed-v4.0", "texts": ["a"]})
    instance = {"text": "a"}
    yield _post("/v1/multimodalembeddings", {"model": "cohere:embed-v4.0", "inputs": [instance]})
    yield _post("/v1/images/generations", {"model": "openai:gpt-image-2", "prompt": "A boat."})
    yield _form("/v1/images/edits", {"model": "openai:gpt-image-2", "prompt": "A boat."})
    yield _post("/v1/moderations", {"model": "openai:omni-moderation-latest", "input": ["a"]})
    for path in ("/v2/rerank", "/v1/rerank"):
        body = {"model": "cohere:rerank-v3.5", "query": "a", "documents": ["a", "b"], "top_n": 1}
        yield _post(path, body)
    speech = {"model": "openai:gpt-4o-mini-tts", "voice": "alloy", "input": "Hi"}
    yield _post("/v1/audio/speech", speech)
    yield _form("/v1/audio/transcriptions", {"model": "openai:whisper-1"})
    video = {"model": "gemini:veo-3.1-generate-preview", "prompt": "Waves."}
    yield _post("/v1/videos", video)
    yield _post("/v1/videos/generations", video)
    yield _post("/v1/videos/video_1/remix", {"prompt": "Waves."})
    for path in ("models", "models/chat", "files", "files/f", "files/f/content", "batches"):
        yield _get(f"/v1/{path}?limit=2")
    for path in ("batches/b", "batches/b/results", "batch/jobs", "batch/jobs/b", "videos"):
        yield _get(f"/v1/{path}?limit=2&after=x")
    yield _get("/v1/videos/v")
    yield _get("/v1/videos/v/content?variant=video")
    yield _get("/v1/files/f", method="DELETE")
    yield _get("/v1/videos/v", method="DELETE")
    for path in ("batches/b/cancel", "batches/b:cancel", "batch/jobs/b/cancel", "videos/v/cancel"):
        yield _post(f"/v1/{path}", {})


def _anthropic() -> Iterator[Asked]:
    source = {"type": "base64", "media_type": "image/png", "data": _PNG}
    turns = [
        {"role": "user", "content": [{"type": "image", "source": source}, _text("Hi")]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Well.", "signature": "c2ln"},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"city": "Oslo"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [_text("a")]}],
        },
    ]
    tools = [{"name": "look", "input_schema": _TOOL, "cache_control": {"type": "ephemeral"}}]
    plain = {"model": "messages", "max_tokens": 20, "messages": [_TURN]}
    whole = {**plain, "messages": turns, "tools": tools, "system": [_text("Be brief.")]}
    yield _post("/v1/messages?beta=true", whole, _CLAUDE)
    yield _post("/v1/messages", {**plain, "model": "gemini", "stream": True}, _CLAUDE)
    yield _post("/v1/messages/count_tokens", {**plain, "max_tokens": 1}, _CLAUDE)
    bedrock = {**plain, "anthropic_version": "bedrock-2023-05-31"}
    del bedrock["model"]
    yield _post("/model/messages/invoke", bedrock, _CLAUDE)
    yield _post("/model/messages/invoke-with-response-stream", bedrock, _CLAUDE)
    vertex = "/v1/projects/p/locations/l/publishers/anthropic/models"
    yield _post(f"{vertex}/messages:rawPredict", bedrock, _CLAUDE)
    yield _post(f"{vertex}/count-tokens:rawPredict", plain, _CLAUDE)
    request = {"custom_id": "a", "params": plain}
    yield _post("/v1/messages/batches", {"requests": [request]}, _CLAUDE)
    for path in ("", "/b", "/b/results"):
        yield _get(f"/v1/messages/batches{path}?limit=3", _CLAUDE)
    yield _post("/v1/messages/batches/b/cancel", {}, _CLAUDE)
    yield _get("/v1/messages/batches/b", _CLAUDE, "DELETE")
    yield _form("/v1/files", {}, key=_CLAUDE)
    for path in ("models", "models/messages", "files", "files/f", "files/f/content"):
        yield _get(f"/v1/{path}", _CLAUDE)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _gemini() -> Iterator[Asked]:
    call = {"functionCall": {"name": "look", "args": {"city": "Oslo"}}, "thoughtSignature": "c2ln"}
    reply = {"functionResponse": {"name": "look", "response": {"output": "rain"}}}
    turns = [
        {
            "role": "user",
            "parts": [{"text": "Hi"}, {"inlineData": {"mimeType": "image/png", "data": _PNG}}],
        },
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [reply]},
    ]
    whole = {
        "contents": turns,
        "tools": [{"functionDeclarations": [{"name": "look", "parameters": _TOOL}]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"temperature": 0.5, "maxOutputTokens": 50, "stopSequences": ["x"]},
    }
    models = "/v1beta/models"
    yield _post(f"{models}/gemini:generateContent", whole, _GOOGLE)
    for query in ("?alt=sse", ""):
        yield _post(f"{models}/chat:streamGenerateContent{query}", _TURNS, _GOOGLE)
    yield _post(f"{models}/gemini:countTokens", _TURNS, _GOOGLE)
    embed = {"content": {"parts": [{"text": "a"}]}}
    model = f"{models}/gemini:gemini-embedding-001"
    yield _post(f"{model}:embedContent", embed, _GOOGLE)
    yield _post(f"{model}:batchEmbedContents", {"requests": [embed]}, _GOOGLE)
    yield _post(f"{model}:predict", {"instances": [{"content": "a"}]}, _GOOGLE)
    predict = {"instances": [{"prompt": "A boat."}], "parameters": {"sampleCount": 1}}
    yield _post(f"{models}/gemini:imagen-4.0-generate-001:predict", predict, _GOOGLE)
    inline = {"requests": {"requests": [{"request": _TURNS, "metadata": {"key": "a"}}]}}
    yield _post(
        f"{models}/messages:batchGenerateContent", {"batch": {"inputConfig": inline}}, _GOOGLE
    )
    for path in ("batches", "batches/b", "files", "files/f", "files/f:download?alt=media"):
        yield _get(f"/v1beta/{path}", _GOOGLE)
    yield _post("/v1beta/batches/b:cancel", {}, _GOOGLE)
    yield _get("/v1beta/batches/b", _GOOGLE, "DELETE")
    yield _get("/v1beta/files/f", _GOOGLE, "DELETE")
    start = ((b"x-goog-upload-command", b"start"), (b"x-goog-upload-protocol", b"resumable"))
    upload = ((b"x-goog-upload-command", b"upload, finalize"), (b"x-goog-upload-offset", b"0"))
    yield _post("/upload/v1beta/files", {"file": {"displayName": "a"}}, (*_GOOGLE, *start))
    yield _post("/upload/v1beta/files?upload_id=u", {}, (*_GOOGLE, *upload))
    yield from _gemini_videos(predict, models)
    for path in ("models?pageSize=2", "models/gemini"):
        yield _get(f"/v1beta/{path}&key={KEY}" if "?" in path else f"/v1beta/{path}", _GOOGLE)


def _gemini_videos(predict: object, models: str) -> Iterator[Asked]:
    cloud = "/v1/projects/p/locations/l/publishers/google/models/veo-3"
    operation = f"{cloud.removeprefix('/v1/')}/operations/o"
    yield _post(f"{cloud}:predictLongRunning", predict, _GOOGLE)
    yield _post(f"{cloud}:fetchPredictOperation", {"operationName": operation}, _GOOGLE)
    yield _post(f"{models}/veo-3:predictLongRunning", predict, _GOOGLE)
    yield _get(f"{models}/veo-3/operations/o", _GOOGLE)
    yield _get(f"{models}/veo-3/operations?pageSize=1", _GOOGLE)
    yield _post(f"{models}/veo-3/operations/o:cancel", {}, _GOOGLE)


def _converse() -> Iterator[Asked]:
    use = {"toolUseId": "c1", "name": "look", "input": {"city": "Oslo"}}
    result = {"toolUseId": "c1", "content": [{"text": "rain"}], "status": "success"}
    image = {"format": "png", "source": {"bytes": _PNG}}
    plain = {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}
    whole = {
        "messages": [
            {"role": "user", "content": [{"text": "Hi"}, {"image": image}]},
            {"role": "assistant", "content": [{"toolUse": use}]},
            {"role": "user", "content": [{"toolResult": result}]},
        ],
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        "toolConfig": {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": _TOOL}}}]},
        "inferenceConfig": {"temperature": 0.5, "maxTokens": 50, "stopSequences": ["x"]},
    }
    yield _post("/model/converse/converse", whole)
    yield _post("/model/messages/converse", plain)
    for model in ("converse", "chat"):
        yield _post(f"/model/{model}/converse-stream", plain)
    yield _post("/model/converse/count-tokens", {"input": {"converse": plain}})
    for path in ("", "/converse"):
        yield _get(f"/foundation-models{path}")


def _kept() -> Iterator[Asked]:
    """The paths of kept responses and conversations."""
    for path in ("responses/r", "responses/r/input_items", "conversations/c"):
        yield _get(f"/v1/{path}")
    for path in ("conversations/c/items", "conversations/c/items/i"):
        yield _get(f"/v1/{path}?limit=2")
    for path in ("responses/r", "conversations/c", "conversations/c/items/i"):
        yield _get(f"/v1/{path}", method="DELETE")
    yield _post("/v1/responses/r/cancel", {})
    for path in ("conversations", "conversations/c", "conversations/c/items"):
        yield _post(f"/v1/{path}", {"items": [_TURN], "metadata": {"a": "b"}})
