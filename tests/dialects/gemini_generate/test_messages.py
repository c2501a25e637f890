"""Messages <-> `systemInstruction` and `contents`."""

import pytest

from interlingua.dialects import gemini_generate
from interlingua.dialects.gemini_generate.request import encode_messages
from interlingua.spec.content import Opaque, Text, ToolCall, ToolResult
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList

NAME = "gemini_generate"
USER = {"role": "user", "parts": [{"text": "hi"}]}


def decode(**body):
    return gemini_generate.decode_request(WireCall(body=body))


def encode(*messages):
    return gemini_generate.encode_request(Request(model="m", messages=messages))


def test_roles():
    """A content of results alone is a tool message; `model` is the assistant."""
    request = decode(
        contents=[
            USER,
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
            {"role": "function", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
        ]
    )

    assert [message.role for message in request.messages] == ["user", "assistant", "tool", "tool"]


@pytest.mark.parametrize(
    "contents",
    [
        [],
        [{"parts": [{"text": "hi"}]}],
        [{"role": None, "parts": [{"text": "hi"}]}],
        [{"role": "user"}],
        [{"role": "user", "parts": None}],
        [
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "function", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
        ],
        [{"role": "invalid_role", "parts": [{"text": "hi"}]}],
        [{**USER, "unknown": [1]}],
        ["hi"],
    ],
)
def test_contents_come_back_exactly(contents):
    """Missing, empty, odd and unknown fields of a content are the same again."""
    body = {"contents": contents}

    assert gemini_generate.encode_request(decode(**body)).body == body


@pytest.mark.parametrize(
    "system",
    [
        None,
        {},
        {"parts": [{"text": "Be brief."}]},
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
        {"role": "model", "parts": [{"text": "a"}]},
        {"text": "no part of a content"},
    ],
)
def test_system_instructions_come_back_exactly(system):
    """Whatever role and parts a client gave them."""
    body = {"systemInstruction": system, "contents": [USER]}

    assert gemini_generate.encode_request(decode(**body)).body == body


def test_system_instruction_is_a_leading_system_message():
    """It comes first, in its own message; a string stands for one text."""
    expected = (Message.system("Be brief."), Message.user("hi"))

    assert decode(
        systemInstruction={"parts": [{"text": "Be brief."}]}, contents=[USER]
    ).messages == (expected)
    assert decode(systemInstruction="Be brief.", contents=[USER]).messages == expected


def test_leading_instructions_are_joined():
    """All that comes before the first turn is one instruction; developers are told apart."""
    call = encode(Message.system("a"), Message.developer("b"), Message.user("hi"))

    assert call.body["systemInstruction"] == {"parts": [{"text": "a"}, {"text": "b"}]}
    assert call.body["contents"] == [USER]
    assert [(w.code, w.path) for w in call.warnings] == [("developer_as_system", "messages[1]")]


def test_later_instructions_stay_in_place():
    """A system message in the middle is said by the user there, with a warning (field bug 30)."""
    call = encode(Message.user("hi"), Message.system("now in French"), Message.user("hi"))

    said = [{"text": "now in French"}, {"text": "hi"}]
    assert call.body["contents"] == [USER, {"role": "user", "parts": said}]
    assert "systemInstruction" not in call.body
    assert [(w.code, w.path) for w in call.warnings] == [("system_folded", "messages[1]")]


def test_one_object_stands_for_an_array():
    """The API takes an object where an array of one belongs, and so do we."""
    request = decode(systemInstruction={"parts": {"text": "a"}}, contents={"parts": {"text": "b"}})

    assert [message.text for message in request.messages] == ["a", "b"]


def test_snake_case_is_read():
    """Known names may come in snake case; data of the caller's own is not renamed."""
    arguments = {"first_name": "x", "inline_data": {"mime_type": 1}}
    request = decode(
        system_instruction={"parts": [{"text": "a"}]},
        contents=[
            {
                "role": "model",
                "parts": [
                    {
                        "function_call": {"name": "f", "args": arguments},
                        "thought_signature": "U0lH",
                    }
                ],
            },
            {
                "role": "user",
                "parts": [{"function_response": {"name": "f", "response": arguments}}],
            },
            {
                "role": "user",
                "parts": [{"inline_data": {"mime_type": "image/png", "data": "AAE="}}],
            },
        ],
    )

    body = gemini_generate.encode_request(request).body

    assert body["contents"] == [
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "f", "args": arguments}, "thoughtSignature": "U0lH"}
            ],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": arguments}}]},
        {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAE="}}]},
    ]


