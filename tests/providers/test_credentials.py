"""Keys that a callable makes: cached, made anew by one task, and renewed after a 401."""

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from interlingua import sync
from interlingua.client.client import Client
from interlingua.providers import credentials as module
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.credentials import Credentials
from interlingua.providers.identity import identity_of
from interlingua.providers.keys import ApiKey
from interlingua.spec.errors import AuthenticationError, ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.transport.canned import CannedReply, CannedTransport
from interlingua.wire.aws_credentials import AwsCredentials
from support.simulated import settled

GOOD = (
    b'{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":'
    b'"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,'
    b'"completion_tokens":1,"total_tokens":2}}'
)
REFUSED = b'{"error":{"message":"the token planted-1 ended","code":"invalid_api_key"}}'
JSON = {"content-type": "application/json"}
ASKED = Request(model="m", messages=(Message.user("Hello"),))


class Keys:
    """Makes `planted-1`, `planted-2` and so on."""

    def __init__(self, lifetime=None, delay=0.0, fail_from=10**9):
        self.made = 0
        self.lifetime, self.delay, self.fail_from = lifetime, delay, fail_from

    async def __call__(self):
        self.made += 1
        number = self.made
        await asyncio.sleep(self.delay)
        if number >= self.fail_from:
            raise RuntimeError(f"no token after planted-{number - 1}")
        end = None if self.lifetime is None else time.time() + self.lifetime
        return ApiKey(f"planted-{number}", end)


def serving(accepted):
    """A transport whose server knows these keys."""

    def answer(request):
        key = request.headers["authorization"].removeprefix("Bearer ")
        return CannedReply(headers=JSON, body=GOOD) if key in accepted else refusal()

    return CannedTransport(answer)


def refusal():
    return CannedReply(status=401, headers=JSON, body=REFUSED)


def sent_keys(transport):
    return [request.headers["authorization"] for request in transport.requests]


def adapter_with(key, transport, row="groq"):
    return HttpAdapter(row, key, transport=transport)


@pytest.mark.parametrize(
    "source",
    [
        lambda: "planted-1",
        lambda: ("planted-1", time.time() + 60),
        lambda: ApiKey("planted-1", datetime.now(UTC) + timedelta(minutes=9)),
        lambda: ApiKey("planted-1", datetime.now(UTC).replace(tzinfo=None) + timedelta(minutes=9)),
        Keys(),
        Keys(3600),
        lambda: Keys()(),  # noqa: PLW0108 -- a plain function that returns an awaitable
    ],
)
def test_what_a_callable_may_make(source):
    """A text, or a key with its end; at once or awaited."""
    transport = serving({"planted-1"})
    adapter = adapter_with(source, transport)

    async def work():
        answers = [await adapter.complete(ASKED) for _ in range(3)]
        return [answer.text for answer in answers]

    assert asyncio.run(work()) == ["Hi"] * 3
    assert sent_keys(transport) == ["Bearer planted-1"] * 3


def test_a_blocking_callable_runs_in_a_thread():
    """The event loop is not held up."""
    threads = []

    def make():
        threads.append(threading.current_thread())
        return "planted-1"

    asyncio.run(adapter_with(make, serving({"planted-1"})).complete(ASKED))
    assert threads[0] is not threading.main_thread()


def test_many_calls_at_once_make_one_key():
    """All wait for the same task."""
    keys = Keys(3600, delay=0.02)
    adapter = adapter_with(keys, serving({"planted-1"}))

    async def work():
        await asyncio.gather(*(adapter.complete(ASKED) for _ in range(50)))

    asyncio.run(work())
    assert keys.made == 1


