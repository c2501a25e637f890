"""The key of a cached answer: everything that can change the answer, and nothing else."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlingua import HttpAdapter
from interlingua.client.middleware.cache_key import (
    IGNORED,
    IGNORED_OF_MESSAGES,
    READ_BY_RULES,
    key_of,
)
from interlingua.conformance.strategies import requests
from interlingua.spec.content import Image, Text, ToolCall, ToolResult
from interlingua.spec.messages import Message
from interlingua.spec.request import (
    BuiltinTool,
    Request,
    ResponseFormat,
    ToolChoice,
    ToolDefinition,
)

ADAPTER = HttpAdapter("openai", "key")

# Values of each field that can change an answer; the first is the one of a request without it.
VARIANTS = {
    "model": ["", "gpt-5.2", "gpt-5.2-mini"],
    "messages": [
        (),
        "Hi.",
        "Hi",
        [Message.system("Hi.")],
        [Message.user("Hi."), Message.assistant("Hi."), Message.user("Hi.")],
        [Message.user([Text(text="Hi.", extra={"openai_chat": {"a": 1}})])],
        [Message.user([Image(data=b"a", media_type="image/png")])],
        [Message.user([Image(data=b"b", media_type="image/png")])],
        [Message.user("Hi.", name="Ada")],
    ],
    "provider": [None, "openai", "anthropic"],
    "tools": [
        (),
        (ToolDefinition(name="a"),),
        (ToolDefinition(name="a", description="A."),),
        (ToolDefinition(name="a", parameters={"type": "object"}),),
        (ToolDefinition(name="a"), ToolDefinition(name="b")),
        (ToolDefinition(name="b"), ToolDefinition(name="a")),
        (BuiltinTool(dialect="openai_chat", data={"type": "web_search"}),),
    ],
    "tool_choice": [None, ToolChoice(), ToolChoice(mode="none"), ToolChoice(allowed=("a",))],
    "parallel_tool_calls": [None, False, True],
    "response_format": [None, ResponseFormat(), ResponseFormat(type="json")],
    "temperature": [None, 0, 1],
    "top_p": [None, 0, 1],
    "top_k": [None, 0, 1],
    "max_tokens": [None, 0, 1],
    "stop_sequences": [None, (), ("a",), ("",)],
    "seed": [None, 0, 1],
    "frequency_penalty": [None, 0, 1],
    "presence_penalty": [None, 0, 1],
    "logprobs": [None, 0, 1],
    "reasoning_effort": [None, "", "low"],
    "thinking_budget": [None, 0, 1],
    "include_thinking": [None, False, True],
    "verbosity": [None, "", "low"],
    "user": [None, "", "ada"],
    "metadata": [None, {}, {"a": 1}],
    "provider_options": [{}, {"openai": {}}, {"openai": {"a": 0}}, {"openai": {"a": None}}],
    "on_loss": [None, "warn", "strict"],
    "active_skills": [(), ("a",), ("b",)],
    "active_connectors": [(), ("a",), ("b",)],
}
OTHERS = {
    "request_id": "1",
    "session_id": "s",
    "chosen_because": "r",
    "short_name": "s",
    "context": object(),
    "upload": "auto",
    "keep_raw": True,
}


def key(request, adapter=ADAPTER, tenant=None, name="generate"):
    return key_of(request, name, adapter, tenant)


def test_every_field_of_a_request_is_classified():
    """A field that is added to `Request` must be classified here."""
    assert set(Request.__struct_fields__) == VARIANTS.keys() | IGNORED.keys()
    assert IGNORED.keys() == OTHERS.keys()
    assert IGNORED_OF_MESSAGES.keys() < set(Message.__struct_fields__)
    assert all(IGNORED.values())
    assert all(IGNORED_OF_MESSAGES.values())


@pytest.mark.parametrize("field", VARIANTS)
def test_each_value_of_a_field_has_its_own_key(field):
    """Whatever can change the answer changes the key; omitted is not 0 (field bug 82)."""
    keys = [key(Request())] + [key(Request(**{field: value})) for value in VARIANTS[field]]

    assert keys[0] == keys[1]
    assert None not in keys
    for one, other in combinations(keys[1:], 2):
        assert one != other


@pytest.mark.parametrize("field", OTHERS)
def test_a_name_of_the_call_is_not_in_the_key(field):
    """What is never sent does not separate answers."""
    assert key(Request(messages="Hi.", **{field: OTHERS[field]})) == key(Request(messages="Hi."))


@given(requests(), st.sampled_from(sorted(VARIANTS)), st.data())
def test_a_changed_field_of_any_request_changes_the_key(request, field, data):
    """Also in a request that sets everything else (field bug 82)."""
    value = data.draw(st.sampled_from(VARIANTS[field]))
    other = replace(request, **{field: getattr(Request(**{field: value}), field)})
    is_same = getattr(other, field) == getattr(request, field)

    if is_same:
        assert key(other) == key(request)
    elif field != "messages":  # the ids of calls do not count
        assert key(other) != key(request)


def test_the_tenant_is_in_the_key():
    """Other tenants, and callers with other API keys, have other answers (field bug 82)."""
    request, other = Request(messages="Hi."), HttpAdapter("openai", "another")
    keys = [key(request), key(request, other), key(request, tenant="a"), key(request, tenant="b")]

    assert len(set(keys)) == 4
    assert key(request, other, tenant="a") == key(request, tenant="a")


def test_an_operation_has_its_own_key():
    """Counting the tokens of a request is not its answer."""
    request = Request(messages="Hi.")

    assert key(request, name="count_tokens") != key(request)
    assert key({"input": "a"}, name="embed") != key({"input": "b"}, name="embed")
    assert key(object(), name="embed") is None


def conversation(ids, **fields):
    first, second = ids
    return Request(
        messages=[
            Message.user("Hi."),
            Message(
                role="assistant",
                content=(ToolCall(id=first, name="a"), ToolCall(id=second, name="b")),
                **fields,
            ),
            Message(
                role="tool",
                content=(
                    ToolResult(tool_call_id=second, content="B"),
                    ToolResult(tool_call_id=first, content="A"),
                ),
            ),
        ]
    )


def test_the_ids_of_calls_and_messages_do_not_separate_answers():
    """A conversation that is repeated with other ids is the same conversation."""
    before = key(conversation(("1", "2")))

    assert key(conversation(("x", "y"))) == before
    assert key(conversation(("x", "y"), id="m", metadata={"usage": {"input_tokens": 1}})) == (
        key(conversation(("1", "2"), id="n", metadata={"mood": "good"}))
    )
    assert key(conversation(("1", "1"))) != before


@pytest.mark.parametrize("name", READ_BY_RULES)
def test_metadata_that_history_repair_reads_is_in_the_key(name):
    """The rules that depend on the maker of a message change what is sent."""
    assert key(conversation(("1", "2"), metadata={name: "other"})) != key(conversation(("1", "2")))


def test_a_request_without_a_json_form_has_no_key():
    """It is not cached, and the call goes on."""
    assert key(Request(provider_options={"openai": {"a": object()}})) is None
    assert key(Request(messages=[Message.user([Image(path="a.png")])])) is None
