"""
Messages of the vendors' SDKs are read as the dialects read them.

Made-up answers are written by our encoders, and read by the vendors' own types. What a program then
holds (objects, lists of objects, dumped dicts) is given to us as messages.
"""

import copy
import typing
from typing import Annotated, Literal, Union

import pytest
from anthropic import types as anthropic
from anthropic.types.beta import BetaContentBlockParam
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from openai.types import chat
from openai.types import responses as openai
from pydantic import TypeAdapter

from interlingua import dialects
from interlingua.api.run.messages import read_messages
from interlingua.conformance.strategies import conversations, responses
from interlingua.spec.content import Text, ToolResult
from interlingua.spec.contracts import WireCall
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from support import corpus

USER = {"role": "user", "content": "Hi"}
ITEMS = TypeAdapter(list[openai.ResponseOutputItem])
FORMS = ("objects", "dumped", "dumped without None", "in a dict")


def decoded(name, field, items):
    """What the dialect makes of the body of a request."""
    call = WireCall(path="", body={"model": "m", field: items})
    return dialects.get(name).decode_request(call).messages


def dumped(value):
    return value.model_dump(mode="json", exclude_none=True, by_alias=True, warnings=False)


def results_of(response, kind):
    return [kind(call) for call in response.message.tool_calls]


def bare(messages):
    """Without what only one dialect reads: `extra`, ids, metadata, empty texts."""
    return [
        replace(
            message,
            id=None,
            metadata={},
            extra={},
            content=tuple(_bare(part) for part in message.content if part != Text("")),
        )
        for message in messages
    ]


def _bare(part):
    if isinstance(part, ToolResult):
        parts = part.parts
        content = part.content if parts is None else tuple(map(_bare, parts))
        if parts is not None and all(isinstance(each, Text) for each in parts):
            content = "".join(each.text for each in parts)
        return replace(part, extra={}, content=content)
    return replace(part, extra={})


@settings(deadline=None)
@given(responses(), st.sampled_from(FORMS))
def test_answers_of_anthropics_sdk(response, form):
    """A `Message`, its dump, and `{"role": …, "content": message.content}` are the same message."""
    name = "anthropic_messages"
    wire = dialects.get(name).encode_response(replace(response, model="claude-haiku-4-5"))
    answer = anthropic.Message.model_validate(wire)
    given = {
        "objects": answer,
        "dumped": answer.model_dump(),
        "dumped without None": dumped(answer),
        "in a dict": {"role": answer.role, "content": answer.content},
    }[form]
    results = results_of(
        response, lambda call: {"type": "tool_result", "tool_use_id": call.id, "content": "ok"}
    )
    last = {"role": "user", "content": [*results, {"type": "text", "text": "Go on."}]}
    read = read_messages([USER, given, last])

    content = [dumped(block) for block in answer.content]
    expected = decoded(name, "messages", [USER, {"role": "assistant", "content": content}, last])
    assert [replace(each, id=None, metadata={}) for each in read] == list(expected)
    if form != "in a dict" and response.message.content:
        assert (read[1].id, read[1].metadata) == (answer.id, {"model": "claude-haiku-4-5"})


@settings(deadline=None)
@given(responses(), st.sampled_from(FORMS[:3]))
def test_output_of_openais_responses(response, form):
    """Items of the output beside dicts for the input: one turn of the model is one message."""
    name = "openai_responses"
    wire = dialects.get(name).encode_response(response)
    output = ITEMS.validate_python(wire["output"])
    items = {
        "objects": output,
        "dumped": [item.model_dump() for item in output],
        "dumped without None": [dumped(item) for item in output],
    }[form]
    results = results_of(
        response,
        lambda call: {"type": "function_call_output", "call_id": call.id, "output": "ok"},
    )
    last = {"role": "user", "content": [{"type": "input_text", "text": "Go on."}]}
    read = read_messages([USER, *items, *results, last])

    plain = [USER, *map(dumped, output), *results, last]
    assert read == decoded(name, "input", plain)
    assert sum(message.role == "assistant" for message in read) == bool(output)


@settings(deadline=None)
@given(responses(), st.sampled_from(FORMS))
def test_answers_of_openais_chat(response, form):
    """`spec` reads a `ChatCompletionMessage` and its tool calls as the dialect does."""
    name = "openai_chat"
    wire = dialects.get(name).encode_response(response)
    message = chat.ChatCompletion.model_validate(wire).choices[0].message
    given = {
        "objects": message,
        "dumped": message.model_dump(),
        "dumped without None": dumped(message),
        "in a dict": {
            **dumped(message),
            **({"tool_calls": message.tool_calls} if message.tool_calls else {}),
        },
    }[form]
    results = results_of(
        response, lambda call: {"role": "tool", "tool_call_id": call.id, "content": "ok"}
    )
    read = read_messages([USER, given, *results])
    assert bare(read) == bare(decoded(name, "messages", [USER, dumped(message), *results]))


