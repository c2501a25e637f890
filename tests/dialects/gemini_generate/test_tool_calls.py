"""ToolCall <-> `functionCall`, ToolResult <-> `functionResponse`."""

import pytest

from interlingua.dialects.gemini_generate.content import (
    decode_result,
    decode_tool_call,
    encode_result,
    encode_tool_call,
)
from interlingua.dialects.gemini_generate.tool_calls import (
    PartialArguments,
    request_links,
    response_links,
)
from interlingua.spec.content import (
    Audio,
    Image,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.warnings import WarningList

NAME = "gemini_generate"
PNG = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}


def result(response, **beside):
    wire = {"functionResponse": {"id": "c", "name": "f", "response": response, **beside}}
    return wire, decode_result(wire, request_links())


def encode(part, *calls):
    losses = WarningList()
    wire = encode_result(part, {call.id: call for call in calls}, losses)
    return wire["functionResponse"], [warning.code for warning in losses.warnings]


@pytest.mark.parametrize(
    "wire",
    [
        {"functionCall": {"name": "f"}},
        {"functionCall": {"name": "f", "args": {}}},
        {"functionCall": {"name": "f", "args": None, "id": None}},
        {"functionCall": {"name": "f", "args": {}, "id": ""}},
        {"functionCall": {"name": "f", "args": {"a": 1}, "id": "c", "willContinue": False}},
        {"functionCall": {"name": "f", "args": {}}, "thought": False, "thoughtSignature": "U0lH"},
    ],
)
def test_calls_come_back_exactly(wire):
    """What the wire left out of a call, or sent empty, is so again."""
    call = decode_tool_call(wire, request_links())

    assert call.id
    assert encode_tool_call(call) == wire


def test_a_call_without_an_id_gets_one_that_is_not_sent_back():
    """A call without an id gets one of its own, which is not sent back (field bug 7)."""
    links = request_links()
    wire = {"functionCall": {"name": "f", "args": {}}}

    first, second = decode_tool_call(wire, links), decode_tool_call(wire, links)

    assert first.id != second.id
    assert "id" not in encode_tool_call(first)["functionCall"]


def test_arguments_that_are_no_object_are_wrapped():
    """Free text and broken JSON go in an object (field bug 12)."""
    custom = ToolCall(id="c", name="f", raw_arguments="x = 1", type="custom")
    broken = ToolCall(id="c", name="f", raw_arguments='{"a": ')

    assert encode_tool_call(custom)["functionCall"]["args"] == {"input": "x = 1"}
    assert encode_tool_call(broken)["functionCall"]["args"] == {"input": '{"a": '}


@pytest.mark.parametrize(
    ("response", "content", "is_error"),
    [
        ({"output": "x"}, "x", False),
        ({"output": 5}, 5, False),
        ({"output": []}, [], False),
        ({"output": None}, None, False),
        ({"error": "boom"}, "boom", True),
        ({"error": {"code": 1}}, {"code": 1}, True),
        ({"result": "x"}, {"result": "x"}, False),
        ({"output": {"a": 1}}, {"output": {"a": 1}}, False),
        ({"output": {"output": "x"}}, {"output": "x"}, False),
        ({"output": {"error": "x"}}, {"error": "x"}, False),
        ({"output": "x", "more": 1}, {"output": "x", "more": 1}, False),
        ({}, {}, False),
    ],
)
def test_results(response, content, is_error):
    """The documented wrappings are taken off; any other object is the result itself."""
    wire, part = result(response)

    assert (part.content, part.is_error) == (content, is_error)
    assert encode_result(part, {}, WarningList()) == wire


