"""Tool calls."""

import json

import pytest

from interlingua.dialects.openai_chat.tool_call_stream import ToolCallAssembler
from interlingua.dialects.openai_chat.tool_calls import (
    decode_tool_calls,
    encode_tool_call,
    number_tool_call,
    unnumber_tool_call,
)
from interlingua.spec.content import Opaque, ToolCall
from interlingua.spec.errors import DecodeError
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.wire.fields import Fields
from interlingua.wire.tool_calls import counting_ids

NAME = "openai_chat"


def decode(*calls, strict=True, mark="~sent"):
    return decode_tool_calls(
        Fields({"tool_calls": list(calls)}, strict=strict), counting_ids(), mark
    )


def call(arguments="{}", **more):
    return {
        "id": "c1",
        "type": "function",
        "function": {"name": "f", "arguments": arguments},
        **more,
    }


ODD = [
    call('{"a": 1}'),
    call(""),
    call("{broken"),
    call("null"),
    call({"a": 1}),
    call(None),
    call(index=3),
    call(extra_content={"google": {"thought_signature": "S"}}),
    call(type=None),
    {"id": "c1", "function": {"name": "f", "arguments": "{}"}},
    {"id": "c1", "type": "function", "function": {"name": "f"}},
    {"id": "", "type": "function", "function": {"name": "f", "arguments": "{}"}},
    {"type": "function", "function": {"name": "f", "arguments": "{}", "x": 1}},
    {"id": "c1", "type": "custom", "custom": {"name": "f", "input": "1 + 1"}},
    {**call(), "custom": {"name": "", "input": ""}},
]


@pytest.mark.parametrize("wire", ODD)
def test_every_form_comes_back(wire):
    """Whatever form a call has, it is read as a call and written back the same."""
    (part,) = decode(wire, strict=False)

    assert isinstance(part, ToolCall)
    assert part.name == "f"
    assert encode_tool_call(part, answer=False) == wire


def test_arguments_are_read_and_kept():
    """The text is parsed, and kept to the letter."""
    (part,) = decode(call('{"a":  1}'))

    assert part == ToolCall(
        id="c1", name="f", arguments={"a": 1}, raw_arguments='{"a":  1}', extra={}
    )


def test_empty_arguments_are_an_empty_object():
    """Empty text is an empty object (field bug 10)."""
    (part,) = decode(call(""))

    assert part.arguments == {}
    assert part.is_valid


def test_broken_arguments_are_kept_and_the_call_is_not_valid():
    """Text that is no object is kept, and the call is not valid (field bug 11)."""
    (part,) = decode(call("{broken"))

    assert (part.arguments, part.raw_arguments, part.is_valid) == ({}, "{broken", False)


def test_custom_call():
    """A custom tool takes free text."""
    (part,) = decode({"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT"}})

    assert (part.type, part.raw_arguments, part.arguments) == ("custom", "SELECT", {})


