"""Requests."""

import ast
import copy
import inspect

import msgspec
import pytest
from hypothesis import given, settings

import interlingua
from interlingua.conformance.strategies import conversations, requests
from interlingua.spec.content import Audio, Document, Image, ToolCall, ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.events import StreamStart
from interlingua.spec.messages import Message
from interlingua.spec.request import (
    BuiltinTool,
    Request,
    ResponseFormat,
    ToolChoice,
    ToolDefinition,
)
from interlingua.spec.response import Response

FALSY = {
    "temperature": 0.0,
    "top_p": 0.0,
    "top_k": 0,
    "max_tokens": 0,
    "seed": 0,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "logprobs": 0,
    "thinking_budget": 0,
    "reasoning_effort": "",
    "verbosity": "",
    "user": "",
    "provider": "",
    "request_id": "",
    "parallel_tool_calls": False,
    "stop_sequences": (),
    "metadata": {},
}


LENIENT = {  # the fields for which a constructor takes more than they hold
    Request: {
        *("messages", "tools", "tool_choice", "stop_sequences"),
        *("active_skills", "active_connectors"),
    },
    ToolChoice: {"allowed"},
    Message: {"content"},
    Response: {"warnings"},
    StreamStart: {"warnings"},
    ToolCall: {"arguments"},
    Image: {"url", "path"},
    Audio: {"url", "path"},
    Document: {"url", "path"},
}


@pytest.mark.parametrize("kind", [kind for kind in LENIENT if kind is not Request])
def test_a_type_checker_sees_the_fields(kind):
    """The constructor written for it has every field, by keyword, with the field's default."""
    source = source_of(kind)
    (unseen,) = (node for node in source.body if isinstance(node, ast.If))
    (constructor,) = unseen.body
    given_by = constructor.args
    seen = {
        argument.arg: (ast.unparse(argument.annotation), default and ast.unparse(default))
        for argument, default in (
            *zip(given_by.args[1:], given_by.defaults, strict=True),
            *zip(given_by.kwonlyargs, given_by.kw_defaults, strict=True),
        )
    }
    declared = {
        node.target.id: (ast.unparse(node.annotation), default_of(node.value))
        for base in reversed(kind.__mro__)
        if base.__module__.startswith("interlingua.spec.")
        for node in source_of(base).body
        if isinstance(node, ast.AnnAssign)
    }
    refused = {"tool_call_id"} if kind is Message else set()  # there only to say what to write
    fields = {name: declared[name] for name in kind.__struct_fields__ if name not in refused}

    assert (constructor.name, ast.unparse(unseen.test)) == ("__init__", "TYPE_CHECKING")
    assert [argument.arg for argument in given_by.args] == ["self", *kind.__match_args__]
    assert (given_by.posonlyargs, given_by.vararg, given_by.kwarg) == ([], None, None)
    assert sorted(seen) == sorted(fields)
    assert {name for name in fields if seen[name][0] != fields[name][0]} == LENIENT[kind]
    assert [seen[name][1] for name in fields] == [default for _, default in fields.values()]
    assert kind.__init__ is object.__init__  # at run time msgspec makes it, in `__new__`


def source_of(kind):
    (source,) = ast.parse(inspect.getsource(kind)).body
    return source


def default_of(node):
    """The default as an argument has it: `...` for one that could be changed or has to be made."""
    if node is None:
        return None
    return "..." if isinstance(node, (ast.Dict, ast.Call)) else ast.unparse(node)


def test_every_lenient_constructor_is_typed():
    """Whatever of the language makes more of its fields says so to type checkers."""
    public = [
        getattr(module, name)
        for module in (interlingua, interlingua.events)
        for name in module.__all__
    ]
    kinds = {kind for kind in public if inspect.isclass(kind)}
    lenient = {
        kind
        for kind in kinds
        if issubclass(kind, msgspec.Struct)
        and kind.__module__.startswith("interlingua.spec.")
        and hasattr(kind, "__post_init__")
    }

    assert lenient - {ToolResult} == LENIENT.keys()  # its content may be anything


