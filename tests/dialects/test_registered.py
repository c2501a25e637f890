"""A dialect of another package works wherever one of ours does."""

import asyncio
import json
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings

from interlingua import Client, HttpAdapter, Message, Request, dialects, generate, tool
from interlingua.catalog import Provider
from interlingua.conformance import strategies
from interlingua.conformance.canonical import crossings, response_survives
from interlingua.conformance.laws import Case, check
from interlingua.history import repair
from interlingua.prepare.cache import cache_prefix_diff
from interlingua.prepare.prepare import prepare
from interlingua.providers import provider
from interlingua.providers.catalog.profiles import profile_for
from interlingua.runtime import installed
from interlingua.spec.content import Image, Text, Thinking, ToolCall
from interlingua.spec.contracts import NEUTRAL_PROFILE, Prepared, WireCall
from interlingua.spec.errors import ConfigurationError, RateLimitError, StreamError
from interlingua.transport import CannedReply, CannedTransport
from support import postcard
from support.facts import NAMES
from support.run_profile import examples

CALL = {"id": "c1", "tool": "look", "with": {"city": "Oslo"}}
LINES = [
    {"by": "user", "says": "Weather?"},
    {"by": "assistant", "says": "I look."},
    {"by": "assistant", "asks": CALL},
    {"by": "tool", "answers": "c1", "says": "Rain."},
]
TOOL = {"tool": "look", "about": "Looks.", "takes": {"type": "object"}}
ANSWER = {
    "id": "p1",
    "from": "m",
    "lines": [{"says": "It rains."}, {"asks": CALL}],
    "why": "tool_calls",
    "spent": [9, 3],
}
FRAMES = (
    {"begin": {"id": "p1", "from": "m"}},
    {"more": "It "},
    {"more": "rains."},
    {"line": {"asks": CALL}},
    {"end": {"why": "tool_calls", "spent": [9, 3]}},
)
STREAM = b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in FRAMES)
CASE = Case(
    name="rain",
    call=WireCall(path="/postcard", body={"to": "m", "lines": LINES, "tools": [TOOL]}),
    response=ANSWER,
    stream=STREAM,
)
SSE = {"content-type": "text/event-stream"}


@pytest.fixture(autouse=True)
def _empty_registry(monkeypatch):
    monkeypatch.setattr(dialects, "_registered", {})


@pytest.fixture
def row():
    """A provider whose dialect has been registered."""
    postcard.register()
    return Provider(
        name="post", dialect="postcard", base_url="https://post.example", key_required=False
    )


def client_of(row, *replies):
    transport = CannedTransport(replies)
    return Client(
        {"post": HttpAdapter(row, transport=transport)}, default_provider="post"
    ), transport


# The registry.


def test_the_shipped_ones():
    """They are there from the start, in this order."""
    assert dialects.names() == NAMES == (
        "openai_responses", "openai_chat", "anthropic_messages", "gemini_generate",
        "bedrock_converse",
    )  # fmt: skip
    assert all(dialects.get(name).FACTS.name == dialects.get(name).NAME == name for name in NAMES)


def test_registered_by_name():
    """Then it is found like the others; once more changes nothing."""
    postcard.register()
    postcard.register()

    assert dialects.get("postcard") is postcard
    assert dialects.names() == (*NAMES, "postcard")


def test_a_name_is_taken_once():
    """Neither a shipped dialect nor a registered one can be replaced."""
    postcard.register()
    other = SimpleNamespace(**vars(postcard))
    with pytest.raises(ConfigurationError, match="'postcard' is registered already"):
        dialects.register(other)
    ours = dialects.get("openai_chat")
    dialects.register(ours)
    with pytest.raises(ConfigurationError, match="'openai_chat' is registered already"):
        dialects.register(SimpleNamespace(**vars(ours)))

    assert dialects.names() == (*NAMES, "postcard")


@pytest.mark.parametrize("missing", ["NAME", "FACTS", "encode_request", "decode_error"])
def test_what_a_dialect_must_have(missing):
    """An object that lacks something is refused, and the error names it."""
    parts = {name: value for name, value in vars(postcard).items() if name != missing}

    with pytest.raises(ConfigurationError, match=f"is no dialect: it lacks {missing}"):
        dialects.register(SimpleNamespace(**parts))
    assert dialects.names() == NAMES


