"""The options of a session after `save` and `load`, and in a store."""

import asyncio
import json

import pytest

from interlingua.api.run.limits import RunLimits
from interlingua.api.run.options import GenerateOptions, TimeoutConfig
from interlingua.api.session.document import session_from_document
from interlingua.api.session.session import Session
from interlingua.api.session.store import SessionStore
from interlingua.client.retry_policy import RetryPolicy
from interlingua.runtime.cancel import AbortController
from interlingua.simulator import scripted, text, tool_call
from interlingua.spec.errors import ConfigurationError, DecodeError, RunLimitError
from interlingua.spec.request import ResponseFormat, ToolChoice
from support.odd_strings import Odd
from support.patience import PATIENCE
from support.runs import named
from support.sessions import look
from support.simulated import run, simulated
from support.warning_codes import codes

VALUES = {
    "active_connectors": ["mail"],
    "active_skills": ["write"],
    "caller_id": "ada",
    "chosen_because": "a test",
    "frequency_penalty": 0.5,
    "include_thinking": True,
    "keep_raw": True,
    "limits": RunLimits(max_requests=2, max_cost=0.5),
    "logprobs": 2,
    "max_concurrent_tools": 3,
    "max_retries": 1,
    "max_tokens": 99,
    "max_tool_output": 5,
    "max_tool_rounds": 4,
    "max_validation_retries": 2,
    "metadata": {"a": "b"},
    "on_loss": "warn",
    "on_overflow": "truncate",
    "parallel_tool_calls": False,
    "presence_penalty": 0.1,
    "provider": "openai",
    "provider_options": {"openai": {"store": False}},
    "reasoning_effort": "low",
    "response_format": ResponseFormat(type="json_schema", json_schema={"type": "object"}),
    "seed": 4,
    "stop_sequences": ["x"],
    "system": "Be brief.",
    "temperature": 0.5,
    "thinking_budget": 1024,
    "timeout": TimeoutConfig(total=20.0, per_step=3.0),
    "tool_choice": ToolChoice(mode="required", allowed=("look",)),
    "tool_timeout": 2.0,
    "top_k": 5,
    "top_p": 0.5,
    "upload": "auto",
    "usage_batch_size": 10,
    "user": "u",
    "verbosity": "low",
}
"""A value of each option that is saved."""
OBJECTS = {
    "abort_signal": AbortController().signal,
    "api_key": "sk-secret-of-a-test",
    "base_url": "http://127.0.0.1:9/v1",
    "deps": object(),
    "headers": {"x-secret": "secret-of-a-header"},
    "on_usage": print,
    "output_validator": print,
    "prices": {"gpt-5.2": {"input": 1.0, "output": 2.0}},
    "repair_tool_call": print,
    "stop_when": len,
    "tool_error": str,
    "tool_observer": type("Observer", (), {"on_tool_start": print})(),
    "tools": [look],
}
"""A value of each option that is not saved."""
OF_A_TURN = {"approvals", "request_id", "resume"}
ELSEWHERE = {"client", "messages", "retry_policy", "session_id"}


def test_every_option_is_here():
    """So that a new option is either saved or named as one that is not."""
    known = {*VALUES, *OBJECTS, *OF_A_TURN, *ELSEWHERE}
    assert known == GenerateOptions.__annotations__.keys()


def loaded_like(session, path, **options):
    session.save(path)
    return Session.load(path, **options)


@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_value_is_saved(tmp_path, name):
    """It is the same after `load`; nothing has to be given again."""
    session = Session("gpt-5.2", **{name: VALUES[name]})
    loaded = loaded_like(session, tmp_path / "s.json")
    assert loaded.saved() == session.saved()
    assert loaded.not_restored == ()
    assert (loaded.system if name == "system" else loaded._options[name]) == VALUES[name]


@pytest.mark.parametrize("value", [3, 2.5, TimeoutConfig(per_step=1.0), None])
def test_forms_of_a_timeout(tmp_path, value):
    """A number, both numbers, or none."""
    assert loaded_like(Session("a:b", timeout=value), tmp_path / "s")._options["timeout"] == value


