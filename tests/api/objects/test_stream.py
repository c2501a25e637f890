"""An object as it comes."""

import asyncio
import json
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.api.objects.functions import GrowingObject, stream_object
from interlingua.api.objects.schema import ObjectSchema
from interlingua.api.tools.tool import tool
from interlingua.client.client import Client
from interlingua.prepare.schema.restore import AddedNulls
from interlingua.simulator import (
    cut,
    error_event,
    finish,
    pieces,
    stall,
    text,
    thinking,
    tool_call,
)
from interlingua.simulator import error as refuse
from interlingua.spec.content import ToolCall
from interlingua.spec.errors import ConfigurationError, NoObjectGeneratedError, SDKError
from interlingua.spec.events import TextDelta, ToolCallDelta, ToolCallEnd, ToolCallStart
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.accumulate import events_from_response
from interlingua.wire import partial_json as partial_module
from support.simulated import MODELS, run, settled, simulated

ANY = ObjectSchema({"type": "object"})
LIST = ObjectSchema({"type": "array"})
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
objects = st.dictionaries(st.text(max_size=4), values, max_size=4)


def said(delta):
    return TextDelta(id="t", index=0, delta=delta)


def begun(name="answer", id="c"):  # noqa: A002 -- the event's word
    return ToolCallStart(id=id, index=1, tool_call_id=id, name=name)


def argued(delta, id="c"):  # noqa: A002 -- as above
    return ToolCallDelta(id=id, index=1, delta=delta)


def feed(growing, events):
    """What it showed."""
    return [growing.value for event in events if growing.feed(event)]


def is_prefix(part, whole):
    """Whether `part` is what a reader of `whole` may have seen halfway."""
    if isinstance(whole, str):
        return isinstance(part, str) and whole.startswith(part)
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(name in whole and is_prefix(part[name], whole[name]) for name in part)
    if isinstance(whole, list) and isinstance(part, list):
        return len(part) <= len(whole) and all(map(is_prefix, part, whole))
    return type(part) is type(whole) and part == whole


@given(value=objects, size=st.integers(1, 9), before=st.sampled_from(["", "So:\n```json\n"]))
def test_it_grows(value, size, before):
    """However it is cut, each partial is a beginning of the whole, and the last is the whole."""
    whole = before + json.dumps(value)
    shown = feed(
        GrowingObject(ANY), (said(whole[at : at + size]) for at in range(0, len(whole), size))
    )

    assert all(is_prefix(part, value) for part in shown)
    assert all(before != after for before, after in pairwise(shown))
    assert shown[-1] == value


@given(value=st.lists(values, max_size=4), size=st.integers(1, 9), wrapped=st.booleans())
def test_what_is_wrapped_grows_unwrapped(value, size, wrapped):
    """The wrapping never shows, and a model may forget it."""
    whole = json.dumps({"value": value} if wrapped else value)
    shown = feed(
        GrowingObject(LIST), (said(whole[at : at + size]) for at in range(0, len(whole), size))
    )

    assert all(is_prefix(part, value) for part in shown)
    assert shown[-1] == value


def test_in_a_call():
    """The arguments of the tool made for it, not those of another, nor what was said before."""
    events = [
        said("Let me {see"),
        begun("lookup", "a"),
        begun("answer", "b"),
        argued('{"q":', "a"),
        argued('{"n":', "b"),
        argued("1}", "a"),
        argued("2}", "b"),
        said('{"n": 3}'),
        ToolCallEnd(id="b", index=1, tool_call=ToolCall(id="b", name="answer")),
        begun("answer", "c"),
        argued('{"n": 4}', "c"),
    ]

    assert feed(GrowingObject(ANY, "answer"), events) == [{}, {"n": 2}]


def test_another_answer():
    """It begins anew, and the last value stays until there is another."""
    growing = GrowingObject(ANY)
    feed(growing, [said('{"a": 1}')])
    growing.begin()

    assert growing.value == {"a": 1}
    assert feed(growing, [said('{"a"'), said(": 1}"), said(" ")]) == [{}, {"a": 1}]


def test_nulls_for_what_is_optional_do_not_show():
    """As in the whole object."""
    schema = ObjectSchema({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}})

    assert feed(GrowingObject(schema), [said('{"a": null, "b": 1}')]) == [{"b": 1}]


