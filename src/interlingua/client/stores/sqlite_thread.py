"""
One thread that writes to one SQLite file, for any number of tasks, threads and event loops.

The thread takes everything that is waiting, does it in one transaction and answers after the
commit: under load one commit serves many writes. Reads do not pass through it: in WAL mode they
never wait for a writer, and a keyed read is cheaper than a change of threads.

Other processes may use the same file. A write waits for theirs, at most `timeout` seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from interlingua.spec.check import refuse
from interlingua.spec.content import Record
from interlingua.spec.errors import ConfigurationError, StoreError
from interlingua.transport.downloads import as_path, copy_mode

if TYPE_CHECKING:  # imported on use: not every program has a store
    from sqlite3 import Connection

Result = TypeVar("Result")
_BATCH = 1_000
"""How many writes one transaction has at most."""
_CHECKPOINT_BYTES = 4 * 1024 * 1024
"""How long the write-ahead log grows before its pages are copied into the file."""
_CHECKPOINT_PAGES = 1_000
"""The same in pages, for a log that is kept."""
_SMALLEST_FILE = 512
"""Bytes; the smallest page that SQLite knows."""
_PAUSE = 0.001
"""Seconds between two attempts to get the write lock."""
_LOOKS = 10
"""How often a file is looked at again because another process changed it meanwhile."""


class Copies(Protocol):
    """Keeps a second copy of what is in a file."""

    def path(self, path: Path) -> Path:
        """The second copy of a file."""

    def check(self, path: Path, timeout: float) -> None:
        """Raise `sqlite3.DatabaseError` if the copy cannot be used."""

    def attach(self, connection: Connection, path: Path) -> None:
        """Open the copy, before a transaction."""

    def begin(self, connection: Connection) -> None:
        """Make file and copy equal; from now on, what changes in one changes in the other."""

    def repair(self, path: Path, error: Exception) -> None:
        """Replace what is damaged by what can be read; raises what it cannot repair."""


class Schema(Record, frozen=True, kw_only=True):
    """What a file must be, and how a new one is made."""

    name: str
    """What the file holds, for messages."""
    application_id: int
    version: int
    script: str
    rescue: str = "restore a copy, or remove the file to begin anew"
    """What to do about a damaged file, for messages."""
    synchronous: str = "NORMAL"
    """FULL: a write survives a power cut when it returns. NORMAL: the end of the process."""
    keeps_log: bool = False
    """The log is written from its beginning again, not emptied: FULL costs less if it is long."""
    copies: Copies | None = None
    is_private: bool = False
    """A new file can be read and written only by its owner."""


class _Job(NamedTuple):
    work: Callable[[Connection], Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    is_forced: bool


class _Answer(NamedTuple):
    job: _Job
    result: Any
    error: Exception | None


class _Connections(NamedTuple):
    """Made by the thread; the reader is used by others under its lock."""

    writer: Connection
    reader: Connection
    inodes: tuple[int, ...]
    """Of the file and its copy; another process may replace them."""

    def close(self) -> None:
        import sqlite3

        with contextlib.suppress(sqlite3.Error):
            self.reader.close()
            self.writer.close()


class SQLiteThread:
    """A SQLite file with its writer thread, which starts at the first use."""

    def __init__(self, path: str | os.PathLike[str], schema: Schema, *, timeout: float) -> None:
        """Nothing is opened yet. `timeout`: how long a write waits for other processes."""
        self.path: Path = as_path(path)
        if os.fspath(path) in {"", ":memory:"}:
            raise ConfigurationError("A store needs the path of a file; see also MemoryStore.")
        seconds: Any = timeout
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
            refuse("timeout", "a number of seconds", seconds)
        self._schema = schema
        self._timeout = timeout
        self._lock = threading.Lock()
        self._running: _Running | None = None

    async def write(
        self, work: Callable[[Connection], Result], *, is_forced: bool = True
    ) -> Result:
        """
        Run a function in a transaction; what it returned, after the commit.

        If it raises, what it did is undone. It may run twice, so it must change only the database.
        What is not forced may be lost by a power cut, and costs less where the schema has FULL.
        """
        future: asyncio.Future[Result] = self.post(work, is_forced=is_forced)
        return await future

    def post(
        self, work: Callable[[Connection], Result], *, is_forced: bool = True
    ) -> asyncio.Future[Result]:
        """Run a function as `write` does; the future of its result."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._start(_Job(work, future, loop, is_forced))
        return future

    async def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run a function that reads little, here and now."""
        running = self._start()
        if running.connections is None:
            return await self.write(work)  # the thread opens the file
        if not running.read_lock.acquire(blocking=False):
            return await self.read_much(work)
        with contextlib.suppress(StoreError):  # for example while another process recovers the file
            try:
                return running.read(work)
            finally:
                running.read_lock.release()
        return await self.write(work)

    async def read_much(self, work: Callable[[Connection], Result]) -> Result:
        """Run a function that reads so much that the event loop should not wait for it."""
        running = self._start()
        if running.connections is None or running.is_replaced(running.connections):
            await self.write(_nothing)
        try:
            return await asyncio.to_thread(running.read_alone, work)
        except StoreError:
            return await self.write(work)  # it was closed, or the thread can repair it

    async def close(self) -> None:
        """End the thread after the writes that are waiting; the next use opens the file again."""
        running = self._running
        if running is None or running.pid != os.getpid():
            return
        with self._lock:
            self._running = None
            running.jobs.put(None)
        while running.thread.is_alive():  # noqa: ASYNC110 -- a thread cannot be awaited
            await asyncio.sleep(_PAUSE)

    def _start(self, job: _Job | None = None) -> _Running:
        """The thread, started if it is not running; under the lock no job follows the last one."""
        if self._running is not None and self._running.pid != os.getpid():
            _abandoned.append(self._running)
            self._lock = threading.Lock()  # another thread may have held it during the fork
            self._running = None
        with self._lock:
            running = self._running
            if running is None:
                running = self._running = _Running(self.path, self._schema, self._timeout)
                weakref.finalize(self, running.jobs.put, None)
            if job is not None:
                running.jobs.put(job)
            return running


_abandoned: list[_Running] = []
"""
Connections of the process that this one was forked from.

