"""Tools."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.api.tools.context import ToolContext
from interlingua.api.tools.tool import FunctionTool, Tool, ToolAnnotations, check_tools, tool
from interlingua.prepare.schema.narrow import narrow
from interlingua.runtime.cancel import AbortController
from interlingua.spec.errors import ConfigurationError, InvalidToolCallError
from interlingua.spec.request import BuiltinTool, Request, ToolDefinition
from support.facts import ANTHROPIC, GEMINI_JSON_SCHEMA, OPENAI_STRICT

NO_INPUT = {"type": "object", "properties": {}}


@dataclasses.dataclass
class Place:
    """
    A place on the map.

    Attributes:
        city: As people call it.
    """

    city: str
    near: list[Place] = dataclasses.field(default_factory=list)


CONTEXT = ToolContext(
    tool_call_id="7",
    tool_name="weather",
    messages=(),
    abort_signal=AbortController().signal,
    deps="deps",
)


@tool
def weather(
    place: Place, day: dt.date | None = None, *, run: ToolContext[str] | None = None
) -> str:
    """
    Say the weather.

    Args:
        place: Where.
        day: When; today if left out.
    """
    return f"{place.city} {day} {run.tool_call_id if run else ''}".strip()


def test_a_function_becomes_a_tool():
    """It gives name, description and schema; context parameters are not in the schema."""
    assert weather.definition == ToolDefinition(
        name="weather",
        description="Say the weather.",
        parameters=weather.parameters,
    )
    assert list(weather.parameters["properties"]) == ["place", "day"]
    assert weather.parameters["required"] == ["place"]
    assert weather.parameters["properties"]["place"]["description"] == "Where."
    assert weather.is_active


def test_a_tool_can_be_called_like_its_function():
    """The decorated function runs."""
    assert weather(Place("Oslo"), run=CONTEXT) == "Oslo None 7"


def test_arguments_are_converted():
    """To dates and dataclasses, for example."""
    args, kwargs = weather.bind(
        {"place": {"city": "Oslo", "near": [{"city": "Moss"}]}, "day": "2024-05-06"},
        CONTEXT,
    )

    assert args == ()
    assert kwargs == {
        "place": Place("Oslo", [Place("Moss")]),
        "day": dt.date(2024, 5, 6),
        "run": CONTEXT,
    }


def test_problems_are_those_of_the_types_then_of_the_schema():
    """A type checks dates; a schema may have a pattern for a string."""
    assert weather.problems({"place": {"city": 1}, "x": 1}) == [
        "place.city: expected string, got a number",
        "x: is not known",
    ]
    bad = {"place": {"city": "Oslo"}, "day": "someday"}
    assert weather.validator(bad) == []
    assert weather.problems(bad) == ["day: expected date or null, got 'someday'"]
    with pytest.raises(InvalidToolCallError, match="day: expected date or null, got 'someday'"):
        weather.bind(bad, CONTEXT)
    assert weather.problems({"place": {"city": "Oslo"}}) == []


def test_problems_in_a_union_have_a_path():
    """The problem is not only that no member matches."""

    @tool
    def move(to: list[int | dict[str, int]]) -> None:
        """Move."""

    (problem,) = move.problems({"to": [1, {"x": "far"}]})

    assert problem.startswith("to[1]")


def test_a_handler_that_takes_less_than_its_schema_allows():
    """The problem names the arguments, not our function."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "day": {}}}
    made = Tool(name="look", parameters=schema, execute=lambda city, day=None: (city, day))
    mapping = Tool(name="look", parameters=schema, execute=lambda given: given)
    anything = Tool(name="look", parameters=schema, execute=lambda city, day, **_: (city, day))

    assert made.problems({"city": "Oslo", "x": 1}) == [
        "x: is not known; known arguments: city, day"
    ]
    assert made.problems({"day": 1}) == ["city: is missing"]
    assert made.problems({"city": "Oslo"}) == mapping.problems({"x": 1}) == []
    assert anything.problems({"city": "Oslo", "day": 1, "x": 1}) == []
    assert anything.problems({}) == ["city: is missing", "day: is missing"]
    assert made.problems([1]) == ['[1] is not of type "object"']


