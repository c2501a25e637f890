"""What is kept of a conversation: each turn once, as long as a response needs it."""

import asyncio
import random

import pytest

from interlingua.serving.application import RefusedError
from interlingua.serving.kept_responses import KeptResponses, kept_form
from interlingua.spec.contracts import WireCall
from interlingua.spec.kept import KeptQuery
from interlingua.stores import MemoryStore
from support.stores import KINDS, Blocking, Clock

FORM = kept_form("openai_responses")
SECONDS = 3600.0


class Sized(MemoryStore):
    """Knows the sizes of what it holds; lets others go on before each operation."""

    def __init__(self, clock):
        super().__init__(clock=clock)
        self.sizes = {}
        self.puts = 0

    async def get(self, key):
        await asyncio.sleep(0)
        return await super().get(key)

    async def put(self, key, value, **options):
        await asyncio.sleep(0)
        self.sizes[key] = len(key) + len(value)
        self.puts += 1
        return await super().put(key, value, **options)

    async def append(self, key, value, **options):
        await asyncio.sleep(0)
        self.sizes[key] = self.sizes.get(key, len(key)) + len(value)
        return await super().append(key, value, **options)

    async def items(self, key, start=0):
        await asyncio.sleep(0)
        return await super().items(key, start)

    async def delete(self, key):
        await asyncio.sleep(0)
        self.sizes.pop(key, None)
        return await super().delete(key)


class Talk:
    """A client of one caller, with answers that do not compress."""

    def __init__(self, store, clock):
        self.shelf = KeptResponses(store, seconds=SECONDS, clock=clock).of_caller("a")
        self._random = random.Random(1)
        self.made = 0

    def text(self):
        return self._random.randbytes(50).hex()

    async def begin(self, text, **fields):
        body = {"input": text if isinstance(text, list) else [user(text)], **fields}
        return await self.shelf.resolve(WireCall(path="/v1/responses", body=body), FORM)

    async def end(self, draft):
        self.made += 1
        item = {"type": "message", "id": f"msg_{self.made}", "content": self.text()}
        await self.shelf.keep(draft, {"id": draft.id, "output": [item]}, FORM)
        return item

    async def ask(self, text, **fields):
        """Ask, and keep an answer; its id, and the item."""
        _, draft = await self.begin(text, **fields)
        return draft.id, await self.end(draft)

    async def continue_from(self, previous, count):
        """So many turns after a response (or none); their ids."""
        ids = [previous]
        for _ in range(count):
            given = {} if ids[-1] is None else {"previous_response_id": ids[-1]}
            ids.append((await self.ask(self.text(), **given))[0])
        return ids[1:]

    async def input_of(self, response_id):
        items = await self.shelf.perform("list_input_items", KeptQuery(id=response_id), FORM)
        return [item for _, item in items]

    async def given_after(self, response_id):
        """The items that a model is given when a request goes on with a response."""
        body, _ = await self.begin("x", previous_response_id=response_id)
        return body["input"][:-1]

    async def delete(self, response_id):
        await self.shelf.perform("delete_response", KeptQuery(id=response_id), FORM)


def user(text):
    return {"role": "user", "content": text}


async def by_response(talk, count):
    await talk.continue_from(None, count)


async def by_conversation(talk, count):
    made = await talk.shelf.perform("create_conversation", KeptQuery(), FORM)
    for _ in range(count):
        await talk.ask(talk.text(), conversation=made.id)


async def by_items(talk, count):
    """As Vercel's client: its own messages again, and references to those of the model."""
    asked = []
    for _ in range(count):
        asked.append(user("Go on."))
        _, item = await talk.ask(asked)
        asked.append({"type": "item_reference", "id": item["id"]})


@pytest.mark.parametrize("way", [by_response, by_conversation, by_items])
def test_what_is_kept_grows_as_the_conversation(way):
    """Twice as many turns are twice as many bytes."""

    def size(count):
        clock = Clock()
        store = Sized(clock)
        asyncio.run(way(Talk(store, clock), count))
        return sum(store.sizes.values())

    once, twice = size(50), size(100)

    assert 1.9 * once < twice < 2.1 * once


def test_a_turn_is_written_once():
    """Also in a long conversation, of which no turn is old."""
    clock = Clock()
    store = Sized(clock)
    asyncio.run(Talk(store, clock).continue_from(None, 80))

    assert store.puts == 80 * 4  # two items, the turn, the response


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    """One store of each kind, empty."""
    clock = Clock()
    blocking = Blocking(KINDS[request.param](clock, tmp_path), clock)
    yield blocking
    blocking.stop()


