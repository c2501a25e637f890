"""Lists of models, in each provider's words."""

import asyncio

import pytest

from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.listing import (
    ServedModel,
    models_path,
    next_page,
    read_models,
    read_pages,
)
from interlingua.providers.provider import Provider
from interlingua.providers.rows import ROWS
from interlingua.spec.errors import AuthenticationError, RateLimitError
from interlingua.spec.request import Request
from interlingua.transport.canned import CannedReply, CannedTransport
from interlingua.wire.json_text import dumps

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


def test_each_shape_is_read():
    """The id as a request names it; the rest where it is told."""
    (gpt,), (claude,), (gemini,) = (read_models(body, "p") for body in (OPENAI, ANTHROPIC, GEMINI))

    assert (gpt.id, gpt.provider, gpt.context_window) == ("gpt-5", "p", None)
    assert (claude.name, claude.context_window, claude.max_output_tokens) == (
        "Claude Haiku 4.5",
        200000,
        64000,
    )
    assert (gemini.id, gemini.context_window) == ("gemini-3-flash", 1048576)
    assert gemini.raw == GEMINI["models"][0]


def test_pages_follow_each_other():
    """Until the provider says there are no more."""
    assert next_page(OPENAI) is None
    assert next_page(ANTHROPIC) == "after_id=claude-haiku-4-5"
    assert next_page(GEMINI) == "pageToken=a%2Fb"


@pytest.mark.parametrize(
    "body", [None, [], {}, "x", {"data": None}, {"data": [1, None]}, [{"x": 1}]]
)
def test_odd_lists_are_empty(body):
    """What cannot be read is not there."""
    assert read_models(body, "p") == []
    assert next_page(body) is None


def test_a_bare_array_is_a_list():
    """Together sends one."""
    assert read_models([{"id": "m", "context_length": 8192}], "together") == [
        ServedModel(
            id="m",
            provider="together",
            context_window=8192,
            raw={"id": "m", "context_length": 8192},
        )
    ]


def test_a_page_that_repeats_ends_the_list():
    """A server may say for ever that there are more."""
    asked = []

    async def ask(query):
        asked.append(query)
        return ANTHROPIC

    found = asyncio.run(read_pages(ask, "p"))

    assert asked == ["", "after_id=claude-haiku-4-5"]
    assert [model.id for model in found] == ["claude-haiku-4-5"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("base", ["https://a.example", "https://a.example/v1"])
def test_lists_are_where_calls_are(row, base):
    """Under one version, whether the base URL names it or not."""
    canned = CannedTransport([CannedReply(body=dumps(OPENAI))])
    adapter = HttpAdapter(row, "k", base_url=base, transport=canned)
    asyncio.run(adapter.list_models())
    call = adapter.dry_run(Request(model="m", messages="hi"))

    (sent,) = canned.requests
    folder = sent.url.rpartition("/models")[0]
    assert call.url.startswith(f"{folder}/")
    assert call.url.removeprefix(folder).count("/v1") == 0


def test_what_a_row_says_of_its_list():
    """Its path, and the headers it wants; the caller's own go over them."""
    row = Provider(name="mine", dialect="openai_chat", models_path="/list")
    assert models_path(row, "openai_chat") == "/list"
    for given, version in (({}, "2023-06-01"), ({"Anthropic-Version": "2"}, "2")):
        canned = CannedTransport([CannedReply(body=dumps(OPENAI))])
        adapter = HttpAdapter("anthropic", "k", transport=canned, default_headers=given)
        asyncio.run(adapter.list_models())
        assert canned.requests[0].headers["anthropic-version"] == version


def test_errors_of_a_list_say_whose_they_are():
    """As those of calls do; one told with a 200 is one too."""
    refused = CannedReply(status=401, headers={"request-id": "req_1"}, body=b"{}")
    told = CannedReply(body=b'{"error": {"code": 429, "message": "slow"}}')
    for reply, kind in ((refused, AuthenticationError), (told, RateLimitError)):
        adapter = HttpAdapter("anthropic", "k", name="mine", transport=CannedTransport([reply]))
        with pytest.raises(kind) as caught:
            asyncio.run(adapter.list_models())
        assert caught.value.provider == "mine"
        assert caught.value.provider_request_id == ("req_1" if reply is refused else None)
