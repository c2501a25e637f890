"""What hosts say about a model is read, under the names that each has for it."""

import json

import pytest

from interlingua import dialects

# As GitHub Copilot describes its models: the limits and the flags are inside `capabilities`.
COPILOT = {
    "billing": {"is_premium": True, "multiplier": 1},
    "capabilities": {
        "family": "gpt-5.2",
        "limits": {
            "max_context_window_tokens": 264000,
            "max_output_tokens": 64000,
            "max_prompt_tokens": 128000,
            "vision": {"max_prompt_image_size": 3145728, "max_prompt_images": 1},
        },
        "object": "model_capabilities",
        "supports": {
            "parallel_tool_calls": True,
            "reasoning_effort": ["low", "medium", "high"],
            "streaming": True,
            "structured_outputs": True,
            "tool_calls": True,
            "vision": True,
        },
        "tokenizer": "o200k_base",
        "type": "chat",
    },
    "id": "gpt-5.2",
    "model_picker_enabled": True,
    "name": "GPT-5.2",
    "object": "model",
    "policy": {"state": "enabled", "terms": "…"},
    "preview": False,
    "supported_endpoints": ["/chat/completions", "/responses"],
    "vendor": "OpenAI",
    "version": "gpt-5.2",
}


def with_capabilities(**capabilities):
    return {"id": "m", "capabilities": capabilities}


def read(*entries, dialect="openai_chat"):
    body = json.dumps({"object": "list", "data": list(entries)}).encode()
    return dialects.get(dialect).OPERATIONS["list_models"].decode(200, {}, body)


@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses"])
def test_a_model_of_github_copilot(dialect):
    """Its limits, modalities, capabilities and maker are known, in both dialects of the host."""
    (model,) = read(COPILOT, dialect=dialect)

    assert (model.id, model.name, model.owner) == ("gpt-5.2", "GPT-5.2", "OpenAI")
    assert (model.context_window, model.max_output_tokens) == (264000, 64000)
    assert model.input_modalities == ("text", "image")
    assert model.supports_tools is True
    assert model.supports_reasoning is True
    assert model.supports_structured_output is True


def test_a_model_of_github_copilot_is_written_again():
    """Every field of its entry survives the server side, and reads the same again."""
    (model,) = read(COPILOT)
    written = dialects.get("openai_chat").serve.describe_model(model)
    (again,) = read(written)

    assert COPILOT.items() <= written.items()
    assert (again.context_window, again.max_output_tokens) == (264000, 64000)
    assert again.input_modalities == model.input_modalities
    assert again.supports_reasoning is True


def test_what_a_model_of_github_copilot_lacks():
    """A flag that is false is known, a flag that is absent is not."""
    (plain,) = read(with_capabilities(supports={"vision": False, "tool_calls": False}))
    (bare,) = read(with_capabilities(supports={"streaming": True}))
    (prompt,) = read(with_capabilities(limits={"max_prompt_tokens": 8192}))

    assert (plain.input_modalities, plain.supports_tools) == (("text",), False)
    assert (bare.input_modalities, bare.supports_tools, bare.supports_reasoning) == (None,) * 3
    assert (prompt.context_window, prompt.max_output_tokens) == (8192, None)


@pytest.mark.parametrize(
    ("supports", "expected"),
    [
        ({"adaptive_thinking": True}, True),
        ({"max_thinking_budget": 32000}, True),
        ({"reasoning_effort": []}, False),
        ({"reasoning_effort": ["high"], "adaptive_thinking": False}, True),
        ({"reasoning_effort": "high"}, None),
        ({}, None),
    ],
)
def test_thinking_of_models_of_github_copilot(supports, expected):
    """Each of the three ways in which its list says that a model thinks is understood."""
    (model,) = read(with_capabilities(supports=supports))

    assert model.supports_reasoning is expected


@pytest.mark.parametrize(
    "capabilities",
    [
        *(None, [], "chat", {"limits": 1}, {"limits": {"max_output_tokens": "9"}}),
        *({"supports": []}, {"supports": {"vision": "yes", "tool_calls": 1}}),
    ],
)
def test_odd_capabilities(capabilities):
    """What does not have the expected type is unknown, and stays in `extra`."""
    (model,) = read({"id": "m", "capabilities": capabilities})

    assert (model.context_window, model.max_output_tokens, model.supports_tools) == (None,) * 3
    assert model.extra["openai"]["capabilities"] == capabilities
