"""The row `bedrock`: the API of each model, with each kind of key, behind a guard."""

import asyncio
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from interlingua.api.run.generate import generate, stream
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.catalog.models import find_model
from interlingua.providers.catalog.search import list_models
from interlingua.providers.identity import identity_of
from interlingua.providers.provider import Branch, Provider
from interlingua.providers.rows import find_provider
from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.spec.errors import ConfigurationError, ProviderError
from interlingua.spec.request import Request
from interlingua.transport.canned import CannedReply, CannedTransport
from interlingua.wire.aws_credentials import AwsCredentials
from support.clouds import Guard, has_header, is_signed

REGION = "eu-central-1"
KEYS = AwsCredentials(
    access_key_id="AKIDPLANTED", secret_access_key="planted-secret", session_token="planted/token+"
)
SIGNED = {
    "AWS_ACCESS_KEY_ID": KEYS.access_key_id,
    "AWS_SECRET_ACCESS_KEY": KEYS.secret_access_key,
    "AWS_SESSION_TOKEN": KEYS.session_token,
    "AWS_REGION": REGION,
}
BEARER = {"AWS_BEARER_TOKEN_BEDROCK": "planted-token", "AWS_REGION": REGION}
PLACES = {"region": REGION}
ROWS = ("bedrock", "bedrock_invoke", "bedrock_converse")
ARN = f"arn:aws:bedrock:{REGION}"
ACCOUNT_PROFILE = f"{ARN}:123456789012:application-inference-profile/abc"


class Api(NamedTuple):
    """An API of Bedrock: its dialect, its paths, and the service that a signature names."""

    dialect: str
    path: str
    stream_path: str
    service: str = "bedrock"
    host: str = "bedrock-runtime.{}.amazonaws.com"


MANTLE = ("bedrock-mantle", "bedrock-mantle.{}.api.aws")
CONVERSE = Api("bedrock_converse", "/model/{}/converse", "/model/{}/converse-stream")
INVOKE = Api(
    "anthropic_messages", "/model/{}/invoke", "/model/{}/invoke-with-response-stream"
)  # fmt: skip
MESSAGES = Api("anthropic_messages", *["/anthropic/v1/messages"] * 2, *MANTLE)
CHAT = Api("openai_chat", *["/v1/chat/completions"] * 2, *MANTLE)
RESPONSES = Api("openai_responses", *["/v1/responses"] * 2, *MANTLE)

# The API of each model; the second one if requests are signed with keys of AWS.
FAMILIES = {
    "amazon.nova-lite-v1:0": (CONVERSE, CONVERSE),
    "us.amazon.nova-pro-v1:0": (CONVERSE, CONVERSE),
    "amazon.titan-text-express-v1": (CONVERSE, CONVERSE),
    "meta.llama3-8b-instruct-v1:0": (CONVERSE, CONVERSE),
    "us.meta.llama4-scout-17b-instruct-v1:0": (CONVERSE, CONVERSE),
    "mistral.mistral-large-2407-v1:0": (CONVERSE, CONVERSE),
    "cohere.command-r-v1:0": (CONVERSE, CONVERSE),
    "us.deepseek.r1-v1:0": (CONVERSE, CONVERSE),
    "ai21.jamba-1-5-mini-v1:0": (CONVERSE, CONVERSE),
    "writer.palmyra-x5-v1:0": (CONVERSE, CONVERSE),
    "qwen.qwen3-32b-v1:0": (CONVERSE, CONVERSE),
    "openai.gpt-oss-20b-1:0": (CONVERSE, CONVERSE),
    "us.openai.gpt-6-sol": (CONVERSE, CONVERSE),
    "newmaker.new-model-v1:0": (CONVERSE, CONVERSE),
    f"{ARN}::foundation-model/amazon.nova-lite-v1:0": (CONVERSE, CONVERSE),
    f"{ARN}:1:inference-profile/eu.amazon.nova-lite-v1:0": (CONVERSE, CONVERSE),
    ACCOUNT_PROFILE: (CONVERSE, CONVERSE),
    f"{ARN}:1:provisioned-model/anthropic.claude": (CONVERSE, CONVERSE),
    "anthropic.claude-opus-5": (MESSAGES, INVOKE),
    "anthropic.claude-opus-4-6-v1": (INVOKE, INVOKE),
    "anthropic.claude-sonnet-4-5-20250929-v1:0": (INVOKE, INVOKE),
    "us.anthropic.claude-opus-4-5-20251101-v1:0": (INVOKE, INVOKE),
    "apac.anthropic.claude-sonnet-4-6": (INVOKE, INVOKE),
    "us-gov.anthropic.claude-opus-5": (INVOKE, INVOKE),
    "global.anthropic.claude-opus-5": (INVOKE, INVOKE),
    f"{ARN}::foundation-model/anthropic.claude-opus-5": (INVOKE, INVOKE),
    f"{ARN}:1:inference-profile/eu.anthropic.claude-opus-5": (INVOKE, INVOKE),
    "openai.gpt-oss-120b": (CHAT, CHAT),
    "openai.gpt-oss-safeguard-20b": (CHAT, CHAT),
    "qwen.qwen3-32b": (CHAT, CHAT),
    "xai.grok-4.6": (CHAT, CHAT),
    "google.gemma-4-31b": (CHAT, CHAT),
    "openai.gpt-6-sol": (RESPONSES, RESPONSES),
}
every_family = pytest.mark.parametrize("model", FAMILIES)


