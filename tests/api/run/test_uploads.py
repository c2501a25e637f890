"""`upload="auto"`, and the limits of sizes, over HTTP against the simulator."""

import asyncio
import gc

import pytest
from msgspec.structs import replace

from interlingua import (
    Client,
    Document,
    Image,
    Message,
    Request,
    files,
    generate,
    stream,
    sync,
    tool,
    transcribe,
)
from interlingua.errors import ConfigurationError, InvalidRequestError, UnsupportedError
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.provider import SizeLimits
from interlingua.providers.rows import find_provider
from interlingua.simulator import (
    Script,
    Simulator,
    error,
    latency,
    serve_in_thread,
    text,
    use_tools,
)
from interlingua.spec.content import Audio
from interlingua.spec.modalities.files import UploadInput
from interlingua.spec.modalities.speech import TranscribeInput
from support.simulated import MODELS, settled
from support.warning_codes import codes

LIMIT = 100_000  # so that tests are fast; the rows have tens of megabytes
PDF = b"%PDF-1.7\n" + bytes(200_000)
SMALL = b"%PDF-1.7\n" + bytes(10_000)
PROVIDERS = ("openai", "anthropic", "gemini")
every_provider = pytest.mark.parametrize("provider", PROVIDERS)


def document(data=PDF):
    return Document(data=data, media_type="application/pdf")


def adapters(url, **settings):
    """The three providers with small limits."""
    found = {}
    for name in PROVIDERS:
        row = replace(find_provider(name), sizes=SizeLimits(request=LIMIT))
        found[name] = HttpAdapter(row, "k", base_url=url, **settings)
    return found


def run(work, *answers, **settings):
    """What the work returns, and what the simulator received."""
    app = Simulator(*answers)
    with serve_in_thread(app) as server:

        async def whole():
            async with Client(adapters(server.url, **settings)) as client:
                return await work(client)

        outcome = asyncio.run(whole())
        left = app._operations.files.list_files(None)
    return outcome, app.script.received, left


def kinds(received):
    """A word for each request: upload, ask, delete, or another method and path."""
    words = []
    for exchange in received:
        path = exchange.call.path.partition("?")[0]
        if exchange.method == "DELETE":
            words.append("delete")
        elif "/files" in path:
            words.append("upload" if exchange.method == "POST" else "get")
        else:
            words.append("ask")
    return words


@every_provider
def test_large_media_is_stored_referred_to_and_deleted(provider):
    """The body has the reference, and afterwards the provider has no file."""

    async def work(client):
        prompt = [document(), document(SMALL), "Compare them."]
        return await generate(
            f"{provider}:{MODELS[provider]}", prompt, upload="auto", client=client
        )

    result, received, left = run(work, text("Fine."))

    assert result.text == "Fine."
    assert codes(result.response) == []
    uploads = ["upload", "upload"] if provider == "gemini" else ["upload"]  # a start, and the bytes
    assert kinds(received) == [*uploads, "ask", "delete"]
    (asked,) = [each for each in received if kinds([each]) == ["ask"]]
    assert len(str(asked.call.body)) < LIMIT
    assert "file-0000" in str(asked.call.body)
    assert left == []


@every_provider
def test_without_the_option_it_is_an_error_before_sending(provider):
    """It names the option, the limit and the function."""

    async def work(client):
        model = f"{provider}:{MODELS[provider]}"
        with pytest.raises(ConfigurationError) as caught:
            await generate(model, [document(), "Summarise."], client=client)
        sent = await generate(model, [document(), "Hi."], on_loss="warn", client=client)
        return str(caught.value), sent

    (message, sent), received, _ = run(work, text("Fine."))

    assert 'upload="auto"' in message
    assert "files.upload" in message
    assert "0.3 MB" in message
    assert "accepts 0.1 MB" in message
    assert sent.text == "Fine."  # `on_loss="warn"` leaves it to the provider
    assert kinds(received) == ["ask"]


def test_small_media_is_not_stored():
    """Nothing changes for a request that fits."""

    async def work(client):
        return await generate(
            "openai:gpt-5.2", [document(SMALL), "Hi."], upload="auto", client=client
        )

    _, received, _ = run(work, text("Fine."))

    assert kinds(received) == ["ask"]


def test_the_largest_parts_are_stored_until_the_rest_fits():
    """The others stay in the request."""
    sizes = [30_000, 60_000, 10_000, 50_000]  # in base64 twice what a request may have

    async def work(client):
        parts = [document(b"%PDF-1" + bytes(size)) for size in sizes]
        return await generate("openai:gpt-5.2", [*parts, "Hi."], upload="auto", client=client)

    _, received, left = run(work, text("Fine."))

    assert kinds(received) == ["upload", "upload", "ask", "delete", "delete"]
    uploaded = [part.content for each in received[:2] for part in each.call.form]
    assert [len(data) - 6 for data in uploaded if isinstance(data, bytes)] == [60_000, 50_000]
    body = received[2].call.body
    assert [("file_id" in part) for part in body["input"][0]["content"][:4]] == [
        *(False, True),
        *(False, True),
    ]
    assert left == []


