"""Clients from the environment and from files."""

import asyncio
import os

import pytest

from interlingua.client.client import Client
from interlingua.client.config import read_registry
from interlingua.client.environment_adapters import adapters_from_env
from interlingua.local import local_server
from interlingua.providers import environment
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request

FILE = """\
default_provider: claude
adapters:
  claude:
    type: anthropic
    api_key_env: MY_CLAUDE_KEY
    timeout_seconds: 30
    max_retries: 2
    extra_headers: {x-team: search}
  house:
    type: openai_compatible
    base_url: http://gpu.example:8000/v1
    options: {top_k: 5}
models:
  claude:opus:
    wire_name: claude-opus-4-6
    tier: deep
    can_delegate: true
    aliases: [opus]
  house-llama:
    adapter: house
    profile: {tools: false}
"""


@pytest.fixture
def write(tmp_path):
    def write_text(text):
        path = tmp_path / "models.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


def test_only_what_has_a_key_is_there():
    """In the order of the rows; nothing but the given environment is read."""
    adapters = adapters_from_env({"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "b", "X": "c"})

    assert list(adapters) == ["openai", "anthropic", "local"]
    assert list(adapters_from_env({})) == ["local"]
    assert list(adapters_from_env({"OPENAI_API_KEY": ""})) == ["local"]
    assert list(adapters_from_env({"OPENAI_API_KEY": " \n"})) == ["local"]


def test_the_model_on_this_machine():
    """The usual one, or the file that is named; a blank name is none."""
    usual, blank, named = (
        adapters_from_env(environ)["local"].server.gguf
        for environ in ({}, {"INTERLINGUA_GGUF": " "}, {"INTERLINGUA_GGUF": "m.gguf"})
    )

    assert (usual, blank, named) == (None, None, "m.gguf")


@pytest.mark.parametrize("mark", ["'", '"'])
def test_quotes_around_a_key_are_removed_and_told(caplog, mark):
    """Some readers of env files keep the quotes; the warning names the variable, not the key."""
    environment._warn_of_quotes.cache_clear()
    environ = {"GROQ_API_KEY": f"{mark}gsk-secret{mark}", "MISTRAL_API_KEY": 'a"b'}
    client = Client.from_env(environ)
    Client.from_env(environ)  # the second time it is known

    assert client.adapter("groq").configuration.key == "gsk-secret"
    assert client.adapter("mistral").configuration.key == 'a"b'
    (record,) = caplog.records
    assert record.getMessage().startswith("GROQ_API_KEY has quotes around its value")
    assert "gsk-secret" not in caplog.text
    assert "groq" not in adapters_from_env({"GROQ_API_KEY": mark + mark})


def test_a_row_without_an_address_is_left_out():
    """The others are there; who asks for it is told what is missing."""
    environ = {"AZURE_OPENAI_API_KEY": "a", "OPENAI_API_KEY": "b"}
    assert list(adapters_from_env(environ)) == ["openai", "local"]
    with pytest.raises(ConfigurationError, match="Set AZURE_OPENAI_ENDPOINT"):
        Client.from_env(environ).explain(Request(model="azure:m", messages="hi"))
    environ["AZURE_OPENAI_ENDPOINT"] = "https://r.openai.azure.com"
    assert list(adapters_from_env(environ)) == ["openai", "azure", "local"]


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434/v1"),
        (":1234", "http://127.0.0.1:1234/v1"),
        ("gpu.example:1234", "http://gpu.example:1234/v1"),
        ("https://gpu.example", "https://gpu.example/v1"),
    ],
)
def test_hosts_of_ollama(given, url):
    """In the forms in which it reads them itself."""
    call = adapters_from_env({"OLLAMA_HOST": given})["ollama"].dry_run(Request(model="m"))

    assert call.url == f"{url}/chat/completions"


def test_blanks_around_a_value():
    """A key that was read from a file often ends with a line feed."""
    adapters = adapters_from_env({"OPENAI_API_KEY": " sk-1\n", "OPENAI_ORG_ID": "org-1\r\n"})

    assert adapters["openai"].configuration.key == "sk-1"
    assert adapters["openai"].dry_run(Request(model="m")).headers["openai-organization"] == "org-1"


