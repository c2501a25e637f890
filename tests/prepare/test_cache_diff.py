"""What breaks a cached prompt."""

import copy
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from interlingua import dialects
from interlingua.conformance.laws import read_cases
from interlingua.conformance.strategies import requests
from interlingua.prepare.cache import add_marks, cache_prefix_diff
from interlingua.providers.catalog.profiles import profile_for
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import DecodeError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolDefinition
from support import corpus
from support.facts import FACTS, NAMES
from support.run_profile import examples

PROVIDERS = {
    "openai_responses": ("gpt-6.1-sol", "openai"),
    "openai_chat": ("gpt-4o", "openai"),
    "anthropic_messages": ("claude-opus-5-5", "anthropic"),
    "gemini_generate": ("gemini-4-argon", "gemini"),
    "bedrock_converse": ("us.anthropic.claude-opus-4-5-20251101-v1:0", "bedrock_converse"),
}
MESSAGES = {
    "openai_responses": "input",
    "openai_chat": "messages",
    "anthropic_messages": "messages",
    "gemini_generate": "contents",
    "bedrock_converse": "messages",
}
CLAUDE, CHAT = FACTS["anthropic_messages"], FACTS["openai_chat"]
RESPONSES, GEMINI = FACTS["openai_responses"], FACTS["gemini_generate"]
PROMPT = ("tools", "system", "instructions", "systemInstruction", "messages", "input", "contents")
MORE = {"bedrock_converse": ("toolConfig",)}  # the tools; Gemini's is only a choice
MARKS = ("cache_control", "prompt_cache_breakpoint", "cachePoint")
here = pytest.mark.skipif(not corpus.is_here(), reason="the recordings are not at hand")


def encode(dialect, request):
    model, provider = PROVIDERS[dialect]
    request = replace(request, model=model, provider=provider)
    return dialects.get(dialect).encode_request(request, profile_for(dialect, model, provider))


def bodies(dialect):
    """The recorded bodies that hold their whole conversation; else those written by hand."""
    for case in corpus.cases(dialect) or read_cases(corpus.FIXTURES / dialect):
        body = {} if case.call is None else case.call.body
        stored = body.get("previous_response_id") or body.get("conversation")
        if isinstance(body.get(MESSAGES[dialect]), list) and not stored:
            yield case.name, body


