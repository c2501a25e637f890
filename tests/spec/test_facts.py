"""The facts of a dialect: what they say, and that somebody reads them."""

import re
from pathlib import Path

import msgspec
import pytest

import interlingua
from interlingua.prepare.history.rules import apply_rules
from interlingua.spec.content import Image, Opaque, Thinking, ToolCall
from interlingua.spec.facts import (
    CacheRules,
    CacheStep,
    Continuation,
    Facts,
    HistoryRules,
    SchemaRules,
)
from interlingua.spec.messages import Message
from support.facts import FACTS

RECORDS = (Facts, HistoryRules, SchemaRules, CacheRules, CacheStep, Continuation)

WITHOUT_SSE = {"bedrock_converse": "AWS streams answers as its own event stream, and no other way"}


def test_the_defaults_accept_everything():
    """A dialect that says nothing of histories gets them as they are."""
    rules = Facts(name="mine", history=HistoryRules(dialect="mine")).history
    history = (
        Message.assistant([Thinking(text="Hm."), ToolCall(id="", name="no such tool!")]),
        Message.user([Image(url="https://a.example/b.png"), Opaque(dialect="theirs", data={})]),
        Message.user(""),
        Message.system("late"),
    )

    assert apply_rules(history, rules) is history


@pytest.mark.parametrize("record", RECORDS)
def test_every_fact_is_read(record):
    """A field that nothing reads is a defect."""
    folder = Path(interlingua.__file__).parent
    source = "".join(
        path.read_text(encoding="utf-8") for path in folder.rglob("*.py") if path.name != "facts.py"
    )
    unread = {name for name in record.__struct_fields__ if f".{name}" not in source}

    assert unread == set()


@pytest.mark.parametrize("name", FACTS)
def test_facts_are_whole(name):
    """Each dialect says whose it is, its patterns are good, and its cache has an order."""
    facts = FACTS[name]

    assert name == facts.name == facts.history.dialect
    assert facts.history.model == ""
    assert re.compile(facts.history.call_id).fullmatch("call_1")
    assert re.compile(facts.history.call_name).fullmatch("get_weather")
    assert facts.cache.order[0].fields == ("model",)
    assert bool(facts.history.signature_field) == bool(facts.history.unchecked_signature)
    assert facts.framings
    assert ("sse" in facts.framings) == (name not in WITHOUT_SSE)
    assert facts.sealed_field
    assert facts.normal_request(None) is None
    assert facts.normal_response("text") == "text"


def test_history_rules_are_data():
    """They go through JSON, so that a file can hold them."""
    for facts in FACTS.values():
        document = msgspec.json.encode(facts.history)
        assert msgspec.json.decode(document, type=HistoryRules) == facts.history
