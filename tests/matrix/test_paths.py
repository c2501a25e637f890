"""Only `path=` is read: in every dialect, in every mode, whoever wrote the content."""

import asyncio
import sys
from contextlib import contextmanager

import pytest

from interlingua import dialects, sync
from interlingua.api.execute.execution import execute
from interlingua.api.modalities.speech import transcribe
from interlingua.api.run.generate import generate, stream
from interlingua.client.client import Client
from interlingua.simulator import text
from interlingua.spec.content import Audio, Document, Image, ToolCall, ToolResult
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import ConfigurationError, DecodeError
from interlingua.spec.json_form import from_json, to_json
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from support.runs import collect, named
from support.simulated import DIALECTS, adapters, simulated

PNG = b"\x89PNG\r\n\x1a\nrest"
every_provider = pytest.mark.parametrize("provider", DIALECTS)

_readers: list[list[str]] = []


def _note_opened(event, arguments):
    if event == "open" and not str(arguments[0]).endswith((".py", ".pyc")):  # modules are loaded
        for names in _readers:
            names.append(str(arguments[0]))


sys.addaudithook(_note_opened)  # a hook cannot be removed, so it is quiet outside of `opened`


@contextmanager
def opened():
    """The names of the files that are opened meanwhile, but for modules."""
    names = []
    _readers.append(names)
    try:
        yield names
    finally:
        _readers.remove(names)


async def _generate(client, provider, messages):
    await generate(named(provider), messages=messages, client=client)


async def _stream(client, provider, messages):
    await collect(stream(named(provider), messages=messages, client=client))


async def _complete(client, provider, messages):
    await client.complete(Request(model=named(provider), messages=messages))


async def _client_stream(client, provider, messages):
    await collect(client.stream(Request(model=named(provider), messages=messages)))


async def _execute(client, provider, messages):
    result = await execute(named(provider), messages, client=client)
    assert result.error is not None
    raise ConfigurationError(result.error.message)


async def _explain(client, provider, messages):
    client.explain(Request(model=named(provider), messages=messages))


async def _count(client, provider, messages):
    await client.count_tokens(Request(model=named(provider), messages=messages))


async def _sync(client, provider, messages):
    def blocking():
        with sync.Client(dict(client.calls.adapters)) as blocked:
            sync.generate(named(provider), messages=messages, client=blocked)

    await asyncio.to_thread(blocking)


MODES = [_generate, _stream, _complete, _client_stream, _execute, _explain, _count, _sync]


@every_provider
@pytest.mark.parametrize("mode", MODES)
def test_a_path_as_url_is_refused(provider, mode, tmp_path):
    """Before anything is sent, and no file is opened."""
    if mode is _count and provider == "openai_compatible":
        pytest.skip("it cannot count tokens")
    path = tmp_path / "secret.png"
    path.write_bytes(PNG)
    history = (Message.user("?"), Message.user([Image(url=str(path))]))
    with simulated() as peer:
        with opened() as names, pytest.raises(ConfigurationError) as caught:
            asyncio.run(mode(peer.client, provider, history))
        asyncio.run(peer.client.close())

        assert "messages[1].content[0].url is a path" in str(caught.value)
        assert "use path=" in str(caught.value)
        assert peer.app.script.requests == ()
    assert str(path) not in names


@every_provider
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "part", [Image("cat.png"), Document("a.pdf"), Audio("a.wav"), Image("images/my cat.png")]
)
def test_the_bare_name_of_a_file_is_a_path(provider, mode, part):
    """It has no scheme, so it is no URL: the error says what to write, and nothing is sent."""
    if mode is _count and provider == "openai_compatible":
        pytest.skip("it cannot count tokens")
    with simulated() as peer:
        with pytest.raises(ConfigurationError, match=r"content\[0\].url is a path.* use path="):
            asyncio.run(mode(peer.client, provider, [Message.user([part])]))
        asyncio.run(peer.client.close())
        assert peer.app.script.requests == ()


@pytest.mark.parametrize("part", [Audio("a.wav"), Audio("voices/a.wav")])
def test_the_bare_name_of_a_file_is_no_url_for_operations_either(part):
    """Operations read the same parts."""
    with simulated() as peer:
        with pytest.raises(ConfigurationError, match="use path="):
            asyncio.run(transcribe("openai:whisper-1", part, client=peer.client))
        asyncio.run(peer.client.close())
        assert peer.app.script.requests == ()


