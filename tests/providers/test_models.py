"""Lists of models, in each provider's words."""

import pytest

from interlingua.providers.models import ServedModel, next_page, read_models

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


@pytest.mark.parametrize("body", [None, [], {}, "x", {"data": None}, {"data": [1, None]}])
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
