"""Kept responses, before every dialect: OpenAI's client refers to them, and the model gets all."""

import openai
import pytest

from interlingua.gateway.keys import Key, hash_key, make_key
from interlingua.serving.client_application import Caller
from interlingua.serving.kept_responses import KeptResponses
from interlingua.simulator import Simulator, serve_in_thread, signed, text, thinking, tool_call
from interlingua.spec.content import Thinking
from interlingua.stores import MemoryStore
from support.gateways import gateway
from support.simulated import MODELS, adapters
from support.vendor_clients import SCHEMA
from support.wire_requests import ask

TOOL = {"type": "function", "name": "get_weather", "parameters": SCHEMA}
LOOK = text("One moment. ") + tool_call("get_weather", city="Oslo")
THOUGHT = thinking("I must look.") + signed(LOOK)
every_upstream = pytest.mark.parametrize("upstream", MODELS)
both_ways = pytest.mark.parametrize("streamed", [False, True])


class Clock:
    """Seconds that a test moves."""

    now = 1_700_000_000.0

    def __call__(self):
        return self.now


class Stage:
    """A gateway that keeps responses, before one simulator."""

    def __init__(self, front, simulator, other, clock):
        self.front = front
        self.simulator = simulator
        self.client = front.openai()
        self.other = front.openai(api_key=other)
        self.clock = clock

    def ask(self, upstream, given, *, streamed=False, client=None, **fields):
        client = client or self.client
        asked = {"model": f"{upstream}:{MODELS[upstream]}", "input": given, **fields}
        if not streamed:
            return client.responses.create(**asked)
        *_, last = client.responses.create(stream=True, **asked)
        return last.response

    @property
    def received(self):
        """The messages that the model was given last."""
        return self.simulator.script.requests[-1].messages


@pytest.fixture(scope="module")
def stage():
    def answer(request):
        last = request.messages[-1]
        if "call" in last.text:
            return THOUGHT
        return thinking("Now I know.") + text(f"Answer {len(request.messages)}.")

    clock = Clock()
    other, refused = make_key(), make_key()
    others = (
        Key(hash_key(other), Caller("other")),
        Key(hash_key(refused), Caller("refused", keep=0)),
    )
    simulator = Simulator(answer, strict=True)
    kept = KeptResponses(MemoryStore(clock=clock), seconds=3600, clock=clock)
    with (
        serve_in_thread(simulator) as server,
        gateway(adapters(server.url), kept=kept, others=others) as front,
    ):
        made = Stage(front, simulator, other, clock)
        made.refused = front.openai(api_key=refused)
        yield made


def said(response):
    return [item.model_dump(exclude_none=True) for item in response.output]


def result_of(response):
    (call,) = [item for item in response.output if item.type == "function_call"]
    return {"type": "function_call_output", "call_id": call.call_id, "output": "4 C"}


@every_upstream
@both_ways
def test_a_loop_by_reference_is_the_loop_itself(stage, upstream, streamed):
    """The model is given the same messages as if the client had sent all of them, state too."""
    fields = {"tools": [TOOL], "reasoning": {"summary": "auto"}, "streamed": streamed}
    first = stage.ask(upstream, "Please call.", **fields)
    second = stage.ask(upstream, [result_of(first)], previous_response_id=first.id, **fields)
    third = stage.ask(upstream, "Thanks.", previous_response_id=second.id, **fields)
    by_reference = stage.received
    asked = [{"role": "user", "content": "Please call."}]
    asked += [*said(first), result_of(first), *said(second), {"role": "user", "content": "Thanks."}]
    stage.ask(upstream, asked, store=False, **fields)

    assert by_reference == stage.received
    assert third.output_text == f"Answer {len(by_reference)}."
    assert (second.previous_response_id, third.previous_response_id) == (first.id, second.id)
    if upstream != "openai_compatible":  # whose thinking has no state
        kept = [part for m in by_reference for part in m.content if isinstance(part, Thinking)]
        assert any(part.signature or part.data for part in kept)


@every_upstream
@both_ways
def test_a_kept_response_is_what_the_client_saw(stage, upstream, streamed):
    """Under the id that it has seen, until it is deleted."""
    seen = stage.ask(upstream, "Hi", streamed=streamed)
    again = stage.client.responses.retrieve(seen.id)

    assert seen.id.startswith("resp_")
    assert seen.store is True
    assert again.to_dict() == seen.to_dict()
    stage.client.responses.delete(seen.id)
    with pytest.raises(openai.NotFoundError, match=f"Response with id '{seen.id}' not found"):
        stage.client.responses.retrieve(seen.id)
    with pytest.raises(openai.NotFoundError):
        stage.client.responses.delete(seen.id)


