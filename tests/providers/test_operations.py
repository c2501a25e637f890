"""Operations of an adapter: lists of models, counts, and operations of one's own."""

import asyncio
import threading
from contextlib import aclosing

import pytest
from msgspec.structs import replace

from interlingua import dialects
from interlingua.providers.adapter import AnthropicAdapter, HttpAdapter
from interlingua.providers.operations import find_operation, offers, perform_script
from interlingua.providers.provider import Provider
from interlingua.providers.rows import ROWS
from interlingua.simulator import text
from interlingua.spec.content import Image
from interlingua.spec.contracts import NEUTRAL_PROFILE, FormPart, WireCall
from interlingua.spec.errors import (
    AbortError,
    AuthenticationError,
    ConfigurationError,
    DecodeError,
    NotFoundError,
    RateLimitError,
    ServerError,
    StreamError,
    UnsupportedError,
)
from interlingua.spec.messages import Message
from interlingua.spec.operations import Operation, OperationInput, OperationReply, ServedModel
from interlingua.spec.request import Request
from interlingua.transport.canned import CannedReply, CannedTransport
from interlingua.wire.json_text import dumps
from support.forms import Streamed, read_form
from support.simulated import run, settled, simulated

OPENAI = {"object": "list", "data": [{"id": "gpt-5", "object": "model", "owned_by": "openai"}]}
ANTHROPIC = {
    "data": [
        {
            "id": "claude-haiku-4-5",
            "display_name": "Claude Haiku 4.5",
            "max_input_tokens": 200000,
            "max_tokens": 64000,
        }
    ],
    "has_more": True,
    "last_id": "claude-haiku-4-5",
}
GEMINI = {
    "models": [
        {
            "name": "models/gemini-3-flash",
            "displayName": "Gemini 3 Flash",
            "inputTokenLimit": 1048576,
            "outputTokenLimit": 65536,
        }
    ],
    "nextPageToken": "a/b",
}
WITHOUT_LISTS = {"bedrock_converse": "models are listed by another service of AWS, `bedrock`"}
WITH_LISTS = [name for name in dialects.names() if name not in WITHOUT_LISTS]


def operation(dialect, name):
    return find_operation(name, dialects.get(dialect), Provider(name="a", dialect=dialect))


def read_list(dialect, body):
    return operation(dialect, "list_models").decode(200, {}, dumps(body))


def sent_for(provider, name, value=None, reply=b'{"input_tokens": 9}', **settings):
    """What an adapter sends for an operation."""
    canned = CannedTransport(lambda _: CannedReply(body=reply))
    adapter = HttpAdapter(provider, "k", transport=canned, **settings)
    asyncio.run(adapter.perform(name, value))
    return canned.requests


# Lists of models.


def test_each_shape_is_read():
    """The id as a request names it; the rest where it is told."""
    (gpt,) = read_list("openai_responses", OPENAI)
    (claude,) = read_list("anthropic_messages", ANTHROPIC)
    (gemini,) = read_list("gemini_generate", GEMINI)

    assert (gpt.id, gpt.context_window) == ("gpt-5", None)
    assert (claude.name, claude.context_window, claude.max_output_tokens) == (
        "Claude Haiku 4.5",
        200000,
        64000,
    )
    assert (gemini.id, gemini.name) == ("gemini-3-flash", "Gemini 3 Flash")
    assert (gemini.context_window, gemini.max_output_tokens) == (1048576, 65536)
    assert gemini.raw == GEMINI["models"][0]


@pytest.mark.parametrize("dialect", WITH_LISTS)
@pytest.mark.parametrize(
    "body", [None, [], {}, "x", {"data": None}, {"data": [1, None]}, [{"x": 1}], {"models": 3}]
)
def test_odd_lists_are_empty(dialect, body):
    """What cannot be read is not there, and has no next page."""
    assert read_list(dialect, body) == []
    next_page = operation(dialect, "list_models").next_page
    assert next_page is None or next_page(WireCall(), {}, dumps(body)) is None


@pytest.mark.parametrize("dialect", WITHOUT_LISTS)
@pytest.mark.parametrize("name", ["list_models", "retrieve_model"])
def test_what_another_service_has_is_refused(dialect, name):
    """An operation that a dialect does not have is an error with the providers that have it."""
    with pytest.raises(UnsupportedError, match=f"has no operation '{name}'.*: openai, anthropic"):
        operation(dialect, name)


