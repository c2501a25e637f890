"""Files: our operations against the simulator, over HTTP."""

import os

import pytest
from msgspec.structs import replace

from interlingua import Message
from interlingua.errors import InvalidRequestError, NotFoundError
from interlingua.simulator import text
from interlingua.spec.modalities.files import FileInput, ListFilesInput, UploadInput
from interlingua.transport import FileBody
from support.simulated import generated, run, simulated

PROVIDERS = ("openai", "openai_compatible", "anthropic", "gemini")
PDF = b"%PDF-1.7 \r\n--not a boundary\r\n"


def upload(content=PDF, **fields):
    given = {"file_name": "a.pdf", "media_type": "application/pdf", **fields}
    return UploadInput(content=content, **given)


async def downloaded(client, provider, file_id):
    chunks = await client.perform(provider, "download_file", FileInput(file_id=file_id))
    return b"".join([chunk async for chunk in chunks])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_life_of_a_file(provider, tmp_path):
    """It is uploaded from a file, described, listed and deleted."""
    data = os.urandom(700_000)
    path = tmp_path / "file.bin"
    path.write_bytes(data)

    async def work(client):
        file = await client.perform(provider, "upload_file", upload(FileBody(path)))
        one = FileInput(file_id=file.id)
        again = await client.perform(provider, "retrieve_file", one)
        listed = await client.perform(provider, "list_files", ListFilesInput())
        content = peer.stored(file.id)
        deleted = await client.perform(provider, "delete_file", one)
        with pytest.raises(NotFoundError):
            await client.perform(provider, "retrieve_file", one)
        return file, again, listed, content, deleted

    with simulated() as peer:
        file, again, listed, content, deleted = run(peer, work)

    assert (file.size, file.file_name, file.provider) == (700_000, "a.pdf", provider)
    assert file.id == again.id == listed[0].id == deleted.file_id
    assert content == data


@pytest.mark.parametrize("provider", PROVIDERS)
def test_downloads(provider):
    """Every provider sends a file that it has made; some refuse one that was uploaded."""
    data = os.urandom(300_000)

    async def work(client):
        made = await downloaded(client, provider, generated(peer.app, data))
        file = await client.perform(provider, "upload_file", upload())
        if provider in {"anthropic", "gemini"}:
            with pytest.raises(InvalidRequestError, match="only generated files"):
                await downloaded(client, provider, file.id)
        else:
            assert await downloaded(client, provider, file.id) == PDF
        return made

    with simulated() as peer:
        assert run(peer, work) == data


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_a_message_refers_to_a_file_that_exists(provider):
    """A request with the id of an unknown file, or of a deleted one, is refused."""

    async def work(client):
        file = await client.perform(provider, "upload_file", upload())
        message = Message.user([file.part(), "Summarise."])
        response = await client.complete(peer.ask(provider, [message]))
        await client.perform(provider, "delete_file", FileInput(file_id=file.id))
        with pytest.raises(NotFoundError, match="No such File"):
            await client.complete(peer.ask(provider, [message]))
        unknown = replace(file.part(), file_id=f"{file.part().file_id}x")
        with pytest.raises(NotFoundError, match="No such File"):
            await client.complete(peer.ask(provider, [Message.user([unknown])]))
        return response

    with simulated(text("Fine.")) as peer:
        assert run(peer, work).text == "Fine."
