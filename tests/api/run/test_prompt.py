"""What people pass."""

import msgspec
import pytest

from interlingua.api.run.options import (
    TimeoutConfig,
    check_options,
    make_messages,
    make_request,
    policy_of,
    timeouts_of,
)
from interlingua.api.tools.tool import Tool
from interlingua.client.retry_policy import DEFAULT_POLICY, RetryPolicy
from interlingua.spec.content import Image, Text
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import BuiltinTool, Request, ToolChoice, ToolDefinition
from interlingua.wire.json_text import loads

HELLO = (Message.user("hi"),)


def test_a_prompt_or_messages():
    """The system's words come first, before whatever is there."""
    assert make_messages("hi", None, None) == (Message.user("hi"),)
    assert make_messages(Message.user("hi"), None, None) == (Message.user("hi"),)
    first, *others = make_messages(None, ["hi", Message.assistant("yes")], "Be brief.")
    assert (first.role, first.text) == ("system", "Be brief.")
    assert others == [Message.user("hi"), Message.assistant("yes")]


@pytest.mark.parametrize(
    ("prompt", "messages"), [(None, None), ("hi", ["hi"]), ("hi", []), (None, [])]
)
def test_exactly_one_of_them(prompt, messages):
    """Both, neither, or nothing at all is told at once."""
    with pytest.raises(ConfigurationError):
        make_messages(prompt, messages, None)


def test_messages_as_json():
    """A conversation that was kept as JSON goes on as it is; other dicts are told."""
    said = Message.user([Text(text="Look:"), Image(data=b"png", media_type="image/png")])
    kept = [loads(msgspec.json.encode(message)) for message in (said, Message.assistant("ok"))]

    assert make_messages(None, [*kept, "And?"], None) == (
        said,
        Message.assistant("ok"),
        Message.user("And?"),
    )
    for wrong in ({"role": "boss", "content": []}, {}):
        with pytest.raises(ConfigurationError, match=r"messages\[1\]\.role is"):
            make_messages(None, ["hi", wrong], None)


@pytest.mark.parametrize("wrong", [5, b"hi"], ids=repr)
def test_no_messages_at_all(wrong):
    """A number is neither a prompt nor a list."""
    with pytest.raises(ConfigurationError, match="messages"):
        make_messages(None, wrong, None)
    with pytest.raises(ConfigurationError, match="prompt must be"):
        make_messages(wrong, None, None)
    with pytest.raises(ConfigurationError, match="model must be a string"):
        make_request(wrong, HELLO, None, {})


PICTURE = Image(data=b"png", media_type="image/png")


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (["Look:", PICTURE], (Message.user(["Look:", PICTURE]),)),
        (PICTURE, (Message.user(PICTURE),)),
        ([Message.user("a"), "b"], (Message.user("a"), Message.user("b"))),
        ({"role": "user", "content": "a"}, (Message.user("a"),)),
        ([{"role": "user", "content": "a"}], (Message.user("a"),)),
    ],
)
def test_a_list_of_parts_is_one_message_and_a_list_of_messages_a_conversation(prompt, expected):
    """A list of texts and parts is one message; a list of messages is a conversation."""
    assert make_messages(prompt, None, None) == expected


@pytest.mark.parametrize(
    "choice",
    ["lokk", ToolChoice(allowed=["look", "lokk"])],
    ids=["word", "allowed"],
)
def test_a_choice_of_a_tool_that_is_not_there(choice):
    """The tools that are there are named."""
    tools = [Tool(name="look"), ToolDefinition(name="tell")]

    with pytest.raises(ConfigurationError, match="Tools: look, tell"):
        make_request("m", HELLO, tools, {"tool_choice": choice})
    built_in = BuiltinTool(dialect="openai_responses", data={"type": "lokk"})
    make_request("m", HELLO, [*tools, built_in], {"tool_choice": choice})


def test_a_choice_without_tools():
    """Nothing can be insisted on; not to call any is fine."""
    with pytest.raises(ConfigurationError, match="'required', but there are no tools"):
        make_request("m", HELLO, (), {"tool_choice": "required"})
    assert make_request("m", HELLO, (), {"tool_choice": "none"}).tool_choice.mode == "none"
    assert (
        make_request("m", HELLO, [Tool(name="f")], {"tool_choice": "f"}).tool_choice.tool_name
        == "f"
    )


def test_choices_by_word():
    """A mode, or the name of a tool."""
    assert Request(tool_choice="required").tool_choice == ToolChoice(mode="required")
    assert Request(tool_choice="look").tool_choice == ToolChoice(mode="named", tool_name="look")


def test_falsy_values_are_sent():
    """0 and 0.0 and the empty text are values; what is None is not said (field bug 76)."""
    fields = {"temperature": 0.0, "top_p": 0, "user": "", "seed": None, "client": 1}
    tool = Tool(name="f")
    request = make_request("m", (Message.user("hi"),), [tool], fields)

    assert (request.temperature, request.top_p, request.user, request.seed) == (0.0, 0, "", None)
    assert request.tools == (tool.definition,)
    assert make_request("m", HELLO, [ToolDefinition(name="g")], {}).tools[0].name == "g"
    assert make_request("m", HELLO, [], {}).tools == ()


def test_an_option_that_is_mistyped():
    """It is not passed over."""
    with pytest.raises(ConfigurationError, match="Unknown option 'temprature'"):
        check_options({"temprature": 1})


def test_clocks_and_policies():
    """A number is for everything."""
    mine = RetryPolicy(max_retries=7)

    assert timeouts_of(3) == TimeoutConfig(total=3)
    assert timeouts_of(None) == TimeoutConfig()
    assert timeouts_of(TimeoutConfig(per_step=1)) == TimeoutConfig(per_step=1)
    assert policy_of({}).max_retries == 2
    assert policy_of({"max_retries": 0}).max_retries == 0
    assert policy_of({"retry_policy": mine}) is mine
    assert policy_of({}) is DEFAULT_POLICY
