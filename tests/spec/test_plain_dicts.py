"""Messages as plain dicts."""

import contextlib
import copy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlingua.conformance import strategies
from interlingua.spec.content import Image, Text, ToolCall, ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.plain_dicts import to_messages

CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        ],
        "metadata": {"screen": 3},
    },
    {
        "role": "assistant",
        "content": "",
        "toolCalls": [{"id": "c1", "name": "look", "args": {"at": "it"}}],
    },
    {"role": "tool", "toolCallId": "c1", "content": "a cat"},
    {"role": "assistant", "content": "A cat."},
]


TEXT = {"type": "text", "text": "a"}


def test_a_conversation():
    """Each field goes to its place, and what was given is not changed."""
    given = copy.deepcopy(CONVERSATION)

    assert to_messages(given) == (
        Message.system("Be brief."),
        Message(
            role="user",
            content=(Text(text="What is this?"), Image(url="https://example.com/a.png")),
            metadata={"screen": 3},
        ),
        Message(
            role="assistant",
            content=(ToolCall(id="c1", name="look", arguments={"at": "it"}),),
        ),
        Message(role="tool", content=(ToolResult(tool_call_id="c1", content="a cat"),)),
        Message.assistant("A cat."),
    )
    assert given == CONVERSATION


def test_snake_case_and_our_own():
    """Snake case is read too; messages of ours and texts are taken as they are."""
    ours = Message.user("Hi")
    call = {"id": "1", "name": "f"}
    found = to_messages(
        [
            ours,
            "And?",
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "name": "f", "content": {"n": 1}},
        ]
    )

    assert found[0] is ours
    assert found[1] == Message.user("And?")
    assert found[2].tool_calls == (ToolCall(id="1", name="f"),)
    assert found[3].content == (ToolResult(tool_call_id="1", name="f", content={"n": 1}),)
    assert to_messages("Hi") == (ours,)


def test_what_a_client_of_openai_dumps_is_read():
    """Fields that are None are ignored; those that nobody reads back are metadata."""
    dumped = {
        "role": "assistant",
        "content": "Hi",
        "refusal": None,
        "annotations": [{"type": "url_citation"}],
        "audio": None,
        "function_call": None,
        "tool_calls": None,
    }
    (message,) = to_messages([dumped])

    assert message == replace(
        Message.assistant("Hi"), metadata={"annotations": [{"type": "url_citation"}]}
    )


def test_one_message_needs_no_list():
    """A dict alone is a conversation of one, as a string and a `Message` are."""
    assert to_messages({"role": "user", "content": "hi"}) == to_messages("hi")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("text", "text"),
        (None, ()),
        ([], []),
        ([1, 2], [1, 2]),
        ({"a": 1}, {"a": 1}),
        ([{"type": "text", "text": "a"}], "a"),
        ([TEXT, TEXT], (Text(text="a"), Text(text="a"))),
        ([{"type": "image_url", "image_url": "data:,x"}], (Image(url="data:,x"),)),
    ],
)
def test_results(content, expected):
    """Text, JSON, or parts."""
    (message,) = to_messages([{"role": "tool", "toolCallId": "1", "content": content}])

    assert message.content == (ToolResult(tool_call_id="1", content=expected),)


def test_detail_of_an_image():
    """It is kept."""
    item = {"type": "image_url", "image_url": {"url": "u", "detail": "low"}}
    (message,) = to_messages([{"role": "user", "content": [item, "and text"]}])

    assert message.content == (Image(url="u", detail="low"), Text(text="and text"))


@given(strategies.conversations())
def test_the_json_form_of_ours(conversation):
    """Is read back as it was."""
    assert to_messages(msgspec.to_builtins(conversation)) == conversation


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ([{"role": "robot", "content": "x"}], r"messages\[0\]\.role"),
        ([{"content": "x"}], r"messages\[0\]\.role"),
        (["x", 5], r"messages\[1\] must be a Message, a string or a dict, not a int"),
        ([{"role": "user", "content": 5}], r"messages\[0\]\.content"),
        ([{"role": "user", "content": [{"type": "video"}]}], r"content\[0\] \('video'\)"),
        ([{"role": "user", "content": [{"type": "text"}]}], r"content\[0\]"),
        ([{"role": "user", "content": ["x", 5]}], r"content\[1\]"),
        ([{"role": "user", "content": [{"kind": "no"}]}], r"messages\[0\] is not the JSON form"),
        ([{"role": "user", "content": "x", "toolCall": []}], "toolCall"),
        ([{"role": "user", "content": "x", "metadata": 5}], "metadata"),
        ([{"role": "user", "content": "x", "name": 5}], "name"),
        ([{"role": "assistant", "toolCalls": {}}], "tool_calls must be a list"),
        ([{"role": "assistant", "toolCalls": [{"id": "1"}]}], r"tool_calls\[0\]"),
        ([{"role": "assistant", "toolCalls": [{"id": "1", "name": "f", "args": "x"}]}], "args"),
        ([{"role": "tool", "content": "x"}], "tool_call_id"),
        ([{"role": "user", "content": [TEXT | {"cache_control": {}}]}], "'cache_control'"),
        ([{"role": "user", "content": [{"type": "input_audio"}]}], r"content\[0\]"),
        ([{"role": "assistant", "function_call": {"name": "f"}}], "'function_call'"),
        ([{5: 6, "role": "user"}], "unknown field 5"),
        (b"hi", "a list of messages"),
        (5, "a list of messages"),
    ],
)
def test_what_cannot_be_read(given, where):
    """The error says which message, and what is wrong with it."""
    with pytest.raises(ConfigurationError, match=where):
        to_messages(given)


FIELDS = ("role", "content", "toolCalls", "toolCallId", "metadata")
INNER = ("type", "text", "image_url", "url", "id", "name", "args", "kind")
values = st.recursive(
    st.none() | st.integers() | st.sampled_from(("user", "tool", "text", "image_url", "x")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from((*FIELDS, *INNER)) | st.integers(), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(
    st.lists(values, max_size=2)
    | st.tuples(st.dictionaries(st.sampled_from((*FIELDS, "name")), values))
)
def test_hostile_input(given):
    """Whatever is given, it is read as messages that can be said in JSON, or refused by us."""
    with contextlib.suppress(ConfigurationError):
        msgspec.json.encode(to_messages(given))
