"""What every ledger does: claims that end with their owners, and answers that stay."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager

import asyncpg
import pytest

from interlingua.bulk.answers import Answer
from interlingua.bulk.ledger.open import open_ledger
from interlingua.bulk.ledger.sqlite import SQLiteLedger
from interlingua.errors import ConfigurationError, StoreError
from support.ledgers import LEDGERS, new_ledger
from support.postgres_server import shared_server

DONE = Answer(status="done", key="a", text="Novel.", cost=0.5)
FAILED = Answer(status="failed", key="a", error="no", cost=0.25)
FIRST, SECOND, THIRD, FOURTH = (bytes([number]) * 16 for number in range(1, 5))


@pytest.fixture(params=LEDGERS)
def place(request, tmp_path):
    """Where a new ledger is."""
    with new_ledger(request.param, tmp_path) as found:
        yield found


@asynccontextmanager
async def opened(place, count=1, **options):
    """Ledgers at one place, each as another process would have it."""
    ledgers = [open_ledger(place, volatile=True, **options) for _ in range(count)]
    for ledger in ledgers:
        await ledger.open()
    try:
        yield ledgers
    finally:
        for ledger in ledgers:
            await ledger.close()


async def claim(ledger, request, attempts):
    """Claim one request: None, or what stands in its way."""
    (entry,) = await ledger.claim([request], attempts)
    return entry


def test_a_claim_keeps_others_away(place):
    """Who comes second gets the claim of the first, and the answer when it is there."""

    async def work():
        async with opened(place, 2) as (one, two):
            assert await claim(one, FIRST, 3) is None
            assert (await claim(two, FIRST, 3)).state == "claimed"
            await one.put(FIRST, DONE)
            entry = await claim(two, FIRST, 3)
            assert (entry.state, entry.attempts, entry.answer) == ("done", 1, DONE)

    asyncio.run(work())


def test_a_released_claim_is_free(place):
    """A request that was not sent can be claimed by others at once."""

    async def work():
        async with opened(place, 2) as (one, two):
            await claim(one, FIRST, 3)
            await one.release([FIRST])
            assert await claim(two, FIRST, 3) is None
            await one.release([FIRST])  # it is no longer the one's
            assert (await claim(one, FIRST, 3)).state == "claimed"

    asyncio.run(work())


def test_many_are_claimed_together(place):
    """Each gets its own outcome: taken, or what stands in its way; own claims are taken again."""

    async def work():
        async with opened(place, 2) as (one, two):
            await one.put(FIRST, DONE)
            assert await one.claim([SECOND], 3) == [None]
            found = await two.claim([FIRST, SECOND, THIRD], 3)
            assert [entry and entry.state for entry in found] == ["done", "claimed", None]
            assert await two.claim([THIRD, FOURTH, THIRD], 3) == [None] * 3
            await two.release([THIRD, FOURTH])
            assert await one.claim([SECOND, THIRD, FOURTH], 3) == [None] * 3

    asyncio.run(work())


def test_a_failure_that_is_claimed_and_released_is_a_failure(place):
    """It is found by who looks for failed requests, with the reason."""

    async def work():
        async with opened(place) as (ledger,):
            await ledger.put(FIRST, FAILED)
            assert await ledger.claim([FIRST, SECOND], 3) == [None, None]
            await ledger.release([FIRST, SECOND])
            first, second = await ledger.look([FIRST, SECOND])
            assert (first.state, first.attempts, first.answer) == ("failed", 1, FAILED)
            assert (second.state, second.attempts, second.answer) == ("released", 0, None)
            totals = await ledger.totals()
            assert (totals.done, totals.failed) == (0, 1)

    asyncio.run(work())


def test_claims_end_with_their_owner(place):
    """What a ledger has claimed is free when it is closed."""

    async def work():
        async with opened(place, 2) as (one, two):
            await claim(one, FIRST, 3)
            await one.close()
            assert await claim(two, FIRST, 3) is None

    asyncio.run(work())


def test_failures_are_counted_and_an_answer_is_never_replaced(place):
    """A failed request is free until it has failed so often; a late failure changes nothing."""

    async def work():
        async with opened(place) as (ledger,):
            for attempt in (1, 2):
                assert await claim(ledger, FIRST, 2) is None
                await ledger.put(FIRST, FAILED)
                (entry,) = await ledger.look([FIRST])
                assert (entry.state, entry.attempts) == ("failed", attempt)
            assert (await claim(ledger, FIRST, 2)).state == "failed"
            await ledger.put(SECOND, DONE)
            await ledger.put(SECOND, FAILED)
            assert (await claim(ledger, SECOND, 3)).answer == DONE
            totals = await ledger.totals()
            assert (totals.done, totals.failed, totals.cost) == (1, 1, pytest.approx(1.25))

    asyncio.run(work())


def test_many_are_looked_up_in_their_order(place):
    """The entries come in the order of the hashes; None where there is none."""

    async def work():
        async with opened(place) as (ledger,):
            await ledger.put(SECOND, DONE)
            found = await ledger.look([FIRST, SECOND, THIRD] * 40)
            assert [entry and entry.state for entry in found] == [None, "done", None] * 40

    asyncio.run(work())


def test_batches_are_remembered(place):
    """A batch is there until it is forgotten, with its requests."""

    async def work():
        async with opened(place, 2) as (one, two):
            await one.note_batch("openai:batch_1", [FIRST, SECOND])
            await one.note_batch("openai:batch_2", [THIRD])
            await one.note_batch("openai:batch_2", None)
            assert await two.batches() == {"openai:batch_1": [FIRST, SECOND]}

    asyncio.run(work())


CLAIM = """
import asyncio, sys
from interlingua.bulk.ledger.open import open_ledger