def test_one_name_everywhere():
    """The name of its facts is its own, else its `extra` would not be found."""
    renamed = SimpleNamespace(**{**vars(postcard), "NAME": "letter"})

    with pytest.raises(ConfigurationError, match="must have the same name"):
        dialects.register(renamed)


def test_a_row_needs_a_dialect_that_there_is():
    """The error lists those there are."""
    with pytest.raises(
        ConfigurationError, match=r"'post': There is no dialect 'postcard'\. Use one of openai"
    ):
        Provider(name="post", dialect="postcard")
    postcard.register()

    assert Provider(name="post", dialect="postcard").dialect == "postcard"


def test_entry_points(monkeypatch):
    """Those of other packages are loaded when a name is not known otherwise, one time."""
    loads = []

    def points_of(group):
        loads.append(group)
        return [
            EntryPoint(name="gone", value="no_such_package", group=group),
            EntryPoint(name="theirs", value="support.postcard", group=group),
        ]

    provider._register_dialects.cache_clear()
    monkeypatch.setattr(installed, "entry_points_of", points_of)
    assert provider.find_dialect("openai_chat") is dialects.get("openai_chat")
    assert loads == []
    with pytest.warns(RuntimeWarning, match="entry point 'gone' of"):
        assert provider.find_dialect("postcard") is postcard
    with pytest.raises(ConfigurationError, match=r"no dialect 'latin'\. Use one of .*, postcard"):
        provider.find_dialect("latin")

    assert loads == ["interlingua.dialects"]
    provider._register_dialects.cache_clear()


# Everything that takes a dialect.


def test_it_answers(row):
    """A whole call through a client."""
    client, transport = client_of(row, CannedReply(body=json.dumps(ANSWER).encode()))

    response = asyncio.run(client.complete(Request(model="m", messages="Weather?")))

    assert (response.text, response.usage.total_tokens) == ("It rains.", 12)
    assert response.tool_calls == (ToolCall(id="c1", name="look", arguments={"city": "Oslo"}),)
    (request,) = transport.requests
    assert request.url == "https://post.example/postcard"
    assert json.loads(request.body) == {"to": "m", "lines": [{"by": "user", "says": "Weather?"}]}


def test_it_streams(row):
    """Event by event, to the same answer."""
    client, _ = client_of(row, CannedReply(headers=SSE, body=(STREAM[:40], STREAM[40:])))

    async def read():
        return [event async for event in client.stream(Request(model="m", messages="Weather?"))]

    *events, last = asyncio.run(read())

    assert "".join(event.delta for event in events if event.type == "text_delta") == "It rains."
    assert last.response.text == "It rains."
    assert last.response.tool_calls[0].arguments == {"city": "Oslo"}


def test_it_breaks_off(row):
    """A stream that is cut is an error with what came."""
    client, _ = client_of(row, CannedReply(headers=SSE, body=STREAM[:80]))

    async def read():
        return [event async for event in client.stream(Request(model="m", messages="Weather?"))]

    with pytest.raises(StreamError) as caught:
        asyncio.run(read())
    assert caught.value.partial.text == "It "


def test_it_fails(row):
    """Its errors are typed like any."""
    reply = CannedReply(status=429, body=b'{"error": {"message": "too many postcards"}}')
    client, _ = client_of(row, reply)

    with pytest.raises(RateLimitError, match="too many postcards"):
        asyncio.run(client.complete(Request(model="m", messages="Weather?")))


def test_it_runs_tools(row):
    """The tool loop sends results back in its own form."""
    last = {**ANSWER, "lines": [{"says": "Take an umbrella."}], "why": "stop"}
    replies = [CannedReply(body=json.dumps(body).encode()) for body in (ANSWER, last)]
    client, transport = client_of(row, *replies)

    @tool
    def look(city: str) -> str:
        """Looks."""
        return f"Rain in {city}."

    result = asyncio.run(generate("m", "Weather?", client=client, tools=[look]))

    assert result.text == "Take an umbrella."
    lines = json.loads(transport.requests[1].body)["lines"]
    assert lines[-1] == {"by": "tool", "answers": "c1", "says": "Rain in Oslo."}


