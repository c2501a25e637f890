"""Settings for every test."""

import gc
import os
import signal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua import transport
from interlingua.local import LocalServer, find_model
from interlingua.spec.errors import ConfigurationError, NetworkError
from support.run_profile import FULL, PROFILE

pytest_plugins = ["interlingua.conformance.plugin"]  # the pages of the docs use its mark

# No test may depend on what the user of this machine has configured.
os.environ["INTERLINGUA_CONFIG"] = os.devnull

# A background job of a shell ignores Ctrl-C, and programs that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A slow machine is no failure. Every fast run tries the same examples, so that whether it is green
# depends on the source alone; a full run looks for new ones.
_COMMON = settings(deadline=None, derandomize=not FULL)
settings.register_profile("fast", _COMMON, max_examples=25)
settings.register_profile("full", _COMMON, max_examples=100)
settings.load_profile(PROFILE)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """
    Keep the garbage collector away from what collection makes.

    That lives as long as the run: 1.5 million objects, which the collector would look at a dozen
    times while they are made (3 s), and whenever a test calls `gc.collect` (0.6 s). Later it runs
    rarely, which takes an eighth off the time of the tests.
    """
    # Hypothesis looks for what refers to its generator of numbers when it makes it, in the first
    # example, and the collector does not find what it keeps away from.
    given(st.none())(lambda _: None)()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(100_000, 50, 100)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """
    Put the tests of the real model first.

    `--dist worksteal` gives each worker one contiguous part of the list and steals from the end
    of a part. So one worker runs all of these tests, and one server of each kind lives per run.
    Two workers must not share a server: its answers depend on what else it works on.
    """
    items.sort(key=lambda item: "gguf" not in getattr(item, "fixturenames", ()))


@pytest.fixture(params=["HttpTransport", "HttpxTransport"])
def transport_type(request):
    """Each transport that opens sockets: what is promised of one is promised of both."""
    return getattr(transport, request.param)


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_open():
    """
    Collect what the tests of a file left, so that an unclosed socket or pipe fails that file.

    Otherwise the collector would find it later, and its warning would fail an innocent test. The
    oldest objects are left alone: they are from before the file, and looking at them takes long.
    """
    yield
    gc.collect(1)


@pytest.fixture
def no_backoff(monkeypatch):
    """Retries without a wait: the count is what is tested, and seconds of sleep show nothing."""

    def delay(policy, error, attempt, *_):
        return 0.0 if attempt < policy.max_retries and policy.is_retryable(error) else None

    monkeypatch.setattr("interlingua.client.retry_policy.RetryPolicy.delay", delay)


# The real model and the real server, started once a run.

# Written so that a call is bare JSON: after a first `{` its grammar leaves no choice but a call.
TOOLS = """
{%- if tools %}{{ '<|im_start|>system\n' }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}
{{- '<|im_end|>\n' }}{% endif %}
{%- for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}
{%- if message.tool_calls %}{% for call in message.tool_calls %}
{{- '{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}{{ '}' }}
{%- endfor %}{% else %}{{ message.content }}{% endif %}{{ '<|im_end|>\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}
"""


@pytest.fixture(scope="session")
def gguf():
    """The model's file, fetched if it is not here."""
    pytest.importorskip("xllamacpp")
    try:
        return find_model()
    except (ConfigurationError, NetworkError) as error:
        pytest.skip(f"the model cannot be had: {error}")


@pytest.fixture(scope="session")
def local(gguf):
    """A server that an adapter starts."""
    server = LocalServer(gguf, context=2048, slots=2, threads=1)
    yield server
    server.stop()


@pytest.fixture
def url(local):
    """The same server, running; a test may have stopped it, so each test asks for its address."""
    return local.start()


@pytest.fixture(scope="session")
def able_url(gguf):
    """A second server, which also embeds and calls tools."""
    able = LocalServer(gguf, context=2048, threads=1, template=TOOLS, embeddings=True)
    with able as server:
        yield server.start()
