"""`stream_object` on hostile text: an object, or an error of ours, in linear time."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import Client, stream_object
from interlingua.api.objects.functions import GrowingObject
from interlingua.api.objects.schema import ObjectSchema
from interlingua.conformance.strategies import json_values
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, pieces, text
from interlingua.spec.errors import SDKError
from interlingua.spec.events import TextDelta
from interlingua.transport import AsgiTransport
from interlingua.wire.json_text import dump_text
from support.patterns import LINEAR, growth

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
UNITS = (
    "{", "[", '{"n":', '{"n":[', '"', "\\", '{"n":"\\', '{"n":1}', "```", "```json\n", "{}", "}",
    "\x00", "\ud83d", "9", '{"n":1', "-", "{\n", "true", '{"n":null,', '{"', "é", "e9", ",", ":",
)  # fmt: skip


def ends(answer):
    """How a stream of objects over this answer ends: with an object, or with an error of ours."""

    async def main():
        adapter = HttpAdapter(
            "openai_compatible",
            base_url="http://a.test",
            transport=AsgiTransport(Simulator(answer)),
        )
        async with Client({"house": adapter}) as client:
            found = stream_object(
                "house:m", "Go", schema=SCHEMA, client=client, max_validation_retries=0
            )
            try:
                async for _ in found:
                    pass
                return found.object()
            except SDKError as error:
                return error

    return asyncio.run(main())


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_an_answer_of_repeated_text_ends(unit):
    """50,000 characters of it, in pieces."""
    ends(pieces(97) + text(unit * (50_000 // len(unit))))


@given(
    st.lists(st.one_of(st.sampled_from(UNITS), st.text(max_size=5)), max_size=30).map("".join),
    json_values,
)
def test_any_text_raises_only_our_errors(said, value):
    """Nothing but our own errors escapes, from text and from text around JSON."""
    growing = GrowingObject(ObjectSchema(SCHEMA))
    for delta in (said, dump_text(value), said):
        growing.feed(TextDelta(id="t", index=0, delta=delta))


@pytest.mark.parametrize("unit", UNITS, ids=repr)
@pytest.mark.parametrize("size", [1, 1000])
def test_the_time_of_a_growing_object_is_linear(unit, size):
    """A text of twice the size takes twice the time, in pieces of any size.

    The depth is limited, so only texts that are longer than it can show the growth.
    """

    def use(said):
        growing = GrowingObject(ObjectSchema({"type": "object"}))
        for at in range(0, len(said), size):
            growing.feed(TextDelta(id="t", index=0, delta=said[at : at + size]))

    def make(length):
        return unit * ((16 * length if length > 100 else length) // len(unit))

    assert growth(use, make) < LINEAR