def test_a_null_between_two_fragments_is_seen():
    """However the text is cut, an added null does not show."""
    schema = ObjectSchema({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}})
    whole = '{"b": 1, "a": null, "b": 2}'
    for size in range(1, len(whole)):
        fragments = [whole[at : at + size] for at in range(0, len(whole), size)]
        shown = feed(GrowingObject(schema), map(said, fragments))
        assert shown[-1] == {"b": 2}
        assert all("a" not in value for value in shown)


def work_of(count, monkeypatch, first="x"):
    """The characters parsed and the values cleaned for so many records, in fragments of 50."""
    done = {"parsed": 0, "cleaned": 0}
    loads, clean = partial_module.loads, AddedNulls.drop

    def counting_loads(given):
        done["parsed"] += len(given)
        return loads(given)

    def counting_clean(self, value):
        done["cleaned"] += len(value)
        return clean(self, value)

    records = [{"name": first}, *({"name": "x" * 20, "n": n} for n in range(count))]
    whole = json.dumps({"value": records})
    growing = GrowingObject(ObjectSchema(list[dict[str, str | int]]))
    with monkeypatch.context() as patched:
        patched.setattr(partial_module, "loads", counting_loads)
        patched.setattr(AddedNulls, "drop", counting_clean)
        fragments = [whole[at : at + 50] for at in range(0, len(whole), 50)]
        shown = feed(growing, map(said, fragments))
    return len(whole), len(fragments), len(shown), done


def test_the_work_is_linear(monkeypatch):
    """100 kB in 2,000 fragments is parsed some twenty times over, not a thousand."""
    length, fragments, shown, done = work_of(2500, monkeypatch, first=None)
    twice, _, _, more = work_of(5000, monkeypatch, first=None)

    assert length > 100_000
    assert fragments > 2000
    assert 40 < shown < 200
    assert done["parsed"] < 20 * length
    assert 2500 < done["cleaned"] < 20 * 2500
    assert more["parsed"] < 2.2 * done["parsed"]
    assert twice > 1.9 * length


def test_an_answer_without_null_is_not_searched_for_added_ones(monkeypatch):
    """The text tells that there are none."""
    assert work_of(2500, monkeypatch)[-1]["cleaned"] == 0


# The stream.

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
PROVIDER = "openai_compatible"


def stream(client, schema=SCHEMA, **options):
    return stream_object(
        MODELS[PROVIDER], "Go", schema=schema, provider=PROVIDER, client=client, **options
    )


def read(*answers, schema=SCHEMA, profile=None, **options):
    """The partials, the stream, and the error that ended it if one did."""

    async def work(client):
        found = stream(client, schema, **options)
        shown = []
        try:
            async for partial in found:
                shown.append(partial)  # noqa: PERF401 -- what came before an error is kept
        except SDKError as error:
            return shown, found, error
        return shown, found, None

    with simulated(*answers, profile=profile) as peer:
        return run(peer, work)


def test_after_the_end():
    """The object, the response and all of the run."""
    shown, found, error = read(thinking("Hm.") + text('{"n": 12}') + pieces(3))

    assert error is None
    assert shown == [{}, {"n": 12}]
    assert found.object() == found.partial == {"n": 12}
    assert found.response().text == '{"n": 12}'
    assert found.result().output == {"n": 12}
    assert found.result().messages[-1].text == '{"n": 12}'


def test_before_the_end():
    """Nothing is promised."""

    async def work(client):
        async with stream(client) as found:
            assert found.partial is None
            for method in (found.object, found.response, found.result):
                with pytest.raises(ConfigurationError, match="has not ended"):
                    method()
            assert await anext(found) == {} == found.partial
            with pytest.raises(ConfigurationError, match="has not ended"):
                found.object()

    with simulated(text('{"n": 12}') + pieces(1)) as peer:
        run(peer, work)


def test_what_does_not_fit():
    """It is raised after the last partial, and again by whoever asks for the object."""
    shown, found, error = read(text('{"n": "x"}'))

    assert shown[-1] == {"n": "x"}
    assert isinstance(error, NoObjectGeneratedError)
    assert error.problems
    assert found.response().text == error.text
    for method in (found.object, found.result):
        with pytest.raises(NoObjectGeneratedError):
            method()


