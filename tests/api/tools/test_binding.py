"""Arguments on their way to a handler."""

import functools

import pytest

from interlingua.api.tools.binding import CONTEXT, read_handler
from interlingua.spec.errors import ConfigurationError

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
CONTEXT_VALUES = {"messages": ("m",), "abort_signal": "signal", "tool_call_id": "id"}
ARGUMENTS = {"city": "Oslo", "days": 2}


def called(handler, parameters=PARAMETERS, arguments=ARGUMENTS):
    args, kwargs = read_handler(handler, parameters, "tool").bind(arguments, CONTEXT_VALUES)
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
    assert called(lambda arguments, tool_call_id: (arguments, tool_call_id)) == (ARGUMENTS, "id")


def test_a_single_declared_parameter_is_passed_by_name():
    """It is not taken for a dict if the schema declares it."""
    parameters = {"type": "object", "properties": {"city": {}}}

    assert called(lambda city: city, parameters, {"city": "Oslo"}) == "Oslo"
    assert called(lambda: "none", {"type": "object"}, {}) == "none"


def test_context_goes_to_handlers_that_declare_it():
    """Only the declared parameters are passed, and none to `**kwargs`."""

    def handler(city, days, messages, *, abort_signal):
        return city, days, messages, abort_signal

    assert called(handler) == ("Oslo", 2, ("m",), "signal")
    assert called(lambda city, **rest: (city, rest)) == ("Oslo", {"days": 2})
    assert read_handler(lambda **rest: rest, PARAMETERS, "tool").context == frozenset()


def test_a_declared_parameter_is_not_context():
    """A tool whose schema has `messages` gets the model's argument."""
    parameters = {"type": "object", "properties": {name: {} for name in CONTEXT}}
    arguments = dict.fromkeys(CONTEXT, "mine")

    def handler(messages, abort_signal, tool_call_id):
        return messages, abort_signal, tool_call_id

    assert called(handler, parameters, arguments) == ("mine", "mine", "mine")


def test_field_bug_79_a_handler_cannot_change_the_call():
    """It gets a copy of the arguments."""
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