def quoted(model):
    return model.replace("/", "%2F")


@pytest.fixture(scope="module")
def bedrock():
    """A simulated Bedrock that accepts what `check` accepts, which a test sets."""
    guard = Guard(Simulator(text("It rains.")), None)
    with serve_in_thread(guard) as server:
        yield guard, server.url


def ask(guard, client, model, **options):
    """A whole and a streamed answer; returns the answers and the requests."""
    seen = len(guard.received)

    async def work():
        async with client:
            whole = await generate(
                f"bedrock:{model}", "Rain?", client=client, max_tokens=100, **options
            )
            streamed = stream(f"bedrock:{model}", "Rain?", client=client, max_tokens=100, **options)
            async for _ in streamed:
                pass
            return whole, streamed.result()

    return asyncio.run(work()), guard.received[seen:]


def check_calls(answers, received, model, api):
    paths = [form.format(quoted(model)) for form in (api.path, api.stream_path)]
    assert [request.target for request in received] == paths
    for answer in answers:
        assert answer.text == "It rains."
        assert answer.response.provider == "bedrock"


@every_family
def test_with_a_bearer_key_in_the_environment(bedrock, model):
    """The key is sent as it is."""
    guard, url = bedrock
    guard.check = has_header("authorization", "Bearer planted-token")
    client = Client.from_env({**BEARER, "BEDROCK_BASE_URL": url})

    check_calls(*ask(guard, client, model), model, FAMILIES[model][0])


@every_family
def test_with_keys_of_aws_in_the_environment(bedrock, model):
    """Botocore computes the same signature, for the service of the API."""
    guard, url = bedrock
    api = FAMILIES[model][1]
    guard.check = is_signed(KEYS, service=api.service)
    client = Client.from_env({**SIGNED, "BEDROCK_BASE_URL": url})

    check_calls(*ask(guard, client, model), model, api)


@every_family
def test_with_a_key_and_an_address_of_the_call(bedrock, model):
    """A bearer key needs no signature, and so no region; that of an ARN is not compared."""
    guard, url = bedrock
    guard.check = has_header("authorization", "Bearer planted-token")
    access = {"api_key": "planted-token", "base_url": url}

    answers = ask(guard, Client.from_env({}), model, **access)
    check_calls(*answers, model, FAMILIES[model][0])


