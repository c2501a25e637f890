"""`Redact`: what is sent has no secrets, whole and streamed, and answers may have none."""

import asyncio
import re
from base64 import b64encode
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlingua import Client, generate, sync, tool, transcribe
from interlingua.client.middleware.fallback import Fallback
from interlingua.client.middleware.redact import Redact
from interlingua.client.middleware.redact_text import (
    Detectors,
    Marks,
    RemovingFilter,
    RestoringFilter,
    put_back,
)
from interlingua.media import stream_transcription
from interlingua.simulator import pieces, text
from interlingua.spec.content import Audio, Document, Image, Text, Thinking, ToolCall, ToolResult
from interlingua.spec.errors import ConfigurationError, ServerError
from interlingua.spec.events import Finish, StreamRestart, TextDelta, TextEnd, ToolCallDelta
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.accumulate import events_from_response
from interlingua.streams.grammar import Grammar
from support.patterns import seconds
from support.simulated import adapters, simulated

SK = "sk-" + "a1B2" * 8
JWT = "eyJ" + "a" * 30 + "." + "b" * 30 + "." + "c" * 30
MAIL = "ada@example.com"
CARD = "4111 1111 1111 1111"
IBAN = "DE89 3704 0044 0532 0130 00"
PHONE = "+49 30 1234567"
KINDS = ("email", "phone", "card", "iban", "ssn", "ip")
SSN = "219-09-9999"
ADDRESS = "2001:db8::1"
TOKENS = (
    "AKIA" + "Q3EGRLZ7" * 2,
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2_" * 6,
    "xoxb-" + "123456789012-" * 2 + "a1B2c3",
    "npm_" + "a1B2" * 9,
    "Basic " + b64encode(b"ada:a long password").decode(),
    "postgres://ada:hunter2@db.example.com:5432/shop",
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + ("a1B2" * 16 + "\n") * 5
    + "a1==\n-----END RSA PRIVATE KEY-----",
)
SECRETS = (SK, JWT, f"Bearer {'x' * 20}", MAIL, CARD, IBAN, PHONE, SSN, ADDRESS, *TOKENS)


class Adapter:
    """Answers with what it is given, in pieces of a few characters; notes what it was sent."""

    name = "here"

    def __init__(self, *parts, size=3):
        self.parts = parts or (Text(text="ok"),)
        self.size = size
        self.sent = []

    def _answer(self, request):
        self.sent.append(request)
        parts = self.parts
        reason = "tool_calls" if any(isinstance(each, ToolCall) for each in parts) else "stop"
        return Response(
            message=Message.assistant(parts),
            finish_reason=FinishReason(reason=reason),
            raw={"a": 1},
        )

    async def complete(self, request):
        return self._answer(request)

    async def stream(self, request):
        for event in events_from_response(self._answer(request)):
            delta = getattr(event, "delta", None)
            if delta is None:
                yield event
                continue
            for at in range(0, len(delta), self.size):
                yield replace(event, delta=delta[at : at + self.size])

    async def perform(self, _, value, **__):
        self.sent.append(value)
        return {"echo": value}


def client_of(adapter, *kinds, **settings):
    return Client({"here": adapter}, middleware=[Redact(*kinds, **settings)])


async def whole(client, request):
    return await client.complete(request)


async def streamed(client, request):
    """The response of a stream; its deltas must say the same as its parts."""
    grammar, shown, response = Grammar(), "", None
    async for event in client.stream(request):
        grammar.feed(event)
        if type(event) is TextDelta:
            shown += event.delta
        if type(event) is Finish:
            response = event.response
    grammar.finish()
    assert shown == response.text
    return response


both = pytest.mark.parametrize("ask", [whole, streamed])


def ask_for(*messages, **fields):
    return Request(model="here:m", messages=messages, **fields)