def test_every_store_lets_later_responses_live(place):
    """They can be read and continued as if nothing had been deleted; the deleted ones cannot."""

    async def work():
        talk = Talk(place.store, place.clock)
        ids = await talk.continue_from(None, 40)
        items, given = await talk.input_of(ids[-1]), await talk.given_after(ids[-1])
        for each in (ids[0], ids[20], ids[38]):
            await talk.delete(each)
            for refused in (talk.given_after(each), talk.input_of(each), talk.delete(each)):
                with pytest.raises(RefusedError):
                    await refused
        assert await talk.input_of(ids[-1]) == items
        assert await talk.given_after(ids[-1]) == given
        assert len(items) == 79
        assert len(await talk.given_after(ids[30])) == 62

    place._runner.run(work())


def test_every_store_keeps_what_a_response_needs(place):
    """Until the end of its own time, however old its history is, and no longer."""
    run = place._runner.run
    talk = Talk(place.store, place.clock)
    ids = run(talk.continue_from(None, 5))
    for _ in range(3):
        place.pass_ttl(SECONDS - 10)
        ids += run(talk.continue_from(ids[-1], 1))
    place.pass_ttl(SECONDS - 10)

    assert len(run(talk.given_after(ids[-1]))) == 16
    for each in ids[:-1]:
        with pytest.raises(RefusedError):
            run(talk.given_after(each))
    place.pass_ttl(20)
    with pytest.raises(RefusedError):
        run(talk.given_after(ids[-1]))


@pytest.mark.parametrize("order", ["first", "last", "any"])
def test_what_nobody_needs_is_removed(order):
    """A tree of responses, of which all are deleted, leaves no word."""
    clock = Clock()
    store = Sized(clock)

    async def work():
        talk = Talk(store, clock)
        trunk = await talk.continue_from(None, 6)
        for start in trunk[:4]:
            trunk += await talk.continue_from(start, 2)
        ids = trunk if order == "first" else trunk[::-1]
        if order == "any":
            random.Random(7).shuffle(ids)
        for place, each in enumerate(ids):
            await talk.delete(each)
            for other in ids[place + 1 :]:
                await talk.given_after(other)

    asyncio.run(work())

    assert [key for key in store.sizes if not key.startswith("item/")] == []


def test_a_branch_keeps_what_another_no_longer_needs():
    """Its turns are removed with the last response after them."""
    clock = Clock()
    store = Sized(clock)

    async def work():
        talk = Talk(store, clock)
        root, fork = await talk.continue_from(None, 2)
        left, right = [(await talk.continue_from(fork, 1))[0] for _ in range(2)]
        for each in (fork, root, left):
            await talk.delete(each)
        assert len(await talk.given_after(right)) == 6
        assert sum(key.startswith("turn/") for key in store.sizes) == 3

    asyncio.run(work())


def test_old_turns_are_renewed_seldom():
    """Not at every request: a conversation of weeks is not written again each time."""
    clock = Clock()
    store = Sized(clock)

    async def work():
        talk = Talk(store, clock)
        ids = await talk.continue_from(None, 20)
        for _ in range(40):
            clock.advance(SECONDS / 100)
            ids += await talk.continue_from(ids[-1], 1)

    asyncio.run(work())

    assert store.puts < 60 * 4 + 60 * 8


@pytest.mark.parametrize("steps", range(14))
def test_a_deletion_at_the_same_time(steps):
    """Whichever is first, a response that was kept has its whole history."""

    async def work():
        clock = Clock()
        talk = Talk(Sized(clock), clock)
        ids = await talk.continue_from(None, 3)
        given = await talk.given_after(ids[-1])
        _, draft = await talk.begin("Go on.", previous_response_id=ids[-1])
        deleting = asyncio.ensure_future(talk.delete(ids[-1]))
        for _ in range(steps):
            await asyncio.sleep(0)
        await asyncio.gather(deleting, talk.end(draft))
        assert (await talk.input_of(draft.id))[:-1] == given

    asyncio.run(work())


def test_a_summary_ends_what_is_needed():
    """What comes before it is not part of the next turns."""
    clock = Clock()

    async def work():
        talk = Talk(Sized(clock), clock)
        first, _ = await talk.ask("Begin.")
        summary = {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}
        second, said = await talk.ask([summary], previous_response_id=first)
        assert await talk.given_after(second) == [summary, said]
        third, more = await talk.ask("Go on.", previous_response_id=second)
        assert await talk.given_after(third) == [summary, said, user("Go on."), more]
        await talk.delete(first)
        await talk.delete(second)
        assert await talk.given_after(third) == [summary, said, user("Go on."), more]

    asyncio.run(work())
