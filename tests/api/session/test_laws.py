"""Whatever is done with a session, every provider accepts its history."""

import asyncio
import tempfile
from collections import Counter
from contextlib import aclosing, suppress
from functools import partial
from itertools import count
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua import dialects
from interlingua.api.session.session import Session
from interlingua.simulator import error, latency, pieces, text, thinking, tool_call
from interlingua.spec.errors import SDKError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from support.run_profile import examples
from support.runs import named
from support.sessions import calls_in, look, results_in
from support.simulated import DIALECTS, run, simulated

SLOW = latency(between=0.001)
ANSWERS = (
    text("One two three four five.") + pieces(3) + SLOW,
    tool_call("look", city="Oslo"),
    text("Look. ") + tool_call("look", city="Oslo") + tool_call("look", city="Rome") + SLOW,
    thinking("I think.") + text("So."),
    thinking("I think.") + tool_call("look", city="Bonn") + pieces(2) + SLOW,
    tool_call("missing", city="Oslo"),
    error(500),
)
ACTIONS = st.one_of(
    st.tuples(st.just("send")),
    st.tuples(st.just("stream")),
    st.tuples(st.just("interrupt"), st.integers(0, 12)),
    st.tuples(st.just("leave"), st.integers(0, 12)),
    st.tuples(st.just("cancel"), st.integers(0, 8)),
    st.tuples(st.just("undo")),
    st.tuples(st.just("fork")),
    st.tuples(st.just("load")),
    st.tuples(st.just("swap"), st.sampled_from(sorted(DIALECTS))),
)
DROPPED = {  # what another provider cannot read, and no repair of the history
    "foreign_thinking_dropped",
    "stale_thinking_dropped",
    "tool_error_as_text",
}


async def act(session, action, client, folder):
    """Do it; the session to go on with."""
    kind, *more = action
    if kind == "undo":
        session.undo()
    elif kind == "fork":
        return session.fork()
    elif kind == "swap":
        session.swap(named(more[0]))
    elif kind == "load":
        session.save(folder / "s.json")
        loaded = Session.load(folder / "s.json", client=client, tools=[look], max_retries=0)
        assert loaded.saved() == session.saved()
        return loaded
    else:
        with suppress(SDKError):
            await TURNS[kind](session, *more)
    return session


async def streamed(session):
    async for _ in session.stream("?"):
        pass


async def cancelled(session, after):
    task = asyncio.ensure_future(session.send("?"))
    await asyncio.sleep(after / 500)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def end_early(kind, session, after):
    """Interrupt a stream after so many events, or leave it."""
    stream = session.stream("?")
    async with aclosing(stream):
        number = count()
        async for _ in stream:
            if next(number) < after:
                continue
            if kind == "leave":
                break
            session.interrupt()
            assert not session.is_active


TURNS = {
    "send": lambda session: session.send("?"),
    "stream": streamed,
    "cancel": cancelled,
    "interrupt": partial(end_early, "interrupt"),
    "leave": partial(end_early, "leave"),
}


def check(session):
    messages = session.messages
    calls = Counter(call.id for call in calls_in(messages))
    assert set(calls.values()) <= {1}
    assert calls == Counter(result.tool_call_id for result in results_in(messages))
    assert all(call.startswith("tu_") for call in calls)
    assert not session.is_active
    assert all(message.id for message in messages)
    request = Request(model="m", messages=(*messages, Message.user("?")))
    for name in dialects.names():
        wire = dialects.get(name).encode_request(request)
        assert {warning.code for warning in wire.warnings} <= DROPPED, (name, wire.warnings)


@given(
    st.sampled_from(sorted(DIALECTS)),
    st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=8),
    st.lists(ACTIONS, min_size=1, max_size=8),
)
@settings(max_examples=examples(160))
def test_any_sequence_leaves_a_history_that_all_accept(provider, answers, actions):
    """Every call has one result, ids are stable, no dialect repairs anything, load is save."""
    answers = [*answers, text("The end.")]
    with tempfile.TemporaryDirectory() as folder, simulated(*answers) as peer:

        async def work(client):
            session = Session(named(provider), client=client, tools=[look], max_retries=0)
            known = {}
            for action in actions:
                session = await act(session, action, client, Path(folder))
                check(session)
                for at, ids in session.saved().tool_ids.items():
                    for ours, wire in ids.items():
                        assert known.setdefault((at, ours), wire) == wire
            for target in sorted(DIALECTS):
                session.swap(named(target))
                while not (await told(session)):
                    pass

        run(peer, work)
        refused = [each for each in peer.app.script.received if each.status == 400]

    assert refused == []


async def told(session):
    """Whether the provider answered; the script may still have failures."""
    try:
        await session.send("?")
    except SDKError as failure:
        assert failure.status_code == 500
        return False
    check(session)
    return True