@every_provider
def test_a_file_is_read_from_disk_and_stored_once_in_a_run(provider, tmp_path):
    """Two steps and a tool, one upload."""
    path = tmp_path / "report.pdf"
    path.write_bytes(PDF)

    @tool
    def look(word: str) -> str:
        """Look a word up."""
        return f"{word} is a word"

    async def work(client):
        return await generate(
            f"{provider}:{MODELS[provider]}",
            [Document(path=path), "Look up `rain`."],
            tools=[look],
            upload="auto",
            client=client,
        )

    result, received, left = run(work, use_tools)

    assert len(result.steps) == 2
    words = kinds(received)
    assert (words.count("ask"), words.count("delete")) == (2, 1)
    assert words.count("upload") == (2 if provider == "gemini" else 1)
    assert left == []


def test_media_that_a_tool_returns():
    """It is stored in the step that sends it."""

    @tool
    def scan() -> list:
        """Scan a page."""
        return [document()]

    async def work(client):
        return await generate(
            "anthropic:claude-haiku-4-5", "Scan.", tools=[scan], upload="auto", client=client
        )

    result, received, left = run(work, use_tools)

    assert len(result.steps) == 2
    assert kinds(received) == ["ask", "upload", "ask", "delete"]
    assert left == []


@every_provider
def test_files_are_deleted_after_an_error(provider):
    """The vendor refuses the request; what was stored is gone."""

    async def work(client):
        model = f"{provider}:{MODELS[provider]}"
        with pytest.raises(InvalidRequestError):
            await generate(model, [document(), "Hi."], upload="auto", client=client)

    _, received, left = run(work, lambda _request: error(400))

    assert kinds(received)[-2:] == ["ask", "delete"]
    assert left == []


@every_provider
def test_retries_use_the_stored_file(provider):
    """A failed attempt is repeated with the same body."""

    async def work(client):
        model = f"{provider}:{MODELS[provider]}"
        return await generate(model, [document(), "Hi."], upload="auto", client=client)

    answers = iter((error(503, retry_after=0.01), text("Fine.")))
    _, received, left = run(work, lambda _request: next(answers))

    words = kinds(received)
    assert words[-3:] == ["ask", "ask", "delete"]
    assert words.count("upload") == (2 if provider == "gemini" else 1)
    assert left == []


def test_files_are_deleted_after_a_cancellation():
    """The task is cancelled while the model answers; so is a run by its id."""

    async def work(client):
        async def ask(request_id):
            return await generate(
                "openai:gpt-5.2",
                [document(), "Hi."],
                upload="auto",
                request_id=request_id,
                client=client,
            )

        task = asyncio.create_task(ask("r1"))
        await settled(lambda: kinds(script.received) == ["upload", "ask"])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        second = asyncio.create_task(ask("r2"))
        await settled(lambda: kinds(script.received)[3:] == ["upload", "ask"])
        assert await client.cancel("r2")
        with pytest.raises(Exception, match="cancel"):
            await second

    script = Script(text("Fine.") + latency(first=30))
    _, received, left = run(work, script)

    assert kinds(received) == ["upload", "ask", "delete"] * 2
    assert left == []


@every_provider
def test_streams(provider):
    """At the end, when it is left early, and when nobody reads it."""
    model = f"{provider}:{MODELS[provider]}"

    async def work(client):
        options = {"upload": "auto", "client": client}
        whole = stream(model, [document(), "Hi."], **options)
        words = "".join([piece async for piece in whole.text_stream])
        async with stream(model, [document(), "Hi."], **options) as early:
            async for _ in early:
                break
        stream(model, [document(), "Hi."], **options)
        gc.collect()
        request = Request(model=model, messages=[Message.user([document()])], upload="auto")
        events = [event async for event in client.stream(request)]
        answer = await client.complete(request)
        return words, events, answer

    (words, events, answer), received, left = run(work, text("Fine."))

    assert words == answer.text == "Fine."
    assert events[-1].response.text == "Fine."
    assert kinds(received).count("delete") == kinds(received).count("ask") == 4
    assert left == []


def test_an_adapter_alone():
    """It has its own run."""
    app = Simulator(text("Fine."))
    with serve_in_thread(app) as server:
        adapter = adapters(server.url)["openai"]
        request = Request(model="m", messages=[Message.user([document()])], upload="auto")

        async def work():
            response = await adapter.complete(request)
            events = [event async for event in adapter.stream(request)]
            await adapter.close()
            return response, events

        response, events = asyncio.run(work())

    assert response.text == events[-1].response.text == "Fine."
    assert kinds(app.script.received) == ["upload", "ask", "delete"] * 2


def test_blocking():
    """The blocking function has the option too."""
    app = Simulator(text("Fine."))
    with serve_in_thread(app) as server, sync.Client(adapters(server.url)) as client:
        result = sync.generate("openai:gpt-5.2", [document()], upload="auto", client=client)

    assert result.text == "Fine."
    assert kinds(app.script.received) == ["upload", "ask", "delete"]


