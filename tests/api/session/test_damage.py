"""Files of a store of sessions that were cut, lost or mixed up."""

import asyncio
import logging
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress

import pytest

from interlingua.api.session import copies
from interlingua.api.session.copies import SessionCopies
from interlingua.api.session.session import Session
from interlingua.api.session.store import SessionStore
from interlingua.errors import StoreError
from interlingua.simulator import scripted
from support.files import after_stat
from support.run_profile import FULL
from support.stores import Blocking, Clock

FILES = ("s", "s-wal", "s-copy", "s-copy-wal")
PAGE = 4096


def record(number):
    return {"n": number, "text": f"record {number} " + "x" * (number * 37 % 5_000)}


def open_store(path):
    return Blocking(SessionStore(path), Clock())


def state_of(path):
    """All sessions with their headers and records."""
    store = open_store(path)
    try:
        return {info.session_id: store.load(info.session_id) for info in store.list()}
    finally:
        store.stop()


def fill(store, numbers):
    for number in numbers:
        name = f"session {number % 3}"
        if number < 3:
            store.create(name, {"title": name})
        store.append(name, [record(number)], header={"title": name, "last": number})


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    """The files that a killed process leaves, with a part in the logs; and what is in them."""
    folder, copy = tmp_path_factory.mktemp("running"), tmp_path_factory.mktemp("crashed")
    store = open_store(folder / "s")
    fill(store, range(30))
    store.truncate("session 1", 6)
    store.stop()
    store = open_store(folder / "s")
    fill(store, range(30, 45))
    for name in FILES:
        shutil.copy(folder / name, copy / name)
    store.stop()
    return copy, state_of(folder / "s")


@pytest.fixture(scope="module")
def closed(crashed, tmp_path_factory):
    """The same after the store was closed: everything is in the two files."""
    folder = tmp_path_factory.mktemp("closed")
    for name in FILES:
        shutil.copy(crashed[0] / name, folder / name)
    state_of(folder / "s")
    assert {each.name for each in folder.iterdir()} == {"s", "s-copy"}
    return folder, crashed[1]


def cuts(size):
    """Page edges and their neighbours, the header, the end, and others at random."""
    edges = {edge + step for edge in range(0, size + 1, PAGE) for step in (-1, 0, 1)}
    near = {*range(101), *range(max(0, size - 2 * PAGE), size + 1, 31)}
    others = random.Random(size).sample(range(size), min(size, 100))
    chosen = edges | near | {*others}
    if not FULL:
        chosen = {*random.Random(1).sample(sorted(chosen), min(len(chosen), 12)), 0, 1, size - 1}
    return sorted(cut for cut in chosen if 0 <= cut < size)


def copy_cut(source, folder, lengths):
    """A folder with the files, some of them cut."""
    folder.mkdir()
    for each in source.iterdir():
        content = each.read_bytes()
        (folder / each.name).write_bytes(content[: lengths.get(each.name, len(content))])
    return folder / "s"


def append_to_all(path, state):
    """The store takes new records for each session; what it has then, after it is opened again."""
    store = open_store(path)
    for name in state:
        store.append(name, [{"new": True}])
    store.stop()
    after = state_of(path)
    assert {name: records[:-1] for name, (_, records) in after.items()} == {
        name: records for name, (_, records) in state.items()
    }


@pytest.mark.parametrize("name", FILES)
def test_one_file_cut_at_any_byte_loses_nothing(crashed, tmp_path, name):
    """Of the file, its log, the copy and its log, any one may be cut; all sessions are there."""
    source, state = crashed
    for cut in cuts((source / name).stat().st_size):
        path = copy_cut(source, tmp_path / f"{cut}", {name: cut})

        assert state_of(path) == state, cut
        if cut % 5 == 0:
            append_to_all(path, state)
        for aside in path.parent.glob("*.damaged-1"):
            assert aside.read_bytes() == (source / aside.name.split(".")[0]).read_bytes()[:cut]
        shutil.rmtree(path.parent)