def test_results_are_linked_to_their_calls():
    """Calls and results without ids are linked by name and order."""
    part = {"functionCall": {"name": "f", "args": {}}}
    answer = {"functionResponse": {"name": "f", "response": {"output": "x"}}}
    request = decode(
        contents=[{"role": "model", "parts": [part, part]}, {"role": "user", "parts": [answer] * 2}]
    )

    calls, results = (message.content for message in request.messages)

    assert [call.id for call in calls] == [result.tool_call_id for result in results]
    assert len({call.id for call in calls}) == 2


def test_conversation_of_another_provider():
    """Calls keep their ids and results take their names from them."""
    call = encode(
        Message.user("hi"),
        Message.assistant([Text(text="one moment"), ToolCall(id="call_A", name="f")]),
        Message(role="tool", content=(ToolResult(tool_call_id="call_A", content="x"),)),
    )

    assert call.body["contents"][1:] == [
        {
            "role": "model",
            "parts": [
                {"text": "one moment"},
                {"functionCall": {"name": "f", "args": {}, "id": "call_A"}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "call_A", "name": "f", "response": {"output": "x"}}}
            ],
        },
    ]
    assert call.warnings == ()


def test_names_of_speakers_warn():
    """A message's name has no place here."""
    call = encode(Message.user("hi", name="Ada"))

    assert [(w.code, w.path) for w in call.warnings] == [("name_dropped", "messages[0].name")]


def test_a_bare_string_is_carried():
    """What is no content at all is kept as it is."""
    assert decode(contents=["hi"]).messages[0].content == (Opaque(dialect=NAME, data="hi"),)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"contents": "hi"}, "contents:"),
        ({"contents": [5]}, "contents[0]:"),
        ({"contents": [{"role": 5, "parts": []}]}, "contents[0].role:"),
        ({"contents": [{"role": "user", "parts": "hi"}]}, "contents[0].parts:"),
        ({"contents": [{"role": "user", "parts": [5]}]}, "contents[0].parts[0]:"),
        (
            {"contents": [{"parts": [{"functionResponse": {"name": "f", "parts": ["x"]}}]}]},
            "contents[0].parts[0].functionResponse.parts[0]:",
        ),
        ({"systemInstruction": 5}, "systemInstruction:"),
        ({"systemInstruction": {"parts": [{"text": 5}]}}, "systemInstruction.parts[0].text:"),
    ],
)
def test_wrong_types_name_their_path(body, path):
    """A request that cannot be read is a 400 that says where."""
    with pytest.raises(InvalidRequestError) as caught:
        decode(**body)

    assert caught.value.status_code == 400
    assert caught.value.message.startswith(path)


def test_a_message_with_nothing_left_is_not_sent():
    """What was all of it could not be said."""
    losses = WarningList()
    body = {}

    block = Opaque(dialect="elsewhere", data={})
    encode_messages(Request(messages=(Message.user([block]), Message.user("hi"))), body, losses)

    assert body == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    assert [(warning.code, warning.path) for warning in losses.warnings] == [
        ("foreign_block_dropped", "messages[0].content[0]"),
        ("emptied_message_dropped", "messages[0]"),
    ]


def test_a_malformed_private_key_is_ignored():
    """`extra` may come from a file that somebody edited: no value in it may raise."""
    message = Message(role="user", content="hi", extra={"gemini_generate": {"~absent": 5}})
    body = {}

    encode_messages(Request(messages=[message]), body, WarningList())

    assert body["contents"] == [USER]