@both
def test_no_text_that_is_sent_has_a_secret(ask):
    """System prompt, texts, documents, arguments and results of tools, user and metadata."""
    adapter = Adapter()
    request = ask_for(
        Message.system(f"Key {SK}"),
        Message.user(
            f"I am {MAIL}, card {CARD}", Document(text=f"IBAN {IBAN}"), Image(url="https://a.b")
        ),
        Message(
            role="assistant",
            content=(
                Thinking(text=f"call {PHONE}", signature="s"),
                ToolCall(id="1", name="a", arguments={"to": [MAIL], MAIL: 1}),
                ToolCall(id="2", name="b", arguments=f'{{"x": "{SK}"}}'),
                ToolCall(id="3", name="c", type="custom", raw_arguments=MAIL),
            ),
        ),
        Message.tool_result("1", f"sent to {MAIL}"),
        Message.tool_result("2", {"a": [MAIL]}),
        Message(
            role="tool",
            content=(ToolResult(tool_call_id="3", content=(Text(text=f"also {JWT}"),)),),
        ),
        user=MAIL,
        metadata={"who": MAIL},
    )
    before = repr(request)
    asyncio.run(ask(client_of(adapter, *KINDS), request))
    (sent,) = adapter.sent

    for secret in SECRETS:
        assert secret not in repr(sent)
    assert repr(request) == before
    assert sent.messages[1].text == "I am [EMAIL_1], card [CARD_1]"
    assert sent.user == "[EMAIL_1]"
    assert sent.messages[2].content[0] == Thinking(text="call [PHONE_1]")
    assert sent.messages[2].tool_calls[0].arguments == {"to": ["[EMAIL_1]"], "[EMAIL_1]": 1}
    assert sent.messages[4].content[0].content == {"a": ["[EMAIL_1]"]}


NAMES = [
    (f"cv of {MAIL}.pdf", "cv of [EMAIL_1].pdf"),
    (MAIL, "[EMAIL_1]"),
    (f"{SK}.txt", "[SECRET_1].txt"),
    ("report.2026.csv", "report.2026.csv"),
]


@pytest.mark.parametrize(("name", "expected"), NAMES)
@pytest.mark.parametrize("field", ["file_name", "path"])
@both
def test_the_names_of_files(ask, field, name, expected):
    """They are sent; what says the kind of a file stays, if it can."""
    adapter = Adapter()
    source = {"data": b"x", "file_name": name} if field == "file_name" else {"path": f"a/{name}"}
    asyncio.run(ask(client_of(adapter, *KINDS), ask_for(Message.user(Document(**source)))))
    (document,) = adapter.sent[0].messages[0].content

    assert document.file_name == (None if field == "path" and name == expected else expected)


@both
def test_the_names_of_authors(ask):
    """A message may say who wrote it."""
    adapter = Adapter()
    message = Message(role="user", content=("Hi.",), name=MAIL)
    asyncio.run(ask(client_of(adapter, *KINDS), ask_for(message)))

    assert adapter.sent[0].messages[0].name == "[EMAIL_1]"


@both
def test_only_keys_are_removed_unless_more_is_asked_for(ask):
    """Personal data is opt-in; a request without any of it is passed on as it is."""
    adapter = Adapter()
    request = ask_for(Message.user(f"{MAIL} {CARD}"))

    async def main():
        client = client_of(adapter)
        await ask(client, request)
        await ask(client, ask_for(Message.user(f"{MAIL} {SK}")))
        await ask(client_of(adapter, secrets=False), ask_for(Message.user(SK)))

    asyncio.run(main())
    assert adapter.sent[0].messages is request.messages
    assert [sent.messages[0].text for sent in adapter.sent[1:]] == [f"{MAIL} [SECRET_1]", SK]


@both
@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_marks_in_the_answer_are_replaced(ask, size):
    """Also if a mark is split over deltas; the caller's own brackets stay."""
    parts = (
        Text(text="[EMAIL_1] [EMAIL_2] [EMAIL_9] [x] [[EMAIL_1]] [EMAIL_"),
        ToolCall(id="1", name="a", arguments='{"to": "[EMAIL_1]", "note": "[QUOTE_1]"}'),
    )
    adapter = Adapter(*parts, size=size)
    quoted = 'say "hi"\n'
    client = client_of(adapter, "email", patterns={"QUOTE": re.escape(quoted)}, restore=True)
    request = ask_for(Message.user(f"{MAIL} and bob@example.com: {quoted}"))
    response = asyncio.run(ask(client, request))

    assert response.text == f"{MAIL} bob@example.com [EMAIL_9] [x] [{MAIL}] [EMAIL_"
    assert response.tool_calls[0].arguments == {"to": MAIL, "note": quoted}
    assert response.tool_calls[0].is_valid
    assert response.raw is None


