"""Files at xAI: the forms of OpenAI, and lists whose pages have tokens."""

import asyncio
import json
from urllib.parse import parse_qsl, urlsplit

import pytest
from msgspec.structs import replace

from interlingua import Client, files
from interlingua.dialects.openai_shared.files import read_file, write_file
from interlingua.errors import ConfigurationError, NotFoundError, UnsupportedError
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, serve_in_thread
from interlingua.spec.modalities.files import ListFilesInput
from interlingua.transport import CannedReply, CannedTransport
from support.forms import read_form

DIALECTS = ["openai_chat", "openai_responses"]
PDF = b"%PDF-1.7\n" + bytes(5000)

# https://docs.x.ai/developers/rest-api-reference/files/upload
FILE = {
    "id": "file_a128090d",
    "object": "file",
    "bytes": 12345,
    "created_at": 1762345678,
    "expires_at": None,
    "filename": "report.pdf",
    "purpose": "",
    "public_url": "https://files-cdn.x.ai/t/report.pdf",
    "public_url_expires_at": None,
}


def xai(transport=None, **settings):
    return HttpAdapter("xai", "k", transport=transport, **settings)


def page(*ids, **fields):
    rows = [{**FILE, "id": each} for each in ids]
    return CannedReply(body=json.dumps({"data": rows, **fields}).encode())


def listed(replies, dialect="openai_chat", **fields):
    """The files that a client lists, and the queries of its calls."""
    transport = CannedTransport(replies)
    adapter = xai(transport, dialect=dialect)
    found = asyncio.run(adapter.perform("list_files", ListFilesInput(**fields)))
    queries = [dict(parse_qsl(urlsplit(each.url).query)) for each in transport.requests]
    assert {urlsplit(each.url).path for each in transport.requests} == {"/v1/files"}
    return [file.id for file in found], queries


def test_a_file_is_read_and_written_again():
    """The documented object, with its public address; a short one is read as well."""
    file = read_file(FILE)

    assert (file.id, file.size, file.file_name) == ("file_a128090d", 12345, "report.pdf")
    assert (file.state, file.expires_at, file.media_type) == ("ready", None, None)
    assert FILE.items() <= write_file(file).items()
    assert read_file({"id": "file_1", "filename": "b"}).size is None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_upload(dialect):
    """The expiry is a field before the file: xAI refuses it after the file."""
    transport = CannedTransport([CannedReply(body=json.dumps(FILE).encode())])
    client = Client({"xai": xai(transport, dialect=dialect)})
    file = asyncio.run(
        files.upload("xai", PDF, file_name="a.pdf", expires_after=7200, client=client)
    )

    (sent,) = transport.requests
    names = [part[0] for part in read_form(sent.headers["content-type"], sent.body)]
    assert sent.url == "https://api.x.ai/v1/files"
    assert names.index("expires_after[seconds]") < names.index("file") == len(names) - 1
    assert file.reference == "xai:file_a128090d"


def test_a_file_that_is_too_large():
    """It is refused before anything is sent."""
    transport = CannedTransport([])
    client = Client({"xai": xai(transport)})
    with pytest.raises(ConfigurationError, match=r"xai stores at most 48\.0 MB"):
        asyncio.run(files.upload("xai", bytes(49 * 1024 * 1024), client=client))
    assert transport.requests == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_pages_end_with_an_empty_one(dialect):
    """Every page has a token, also the last one that has files."""
    replies = [
        page("a", "b", pagination_token="b"),
        page("c", pagination_token="c"),
        page(pagination_token="d"),
    ]
    ids, queries = listed(replies, dialect)

    assert ids == ["a", "b", "c"]
    assert [each.get("pagination_token") for each in queries] == [None, "b", "c"]
    assert {(each["limit"], each["sort_by"], each["order"]) for each in queries} == {
        ("100", "created_at", "desc")
    }


@pytest.mark.parametrize("token", [None, "", 3])
def test_pages_end_without_a_token(token):
    """As they may do too."""
    ids, queries = listed([page("a", pagination_token=token)])

    assert (ids, len(queries)) == (["a"], 1)


def test_pages_that_repeat_end():
    """A server that ignores the token sends the same page for ever."""
    ids, queries = listed(lambda _: page("a", pagination_token="a"))

    assert (ids, len(queries)) == (["a", "a"], 2)


@pytest.mark.parametrize(("limit", "asked"), [(2, "2"), (500, "100")])
def test_sizes_of_pages(limit, asked):
    """At most as many as xAI sends in one page."""
    _, queries = listed([page()], limit=limit)

    assert queries[0]["limit"] == asked


def test_lists_by_purpose():
    """xAI cannot choose by it: the files say so in a warning, or the list is refused."""
    adapter = xai(CannedTransport(lambda _: page("a")))
    value = ListFilesInput(purpose="batch")
    (file,) = asyncio.run(adapter.perform("list_files", value))
    assert [each.code for each in file.warnings] == ["setting_dropped"]
    with pytest.raises(UnsupportedError, match="purpose"):
        asyncio.run(adapter.perform("list_files", replace(value, on_loss="strict")))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_life_of_a_file(dialect, tmp_path):
    """It is stored, found, listed page by page, downloaded and deleted, over HTTP."""

    async def work(url):
        async with Client({"xai": xai(base_url=f"{url}/v1", dialect=dialect)}) as client:
            made = [await files.upload("xai", PDF, client=client) for _ in range(5)]
            listed = await client.perform("xai", "list_files", ListFilesInput(limit=2))
            again = await files.list("xai", client=client)
            assert [file.id for file in again] == [file.id for file in listed]
            assert (await files.get(made[0].reference, client=client)).raw == made[0].raw
            assert await files.read(made[0], client=client) == PDF
            size = await files.download(made[0], tmp_path / "copy.pdf", client=client)
            deleted = await files.delete(made[0], client=client)
            with pytest.raises(NotFoundError):
                await files.get(made[0], client=client)
        return made, listed, size, deleted

    app = Simulator()
    with serve_in_thread(app) as server:
        made, listed, size, deleted = asyncio.run(work(server.url))

    assert [file.id for file in listed] == [file.id for file in reversed(made)]
    assert (size, deleted.file_id) == (len(PDF), made[0].id)
    lists = [each for each in app.script.received if "sort_by" in each.call.path]
    assert len(lists) == 4 + 2  # three pages and an empty one; one page and an empty one
