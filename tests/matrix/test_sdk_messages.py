"""Every function takes messages of the vendors' SDKs, formats as dicts, and plain functions."""

import copy
import json
import re

import pytest
from anthropic import types as anthropic
from openai.types import chat
from openai.types import responses as openai

from interlingua import (
    Session,
    batch,
    execute,
    generate,
    generate_many,
    generate_object,
    stream,
    stream_object,
    sync,
)
from interlingua.api.modalities.models import count_tokens
from interlingua.api.tools.tool import tool
from interlingua.history import read_messages, repair
from interlingua.simulator import text, tool_call
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request, ResponseFormat
from support.requests import every_provider, given, named
from support.simulated import adapters, run, simulated

ASKED = {"role": "user", "content": "Weather in Oslo?"}
FORMS = {
    "chat": [
        ASKED,
        chat.ChatCompletionMessage.model_validate(
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "look", "arguments": '{"city": "Oslo"}'},
                    }
                ],
            }
        ),
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
        {"role": "user", "content": [{"type": "text", "text": "And now?"}]},
    ],
    "anthropic": [
        ASKED,
        {
            "role": "assistant",
            "content": [
                anthropic.TextBlock(type="text", text="I look."),
                anthropic.ToolUseBlock(
                    type="tool_use", id="toolu_1", name="look", input={"city": "Oslo"}
                ),
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"},
                {"type": "text", "text": "And now?"},
            ],
        },
    ],
    "responses": [
        ASKED,
        openai.ResponseOutputMessage.model_validate(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
            }
        ),
        openai.ResponseFunctionToolCall(
            type="function_call", call_id="call_1", name="look", arguments='{"city": "Oslo"}'
        ),
        {"type": "function_call_output", "call_id": "call_1", "output": "rain"},
        {"role": "user", "content": [{"type": "input_text", "text": "And now?"}]},
    ],
}
every_form = pytest.mark.parametrize("form", FORMS)


def look(city: str) -> str:
    """Look at a city."""
    return f"{city}: rain"


def play(request):
    names = [each.name for each in request.tools]
    if "look" in names and not given(request):
        return tool_call("look", city="Oslo")
    if request.response_format is not None:
        return text('{"city": "Oslo"}')
    answers = [name for name in names if name != "look"]  # the tool for an object
    return tool_call(answers[0], city="Oslo") if answers else text("Rain.")


async def _stream(model, messages, options):
    return [event async for event in stream(model, messages=messages, **options)]


async def _stream_object(model, messages, options):
    result = stream_object(model, messages=messages, schema=dict[str, str], **options)
    return [each async for each in result]


async def _continue(model, messages, options):
    session = Session(model, messages=messages[:-1], **options)
    return await session.send(messages[-1])


async def _read_turn(model, messages, options):
    return [event async for event in Session(model, **options).stream(messages)]


async def _send_object(model, messages, options):
    return await Session(model, **options).send_object(messages, schema=dict[str, str])


def _request(model, messages):
    return Request(model=model, messages=read_messages(messages))


async def _complete(model, messages, options):
    return await options["client"].complete(_request(model, messages))


async def _stream_request(model, messages, options):
    return [event async for event in options["client"].stream(_request(model, messages))]


FUNCTIONS = {
    "generate": lambda model, messages, options: generate(model, messages=messages, **options),
    "prompt": lambda model, messages, options: generate(model, messages, **options),
    "stream": _stream,
    "object": lambda model, messages, options: generate_object(
        model, messages=messages, schema=dict[str, str], **options
    ),
    "streamed object": _stream_object,
    "many": lambda model, messages, options: generate_many(
        [{"messages": messages}, messages], model, **options
    ),
    "session": _continue,
    "turn as a stream": _read_turn,
    "turn with an object": _send_object,
    "request": _complete,
    "request as a stream": _stream_request,
    "count of a request": lambda model, messages, options: options["client"].count_tokens(
        _request(model, messages)
    ),
    "execute": lambda model, messages, options: execute(model, messages, **options),
    "count": lambda model, messages, options: count_tokens(model, messages=messages, **options),
}