def leaves(value, path, place=()):
    """The texts within a value, by path, and how to get there."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in MARKS:
                yield from leaves(item, f"{path}.{key}" if path else key, (*place, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from leaves(item, f"{path}[{i}]", (*place, i))
    elif isinstance(value, str):
        yield path, place


def changed(body, place):
    """The body with the text at this place made another."""
    body = copy.deepcopy(body)
    holder = body
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] += "~"
    return body


# Laws.


@here
@pytest.mark.parametrize("dialect", NAMES)
def test_a_body_extends_itself_and_its_beginnings(dialect):
    """Nothing breaks where messages are only added."""
    field = MESSAGES[dialect]
    for name, body in bodies(dialect):
        assert cache_prefix_diff(body, body, FACTS[dialect]) is None, name
        if len(body[field]) > 1:
            shorter = {**body, field: body[field][:-1]}
            found = cache_prefix_diff(shorter, body, FACTS[dialect])
            assert found is None or "is the first image" in found.message, name
            assert cache_prefix_diff(body, shorter, FACTS[dialect]).path.startswith(field), name


@here
@pytest.mark.parametrize("dialect", NAMES)
def test_any_change_is_found_where_it_is(dialect):
    """Whichever text of the prompt changes, its path is the answer."""
    chance = random.Random(7)
    seen = 0
    for name, body in bodies(dialect):
        fields = (*PROMPT, *MORE.get(dialect, ()))
        prompt = {field: body[field] for field in fields if field in body}
        places = list(leaves(prompt, ""))
        count = 1 if dialect in corpus.FILES else len(places)  # of few bodies, every text
        for path, place in chance.sample(places, min(count, len(places))):
            found = cache_prefix_diff(body, changed(body, place), FACTS[dialect])
            kept = path.endswith(".type") and "image" in str(found.message)
            assert found.path == path or kept, (name, path, found)
            seen += 1

    assert seen > (500 if dialect in corpus.FILES else 50)


@settings(max_examples=examples(40))  # a request is slow to make up
@given(requests(), st.sampled_from(NAMES))
def test_a_new_turn_breaks_nothing(request, dialect):
    """Law 10, for what our own encoders send with the profiles of real models."""
    begun = (*request.messages, Message.assistant("Oh."), Message.user("So?"))
    grown = (*begun, Message.assistant("Yes."), Message.user("And?"))

    first = encode(dialect, replace(request, messages=begun))
    second = encode(dialect, replace(request, messages=grown))

    assert cache_prefix_diff(first, second, FACTS[dialect]) is None
    assert cache_prefix_diff(second, first, FACTS[dialect]) is not None


@here
@pytest.mark.parametrize("breakpoints", [1, 4])
@pytest.mark.parametrize("automatic", [True, False])
def test_marks_may_move(breakpoints, automatic):
    """A marked body extends the same body without marks, and the other way round."""
    profile = profile_for(
        "anthropic_messages",
        overrides={"cache_breakpoints": breakpoints, "automatic_cache_mark": automatic},
    )
    for name, body in bodies("anthropic_messages"):
        marked = add_marks(body, CLAUDE.cache, profile)
        assert cache_prefix_diff(body, marked, CLAUDE) is None, name
        assert cache_prefix_diff(marked, body, CLAUDE) is None, name


# What breaks a prefix.

TOOLS = (ToolDefinition(name="look", description="a", parameters={"type": "object"}),)


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ({}, {}),
        (
            {"tools": (ToolDefinition(name="look", description="b"),)},
            {
                "openai_responses": "tools_changed tools[0].description",
                "openai_chat": "tools_changed tools[0].function.description",
                "anthropic_messages": "tools_changed tools[0].description",
                "gemini_generate": "tools_changed tools[0].functionDeclarations[0].description",
                "bedrock_converse": "tools_changed toolConfig.tools[0].toolSpec.description",
            },
        ),
        (
            {"tools": (*TOOLS, ToolDefinition(name="hear"))},
            {
                "openai_responses": "tools_changed tools[1]",
                "openai_chat": "tools_changed tools[1]",
                "anthropic_messages": "tools_changed tools[1]",
                "gemini_generate": "tools_changed tools[0].functionDeclarations[1]",
                "bedrock_converse": "tools_changed toolConfig.tools[1]",
            },
        ),
        (
            {"messages": (Message.system("Be brief."), Message.user("Hi."))},
            {
                "openai_responses": "system_changed instructions",
                "openai_chat": "messages_changed messages[0].content",
                "anthropic_messages": "system_changed system[0].text",
                "gemini_generate": "system_changed systemInstruction.parts[0].text",
                "bedrock_converse": "system_changed system[0].text",
            },
        ),
        (
            {"messages": (Message.system("Be kind."), Message.user("Ho."))},
            {
                "openai_responses": "messages_changed input[0].content",
                "openai_chat": "messages_changed messages[1].content",
                "anthropic_messages": "messages_changed messages[0].content",
                "gemini_generate": "messages_changed contents[0].parts[0].text",
                "bedrock_converse": "messages_changed messages[0].content[0].text",
            },
        ),
    ],
)
@pytest.mark.parametrize("dialect", NAMES)
def test_each_dialect_has_its_fields(dialect, change, answer):
    """Tools first, then the system text, then the messages."""
    key = {"prompt_cache_key": "k"}  # given, as another beginning has another key
    base = Request(
        messages=(Message.system("Be kind."), Message.user("Hi.")),
        tools=TOOLS,
        provider_options={"openai": key},
    )

    found = cache_prefix_diff(
        encode(dialect, base), encode(dialect, replace(base, **change)), FACTS[dialect]
    )

    told = "" if found is None else f"{found.code} {found.path}"
    assert told == answer.get(dialect, "")


def claude(**fields):
    tool = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
    return {"model": "m", "system": "a", "tools": [tool], "messages": said("a"), **fields}


def said(*texts, **fields):
    return [{"role": "user", "content": text, **fields} for text in texts]


IMAGE = {"type": "image", "source": {"type": "url", "url": "u"}}
A, B = {"type": "text", "text": "a"}, {"type": "text", "text": "b"}


def facts_of(body):
    """Of the dialect that one of the bodies below is in."""
    if "system" in body:
        return CLAUDE
    return RESPONSES if "input" in body else CHAT


@pytest.mark.parametrize(
    ("previous", "following", "told"),
    [
        (claude(), claude(model="n"), "model_changed model differs"),
        (claude(), claude(tools=None), "tools_changed tools was removed"),
        (claude(tools=None), claude(), "tools_changed tools was added"),
        (
            claude(),
            claude(tools=[{"name": "look", "input_schema": {"properties": {}, "type": "object"}}]),
            "tools_changed tools[0].input_schema has its keys in another order",
        ),
        (
            claude(),
            claude(tools=[{"input_schema": claude()["tools"][0]["input_schema"], "name": "look"}]),
            None,
        ),
        (claude(), claude(system=[A]), None),
        (claude(), claude(system=[A, B]), "system_changed system[1] was added"),
        (claude(), claude(max_tokens=7, temperature=0, stream=True), None),
        (claude(), claude(service_tier="auto"), None),
        (claude(), claude(tool_choice={"type": "auto"}), None),
        (
            claude(),
            claude(tool_choice={"type": "any"}),
            "tool_choice_changed tool_choice.type differs",
        ),
        (
            claude(thinking={"type": "adaptive"}),
            claude(thinking={"type": "enabled", "budget_tokens": 1024}),
            "thinking_changed thinking.type differs",
        ),
        (claude(), claude(messages=said("a", "b")), None),
        (claude(messages=said("a", "b")), claude(), "messages_changed messages[1] was removed"),
        (claude(), claude(messages=said([A, B])), None),  # parts are added to the last message
        (
            claude(messages=said([A, B])),
            claude(),
            "messages_changed messages[0].content[1] was removed",
        ),
        (
            claude(messages=said("a", "b")),
            claude(messages=said([A, B], "b")),
            "messages_changed messages[0].content[1] was added",
        ),
        (
            claude(),
            claude(messages=said([B])),
            "messages_changed messages[0].content[0].text differs",
        ),
        (
            claude(messages=said("a", "b")),
            claude(messages=said("a", "b", [IMAGE])),
            "messages_changed messages[2].content[0] is the first image",
        ),
        (
            claude(messages=said([IMAGE], "b")),
            claude(messages=said("a", "b")),
            "messages_changed messages[0].content[0] was the only image",
        ),
        (claude(messages=said([IMAGE])), claude(messages=said([IMAGE], [IMAGE])), None),
        ({"input": "a"}, {"input": said("a", "b")}, None),
        ({"input": "a"}, {"input": said("b")}, "messages_changed input[0].content differs"),
        ({"input": said("a")}, {"input": said([{"type": "input_text", "text": "a"}])}, None),
        (
            {"input": [], "text": {"format": {"type": "text"}}},
            {"input": [], "text": {"format": {"type": "json_object"}}},
            "text_format_changed text.format.type differs",
        ),
        (
            {"input": [], "text": {"verbosity": "low"}},
            {"input": []},
            "verbosity_changed text.verbosity was removed",
        ),
        (
            {"input": [], "reasoning": {"effort": "low"}},
            {"input": [], "reasoning": {"effort": "high"}},
            "reasoning_effort_changed reasoning.effort differs",
        ),
        ({"input": [], "reasoning": {"summary": "auto"}}, {"input": []}, None),
        (
            {"input": [], "prompt_cache_key": "a"},
            {"input": [], "prompt_cache_key": "b"},
            "prompt_cache_key_changed prompt_cache_key differs",
        ),
        ({"input": "a"}, {"input": "b", "previous_response_id": "resp_1"}, None),
        (
            {"input": "a"},
            {"input": "b", "previous_response_id": None},
            "messages_changed input differs",
        ),
        (
            {"input": [], "service_tier": "flex"},
            {"input": []},
            "service_tier_changed service_tier was removed",
        ),
        (
            {"messages": said("a"), "reasoning_effort": "low"},
            {"messages": said("a"), "reasoning": {"effort": "low"}},
            "reasoning_effort_changed reasoning_effort was removed",
        ),
        ({"messages": said("a")}, {"messages": said("a", name=None)}, None),
        (
            {"messages": said("a")},
            {"messages": said("a", name="b")},
            "messages_changed messages[0].name was added",
        ),
        ({"messages": [1]}, {"messages": [1.0]}, "messages_changed messages[0] differs"),
        ({"messages": "a"}, {"messages": 1}, "messages_changed messages differs"),
        ({"tools": 1}, {"tools": 1}, None),
        ({}, {}, None),
    ],
)
def test_what_breaks(previous, following, told):
    """The first field that does, what happened to it, and what it costs."""
    found = cache_prefix_diff(previous, following, facts_of(previous))

    assert (found and f"{found.code} {found.message.split('; ')[0]}") == told
    assert found is None or "again" in found.message


def test_the_model_in_the_path():
    """Gemini's model is no field of the body; how the answer comes does not matter."""

    def call(model, method):
        path = f"/v1beta/models/{model}:{method}"
        return WireCall(path=path, body={"contents": []})

    first = call("gemini-4-argon", "generateContent")

    assert cache_prefix_diff(first, call("gemini-4-argon", "streamGenerateContent"), GEMINI) is None
    assert (
        cache_prefix_diff(first, call("gemini-3.8-flash", "generateContent"), GEMINI).path
        == "model"
    )


