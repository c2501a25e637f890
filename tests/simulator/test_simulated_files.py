"""Files: our operations against the simulator, over HTTP."""

import os

import pytest

from interlingua.errors import NotFoundError
from interlingua.spec.media.files import FileInput, ListFilesInput, UploadInput
from interlingua.transport import FileBody
from support.simulated import run, simulated

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
    """It is uploaded from a file, described, listed, downloaded and deleted."""
    data = os.urandom(700_000)
    path = tmp_path / "file.bin"
    path.write_bytes(data)

    async def work(client):
        file = await client.perform(provider, "upload_file", upload(FileBody(path)))
        one = FileInput(file_id=file.id)
        again = await client.perform(provider, "retrieve_file", one)
        listed = await client.perform(provider, "list_files", ListFilesInput())
        content = await downloaded(client, provider, file.id)
        deleted = await client.perform(provider, "delete_file", one)
        with pytest.raises(NotFoundError):
            await client.perform(provider, "retrieve_file", one)
        return file, again, listed, content, deleted

    with simulated() as peer:
        file, again, listed, content, deleted = run(peer, work)

    assert (file.size, file.file_name, file.provider) == (700_000, "a.pdf", provider)
    assert file.id == again.id == listed[0].id == deleted.file_id
    assert content == data
