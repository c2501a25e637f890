"""Prompt caching: marks and keys."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from interlingua import dialects
from interlingua.conformance.strategies import requests
from interlingua.prepare.cache import add_cache_key, add_marks, conversation_key
from interlingua.providers.catalog.profiles import profile_for
from interlingua.spec.content import Text, ToolCall, ToolResult
from interlingua.spec.contracts import NEUTRAL_PROFILE, Profile
from interlingua.spec.messages import Message
from interlingua.spec.request import BuiltinTool, Request, ToolDefinition
from interlingua.wire.json_text import dumps
from support import corpus
from support.facts import FACTS, NAMES
from support.run_profile import examples

NAME = "anthropic_messages"
CLAUDE = profile_for(NAME, "claude-opus-5-5", "anthropic")
VERTEX = profile_for(NAME, "claude-opus-5-5", "vertex")
GPT = profile_for("openai_responses", "gpt-6.1-sol", "openai")
BY_MARK, BY_KEY = FACTS[NAME].cache, FACTS["openai_responses"].cache
MARK = {"type": "ephemeral"}
LONG = {"type": "ephemeral", "ttl": "1h"}
TOOL = {"name": "look", "input_schema": {"type": "object"}}
HI = {"role": "user", "content": "Hi."}


def marks(value):
    """Every mark within a body, in the order in which it is read."""
    if isinstance(value, dict) and "messages" in value:
        places = [value.get("tools"), value.get("system"), value["messages"]]
        last = [value["cache_control"]] if value.get("cache_control") else []
        return [mark for place in places for mark in marks(place)] + last
    if isinstance(value, list):
        return [mark for item in value for mark in marks(item)]
    if not isinstance(value, dict):
        return []
    own = [value["cache_control"]] if value.get("cache_control") else []
    return marks(value.get("content")) + marks(value.get("source")) + own


def unmarked(value):
    """A body without marks, its texts as blocks, so that only what was marked differs."""
    if isinstance(value, list):
        return [unmarked(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
    for key in ("system", "content"):
        if isinstance(fields.get(key), str):
            fields[key] = [{"type": "text", "text": fields[key]}]
    return fields


def ttls(body):
    return [mark.get("ttl", "5m") for mark in marks(body)]


def added(body, profile):
    """Where marks were added."""
    found = add_marks(body, BY_MARK, profile)
    places = {
        "top": found.get("cache_control") != body.get("cache_control"),
        "system": found["system"] != body["system"],
        "tools": found["tools"] != body["tools"],
    }
    return " ".join(place for place, is_marked in places.items() if is_marked)


def encode(request, profile=CLAUDE, dialect=NAME, **options):
    request = replace(request, provider_options={dialect: options} if options else {})
    return dialects.get(dialect).encode_request(request, profile).body


BODIES = st.fixed_dictionaries(
    {
        "messages": st.lists(
            st.sampled_from(
                [
                    HI,
                    {"role": "assistant", "content": [{"type": "thinking", "thinking": ""}]},
                    {"role": "user", "content": [{"type": "text", "text": " "}]},
                    {
                        "role": "user",
                        "content": [{"type": "text", "text": "a", "cache_control": MARK}],
                    },
                    {
                        "role": "user",
                        "content": [
                            {
                                "type": "tool_result",
                                "tool_use_id": "x",
                                "content": [
                                    {"type": "text", "text": "a", "cache_control": LONG},
                                ],
                            }
                        ],
                    },
                ]
            ),
            max_size=4,
        )
    },
    optional={
        "cache_control": st.sampled_from([None, MARK, LONG]),
        "system": st.sampled_from(
            ["", "Be kind.", [], [{"type": "text", "text": "a", "cache_control": LONG}]]
        ),
        "tools": st.lists(
            st.sampled_from(
                [TOOL, {**TOOL, "defer_loading": True}, {**TOOL, "cache_control": LONG}]
            ),
            max_size=3,
        ),
    },
)
PROFILES = st.builds(
    Profile,
    caching=st.just(True),
    cache_breakpoints=st.none() | st.integers(0, 6),
    automatic_cache_mark=st.booleans(),
)


# Laws of marks.


@given(BODIES, PROFILES)
def test_never_more_marks_than_allowed(body, profile):
    """The caller's marks count; what he marked too often himself is his."""
    theirs = len(marks(body))
    most = theirs + 3 if profile.cache_breakpoints is None else profile.cache_breakpoints

    assert len(marks(add_marks(body, BY_MARK, profile))) <= max(theirs, most)


