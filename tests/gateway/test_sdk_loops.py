"""Loops that a vendor's SDK runs by itself, through the gateway, with a model of any API."""

import pytest
from anthropic import beta_tool

from interlingua.simulator import Simulator, serve_in_thread, text, thinking, tool_call, tool_loop
from support.gateways import gateway
from support.simulated import DIALECTS, MODELS, adapters

CITIES = ("Oslo", "Rome")


@beta_tool
def get_weather(city: str) -> str:
    """Tell the weather."""
    return f"{city}: rain"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("row", DIALECTS)
def test_the_tool_runner_of_anthropic(row, stream):
    """It asks for a thread; without one it sends the whole conversation, with the state in it."""
    calls = thinking("I must look.")
    for city in CITIES:
        calls += tool_call("get_weather", city=city)
    simulator = Simulator(tool_loop(calls, text("Rain.")))
    with (
        serve_in_thread(simulator) as upstream,
        gateway(adapters(upstream.url)) as front,
        front.anthropic() as client,
    ):
        runner = client.beta.messages.tool_runner(
            model=f"{row}:{MODELS[row]}",
            max_tokens=99,
            messages=[{"role": "user", "content": "Weather in Oslo and Rome?"}],
            tools=[get_weather],
            stream=stream,
        )
        answer = runner.until_done()

    first, second = simulator.script.requests
    assert answer.content[0].text == "Rain."
    assert first.messages[0].text == "Weather in Oslo and Rome?"
    assert second.messages[0].text == first.messages[0].text
    assert [call.arguments["city"] for each in second.messages for call in each.tool_calls] == [
        *CITIES
    ]
    results = [part.content for part in second.messages[-1].content]
    assert [*map(str, results)][-1] == "Rome: rain"