SQLite forbids any use of them here, and the garbage collector would close them.
"""


def _nothing(_: Connection) -> None:
    pass


class _Running:
    """The thread with its queue. It has no reference to its owner, which can be collected."""

    def __init__(self, path: Path, schema: Schema, timeout: float) -> None:
        self.pid = os.getpid()
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.connections: _Connections | None = None
        self._path = path
        self._schema = schema
        self._timeout = timeout
        self._is_forced = True  # commits of the writer
        self.read_lock = threading.Lock()
        """Held while the reader is used."""
        self.thread = threading.Thread(
            target=self._work, name=f"interlingua {schema.name}", daemon=True
        )
        self.thread.start()

    def read_alone(self, work: Callable[[Connection], Result]) -> Result:
        with self.read_lock:
            return self.read(work)

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Read, under the lock."""
        import sqlite3

        if self.connections is None:
            raise StoreError(f"{self._path} was closed while it was read.")
        try:
            return work(self.connections.reader)
        except sqlite3.Error as error:
            raise _wrap(self._path, self._schema, error) from error

    def is_replaced(self, connections: _Connections) -> bool:
        """Whether the file or its copy is another one than that which is open."""
        return _inodes(self._path, self._schema) != connections.inodes

    # The thread.

    def _work(self) -> None:
        is_last = False
        while not is_last:
            jobs = [self.jobs.get()]
            with contextlib.suppress(Empty):
                while len(jobs) < _BATCH and jobs[-1] is not None:
                    jobs.append(self.jobs.get_nowait())
            is_last = jobs[-1] is None
            wanted = [job for job in jobs if job is not None and not job.future.done()]
            if wanted:
                _deliver(self._run(wanted))
            del jobs, wanted  # while it waits, the thread keeps nobody's objects alive
        self._close()

    def _run(self, jobs: Sequence[_Job], *, is_repaired: bool = False) -> list[_Answer]:
        """The result of each job: all in one transaction, or each in its own if one fails."""
        try:
            connection = self._begin(is_forced=any(job.is_forced for job in jobs))
        except Exception as error:  # noqa: BLE001 -- each caller gets it
            return [_Answer(job, None, _wrap(self._path, self._schema, error)) for job in jobs]
        try:
            results = [job.work(connection) for job in jobs]
            connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 -- the caller of the function gets it
            self._roll_back(connection)
            if not is_repaired and is_damage(error) and self._repair(error):
                return self._run(jobs, is_repaired=True)
            if len(jobs) == 1:
                return [_Answer(jobs[0], None, _wrap(self._path, self._schema, error))]
            return [answer for job in jobs for answer in self._run([job], is_repaired=is_repaired)]
        self._checkpoint(connection)
        return [_Answer(job, result, None) for job, result in zip(jobs, results, strict=True)]

    def _roll_back(self, connection: Connection) -> None:
        import sqlite3

        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._close()  # that undoes it, too

    def _repair(self, error: Exception) -> bool:
        """Replace a file that was damaged while it was open; whether there is a copy."""
        if self._schema.copies is None:
            return False
        self._close()
        try:
            self._schema.copies.repair(self._path, error)
        except Exception:  # noqa: BLE001 -- the caller gets the error that led here
            return False
        return True

    def _begin(self, *, is_forced: bool) -> Connection:
        if self.connections is not None and self.is_replaced(self.connections):
            self._close()
        if self.connections is None:
            self.connections = _open(self._path, self._schema, self._timeout)
            self._is_forced = True
        if is_forced != self._is_forced and self._schema.synchronous == "FULL":
            level = "FULL" if is_forced else "NORMAL"
            self.connections.writer.execute(f"PRAGMA synchronous={level}")
            self._is_forced = is_forced
        _begin(self.connections.writer, self._timeout)
        return self.connections.writer

    def _checkpoint(self, connection: Connection) -> None:
        """
        Copy the log into the file when it is long, and empty it.

        It is emptied at once because a log whose pages are in the file already must not be cut.
        """
        import sqlite3

        if self._schema.keeps_log:
            return
        with contextlib.suppress(sqlite3.Error, OSError):
            if _size(_log(self._path)) > _CHECKPOINT_BYTES:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _close(self) -> None:
        with self.read_lock:
            connections, self.connections = self.connections, None
        if connections is not None:
            connections.close()


