"""Sessions in a file: what is appended stays."""

import asyncio
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import ExitStack, closing

import pytest

from interlingua.api.session.store import SessionStore
from interlingua.errors import ConfigurationError, StoreError
from support.stores import Blocking, Clock


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sessions.sqlite"


@pytest.fixture
def store(path):
    clock = Clock()
    blocking = Blocking(SessionStore(path, clock=clock), clock)
    yield blocking
    blocking.stop()


def record(text, **fields):
    return {"role": "user", "content": [{"kind": "text", "text": text}], **fields}


def open_store(path):
    return Blocking(SessionStore(path), Clock())


def test_append_and_load(store):
    """What was appended is there, in order, with every kind of JSON value."""
    header = {"model": "a:b", "title": "Trip", "nested": {"x": [1, None, 2.5, "ä\ud800"]}}
    store.create("s", header)
    records = [record(f"{number} \ud83d", number=number) for number in range(30)]

    assert store.append("s", records[:10]) == 10
    assert store.append("s", []) == 10
    assert store.append("s", records[10:], header={"model": "c"}) == 30
    assert store.load("s") == ({"model": "c"}, records)


def test_a_session_begins_with_records(store):
    """Session and records are made together, or neither is: an id that is taken changes nothing."""
    store.create("s", {"title": "t"}, [record("one"), record("two")])

    with pytest.raises(ConfigurationError, match="There is a session 's'"):
        store.create("s", {"title": "other"}, [record("three")])
    assert store.append("s", [record("three")], expected=2) == 3
    assert store.load("s") == ({"title": "t"}, [record("one"), record("two"), record("three")])
    assert [each.count for each in store.list()] == [3]


def test_text_that_is_not_unicode(store):
    """Half of a character pair in a title or in a search does no harm; the header keeps it."""
    store.create("s", {"title": "Half \ud800", "model": "m\udfff"}, [record("one \ud800")])

    assert store.load("s")[0] == {"title": "Half \ud800", "model": "m\udfff"}
    assert [each.title for each in store.list()] == ["Half ?"]
    assert [each.session_id for each in store.search("one")] == ["s"]
    assert not store.search("two \ud800")


@pytest.mark.parametrize("session_id", ["\ud800", 5, None])
@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("create", ({},)),
        ("append", ([],)),
        ("truncate", (0,)),
        ("update", ({},)),
        ("load", ()),
        ("delete", ()),
    ],
)
def test_what_cannot_be_an_id_is_refused(store, method, arguments, session_id):
    """As ours, by every method: SQLite does not take half a character."""
    with pytest.raises(ConfigurationError, match="session_id"):
        getattr(store, method)(session_id, *arguments)


def test_opening_writes_nothing(tmp_path):
    """A file that is as it must be, and its copy, have the same bytes after they were read."""
    store = open_store(tmp_path / "s.db")
    store.create("s", {}, [record("one")])
    store.stop()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    again = open_store(tmp_path / "s.db")
    infos = again.list()
    again.stop()

    assert [each.count for each in infos] == [1]
    assert sorted(before) == ["s.db", "s.db-copy"]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_sessions_are_apart(store):
    """Records of one session are not seen in another."""
    for name in ("a", "b", ""):
        store.create(name, {})
        store.append(name, [record(name)])

    assert store.load("") == ({}, [record("")])
    assert store.load("b") == ({}, [record("b")])


def test_mistakes(store):
    """An unknown session, and one that exists already, are errors that say so."""
    store.create("s", {})

    with pytest.raises(ConfigurationError, match="There is a session 's'"):
        store.create("s", {})
    for call in (
        store.load,
        lambda name: store.append(name, []),
        lambda name: store.update(name, {}),
    ):
        with pytest.raises(ConfigurationError, match="no session 'none'"):
            call("none")
    assert not store.delete("none")


def test_another_program_appended(store):
    """With `expected`, what another program has added is not overlooked."""
    store.create("s", {})
    store.append("s", [record("a")], expected=0)

    with pytest.raises(StoreError, match="has 1 records and not 0"):
        store.append("s", [record("b")], expected=0)
    assert store.load("s") == ({}, [record("a")])


def test_truncate(store):
    """Records are removed from the end, and the next one takes their place."""
    store.create("s", {})
    store.append("s", [record(text) for text in "abc"])
    store.truncate("s", 1)
    store.truncate("s", 9)
    store.append("s", [record("d")])

    assert store.load("s") == ({}, [record("a"), record("d")])


