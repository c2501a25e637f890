"""`interlingua.files`, async and blocking, over HTTP against the simulator."""

import asyncio
import io
import os
import tracemalloc

import pytest

from interlingua import (
    AbortController,
    Client,
    Document,
    Image,
    Message,
    files,
    from_json,
    generate,
    sync,
    to_json,
)
from interlingua.errors import (
    AbortError,
    ConfigurationError,
    InvalidRequestError,
    NotFoundError,
    RequestTimeoutError,
    UnsupportedError,
)
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, scripted, serve_in_thread, text
from interlingua.spec.content import Audio
from interlingua.spec.modalities.files import ListFilesInput, StoredFile
from interlingua.transport import CannedReply, CannedTransport
from interlingua.transport.uploads import ObservedBody, open_file
from support.simulated import MODELS, generated, run, simulated
from support.warning_codes import codes

PROVIDERS = ("openai", "anthropic", "gemini")
every_provider = pytest.mark.parametrize("provider", PROVIDERS)
PDF = b"%PDF-1.7\n" + bytes(300_000)


async def chunks(data, size=1000):
    for start in range(0, len(data), size):
        yield data[start : start + size]


def source_of(kind, path):
    match kind:
        case "bytes":
            return PDF
        case "path":
            return path
        case "open file":
            return path.open("rb")
        case "memory file":
            return io.BytesIO(PDF)
        case _:
            return chunks(PDF)


SOURCES = ("bytes", "path", "open file", "memory file", "async iterable")


@every_provider
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_arrives_whole(provider, source, tmp_path):
    """The bytes that are stored are those of the source, with the type of their beginning."""
    path = tmp_path / "a report.pdf"
    path.write_bytes(PDF)

    async def work(client):
        given = source_of(source, path)
        file = await files.upload(provider, given, client=client)
        if hasattr(given, "close"):
            given.close()
        return file, peer.stored(file.id)

    with simulated() as peer:
        file, stored = run(peer, work)

    assert stored == PDF
    assert (file.media_type, file.size, file.provider) == ("application/pdf", len(PDF), provider)
    has_name = source in {"path", "open file"}
    assert file.file_name == ("a report.pdf" if has_name else "file")


@every_provider
def test_the_life_of_a_file(provider, tmp_path):
    """It is found by its reference, listed, downloaded and deleted; then it is not found."""

    async def work(client):
        file = await files.upload(f"{provider}:{MODELS[provider]}", PDF, client=client)
        again = await files.get(file.reference, client=client)
        by_id = await files.get(file.id, provider=provider, client=client)
        listed = await files.list(provider, client=client)
        made = f"{provider}:{generated(peer.app, PDF)}"
        size = await files.download(made, tmp_path / "copy.pdf", client=client)
        assert await files.read(made, client=client) == PDF
        deleted = await files.delete(file.reference, client=client)
        with pytest.raises(NotFoundError) as caught:
            await files.get(file, client=client)
        return file, again, by_id, listed, size, deleted, caught.value

    with simulated() as peer:
        file, again, by_id, listed, size, deleted, error = run(peer, work)

    assert file.id == again.id == by_id.id == listed[0].id == deleted.file_id
    assert [each.provider for each in (file, again, *listed)] == [provider] * 3
    assert size == len(PDF)
    assert (tmp_path / "copy.pdf").read_bytes() == PDF
    assert error.provider == provider


@every_provider
def test_lists_of_several_pages(provider):
    """All pages are read, the newest file first."""

    async def work(client):
        made = [await files.upload(provider, b"%PDF-1", client=client) for _ in range(5)]
        value = ListFilesInput(limit=2)
        return made, await client.perform(provider, "list_files", value)

    with simulated() as peer:
        made, listed = run(peer, work)

    assert [file.id for file in listed] == [file.id for file in reversed(made)]


@every_provider
def test_memory_is_bounded_and_progress_reported(provider, tmp_path):
    """A file is not read into memory; progress grows to the whole size; callbacks may be async."""
    path = tmp_path / "large.bin"
    size = 24 * 1024 * 1024
    with path.open("wb") as file:
        file.truncate(size)
    seen = []

    async def note(done, total):
        seen.append((done, total))

    async def work():
        body = ObservedBody(await open_file(path), lambda done: note(done, size))
        tracemalloc.start()
        async for _ in body:
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert asyncio.run(work()) < 2 * 1024 * 1024
    assert seen[-1] == (size, size)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)

    async def small(client):
        return await files.upload(provider, PDF, on_progress=note, client=client)

    seen.clear()
    with simulated() as peer:
        stored = run(peer, small)
    assert seen[-1] == (len(PDF), len(PDF))
    assert stored.size == len(PDF)