def bodies(work):
    """What was sent, without the ids that a session makes."""
    with simulated(play) as peer:
        run(peer, work)
        sent = [exchange.call.body for exchange in peer.app.script.received]
    return json.loads(re.sub(r"(tu|call|toolu)_[0-9A-Z]{26}", "id", json.dumps(sent)))


@every_provider
@every_form
@pytest.mark.parametrize("name", FUNCTIONS)
def test_messages_of_sdks_are_sent_as_ours_are(provider, form, name):
    """By every function; what was given is not changed."""
    if name.startswith("count") and provider == "openai_compatible":
        pytest.skip("Chat Completions cannot count")
    messages = FORMS[form]
    before = copy.deepcopy(messages)
    ours = read_messages(messages)
    sent = [
        bodies(lambda client, m=m: FUNCTIONS[name](named(provider), m, {"client": client}))
        for m in (ours, messages)
    ]
    assert sent[0] == sent[1] != []
    assert messages == before


@every_form
def test_batches_and_repairs_take_them(form):
    """A batch of such conversations has the bodies of ours; `repair` reads them too."""
    messages, ours = FORMS[form], read_messages(FORMS[form])

    def submitted(given):
        return bodies(
            lambda client: batch.submit([given], "anthropic:claude-haiku-4-5", client=client)
        )

    expected = submitted({"messages": ours})
    assert submitted(messages) == submitted({"messages": messages}) == expected
    assert submitted(Request(messages=read_messages(messages))) == expected
    assert repair(messages, "gemini_generate") == repair(ours, "gemini_generate")


BLOCKING = {
    "generate": lambda model, given, options: sync.generate(model, messages=given, **options).text,
    "prompt": lambda model, given, options: sync.generate(model, given, **options).text,
    "stream": lambda model, given, options: "".join(
        sync.stream(model, messages=given, **options).text_stream
    ),
    "many": lambda model, given, options: (
        next(sync.generate_many([given], model, **options)).result.text
    ),
    "session": lambda model, given, options: sync.Session(model, **options).send(given).text,
    "execute": lambda model, given, options: sync.execute(model, given, **options).text,
}


@every_form
@pytest.mark.parametrize("name", BLOCKING)
def test_the_blocking_functions_take_them(form, name):
    """They are the same functions."""
    with simulated(play) as peer, sync.Client(adapters(peer.server.url)) as client:
        options = {"client": client, "tools": [look]}

        assert BLOCKING[name](named("anthropic"), FORMS[form], options) == "Rain."


@pytest.mark.parametrize("form", ["anthropic", "responses"])
def test_a_request_says_what_reads_them(form):
    """It knows only the form of OpenAI's chat API: the error names the function for the others."""
    for message in FORMS[form][1:]:
        with pytest.raises(ConfigurationError, match=r"pass interlingua\.history\.read_messages\("):
            Request(messages=[ASKED, message])


@pytest.mark.parametrize(
    "wrong", [{"role": "user", "content": 5}, {"role": "usr", "content": "Hi"}, 5]
)
def test_other_mistakes_in_a_request_are_told_as_such(wrong):
    """The function would not read them either."""
    with pytest.raises(ConfigurationError) as raised:
        Request(messages=[ASKED, wrong])

    assert "read_messages" not in raised.value.message


