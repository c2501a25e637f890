"""Files: the vendors' clients upload them, and refer to them in requests for any model."""

import base64
import io

import openai
import pytest

from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.spec.content import Document
from support.gateways import gateway
from support.simulated import adapters

PDF = b"%PDF-1.7\n" + bytes(range(256)) * 10
LARGE = bytes(9 * 1024 * 1024)  # more than one chunk of Google's client
MODELS = ["openai:gpt-5.2", "anthropic:claude-haiku-4-5", "gemini:gemini-2.5-flash"]


@pytest.fixture(scope="module")
def stage():
    app = Simulator(lambda _request: text("Read."))
    with serve_in_thread(app) as upstream, gateway(adapters(upstream.url)) as front:
        yield app, front


def test_openai(stage):
    """Create, retrieve, list in pages, read, delete; then it is not found."""
    _, front = stage
    client = front.openai()
    expiry = {"anchor": "created_at", "seconds": 7200}
    made = [
        client.files.create(file=("a.pdf", PDF), purpose="user_data", expires_after=expiry)
        for _ in range(3)
    ]
    again = client.files.retrieve(made[0].id)
    listed = [file.id for file in client.files.list(limit=2)]

    assert again == made[0]
    assert again.expires_at - again.created_at == 7200
    assert listed[:3] == [file.id for file in reversed(made)]
    assert client.files.content(made[0].id).read() == PDF
    assert client.files.delete(made[0].id).deleted
    with pytest.raises(openai.NotFoundError) as missing:
        client.files.retrieve(made[0].id)
    assert missing.value.code is None  # it is no model that does not exist


def test_anthropic(stage):
    """Upload, retrieve, download, list, delete."""
    _, front = stage
    files = front.anthropic().beta.files
    made = files.upload(file=("a.pdf", io.BytesIO(PDF), "application/pdf"))

    assert files.retrieve_metadata(made.id).size_bytes == len(PDF)
    assert files.download(made.id).read() == PDF
    assert made.id in [file.id for file in files.list()]
    assert files.delete(made.id).id == made.id


@pytest.mark.parametrize("data", [PDF, LARGE, b""])
def test_gemini(stage, data):
    """An upload in one piece and in several."""
    _, front = stage
    client = front.gemini()
    made = client.files.upload(file=io.BytesIO(data), config={"mime_type": "application/pdf"})

    assert client.files.get(name=made.name).size_bytes == len(data)
    assert made.name in [file.name for file in client.files.list()]
    client.files.delete(name=made.name)
    with pytest.raises(Exception, match="404"):
        client.files.get(name=made.name)


def sent_document(app):
    """The document of the last request that the provider got."""
    request = app.script.received[-1].request
    (part,) = [
        part
        for message in request.messages
        for part in message.content
        if isinstance(part, Document)
    ]
    return part


@pytest.mark.parametrize("model", MODELS)
def test_a_file_in_a_request(stage, model):
    """Its bytes are sent, so that every provider can read it."""
    app, front = stage
    client = front.openai()
    file = client.files.create(file=("a.pdf", PDF, "application/pdf"), purpose="user_data")
    content = [{"type": "input_file", "file_id": file.id}, {"type": "input_text", "text": "Read."}]
    client.responses.create(model=model, input=[{"role": "user", "content": content}])

    assert sent_document(app).data in (PDF, base64.b64encode(PDF).decode())


def test_a_file_in_a_request_of_gemini(stage):
    """It is named by its address there."""
    app, front = stage
    client = front.gemini()
    file = client.files.upload(file=io.BytesIO(PDF), config={"mime_type": "application/pdf"})
    client.models.generate_content(model=MODELS[1], contents=["Read.", file])

    assert sent_document(app).data in (PDF, base64.b64encode(PDF).decode())


def test_an_upload_that_does_not_exist(stage):
    """The client's own 404; a wrong offset is its 400."""
    _, front = stage
    headers = {
        "x-goog-api-key": front.key,
        "x-goog-upload-command": "upload",
        "x-goog-upload-offset": "0",
    }
    client = front.openai()
    with pytest.raises(openai.NotFoundError, match="No such upload"):
        client.post(
            f"{front.url}/upload/v1beta/files?upload_id=none",
            cast_to=object,
            content=b"x",
            options={"headers": headers},
        )
