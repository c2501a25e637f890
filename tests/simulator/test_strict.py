"""Bodies that the vendors refuse, and those that they accept."""

import pytest
from msgspec.structs import replace

from interlingua import dialects
from interlingua.errors import InvalidRequestError
from interlingua.serving.application import Incoming, RefusedError, find_route
from interlingua.simulator import Simulator, text
from interlingua.simulator.app import check_body
from interlingua.wire.ratelimit_headers import lower_names
from support import corpus
from support.exceptions import REPAIRED
from support.simulator_calls import ask, call, hello, read

DIALECTS = dialects.names()
CLAUDE = {"anthropic-version": "2023-06-01"}
USER = {"role": "user", "content": "hi"}


def chat(*messages, **more):
    return "/v1/chat/completions", {"model": "m", "messages": [USER, *messages], **more}


def responses(*items, **more):
    return "/v1/responses", {"model": "m", "input": [USER, *items], **more}


def claude(*messages, **more):
    return "/v1/messages", {"model": "m", "max_tokens": 9, "messages": [USER, *messages], **more}


def gemini(**more):
    contents = [{"role": "user", "parts": [{"text": "hi"}]}]
    return "/v1beta/models/g:generateContent", {"contents": contents, **more}


def without(name, request):
    path, body = request
    return path, {field: body[field] for field in body if field != name}


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ITEM = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
USE = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
BLANK = {"role": "user", "content": [{"type": "text", "text": " "}]}
INVALID = {
    "chat, no model": without("model", chat()),
    "chat, no result": chat({"role": "assistant", "tool_calls": [CALL]}, USER),
    "chat, no call": chat({"role": "tool", "tool_call_id": "x", "content": "y"}),
    "chat, temperature": chat(temperature=3),
    "chat, unknown field": chat(temprature=1),
    "responses, no result": responses(ITEM, USER),
    "messages, no limit": without("max_tokens", claude()),
    "messages, no result": claude({"role": "assistant", "content": [USE]}, USER),
    "messages, blank text": claude(BLANK),
    "messages, temperature": claude(temperature=1.5),
    "gemini, no contents": without("contents", gemini()),
    "gemini, stop sequences": gemini(generationConfig={"stopSequences": list("abcdef")}),
}


@pytest.mark.parametrize(("path", "body"), INVALID.values(), ids=INVALID)
def test_invalid_bodies_are_refused_if_told(path, body):
    """With `strict` a 400 in the vendor's form; without, an answer as before."""
    strict, lenient = Simulator(text("in"), strict=True), Simulator(text("in"))
    reply = call(strict, path, body, CLAUDE)
    dialect = strict.script.received[0].dialect
    error = dialects.get(dialect).decode_error(reply.status, reply.headers, reply.body)

    assert (reply.status, type(error)) == (400, InvalidRequestError)
    assert call(lenient, path, body, CLAUDE).status == 200


def test_an_unknown_field_is_named():
    """In the vendors' words, not in those of our options."""
    reply = call(Simulator(text("in"), strict=True), *chat(temprature=1))

    assert reply.json["error"]["message"] == "temprature: Unknown parameter"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_valid_bodies_pass(dialect, stream):
    """What our own client encodes is accepted."""
    reply = ask(Simulator(text("in"), strict=True), dialect, hello(), stream=stream)

    assert read(dialect, reply, stream=stream).text == "in"


@pytest.mark.skipif(not corpus.is_here(), reason="the recordings are not at hand")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_recorded_requests_are_accepted(dialect):
    """A strict simulator refuses none of the requests that the vendors answered."""
    refused = {}
    for record in corpus.records(dialect):
        recorded = corpus.to_case(record).call
        if recorded is None or record["status"] >= 400:
            continue
        recorded = replace(recorded, headers={**CLAUDE, **lower_names(recorded.headers)})
        route = find_route("POST", recorded.path.partition("?")[0], {})
        if route.kind != "answer" or route.dialect != dialect:
            continue
        request = dialects.get(dialect).decode_request(recorded)
        incoming = Incoming(recorded, route, query={}, key=None)
        try:
            check_body(incoming, request)
        except RefusedError as error:
            refused[record["id"]] = error.failure.message

    assert refused.keys() <= REPAIRED.keys(), "\n".join(f"{k} {v}" for k, v in refused.items())