@every_upstream
@both_ways
def test_items_by_reference(stage, upstream, streamed):
    """Vercel's client sends `item_reference` for all that the model has said, in its place."""
    fields = {"tools": [TOOL], "reasoning": {"summary": "auto"}, "streamed": streamed}
    first = stage.ask(upstream, "Please call.", **fields)
    asked = [{"role": "user", "content": "Please call."}]
    references = [{"type": "item_reference", "id": item.id} for item in first.output]
    given = [*asked, *references, result_of(first)]
    second = stage.ask(upstream, given, **fields)
    more = [{"type": "item_reference", "id": item.id} for item in second.output]
    end = {"role": "user", "content": "Thanks."}
    stage.ask(upstream, [*given, *more, end], **fields)
    by_reference = stage.received
    stage.ask(upstream, [*asked, *said(first), result_of(first), *said(second), end], **fields)

    assert by_reference == stage.received


def test_an_unknown_item(stage):
    """The vendor's 404, which says what to do."""
    reference = {"type": "item_reference", "id": "rs_nothing"}
    with pytest.raises(openai.NotFoundError, match=r"Item with id 'rs_nothing' not found\. Items"):
        stage.ask("gemini", [reference])


@both_ways
def test_what_is_not_to_be_stored_is_not(stage, streamed):
    """With `store` as false: neither the response, nor its items; what it refers to is used."""
    first = stage.ask("anthropic", "Hi", streamed=streamed)
    second = stage.ask(
        "anthropic", "Again", previous_response_id=first.id, store=False, streamed=streamed
    )
    reference = {"type": "item_reference", "id": second.output[-1].id}

    assert len(stage.received) == 3
    assert second.store is False
    with pytest.raises(openai.NotFoundError):
        stage.client.responses.retrieve(second.id)
    with pytest.raises(openai.BadRequestError, match="Previous response with id") as caught:
        stage.ask("anthropic", "Hi", previous_response_id=second.id)
    assert caught.value.code == "previous_response_not_found"
    with pytest.raises(openai.NotFoundError):
        stage.ask("anthropic", [reference])


def test_a_caller_does_not_read_what_is_anothers(stage):
    """Not a response, nor its items, nor a conversation, by no path."""
    mine = stage.ask("anthropic", "Hi")
    conversation = stage.client.conversations.create(items=[{"role": "user", "content": "Hi"}])
    other = stage.other
    for refused in (
        lambda: other.responses.retrieve(mine.id),
        lambda: other.responses.delete(mine.id),
        lambda: list(other.responses.input_items.list(mine.id)),
        lambda: other.conversations.retrieve(conversation.id),
        lambda: other.conversations.delete(conversation.id),
        lambda: list(other.conversations.items.list(conversation.id)),
        lambda: stage.ask("gemini", "Hi", conversation=conversation.id, client=other),
        lambda: stage.ask(
            "gemini", [{"type": "item_reference", "id": mine.output[0].id}], client=other
        ),
    ):
        with pytest.raises(openai.NotFoundError):
            refused()
    with pytest.raises(openai.BadRequestError, match="Previous response"):
        stage.ask("gemini", "Hi", previous_response_id=mine.id, client=other)

    assert stage.client.responses.retrieve(mine.id).id == mine.id


def test_what_is_kept_ends(stage):
    """After its time; a conversation ends that long after it was made, with all of its items."""
    mine = stage.ask("anthropic", "Hi")
    conversation = stage.client.conversations.create()
    stage.clock.now += 3000
    stage.ask("anthropic", "Hi", conversation=conversation.id)
    stage.clock.now += 599

    assert stage.client.responses.retrieve(mine.id)
    assert len(list(stage.client.conversations.items.list(conversation.id))) >= 2
    stage.clock.now += 2
    with pytest.raises(openai.NotFoundError):
        stage.client.responses.retrieve(mine.id)
    with pytest.raises(openai.NotFoundError):
        stage.client.conversations.retrieve(conversation.id)


def test_input_items_come_in_pages(stage):
    """All that the model was given, the last first; each has an id of its own."""
    first = stage.ask("anthropic", "One")
    given = [{"role": "user", "content": f"Text {i}"} for i in range(5)]
    second = stage.ask("anthropic", given, previous_response_id=first.id)
    listed = stage.client.responses.input_items
    items = list(listed.list(second.id, limit=2, order="asc"))
    page = listed.list(second.id, limit=2)
    texts = [part.text for item in items if item.type == "message" for part in item.content]

    assert texts[0] == "One"
    assert texts[-5:] == [f"Text {i}" for i in range(5)]
    assert [item.id for item in listed.list(second.id)] == [item.id for item in items][::-1]
    assert len({item.id for item in items}) == len(items)
    assert ([item.id for item in page.data], page.has_more) == (
        [items[-1].id, items[-2].id],
        True,
    )
    with pytest.raises(openai.BadRequestError, match="after"):
        listed.list(second.id, after="nothing")
    with pytest.raises(openai.BadRequestError, match="order"):
        listed.list(second.id, order="sideways")