@every_family
@pytest.mark.parametrize("key", ["planted-token", KEYS], ids=["text", "keys"])
def test_the_hosts_of_aws(model, key):
    """Each API is at its own host, in the region of the settings."""
    adapter = HttpAdapter("bedrock", key, places=PLACES)
    api = FAMILIES[model][key is KEYS]
    sent = adapter.dry_run(Request(model=model, messages="Rain?", max_tokens=100))

    assert sent.url == f"https://{api.host.format(REGION)}{api.path.format(quoted(model))}"
    assert adapter.for_model(model).dialect == api.dialect
    assert adapter.profile_for(model).dialect == api.dialect


@pytest.mark.parametrize("row", ["bedrock_invoke", "bedrock_converse"])
def test_other_rows_take_a_bearer_key_without_a_region(bedrock, row):
    """`api_key=` and `base_url=` are enough; without a key of AWS nothing is signed."""
    guard, url = bedrock
    guard.check = has_header("authorization", "Bearer planted-token")
    answer = asyncio.run(
        generate(
            *(f"{row}:anthropic.claude-opus-5", "Rain?"),
            client=Client.from_env({}),
            api_key="planted-token",
            base_url=url,
            max_tokens=100,
        )
    )
    assert answer.text == "It rains."


@pytest.mark.parametrize("model", ["amazon.nova-lite-v1:0", "openai.gpt-oss-120b"])
def test_a_signature_needs_a_region(model):
    """Nothing is sent without one; a callable may also make a text, which needs none."""
    transport = CannedTransport([])
    settings = {"base_url": "https://host.example", "transport": transport}
    with pytest.raises(ConfigurationError, match=r"needs the region\. Set AWS_REGION or AWS_DEF"):
        HttpAdapter(find_provider("bedrock"), KEYS, **settings)
    adapter = HttpAdapter(find_provider("bedrock"), lambda: KEYS, **settings)
    with pytest.raises(ConfigurationError, match=r"needs the region\. Set AWS_REGION or AWS_DEF"):
        asyncio.run(adapter.complete(Request(model=model, messages="Rain?", max_tokens=9)))
    assert not transport.requests


@pytest.mark.parametrize("row", ROWS)
def test_an_arn_of_another_region_is_refused(row):
    """The error is raised before anything is sent, also where losses are only warnings."""
    transport = CannedTransport([])
    adapter = HttpAdapter(row, "k", places=PLACES, transport=transport)
    client = Client({row: adapter})
    model = "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-5"
    request = Request(model=f"{row}:{model}", messages="Rain?", max_tokens=9, on_loss="warn")

    async def read():
        return [event async for event in client.stream(request)]

    for work in (client.complete(request), read()):
        with pytest.raises(ConfigurationError, match=r"region us-east-1, .* in eu-central-1"):
            asyncio.run(work)
    with pytest.raises(ConfigurationError, match=r'pass places={"region": "us-east-1"}'):
        client.explain(request)
    assert not transport.requests


NOVA, OSS = "amazon.nova-lite-v1:0", "openai.gpt-oss-120b"


@pytest.mark.parametrize(
    ("base_url", "model", "url"),
    [
        ("https://bedrock-mantle.eu-west-1.api.aws", NOVA,
         f"https://bedrock-runtime.eu-west-1.amazonaws.com/model/{NOVA}/converse"),
        ("https://bedrock-mantle.eu-west-1.api.aws/", OSS,
         "https://bedrock-mantle.eu-west-1.api.aws/v1/chat/completions"),
        ("https://bedrock-runtime.eu-west-1.amazonaws.com", OSS,
         "https://bedrock-mantle.eu-west-1.api.aws/v1/chat/completions"),
        ("https://bedrock-runtime.eu-west-1.amazonaws.com/openai", "openai.gpt-oss-120b-1:0",
         "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/chat/completions"),
        ("https://host.example/v1/chat/completions", NOVA,
         "https://host.example/v1/chat/completions"),
        ("https://host.example/aws", NOVA, f"https://host.example/aws/model/{NOVA}/converse"),
    ],
)  # fmt: skip
def test_a_base_url(base_url, model, url):
    """A host of AWS says the region; an address of one API is used for all; others serve all."""
    request = Request(model=model, messages="Rain?")
    adapter = HttpAdapter("bedrock", "k", base_url=base_url, places=PLACES)
    rebound = HttpAdapter("bedrock", "k", places=PLACES).rebind("mine", base_url=base_url)

    assert adapter.dry_run(request).url == url
    assert rebound.dry_run(request).url == url
    assert rebound.for_model(model).name == "mine"