def test_a_bare_array_is_a_list():
    """Together sends one."""
    row = {"id": "m", "context_length": 8192}
    assert read_list("openai_chat", [row]) == [ServedModel(id="m", context_window=8192, raw=row)]


def test_pages_are_followed_until_one_repeats():
    """A server may report for ever that there are more."""
    first, second = sent_for("anthropic", "list_models", reply=dumps(ANTHROPIC))
    assert first.url.endswith("/v1/models")
    assert second.url.endswith("/v1/models?after_id=claude-haiku-4-5")

    first, second = sent_for("gemini", "list_models", reply=dumps(GEMINI))
    assert second.url.endswith("/v1beta/models?pageToken=a%2Fb")

    canned = CannedTransport(lambda _: CannedReply(body=dumps(ANTHROPIC)))
    adapter = HttpAdapter("anthropic", "k", name="mine", transport=canned)
    (model,) = asyncio.run(adapter.list_models())
    assert (model.id, model.provider) == ("claude-haiku-4-5", "mine")


LISTING = [
    (row, dialect)
    for row in ROWS
    if offers(row, "list_models") is not False and "list_models" not in row.operation_paths
    for dialect in (row.dialect, *row.other_dialects)
]


@pytest.mark.parametrize(
    ("row", "dialect"), LISTING, ids=[f"{row.name}-{dialect}" for row, dialect in LISTING]
)
@pytest.mark.parametrize("base", ["https://a.example", "https://a.example/v1"])
def test_lists_are_where_calls_are(row, dialect, base):
    """Under one version, whether the base URL names it or not, in every dialect of the row."""
    settings = {"base_url": base, "dialect": dialect}
    (sent,) = sent_for(row, "list_models", reply=dumps(OPENAI), **settings)
    call = HttpAdapter(row, "k", **settings).dry_run(Request(model="m", messages="hi"))

    folder = sent.url.rpartition("/models")[0]
    assert (sent.method, sent.body) == ("GET", b"")
    assert call.url.startswith(f"{folder}/")
    assert call.url.removeprefix(folder).count("/v1") == 0


@pytest.mark.parametrize("base", ["https://api.perplexity.ai", "https://a.example/v1"])
def test_the_list_of_perplexity_has_a_version(base):
    """Its calls have none; the names in the list are as the host has them, without a date."""
    rows = [
        {"id": "perplexity/sonar", "object": "model", "created": 0, "owned_by": "perplexity"},
        {"id": "openai/gpt-5.5", "object": "model", "created": 0, "owned_by": "openai"},
    ]
    canned = CannedTransport([CannedReply(body=dumps({"object": "list", "data": rows}))])
    adapter = HttpAdapter("perplexity", "k", transport=canned, base_url=base)

    sonar, other = asyncio.run(adapter.list_models())

    (sent,) = canned.requests
    assert sent.url == f"{base.removesuffix('/v1')}/v1/models"
    assert sent.headers["authorization"] == "Bearer k"
    assert (sonar.id, sonar.owner, sonar.provider) == (
        "perplexity/sonar",
        "perplexity",
        "perplexity",
    )
    assert (other.id, other.created_at, other.context_window) == ("openai/gpt-5.5", None, None)


# One model.


@pytest.mark.parametrize(
    ("provider", "settings", "path"),
    [
        ("openai", {}, "api.openai.com/v1/models/{}"),
        ("openai", {"dialect": "openai_chat"}, "api.openai.com/v1/models/{}"),
        ("anthropic", {}, "api.anthropic.com/v1/models/{}"),
        ("anthropic", {"dialect": "openai_chat"}, "api.anthropic.com/v1/models/{}"),
        ("gemini", {}, "generativelanguage.googleapis.com/v1beta/models/{}"),
        (
            *("gemini", {"dialect": "openai_chat"}),
            "generativelanguage.googleapis.com/v1beta/openai/models/{}",
        ),
        ("groq", {}, "api.groq.com/openai/v1/models/{}"),
        ("xai", {}, "api.x.ai/v1/models/{}"),
        ("azure", {"base_url": "https://a.example"}, "a.example/openai/v1/models/{}"),
        (
            *("azure", {"base_url": "https://a.example", "api_version": "v"}),
            "a.example/openai/models/{}?api-version=v",
        ),
    ],
)
@pytest.mark.parametrize(
    ("model", "written"),
    [("m-1.5", "m-1.5"), ("maker/m", "maker%2Fm"), ("a ü?#", "a%20%C3%BC%3F%23")],
)
def test_where_one_model_is(provider, settings, path, model, written):
    """Below the list, under its name as one segment of the path."""
    value = OperationInput(model=model)
    reply = dumps({"id": model, "name": model})
    (sent,) = sent_for(provider, "retrieve_model", value, reply=reply, **settings)

    assert (sent.method, sent.url) == ("GET", f"https://{path.format(written)}")
    assert sent.body == b""