@pytest.mark.parametrize(
    "wire",
    [
        {"functionResponse": {"name": "f"}},
        {"functionResponse": {"name": "f", "response": None}},
        {"functionResponse": {"id": "c", "response": {"output": [{"kind": "text", "text": "a"}]}}},
        {"functionResponse": {"name": "f", "response": {"output": "x"}, "parts": []}},
        {"functionResponse": {"name": "f", "parts": [PNG]}},
        {"functionResponse": {"name": "f", "response": {}, "parts": [PNG]}, "thought": False},
        {"functionResponse": {"name": "f", "response": {"output": "x"}, "parts": [PNG]}},
        {"functionResponse": {"name": "f", "response": {"error": "x"}, "parts": [PNG]}},
        {"functionResponse": {"name": "f", "response": {"result": {"a": 1}}, "parts": [PNG]}},
        {"functionResponse": {"name": "f", "response": {}, "parts": [{"newKind": 1}]}},
        {"functionResponse": {"name": "f", "response": {}, "scheduling": "SILENT"}},
    ],
)
def test_results_come_back_exactly(wire):
    """Missing, empty and odd responses, and media beside them, are the same again."""
    assert encode_result(decode_result(wire, request_links()), {}, WarningList()) == wire


def test_media_in_a_result_are_parts():
    """The text of a multimodal result comes first, then its media."""
    _, part = result({"output": "see"}, parts=[PNG])

    assert part.content == (Text(text="see"), Image(data=b"\x89PNG", media_type="image/png"))


def test_a_result_is_named_after_its_call():
    """A result is named after the call it answers, and what is no object is wrapped.

    Field bug 20.
    """
    call = ToolCall(id="c", name="get_weather")
    part = ToolResult(tool_call_id="c", content="4 C")

    wire, warnings = encode(part, call)

    assert wire == {"id": "c", "name": "get_weather", "response": {"output": "4 C"}}
    assert warnings == []


def test_a_failed_result_goes_under_error():
    """A failed result goes under `error` (field bug 21)."""
    wire, _ = encode(ToolResult(tool_call_id="c", content={"code": 5}, is_error=True))

    assert wire["response"] == {"error": {"code": 5}}


def test_an_image_in_a_result_arrives():
    """Text of a result goes in `response`, media beside it (field bug 25)."""
    content = (Text(text="a"), Image(data=b"\x89PNG", media_type="image/png"), Refusal(text="b"))

    wire, _ = encode(ToolResult(tool_call_id="c", content=content))

    assert wire["response"] == {"output": "a\nb"}
    assert wire["parts"] == [PNG]


def test_parts_that_no_result_can_hold_warn():
    """Thoughts and another dialect's blocks are left out; media become a note."""
    content = (Thinking(text="x"), Opaque(dialect="openai_chat", data={}), Audio())

    wire, warnings = encode(ToolResult(tool_call_id="c", content=content))

    note = "[The tool returned media that this model cannot read: audio.]"
    assert wire["response"] == {"output": note}
    assert warnings == [
        "misplaced_part_dropped",
        "misplaced_part_dropped",
        "result_media_as_text",
    ]


def test_the_id_of_a_result_is_sent_if_its_calls_was():
    """A call that went without an id is answered without one."""
    unnamed = decode_tool_call({"functionCall": {"name": "f", "args": {}}}, request_links())
    part = ToolResult(tool_call_id=unnamed.id, content="x")

    wire, _ = encode(part, unnamed)

    assert wire == {"name": "f", "response": {"output": "x"}}


def test_a_result_that_names_another_function_keeps_its_name():
    """What the client sent is sent, even where it contradicts itself."""
    links = request_links()
    call = decode_tool_call({"functionCall": {"id": "c", "name": "f", "args": {}}}, links)
    wire = {"functionResponse": {"id": "c", "name": "g", "response": {}}}

    part = decode_result(wire, links)

    assert encode_result(part, {"c": call}, WarningList()) == wire


def test_changed_content_wins_over_what_was_kept():
    """An edited result says what it was edited to, not what it was."""
    wire = {
        "functionResponse": {"id": "c", "response": {"output": [{"kind": "text", "text": "a"}]}}
    }
    part = decode_result(wire, request_links())
    edited = ToolResult(tool_call_id="c", content="new", extra=part.extra)

    assert encode(edited)[0]["response"] == {"output": "new"}


# Which result answers which call.


def test_results_answer_in_order():
    """Results without an id answer the calls of their name, first to first."""
    links = request_links()
    first, other, second = links.call("f", None), links.call("g", None), links.call("f", None)

    assert [links.answer("f", None), links.answer("f", None)] == [first, second]
    assert links.answer("g", None) == other


def test_nearest_turn_is_answered_first():
    """A later turn's calls are answered before those an earlier turn left open."""
    links = request_links()
    links.turn()
    early = links.call("f", None)
    links.turn()
    late = links.call("f", None)

    assert links.answer("f", None) == late
    assert links.answer("f", None) == early


