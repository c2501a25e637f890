"""The page about `Redact` lists exactly what is searched, and what is not."""

import asyncio
import re
from pathlib import Path

import pytest

from interlingua.client.middleware.redact_text import Detectors
from interlingua.middleware import Redact
from interlingua.spec.content import (
    Document,
    Image,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat, ToolDefinition
from interlingua.spec.response import Response
from interlingua.wire.personal_data import FINDERS
from interlingua.wire.secrets import SECRET_KINDS

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "redaction.md"
SECRET = "sk-1234567890abcdef"


def rows(heading):
    """The rows of the table under a heading, as lists of cells."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    lines = section.partition("\n## ")[0].splitlines()
    table = [line.strip("|").split("|") for line in lines if line.startswith("| ")]
    return [[cell.strip() for cell in cells] for cells in table[1:] if "---" not in cells[0]]


def examples(cell):
    return re.findall(r"``? ?(.+?) ?``?(?:,|$)", cell)


def found(text):
    """What is found in a text, and its name."""
    detectors = Detectors(tuple(FINDERS), {}, secrets=True)
    return [(text[start:end], name) for start, end, name in detectors.find(text)]


SECRETS = [(name, example) for name, cell in rows("Secrets") for example in examples(cell)]
PERSONAL = [(name, example) for name, cell in rows("Personal data") for example in examples(cell)]
UNKNOWN = [example for _, cell in rows("What is not found") for example in examples(cell)]


def test_the_page_lists_the_kinds_of_secrets():
    """Each has at least one example."""
    assert [name for name, _ in rows("Secrets")] == list(SECRET_KINDS)
    assert {name for name, _ in SECRETS} == set(SECRET_KINDS)


def test_the_page_lists_the_kinds_of_personal_data():
    """By the names with which `Redact` is asked for them."""
    assert [name.strip("`") for name, _ in rows("Personal data")] == list(FINDERS)
    assert {name.strip("`") for name, _ in PERSONAL} == set(FINDERS)


@pytest.mark.parametrize(("name", "example"), SECRETS)
@pytest.mark.parametrize("frame", ["{}", "It is {} or so.", "以前 {} 以后", '{"a": "{}"}'])
def test_each_example_of_a_secret_is_found(name, example, frame):
    """Wherever it stands; of a password, only its value is removed."""
    (removed,) = found(frame.replace("{}", example))
    expected = re.split(r"[=:] ?\"?", example)[-1].strip('"') if name == "password" else example
    assert removed == (expected, "SECRET")


@pytest.mark.parametrize(("name", "example"), PERSONAL)
def test_each_example_of_personal_data_is_found(name, example):
    """As the kind under which the page lists it."""
    assert found(f"It is {example} or so.") == [(example, name.strip("`").upper())]


@pytest.mark.parametrize("example", UNKNOWN)
def test_what_the_page_says_is_not_found_is_not(example):
    """None of the kinds takes it."""
    assert found(f"It is {example} or so.") == []


def asked(*messages, **fields):
    return Request(model="m", messages=messages or ("Hi.",), **fields)


def part(*parts, role="user"):
    return asked(Message(role=role, content=parts))


def result(content):
    return part(ToolResult(tool_call_id="1", content=content), role="tool")


TOOL = ToolDefinition(name="look", description=SECRET, parameters={"type": "object"})
PLACES = {
    "system prompts": asked(Message.system(SECRET)),
    "texts of messages": asked(SECRET),
    "refusals": part(Refusal(text=SECRET), role="assistant"),
    "thinking": part(Thinking(text=SECRET), role="assistant"),
    "names of authors": asked(Message(role="user", content=("Hi.",), name=SECRET)),
    "texts of documents": part(Document(text=SECRET)),
    "names of files": part(Document(data=b"x", file_name=f"{SECRET}.pdf")),
    "arguments of tool calls": part(
        ToolCall(id="1", name="look", arguments={"at": [SECRET]}), role="assistant"
    ),
    "results of tools": result({"at": SECRET}),
    "texts in the results of tools": result((Text(text=SECRET),)),
    "`user`": asked(user=SECRET),
    "`metadata`": asked(metadata={"at": SECRET}),
    "contents of images, audio and files": part(
        Document(data=SECRET.encode(), media_type="text/plain")
    ),
    "URLs of images, audio and documents": part(Image(url=f"https://example.com/{SECRET}")),
    "ids of files": part(Document(file_id=SECRET)),
    "names and ids of tool calls": part(
        ToolCall(id=SECRET, name="look", arguments={}), role="assistant"
    ),
    "definitions of tools": asked(tools=(TOOL,)),
    "schemas of answers": asked(
        response_format=ResponseFormat(
            type="json_schema", json_schema={"type": "object", "description": SECRET}
        )
    ),
    "stop sequences": asked(stop_sequences=(SECRET,)),
    "`provider_options`": asked(provider_options={"openai": {"at": SECRET}}),
    "opaque blocks": part(Opaque(dialect="d", data={"at": SECRET}), role="assistant"),
    "ids of sessions and requests": asked(session_id=SECRET),
}


def test_the_page_lists_the_places():
    """Each that a request has."""
    assert [place for place, _ in rows("Where it is searched")] == list(PLACES)


@pytest.mark.parametrize(("place", "answer"), rows("Where it is searched"))
def test_a_place_is_searched_if_the_page_says_so(place, answer):
    """The request that is sent has the secret, or a mark."""
    sent = []

    async def note(request):
        sent.append(request)
        return Response()

    asyncio.run(Redact().complete(PLACES[place], note))

    assert answer in ("yes", "no")
    assert (SECRET in repr(sent) or SECRET.encode() in _bytes(sent)) == (answer == "no")


def _bytes(sent):
    parts = [part for request in sent for message in request.messages for part in message.content]
    return b"".join(getattr(part, "data", None) or b"" for part in parts if type(part) is Document)
