"""Arguments on their way to a handler."""

import functools

import pytest

from interlingua.api.tools.binding import read_handler
from interlingua.api.tools.context import ToolContext
from interlingua.api.tools.tool import Tool, tool
from interlingua.runtime.cancel import AbortController, AbortSignal
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
CONTEXT = ToolContext(
    tool_call_id="id",
    tool_name="tool",
    messages=(Message.user("hi"),),
    abort_signal=AbortController().signal,
    deps="deps",
)
ARGUMENTS = {"city": "Oslo", "days": 2}


def called(handler, parameters=PARAMETERS, arguments=ARGUMENTS):
    args, kwargs = read_handler(handler, parameters, "tool").bind(arguments, CONTEXT)
    return handler(*args, **kwargs)


def test_arguments_are_passed_by_name():
    """Each property of the schema is a parameter of the handler."""
    assert called(lambda city, days=1: (city, days)) == ("Oslo", 2)
    assert called(lambda city, *, days: (city, days)) == ("Oslo", 2)
    assert called(lambda **given: given) == ARGUMENTS


def test_arguments_are_passed_as_one_dict():
    """If the handler's only required parameter is not in the schema."""
    assert called(lambda arguments: arguments) == ARGUMENTS
    assert called(lambda city, /: city) == ARGUMENTS

    def handler(arguments, run: ToolContext[str]):
        return arguments, run.tool_call_id

    assert called(handler) == (ARGUMENTS, "id")


def test_a_single_declared_parameter_is_passed_by_name():
    """It is not taken for a dict if the schema declares it."""
    parameters = {"type": "object", "properties": {"city": {}}}

    assert called(lambda city: city, parameters, {"city": "Oslo"}) == "Oslo"
    assert called(lambda: "none", {"type": "object"}, {}) == "none"


def test_context_goes_to_handlers_that_declare_it():
    """Only the declared parameters are passed, and none to `**kwargs`."""

    def handler(city, days, history: list[Message], *, stop: AbortSignal | None = None):
        return city, days, history, stop

    assert called(handler) == ("Oslo", 2, [Message.user("hi")], CONTEXT.abort_signal)
    assert called(lambda city, **rest: (city, rest)) == ("Oslo", {"days": 2})
    assert read_handler(lambda **rest: rest, PARAMETERS, "tool").context == {}


def test_a_declared_parameter_is_not_context():
    """A parameter that the schema declares gets the model's argument, whatever its annotation."""
    parameters = {"type": "object", "properties": {"run": {}}}

    def handler(run: ToolContext):
        return run

    assert called(handler, parameters, {"run": "mine"}) == "mine"


def test_parameters_are_not_context_by_their_names_alone():
    """`messages`, `tool_call_id` and `abort_signal` are names like others."""
    names = ("messages", "tool_call_id", "abort_signal")
    parameters = {"type": "object", "properties": {name: {} for name in names}}

    def handler(messages, abort_signal, tool_call_id):
        return messages, abort_signal, tool_call_id

    assert called(handler, parameters, dict.fromkeys(names, "mine")) == ("mine", "mine", "mine")
    with pytest.raises(ConfigurationError, match=r"needs 'messages'.*ToolContext"):
        read_handler(lambda city, days, messages: (city, days, messages), PARAMETERS, "tool")


def test_a_handler_cannot_change_the_call():
    """It gets a copy of the arguments (field bug 79)."""
    arguments = {"list": [{"a": 1}]}

    def handler(**given):
        given["list"][0]["a"] = 2
        given["list"].append(3)

    called(handler, {"type": "object"}, arguments)
    called(lambda everything: handler(**everything), {"type": "object"}, arguments)

    assert arguments == {"list": [{"a": 1}]}


def test_functions_without_a_signature_are_called_by_name():
    """Some functions written in C have none."""
    assert called(dict) == ARGUMENTS


def test_bound_methods_and_partials_are_handlers():
    """Bound arguments are not expected from the model."""

    class Weather:
        def say(self, city, days, unit):
            return city, days, unit

    assert called(functools.partial(Weather().say, unit="C")) == ("Oslo", 2, "C")


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (lambda city: city, "declares 'days'"),
        (lambda city, days, unit: (city, days, unit), "needs 'unit'"),
        ("text", "not a function"),
    ],
)
def test_a_handler_that_does_not_match_the_schema_is_rejected(handler, words):
    """When the tool is made, not when the model calls it."""
    with pytest.raises(ConfigurationError, match=words):
        read_handler(handler, PARAMETERS, "tool")


# Parameters with the names of context, which is injected by annotation.


def by_name(city, tool_call_id=None, messages=None, abort_signal=None):
    """The weather."""
    return city, tool_call_id, messages, abort_signal


def by_dict(arguments, messages=None):
    return arguments, messages


def of_this_program(city, days=1, messages: str | None = None):
    return city, days, messages


@pytest.mark.parametrize("handler", [by_name, by_dict, of_this_program])
def test_a_handler_that_expects_context_by_name_is_told_how_to_get_it(handler):
    """At definition: it would always be None, and a handler would wait for a signal in vain."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    with pytest.raises(ConfigurationError) as caught:
        Tool(name="weather", description="d", parameters=schema, execute=handler)

    assert "'weather'" in str(caught.value)
    assert "=None`, which would always be None" in str(caught.value)
    for form in ("`messages: list[Message]`", "`abort_signal: AbortSignal`", "`ToolContext`"):
        assert form in str(caught.value)


def test_a_typed_function_is_told_too():
    """Its parameter would be one that the model fills in."""
    with pytest.raises(ConfigurationError, match="`tool_call_id=None`"):
        tool(by_name)


def test_context_by_annotation_is_injected_under_these_names():
    """With or without a default."""

    def handler(
        city: str,
        messages: list[Message] | None = None,
        abort_signal: AbortSignal | None = None,
        context: ToolContext[str] | None = None,
    ):
        return city, len(messages), abort_signal.aborted, context.tool_call_id

    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    assert called(handler, schema, {"city": "Oslo"}) == ("Oslo", 1, False, "id")
    assert tool(handler).parameters["properties"].keys() == {"city"}


def test_arguments_of_these_names_are_arguments():
    """A tool may well take messages: the schema declares them, or they have a type of their own."""

    def handler(messages=None):
        return messages

    schema = {"type": "object", "properties": {"messages": {"type": "array"}}}
    assert called(handler, schema, {"messages": ["a"]}) == ["a"]

    @tool
    def send(messages: list[str] | None = None, tool_call_id: str = "none") -> str:
        """Send them."""
        return f"{messages} {tool_call_id}"

    assert send.parameters["properties"].keys() == {"messages", "tool_call_id"}
