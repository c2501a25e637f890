"""Marks, the keys with `~` in `extra`, are the library's own: no encoder writes one."""

import json
import re

import pytest
from hypothesis import given

from interlingua import dialects
from interlingua.conformance import strategies
from interlingua.conformance.laws import cut_frames, decode_frames, encode_events, fold
from interlingua.spec.errors import InvalidRequestError, ProviderError, StreamError
from interlingua.spec.json_form import to_document
from interlingua.streams.accumulate import events_from_response
from support import corpus

NAMES = dialects.names()
_is_mark = re.compile("~[a-z_]{4,}").fullmatch


def marks(value):
    """The marks in a JSON value; a caller's own keys may start with `~` too."""
    found, stack = [], [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            found += [key for key in item if _is_mark(key)]
            stack += item.values()
        elif isinstance(item, (list, tuple)):
            stack += item
    return found


def written(dialect, *, request=None, response=None, events=()):
    """Everything that a dialect's encoders write for these."""
    if request is not None:
        yield dialect.encode_request(request, stream=False).body
    if response is not None:
        yield dialect.encode_response(response)
        events = events or events_from_response(response)
    for frame in encode_events(dialect, events) if events else ():
        if "~" in frame.data:
            yield json.loads(frame.data)


def read(dialect, case):
    """What was said in a record: the request, the response and the events of its stream."""
    said = {}
    if case.call is not None:
        said["request"] = dialect.decode_request(case.call)
    if case.stream is not None:
        said["events"] = decode_frames(dialect, cut_frames([case.stream], case.framing))
        said["response"] = fold(said["events"])
    elif case.response is not None and case.status < 400:
        said["response"] = dialect.decode_response(case.response)
    return said


@pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")
@pytest.mark.parametrize("source", NAMES)
def test_no_mark_of_a_recording_is_sent(source):
    """What was recorded in one dialect is written in each without any mark."""
    sent = {}
    for case in corpus.cases(source):
        try:
            said = read(dialects.get(source), case)
        except (InvalidRequestError, ProviderError, StreamError):
            continue
        for name in NAMES:
            found = [key for body in written(dialects.get(name), **said) for key in marks(body)]
            if found:
                sent[case.name, name] = found
    assert sent == {}


@given(strategies.requests(), strategies.responses())
@pytest.mark.parametrize("name", NAMES)
def test_no_mark_of_a_conversation_is_sent(name, request_, response):
    """Any request and response, decoded from each dialect, has no mark when it is sent again."""
    target = dialects.get(name)
    own = {*marks(to_document(request_)), *marks(to_document(response))}  # keys in values
    for source in map(dialects.get, NAMES):
        request = source.decode_request(source.encode_request(request_, stream=False))
        answer = source.decode_response(source.encode_response(response))
        bodies = written(target, request=request, response=answer)
        assert {key for body in bodies for key in marks(body)} <= own


def test_no_mark_of_another_choice_is_sent():
    """A whole Chat answer with several choices is streamed without marks too."""
    function = {"name": "look", "arguments": "{}"}
    calls = [{"index": 0, "id": "call_1", "type": "function", "function": function}]
    message = {"role": "assistant", "content": None, "tool_calls": [*calls, {"type": "later"}]}
    choices = [{"message": message, "finish_reason": "tool_calls", "index": i} for i in range(2)]
    dialect = dialects.get("openai_chat")
    response = dialect.decode_response({"choices": choices})

    frames = encode_events(dialect, events_from_response(response))

    assert [key for frame in frames[:-1] for key in marks(json.loads(frame.data))] == []
    assert len(fold(decode_frames(dialect, frames)).message.content) == 2