def test_one_model_of_anthropic_and_gemini():
    """Anthropic's calls name the version; Gemini's names may have the prefix of its lists."""
    (sent,) = sent_for(
        "anthropic", "retrieve_model", OperationInput(model="m"), reply=dumps(ANTHROPIC["data"][0])
    )
    assert sent.headers["anthropic-version"]

    body = GEMINI["models"][0]
    (sent,) = sent_for(
        "gemini", "retrieve_model", OperationInput(model="models/gemini-3-flash"), reply=dumps(body)
    )
    assert sent.url.endswith("/v1beta/models/gemini-3-flash")
    found = operation("gemini_generate", "retrieve_model").decode(200, {}, dumps(body))
    assert found == read_list("gemini_generate", GEMINI)[0]


@pytest.mark.parametrize("dialect", WITH_LISTS)
@pytest.mark.parametrize("body", [None, [], {}, "x", {"data": [{"id": "m"}]}, {"id": 3}])
def test_a_reply_that_describes_no_model(dialect, body):
    """It is an error, not a model without a name."""
    with pytest.raises(DecodeError, match="describes no model"):
        operation(dialect, "retrieve_model").decode(200, {}, dumps(body))


@pytest.mark.parametrize("model", ["", ".", ".."])
def test_a_name_that_is_no_path(model):
    """Nothing is sent for a name that would be another path."""
    with pytest.raises(ConfigurationError, match="cannot be the name of a model"):
        sent_for("openai", "retrieve_model", OperationInput(model=model))


def test_what_a_row_and_a_caller_say_of_an_operation():
    """The row may have another path; the caller's headers replace the dialect's."""
    row = Provider(
        name="mine",
        dialect="openai_chat",
        base_url="https://a.example",
        operation_paths={"list_models": "/list"},
    )
    (sent,) = sent_for(row, "list_models", reply=dumps(OPENAI))
    assert sent.url == "https://a.example/list"

    version = dialects.get("anthropic_messages").encode_request(Request(model="m")).headers
    for given, expected in (({}, version["anthropic-version"]), ({"Anthropic-Version": "2"}, "2")):
        (sent,) = sent_for("anthropic", "list_models", reply=b"{}", default_headers=given)
        assert sent.headers["anthropic-version"] == expected
        assert sent.headers["x-api-key"] == "k"


# Counts.


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_the_provider_counts(provider):
    """Over the wire; a longer request has more, and settings that do not count are not sent."""

    async def work(client):
        short = await client.count_tokens(peer.ask(provider, "hi", temperature=0.5, max_tokens=9))
        long = await client.count_tokens(peer.ask(provider, "hi there, how are you? " * 20))
        return short, long

    with simulated(text("hi")) as peer:
        short, long = run(peer, work)

    assert 0 < short < long
    assert "temperature" not in str(peer.app.script.received[0].call.body)


def test_chat_has_no_counter():
    """Nothing is sent, and the other way is named."""
    with simulated(text("hi")) as peer:
        with pytest.raises(UnsupportedError, match="estimate_input_tokens"):
            run(peer, lambda client: client.count_tokens(peer.ask("openai_compatible")))
        assert peer.app.script.received == ()


def test_another_dialect_of_the_row_has_it():
    """The error says which, and what else can be done."""
    adapter = HttpAdapter("openai", "k", dialect="openai_chat", transport=CannedTransport([]))
    request = Request(model="m", messages="hi")
    words = r"in this dialect\. Make the adapter with dialect='openai_responses'\. Use estimate_in"
    with pytest.raises(UnsupportedError, match=words):
        asyncio.run(adapter.perform("count_tokens", request))