@every_provider
def test_a_program_may_allow_bare_names(provider, tmp_path, monkeypatch):
    """With `read_path_urls=True`, a name without a scheme is read as a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cat.png").write_bytes(PNG)
    with simulated(text("A cat.")) as peer:
        client = Client(adapters(peer.server.url), read_path_urls=True)
        asyncio.run(_generate(client, provider, [Message.user(["?", Image("cat.png")])]))
        (request,) = peer.app.script.requests
    (image,) = [p for m in request.messages for p in m.content if isinstance(p, Image)]
    assert image.data == PNG


@every_provider
def test_decoders_keep_a_path_as_url(provider, tmp_path):
    """A server that decodes such a request does not fail; sending it on does."""
    path = tmp_path / "secret.png"
    path.write_bytes(PNG)
    for url in (str(path), f"file://{path}", "../secret.png", "~/secret.png", "C:\\secret.png"):
        part = Image(url=url, media_type="image/png")
        dialect = dialects.get(DIALECTS[provider])
        call = dialect.encode_request(Request(model="m", messages=[Message.user([part])]))
        if provider == "bedrock_converse":  # `ImageSource` has no URL
            assert url not in str(call.body)
            assert [each.code for each in call.warnings] == ["image_dropped", "placeholder_added"]
            continue
        with opened() as names:
            decoded = dialect.decode_request(WireCall(path=call.path, body=call.body))
            (found,) = [p for p in decoded.messages[0].content if isinstance(p, Image)]
            assert (found.url, found.path) == (url, None)
            with pytest.raises(ConfigurationError, match="use path="):
                asyncio.run(_explain(Client(adapters("http://x")), provider, decoded.messages))
        assert names == []


@every_provider
@pytest.mark.parametrize("mode", [_generate, _stream])
def test_a_program_may_allow_paths_as_urls(provider, mode, tmp_path):
    """A program that builds all content itself may switch it on, for tool results too."""
    path = tmp_path / "dot.png"
    path.write_bytes(PNG)
    call = Message.assistant([ToolCall(id="call_1", name="look")])
    found = ToolResult(tool_call_id="call_1", content=(Image(url=f"file://{path}"),))
    history = [Message.user(["?", Image(url=str(path))]), call, Message(role="tool", content=found)]
    with simulated(text("A dot.")) as peer:
        client = Client(adapters(peer.server.url), read_path_urls=True)
        asyncio.run(mode(client, provider, history))
        (request,) = peer.app.script.requests

    images = [p for m in request.messages for p in m.content if isinstance(p, Image)]
    assert images[0].data == PNG


@every_provider
def test_explain_reads_the_file_of_a_path(provider, tmp_path):
    """The program named the file, so the exact request has its bytes."""
    path = tmp_path / "dot.png"
    path.write_bytes(PNG)
    client = Client(adapters("http://x"))
    request = Request(model=named(provider), messages=[Message.user([Image(path)])])

    assert "iVBORw0KGgpyZXN0" in repr(client.explain(request).body)


@pytest.mark.parametrize("kind", [Image, Audio, Document])
def test_json_cannot_name_a_file(kind):
    """Only `trust_paths=True` accepts a `path` in JSON."""
    message = Message.user([kind(path="/etc/hostname")])
    request = Request(model="m", messages=[message])

    for value in (message, request):
        data = to_json(value)
        with pytest.raises(DecodeError, match="trust_paths=True") as caught:
            from_json(data, type(value))
        assert "content[0].path" in str(caught.value)
        assert from_json(data, type(value), trust_paths=True) == value


def test_dicts_cannot_name_a_file():
    """Neither as messages, nor as what a tool returned."""
    part = {"kind": "image", "path": "/etc/hostname"}
    message = {"role": "user", "content": [part]}
    client = Client(adapters("http://x"))

    with opened() as names:
        with pytest.raises(ConfigurationError, match="path"):
            asyncio.run(_generate(client, "openai", [message]))
        with pytest.raises(ConfigurationError, match="path"):
            asyncio.run(_execute(client, "openai", [message]))
        assert ToolResult(tool_call_id="c", content=[part]).parts is None
    assert names == []
