"""The error tree."""

import ast
import copy
import inspect
import pickle
import re

import pytest

from interlingua.spec import errors
from interlingua.spec.errors import (
    DecodeError,
    ErrorClass,
    ErrorFacts,
    NetworkError,
    NoObjectGeneratedError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    RequestTimeoutError,
    SDKError,
)
from interlingua.spec.messages import Message
from interlingua.spec.response import Attempt, Response, Usage
from support.sources import SOURCE, parsed

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, SDKError)
}

# What is not transient is not retried.
RETRYABLE = {
    "RateLimitError",
    "ServerError",
    "CircuitOpenError",
    "RequestTimeoutError",
    "ProviderTimeoutError",
    "NetworkError",
    "StreamError",
}
# The class for metrics of each error.
ERROR_CLASSES = {
    "SDKError": "other",
    "ProviderError": "other",
    "AuthenticationError": "auth",
    "AccessDeniedError": "auth",
    "NotFoundError": "invalid_request",
    "InvalidRequestError": "invalid_request",
    "RateLimitError": "rate_limit",
    "ServerError": "server_error",
    "ContentFilterError": "invalid_request",
    "ContextLengthError": "context_overflow",
    "QuotaExceededError": "rate_limit",
    "CircuitOpenError": "server_error",
    "BudgetExceededError": "rate_limit",
    "RunLimitError": "other",
    "StoreError": "other",
    "ProviderTimeoutError": "network",
    "RequestTimeoutError": "network",
    "AbortError": "cancelled",
    "NetworkError": "network",
    "StreamError": "server_error",
    "DecodeError": "server_error",
    "MismatchError": "server_error",
    "InvalidToolCallError": "other",
    "NoObjectGeneratedError": "other",
    "ConfigurationError": "invalid_request",
    "UnsupportedError": "invalid_request",
    "UnsupportedToolChoiceError": "invalid_request",
}


def drawn_parents() -> dict[str, set[str]]:
    """Each class of the drawing with its parents."""
    parents: dict[str, set[str]] = {}
    above: dict[int, str] = {}
    for line in inspect.cleandoc(errors.__doc__ or "").splitlines():
        found = re.match(r"(?P<lines>[\s│├└─]*)(?P<name>[A-Z][A-Za-z]+Error)\b(?P<rest>.*)", line)
        if found is None:
            continue
        column = found.start("name")
        parent = next((above[at] for at in sorted(above, reverse=True) if at < column), None)
        above = {at: name for at, name in above.items() if at < column} | {column: found["name"]}
        parents[found["name"]] = {parent} if parent else set()
        parents[found["name"]] |= set(re.findall(r"also an? (\w+)", found["rest"]))
    return parents


def test_drawing_is_the_tree():
    """The drawing at the top of the file has each class, under its true parents."""
    real = {
        name: {base.__name__ for base in cls.__bases__ if base is not Exception}
        for name, cls in CLASSES.items()
    }

    assert drawn_parents() == real
    assert len(real) == 27


@pytest.mark.parametrize("name", CLASSES)
def test_error_class(name):
    """Each class has its one place in the closed list."""
    assert CLASSES[name]("x").error_class == ErrorClass(ERROR_CLASSES[name])


@pytest.mark.parametrize("name", CLASSES)
def test_retryable(name):
    """Transient errors are retryable, the others are not."""
    assert CLASSES[name]("x").retryable is (name in RETRYABLE)


def test_closed_list():
    """The list of classes for metrics is closed: these, in this order."""
    assert [member.value for member in ErrorClass] == [
        "rate_limit", "auth", "server_error", "network", "context_overflow", "invalid_request",
        "cancelled", "other",
    ]  # fmt: skip


FACTS = {
    "provider": "groq",
    "model": "llama",
    "status_code": 429,
    "error_code": "slow",
    "request_id": "ours",
    "provider_request_id": "theirs",
    "retry_after": 0.0,
    "raw": {"a": 0},
    "attempts": (Attempt(number=0, error_class=ErrorClass.NETWORK),),
    "partial": Response(id="r"),
    "messages": (Message.user("hi"),),
    "steps": (1, 2),
    "total_usage": Usage(input_tokens=3),
}


@pytest.mark.parametrize("cls", CLASSES.values())
def test_fields_every_error_has(cls):
    """Every class takes the same facts; those that are not given are None."""
    cause = ValueError("x")
    error = cls("what happened", retryable=True, cause=cause, **FACTS)
    empty = cls("what happened")

    assert error.message == empty.message == "what happened"
    assert error.retryable is True
    assert error.cause is error.__cause__ is cause
    assert {name: getattr(error, name) for name in FACTS} == FACTS
    assert {getattr(empty, name) for name in FACTS} == {None}
    assert empty.cause is None


@pytest.mark.parametrize("cls", CLASSES.values())
@pytest.mark.parametrize("name", FACTS)
def test_facts_are_added_and_never_overwritten(cls, name):
    """`add_facts` fills what is None; what was set first stays, also if it is falsy."""
    error = cls("x")
    assert error.add_facts(**{name: None}) is error
    assert getattr(error, name) is None
    error.add_facts(**{name: FACTS[name]})
    error.add_facts(**{name: "another"})

    assert getattr(error, name) == FACTS[name]