def test_geminis_counter_takes_a_whole_request():
    """So that instructions and tools count too."""
    call = operation("gemini_generate", "count_tokens").encode(
        Request(model="m", messages="hi"), NEUTRAL_PROFILE
    )

    assert call.path == "/v1beta/models/m:countTokens"
    assert call.body == {
        "generateContentRequest": {
            "model": "models/m",
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        }
    }


def test_options_that_count_are_kept():
    """Those of the adapter and of the request; what the counter refuses is not sent."""
    request = Request(
        model="m",
        messages="hi",
        provider_options={"anthropic": {"betas": ["b"], "service_tier": "auto"}},
    )
    options = {"system": "Be brief.", "metadata": {"user_id": "u"}}
    (sent,) = sent_for("anthropic", "count_tokens", request, options=options)

    assert sent.headers["anthropic-beta"] == "b"
    assert b'"system":"Be brief."' in sent.body
    for refused in (b"service_tier", b"metadata", b"max_tokens"):
        assert refused not in sent.body


@pytest.mark.parametrize("body", [None, [], {}, {"input_tokens": "9"}, {"input_tokens": True}])
def test_an_answer_without_a_count(body):
    """It is not taken for none."""
    with pytest.raises(DecodeError):
        operation("anthropic_messages", "count_tokens").decode(200, {}, dumps(body))


def test_files_count_too(tmp_path):
    """They are read as for a call."""
    path = tmp_path / "a.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n")
    request = Request(model="m", messages=[Message.user([Image(path=path)])])
    (sent,) = sent_for("anthropic", "count_tokens", request)

    assert b"iVBORw0KGgo=" in sent.body
    assert str(path).encode() not in sent.body


# Errors.


@pytest.mark.parametrize("name", ["list_models", "count_tokens"])
def test_errors_say_whose_they_are(name):
    """With our id and theirs; one told with a 200 is one too."""
    value = Request(model="m", messages="hi", request_id="r") if name == "count_tokens" else None
    refused = CannedReply(status=401, headers={"request-id": "req_1"}, body=b"{}")
    told = CannedReply(body=b'{"error": {"code": 429, "message": "slow"}}')
    for reply, kind in ((refused, AuthenticationError), (told, RateLimitError)):
        adapter = AnthropicAdapter("k", name="mine", transport=CannedTransport([reply]))
        with pytest.raises(kind) as caught:
            asyncio.run(adapter.perform(name, value, request_id="r"))
        error = caught.value
        assert (error.provider, error.request_id) == ("mine", "r")
        assert error.provider_request_id == ("req_1" if reply is refused else None)


def test_no_key_and_no_operation():
    """Both are said before anything is sent."""
    canned = CannedTransport([])
    with pytest.raises(ConfigurationError, match="No API key for openai"):
        asyncio.run(HttpAdapter("openai", transport=canned).perform("list_models"))
    with pytest.raises(UnsupportedError, match=r"'sing'. Its operations are: list_models, retrie"):
        asyncio.run(HttpAdapter("openai", "k", transport=canned).perform("sing"))
    assert canned.requests == []


# Operations of one's own.


def upload(value, _profile):
    file = FormPart(name="file", content=value, file_name="a.jsonl")
    return WireCall(path="/v1/files", form=(FormPart(name="purpose", content="batch"), file))


UPLOAD = Operation(
    name="upload", encode=upload, decode=lambda status, _headers, body: (status, body)
)
DOWNLOAD = Operation(
    name="download",
    encode=lambda value, _profile: WireCall(
        method="GET", path=f"/v1/files/{value}", query={"a": "b c&d"}
    ),
    decode=lambda _status, _headers, body: body,
)
PUT = Operation(
    name="put",
    encode=lambda value, _profile: WireCall(
        method="PUT", path="/v1/raw", content=value, headers={"content-type": "text/csv"}
    ),
    decode=lambda *_: None,
)


