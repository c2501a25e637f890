"""Lists of models, and what is known about one, in the shape of each vendor."""

import json
import urllib.request
from importlib.util import find_spec

import pytest

from interlingua.gateway.config import gateway_from_env
from interlingua.gateway.server import make_application
from interlingua.serving.application import read_request
from interlingua.serving.client_application import Caller
from support.gateways import gateway
from support.simulated import adapters

ROUTES = {
    "fast": "anthropic:claude-haiku-4-5",
    "team/best:one": "gemini:gemini-2.5-flash",
    "secret": "openai:gpt-5.2",
    "claude-*": "openai:gpt-5.2",
}
LIST = {"type": "http", "method": "GET", "path": "/v1/models", "headers": []}
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def front():
    with gateway(adapters(NOWHERE), ROUTES, models=["fast", "team/*"], direct=False) as front:
        yield front


@pytest.fixture(scope="module")
def direct():
    with gateway(adapters(NOWHERE)) as front:
        yield front


def test_openai_lists_the_names_that_the_key_may_use(front):
    """The public names of routes that are no patterns, with what the catalog knows."""
    models = {model.id: model for model in front.openai().models.list()}
    one = front.openai().models.retrieve("team/best:one")

    assert list(models) == ["fast", "team/best:one"]
    assert models["fast"].context_length == 200_000
    assert (one.id, one.object) == ("team/best:one", "model")


def test_anthropic_lists_them_in_pages(front):
    """`limit=1000` is one page; with a smaller one the client goes on by itself."""
    client = front.anthropic()
    whole, paged = client.models.list(limit=1000), client.models.list(limit=1)

    assert [model.id for model in whole.data] == ["fast", "team/best:one"]
    assert whole.has_more is False
    assert paged.has_more is True
    assert [model.id for model in paged] == ["fast", "team/best:one"]
    assert client.models.retrieve("fast").max_input_tokens == 200_000


def test_gemini_lists_them_in_pages(front):
    """`pageSize`, and names with a colon and a slash."""
    client = front.gemini()
    paged = client.models.list(config={"page_size": 1})

    assert [model.name for model in paged] == ["models/fast", "models/team/best:one"]
    assert client.models.get(model="team/best:one").input_token_limit == 1_048_576


@pytest.mark.parametrize("name", ["secret", "nothing", "claude-x", "openai:gpt-5.2"])
def test_another_model_does_not_exist(front, name):
    """Whether it has a route or not, in the form of each vendor."""
    for client in (front.openai(), front.anthropic()):
        with pytest.raises(Exception, match="does not exist, or this key may not use it") as caught:
            client.models.retrieve(name)
        assert caught.value.status_code == 404
    google = front.gemini()
    with pytest.raises(Exception, match="does not exist, or this key may not use it") as caught:
        google.models.get(model=name)
    assert caught.value.code == 404


def test_without_routes_the_catalog_is_listed(direct):
    """The models of each provider, of the kinds that requests of the dialect can ask."""
    chat = {model.id for model in direct.openai().models.list()}
    claude = {model.id for model in direct.anthropic().models.list(limit=1000)}
    google = direct.gemini()
    gemini = {model.name for model in google.models.list(config={"page_size": 1000})}

    assert {"openai:gpt-5.2", "anthropic:claude-haiku-4-5"} <= chat & claude
    assert "models/gemini:gemini-2.5-flash" in gemini
    assert {"openai:text-embedding-3-small", "openai:whisper-1"} <= chat
    assert not {"openai:text-embedding-3-small", "openai:whisper-1"} & claude
    assert "models/openai:text-embedding-3-small" in gemini
    assert direct.openai().models.retrieve("openai:gpt-5.2").context_length == 400_000


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="llama.cpp is not installed")
def test_the_local_model_is_listed():
    """No provider lists it, and a gateway without any key has nothing else."""
    given = gateway_from_env({})
    app = make_application(given, b"sixteen bytes or more")
    models = app._list(read_request(LIST, b""), Caller())

    assert [model.id for model in models] == ["local:smollm2"]


def head(front, path, **headers):
    request = urllib.request.Request(f"{front.url}{path}", method="HEAD", headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/messages", 200),
        ("/v1/models", 200),
        ("/v1/responses", 200),
        ("/v1beta/models/a:b:generateContent", 200),
        ("/api/hello", 404),
        ("/", 404),
    ],
)
def test_head(front, path, status):
    """Says whether a path is known, without a body, a key or a model."""
    assert head(front, path) == (status, b"")


def test_a_page_that_does_not_exist_is_refused(front):
    """In the vendor's form, with 400."""
    with pytest.raises(Exception, match="after_id") as caught:
        front.anthropic().models.list(after_id="nothing")
    assert caught.value.status_code == 400
    assert json.loads(caught.value.response.text)["type"] == "error"