def test_media_that_cannot_be_referred_to_is_an_error():
    """Chat Completions takes no images by id."""
    row = replace(find_provider("openai"), sizes=SizeLimits(request=LIMIT))
    image = Image(data=b"\x89PNG\r\n\x1a\n" + bytes(200_000), media_type="image/png")

    async def work():
        adapter = HttpAdapter(row, "k", dialect="openai_chat", base_url="http://127.0.0.1:9/v1")
        async with Client({"openai": adapter}) as client:
            await generate("openai:gpt-5.2", [image], upload="auto", client=client)

    with pytest.raises(ConfigurationError, match="besides media that can be uploaded"):
        asyncio.run(work())


def test_a_provider_without_files():
    """The error says that it stores none."""
    row = replace(find_provider("deepseek"), sizes=SizeLimits(request=LIMIT))

    async def work(**options):
        adapter = HttpAdapter(row, "k", base_url="http://127.0.0.1:9/v1", profile=PROFILE)
        async with Client({"deepseek": adapter}) as client:
            await generate("deepseek:deepseek-chat", [document()], client=client, **options)

    with pytest.raises(ConfigurationError, match="does not store files"):
        asyncio.run(work(upload="auto"))
    with pytest.raises(ConfigurationError, match="Send less media"):
        asyncio.run(work())


PROFILE = {"document_types": ["application/pdf"]}


def test_an_adapter_that_reads_no_files_uploads_none(tmp_path):
    """`read_files=False` holds for uploads too."""
    path = tmp_path / "secret.pdf"
    path.write_bytes(PDF)

    async def work(client):
        with pytest.raises(ConfigurationError, match="read_files=False"):
            await generate("openai:gpt-5.2", [Document(path=path)], upload="auto", client=client)

    _, received, _ = run(work, text("Fine."), read_files=False)

    assert received == ()


def test_the_option_is_checked():
    """A typing mistake is an error."""
    with pytest.raises(ConfigurationError, match="upload"):
        asyncio.run(generate("openai:gpt-5.2", "Hi.", upload="always"))


def test_a_failure_to_delete_is_only_logged(caplog):
    """The answer is there all the same."""

    async def work(client):
        return await generate("openai:gpt-5.2", [document()], upload="auto", client=client)

    result, received, left = run(work, text("Fine."), error(400))

    assert kinds(received) == ["upload", "ask", "delete"]
    assert result.text == "Fine."
    assert len(left) == 1
    assert "Cannot delete the uploaded file" in caplog.text


# Limits of operations.


def test_limits_are_data_of_the_rows():
    """As the vendors document them."""
    openai, anthropic, gemini = (find_provider(name).sizes for name in PROVIDERS)

    assert (openai.audio, openai.request) == (25 * 1024**2, 50 * 1024**2)
    assert (anthropic.request, anthropic.file) == (32 * 1024**2, 500 * 1024**2)
    assert gemini.request == 20 * 1024**2


def limited(**sizes):
    row = replace(find_provider("openai"), sizes=SizeLimits(**sizes))
    return HttpAdapter(row, "k", base_url="http://127.0.0.1:9/v1")


def test_audio_and_files_that_are_too_large():
    """The error comes before sending, with both sizes."""
    audio = TranscribeInput(model="whisper-1", audio=Audio(data=bytes(3 * 1024**2)))
    file = UploadInput(content=bytes(3 * 1024**2))

    with pytest.raises(ConfigurationError, match=r"3\.0 MB.*transcribes at most 1\.0 MB"):
        asyncio.run(limited(audio=1024**2).perform("transcribe", audio))
    with pytest.raises(ConfigurationError, match=r"3\.0 MB.*stores at most 1\.0 MB"):
        asyncio.run(limited(file=1024**2).perform("upload_file", file))


def test_audio_for_a_prompt_is_limited_as_a_request():
    """Gemini gets it in JSON; a stored file is the way out."""
    row = replace(find_provider("gemini"), sizes=SizeLimits(request=1024**2))

    async def work(url):
        async with Client({"gemini": HttpAdapter(row, "k", base_url=url)}) as client:
            audio = b"RIFF....WAVE" + bytes(1024**2)
            with pytest.raises(ConfigurationError, match=r"file\.part\(\)"):
                await transcribe("gemini:gemini-2.5-flash", audio, client=client)
            file = await files.upload("gemini", audio, media_type="audio/wav", client=client)
            file = await files.wait(file, poll_interval=0.01, client=client)
            return await transcribe("gemini:gemini-2.5-flash", file.part(), client=client)

    with serve_in_thread(Simulator(text("Hello."))) as server:
        assert asyncio.run(work(server.url)).text == "Hello."


def test_stored_audio_of_another_provider_is_refused():
    """Before anything is sent."""
    part = files.StoredFile(id="f", media_type="audio/wav", provider="openai").part()

    async def work():
        async with Client({"gemini": HttpAdapter("gemini", "k")}) as client:
            await transcribe("gemini:gemini-2.5-flash", part, client=client)

    with pytest.raises(UnsupportedError, match="openai stores"):
        asyncio.run(work())