def test_wait_until_it_is_ready():
    """Media of Gemini is processed first; what is ready is not asked for."""

    async def work(client):
        file = await files.upload("gemini", b"x", media_type="video/mp4", client=client)
        ready = await files.wait(file, poll_interval=0.01, client=client)
        return file, ready, await files.wait(ready, client=client)

    with simulated() as peer:
        file, ready, again = run(peer, work)
        asked = [e for e in peer.app.script.received if e.method == "GET"]

    assert (file.state, ready.state) == ("processing", "ready")
    assert again is ready
    assert len(asked) == 2


def test_a_file_that_fails_is_an_error_and_a_timeout_ends_the_wait():
    """The reason of the provider is in the error."""
    body = b'{"name":"files/a","state":"FAILED","error":{"code":3,"message":"bad codec"}}'

    async def failing():
        canned = CannedTransport([CannedReply(body=body)])
        async with Client({"gemini": HttpAdapter("gemini", "k", transport=canned)}) as client:
            await files.wait("gemini:files/a", client=client)

    with pytest.raises(InvalidRequestError, match=r"files/a.*bad codec"):
        asyncio.run(failing())

    busy = b'{"name":"files/a","state":"PROCESSING"}'

    async def slow():
        canned = CannedTransport([CannedReply(body=busy)] * 100)
        async with Client({"gemini": HttpAdapter("gemini", "k", transport=canned)}) as client:
            await files.wait("gemini:files/a", poll_interval=0.01, timeout=0.1, client=client)

    with pytest.raises(RequestTimeoutError):
        asyncio.run(slow())


WRONG = [
    ("report.pdf", "pathlib.Path"),
    (b"", "empty"),
    (12, "bytes, a Path"),
    (io.BytesIO(), "empty"),
    (io.StringIO("text"), "not bytes"),
]


@pytest.mark.parametrize(("source", "message"), WRONG)
def test_what_cannot_be_uploaded(source, message):
    """A name that is no Path, an empty file, and a stream of text are refused before sending."""

    async def work(client):
        await files.upload("openai", source, client=client)

    with simulated() as peer:
        with pytest.raises(ConfigurationError, match=message):
            run(peer, work)
        assert peer.app.script.received == ()


