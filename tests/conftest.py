"""Settings for every test."""

import os

import pytest
from hypothesis import settings

from interlingua.local import LocalServer, find_model
from interlingua.spec.errors import ConfigurationError, NetworkError

# A slow machine is no failure. Where a run decides over a change, it is the same run each time.
settings.register_profile("interlingua", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("interlingua")


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
def url(gguf):
    """A running server."""
    with LocalServer(gguf, context=2048, slots=2, threads=1) as server:
        yield server.start()


@pytest.fixture(scope="session")
def local(gguf):
    """The same as a server that an adapter starts."""
    server = LocalServer(gguf, context=2048, slots=2, threads=1)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def able_url(gguf):
    """A running server that also embeds and calls tools."""
    able = LocalServer(gguf, context=2048, threads=1, template=TOOLS, embeddings=True)
    with able as server:
        yield server.start()