def test_a_key_is_made_anew_before_it_ends():
    """By one task; meanwhile calls go on with the old one."""
    keys = Keys(3600)
    held = Credentials(keys)

    async def work():
        first = await held.get()
        held._secret = first._replace(renew_at=0.0)  # as if most of its time had passed
        keys.delay = 0.02
        meanwhile = await asyncio.gather(*(held.get() for _ in range(20)))
        await settled(lambda: held._secret.value != first.value)
        return first, meanwhile, await held.get()

    first, meanwhile, later = asyncio.run(work())
    assert {secret.value for secret in meanwhile} == {first.value} == {"planted-1"}
    assert (later.value, keys.made) == ("planted-2", 2)


def test_the_margin_is_a_fifth_of_the_lifetime_and_at_most_five_minutes():
    """So short keys are not made anew at every call."""

    async def margin(lifetime):
        secret = await Credentials(Keys(lifetime)).get()
        return secret.ends_at - secret.renew_at

    assert asyncio.run(margin(10)) == pytest.approx(2, abs=0.1)
    assert asyncio.run(margin(3600)) == pytest.approx(300, abs=0.1)


def test_a_key_without_an_end_is_asked_for_again_after_minutes():
    """The callable may have another by then; the old one is used until it answers."""

    async def work():
        return await Credentials(Keys()).get()

    before = time.monotonic()
    secret = asyncio.run(work())
    assert before + 300 <= secret.renew_at <= time.monotonic() + 300
    assert secret.ends_at == float("inf")


def test_a_failed_renewal_does_not_fail_calls(caplog):
    """While the old key is valid; it is logged, without the key, and not tried at every call."""
    keys = Keys(3600, fail_from=2)
    held = Credentials(keys)

    async def work():
        held._secret = (await held.get())._replace(renew_at=0.0)
        for _ in range(5):
            await held.get()
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        return await held.get()

    assert asyncio.run(work()).value == "planted-1"
    assert keys.made == 2
    assert "the old one is used until it expires" in caplog.text
    assert "planted" not in caplog.text


def test_after_its_end_the_failure_is_raised():
    """A key that has ended is not sent."""
    held = Credentials(Keys(3600, fail_from=2))

    async def work():
        held._secret = (await held.get())._replace(renew_at=0.0, ends_at=0.0)
        await held.get()

    with pytest.raises(AuthenticationError, match="failed with RuntimeError at test_credentials"):
        asyncio.run(work())


def test_a_401_renews_the_key_once():
    """The request is sent again with another key; the caller sees only the answer."""
    keys, transport = Keys(3600), serving({"planted-2"})
    adapter = adapter_with(keys, transport)

    answer = asyncio.run(adapter.complete(ASKED))
    assert answer.text == "Hi"
    assert sent_keys(transport) == ["Bearer planted-1", "Bearer planted-2"]


def test_a_second_401_is_the_error():
    """Once only, then the provider's error, without any key in it."""
    keys, transport = Keys(3600), serving(())
    adapter = adapter_with(keys, transport)

    with pytest.raises(AuthenticationError) as caught:
        asyncio.run(adapter.complete(ASKED))
    assert len(transport.requests) == keys.made == 2
    assert caught.value.status_code == 401
    assert "planted" not in str(caught.value)
    assert "planted" not in repr(vars(caught.value))


def test_the_same_key_again_is_not_sent_again():
    """A callable that has no other key changes nothing."""
    transport = serving(())
    with pytest.raises(AuthenticationError):
        asyncio.run(adapter_with(lambda: "planted-1", transport).complete(ASKED))
    assert len(transport.requests) == 1


def test_many_refused_calls_make_one_new_key():
    """Each is refused with the old key, and all of them wait for the same new one."""
    keys, transport = Keys(3600, delay=0.01), serving({"planted-2"})
    adapter = adapter_with(keys, transport)

    async def work():
        await asyncio.gather(*(adapter.complete(ASKED) for _ in range(20)))

    asyncio.run(work())
    assert keys.made == 2
    assert len(transport.requests) == 40


