"""What people pass."""

import pytest

from interlingua.api.options import (
    TimeoutConfig,
    check_options,
    policy_of,
    request_fields,
    timeouts_of,
)
from interlingua.api.prompt import make_messages, make_request, make_tool_choice
from interlingua.api.tools import Tool
from interlingua.client.retry import RetryPolicy
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import ToolChoice, ToolDefinition


def test_a_prompt_or_messages():
    """The system's words come first, before whatever is there."""
    assert make_messages("hi", None, None) == (Message.user("hi"),)
    assert make_messages(Message.user("hi"), None, None) == (Message.user("hi"),)
    assert make_messages(None, ["hi", Message.assistant("yes")], "Be brief.") == (
        Message.system("Be brief."),
        Message.user("hi"),
        Message.assistant("yes"),
    )


@pytest.mark.parametrize(
    ("prompt", "messages"), [(None, None), ("hi", ["hi"]), ("hi", []), (None, [])]
)
def test_exactly_one_of_them(prompt, messages):
    """Both, neither, or nothing at all is told at once."""
    with pytest.raises(ConfigurationError):
        make_messages(prompt, messages, None)


def test_choices_by_word():
    """A mode, or the name of a tool."""
    choice = ToolChoice(mode="none")

    assert make_tool_choice(choice) is choice
    assert make_tool_choice("required") == ToolChoice(mode="required")
    assert make_tool_choice("get_weather") == ToolChoice(mode="named", tool_name="get_weather")
    assert make_tool_choice(None) is None


def test_field_bug_76_falsy_values_are_said():
    """0 and 0.0 and the empty text are values; what is None is not said."""
    fields = request_fields({"temperature": 0.0, "top_p": 0, "user": "", "seed": None, "client": 1})
    tool = Tool(name="f")
    request = make_request("m", (Message.user("hi"),), [tool], fields)

    assert (request.temperature, request.top_p, request.user, request.seed) == (0.0, 0, "", None)
    assert request.tools == (tool.definition,)
    assert make_request("m", (), [ToolDefinition(name="g")], {}).tools[0].name == "g"
    assert make_request("m", (), [], {}).tools is None


def test_an_option_that_is_mistyped():
    """It is not passed over."""
    with pytest.raises(ConfigurationError, match="unknown option 'temprature'"):
        check_options({"temprature": 1})


def test_clocks_and_policies():
    """A number is for everything; a policy goes before a count."""
    mine = RetryPolicy(max_retries=7)

    assert timeouts_of(3) == TimeoutConfig(total=3)
    assert timeouts_of(None) == TimeoutConfig()
    assert timeouts_of(TimeoutConfig(per_step=1)) == TimeoutConfig(per_step=1)
    assert policy_of({}).max_retries == 2
    assert policy_of({"max_retries": 0}).max_retries == 0
    assert policy_of({"retry_policy": mine, "max_retries": 1}) is mine