def test_what_counts_is_a_fact_of_the_dialect():
    """Anthropic reads the messages anew after another choice among tools; others do not."""

    def body(choice):
        return {"model": "m", "messages": [], "tool_choice": choice}

    old, new = body({"type": "auto"}), body({"type": "none"})

    assert cache_prefix_diff(old, new, CLAUDE).code == "tool_choice_changed"
    assert cache_prefix_diff(old, new, CHAT) is None


def test_a_schema_may_speak_of_marks():
    """Within the caller's own JSON `cache_control` is a word like any other."""
    with_mark = {"name": "look", "input_schema": {"cache_control": {"type": "string"}}}
    without = {"name": "look", "input_schema": {}}

    found = cache_prefix_diff(claude(tools=[with_mark]), claude(tools=[without]), CLAUDE)

    assert found.path == "tools[0].input_schema.cache_control"


@pytest.mark.parametrize("body", [None, [], "text", 5, WireCall()])
def test_no_body(body):
    """What is no body is a typed error, on either side."""
    with pytest.raises(DecodeError):
        cache_prefix_diff(body, {}, CHAT)
    with pytest.raises(DecodeError):
        cache_prefix_diff({}, body, CHAT)


def test_bodies_nested_too_deeply():
    """A typed error, never a crash."""
    deep = {"messages": []}
    for _ in range(100_000):
        deep = {"messages": [deep]}
    with pytest.raises(DecodeError, match="too deeply"):
        cache_prefix_diff(deep, copy.copy(deep), CHAT)