def test_it_is_explained(row):
    """The exact body, what was lost, and the cache fields that its facts name."""
    client, _ = client_of(row)
    request = Request(
        model="m",
        messages="Weather?",
        temperature=0.5,
        seed=7,
        provider_options={"postcard": {"keep": True}},
    )

    explained = client.explain(request)

    assert explained.dialect == "postcard"
    assert explained.body["temperature"] == 0.5
    assert explained.cache_marks == ("keep",)
    assert [warning.code for warning in explained.warnings] == ["seed_dropped"]
    assert explained.estimated_input_tokens > 0


HISTORY = (
    Message.user([Text(text="Hi."), Image(url="https://a.example/b.png")]),
    Message.assistant([ToolCall(id="a long id of theirs", name="look")]),
)


@pytest.mark.usefixtures("row")
def test_it_is_repaired_for():
    """By name, and on the way: its facts say what it takes."""
    found = repair(HISTORY, "postcard")

    codes = ["image_dropped", "missing_result_added", "call_id_mapped"]
    assert [change.code for change in found.changes] == codes
    call = postcard.encode_request(Request(model="m", messages=HISTORY))
    assert [warning.code for warning in call.warnings] == codes
    assert [line["by"] for line in call.body["lines"]] == ["user", "assistant", "tool"]


@pytest.mark.usefixtures("row")
def test_what_is_prepared_is_not_prepared_again():
    """A `Prepared` is encoded as it is, with its warnings; a `Request` is prepared first."""
    request = Request(model="m", messages=HISTORY, provider_options={"postcard": {"keep": 1}})
    for dialect in (postcard, *map(dialects.get, NAMES)):
        ready = prepare(request, NEUTRAL_PROFILE, dialect.FACTS)

        first, second = dialect.encode_request(ready), dialect.encode_request(ready)

        assert first == second == dialect.encode_request(request)
        unanswered = Request(model="m", messages=(Message.user("Hi."), HISTORY[1]))
        as_it_is = dialect.encode_request(Prepared(request=unanswered))
        assert "missing_result_added" not in {warning.code for warning in as_it_is.warnings}


def test_its_profile(row):
    """A dialect without rows or quirks has a profile like any."""
    assert profile_for("postcard", "m").dialect == "postcard"
    assert profile_for("postcard", "m", overrides={"tools": False}).tools is False
    with pytest.raises(ConfigurationError, match=r"unknown key 'quirks\.top"):
        HttpAdapter(row, profile={"quirks": {"top": 1}})


@pytest.mark.usefixtures("row")
def test_options_of_others():
    """A request with options for it, sent in another dialect, has a warning."""
    request = Request(model="m", messages="Hi.", provider_options={"postcard": {"stamp": 1}})

    (warning,) = dialects.get("openai_chat").encode_request(request).warnings

    assert (warning.code, warning.path) == ("options_dropped", "provider_options.postcard")


@pytest.mark.usefixtures("row")
def test_its_cached_prefix():
    """What counts, and in which field its messages are, are facts."""
    one, two = {"to": "m", "lines": LINES[:1]}, {"to": "m", "lines": LINES[:2]}

    assert cache_prefix_diff(one, two, postcard.FACTS) is None
    assert cache_prefix_diff(two, one, postcard.FACTS).path == "lines[1]"
    assert cache_prefix_diff(one, {**two, "to": "n"}, postcard.FACTS).code == "model_changed"


# The laws.


@pytest.mark.usefixtures("row")
def test_it_keeps_the_laws():
    """All that apply to one dialect, and from it to the others."""
    assert str(check(postcard, [CASE])) == "postcard: 9 checks on 1 cases, 0 broken"
    others = crossings(map(dialects.get, NAMES))

    assert check(postcard, [CASE], others).violations == ()


@settings(
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(strategies.responses())
def test_answers_survive(response):
    """What can be said in it comes back."""
    parts = [part for part in response.message.content if not isinstance(part, Thinking)]
    said = type(response)(
        **{name: getattr(response, name) for name in ("id", "model", "finish_reason", "usage")},
        message=Message(role="assistant", content=tuple(parts)),
    )

    assert response_survives(postcard, said) == []
