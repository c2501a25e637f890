"""`system=` in a conversation of several calls, in every dialect and mode."""

import asyncio
from itertools import pairwise

import pytest

from interlingua import Session, dialects
from interlingua.api.run.options import make_messages
from interlingua.prepare.cache import cache_prefix_diff
from interlingua.simulator import scripted, text
from interlingua.spec.json_form import from_json, to_json
from interlingua.spec.messages import Message
from support.runs import MODES, run_in
from support.simulated import DIALECTS, simulated

TURNS = 4


@pytest.mark.parametrize("provider", sorted(DIALECTS))
@pytest.mark.parametrize("mode", MODES)
def test_system_does_not_pile_up(provider, mode):
    """Four turns have one system message on the wire, and each extends the prefix of the last."""
    history = []
    with simulated(text("Fine.")) as peer:
        for turn in range(TURNS):
            history.append(Message.user(f"Question {turn}"))
            result = run_in(mode, peer, provider, None, messages=history, system="Be brief.")
            history = [*result.messages]
        requests = peer.app.script.requests
        calls = [exchange.call for exchange in peer.app.script.received]

    facts = dialects.get(DIALECTS[provider]).FACTS
    assert len(calls) == TURNS
    for request in requests:
        assert [each.text for each in request.messages if each.role == "system"] == ["Be brief."]
    for before, after in pairwise(calls):
        assert cache_prefix_diff(before, after, facts) is None


def roles_and_texts(messages):
    return [(message.role, message.text) for message in messages]


@pytest.mark.parametrize("stored", [False, True], ids=["kept", "stored"])
def test_a_new_system_replaces_the_old_one(stored):
    """Also in a history that was stored as JSON."""
    history = make_messages("Hi", None, "Be brief.")
    if stored:
        history = [from_json(to_json(message), Message) for message in history]

    after = make_messages(None, history, "Be long.")

    assert roles_and_texts(after) == [("system", "Be long."), ("user", "Hi")]
    assert roles_and_texts(make_messages(None, after, None)) == roles_and_texts(after)


def test_the_callers_own_instructions_stay():
    """A history that begins with the same text is left alone; another text comes before it."""
    own = (Message.system("Be brief."), Message.user("Hi"))

    assert make_messages(None, own, "Be brief.") == own
    after = make_messages(None, own, "Be kind.")
    assert roles_and_texts(after) == [
        ("system", "Be kind."), ("system", "Be brief."), ("user", "Hi"),
    ]  # fmt: skip
    assert make_messages(None, after, "Be kind.") == after


OWN = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]


@pytest.mark.parametrize("system", ["Be brief.", lambda _: "Be brief."], ids=["text", "function"])
@pytest.mark.parametrize("mode", MODES)
def test_a_system_message_beside_it_gives_a_warning(mode, system, caplog):
    """Both are sent, the option first; the warning is in the result and, once, in the log."""
    with caplog.at_level("WARNING", logger="interlingua"), simulated(text("Fine.")) as peer:
        result = run_in(mode, peer, "openai", None, messages=OWN, system=system)
        (request,) = peer.app.script.requests

    assert [each.text for each in request.messages] == ["Be brief.", "Be kind.", "Hi"]
    (warning,) = [each for each in result.warnings if each.code == "system_beside_system"]
    assert "`system=`" in warning.message
    assert [record.reason for record in caplog.records].count("system_beside_system") == 1


@pytest.mark.parametrize(
    ("messages", "system"),
    [
        (OWN, None),
        (OWN, "Be kind."),
        (OWN[1:], "Be brief."),
        ([*OWN[1:], {"role": "assistant", "content": "Yes?"}, *OWN], "Be brief."),  # a later one
        ([{"role": "developer", "content": "Use SI units."}, OWN[1]], "Be brief."),
    ],
)
def test_one_system_message_gives_no_warning(messages, system):
    """Neither does the same text, nor one in the middle, nor one of the developer."""
    with simulated(text("Fine.")) as peer:
        result = run_in("whole", peer, "openai", None, messages=messages, system=system)

    assert "system_beside_system" not in [each.code for each in result.warnings]


def test_a_session_warns_of_it_too():
    """Its own prompt and one in a turn are both sent."""
    client = scripted("Fine.", "More.")
    session = Session("openai:gpt-5.2", system="Be brief.", client=client)
    first = asyncio.run(session.send([Message.system("Be kind."), Message.user("Hi")]))

    assert "system_beside_system" in [each.code for each in first.warnings]