@given(BODIES, PROFILES)
def test_a_longer_life_never_follows_a_shorter(body, profile):
    """Marks that were in order stay in order."""
    before = ttls(body)
    after = ttls(add_marks(body, BY_MARK, profile))

    if before == sorted(before):  # "1h" sorts before "5m"
        assert after == sorted(after)


@given(BODIES, PROFILES)
def test_only_marks_are_added(body, profile):
    """Nothing else changes, nothing of the caller's is touched, and again adds nothing."""
    before = copy.deepcopy(body)
    marked = add_marks(body, BY_MARK, profile)

    assert body == before
    assert unmarked(marked) == unmarked(body)
    assert add_marks(marked, BY_MARK, profile) == marked
    assert dumps(add_marks(body, BY_MARK, profile)) == dumps(marked)


@given(BODIES, PROFILES)
def test_what_cannot_be_marked_is_not(body, profile):
    """Blank text, thinking and deferred tools bear no mark."""
    marked = add_marks(body, BY_MARK, profile)
    blocks = [block for message in marked["messages"] for block in message["content"]]

    for item in (*blocks, *marked.get("tools", ())):
        if isinstance(item, dict) and "cache_control" in item:
            assert item.get("type") != "thinking"
            assert str(item.get("text", "a")).strip()
            assert not item.get("defer_loading")


@settings(max_examples=examples(40))  # a request is slow to make up
@given(requests())
def test_the_neutral_profile_adds_nothing(request):
    """Law 3 holds to the letter: nobody asked for a mark or a key."""
    for dialect in NAMES:
        body = dialects.get(dialect).encode_request(request, NEUTRAL_PROFILE).body

        assert "prompt_cache_key" not in body
        assert dialect != NAME or not marks(body)


@settings(max_examples=examples(40))  # a request is slow to make up
@given(requests(), st.sampled_from([CLAUDE, VERTEX]))
def test_a_new_turn_keeps_the_prefix(request, profile):
    """Law 10: tools, system text and earlier messages have the same bytes as before."""
    begun = (*request.messages, Message.assistant("Oh."), Message.user("So?"))
    grown = (*begun, Message.assistant("Yes."), Message.user("And?"))
    first = encode(replace(request, messages=begun), profile)
    second = encode(replace(request, messages=grown), profile)

    for field in ("tools", "system"):
        assert dumps(first.get(field)) == dumps(second.get(field))
    earlier = second["messages"][: len(first["messages"])]
    if profile.automatic_cache_mark:
        assert dumps(first["messages"]) == dumps(earlier)
    assert unmarked(first["messages"]) == unmarked(earlier)


@pytest.mark.skipif(not corpus.is_here(), reason="the recordings are not at hand")
def test_recorded_requests_can_be_marked():
    """Whatever was recorded gets at most four marks, in order, and loses nothing."""
    for case in corpus.cases(NAME):
        if case.call is not None and case.call.body.get("messages"):
            body = add_marks(case.call.body, BY_MARK, CLAUDE)

            assert 1 <= len(marks(body)) <= 4, case.name
            assert ttls(body) == sorted(ttls(body)), case.name
            assert unmarked(body) == unmarked(case.call.body), case.name


# Marks.