def test_list(store):
    """The last changed is first."""
    for name in "abc":
        store.create(name, {"title": name.upper(), "model": f"m-{name}"})
        store.advance(1)
    store.append("a", [record("x"), record("y")])
    store.advance(1)
    store.update("b", {"title": "new"})

    infos = store.list()

    assert [info.session_id for info in infos] == ["b", "a", "c"]
    assert [info.title for info in infos] == ["new", "A", "C"]
    assert [info.model for info in infos] == [None, "m-a", "m-c"]
    assert [info.count for info in infos] == [0, 2, 0]
    assert infos[1].updated - infos[1].created == pytest.approx(3)
    assert [info.session_id for info in store.list(1, offset=1)] == ["a"]


@pytest.fixture(params=["index", "no index"])
def searched(request, store, monkeypatch):
    """A store whose SQLite has full-text search, and one whose SQLite has not."""
    if request.param == "no index":
        module = "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts_none(text)"
        monkeypatch.setattr("interlingua.api.session.store._FULL_TEXT", module)
    else:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
    return store


def test_search(searched):
    """Sessions are found by words of a record, their beginnings, and the title."""
    store = searched
    store.create("alps", {"title": "Holiday 100%"})
    store.append("alps", [record("Which mountain is highest?"), record("Mont Blanc")])
    store.create("sea", {"title": "Boats"})
    store.append("sea", [record("東京タワーはどこ"), record('it\'s an _odd_ "case" -- %')])

    def found(text):
        return [info.session_id for info in store.search(text)]

    assert found("mountain") == found("MOUNT hig") == found("Blanc") == found("holiday") == ["alps"]
    assert found("タワー") == found("odd case") == found("it's") == ["sea"]
    assert found("100%") == ["alps"]
    assert found("mountain Blanc") == []  # not in one record
    assert found("role") == found("user") == []  # only texts are searched
    store.append("sea", [record("a mountain of water")])
    assert found("mountain") == ["sea", "alps"] or found("mountain") == ["alps", "sea"]
    store.truncate("alps", 0)
    assert found("mountain") == ["sea"]
    store.delete("sea")
    assert found("mountain") == []


def test_a_search_lets_others_write(path, monkeypatch):
    """What has not been searched before is indexed in parts, so that no writer waits for all."""
    monkeypatch.setattr("interlingua.api.session.store._INDEX_SECONDS", 0)

    async def work():
        store, other = SessionStore(path), SessionStore(path)
        await store.create("s", {}, [record(f"word{number}") for number in range(40)])
        await other.list()
        searching = asyncio.ensure_future(store.search("word39"))
        count = 0
        while not searching.done():
            count = await other.append("s", [record("more")])
        found = await searching, await store.search("more")
        await store.close()
        await other.close()
        return count, [[info.session_id for info in infos] for infos in found]

    count, found = asyncio.run(work())

    assert count > 41
    assert found == [["s"], ["s"]]


def test_several_processes(path):
    """Programs that append to one session at once lose nothing; each one's records are in order."""
    code = (
        "import asyncio, sys\n"
        "from interlingua.api.session.store import SessionStore\n"
        "store = SessionStore(sys.argv[1])\n"
        "async def work():\n"
        "    for number in range(40):\n"
        "        await store.append('s', [{'who': sys.argv[2], 'n': number}])\n"
        "asyncio.run(work())"
    )
    store = open_store(path)
    store.create("s", {})
    programs = [[sys.executable, "-c", code, path, name] for name in "ab"]
    with ExitStack() as stack:
        processes = [stack.enter_context(subprocess.Popen(program)) for program in programs]
        assert [process.wait() for process in processes] == [0, 0]
    _, records = store.load("s")

    for name in "ab":
        assert [r["n"] for r in records if r["who"] == name] == [*range(40)]
    store.stop()


# Crashes and damage.