def test_streams_and_operations_are_signed_too():
    """A stream that is refused begins anew with another key; so does a list of models."""
    frames = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'

    def answer(request):
        if request.headers["authorization"] != "Bearer planted-2":
            return refusal()
        if request.method == "GET":
            return CannedReply(headers=JSON, body=b'{"data":[{"id":"m"}]}')
        sse = {"content-type": "text/event-stream"}
        return CannedReply(headers=sse, body=frames + b"data: [DONE]\n\n")

    async def work(act):
        return await act(adapter_with(Keys(3600), CannedTransport(answer)))

    async def streamed(adapter):
        return [event.type async for event in adapter.stream(ASKED)]

    assert asyncio.run(work(streamed))[-1] == "finish"
    assert [model.id for model in asyncio.run(work(lambda a: a.list_models()))] == ["m"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda: 1 // 0, "failed with ZeroDivisionError at test_credentials.py"),
        (lambda: None, "made a NoneType"),
        (lambda: "", "made an empty key"),
        (lambda: "a\nb", "no header can carry"),
        (lambda: ("planted-1", time.time() - 5), "has ended already"),
        (lambda: ("planted-1", "soon"), "gave a str as the end"),
        (lambda: AwsCredentials(access_key_id="a", secret_access_key="b"), "`AwsCredentials` are"),
    ],
)
def test_a_callable_that_makes_no_key(source, message):
    """A typed error that says what it did, without the key; nothing is sent."""
    transport = serving(())
    with pytest.raises((AuthenticationError, ConfigurationError), match=message) as caught:
        asyncio.run(adapter_with(source, transport).complete(ASKED))
    assert transport.requests == []
    assert "planted" not in str(caught.value)
    assert caught.value.provider == "groq"


def test_the_text_of_an_error_in_the_callable_is_not_kept():
    """It may quote a key that nobody knows yet."""

    def make():
        raise ValueError("bad token planted-secret")

    with pytest.raises(AuthenticationError) as caught:
        asyncio.run(adapter_with(make, serving(())).complete(ASKED))
    error = caught.value
    seen = [error, error.__cause__, error.__context__]
    assert not any("planted-secret" in str(each) for each in seen)


def test_an_error_of_the_library_passes():
    """A callable may say itself what is wrong."""

    def make():
        raise ConfigurationError("log in first")

    with pytest.raises(ConfigurationError, match="log in first"):
        asyncio.run(adapter_with(make, serving(())).complete(ASKED))


def test_a_callable_that_hangs(monkeypatch):
    """It has a time limit."""
    monkeypatch.setattr(module, "_TIMEOUT", 0.02)
    with pytest.raises(AuthenticationError, match=r"made no key within 0\.02 s"):
        asyncio.run(adapter_with(Keys(delay=30), serving(())).complete(ASKED))


def test_a_cancelled_call_does_not_cancel_the_key():
    """Others wait for the same task."""
    keys = Keys(3600, delay=0.02)
    held = Credentials(keys)

    async def work():
        first, second = (asyncio.ensure_future(held.get()) for _ in range(2))
        await asyncio.sleep(0.005)
        first.cancel()
        return await second

    assert asyncio.run(work()).value == "planted-1"
    assert keys.made == 1


def test_one_adapter_in_several_loops():
    """They share the key."""
    keys = Keys(3600)
    adapter = adapter_with(keys, serving({"planted-1"}))
    for _ in range(3):
        asyncio.run(adapter.complete(ASKED))
    assert keys.made == 1


def test_a_callable_for_one_call():
    """It is cached over calls, as the same callable is passed each time."""
    keys, transport = Keys(3600), serving({"planted-1"})
    client = Client({"groq": adapter_with("plain-key", transport)})

    async def work():
        for _ in range(3):
            twin = client.with_access("groq:m", api_key=keys)
            await twin.complete(Request(model="groq:m", messages=(Message.user("Hi"),)))

    asyncio.run(work())
    assert keys.made == 1
    assert sent_keys(transport) == ["Bearer planted-1"] * 3