def _deliver(answers: Sequence[_Answer]) -> None:
    """Give each event loop its results in one call."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Answer]] = {}
    for answer in answers:
        by_loop.setdefault(answer.job.loop, []).append(answer)
    for loop, group in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop was closed; nobody waits
            loop.call_soon_threadsafe(_resolve, group)


def _resolve(answers: Sequence[_Answer]) -> None:
    for job, result, error in answers:
        if job.future.done():
            continue
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)


# Opening.


def _open(path: Path, schema: Schema, timeout: float) -> _Connections:
    """
    Open or make the file; raises `StoreError` before a file that is not ours is changed.

    Another process may replace the file or its copy meanwhile. What this one would write into the
    old ones would be lost, so it opens the new ones.
    """
    deadline, copies = time.monotonic() + timeout, schema.copies
    while True:
        inodes = _inodes(path, schema)
        try:
            connections = _try_open(path, schema, timeout)
        except Exception as error:
            if is_damage(error) and copies is not None:
                copies.repair(path, error)
                copies = None  # once
                continue
            is_passing = _is_busy(error) or _is_other(inodes, _inodes(path, schema))
            if not is_passing or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
        else:
            if not _is_other(inodes, connections.inodes) or time.monotonic() > deadline:
                return connections
            connections.close()


def _try_open(path: Path, schema: Schema, timeout: float) -> _Connections:
    import sqlite3

    copies = schema.copies
    check_file(path, schema, timeout)
    if copies is not None:
        copies.check(path, timeout)
    if schema.is_private:
        make_private(path)
    writer = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        writer.execute("PRAGMA journal_mode=WAL").fetchall()
        writer.execute(f"PRAGMA synchronous={schema.synchronous}")
        pages = _CHECKPOINT_PAGES if schema.keeps_log else 0
        writer.execute(f"PRAGMA wal_autocheckpoint={pages}")
        if copies is not None:
            copies.attach(writer, path)
        _begin(writer, timeout)
        _check(writer, path, schema)
        make_tables(writer, schema)
        if copies is not None:
            copies.begin(writer)
        writer.execute("COMMIT")
        reader = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        reader.execute("PRAGMA query_only=1")
    except BaseException:
        writer.close()
        raise
    return _Connections(writer, reader, _inodes(path, schema))


def _inodes(path: Path, schema: Schema) -> tuple[int, ...]:
    """What tells a file and its copy from others that replace them; 0: it is not there."""
    paths = (path,) if schema.copies is None else (path, schema.copies.path(path))
    return tuple(_inode(each) for each in paths)


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _is_other(before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether a file was replaced or removed; one that was not there may have been made."""
    return any(old not in {0, new} for old, new in zip(before, after, strict=True))


