"""What is taken as middleware, with which parameters, and what is refused when a client is made."""

import asyncio
import functools

import pytest

from interlingua import Client, OpenAIAdapter, Request
from interlingua.middleware import Balance, Budget, Call, Logging
from interlingua.spec.errors import ConfigurationError
from interlingua.stores import MemoryStore
from support.scripted_adapter import ScriptedAdapter, says

# Functions and objects of all forms that note the call, if they take it.


async def two(request, call_next):
    return await call_next(request)


async def third_by_position(request, call_next, call, /):
    third_by_position.calls.append(call)
    return await call_next(request)


async def third_of_another_name(request, call_next, about):
    third_of_another_name.calls.append(about)
    return await call_next(request)


async def third_by_keyword(request, call_next, *, call):
    third_by_keyword.calls.append(call)
    return await call_next(request)


async def third_with_a_default(request, call_next, call=None):
    third_with_a_default.calls.append(call)
    return await call_next(request)


async def option_of_its_own(request, call_next, limit=10):
    assert limit == 10
    return await call_next(request)


async def next_named_call(request, call):
    return await call(request)


async def generator(request, call_next, call):
    generator.calls.append(call)
    async for event in call_next(request):
        yield event


def wrapped(function):
    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        return await function(*args, **kwargs)

    return wrapper


async def loose(*args):
    request, call_next = args
    return await call_next(request)


class Whole:
    def __init__(self):
        self.calls = []

    async def complete(self, request, call_next, call):
        self.calls.append(call)
        return await call_next(request)


class Streamed:
    def __init__(self):
        self.calls = []

    async def stream(self, request, call_next, *, call):
        self.calls.append(call)
        async for event in call_next(request):
            yield event


class Callable:
    def __init__(self):
        self.calls = []

    async def __call__(self, request, call_next, call):
        self.calls.append(call)
        return await call_next(request)


TAKING = {
    "position": lambda: third_by_position,
    "another name": lambda: third_of_another_name,
    "keyword": lambda: third_by_keyword,
    "default": lambda: third_with_a_default,
    "generator": lambda: generator,
    "complete": Whole,
    "stream": Streamed,
    "object": Callable,
    "decorated": lambda: wrapped(third_by_position),
}


async def ask(client, mode):
    request = Request(model="here:m", messages="Hi.", request_id="r")
    if mode == "complete":
        return (await client.complete(request)).text
    return [event async for event in client.stream(request)][-1].response.text


modes = pytest.mark.parametrize("mode", ["complete", "stream"])


@modes
@pytest.mark.parametrize("form", TAKING)
def test_the_call_is_passed_to_every_form_that_takes_it(form, mode):
    """By position or by keyword, to functions and to methods."""
    layer = TAKING[form]()
    layer.calls = getattr(layer, "__wrapped__", layer).calls = []
    client = Client({"here": ScriptedAdapter(says("Hello."))}, middleware=[layer])

    assert asyncio.run(ask(client, mode)) == "Hello."
    (call,) = layer.calls
    assert isinstance(call, Call)
    assert (call.name, call.provider, call.model, call.request_id) == ("generate", "here", "m", "r")
    assert len(call.attempts()) == 1


@modes
@pytest.mark.parametrize("layer", [two, option_of_its_own, next_named_call, loose])
def test_a_function_without_it_gets_two_arguments(layer, mode):
    """A third parameter that has another name and a default keeps its default."""
    client = Client({"here": ScriptedAdapter(says("Hello."))}, middleware=[layer])

    assert asyncio.run(ask(client, mode)) == "Hello."


class Own:
    """An adapter of a program."""

    name = "own"

    async def complete(self, request, strict=False): ...

    def stream(self, request, strict=False): ...


class Short:
    async def complete(self, request):
        return request


def plain(request, call_next):
    return call_next(request)


REFUSED = {
    "balance": (
        lambda: Balance(OpenAIAdapter(api_key="sk-1"), OpenAIAdapter(api_key="sk-2")),
        r"`Balance` is an adapter, .*: pass it as Client\(\{'openai': Balance\(…\)\}\)\.",
    ),
    "adapter": (lambda: OpenAIAdapter(api_key="sk-1"), r"Client\(\{'openai': \w+\(…\)\}\)\."),
    "own adapter": (Own, r"`Own` is an adapter.* Client\(\{'own': Own\(…\)\}\)\."),
    "class": (lambda: Budget, r"The class Budget is not a middleware: .* such as Budget\(…\)\."),
    "sync function": (
        lambda: plain,
        r"`plain` is not a middleware.*: write `async def plain\(request, call_next\)`\.",
    ),
    "store": (
        MemoryStore,
        r"`MemoryStore` is a store, .* such as Budget\(usd=20, store=MemoryStore\(…\)\)\.",
    ),
    "string": (lambda: "logging", "'logging' is not a middleware: it needs"),
    "none": (lambda: None, "None is not a middleware: it needs"),
    "too few parameters": (Short, r"`complete` must take \(request, call_next\), or"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_middleware_is_refused_by_name_when_the_client_is_made(case):
    """With what to do, also by `with_middleware`."""
    make, message = REFUSED[case]
    client = Client({"here": ScriptedAdapter(says("Hello."))})

    with pytest.raises(ConfigurationError, match=message):
        Client({"here": ScriptedAdapter(says("Hello."))}, middleware=[make()])
    with pytest.raises(ConfigurationError, match=message):
        client.with_middleware(make())


@pytest.mark.parametrize("given", [Logging(), None, "logging"])
def test_middleware_is_a_list(given):
    """One middleware alone is a common mistake."""
    with pytest.raises(ConfigurationError, match=r"`middleware=` takes a list.*\.$"):
        Client({}, middleware=given)