@pytest.mark.parametrize("name", ["s", "s-copy"])
def test_a_closed_file_cut_at_any_byte_loses_nothing(closed, tmp_path, caplog, name):
    """The same without logs. The damaged file is kept as it was, and a log record says so."""
    source, state = closed
    content = (source / name).read_bytes()
    for cut in cuts(len(content)):
        path = copy_cut(source, tmp_path / f"{cut}", {name: cut})
        caplog.clear()

        assert state_of(path) == state, cut
        if cut % 5 == 0:
            append_to_all(path, state)
        if cut:
            (aside,) = path.parent.glob("*.damaged-*")
            assert aside.read_bytes() == content[:cut]
            (entry,) = caplog.records
            assert entry.levelno == logging.WARNING
            assert str(aside) in entry.getMessage()
        shutil.rmtree(path.parent)


def test_a_file_and_its_log_cut(crashed, tmp_path):
    """The copy has what both have lost."""
    source, state = crashed
    chosen = random.Random(5)
    for number in range(300 if FULL else 8):
        names = chosen.choice([FILES[:2], FILES[2:]])
        lengths = {name: chosen.randrange((source / name).stat().st_size) for name in names}
        path = copy_cut(source, tmp_path / f"{number}", lengths)

        assert state_of(path) == state, lengths
        append_to_all(path, state)
        shutil.rmtree(path.parent)


def test_both_files_cut(closed, tmp_path, caplog):
    """Each session has the records before the first that is lost in both, and takes new ones."""
    source, state = closed
    contents = [(source / name).read_bytes() for name in ("s", "s-copy")]
    chosen = random.Random(6)
    restored = 0
    for number in range(200 if FULL else 12):
        lengths = [chosen.randrange(PAGE, len(content)) for content in contents]
        path = copy_cut(
            source, tmp_path / f"{number}", dict(zip(("s", "s-copy"), lengths, strict=True))
        )
        caplog.clear()
        found = state_of(path)

        left = [content[:size] for content, size in zip(contents, lengths, strict=True)]
        for name, (header, records) in state.items():
            whole = 0
            while whole < len(records) and any(
                record(records[whole]["n"])["text"].encode() in each for each in left
            ):
                whole += 1
            got_header, got = found.get(name, ({}, []))
            assert got == records[: len(got)]
            assert len(got) >= whole, lengths
            assert got_header in (header, {})
            restored += len(got)
        assert "records were restored" in caplog.text
        append_to_all(path, found)
        shutil.rmtree(path.parent)
    assert restored


def test_a_cut_file_with_an_empty_copy(closed, tmp_path):
    """A copy that was cut to nothing is no copy: what is left of the file counts."""
    source, state = closed
    path = copy_cut(source, tmp_path / "here", {"s": 20 * PAGE, "s-copy": 0})

    found = state_of(path)

    assert sum(len(records) for _, records in found.values()) > 0
    assert all(records == state[name][1][: len(records)] for name, (_, records) in found.items())


