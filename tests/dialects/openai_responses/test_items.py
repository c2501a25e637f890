"""Parts <-> items."""

import pytest

from interlingua.dialects.openai_responses.items import (
    ItemEncoder,
    decode_result,
    decode_turn,
    read_item,
)
from interlingua.spec.content import (
    Image,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.errors import DecodeError
from interlingua.wire.carry import Losses

NAME = "openai_responses"


def say(*parts, role="assistant", **options):
    losses = Losses()
    encoder = ItemEncoder(losses, **options)
    encoder.message(role, parts, "m")
    return encoder.items, [warning.code for warning in losses.warnings]


def answer(*parts):
    return say(*parts, response_id="resp_7")[0]


def read(item):
    return read_item(item, lambda: "made")


REASONING = [
    ({"id": "rs", "summary": []}, ""),
    ({"id": "rs", "summary": [{"type": "summary_text", "text": "a"}]}, "a"),
    (
        {
            "id": "rs",
            "status": "completed",
            "summary": [
                {"type": "summary_text", "text": "a\n\nb"},
                {"type": "summary_text", "text": "c"},
            ],
            "encrypted_content": "E",
        },
        "a\n\nb\n\nc",
    ),
    (
        {
            "id": "rs",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "raw"}],
            "encrypted_content": None,
        },
        "raw",
    ),
    ({"content": [{"type": "reasoning_text", "text": "raw"}]}, "raw"),
    ({"id": "rs", "summary": [{"type": "summary_text", "text": "a"}], "content": []}, "a"),
    ({"id": "rs", "summary": [], "content": None, "format": "x"}, ""),
]


@pytest.mark.parametrize(("fields", "text"), REASONING)
def test_reasoning(fields, text):
    """A reasoning item is one thought, its lists rebuilt exactly."""
    item = {"type": "reasoning", **fields}

    (part,) = read(item)

    assert text == part.text
    assert fields.get("encrypted_content") == part.data
    assert NAME in part.extra
    assert [item] == say(part)[0] == answer(part)


def test_changed_reasoning_is_said_anew():
    """Lists that no longer say the text are not sent."""
    part = Thinking(
        text="new", data="E", extra={NAME: {"id": "rs", "summary": [{"type": "x", "text": "old"}]}}
    )

    assert say(part)[0] == [
        {
            "type": "reasoning",
            "id": "rs",
            "encrypted_content": "E",
            "summary": [{"type": "summary_text", "text": "new"}],
        }
    ]


def test_thinking_of_others():
    """Another model's thought is not sent to this one, but is shown in an answer."""
    part = Thinking(text="hm", signature="S", extra={"anthropic_messages": {}})

    assert say(part) == ([], ["thinking_of_another_model_dropped"])
    assert answer(part) == [
        {
            "type": "reasoning",
            "id": "rs_7_0",
            "summary": [{"type": "summary_text", "text": "hm"}],
        }
    ]
    assert answer(Thinking(redacted=True, data="x")) == []


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
def test_field_bug_7_call_without_id(fields, call_id):
    """A call without an id is given the item's, or a new one."""
    (part,) = read({"type": "function_call", "name": "f", "arguments": "{}", **fields})

    assert call_id == part.id


def test_field_bug_10_empty_arguments():
    """Empty argument text is no arguments, and goes back as it came."""
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}

    (part,) = read(item)

    assert part.arguments == {}
    assert part.is_valid
    assert [item] == say(part)[0]


def test_field_bug_11_malformed_arguments():
    """Text that is no JSON is kept, and the call is not valid."""
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": '}

    (part,) = read(item)

    assert not part.is_valid
    assert [item] == say(part)[0]


@pytest.mark.parametrize("arguments", [{"a": 1}, None])
def test_arguments_that_are_no_text(arguments):
    """Some servers send an object, or nothing."""
    (part,) = read({"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments})

    assert (arguments or {}) == part.arguments


def test_message_items_are_told_apart():
    """Two message items, one of them with two parts, come back as they were."""
    items = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": t}]}
        for t in "ab"
    ]
    items[1]["content"].append({"type": "refusal", "refusal": "no"})
    items[1] |= {"id": "msg_1", "status": "completed", "phase": "commentary"}

    parts = [part for item in items for part in read(item)]

    assert [part.text for part in parts] == ["a", "b", "no"]
    assert items == say(*parts)[0]
    assert items == answer(*parts)


def test_unmarked_texts_share_an_item():
    """Texts from elsewhere are one message, until something else stands between them."""
    call = ToolCall(id="c", name="f")

    items = answer(Text(text="a"), Text(text="b"), call, Refusal(text="no"))

    assert [item["type"] for item in items] == ["message", "function_call", "message"]
    assert [item["id"] for item in items] == ["msg_7_0", "fc_7_1", "msg_7_2"]
    assert [{"type": "output_text", "text": t, "annotations": []} for t in "ab"] == items[0][
        "content"
    ]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "message", "role": "assistant", "content": []},
        {"type": "message", "role": "assistant", "content": None},
        {"type": "message", "role": "assistant", "content": [{"type": "hologram"}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "x", "item": 1}],
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
        {"type": "web_search_call", "id": "ws", "action": None},
        {"type": "function_call", "call_id": "c", "arguments": "{}"},
        {"type": "reasoning", "summary": "text"},
        {"type": ["list"]},
        {},
        "text",
        None,
    ],
)
def test_items_that_fit_nothing(item):
    """They are carried as they are."""
    parts = read(item)

    assert [Opaque(dialect=NAME, data=item)] == parts
    if item is not None:
        assert [item] == say(*parts)[0]


def test_opaque_of_others():
    """Another dialect's block is left out with a warning."""
    part = Opaque(dialect="anthropic_messages", data={})

    assert say(part) == ([], ["block_of_anthropic_messages_dropped"])


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


def test_field_bug_25_image_in_result():
    """A picture reaches the model inside the output."""
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
        ("error: boom", "error: boom", []),
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
def test_field_bug_21_failed_result(content, output, codes):
    """There is no error flag: the text says it, with a warning."""
    part = ToolResult(tool_call_id="c", content=content, is_error=True)

    assert ([result(output=output)], codes) == say(part, role="tool")


def test_result_of_a_custom_call():
    """It answers with the kind of item that the call had."""
    part = ToolResult(tool_call_id="c", content="x")

    items, _ = say(part, role="tool", custom=frozenset("c"))

    assert items[0]["type"] == "custom_tool_call_output"


def test_results_beside_text():
    """A user's message may hold results: each is an item, in its place."""
    parts = (ToolResult(tool_call_id="c", content="x"), Text(text="go on"))

    items, codes = say(*parts, role="user")

    assert [item["type"] for item in items] == ["function_call_output", "message"]
    assert codes == []


@pytest.mark.parametrize(
    ("item", "path"),
    [
        ({"type": "function_call", "name": "f", "arguments": ""}, "input[0].call_id"),
        (
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": {}},
            "input[0].arguments",
        ),
        ({"type": "custom_tool_call", "call_id": "c", "name": "f"}, "input[0].input"),
        ({"type": "reasoning", "summary": "x"}, "input[0].summary"),
        ({"role": "assistant", "content": 5}, "input[0].content"),
    ],
)
def test_wrong_types(item, path):
    """In a request a wrong type is an error that names the place."""
    with pytest.raises(DecodeError) as caught:
        decode_turn(item, "input[0]", marked=False)

    assert path == caught.value.path