def test_a_call_without_an_id_gets_one_that_goes_with_its_result():
    """A call without an id gets one, which goes with its result; the sender sees its own form.

    Field bug 7.
    """
    wire = {"id": "", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    (received,) = decode(wire, strict=False, mark="~received")

    assert received.id == "1"
    assert encode_tool_call(received, answer=False)["id"] == "1"
    assert encode_tool_call(received, answer=True) == wire


def test_unknown_calls_are_kept():
    """A kind of call that is not known, or has no name, is carried."""
    wire = {"id": "c", "type": "mcp", "mcp": {"name": "f"}}

    kept = {NAME: {"~sent_as": "tool_call"}}
    assert decode(wire) == [Opaque(dialect=NAME, data=wire, extra=kept)]
    assert isinstance(decode({"id": "c", "type": "function"})[0], Opaque)


def test_wrong_types_name_their_path():
    """In a request a call must be an object, and its name text."""
    with pytest.raises(DecodeError, match=r"tool_calls\[1\]: expected an object"):
        decode(call(), 5)
    with pytest.raises(DecodeError, match=r"tool_calls\[0\]\.function\.name: expected a string"):
        decode(call(function={"name": 5}))


def test_legacy_call_both_ways():
    """The older form of one call has no id; it is given one."""
    wire = {"name": "f", "arguments": '{"a": 1}'}
    fields = Fields({"function_call": wire})
    (part,) = decode_tool_calls(fields, counting_ids(), "~sent")

    assert (part.id, part.arguments) == ("1", {"a": 1})
    assert fields.left == {}
    assert encode_tool_call(part, answer=False)["function"] == wire


def test_foreign_call():
    """Arguments that came as an object are written as text; free text stays text."""
    assert encode_tool_call(ToolCall(id="c", name="f", arguments={"a": 1}), answer=False) == {
        "id": "c",
        "type": "function",
        "function": {"name": "f", "arguments": '{"a":1}'},
    }
    custom = ToolCall(id="c", name="f", type="custom", raw_arguments="x")
    assert encode_tool_call(custom, answer=False)["custom"] == {"name": "f", "input": "x"}


def test_numbers_of_calls_come_and_go():
    """A whole message said as a delta has numbered calls, and loses only the numbers."""
    calls = [{"id": "a"}, {"id": "b", "type": "x"}, "odd"]
    delta = [number_tool_call(item, i) for i, item in enumerate(calls)]

    assert [item["index"] for item in delta[:2]] == [0, 1]
    assert [unnumber_tool_call(item) for item in delta] == calls


# Fragments.


def assemble(*chunks, legacy=False):
    """The calls that lists of `tool_calls` items add up to."""
    made = iter(range(1, 99))
    places = iter(range(99))
    assembler = ToolCallAssembler(lambda: f"made_{next(made)}", lambda: next(places))
    events = []
    for items in chunks:
        for i, item in enumerate(items):
            fed = assembler.feed_legacy(item) if legacy else assembler.feed(item, is_first=i == 0)
            events += fed
    events += assembler.finish()
    accumulator = StreamAccumulator()
    for event in events:
        accumulator.feed(event)
    return accumulator.partial().tool_calls


def item(arguments=None, *, name=None, **fields):
    function = {}
    if name is not None:
        function["name"] = name
    if arguments is not None:
        function["arguments"] = arguments
    return {**fields, "function": function}


def shown(calls):
    return [(call.id, call.name, call.arguments) for call in calls]


def test_fragments():
    """Id and name first, then arguments by index."""
    calls = assemble(
        [item("", name="f", index=0, id="x", type="function")],
        [item('{"a"', index=0)],
        [item(": 1}", index=0)],
    )

    assert shown(calls) == [("x", "f", {"a": 1})]
    assert calls[0].raw_arguments == '{"a": 1}'


def test_interleaved():
    """Fragments of several calls may alternate."""
    calls = assemble(
        [item("", name="f", index=0, id="x"), item("", name="g", index=1, id="y")],
        [item('{"b":', index=1), item('{"a":', index=0)],
        [item("2}", index=1), item("1}", index=0)],
    )

    assert shown(calls) == [("x", "f", {"a": 1}), ("y", "g", {"b": 2})]


def test_two_ids_of_one_index_are_two_calls():
    """Two ids are two calls, whatever the index (field bug 1)."""
    calls = assemble(
        [item('{"a":', name="f", index=0, id="x")],
        [item("1}", index=0)],
        [item('{"b": 2}', name="f", index=0, id="y")],
    )

    assert shown(calls) == [("x", "f", {"a": 1}), ("y", "f", {"b": 2})]


def test_a_new_object_after_a_complete_one_is_a_new_call():
    """Without ids, a new object after a complete one is a new call (field bug 2)."""
    calls = assemble(
        [item('{"a": "}{"}', name="f", index=0)],
        [item('{"b": 2', index=0)],
        [item("}", index=0)],
        [item("{}", name="g", index=0)],
    )

    assert shown(calls) == [
        ("made_1", "f", {"a": "}{"}),
        ("made_2", "f", {"b": 2}),
        ("made_3", "g", {}),
    ]


def test_objects_inside_are_not_new_calls():
    """A fragment that begins with a brace inside an open object belongs to it."""
    calls = assemble(
        [item('{"a": [{"x": "}"}', name="f", index=0, id="x")],
        [item("", index=0), item(', {"y": 1}', index=0)],
        [item("]", index=0), item("}", index=0)],
    )

    assert shown(calls) == [("x", "f", {"a": [{"x": "}"}, {"y": 1}]})]


def test_text_with_braces_at_the_seams():
    """Braces in a string, cut at the worst place, open nothing."""
    calls = assemble(
        [item('{"a": "\\"}', name="f", index=0)], [item('{ \\\\"', index=0)], [item("}", index=0)]
    )

    assert shown(calls) == [("made_1", "f", {"a": '"}{ \\'})]


@pytest.mark.parametrize(
    "chunks",
    [
        [[item("{}", name="f", id="x"), item("{}", name="g", id="y")]],
        [[item("{", name="f", id="x")], [item("}", id="x")], [item("{}", name="g", id="y")]],
        [[item("{", name="f", id="x")], [item("}")], [item("{}", name="g", id="y")]],
        [
            [item("{", name="f", id="x", index=0)],
            [item("}", id="x", index=1)],
            [item("{}", name="g", id="y", index=2)],
        ],
    ],
    ids=["whole", "by id", "the last", "growing index"],
)
def test_calls_with_missing_or_odd_indexes_are_told_apart_by_id(chunks):
    """The id tells, and without one the last call goes on (field bug 4)."""
    assert shown(assemble(*chunks)) == [("x", "f", {}), ("y", "g", {})]


def test_neither_index_nor_id():
    """Whole calls in one chunk, or one after the other, are told by their names."""
    together = assemble([item("{}", name="f"), item("{}", name="f")])
    apart = assemble([item("{}", name="f")], [item("{}", name="g")])

    assert [call.name for call in together] == ["f", "f"]
    assert [call.name for call in apart] == ["f", "g"]


def test_arguments_that_parse_may_go_on():
    """Arguments that parse may go on (field bug 5)."""
    calls = assemble([item("{}", name="f", index=0, id="x")], [item(" \n", index=0)])

    assert calls[0].raw_arguments == "{} \n"


def test_names():
    """The first name counts: empty ones and repeats change nothing."""
    calls = assemble(
        [item("", index=0, id="x")],
        [item("", name="f", index=0)],
        [item("{", name="", index=0)],
        [item("}", name="f", index=0, id="x")],
    )

    assert shown(calls) == [("x", "f", {})]


def test_a_late_id_is_taken():
    """If it comes before the arguments."""
    assert assemble([item("", name="f", index=0)], [item("{}", index=0, id="x")])[0].id == "x"


def test_arguments_cut_by_a_length_stop_are_kept_and_the_call_is_not_valid():
    """Arguments cut by a length stop are kept, and the call is not valid (field bug 88)."""
    (call,) = assemble([item('{"a": ', name="f", index=0, id="x")])

    assert (call.arguments, call.raw_arguments, call.is_valid) == ({}, '{"a": ', False)


def test_other_fields():
    """Fields of any fragment are kept on the call."""
    (call,) = assemble(
        [item("{", name="f", index=0, id="x", extra_content={"google": 1})],
        [item("}", index=0, note="n")],
    )

    assert call.extra == {"openai_chat": {"extra_content": {"google": 1}, "note": "n"}}


def test_arguments_as_an_object():
    """They are read, and remembered as such."""
    (call,) = assemble([item({"a": 1}, name="f", index=0, id="x")])

    assert call.arguments == {"a": 1}
    assert call.extra == {"openai_chat": {"~sent_as": "object"}}


def test_custom_calls():
    """Free text in fragments."""
    (call,) = assemble(
        [{"index": 0, "id": "x", "type": "custom", "custom": {"name": "sql", "input": "SE"}}],
        [{"index": 0, "custom": {"input": "LECT"}}],
    )

    assert (call.type, call.raw_arguments) == ("custom", "SELECT")


def test_legacy_call():
    """The older form of one call."""
    (call,) = assemble(
        [{"name": "f", "arguments": ""}, {"arguments": '{"a"'}, {"arguments": ": 1}"}], legacy=True
    )

    assert shown([call]) == [("made_1", "f", {"a": 1})]
    assert call.extra["openai_chat"]["~sent_as"] == "function_call"


def test_long_arguments_are_linear():
    """A hundred kilobytes of braces in twenty thousand fragments are looked at once."""
    pieces = ['{"a": "', *["}"] * 10_000, *["{"] * 10_000, '"}']
    chunks = [[item(piece, index=0)] for piece in pieces]
    (call,) = assemble([item("", name="f", index=0, id="x")], *chunks)

    assert json.loads(call.raw_arguments)["a"] == "}" * 10_000 + "{" * 10_000


def test_a_missing_or_empty_id_is_made_and_marked():
    """A missing or empty id is made, and marked (field bug 7)."""
    (call,) = assemble([item("{}", name="f", index=0, id="")])

    assert call.id == "made_1"
    assert call.extra == {"openai_chat": {"~received": {}}}