def test_the_region_of_a_base_url_is_signed(monkeypatch):
    """A host of AWS has its region in its name, whatever the variables say."""
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    seen = CannedTransport(lambda _: CannedReply(status=400, body=b"{}"))
    url = "https://bedrock-mantle.eu-west-1.api.aws"
    adapter = HttpAdapter("bedrock", KEYS, base_url=url, transport=seen)
    with pytest.raises(ProviderError):
        asyncio.run(adapter.complete(Request(model=NOVA, messages="Rain?", max_tokens=9)))

    (request,) = seen.requests
    assert "/eu-west-1/bedrock/aws4_request" in request.headers["authorization"]


def test_a_dialect_of_the_adapter_is_used_for_all_models():
    """Whoever names a dialect gets that one."""
    adapter = HttpAdapter("bedrock", "k", places=PLACES, dialect="openai_chat")
    assert adapter.dry_run(Request(model=NOVA, messages="Rain?")).url.endswith("/completions")


def test_a_row_of_ones_own_has_branches():
    """Also at another address; a branch that names no row is an error of configuration."""
    row = Provider(
        name="house",
        dialect="anthropic_messages",
        base_url="https://{region}.house.example",
        url_env={"region": ("HOUSE_REGION",)},
        branches=(
            Branch(models="gpt-.*", dialect="openai_chat"),
            Branch(models="nova-.*", row="bedrock_converse"),
            Branch(models="odd-.*", row="no_such_row"),
        ),
    )
    gpt, nova = (Request(model=name, messages="Rain?") for name in ("gpt-x", "nova-x"))
    own = HttpAdapter(row, "k", places=PLACES)
    known = replace(row, branches=row.branches[:2])
    moved = HttpAdapter(known, "k", base_url="https://host.example")

    assert own.dry_run(gpt).url == f"https://{REGION}.house.example/chat/completions"
    assert own.dry_run(nova).url.startswith(f"https://bedrock-runtime.{REGION}.amazonaws.com/model")
    assert moved.dry_run(gpt).url == "https://host.example/chat/completions"
    assert moved.dry_run(nova).url == "https://host.example/model/nova-x/converse"
    with pytest.raises(ConfigurationError, match="no provider 'no_such_row'"):
        own.dry_run(Request(model="odd-x", messages="Rain?"))