@both
def test_a_text_of_the_caller_that_looks_like_a_mark_is_none(ask):
    """It comes back as it is."""
    adapter = Adapter(Text(text="[EMAIL_1] [EMAIL_2]"))
    client = client_of(adapter, "email", restore=True)
    response = asyncio.run(ask(client, ask_for(Message.user(f"What is [EMAIL_1]? {MAIL}"))))

    assert adapter.sent[0].messages[0].text == "What is [EMAIL_1]? [EMAIL_2]"
    assert response.text == f"[EMAIL_1] {MAIL}"


@both
@pytest.mark.parametrize("size", [1, 3, 10, 1000])
@pytest.mark.parametrize("secret", SECRETS)
def test_an_answer_has_no_secret(ask, size, secret):
    """Not even one that is split over deltas."""
    parts = (
        Text(text=f"Take {secret} or not. "),
        Thinking(text=f"I say {secret}"),
        ToolCall(id="1", name="a", arguments={"x": f"use {secret} now"}),
    )
    adapter = Adapter(*parts, size=size)
    deltas = []

    async def main():
        client = client_of(adapter, *KINDS, answers=True)
        async for event in client.stream(ask_for(Message.user("Hi."))):
            deltas.append(getattr(event, "delta", ""))  # noqa: PERF401 -- clearer so
        return await ask(client, ask_for(Message.user("Hi.")))

    response = asyncio.run(main())

    assert re.fullmatch(r"Take \[[A-Z]+_1\] or not\. ", response.text)
    for shown in (repr(response), "".join(deltas)):
        assert secret not in shown
        assert secret[-9:] not in shown


def test_a_stream_of_an_answer_is_delivered_while_it_arrives():
    """Only what may be the beginning of a secret is held back; with own patterns, everything."""
    words = "Some words that are no secret. " * 20
    counts = []

    async def main():
        for settings in ({}, {"patterns": {"X": "x"}}):
            client = client_of(Adapter(Text(text=words)), *KINDS, answers=True, **settings)
            events = [event async for event in client.stream(ask_for(Message.user("Hi.")))]
            counts.append(sum(type(event) is TextDelta for event in events))

    asyncio.run(main())
    assert counts[0] > 20
    assert counts[1] == 1


