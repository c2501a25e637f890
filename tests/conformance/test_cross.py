"""Law 9 fails on a dialect that loses, moves or relinks anything without a word."""

import copy
import json
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from interlingua import dialects
from interlingua.conformance import strategies
from interlingua.conformance.canonical import compare, crosses, crossing, crossings
from interlingua.conformance.laws import Case, check
from interlingua.spec.content import Refusal, Text, ToolCall, ToolResult
from interlingua.spec.contracts import WireCall
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat, ToolChoice, ToolDefinition
from support.run_profile import examples

NAMES = dialects.names()
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
REQUEST = Request(
    model="m",
    messages=(
        Message.system("be brief"),
        Message.user("where?"),
        Message.assistant(
            [
                Text(text="I look."),
                ToolCall(id="a", name="look", arguments={"city": "Oslo"}),
                ToolCall(id="b", name="look", arguments={"city": "Rome"}),
            ]
        ),
        Message(
            role="tool",
            content=(
                ToolResult(tool_call_id="a", content="cold"),
                ToolResult(tool_call_id="b", content="warm"),
            ),
        ),
        Message.assistant("Rome."),
        Message.user("and then?"),
    ),
    tools=(ToolDefinition(name="look", description="Look there.", parameters=CITY),),
    temperature=0.5,
)
CASE = Case(name="walk", call=dialects.get("anthropic_messages").encode_request(REQUEST))
CHAT = dialects.get("openai_chat")


def changed(change):
    """Chat, with something done to what it writes."""

    def encode_request(request, profile, *, stream):
        call = CHAT.encode_request(request, profile, stream=stream)
        body = copy.deepcopy(call.body)
        made = change(body)
        body = made if isinstance(made, dict) and "messages" in made else body
        return WireCall(path=call.path, body=body, warnings=call.warnings)

    return SimpleNamespace(
        NAME="openai_chat", encode_request=encode_request, decode_request=CHAT.decode_request
    )


def replaced(old, new):
    return lambda body: json.loads(json.dumps(body).replace(old, new))


@pytest.mark.parametrize("target", NAMES)
def test_a_sound_request_crosses(target):
    """Nothing is lost of it anywhere."""
    assert crosses(dialects.get(target), REQUEST) == []


@pytest.mark.parametrize("target", NAMES)
@settings(
    max_examples=examples(100),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(request=strategies.requests())
def test_made_up_requests_cross(target, request):
    """So it is with any request."""
    assert crosses(dialects.get(target), request) == []


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda body: body["messages"].pop(0), "$.history"),
        (lambda body: body["messages"].pop(), "$.history"),
        (lambda body: body["messages"].reverse(), "$.history"),
        (lambda body: body["messages"][1].update(role="system"), "$.history[1].role"),
        (lambda body: body["messages"][1].update(content="where? "), "$.history[1].text"),
        (lambda body: body["messages"][2].update(content=None), "$.history"),
        (lambda body: body["messages"][2]["tool_calls"].pop(), "$.history"),
        (lambda body: body["messages"][2]["tool_calls"].reverse(), "$.history"),
        (replaced("Oslo", "Bergen"), "$.history[3].arguments.city"),
        (replaced('"name": "look"', '"name": "see"'), "$.history[4].name"),
        (lambda body: body["messages"][3].update(tool_call_id="b"), "$.history"),
        (lambda body: body["messages"][3].update(content="warm"), "$.history[5].text"),
        (replaced('"b"', '"c"'), "$.history[6].id"),
        (lambda body: body["messages"][3].update(content="Error: cold"), "$.history[5].text"),
        (lambda body: body["tools"].pop(), "$.tools"),
        (replaced("Look there.", "Look here."), "$.tools[0].description"),
        (replaced('"city": {"type"', '"town": {"type"'), "$.tools[0].parameters"),
        (lambda body: body.pop("temperature"), "temperature"),
    ],
)
def test_a_silent_change_is_noticed(change, where):
    """Whatever is lost, changed, moved or linked otherwise."""
    found = crosses(changed(change), REQUEST)

    assert any(difference.startswith(where) for difference in found), found


def test_results_that_change_places_are_noticed():
    """Each result has its own call, and its own place."""

    def swap(body):
        messages = body["messages"]
        messages[3], messages[4] = messages[4], messages[3]

    assert crosses(changed(swap), REQUEST) != []


def test_refusals_and_names():
    """A refusal stays one where there is such a thing; a name is kept, or a warning is given."""
    request = Request(
        messages=(Message.user("x", name="ann"), Message.assistant([Refusal(text="no")]))
    )

    assert crosses(CHAT, request) == []
    assert crosses(changed(replaced('"name": "ann"', '"name": "bob"')), request) != []
    assert crosses(changed(replaced("refusal", "content")), request) != []
    assert crosses(dialects.get("anthropic_messages"), request) == []


def test_allowed_tools_and_free_text():
    """Where only some tools may be called, or one takes free text, the warning says how."""
    tools = (
        ToolDefinition(name="look", parameters=CITY),
        ToolDefinition(name="write", type="custom"),
    )
    choice = ToolChoice(mode="auto", allowed=("look",))
    request = Request(messages="x", tools=tools, tool_choice=choice)

    assert [crosses(dialects.get(name), request) for name in NAMES] == [[]] * len(NAMES)
    free = Request(messages="x", tools=tools)
    assert [crosses(dialects.get(name), free) for name in NAMES] == [[]] * len(NAMES)
    assert crosses(changed(lambda body: body["tools"].pop()), request) != []


def test_the_law_in_its_two_forms():
    """From a recorded case, and for a report; a case without a request says nothing."""
    source = dialects.get("anthropic_messages")
    laws = crossings(map(dialects.get, NAMES))

    assert crossing(source, CHAT, CASE) == []
    assert crossing(source, CHAT, Case(name="empty")) == []
    assert check(source, [CASE], laws).violations == ()
    assert len(laws) == len(NAMES) == 5
    broken = check(source, [CASE], crossings([changed(lambda body: body["messages"].pop())]))
    assert [violation.law for violation in broken.violations] == ["9 crossing to openai_chat"]


def test_comparing_changes_nothing():
    """Neither of the two requests."""
    before = msgspec.json.encode(REQUEST)
    call = CHAT.encode_request(REQUEST)

    assert compare(REQUEST, CHAT.decode_request(call), call.warnings) == []
    assert msgspec.json.encode(REQUEST) == before


def test_an_instruction_takes_the_place_of_a_blank_prompt():
    """A format without a field becomes an instruction; blank text before it is not missed."""
    request = Request(
        messages=(Message.system("\r"), Message.user("Hi.")),
        response_format=ResponseFormat(type="json_schema", json_schema={"type": "object"}),
    )

    assert crosses(dialects.get("anthropic_messages"), request) == []
