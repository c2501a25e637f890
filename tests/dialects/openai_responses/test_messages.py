"""Messages <-> `instructions` and `input`."""

import msgspec
import pytest

from interlingua.conformance.equality import same
from interlingua.dialects import anthropic_messages, openai_responses
from interlingua.dialects.openai_responses import decode_request, encode_request
from interlingua.dialects.openai_responses.facts import FACTS
from interlingua.dialects.openai_responses.hosted_uses import hosted_use
from interlingua.dialects.openai_responses.messages import ItemEncoder, decode_turn, read_item
from interlingua.spec.content import (
    Image,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import DecodeError, InvalidRequestError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList

NAME = "openai_responses"


def read(**body):
    return decode_request(WireCall(body=body))


def say(*messages, **fields):
    call = encode_request(Request(messages=messages, **fields))
    return call.body, [warning.code for warning in call.warnings]


def again(body):
    return encode_request(read(**body)).body


def user(text):
    return {"role": "user", "content": text}


@pytest.mark.parametrize("text", ["hi", ""])
def test_input_as_a_string(text):
    """It is one message of the user, and is sent as an item: the API gives both one meaning."""
    request = read(input=text)
    longer = msgspec.structs.replace(request, messages=(*request.messages, Message.assistant("a")))

    assert [("user", text)] == [(message.role, message.text) for message in request.messages]
    assert [user(text)] == again({"input": text})["input"]
    assert FACTS.normal_request({"input": text}) == FACTS.normal_request({"input": [user(text)]})
    both = [user(text), {"type": "message", "role": "assistant", "content": "a"}]
    assert both == encode_request(longer).body["input"]


@pytest.mark.parametrize("role", ["user", "assistant", "system", "developer"])
def test_the_type_of_a_message_may_be_left_out(role):
    """An item comes back as it was, except that the model's own always has its type."""
    short = {"role": role, "content": "a"}
    typed = {"type": "message", **short}
    body = {"input": [short, typed, {**short, "phase": "x"}]}

    if role == "assistant":
        assert {"input": [typed, typed, {**typed, "phase": "x"}]} == again(body)
    else:
        assert body == again(body)
    assert FACTS.normal_request(body) == FACTS.normal_request(again(body))


def test_instructions():
    """They are the leading system message."""
    body = {"input": [user("hi")], "instructions": "Be brief."}

    request = read(**body)

    assert (Message.system("Be brief."), Message.user("hi")) == request.messages
    assert body == again(body)


def test_system_items_stay_items():
    """A leading system item is not taken for instructions, with or without them."""
    system = {"type": "message", "role": "system", "content": "a"}
    developer = {"type": "message", "role": "developer", "content": "b"}
    for body in (
        {"input": [system, developer, user("hi")]},
        {"input": [developer, system]},
        {"input": [system], "instructions": "c"},
        {"input": [system, system]},
    ):
        assert body == again(body)


def test_system_that_a_string_cannot_say():
    """Two texts, or marks of this API, keep the message an item."""
    two = Message(role="system", content=("a", "b"))
    marked = Message.system(Text(text="a", extra={NAME: {"prompt_cache_breakpoint": {}}}))

    for message in (two, marked):
        body, codes = say(message)

        assert "instructions" not in body
        assert body["input"][0]["role"] == "system"
        assert codes == []


def test_a_system_message_in_the_middle_is_not_hoisted():
    """A later system message is not hoisted (field bug 30)."""
    body, _ = say(Message.user("a"), Message.system("b"), Message.user("c"))

    assert [item["role"] for item in body["input"]] == ["user", "system", "user"]


def test_turns_are_grouped():
    """What the model made between two messages is one message; results stand alone."""
    items = [
        user("hi"),
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "E"},
        {"type": "message", "role": "assistant", "content": "Wait.", "phase": "commentary"},
        {"type": "web_search_call", "id": "ws"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "d", "name": "g", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "1"},
        {"type": "function_call_output", "call_id": "d", "output": "2"},
        {"type": "message", "role": "assistant", "content": "Done."},
    ]

    messages = read(input=items).messages

    assert [m.role for m in messages] == ["user", "assistant", "tool", "tool", "assistant"]
    kinds = [part.kind for part in messages[1].content]
    assert kinds == ["thinking", "text", "opaque", "tool_call", "tool_call"]
    assert ToolResult(tool_call_id="c", content="1") == messages[2].content[0]
    assert items == again({"input": items})["input"]


