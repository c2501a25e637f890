"""What `blocking` makes: functions with the names, signatures and docstrings of async ones."""

import asyncio
import importlib
import inspect
import pickle
import typing
from pydoc import render_doc

import pytest

import interlingua
from interlingua import batch, bulk, files, mcp, media, sync, video
from interlingua.simulator import text
from interlingua.sync.blocking import blocking, blocking_docstring
from support.blocking import blocking as simulated
from support.blocking import named

TWINS = {
    sync: interlingua,
    sync.batch: batch,
    bulk.sync: bulk,
    sync.files: files,
    importlib.import_module("interlingua.sync.media"): media,
    sync.video: video,
}
OTHER_RESULT = {"execute", "get_default_client", "retry"}
PAIRS = [
    (module, name, getattr(twins, name, None) or mcp.mcp_tools)
    for module, twins in TWINS.items()
    for name in module.__all__
    if inspect.isfunction(getattr(module, name))
]
every_function = pytest.mark.parametrize(
    ("module", "name", "twin"), PAIRS, ids=[f"{m.__name__}.{n}" for m, n, _ in PAIRS]
)


def test_every_async_function_has_a_blocking_one():
    """Nothing that must be awaited is missing."""
    for module, twins in TWINS.items():
        awaited = {n for n in twins.__all__ if inspect.iscoroutinefunction(getattr(twins, n))}
        assert awaited <= {*module.__all__, *sync.__all__}
    assert len(PAIRS) > 45


@every_function
def test_it_can_be_found_by_its_name(module, name, twin):
    """So that it can be pickled, and `help` says where it is from."""
    function = getattr(module, name)

    assert function.__name__ == function.__qualname__ == name
    assert pickle.loads(pickle.dumps(function)) is function  # noqa: S301 -- our own
    if function is not twin:
        assert function.__module__.startswith(("interlingua.sync", "interlingua.bulk.sync"))
    assert not inspect.iscoroutinefunction(function)


@every_function
def test_the_parameters_are_those_of_the_async_function(module, name, twin):
    """With their kinds, defaults and types."""
    function = getattr(module, name)
    ours, theirs = inspect.signature(function), inspect.signature(twin)

    if name not in OTHER_RESULT:
        assert list(ours.parameters.values()) == list(theirs.parameters.values())
    result = str(ours.return_annotation)
    assert "Async" not in result
    assert "ManyResults" not in result
    assert "BatchResults" not in result


def test_the_types_can_be_read():
    """As frameworks read them: the results are those of the blocking functions."""
    hints = typing.get_type_hints(sync.embed)

    assert hints == typing.get_type_hints(interlingua.embed)
    assert typing.get_type_hints(sync.generate_many)["return"] is sync.BlockingIterator


@every_function
def test_the_docstring_is_that_of_the_async_function(module, name, twin):
    """Whole, in one column, with an example that does not await."""
    doc = inspect.getdoc(getattr(module, name))

    if name not in OTHER_RESULT:
        assert doc == inspect.cleandoc(blocking_docstring(inspect.getdoc(twin)))
    assert doc.splitlines()[0].strip()
    code = [line for line in doc.splitlines() if line.startswith("    ")]
    assert not any("await" in line or "async " in line for line in code)
    assert name in render_doc(getattr(module, name))


def test_how_a_docstring_is_changed():
    """In the examples only: what the text says of async functions stays."""
    text = """
    Ask; `on_end` may be async for a reason.

        result = await ask((await open("x")).name, [each async for each in names()])
        async with result as found:
            async for one in found:
                print((await one.read()))
    """

    assert inspect.cleandoc(blocking_docstring(text)) == (
        "Ask; `on_end` may be async for a reason.\n"
        "\n"
        '    result = ask(open("x").name, [each for each in names()])\n'
        "    with result as found:\n"
        "        for one in found:\n"
        "            print((one.read()))"
    )
    assert blocking_docstring("Ask.") == "Ask."


def test_arguments_that_do_not_fit():
    """They are refused by the async function, with its name."""

    async def greet(name):
        return f"Hello, {name}."

    hello = blocking(greet, __name__, "hello")

    assert hello("you") == "Hello, you."
    assert hello.__name__ == "hello"
    with pytest.raises(TypeError, match=r"greet\(\)"):
        hello()


def test_both_halves_take_both_clients():
    """A function does not mind whether the client of its options blocks."""
    with simulated(text("hello")) as (peer, client):
        for given in (client, peer.client):
            options = {"client": given}
            asked = [
                interlingua.generate(named("openai"), "Hi", **options),
                interlingua.Session(named("openai"), **options).send("Hi"),
                interlingua.Session(named("openai")).send("Hi", **options),
            ]
            texts = [asyncio.run(each).text for each in asked]
            texts.append(sync.generate(named("openai"), "Hi", **options).text)
            texts.append(sync.Session(named("openai"), **options).send("Hi").text)
            (many,) = asyncio.run(
                _all(interlingua.generate_many(["Hi"], named("openai"), **options))
            )
            texts.append(many.result.text)
            assert texts == ["hello"] * 6


async def _all(results):
    return await results
