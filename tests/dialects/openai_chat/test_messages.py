"""Messages."""

import pytest

from interlingua.dialects.openai_chat.facts import ChatQuirks
from interlingua.dialects.openai_chat.messages import (
    decode_assistant,
    decode_messages,
    encode_assistant,
    encode_messages,
)
from interlingua.spec.content import (
    Image,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.errors import DecodeError
from interlingua.spec.messages import Message
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields
from interlingua.wire.tool_calls import counting_ids

NAME = "openai_chat"
IMAGE = {"type": "image_url", "image_url": {"url": "https://x/a.png"}}


def encode(*messages, **quirks):
    losses = WarningList()
    wire = encode_messages(messages, ChatQuirks(**quirks), losses)
    return wire, [(warning.code, warning.path) for warning in losses.warnings]


def call(name="f", call_id="c1"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


@pytest.mark.parametrize(
    "wire",
    [
        {"role": "system", "content": "a"},
        {"role": "developer", "content": "a"},
        {"role": "user", "content": "a", "name": "ann"},
        {"role": "user", "content": ""},
        {"role": "user", "content": None, "name": None},
        {"role": "user"},
        {"role": "user", "content": []},
        {"role": "user", "content": [{"type": "text", "text": "a"}, IMAGE]},
        {"role": "user", "content": "a", "images": ["aGk="]},
        {"role": "system", "content": [IMAGE]},
        {"role": "assistant", "content": "a", "prefix": True},
        {"role": "assistant", "content": [], "tool_calls": [call()]},
        {"role": "assistant", "content": None},
        {"role": "assistant", "tool_calls": [call()]},
        {"role": "assistant", "content": None, "reasoning_content": "hm"},
        {"role": "assistant", "content": [IMAGE, {"type": "text", "text": "a"}]},
        {"role": "assistant", "content": "a", "tool_calls": None, "annotations": []},
        {"role": "tool", "tool_call_id": "c1", "content": "a"},
        {"role": "tool", "tool_call_id": "c1", "content": "a", "name": "f"},
        {"role": "tool", "tool_call_id": "c1", "content": []},
        {"role": "tool", "tool_call_id": "c1", "content": None},
        {"role": "tool", "tool_call_id": "c1"},
        {"role": "tool", "tool_call_id": "", "content": "a"},
        {"role": "tool", "content": "a"},
        {"role": "tool", "tool_call_id": "c1", "content": [IMAGE]},
        {"role": "function", "name": "f", "content": "a"},
        "no message at all",
    ],
)
def test_every_form_comes_back(wire):
    """Each message is written back as it was read, without a warning."""
    assert encode(*decode_messages([wire])) == ([wire], [])


def test_roles():
    """One message is one message; a tool message holds one result."""
    messages = decode_messages(
        [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": "a", "tool_calls": [call()]},
            {"role": "tool", "tool_call_id": "c1", "content": "r", "name": "f"},
        ]
    )

    assert messages == (
        Message.system("s"),
        Message.user("u"),
        Message(
            role="assistant",
            content=(Text(text="a"), ToolCall(id="c1", name="f", raw_arguments="{}")),
        ),
        Message(
            role="tool",
            content=(
                ToolResult(tool_call_id="c1", content="r", name="f", extra={NAME: {"name": "f"}}),
            ),
        ),
    )
    assert encode(*messages)[0][3]["name"] == "f"
    assert "name" not in encode(messages[2], Message.tool_result("c1", "r", name="f"))[0][1]


def test_tool_content_as_a_list_of_one_text_is_the_text():
    """A list of one text is the text (field bug 26)."""
    wire = {
        "role": "tool",
        "tool_call_id": "c1",
        "content": [{"type": "text", "text": "r"}],
    }

    assert decode_messages([wire]) == (Message.tool_result("c1", "r"),)


def test_system_messages_stay_in_place():
    """A system message in the middle is not moved (field bug 30)."""
    roles = ["user", "system", "user"]
    wire = [{"role": role, "content": "x"} for role in roles]

    assert [message.role for message in decode_messages(wire)] == roles
    assert encode(*decode_messages(wire))[0] == wire


def test_calls_without_ids_are_linked_to_their_results():
    """Ids are made by place; results without one answer the calls in order."""
    bare = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    wire = [
        {"role": "assistant", "content": None, "tool_calls": [bare, {**bare, "id": ""}]},
        {"role": "tool", "content": "1"},
        {"role": "tool", "tool_call_id": "", "content": "2"},
        {"role": "assistant", "content": None, "function_call": {"name": "g", "arguments": ""}},
        {"role": "function", "name": "g", "content": "3"},
    ]
    messages = decode_messages(wire)
    calls = [call.id for message in messages for call in message.tool_calls]
    results = [
        part.tool_call_id for m in messages for part in m.content if isinstance(part, ToolResult)
    ]

    assert calls == results == ["call_1", "call_2", "call_3"]
    assert encode(*messages) == (wire, [])


def test_each_result_is_a_message():
    """Several results of one message become several, before what else the user says."""
    message = Message(
        role="user",
        content=(
            Text(text="Go on."),
            ToolResult(tool_call_id="a", content="1"),
            ToolResult(tool_call_id="b", content={"n": 2}),
        ),
    )

    assert encode(message) == (
        [
            {"role": "tool", "tool_call_id": "a", "content": "1"},
            {"role": "tool", "tool_call_id": "b", "content": '{"n":2}'},
            {"role": "user", "content": "Go on."},
        ],
        [],
    )


def test_results_in_an_assistant_message_follow_it():
    """A tool the provider ran itself: the call, then its result."""
    message = Message(
        role="assistant",
        content=(ToolCall(id="a", name="f"), ToolResult(tool_call_id="a", content="1")),
    )

    assert [item["role"] for item in encode(message)[0]] == ["assistant", "tool"]


def test_media_of_results_follow_in_a_user_message():
    """Text stays; images come after all the results of the turn, with a warning (field bug 25)."""
    image = Image(url="https://x/a.png")
    messages = (
        Message.tool_result("a", (Text(text="Seen:"), image)),
        Message.tool_result("b", (image,)),
        Message.assistant("Nice."),
    )
    wire, warnings = encode(*messages)

    assert wire[:2] == [
        {"role": "tool", "tool_call_id": "a", "content": "Seen:"},
        {
            "role": "tool",
            "tool_call_id": "b",
            "content": "The output is in the next user message.",
        },
    ]
    assert wire[2] == {
        "role": "user",
        "content": [
            {"type": "text", "text": "Output of tool call a:"},
            IMAGE,
            {"type": "text", "text": "Output of tool call b:"},
            IMAGE,
        ],
    }
    assert wire[3]["role"] == "assistant"
    assert warnings == [
        ("tool_media_moved", "messages[0].content[0].content[1]"),
        ("tool_media_moved", "messages[1].content[0].content[0]"),
    ]


def test_servers_that_take_media_in_results():
    """With the quirk they stay in place."""
    message = Message.tool_result("a", (Image(url="https://x/a.png"),))

    assert encode(message, tool_result_media=True) == (
        [{"role": "tool", "tool_call_id": "a", "content": [IMAGE]}],
        [],
    )


def test_error_results_say_so():
    """There is no flag for it, so the text says it (field bug 21)."""
    wire, warnings = encode(Message.tool_result("a", "no such file", is_error=True))

    assert wire[0]["content"] == "Error: no such file"
    assert warnings == [("tool_error_as_text", "messages[0].content[0]")]
    assert encode(Message.tool_result("a", (), is_error=True))[0][0]["content"] == "Error"


def test_foreign_thinking_is_left_out():
    """Thoughts go back only to who made them."""
    foreign = Thinking(text="hm", signature="S", extra={"anthropic_messages": {}})
    own = Thinking(text="hm", extra={NAME: {"~fields": ["reasoning"]}})

    assert encode(Message.assistant((foreign, "a"))) == (
        [{"role": "assistant", "content": "a"}],
        [("foreign_thinking_dropped", "messages[0].content[0]")],
    )
    assert encode(Message.assistant((own, "a"))) == (
        [{"role": "assistant", "reasoning": "hm", "content": "a"}],
        [],
    )


def test_reasoning_content_is_sent_back():
    """During a tool loop the server wants its own thoughts again (field bug 40)."""
    wire = {
        "role": "assistant",
        "content": None,
        "reasoning_content": "hm",
        "tool_calls": [call()],
    }

    assert encode(*decode_messages([wire])) == ([wire], [])


def test_a_message_of_thinking_alone_is_not_sent_empty():
    """If nothing is left of a message, it is not sent (field bug 42)."""
    wire, warnings = encode(Message.assistant(Thinking(text="hm")), Message.user("u"))

    assert wire == [{"role": "user", "content": "u"}]
    assert [code for code, _ in warnings] == [
        "foreign_thinking_dropped",
        "emptied_message_dropped",
    ]


def test_plain_text_is_a_string_for_servers_that_want_one():
    """Servers that want a string get one, if all of it is plain text (field bug 33)."""
    several = Message.assistant(("a", "b"))

    assert isinstance(encode(several)[0][0]["content"], list)
    assert encode(several, flat_content=True)[0][0]["content"] == "ab"
    assert isinstance(
        encode(Message.user(("a", Image(url="u"))), flat_content=True)[0][0]["content"], list
    )


def test_media_only_from_the_user():
    """Elsewhere they are left out with a warning."""
    for message in (
        Message.assistant(("a", Image(url="u"))),
        Message.system(("a", Image(url="u"))),
    ):
        wire, warnings = encode(message)
        assert wire[0]["content"] == "a"
        assert warnings == [("image_dropped", "messages[0].content[1]")]


def test_developer_role():
    """Servers that do not know it get a system message."""
    assert encode(Message.developer("d"))[0][0]["role"] == "developer"
    assert encode(Message.developer("d"), developer_role=False) == (
        [{"role": "system", "content": "d"}],
        [("developer_as_system", "messages[0]")],
    )


def test_text_in_a_tool_message():
    """A tool message holds only results; other text is the user's."""
    assert encode(Message(role="tool", content=(Text(text="a"),))) == (
        [{"role": "user", "content": "a"}],
        [("tool_text_as_user", "messages[0]")],
    )


def test_tagged_thoughts_go_back_into_the_text():
    """As the server wrote them."""
    thought = Thinking(text="hm", extra={NAME: {"~tags": {"before": "", "closed": True}}})

    assert encode(Message.assistant((thought, "a")))[0][0]["content"] == "<think>hm</think>a"


@pytest.mark.parametrize(
    ("wire", "path"),
    [
        (5, "messages[0]"),
        ({"role": "boss", "content": "x"}, "messages[0].role"),
        ({"content": "x"}, "messages[0].role"),
        ({"role": "user", "content": 5}, "messages[0].content"),
        ({"role": "user", "content": [5]}, "messages[0].content[0]"),
        ({"role": "user", "content": "x", "name": 5}, "messages[0].name"),
        ({"role": "tool", "tool_call_id": 5, "content": "x"}, "messages[0].tool_call_id"),
        ({"role": "assistant", "tool_calls": 5}, "messages[0].tool_calls"),
    ],
)
def test_wrong_types_name_their_path(wire, path):
    """A message that cannot be read is refused, and the error says where."""
    with pytest.raises(DecodeError) as caught:
        decode_messages([wire])

    assert caught.value.path == path


def test_foreign_opaque_parts_are_left_out():
    """Another dialect's own block cannot be said."""
    foreign = Opaque(dialect="gemini_generate", data={})

    assert encode(Message.user(("a", foreign))) == (
        [{"role": "user", "content": "a"}],
        [("foreign_block_dropped", "messages[0].content[1]")],
    )


# The assistant's message.


def read(wire):
    fields = Fields(wire, strict=False)
    return decode_assistant(fields, counting_ids(), "~received"), fields.left


def write(*parts, extra=None):
    message = Message(role="assistant", content=parts, extra=extra or {})
    return encode_assistant(message, WarningList(), answer=True)


def test_order_of_parts():
    """Thought, content, refusal, calls, whatever the order of the fields."""
    parts, left = read(
        {
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
            "refusal": "no",
            "content": "a",
            "reasoning": "hm",
        }
    )

    assert [part.kind for part in parts] == ["thinking", "text", "refusal", "tool_call"]
    assert left == {}


def test_an_answer_may_be_a_list_with_thoughts_among_its_parts():
    """An answer may be a list, with thoughts among its parts (field bug 92)."""
    wire = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "a"},
    ]
    parts, left = read({"content": wire})

    assert [part.kind for part in parts] == ["thinking", "text"]
    assert write(*parts, extra={NAME: left})["content"] == wire