FIELDS = {"anthropic_messages": "messages", "openai_chat": "messages", "openai_responses": "input"}


@pytest.mark.parametrize("name", FIELDS)
@settings(deadline=None)
@given(conversations())
def test_dicts_of_requests(name, conversation):
    """What an SDK's user writes for a request, without the system prompt, means the same here."""
    request = Request(model="m", messages=[each for each in conversation if each.role != "system"])
    if not request.messages:
        return
    call = dialects.get(name).encode_request(replace(request, on_loss="warn"), stream=False)
    items = call.body[FIELDS[name]]
    if isinstance(items, str):
        return
    before = copy.deepcopy(items)
    read = read_messages(items)
    assert bare(read) == bare(decoded(name, FIELDS[name], items))
    assert items == before


@pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")
@pytest.mark.parametrize("name", ["anthropic_messages", "openai_responses"])
def test_recorded_messages_are_read_as_the_dialect_reads_them(name):
    """All that providers have accepted; a system message among them is ours, not the dialect's."""
    count = 0
    for case in corpus.cases(name):
        body = None if case.call is None else case.call.body
        items = body.get(FIELDS[name]) if isinstance(body, dict) else None
        if case.status >= 400 or not isinstance(items, list) or not items:
            continue
        if any(not isinstance(item, dict) or item.get("role") in OTHERS for item in items):
            continue
        if not any(map(dialects.get(name).is_sdk_message, items)):
            continue  # it has the form of Chat Completions
        expected = decoded(name, FIELDS[name], [present(item) for item in items])
        assert bare(read_messages(items)) == bare(expected), case.name
        count += 1
    assert count > 50


OTHERS = ("system", "developer")


def present(item, *, inside=True):
    """Without fields that are None, also in its parts."""
    return {
        key: [present(each, inside=False) if isinstance(each, dict) else each for each in value]
        if inside and isinstance(value, list)
        else value
        for key, value in item.items()
        if value is not None
    }


def members(union):
    """The classes of a union of types, and their names in JSON."""
    for each in typing.get_args(union):
        if typing.get_origin(each) in (Union, Annotated):
            yield from members(each)
        elif isinstance(each, type):
            is_model = hasattr(each, "model_fields")
            hints = {} if is_model else typing.get_type_hints(each)
            kind = each.model_fields["type"].annotation if is_model else hints.get("type")
            while typing.get_origin(kind) is not Literal and typing.get_args(kind):
                kind = typing.get_args(kind)[0]
            yield from typing.get_args(kind)


SHARED = {"text", "message"}


@pytest.mark.parametrize("kind", sorted({*members(BetaContentBlockParam)} - SHARED))
def test_every_block_of_anthropics_sdk_is_known(kind):
    """A message with one is read by the dialect."""
    item = {"role": "user", "content": [{"type": kind}]}
    readers = [name for name in FIELDS if dialects.get(name).is_sdk_message(item)]
    assert readers == ["anthropic_messages"]


@pytest.mark.parametrize("kind", sorted({*members(openai.ResponseInputItemParam)} - SHARED))
def test_every_item_of_openais_sdk_is_known(kind):
    """An item is read by the dialect."""
    readers = [name for name in FIELDS if dialects.get(name).is_sdk_message({"type": kind})]
    assert readers == ["openai_responses"]


def test_a_conversation_may_change_its_form():
    """Messages of ours, texts, and the forms of three APIs stand side by side."""
    read = read_messages(
        [
            {"role": "system", "content": "Be brief."},
            Message.user("Hi"),
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "Hm", "signature": "s"}],
            },
            {"role": "user", "content": "Go on."},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "rain"},
            chat.ChatCompletionMessage(role="assistant", content="Rain."),
            {"role": "tool", "tool_call_id": "c2", "content": "snow"},
            "And now?",
        ]
    )
    assert [message.role for message in read] == [
        *("system", "user", "assistant", "user", "assistant", "tool", "assistant", "tool", "user"),
    ]
    assert read[2].reasoning == "Hm"
    assert read[4].tool_calls[0].name == "look"
    assert read[6].text == "Rain."