def test_the_three_marks():
    """One for the whole request, one on the system text, one on the last tool."""
    tools = (ToolDefinition(name="look"), ToolDefinition(name="hear"))
    body = encode(
        Request(model="m", messages=(Message.system("Be kind."), Message.user("Hi.")), tools=tools)
    )

    assert body["cache_control"] == MARK
    assert body["system"] == [{"type": "text", "text": "Be kind.", "cache_control": MARK}]
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, MARK]
    assert body["messages"] == [HI]


def test_a_smallest_request():
    """Where there is neither system text nor tools, nothing is made up."""
    text = "Hi. " * 200
    body = encode(Request(model="m", messages=text))

    assert body["cache_control"] == MARK
    assert body["messages"] == [{**HI, "content": text}]
    assert body.keys().isdisjoint(("system", "tools"))


def test_a_prompt_that_is_too_short_is_not_marked():
    """The provider ignores such a mark; with one more character, it may not be too short."""
    least = CLAUDE.min_cache_tokens
    for size, is_marked in ((least - 1, False), (least, True)):
        for stream in (False, True):
            request = Request(model="m", messages="x" * size)
            call = dialects.get(NAME).encode_request(request, CLAUDE, stream=stream)
            assert bool(marks(call.body)) == is_marked


def test_there_is_no_cache_key_without_caching():
    """`caching: false` means no marks and no key."""
    request = Request(model="gpt-6.1-sol", messages="Hi.")
    encode_request = dialects.get("openai_responses").encode_request

    assert "prompt_cache_key" in encode_request(request, GPT).body
    assert "prompt_cache_key" not in encode_request(request, replace(GPT, caching=False)).body


def test_a_server_that_places_no_mark_itself():
    """On Vertex and Bedrock the end is marked in its own block."""
    said = Text(text="Hm.")
    call = ToolCall(id="a", name="look", arguments={})
    answer = Message(role="tool", content=(ToolResult(tool_call_id="a", content="1"),))
    messages = (Message.user("Hi."), Message.assistant([said, call]), answer)
    body = encode(Request(model="m", messages=messages), VERTEX)

    assert "cache_control" not in body
    assert body["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "1", "cache_control": MARK}
    ]
    assert len(marks(body)) == 1


@pytest.mark.parametrize(
    ("marked", "places"),
    [
        ({"system": [{"type": "text", "text": "a", "cache_control": LONG}]}, "top tools"),
        ({"tools": [{**TOOL, "cache_control": MARK}, TOOL]}, "top system"),
        ({"cache_control": MARK}, "system tools"),
        (
            {
                "messages": [
                    {**HI, "content": [{"type": "text", "text": "a", "cache_control": MARK}]}
                ]
            },
            "system tools",
        ),
        ({"cache_control": None}, "top system tools"),
    ],
)
def test_a_place_the_caller_marked_is_his(marked, places):
    """Marks are added only where there are none."""
    body = {"tools": [TOOL, TOOL], "system": "Be kind.", "messages": [HI], **marked}

    assert added(body, CLAUDE) == places


@pytest.mark.parametrize(
    ("most", "places"),
    [(0, ""), (1, "top"), (2, "top system"), (3, "top system tools"), (4, "top system tools")],
)
def test_the_end_comes_first(most, places):
    """Where there is no room for all three, the longest prefix is kept."""
    body = {"tools": [TOOL], "system": "Be kind.", "messages": [HI]}

    assert added(body, replace(CLAUDE, cache_breakpoints=most)) == places


@pytest.mark.parametrize(
    ("theirs", "places"), [(1, "system tools"), (3, "system"), (4, ""), (5, "")]
)
def test_the_callers_marks_count(theirs, places):
    """Four in all, those within the content of a tool result among them."""
    marked = {"type": "text", "text": "a", "cache_control": MARK}
    result = {"type": "tool_result", "tool_use_id": "x", "content": [marked] * theirs}
    messages = [{"role": "user", "content": [result]}]

    assert added({"tools": [TOOL], "system": "a", "messages": messages}, CLAUDE) == places


