"""
The recorded exchanges, where they are at hand: the folder that `INTERLINGUA_CORPUS` names.

It has a file `NAME.jsonl.gz` for each dialect (`FILES`), and more for embeddings, images, videos,
batches, files and models. Each line is an exchange: `id`, `host_provider`, `method`, `path`,
`request_headers`, `request_body` (JSON), `status`, `response_headers`, and the reply as
`response_body` (JSON) or `response_text` with `response_format` (`sse`, `json-array`, `jsonl`,
`text`). One that is marked `suspect` is left out.

The recordings of `interlingua record` have another form; `interlingua check --recordings` reads
them.
"""

import functools
import gzip
import json
import os
from pathlib import Path

from interlingua.conformance.laws import Case
from interlingua.spec.contracts import WireCall

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("INTERLINGUA_CORPUS") or ROOT.parent / "shared" / "corpus")
FIXTURES = ROOT / "tests" / "fixtures"

FILES = {
    "openai_responses": "openai-responses",
    "openai_chat": "openai-chat",
    "anthropic_messages": "anthropic-messages",
    "gemini_generate": "gemini",
}


DIALECT_OF_HOST = {
    "openai": "openai_chat",
    "anthropic": "anthropic_messages",
    "google": "gemini_generate",
}
"""For exchanges about files and batches, which have no dialect of their own."""
KEY_OF_HOST = {
    "openai": {"authorization": "Bearer k"},
    "anthropic": {"x-api-key": "k"},
    "google": {"x-goog-api-key": "k"},
}
"""The header with a key: keys are not recorded."""


def is_here() -> bool:
    return all((FOLDER / f"{name}.jsonl.gz").exists() for name in FILES.values())


@functools.cache
def records(dialect: str) -> tuple[dict, ...]:
    """Every record of a dialect that can be trusted; none of a dialect without recordings."""
    return read(FILES[dialect]) if dialect in FILES else ()


@functools.cache
def read(file: str) -> tuple[dict, ...]:
    """Every record of a file that can be trusted."""
    with gzip.open(FOLDER / f"{file}.jsonl.gz", "rt", encoding="utf-8") as lines:
        loaded = [json.loads(line) for line in lines]
    return tuple(record for record in loaded if not record.get("suspect"))


def body_bytes(record: dict) -> bytes:
    """The body of a recorded reply."""
    text = record["response_text"]
    if text is None:
        text = json.dumps(record["response_body"])
    return text.encode("utf-8", "surrogatepass")


def file_records(name: str) -> tuple[dict, ...]:
    """Every record of a file that can be trusted; none if the file is not there."""
    return read(name) if (FOLDER / f"{name}.jsonl.gz").exists() else ()


@functools.cache
def cases(dialect: str) -> tuple[Case, ...]:
    return tuple(to_case(record) for record in records(dialect))


def to_case(record: dict) -> Case:
    body = record["request_body"]
    call = None
    if body is not None:
        call = WireCall(
            path=record["path"],
            body=body,
            headers=record["request_headers"] or {},
            stream=_asks_for_stream(record),
        )
    answered = record["status"] < 400
    text = record["response_text"] if answered else None
    framing = record.get("response_format")
    return Case(
        name=record["id"],
        call=call,
        response=record["response_body"],
        stream=text.encode("utf-8", "surrogatepass") if framing in ("sse", "json-array") else None,
        framing=framing or "sse",
        status=record["status"],
        headers=record["response_headers"] or {},
    )


def _asks_for_stream(record: dict) -> bool:
    body = record["request_body"]
    if "stream" in body:
        return body["stream"] is True
    return "stream" in record["path"].lower()