def test_a_file_without_a_copy(closed, tmp_path):
    """What an older version wrote gets a copy; if it was cut, what is left of it is restored."""
    source, state = closed
    whole = tmp_path / "whole"
    shutil.copy(source / "s", whole)
    connection = sqlite3.connect(whole)
    connection.execute("DROP TABLE state")
    connection.execute("PRAGMA user_version=1")
    connection.close()
    content = whole.read_bytes()
    (tmp_path / "cut").write_bytes(content[: len(content) // 2])

    assert state_of(whole) == state
    whole.write_bytes(b"")
    assert state_of(whole) == state
    found = state_of(tmp_path / "cut")
    assert sum(len(records) for _, records in found.values()) > 0
    assert all(records == state[name][1][: len(records)] for name, (_, records) in found.items())


CALLING = """
import asyncio, sys
from interlingua.api.session.store import SessionStore
async def work():
    store = SessionStore(sys.argv[1])
    for number in range(5):
        await store.append("session 0", [{"who": sys.argv[2], "n": number}])
    await store.close()
sys.stdin.readline()
asyncio.run(work())
"""


@pytest.mark.parametrize("name", ["s", "s-copy"])
def test_several_processes_open_a_damaged_file(closed, tmp_path, name):
    """One repairs it, the others wait; all of their records are there."""
    source, state = closed
    path = copy_cut(source, tmp_path / "here", {name: 3 * PAGE + 100})
    with ExitStack() as stack:
        commands = [[sys.executable, "-c", CALLING, path, each] for each in "abcd"]
        processes = [
            stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE))
            for command in commands
        ]
        for process in processes:
            process.stdin.close()  # now all of them begin
        assert [process.wait() for process in processes] == [0] * 4

    after = state_of(path)["session 0"][1]
    before = state["session 0"][1]
    assert after[: len(before)] == before
    for each in "abcd":
        assert [r["n"] for r in after[len(before) :] if r["who"] == each] == [*range(5)]
    assert len([*path.parent.glob("*.damaged-*")]) == 1


def test_another_process_has_set_the_copy_aside_first(closed, tmp_path, monkeypatch):
    """Two processes find a copy without its file: to the second, nothing is left to restore."""
    source, _ = closed
    path = copy_cut(source, tmp_path / "here", {})
    path.unlink()
    locked = copies.locked

    @contextmanager
    def wait_for_other(lock, seconds):
        with locked(lock, seconds):
            (path.parent / "s-copy").unlink()
            yield

    monkeypatch.setattr(copies, "locked", wait_for_other)

    assert state_of(path) == {}


def test_another_process_has_set_the_copy_aside_before_the_repair(closed, tmp_path, monkeypatch):
    """Nothing is left to repair, so a new store begins."""
    source, _ = closed
    path = copy_cut(source, tmp_path / "here", {})
    path.unlink()
    after_stat(monkeypatch, path, (path.parent / "s-copy").unlink, count=3)

    assert state_of(path) == {}


def test_another_process_makes_the_store_while_it_is_looked_for(tmp_path, monkeypatch, caplog):
    """A new copy beside a new file is no copy without its file."""
    path = tmp_path / "s"

    def make():
        with suppress(StoreError):
            state_of(path)

    after_stat(monkeypatch, path, make, count=1)
    assert SessionCopies().check(path, 1.0) is None
    assert caplog.text == ""


def test_a_log_that_is_removed_while_its_file_is_set_aside(crashed, tmp_path, monkeypatch):
    """The last process that closes a file removes its log: then there is none to keep."""
    source, _ = crashed
    path = copy_cut(source, tmp_path / "here", {})
    copy = copies._copy_file

    def copy_late(name, target):
        if str(name).endswith("-wal"):
            name.unlink()
        return copy(name, target)

    monkeypatch.setattr(copies, "_copy_file", copy_late)

    aside = copies._set_aside(path)
    assert aside.read_bytes() == (source / "s").read_bytes()
    assert {each.name for each in path.parent.iterdir()} == {
        "s.damaged-1", "s-copy", "s-copy-wal"
    }  # fmt: skip


def test_a_program_that_has_the_file_open(closed, tmp_path):
    """It goes on with the file that another one has repaired."""
    source, state = closed
    path = copy_cut(source, tmp_path / "here", {})
    running = open_store(path)
    running.append("session 0", [{"n": 1}])
    with path.open("rb+") as file:
        file.truncate(2 * PAGE + 5)
    other = open_store(path)
    other.append("session 0", [{"n": 2}])
    running.append("session 0", [{"n": 3}])
    before = state["session 0"][1]

    assert other.load("session 0")[1] == [*before, {"n": 1}, {"n": 2}, {"n": 3}]
    running.stop()
    other.stop()
    assert state_of(path)["session 0"][1] == [*before, {"n": 1}, {"n": 2}, {"n": 3}]