def test_a_long_life_goes_first():
    """An hour at the end asks for an hour before it; an hour before it asks for nothing."""
    body = {"tools": [TOOL], "system": "Be kind.", "messages": [HI]}

    assert ttls(add_marks({**body, "cache_control": LONG}, BY_MARK, CLAUDE)) == ["1h", "1h", "1h"]
    system = [{"type": "text", "text": "a", "cache_control": LONG}]
    assert ttls(add_marks({**body, "system": system}, BY_MARK, CLAUDE)) == ["1h", "1h", "5m"]
    tools = [{**TOOL, "cache_control": LONG}]
    assert ttls(add_marks({**body, "tools": tools}, BY_MARK, CLAUDE)) == ["1h", "5m", "5m"]


def test_a_callers_own_objects_are_not_touched():
    """A built-in tool is the caller's object: its mark is on a copy."""
    data = {"type": "web_search_20260318", "name": "web_search"}
    tools = (BuiltinTool(dialect=NAME, data=data),)
    body = encode(Request(model="m", messages="Hi.", tools=tools))

    assert body["tools"] == [{**data, "cache_control": MARK}]
    assert "cache_control" not in data


def test_counting_tokens_needs_no_marks():
    """A count keeps nothing."""
    body = encode(Request(model="m", messages="Hi."), path="/v1/messages/count_tokens")

    assert "cache_control" not in body


@pytest.mark.parametrize("provider", sorted(["deepseek", "ollama", "vllm", "llamacpp", "local"]))
def test_servers_that_know_no_marks(provider):
    """They speak the dialect, but keep prompts in their own way."""
    profile = profile_for(NAME, "some-model", provider)

    assert encode(Request(model="m", messages="Hi."), profile)["messages"] == [HI]
    assert not marks(encode(Request(model="m", messages="Hi."), profile))


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize("wanted", [True, False, None])
@pytest.mark.parametrize("owner", ["dialect", "provider"])
def test_auto_cache_is_never_sent(dialect, wanted, owner):
    """It is a word between caller and encoder, under the dialect's name or the provider's."""
    own = {
        NAME: "anthropic",
        "gemini_generate": "gemini",
        "bedrock_converse": "bedrock_converse",
    }
    provider = own.get(dialect, "openai")
    key = dialect if owner == "dialect" else provider
    request = Request(
        model="m",
        messages="Hi.",
        provider=provider,
        provider_options={key: {"auto_cache": wanted}},
    )
    call = dialects.get(dialect).encode_request(request, profile_for(dialect, "m", provider))
    told = [name for name in ("cache_control", "prompt_cache_key") if name in call.body]

    assert "auto_cache" not in call.body
    assert call.warnings == ()
    # Of Converse, only models that are known to cache get marks.
    has_none = dialect in ("gemini_generate", "bedrock_converse")
    assert len(told) == (wanted is not False and not has_none)


def test_system_blocks_keep_their_marks_for_anthropic_alone():
    """System blocks keep their marks for Anthropic, and are plain text for everybody else.

    Field bug 29.
    """
    body = {
        "model": "m",
        "max_tokens": 9,
        "system": [
            {"type": "text", "text": "Be kind."},
            {"type": "text", "text": "Be brief.", "cache_control": LONG},
        ],
        "messages": [HI],
    }
    request = dialects.get(NAME).decode_request(
        dialects.get(NAME).encode_request(Request(provider_options={NAME: body})),
    )

    assert dialects.get(NAME).encode_request(request).body["system"] == body["system"]
    for dialect in ("openai_chat", "openai_responses", "gemini_generate"):
        text = dumps(dialects.get(dialect).encode_request(request).body)
        assert b"Be kind." in text
        assert b"Be brief." in text
        assert b"cache_control" not in text


# Keys.


