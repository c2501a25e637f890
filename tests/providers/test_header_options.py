"""Options that are headers: who pays for a call is never a field of its body."""

import asyncio

import pytest

from interlingua import embed
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.catalog.profiles import profile_for
from interlingua.providers.rows import ROWS
from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.spec.errors import ConfigurationError, UnsupportedError
from interlingua.spec.request import Request
from support.rows import variables_of
from support.simulated import KEY

WHO = {"organization": "org-1", "project": "proj-1"}
ROWS_OF_CHAT = [
    row
    for row in ROWS
    if not row.is_local and row.base_url and not row.only_named
    if profile_for(row.dialect, "m", row.name).kind == "chat"
]


def ask(row, **fields):
    return Request(model=f"{row.name}:m", messages="hi", **fields)


@pytest.mark.parametrize("row", ROWS_OF_CHAT, ids=lambda row: row.name)
@pytest.mark.parametrize("key", ["row", "dialect"])
def test_who_pays_never_reaches_a_body(row, key):
    """At OpenAI these options are headers; elsewhere they are dropped with a warning."""
    client = Client.from_env(variables_of(row))
    name = row.name if key == "row" else row.dialect
    told = client.explain(ask(row, provider_options={name: WHO}))

    assert not {"organization", "project"} & told.body.keys()
    lost = [each.path for each in told.warnings if each.code == "setting_dropped"]
    if row.header_options:
        assert told.headers["openai-organization"] == "org-1"
        assert lost == []
    else:
        prefix = f"provider_options.{row.dialect}"
        assert lost == [f"{prefix}.organization", f"{prefix}.project"]


@pytest.mark.parametrize("name", ["groq", "openai_compatible", "anthropic", "azure"])
@pytest.mark.parametrize("setting", ["organization", "project"])
def test_an_adapter_without_such_a_header_refuses_the_setting(name, setting):
    """As a setting and among the options: the caller would believe that it had an effect."""
    for settings in ({setting: "x"}, {"options": {setting: "x"}}):
        with pytest.raises(ConfigurationError, match=f"has no {setting}"):
            HttpAdapter(name, "k", base_url="https://h.example/v1", **settings)


def test_calls_and_operations_send_the_headers():
    """Of the adapter and of a call, whole, streamed and in an operation; strict refuses a loss."""
    app = Simulator(text("Hello."), key=KEY)
    with serve_in_thread(app) as server:
        openai = HttpAdapter("openai", KEY, base_url=f"{server.url}/v1", options=WHO)
        other = HttpAdapter("openai_compatible", KEY, base_url=f"{server.url}/v1")
        client = Client({"openai": openai, "other": other})
        options = {"provider_options": {"other": WHO}}

        async def work():
            for model in ("openai:gpt-5.2", "other:m"):
                request = Request(model=model, messages="hi", **options)
                await client.complete(request)
                async for _ in client.stream(request):
                    pass
            result = await embed("other:text-embedding-3-small", "hi", client=client, **options)
            assert [w.code for w in result.warnings].count("setting_dropped") == 2
            strict = Request(model="other:m", messages="hi", on_loss="strict", **options)
            with pytest.raises(UnsupportedError, match="organization"):
                await client.complete(strict)

        asyncio.run(work())
    calls = [exchange.call for exchange in app.script.received]
    assert len(calls) == 5
    assert "org-1" not in repr([call.body for call in calls])
    assert [call.headers.get("openai-organization") for call in calls][:2] == ["org-1", "org-1"]