@pytest.mark.parametrize("name", ["s", "s-copy"])
def test_programs_that_have_a_damaged_file_open(closed, tmp_path, name):
    """One that only reads sees what another has repaired, and both go on with both files."""
    source, state = closed
    path = copy_cut(source, tmp_path / "here", {})
    before = state["session 0"][1]
    reading, other = open_store(path), open_store(path)
    reading.load("session 0")
    with (path.parent / name).open("rb+") as file:
        file.truncate(2 * PAGE + 5)
    other.append("session 0", [{"n": 1}])
    assert reading.load("session 0")[1] == [*before, {"n": 1}]
    reading.append("session 0", [{"n": 2}])
    other.append("session 0", [{"n": 3}])
    reading.stop()
    other.stop()
    left = "s" if name == "s-copy" else "s-copy"
    with (path.parent / left).open("rb+") as file:  # what is in one file only would be lost
        file.truncate(2 * PAGE + 5)

    assert state_of(path)["session 0"][1] == [*before, {"n": 1}, {"n": 2}, {"n": 3}]


@pytest.mark.parametrize("is_written", [False, True])
def test_a_file_that_is_damaged_while_it_is_open(closed, tmp_path, is_written):
    """It is repaired at once, whether it is read or written next."""
    source, state = closed
    path = copy_cut(source, tmp_path / "here", {})
    store = open_store(path)
    store.load("session 1")
    before = state["session 0"][1]
    content = path.read_bytes()
    with path.open("rb+") as file:
        file.seek(PAGE)
        file.write(b"\xff" * (len(content) - PAGE))
    if is_written:
        store.append("session 0", [{"n": 1}])
        before = [*before, {"n": 1}]

    assert store.load("session 0")[1] == before
    store.stop()
    assert state_of(path)["session 0"][1] == before
    assert len([*path.parent.glob("s.damaged-1")]) == 1


def test_the_copy_of_another_store(closed, tmp_path, caplog):
    """It is kept under another name, and nothing of it is mixed in."""
    source, state = closed
    path = copy_cut(source, tmp_path / "here", {})
    store = open_store(tmp_path / "other")
    fill(store, range(9))
    store.stop()
    shutil.copy(tmp_path / "other-copy", f"{path}-copy")

    assert state_of(path) == state
    assert "that of another store" in caplog.text
    assert len([*path.parent.glob("s-copy.damaged-1")]) == 1


def test_a_file_that_was_removed_is_restored_from_its_copy(closed, tmp_path, caplog):
    """And the log says so; the copy goes on as before."""
    source, state = closed
    path = copy_cut(source, tmp_path / "here", {})
    path.unlink()

    assert state_of(path) == state
    assert f"{path} was missing. What it had was restored from {path}-copy." in caplog.text
    append_to_all(path, state)
    assert [*path.parent.glob("*.damaged-*")] == []


def test_a_file_that_was_removed_without_its_log_is_restored(crashed, tmp_path):
    """The log that is left belongs to no file; it is kept under another name."""
    source, state = crashed
    path = copy_cut(source, tmp_path / "here", {})
    path.unlink()

    assert state_of(path) == state
    assert [each.name for each in path.parent.glob("*.damaged-*")] == ["s.damaged-1-wal"]


def test_a_file_that_was_removed_beside_a_damaged_copy(closed, tmp_path, caplog):
    """The copy is kept under another name, and a new store begins."""
    source, _ = closed
    path = copy_cut(source, tmp_path / "here", {"s-copy": PAGE + 7})
    path.unlink()

    assert state_of(path) == {}
    assert "restored" not in caplog.text
    assert len([*path.parent.glob("s-copy.damaged-1")]) == 1