def test_short_and_long_messages():
    """A message with an id keeps its long form; a plain one is short."""
    items = [
        {"role": "assistant", "content": "a"},
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "content": [{"type": "output_text", "text": "b"}],
        },
        {"role": "user", "content": [{"type": "input_text", "text": "c"}]},
    ]

    said = again({"input": items})["input"]

    assert ["a", items[1]["content"], "c"] == [item["content"] for item in said]
    assert same(openai_responses, "request", {"input": items}, {"input": said}) == []


@pytest.mark.parametrize(
    ("item", "role"),
    [
        ({"type": "item_reference", "id": "x"}, "assistant"),
        ({"type": "compaction", "encrypted_content": "C"}, "assistant"),
        ({"type": "compaction_trigger"}, "developer"),
        ({"type": "additional_tools", "role": "developer", "tools": []}, "developer"),
        ({"type": "configuration_update", "reasoning": {"effort": "low"}}, "developer"),
        ({"type": "mcp_approval_response", "approve": True}, "tool"),
        ({"type": "computer_call_output", "call_id": "c", "output": {}}, "tool"),
        ({"type": "tool_search_output", "execution": "server", "tools": []}, "assistant"),
        ({"type": "brand_new", "x": 1}, "assistant"),
        ({"type": "message", "role": "critic", "content": "x"}, "user"),
        ({"type": 7, "x": 1}, "user"),
        ("a bare string", "user"),
    ],
)
def test_unknown_items_are_carried(item, role):
    """Items without a canonical form are carried, in a message of who would say them.

    Field bug 56.
    """
    body = {"input": [user("a"), item, user("b")]}

    message = read(**body).messages[1]

    assert role == message.role
    assert (hosted_use(item),) == message.content
    assert message.content[0].data == item
    assert body == again(body)


def test_a_result_of_no_call():
    """Codex tells the model its goal so: it comes back as it was, and other APIs do not fail."""
    goal = {"type": "function_call_output", "id": "fco_1", "name": "goal", "output": "Win."}
    body = {"input": [user("Hi"), goal]}
    request = read(**body)
    elsewhere = anthropic_messages.encode_request(request)

    assert body == again(body)
    assert [message.role for message in request.messages] == ["user", "developer"]
    assert [warning.code for warning in elsewhere.warnings] == ["foreign_block_dropped"]


def test_carried_items_are_not_shortened():
    """An item that is carried comes back to the letter, also if it looks like a message."""
    content = [{"type": "input_text", "text": "x"}]
    body = {"input": [{"type": "message", "role": "critic", "content": content}]}

    assert again(body) == body


def test_unknown_content_part():
    """An unknown part of a message stays inside the message."""
    body = {"input": [{"type": "message", "role": "user", "content": [{"type": "hologram"}]}]}

    assert body == again(body)


def test_own_fields_of_messages():
    """The fields of a message item that we do not know come back."""
    body = {"input": [{**user("a"), "id": "msg_1", "status": "completed"}]}
    content = [{"type": "input_text", "text": "a"}]

    assert {"input": [{**body["input"][0], "content": content}]} == again(body)