@settings(deadline=None)
@given(conversations())
def test_messages_from_any_iterable(messages):
    """Lists, tuples and generators of messages give the same request."""
    expected = Request(messages=messages)

    assert Request(messages=list(messages)) == expected
    assert Request(messages=(message for message in messages)) == expected
    assert type(expected.messages) is tuple


@settings(deadline=None)
@given(requests())
def test_copies_are_equal(request):
    """A request rebuilt from its own fields is equal to it."""
    fields = {name: getattr(request, name) for name in Request.__struct_fields__}

    assert Request(**fields) == request
    assert copy.deepcopy(request) == request


@pytest.mark.parametrize("messages", ["hi", ["hi"], ("hi",), iter(["hi"])], ids=type)
def test_plain_text_is_a_user_message(messages):
    """A string, alone or among messages, is what the user says."""
    assert Request(messages=messages).messages == (Message.user("hi"),)


@pytest.mark.parametrize("tools", [None, (), []])
def test_no_tools_are_the_empty_tuple(tools):
    """`tools` is the empty tuple when there are none, however that was said."""
    assert Request(tools=tools).tools == Request().tools == ()
    assert Request(tools=tools) == Request()


def test_one_message_needs_no_list():
    """A single message is a conversation of one."""
    assert Request(messages=Message.system("hi")).messages == (Message.system("hi"),)


@pytest.mark.parametrize("item", [None, 5, b"hi", Image(url="u")])
def test_what_is_no_message_is_refused(item):
    """Something else among the messages is an error that names its type."""
    for messages in ([item], (item,), (Message.user("hi"), item)):
        with pytest.raises(ConfigurationError, match=type(item).__name__):
            Request(messages=messages)


@pytest.mark.parametrize(
    ("stops", "expected"),
    [("END", ("END",)), (["a", "b"], ("a", "b")), ((), ()), ([], ()), (None, None), ("", ("",))],
)
def test_stop_sequences(stops, expected):
    """One string is one stop sequence, never a sequence of letters."""
    assert Request(stop_sequences=stops).stop_sequences == expected


@pytest.mark.parametrize(
    ("allowed", "expected"), [("look", ("look",)), (["a", "b"], ("a", "b")), ([], ()), (None, None)]
)
def test_allowed_tools(allowed, expected):
    """The allowed tools are a tuple, from any iterable or one name."""
    assert ToolChoice(allowed=allowed).allowed == expected


def test_tools_from_a_list():
    """Tools given in a list are a tuple."""
    tools = [ToolDefinition(name="look"), BuiltinTool(dialect="openai_responses", data={"a": 1})]

    assert Request(tools=tools).tools == tuple(tools)


@pytest.mark.parametrize(("field", "value"), FALSY.items())
def test_falsy_values_are_values(field, value):
    """Zero, empty and false differ from unsaid, also in JSON."""
    request = Request(**{field: value})

    assert getattr(request, field) == value
    assert getattr(request, field) is not None
    assert request != Request()
    assert field in msgspec.to_builtins(request)


def test_unsaid_is_none():
    """All settings of an empty request are None."""
    assert {name for name in FALSY if getattr(Request(), name) is not None} == set()


def test_caller_owned_values_are_not_changed():
    """Lists and mappings given to a request are as they were."""
    messages, stops, options = ["hi"], ["END"], {"openai_chat": {"logprobs": True}}

    Request(messages=messages, stop_sequences=stops, provider_options=options)

    assert (messages, stops, options) == (["hi"], ["END"], {"openai_chat": {"logprobs": True}})


@pytest.mark.parametrize(
    "value",
    [
        Request(),
        ToolDefinition(name="look"),
        BuiltinTool(dialect="x"),
        ToolChoice(),
        ResponseFormat(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_frozen(value):
    """No field of a request or of what it holds can be set."""
    for field in type(value).__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(value, field, None)


def test_repr_says_only_what_was_said():
    """The repr of a request leaves out what it does not say."""
    assert repr(Request(model="m", temperature=0.0)) == "Request(model='m', temperature=0.0)"
