"""What would be sent, without key or network."""

import pytest
from msgspec.structs import replace

from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.rows import find_provider
from interlingua.spec.content import Document, Image
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolDefinition

KEY = "sk-planted"
CLIENT = Client.from_env(
    {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "GEMINI_API_KEY": KEY, "GROQ_API_KEY": KEY}
)


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "groq"])
def test_the_exact_request(provider):
    """Address, headers with the key covered, body, changes, tokens."""
    told = CLIENT.explain(Request(model=f"{provider}:m", messages="Hello there", temperature=9.0))

    assert told.url.startswith("https://")
    assert KEY not in repr(told)
    assert "[redacted]" in told.headers.values()
    assert told.body
    assert "temperature" in {warning.path for warning in told.warnings}
    assert 1 <= told.estimated_input_tokens <= 30
    assert told.estimated_cost is None


def test_cache_marks_are_shown():
    """Where they are in the body."""
    tool = ToolDefinition(name="f", parameters={"type": "object", "properties": {}})
    request = Request(
        model="anthropic:claude-opus-4-6",
        messages=(Message.system("Be brief."), Message.user("hi")),
        tools=(tool,),
    )
    told = CLIENT.explain(request)

    assert "cache_control" in told.cache_marks
    assert "tools[0].cache_control" in told.cache_marks


def test_a_header_that_may_hold_a_key_is_covered():
    """Also one that only the caller's own proxy knows."""
    adapter = HttpAdapter("openai", KEY, default_headers={"X-Proxy-Token": "hunter2", "x-a": "b"})
    told = Client({"openai": adapter}).explain(Request(model="openai:m", messages="hi"))

    assert "hunter2" not in repr(told)
    assert told.headers["x-a"] == "b"


def test_a_server_without_a_key_gets_none():
    """The header of the key is shown where it would be sent, also if the key is still missing."""
    keyless = Client.from_env({"VLLM_API_KEY": KEY})
    clients = {"ollama:m": keyless, "vllm:m": keyless, "groq:m": CLIENT}
    shown = {
        model: "authorization" in client.explain(Request(model=model, messages="hi")).headers
        for model, client in clients.items()
    }

    assert shown == {"ollama:m": False, "vllm:m": True, "groq:m": True}


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini", "groq"])
def test_a_missing_key_is_told(name):
    """The header of the key says so, and a warning names the variable to set; no call is made."""
    row = find_provider(name)
    told = Client({name: HttpAdapter(row)}).explain(Request(model=f"{name}:m", messages="hi"))
    (warning,) = [each for each in told.warnings if each.code == "key_missing"]

    assert warning.message == f"No API key for {name}: set {' or '.join(row.key_env)}."
    assert list(told.headers.values()).count("[missing]") == 1
    assert not told.refused
    strict = Request(model=f"{name}:m", messages="hi", on_loss="strict")
    assert not Client({name: HttpAdapter(row)}).explain(strict).refused


def test_files_are_read_and_fetches_are_told(tmp_path):
    """The body is what would be sent but for URLs, which need a network."""
    path = tmp_path / "a.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n")
    page = Document(url="https://example.com/a.pdf", media_type="application/pdf")
    request = Request(model="groq:m", messages=[Message.user([Image(path=path), page])])
    told = CLIENT.explain(request)

    assert "iVBORw0KGgo=" in repr(told.body)
    assert told.fetches == ("messages[0].content[1]",)
    assert (told.warnings, told.refused) == ((), ())  # the call sends it
    assert CLIENT.explain(replace(request, model="anthropic:m")).fetches == ()


def test_an_adapter_that_reads_no_files():
    """As in the call itself."""
    adapter = HttpAdapter("openai", KEY, read_files=False)
    request = Request(model="openai:m", messages=[Message.user([Image(path="/no/such/file.png")])])

    with pytest.raises(ConfigurationError, match="read_files=False"):
        Client({"openai": adapter}).explain(request)
    with pytest.raises(ConfigurationError, match=r"cannot read '/no/such/file\.png'"):
        CLIENT.explain(request)


def test_what_would_raise_is_told():
    """`explain` never raises for a loss; `refused` has those for which the call would."""
    adapter = HttpAdapter("openai", KEY, profile={"image_types": (), "seed": False})
    image = Image(data=b"\x89PNG\r\n\x1a\n")
    request = Request(model="openai:m", messages=[Message.user([image, "?"])], seed=7)

    def refused(client, request=request):
        told = client.explain(request)
        assert {"seed_dropped", "image_dropped"} == {warning.code for warning in told.warnings}
        return {warning.code for warning in told.refused}

    assert refused(Client({"openai": adapter})) == {"image_dropped"}
    assert refused(Client({"openai": adapter}, strict=True)) == {"seed_dropped", "image_dropped"}
    assert refused(Client({"openai": adapter}, on_loss="warn")) == set()
    quiet = replace(request, on_loss="warn")
    assert refused(Client({"openai": adapter}, strict=True), quiet) == set()


def test_an_option_whose_name_is_a_number():
    """As YAML can have them: a note, as for every unknown option."""
    client = Client({"openai": HttpAdapter("openai", "k", options={1: 2})})
    (warning,) = client.explain(Request(model="gpt-5.2", messages="hi")).warnings

    assert warning.code == "option_unknown"