def test_dicts_and_other_strings_are_saved_as_what_they_stand_for(tmp_path):
    """A format and a choice of a tool in the form of an API; strings of a subclass of `str`."""
    session = Session(
        Odd("openai:gpt-5.2"),
        response_format={"type": "json_object"},
        tool_choice={"type": "any"},
        user=Odd("ada"),
        metadata={"a": Odd("b")},
    )
    loaded = loaded_like(session, tmp_path / "s.json")
    assert loaded.model == "openai:gpt-5.2"
    assert loaded._options == {
        "response_format": ResponseFormat(type="json"),
        "tool_choice": ToolChoice(mode="required"),
        "user": "ada",
        "metadata": {"a": "b"},
    }


def test_a_retry_policy(tmp_path):
    """Its numbers are saved; one with a function is not."""
    policy = RetryPolicy(max_retries=5, errors=("network",))
    loaded = loaded_like(Session("a:b", retry_policy=policy), tmp_path / "s.json")
    assert loaded._options["retry_policy"] == policy
    session = Session("a:b", retry_policy=RetryPolicy(on_retry=print))
    assert loaded_like(session, tmp_path / "s.json").not_restored == ("retry_policy",)


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_an_object_is_missed(tmp_path, name):
    """Its name is saved and nothing else of it, until it is given again."""
    path = tmp_path / "s.json"
    session = Session("openai:gpt-5.2", **{name: OBJECTS[name]})
    loaded = loaded_like(session, path)
    assert loaded.not_restored == (name,)
    assert "secret-of" not in path.read_text(encoding="utf-8")
    assert loaded_like(loaded, path).not_restored == (name,)
    assert loaded_like(loaded, path, **{name: OBJECTS[name]}).not_restored == ()
    assert loaded_like(loaded, path, **{name: None}).not_restored == ()


@pytest.mark.parametrize("in_a_store", [False, True])
def test_the_next_answer_says_what_is_missing(tmp_path, in_a_store):
    """One warning, on the first answer only; not for what was given to the turn."""
    with simulated(text("Yes.")) as peer:

        async def work(client):
            store = SessionStore(tmp_path / "s.db") if in_a_store else None
            session = Session(
                named("anthropic"),
                client=client,
                store=store,
                tools=[look],
                system=lambda _: "Be brief.",
                on_overflow=lambda _: "?",
                output_validator=lambda _: None,
            )
            await session.send("?")
            if in_a_store:
                again = await Session.resume(session.session_id, store=store, client=client)
            else:
                again = loaded_like(session, tmp_path / "s.json", client=client)
            assert again.not_restored == ("on_overflow", "output_validator", "system", "tools")
            found = [codes(await again.send("?", tools=[look])) for _ in range(2)]
            found.append(again.not_restored)
            if store is not None:
                await store.close()
            return again, found

        session, (first, second, missing) = run(peer, work)

    assert first == ["options_not_restored"]
    assert second == []
    assert missing == ()
    assert session.messages[-1].text == "Yes."


def test_the_warning_names_them(tmp_path):
    """Those that the turn was given are not among them."""
    with simulated(text("Yes.")) as peer:

        async def work(client):
            session = Session(named("openai"), tools=[look], stop_when=len, deps={"a": 1})
            loaded = loaded_like(session, tmp_path / "s.json", client=client)
            events = loaded.stream("?", deps=1)
            async for _ in events:
                pass
            return events.result()

        (warning,) = run(peer, work).warnings

    assert "stop_when, tools" in warning.message
    assert "deps" not in warning.message


def test_limits_bind_after_loading(tmp_path):
    """What a session may not do, it may not do after it was loaded."""
    with simulated(tool_call("look", city="Oslo"), text("Never.")) as peer:

        async def work(client):
            session = Session(named("openai"), tools=[look], limits=RunLimits(max_requests=1))
            loaded = loaded_like(session, tmp_path / "s.json", tools=[look], client=client)
            with pytest.raises(RunLimitError, match="max_requests=1"):
                await loaded.send("?")

        run(peer, work)
        assert len(peer.app.script.received) == 1


FIRST_VERSION = {
    "interlingua_session": 1,
    "session_id": "one",
    "model": "openai:gpt-5.2",
    "reason": "session model",
    "system": "S",
    "history": "dynamic",
    "options": {"temperature": 0.5, "provider_options": {}, "stop_sequences": ["x"]},
    "turns": [
        [{"interlingua": 1, "role": "user", "content": [{"kind": "text", "text": "Hello?"}]}]
    ],
    "usage": {"input_tokens": 3},
    "data": {"user": "ada"},
}


