"""Law 9 and the vendors' request types, over every recorded request to every other dialect."""

import functools
import itertools

import msgspec
import pytest

from interlingua import dialects
from interlingua.conformance.canonical import compare, crossings
from interlingua.conformance.laws import check, read_cases
from interlingua.providers.catalog.profiles import profile_for
from interlingua.spec.contracts import NEUTRAL_PROFILE
from support import corpus
from support.exceptions import CROSSING
from support.oracles_requests import problems

recorded = pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")

PAIRS = list(itertools.permutations(dialects.names(), 2))
MODELS = {
    "anthropic_messages": "claude-opus-5-5",
    "openai_responses": "gpt-6.1-sol",
    "openai_chat": "gpt-6-luna",
    "gemini_generate": "gemini-4-argon",
    "bedrock_converse": "us.anthropic.claude-opus-4-5-20251101-v1:0",
}


@functools.cache
def requests(source):
    """Every recorded request of a dialect, by name."""
    spoken = dialects.get(source)
    return {
        case.name: spoken.decode_request(case.call)
        for case in corpus.cases(source)
        if case.call is not None
    }


@functools.cache
def crossed(source, target, *, neutral):
    """Each request, and the call that says it in another dialect, to a model of that one."""
    profile = NEUTRAL_PROFILE if neutral else profile_for(target)
    encode = dialects.get(target).encode_request
    named = (
        (name, msgspec.structs.replace(request, model=MODELS[target]))
        for name, request in requests(source).items()
    )
    return {name: (request, encode(request, profile)) for name, request in named}


@pytest.mark.parametrize("source", dialects.names())
def test_fixtures_cross_to_every_other_dialect(source):
    """The hand-written cases cross to every other dialect (law 9)."""
    cases = list(read_cases(corpus.FIXTURES / source))

    report = check(dialects.get(source), cases, crossings(map(dialects.get, dialects.names())))

    assert report.violations == (), str(report)


@recorded
@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("neutral", [True, False], ids=["neutral", "profile"])
def test_what_is_said_in_one_dialect_is_said_in_the_other(source, target, neutral):
    """What is said in one dialect is said in the other, but for what warnings name (law 9)."""
    decode = dialects.get(target).decode_request
    calls = crossed(source, target, neutral=neutral)

    broken = {
        name: found[:2]
        for name, (request, call) in calls.items()
        if (found := _unexpected(compare(request, decode(call), call.warnings), neutral=neutral))
    }

    assert_only_listed(broken, ("9 crossing", source, target), calls)


_ASKED = "include_thinking: None came back as True"
"""An effort or a budget asks for thoughts where a model would hide them."""
_ALWAYS_SHOWN = "include_thinking: True came back as None"
"""Nothing asks for thoughts where a model always shows them."""


def _unexpected(faults, *, neutral):
    """The faults, but for what the profile of a model decides about thoughts."""
    expected = () if neutral else (_ASKED, _ALWAYS_SHOWN)
    return [fault for fault in faults if fault not in expected]


@recorded
@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize("neutral", [True, False], ids=["neutral", "profile"])
def test_requests_fit_the_vendors_types(source, target, neutral):
    """
    What we write in a dialect is what that vendor's SDK would let its users write.

    That Anthropic takes no sampling since its last version, and few kinds of files, is known
    to its profile alone, and so is the highest temperature of Converse.
    """
    if neutral and target in ("anthropic_messages", "bedrock_converse"):
        return
    calls = crossed(source, target, neutral=neutral)

    refused = {
        name: found[:2]
        for name, (_, call) in calls.items()
        if (found := problems(target, call.body, call.path))
    }

    assert_only_listed(refused, ("types", source, target), calls)


def assert_only_listed(broken, about, calls):
    listed = {name for (*key, name) in CROSSING if tuple(key) == about}
    assert {name: broken[name] for name in sorted(broken.keys() - listed)} == {}
    assert listed - broken.keys() == set(), "these are well now; take them off the list"
    assert len(broken) <= 0.005 * len(calls)


def test_exceptions_are_few_and_reasoned():
    """The list stays short, and each entry says why."""
    assert len(CROSSING) <= 20
    assert all(len(reason) > 20 for reason in CROSSING.values())