def test_special_files_are_refused(tmp_path):
    """A pipe would block for ever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    missing, nul = tmp_path / "missing", tmp_path / "a\0b"
    wrong = ((pipe, "not a regular file"), (missing, "No such file"), (nul, "null (byte|char)"))

    for path, message in wrong:

        async def work(client, path=path):
            await files.upload("openai", path, client=client)

        with simulated() as peer, pytest.raises(ConfigurationError, match=message):
            run(peer, work)


@pytest.mark.parametrize("name", ["file_name", "media_type", "purpose"])
def test_settings_are_texts(name):
    """Anything else is refused before sending."""

    async def work(client):
        await files.upload("openai", PDF, **{name: 5}, client=client)

    with simulated() as peer, pytest.raises(ConfigurationError, match=f"{name} must be a string"):
        run(peer, work)


@every_provider
def test_a_name_that_is_not_unicode(provider, tmp_path):
    """A file may have one; it is uploaded with another character in its place."""
    path = tmp_path / os.fsdecode(b"caf\xe9.txt")
    path.write_text("x")

    async def work(client):
        return await files.upload(provider, path, client=client)

    with simulated() as peer:
        assert peer.stored(run(peer, work).id) == b"x"


@every_provider
def test_scripted_models(provider):
    """A scripted client stores files too, in memory: the address of an upload is its own."""

    async def work():
        async with scripted() as client:
            return await files.upload(provider, PDF, client=client)

    assert asyncio.run(work()).id


def test_a_provider_without_files_names_those_that_have_them():
    """Before anything is sent."""

    async def work():
        async with Client({"deepseek": HttpAdapter("deepseek", "k")}) as client:
            await files.upload("deepseek", PDF, client=client)

    with pytest.raises(UnsupportedError, match="openai, anthropic, gemini"):
        asyncio.run(work())


@pytest.mark.parametrize("name", ["file-abc", "", 7, "openai:\ud800"])
def test_a_file_needs_a_provider(name):
    """An id alone does not say where the file is."""

    async def work(client):
        await files.get(name, client=client)

    with simulated() as peer, pytest.raises(ConfigurationError, match=r"provider|reference|surrog"):
        run(peer, work)


def test_settings_that_a_provider_lacks_are_warnings():
    """Gemini has neither purposes nor a choice of expiry; Anthropic limits the expiry."""

    async def work(client):
        options = {"purpose": "vision", "expires_after": 7200, "client": client}
        gemini = await files.upload("gemini", PDF, **options)
        anthropic = await files.upload("anthropic", PDF, **options)
        openai = await files.upload("openai", PDF, **options)
        with pytest.raises(ConfigurationError, match="between 3600 and 7776000"):
            await files.upload("anthropic", PDF, expires_after=5, client=client)
        return gemini, anthropic, openai

    with simulated() as peer:
        gemini, anthropic, openai = run(peer, work)

    assert [each.path for each in gemini.warnings] == ["purpose", "expires_after"]
    assert [each.path for each in anthropic.warnings] == ["purpose"]
    assert openai.warnings == ()
    assert openai.purpose == "vision"
    assert round(gemini.expires_at - gemini.created_at) == 48 * 3600
    assert anthropic.expires_at - anthropic.created_at == 7200
    assert openai.expires_at - openai.created_at == 7200


# Parts.


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [("image/png", Image), ("audio/wav", Audio), ("video/mp4", Document), (None, Document)],
)
def test_parts_by_media_type(media_type, kind):
    """A video is a document."""
    file = StoredFile(id="file-1", media_type=media_type, provider="openai")

    part = file.part()

    assert isinstance(part, kind)
    assert part.file_id == "file-1"


@every_provider
def test_a_part_is_sent_by_its_id(provider):
    """What is in the body is the id, or for Gemini the address."""

    async def work(client):
        file = await files.upload(provider, PDF, client=client)
        model = f"{provider}:{MODELS[provider]}"
        result = await generate(model, [file.part(), "Summarise."], client=client)
        return file, result

    with simulated(text("Fine.")) as peer:
        file, result = run(peer, work)
        body = str(peer.app.script.received[-1].call.body)

    assert (file.uri or file.id) in body
    assert codes(result.response) == []


FOREIGN = StoredFile(id="file-1", media_type="application/pdf", provider="openai")
OLD = StoredFile(id="file-1", media_type="application/pdf", provider="gemini", expires_at=1.0)


@pytest.mark.parametrize(
    ("file", "message"), [(FOREIGN, "openai stores"), (OLD, "expired at 1970-01-01")]
)
def test_files_that_cannot_be_used(file, message):
    """In the current turn an error before sending; in earlier turns the part is dropped."""
    now = [file.part(), "Summarise."]
    before = [Message.user(now), Message.assistant("Done."), Message.user("Again.")]

    async def work(client, **options):
        return await generate("gemini:gemini-2.5-flash", client=client, **options)

    with simulated(text("Fine.")) as peer:
        with pytest.raises(UnsupportedError, match=message):
            run(peer, lambda client: work(client, prompt=now))
        assert peer.app.script.received == ()
    with simulated(text("Fine.")) as peer:
        result = run(peer, lambda client: work(client, messages=before))
        body = str(peer.app.script.received[-1].call.body)

    assert codes(result.response) == ["document_dropped"]
    assert "file-1" not in body
    assert "stored_file" not in body


def test_parts_survive_json():
    """So does what is known of the file."""
    message = Message.user([FOREIGN.part()])

    assert from_json(to_json(message), Message) == message


# Blocking, middleware, cancelling.


class Log:
    def __init__(self):
        self.seen = []

    async def perform(self, operation, value, call_next):
        self.seen.append(operation.name)
        return await call_next(value)


def test_blocking_twins_through_middleware(tmp_path):
    """Every operation passes through `perform`."""
    log = Log()
    with serve_in_thread(Simulator()) as server:
        adapters = {"openai": HttpAdapter("openai", "k", base_url=server.url)}
        with sync.Client(adapters, middleware=[log]) as client:
            file = sync.files.upload("openai", PDF, client=client)
            assert sync.files.wait(file, client=client).state == "ready"
            assert sync.files.get(file, client=client).id == file.id
            assert len(sync.files.list("openai", client=client)) == 1
            assert sync.files.read(file, client=client) == PDF
            assert sync.files.download(file, tmp_path / "a", client=client) == len(PDF)
            sync.files.delete(file, client=client)

    assert log.seen == [
        "upload_file",
        "retrieve_file",
        "list_files",
        "download_file",
        "download_file",
        "delete_file",
    ]


def test_an_upload_can_be_aborted():
    """The signal ends it while the source is being read."""
    controller = AbortController()

    async def endless():
        while True:
            yield bytes(1000)
            await asyncio.sleep(0.001)

    async def work(client):
        asyncio.get_running_loop().call_later(0.05, controller.abort)
        await files.upload("openai", endless(), abort_signal=controller.signal, client=client)

    with simulated() as peer, pytest.raises(AbortError):
        run(peer, work)


def test_a_failed_upload_is_sent_again_from_the_beginning():
    """The client retries; a stream was kept on disk for that."""
    replies = [
        CannedReply(status=503, body=b"{}", headers={"retry-after-ms": "1"}),
        CannedReply(body=b'{"id":"file-1","object":"file","bytes":3}'),
    ]
    canned = CannedTransport(replies)

    async def work():
        async with Client({"openai": HttpAdapter("openai", "k", transport=canned)}) as client:
            return await files.upload("openai", chunks(PDF), client=client)

    assert asyncio.run(work()).id == "file-1"
    bodies = [request.body for request in canned.requests]
    assert PDF in bodies[0]
    assert PDF in bodies[1]