def test_a_key_needs_a_scheme_that_was_named():
    """An address without one would send it in the clear; within this machine it may."""
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "proxy.example/v1"}
    with pytest.raises(ConfigurationError, match=r"must look like https.*Check OPENAI_BASE_URL"):
        adapters_from_env(environ)
    environ["OPENAI_BASE_URL"] = "localhost:8080"
    call = adapters_from_env(environ)["openai"].dry_run(Request(model="m"))
    assert call.url == "http://localhost:8080/v1/responses"


def test_names_of_the_environment():
    """Second names for keys, addresses, headers."""
    adapters = adapters_from_env(
        {
            "GOOGLE_API_KEY": "g",
            "OPENAI_API_KEY": "o",
            "OPENAI_BASE_URL": "https://proxy.example/v1/",
            "OPENAI_ORG_ID": "org-1",
            "OLLAMA_HOST": "127.0.0.1:11434",
        }
    )
    call = adapters["openai"].dry_run(Request(model="m", messages="hi"))

    assert list(adapters) == ["openai", "gemini", "ollama", "local"]
    assert call.url == "https://proxy.example/v1/responses"
    assert call.headers["openai-organization"] == "org-1"
    local = adapters["ollama"].dry_run(Request(model="m", messages="hi"))
    assert local.url == "http://127.0.0.1:11434/v1/chat/completions"


