"""Messages."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.conformance.strategies import conversations, media, texts, words
from interlingua.spec.content import Image, Refusal, Text, Thinking, ToolCall, ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.json_form import from_json, to_json
from interlingua.spec.messages import Message, to_parts

CAT = Image(url="https://example.com/cat.png")
CONSTRUCTORS = {
    "system": Message.system,
    "developer": Message.developer,
    "user": Message.user,
    "assistant": Message.assistant,
}


@given(st.text())
def test_text_becomes_one_part(text):
    """Plain text, kept to the character, is a message of one text part."""
    for role, make in CONSTRUCTORS.items():
        assert make(text) == Message(role=role, content=(Text(text=text),))
        assert make(text).text == text


@given(st.lists(words | texts() | media()))
def test_any_iterable_is_content(items):
    """Lists, tuples and generators of strings and parts give the same message."""
    expected = tuple(Text(text=item) if isinstance(item, str) else item for item in items)

    assert Message.user(items).content == expected
    assert Message.user(tuple(items)).content == expected
    assert Message.user(item for item in items).content == expected
    assert Message(role="user", content=items).content == expected
    assert Message(role="user", content=tuple(items)).content == expected


@given(st.lists(words | texts()))
def test_content_given_is_not_changed(items):
    """The caller's list is as it was, and later changes to it do not show."""
    before = list(items)

    message = Message.user(items)
    content = message.content
    assert items == before
    items.append("more")

    assert message.content == content


@given(conversations())
def test_to_parts_is_idempotent(messages):
    """Parts of a message are parts."""
    for message in messages:
        assert to_parts(message.content) == message.content


def test_one_part_is_content():
    """A single part needs no list."""
    assert Message.user(CAT).content == (CAT,)


@pytest.mark.parametrize("content", [5, None, b"bytes", {"text": "hi"}, [1], (1,), [None], [b"x"]])
def test_content_of_another_type_is_refused(content):
    """What is neither text nor parts is an error that names its type."""
    with pytest.raises(ConfigurationError, match="The content of a message"):
        Message.user(content)
    with pytest.raises(ConfigurationError, match="The content of a message"):
        Message(role="user", content=content)


@pytest.mark.parametrize("role", ["", "User", "function", "model", None])
def test_unknown_role_is_refused(role):
    """A role outside the five is an error that lists them."""
    with pytest.raises(ConfigurationError, match="assistant, developer, system, tool, user"):
        Message(role=role, content="hi")


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool", "developer"])
def test_known_roles(role):
    """The five roles are taken."""
    assert Message(role=role).role == role


def test_accessors():
    """Text, calls and thinking are found among the other parts, in order."""
    one = ToolCall(id="1", name="look", arguments={"at": "sky"})
    two = ToolCall(id="2", name="look")
    message = Message.assistant(
        [Thinking(text="a"), "Let ", one, CAT, "me see", Thinking(text="b"), two, Refusal(text="x")]
    )

    assert message.text == "Let me see"
    assert message.tool_calls == (one, two)
    assert message.reasoning == "ab"


def test_accessors_of_an_empty_message():
    """Nothing said is empty text, no calls, and None for thinking."""
    message = Message(role="assistant")

    assert message.text == ""
    assert message.tool_calls == ()
    assert message.reasoning is None


def test_hidden_thinking_is_no_reasoning():
    """Thinking that cannot be read counts as none."""
    assert Message.assistant(Thinking(redacted=True, data="e30=")).reasoning is None


@pytest.mark.parametrize("content", ["", "found", {"a": 0}, 0, None, False, [1, 2]])
def test_tool_result(content):
    """A tool message holds one result, whatever its content."""
    message = Message.tool_result("call_1", content, is_error=True, name="look")

    assert message.role == "tool"
    assert message.content == (
        ToolResult(tool_call_id="call_1", content=content, is_error=True, name="look"),
    )
    assert message.content[0].content == content


def test_user_name():
    """A user may have a name, and an empty one is kept."""
    assert Message.user("hi", name="Ada").name == "Ada"
    assert Message.user("hi", name="").name == ""


@pytest.mark.parametrize("field", Message.__struct_fields__)
def test_messages_are_frozen(field):
    """No field of a message can be set."""
    with pytest.raises(AttributeError):
        setattr(Message.user("hi"), field, None)


def test_replace_keeps_the_rest():
    """A changed copy leaves the original as it was."""
    message = Message.user("hi", name="Ada")

    changed = msgspec.structs.replace(message, content="bye")

    assert (changed.text, changed.name, message.text) == ("bye", "Ada", "hi")


def test_the_id_of_a_tool_call_in_a_message_says_what_to_write():
    """Other libraries have it there; here it is in the result."""
    advice = r"Message\.tool_result\(tool_call_id, content\)"
    with pytest.raises(ConfigurationError, match=advice):
        Message(role="tool", content="4 C", tool_call_id="call_1")
    with pytest.raises(ConfigurationError, match=advice):
        from_json({"role": "tool", "tool_call_id": "call_1"}, Message)
    assert "tool_call_id" not in repr(Message(role="tool"))
    assert b"tool_call_id" not in to_json(Message(role="tool"))


@pytest.mark.parametrize("field", ["image_data", "image_media_type", "id", "result"])
def test_an_unknown_field_of_a_tool_result_says_what_to_write(field):
    """An image is a part of the content."""
    instead = {"image_data": "content=", "image_media_type": "content=", "id": "tool_call_id="}
    with pytest.raises(ConfigurationError, match=instead.get(field, "There are content")):
        ToolResult(tool_call_id="call_1", **{field: b"x"})
    with pytest.raises(ConfigurationError, match="ToolResult: Missing required argument"):
        ToolResult()
