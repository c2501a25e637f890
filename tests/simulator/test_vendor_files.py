"""The vendors' own clients store files in the simulator, over HTTP on loopback."""

import io

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors as genai_errors
from google.genai import types as genai_types

from interlingua.simulator import Simulator, serve_in_thread
from support.simulated import generated, stored

PDF = b"%PDF-1.7\n" + bytes(range(256)) * 100
LARGE = bytes(9 * 1024 * 1024)  # more than one chunk of Google's client


@pytest.fixture
def app():
    return Simulator()


@pytest.fixture
def url(app):
    with serve_in_thread(app) as server:
        yield server.url


@pytest.fixture
def gemini(url, closed):
    options = genai_types.HttpOptions(base_url=url)
    return closed(genai.Client(api_key="k", http_options=options))


def test_openai(url, closed):
    """Create, retrieve, list in pages, read, delete; then it is not found."""
    client = closed(openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0))
    expiry = {"anchor": "created_at", "seconds": 7200}

    made = [
        client.files.create(file=("a.pdf", PDF), purpose="user_data", expires_after=expiry)
        for _ in range(3)
    ]
    again = client.files.retrieve(made[0].id)
    listed = list(client.files.list(limit=2))
    content = client.files.content(made[0].id).read()
    deleted = client.files.delete(made[0].id)

    assert again == made[0]
    assert again.expires_at - again.created_at == 7200
    assert [file.id for file in listed] == [file.id for file in reversed(made)]
    assert content == PDF
    assert deleted.deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(made[0].id)


def test_openai_reads_a_list_of_xai(url, closed):
    """xAI's guide uses OpenAI's client: the rows have its fields, and the page has a token."""
    client = closed(openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0))
    made = client.files.create(file=("a.pdf", PDF), purpose="assistants")
    page = client.files.list(limit=1, extra_query={"sort_by": "created_at"})

    assert [(each.id, each.filename, each.bytes) for each in page.data] == [
        (made.id, "a.pdf", len(PDF))
    ]
    assert page.pagination_token == made.id


@pytest.mark.parametrize("is_beta", [False, True])
def test_anthropic(app, url, is_beta, closed):
    """Both the API and its beta."""
    client = closed(anthropic.Anthropic(api_key="k", base_url=url, max_retries=0))
    files = client.beta.files if is_beta else client.files

    made = [
        files.upload(file=("a.pdf", io.BytesIO(PDF), "application/pdf"), expires_in_seconds=3600)
        for _ in range(3)
    ]
    again = files.retrieve_metadata(made[0].id)
    listed = list(files.list(limit=2))
    content = files.download(generated(app, PDF)).read()
    with pytest.raises(anthropic.BadRequestError):
        files.download(made[0].id)
    deleted = files.delete(made[0].id)

    assert again == made[0]
    assert (again.size_bytes, again.mime_type) == (len(PDF), "application/pdf")
    assert (again.expires_at - again.created_at).total_seconds() == 3600
    assert [file.id for file in listed] == [file.id for file in reversed(made)]
    assert content == PDF
    assert deleted.type == "file_deleted"
    with pytest.raises(anthropic.NotFoundError):
        files.retrieve_metadata(made[0].id)


def test_gemini(app, gemini):
    """Upload in pieces, get, list in pages, delete; what was uploaded is not downloaded."""
    config = {"display_name": "talk", "mime_type": "video/mp4"}

    file = gemini.files.upload(file=io.BytesIO(LARGE), config=config)
    others = [
        gemini.files.upload(file=io.BytesIO(PDF), config={"mime_type": "application/pdf"})
        for _ in range(2)
    ]
    states = [gemini.files.get(name=file.name).state for _ in range(2)]
    listed = list(gemini.files.list(config={"page_size": 2}))
    content = stored(app, file.name)
    with pytest.raises(genai_errors.ClientError, match="400"):
        gemini.files.download(file=file.name)
    gemini.files.delete(name=file.name)

    assert file.state == genai_types.FileState.PROCESSING
    assert states == [genai_types.FileState.PROCESSING, genai_types.FileState.ACTIVE]
    assert (file.size_bytes, file.display_name) == (len(LARGE), "talk")
    assert (file.expiration_time - file.create_time).total_seconds() == 48 * 3600
    assert [each.name for each in listed] == [each.name for each in (*reversed(others), file)]
    assert content == LARGE
    assert gemini.files.download(file=f"files/{generated(app, PDF)}") == PDF
    with pytest.raises(genai_errors.ClientError, match="404"):
        gemini.files.get(name=file.name)


def test_a_file_of_json_stays_bytes(app, gemini):
    """An upload that looks like JSON is stored as it is."""
    file = gemini.files.upload(
        file=io.BytesIO(b'{"key": "1"}'), config={"mime_type": "application/jsonl"}
    )

    assert stored(app, file.name) == b'{"key": "1"}'
