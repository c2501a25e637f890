"""Compaction with every model: a summary in a sealed item, which later requests unseal."""

import openai
import pytest

from interlingua.serving.kept_responses import KeptResponses
from interlingua.simulator import Simulator, error, serve_in_thread, text, thinking, tool_call
from interlingua.stores import MemoryStore
from interlingua.wire.seal import Origin, seal
from support.gateways import SECRET, gateway
from support.simulated import MODELS, adapters
from support.vendor_clients import SCHEMA
from support.wire_requests import ask

SUMMARY = "The user is Ada. She asked for the weather in Oslo: 4 C."
TOOL = {"type": "function", "name": "get_weather", "parameters": SCHEMA}
TRIGGER = {"type": "compaction_trigger"}
HISTORY = [
    {"role": "user", "content": "I am Ada. Weather in Oslo?"},
    {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": '{"city":"x"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "4 C"},
    {"role": "assistant", "content": "It is 4 C."},
]
ASK = {"role": "user", "content": "Who am I?"}
every_upstream = pytest.mark.parametrize("upstream", MODELS)
both_ways = pytest.mark.parametrize("streamed", [False, True])


@pytest.fixture(scope="module")
def stage():
    def answer(request):
        last = request.messages[-1].text
        if "be silent" in request.messages[0].text:
            return tool_call("get_weather", city="x") if "summary" in last else text("")
        if "fail" in request.messages[0].text:
            return error(500)
        # the simulated vendor makes a summary itself: its question is no message
        is_asked = last.startswith("Write a summary") or last == "It is 4 C."
        return thinking("Hm.") + text(SUMMARY if is_asked else "You are Ada.")

    simulator = Simulator(answer, strict=True)
    with (
        serve_in_thread(simulator) as server,
        gateway(adapters(server.url), kept=KeptResponses(MemoryStore())) as front,
    ):
        yield simulator, front, front.openai()


def name(upstream):
    return f"{upstream}:{MODELS[upstream]}"


def said(items):
    # the client reads user messages as those of the model, and would warn
    return [item.model_dump(exclude_none=True, warnings=False) for item in items]


def texts(simulator):
    """The texts that the model was given last; some APIs have those of a role in one message."""
    messages = simulator.script.requests[-1].messages
    return [part.text for message in messages for part in message.content]


@every_upstream
def test_a_conversation_is_compacted(stage, upstream):
    """All user messages and one item; the model then gets the summary in place of the item."""
    simulator, _, client = stage
    made = client.responses.compact(model=name(upstream), input=HISTORY)
    *messages, item = made.output
    answer = client.responses.create(model=name(upstream), input=[*said(made.output), ASK])

    assert made.object == "response.compaction"
    assert made.created_at >= 1_700_000_000
    assert made.usage.output_tokens > 0
    assert [(each.role, each.content[0].text) for each in messages] == [
        ("user", "I am Ada. Weather in Oslo?")
    ]
    assert (item.type, item.id[:4]) == ("compaction", "cmp_")
    assert answer.output_text == "You are Ada."
    assert SUMMARY in texts(simulator)[1]
    assert [texts(simulator)[0], texts(simulator)[2]] == [messages[0].content[0].text, "Who am I?"]


@every_upstream
@both_ways
def test_a_trigger_is_answered_with_one_item(stage, upstream, streamed):
    """Codex expects exactly one, whole or as a stream."""
    simulator, _, client = stage
    asked = {"model": name(upstream), "input": [*HISTORY, TRIGGER], "tools": [TOOL]}
    if streamed:
        events = list(client.responses.create(**asked, stream=True))
        done = [event.item for event in events if event.type == "response.output_item.done"]
        made = events[-1].response
        assert said(done) == said(made.output)
    else:
        made = client.responses.create(**asked)
    answer = client.responses.create(model=name(upstream), input=[*said(made.output), ASK])

    assert [item.type for item in made.output] == ["compaction"]
    assert made.status == "completed"
    assert answer.output_text == "You are Ada."
    assert SUMMARY in texts(simulator)[0]
    assert "compaction" not in repr(simulator.script.requests[-1])


def test_the_vendor_is_asked_where_it_can(stage):
    """By its own path and its own item; others are asked in words."""
    simulator, _, client = stage
    client.responses.compact(model=name("openai"), input=HISTORY)
    own = simulator.script.received[-1].call
    client.responses.compact(model=name("anthropic"), input=HISTORY, instructions="Be kind.")
    other = simulator.script.requests[-1]

    assert own.path.endswith("/v1/responses/compact")
    assert len(own.body["input"]) == len(HISTORY)
    assert other.messages[0].text == "Be kind."
    assert other.messages[-1].text.startswith("Write a summary")


def test_a_summary_goes_to_any_model(stage):
    """It is a text: another provider reads it as well."""
    simulator, _, client = stage
    made = client.responses.compact(model=name("anthropic"), input=HISTORY)
    for upstream in MODELS:
        client.responses.create(model=name(upstream), input=[*said(made.output), ASK])

        assert SUMMARY in texts(simulator)[1]


@every_upstream
@pytest.mark.parametrize("kind", ["damaged", "another", "state", "vendor"])
def test_an_item_that_cannot_be_read(stage, upstream, kind):
    """400 in plain words; that of a vendor is left to the vendor, which refuses what is not its."""
    simulator, _, client = stage
    item = client.responses.compact(model=name("gemini"), input=HISTORY).output[-1]
    value = {
        "damaged": item.encrypted_content[:-8] + "AAAAAAA=",
        "another": seal("x", b"the key of another gateway", Origin(dialect="compaction")),
        "state": seal("x", SECRET, Origin(dialect="gemini_generate")),
        "vendor": "gAAAAABpzfWY",
    }[kind]
    before = len(simulator.script.requests)
    given = [{"type": "compaction", "encrypted_content": value}, ASK]
    words = (
        "could not be verified" if (kind, upstream) == ("vendor", "openai") else "cannot be read"
    )
    with pytest.raises(openai.BadRequestError, match=words):
        client.responses.create(model=name(upstream), input=given)

    assert len(simulator.script.requests) == before


def test_an_item_without_content(stage):
    """The vendor requires it."""
    with pytest.raises(openai.BadRequestError, match="encrypted_content"):
        stage[2].responses.create(model=name("gemini"), input=[{"type": "compaction"}, ASK])


@both_ways
@pytest.mark.parametrize(
    ("items", "status"),
    [
        ([TRIGGER], 400),
        ([{"role": "user", "content": "be silent"}, TRIGGER], 502),
        ([{"role": "user", "content": "fail"}, TRIGGER], 500),
    ],
)
def test_no_summary(stage, items, status, streamed):
    """An error, and no item: an empty one would lose the conversation."""
    body = {"model": name("anthropic"), "input": items, "stream": streamed}
    reply = ask(stage[1], "/v1/responses", body)

    assert reply.status == status
    assert reply.json["error"]["message"]


@pytest.mark.parametrize("upstream", ["openai", "gemini"])
def test_a_kept_summary_takes_the_place_of_its_history(stage, upstream):
    """After it, a response by reference has the summary and nothing before it."""
    simulator, _, client = stage
    made = client.responses.create(model=name(upstream), input=[*HISTORY, TRIGGER])
    client.responses.create(model=name(upstream), input=[ASK], previous_response_id=made.id)

    assert len(texts(simulator)) == 2
    assert SUMMARY in texts(simulator)[0]


def test_what_is_kept_can_be_compacted(stage):
    """By reference; the summary itself is no response that is kept."""
    _, _, client = stage
    first = client.responses.create(model=name("gemini"), input="I am Ada.")
    made = client.responses.compact(
        model=name("gemini"), previous_response_id=first.id, input="Go on."
    )

    assert [item.content[0].text for item in made.output[:-1]] == ["I am Ada.", "Go on."]
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)