def test_the_schema_is_compiled_once():
    """And the definition made once, so that equal requests stay equal."""
    assert weather.validator is weather.validator
    assert weather.definition is weather.definition


def test_the_decorator_takes_options():
    """They win over the function's own name and docstring."""

    @tool(
        name="other-name",
        description="Other words.",
        annotations=ToolAnnotations(read_only=True),
        timeout=2.5,
        strict=True,
        needs_approval=lambda arguments: arguments["n"] > 1,
    )
    def named(n: int) -> int:
        """Not these."""
        return n

    assert named.definition == ToolDefinition(
        name="other-name", description="Other words.", parameters=named.parameters, strict=True
    )
    assert (named.timeout, named.annotations.read_only, named.annotations.destructive) == (
        2.5,
        True,
        None,
    )
    assert [named.needs_approval({"n": n}) for n in (1, 2)] == [False, True]


def test_async_functions_are_tools():
    """Calling one returns an awaitable."""

    @tool
    async def later(n: int) -> int:
        return n + 1

    assert asyncio.run(later(1)) == 2
    assert asyncio.run(later.execute(**later.bind({"n": 2}, CONTEXT)[1])) == 3


def test_methods_are_tools_of_their_object():
    """A tool from an object is bound to it; one from the class cannot be used."""

    class Counter:
        def __init__(self):
            self.count = 0

        @tool(timeout=3)
        def add(self, n: int, run: ToolContext) -> int:
            """Add to the count."""
            self.count += n if run.tool_call_id else 0
            return self.count

        @staticmethod
        @tool
        def zero() -> int:
            return 0

    first, second = Counter(), Counter()
    add = first.add
    assert add.execute(**add.bind({"n": 2}, CONTEXT)[1]) == 2
    assert (first.add(1, CONTEXT), second.count, add.timeout) == (3, 0, 3)
    assert "self" not in add.parameters["properties"]
    assert first.zero() == 0
    assert isinstance(first.zero, FunctionTool)
    with pytest.raises(ConfigurationError, match="Take it from an object"):
        check_tools([Counter.add])
    with pytest.raises(ConfigurationError, match="Take it from an object"):
        Counter.add.bind({"n": 1}, CONTEXT)


def test_local_types_are_found():
    """A tool may use a class of the function it is defined in."""

    class Local(msgspec.Struct):
        a: int

    @tool
    def take(x: Local) -> int:
        return x.a

    @tool(name="second")
    def again(x: list[Local]) -> int:
        return len(x)

    assert take.bind({"x": {"a": 1}}, CONTEXT)[1] == {"x": Local(1)}
    assert again.bind({"x": [{"a": 1}]}, CONTEXT)[1] == {"x": [Local(1)]}


@given(st.from_regex(re.compile(r"[a-zA-Z][\w-]{0,63}", re.ASCII), fullmatch=True))
def test_good_names_are_accepted(name):
    """A letter, then up to 63 letters, digits, _ or -."""
    assert Tool(name=name).definition.name == name


@pytest.mark.parametrize("name", ["", "1a", "_a", "a b", "a.b", "é", "a" * 65, "a\n"])
def test_invalid_names_are_rejected(name):
    """When the tool is defined."""
    with pytest.raises(ConfigurationError, match=r"The tool name .* is invalid"):
        Tool(name=name)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"type": "string"}, None, [], {"type": "object", "properties": []},
     {"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}],
    ids=str,
)  # fmt: skip
def test_invalid_parameters_are_rejected(parameters):
    """The root must be an object, and all of it a schema."""
    with pytest.raises(ConfigurationError, match="the tool"):
        Tool(name="a", parameters=parameters)


def test_invalid_timeouts_are_rejected():
    """A timeout is greater than 0."""
    with pytest.raises(ConfigurationError, match="timeout"):
        Tool(name="a", timeout=0)


