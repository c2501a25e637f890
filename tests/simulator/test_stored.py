"""What a strict simulator stores: it knows the references to it, and refuses all others."""

import pytest

from interlingua.simulator import Simulator, text
from support.simulator_calls import call

HI = {"role": "user", "content": "Hi"}


def post(simulator, path="/v1/responses", **body):
    return call(simulator, path, {"model": "gpt-5.2", **body})


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_can_be_referred_to(stream):
    """By its id, and by the ids of its items."""
    simulator = Simulator(text("One."), strict=True)
    post(simulator, input=[HI], stream=stream)
    first = "resp_simulated000001"
    by_response = post(simulator, input="Go on", previous_response_id=first)
    item = by_response.json["output"][0]["id"]
    by_item = post(simulator, input=[HI, {"type": "item_reference", "id": item}, HI])
    asked = simulator.script.requests

    assert (by_response.status, by_item.status) == (200, 200)
    assert [message.text for message in asked[1].messages] == ["Hi", "One.", "Go on"]
    assert [message.text for message in asked[2].messages] == ["Hi", "One.", "Hi"]


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"previous_response_id": "resp_1"}, 400, "Previous response with id 'resp_1'"),
        ({"conversation": "conv_1"}, 404, "Conversation with id 'conv_1'"),
        ({"input": [{"type": "item_reference", "id": "rs_1"}]}, 404, "Item with id 'rs_1'"),
        ({"input": [{"type": "compaction", "encrypted_content": "gAAAx"}, HI]}, 400, "gAAA"),
        ({"input": [{"type": "compaction"}, HI]}, 400, "encrypted_content"),
    ],
)
def test_what_is_not_stored_is_refused(fields, status, words):
    """In the vendor's words."""
    reply = post(Simulator(text("One."), strict=True), **{"input": [HI], **fields})

    assert reply.status == status
    assert words in reply.json["error"]["message"]


def test_what_was_asked_not_to_be_stored_is_not():
    """With `store` as false."""
    simulator = Simulator(text("One."), strict=True)
    made = post(simulator, input=[HI], store=False).json
    reference = {"type": "item_reference", "id": made["output"][0]["id"]}

    assert post(simulator, input="Hi", previous_response_id=made["id"]).status == 400
    assert post(simulator, input=[reference]).status == 404


def test_a_summary_is_read_again():
    """Its item has the text, which the next request gets in its place."""
    simulator = Simulator(text("All is well."), strict=True)
    made = post(simulator, "/v1/responses/compact", input=[HI]).json
    post(simulator, input=[*made["output"], HI])

    assert made["object"] == "response.compaction"
    assert [item["type"] for item in made["output"]] == ["message", "compaction"]
    assert "All is well." in simulator.script.requests[-1].messages[1].text


def test_the_paths_of_what_is_stored_are_known():
    """The simulator has nothing there, in the vendor's words."""
    reply = call(Simulator(), "/v1/responses/resp_1", method="GET")

    assert reply.status == 404
    assert reply.json["error"]["message"] == "Response with id 'resp_1' not found."
