"""Options: what can be said, and what cannot. (What is made of them: test_prompt.py.)"""

import asyncio

import pytest

from interlingua.api.run.generate import generate, stream
from interlingua.api.run.options import (
    GenerateOptions,
    RequestOptions,
    TimeoutConfig,
    check_options,
)
from interlingua.api.tools.tool import Tool
from interlingua.client.client import Client
from interlingua.client.retry_policy import RetryPolicy
from interlingua.runtime.cancel import AbortController
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request, ResponseFormat, ToolChoice


def test_every_field_of_a_request_can_be_said():
    """But for those that a run sets itself."""
    ours = {"model", "short_name", "context"}

    assert {*Request.__struct_fields__} - ours == {*RequestOptions.__annotations__} - {"system"}
    assert {*RequestOptions.__annotations__} <= {*GenerateOptions.__annotations__}


WRONG = {
    "api_key": b"k",
    "base_url": 5,
    "headers": ["x"],
    "system": 5,
    "tools": Tool(name="look"),
    "tool_choice": 5,
    "parallel_tool_calls": 1,
    "response_format": "json",
    "temperature": "hot",
    "top_p": True,
    "top_k": 1.5,
    "max_tokens": float("nan"),
    "stop_sequences": "abc",
    "seed": "7",
    "frequency_penalty": [],
    "presence_penalty": float("inf"),
    "logprobs": -1,
    "reasoning_effort": 1,
    "thinking_budget": "much",
    "include_thinking": "x",
    "verbosity": 1,
    "user": 7,
    "metadata": [1],
    "provider": 1,
    "provider_options": [1],
    "request_id": 7,
    "max_tool_rounds": None,
    "stop_when": True,
    "repair_tool_call": "x",
    "tool_timeout": "5",
    "max_concurrent_tools": "2",
    "max_tool_output": "2",
    "resume": ["id"],
    "approvals": ["id"],
    "tool_observer": print,
    "tool_error": "x",
    "on_loss": "x",
    "keep_raw": "x",
    "upload": "x",
    "session_id": 7,
    "active_skills": "pdf",
    "active_connectors": 5,
    "chosen_because": 5,
    "limits": 5,
    "output_validator": "x",
    "max_validation_retries": "1",
    "on_overflow": "x",
    "max_retries": None,
    "retry_policy": 5,
    "timeout": "5",
    "abort_signal": True,
    "prices": [("m", 1)],
    "on_usage": "print",
    "usage_batch_size": 0,
    "caller_id": 7,
    "client": "openai",
}
RIGHT = {
    "system": "",
    "messages": ["?"],
    "tools": (tool for tool in ()),
    "tool_choice": ToolChoice(),
    "response_format": ResponseFormat(),
    "temperature": 0,
    "top_k": 0,
    "stop_sequences": ("a",),
    "provider_options": {},
    "max_tool_rounds": 0,
    "stop_when": len,
    "approvals": {},
    "on_loss": "strict",
    "on_overflow": "truncate",
    "max_retries": 0,
    "timeout": TimeoutConfig(total=0.0, per_step=1),
    "abort_signal": AbortController().signal,
    "prices": {"m": {"input": 1}},
    "client": Client({}),
}


@pytest.mark.parametrize(
    "name", sorted(GenerateOptions.__annotations__.keys() - {"messages", "deps"})
)
def test_a_value_that_cannot_be_one(name):
    """It says which option, what was given, and what is wanted; nothing else comes out."""
    value = WRONG[name]
    options = {"client": Client({}), name: value}
    for work in (
        lambda: asyncio.run(generate("openai:m", "?", **options)),
        lambda: stream("openai:m", "?", **options),
    ):
        with pytest.raises(ConfigurationError) as caught:
            work()
        said = caught.value.message
        assert said.startswith(f"{name} must be ")
        assert said.endswith((f"not {value!r}.", f"not a {type(value).__name__}."))


@pytest.mark.parametrize("value", [-1, float("nan"), TimeoutConfig(per_step=-1), True])
def test_no_time_that_there_is_not(value):
    """Nor less than none."""
    with pytest.raises(
        ConfigurationError, match=r"timeout(\.per_step)? must be a number of seconds"
    ):
        check_options({"timeout": value})


def test_values_that_can():
    """And None, wherever an option may be left out."""
    check_options(RIGHT)
    check_options({"retry_policy": RetryPolicy(), "stop_sequences": iter("ab")})
    needed = {"max_tool_rounds", "max_retries", "on_overflow"}
    check_options(dict.fromkeys(GenerateOptions.__annotations__.keys() - needed))


def test_one_number_of_retries():
    """Two would leave open which of them counts."""
    with pytest.raises(ConfigurationError, match="either max_retries or retry_policy"):
        check_options({"retry_policy": RetryPolicy(), "max_retries": 0})