def test_cut_off_by_its_length():
    """What looks whole is not."""
    shown, _, error = read(text('{"n": 1, "m": [1') + finish("length"), schema={"type": "object"})

    assert shown[-1] == {"n": 1, "m": []}
    assert isinstance(error, NoObjectGeneratedError)
    assert "max_tokens" in error.message


@pytest.mark.parametrize("broken", [cut(at=2000), error_event(500)])
def test_a_stream_that_breaks(broken):
    """The error is that of the stream, with what had come."""
    answer = text(json.dumps({"n": 1, "m": "x" * 500})) + pieces(5) + broken
    shown, found, error = read(answer, max_retries=0)

    assert shown
    assert not isinstance(error, NoObjectGeneratedError)
    assert error.partial.text.startswith('{"n": 1')
    with pytest.raises(type(error)):
        found.object()


@pytest.mark.parametrize(
    "answer", [refuse(400, "bad"), text('{"n": 1') + cut(at=500)], ids=["refused", "cut"]
)
def test_after_a_failure(answer):
    """Whoever asks for the object, or the answer, is told again why there is none."""
    _, found, error = read(answer, max_retries=0)

    for ask in (found.object, found.response, found.result):
        with pytest.raises(type(error)) as caught:
            ask()
        assert caught.value is error


def test_the_last_partial_is_whole():
    """Though a long text is not read at each fragment."""
    value = {"n": 1, "m": ["x" * 20] * 1000}
    shown, found, _ = read(text(json.dumps(value)) + pieces(50))

    assert shown[-1] == value
    assert found.object() == value


def test_asked_again():
    """The partials begin anew."""
    answers = [text('{"n": "x"}'), text('{"n": 5}')]
    shown, found, error = read(*answers, max_validation_retries=1)

    assert error is None
    assert shown == [{}, {"n": "x"}, {}, {"n": 5}]
    assert len(found.result().steps) == 2


def test_tools_on_the_way():
    """What is said before a call is not the object."""

    @tool
    def lookup() -> str:
        return "5"

    answers = [text('{"q": 1}') + tool_call("lookup"), text('{"n": 5}')]
    shown, found, error = read(*answers, tools=[lookup])

    assert error is None
    assert shown[-1] == {"n": 5} == found.object()


class InPieces:
    """An adapter whose answer comes in two responses, as Gemini's may."""

    name = "pieces"

    def __init__(self):
        token = {"gemini_generate": {"candidate": {"continuationToken": "t"}}}
        first = FinishReason(reason="length", raw="CONTINUATION")
        rest = Message.assistant(["Oslo", '", "n": 12}'])
        self.answers = [
            Response(message=Message.assistant('{"s": "In '), finish_reason=first, extra=token),
            Response(message=rest, finish_reason=FinishReason(reason="stop")),
        ]

    async def complete(self, _request):
        raise NotImplementedError

    async def stream(self, _request):
        answer = self.answers.pop(0)
        *events, end = events_from_response(answer)
        for event in events:
            yield event
        yield msgspec.structs.replace(end, response=answer)

    async def close(self):
        pass


def test_an_answer_in_pieces():
    """They belong together, and make one object."""

    async def work():
        async with Client({"pieces": InPieces()}) as client:
            found = stream_object("pieces:m", "Go", schema=SCHEMA, client=client)
            return [partial async for partial in found], found.object()

    whole = {"s": "In Oslo", "n": 12}
    assert asyncio.run(work()) == ([{"s": "In "}, {"s": "In Oslo"}, whole], whole)


def test_calls_that_wait():
    """There is no object yet, and that is no failure of the stream."""

    @tool(needs_approval=True)
    def pay() -> str:
        return "paid"

    _, found, error = read(tool_call("pay"), tools=[pay])

    assert error is None
    assert [call.name for call in found.result().pending_approvals] == ["pay"]
    with pytest.raises(NoObjectGeneratedError, match="approval"):
        found.object()


def test_leaving_closes_the_connection():
    """The server sees it."""

    async def work(client):
        async with stream(client) as found:
            await anext(found)
        (exchange,) = peer.app.script.received
        await settled(lambda: exchange.disconnected is not None)

    with simulated(text('{"n": 12}') + pieces(1) + stall(at=600)) as peer:
        run(peer, work)
