"""Values of a wrong type are refused by name, before anything is sent."""

import asyncio

import pytest

from interlingua import sync
from interlingua.api.session.session import Session
from interlingua.api.session.store import SessionStore
from interlingua.simulator import scripted
from interlingua.spec.errors import ConfigurationError


def kind_of(value):
    return type(value).__name__


WRONG = [5, 1.5, b"x", object(), ["a"], {"a": 1}, True, float("nan"), len]
STRANGE = [*WRONG, "text"]


def refuses(name, action):
    """Whether what the action returns or raises is our error, with the name of the value."""

    async def work():
        result = action()
        if asyncio.iscoroutine(result):
            await result

    with pytest.raises(ConfigurationError, match=name):
        asyncio.run(work())


@pytest.mark.parametrize("value", STRANGE, ids=kind_of)
@pytest.mark.parametrize("kind", [Session, sync.Session], ids=["async", "blocking"])
def test_a_store(kind, value):
    """The path of a file is not a store."""
    refuses("store must be a SessionStore", lambda: kind("a:b", store=value))
    refuses("store must be a SessionStore", lambda: kind.resume("x", store=value))


@pytest.mark.parametrize("value", STRANGE, ids=kind_of)
def test_a_client(value):
    """In the session, in a turn, and as an attribute."""
    session = Session("openai:gpt-5.2")
    refuses("client must be", lambda: Session("a:b", client=value))
    refuses("client must be", lambda: session.send("?", client=value))
    refuses("client must be", lambda: session.send_object("?", schema=int, client=value))
    session.client = value
    refuses("client must be", lambda: session.stream("?"))
    assert not session.is_active


@pytest.mark.parametrize("value", WRONG, ids=kind_of)
def test_a_path(value, tmp_path):
    """Of a file to write, to read, of a store and of what is recovered."""
    message = "path of a file must be a string or a Path"
    refuses(message, lambda: Session("a:b").save(value))
    refuses(message, lambda: Session.load(value))
    refuses(message, lambda: SessionStore(value))
    refuses(message, lambda: SessionStore.recover(value, tmp_path / "new"))
    refuses(message, lambda: SessionStore.recover(tmp_path / "old", value))
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("value", [b"x", object(), ["a"], {"a": 1}, len, "text"], ids=kind_of)
def test_arguments_of_a_store(value, tmp_path):
    """Each is named."""

    async def use(name, *arguments, **options):
        store = SessionStore(tmp_path / "s.db")
        try:
            await getattr(store, name)(*arguments, **options)
        finally:
            await store.close()

    asyncio.run(use("create", "x", {}))
    if not isinstance(value, dict):
        refuses("header", lambda: use("create", "y", value))
        refuses("header", lambda: use("update", "x", value))
    refuses("record", lambda: use("create", "y", {}, value))
    refuses("record", lambda: use("append", "x", value))
    refuses("count", lambda: use("truncate", "x", value))
    refuses("limit", lambda: use("list", value))
    refuses("offset", lambda: use("list", offset=value))
    refuses("limit", lambda: use("search", "x", value))
    if not isinstance(value, str):
        refuses("text", lambda: use("search", value))
    refuses("timeout", lambda: SessionStore(tmp_path / "s.db", timeout=value))
    if not callable(value):
        refuses("clock", lambda: SessionStore(tmp_path / "s.db", clock=value))


def test_the_blocking_session_has_no_attributes_without_effect():
    """`chat.system = …` would change nothing: what can be set is in `asynchronous`."""
    chat = sync.Session("a:b")
    for name in ("system", "tools", "title", "data", "history", "model"):
        with pytest.raises(AttributeError):
            setattr(chat, name, "x")
    chat.asynchronous.system = "S"
    assert chat.fork().asynchronous.system == "S"


def test_another_id(tmp_path):
    """A session of a store is not stored under two ids."""
    store = SessionStore(tmp_path / "s.db")
    refuses("session_id", lambda: Session.resume("x", store=store, session_id="y"))


def test_nothing_was_sent():
    """A wrong value in a turn leaves the session as it was."""
    client = scripted("Yes.")
    session = Session("openai:gpt-5.2", client=client)
    for options in ({"limits": 5}, {"model": 5}, {"tools": 5}, {"timeout": "x"}, {"store": "x"}):
        name = next(iter(options)).removesuffix("s")
        refuses(name, lambda options=options: session.send("?", **options))
    assert client.requests == ()
    assert not session.is_active
    assert session.messages == ()
