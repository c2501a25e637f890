"""Equality of meaning."""

from types import SimpleNamespace

import pytest

from interlingua import dialects
from interlingua.conformance.equality import (
    differences,
    normal_form,
    same,
    same_response,
    same_schema,
)
from interlingua.spec.content import Text, ToolCall
from interlingua.spec.facts import Facts, HistoryRules
from interlingua.spec.messages import Message
from interlingua.spec.response import Response


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": 2}, ["$.a: 1 is not 2"]),
        ({"a": 1}, {}, ["$.a: 1 is missing on the right"]),
        ({}, {"a": None}, ["$.a: None is missing on the left"]),
        ({"a": [1, 2]}, {"a": [2, 1]}, ["$.a[1]: 2 is not 1", "$.a[0]: 1 is not 2"]),
        ({"a": [1]}, {"a": [1, 2]}, ["$.a: [1] is not [1, 2]"]),
        (True, 1, ["$: True is not 1"]),
        (0, False, ["$: 0 is not False"]),
        ({"a": {}}, {"a": []}, ["$.a: {} is not []"]),
    ],
)
def test_differences(left, right, found):
    """Order counts, types count, and each difference is told by its path."""
    assert differences(left, right) == found


def test_differences_are_bounded_and_deep():
    """Neither many differences nor deep nesting is a problem."""
    deep, as_deep = None, None
    for _ in range(5_000):
        deep, as_deep = [deep], [as_deep]

    assert len(differences(list(range(100)), [None] * 100)) == 20
    assert differences(deep, as_deep) == []


def test_shorthand_is_the_same():
    """A string is one text block, and `stream` is false by default."""
    short = {"system": "s", "messages": [{"role": "user", "content": "x"}], "stream": False}
    long = {
        "system": [{"type": "text", "text": "s"}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}],
    }

    assert same(dialects.get("anthropic_messages"), "request", short, long) == []
    assert (
        same(dialects.get("anthropic_messages"), "request", short, {**long, "stream": True}) != []
    )


def test_dialects_without_a_normal_form():
    """Bodies are compared as they are."""
    facts = Facts(name="mine", history=HistoryRules(dialect="mine"))
    mine = SimpleNamespace(FACTS=facts)

    assert normal_form(mine, "request")({"a": None}) == {"a": None}
    assert normal_form(mine, "response")({"a": None}) == {"a": None}


def test_responses():
    """Argument text is compared by its parse; neighbouring texts are joined; all else counts."""
    one = Message.assistant(
        [Text(text="a"), Text(text="b"), ToolCall(id="1", name="f", arguments={}, raw_arguments="")]
    )
    other = Message.assistant([Text(text="ab"), ToolCall(id="1", name="f", arguments={})])
    renamed = Message.assistant([Text(text="ab"), ToolCall(id="1", name="g", arguments={})])

    assert same_response(Response(message=one), Response(message=other, raw={})) == []
    assert same_response(Response(message=one), Response(message=renamed)) == [
        "$.message.content[1].name: 'f' is not 'g'"
    ]
    assert same_response(Response(extra={"x": {"a": 1}}), Response(extra={"x": {}})) != []


def test_schemas_in_the_words_of_a_target():
    """What a target wants said otherwise is the same; what is left out is not."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": []}
    strict = {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"]}},
        "required": ["a"],
        "additionalProperties": False,
    }

    assert same_schema(schema, schema)
    assert same_schema(schema, strict)
    assert not same_schema(schema, {"type": "object", "properties": {}})
    assert not same_schema(schema, {**strict, "properties": {"a": {"type": "string"}}})
