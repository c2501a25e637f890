"""A SQLite file that other processes write, replace or remove while it is checked and opened."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from interlingua.api.session.copies import SessionCopies, _set_aside
from interlingua.api.session.store import SessionStore
from interlingua.client.stores.sqlite_thread import _LOOKS, Schema, SQLiteThread, check_file
from support.files import after_stat
from support.stores import Blocking, Clock

SCHEMA = Schema(name="a test", application_id=7, version=1, script="CREATE TABLE t (x)")


def make(path):
    """A file of the schema, open, with a part of it in its log."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL").fetchall()
    connection.execute("PRAGMA application_id=7")
    connection.execute("CREATE TABLE t (x)")
    return connection


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("whole", [False, True])
def test_a_log_may_be_removed_while_a_file_is_checked(tmp_path, monkeypatch, count, whole):
    """The last process that closes a file removes its log; the file is not damaged by that."""
    path = tmp_path / "s"
    other = make(path)
    log = Path(f"{path}-wal")
    assert log.stat().st_size
    after_stat(monkeypatch, log, other.close, count)

    check_file(path, SCHEMA, 1.0, whole=whole)
    other.close()


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_file_may_be_removed_while_it_is_checked(tmp_path, monkeypatch, count):
    """A file that is gone is as one that never was."""
    path = tmp_path / "s"
    make(path).close()
    after_stat(monkeypatch, path, path.unlink, count)

    check_file(path, SCHEMA, 1.0)


def test_a_failure_does_not_count_if_another_process_was_writing(tmp_path, monkeypatch):
    """What looks cut while it is being written is looked at again."""
    path = tmp_path / "s"
    make(path).close()
    content = path.read_bytes()
    path.write_bytes(content[:100])
    after_stat(monkeypatch, path, lambda: path.write_bytes(content), count=2)

    check_file(path, SCHEMA, 1.0)
    assert path.read_bytes() == content


def test_a_damaged_file_that_changes_all_the_time_is_damaged(tmp_path, monkeypatch):
    """It is looked at again a few times, not for ever."""
    path = tmp_path / "s"
    path.write_bytes(b"x")
    looks = []

    def grow():
        looks.append(path.write_bytes(path.read_bytes() + b"x"))
        after_stat(monkeypatch, path, grow)

    after_stat(monkeypatch, path, grow)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        check_file(path, SCHEMA, 1.0)
    assert len(looks) < 4 * _LOOKS


def test_a_file_that_is_replaced_while_it_is_opened_is_opened_anew(tmp_path, monkeypatch):
    """What is written then is in the new file, not in the one that nobody else sees."""
    path = tmp_path / "s"
    first = Blocking(SessionStore(path), Clock())
    first.create("a", {})
    first.stop()
    attach, replaced = SessionCopies.attach, []

    def replace_first(self, connection, target):
        if not replaced:
            shutil.copyfile(path, tmp_path / "new")
            replaced.append(_set_aside(path, tmp_path / "new"))  # as another process does
        attach(self, connection, target)

    monkeypatch.setattr(SessionCopies, "attach", replace_first)
    store = Blocking(SessionStore(path), Clock())
    store.append("a", [{"n": 1}])
    store.stop()

    assert replaced
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM records").fetchone() == (1,)


@pytest.mark.parametrize("synchronous", ["FULL", "NORMAL"])
def test_a_commit_is_forced_unless_all_of_its_writes_allow_that_it_is_not(tmp_path, synchronous):
    """The level belongs to the transaction: 2 is FULL, 1 is NORMAL."""
    thread = SQLiteThread(tmp_path / "s", replace(SCHEMA, synchronous=synchronous), timeout=5)

    def level(connection):
        return connection.execute("PRAGMA synchronous").fetchone()[0]

    async def work():
        found = [
            await thread.write(level, is_forced=is_forced)
            for is_forced in (True, False, False, True, False)
        ]
        found += await asyncio.gather(
            thread.post(level, is_forced=False), thread.post(level, is_forced=True)
        )
        await thread.close()
        return found

    found = asyncio.run(work())
    if synchronous == "NORMAL":
        assert found == [1] * 7
    else:
        assert (found[:5], found[6]) == ([2, 1, 1, 2, 1], 2)


def test_a_log_that_is_kept_does_not_grow(tmp_path):
    """It is copied into the file when it is long, and written from its beginning again."""
    thread = SQLiteThread(tmp_path / "s", replace(SCHEMA, keeps_log=True), timeout=5)

    log = Path(f"{thread.path}-wal")

    def size_of(path):
        return path.stat().st_size

    def add(connection):
        connection.executemany("INSERT INTO t VALUES (?)", [(bytes(4000),)] * 300)

    async def work():
        sizes = []
        for _ in range(12):
            await thread.write(add)
            sizes.append(size_of(log))
        size = size_of(thread.path)
        await thread.close()
        return sizes, size

    sizes, size = asyncio.run(work())
    assert max(sizes) < 8_000_000
    assert sizes == sorted(sizes)
    assert size > 8_000_000
