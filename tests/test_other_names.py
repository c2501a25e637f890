"""Names that are elsewhere, or that other designs have, lead to the right place."""

import importlib
import subprocess
import sys

import pytest

import interlingua
from interlingua import errors
from interlingua.dialects import StreamAccumulator
from interlingua.spec.messages import Message
from interlingua.spec.response import Response
from interlingua.streams.accumulate import events_from_response

ELSEWHERE = {name: module for module, names in interlingua._ELSEWHERE.items() for name in names}
EXAMPLES = {
    "ProviderError": "Write `from interlingua.errors import ProviderError`.",
    "get_latest_model": "Write `from interlingua.catalog import get_latest_model`.",
    "StreamAccumulator": "Write `from interlingua.dialects import StreamAccumulator`.",
    "ContentPart": "Write `from interlingua import Part`.",
    "ImageData": "Write `from interlingua import Image`.",
    "TEXT_DELTA": "Write `from interlingua.events import TextDelta`.",
    "CanonicalRequest": "Write `from interlingua import Request`.",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_name_that_is_elsewhere_is_found(name):
    """As an attribute and in an import statement, the error says what to write."""
    with pytest.raises(AttributeError) as caught:
        getattr(interlingua, name)
    assert EXAMPLES[name] in str(caught.value)
    with pytest.raises(ImportError) as refused:
        exec(f"from interlingua import {name}", {})  # noqa: S102 -- an import statement is tested
    assert EXAMPLES[name] in str(refused.value)
    assert not hasattr(interlingua, name)


def test_what_the_errors_advise_works():
    """Every name in both tables has a place that exists, and is not itself a public name."""
    for name, place in [
        *((name, f"{module}.{name}") for name, module in ELSEWHERE.items()),
        *interlingua._OTHER_NAMES.items(),
    ]:
        module, _, own = f"interlingua.{place}".rpartition(".")
        assert hasattr(importlib.import_module(module), own), name
        assert name not in interlingua._HOME
        assert name not in interlingua._MODULES


def test_every_error_is_found():
    """A new one needs its place in the table."""
    assert {*errors.__all__} - {*interlingua._HOME} <= {*interlingua._ELSEWHERE["errors"]}


def test_an_unknown_name_is_an_ordinary_error():
    """An attribute error, an import error, and nothing is loaded for it."""
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = interlingua.Nothing
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        from interlingua import Nothing  # noqa: F401
    code = "import interlingua, sys; hasattr(interlingua, 'ProviderError'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "interlingua.spec" not in done.stdout.split()


def test_an_accumulator_has_the_verb_of_other_clients_too():
    """`process` does what `feed` does."""
    response = Response(message=Message.assistant("Hello"))
    accumulator = StreamAccumulator()
    for event in events_from_response(response):
        accumulator.process(event)
    assert accumulator.response().text == "Hello"