def modes(folder):
    return {each.name: oct(each.stat().st_mode & 0o777) for each in folder.iterdir()}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_only_the_owner_can_read_what_a_store_makes(tmp_path):
    """File, copy, logs, the lock, what is restored, and what is kept of a damaged file."""
    before = os.umask(0)
    try:
        store = open_store(tmp_path / "new" / "s")
        (tmp_path / "new").mkdir()
        fill(store, range(3))
        running = modes(tmp_path / "new")
        store.stop()
        path = tmp_path / "new" / "s"
        path.write_bytes(path.read_bytes()[:5_000])
        state_of(path)
        asyncio.run(SessionStore.recover(path, tmp_path / "new" / "recovered"))
        path.unlink()
        state_of(path)
    finally:
        os.umask(before)

    assert {"s", "s-wal", "s-copy", "s-copy-wal"} <= running.keys()
    after = modes(tmp_path / "new")
    assert {"s", "s-copy", "s.damaged-1", "s-lock", "recovered"} <= after.keys()
    assert {*running.values(), *after.values()} == {"0o600"}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_store_that_others_may_read_stays_so(closed, tmp_path):
    """Its owner has decided that; a new copy and a restored file have the same permissions."""
    source, _ = closed
    path = copy_cut(source, tmp_path / "here", {"s": 5_000})
    for each in path.parent.iterdir():
        each.chmod(0o640)
    state_of(path)
    (path.parent / "s-copy").unlink()
    state_of(path)

    assert {*modes(path.parent).values()} == {"0o640"}


@pytest.mark.parametrize("content", [b"x" * 10, b"no database" * 1_000, b"SQLite format 3\0"])
def test_another_kind_of_file(tmp_path, content):
    """It is refused, and nothing is changed."""
    path = tmp_path / "s"
    path.write_bytes(content)

    with pytest.raises(StoreError, match="Nothing was changed"):
        asyncio.run(SessionStore(path).list())
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [content]


def test_a_damaged_file_of_another_program(tmp_path):
    """It is refused, too."""
    path = tmp_path / "s"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [("x" * 3_000,)] * 20)
    connection.close()
    content = path.read_bytes()[:-5_000]
    path.write_bytes(content)

    with pytest.raises(StoreError, match="Nothing was changed"):
        asyncio.run(SessionStore(path).list())
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [content]


@pytest.mark.parametrize("name", ["s", "s-copy"])
def test_what_was_removed_stays_removed(tmp_path, name):
    """A deleted session does not come back from the other file; a restored one can be searched."""
    store = open_store(tmp_path / "s")
    fill(store, range(9))
    store.search("record")
    store.update("session 0", {"title": "renamed"})
    store.delete("session 1")
    store.truncate("session 2", 1)
    store.stop()
    expected = state_of(tmp_path / "s")
    with (tmp_path / name).open("rb+") as file:
        file.truncate(PAGE + 7)

    assert state_of(tmp_path / "s") == expected
    assert [*expected["session 0"][1]] == [record(number) for number in (0, 3, 6)]
    assert expected["session 0"][0] == {"title": "renamed"}
    assert [*expected["session 2"][1]] == [record(2)]
    store = open_store(tmp_path / "s")
    assert [info.session_id for info in store.search("record 6")] == ["session 0"]
    assert store.search("record 8") == []
    store.stop()


def test_a_session_whose_header_was_lost(tmp_path):
    """Its conversation is there; the model is given again."""
    client = scripted("Yes.", "Again.")

    async def work():
        store = SessionStore(tmp_path / "s.db")
        session = Session("openai:gpt-5.2", client=client, store=store)
        await session.send("?")
        await store.update(session.session_id, {})  # as a recovered file has it
        found = await Session.resume(session.session_id, store=store, client=client)
        assert found.messages == session.messages
        assert found.session_id == session.session_id
        found.swap("openai:gpt-5.2")
        await found.send("?")
        again = await Session.resume(session.session_id, store=store)
        assert again.messages == found.messages
        assert again.model == "openai:gpt-5.2"
        await store.close()
        await client.close()

    asyncio.run(work())