def make_private(path: Path, like: Path | None = None) -> None:
    """
    Make an empty file, if there is none, that only its owner can read and write.

    With `like`, its permissions are those of that file, if it exists. SQLite gives the logs of a
    file its permissions.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:  # it is there; or nobody can make it, and SQLite says why
        return
    if like is not None:
        copy_mode(like, path)


@contextlib.contextmanager
def locked(lock: Path, seconds: float) -> Iterator[None]:
    """
    Exclude other processes; `sqlite3.OperationalError` if one has the lock for so long.

    `lock` is an empty file. The lock of a SQLite file ends with its process on every system. The
    file stays: another process may wait for it.
    """
    import sqlite3

    connection = sqlite3.connect(lock, timeout=seconds, isolation_level=None)
    with contextlib.closing(connection):
        connection.execute("BEGIN EXCLUSIVE")
        yield


def make_tables(connection: Connection, schema: Schema, database: str = "main") -> None:
    """Make a database of the connection what the schema says."""
    for statement in schema.script.split(";"):
        connection.execute(statement)
    for name, value in (
        ("application_id", schema.application_id),
        ("user_version", schema.version),
    ):
        if connection.execute(f"PRAGMA {database}.{name}").fetchone() != (value,):
            connection.execute(f"PRAGMA {database}.{name}={value}")  # writes, even if it is equal


def check_file(path: Path, schema: Schema, timeout: float, *, whole: bool = False) -> None:
    """
    Look at an existing file without changing it: SQLite takes a very short one for a new one.

    Raises `sqlite3.DatabaseError` if it is damaged, as far as its size shows that; with `whole`,
    all of its pages are read. Raises `StoreError` if it is another kind of file.

    Other processes may write or remove the file and its log meanwhile, so a failure counts only
    if both are as they were before.
    """
    import sqlite3

    for look in range(_LOOKS):
        before = _versions(path)
        try:
            _look_at(path, schema, timeout, whole=whole)
        except (sqlite3.Error, OSError):
            if look == _LOOKS - 1 or _versions(path) == before:
                raise
            time.sleep(_PAUSE)
        else:
            return


def _look_at(path: Path, schema: Schema, timeout: float, *, whole: bool) -> None:
    import sqlite3

    file_size = _size(path)
    if not file_size:
        return
    if file_size < _SMALLEST_FILE:
        raise sqlite3.DatabaseError("file is not a database")
    # Without a log SQLite is told that nobody writes, so that it makes no files of its own.
    mode = "ro" if _size(_log(path)) else "ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=timeout)) as connection:
        connection.execute("BEGIN")
        _check(connection, path, schema)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        lost = {*range(path.stat().st_size // size + 1, pages + 1)}
        if lost - _logged_pages(path, size):
            raise sqlite3.DatabaseError("the end of the file is missing")
        if whole:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)


def _log(path: Path) -> Path:
    """The write-ahead log of a file. Each process may remove it: the last one to close the file."""
    return Path(f"{path}-wal")


def _size(path: Path) -> int:
    """In bytes; 0 if there is no file."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _versions(path: Path) -> list[tuple[int, int, int] | None]:
    """What changes with each write to a file and its log; None: it is not there."""
    found: list[tuple[int, int, int] | None] = []
    for each in (path, _log(path)):
        try:
            status = each.stat()
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
        except FileNotFoundError:
            found.append(None)
    return found


def _logged_pages(path: Path, page_size: int) -> set[int]:
    """The numbers of the pages that are in the write-ahead log of a file."""
    try:
        log = _log(path).read_bytes()
    except OSError:
        return set()
    pages, salt, frame = set(), log[16:24], 24 + page_size
    for start in range(32, len(log) - frame + 1, frame):
        if log[start + 8 : start + 16] != salt:  # left over from before the log was last emptied
            break
        pages.add(int.from_bytes(log[start : start + 4], "big"))
    return pages


def _check(connection: Connection, path: Path, schema: Schema) -> None:
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables:
        _check_numbers(path, schema, application_id, version)


def _check_numbers(path: Path, schema: Schema, application_id: int, version: int) -> None:
    if application_id != schema.application_id:
        raise StoreError(f"{path} is a SQLite file, but not {schema.name}. Name another file.")
    if version > schema.version:
        raise StoreError(
            f"{path} was written by a newer version of Interlingua: it has format {version}, and "
            f"this version reads {schema.version}. Nothing was changed. Update interlingua."
        )


def _begin(connection: Connection, timeout: float) -> None:
    """Get the write lock; SQLite's own waiting would pause for up to 100 ms."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except Exception as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)


def _is_busy(error: Exception) -> bool:
    import sqlite3

    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def is_damage(error: Exception) -> bool:
    """Whether an error says that a file is damaged or is no SQLite file."""
    import sqlite3

    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    damaged = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
    return code in damaged or type(error) is sqlite3.DatabaseError


def _wrap(path: Path, schema: Schema, error: Exception) -> Exception:
    """Errors of SQLite as `StoreError`: what happened to which file, and what to do."""
    import sqlite3

    if not isinstance(error, sqlite3.Error | OSError):
        return error
    if _is_busy(error):
        advice = "Another process holds its lock. Try again, or set a longer timeout="
    elif is_damage(error):
        advice = f"The file is damaged or is no SQLite file. Nothing was changed: {schema.rescue}"
    else:
        advice = "Check that the folder exists, can be written and is not full"
    return StoreError(f"{path}: {error}. {advice}.", cause=error)