async def main():
    ledger = open_ledger(sys.argv[1], volatile=True, lease=600)
    await ledger.open()
    await ledger.claim([bytes.fromhex(sys.argv[2])], 3)
    print("claimed", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_claims_of_a_dead_process_of_this_machine_are_free_at_once(place):
    """A process that was killed holds no claim, however long its lease; one that lives does."""
    command = [sys.executable, "-c", CLAIM, place, FIRST.hex()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "claimed\n"

        async def work():
            async with opened(place, lease=600) as (ledger,):
                assert (await claim(ledger, FIRST, 3)).state == "claimed"
                process.send_signal(signal.SIGKILL)
                process.wait()
                assert await claim(ledger, FIRST, 3) is None

        try:
            asyncio.run(work())
        finally:
            process.kill()


def test_a_lease_ends_without_a_sign_of_life(tmp_path):
    """An owner on another machine that says nothing for a lease has lost its claims."""
    now = [1000.0]

    async def work():
        path = tmp_path / "ledger.sqlite"
        one = SQLiteLedger(path, lease=30, clock=lambda: now[0])
        two = SQLiteLedger(path, lease=30, clock=lambda: now[0])
        await one.open()
        await two.open()
        await claim(one, FIRST, 3)
        now[0] += 29
        assert (await claim(two, FIRST, 3)).state == "claimed"
        now[0] += 2
        assert await claim(two, FIRST, 3) is None
        await one.close()
        await two.close()

    asyncio.run(work())


def end_leases(place):
    """Let the leases of all owners end, as if their machines had been silent."""

    async def end():
        if place.startswith("redis"):
            import redis.asyncio

            async with redis.asyncio.from_url(place) as server:
                await server.delete(*await server.keys("*owner:*"))
            return
        connection = await asyncpg.connect(place)
        await connection.execute("UPDATE interlingua_bulk.owners SET ends = 0")
        await connection.close()

    return end()


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_a_lease_that_ends_in_a_server_frees_claims(tmp_path, kind):
    """Claims of a silent owner are taken over; its late answer is still recorded, once."""

    async def work(place):
        async with opened(place, 2) as (one, two):
            await claim(one, FIRST, 3)
            assert (await claim(two, FIRST, 3)).state == "claimed"
            await end_leases(place)
            assert await claim(two, FIRST, 3) is None
            await one.release([FIRST])  # it is no longer the one's
            await one.put(FIRST, DONE)
            await two.put(FIRST, FAILED)
            (entry,) = await two.look([FIRST])
            assert (entry.state, entry.answer) == ("done", DONE)

    with new_ledger(kind, tmp_path) as place:
        asyncio.run(work(place))


@pytest.mark.parametrize(("kind", "setting"), [("redis", "appendonly"), ("postgres", "fsync=on")])
def test_a_server_that_forgets_is_refused(tmp_path, kind, setting):
    """A server that keeps nothing when it ends would lose what was paid for."""

    async def work(place):
        ledger = open_ledger(place)
        try:
            with pytest.raises(ConfigurationError, match=setting):
                await ledger.open()
        finally:
            await ledger.close()

    with new_ledger(kind, tmp_path) as place:
        asyncio.run(work(place))


def test_a_postgres_server_may_be_restarted():
    """What was paid for is written when the server is back; a repeated write counts once."""
    server = shared_server()

    async def work():
        async with opened(server.new_database(), 2) as (one, two):
            assert await claim(one, FIRST, 3) is None
            server.stop()
            recorded = asyncio.create_task(one.put(FIRST, DONE))
            await asyncio.sleep(0)
            server.start()
            await recorded
            await one.put(FIRST, DONE)  # as if the reply to the first had been lost
            (entry,) = await two.look([FIRST])
            assert (entry.state, entry.attempts) == ("done", 1)
            assert (await two.totals()).cost == DONE.cost

    asyncio.run(work())


def test_a_postgres_server_that_is_away_is_an_error_at_once():
    """The message says what to do, and has no password."""

    async def work():
        ledger = open_ledger("postgresql://someone:planted-secret@127.0.0.1:1/none")
        with pytest.raises(StoreError, match="Check the server") as caught:
            await ledger.open()
        assert "planted-secret" not in str(caught.value)
        await ledger.close()
        ledger = open_ledger("postgresql://someone:planted-secret@127.0.0.1:not/none")
        with pytest.raises(ConfigurationError, match="postgresql://user") as caught:
            await ledger.open()
        assert "planted-secret" not in str(caught.value)
        await ledger.close()

    asyncio.run(work())


def test_there_is_no_ledger_for_another_url():
    """The error says which there are."""
    with pytest.raises(ConfigurationError, match="redis:// or postgresql://"):
        open_ledger("mongodb://localhost")