def test_forms_queries_and_raw_bodies():
    """Each is sent as the call says."""
    for content in (b"{}\n", Streamed(b"{}\n")):
        (sent,) = sent_for("openai", UPLOAD, content)
        assert [
            (part[0], part[3]) for part in read_form(sent.headers["content-type"], sent.body)
        ] == [
            ("purpose", b"batch"),
            ("file", b"{}\n"),
        ]
        assert sent.headers["authorization"] == "Bearer k"
    (sent,) = sent_for("openai", DOWNLOAD, "f1", reply=b"\xff\x00")
    assert (sent.method, sent.body) == ("GET", b"")
    assert sent.url.endswith("/v1/files/f1?a=b%20c%26d")
    (sent,) = sent_for("openai", PUT, b"a,b")
    assert (sent.method, sent.body, sent.headers["content-type"]) == ("PUT", b"a,b", "text/csv")


class Page:
    """Decodes the items of a page `a,b;next`."""

    def __init__(self):
        self.body = b""

    def feed(self, chunk):
        self.body += chunk
        return []

    def finish(self):
        items, _, _ = self.body.decode().partition(";")
        return items.split(",")

    def next_page(self, call):
        _, _, token = self.body.decode().partition(";")
        return replace(call, query={"token": token}) if token else None


PAGES = Operation(
    name="pages",
    encode=lambda _value, _profile: WireCall(method="GET", path="/v1/pages"),
    stream_decoder=lambda _value: Page(),
)


def read_pages(*bodies, most=None):
    """The items of the pages, and the URLs that were asked for."""
    canned = CannedTransport([CannedReply(body=body) for body in bodies])
    adapter = HttpAdapter("openai", "k", transport=canned)
    items = []

    async def work():
        async with aclosing(await adapter.perform(PAGES)) as found:
            async for item in found:
                items.append(item)
                if len(items) == most:
                    break

    try:
        asyncio.run(work())
    finally:
        urls = [each.url.rpartition("/")[2] for each in canned.requests]
    return items, urls


def test_pages_of_a_streamed_operation():
    """Each has a decoder of its own; the next is asked for when one was read to its end."""
    assert read_pages(b"a,b;2", b"c;3", b"d") == (
        ["a", "b", "c", "d"],
        ["pages", "pages?token=2", "pages?token=3"],
    )
    assert read_pages(b"a,b;2", most=2) == (["a", "b"], ["pages"])
    assert read_pages(b"a;2", b"b;2") == (["a", "b"], ["pages", "pages?token=2"])


def test_a_body_that_speaks_of_errors_is_none():
    """A file may hold the word; only JSON of this shape is an error."""
    canned = CannedTransport(
        lambda _: CannedReply(
            headers={"content-type": "text/plain"}, body=b'{"error": {"code": 500}}'
        )
    )
    adapter = HttpAdapter("openai", "k", transport=canned)

    assert asyncio.run(adapter.perform(DOWNLOAD, "f")) == b'{"error": {"code": 500}}'


def test_a_body_that_was_used_up_is_not_sent_again():
    """The error says that it is not to be retried; of a body that can be read again it may be."""

    async def generate():
        yield b"x"

    def failing():
        return HttpAdapter("openai", "k", transport=CannedTransport([CannedReply(status=500)]))

    for make, retryable in ((generate, False), (lambda: Streamed(b"x"), True)):
        with pytest.raises(ServerError) as caught:
            asyncio.run(failing().perform(PUT, make()))
        assert caught.value.retryable is retryable


def test_an_operation_can_be_cancelled():
    """By its id, while its reply is awaited; the id is free again then."""
    canned = CannedTransport(lambda _: CannedReply(body=b"x", after=30))
    adapter = HttpAdapter("openai", "k", transport=canned)

    async def work():
        task = asyncio.ensure_future(adapter.perform(DOWNLOAD, "f", request_id="r"))
        await settled(lambda: canned.requests)
        assert await adapter.cancel("r")
        with pytest.raises(AbortError):
            await task
        return await adapter.cancel("r")

    assert asyncio.run(work()) is False


def test_pages_of_an_operation_of_ones_own():
    """They are joined; what the first call has besides its page stays."""
    pages = Operation(
        name="pages",
        encode=lambda *_: WireCall(method="GET", path="/v1/p", query={"limit": "2"}),
        decode=lambda _status, _headers, body: list(body.decode()),
        next_page=lambda call, headers, _body: (
            replace(call, query={**call.query, "page": headers["next"]})
            if headers["next"]
            else None
        ),
    )
    replies = [
        CannedReply(body=b"ab", headers={"next": "2"}),
        CannedReply(body=b"c", headers={"next": ""}),
    ]
    canned = CannedTransport(replies)

    assert asyncio.run(HttpAdapter("openai", "k", transport=canned).perform(pages)) == [
        "a",
        "b",
        "c",
    ]
    assert canned.requests[1].url.endswith("/v1/p?limit=2&page=2")


