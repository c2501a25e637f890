"""`save`: the bytes of a reply, written to a file."""

import asyncio
from functools import wraps

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.spec.errors import ConfigurationError
from interlingua.transport.downloads import save
from support.files import after_stat


def awaited(test):
    """A test that is a coroutine function."""

    @wraps(test)
    def run(**fixtures):
        return asyncio.run(test(**fixtures))

    return run


def names(folder):
    return [path.name for path in folder.iterdir()]


async def pieces(*chunks):
    for chunk in chunks:
        yield chunk


@given(st.lists(st.binary(max_size=400_000), max_size=4))
def test_the_file_has_the_bytes(tmp_path_factory, chunks):
    """And progress grows to its size."""
    path = tmp_path_factory.mktemp("saved") / "file"
    seen = []
    whole = b"".join(chunks)

    size = asyncio.run(
        save(pieces(*chunks), path, total=len(whole), on_progress=lambda *at: seen.append(at))
    )

    assert (size, path.read_bytes()) == (len(whole), whole)
    assert names(path.parent) == ["file"]
    assert seen == sorted(seen)
    assert not seen or seen[-1] == (len(whole), len(whole))


@awaited
async def test_an_async_callback(tmp_path):
    """It is awaited."""
    seen = []

    async def note(done, total):
        await asyncio.sleep(0)
        seen.append((done, total))

    await save(pieces(b"a", b"bc"), tmp_path / "f", on_progress=note)

    assert seen == [(1, None), (3, None)]


@pytest.mark.parametrize("failure", [ValueError("x"), asyncio.CancelledError()])
@awaited
async def test_a_failure_leaves_what_was_there(tmp_path, failure):
    """Neither half of a file nor a temporary file stays."""
    path = tmp_path / "f"
    path.write_bytes(b"old")

    async def broken():
        yield bytes(600_000)
        raise failure

    with pytest.raises(type(failure)):
        await save(broken(), path)

    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["f"]


@awaited
async def test_cancelling(tmp_path):
    """At any moment the temporary file is removed."""
    for steps in range(40):

        async def endless():
            while True:
                await asyncio.sleep(0)
                yield bytes(300_000)

        task = asyncio.ensure_future(save(endless(), tmp_path / "f"))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert names(tmp_path) == []


@awaited
async def test_the_limit(tmp_path):
    """More bytes than that are an error, and nothing is written."""
    assert await save(pieces(b"abc"), tmp_path / "f", limit=3) == 3
    with pytest.raises(ConfigurationError, match="larger than 3 bytes"):
        await save(pieces(b"abc", b"d"), tmp_path / "g", limit=3)

    assert names(tmp_path) == ["f"]


@awaited
async def test_what_cannot_be_written(tmp_path):
    """A folder is never replaced, a missing folder is named; nothing is read then."""
    read = []

    async def chunks():
        read.append(1)
        yield b"x"

    with pytest.raises(ConfigurationError, match="it is a folder"):
        await save(chunks(), tmp_path)
    with pytest.raises(ConfigurationError, match=r"there is no folder .*missing"):
        await save(chunks(), tmp_path / "missing" / "f")
    for path in ("", "a\0b", "\ud800", 5, None, b"f"):
        with pytest.raises(ConfigurationError, match=r"write|a string or a Path"):
            await save(chunks(), path)

    assert not read


@awaited
async def test_the_mode_of_a_file_is_kept(tmp_path):
    """A new file has the usual mode, one that is replaced keeps its own."""
    path = tmp_path / "f"
    path.write_bytes(b"")
    usual = path.stat().st_mode
    path.chmod(0o640)

    await save(pieces(b"a"), path)
    await save(pieces(b"a"), tmp_path / "new")

    assert path.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "new").stat().st_mode == usual


@pytest.mark.parametrize("count", [1, 2, 3])
@awaited
async def test_a_file_may_be_removed_before_it_is_replaced(tmp_path, monkeypatch, count):
    """Another process removes it while it is looked at; then a new one is made."""
    path = tmp_path / "f"
    path.write_bytes(b"old")
    after_stat(monkeypatch, path, lambda: path.unlink(missing_ok=True), count)

    await save(pieces(b"new"), path)
    monkeypatch.undo()

    assert path.read_bytes() == b"new"