def test_a_bad_address_names_its_variable():
    """And not the value, which may be a secret."""
    with pytest.raises(ConfigurationError, match="Check OPENAI_BASE_URL") as caught:
        adapters_from_env({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://a:hunter2@b"})

    assert "hunter2" not in str(caught.value)


def test_a_registry_file(write):
    """Adapters, models, names, profiles."""
    adapters, registry, default = read_registry(write(FILE), {"MY_CLAUDE_KEY": "secret"})
    claude, house = adapters["claude"], adapters["house"]
    opus = registry.find("opus")

    assert default == "claude"
    assert (claude.name, claude.max_retries, claude.is_configured) == ("claude", 2, True)
    call = claude.dry_run(Request(model="claude-opus-4-6", messages="hi"))
    assert call.url == "https://api.anthropic.com/v1/messages"
    assert call.headers["x-team"] == "search"
    assert (opus.id, opus.adapter, opus.wire_name) == ("claude:opus", "claude", "claude-opus-4-6")
    assert (opus.tier, opus.can_delegate) == ("deep", True)
    assert registry.find("deep") is opus
    llama = house.dry_run(Request(model="house-llama", messages="hi"))
    assert llama.url == "http://gpu.example:8000/v1/chat/completions"
    assert llama.body["top_k"] == 5
    assert not house.profile_for("house-llama").tools
    assert house.profile_for("other").tools is None


def test_a_file_with_the_model_on_this_machine(write):
    """It is started as everywhere else; another file can be named, or a server that runs."""
    text = "adapters: {local: {}, mine: {type: local, gguf: m.gguf}, %s}\nmodels: {local:m: {}}\n"
    path = write(text % "there: {type: local, base_url: 'localhost:1'}")
    adapters, _, _ = read_registry(path, {})

    assert adapters["local"].server is local_server()
    assert adapters["mine"].server.gguf == "m.gguf"
    assert adapters["there"].server is None
    named, _, _ = read_registry(path, {"INTERLINGUA_GGUF": "n.gguf"})
    assert named["local"].server.gguf == "n.gguf"


def test_where_a_file_is_silent_the_environment_counts(write):
    """Address and headers as well as the key; what the file says goes first."""
    environ = {
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": "https://proxy.example/v1",
        "OPENAI_ORG_ID": "org-1",
        "OPENAI_PROJECT_ID": " ",
        "AZURE_OPENAI_API_KEY": "k",
        "AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com",
    }
    text = "adapters:\n  openai: {}\n  azure: {}\n  own:\n    type: openai\n"
    text += "    base_url: https://own.example/v1\n    extra_headers: {OpenAI-Organization: mine}\n"
    adapters, _, _ = read_registry(write(text), environ)
    silent, azure, own = (
        adapters[name].dry_run(Request(model="m")) for name in ("openai", "azure", "own")
    )

    assert silent.url == "https://proxy.example/v1/responses"
    assert silent.headers["openai-organization"] == "org-1"
    assert "openai-project" not in silent.headers
    assert azure.url == "https://r.openai.azure.com/openai/v1/chat/completions"
    assert own.url == "https://own.example/v1/responses"
    assert own.headers["openai-organization"] == "mine"
    with pytest.raises(ConfigurationError, match=r"models.yaml:2: .*Check OPENAI_BASE_URL"):
        read_registry(write(text), {"OPENAI_BASE_URL": "ftp://x"})


def test_a_merge_with_something_of_its_own(write):
    """What `<<` brings lies under what stands beside it."""
    text = "adapters:\n  openai: &d\n    api_key: one\n    timeout_seconds: 5\n"
    text += "  groq:\n    <<: *d\n    api_key: two\n"
    adapters, _, _ = read_registry(write(text), {})

    assert adapters["groq"].configuration.key == "two"
    assert adapters["groq"].configuration.timeouts.request == 5
    assert adapters["openai"].configuration.key == "one"


@pytest.mark.parametrize("mode", ["complete", "stream", "list_models"])
def test_a_missing_key_of_a_file_is_told_by_the_call(write, mode):
    """The file loads; a call tells the file, the line and the variable, and has a code."""
    client = Client.from_file(write(FILE), {})

    async def work():
        request = Request(model="opus", messages="hi")
        if mode == "stream":
            return [event async for event in client.stream(request)]
        return await (client.complete(request) if mode == "complete" else client.list_models())

    line = r"models\.yaml:5: No API key for claude\. Set MY_CLAUDE_KEY"
    with pytest.raises(ConfigurationError, match=line) as caught:
        asyncio.run(work() if mode != "list_models" else client.list_models("claude"))

    assert caught.value.error_code == "not_configured"


def test_a_missing_key_names_the_line_of_the_adapter_and_the_variable_of_its_row(write):
    """The line of the adapter, and the variable of its row."""
    client = Client.from_file(write("adapters:\n  groq: {}\n"), {})
    with pytest.raises(ConfigurationError, match=r"models\.yaml:2: .*Set GROQ_API_KEY"):
        asyncio.run(client.complete(Request(model="groq:m", messages="hi")))


def test_a_path_may_begin_with_the_home_directory(write, monkeypatch):
    """`~` is the home directory."""
    path = write(FILE)
    monkeypatch.setenv("HOME", str(path.parent))
    monkeypatch.setenv("USERPROFILE", str(path.parent))

    assert Client.from_file("~/models.yaml", {}).registry.find("opus") is not None


def test_a_key_that_is_set_later_is_found():
    """A client of the environment looks again before it refuses."""
    environ = {}
    client = Client.from_env(environ)
    with pytest.raises(ConfigurationError, match="Set GROQ_API_KEY"):
        client.explain(Request(model="groq:m", messages="hi"))
    environ["GROQ_API_KEY"] = "k"

    assert client.explain(Request(model="groq:m", messages="hi")).provider == "groq"
    assert client.explain(Request(model="m", messages="hi")).provider == "groq"


@pytest.mark.parametrize("name", ["ollama", "vllm", "llamacpp", "lmstudio"])
def test_rows_without_a_key_work_when_named(name):
    """At their default address; they are no provider for any other name."""
    client = Client.from_env({})
    call = client.explain(Request(model=f"{name}:llama3.2:1b", messages="hi"))

    port = {"ollama": 11434, "vllm": 8000, "llamacpp": 8080, "lmstudio": 1234}[name]
    assert call.url == f"http://localhost:{port}/v1/chat/completions"
    assert (call.model, call.provider) == ("llama3.2:1b", name)
    assert client.explain(Request(model="m", provider=name, messages="hi")).provider == name
    with pytest.raises(ConfigurationError, match="Unknown provider for 'my-model'"):
        client.explain(Request(model="my-model", messages="hi"))


def test_a_missing_extra_is_named_with_how_to_install_it(monkeypatch):
    """The error says how to get it."""
    monkeypatch.setattr("interlingua.client.environment_adapters.find_spec", lambda _: None)
    monkeypatch.setattr("interlingua.client.refusals.find_spec", lambda _: None)
    client = Client.from_env({})

    assert repr(client) == "Client()"
    with pytest.raises(ConfigurationError, match=r"pip install 'interlingua\[local\]'"):
        client.explain(Request(model="local:smollm2", messages="hi"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("adapter: {}\n", r"models.yaml:1: Unknown key 'adapter'"),
        (
            "adapters:\n  a:\n    type: opneai\n",
            r"models.yaml:3: Adapter 'a': There is no provider 'opneai'",
        ),
        (
            "adapters:\n  mine: {}\n",
            r"models.yaml:2: Adapter 'mine': There is no provider .*Set `type`",
        ),
        (
            "adapters:\n  a:\n    type: openai\n    dialect: chat\n",
            r"models.yaml:4: Adapter 'a': There is no dialect 'chat'",
        ),
        (
            "adapters:\n  mine: {type: openai_compatible}\n",
            r"models.yaml:2: Adapter 'mine': 'openai_compatible' has no address .*Pass base_url=",
        ),
        (
            "adapters:\n  az:\n    type: azure\n",
            r"models.yaml:2: Adapter 'az': 'azure' has no address .*pass base_url=",
        ),
        (
            "adapters:\n  openai:\n    max_retries: -2\n",
            r"models.yaml:3: 'max_retries' in adapters.openai must be an integer of 0 or more",
        ),
        (
            "adapters:\n  openai:\n    timeout_seconds: -3\n",
            r"models.yaml:3: 'timeout_seconds' in .* must be a number of seconds from 0",
        ),
        (
            "adapters:\n  openai:\n    timeout_seconds: .nan\n",
            r"models.yaml:3: 'timeout_seconds' in .* must be a number of seconds from 0",
        ),
        (
            "adapters:\n  openai:\n    extra_headers: {X-A: 1}\n",
            r"models.yaml:3: Adapter 'openai': The value of the header 'X-A' must be a string",
        ),
        (
            "adapters:\n  groq:\n    profile: {quirks: {topk: true}}\n",
            r"models.yaml:3: .*unknown key 'quirks.topk'",
        ),
        ("adapters:\n  openai:\n    gguf: m\n", r"models.yaml:3: .*for the row `local`"),
        ("adapters: {openai: {}}\nmodels:\n  m: {}\n", r"models.yaml:3: Model 'm': set `adapter`"),
        (
            "adapters:\n  a:\n    type: openai\n    base_url: x\n",
            r"models.yaml:4: Adapter 'a': A base URL",
        ),
        ("adapters:\n  openai:\n    max_retries: two\n", r"models.yaml:3: 'max_retries'"),
        (
            "models:\n  m:\n    adapter: a\n",
            r"models.yaml:3: Model 'm': this file has no adapter 'a'",
        ),
        ("models:\n  a:m: {}\n", r"models.yaml:2: Model 'a:m': this file has no adapter 'a'"),
        (
            "adapters: {openai: {}}\nmodels:\n  openai:m:\n    profile: {tool: false}\n",
            r"models.yaml:4: .*unknown key 'tool'",
        ),
        (
            "adapters: {openai: {}}\nmodels:\n  openai:m: {aliases: [1]}\n",
            r"models.yaml:3: 'aliases' in models.openai:m must be a list of strings",
        ),
        (
            "adapters: {}\ndefault_provider: x\n",
            r"models.yaml:2: default_provider: there is no adapter 'x'",
        ),
        (
            "adapters: {a: {type: vllm}}\nmodels: {a:m: {aliases: [b]}, a:n: {aliases: [b]}}\n",
            r"models.yaml:2: The name 'b' is used by both",
        ),
        (
            "adapters: {a: {type: vllm}}\nmodels:\n  a:m: {aliases: [a:n]}\n  a:n: {}\n",
            r"models.yaml:4: The name 'a:n' is used by both",
        ),
    ],
)
def test_mistakes_have_their_place(write, text, message):
    """File and line."""
    with pytest.raises(ConfigurationError, match=message):
        read_registry(write(text), {})


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("name", ["api_key", "apiKey"])
def test_a_file_with_a_key_that_others_can_read_is_reported(write, caplog, name):
    """With what to do; a file that is private, or has no key, is not."""
    path = write(f"adapters:\n  claude: {{type: anthropic, {name}: planted-key}}\n")
    path.chmod(0o640)
    read_registry(path, {})
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "has the API key of claude" in caplog.text
    assert "chmod 600" in caplog.text
    assert "planted-key" not in caplog.text

    caplog.clear()
    path.chmod(0o600)
    read_registry(path, {})
    path.write_text(FILE, encoding="utf-8")
    path.chmod(0o644)
    read_registry(path, {})
    assert caplog.text == ""


# Files beside the environment.


def test_a_file_comes_before_the_environment(write):
    """Its adapters replace those of variables; what they leave out comes from variables."""
    path = write(
        "default_model: best\n"
        "aliases: {best: 'anthropic:claude-haiku-4-5', house: 'gpu:llama'}\n"
        "adapters:\n"
        "  gpu: {type: openai_compatible, base_url: 'http://gpu.example/v1'}\n"
        "  openai: {base_url: 'http://proxy.example/v1'}\n"
        "models:\n"
        "  gemini:small: {wire_name: gemini-2.5-flash, profile: {tools: false}}\n"
    )
    client = Client.from_env({"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "b"}, config=path)

    def place(model):
        shown = client.explain(Request(model=model, messages="Hi."))
        return shown.provider, shown.model

    assert place("") == place("best") == ("anthropic", "claude-haiku-4-5")
    assert place("house") == ("gpu", "llama")
    assert client.adapter("openai").base_url == "http://proxy.example/v1"
    assert place("gemini:small") == ("gemini", "gemini-2.5-flash")
    assert client.default_provider is None  # one file is no choice of a provider


def test_of_several_files_the_first_wins(tmp_path):
    """Name by name; a mistake is told with its own file and line."""
    near, far = tmp_path / "near.yaml", tmp_path / "far.yaml"
    contents = {near: "aliases: {a: openai:near}\n", far: "aliases: {a: openai:far, b: openai:far}"}
    client = Client.from_env({"OPENAI_API_KEY": "b"}, config=contents)
    assert dict(client.registry.aliases) == {"a": "openai:near", "b": "openai:far"}
    with pytest.raises(ConfigurationError, match=r"far\.yaml:1: The alias 'b' stands for another"):
        Client.from_env({}, config={**contents, far: "aliases: {b: a}"})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("aliases: {a: b, b: a}", "stands for another alias"),
        ("aliases: {a: a}", "stands for another alias"),
        ("aliases: {a: 1}", "must be the name of a model"),
        ("aliases: {a: ' '}", "must be the name of a model"),
        ("aliases: {'a:b': c}", "without a colon"),
        ("aliases: [a]", "must be a mapping"),
        (
            "adapters: {openai: {}}\nmodels: {openai:x: {aliases: [a]}}\naliases: {a: b}",
            "also a name",
        ),
        ("log: sometimes", "must be true or false"),
        ("templates: text", "must be a mapping"),
    ],
)
def test_wrong_aliases(write, text, complaint):
    """With the line, as everything in a file."""
    with pytest.raises(ConfigurationError, match=rf"models\.yaml:\d: .*{complaint}"):
        Client.from_env({}, config=write(text))
    with pytest.raises(ConfigurationError, match=complaint):
        Client.from_file(write(text), {})