texts = st.lists(
    st.sampled_from(
        [*SECRETS, "a", "12", "4111", " ", "  ", "\n", "word", "@", ".", "-", "+49", "eyJ",
         "bearer", "DE89", "以前", "\u2019", "[EMAIL_1]", "sk-", "(", "x" * 80, "1 1 1 1 1 1 1 1",
         "password", "=", " = ", ": ", '"', "hunter2", "y" * 200, "ada at example dot com", "at",
         "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "-----BEGIN ", "basic", "://"]
    ),
    max_size=25,
).map("".join)  # fmt: skip


def cut(text, places):
    bounds = [0, *sorted(min(at, len(text)) for at in places), len(text)]
    return [text[start:end] for start, end in pairwise(bounds)]


@given(texts, st.lists(st.integers(0, 400), max_size=60))
def test_a_text_in_pieces_is_redacted_like_the_whole(text, places):
    """Law: it does not show how the text arrived."""
    detectors = Detectors(KINDS, {}, secrets=True)
    expected = Marks(detectors).remove(text)
    filtered = RemovingFilter(detectors, Marks(detectors))
    shown = [filtered.feed(piece) for piece in cut(text, places)]

    assert "".join(shown) + filtered.end() == expected


@given(texts, st.lists(st.integers(0, 400), max_size=60))
def test_marks_in_pieces_are_replaced_like_the_whole(text, places):
    """Law: also of marks."""
    values = {"[EMAIL_1]": MAIL}
    filtered = RestoringFilter(values)
    shown = [filtered.feed(piece) for piece in cut(text, places)]

    assert "".join(shown) + filtered.end() == put_back(text, values)


@given(texts)
def test_what_was_removed_can_be_put_back(text):
    """Law: removing and putting back changes nothing, if the text has no marks of its own."""
    marks = Marks(Detectors(KINDS, {}, secrets=True), taken=["[EMAIL_1]"])

    assert put_back(marks.remove(text), marks.values) == text


@pytest.mark.parametrize(
    "unit",
    [
        "eyJ",
        "bearer ",
        "a",
        "1 ",
        "1",
        "a@",
        "a.",
        "+",
        "[A",
        "DE89 ",
        "4111 ",
        "sk-",
        "以",
        "\n",
        "password=",
        "-----BEGIN PRIVATE KEY-----",
        "-----END ",
        "a at b dot ",
        "x://a:b",
        "::",
        "1:",
    ],
)
def test_the_work_grows_in_proportion_to_the_text(unit):
    """Also in a stream, whatever repeats in it."""
    detectors = Detectors(KINDS, {}, secrets=True)

    def work(size):
        filtered, text = RemovingFilter(detectors, Marks(detectors)), unit * (size // len(unit))
        for at in range(0, len(text), 5):
            filtered.feed(text[at : at + 5])
        filtered.end()

    assert seconds(work, 16_000, times=3) < 12 * seconds(work, 4_000)


@tool
def send(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


@both
def test_tools_get_the_real_values(ask):
    """The next request is redacted again, with the same marks."""
    calls = iter(
        [
            (ToolCall(id="1", name="send", arguments={"to": "[EMAIL_1]"}),),
            (Text(text="Sent to [EMAIL_1]."),),
        ]
    )

    class Scripted(Adapter):
        def _answer(self, request):
            self.parts = next(calls)
            return super()._answer(request)

    adapter = Scripted(Text(text=""))
    client = client_of(adapter, "email", restore=True)
    if ask is whole:
        result = asyncio.run(generate("here:m", f"Write to {MAIL}", tools=[send], client=client))
    else:
        run = sync.stream("here:m", f"Write to {MAIL}", tools=[send], client=client)
        list(run)
        result = run.result()

    assert result.text == f"Sent to {MAIL}."
    assert result.steps[0].tool_results[0].content == f"sent to {MAIL}"
    assert all(MAIL not in repr(sent.messages) for sent in adapter.sent)


@pytest.mark.parametrize("settings", [{"answers": True}, {"restore": True}])
def test_an_answer_that_begins_again_is_redacted_from_its_beginning(settings):
    """What was held back of the first one is void."""

    class Falling(Adapter):
        async def stream(self, request):
            count = len(self.sent)
            async for event in super().stream(request):
                if count == 0 and type(event) is TextEnd:
                    raise ServerError("down", provider="here")
                yield event

    adapter = Falling(Text(text="some words and more words [EMAIL_1] ada@"))
    layers = [Redact("email", **settings), Fallback("here:b", midstream="restart-marked")]
    client = Client({"here": adapter}, middleware=layers)

    async def main():
        request = ask_for(Message.user(MAIL))
        return [event async for event in client.stream(request)]

    events = asyncio.run(main())
    expected = MAIL if "restore" in settings else "[EMAIL_1]"

    assert any(type(event) is StreamRestart for event in events)
    assert events[-1].response.text == f"some words and more words {expected} ada@"


@both
def test_large_requests_are_redacted(ask):
    """In a thread; other calls go on."""
    adapter = Adapter(Text(text="[EMAIL_1]"))
    client = client_of(adapter, "email", restore=True)
    request = ask_for(Message.user("some words " * 300_000 + MAIL))
    response = asyncio.run(ask(client, request))

    assert adapter.sent[0].messages[0].text.endswith("words [EMAIL_1]")
    assert response.text == MAIL


def test_a_transcript_that_is_streamed_is_redacted():
    """In its pieces and in its result, as a whole one is."""
    model, wave = "gemini:gemini-2.5-flash", Audio(data=b"RIFF....WAVE", media_type="audio/wav")
    spoken = f"Write to {MAIL} and not to {SK} please."

    async def work():
        layers = [Redact("email", answers=True)]
        async with Client(adapters(peer.server.url), middleware=layers) as client:
            whole = await transcribe(model, wave, client=client)
            events = stream_transcription(model, wave, client=client)
            return whole.text, "".join([each.text async for each in events]), events.result().text

    with simulated(text(spoken) + pieces(3)) as peer:
        texts = asyncio.run(work())

    assert set(texts) == {"Write to [EMAIL_1] and not to [SECRET_1] please."}


def test_operations_are_redacted():
    """A guard sees them; the result is restored."""
    adapter = Adapter()

    async def main():
        client = client_of(adapter, "email", restore=True)
        result = await client.perform("here", "embed", {"input": [f"I am {MAIL}"], "n": 1})
        await client.perform("here", "count_tokens", ask_for(Message.user(MAIL)))
        return result

    assert asyncio.run(main()) == {"echo": {"input": [f"I am {MAIL}"], "n": 1}}
    assert adapter.sent[0] == {"input": ["I am [EMAIL_1]"], "n": 1}
    assert adapter.sent[1].messages[0].text == "[EMAIL_1]"


@both
def test_own_patterns_and_functions(ask):
    """By name; places that overlap are removed together."""
    adapter = Adapter()

    def names(text):
        return [(match.start(), match.end()) for match in re.finditer("Ada|Ada L", text)]

    client = client_of(adapter, "email", patterns={"STAFF": r"E-\d+", "NAME": names})
    asyncio.run(ask(client, ask_for(Message.user("Ada has E-12, Ada@example.com, E-12, E-13"))))

    assert adapter.sent[0].messages[0].text == (
        "[NAME_1] has [STAFF_1], [EMAIL_1], [STAFF_1], [STAFF_2]"
    )


@pytest.mark.parametrize(
    ("kinds", "patterns"), [(("mail",), {}), ((), {"x": "a"}), ((), {"X": "("})]
)
def test_wrong_settings_are_told(kinds, patterns):
    """When the middleware is made."""
    with pytest.raises(ConfigurationError, match="Redact"):
        Redact(*kinds, patterns=patterns)


def test_a_value_nested_too_deeply_is_refused():
    """With an error of the library; nothing is sent."""
    value = []
    for _ in range(100_000):
        value = [value]
    adapter = Adapter()

    with pytest.raises(ConfigurationError, match="deeply"):
        asyncio.run(client_of(adapter).perform("here", "embed", value))
    assert adapter.sent == []
    while value:  # else its deletion is recursive
        value = value[0]


def test_a_call_in_a_stream_is_restored_in_its_deltas():
    """Argument text stays JSON."""
    adapter = Adapter(ToolCall(id="1", name="a", arguments='{"to": "[EMAIL_1]"}'), size=2)
    client = client_of(adapter, "email", restore=True)

    async def main():
        request = ask_for(Message.user(MAIL))
        return [event async for event in client.stream(request) if type(event) is ToolCallDelta]

    assert "".join(event.delta for event in asyncio.run(main())) == f'{{"to": "{MAIL}"}}'


@pytest.mark.parametrize("way", [whole, streamed])
def test_what_else_a_restored_part_has_stays(way):
    """Its annotations, in which marks are replaced, too; but not where something was removed."""
    noted = {"openai_chat": {"annotations": [{"quote": "[EMAIL_1]", "at": 3}], "signature": "xyz"}}
    adapter = Adapter(Text(text="Write to [EMAIL_1].", extra=noted))
    request = Request(model="here:m", messages="I am ann@example.com.")

    restored = asyncio.run(way(client_of(adapter, "email", restore=True), request))

    assert restored.text == "Write to ann@example.com."
    (part,) = restored.message.content
    assert part.extra["openai_chat"] == {
        "annotations": [{"quote": "ann@example.com", "at": 3}],
        "signature": "xyz",
    }
    adapter.parts = (Text(text="Write to bob@example.com.", extra=noted),)
    removed = asyncio.run(way(client_of(adapter, "email", answers=True), request))
    assert removed.message.content[0].extra == {}