APPENDING = """
import asyncio, itertools, sys
from interlingua.api.session.store import SessionStore
store = SessionStore(sys.argv[1])
async def work():
    _, records = await store.load("s")
    for number in itertools.count(len(records)):
        await store.append("s", [{"n": number, "text": "x" * (number % 700)}])
        print(number, flush=True)
asyncio.run(work())
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 on this system")
def test_kill(path):
    """`kill -9` during many appends loses no record that was acknowledged, and adds none."""
    store = open_store(path)
    store.create("s", {})
    store.stop()
    chosen = random.Random(7)
    acknowledged = 0
    while acknowledged < 1000:
        with subprocess.Popen(
            [sys.executable, "-c", APPENDING, path], stdout=subprocess.PIPE, text=True
        ) as process:
            timer = threading.Timer(chosen.uniform(0.0, 0.01), process.kill)
            last = acknowledged + chosen.randrange(100, 400)
            for line in process.stdout:
                acknowledged = int(line) + 1
                if acknowledged == last:
                    timer.start()
        assert process.returncode == -signal.SIGKILL
        store = open_store(path)
        _, records = store.load("s")
        assert acknowledged <= len(records) <= acknowledged + 1
        assert [record["n"] for record in records] == [*range(len(records))]
        assert all(len(record["text"]) == record["n"] % 700 for record in records)
        acknowledged = len(records)
        store.stop()


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    """A file and its log as a killed process leaves them, after each of 25 appends in the log."""
    folder = tmp_path_factory.mktemp("crashed")
    store = open_store(folder / "s")
    store.create("s", {"title": "t"})
    store.append("s", [record("kept")])
    store.stop()  # what is in the file itself
    store = open_store(folder / "s")
    sizes = []
    for number in range(25):
        store.append("s", [record("x" * 300 * number)])
        sizes.append((folder / "s-wal").stat().st_size)
    copy = tmp_path_factory.mktemp("copy")
    for name in ("s", "s-wal"):
        shutil.copy(folder / name, copy / name)
    store.stop()
    return copy, sizes


def test_recover(crashed, tmp_path):
    """Of a file cut at any byte what is left is copied: records from the first on, each whole."""
    folder, _ = crashed
    shutil.copy(folder / "s", tmp_path / "whole")
    shutil.copy(folder / "s-wal", tmp_path / "whole-wal")
    store = open_store(tmp_path / "whole")
    header, records = store.load("s")
    store.stop()
    content = (tmp_path / "whole").read_bytes()
    saved = []
    for cut in [*range(0, len(content), 5 * 4096 + 1), len(content)]:
        damaged, new = tmp_path / f"cut-{cut}", tmp_path / f"new-{cut}"
        damaged.write_bytes(content[:cut])
        try:
            infos = asyncio.run(SessionStore.recover(damaged, new))
        except StoreError:
            assert cut < 100
            continue
        assert damaged.read_bytes() == content[:cut]
        for info in infos:
            store = open_store(new)
            assert store.load("s")[1] == records[: info.count]
            assert store.load("s")[0] in (header, {})
            store.stop()
        saved.append(sum(info.count for info in infos))

    assert saved == sorted(saved)
    assert saved[-1] == len(records)
    assert 0 < saved[len(saved) // 2] < len(records)
    with pytest.raises(ConfigurationError, match="exists already"):
        asyncio.run(SessionStore.recover(damaged, new))


def test_a_record_that_was_overwritten(path):
    """Bytes that changed in the file are noticed."""
    store = open_store(path)
    store.create("s", {})
    store.append("s", [record("unmistakable")])
    store.stop()
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"unmistakable"', b'"unmistakeble"', 1))
    store = open_store(path)

    with pytest.raises(StoreError, match="a record of session 's' is not as it was written"):
        store.load("s")
    store.stop()


def test_a_newer_file(path):
    """It is refused, and not a byte of it changes."""
    store = open_store(path)
    store.create("s", {})
    store.stop()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=3")
    connection.close()
    before = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    store = open_store(path)

    with pytest.raises(StoreError, match="newer version of Interlingua"):
        store.append("s", [record("x")])
    store.stop()
    assert {each.name: each.read_bytes() for each in path.parent.iterdir()} == before


def test_words_of_a_title(store):
    """A title that the program sets is found by its words, in any order."""
    store.create("a", {"title": "Trip to Norway"})
    store.create("b", {"title": "Trip to Rome"})

    def found(text):
        return {info.session_id for info in store.search(text)}

    assert found("norway trip") == found("Norw") == {"a"}
    assert found("trip") == found("to trip") == {"a", "b"}
    assert found("trip rome norway") == found("%") == set()


@pytest.mark.parametrize("word", ["word", "\u8a9e"])
def test_a_long_text_is_searched(store, word):
    """Any number of words, in scripts with and without spaces."""
    long = " ".join(f"{word}{number}" for number in range(5_000))
    store.create("a", {}, [record(long)])
    store.create("b", {}, [record(word)])

    assert [info.session_id for info in store.search(long)] == ["a"]