def test_without_keys_the_error_names_all_variables(tmp_path):
    """`bedrock` may be named with the login of AWS; without one, the error says what to set."""
    environ = {"AWS_REGION": REGION, "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}
    client = Client.from_env(environ)
    assert "bedrock" not in repr(client)
    with pytest.raises(ConfigurationError) as caught:
        asyncio.run(client.complete(Request(model=f"bedrock:{NOVA}", messages="Rain?")))
    assert "Set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_" in caught.value.message


@pytest.mark.parametrize("name", ["bedrock", "amazon-bedrock", "bedrock_converse", "mine"])
def test_options_under_every_name(name):
    """The options of a request may be under the name of the row, of its API or of the adapter."""
    adapter = HttpAdapter("bedrock", "k", places=PLACES, name="mine")
    options = {name: {"performanceConfig": {"latency": "optimized"}}}
    sent = adapter.dry_run(Request(model=NOVA, messages="Rain?", provider_options=options))

    assert sent.body["performanceConfig"] == {"latency": "optimized"}
    assert not sent.warnings


def test_the_identity_of_an_answer_is_that_of_its_api():
    """A cache keeps apart what another API answers, and finds what the same one answered."""
    first, same = (HttpAdapter("bedrock", "k", places=PLACES) for _ in range(2))
    other = HttpAdapter("bedrock", "k", places={"region": "us-east-1"})
    chat = HttpAdapter("bedrock", "k", places=PLACES, dialect="openai_chat")

    assert identity_of(first, NOVA) == identity_of(same, NOVA) is not None
    different = [identity_of(first, OSS), identity_of(other, NOVA), identity_of(chat, NOVA)]
    assert identity_of(first, NOVA) not in different


def test_a_name_that_is_given_later_is_that_of_all_apis():
    """The adapters of the branches follow their adapter."""
    adapter = HttpAdapter("bedrock", "k", places=PLACES)
    assert adapter.for_model(NOVA).name == "bedrock"
    assert adapter.for_model(NOVA) is adapter.for_model("meta.llama3-8b-instruct-v1:0")
    adapter.name = "mine"
    assert adapter.for_model(NOVA).name == "mine"


# Prices and lists.

PRICED = (
    *("amazon.nova-lite-v1:0", "us.amazon.nova-pro-v1:0", "eu.amazon.nova-micro-v1:0"),
    *("anthropic.claude-opus-5", "us.anthropic.claude-opus-5", "global.anthropic.claude-opus-5"),
    f"{ARN}:1:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
)


@pytest.mark.parametrize("model", PRICED)
def test_a_model_costs_the_same_by_each_row(bedrock, model):
    """Whatever its API is; the catalog has the price of each inference profile."""
    guard, url = bedrock
    guard.check = has_header("authorization", "Bearer planted-token")
    is_claude = "claude" in model
    rows = ["bedrock", "bedrock_converse", *["bedrock_invoke"] * is_claude]
    # What one row has cached would cost another one less.
    settings = {"base_url": url, "places": PLACES, "options": {"auto_cache": False}}

    async def work():
        adapters = {row: HttpAdapter(row, "planted-token", **settings) for row in rows}
        async with Client(adapters) as client:
            requests = [Request(model=f"{row}:{model}", messages="Rain?" * 99) for row in rows]
            return [await client.complete(each) for each in requests]

    price = find_model(model, "bedrock").prices[0].rates
    for answer in asyncio.run(work()):
        tokens = (answer.usage.input_tokens, answer.usage.output_tokens)
        dollars = (tokens[0] * price.input + tokens[1] * price.output) / 1e6
        assert answer.cost.total == pytest.approx(dollars)


def test_the_catalog_has_one_price_for_a_model_at_all_rows():
    """Tokens cost the same; searches on the web are only known of one of the addresses."""
    models = {row: {model.id: model for model in list_models(row)} for row in ROWS}
    assert models["bedrock"].keys() == models["bedrock_converse"].keys()
    assert models["bedrock_invoke"].keys() <= models["bedrock"].keys()
    for row in ROWS:
        for name, model in models[row].items():
            known = models["bedrock"][name]
            assert model.input_cost_per_million == known.input_cost_per_million
            assert model.output_cost_per_million == known.output_cost_per_million


def test_a_profile_without_a_price_has_none(bedrock):
    """What AWS asks for a model through another profile is not guessed."""
    guard, url = bedrock
    guard.check = has_header("authorization", "Bearer planted-token")
    adapter = HttpAdapter("bedrock", "planted-token", base_url=url)
    answer = asyncio.run(adapter.complete(Request(model=ACCOUNT_PROFILE, messages="Rain?")))
    assert answer.cost is None
    assert [warning.code for warning in answer.warnings] == ["price_unknown"]


@pytest.mark.parametrize("key", ["planted-token", KEYS], ids=["text", "keys"])
def test_the_models_that_are_served(bedrock, key):
    """The list is that of `bedrock-mantle`, with the same keys."""
    guard, url = bedrock
    is_text = isinstance(key, str)
    bearer = has_header("authorization", "Bearer planted-token")
    guard.check = bearer if is_text else is_signed(KEYS, service="bedrock-mantle")
    adapter = HttpAdapter("bedrock", key, base_url=url, places=PLACES)

    (model,) = asyncio.run(adapter.list_models())
    assert (model.id, model.provider) == ("simulated-model", "bedrock")
    assert guard.received[-1].target == "/v1/models"
