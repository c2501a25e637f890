"""Which turn answers which request."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from interlingua import Message, Request, ResponseFormat, ToolChoice, ToolDefinition, ToolResult
from interlingua.dialects import WireCall
from interlingua.errors import ConfigurationError, RateLimitError
from interlingua.simulator import (
    SIMULATED,
    Script,
    ScriptError,
    Simulator,
    Turn,
    by_model,
    echo,
    fail,
    results,
    text,
    tool_call,
    tool_loop,
    use_tools,
)
from interlingua.simulator.script import example
from interlingua.wire.json_text import dump_text

QUESTION = Request(model="m", messages="Hello?")
TOOL = ToolDefinition(
    name="f",
    parameters={
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "INTEGER"},
            "c": {"enum": ["x", "y"]},
            "d": {"type": ["number", "null"]},
            "e": {"properties": {"f": {"const": 7}}, "required": ["f"]},
            "g": {"type": "array"},
        },
        "required": ["a", "b", "c", "d", "e", "g"],
    },
)
LOOP = (
    Message.user("Hello?"),
    Message.assistant(tool_call("f", id="1").parts + tool_call("f", id="2").parts),
    Message.tool_result("1", "one"),
    Message.tool_result("2", {"two": 2}),
)


def test_turns_come_in_order_and_the_last_stays():
    """A list is read once; its last turn answers whatever follows."""
    script = Script(text("a"), lambda _: text("b"), text("c"))

    assert [script.answer(QUESTION).parts[0].text for _ in range(5)] == ["a", "b", "c", "c", "c"]


def test_threads_each_get_a_turn():
    """No turn is given twice, and no request is lost from the record."""
    script = Script(*(text(str(number)) for number in range(200)))

    def one(_):
        script.record("openai_chat", "POST", WireCall())
        return script.answer(QUESTION).parts[0].text

    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(one, range(200)))

    assert sorted(map(int, given)) == list(range(200))
    assert [each.number for each in script.received] == list(range(1, 201))


def test_what_stands_for_a_turn():
    """A string is a text and an error of ours a failure, also from a function."""
    failure = RateLimitError("slow down")
    script = Script("a", failure, lambda _: "b", lambda _: failure)
    expected = [text("a"), fail(failure), text("b"), fail(failure)]

    assert [script.answer(QUESTION) for _ in expected] == expected


@pytest.mark.parametrize("wrong", [["a"], None, 7])
def test_nothing_else_is_a_turn(wrong):
    """A mistake in a script is reported when it is written, or when its function answers."""
    with pytest.raises(ConfigurationError, match="takes turns, strings, errors and functions"):
        Script(wrong)
    with pytest.raises(ScriptError, match=r"The script failed for request 1: .*takes turns"):
        Script(lambda _: wrong).answer(QUESTION)


def test_a_script_may_end():
    """Without a repetition, a request after the last turn is an error that shows the request."""
    script = Script("a", repeat_last=False)
    script.answer(QUESTION)
    with pytest.raises(ScriptError, match=r"no turn for request 2.*user: 'Hello.': it has 1"):
        script.answer(QUESTION)
    with pytest.raises(ScriptError, match="no turn for request 3, which has no message"):
        script.answer(Request(model="m"))
    assert script.for_operation() == Turn()


def test_the_error_of_a_function_is_the_cause():
    """The reader of the error finds what was raised."""
    wrong = ValueError("oops")

    def answer(_):
        raise wrong

    with pytest.raises(ScriptError, match=r"The script failed for request 1: .*oops") as failed:
        Script(answer).answer(QUESTION)
    assert failed.value.__cause__ is wrong


def test_echo_says_that_it_is_simulated():
    """Nobody can take it for a model's answer."""
    assert echo(QUESTION).parts[0].text == f"{SIMULATED} You said: Hello?"
    assert echo(Request(model="m")).parts[0].text == SIMULATED


def test_results_are_those_at_the_end():
    """Results that were answered already are not news."""
    request = Request(model="m", messages=LOOP)
    later = Request(model="m", messages=(*LOOP, Message.assistant("ok"), Message.user("next")))

    assert [result.tool_call_id for result in results(request)] == ["1", "2"]
    assert results(later) == ()
    one = Message(role="user", content=(ToolResult(tool_call_id="1", content="x"),))
    assert len(results(Request(model="m", messages=(one,)))) == 1