def test_blocking_code_takes_a_callable_too():
    """The key is made on the loop of the blocking client."""
    keys, transport = Keys(3600), serving({"planted-1"})
    with sync.Client({"groq": adapter_with("plain-key", transport)}) as blocking:
        for _ in range(2):
            result = sync.generate("groq:m", "Hi", client=blocking, api_key=keys)
    assert (result.text, keys.made) == ("Hi", 1)
    assert sent_keys(transport) == ["Bearer planted-1"] * 2


def test_another_host_gets_no_key():
    """A request to another origin passes unsigned."""
    transport = CannedTransport([CannedReply(headers=JSON, body=b"{}")])
    adapter = adapter_with(Keys(3600), transport)

    async def work():
        from interlingua.spec.contracts import HttpRequest

        async with adapter.configuration.transport.send(
            HttpRequest(url="https://elsewhere.example/x")
        ):
            pass

    asyncio.run(work())
    assert transport.requests[0].headers == {}


def test_a_plain_key_has_no_part_in_it():
    """Its adapter sends through the transport itself, with the headers made once."""
    transport = serving({"plain-key"})
    adapter = adapter_with("plain-key", transport)
    assert adapter.configuration.transport is adapter.transport is transport
    assert adapter.configuration.credentials is None


def test_azure_sends_what_a_callable_makes_as_a_bearer_token():
    """A text is its key header, a callable makes tokens of Entra."""
    for key, header in (("plain-key", "api-key"), (lambda: "plain-key", "authorization")):
        transport = CannedTransport([CannedReply(headers=JSON, body=GOOD)])
        adapter = HttpAdapter(
            "azure", key, base_url="https://r.openai.azure.com", transport=transport
        )
        asyncio.run(adapter.complete(ASKED))
        assert transport.requests[0].headers[header].endswith("plain-key")


def test_azure_takes_a_token_from_its_variable():
    """If there is no key; it is sent as a bearer token."""
    environ = {
        "AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com",
        "AZURE_OPENAI_AD_TOKEN": "t-1",
    }
    transport = CannedTransport(lambda _: CannedReply(headers=JSON, body=GOOD))
    for more, header in (({}, "authorization"), ({"AZURE_OPENAI_API_KEY": "k-1"}, "api-key")):
        client = Client.from_env({**environ, **more})
        adapter = client.adapter("azure")
        adapter.configuration.shared_transport = transport
        asyncio.run(adapter.rebind("azure").complete(ASKED))
        assert transport.requests[-1].headers[header] in ("Bearer t-1", "k-1")


@pytest.mark.parametrize("own", ["plain-key", Keys()])
def test_an_empty_key_for_one_call_is_no_key(own):
    """The adapter's own key is not sent in its place."""
    twin = adapter_with(own, serving(())).rebind("groq", api_key="")
    with pytest.raises(ConfigurationError, match="No API key"):
        asyncio.run(twin.complete(ASKED))


def test_adapters_of_one_source_are_alike_for_a_cache():
    """Those of different callables are not."""
    one, two = Keys(), Keys()
    first, same, other = (adapter_with(key, serving(())) for key in (one, one, two))
    assert identity_of(first, "m") == identity_of(same, "m") != identity_of(other, "m")
    assert identity_of(first, "m", with_key=False) == identity_of(other, "m", with_key=False)


def test_what_is_no_key():
    """An error before any call, without the value."""
    for key in (5, b"planted", ["planted"]):
        with pytest.raises(
            ConfigurationError, match="`api_key` must be a text, a callable"
        ) as caught:
            HttpAdapter("groq", key)
        assert "planted" not in str(caught.value)


def test_records_do_not_show_their_key():
    """Neither a made key nor the adapter."""
    assert "planted" not in repr(ApiKey("planted-1", 5))
    assert "planted" not in repr(adapter_with(Keys(), serving(())))