def test_result_with_an_id_takes_its_call():
    """A call that was answered by id is not answered again by name."""
    links = request_links()
    links.call("f", "a")
    links.call("f", "b")

    assert links.answer("f", "a") == "a"
    assert links.answer("f", None) == "b"


def test_result_of_no_call_gets_an_id_of_its_own():
    """A result that answers nothing still has an id, unlike any other."""
    links = request_links()
    calls = [links.call("f", None), links.call("h", None)]

    assert links.answer("g", None) not in ("", *calls)


def test_made_ids_are_stable_and_unlike_given_ones():
    """The same conversation gives the same ids; one in use is passed over."""
    one, two = request_links(), request_links()

    assert one.call("f", None) == two.call("f", None)
    taken = request_links()
    taken.call("f", one.call("f", "call_unnamed_1"))
    assert taken.call("f", None) != "call_unnamed_1"


def test_response_ids_come_from_the_caller():
    """An answer's unnamed calls are named from the caller's source."""
    links = response_links(lambda: "01ABC")

    assert links.call("f", None) == "call_01ABC"
    assert response_links(None).call("f", None) == "call_1"


def test_reused_ids_are_answered_each_time():
    """An id used in two turns waits for an answer twice (field bug 9)."""
    links = request_links()
    for _ in range(2):
        links.turn()
        links.call("f", "same")
        assert links.answer("f", None) == "same"


# Arguments that come piece by piece.


def put_together(*pieces):
    arguments = PartialArguments()
    for piece in pieces:
        arguments.feed(piece)
    return arguments.finish()


def test_text_is_joined_by_path():
    """Pieces of one place are one text, whatever comes between."""
    assert put_together(
        {"jsonPath": "$.city", "stringValue": "Os", "willContinue": True},
        {"jsonPath": "$.days", "numberValue": 3},
        {"jsonPath": "$.city", "stringValue": "lo"},
        {"jsonPath": "$.exact", "boolValue": False},
        {"jsonPath": "$.zone", "nullValue": "NULL_VALUE"},
    ) == {"city": "Oslo", "days": 3, "exact": False, "zone": None}


def test_paths_lead_into_objects_and_arrays():
    """Members, indexes and quoted names are followed and made."""
    assert put_together(
        {"jsonPath": "$.a.b[0].c", "stringValue": "x"},
        {"jsonPath": "$.a.b[1].c", "stringValue": "y"},
        {"jsonPath": "$.a.b[0].d", "numberValue": 1.5},
        {"jsonPath": "$['two words']", "stringValue": "z"},
        {"jsonPath": '$["q"][0]', "stringValue": "w"},
    ) == {"a": {"b": [{"c": "x", "d": 1.5}, {"c": "y"}]}, "two words": "z", "q": ["w"]}


def test_a_far_index_fills_no_memory():
    """An index past the end is the next one."""
    assert put_together({"jsonPath": "$.a[999999999]", "stringValue": "x"}) == {"a": ["x"]}


@pytest.mark.parametrize(
    "piece",
    [None, 5, {}, {"jsonPath": 5}, {"jsonPath": "$"}, {"jsonPath": "$.a"}, {"jsonPath": ""}],
)
def test_what_is_no_piece_says_nothing(piece):
    """Odd pieces are passed over."""
    assert put_together(piece) == {}


def test_a_path_through_a_value_is_lost():
    """A place under a text cannot be; the text stays."""
    assert put_together(
        {"jsonPath": "$.a", "stringValue": "x"}, {"jsonPath": "$.a.b.c", "stringValue": "y"}
    ) == {"a": "x"}


def test_a_value_of_another_type_is_kept():
    """What stands where a number should is no text."""
    assert put_together({"jsonPath": "$.a", "numberValue": [1]}) == {"a": [1]}


def test_a_result_of_nothing_says_nothing():
    """Not an object without fields, which would be one."""
    inner, told = encode(ToolResult(tool_call_id="c", content=()))

    assert (inner["response"], told) == ({"output": ""}, [])
    assert decode_result({"functionResponse": inner}, request_links()).content == ""