class Lines:
    """Each line is an item; a stream ends with a full stop."""

    def __init__(self):
        self.text = b""

    def feed(self, chunk):
        *lines, self.text = (self.text + chunk).split(b"\n")
        return lines

    def finish(self):
        if self.text != b".":
            raise StreamError("cut short")
        return []


LINES = Operation(
    name="lines",
    encode=lambda value, _profile: WireCall(path="/v1/lines", body={"of": value}, stream=True),
    decode=lambda *_: None,
    stream_decoder=lambda _value: Lines(),
)


def stream_lines(*replies, **settings):
    canned = CannedTransport(replies)
    return canned, HttpAdapter("openai", "k", transport=canned, **settings)


def test_a_streamed_reply_is_read_as_it_comes():
    """However it is cut; the connection is free when it ends, and so is the id."""
    canned, adapter = stream_lines(CannedReply(body=(b"a", b"b\nc", b"\n", b".")))

    async def work():
        items = await adapter.perform(LINES, "x", request_id="r")
        return [item async for item in items], await adapter.cancel("r")

    assert asyncio.run(work()) == ([b"ab", b"c"], False)
    assert canned.requests[0].headers["accept"] == "text/event-stream"


def test_failures_of_a_streamed_reply():
    """Before it begins, `perform` raises; after, the iterator does."""
    canned, adapter = stream_lines(
        CannedReply(status=429, body=b"{}"), CannedReply(body=(b"a\nb",)), CannedReply(body=b".")
    )

    async def work():
        with pytest.raises(RateLimitError) as refused:
            await adapter.perform(LINES, "x", request_id="r")
        assert refused.value.request_id == "r"
        items = await adapter.perform(LINES, "x", request_id="r")
        assert await anext(items) == b"a"
        with pytest.raises(StreamError) as cut:
            await anext(items)
        assert cut.value.request_id == "r"
        await adapter.perform(LINES, "x", request_id="r")

    asyncio.run(work())
    assert len(canned.requests) == 3


def test_a_streamed_reply_that_is_left_or_cancelled():
    """It gives its id back."""
    _, adapter = stream_lines(*[CannedReply(body=(b"a\n", 30.0, b"."))] * 2)

    async def work():
        items = await adapter.perform(LINES, "x", request_id="r")
        assert await anext(items) == b"a"
        await items.aclose()
        items = await adapter.perform(LINES, "x", request_id="r")
        assert await anext(items) == b"a"
        waiting = asyncio.ensure_future(anext(items))
        await asyncio.sleep(0)
        assert await adapter.cancel("r")
        with pytest.raises(AbortError):
            await waiting
        return await adapter.cancel("r")

    assert asyncio.run(work()) is False


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_large_replies_of_a_script_are_decoded_in_a_thread(size):
    """The event loop is not blocked while a script decodes; its result and errors are the same."""
    threads = []

    def script():
        threads.append(threading.current_thread())
        reply = yield WireCall(path="/one")
        threads.append(threading.current_thread())
        try:
            yield WireCall(path="/two")
        except NotFoundError as error:
            return len(reply.body), error.message

    async def send(call):
        if call.path == "/two":
            raise NotFoundError("no second")
        return OperationReply(200, {}, bytes(size))

    outcome = asyncio.run(perform_script(script(), send, is_large=size > 10))
    assert outcome == (size, "no second")
    is_main = [thread is threading.main_thread() for thread in threads]
    assert is_main == [size == 10] * 2


def test_a_script_that_runs_in_a_thread_can_be_cancelled():
    """The task ends at once; the script ends in its thread."""
    began, go_on = threading.Event(), threading.Event()

    def script():
        began.set()
        go_on.wait(10)
        yield WireCall(path="/one")

    async def work():
        task = asyncio.create_task(perform_script(script(), None, is_large=True))
        await asyncio.to_thread(began.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()

    asyncio.run(work())