# The judges can say no.

GOOD = {
    "openai_chat": {
        "model": "m",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "1", "content": "ok"},
        ],
        "temperature": 1,
    },
    "openai_responses": {
        "model": "m",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "ok"},
        ],
        "tools": [{"type": "function", "name": "f", "parameters": {}, "strict": None}],
    },
    "anthropic_messages": {
        "model": "m",
        "max_tokens": 1,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "1", "content": "ok"}],
            },
        ],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    },
    "gemini_generate": {
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "f", "response": {"output": "ok"}}}],
            },
        ],
        "generationConfig": {"temperature": 1, "thinkingConfig": {"thinkingLevel": "LOW"}},
    },
    "bedrock_converse": {
        "messages": [
            {"role": "user", "content": [{"text": "hi"}]},
            {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": "1", "name": "f", "input": {}}}],
            },
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "ok"}]}}],
            },
        ],
        "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {}}}}]},
        "inferenceConfig": {"temperature": 1},
    },
}


@pytest.mark.parametrize("dialect", GOOD)
def test_the_judge_accepts_what_is_good(dialect):
    """A plain request of each dialect."""
    assert problems(dialect, GOOD[dialect]) == []


@pytest.mark.parametrize("dialect", GOOD)
def test_the_judge_finds_a_strange_field_anywhere(dialect):
    """One misspelt field in any object that is not the caller's own is found."""
    own = ("args", "response", "parameters", "input_schema", "json")
    if dialect in ("anthropic_messages", "bedrock_converse"):
        own += ("input",)
    objects = list(objects_of(GOOD[dialect], own))

    accepted = []
    for found in objects:
        found["mispelt"] = 1
        if not problems(dialect, GOOD[dialect]):
            accepted.append(dict(found))
        del found["mispelt"]

    assert len(objects) >= 6
    assert accepted == []


@pytest.mark.parametrize("dialect", GOOD)
@pytest.mark.parametrize("wrong", [7, {"a": 1}], ids=["number", "object"])
def test_the_judge_finds_a_wrong_type_anywhere(dialect, wrong):
    """Where there is text, there must be text: also deep in a list."""
    accepted = []
    for found in list(objects_of(GOOD[dialect], ())):
        for key, value in list(found.items()):
            if isinstance(value, str):
                found[key] = wrong
                if not problems(dialect, GOOD[dialect]):
                    accepted.append((key, value))
                found[key] = value

    free = {("output", "ok"), ("type", "object")}  # a result and a schema are anything
    assert set(accepted) <= free


def objects_of(value, own):
    """Every object of a body, but for those whose fields are the caller's."""
    if isinstance(value, dict):
        yield value
        for key, item in value.items():
            yield from objects_of(item, own) if key not in own else ()
    for item in value if isinstance(value, list) else ():
        yield from objects_of(item, own)


@pytest.mark.parametrize(
    ("dialect", "change"),
    [
        ("openai_chat", {"temperature": "1"}),
        ("openai_chat", {"messages": [{"role": "user"}]}),
        ("openai_responses", {"input": [{"role": "robot", "content": "hi"}]}),
        ("openai_responses", {"tools": [{"type": "function", "name": "f", "parameters": {}}]}),
        ("anthropic_messages", {"max_tokens": "1"}),
        ("anthropic_messages", {"temperature": 1}),
        ("gemini_generate", {"generationConfig": {"temperature": "1"}}),
        ("gemini_generate", {"generationConfig": {"thinkingConfig": {"thinkingLevel": "X"}}}),
        ("gemini_generate", {"contents": [{"role": "robot", "parts": []}]}),
        ("bedrock_converse", {"inferenceConfig": {"temperature": "1"}}),
        ("bedrock_converse", {"messages": [{"role": "robot", "content": []}]}),
        ("bedrock_converse", {"messages": [{"role": "user"}]}),
    ],
)
def test_the_judge_refuses(dialect, change):
    """Text for a number, a missing field, an unknown word."""
    assert problems(dialect, {**GOOD[dialect], **change}) != []