def test_a_fact_of_another_class_is_refused():
    """A misspelt field, or one that only another class has, is a TypeError."""
    with pytest.raises(TypeError, match="SDKError has no field 'phase'"):
        SDKError("x", phase="connect")
    with pytest.raises(TypeError, match="no field 'modle'"):
        SDKError("x").add_facts(modle="m")


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({}, "too fast"),
        ({"provider": "groq"}, "groq: too fast"),
        ({"model": "llama"}, "llama: too fast"),
        ({"provider": "groq", "model": "llama"}, "groq:llama: too fast"),
    ],
)
def test_the_text_names_provider_and_model(facts, text):
    """One form: provider and model, what happened, what to do; also if they are added later."""
    for cls in CLASSES.values():
        assert str(cls("too fast", **facts)) == str(cls("too fast").add_facts(**facts)) == text
        assert str(cls(text, **facts)) == text  # not said twice


def test_standard_exceptions():
    """Code that knows only Python's own exceptions catches timeouts and lost connections."""
    assert issubclass(RequestTimeoutError, TimeoutError)
    assert issubclass(ProviderTimeoutError, TimeoutError)
    assert issubclass(NetworkError, ConnectionError)
    others = set(CLASSES.values()) - {RequestTimeoutError, ProviderTimeoutError, NetworkError}
    assert not any(issubclass(cls, OSError) for cls in others)


@pytest.mark.parametrize("cls", CLASSES.values())
def test_retryable_can_be_said(cls):
    """A `retryable` that is given, false too, wins over the class."""
    assert cls("x", retryable=False).retryable is False
    assert cls("x", retryable=True).retryable is True


@pytest.mark.parametrize("cls", CLASSES.values())
def test_a_retry_can_be_forbidden(cls):
    """Whatever the class, and the provider, said."""
    error = cls("x", retryable=True)
    error.forbid_retry()

    assert error.retryable is False


@pytest.mark.parametrize("cls", CLASSES.values())
def test_errors_can_be_copied_and_pickled(cls):
    """An error crosses a process boundary with its fields."""
    error = cls("x", retryable=True, **FACTS)

    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301 -- our own bytes
        assert type(other) is cls
        assert vars(other) == vars(error)
        assert (str(other), repr(other)) == (str(error), repr(error))


def test_a_provider_s_timeout_is_both():
    """Whoever catches timeouts or provider errors catches a provider's timeout."""
    error = ProviderTimeoutError("x", status_code=504)

    assert isinstance(error, ProviderError)
    assert isinstance(error, RequestTimeoutError)
    assert error.status_code == 504


def test_decode_error_has_a_path():
    """A decode error may say where in the JSON."""
    assert DecodeError("x", path="messages[2].role").path == "messages[2].role"
    assert DecodeError("x").path is None


def test_no_object_has_what_came_instead():
    """The text, the whole answer, and what is wrong with it."""
    response = Response(id="r")
    error = NoObjectGeneratedError("x", text="{", response=response, problems=("a: b",))

    assert (error.text, error.response, error.problems) == ("{", response, ("a: b",))
    assert NoObjectGeneratedError("x").problems == ()


def test_repr_is_short():
    """The repr shows the class and the message, not the body."""
    error = RateLimitError("slow down", raw={"secret": "x"})

    assert repr(error) == "RateLimitError('slow down')"


def test_timeouts_say_which_clock():
    """A retry policy can tell a connection that did not come about from a slow reply."""
    assert RequestTimeoutError("x", phase="connect").phase == "connect"
    assert RequestTimeoutError("x").phase is None
    assert ProviderTimeoutError("x", status_code=504).phase is None


def error_names(tree):
    """The variables of a module that hold errors: caught, annotated as one, or just made."""
    for node in ast.walk(tree):
        match node:
            case ast.ExceptHandler(name=str(name)):
                yield name
            case ast.arg(arg=name, annotation=ast.expr() as kind) if "Error" in ast.unparse(kind):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=maker)):
                if "error" in ast.unparse(maker).lower():
                    yield name


FIELDS = {*ErrorFacts.__annotations__, "retryable", "message", "args", "__cause__"}


def assigned_fields(tree):
    """What is assigned to fields of errors, as `error.partial`."""
    names = set(error_names(tree))
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            match target:
                case ast.Attribute(value=ast.Name(id=owner), attr=field):
                    if owner in names and field in FIELDS:
                        yield f"{owner}.{field}"


def test_only_errors_themselves_set_their_fields():
    """Outside of `spec/errors.py` nobody assigns a field of an error: there is `add_facts`."""
    found = {
        f"{path.relative_to(SOURCE)}: {target}"
        for path, tree in parsed(rf"\.(?:{'|'.join(FIELDS)})\s*=[^=]")
        for target in assigned_fields(tree)
    }
    # The fold of a stream should estimate the usage before it makes the partial response.
    found -= {"api/run/run.py: error.partial"}
    assert found == set()
    sample = "try: pass\nexcept SDKError as error: error.partial = 1"
    assert list(assigned_fields(ast.parse(sample))) == ["error.partial"]
