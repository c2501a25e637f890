"""The section `gateway` of a registry file, and the keys of a gateway."""

import asyncio

import pytest

from interlingua.gateway.config import gateway_from_env, gateway_from_file
from interlingua.gateway.keys import Key, Keys, hash_key, is_hash, make_key
from interlingua.serving.application import RefusedError, read_request
from interlingua.serving.client_application import Caller
from interlingua.spec.errors import ConfigurationError

HASH = hash_key("il_x")
ADAPTER = "adapters: {anthropic: {api_key: k}}\n"
FILE = f"""
adapters:
  anthropic: {{api_key: k}}
  gemini: {{api_key: k}}
gateway:
  port: 4100
  keys:
    alice: {{hash: "{HASH}", models: ["claude-*"]}}
    bob: {{hash: "{hash_key("il_y")}"}}
  routes:
    claude-*: anthropic:claude-haiku-4-5
    claude-opus-*: anthropic:claude-opus-4-6
    fast:
      model: gemini:gemini-2.5-flash
      fallback: [anthropic:claude-haiku-4-5]
      hedge: 2.5
      cache: 60
      settings: {{temperature: 0.2, max_tokens: 500}}
    default: gemini:gemini-2.5-flash
"""


@pytest.fixture
def read(tmp_path):
    """Reads a text as a registry file."""
    opened = []

    def read(text):
        path = tmp_path / "interlingua.yaml"
        path.write_text(text, "utf-8")
        opened.append(gateway_from_file(path, {}))
        return opened[-1]

    yield read
    for gateway in opened:
        asyncio.run(gateway.client.close())


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("claude-haiku-4-5", "anthropic:claude-haiku-4-5"),
        ("claude-opus-4-6", "anthropic:claude-opus-4-6"),
        ("fast", "gemini:gemini-2.5-flash"),
        ("anything", "gemini:gemini-2.5-flash"),
    ],
)
def test_a_name_finds_its_route(read, name, model):
    """A name as it is, then the longest pattern, then the default."""
    assert read(FILE).routes.find(name).model == model


def test_a_route_has_middleware_and_settings(read):
    """Fallback, hedge and cache are layers of a client of its own."""
    gateway = read(FILE)
    route = gateway.routes.find("fast")

    assert route.settings == {"temperature": 0.2, "max_tokens": 500}
    assert route.client is not None
    assert route.client is not gateway.client
    assert gateway.port == 4100
    assert gateway.host == "127.0.0.1"
    assert [key.caller.name for key in gateway.keys] == ["alice", "bob"]
    assert gateway.routes.names() == ("fast",)


def test_models_of_providers_are_served_directly_only_without_routes(read):
    """`direct: true` allows both."""
    assert gateway_from_env({"ANTHROPIC_API_KEY": "k"}).routes.find("anthropic:x").model
    with_routes = "adapters: {anthropic: {api_key: k}}\ngateway:\n  routes: {a: anthropic:b}\n"
    assert read(with_routes).routes.find("anthropic:x") is None
    assert read(with_routes + "  direct: true\n").routes.find("anthropic:x").model == "anthropic:x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gateway: {prot: 1}", r"interlingua.yaml:\d+: Unknown key 'prot' in gateway"),
        ("gateway: {port: x}", r"interlingua.yaml:\d+: 'port' in gateway must be"),
        ("gateway: {keys: {a: {hash: abc}}}", r"interlingua.yaml:\d+: gateway.keys.a: `hash`"),
        ("gateway: {routes: {a: nowhere:b}}", r"interlingua.yaml:\d+: .*nowhere"),
        ("gateway: {routes: {a: {model: x:y}}}", r"interlingua.yaml:\d+: "),
        (
            f"{ADAPTER}gateway: {{routes: {{a: {{model: anthropic:b, settings: {{tempo: 1}}}}}}}}",
            r"gateway.routes.a.settings: .*tempo",
        ),
        (
            f"{ADAPTER}gateway: {{routes: {{a: {{model: anthropic:b, cache: -1}}}}}}",
            r"gateway.routes.a: Cache: ttl",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(read, text, message):
    """Before anything is served."""
    with pytest.raises(ConfigurationError, match=message):
        read(text)


def incoming(key):
    """A request with this key."""
    headers = [] if key is None else [(b"authorization", f"Bearer {key}".encode())]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/chat/completions",
        "headers": headers,
    }
    return read_request(scope, b"{}")


def test_a_key_finds_its_caller():
    """The hash is compared, never the key."""
    key = make_key()
    keys = Keys(
        [Key(hash_key("other"), Caller("other")), Key(hash_key(key), Caller("me", ("a-*",)))]
    )

    assert key.startswith("il_")
    assert is_hash(hash_key(key))
    caller = keys.authorize(incoming(key))
    assert caller.name == "me"
    assert caller.may_use("a-1")
    assert not caller.may_use("b")


@pytest.mark.parametrize(
    "key", [None, "", "wrong", "il_\ud800".encode("utf-8", "replace").decode()]
)
def test_a_wrong_key_is_refused(key):
    """Also if there are no keys at all."""
    for keys in (Keys([]), Keys([Key(hash_key("right"), Caller())])):
        with pytest.raises(RefusedError) as caught:
            keys.authorize(incoming(key))
        assert caught.value.failure.status == 401


KEYS = f"""  keys:
    usual: {{hash: "{HASH}"}}
    never: {{hash: "{HASH}", responses: false}}
    short: {{hash: "{HASH}", responses: {{keep: 90m}}}}
"""


def test_responses_are_kept_if_the_file_says_so(read, tmp_path):
    """For all keys but those with another time, in a file beside the registry file."""
    gateway = read(f"{ADAPTER}gateway:\n  responses: {{keep: 30d}}\n{KEYS}")
    keep = {key.caller.name: key.caller.keep for key in gateway.keys}

    assert keep == {"usual": None, "never": 0.0, "short": 5400.0}
    assert gateway.kept is not None
    assert gateway.kept.of_caller("never", keep["never"]) is None
    assert gateway.kept.of_caller("usual", keep["usual"]) is not None
    assert not (tmp_path / "responses.db").exists()  # before the first use


@pytest.mark.parametrize("written", ["", "  responses: false\n"])
def test_no_responses_are_kept_otherwise(read, written):
    """Nothing is kept that nobody asked for."""
    assert read(f"{ADAPTER}gateway:\n  port: 1\n{written}").kept is None


@pytest.mark.parametrize(
    "written", ["{keep: 30}", "{keep: 30 days}", "{keep: 0d}", "{}", "{keep: 1d, where: x}", "yes"]
)
def test_a_wrong_time_is_told(read, written):
    """With the line, and what it may be."""
    with pytest.raises(ConfigurationError, match=r"yaml.*3"):
        read(f"{ADAPTER}gateway:\n  responses: {written}\n")


@pytest.mark.parametrize("place", ["memory", "redis://localhost:1", "other.db"])
def test_where_responses_are_kept(read, place):
    """In this process, in a Redis server, or in a file."""
    pytest.importorskip("redis")
    gateway = read(f"{ADAPTER}gateway:\n  responses: {{keep: 1h, store: '{place}'}}\n")

    assert gateway.kept is not None


@pytest.mark.parametrize(
    "written", ["store: 'mysql://x'", "responses: {keep: 1h, store: 's3://x'}"]
)
def test_an_unknown_place_is_told(read, written):
    """With the line: it is not the name of a file."""
    with pytest.raises(ConfigurationError, match=r"yaml.*3.*no store for .*postgresql://"):
        read(f"{ADAPTER}gateway:\n  {written}\n")