def test_only_background_responses_can_be_cancelled(stage):
    """The vendor's words; an unknown one is not found."""
    mine = stage.ask("anthropic", "Hi")
    with pytest.raises(openai.BadRequestError, match="Cannot cancel a synchronous response"):
        stage.client.responses.cancel(mine.id)
    with pytest.raises(openai.NotFoundError):
        stage.client.responses.cancel("resp_nothing")


@every_upstream
@both_ways
def test_a_conversation(stage, upstream, streamed):
    """Its items come before those of a request; both, and the answer, are added to it."""
    conversations = stage.client.conversations
    made = conversations.create(
        items=[{"role": "user", "content": "Please call."}], metadata={"who": "me"}
    )
    fields = {"conversation": made.id, "tools": [TOOL], "streamed": streamed}
    first = stage.ask(upstream, [], **fields)
    second = stage.ask(upstream, [result_of(first)], **fields)
    stage.ask(upstream, "Thanks.", **{**fields, "conversation": {"id": made.id}})
    by_reference = stage.received
    items = list(conversations.items.list(made.id, order="asc", limit=1))
    begin, end = ({"role": "user", "content": each} for each in ("Please call.", "Thanks."))
    whole = [begin, *said(first), result_of(first), *said(second), end]
    stage.ask(upstream, whole, tools=[TOOL])

    assert first.conversation.id == made.id
    assert by_reference == stage.received
    assert len(items) > len(whole)
    assert items[-1].content[0].text.startswith("Answer")


def test_a_conversation_is_changed_and_deleted(stage):
    """Metadata, items one by one, the whole."""
    conversations = stage.client.conversations
    made = conversations.create(metadata={"a": "1"})
    added = conversations.items.create(
        made.id,
        items=[{"role": "user", "content": "One"}, {"role": "user", "content": "Two"}],
    )
    one, two = added.data
    conversations.items.delete(one.id, conversation_id=made.id)

    assert conversations.update(made.id, metadata={"b": "2"}).metadata == {"b": "2"}
    assert conversations.retrieve(made.id).created_at == made.created_at
    assert [item.id for item in conversations.items.list(made.id)] == [two.id]
    assert conversations.items.retrieve(two.id, conversation_id=made.id).content[0].text == "Two"
    with pytest.raises(openai.NotFoundError):
        conversations.items.retrieve(one.id, conversation_id=made.id)
    with pytest.raises(openai.BadRequestError, match="may have at most 20"):
        conversations.items.create(made.id, items=[{"role": "user", "content": "x"}] * 21)
    assert conversations.delete(made.id).deleted is True
    with pytest.raises(openai.NotFoundError):
        conversations.retrieve(made.id)


@pytest.mark.parametrize(
    "body",
    [
        [],
        "x",
        {"items": "x"},
        {"items": ["x"]},
        {"items": [{"type": "item_reference", "id": "msg_1"}]},
        {"items": [{"id": None}]},
        {"metadata": "x"},
    ],
)
def test_a_wrong_conversation_is_refused(stage, body):
    """With 400 in the client's form, and words that say what is wrong."""
    reply = ask(stage.front, "/v1/conversations", body)

    assert reply.status == 400
    assert reply.json["error"]["type"] == "invalid_request_error"


def test_two_references_at_once_are_refused(stage):
    """A conversation and a response before cannot both be what comes before."""
    with pytest.raises(openai.BadRequestError, match="cannot be used together"):
        stage.ask("gemini", "Hi", previous_response_id="r", conversation="c")


def test_tokens_are_counted_with_what_is_referred_to(stage):
    """The history before a request is input too."""
    first = stage.ask("gemini", "word " * 400)
    count = stage.client.responses.input_tokens.count
    model = f"gemini:{MODELS['gemini']}"
    alone = count(model=model, input="Hi").input_tokens
    after = count(model=model, input="Hi", previous_response_id=first.id).input_tokens

    assert after > alone + 100


def test_a_key_may_be_without(stage):
    """What is kept is the operator's choice for each key."""
    mine = stage.ask("anthropic", "Hi", client=stage.refused)

    assert getattr(mine, "store", None) is not True
    for refused in (
        lambda: stage.refused.responses.retrieve(mine.id),
        lambda: stage.refused.responses.delete(mine.id),
        lambda: stage.refused.responses.cancel(mine.id),
        lambda: list(stage.refused.responses.input_items.list(mine.id)),
        stage.refused.conversations.create,
        lambda: stage.refused.conversations.retrieve("conv_1"),
        lambda: stage.ask("anthropic", "Hi", previous_response_id=mine.id, client=stage.refused),
        lambda: stage.ask("anthropic", "Hi", conversation="conv_1", client=stage.refused),
        lambda: stage.ask(
            "anthropic", [{"type": "item_reference", "id": "msg_1"}], client=stage.refused
        ),
    ):
        with pytest.raises(openai.BadRequestError, match=r"keeps no responses.*keep: 30d"):
            refused()
