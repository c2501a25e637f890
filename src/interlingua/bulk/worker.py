"""
The worker: answers rows, each paid for once.

The same class works in one process, in several, and under an engine that cuts and places work. It
pickles as its configuration: the client and the ledger are made where it runs, at its first row,
and keys are read from the environment there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from socket import gethostname
from typing import Any, NamedTuple

from msgspec.structs import replace

from interlingua.api.objects.functions import generate_object
from interlingua.api.run.options import policy_of
from interlingua.bulk.answers import Answer, answer_of, failure_of, refused, result_columns
from interlingua.bulk.job import Ask, Job
from interlingua.bulk.ledger.contract import LEASE, Account, Entry, Ledger
from interlingua.bulk.reading import Row
from interlingua.bulk.template import RowProblem
from interlingua.client.client import Client
from interlingua.client.middleware.contract import Middleware
from interlingua.client.retry_policy import RetryPolicy
from interlingua.client.stores.contract import Store
from interlingua.spec.content import Record
from interlingua.spec.errors import (
    AbortError,
    AccessDeniedError,
    AuthenticationError,
    BudgetExceededError,
    CircuitOpenError,
    ConfigurationError,
    ErrorClass,
    QuotaExceededError,
    StoreError,
    UnsupportedError,
)
from interlingua.spec.request import Request
from interlingua.spec.response import Attempt

ROW_KEY = "row_key"
"""The column in which an engine carries the key of a row."""
CONCURRENCY = 32
ATTEMPTS = 3
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
_ENDS_JOB = (
    AbortError,
    AccessDeniedError,
    AuthenticationError,
    BudgetExceededError,
    CircuitOpenError,
    QuotaExceededError,
    StoreError,
)
"""Errors that say nothing about the row: it stays pending."""


class WorkerConfig(Record, frozen=True, kw_only=True):
    """All that a worker needs, in plain values."""

    job: Job
    """What is asked about each row."""
    ledger: str
    """The path of a SQLite file, or a URL: `redis://…`, `postgresql://…`."""
    concurrency: int = CONCURRENCY
    """How many rows it works on at the same time."""
    attempts: int = ATTEMPTS
    """How often a row is tried before it counts as failed for good."""
    lease: float = LEASE
    """Seconds after which a worker that says nothing counts as dead."""
    max_usd: float | None = None
    """What all workers of the ledger may spend together, in dollars."""
    requests_per_minute: float | None = None
    """The most requests in a minute, of all workers of the ledger."""
    tokens_per_minute: float | None = None
    """The most input tokens in a minute, of all workers of the ledger."""
    registry: str | None = None
    """The path of a registry file; None: the client is made from the environment."""
    volatile: bool = False
    """Whether a server that does not force what it keeps to its disk is accepted as the ledger."""
    digest: bytes = b""
    """What `Job.digest` must be where the worker runs; empty: anything."""


class Turn(NamedTuple):
    """A row that is answered next."""

    row: Row
    ask: Ask | None = None
    """What is sent for it, if that was made already."""
    entry: Entry | None = None
    """What stands in the way of its claim."""


class Worker:
    """
    Answers rows, and never raises for a row.

        worker = Worker(WorkerConfig(job=job, ledger="redis://…"))
        result = await worker.one({"row_key": "7", "title": "Emma"})
        await worker.close()

    `config` is all that is pickled. `client` replaces the client that it would make. `ledger`
    replaces the ledger that the configuration names.
    """

    def __init__(
        self,
        config: WorkerConfig,
        *,
        client: Client | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.config: WorkerConfig = config
        self._given = (client, ledger)
        self._reset()

    def _reset(self) -> None:
        self.refusals: int = 0
        """How many attempts a provider refused because they were too many."""
        self._state: Ready | None = None
        self._starting: asyncio.Lock | None = None
        self._slots: asyncio.Semaphore | None = None
        self._under_way: dict[bytes, asyncio.Future[Answer]] = {}
        self._claimed: dict[bytes, float] = {}  # ahead, and when; see `claim`

    def __getstate__(self) -> WorkerConfig:
        return self.config

    def __setstate__(self, config: WorkerConfig) -> None:
        self.config = config
        self._given = (None, None)
        self._reset()

    # Rows.

    async def one(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result columns of a row, which has its key in the column `row_key`."""
        if self._slots is None:
            self._slots = asyncio.Semaphore(self.config.concurrency)
        key = str(row.get(ROW_KEY, ""))
        async with self._slots:
            request, answer = await self.answer(key, row)
        return result_columns(key, request, answer)

    async def __call__(self, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the result columns of several rows, in their order."""
        return list(await asyncio.gather(*map(self.one, rows)))

    async def claim(self, rows: Sequence[Row]) -> list[Turn]:
        """
        Claim the requests of rows that `answer` is about to be asked for, in one transaction.

        What cannot be claimed now is left to `answer`, which says why.
        """
        try:
            ready = self._state or await self.ready()
        except Exception:  # noqa: BLE001 -- `answer` gets it again
            return [Turn(row) for row in rows]
        asks: list[Ask | None] = []
        requests: list[bytes] = []
        for row in rows:
            try:
                ask = self.config.job.ask(row.data, row.key, ready.digest)
            except Exception:  # noqa: BLE001 -- as above
                asks.append(None)
                continue
            asks.append(ask)
            if ask.hash not in self._claimed and ask.hash not in self._under_way:
                self._claimed[ask.hash] = time.time()
                requests.append(ask.hash)
        try:
            found = await ready.ledger.claim(requests, self.config.attempts) if requests else []
        except BaseException as error:
            self._forget(requests)
            if not isinstance(error, StoreError):
                raise
            return [Turn(row) for row in rows]
        pairs = zip(requests, found, strict=True)
        entries = {request: entry for request, entry in pairs if entry is not None}
        self._forget(entries)
        return [
            Turn(row, ask, None if ask is None else entries.get(ask.hash))
            for row, ask in zip(rows, asks, strict=True)
        ]

    def _forget(self, requests: Iterable[bytes]) -> None:
        for request in requests:
            self._claimed.pop(request, None)

    async def release(self) -> None:
        """End the claims of rows that `answer` was not asked for."""
        requests, self._claimed = list(self._claimed), {}
        if requests and self._state is not None:
            await self._state.ledger.release(requests)

    async def answer(
        self, key: str, row: Mapping[str, Any], ask: Ask | None = None
    ) -> tuple[bytes | None, Answer]:
        """
        Return the hash of a row's request, and what became of it.

        `ask`: what is sent for the row, if that was made before.
        """
        try:
            if ask is None:
                ready = self._state or await self.ready()
                ask = self.config.job.ask(row, key, ready.digest)
        except RowProblem as problem:
            return None, refused(key, str(problem))
        except Exception as error:  # noqa: BLE001 -- a row never ends the others
            return None, replace(failure_of(error, key), status="pending")
        try:
            return ask.hash, await self.settle(ask, key)
        except Exception as error:  # noqa: BLE001 -- as above
            return ask.hash, replace(failure_of(error, key), status="pending")

    async def settle(self, ask: Ask, key: str) -> Answer:
        """Return the answer to a request: from the ledger, or from a call."""
        request = ask.hash
        running = self._under_way.get(request)
        while running is not None:
            answer = await asyncio.shield(running)
            if answer.status != "pending":
                return answer
            running = self._under_way.get(request)
        future = self._under_way[request] = asyncio.get_running_loop().create_future()
        answer = Answer(status="pending", key=key)
        try:
            answer = await self._settle(ask, key)
            return answer
        finally:
            del self._under_way[request]
            future.set_result(answer)

    async def _settle(self, ask: Ask, key: str) -> Answer:
        ready = self._state or await self.ready()
        claimed_at = self._claimed.pop(ask.hash, None)
        # A claim ahead is certain for a part of a lease; after that, this process may have been
        # stalled for so long that another one has taken it.
        if claimed_at is None or time.time() - claimed_at > self.config.lease / 2:
            entry = await self._wait_for_claim(ready, ask.hash)
            if entry is not None:
                return recorded(entry, key)
        try:
            answer = await self._call(ready, ask, key)
        except BaseException:  # cancelled: it may have been sent, and is sent again
            await asyncio.shield(ready.ledger.release([ask.hash]))
            raise
        if answer.status == "pending":
            await ready.ledger.release([ask.hash])
        else:
            await ready.ledger.put(ask.hash, answer)
        return answer

    async def _wait_for_claim(self, ready: Ready, request: bytes) -> Entry | None:
        """Claim a request as soon as nobody has it; its entry, if it was settled before."""
        pause = _FIRST_PAUSE
        while True:
            (entry,) = await ready.ledger.claim([request], self.config.attempts)
            if entry is None or entry.is_settled(self.config.attempts):
                return entry
            await asyncio.sleep(pause)  # another process sends it
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _call(self, ready: Ready, ask: Ask, key: str) -> Answer:
        job = self.config.job
        schema: Any = job.schema
        try:
            if schema is None:
                request = ask.request(ready.base)
                response = await ready.client.complete(request, retry=ready.policy)
                self._count_refusals(response.attempts)
                return answer_of(response, key)
            result = await generate_object(
                job.model,
                schema=schema,
                messages=ask.messages(),
                client=ready.client,
                **job.options,
            )
            self._count_refusals(result.response.attempts)
            cost = result.total_cost
            return replace(
                answer_of(result.response, key, value=result.output),
                cost=None if cost is None else cost.total,
            )
        except Exception as error:  # noqa: BLE001 -- it is the row's, or ends the job
            self._count_refusals(getattr(error, "attempts", None) or ())
            failure = failure_of(error, key)
            return replace(failure, status="pending") if ends_job(error) else failure

    def _count_refusals(self, attempts: Iterable[Attempt]) -> None:
        for attempt in attempts:
            if attempt.error_class is ErrorClass.RATE_LIMIT:
                self.refusals += 1

    # What is made where it runs.

    async def ready(self) -> Ready:
        """Make the client and the ledger, once."""
        if self._starting is None:
            self._starting = asyncio.Lock()
        async with self._starting:
            if self._state is None:
                self._state = await self._make_ready()
        return self._state

    async def _make_ready(self) -> Ready:
        from interlingua.bulk.ledger.open import limits_store, open_ledger

        config = self.config
        given_client, given_ledger = self._given
        client = given_client or _make_client(config.registry)
        ledger = given_ledger
        store = limits_store(config.ledger)
        try:
            digest = _digest(config, client)
            ledger = ledger or open_ledger(
                config.ledger, lease=config.lease, volatile=config.volatile
            )
            await ledger.open()
            account = None if config.max_usd is None else await ledger.open_account(store)
        except BaseException:
            await store.close()
            if ledger is not None:
                await ledger.close()
            if given_client is None:
                await client.close()
            raise

        def limited(account: Account | None) -> Client:
            return client.with_middleware(*make_limits(config, store, account))

        owned = client if given_client is None else None
        return Ready(config.job, digest, limited, account, ledger, store, owned)

    async def close(self) -> None:
        """End the claims of this worker, and close what it has made."""
        state, self._state = self._state, None
        self._claimed.clear()
        if state is not None:
            await state.close()


class Ready:
    """What a worker has made for its rows."""

    __slots__ = (
        *("_has_budget", "_limited", "_owned", "_store"),
        *("base", "client", "digest", "ledger", "policy"),
    )

    def __init__(
        self,
        job: Job,
        digest: bytes,
        limited: Callable[[Account | None], Client],
        account: Account | None,
        ledger: Ledger,
        store: Store,
        owned: Client | None,
    ) -> None:
        """`limited` makes the client with the limits of the job, which are counted in `store`."""
        self.client: Client = limited(account)
        self._has_budget = account is not None
        self._store = store
        self._limited = limited
        self.ledger: Ledger = ledger
        self.digest: bytes = digest
        self.base: Request = job.base_request()
        self.policy: RetryPolicy = policy_of(job.options)
        self._owned = owned

    async def renew_limits(self) -> None:
        """Count what the ledger has recorded since this was made."""
        if self._has_budget:
            self.client = self._limited(await self.ledger.open_account(self._store))

    async def close(self) -> None:
        await self.ledger.close()
        await self._store.close()
        if self._owned is not None:
            await self._owned.close()


def _make_client(registry: str | None) -> Client:
    return Client.from_env() if registry is None else Client.from_file(registry)


def _digest(config: WorkerConfig, client: Client) -> bytes:
    digest = config.job.digest(client)
    if config.digest not in (b"", digest):
        raise ConfigurationError(
            f"{config.job.model!r} is another model here, on {gethostname()}, than where the job "
            "was started. Give all machines the same settings of providers."
        )
    return digest


def make_limits(config: WorkerConfig, store: Store, account: Account | None) -> list[Middleware]:
    """The budget and the rate limit of a job, counted in a store that all workers share."""
    from interlingua.client.middleware.budget import Budget
    from interlingua.client.middleware.rate_limit import RateLimit

    layers: list[Middleware] = []
    if config.max_usd is not None and account is not None:
        left = max(0.0, config.max_usd - account.spent)
        layers.append(Budget(left, store=store, name=account.name, lease=config.lease))
    layers.append(
        RateLimit(
            requests_per_minute=config.requests_per_minute,
            input_tokens_per_minute=config.tokens_per_minute,
            store=store,
            name="bulk",
        )
    )
    return layers


def recorded(entry: Entry, key: str) -> Answer:
    """The answer in an entry, with the number of its attempts."""
    answer = entry.answer or Answer(status="pending", key=key)
    return answer if answer.attempts == entry.attempts else replace(answer, attempts=entry.attempts)


def ends_job(error: BaseException) -> bool:
    """Whether an error says nothing about the row, and would be the same for all others."""
    if isinstance(error, UnsupportedError):  # this row has what the model cannot take
        return False
    return isinstance(error, (*_ENDS_JOB, ConfigurationError))
