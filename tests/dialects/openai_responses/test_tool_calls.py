"""Tool calls and results <-> their items."""

import pytest

from interlingua.dialects.openai_responses.messages import ItemEncoder, decode_turn, read_item
from interlingua.dialects.openai_responses.tool_calls import decode_result
from interlingua.spec.content import Image, Opaque, Text, ToolCall, ToolResult
from interlingua.spec.errors import DecodeError
from interlingua.spec.warnings import WarningList

NAME = "openai_responses"


def say(*parts, role="assistant", **options):
    losses = WarningList()
    encoder = ItemEncoder(losses, **options)
    encoder.message(role, parts, "m")
    return encoder.items, [warning.code for warning in losses.warnings]


def answer(*parts):
    return say(*parts, response_id="resp_7")[0]


def read(item):
    return read_item(item, lambda: "made")


def test_function_call():
    """The id of the call is `call_id`; the id of the item is kept beside."""
    item = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "f",
        "arguments": '{"a": 1}',
        "status": "completed",
    }

    (part,) = read(item)

    assert (part.id, part.name, part.arguments) == ("call_1", "f", {"a": 1})
    assert part.extra == {NAME: {"id": "fc_1", "status": "completed"}}
    assert [item] == say(part)[0] == answer(part)


def test_custom_tool_call():
    """A free-text call has its text as raw arguments."""
    item = {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "ls -l"}

    (part,) = decode_turn(item, "", marked=False)

    assert ToolCall(id="c", name="f", raw_arguments="ls -l", type="custom") == part
    assert [item] == say(part)[0]


def test_call_made_by_hand():
    """Arguments become text, and an answer's item gets an id and a status."""
    call = ToolCall(id="c", name="f", arguments={"a": 1})
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":1}'}

    assert [item] == say(call)[0]
    assert [{**item, "id": "fc_7_0", "status": "completed"}] == answer(call)


@pytest.mark.parametrize(
    ("fields", "call_id"),
    [
        ({"id": "fc_1"}, "fc_1"),
        ({"call_id": "", "id": "fc_1"}, "fc_1"),
        ({"call_id": None}, "made"),
    ],
)
def test_a_call_without_an_id_is_given_one(fields, call_id):
    """A call without an id is given the item's, or a new one (field bug 7)."""
    (part,) = read({"type": "function_call", "name": "f", "arguments": "{}", **fields})

    assert call_id == part.id


def test_empty_arguments_are_none_and_go_back_as_they_came():
    """Empty argument text is no arguments, and goes back as it came (field bug 10)."""
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}

    (part,) = read(item)

    assert part.arguments == {}
    assert part.is_valid
    assert [item] == say(part)[0]


def test_malformed_arguments_are_kept_and_the_call_is_not_valid():
    """Text that is no JSON is kept, and the call is not valid (field bug 11)."""
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": '}

    (part,) = read(item)

    assert not part.is_valid
    assert [item] == say(part)[0]


@pytest.mark.parametrize("arguments", [{"a": 1}, None])
def test_arguments_that_are_no_text(arguments):
    """Some servers send an object, or nothing."""
    (part,) = read({"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments})

    assert (arguments or {}) == part.arguments


def result(**fields):
    return {"type": "function_call_output", "call_id": "c", **fields}


@pytest.mark.parametrize(
    "item",
    [
        result(output="text"),
        result(output="", id="fco", status="completed", name="f"),
        result(output=[]),
        result(
            output=[
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": "https://e.com/a.png", "detail": "auto"},
                {"type": "input_file", "file_url": "https://e.com/a.pdf"},
            ]
        ),
        {**result(output="x"), "type": "custom_tool_call_output"},
    ],
)
def test_results(item):
    """Text, or text with pictures and files, comes back as it was."""
    part = decode_result(item, "")

    assert part.tool_call_id == "c"
    assert ([item], []) == say(part, role="tool")


def test_an_image_in_a_result_reaches_the_model():
    """A picture reaches the model inside the output (field bug 25)."""
    part = ToolResult(tool_call_id="c", content=(Image(url="https://e.com/a.png"),))

    ((item,), codes) = say(part, role="tool")

    assert codes == []
    assert item["output"][0]["image_url"] == "https://e.com/a.png"


@pytest.mark.parametrize(
    ("content", "output"),
    [({"t": 4}, '{"t":4}'), ([1, 2], "[1,2]"), (None, "null"), ((), ""), ((Text(text="x"),), "x")],
)
def test_results_made_by_hand(content, output):
    """JSON is said as text, and one text as a string."""
    part = ToolResult(tool_call_id="c", content=content)

    assert ([result(output=output)], []) == say(part, role="tool")


@pytest.mark.parametrize(
    ("content", "output", "codes"),
    [
        ("boom", "Error: boom", ["tool_error_as_text"]),
        ("error: boom", "error: boom", ["tool_error_as_text"]),
        ("", "Error", ["tool_error_as_text"]),
        ((), "Error", ["tool_error_as_text"]),
        ((Text(text="boom"),), "Error: boom", ["tool_error_as_text"]),
        (
            (Opaque(dialect=NAME, data={"type": "input_file", "file_id": "f"}),),
            [{"type": "input_text", "text": "Error"}, {"type": "input_file", "file_id": "f"}],
            ["tool_error_as_text"],
        ),
    ],
)
def test_a_failed_result_says_so_in_its_text(content, output, codes):
    """There is no error flag: the text says it, with a warning (field bug 21)."""
    part = ToolResult(tool_call_id="c", content=content, is_error=True)

    assert ([result(output=output)], codes) == say(part, role="tool")


def test_result_of_a_custom_call():
    """It answers with the kind of item that the call had."""
    encoder = ItemEncoder(WarningList())
    call = ToolCall(id="c", name="f", arguments={"input": "y"}, type="custom")
    encoder.message("assistant", (call,), "m")
    encoder.message("tool", (ToolResult(tool_call_id="c", content="x"),), "m")

    assert [item["type"] for item in encoder.items] == [
        "custom_tool_call",
        "custom_tool_call_output",
    ]


@pytest.mark.parametrize(
    ("item", "path"),
    [
        ({"type": "function_call", "name": "f", "arguments": ""}, "input[0].call_id"),
        (
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": {}},
            "input[0].arguments",
        ),
        ({"type": "custom_tool_call", "call_id": "c", "name": "f"}, "input[0].input"),
    ],
)
def test_wrong_types(item, path):
    """In a request a wrong type is an error that names the place."""
    with pytest.raises(DecodeError) as caught:
        decode_turn(item, "input[0]", marked=False)

    assert path == caught.value.path