def test_a_tool_without_the_decorator():
    """A function with a schema; arguments are not converted, and the schema is not changed."""
    parameters = {"type": "object", "properties": {"day": {"type": "string"}}}
    made = Tool(name="a", parameters=parameters, execute=lambda day: day)

    assert made.bind({"day": "2024-05-06"}, CONTEXT) == ((), {"day": "2024-05-06"})
    assert made.problems({"day": 1}) == ['day: 1 is not of type "string"']
    assert made(day=3) == 3
    assert made.definition.parameters is parameters


def test_the_signature_is_read_again_for_a_changed_copy():
    """Another function may take its arguments in another way."""
    parameters = {"type": "object", "properties": {"day": {"type": "string"}}}
    made = Tool(name="a", parameters=parameters, execute=lambda day: day)
    other = msgspec.structs.replace(made, execute=lambda everything: everything)

    assert other.bind({"day": "x"}, CONTEXT) == (({"day": "x"},), {})
    kept = msgspec.structs.replace(weather, timeout=1)
    assert kept.bind({"place": {"city": "a"}}, CONTEXT)[1]["place"] == Place("a")


def test_a_tool_without_a_function_is_passive():
    """It can be defined, but not called."""
    passive = Tool(name="a", description="Words.")

    assert not passive.is_active
    assert passive.definition.parameters == NO_INPUT
    for call in (passive, lambda: passive.bind({}, CONTEXT)):
        with pytest.raises(ConfigurationError, match="passive"):
            call()


def test_names_are_unique():
    """Two tools with the same name are an error, whatever their kinds."""
    with pytest.raises(ConfigurationError, match="Two tools have the name 'a'"):
        check_tools([Tool(name="a"), ToolDefinition(name="a")])


def test_definitions_and_builtin_tools_are_passive():
    """They may be in the same list."""
    given = [weather, ToolDefinition(name="b", strict=True), BuiltinTool(dialect="x", data={})]
    found = check_tools(given)

    assert list(found) == ["weather", "b"]
    assert found["weather"] is weather
    assert not found["b"].is_active
    with pytest.raises(ConfigurationError, match="@tool"):
        check_tools([test_names_are_unique])


def test_definitions_go_into_a_request():
    """The definition of a tool can be stored and sent."""
    request = Request(model="m", messages="hi", tools=[weather.definition])

    assert msgspec.json.decode(msgspec.json.encode(request), type=Request) == request


@pytest.mark.parametrize(
    "rules", [OPENAI_STRICT, ANTHROPIC, GEMINI_JSON_SCHEMA], ids=lambda rules: rules.name
)
def test_every_target_accepts_the_schema(rules):
    """A schema made from hints can be narrowed for each without a loss, recursion included."""
    narrowed = narrow(weather.parameters, rules)

    assert narrowed.strict_possible
    assert narrowed.losses == ()


def test_the_repr_is_short():
    """It shows neither the function nor the schema."""
    assert repr(weather) == "FunctionTool('weather')"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": 5}, "The tool name 5 is invalid"),
        ({"name": None}, "The tool name None is invalid"),
        ({"description": 5}, "description= of the tool 'f' must be a string, not 5"),
        ({"parameters": []}, "The parameters of the tool 'f' must be a JSON Schema"),
        ({"strict": 1}, "strict= of the tool 'f' must be True or False"),
        ({"timeout": "5"}, "timeout= of the tool 'f' must be a number greater than 0"),
        ({"timeout": True}, "timeout= of the tool 'f' must be"),
        ({"timeout": 0}, "timeout= of the tool 'f' must be"),
        ({"annotations": {}}, "annotations= of the tool 'f' must be ToolAnnotations"),
        ({"needs_approval": "yes"}, "needs_approval= of the tool 'f' must be True, False or"),
        ({"execute": 5}, "The execute= of the tool 'f' is not a function"),
    ],
)
def test_wrong_fields_are_refused_by_tool_and_field(fields, message):
    """The error names the tool and the field."""
    with pytest.raises(ConfigurationError) as caught:
        Tool(**{"name": "f", **fields})
    assert message in str(caught.value)