def test_use_tools():
    """Offered tools are called, results are told, and else the user is echoed."""
    offered = Request(model="m", messages="Hello?", tools=(TOOL, ToolDefinition(name="g")))
    call, other = use_tools(offered).parts

    assert call.arguments == {
        "a": "simulated",
        "b": 1,
        "c": "x",
        "d": 1.5,
        "e": {"f": 7},
        "g": [],
    }
    assert (call.name, other.name, other.arguments) == ("f", "g", {})
    told = use_tools(Request(model="m", messages=LOOP, tools=(TOOL,))).parts[0].text
    assert told == f'{SIMULATED} The tools returned: one; {{"two":2}}'
    assert use_tools(QUESTION) == echo(QUESTION)


def test_use_tools_fills_in_a_schema():
    """Where an object is asked for; tools that are offered beside it go first."""
    form = ResponseFormat(type="json_schema", json_schema=TOOL.parameters)
    filled_in = text(dump_text(example(TOOL.parameters)))

    assert use_tools(replace(QUESTION, response_format=form)) == filled_in
    assert use_tools(replace(QUESTION, response_format=form, tools=(TOOL,))).parts[0].name == "f"
    asked = Request(model="m", messages=LOOP, tools=(TOOL,), response_format=form)
    assert use_tools(asked) == filled_in


def test_use_tools_minds_the_choice():
    """A forced tool is the one that is called, and none is none."""
    tools = (TOOL, ToolDefinition(name="g"))
    forced = ToolChoice(mode="named", tool_name="g")
    named = Request(model="m", messages="Hello?", tools=tools, tool_choice=forced)
    none = Request(model="m", messages="Hi", tools=tools, tool_choice=ToolChoice(mode="none"))

    assert [part.name for part in use_tools(named).parts] == ["g"]
    assert use_tools(none) == echo(none)


def test_tool_loop():
    """Calls first, the answer when their results are there."""
    loop = tool_loop(tool_call("f"), lambda request: text(str(len(results(request)))))
    offered = Request(model="m", messages="Hello?", tools=(TOOL,))

    assert loop(offered) == tool_call("f")
    assert loop(Request(model="m", messages=LOOP, tools=(TOOL,))) == text("2")
    assert loop(QUESTION) == text("0")


def test_by_model():
    """One simulator can be several models."""
    script = by_model({"a": text("I am a."), "b": echo}, otherwise=text("Who?"))

    assert script(Request(model="a")) == text("I am a.")
    assert script(Request(model="b", messages="x")) == echo(Request(model="b", messages="x"))
    assert script(Request(model="c")) == text("Who?")


@pytest.mark.parametrize("schema", [None, True, [], {"type": "string"}, {"required": 3}])
def test_odd_schemas_have_no_arguments(schema):
    """A schema that is not of an object gives none."""
    assert example(schema) == {}


def test_the_record_shows_itself_in_short():
    """An exchange in a failing test's output is one line."""
    exchange = Script().record("openai_chat", "POST", WireCall(path="/v1/x"))

    assert repr(exchange) == "<Exchange 1 openai_chat /v1/x None open>"


def test_only_so_many_are_kept():
    """For a simulator that runs on; the numbers go on too."""
    script = Script(echo, keep=2)
    for _ in range(5):
        script.record("openai_chat", "POST", WireCall())

    assert [exchange.number for exchange in script.received] == [4, 5]


def test_a_simulator_that_runs_on_forgets_old_exchanges():
    """A thousand are remembered by default, so that its memory does not grow."""
    for script in (Script(echo), Simulator(echo).script, Simulator().script):
        for _ in range(1_010):
            script.record("openai_chat", "POST", WireCall())
        assert len(script.received) == 1_000
        assert script.received[-1].number == 1_010

    assert len(_after_three(Simulator(echo, keep=2).script)) == 2
    assert len(_after_three(Simulator(Script(echo, keep=None), keep=2).script)) == 3


def _after_three(script):
    for _ in range(3):
        script.record("openai_chat", "POST", WireCall())
    return script.received