@settings(max_examples=examples(40))  # a request is slow to make up
@given(requests())
def test_a_conversation_keeps_its_key(request):
    """However it grows, and whatever is set, its key is that of its beginning."""
    grown = replace(
        request,
        model="another",
        temperature=0.5,
        reasoning_effort="low",
        request_id="x",
        messages=(*request.messages, Message.assistant("Yes."), Message.user("And?")),
    )

    assert conversation_key(request) == conversation_key(grown)
    assert len(conversation_key(request)) == 32


@settings(max_examples=examples(40))  # a request is slow to make up
@given(requests(), st.sampled_from(["system", "user", "tools"]))
def test_another_conversation_has_another_key(request, part):
    """Another beginning makes another key."""
    if part == "tools":
        other = replace(request, tools=(*(request.tools or ()), ToolDefinition(name="~")))
    else:
        first = Message(role=part, content=(Text(text="~ another beginning"),))
        other = replace(request, messages=(first, *request.messages))

    assert conversation_key(request) != conversation_key(other)


def test_marks_do_not_change_the_key():
    """What dialects leave on parts and tools may move from turn to turn."""

    def key(extra):
        part = Text(text="Hi.", extra=extra)
        tool = ToolDefinition(name="look", extra=extra)
        return conversation_key(
            Request(messages=(Message(role="user", content=(part,)),), tools=(tool,))
        )

    assert key({}) == key({"openai_chat": {"cache_control": MARK}})


def test_a_conversation_that_has_not_begun():
    """Without a word of the user there is no key; with half a character there is one."""
    assert conversation_key(Request(messages=(Message.system("Be kind."),))) is None
    assert conversation_key(Request(messages="\ud83d")) is not None


def test_a_key_is_written_once():
    """The same beginning has the same key on every machine, at every time."""
    assert conversation_key(Request(messages="Hi.")) == "111137bcaff2efd50c7d5ce99f8abe0f"


@pytest.mark.parametrize(
    ("dialect", "provider", "taken"),
    [
        ("openai_responses", "openai", True),
        ("openai_chat", "openai", True),
        ("openai_chat", "openrouter", True),
        ("openai_chat", "mistral", True),
        ("openai_chat", "fireworks", True),
        ("openai_chat", "groq", False),
        ("openai_chat", "deepseek", False),
        ("openai_chat", "xai", False),
        ("openai_chat", "vllm", False),
        ("openai_chat", None, False),
        (NAME, "openrouter", False),
    ],
)
def test_who_takes_a_key(dialect, provider, taken):
    """Only servers that know the field get it."""
    request = Request(model="gpt-4o", messages="Hi.", provider=provider)
    body = encode(request, profile_for(dialect, "gpt-4o", provider), dialect)

    assert ("prompt_cache_key" in body) == taken


@pytest.mark.parametrize("given_key", ["mine", "", None])
def test_the_callers_key_wins(given_key):
    """Even none at all."""
    body = encode(
        Request(model="m", messages="Hi."), GPT, "openai_responses", prompt_cache_key=given_key
    )

    assert body["prompt_cache_key"] == given_key


@pytest.mark.parametrize(
    "options",
    [
        {"auto_cache": False},
        {"previous_response_id": "resp_1"},  # the beginning is on the server
        {"conversation": "conv_1"},
        {"path": "/v1/responses/input_tokens"},
    ],
)
def test_where_a_key_would_be_wrong(options):
    """No key is better than one that changes at each turn."""
    body = encode(Request(model="m", messages="Hi."), GPT, "openai_responses", **options)

    assert "prompt_cache_key" not in body


def test_a_null_is_no_stored_conversation():
    """A field that was sent as null says nothing."""
    body = encode(
        Request(model="m", messages="Hi."), GPT, "openai_responses", previous_response_id=None
    )

    assert "prompt_cache_key" in body


def test_add_cache_key_leaves_the_body():
    """The body that is given stays as it is."""
    body = {"model": "m"}

    assert add_cache_key(body, Request(messages="Hi."), BY_KEY, GPT).keys() == {
        "model",
        "prompt_cache_key",
    }
    assert body == {"model": "m"}
