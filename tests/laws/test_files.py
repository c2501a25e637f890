"""Every recorded exchange about files decodes, and encodes to the same meaning, on both sides."""

import json
import re
from urllib.parse import parse_qsl

import pytest

from interlingua import dialects
from interlingua.serving.application import find_route
from interlingua.spec.contracts import NEUTRAL_PROFILE, FormPart, WireCall
from interlingua.spec.modalities.files import (
    DeletedFile,
    FileInput,
    ListFilesInput,
    StoredFile,
    UploadInput,
)
from interlingua.spec.operations import OperationReply
from support.corpus import DIALECT_OF_HOST, KEY_OF_HOST, file_records

pytestmark = pytest.mark.skipif(not file_records("files"), reason="no corpus")


RECORDS = file_records("files")
REPLIES = [each for each in RECORDS if each["status"] == 200 and each["response_body"] is not None]
UPLOADS = [each for each in RECORDS if "_multipart" in (each["request_body"] or {})]


def name_of(record):
    return record["id"]


def operation_of(record):
    path = record["path"].partition("?")[0]
    if record["method"] == "POST":
        return "upload_file"
    if record["method"] == "DELETE":
        return "delete_file"
    if path.endswith(("/content", ":download")):
        return "download_file"
    return "list_files" if path.endswith("/files") else "retrieve_file"


def module_of(record):
    """The client side and the server side of the record's dialect."""
    return dialects.get(DIALECT_OF_HOST[record["host_provider"]])


def decode(record):
    """The result, as our client reads the recorded reply; of a script, only the last reply."""
    operation = module_of(record).OPERATIONS[operation_of(record)]
    reply = OperationReply(200, {}, json.dumps(record["response_body"]).encode())
    if operation.script is None:
        return operation.decode(*reply)
    value = UploadInput() if operation.name == "upload_file" else FileInput(file_id=id_of(record))
    script = operation.script(value, NEUTRAL_PROFILE)
    next(script)
    try:
        if operation.name == "upload_file":
            started = OperationReply(200, {"x-goog-upload-url": "https://h/u"}, b"")
            script.send(started)
        script.send(reply)
    except StopIteration as end:
        return end.value
    raise AssertionError("the script asks for more")


def id_of(record):
    match = re.search(r"/files/([^/?:]+)", record["path"])
    return match[1] if match else ""


def served(record):
    """The endpoint of our server for the request of the record."""
    headers = record["request_headers"] or {}
    headers |= KEY_OF_HOST[record["host_provider"]]  # keys are not recorded
    route = find_route(record["method"], record["path"].partition("?")[0], headers)
    assert route.dialect == DIALECT_OF_HOST[record["host_provider"]]
    return route


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def test_the_corpus_is_whole():
    """No record is left out: each has an operation, and all three hosts are there."""
    assert len(RECORDS) == 83
    assert {each["host_provider"] for each in RECORDS} == set(DIALECT_OF_HOST)
    assert not any(each.get("suspect") for each in RECORDS)


@pytest.mark.parametrize("record", RECORDS, ids=name_of)
def test_requests_find_their_endpoint(record):
    """Our server knows the path of every recorded request, as the operation that it is."""
    expected = operation_of(record)
    expected = "upload_chunk" if "/upload/" in record["path"] else expected

    assert served(record).operation.name == expected


@pytest.mark.parametrize("record", REPLIES, ids=name_of)
def test_replies_survive_a_round_trip(record):
    """What our client reads from a reply, our server writes again, field by field."""
    result, route = decode(record), served(record)
    value = ListFilesInput() if isinstance(result, list) else FileInput(file_id=id_of(record))

    written = route.operation.encode(result, value).body

    original = without_nulls(record["response_body"])
    written = without_nulls(written)
    if isinstance(result, list):  # the fields around the list are about pages
        rows = "files" if "files" in original else "data"
        assert written[rows] == original[rows]
    elif isinstance(result, StoredFile):
        assert written == original
    else:
        assert isinstance(result, DeletedFile)
        assert written == original


@pytest.mark.parametrize("record", REPLIES, ids=name_of)
def test_what_is_read(record):
    """Every file has an id, a size and a time, and is ready."""
    result = decode(record)

    for file in result if isinstance(result, list) else [result]:
        if isinstance(file, StoredFile):
            assert file.id
            assert file.size is not None
            assert file.created_at is None or file.created_at >= 0
            assert file.state in {"ready", "processing"}
            assert file.provider == ""  # the adapter adds it
        else:
            assert file.file_id


def content_of(part):
    """The content; of a binary file, the corpus has only the size."""
    if "filename" not in part:
        return part["value"]
    return part["value"].encode() if "value" in part else bytes(part["size"])


@pytest.mark.parametrize("record", UPLOADS, ids=name_of)
def test_uploads_survive_a_round_trip(record):
    """What our server reads from a recorded form, our client writes again as the same form."""
    parts = record["request_body"]["_multipart"]
    form = tuple(
        FormPart(
            name=part["name"],
            content=content_of(part),
            file_name=part.get("filename"),
            media_type=part.get("content_type"),
        )
        for part in parts
    )
    route = served(record)
    value = route.operation.decode(WireCall(path="/v1/files", form=form), {})

    operation = module_of(record).OPERATIONS["upload_file"]
    call = operation.encode(value, NEUTRAL_PROFILE)

    assert call.path in {"/v1/files", "/files"}  # in Chat, the base URL has the version
    assert sorted(call.form, key=lambda part: part.name) == sorted(form, key=lambda part: part.name)


@pytest.mark.parametrize("record", RECORDS, ids=name_of)
def test_requests_are_written_as_recorded(record):
    """For the value that our server reads from it, our client makes the recorded request."""
    name = operation_of(record)
    if name == "upload_file":
        return  # see above; of Gemini's upload only the second request was recorded
    path, _, query = record["path"].partition("?")
    route = served(record)
    call = WireCall(method=record["method"], path=path, query=dict(parse_qsl(query)))
    value = route.operation.decode(call, route.params)
    if isinstance(value, ListFilesInput):
        value = ListFilesInput(purpose=value.purpose)  # the limit is the server's default

    operation = module_of(record).OPERATIONS[name]
    if operation.script is None:
        made = operation.encode(value, NEUTRAL_PROFILE)
    else:
        made = next(operation.script(value, NEUTRAL_PROFILE))

    recorded = dict(parse_qsl(query))
    recorded.pop("beta", None)
    path = path.removeprefix("/download")  # where Gemini redirects to
    if module_of(record).NAME == "openai_chat":
        path = path.removeprefix("/v1")  # in Chat, the base URL has the version
    assert (made.method, made.path) == (record["method"], path)
    assert dict(made.query) == recorded