def test_a_file_of_the_first_version(tmp_path):
    """It loads, and is saved as one of this version."""
    path = tmp_path / "s.json"
    path.write_text(json.dumps(FIRST_VERSION), encoding="utf-8")
    session = Session.load(path)
    assert (session.session_id, session.system, session.history) == ("one", "S", "dynamic")
    assert session._options == FIRST_VERSION["options"]
    assert [message.text for message in session.messages] == ["Hello?"]
    assert session.not_restored == ()
    session.save(path)
    assert json.loads(path.read_bytes())["interlingua_session"] == 2
    assert Session.load(path).saved() == session.saved()


@pytest.mark.parametrize(
    "options",
    [
        {"limits": 5},
        {"limits": {"max_requests": -1}},
        {"timeout": "long"},
        {"retry_policy": {"errors": ["no such class"]}},
        {"tool_choice": {"mode": 3}},
    ],
)
def test_options_that_are_damaged(tmp_path, options):
    """A clear error with the path of the file."""
    path = tmp_path / "s.json"
    path.write_text(json.dumps(FIRST_VERSION | {"options": options}), encoding="utf-8")
    with pytest.raises(DecodeError, match=r"s\.json"):
        Session.load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data", 5),
        ("data", {1: "a"}),
        ("data", {"a": object()}),
        ("history", "some"),
        ("model", 5),
        ("parent", 5),
        ("summary", 5),
        ("title", 5),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(tmp_path, name, value):
    """An attribute of a wrong type is an error of `save`, and a file stays as it was."""
    path = tmp_path / "s.json"
    session = Session("a:b")
    session.save(path)
    before = path.read_bytes()
    setattr(session, name, value)
    with pytest.raises(ConfigurationError, match="cannot be saved"):
        session.save(path)
    assert path.read_bytes() == before


def test_a_file_says_that_everything_is_left_out(tmp_path):
    """The prompt of a turn is sent, whatever number of omitted messages a file has."""
    path = tmp_path / "s.json"
    document = FIRST_VERSION | {"omitted": 10**9, "summary": "All of it."}
    path.write_text(json.dumps(document), encoding="utf-8")
    client = scripted("Yes.")

    async def work():
        await Session.load(path, client=client).send("And now?")

    client_run(client, work)
    (request,) = client.requests
    assert "And now?" in request.messages[-1].text


def test_saving_through_a_link(tmp_path):
    """The file that a link points to is replaced, and not the link."""
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "s.json", tmp_path / "s.json"
    Session("a:b").save(target)
    link.symlink_to(target)
    Session("c:d").save(link)
    assert link.is_symlink()
    assert Session.load(target).model == "c:d"


def test_a_fork_has_its_own_data():
    """Also what is within it."""
    session = Session("a:b")
    session.data["names"] = ["ada"]
    fork = session.fork()
    fork.data["names"].append("bob")
    assert session.data == {"names": ["ada"]}


def test_iterators_are_for_every_turn():
    """An option that can be read once is the same in each turn."""
    client = scripted("Yes.", "Yes.")

    async def work():
        session = Session("openai_compatible:m", client=client, tools=iter([look]),
                          stop_sequences=iter(["X"]))  # fmt: skip
        await session.send("?")
        await session.send("?")

    client_run(client, work)
    assert [request.stop_sequences for request in client.requests] == [("X",)] * 2
    assert [len(request.tools) for request in client.requests] == [1, 1]


@pytest.mark.parametrize("name", ["history", "messages", "model"])
def test_what_a_loaded_session_has(tmp_path, name):
    """These are not options of `load`: the error says what to do instead."""
    path = tmp_path / "s.json"
    Session("a:b").save(path)
    with pytest.raises(ConfigurationError, match=rf"^{name} is not an option here"):
        Session.load(path, **{name: "full"})


def client_run(client, work):
    async def whole():
        try:
            await asyncio.wait_for(work(), PATIENCE)
        finally:
            await client.close()

    asyncio.run(whole())


def test_a_saved_session_with_half_a_character_in_a_name_is_our_error():
    """Where a name of a field is expected, in the session or in an option."""
    for more in ({"\ud800": 1}, {"options": {"timeout": {"\ud800": 1}}}):
        with pytest.raises(DecodeError, match="not a saved session"):
            session_from_document({"interlingua_session": 2, "session_id": "s", **more})
