"""What comes back."""

import msgspec

from interlingua.api.run.results import GenerateResult, StepResult
from interlingua.spec.content import Text, Thinking, ToolCall, ToolResult
from interlingua.spec.messages import Message
from interlingua.spec.response import Cost, FinishReason, Response, Usage, Warning

CALL = ToolCall(id="a", name="f", arguments={})
FIRST = StepResult(
    response=Response(
        message=Message.assistant([CALL]),
        finish_reason=FinishReason(reason="tool_calls"),
        usage=Usage(input_tokens=10, output_tokens=2),
        warnings=(Warning(code="seed_dropped", message="no"),),
    ),
    tool_results=(ToolResult(tool_call_id="a", content="1"),),
)
LAST = StepResult(
    response=Response(
        message=Message.assistant([Thinking(text="hm"), Text(text="It is 1.")]),
        finish_reason=FinishReason(reason="stop"),
        usage=Usage(input_tokens=20, output_tokens=3, reasoning_tokens=1),
    )
)


def test_the_last_step_speaks_for_the_whole():
    """Usage and warnings are there for all steps, too."""
    result = GenerateResult(steps=(FIRST, LAST))

    assert (result.text, result.reasoning) == ("It is 1.", "hm")
    assert (result.tool_calls, result.tool_results) == ((), ())
    assert result.finish_reason.reason == "stop"
    assert result.response is LAST.response
    assert result.usage.total_tokens == 23
    assert (result.total_usage.input_tokens, result.total_usage.reasoning_tokens) == (30, 1)
    assert [warning.code for warning in result.warnings] == ["seed_dropped"]
    assert FIRST.tool_calls == (CALL,)
    assert FIRST.warnings
    assert LAST.usage.output_tokens == 3


def test_it_is_data():
    """It goes into JSON, for logs and stores."""
    result = GenerateResult(steps=(FIRST, LAST), output={"n": 1})

    assert msgspec.json.decode(msgspec.json.encode(result))["output"] == {"n": 1}


def test_the_text_of_a_result_is_the_answer_with_a_line_of_usage_and_cost():
    """`print(result)` shows what a person wants to know."""

    def result(**fields):
        answer = Response(message=Message.assistant("Hello."), **fields)
        return GenerateResult(steps=(StepResult(response=answer),))

    usage = Usage(input_tokens=12, output_tokens=3)
    assert str(result(usage=usage, cost=Cost(total=0.00098))) == (
        "Hello.\n[12 tokens in, 3 out; $0.00098]"
    )
    assert f"{result(usage=usage)}" == "Hello.\n[12 tokens in, 3 out; cost unknown]"
    guessed = Usage(input_tokens=12, output_tokens=3, estimated=True)
    assert "about 12 tokens in" in str(result(usage=guessed))
    assert str(GenerateResult(steps=())) == ""
