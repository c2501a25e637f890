"""What a route would lose of the requests of each dialect."""

import json

import pytest

from interlingua import AnthropicAdapter, Client, GeminiAdapter, OpenAIAdapter
from interlingua.gateway.losses import FEATURES, Loss, as_asked, find_losses, served_dialects
from interlingua.middleware import Fallback
from interlingua.serving.exchange import ModelRoute
from interlingua.simulator import Script, Simulator, echo, serve_in_thread
from support.gateways import gateway
from support.wire_requests import ask

CLIENT = Client(
    {
        "openai": OpenAIAdapter(api_key="k"),
        "anthropic": AnthropicAdapter(api_key="k"),
        "gemini": GeminiAdapter(api_key="k"),
    }
)


def lost(model, dialect, **settings):
    """The codes by feature."""
    route = ModelRoute(model, settings=settings)
    return {
        loss.feature: loss.codes for loss in find_losses(CLIENT, route) if loss.dialect == dialect
    }


def test_only_what_a_dialect_can_say_is_lost():
    """Messages has no seed, so none of its clients loses one."""
    chat = lost("anthropic:claude-haiku-4-5", "openai_chat")

    assert chat["seed"] == ("seed_dropped",)
    assert chat["penalties"] == ("frequency_penalty_dropped", "presence_penalty_dropped")
    assert not {"images", "tools", "tool results", "system prompt"} & {*chat}
    assert lost("anthropic:claude-haiku-4-5", "anthropic_messages") == {}


def test_the_settings_of_a_route_count():
    """A route that makes the model think loses the temperature of its clients."""
    assert "temperature" not in lost("anthropic:claude-haiku-4-5", "openai_chat")
    found = lost("anthropic:claude-haiku-4-5", "openai_chat", thinking_budget=2048)
    assert found["temperature"] == ("temperature_dropped",)


@pytest.mark.parametrize("feature", FEATURES)
def test_every_feature_can_be_said_in_some_dialect(feature):
    """None of them is asked about in vain."""
    assert any(as_asked(dialect, FEATURES[feature]) for dialect in served_dialects())


@pytest.mark.parametrize("feature", ["seed", "verbosity"])
def test_a_request_through_the_gateway_tells_the_same(feature):
    """In the header with the warnings."""
    with serve_in_thread(Simulator(Script(echo))) as upstream:
        adapters = {"anthropic": AnthropicAdapter(api_key="k", base_url=upstream.url)}
        with gateway(adapters) as front:
            value = 1 if feature == "seed" else "low"
            body = {"model": "anthropic:claude-haiku-4-5", feature: value}
            body["messages"] = [{"role": "user", "content": "Hi"}]
            reply = ask(front, "/v1/chat/completions", body)

    (code,) = lost("anthropic:claude-haiku-4-5", "openai_chat")[feature]
    assert reply.headers["x-interlingua-warnings"] == code


def test_a_loss_has_sentences():
    """For `--check --json`."""
    loss = next(find_losses(CLIENT, ModelRoute("anthropic:claude-haiku-4-5")))

    assert isinstance(loss, Loss)
    assert "claude-haiku-4-5" in json.loads(json.dumps(loss._asdict()))["messages"][0]


def test_every_model_of_a_route_is_looked_at():
    """A request that falls back loses what the other model does not have."""
    client = CLIENT.with_middleware(Fallback("anthropic:claude-haiku-4-5"))
    route = ModelRoute("openai:gpt-5.2", client)
    found = {(loss.model, loss.feature) for loss in find_losses(CLIENT, route)}

    assert ("anthropic:claude-haiku-4-5", "penalties") in found
    assert {model for model, _ in found} <= {"openai:gpt-5.2", "anthropic:claude-haiku-4-5"}
