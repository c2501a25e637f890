"""The common opening of every encoder."""

import pytest

from interlingua import dialects
from interlingua.prepare.instructions import JSON_INSTRUCTION
from interlingua.prepare.prepare import prepare
from interlingua.providers.catalog.profiles import profile_for
from interlingua.spec.content import Image, Refusal, Text, Thinking, ToolCall, ToolResult
from interlingua.spec.contracts import NEUTRAL_PROFILE, Profile
from interlingua.spec.errors import UnsupportedError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat
from interlingua.spec.warnings import check_losses
from support.facts import FACTS

CALL = ToolCall(id="a", name="look", arguments={})
ASKED = Message.user("hi")


def prepared(request, profile=NEUTRAL_PROFILE, dialect="openai_responses"):
    ready = prepare(request, profile, FACTS[dialect])
    return ready.request, ready.options, [warning.code for warning in ready.warnings]


@pytest.mark.parametrize("dialect", dialects.names())
def test_a_sound_request_is_the_same_object(dialect):
    """Nothing is made anew where nothing has to change."""
    answer = Message(role="tool", content=(ToolResult(tool_call_id="a", content="1"),))
    request = Request(model="m", messages=(ASKED, Message.assistant([CALL]), answer))

    ready, options, told = prepared(request, dialect=dialect)

    assert ready is request
    assert (options, told) == ({}, [])


def test_settings_then_history():
    """Both are told of, the settings first."""
    request = Request(model="m", messages=(ASKED, Message.assistant([CALL])), temperature=0.5)

    ready, _, told = prepared(request, Profile(sampling=False))

    assert told == ["temperature_dropped", "missing_result_added"]
    assert len(ready.messages) == 3
    assert ready.temperature is None


@pytest.mark.parametrize("option", ["previous_response_id", "conversation"])
def test_a_stored_conversation_may_begin_with_results(option):
    """What the server keeps need not be sent again."""
    answer = Message(role="tool", content=(ToolResult(tool_call_id="a", content="1"),))
    kept = Request(
        model="m", messages=(answer,), provider_options={"openai_responses": {option: "x"}}
    )
    lost = Request(model="m", messages=(ASKED, answer))

    assert prepared(kept)[0] is kept
    assert prepared(lost)[2] == ["orphan_result_dropped"]


def test_the_profile_speaks_for_its_model():
    """Its id pattern, its system messages, its thinking."""
    history = (
        ASKED,
        Message.assistant([CALL]),
        Message(role="tool", content=(ToolResult(tool_call_id="a", content="1"),)),
        Message.system("be brief"),
    )
    request = Request(model="mistral-large", messages=history)

    ready, _, told = prepared(
        request, profile_for("openai_chat", "mistral-large", "mistral"), "openai_chat"
    )

    assert told == ["call_id_mapped"]
    assert len(ready.messages[1].tool_calls[0].id) == 9
    folded = prepared(request, Profile(system_mid_conversation=False), "openai_chat")
    assert folded[2] == ["system_folded"]
    assert folded[0].messages[-1] == Message(role="user", content=(Text(text="be brief"),))


def test_every_loss_is_told_by_its_place_in_what_was_given():
    """Though media were left out before, and messages after, and the encoder sees neither."""
    picture = Image(data=b"\x89PNG", media_type="image/png")
    request = Request(
        model="m",
        messages=(
            Message.assistant([Thinking(text="hm", signature="s", extra={"elsewhere": {}})]),
            Message.user([picture, Text(text="so"), Refusal(text="no")]),
            Message.assistant([CALL]),
            Message.tool_result("a", "no", is_error=True),
        ),
    )

    call = dialects.get("openai_responses").encode_request(request, Profile(image_types=()))

    assert [(warning.code, warning.path) for warning in call.warnings] == [
        ("image_dropped", "messages[1].content[0]"),
        ("foreign_thinking_dropped", "messages[0].content[0]"),
        ("refusal_as_text", "messages[1].content[2]"),
        ("tool_error_as_text", "messages[3].content[0]"),
    ]


JSON_MODE = ResponseFormat(type="json")
WITHOUT_JSON_MODE = [name for name, facts in FACTS.items() if not facts.json_mode]


def json_request(*messages):
    return Request(model="m", messages=messages, response_format=JSON_MODE, max_tokens=5)


def test_two_dialects_have_no_json_mode():
    """The tests of the instruction have a dialect to run on."""
    assert WITHOUT_JSON_MODE == ["anthropic_messages", "bedrock_converse"]


@pytest.mark.parametrize("dialect", WITHOUT_JSON_MODE)
@pytest.mark.parametrize("prompt", [(), ("",), ("Be kind.",), ("Be kind.", "Be brief.")])
def test_json_mode_becomes_an_instruction(dialect, prompt):
    """The system prompt ends with it, and a warning says so; only `strict` refuses."""
    request = json_request(*map(Message.system, prompt), ASKED)

    call = dialects.get(dialect).encode_request(request, stream=False)
    sent = dialects.get(dialect).decode_request(call)

    is_dropped = prompt == ("",) and not FACTS[dialect].history.blank_prompts
    dropped = [("empty_message_dropped", "messages[0]")] if is_dropped else []
    *system, asked = sent.messages
    texts = [part.text for message in system for part in message.content]
    assert texts == [*filter(None, prompt), JSON_INSTRUCTION]
    assert asked.text == "hi"
    assert sent.response_format is None
    assert [(warning.code, warning.path) for warning in call.warnings] == [
        *dropped,
        ("json_mode_as_instruction", "response_format"),
    ]
    check_losses(call.warnings, request, "content")
    with pytest.raises(UnsupportedError, match="json_mode_as_instruction"):
        check_losses(call.warnings, request, "strict")


@pytest.mark.parametrize("dialect", sorted(FACTS.keys() - WITHOUT_JSON_MODE))
def test_json_mode_is_sent_where_there_is_one(dialect):
    """The format arrives, and the messages are as they were."""
    request = json_request(ASKED)

    call = dialects.get(dialect).encode_request(request, stream=False)
    sent = dialects.get(dialect).decode_request(call)

    assert prepare(request, NEUTRAL_PROFILE, FACTS[dialect]).request is request
    assert sent.response_format.type == "json"
    assert [message.text for message in sent.messages] == ["hi"]
    assert call.warnings == ()


@pytest.mark.parametrize("dialect", WITHOUT_JSON_MODE)
@pytest.mark.parametrize("earlier", [(), (Message(role="user", content=()),)])
def test_the_instruction_does_not_shift_the_paths_of_warnings(dialect, earlier):
    """Warnings of the encoder name the caller's messages, also where a rule left one out."""
    named = Message(role="user", content="hi", name="Ada")

    call = dialects.get(dialect).encode_request(json_request(*earlier, named), stream=False)

    paths = [warning.path for warning in call.warnings if warning.code == "name_dropped"]
    assert [path.partition(".")[0] for path in paths] == [f"messages[{len(earlier)}]"]


@pytest.mark.parametrize("dialect", WITHOUT_JSON_MODE)
def test_the_instruction_is_added_once(dialect):
    """A prepared request asks for no JSON mode any more."""
    once, _, _ = prepared(json_request(ASKED), dialect=dialect)

    assert prepared(once, dialect=dialect)[0] is once