def test_foreign_history():
    """Parts of another dialect: what can be said is, the rest has a warning with its path."""
    call = encode_request(
        Request(
            messages=(
                Message.user(["Look", Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")]),
                Message.assistant(
                    [
                        Thinking(text="hm", signature="S", extra={"anthropic_messages": {}}),
                        Text(text="A cat"),
                        ToolCall(id="t", name="f", arguments={"a": 1}),
                    ]
                ),
                Message.tool_result("t", {"ok": True}, name="f"),
            )
        )
    )

    assert [item.get("type", "message") for item in call.body["input"]] == [
        "message",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert [warning.path for warning in call.warnings] == ["messages[1].content[0]"]


def test_result_of_custom_call():
    """The kind of the result follows from the call it answers."""
    body, _ = say(
        Message.assistant(ToolCall(id="c", name="f", raw_arguments="ls", type="custom")),
        Message.tool_result("c", "ok"),
    )

    assert [i["type"] for i in body["input"]] == ["custom_tool_call", "custom_tool_call_output"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"input": 5}, "input"),
        ({"input": [5]}, "input[0]"),
        ({"input": [{}]}, "input[0].role"),
        ({"input": [{"role": 5, "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
            "input[0].content[0].text",
        ),
        ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
        (
            {"input": [{"type": "function_call_output", "call_id": "c", "output": 5}]},
            "input[0].output",
        ),
        ({"instructions": 5}, "instructions"),
    ],
)
def test_wrong_types(body, path):
    """A wrong type is a 400 that names the place."""
    with pytest.raises(InvalidRequestError) as caught:
        read(**body)

    assert caught.value.status_code == 400
    assert caught.value.message.startswith(f"{path}: ")


def items_of(*parts, role="assistant", **options):
    losses = WarningList()
    encoder = ItemEncoder(losses, **options)
    encoder.message(role, parts)
    return encoder.items, [warning.code for warning in losses.warnings]


def answer(*parts):
    return items_of(*parts, response_id="resp_7")[0]


def parts_of(item):
    return read_item(item, lambda: "made")


def test_message_items_are_told_apart():
    """Two message items, one of them with two parts; in a request, one text is a string."""
    items = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": t}]}
        for t in "ab"
    ]
    items[1]["content"].append({"type": "refusal", "refusal": "no"})
    items[1] |= {"id": "msg_1", "status": "completed", "phase": "commentary"}

    parts = [part for item in items for part in parts_of(item)]

    assert [part.text for part in parts] == ["a", "b", "no"]
    assert items_of(*parts)[0] == [{**items[0], "content": "a"}, items[1]]
    assert items == answer(*parts)


def test_unmarked_texts_share_an_item():
    """Texts from elsewhere are one message, until something else stands between them."""
    call = ToolCall(id="c", name="f")

    items = answer(Text(text="a"), Text(text="b"), call, Refusal(text="no"))

    assert [item["type"] for item in items] == ["message", "function_call", "message"]
    assert [item["id"] for item in items] == ["msg_7_0", "fc_7_1", "msg_7_2"]
    usual = {"type": "output_text", "annotations": [], "logprobs": []}
    assert [{**usual, "text": t} for t in "ab"] == items[0]["content"]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "message", "role": "assistant", "content": []},
        {"type": "message", "role": "assistant", "content": None},
        {"type": "message", "role": "assistant", "content": [{"type": "hologram"}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "x", "~item": 1}],
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
    parts = parts_of(item)

    assert [hosted_use(item)] == parts
    assert parts[0].data == item
    if item is not None:
        assert [item] == items_of(*parts)[0]


def test_opaque_of_others():
    """Another dialect's block is left out with a warning."""
    part = Opaque(dialect="anthropic_messages", data={})

    assert items_of(part) == ([], ["foreign_block_dropped"])


def test_results_beside_text():
    """A user's message may hold results: each is an item, in its place."""
    parts = (ToolResult(tool_call_id="c", content="x"), Text(text="go on"))

    items, codes = items_of(*parts, role="user")

    assert [item.get("type") for item in items] == ["function_call_output", None]
    assert codes == []


def test_wrong_content():
    """In a request a wrong type is an error that names the place."""
    with pytest.raises(DecodeError) as caught:
        decode_turn({"role": "assistant", "content": 5}, "input[0]", marked=False)

    assert caught.value.path == "input[0].content"


def test_what_other_models_said_is_one_text_an_item():
    """Only an item with the id it was given may hold a list of parts."""
    said = Message.assistant([Text(text="a"), Text(text="b"), Refusal(text="no")])

    body, told = say(Message.user("hi"), said)

    assert body["input"][1:] == [
        {"type": "message", "role": "assistant", "content": "a"},
        {"type": "message", "role": "assistant", "content": "b"},
        {"type": "message", "role": "assistant", "content": "no"},
    ]
    assert told == ["refusal_as_text"]


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}],
        [{"type": "refusal", "refusal": "no"}],
        [{"type": "output_text", "text": "a", "annotations": []}],
    ],
)
def test_a_list_without_an_id_comes_back(content):
    """What a client wrote so is written so again."""
    item = {"type": "message", "role": "assistant", "content": content}
    body = {"input": [user("hi"), item]}

    assert again(body) == body


def test_a_message_without_its_thought_has_no_id():
    """Without the thought it came with, a message has no id, and so no list of parts.

    Field bug 39.
    """
    item = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "phase": "commentary",
        "content": [{"type": "output_text", "text": "a", "annotations": []}],
    }
    own = {"id": "msg_1", "status": "completed", "phase": "commentary"}
    free = {NAME: {"~item": {"phase": "commentary"}, "annotations": []}}

    (text,) = decode_turn(item, "", marked=True, new_id=str)
    assert text.extra[NAME]["~item"] == own
    freed = msgspec.structs.replace(text, extra=free)
    assert say(Message.assistant([text]))[0]["input"] == [item]
    assert say(Message.assistant([freed]))[0]["input"] == [
        {"type": "message", "role": "assistant", "content": "a", "phase": "commentary"}
    ]