@every_provider
def test_formats_as_dicts_are_formats(provider):
    """OpenAI's `json_object` and `json_schema`, of both of its APIs."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    strict = {"name": "place", "strict": True}
    chat_form = {"type": "json_schema", "json_schema": {**strict, "schema": schema}}
    flat_form = {"type": "json_schema", **strict, "schema": schema}
    whole = {"type": "json_schema", "json_schema": schema, **strict}

    def sent(form):
        def work(client):
            return generate(
                named(provider), "JSON: where?", response_format=form, client=client, on_loss="warn"
            )

        return bodies(work)

    assert sent({"type": "json_object"}) == sent({"type": "json"})
    assert sent(chat_form) == sent(flat_form) == sent(whole)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"type": "xml"}, "response_format is not the format of a text"),
        (
            {"type": "json_object", "shema": {}},
            "unknown field 'shema'. Did you mean 'json_schema'?",
        ),
        (dict, "Use generate_object"),
    ],
)
def test_other_formats_are_refused(form, message):
    """The error says what to write."""
    with pytest.raises(ConfigurationError, match=message):
        Request(messages="?", response_format=form)


@every_provider
def test_a_choice_of_a_tool_may_be_a_dict(provider):
    """In the forms of OpenAI's two APIs and of Anthropic."""
    forms = [
        "look",
        {"type": "function", "function": {"name": "look"}},
        {"type": "function", "name": "look"},
        {"type": "tool", "name": "look"},
    ]
    sent = [
        bodies(
            lambda client, form=form: generate(
                named(provider),
                "?",
                tools=[look],
                tool_choice=form,
                client=client,
                max_tool_rounds=0,
            )
        )
        for form in forms
    ]
    assert sent[0] == sent[1] == sent[2] == sent[3]


@every_provider
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if "request" not in name])
def test_plain_functions_are_tools(provider, name):
    """As `@tool` would make them, and the library runs them."""
    if name == "count" and provider == "openai_compatible":
        pytest.skip("Chat Completions cannot count")

    def sent(each):
        def work(client):
            options = {"client": client, "tools": [each]}
            if name == "many":
                options["concurrency"] = 1  # else the requests of its items mix
            return FUNCTIONS[name](named(provider), ["Weather?"], options)

        return bodies(work)

    assert sent(look) == sent(tool(look)) != []


@pytest.mark.parametrize(
    "name", ["generate", "stream", "many", "session", "turn as a stream", "execute"]
)
def test_every_function_takes_formats_as_dicts(name):
    """As `ResponseFormat`s."""

    def sent(form):
        options = {"response_format": form, "on_loss": "warn"}
        model = named("openai")
        return bodies(
            lambda client: FUNCTIONS[name](model, ["JSON?"], {**options, "client": client})
        )

    assert sent({"type": "json_object"}) == sent(ResponseFormat(type="json")) != []


def test_batches_take_functions_and_formats():
    """Their answers are read later, so no function is run."""

    def sent(**options):
        model = named("openai")
        return bodies(lambda client: batch.submit(["JSON?"], model, client=client, **options))

    assert sent(tools=[look]) == sent(tools=[tool(look)]) != []
    form = ResponseFormat(type="json")
    assert sent(response_format={"type": "json_object"}) == sent(response_format=form)


def test_methods_are_tools_and_classes_are_not():
    """A bound method is a function; a class is refused, and so is a function without hints."""

    class Station:
        def look(self, city: str) -> str:
            """Look at a city."""
            return f"{city}: snow"

    def asked(item):
        with simulated(play) as peer:
            return run(
                peer, lambda client: generate(named("openai"), "?", tools=[item], client=client)
            )

    assert given(asked(Station().look))[0].content == "Oslo: snow"
    for wrong in (Station, lambda city: city):
        with pytest.raises(ConfigurationError, match="tool"):
            asked(wrong)


@pytest.mark.parametrize(
    ("messages", "where"),
    [
        ([ASKED, {"role": "assistant", "content": [{"type": "tool_use"}]}], r"messages\[1\]"),
        ([{"type": "function_call", "call_id": 5}], r"messages\[0\]"),
        ([ASKED, {"type": "text", "text": "?"}], r"messages\[1\]"),
        ([ASKED, {"role": "user", "content": [{"type": "imag"}]}], r"messages\[1\].content\[0\]"),
    ],
)
def test_what_no_form_has_is_refused_with_its_place(messages, where):
    """The error says which message is wrong."""
    with pytest.raises(ConfigurationError, match=where) as raised:
        read_messages(messages)

    assert "read_messages" not in raised.value.message