def test_thoughts_of_others_are_shown_in_answers():
    """A server that relays another model's thought says it in the usual field."""
    assert write(Thinking(text="hm", signature="S"), Text(text="a")) == {
        "role": "assistant",
        "reasoning_content": "hm",
        "content": "a",
    }
    assert write(Thinking(redacted=True, data="x")) == {"role": "assistant", "content": None}


def test_odd_calls_keep_their_place():
    """A call we could not read stays among the others."""
    odd = {"id": "x", "type": "mcp"}
    wire = [odd, {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    parts, _ = read({"content": None, "tool_calls": wire})

    assert isinstance(parts[0], Opaque)
    assert isinstance(parts[1], ToolCall)
    assert write(*parts)["tool_calls"] == wire


def test_a_message_with_nothing_left_is_not_sent():
    """What was all of it could not be said."""
    block = Opaque(dialect="elsewhere", data={})

    wire, told = encode(Message.user([block]), Message.user("hi"))

    assert wire == [{"role": "user", "content": "hi"}]
    assert told == [
        ("foreign_block_dropped", "messages[0].content[0]"),
        ("emptied_message_dropped", "messages[0]"),
    ]


def test_system_blocks_of_others_are_plain_text():
    """A list with cache marks becomes text parts without them; one block becomes a string.

    Field bug 29.
    """
    marked = {"anthropic_messages": {"cache_control": {"type": "ephemeral"}}}
    blocks = [Text(text="a", extra=marked), Text(text="b")]

    assert encode(Message.system(blocks))[0] == [
        {"role": "system", "content": [{"type": "text", "text": text} for text in "ab"]}
    ]
    assert encode(Message.system(blocks), flat_content=True)[0][0]["content"] == "ab"
    assert encode(Message.system(blocks[:1]))[0][0]["content"] == "a"
